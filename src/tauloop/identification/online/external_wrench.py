"""External forces on a platform, estimated from a recorded log, with contacts and false alarms.

A model predicts the actuators' forces from masses, friction and springs. The difference from the
measured forces is an external force, an error of the model, or noise. Intervals without contact
show the errors of the model and the noise, which determine the alarm threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.datasets import OVER_TIME, channels
from tauloop.common.errors import IdentificationError, InputError, Problem, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, listed, option
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.common.shown import ReprMixin
from tauloop.equations.assembly.limits import require_within_limits
from tauloop.equations.named_values import TOOL_PORT
from tauloop.identification.online.alarm_threshold import (
    SECONDS_PER_HOUR,
    Blocks,
    FalseAlarms,
    alarms_above,
    blocks_of,
    blocks_without_contact,
    threshold,
)
from tauloop.identification.options import LogSource, PreparationOptions
from tauloop.identification.preparation.channels import less_known_forces, without_saturation
from tauloop.identification.preparation.measured import recorded
from tauloop.identification.preparation.measured_log import MeasuredLog, left_out_counts
from tauloop.identification.preparation.motion_limits import motion_limits
from tauloop.identification.preparation.redundant_encoders import with_all_encoders
from tauloop.identification.preparation.repairs import repairs
from tauloop.logs import Preparation, butterworth, sample_period, samples
from tauloop.logs.checks.bad_samples import without_bad_samples
from tauloop.logs.log import log_of
from tauloop.logs.matching import channel_problems
from tauloop.logs.signals import HIGHEST_CUTOFF
from tauloop.mechanism.description import units
from tauloop.mechanism.description.units import UnitError, interval
from tauloop.mechanism.model import omission_diagnostics
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled
from tauloop.simulation.controllers.laws import read_bandwidth
from tauloop.simulation.observers.observers import OBSERVERS, ForceObserver, MeasuredMotion

if TYPE_CHECKING:
    import xarray as xr

#: Components of a wrench, in the order of the rows of a tool's Jacobian.
COMPONENTS = TOOL_PORT.columns
#: Units of these components.
COMPONENT_UNITS = TOOL_PORT.units
#: A component is distinguished from the components before it if the independent part of its row of
#: the scaled Jacobian is at least this fraction of the largest row.
MIN_DIRECTION_SHARE = 1e-3
#: Ratio of the default cutoff of positions and forces to the observer's bandwidth.
CUTOFF_RATIO = 5.0
#: Minimum number of samples removed at both ends of a log, where the filter distorts velocities.
MIN_TRIM = 5
#: Alarms belong to the same contact if the time between them is at most this number of the
#: observer's time constants.
PAUSE_TIME_CONSTANTS = 3.0
#: Number of blocks without contact that a threshold needs.
MIN_FREE_BLOCKS = 20
#: Largest accepted fraction of a log in contact, if intervals without contact are found from the
#: log.
MAX_CONTACT_SHARE = 0.25
#: Largest fraction of the actuators' forces without contact that a model may leave unexplained.
MAX_UNEXPLAINED_SHARE = 0.3
#: The threshold is doubtful if the probability of at least the observed number of false alarms in a
#: contact-free log is smaller than this value.
MIN_ALARM_PROBABILITY = 0.01
#: Options that replace the options of the same name in the preparation of each log.
_PREPARATION_OPTIONS = ("cutoff", "order", "trim")


def _read_intervals(texts: str | tuple[str, ...]) -> tuple[tuple[float, float], ...]:
    """Return the start and end, s, of intervals of time from texts such as '0:5 s'."""
    intervals = []
    for text in listed(texts):
        try:
            limits = interval(text, ":", units.TIME)
        except UnitError as error:
            raise InputError.of(
                "contact_free", str(error), "give intervals of time, such as '0:5 s'"
            ) from error
        intervals.append((limits.lower, limits.upper))
    return tuple(intervals)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalWrenchOptions(Options):
    """Options of the estimation of external forces from a log.

    Attributes:
        contact_free: intervals of the log without contact, such as '0:5 s'; by default they are
            found from the log.
        contact_free_log: another log without contact, in which false alarms are counted.
        components: components of the wrench at the tool that can act, such as fx,fy,mz; by default
            those that the machine can distinguish, forces first.
        observer: method of the estimate: from momenta, or from inverse dynamics with accelerations
            that are differences of velocities.
        bandwidth: bandwidth of the observer, such as 100 (rad/s) or '20 Hz': the estimate follows a
            force with the delay 1/K.
        alarms: false alarms in an hour that the threshold allows.
        cutoff: cutoff frequency of a zero-phase low-pass of positions and forces, such as 40Hz; by
            default five times the observer's bandwidth.
        order: order of the Butterworth low-pass.
        trim: number of samples removed at each end.
        fill_gaps: maximum number of consecutive missing samples that are interpolated; the result
            reports the number of interpolated samples.
        resample: resample logs with nonuniform time stamps to uniform sampling.
        within_limits: reject poses beyond a stop of the machine file; otherwise they are reported.

    Examples:
        >>> import tauloop as tl
        >>> tl.ExternalWrenchOptions(contact_free=((0.0, 5.0),), bandwidth=60.0).bandwidth
        60.0
    """

    contact_free: tuple[tuple[float, float], ...] = option(
        (),
        read=_read_intervals,
        repeated=True,
        metavar="START:END",
        unit=units.TIME,
    )
    contact_free_log: LogSource | None = option(None, metavar="LOG")
    components: tuple[str, ...] = option(
        (), choices=COMPONENTS, read=listed, repeated=True, metavar="NAMES"
    )
    observer: str = option("momentum", choices=tuple(OBSERVERS))
    bandwidth: float = option(100.0, read=read_bandwidth, metavar="FREQUENCY", above=0.0)
    alarms: float = option(1.0, above=0.0)
    cutoff: float | None = option(None, metavar="FREQUENCY", above=0.0, unit=units.FREQUENCY)
    order: int | None = option(None, least=1)
    trim: int | None = option(None, least=0)
    fill_gaps: int | None = option(None, least=1)
    resample: bool = False
    within_limits: bool = False

    def _note_mismatches(self, problems: Problems) -> None:
        """Add problems of intervals that end before they start, and of repeated components."""
        for start, end in self.contact_free:
            if not start < end:
                problems.add(
                    "contact_free", f"{start:g}:{end:g} s is empty", "give the start before the end"
                )
        if len(set(self.components)) < len(self.components):
            names = ", ".join(self.components)
            what = f"a component is repeated: {names}"
            problems.add("components", what, "name each component once")

    @property
    def stated(self) -> dict[str, Any]:
        """Stated options that replace those of each log's `Preparation`."""
        values = {name: getattr(self, name) for name in _PREPARATION_OPTIONS}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactInterval(ReprMixin):
    """An interval in which an estimate exceeds its threshold.

    Attributes:
        start: time of the first sample above a threshold, s.
        end: time of the last sample above a threshold, s.
        time: time at which an estimate is the largest multiple of its threshold, s.
        force: (n,) estimated force conjugate to the platform's velocities at that time, N or N m.
        wrench: (6,) the same force as a wrench at the tool, N and N m in the base frame; zero for
            components that cannot act.
    """

    start: float
    end: float
    time: float
    force: np.ndarray
    wrench: np.ndarray


def _duration(time: np.ndarray) -> float:
    """Return the time between the first and the last sample, s."""
    return float(time[-1] - time[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalWrench(Result):
    """External forces during a log.

    Attributes:
        model: model that predicts the actuators' forces.
        time: (N,) times of the samples, s.
        force: (N, n) estimated forces conjugate to the platform's velocities, N or N m.
        wrench: (N, 6) the same forces as wrenches at the tool, N and N m in the base frame.
        components: components of the wrench that can act; the others are assumed to be zero.
        threshold: (n,) alarm thresholds of `force`.
        noise: (n,) root mean square of `force` without contact.
        offset: (n,) mean of `force` without contact.
        wrench_noise: (6,) root mean square of the wrench without contact.
        free: start and end of intervals without contact, s.
        free_is_searched: whether these intervals were found from the log instead of given by the
            user.
        free_duration: total duration of these intervals, s.
        contacts: contacts in chronological order.
        false_alarms: false alarms of the other log without contact; None without such a log.
    """

    model: Model = field(repr=False, metadata=json_keys(machine="mechanism.name"))
    time: np.ndarray = field(metadata=json_keys("duration_s", summary=_duration) | OVER_TIME)
    force: np.ndarray = field(metadata=OMITTED | channels("time", port="freedoms"))
    wrench: np.ndarray = field(
        metadata=OMITTED | channels("time", names=COMPONENTS, units=COMPONENT_UNITS)
    )
    components: tuple[str, ...]
    threshold: np.ndarray
    noise: np.ndarray
    offset: np.ndarray
    wrench_noise: np.ndarray
    free: tuple[tuple[float, float], ...] = field(metadata=json_keys("free_s"))
    free_is_searched: bool
    free_duration: float = field(metadata=json_keys("free_duration_s"))
    contacts: tuple[ContactInterval, ...]
    false_alarms: FalseAlarms | None = field(metadata=json_keys("free_log", optional=True))

    @property
    def freedoms(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the platform's velocities, and units of the forces on them."""
        ports = self.model.platform.ports.velocity
        return ports.columns, tuple("N m" if unit == "rad/s" else "N" for unit in ports.units)

    def log(self) -> xr.Dataset:
        """Return the estimates over time as a log."""
        return log_of(self, "force", "wrench")

    @property
    @in_json("freedoms")
    def freedom_names(self) -> tuple[str, ...]:
        """Names of the platform's velocities."""
        return self.freedoms[0]

    @property
    @in_json()
    def force_units(self) -> tuple[str, ...]:
        """Units of the forces on the platform's velocities."""
        return self.freedoms[1]


@keywords(ExternalWrenchOptions)
@solving(IdentificationError)
def estimate_external_wrench(
    machine: MachineSource,
    log: LogSource,
    options: ExternalWrenchOptions | None = None,
    *,
    progress: Progress | None = None,
) -> ExternalWrench:
    """Estimate the external wrench on the platform at every sample, and find contacts.

    The external force is (dx/dw)^T r = G^T (p' + h) - (A G)^T u, with momenta p, actuator forces u,
    the machine's other forces h, and the force r conjugate to the platform's velocities. The
    estimate follows r with a first-order lag of the bandwidth K (`MomentumObserver`). The wrench w
    at the tool follows from J^T w = r, where J contains the rows of the tool's Jacobian for the
    components that can act.

    Identify the machine first, because errors of masses and friction increase the threshold.

    Args:
        machine: description with identified values, or a model.
        log: positions and forces of all actuators.
        options: options of the estimation.
        progress: called with the completed and the total number of steps.

    Returns:
        Estimates, thresholds from the intervals without contact, and contacts.

    Raises:
        InputError: options do not match this log or this machine.
        LogError: the log is damaged or lacks channels.
        PoseError: the log leaves the workspace of the machine.

    Source: De Luca and Mattone 2005, Sensorless robot collision detection and hybrid force/motion
        control.

    Examples:
        >>> import numpy as np
        >>> import tauloop as tl
        >>> model = tl.Model(tl.load("four_bar"))
        >>> time = np.arange(0.0, 20.0, 0.005)
        >>> motion = [np.sin(2 * time), 2 * np.cos(2 * time), -4 * np.sin(2 * time)]
        >>> force = model.actuators.inverse_dynamics(*(part[:, None] for part in motion)).force
        >>> force[2000:2200] -= 0.5  # an external force on the crank
        >>> sensors = tl.logs.Sensors(resolution=[1e-5], force_noise=[0.01])
        >>> names = ["motor"], ["rad"], ["N m"]
        >>> log = tl.logs.measure(time, motion[0][:, None], force, *names, sensors, np.random.default_rng(0))
        >>> [round(contact.start) for contact in tl.estimate_external_wrench(model, log).contacts]
        [10]
    """
    options = options or ExternalWrenchOptions()
    model = modeled(machine)
    names = ["log"] if options.contact_free_log is None else ["log", "contact_free_log"]
    stages = Stages(progress, 1 + len(names))
    sources = [log] if options.contact_free_log is None else [log, options.contact_free_log]
    logs, encoder_diagnostics = _read(model, sources, names, options)
    components = wrench_components(model, options.components)
    stages.done()
    stops = _stop_diagnostics(model, logs)
    if options.within_limits:
        require_within_limits(stops)
    estimates = [_estimate(model, entry, options) for entry in stages.over(logs)]
    return _evaluate(model, logs, (*stops, *encoder_diagnostics), estimates, components, options)


def _read(
    model: Model, sources: list[LogSource], names: list[str], options: ExternalWrenchOptions
) -> tuple[list[MeasuredLog], tuple[Diagnostic, ...]]:
    """Return the logs with their preparations, and diagnostics of their positions.

    Spikes of forces are not removed, because they can be contacts.
    """
    repaired = repairs(
        model, PreparationOptions(fill_gaps=options.fill_gaps, resample=options.resample)
    )
    logs: list[MeasuredLog] = []
    for source, name in zip(sources, names, strict=True):
        entry = recorded(source, name, None, repaired)
        _require_channels(model, entry)
        default = logs[0].effective_preparation if logs else entry.effective_preparation
        preparation = replace(entry.preparation or default, decimation=1, **options.stated)
        if preparation.cutoff is None:
            cutoff = CUTOFF_RATIO * options.bandwidth / (2.0 * np.pi)
            cutoff = min(cutoff, HIGHEST_CUTOFF / sample_period(entry.log))
            preparation = replace(preparation, cutoff=cutoff)
        trim = max(preparation.trim, MIN_TRIM)
        logs.append(replace(entry, preparation=replace(preparation, trim=trim)))
    logs, _ = less_known_forces(without_saturation(model, logs))
    bad_positions: list[Problem] = []
    for entry in logs:
        _, problems = without_bad_samples(entry.log)
        bad_positions += [problem for problem in problems if not problem.where.startswith("force")]
    logs, misfits = with_all_encoders(model, logs)
    return logs, (*misfits, *bad_sample_diagnostics(bad_positions))


def _require_channels(model: Model, log: MeasuredLog) -> None:
    """Raise an error if a log lacks positions or forces of actuators in the machine's units."""
    port = model.actuators.ports.position
    force_units = dict(zip(*model.output_ports("actuators"), strict=True))
    position_units = dict(zip(port.columns, port.units, strict=True))
    problems = channel_problems(log.log, {"position": position_units, "force": force_units})
    InputError.raise_if_any(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Estimate:
    """Estimates of one log.

    Attributes:
        time: (N,) times of the samples, s.
        period: sampling period, s.
        force: (N, n) external force on the platform's velocities.
        needed: (N, n) force that the motion requires according to the model, conjugate to the
            platform's velocities and with the same lag as `force`.
        jacobian: (N, 6, n) Jacobian of the tool.
    """

    time: np.ndarray
    period: float
    force: np.ndarray
    needed: np.ndarray
    jacobian: np.ndarray


def _estimate(model: Model, log: MeasuredLog, options: ExternalWrenchOptions) -> _Estimate:
    """Return the estimates of one log."""
    preparation = log.effective_preparation
    raw = log.log
    prepared = log.prepared()
    period = sample_period(raw)
    actuators = [actuator.name for actuator in model.mechanism.actuators]
    force = samples(raw, "force", actuators)
    trim = preparation.trim
    force = _filtered(force, preparation, period)[trim : len(force) - trim]
    port = model.actuators.ports.position
    position = samples(prepared, "position", port.columns)
    q = np.asarray(model.actuators.track(position).q)
    motion = MeasuredMotion(
        period=period,
        position=position,
        velocity=samples(prepared, "velocity", port.columns),
        force=_step_means(force),
        q=q[0],
    )
    observer: ForceObserver = OBSERVERS[options.observer]
    without_force = replace(motion, force=np.zeros_like(motion.force))
    pose = model.platform.ports.at(q)
    at_rest = np.zeros((len(q), model.platform.ports.velocity.size))
    return _Estimate(
        time=np.asarray(prepared.time),
        period=period,
        force=observer.forces(model, motion, options.bandwidth),
        needed=observer.forces(model, without_force, options.bandwidth),
        jacobian=np.asarray(model.platform.tool(pose, at_rest, start=q).jacobian),
    )


def _filtered(force: np.ndarray, preparation: Preparation, period: float) -> np.ndarray:
    """Return forces after the zero-phase filter of the positions."""
    if preparation.cutoff is None:
        return force
    return butterworth(force, rate=1.0 / period, cutoff=preparation.cutoff, order=preparation.order)


def _step_means(force: np.ndarray) -> np.ndarray:
    """Return the mean force between each sample and the next; the last sample is unchanged."""
    return np.concatenate([0.5 * (force[:-1] + force[1:]), force[-1:]])


def wrench_components(model: Model, names: tuple[str, ...]) -> tuple[int, ...]:
    """Return the components of the tool's wrench that can act, as rows of its Jacobian.

    If none are chosen, components are added in order, forces first. A component is used if the
    machine can distinguish it, at the reference pose, from the components before it.

    Args:
        model: the machine.
        names: names of the chosen components; empty to select them automatically.

    Raises:
        InputError: the machine cannot distinguish the chosen components.
    """
    reference = model.assembly.q[None]
    pose = model.platform.ports.at(reference)
    at_rest = np.zeros((1, model.platform.ports.velocity.size))
    jacobian = np.asarray(model.platform.tool(pose, at_rest, start=reference).jacobian)[0]
    length = model.assembly.loops.length
    rows = jacobian * np.array([1.0] * 3 + [length] * 3)[:, None]
    rows = rows * _velocity_scale(model, length)
    largest = max(float(np.linalg.norm(rows, axis=1).max()), 1e-300)
    chosen: list[int] = []
    basis: list[np.ndarray] = []
    for k in [COMPONENTS.index(name) for name in names] or range(len(COMPONENTS)):
        projection = np.zeros(rows.shape[1])
        for direction in basis:
            projection = projection + direction * (direction @ rows[k])
        remainder = rows[k] - projection
        norm = float(np.linalg.norm(remainder))
        if norm > MIN_DIRECTION_SHARE * largest:
            chosen.append(k)
            basis.append(remainder / norm)
        elif names:
            others = ", ".join(COMPONENTS[i] for i in chosen)
            addition = f" in addition to {others}" if others else ""
            raise InputError.of(
                "components",
                f"{COMPONENTS[k]} cannot be determined at the reference pose{addition}",
                f"name up to {counted(rows.shape[1], 'component')} along which this platform moves, or none",
            )
    return tuple(chosen)


def _velocity_scale(model: Model, length: float) -> np.ndarray:
    """Return factors (n,) that divide angular velocities of the platform by a length.

    The columns of the scaled Jacobian then have the same units.
    """
    is_angular = [unit == "rad/s" for unit in model.platform.ports.velocity.units]
    return np.where(is_angular, 1.0 / length, 1.0)


def _wrench(estimate: _Estimate, components: tuple[int, ...]) -> np.ndarray:
    """Return wrenches w (N, 6) with J^T w = r; a least-squares fit if there are few components."""
    rows = estimate.jacobian[:, list(components), :].transpose(0, 2, 1)
    wrench = np.zeros((len(estimate.force), len(COMPONENTS)))
    wrench[:, list(components)] = np.einsum("nij,nj->ni", np.linalg.pinv(rows), estimate.force)
    return wrench


def _evaluate(
    model: Model,
    logs: list[MeasuredLog],
    motion_diagnostics: tuple[Diagnostic, ...],
    estimates: list[_Estimate],
    components: tuple[int, ...],
    options: ExternalWrenchOptions,
) -> ExternalWrench:
    """Return thresholds, contacts and false alarms of the estimates."""
    estimate = estimates[0]
    wrench = _wrench(estimate, components)
    blocks = blocks_of(estimate.force, estimate.period, options.bandwidth)
    is_free = _free_blocks(estimate, blocks, options)
    limits = threshold(blocks.largest[is_free], blocks.duration, options.alarms)
    is_quiet = np.zeros(len(estimate.time), dtype=bool)
    is_quiet[: len(is_free) * blocks.size] = np.repeat(is_free, blocks.size)
    pause = round(PAUSE_TIME_CONSTANTS / options.bandwidth / estimate.period)
    contacts = tuple(
        _contact(estimate, wrench, limits, first, last)
        for first, last in alarms_above(estimate.force, limits, pause)
    )
    false_alarms = None
    if len(estimates) > 1:
        free = estimates[1]
        duration = float(free.time[-1] - free.time[0])
        count = len(alarms_above(free.force, limits, pause))
        false_alarms = FalseAlarms(
            alarms=count, duration=duration, expected=options.alarms * duration / SECONDS_PER_HOUR
        )
    return ExternalWrench(
        diagnostics=(
            *_block_diagnostics(is_free, blocks, is_searched=not options.contact_free),
            _unexplained_diagnostic(model, estimate, is_quiet),
            *([] if false_alarms is None else [_false_alarm_diagnostic(false_alarms)]),
            *force_limit_diagnostics(logs),
            *motion_diagnostics,
            *omission_diagnostics(model.mechanism),
        ),
        provenance=provenance(
            options={
                "observer": options.observer,
                "bandwidth": options.bandwidth,
                "alarms": options.alarms,
                "contact_free": options.contact_free,
                "components": options.components,
                "preparation": options.stated,
            },
            inputs={
                "machine": model.mechanism.name,
                "log": logs[0].name,
                "samples": len(estimate.time),
            },
            packages=("numpy", "casadi", "scipy"),
        ),
        model=model,
        time=estimate.time,
        force=estimate.force,
        wrench=wrench,
        components=tuple(COMPONENTS[k] for k in components),
        threshold=limits,
        noise=_root_mean_square(estimate.force[is_quiet]),
        offset=estimate.force[is_quiet].mean(axis=0),
        wrench_noise=_root_mean_square(wrench[is_quiet]),
        free=_free_intervals(estimate, is_quiet),
        free_is_searched=not options.contact_free,
        free_duration=float(is_quiet.sum() * estimate.period),
        contacts=contacts,
        false_alarms=false_alarms,
    )


def _root_mean_square(values: np.ndarray) -> np.ndarray:
    """Return the root mean square of every column."""
    return np.sqrt(np.mean(np.square(values), axis=0))


def _free_blocks(estimate: _Estimate, blocks: Blocks, options: ExternalWrenchOptions) -> np.ndarray:
    """Return a mask of the blocks without contact, from the given intervals or from the estimates.

    Raises:
        InputError: no block is within the given intervals.
    """
    if not options.contact_free:
        return blocks_without_contact(blocks)
    starts = estimate.time[0] + blocks.duration * np.arange(len(blocks.largest))
    is_free = np.zeros(len(starts), dtype=bool)
    for start, end in options.contact_free:
        starts_inside = starts >= start - 0.5 * estimate.period
        is_free |= starts_inside & (starts + blocks.duration <= end + estimate.period)
    if not is_free.any():
        log_interval = f"{estimate.time[0]:.4g} to {estimate.time[-1]:.4g} s"
        raise InputError.of(
            "contact_free",
            f"no block of {blocks.duration:.3g} s of the log ({log_interval}) is within the given intervals",
            "give longer intervals within this log",
        )
    return is_free


def _free_intervals(estimate: _Estimate, is_quiet: np.ndarray) -> tuple[tuple[float, float], ...]:
    """Return start and end, s, of the intervals without contact."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_quiet, [False]]).astype(int)))
    return tuple(
        (float(estimate.time[first]), float(estimate.time[last - 1]))
        for first, last in zip(edges[::2], edges[1::2], strict=True)
    )


def _contact(
    estimate: _Estimate, wrench: np.ndarray, limits: np.ndarray, first: int, last: int
) -> ContactInterval:
    """Return the contact from one sample to another."""
    multiples = (np.abs(estimate.force[first : last + 1]) / limits).max(axis=1)
    worst = first + int(multiples.argmax())
    return ContactInterval(
        start=float(estimate.time[first]),
        end=float(estimate.time[last]),
        time=float(estimate.time[worst]),
        force=estimate.force[worst],
        wrench=wrench[worst],
    )


def _block_diagnostics(
    is_free: np.ndarray, blocks: Blocks, *, is_searched: bool
) -> Iterator[Diagnostic]:
    """Yield diagnostics of the number of blocks without contact, and of the fraction in contact."""
    yield diagnostic(
        f"intervals of {blocks.duration:.3g} s without contact",
        is_free.sum(),
        at_least=float(MIN_FREE_BLOCKS),
        advice="the threshold is extrapolated from few intervals: record a longer log without contact",
    )
    if is_searched:
        yield diagnostic(
            "fraction of the log that is classified as contact",
            1.0 - is_free.mean(),
            at_most=MAX_CONTACT_SHARE,
            advice="intervals without contact cannot be found from this log: specify them with "
            "`contact_free`",
        )


def _unexplained_diagnostic(model: Model, estimate: _Estimate, is_quiet: np.ndarray) -> Diagnostic:
    """Return the fraction of the contact-free forces that the model leaves unexplained.

    The fraction is computed separately for forces and for moments; the larger one is returned.
    """
    is_moment = np.array([unit == "rad/s" for unit in model.platform.ports.velocity.units])
    fractions = []
    for columns_of_unit in (is_moment, ~is_moment):
        needed = float(np.linalg.norm(estimate.needed[is_quiet][:, columns_of_unit]))
        if needed > 0.0:
            unexplained = float(np.linalg.norm(estimate.force[is_quiet][:, columns_of_unit]))
            fractions.append(unexplained / needed)
    return diagnostic(
        "fraction of the forces without contact that the model does not explain",
        max(fractions, default=None),
        at_most=MAX_UNEXPLAINED_SHARE,
        advice="identify masses and friction of this machine first, and check signs and units of the forces",
    )


def _false_alarm_diagnostic(alarms: FalseAlarms) -> Diagnostic:
    """Return the probability of at least as many false alarms at the rate of the threshold."""
    return diagnostic(
        f"probability of at least {counted(alarms.alarms, 'false alarm')} in {alarms.duration:.4g} s without contact",
        alarms.probability,
        at_least=MIN_ALARM_PROBABILITY,
        advice=f"{alarms.per_hour:.3g} false alarms per hour: determine the threshold from a longer log "
        "without contact and with similar motions",
    )


def bad_sample_diagnostics(problems: Sequence[Problem]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each channel with spikes, drop-outs or constant stretches.

    The diagnostics make the status of the result doubtful.
    """
    for problem in problems:
        yield diagnostic(
            f"bad samples of {problem.where}",
            1.0,
            at_most=0.0,
            advice=f"{problem.what}: {problem.remedy}",
        )


def force_limit_diagnostics(logs: list[MeasuredLog]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each force that reached its limit."""
    for entry in logs:
        for name, count in left_out_counts(entry.log).items():
            yield diagnostic(
                f"{_prefix(entry, logs)}samples of force.{name} at its limit",
                count,
                at_most=0.0,
                advice="the drive's force differs from the logged force, so estimates at these samples are wrong: "
                "repeat the motion with smaller forces",
            )


def _stop_diagnostics(model: Model, logs: list[MeasuredLog]) -> tuple[Diagnostic, ...]:
    """Return diagnostics of motions beyond the stops of the machine file."""
    return tuple(
        replace(item, name=f"{_prefix(entry, logs)}{item.name}")
        for entry in logs
        for item in motion_limits(model, entry.log)
    )


def _prefix(log: MeasuredLog, logs: list[MeasuredLog]) -> str:
    """Return the name of a log as a prefix for messages; "" if there is only one log."""
    return "" if len(logs) == 1 else f"{log.name}: "
