"""Machines of a task: machine files that are checked, certified, sized and simulated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import xarray as xr

from tauloop.common.errors import TauloopError
from tauloop.common.plain import OMITTED
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.design.certification import Certification, certify
from tauloop.design.certify_options import CertifyOptions
from tauloop.design.synthesis.actuator_scores import STROKE_FRACTION, PlatformSamples
from tauloop.design.synthesis.evaluation import TaskEvaluator
from tauloop.design.synthesis.task import DesignTask
from tauloop.dynamics import MotorSizingOptions, size_motors
from tauloop.dynamics.motor_sizing import MotorSizing
from tauloop.formats.library import dumps
from tauloop.kinematics.inspection import check
from tauloop.logs import write_log
from tauloop.mechanism.model import Freedom, Joint, Mechanism, Rod
from tauloop.model import Model
from tauloop.motion import CycleList, StrokeOptions, load_cycle, plan_stroke
from tauloop.simulation import RoundTripOptions, plan_cycle, simulate

#: Longest processor time of a certificate, s.
CERTIFICATE_TIME = 30.0
#: Maximum number of poses of the motion that a page shows.
SHOWN_POSES = 60
#: Fraction of a widened range that is added at both ends, for poses between those of the task.
STOP_MARGIN = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedMotor(ReprMixin):
    """The load of an actuator over the motion, and its lightest motor.

    Attributes:
        actuator: name of the actuator.
        unit: unit of its force, N or N m.
        peak_force, rms_force: peak and RMS value of its force over the motion.
        motor, gear: names in the catalogue; "" without a catalogue or a suitable pair.
        use: largest utilization of a limit over the motion; None without a pair.
        limited_by: the limit with this utilization.
        mass: mass of motor and gear, kg; None if unknown.
    """

    actuator: str
    unit: str
    peak_force: float
    rms_force: float
    motor: str = ""
    gear: str = ""
    use: float | None = None
    limited_by: str = ""
    mass: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignedMachine(ReprMixin):
    """A machine that was designed for a task, with the outcomes of its checks.

    Attributes:
        text: text of its machine file.
        is_usable: whether `check` has no problem.
        certificate: verdict over the box: "proved", "refuted", "undecided", or "not covered".
        certified: ranges of the box over which the certificate was sought.
        note: note on requirements that the certificate does not cover.
        motors: loads and motors of all actuators; empty if the motion is not possible.
        duration: duration of the motion, s; None if the motion is not possible.
        position_error: largest error of the simulated motion, m; None without a simulation.
        problems: descriptions of failed checks.
        time: times of the shown poses, s.
        poses: coordinates (N, n_q) of the machine at these times.
    """

    text: str = field(metadata=OMITTED)
    is_usable: bool
    certificate: str
    certified: dict[str, tuple[float, float]]
    note: str
    motors: tuple[SizedMotor, ...]
    duration: float | None
    position_error: float | None
    problems: tuple[str, ...]
    time: np.ndarray = field(metadata=OMITTED)
    poses: np.ndarray = field(metadata=OMITTED)


def machine_of(evaluator: TaskEvaluator, x: np.ndarray) -> tuple[Mechanism, tuple[str, ...]]:
    """Return the mechanism of a design, and texts on stops that had to be widened.

    The mechanism has the parameters of the design, its reference pose at the center of the box, and the
    ranges of the task. Other ranges of the machine file are widened as far as the box requires.

    Args:
        evaluator: the task's evaluator.
        x: variables (d,).
    """
    task = evaluator.task
    names = evaluator.measures.model.topology.coordinate_names
    center = coordinates_at(evaluator, x, np.zeros((1, len(task.half))))[0]
    travel = coordinates_at(evaluator, x, evaluator.poses)
    low = dict(zip(names, np.nanmin(travel, axis=0).tolist(), strict=True))
    high = dict(zip(names, np.nanmax(travel, axis=0).tolist(), strict=True))
    mechanism = task.model.mechanism.with_values(task.values(x))
    mechanism = _with_reference(mechanism, dict(zip(names, center, strict=True)))
    widened: list[str] = []

    def limited(name: str, freedom: Freedom) -> Freedom:
        with_task_range = _limited(evaluator, x, name, freedom, low.get(name, 0.0))
        if with_task_range is not freedom or name not in low:
            return with_task_range
        lower, upper = min(freedom.lower, low[name]), max(freedom.upper, high[name])
        if (lower, upper) == (freedom.lower, freedom.upper):
            return freedom
        if freedom.limit == "stop":
            widened.append(
                f"stops: the box needs {name} from {low[name]:.4g} to {high[name]:.4g}, beyond its "
                f"stops {freedom.lower:.4g} to {freedom.upper:.4g}, which were widened; "
                "give requirements.stops or joint_ranges"
            )
        margin = STOP_MARGIN * (upper - lower)
        return replace(freedom, lower=lower - margin, upper=upper + margin)

    return mechanism.with_freedoms(limited), tuple(widened)


def coordinates_at(evaluator: TaskEvaluator, x: np.ndarray, poses: np.ndarray) -> np.ndarray:
    """Return the coordinates (P, n_q) of a design at poses of its box.

    Args:
        evaluator: the task's evaluator.
        x: variables (d,).
        poses: poses (P, m) in half widths of the box.
    """
    positions = evaluator.base_positions(poses) + evaluator.shifts(x[None])
    theta = np.repeat(evaluator.task.theta(x[None]), len(poses), axis=0)
    return np.asarray(evaluator.measures.model.platform.kinematics(positions, theta=theta).q)


def _with_reference(mechanism: Mechanism, values: Mapping[str, float]) -> Mechanism:
    """Return the mechanism with start values of its coordinates."""

    def joint(old: Joint) -> Joint:
        coordinates = old.coordinate_names
        if not coordinates or any(name not in values for name in coordinates):
            return old
        return replace(old, reference=tuple(float(values[name]) for name in coordinates))

    def rod(old: Rod) -> Rod:
        if old.telescope is None or old.name not in values:
            return old
        return replace(old, telescope=replace(old.telescope, reference=float(values[old.name])))

    return replace(
        mechanism, joints=tuple(map(joint, mechanism.joints)), rods=tuple(map(rod, mechanism.rods))
    )


def _limited(
    evaluator: TaskEvaluator, x: np.ndarray, name: str, freedom: Freedom, value: float
) -> Freedom:
    """Return a degree of freedom with the task's range as stops, or the box as its drawing range.

    The range of an angle is shifted by full revolutions so that it is nearest to `value`. A degree of
    freedom that the task does not limit is returned unchanged.
    """
    task = evaluator.task
    topology = evaluator.measures.model.topology
    if name in task.ranges:
        lower, upper = task.ranges[name]
        is_angle = topology.is_angle[topology.coordinate_names.index(name)]
        if is_angle and not lower <= value <= upper:
            shift = 2.0 * np.pi * round((value - 0.5 * (lower + upper)) / (2.0 * np.pi))
            lower, upper = lower + shift, upper + shift
        return replace(freedom, lower=lower, upper=upper, limit="stop")
    if name in task.axes.columns and freedom.limit == "drawing":
        axis = task.axes.columns.index(name)
        center, half = float(task.centers(x[None])[0, axis]), float(task.half[axis])
        if half > 0.0:
            return replace(freedom, lower=center - half, upper=center + half)
    return freedom


def certified_box(
    task: DesignTask, x: np.ndarray
) -> tuple[dict[str, tuple[float, float]], tuple[str, ...]]:
    """Return the ranges to certify, and the axes whose ranges are diameters of a cylinder."""
    centers = task.centers(x[None])[0]
    half = task.half
    ranges = {
        name: (float(centers[i] - half[i]), float(centers[i] + half[i]))
        for i, name in enumerate(task.axes.columns)
        if half[i] > 0.0
    }
    return ranges, () if task.radius is None else tuple(ranges)[:2]


def designed_machine(
    evaluator: TaskEvaluator, x: np.ndarray, samples: PlatformSamples | None = None
) -> tuple[DesignedMachine, Certification | None]:
    """Return a machine that is checked, certified on its box, sized and simulated.

    Args:
        evaluator: the task's evaluator.
        x: variables (d,).
        samples: motion of the search; None if the search had no motion.
    """
    task = evaluator.task
    mechanism, widened = machine_of(evaluator, x)
    problems = list(widened)
    text = dumps(mechanism)
    inspection = check(Model(mechanism))
    problems += [f"check: {problem}" for problem in inspection.problems]
    certification = None
    verdict = "not covered"
    note = "stops and distance from singularities; other requirements hold at sampled poses"
    ranges, cylinder = certified_box(task, x)
    centers = task.centers(x[None])[0]
    fixed = {
        name: float(centers[i])
        for i, name in enumerate(task.axes.columns)
        if name not in ranges and task.axes.units[i] == "m"
    }
    try:
        claims = CertifyOptions(
            ranges=ranges, cylinder=cylinder, pose=fixed, time_limit=CERTIFICATE_TIME
        )
        certification = certify(Model(mechanism), claims)
        verdict = certification.verdict
    except TauloopError as error:
        note = f"no certificate: {error.problems[0].what}"
    if mechanism.cables:
        note += "; tension of cables is not included: certify the machine with wrenches"
    motion = _DesignMotion()
    if inspection.is_usable:
        model = Model(mechanism)
        plan = _motion_log(evaluator, x, model, samples)
        motion = _simulated_motion(task, model, plan, problems)
    return (
        DesignedMachine(
            text=text,
            is_usable=inspection.is_usable,
            certificate=verdict,
            certified=ranges,
            note=note,
            motors=motion.motors,
            duration=motion.duration,
            position_error=motion.position_error,
            problems=tuple(problems),
            time=motion.time,
            poses=motion.poses,
        ),
        certification,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _DesignMotion:
    """Outcome of the motion of a design."""

    motors: tuple[SizedMotor, ...] = ()
    duration: float | None = None
    position_error: float | None = None
    time: np.ndarray = field(default_factory=lambda: np.zeros(0))
    poses: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))


def _motion_log(
    evaluator: TaskEvaluator, x: np.ndarray, model: Model, samples: PlatformSamples | None
) -> Callable[[], xr.Dataset]:
    """Return a function that plans the task's motion for a design.

    Trajectories, and cycles that the search has planned, keep their time law. Other cycles are planned
    time-optimally for the design.
    """
    task = evaluator.task
    shift = evaluator.shifts(x[None])[0]
    if samples is not None and (task.motion.trajectory or task.motion.cycle):
        return lambda: samples.about(shift).log(model.platform.ports.motion)
    if task.motion.cycle is not None:
        path = task.motion.cycle
        return lambda: plan_cycle(
            model, _shifted_cycle(evaluator, x, load_cycle(path, model))
        ).log()
    start, end = _stroke_ends(task, task.centers(x[None])[0])
    options = StrokeOptions(start=start, end=end, duration=task.motion.duration)
    return lambda: plan_stroke(model, options).log()


def _shifted_cycle(evaluator: TaskEvaluator, x: np.ndarray, cycle: CycleList) -> CycleList:
    """Return a cycle whose stations are shifted with the chosen center of the box.

    The shift is the displacement of the center from the reference pose.
    """
    task = evaluator.task
    shift = np.zeros(len(np.asarray(cycle.stations[0].position)))
    for variable, value in zip(task.variables, x, strict=True):
        if variable.axis is not None:
            column = evaluator.position_column(variable.axis)
            shift[column] = value - task.axes.reference[variable.axis]
    stations = [
        replace(station, position=np.asarray(station.position) + shift)
        for station in cycle.stations
    ]
    return replace(cycle, stations=tuple(stations))


def _simulated_motion(
    task: DesignTask, model: Model, plan: Callable[[], xr.Dataset], problems: list[str]
) -> _DesignMotion:
    """Return loads of motors and the simulation of the task's motion; problems are added."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "motion.csv"
        try:
            write_log(path, plan())
            sizing = size_motors(model, path, _motor_options(task))
        except TauloopError as failure:
            problems.append(f"motion: {failure.problems[0]}")
            return _DesignMotion()
        position_error: float | None = None
        try:
            trip = simulate(model, RoundTripOptions(motion=path))
            position_error = trip.position_error
            problems += [f"simulation: {line}" for line in trip.advice]
        except TauloopError as failure:
            problems.append(f"simulation: {failure.problems[0]}")
    problems += [f"motors: {line}" for line in sizing.advice]
    motors = tuple(_sized(sizing, load.name) for load in sizing.loads)
    for motor in motors:
        if task.motion.catalogue is not None and not motor.motor:
            problems.append(f"motors: the catalogue has no motor for {motor.actuator}")
    q = np.asarray(sizing.motion.forces.state.q)
    time = np.asarray(sizing.motion.time)
    chosen = np.unique(np.linspace(0, len(time) - 1, SHOWN_POSES).astype(int))
    return _DesignMotion(
        motors=motors,
        duration=float(time[-1] - time[0]),
        position_error=position_error,
        time=time[chosen],
        poses=q[chosen],
    )


def _motor_options(task: DesignTask) -> MotorSizingOptions:
    """Return the options of motor sizing for a task."""
    payload: Any = task.motion.payload or None
    return MotorSizingOptions(
        catalogue=task.motion.catalogue, reserve=task.motion.reserve, payload=payload
    )


def _stroke_ends(
    task: DesignTask, centers: np.ndarray
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the ends of a stroke along the longest side of the box."""
    lengths = [
        half if unit == "m" else 0.0 for half, unit in zip(task.half, task.axes.units, strict=True)
    ]
    longest = int(np.argmax(lengths))
    center = {
        name: float(centers[i])
        for i, name in enumerate(task.axes.columns)
        if task.axes.units[i] == "m"
    }
    name = task.axes.columns[longest]
    half_stroke = STROKE_FRACTION * lengths[longest]
    start = {**center, name: center[name] - half_stroke}
    end = {**center, name: center[name] + half_stroke}
    return start, end


def _sized(sizing: MotorSizing, name: str) -> SizedMotor:
    """Return the load of an actuator, with its lightest motor if there is one."""
    load = next(load for load in sizing.loads if load.name == name)
    motor = SizedMotor(
        actuator=name,
        unit="N m" if load.is_rotary else "N",
        peak_force=load.peak_force,
        rms_force=load.rms_force,
    )
    suitable = sizing.suitable(name) if sizing.catalogue is not None else ()
    if not suitable:
        return motor
    best = suitable[0]
    return replace(
        motor,
        motor=best.motor,
        gear=best.gear,
        use=best.use,
        limited_by=best.limited_by,
        mass=best.mass,
    )
