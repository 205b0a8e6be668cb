"""Choice of motors and gears for a motion: loads of the motors, and a ranked catalogue.

F, v and a are the force, speed and acceleration of the actuator. The gear has ratio n and
efficiency e, and J is the inertia of rotor and gear. The motor's torque is T = F / (n e) + J n a
where the motor drives the machine, and T = F e / n + J n a where the machine drives the motor. The
motor's speed is n v.

Source: Siciliano et al. 2009, Robotics: Modeling, Planning and Control, section 5.1 (transmissions);
IEC 60034-1 for continuous duty based on the root mean square.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.datasets import Variable, rows
from tauloop.common.errors import InputError, PoseError, solving
from tauloop.common.keywords import keywords
from tauloop.common.names.deprecated import with_old_keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED, json_keys
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.common.shown import ReprMixin
from tauloop.dynamics.machine_dynamics import DynamicsOptions, MotionForces, inverse_dynamics
from tauloop.dynamics.motor_catalogue import GearEntry, MotorCatalogue, MotorEntry, load_motors
from tauloop.dynamics.motor_loads import ActuatorLoad, mean, motor_loads, root_mean_square
from tauloop.equations.ports import PLATFORM, Entry
from tauloop.formats.library import mechanism_of
from tauloop.mechanism.description import units
from tauloop.model.model import MachineSource, Model, modeled
from tauloop.model.tool import Payload, read_payload

#: Largest fraction of its limits that a motor in the machine file may use.
MAX_USE = 1.0
#: Largest error of positions integrated from velocities, as a fraction of the path.
MAX_RATE_ERROR = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class MotorSizingOptions(Options):
    """Options of the choice of motors and gears.

    Attributes:
        catalogue: catalogue of motors and gears (YAML, tauloop-motors/1); without a catalogue only
            the loads are computed.
        coordinates: coordinates in which the motion is given: platform or actuators.
        payload: mass that is attached to the tool, such as 0.5kg, or 0.5kg@0,0,20mm with its
            center in the tool's frame. Python accepts a `Payload` too.
        reserve: fraction of the limits of every motor and gear that is kept free.
        max_inertia_ratio: largest accepted ratio of the load inertia to the inertia of rotor and
            gear.
        duration: duration of one cycle, such as 500ms, including a pause after the motion; in the
            pause the motors hold the machine at the end of the motion. By default there is no
            pause.

    Examples:
        >>> import tauloop as tl
        >>> tl.MotorSizingOptions(payload=0.5, reserve=0.2).reserve
        0.2
    """

    catalogue: Path | None = option(None, metavar="FILE")
    coordinates: Entry = PLATFORM
    payload: float | Payload | None = option(
        None, least=0.0, read=read_payload, metavar="MASS", unit=units.MASS
    )
    reserve: float = option(0.0, least=0.0, below=1.0)
    max_inertia_ratio: float = option(np.inf, above=0.0)
    duration: float | None = option(None, above=0.0, metavar="TIME", unit=units.TIME)


@dataclass(frozen=True, slots=True, kw_only=True)
class MotorCandidate(ReprMixin):
    """A motor with a gear at one actuator, and the fractions of its limits that the motion uses.

    Attributes:
        actuator: name of the actuator.
        motor, gear: names in the catalogue.
        mass: mass of motor and gear, kg; None if the catalogue lacks one of them.
        torque: largest ratio of the torque to the peak torque at the same speed; infinite (null in
            JSON) beyond the largest speed.
        heat: ratio of the RMS torque to the continuous torque at the mean speed; infinite (null in
            JSON) if the mean speed is beyond the largest speed.
        speed: ratio of the largest speed to the speed limit of motor and gear, whichever is lower.
        gear_load: the larger one of two ratios on the joint side: largest force to the gear's peak
            force, and RMS force to its rated force; 0 if the gear has no limits.
        inertia_ratio: ratio of the largest load inertia to the inertia of rotor and gear, at the
            motor; None if the load inertia is unknown.
        points: (N, 2) speed and torque of the motor over the motion, rad/s and N m.
    """

    actuator: str
    motor: str
    gear: str
    mass: float | None
    torque: float = field(metadata=json_keys(nullable=True))
    heat: float = field(metadata=json_keys(nullable=True))
    speed: float
    gear_load: float
    inertia_ratio: float | None
    points: np.ndarray = field(metadata=OMITTED)

    @property
    def use(self) -> float:
        """Largest fraction of a limit that the motion uses."""
        return max(self.torque, self.heat, self.speed, self.gear_load)

    @property
    def limited_by(self) -> str:
        """Name of the limit of which the motion uses the largest fraction."""
        fractions = {
            "torque": self.torque,
            "heat": self.heat,
            "speed": self.speed,
            "gear": self.gear_load,
        }
        return max(fractions, key=fractions.__getitem__)


@dataclass(frozen=True, slots=True, kw_only=True)
class MotorSizing(Result):
    """Loads of all motors over a motion, and motors with gears that can carry them.

    Attributes:
        model: the machine, with the payload.
        options: options of the choice.
        motion: the motion with its forces.
        loads: load of every actuator.
        catalogue: the motors and gears; None without a catalogue.
        candidates: pairs of motor and gear for each actuator, by name. Candidates within all limits
            come first, each group sorted by mass.
    """

    model: Model = field(metadata=json_keys(machine="mechanism.name"))
    options: MotorSizingOptions = field(metadata=OMITTED)
    motion: MotionForces = field(metadata=OMITTED)
    loads: tuple[ActuatorLoad, ...] = field(
        metadata=json_keys(summary=lambda loads: [load_numbers(load) for load in loads])
    )
    catalogue: MotorCatalogue | None = field(metadata=OMITTED)
    candidates: dict[str, tuple[MotorCandidate, ...]]

    @property
    def unweighed(self) -> tuple[str, ...]:
        """Names of motors and gears without a mass in the catalogue."""
        if self.catalogue is None:
            return ()
        entries: tuple[MotorEntry | GearEntry, ...] = (
            *self.catalogue.motors,
            *self.catalogue.gears,
        )
        return tuple(entry.name for entry in entries if entry.mass is None)

    def suitable(self, actuator: str) -> tuple[MotorCandidate, ...]:
        """Return the candidates of an actuator that are within all limits, the lightest first.

        Args:
            actuator: name of the actuator.

        Raises:
            InputError: there is no such actuator.
        """
        if actuator not in self.candidates:
            names = ", ".join(self.candidates) or "none, because there is no catalogue"
            raise InputError.of(
                "actuator", f"{actuator!r} has no candidates", f"choose among {names}"
            )
        return tuple(c for c in self.candidates[actuator] if is_within(c, self.options))

    @with_old_keywords
    def for_all(self, *, is_rotary: bool) -> tuple[MotorCandidate, ...]:
        """Return ranked candidates that are used at all rotary, or at all linear, actuators.

        Every fraction is the largest value over these actuators.

        Args:
            is_rotary: True for the rotary actuators, False for the linear ones.
        """
        names = [load.name for load in self.loads if load.is_rotary == is_rotary]
        by_pair: dict[tuple[str, str], list[MotorCandidate]] = {}
        for name in names:
            for candidate in self.candidates.get(name, ()):
                by_pair.setdefault((candidate.motor, candidate.gear), []).append(candidate)
        return ranked((_worst(group, names) for group in by_pair.values()), self.options)

    def _contents(self) -> dict[str, object]:
        return {
            "machine": self.model.mechanism.name,
            "actuators": tuple(load.name for load in self.loads),
            "rms_force": [load.rms_force for load in self.loads],
            "status": self.status,
        }

    def variables(self) -> Iterator[Variable]:
        """Yield the load values of every motor."""
        force = ["N m" if load.is_rotary else "N" for load in self.loads]
        numbers = [load_numbers(load) for load in self.loads]
        yield from rows("motor", [load.name for load in self.loads])
        quantities = (
            "peak_force",
            "rms_force",
            "peak_speed",
            "peak_power",
            "work",
            "returned_work",
        )
        for name in quantities:
            unit: Any = {"peak_power": "W", "work": "J", "returned_work": "J"}.get(name)
            if name in ("peak_force", "rms_force"):
                unit = tuple(force)
            elif name == "peak_speed":
                unit = tuple("rad/s" if load.is_rotary else "m/s" for load in self.loads)
            values = [row[name] for row in numbers]
            yield Variable(name=name, values=values, over=("motor",), unit=unit)


def load_numbers(load: ActuatorLoad) -> dict[str, Any]:
    """Return the values of a motor's load by name."""
    return {
        "name": load.name,
        "is_rotary": load.is_rotary,
        "peak_force": load.peak_force,
        "rms_force": load.rms_force,
        "peak_speed": load.peak_speed,
        "mean_speed": load.mean_speed,
        "peak_power": load.peak_power,
        "work": load.work,
        "returned_work": load.returned_work,
        "inertia_ratio": load.inertia_ratio,
    }


def is_within(candidate: MotorCandidate, options: MotorSizingOptions) -> bool:
    """Return whether a candidate keeps the reserve of its limits and the largest inertia ratio."""
    ratio = candidate.inertia_ratio
    is_matched = ratio is None or ratio <= options.max_inertia_ratio
    return is_matched and candidate.use <= 1.0 - options.reserve


def ranked(
    candidates: Iterable[MotorCandidate], options: MotorSizingOptions
) -> tuple[MotorCandidate, ...]:
    """Return candidates with those within all limits first, then by mass and use.

    Candidates of unknown mass follow those of known mass.
    """

    def rank(item: MotorCandidate) -> tuple[bool, bool, float, float]:
        return not is_within(item, options), item.mass is None, item.mass or 0.0, item.use

    return tuple(sorted(candidates, key=rank))


def _worst(group: list[MotorCandidate], names: list[str]) -> MotorCandidate:
    """Return the largest fractions of one motor and gear at several actuators."""
    ratios = [candidate.inertia_ratio for candidate in group]
    known = [ratio for ratio in ratios if ratio is not None]
    return MotorCandidate(
        actuator=", ".join(names),
        motor=group[0].motor,
        gear=group[0].gear,
        mass=group[0].mass,
        torque=max(candidate.torque for candidate in group),
        heat=max(candidate.heat for candidate in group),
        speed=max(candidate.speed for candidate in group),
        gear_load=max(candidate.gear_load for candidate in group),
        inertia_ratio=max(known) if len(known) == len(group) else None,
        points=np.concatenate([candidate.points for candidate in group]),
    )


@keywords(MotorSizingOptions)
@solving(PoseError)
def size_motors(
    machine: MachineSource,
    motion: str | Path | MotionForces,
    options: MotorSizingOptions | None = None,
    *,
    progress: Progress | None = None,
) -> MotorSizing:
    """Return the loads of all motors over a motion, and motors and gears that can carry them.

    The motion repeats. Torques of a candidate include the inertia of its rotor and gear, instead of
    the rotor in the machine file. Friction is taken from the machine file.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        motion: a table with position, velocity and acceleration, as for `inverse_dynamics`, or the
            result of `inverse_dynamics`.
        options: options of the choice.
        progress: called with the completed and the total number of steps.

    Raises:
        InputError: names, units or columns are wrong, the motion has only one sample, or the
            catalogue has no gear for an actuator.
        PoseError: a pose is out of reach or singular.

    Examples:
        >>> import numpy as np
        >>> import tauloop as tl
        >>> t = np.linspace(0, 2 * np.pi, 101)
        >>> x = np.column_stack([0.05 * np.sin(t), 0 * t, 0 * t - 0.5])
        >>> v = np.column_stack([0.05 * np.cos(t), 0 * t, 0 * t])
        >>> a = np.column_stack([-0.05 * np.sin(t), 0 * t, 0 * t])
        >>> sizing = tl.size_motors("delta", tl.inverse_dynamics("delta", x, v, a, time=t))
        >>> round(sizing.loads[0].peak_force, 1)
        1.6
    """
    options = options or MotorSizingOptions()
    stages = Stages(progress, 2)
    if isinstance(motion, MotionForces):
        solved = motion
        _require_same_machine(machine, motion)
        if options.payload is not None:
            what = "a payload is given in addition to solved forces"
            raise InputError.of("payload", what, "give the payload to inverse_dynamics")
    else:
        model = modeled(machine)
        solved = inverse_dynamics(
            model,
            options=DynamicsOptions(
                motion=Path(motion), coordinates=options.coordinates, payload=options.payload
            ),
        )
    _require_motion(solved, options)
    stages.done()
    pause = 0.0
    if options.duration is not None:
        pause = options.duration - float(solved.time[-1] - solved.time[0])
    loads = motor_loads(solved, pause)
    catalogue = None if options.catalogue is None else load_motors(options.catalogue)
    candidates = {}
    if catalogue is not None:
        candidates = {load.name: _candidates(load, catalogue, options) for load in loads}
    stages.done()
    return MotorSizing(
        model=solved.model,
        options=options,
        motion=solved,
        loads=loads,
        catalogue=catalogue,
        candidates=candidates,
        diagnostics=(
            *solved.diagnostics,
            *_motors_of_file(solved.model, loads, options),
            *_suitable_counts(candidates, options),
        ),
        provenance=provenance(
            options={"entry": options.coordinates.name, "reserve": options.reserve},
            inputs={"machine": solved.model.mechanism.name},
        ),
    )


def _require_same_machine(machine: MachineSource, motion: MotionForces) -> None:
    """Raise InputError if a motion belongs to a machine with another name."""
    name = mechanism_of(machine).name
    name_of_motion = motion.model.mechanism.name
    if name != name_of_motion:
        what = f"the motion is that of {name_of_motion}, not of {name}"
        raise InputError.of("motion", what, "give the machine for which the motion was computed")


def _require_motion(motion: MotionForces, options: MotorSizingOptions) -> None:
    """Raise InputError unless a motion has samples over time, and accelerations."""
    time = motion.time
    if len(time) < 2:
        what = "the motion has only one sample, so it has no root mean square"
        raise InputError.of("motion", what, "give a motion with at least two samples")
    if motion.forces.state.a is None:
        what = "the motion has no accelerations"
        raise InputError.of("motion", what, "omit from_momenta")
    _require_times(motion)
    if options.duration is not None and options.duration < time[-1] - time[0]:
        what = f"the cycle ({options.duration:g} s) is shorter than the motion ({time[-1] - time[0]:g} s)"
        raise InputError.of("duration", what, "include the whole motion in the duration")


def _require_times(motion: MotionForces) -> None:
    """Raise InputError if velocities are not the time derivatives of the positions.

    Samples without times have their indices as times, which would give wrong energies.
    """
    topology, state = motion.model.topology, motion.forces.state
    scalar = [i for i, column in enumerate(topology.q_of_v) if column >= 0]
    columns = [topology.q_of_v[i] for i in scalar]
    step = np.diff(np.asarray(state.q)[:, columns], axis=0)
    v = np.asarray(state.v)[:, scalar]
    predicted = 0.5 * (v[1:] + v[:-1]) * np.diff(motion.time)[:, None]
    path_length = np.abs(step).sum(axis=0)
    error = np.abs(step - predicted).sum(axis=0)
    wrong = error > MAX_RATE_ERROR * path_length + np.finfo(float).eps
    if wrong.any():
        worst = int(
            np.argmax(np.where(path_length > 0, error / np.maximum(path_length, 1e-300), 0.0))
        )
        what = (
            "velocities are not the derivatives of positions with respect to these times "
            f"({topology.velocity_names[scalar[worst]]} moves by {path_length[worst]:.3g}, but its "
            f"integrated velocity differs by {error[worst]:.3g})"
        )
        remedy = "give the times of the samples (`time=` of inverse_dynamics), or sample more often"
        raise InputError.of("motion", what, remedy)


def _motors_of_file(
    model: Model, loads: tuple[ActuatorLoad, ...], options: MotorSizingOptions
) -> list[Diagnostic]:
    """Return diagnostics of the motors with limits in the machine file."""
    items = []
    for actuator, load in zip(model.mechanism.actuators, loads, strict=True):
        for name, value, limit in (
            ("largest force", load.peak_force, actuator.force),
            ("root mean square of the force", load.rms_force, actuator.rated_force),
            ("largest speed", load.peak_speed, actuator.speed),
        ):
            if np.isfinite(limit):
                items.append(
                    diagnostic(
                        f"{load.name}: {name} as a fraction of the limit in the machine file",
                        value / limit,
                        at_most=MAX_USE - options.reserve,
                        advice="choose a larger motor or a slower motion",
                    )
                )
    return items


def _suitable_counts(
    candidates: dict[str, tuple[MotorCandidate, ...]], options: MotorSizingOptions
) -> list[Diagnostic]:
    """Return the number of suitable pairs of motor and gear for each actuator."""
    items = []
    for name, pairs in candidates.items():
        suitable = [pair for pair in pairs if is_within(pair, options)]
        items.append(
            diagnostic(
                f"{name}: number of suitable motor-gear pairs in the catalogue",
                len(suitable),
                at_least=1,
                advice=(
                    "add larger motors or other gears to the catalogue, or choose a slower motion"
                ),
            )
        )
    return items


def least_motor_use(load: ActuatorLoad, catalogue: MotorCatalogue) -> float:
    """Return the smallest use of limits of any motor with any gear that suits an actuator.

    Raises:
        InputError: no gear suits the actuator.
    """
    return min(pair.use for pair in _candidates(load, catalogue, MotorSizingOptions()))


def _candidates(
    load: ActuatorLoad, catalogue: MotorCatalogue, options: MotorSizingOptions
) -> tuple[MotorCandidate, ...]:
    """Return all pairs of motor and gear that suit an actuator, ranked.

    Raises:
        InputError: no gear suits the actuator.
    """
    gears = [gear for gear in catalogue.gears if gear.is_linear != load.is_rotary]
    if not gears:
        what = f"no {'gear' if load.is_rotary else 'screw'} in the catalogue suits {load.name}"
        remedy = "add gears with a ratio" if load.is_rotary else "add screws with a lead"
        raise InputError.of("catalogue", what, remedy)
    pairs = [_candidate(load, motor, gear, options) for motor in catalogue.motors for gear in gears]
    return ranked(pairs, options)


def _candidate(
    load: ActuatorLoad, motor: MotorEntry, gear: GearEntry, options: MotorSizingOptions
) -> MotorCandidate:
    """Return a motor with a gear, and the fractions of their limits that the motion uses."""
    n = gear.ratio
    inertia = motor.inertia + gear.inertia
    drives = load.force * load.speed > 0.0
    loss = np.where(drives, 1.0 / gear.efficiency, gear.efficiency)
    torque = load.force * loss / n + inertia * n * load.acceleration
    speed = n * load.speed
    with np.errstate(divide="ignore", invalid="ignore"):
        available = motor.peak_torque(speed)
        torque_fractions = np.where(torque == 0.0, 0.0, np.abs(torque) / available)
    continuous = float(motor.continuous_torque(mean(load.time, np.abs(speed))))
    rms = root_mean_square(load.time, torque)
    ratio = None
    if load.load_inertia is not None:
        ratio = float(load.load_inertia.max() / n**2 / inertia)
    peak_fraction = np.abs(load.force).max() / gear.peak
    rated_fraction = root_mean_square(load.time, load.force) / gear.rated
    return MotorCandidate(
        actuator=load.name,
        motor=motor.name,
        gear=gear.name,
        mass=None if motor.mass is None or gear.mass is None else motor.mass + gear.mass,
        torque=float(torque_fractions.max()),
        heat=float(rms / continuous) if continuous > 0 else np.inf,
        speed=float(np.abs(speed).max() / min(motor.max_speed, gear.max_speed)),
        gear_load=float(max(peak_fraction, rated_fraction)),
        inertia_ratio=ratio,
        points=np.column_stack([speed, torque]),
    )
