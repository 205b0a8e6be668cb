"""A machine and an FMU of somebody else, step by step in turn: in simulations, and under Tauloop's controllers.

The scheme is Gauss and Seidel's with the FMU first: from t to t + H the FMU steps with the
machine's motion of t held, and its outputs of t + H are held while the machine goes the same way.
The error is of first order in H; a second run with half of it says how large it is.
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
from tauloop.mechanism.bodies import cables
from tauloop.model import Model
from tauloop.model.model import MachineSource, modelled
from tauloop.simulation.controllers.laws import Compensation, Controller, Correction, Loop
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

#: Time between exchanges of a simulation without a step, s.
STEP = 1e-3
#: Steps of coupling are parts of a controller's samples to this share.
WHOLE = 1e-6
#: Times at which two simulations are compared.
LOOKS = 501
#: The law that asks for forces where none is chosen.
ASKS = "computed-torque"


@dataclass(eq=False)
class _InTurn:
    """An instance of the FMU that goes on beside a machine; the instance is made at the first step."""

    fmu: ForeignFmu
    connections: Connections
    starts: Mapping[str, object]
    step: float
    begun: bool = False

    def forces(self, time: float, quantities: np.ndarray, asked: np.ndarray) -> np.ndarray:
        """Forces (n_u,) of the actuators from a time (s) on, for one step, from the machine's quantities (n,)."""
        sent = self.connections.sent(quantities)
        if not self.begun:
            self.begun = True
            self.fmu.begin(time, self.starts, sent)
        return self.connections.received(
            self.fmu.step(time, self.step, sent, self.connections.output_references), asked
        )


class _Held:
    """What is asked for, sampled more seldom than the two are coupled."""

    def __init__(self, every: int) -> None:
        self._every, self._count, self._asked = every, 0, np.zeros(0)

    def __call__(self, asked: Callable[[], np.ndarray]) -> np.ndarray:
        """What was asked for at the last sample."""
        if self._count % self._every == 0:
            self._asked = asked()
        self._count += 1
        return self._asked


@final
class FmuForce(ForceLaw):
    """Forces that an FMU makes of the machine's motion, and of those that another law asks for."""

    def __init__(self, model: Model, turn: _InTurn, asking: ForceLaw | None) -> None:
        """Keep them.

        Raises:
            InputError: a law whose samples are no whole steps of coupling.
        """
        self._model, self._turn, self._asking = model, turn, asking
        every = 1 if asking is None or not asking.period else _whole(asking.period, turn.step)
        self._held, self._nothing = _Held(every), np.zeros(len(model.mechanism.actuators))

    @property
    def period(self) -> float:
        """The step of coupling, s."""
        return self._turn.step

    def force(self, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """What the FMU makes of this step."""
        model, asking = self._model, self._asking
        asked = self._held(
            lambda: self._nothing if asking is None else np.asarray(asking.force(time, q, v))
        )
        ports, speeds = model.platform.ports, model.assembly.loops.transmission @ v
        moved = [model.actuator_position(q), speeds, asked, ports.at(q), ports.rates(v)]
        return self._turn.forces(time, np.concatenate([[time, time], *moved]), asked)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FmuDriven(Controller):
    """A law whose forces pass through an FMU, sampled more often than the law: held until its next sample.

    Attributes:
        law: that asks for forces.
        turn: makes what goes on beside a run.
        every: steps of coupling in a sample of the law.
    """

    law: Controller
    turn: Callable[[], _InTurn]
    every: int

    @property
    def feeds_forward(self) -> bool:
        """As the law."""
        return self.law.feeds_forward

    @property
    def compensation(self) -> Compensation:
        """As the law."""
        return self.law.compensation

    def correction(self, loop: Loop) -> Correction:
        """What the FMU makes of the forces that the law asks for."""
        turn, held = self.turn(), _Held(self.every)
        inner, reference = self.law.correction(loop), loop.reference
        ports = loop.model.platform.ports
        positions = ports.at(reference[0]) if self.space == "platform" else reference[0]

        def call(
            time: float, measured: np.ndarray, speed: np.ndarray, force: np.ndarray
        ) -> np.ndarray:
            asked = held(
                lambda: force if inner is None else inner(time, measured, speed, force)
            ).copy()
            k = min(round(time / loop.period), len(positions) - 1)
            wanted = [positions[k], reference[1][k], reference[2][k]]
            return turn.forces(
                time, np.concatenate([[time, time], measured, speed, asked, *wanted]), asked
            )

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
    """Simulate a machine, or control it, with an FMU of somebody else as actuator, drive or controller.

    Quantities of the machine are `time` (`stamp` without its unit), each actuator's NAME.position,
    NAME.velocity and NAME.force (which the options or the controller ask for), and platform.x,
    platform.x.velocity ... of a simulation, or reference.NAME, reference.NAME.velocity and
    .acceleration of a control, in its space. NAME.force is what the FMU sets. All are in SI units;
    those that the FMU declares are converted.

    The FMU and the machine go in turn, the FMU first, with what they exchange held: an error of the
    first order in the step. Two runs, the second with half the step, show it; the second is the
    result, with what the two differ by among its diagnostics.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: of the simulation under forces, or of one controller on a stroke.
        coupling: the FMU, and what is connected with what.
        progress: called with what is done and what there is to do.

    Raises:
        EngineError: FMPy is missing; or the FMU fails, with what it logged.
        InputError: no such FMU, and names, units or options that do not go together.
        PoseError: as of `simulate` and `control`.

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
    model = modelled(machine)
    _require_coupled(model, options)
    stages = Stages(progress, 2)
    limit = None if coupling.fmu_limit is None else 1e6 * coupling.fmu_limit
    with ForeignFmu(path=Path(coupling.fmu), limit=limit) as fmu:
        if isinstance(options, ControlOptions):
            controlled = [
                _controlled(model, options, coupling, fmu, parts) for parts in stages.over((1, 2))
            ]
            apart = _apart_under_control(*controlled)
            noted = _noted(controlled[1], model, apart, fmu)
            # what runs show by themselves has it too
            runs = {
                name: replace(
                    run,
                    diagnostics=(*run.diagnostics, noted["diagnostics"][-1]),
                    provenance=noted["provenance"],
                )
                for name, run in controlled[1].runs.items()
            }
            return replace(controlled[1], **noted, runs=runs)
        assert isinstance(options, SimulationOptions)
        simulated = [
            _simulated(model, options, coupling, fmu, parts) for parts in stages.over((1, 2))
        ]
        return replace(simulated[1], **_noted(simulated[1], model, _apart(*simulated), fmu))


def _require_coupled(model: Model, options: AnyOptions | ControlOptions) -> None:
    """Refuse what does not go together with an FMU, all at once."""
    problems = Problems()
    if not isinstance(options, SimulationOptions | ControlOptions):
        problems.add("fmu", "means nothing beside a swing or a round trip", "leave it out")
    elif options.sensitivities:
        problems.add(
            "sensitivities",
            "an FMU cannot be differentiated through",
            "take differences of runs instead",
        )
    if cables(model.mechanism):
        problems.add(
            "fmu", "is not for machines with cables, whose winches are held", "simulate without it"
        )
    if isinstance(options, ControlOptions):
        if len(options.controller) > 1:
            problems.add(
                "controller", f"{len(options.controller)} of them beside an FMU", "choose one"
            )
        if options.differences:
            what = "are of samples, and an FMU may be coupled more often"
            problems.add(
                "differences", what, "measure speeds exactly, or take differences in the FMU"
            )
    InputError.raise_if_any(problems)


def _noted(
    result: Simulation | ControlComparison, model: Model, apart: float, fmu: ForeignFmu
) -> dict[str, Any]:
    """Diagnostics of the coupling, and the FMU in the provenance."""
    units = [unit for unit in dict.fromkeys(model.platform.ports.position.units) if unit != "1"]
    noted = diagnostic(
        COUPLING_CHANGE, apart, unit=" or ".join(units), advice="shorten the coupling step"
    )
    made = result.provenance
    inputs = dict(made.inputs) | {"fmu": fmu.path.name, "fmu_sha256": fmu.sha256}
    return {"diagnostics": (*result.diagnostics, noted), "provenance": replace(made, inputs=inputs)}


# Simulations


def _simulated(
    model: Model, options: SimulationOptions, coupling: FmuCoupling, fmu: ForeignFmu, parts: int
) -> Simulation:
    """A simulation with so many parts of the coupling step."""
    ports = model.platform.ports
    quantities = _moved(model) | dict(
        zip(ports.position.columns, ports.position.units, strict=True)
    )
    quantities |= dict(zip(velocity_names(ports), ports.velocity.units, strict=True))
    step = (coupling.coupling_step or STEP) / parts
    turn = _turns(model, fmu, coupling, quantities, step)()
    result = simulate(
        model, replace(options, force=FmuForce(model, turn, force_law(model, options)))
    )
    assert isinstance(result, Simulation)
    noted = dict(result.provenance.options) | {
        "coupling_step_s": step,
        "connect": dict(coupling.connect),
    }
    return replace(result, provenance=replace(result.provenance, options=noted))


def _apart(coarse: Simulation, fine: Simulation) -> float:
    """Largest difference of the platform's positions."""
    end = min(coarse.time[-1], fine.time[-1])
    times, at = np.linspace(0.0, end, LOOKS), fine.system.model.platform.ports
    return float(np.abs(at.at(coarse.at(times)[0]) - at.at(fine.at(times)[0])).max())


# Control


def _controlled(
    model: Model, options: ControlOptions, coupling: FmuCoupling, fmu: ForeignFmu, parts: int
) -> ControlComparison:
    """A control with so many parts of the coupling step."""
    every = parts * _whole(1.0 / options.frequency, coupling.coupling_step)
    step = 1.0 / options.frequency / every
    chosen = options if options.controller else replace(options, controller=(ASKS,))
    ((name, law),) = chosen.laws.items()
    motion = model.motion(PLATFORM if law.space == "platform" else ACTUATORS).ports
    wanted = motion_inputs(motion, np.zeros(motion.position.size + 2 * motion.velocity.size))
    quantities = _moved(model) | {f"reference.{each.name}": each.unit for each in wanted}
    turns = _turns(model, fmu, coupling, quantities, step)
    driven = FmuDriven(
        bandwidth=law.bandwidth,
        damping=law.damping,
        space=law.space,
        law=law,
        turn=turns,
        every=every,
    )
    result = follow_path(
        model, replace(chosen, controller=(driven,), frequency=options.frequency * every)
    )
    own, label = (
        type(driven).__name__,
        fmu.path.stem if is_alone(turns(), model) else f"{name} through {fmu.path.stem}",
    )
    return replace(
        result,
        runs={label: result.runs[own]},
        diagnostics=tuple(
            replace(item, name=item.name.replace(own, label, 1)) for item in result.diagnostics
        ),
        provenance=replace(
            result.provenance,
            options=dict(result.provenance.options)
            | {"controller": name, "coupling_step_s": step, "connect": dict(coupling.connect)},
        ),
    )


def is_alone(turn: _InTurn, model: Model) -> bool:
    """Whether the FMU is the whole controller: it sets all forces, and asks for none."""
    links = turn.connections
    return len(links.drives) == len(model.mechanism.actuators) and not links.reads_asked


def _apart_under_control(coarse: ControlComparison, fine: ControlComparison) -> float:
    """Largest difference of the platform's positions at the samples that both have."""
    (first,), (second,) = coarse.runs.values(), fine.runs.values()
    both = min(len(first.position), (len(second.position) + 1) // 2)
    return float(np.abs(first.position[:both] - second.position[: 2 * both : 2]).max(initial=0.0))


# Parts of both


def _moved(model: Model) -> dict[str, str]:
    """Time, also as a plain number, motion of the actuators and forces that are asked for: units by name."""
    names, units = model.output_ports("actuators")
    moved = {variable.name: variable.unit for variable in actuator_motion_variables(model)}
    return (
        {"time": "s", "stamp": "1"}
        | moved
        | dict(zip((f"{name}.force" for name in names), units, strict=True))
    )


def _turns(
    model: Model, fmu: ForeignFmu, coupling: FmuCoupling, quantities: Mapping[str, str], step: float
) -> Callable[[], _InTurn]:
    """What makes instances that go on beside a machine, by these steps (s).

    Raises:
        InputError: connections and starts that are wrong, all at once.
    """
    problems, (names, units) = Problems(), model.output_ports("actuators")
    connections, starts = None, dict[str, object]()
    with problems.collecting(InputError):
        starts = fmu.starts(coupling.fmu_start)
    with problems.collecting(InputError):
        connections = connected(fmu, coupling, quantities, names, units)
    InputError.raise_if_any(problems)
    assert connections is not None
    return partial(_InTurn, fmu=fmu, connections=connections, starts=starts, step=step)


def _whole(period: float, step: float | None) -> int:
    """Steps of coupling in a period (s); one without a step.

    Raises:
        InputError: they do not go up in it.
    """
    count = 1 if step is None else max(round(period / step), 1)
    if step is not None and abs(count * step - period) > WHOLE * period:
        what = f"is {1e3 * step:g} ms, and the samples of what asks for forces are {1e3 * period:g} ms apart"
        raise InputError.of("coupling_step", what, f"such as {1e3 * period / count:.9g} ms")
    return count
