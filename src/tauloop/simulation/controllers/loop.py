"""The sampled control loop around a machine, in Python and as machine code.

Between samples the forces are constant and the platform's coordinates are integrated by an explicit
method with fixed steps; quaternions are kept at unit length.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Protocol, runtime_checkable

import numpy as np

from tauloop.common.deprecated import warn
from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic
from tauloop.compiler.c.calling.evaluator import Compiled
from tauloop.compiler.functions.tool import WRENCH
from tauloop.integrate.routine import Own
from tauloop.integrate.sampled import CompiledSamples, InterpretedSamples, SampledRun, SampledTrace
from tauloop.integrate.sensitivity import course_along, sensitive, split_sensitivities
from tauloop.integrate.tableau import Tableau
from tauloop.model import Model
from tauloop.simulation.controllers.laws import RUNGE_KUTTA_4, Controller, Correction, Loop
from tauloop.simulation.controllers.redundant import spread
from tauloop.simulation.controllers.system import ControlLayouts, control_system


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What the loop has done, for the samples that it reached.

    Attributes:
        position, velocity: of the platform (N, ...).
        force: at the actuators, from each sample on (N, n_u).
        end: why it ended early; empty where it did not, or a terminal event took place.
        samples: the run, its pivots, its loops and its events.
        by: derivatives of positions, velocities and forces, one behind the other (N, n, d).
        step_time: that the law took in Python at each sample (N,), s; empty where it is all in
            machine code.
        diagnostics: what the law says of the run.
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
    """A correction that says how its run went."""

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Figures of the samples until now."""
        ...


@runtime_checkable
class _ReportsAsBefore(Protocol):
    """A correction with the old name of `Reports.diagnostics`."""

    def evidence(self) -> tuple[Diagnostic, ...]: ...


class _InPlace:
    """The correction of a loop's controller, which changes forces in place, and the time that it takes."""

    def __init__(self, corrected: Correction) -> None:
        self.corrected = corrected
        self.times: list[float] = []

    def __call__(self, time: float, measured: np.ndarray, force: np.ndarray) -> None:
        begin, n = perf_counter(), len(force)
        force[:] = self.corrected(time, measured[:n].copy(), measured[n:].copy(), force.copy())
        self.times.append(perf_counter() - begin)


def _in_place(loop: Loop) -> _InPlace | None:
    corrected = loop.controller.correction(loop)
    return None if corrected is None else _InPlace(corrected)


class CompiledLoop:
    """The loop as machine code: the machine, the controller and the integrator in one library."""

    def __init__(
        self,
        plant: Model,
        model: Model,
        controller: Controller,
        method: Tableau | None = RUNGE_KUTTA_4,
        *,
        directions: int = 0,
        loaded: bool = False,
    ) -> None:
        """Compile, or find in the cache.

        Args:
            plant: the machine that moves.
            model: the machine that the controller believes in.
            controller: the law; other gains, and other numbers of `control`, need no new
                compilation.
            method: the integrator between samples, an explicit one, or Radau IIA without it; others
                are compiled when they are asked for.
            directions: of derivatives.
            loaded: whether a wrench and a payload at the tool act.

        Raises:
            EngineError: there is no compiler, or it fails.
        """
        self._made_for = (plant, model, type(controller), controller.space, directions, loaded)
        folder = plant.evaluator.folder if isinstance(plant.evaluator, Compiled) else None
        self._parts = ControlLayouts(plant, model, controller, loaded=loaded)
        #: The last loop and what it came to: one that is run again needs no new arrays.
        self._last: tuple[Loop, SampledRun] | None = None
        system = control_system(plant, model, controller, loaded=loaded)
        self._run = CompiledSamples(sensitive(system, directions), folder, method)

    def __call__(self, loop: Loop) -> Trace:
        """Run the loop.

        Raises:
            InputError: it was compiled for another machine or law.
        """
        controller, directions, loaded = (
            loop.controller,
            len(loop.directions),
            loop.load is not None,
        )
        if self._made_for != (
            loop.plant,
            loop.model,
            type(controller),
            controller.space,
            directions,
            loaded,
        ):
            what = (
                "was compiled for another machine, model, law, space, load or number of derivatives"
            )
            raise InputError.of("loop", what, "make a CompiledLoop for these")
        if self._last is None or self._last[0] is not loop:
            self._last = loop, _course(loop, self._parts)
        course = replace(self._last[1], own=_in_place(loop))
        return _trace(loop, self._parts, self._run(course), course.own)


class InterpretedLoop:
    """The same loop in Python, step by step: without a compiler, and to check machine code against."""

    def __call__(self, loop: Loop) -> Trace:
        """Run the loop."""
        described, loaded = (loop.plant, loop.model, loop.controller), loop.load is not None
        run = InterpretedSamples(
            sensitive(control_system(*described, loaded=loaded), len(loop.directions))
        )
        parts = ControlLayouts(*described, loaded=loaded)
        course = replace(_course(loop, parts), own=_in_place(loop))
        return _trace(loop, parts, run(course), course.own)


def control_numbers(loop: Loop, parts: ControlLayouts) -> tuple[np.ndarray, np.ndarray]:
    """What the loop is told at each sample (N, n_i), and its constants (n,)."""
    n = len(loop.forward)
    position, velocity, acceleration = loop.reference
    free = {"plant": loop.theta, "model": loop.model.mechanism.parameters.vector(loop.model.free)}
    numbers = {
        "proportional": loop.gains[0],
        "derivative": loop.gains[1],
        "limit": loop.limit,
        "resolution": loop.resolution,
        "counts": bool((loop.resolution > 0).any()),
        "period": loop.period,
        "differences": loop.differences,
    }
    if loop.model.assembly.is_redundant:
        numbers |= {"weight": 1.0, "spread": spread(loop.model, loop.resolution)}
    columns = {
        "time": loop.period * np.arange(n)[:, None],
        "position": position,
        "velocity": velocity,
    }
    columns |= {"acceleration": acceleration, "forward": loop.forward}
    if loop.load is not None:
        columns |= {"wrench": loop.load[:, :WRENCH], "payload": loop.load[:, WRENCH:]}
    return parts.inputs.rows(n, columns), parts.constants.rows(1, numbers | free)[0]


def _course(loop: Loop, parts: ControlLayouts) -> SampledRun:
    inputs, constants = control_numbers(loop, parts)
    held = {"estimate": loop.q, "past": np.concatenate([loop.q] * 3), "force": loop.first}
    actuators = len(loop.limit)
    course = SampledRun(
        period=loop.period,
        inputs=inputs,
        y=np.concatenate([loop.position, loop.velocity]),
        held=parts.held.rows(1, held)[0],
        q=loop.q,
        p=constants,
        method=loop.method,
        max_steps=loop.max_steps,
        whole=loop.delay // loop.substeps,
        change=loop.delay % loop.substeps * (loop.period / loop.substeps),
        own_sizes=(2 * actuators, actuators),
        events=loop.events,
    )
    return course_along(course, loop.directions) if loop.directions else course


def _trace(loop: Loop, parts: ControlLayouts, trace: SampledTrace, own: Own | None) -> Trace:
    reached, n_p, end = len(trace.states), len(loop.position), ""
    if not trace.is_whole:
        last = trace.states[-1, :n_p] if reached else loop.position
        with np.errstate(all="ignore"):
            q = loop.plant.platform.evaluate(last, start=loop.q).q
        end = trace.early_end(
            loop.plant.assembly, q, f"shortly before {reached * loop.period:.6g} s"
        )
    states, motion_by = split_sensitivities(trace.states, loop.directions)
    held, held_by = split_sensitivities(trace.held, loop.directions)
    force = parts.held.slices["force"]
    return Trace(
        position=states[:, :n_p],
        velocity=states[:, n_p:],
        force=held[:, force],
        by=np.concatenate([motion_by, held_by[:, force]], axis=1),
        end=end,
        samples=trace,
        step_time=np.array(own.times if isinstance(own, _InPlace) else ()),
        diagnostics=_reported(own.corrected) if isinstance(own, _InPlace) else (),
    )


def _reported(correction: object) -> tuple[Diagnostic, ...]:
    """Return what a correction reports of its run, under the old name of the method too."""
    if isinstance(correction, Reports):
        return correction.diagnostics()
    if isinstance(correction, _ReportsAsBefore):
        owner = type(correction).__name__
        warn(f"{owner}.evidence", f"{owner}.diagnostics")
        return correction.evidence()
    return ()
