"""Co-simulation of a machine and a third-party FMU, in simulations and under controllers.

The scheme is Gauss-Seidel with the FMU first: from t to t + H the FMU steps with the machine's
motion at t held constant; then the machine steps with the FMU's outputs at t + H held constant.
The error is of first order in H; a second run with half the step estimates it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, final, overload

import numpy as np

from tauloop.common.errors import InputError, PoseError, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import diagnostic
from tauloop.equations.ports import ACTUATORS, PLATFORM
from tauloop.export.fmu.blocks import motion_inputs, velocity_names
from tauloop.export.fmu.coupling import Connections, FmuCoupling, connected
from tauloop.export.fmu.foreign import ForeignFmu
from tauloop.export.fmu.plant import actuator_motion_variables
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled
from tauloop.simulation.controllers.laws import Compensation, Controller, ForceCallback, Loop
from tauloop.simulation.controllers.workflow import (
    COUPLING_CHANGE,
    ControlComparison,
    ControlOptions,
    follow_path,
)
from tauloop.simulation.forces import ForceLaw
from tauloop.simulation.simulation import Simulation
from tauloop.simulation.workflow import (
    AnyOptions,
    FreeMotionOptions,
    RoundTripOptions,
    SimulationOptions,
    force_law,
    simulate,
)

#: Default time between exchanges in a simulation, s.
DEFAULT_COUPLING_STEP = 1e-3
#: A controller's period must be a whole number of coupling steps to this relative tolerance.
WHOLE_STEP_TOLERANCE = 1e-6
#: Number of times at which two simulations are compared.
COMPARISON_SAMPLES = 501
#: Control law if none is chosen.
DEFAULT_LAW = "computed-torque"


@dataclass(eq=False)
class _CoupledInstance:
    """An instance of the FMU that runs with a machine. It is created at the first step."""

    fmu: ForeignFmu
    connections: Connections
    starts: Mapping[str, object]
    step: float
    begun: bool = False

    def forces(self, time: float, quantities: np.ndarray, requested: np.ndarray) -> np.ndarray:
        """Return the actuator forces (n_u,) for the step that starts at a time (s).

        Args:
            time: start of the step, s.
            quantities: quantities of the machine at that time (n,), SI.
            requested: requested forces (n_u,).
        """
        sent = self.connections.sent(quantities)
        if not self.begun:
            self.begun = True
            self.fmu.begin(time, self.starts, sent)
        return self.connections.received(
            self.fmu.step(time, self.step, sent, self.connections.output_references), requested
        )


class _SampleHold:
    """Requested forces, sampled at every n-th coupling step and held in between."""

    def __init__(self, every: int) -> None:
        self._every, self._count, self._requested = every, 0, np.zeros(0)

    def __call__(self, requested: Callable[[], np.ndarray]) -> np.ndarray:
        """Return the forces requested at the last sample."""
        if self._count % self._every == 0:
            self._requested = requested()
        self._count += 1
        return self._requested


@final
class FmuForce(ForceLaw):
    """Forces that an FMU computes from the machine's motion and a law's requested forces."""

    def __init__(self, model: Model, instance: _CoupledInstance, law: ForceLaw | None) -> None:
        """Store the arguments.

        Raises:
            InputError: the period of the law is not a whole number of coupling steps.
        """
        self._model = model
        self._instance = instance
        self._law = law
        every = 1
        if law is not None and law.period:
            every = _steps_per_period(law.period, instance.step)
        self._sample_hold = _SampleHold(every)
        self._no_force = np.zeros(len(model.mechanism.actuators))

    @property
    def period(self) -> float:
        """Coupling step, s."""
        return self._instance.step

    def force(self, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the FMU's forces for this step."""
        model, law = self._model, self._law
        requested = self._sample_hold(
            lambda: self._no_force if law is None else np.asarray(law.force(time, q, v))
        )
        ports = model.platform.ports
        speeds = model.assembly.loops.transmission @ v
        quantities = [[time, time], model.actuator_position(q), speeds, requested]
        quantities += [ports.at(q), ports.rates(v)]
        return self._instance.forces(time, np.concatenate(quantities), requested)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FmuDriven(Controller):
    """A law whose forces pass through an FMU, which may be sampled more often than the law.

    Attributes:
        law: law that requests forces, which are constant until its next sample.
        new_instance: function that creates an instance of the FMU for a run.
        every: number of coupling steps per sample of the law.
    """

    law: Controller
    new_instance: Callable[[], _CoupledInstance]
    every: int

    @property
    def feeds_forward(self) -> bool:
        """Whether the law uses feed-forward."""
        return self.law.feeds_forward

    @property
    def compensation(self) -> Compensation:
        """Compensation of the law."""
        return self.law.compensation

    def force_callback(self, loop: Loop) -> ForceCallback:
        """Return the FMU's forces as a function of the law's requested forces."""
        instance = self.new_instance()
        sample_hold = _SampleHold(self.every)
        law_callback = self.law.force_callback(loop)
        reference = loop.reference
        ports = loop.model.platform.ports
        positions = ports.at(reference[0]) if self.space == "platform" else reference[0]

        def call(
            time: float, measured: np.ndarray, speed: np.ndarray, force: np.ndarray
        ) -> np.ndarray:
            requested = sample_hold(
                lambda: (
                    force if law_callback is None else law_callback(time, measured, speed, force)
                )
            ).copy()
            k = min(round(time / loop.period), len(positions) - 1)
            reference_now = [positions[k], reference[1][k], reference[2][k]]
            quantities = [[time, time], measured, speed, requested, *reference_now]
            return instance.forces(time, np.concatenate(quantities), requested)

        return call


@overload
def co_simulate(
    machine: MachineSource,
    options: ControlOptions,
    coupling: FmuCoupling,
    *,
    progress: Progress | None = ...,
) -> ControlComparison: ...
@overload
def co_simulate(
    machine: MachineSource,
    options: AnyOptions,
    coupling: FmuCoupling,
    *,
    progress: Progress | None = ...,
) -> Simulation: ...


@keywords(SimulationOptions, FreeMotionOptions, RoundTripOptions, ControlOptions)
@solving(PoseError)
def co_simulate(
    machine: MachineSource,
    options: AnyOptions | ControlOptions,
    coupling: FmuCoupling,
    *,
    progress: Progress | None = None,
) -> Simulation | ControlComparison:
    """Simulate or control a machine with a third-party FMU as actuator, drive or controller.

    The machine provides these quantities:

    - `time`, and `stamp`, the time without a unit;
    - NAME.position, NAME.velocity and NAME.force of each actuator, where the force is the one that
      the options or the controller request;
    - in a simulation, platform.x, platform.x.velocity ...;
    - under control, reference.NAME, reference.NAME.velocity and reference.NAME.acceleration in the
      controller's space.

    The FMU sets NAME.force. All quantities are in SI units; values with a unit declared by the FMU
    are converted.

    The FMU and the machine step in turn, the FMU first, and hold the exchanged values constant.
    This causes an error of first order in the step. The result is a second run with half the step.
    Its difference from the first run is one of its diagnostics.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: options of a simulation under forces, or of a single controller on a stroke.
        coupling: the FMU and its connections.
        progress: called with the completed and the total number of runs.

    Returns:
        The result of `simulate` or `follow_path`, depending on the options.

    Raises:
        EngineError: FMPy is missing, or the FMU fails; the message contains its log.
        InputError: the FMU does not exist, or names, units or options do not fit together.
        PoseError: see `simulate` and `follow_path`.

    Examples:
        >>> import tauloop as tl
        >>> tl.co_simulate(tl.load("delta"), tl.SimulationOptions(), tl.FmuCoupling(fmu="none.fmu"))
        Traceback (most recent call last):
            ...
        tauloop.common.errors.InputError: fmu: there is no such file (none.fmu)
            remedy: check the path
    """
    if coupling.fmu is None:
        raise InputError.of("fmu", "is missing", "name the file of an FMU")
    model = modeled(machine)
    _require_coupled(model, options)
    stages = Stages(progress, 2)
    limit = None if coupling.fmu_limit is None else 1e6 * coupling.fmu_limit
    with ForeignFmu(path=Path(coupling.fmu), limit=limit) as fmu:
        if isinstance(options, ControlOptions):
            controlled = [
                _controlled(model, options, coupling, fmu, refinement)
                for refinement in stages.over((1, 2))
            ]
            mismatch = _control_mismatch(*controlled)
            fields = _coupling_fields(controlled[1], model, mismatch, fmu)
            # each run also has the coupling diagnostic
            runs = {
                name: replace(
                    run,
                    diagnostics=(*run.diagnostics, fields["diagnostics"][-1]),
                    provenance=fields["provenance"],
                )
                for name, run in controlled[1].runs.items()
            }
            return replace(controlled[1], **fields, runs=runs)
        assert isinstance(options, SimulationOptions)
        simulated = [
            _simulated(model, options, coupling, fmu, refinement)
            for refinement in stages.over((1, 2))
        ]
        mismatch = _simulation_mismatch(*simulated)
        return replace(simulated[1], **_coupling_fields(simulated[1], model, mismatch, fmu))


def _require_coupled(model: Model, options: AnyOptions | ControlOptions) -> None:
    """Raise one error for all options that do not work with an FMU."""
    problems = Problems()
    if not isinstance(options, SimulationOptions | ControlOptions):
        problems.add("fmu", "has no effect on free motion or a round trip", "omit `fmu`")
    elif options.sensitivities:
        problems.add(
            "sensitivities",
            "an FMU has no derivatives",
            "use differences of runs instead",
        )
    if model.mechanism.cables:
        problems.add(
            "fmu", "cannot drive a machine with cables: their winches are locked", "omit `fmu`"
        )
    if isinstance(options, ControlOptions):
        if len(options.controller) > 1:
            problems.add(
                "controller",
                f"{len(options.controller)} controllers with one FMU",
                "choose one controller",
            )
        if options.velocity_differences:
            message = "are computed once per sample, but an FMU may be coupled more often"
            problems.add(
                "velocity_differences",
                message,
                "measure speeds exactly, or compute differences in the FMU",
            )
    InputError.raise_if_any(problems)


def _coupling_fields(
    result: Simulation | ControlComparison, model: Model, mismatch: float, fmu: ForeignFmu
) -> dict[str, Any]:
    """Return a result's fields with the coupling diagnostic, and the FMU in the provenance."""
    units = [unit for unit in dict.fromkeys(model.platform.ports.position.units) if unit != "1"]
    change = diagnostic(
        COUPLING_CHANGE, mismatch, unit=" or ".join(units), advice="shorten the coupling step"
    )
    record = result.provenance
    inputs = dict(record.inputs) | {"fmu": fmu.path.name, "fmu_sha256": fmu.sha256}
    return {
        "diagnostics": (*result.diagnostics, change),
        "provenance": replace(record, inputs=inputs),
    }


# Simulations


def _simulated(
    model: Model,
    options: SimulationOptions,
    coupling: FmuCoupling,
    fmu: ForeignFmu,
    refinement: int,
) -> Simulation:
    """Return a simulation with the coupling step divided by `refinement`."""
    ports = model.platform.ports
    quantities = _quantity_units(model) | dict(
        zip(ports.position.columns, ports.position.units, strict=True)
    )
    quantities |= dict(zip(velocity_names(ports), ports.velocity.units, strict=True))
    step = (coupling.coupling_step or DEFAULT_COUPLING_STEP) / refinement
    instance = _instance_maker(model, fmu, coupling, quantities, step)()
    result = simulate(
        model, replace(options, force=FmuForce(model, instance, force_law(model, options)))
    )
    assert isinstance(result, Simulation)
    stated = dict(result.provenance.options) | {
        "coupling_step_s": step,
        "connect": dict(coupling.connect),
    }
    return replace(result, provenance=replace(result.provenance, options=stated))


def _simulation_mismatch(coarse: Simulation, fine: Simulation) -> float:
    """Return the largest difference between the platform positions of two runs, m or rad."""
    end = min(coarse.time[-1], fine.time[-1])
    times = np.linspace(0.0, end, COMPARISON_SAMPLES)
    ports = fine.system.model.platform.ports
    difference = ports.at(coarse.at(times)[0]) - ports.at(fine.at(times)[0])
    return float(np.abs(difference).max())


# Control


def _controlled(
    model: Model, options: ControlOptions, coupling: FmuCoupling, fmu: ForeignFmu, refinement: int
) -> ControlComparison:
    """Return a control run with the coupling step divided by `refinement`."""
    every = refinement * _steps_per_period(1.0 / options.rate, coupling.coupling_step)
    step = 1.0 / options.rate / every
    if not options.controller:
        options = replace(options, controller=(DEFAULT_LAW,))
    ((name, law),) = options.laws.items()
    motion = model.functions(PLATFORM if law.space == "platform" else ACTUATORS).ports
    reference = motion_inputs(motion, np.zeros(motion.position.size + 2 * motion.velocity.size))
    quantities = _quantity_units(model)
    quantities |= {f"reference.{variable.name}": variable.unit for variable in reference}
    new_instance = _instance_maker(model, fmu, coupling, quantities, step)
    driven = FmuDriven(
        bandwidth=law.bandwidth,
        damping=law.damping,
        space=law.space,
        law=law,
        new_instance=new_instance,
        every=every,
    )
    result = follow_path(model, replace(options, controller=(driven,), rate=options.rate * every))
    title = type(driven).__name__
    label = f"{name} through {fmu.path.stem}"
    if is_alone(new_instance(), model):
        label = fmu.path.stem
    return replace(
        result,
        runs={label: result.runs[title]},
        diagnostics=tuple(
            replace(item, name=item.name.replace(title, label, 1)) for item in result.diagnostics
        ),
        provenance=replace(
            result.provenance,
            options=dict(result.provenance.options)
            | {"controller": name, "coupling_step_s": step, "connect": dict(coupling.connect)},
        ),
    )


def is_alone(instance: _CoupledInstance, model: Model) -> bool:
    """Return whether the FMU is the whole controller: it sets all forces and reads no force."""
    links = instance.connections
    return len(links.drives) == len(model.mechanism.actuators) and not links.reads_requested_forces


def _control_mismatch(coarse: ControlComparison, fine: ControlComparison) -> float:
    """Return the largest difference between the positions of two runs at common samples."""
    (first,), (second,) = coarse.runs.values(), fine.runs.values()
    common = min(len(first.position), (len(second.position) + 1) // 2)
    difference = first.position[:common] - second.position[: 2 * common : 2]
    return float(np.abs(difference).max(initial=0.0))


# Functions of simulation and control


def _quantity_units(model: Model) -> dict[str, str]:
    """Return the units of time, actuator motion and requested forces, by name."""
    names, units = model.output_ports("actuators")
    motion = {variable.name: variable.unit for variable in actuator_motion_variables(model)}
    forces = dict(zip((f"{name}.force" for name in names), units, strict=True))
    return {"time": "s", "stamp": "1", **motion, **forces}


def _instance_maker(
    model: Model, fmu: ForeignFmu, coupling: FmuCoupling, quantities: Mapping[str, str], step: float
) -> Callable[[], _CoupledInstance]:
    """Return a function that creates coupled instances with a step (s).

    Raises:
        InputError: connections or start values are wrong; all faults are reported together.
    """
    problems = Problems()
    names, units = model.output_ports("actuators")
    connections = None
    starts: dict[str, object] = {}
    with problems.collecting(InputError):
        starts = fmu.starts(coupling.fmu_start)
    with problems.collecting(InputError):
        connections = connected(fmu, coupling, quantities, names, units)
    InputError.raise_if_any(problems)
    assert connections is not None
    return partial(_CoupledInstance, fmu=fmu, connections=connections, starts=starts, step=step)


def _steps_per_period(period: float, step: float | None) -> int:
    """Return the number of coupling steps in a period (s); 1 if no step is given.

    Raises:
        InputError: the period is not a whole number of steps.
    """
    count = 1 if step is None else max(round(period / step), 1)
    if step is not None and abs(count * step - period) > WHOLE_STEP_TOLERANCE * period:
        message = (
            f"{1e3 * step:g} ms does not divide the sampling period of the requested forces, "
            f"{1e3 * period:g} ms"
        )
        raise InputError.of(
            "coupling_step", message, f"use a divisor, such as {1e3 * period / count:.9g} ms"
        )
    return count
