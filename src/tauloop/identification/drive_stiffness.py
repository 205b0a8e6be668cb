"""Stiffness and damping of drives, identified from logs of the motor's and the load's positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path

import numpy as np

from tauloop.common.datasets import Variable
from tauloop.common.errors import IdentificationError, InputError, LogError, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.identification.estimation.error_models import AutocorrelatedErrors
from tauloop.identification.estimation.estimators import OrdinaryLeastSquares
from tauloop.identification.estimation.fitting import fit_regression
from tauloop.identification.estimation.result import Identification
from tauloop.identification.options import LogSource
from tauloop.identification.preparation.measured_log import MeasuredLog
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.streaming import merge_data, split_each
from tauloop.logs import Preparation, Signals, prepared_signals, read_log, sample_period, samples
from tauloop.logs.files.opening import is_frame
from tauloop.logs.log import as_signals, channels
from tauloop.logs.preparation import common_cutoff
from tauloop.mechanism.description import units
from tauloop.mechanism.elastic.drives import drive_stiffness
from tauloop.mechanism.model import Actuator
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled

#: Half the width of a 95 % interval, in standard deviations.
INTERVAL = 1.96
#: Largest fraction of the deflection's variance that is encoder noise. The stiffness is biased by
#: about this fraction.
MAX_NOISE_SHARE = 0.01
#: Largest error of predicted motor forces on held-out data, relative to the forces.
MAX_HELD_OUT_ERROR = 0.1
#: Largest width of the interval of the stiffness, relative to the stiffness.
MAX_INTERVAL = 0.2
#: Sum of squares of the coefficients 1, -4, 6, -4, 1 of a fourth difference.
FOURTH_DIFFERENCE = 70.0
#: Remedy for a log with missing channels.
_CHANNELS = (
    "give position.ACTUATOR and force.ACTUATOR of the motor, and position.COORDINATE of all "
    "coordinates that it drives, or all of the platform"
)
#: Last parts of the columns' names, after the name of the actuator.
TERMS = ("stiffness", "damping", "inertia", "viscous", "coulomb", "offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveStiffnessOptions(Options):
    """Preparation of logs with the positions of motor and load.

    Attributes:
        drives: actuators whose drives are identified; default: all whose motor and load positions
            are in the logs.
        cutoff: cutoff frequency of a zero-phase low-pass of positions and forces; by default the
            noise determines it.
        hold_out: fraction at the end of each log that is used for validation and not fitted.

    Examples:
        >>> import tauloop as tl
        >>> tl.DriveStiffnessOptions(cutoff="80 Hz").cutoff
        80.0
    """

    drives: tuple[str, ...] = option((), metavar="NAMES")
    cutoff: float | None = option(None, above=0.0, metavar="FREQUENCY", unit=units.FREQUENCY)
    hold_out: float = option(0.25, above=0.0, below=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveEstimate:
    """The drive of one actuator; intervals contain the true value with 95 % probability.

    Attributes:
        actuator: name of the actuator.
        stiffness, stiffness_interval: stiffness with respect to the actuator's position, N/m or
            N m/rad, and its interval.
        damping, damping_interval: damping, N s/m or N m s/rad.
        inertia, inertia_interval: inertia on the motor side, kg or kg m^2.
        stated: stiffness in the machine file; None for a rigid drive.
        deflection: half the range of the deflection over a log, m or rad; the largest of all logs.
        noise_share: fraction of encoder noise in the variance of the deflection.
        identification: the fit, which includes the motor's friction and the offset of its force.
    """

    actuator: str
    stiffness: float
    stiffness_interval: tuple[float, float]
    damping: float
    damping_interval: tuple[float, float]
    inertia: float
    inertia_interval: tuple[float, float]
    stated: float | None
    deflection: float
    noise_share: float
    identification: Identification = field(metadata=OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveStiffness(Result):
    """Stiffness and damping of the drives of a machine.

    Attributes:
        model: the machine.
        drives: the drive of each actuator.
    """

    model: Model = field(metadata=json_keys(machine="mechanism.name"))
    drives: tuple[DriveEstimate, ...]

    def variables(self) -> Iterator[Variable]:
        """Yield stiffness, damping and inertia with intervals, over the actuators."""
        names = [drive.actuator for drive in self.drives]
        yield Variable(name="actuator", values=names, over=("actuator",))
        unit_of = dict(zip(*self.model.output_ports("actuators"), strict=True))
        is_angular = [unit_of[name] == "N m" for name in names]
        for quantity, linear, angular in (
            ("stiffness", "N/m", "N m/rad"),
            ("damping", "N s/m", "N m s/rad"),
            ("inertia", "kg", "kg m^2"),
        ):
            values = [getattr(drive, quantity) for drive in self.drives]
            limits = np.array([getattr(drive, f"{quantity}_interval") for drive in self.drives])
            unit = tuple(angular if is_angle else linear for is_angle in is_angular)
            for label, column in (("", values), (".low", limits[:, 0]), (".high", limits[:, 1])):
                yield Variable(
                    name=f"{quantity}{label}", values=column, over=("actuator",), unit=unit
                )


@keywords(DriveStiffnessOptions)
@solving(IdentificationError)
def identify_drive_stiffness(
    machine: MachineSource,
    logs: LogSource | Sequence[LogSource],
    options: DriveStiffnessOptions | None = None,
) -> DriveStiffness:
    """Identify stiffness and damping of drives from logs with the positions of motor and load.

    The force of a motor is f = k δ + d δ' + J p'' + v p' + c sign(p') + b, with its position p and
    the deflection δ = p - Σ ratio q of the drive. The model of the load is not needed. Positions of
    the load are those of the driven coordinates, or of the platform.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        logs: one log or several, with position.ACTUATOR and force.ACTUATOR of the motor, and
            position.COORDINATE of all coordinates that it drives, or of the platform.
        options: actuators and preparation.

    Returns:
        Stiffness, damping and motor inertia of each drive, with intervals.

    Raises:
        InputError: an actuator is not in the machine.
        LogError: no drive has both sides in the logs.
        IdentificationError: the motion does not determine the parameters.

    Examples:
        >>> import numpy as np
        >>> import tauloop as tl
        >>> machine = tl.loads('''
        ... format: tauloop-machine/1
        ... name: wheel
        ... provenance: {status: chosen, source: example}
        ... gravity: [0, 0, -9.81 m/s^2]
        ... bodies: {wheel: {mass: 1 kg, inertia: {xx: 0.5 kg m^2, yy: 0.5 kg m^2, zz: 0.5 kg m^2}}}
        ... joints: {axle: {type: revolute, axis: z, parent: base, child: wheel}}
        ... actuators: {motor: {on: axle, force: 10 N m, stiffness: 90 N m/rad}}
        ... platform: {body: wheel, independent: [axle]}
        ... ''')
        >>> t = np.arange(0.0, 10.0, 1e-3)
        >>> wave = [(a, w, a * np.sin(w * t)) for a, w in ((0.1, 5.0), (0.05, 13.0), (0.02, 31.0))]
        >>> wheel = sum(y for _, _, y in wave)
        >>> torque = sum(-0.5 * w**2 * y for _, w, y in wave)
        >>> motor = wheel + torque / 80.0
        >>> rotor = sum(-(w**2) * (1.0 - 0.5 * w**2 / 80.0) * y for _, w, y in wave)
        >>> rows = [("position", "motor", motor, "rad"), ("position", "axle", wheel, "rad")]
        >>> rows.append(("force", "motor", torque + 0.01 * rotor, "N m"))
        >>> channels = [tl.logs.Channel(quantity=q, channel=c, values=y, unit=u) for q, c, y, u in rows]
        >>> log = tl.logs.Signals(time=t, channels=tuple(channels))
        >>> round(tl.identify_drive_stiffness(machine, log).drives[0].stiffness)
        80
    """
    model = modeled(machine)
    options = options or DriveStiffnessOptions()
    log_list: list[LogSource]
    if isinstance(logs, str | Path) or not isinstance(logs, Sequence):
        log_list = [logs]
    else:
        log_list = list(logs)
    sources = [_with_driven_coordinates(model, _signals(log)) for log in log_list]
    chosen = _actuators(model, sources, options.drives)
    drives = tuple(_drive(model, actuator, sources, options) for actuator in chosen)
    return DriveStiffness(
        model=model,
        drives=drives,
        diagnostics=tuple(item for drive in drives for item in _diagnostics(drive)),
        provenance=provenance(
            options={"cutoff": options.cutoff, "hold_out": options.hold_out},
            inputs={"machine": model.mechanism.name, "logs": len(sources)},
        ),
    )


def _signals(log: LogSource) -> Signals:
    """Return a log as plain arrays."""
    if isinstance(log, str | Path) or is_frame(log):
        return as_signals(read_log(log))
    return as_signals(log.log if isinstance(log, MeasuredLog) else log)


def _load_name(actuator: str) -> str:
    """Return the name of the channel with an actuator's position as computed from its load."""
    return f"{actuator}.load"


def _with_driven_coordinates(model: Model, log: Signals) -> Signals:
    """Return a log with the positions of motors, and the same positions as computed from the loads.

    Other positions are left out, so that their noise does not determine the filter.
    """
    known = set(channels(log, "position"))
    actuators = model.mechanism.actuators
    value = model.mechanism.value
    platform = tuple(model.platform.ports.position.columns)
    by_platform = None
    if known.issuperset(platform):
        q = model.platform.track(samples(log, "position", platform)).q
        by_platform = model.actuator_position(q)
    added = []
    for index, actuator in enumerate(actuators):
        names = [name for name, _ in actuator.drives]
        if actuator.name not in known or actuator.name in names:
            continue
        if known.issuperset(names):
            ratios = np.array([value(ratio) for _, ratio in actuator.drives])
            load = samples(log, "position", names) @ ratios + value(actuator.offset)
        elif by_platform is not None:
            load = by_platform[:, index]
        else:
            continue
        motor = next(
            item
            for item in log.channels
            if item.quantity == "position" and item.channel == actuator.name
        )
        added += [motor, replace(motor, channel=_load_name(actuator.name), values=load)]
    others = tuple(item for item in log.channels if item.quantity == "force")
    return replace(log, channels=(*added, *others))


def _actuators(
    model: Model, logs: Sequence[Signals], names: tuple[str, ...]
) -> tuple[Actuator, ...]:
    """Return the actuators for which all logs contain motor position, load position and force.

    Raises:
        InputError: an actuator is not in the machine.
        LogError: a requested actuator lacks channels, or all actuators do.
    """
    by_name = {actuator.name: actuator for actuator in model.mechanism.actuators}
    problems = Problems()
    for name in names:
        if name not in by_name:
            problems.add("drives", f"there is no actuator {name!r}", f"give {', '.join(by_name)}")
    InputError.raise_if_any(problems)
    complete = []
    for name in names or by_name:
        has_all = all(
            {name, _load_name(name)} <= set(channels(log, "position"))
            and name in channels(log, "force")
            for log in logs
        )
        if has_all:
            complete.append(by_name[name])
        elif names:
            what = "the logs lack the position of its motor or load, or its force"
            problems.add(name, what, _CHANNELS)
    if not complete and not problems:
        problems.add(
            "logs", "no drive has the positions of motor and load, and the force", _CHANNELS
        )
    LogError.raise_if_any(problems)
    return tuple(complete)


def _drive(
    model: Model, actuator: Actuator, logs: Sequence[Signals], options: DriveStiffnessOptions
) -> DriveEstimate:
    """Return the drive of one actuator.

    Raises:
        IdentificationError: the motion does not determine the stiffness, damping or inertia.
    """
    parts: list[RegressionData] = []
    deflections: list[float] = []
    noise_fractions: list[float] = []
    for log in logs:
        data, deflection, noise_fraction = _drive_data(model, actuator.name, log, options)
        parts.append(data)
        deflections.append(float(np.ptp(deflection)) / 2.0)
        noise_fractions.append(noise_fraction)
    training, held_out = split_each(parts, 1.0 - options.hold_out)
    fit = fit_regression(
        merge_data(training),
        merge_data(held_out),
        OrdinaryLeastSquares(),
        errors=AutocorrelatedErrors(),
    )
    indices = {item.name: index for index, item in enumerate(fit.base.base)}
    problems = Problems()
    values: dict[str, tuple[float, tuple[float, float]]] = {}
    for term in TERMS[:3]:
        name = f"{actuator.name}.{term}"
        index = indices.get(name)
        if index is None:
            what = "the motion does not determine this parameter separately"
            problems.add(name, what, "excite the drive at several frequencies")
            continue
        value = float(fit.values[index])
        deviation = float(fit.standard_deviations[index])
        limits = (value - INTERVAL * deviation, value + INTERVAL * deviation)
        values[term] = (value, limits)
    IdentificationError.raise_if_any(problems)
    stated = drive_stiffness(actuator)
    return DriveEstimate(
        actuator=actuator.name,
        stiffness=values["stiffness"][0],
        stiffness_interval=values["stiffness"][1],
        damping=values["damping"][0],
        damping_interval=values["damping"][1],
        inertia=values["inertia"][0],
        inertia_interval=values["inertia"][1],
        stated=None if stated is None else model.mechanism.value(stated),
        deflection=max(deflections),
        noise_share=max(noise_fractions),
        identification=fit,
    )


def _drive_data(
    model: Model, name: str, log: Signals, options: DriveStiffnessOptions
) -> tuple[RegressionData, np.ndarray, float]:
    """Return the regression data of one drive, its deflection (N,), and the noise fraction."""
    wanted = {name, _load_name(name)}
    drive_channels = tuple(
        item
        for item in log.channels
        if item.channel in wanted or (item.quantity == "force" and item.channel == name)
    )
    raw = replace(log, channels=drive_channels)
    preparation = Preparation(cutoff=options.cutoff)
    signals = prepared_signals(raw, preparation)
    cutoff = common_cutoff(raw, preparation)
    motion = {
        quantity: samples(signals, quantity, (name, _load_name(name)))
        for quantity in ("position", "velocity", "acceleration")
    }
    deflection = motion["position"][:, 0] - motion["position"][:, 1]
    deflection_rate = motion["velocity"][:, 0] - motion["velocity"][:, 1]
    speed = motion["velocity"][:, 0]
    columns = (
        deflection,
        deflection_rate,
        motion["acceleration"][:, 0],
        speed,
        np.sign(speed),
        np.ones_like(speed),
    )
    unit = dict(zip(*model.output_ports("actuators"), strict=True))[name]
    length = "rad" if unit == "N m" else "m"
    damping = f"{unit} s/{length}"
    column_units = (f"{unit}/{length}", damping, f"{unit} s^2/{length}", damping, unit, unit)
    data = RegressionData(
        regressor=np.stack(columns, axis=-1)[:, None, :],
        forces=samples(signals, "force", (name,)),
        parameters=tuple(f"{name}.{term}" for term in TERMS),
        parameter_units=column_units,
        outputs=(name,),
        output_units=(unit,),
        time=signals.time,
        period=sample_period(raw),
    )
    pair = samples(raw, "position", (name, _load_name(name)))
    noise_fraction = _noise_fraction(pair[:, 0] - pair[:, 1], deflection, cutoff)
    return data.low_passed(cutoff), deflection, noise_fraction


def _noise_fraction(raw: np.ndarray, filtered: np.ndarray, cutoff: float | None) -> float:
    """Return the fraction of a filtered signal's variance that is white noise.

    Fourth differences of the raw signal contain almost only noise, so they give the variance of the
    noise. The filter leaves the fraction 2 cutoff of this variance.

    Args:
        raw: signal (N,) before the filter.
        filtered: signal (N,) after the filter.
        cutoff: cutoff frequency as a fraction of the sampling rate; None without a filter.
    """
    noise = float(np.mean(np.diff(raw, 4) ** 2)) / FOURTH_DIFFERENCE
    passed_fraction = 1.0 if cutoff is None else min(1.0, 2.0 * cutoff)
    variance = float(np.var(filtered))
    return min(1.0, noise * passed_fraction / variance) if variance > 0.0 else 1.0


def _diagnostics(drive: DriveEstimate) -> Iterator[Diagnostic]:
    """Yield the diagnostics of the estimate of a drive."""
    name = drive.actuator
    low, high = drive.stiffness_interval
    yield diagnostic(
        f"{name}: stiffness over its standard deviation",
        drive.stiffness / ((high - low) / (2.0 * INTERVAL)) if high > low else None,
        at_least=2.0 * INTERVAL / MAX_INTERVAL,
        advice="check the signs and units of the force and of both positions; then measure a longer "
        "motion, with larger accelerations and with all channels sampled at the same times",
    )
    yield diagnostic(
        f"{name}: share of encoder noise in the deflection",
        drive.noise_share,
        at_most=MAX_NOISE_SHARE,
        advice="the stiffness is biased by about this fraction: use a lower `cutoff`, or larger forces",
    )
    held_out = drive.identification.held_out
    yield diagnostic(
        f"{name}: error of the force on held-out data, relative to the force",
        max(item.relative_error_percent for item in held_out) / 100.0,
        at_most=MAX_HELD_OUT_ERROR,
        advice="check the sign of the force, delays between the channels, and whether motor and load "
        "positions are swapped",
    )
