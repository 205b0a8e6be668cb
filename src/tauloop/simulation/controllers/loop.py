"""The sampled control loop of a machine, in machine code.

Forces are constant between samples, and an explicit method with fixed steps integrates the
platform's coordinates. Quaternions are normalized after each step.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Protocol, runtime_checkable

import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.names.deprecated import warn
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic
from tauloop.compiler.c.calling.evaluator import Compiled, default_evaluator
from tauloop.compiler.functions.tool import WRENCH
from tauloop.integrate.routine import Own
from tauloop.integrate.sampled import CompiledSamples, SampledRun, SampledTrace
from tauloop.integrate.sensitivity import course_along, sensitive, split_sensitivities
from tauloop.model import Model
from tauloop.simulation.controllers.laws import Controller, ForceCallback, Loop
from tauloop.simulation.controllers.redundant import spread
from tauloop.simulation.controllers.system import ControlLayouts, control_system


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Results of a control loop, for the samples that it reached.

    Attributes:
        position, velocity: motion of the platform (N, ...).
        force: actuator forces, held from each sample to the next (N, n_u), N or N m.
        end: reason why the run ended early; empty for a complete run or after a terminal event.
        samples: the sampled run with its pivots, loop residuals and events.
        by: derivatives of positions, velocities and forces, concatenated (N, n, d).
        step_time: computing time of a law in Python at each sample (N,), s; empty for laws in
            machine code.
        diagnostics: diagnostics of the law.
    """

    position: np.ndarray
    velocity: np.ndarray
    force: np.ndarray
    end: str
    samples: SampledTrace
    by: np.ndarray
    step_time: np.ndarray
    diagnostics: tuple[Diagnostic, ...]


@runtime_checkable
class Reports(Protocol):
    """A force callback that reports diagnostics of its run."""

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return diagnostics of the samples so far."""
        ...


@runtime_checkable
class _ReportsUnderOldName(Protocol):
    """A force callback whose method has the old name of `Reports.diagnostics`."""

    def evidence(self) -> tuple[Diagnostic, ...]: ...


class _InPlace:
    """A force callback that changes forces in place and records its computing times."""

    def __init__(self, callback: ForceCallback) -> None:
        self.callback = callback
        self.times: list[float] = []

    def __call__(self, time: float, measured: np.ndarray, force: np.ndarray) -> None:
        n = len(force)
        begin = perf_counter()
        force[:] = self.callback(time, measured[:n].copy(), measured[n:].copy(), force.copy())
        self.times.append(perf_counter() - begin)


def _in_place(loop: Loop) -> _InPlace | None:
    callback = loop.controller.force_callback(loop)
    return None if callback is None else _InPlace(callback)


class CompiledLoop:
    """A control loop as machine code: machine, controller and integrator in one library."""

    def __init__(
        self,
        plant: Model,
        model: Model,
        controller: Controller,
        *,
        directions: int = 0,
        loaded: bool = False,
    ) -> None:
        """Build the loop. It is compiled on demand, with a compiler chosen by the run's length.

        Args:
            plant: the simulated machine.
            model: the machine that the controller assumes.
            controller: the control law. Changed gains or sampling options need no new compilation.
            directions: number of directions along which sensitivities are integrated.
            loaded: whether a wrench and a payload act at the tool.
        """
        self._compiled_for = (plant, model, type(controller), controller.space, directions, loaded)
        evaluator = plant.evaluator
        if not isinstance(evaluator, Compiled):
            evaluator = default_evaluator()
        self._layouts = ControlLayouts(plant, model, controller, loaded=loaded)
        #: The last loop and its arrays, which are reused if this loop runs again.
        self._last: tuple[Loop, SampledRun] | None = None
        system = control_system(plant, model, controller, loaded=loaded)
        self._run = CompiledSamples(sensitive(system, directions), evaluator)

    def __call__(self, loop: Loop) -> Trace:
        """Run the loop.

        Raises:
            InputError: the code was compiled for another machine or law.
            EngineError: no C compiler was found, or it fails.
        """
        required = (
            loop.plant,
            loop.model,
            type(loop.controller),
            loop.controller.space,
            len(loop.directions),
            loop.load is not None,
        )
        if self._compiled_for != required:
            problem = (
                "was compiled for another machine, model, law, space, load or number of derivatives"
            )
            raise InputError.of("loop", problem, "build a CompiledLoop for this loop")
        if self._last is None or self._last[0] is not loop:
            self._last = loop, _sampled_run(loop, self._layouts)
        run = replace(self._last[1], own=_in_place(loop))
        return _trace(loop, self._layouts, self._run(run), run.own)


def control_numbers(loop: Loop, layouts: ControlLayouts) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs of the control loop at each sample (N, n_i), and its constants (n,)."""
    n = len(loop.feedforward)
    position, velocity, acceleration = loop.reference
    free = {"plant": loop.theta, "model": loop.model.mechanism.parameters.vector(loop.model.free)}
    numbers = {
        "proportional": loop.gains[0],
        "derivative": loop.gains[1],
        "limit": loop.limit,
        "resolution": loop.resolution,
        "counts": bool((loop.resolution > 0).any()),
        "period": loop.period,
        "differences": loop.uses_velocity_differences,
    }
    if loop.model.assembly.is_redundant:
        numbers |= {"weight": 1.0, "spread": spread(loop.model, loop.resolution)}
    columns = {
        "time": loop.period * np.arange(n)[:, None],
        "position": position,
        "velocity": velocity,
    }
    columns |= {"acceleration": acceleration, "forward": loop.feedforward}
    if loop.load is not None:
        columns |= {"wrench": loop.load[:, :WRENCH], "payload": loop.load[:, WRENCH:]}
    return layouts.inputs.rows(n, columns), layouts.constants.rows(1, numbers | free)[0]


def _sampled_run(loop: Loop, layouts: ControlLayouts) -> SampledRun:
    inputs, constants = control_numbers(loop, layouts)
    held = {"estimate": loop.q, "past": np.concatenate([loop.q] * 3), "force": loop.initial_force}
    actuators = len(loop.limit)
    run = SampledRun(
        period=loop.period,
        inputs=inputs,
        y=np.concatenate([loop.position, loop.velocity]),
        held=layouts.held.rows(1, held)[0],
        q=loop.q,
        p=constants,
        method=loop.method,
        max_steps=loop.max_steps,
        whole=loop.delay // loop.substeps,
        change=loop.delay % loop.substeps * (loop.period / loop.substeps),
        own_sizes=(2 * actuators, actuators),
        events=loop.events,
    )
    return course_along(run, loop.directions) if loop.directions else run


def _trace(loop: Loop, layouts: ControlLayouts, trace: SampledTrace, own: Own | None) -> Trace:
    reached = len(trace.states)
    n_p = len(loop.position)
    end = ""
    if not trace.is_whole:
        last = trace.states[-1, :n_p] if reached else loop.position
        with np.errstate(all="ignore"):
            q = loop.plant.platform.evaluate(last, start=loop.q).q
        end = trace.early_end(
            loop.plant.assembly, q, f"shortly before {reached * loop.period:.6g} s"
        )
    states, motion_by = split_sensitivities(trace.states, loop.directions)
    held, held_by = split_sensitivities(trace.held, loop.directions)
    force = layouts.held.slices["force"]
    return Trace(
        position=states[:, :n_p],
        velocity=states[:, n_p:],
        force=held[:, force],
        by=np.concatenate([motion_by, held_by[:, force]], axis=1),
        end=end,
        samples=trace,
        step_time=np.array(own.times if isinstance(own, _InPlace) else ()),
        diagnostics=_reported(own.callback) if isinstance(own, _InPlace) else (),
    )


def _reported(callback: object) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of a force callback, whose method may have its old name."""
    if isinstance(callback, Reports):
        return callback.diagnostics()
    if isinstance(callback, _ReportsUnderOldName):
        owner = type(callback).__name__
        warn(f"{owner}.evidence", f"{owner}.diagnostics")
        return callback.evidence()
    return ()
