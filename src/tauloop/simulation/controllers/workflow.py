"""Simulation of controllers on a stroke, with and without the machine's model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.datasets import TIME_DIMENSIONS, Variable
from tauloop.common.errors import InputError, PoseError, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option, pairs_reader
from tauloop.common.plain import in_json, json_keys
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result
from tauloop.equations.assembly.limits import beyond_limits
from tauloop.integrate.events import Event
from tauloop.integrate.integrators import DormandPrince, Integrator, Radau
from tauloop.integrate.tableau import Tableau
from tauloop.kinematics.event_texts import parse_events
from tauloop.logs.log import log_of
from tauloop.mechanism.description import units
from tauloop.mechanism.description.units import quantity
from tauloop.mechanism.suggestions import suggestion, unknown_names
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled
from tauloop.motion import StrokeOptions
from tauloop.motion.planning import planned
from tauloop.simulation.controllers.laws import (
    HEUN_3,
    RUNGE_KUTTA_4,
    SPACES,
    Controller,
    Sampling,
    read_bandwidth,
)
from tauloop.simulation.controllers.library import COMPILED, CONTROLLERS
from tauloop.simulation.controllers.predictive import RELAXED_PROGRAMS, UNSOLVED_PROGRAMS
from tauloop.simulation.controllers.run import SATURATED, SUBSTEPS, ControlledMotion, follow
from tauloop.simulation.forces import Wrench, wrench_at_tool

if TYPE_CHECKING:
    import xarray as xr

METHODS: dict[str, Tableau | Integrator] = {
    "rk4": RUNGE_KUTTA_4,
    "heun3": HEUN_3,
    "adaptive": DormandPrince(),
    "implicit": Radau(),
}
#: Fraction of the machine's limits that a stroke without a given duration uses; the rest is for the
#: controller.
STROKE_LIMIT_SHARE = 0.8
#: Name of the diagnostic of a co-simulation with an FMU.
COUPLING_CHANGE = "change of the platform's positions when the coupling step is doubled"


@dataclass(frozen=True, kw_only=True)
class ControlOptions(Options):
    """Simulation of controllers on a stroke.

    Attributes:
        stroke: stroke to follow.
        controller: law of the controller, several separated by commas: pd, gravity, feed-forward,
            computed-torque, predictive; by default all except the last. Python also accepts
            controller objects.
        horizon: number of samples that the predictive controller looks ahead.
        space: coordinates of the errors: actuators or platform.
        bandwidth: bandwidth of the controllers, such as 100 (rad/s) or '20 Hz'.
        damping: damping ratio of the controller.
        rate: samples per second, such as 1kHz.
        delay: delay from measurement to force, such as 0.5ms.
        quantization: step of the encoders, such as 0.1mrad, or one per actuator separated by
            commas; 0 for exact measurement.
        velocity_differences: compute velocities by finite differences of measured positions.
        saturation: limit forces to the limits of the machine file.
        plant: parameters of the simulated machine that differ from the controller's model, such as
            'plate_mass=0.4'.
        wrench: wrench at the tool, such as 'fx=10,mz=0.5' (N, N m, base frame), unknown to the
            controllers. Python also accepts a function of time.
        settling: time at rest after the end of the motion, s.
        method: integrator between samples.
        integrator: any integrator, which replaces the method.
        substeps: integration steps per period; the delay is rounded to whole steps.
        until: end at this event: 'platform.z<-0.7' or 'singularity<0.05', as in `tauloop simulate`.
        record: record the times of this event, written as for --until, and continue.
        sensitivities: parameters of the simulated machine, `bandwidth`, `damping`, and start values
            such as 'position.platform.x', with respect to which the runs are differentiated
            (`ControlledMotion.sensitivities`).

    Examples:
        >>> import tauloop as tl
        >>> stroke = tl.StrokeOptions(end={"x": 0.05}, duration=0.5)
        >>> tl.ControlOptions(stroke=stroke, controller=("pd",), rate=2000.0).controller
        ('pd',)
    """

    stroke: StrokeOptions
    controller: tuple[str | Controller, ...] = option((), metavar="LAW")
    horizon: int = option(20, least=1)
    space: str = option("joint", choices=SPACES)
    bandwidth: float = option(150.0, read=read_bandwidth, metavar="FREQUENCY")
    damping: float = 1.0
    rate: float = option(1000.0, metavar="FREQUENCY", unit=units.FREQUENCY)
    delay: float = option(0.0, metavar="TIME", unit=units.TIME)
    quantization: str | float | tuple[float, ...] = option(0.0, read=str, metavar="QUANTITIES")
    velocity_differences: bool = False
    saturation: bool = True
    plant: Mapping[str, str | float] | None = option(
        None, read=pairs_reader("plant", "plate_mass=0.4"), names="parameters"
    )
    wrench: str | Mapping[str, str | float] | tuple[str | float, ...] | Wrench | None = option(
        None, read=pairs_reader("wrench", "fx=10"), metavar="VALUES"
    )
    settling: float = option(0.0, metavar="TIME", unit=units.TIME)
    method: str = option("rk4", choices=tuple(METHODS))
    integrator: Integrator | None = option(None, flag="")
    substeps: int = SUBSTEPS
    until: tuple[str | Event, ...] = option((), metavar="EVENT")
    record: tuple[str | Event, ...] = option((), metavar="EVENT")
    sensitivities: tuple[str, ...] = option((), names="parameters")

    def _note_mismatches(self, problems: Problems) -> None:
        """Report unknown controllers."""
        names = [name for name in self.controller if isinstance(name, str)]
        problems += unknown_names(names, CONTROLLERS, "{!r} is unknown", "controller")

    @property
    def laws(self) -> dict[str, Controller]:
        """Controllers by name, in the order of `CONTROLLERS`; then controller objects by title."""
        objects = {law.title: law for law in self.controller if isinstance(law, Controller)}
        laws = {}
        for name in CONTROLLERS:
            if name not in (self.controller or COMPILED):
                continue
            options = {"horizon": self.horizon} if name == "predictive" else {}
            laws[name] = CONTROLLERS[name](
                bandwidth=self.bandwidth, damping=self.damping, space=self.space, **options
            )
        return {**laws, **objects}


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlComparison(Result):
    """A stroke under several controllers.

    Attributes:
        model: the machine that the controllers assume.
        runs: the runs, by name of the controller.
        space: coordinates of the errors.
        sampling: sampling of all controllers.
        duration: duration of the stroke, s.
    """

    model: Model = field(
        metadata=json_keys(machine="mechanism.name", position_units="actuator_units")
    )
    runs: Mapping[str, ControlledMotion]
    space: str
    sampling: Sampling = field(metadata=json_keys(frequency_Hz="frequency", delay_s="delay"))
    duration: float = field(metadata=json_keys("duration_s"))

    def variables(self) -> Iterator[Variable]:
        """Yield the variables of all runs, over `controller` and `time`; NaN after an early end."""
        tables = [list(run.variables()) for run in self.runs.values()]
        longest = max(tables, key=lambda table: len(table[0].array()))
        yield Variable(name="controller", values=list(self.runs), over=("controller",))
        yield longest[0]
        for k, variable in enumerate(longest[1:], start=1):
            values = np.full((len(tables), len(longest[0].array())), np.nan)
            for row, table in zip(values, tables, strict=True):
                row[: len(table[0].array())] = table[k].array()
            yield replace(variable, values=values, over=("controller", *TIME_DIMENSIONS))

    def saturated(self, name: str) -> float:
        """Return the fraction of forces at the actuators' limits in a run."""
        return next(
            item.value or 0.0 for item in self.runs[name].diagnostics if item.name == SATURATED
        )

    def log(self) -> xr.Dataset:
        """Return the platform's motion and the forces under the last controller as a log."""
        return log_of(list(self.runs.values())[-1], "position", "velocity", "force")

    @property
    @in_json()
    def actuators(self) -> tuple[str, ...]:
        """Names of the actuators."""
        return self.model.output_ports("actuators")[0]

    @property
    @in_json()
    def force_units(self) -> tuple[str, ...]:
        """Units of the actuators' forces."""
        return self.model.output_ports("actuators")[1]


@keywords(ControlOptions)
@solving(PoseError)
def follow_path(
    machine: MachineSource, options: ControlOptions, *, progress: Progress | None = None
) -> ControlComparison:
    """Follow a stroke under sampled controllers, and report the tracking error.

    The status is doubtful if a run ends early (because a pose is out of reach or singular, or a
    number is not finite) or exceeds a limit. Saturated forces are reported in the run's
    diagnostics.

    Args:
        machine: the machine that the controllers assume: a model, a mechanism, a path, or the name
            of a shipped machine.
        options: the stroke, the controllers and their sampling.
        progress: called with the work done and the total work.

    Returns:
        The comparison: a simulated motion with its tracking error for every controller.

    Raises:
        InputError: a name or a number is wrong.
        PoseError: the stroke cannot be followed at all.

    Examples:
        >>> import tauloop as tl
        >>> stroke = tl.StrokeOptions(end={"x": 0.02}, duration=0.1)
        >>> options = tl.ControlOptions(stroke=stroke, controller=("computed-torque",))
        >>> comparison = tl.follow_path(tl.load("five_bar"), options)
        >>> comparison.status.value
        'ok'
        >>> bool(comparison.runs["computed-torque"].peak_error < 1e-3)
        True
    """
    model = modeled(machine)
    sampling = Sampling(
        frequency=options.rate,
        delay=options.delay,
        resolution=_resolution(model, options.quantization),
        velocity_differences=options.velocity_differences,
        saturates=options.saturation,
    )
    stages = Stages(progress, 1 + len(options.laws))
    plant = _plant(model, options.plant)
    trajectory = planned(model, options.stroke, STROKE_LIMIT_SHARE)
    events = parse_events(model, options.until, options.record)
    stages.done()
    runs = {
        name: follow(
            trajectory,
            law,
            sampling,
            plant=plant,
            method=options.integrator or METHODS[options.method],
            substeps=options.substeps,
            settling=options.settling,
            events=events,
            sensitivities=options.sensitivities,
            wrench=wrench_at_tool(options.wrench),
        )
        for name, law in stages.over(options.laws.items())
    }
    diagnostics: list[Diagnostic] = []
    for name, run in runs.items():
        reported = (
            run.diagnostics[0],
            *beyond_limits(run.diagnostics),
            *relaxed_programs(run.diagnostics),
        )
        diagnostics += [replace(item, name=f"{name}: {item.name}") for item in reported]
    return ControlComparison(
        diagnostics=tuple(diagnostics),
        provenance=next(iter(runs.values())).provenance,
        model=model,
        runs=runs,
        space=options.space,
        sampling=sampling,
        duration=trajectory.total,
    )


def relaxed_programs(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the diagnostics of programs that were relaxed or not solved."""
    return [item for item in diagnostics if item.name in (RELAXED_PROGRAMS, UNSOLVED_PROGRAMS)]


def _resolution(model: Model, resolution: str | float | tuple[float, ...]) -> np.ndarray:
    """Return the steps of the encoders (n_u,), m or rad."""
    position_units = model.actuator_units
    if isinstance(resolution, str):
        steps = resolution.split(",")
    else:
        steps = [f"{value:.17g}" for value in np.atleast_1d(resolution)]
    if len(steps) == 1:
        steps *= len(position_units)
    if len(steps) != len(position_units):
        actuators = counted(len(position_units), "actuator")
        problem = f"{counted(len(steps), 'step')} for {actuators}"
        raise InputError.of("quantization", problem, "give one step for all, or one per actuator")
    dimensions = {"rad": units.ANGLE, "m": units.LENGTH}
    return np.array(
        [
            quantity("quantization", step, dimensions[unit])
            for step, unit in zip(steps, position_units, strict=True)
        ]
    )


def _plant(model: Model, values: Mapping[str, str | float] | None) -> Model | None:
    """Return the simulated machine; None if it is the controller's model."""
    if values is None:
        return None
    names = model.mechanism.parameters.names
    problems = Problems()
    changed = {}
    for name, value in values.items():
        if name not in names:
            problems.add(
                "plant", f"no parameter {name!r}", suggestion(name, names) or "see `tauloop show`"
            )
            continue
        with problems.collecting(InputError):
            dimension = units.parse_unit(model.mechanism.parameters[name].unit or "1").dimension
            text = value if isinstance(value, str) else f"{value:.17g}"
            changed[name] = quantity(f"plant {name}", text, dimension)
    InputError.raise_if_any(problems)
    return Model(model.mechanism.with_values(changed))
