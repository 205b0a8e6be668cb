"""Forces from outside on a platform, estimated from a recorded log: contacts, noise and false alarms.

A model explains the actuators' forces by masses, friction and springs. What it does not explain is
a force from outside, an error of the model, or noise. Stretches without contact show the last two,
and the threshold of an alarm follows from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tauloop.common.datasets import Variable, columns, time_axis
from tauloop.common.errors import IdentificationError, InputError, Problem, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, listed, option
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.common.shown import ReprMixin
from tauloop.equations.assembly.limits import require_within_limits
from tauloop.equations.named_values import TOOL
from tauloop.identification.online.alarm_threshold import (
    HOUR,
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
from tauloop.mechanism.description.quantities import interval
from tauloop.mechanism.description.units import UnitError
from tauloop.mechanism.omissions import omission_diagnostics
from tauloop.model import Model
from tauloop.model.model import MachineSource, modelled
from tauloop.simulation.controllers.laws import read_bandwidth
from tauloop.simulation.observers.observers import OBSERVERS, ForceObserver, MeasuredMotion

if TYPE_CHECKING:
    import xarray as xr

#: Components of a wrench, in the order of the rows of a tool's Jacobian.
COMPONENTS, COMPONENT_UNITS = TOOL.columns, TOOL.units
#: Share of the largest direction below which a component is not distinguished from the others.
LEAST_DIRECTION = 1e-3
#: Without a stated cut-off positions and forces are filtered at this multiple of the observer's
#: bandwidth.
ABOVE = 5.0
#: Samples at both ends of a log whose velocities lack a neighbour.
ENDS = 5
#: Time constants of the observer; alarms that follow each other sooner belong to one contact.
PAUSE = 3.0
#: Blocks without contact that a threshold needs.
FEWEST_BLOCKS = 20
#: Largest share of a log that may be contact where stretches without contact are found from the log
#: itself.
MOST_CONTACT = 0.25
#: Largest share of the actuators' forces that a model may leave unexplained without contact.
MOST_UNEXPLAINED = 0.3
#: Probability of the false alarms of a free log below which the threshold's rate is not believed.
LEAST_PROBABILITY = 0.01
#: Fields of the options that take the place of those of the same name of each log's own
#: preparation.
_STATED = ("cutoff", "order", "trim")


def _stretches(texts: str | tuple[str, ...]) -> tuple[tuple[float, float], ...]:
    """Read stretches of time such as '0:5 s'."""
    stretches = []
    for text in listed(texts):
        try:
            ends = interval(text, ":", units.TIME)
        except UnitError as error:
            raise InputError.of(
                "free", str(error), "name stretches of time, such as '0:5 s'"
            ) from error
        stretches.append((ends.lower, ends.upper))
    return tuple(stretches)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalWrenchOptions(Options):
    """How forces from outside are estimated from a log.

    Attributes:
        free: stretches of the log without contact, such as '0:5 s'; without it they are found from
            the log.
        free_log: another log without contact, whose false alarms are counted.
        components: components of the wrench at the tool that may act, such as fx,fy,mz; those that
            the machine can distinguish without it, forces first.
        observer: from momenta, or by inverse dynamics with differences of velocities.
        bandwidth: bandwidth of the observer, such as 100 (rad/s) or '20 Hz': the estimate follows a
            force with the delay 1/K.
        alarms: false alarms in an hour that the threshold allows.
        cutoff: cut-off frequency of a zero-phase low-pass of positions and forces, such as 40Hz;
            five times the observer's bandwidth without it.
        order: order of the Butterworth low-pass.
        trim: number of samples cut off at each end.
        fill_gaps: largest number of missing samples in a row that are interpolated; they are
            counted.
        resample: take samples at even times where they were stamped at uneven ones.
        within_limits: refuse poses beyond a stop of the machine file; otherwise they are reported.

    Examples:
        >>> import tauloop as tl
        >>> tl.ExternalWrenchOptions(free=((0.0, 5.0),), bandwidth=60.0).bandwidth
        60.0
    """

    free: tuple[tuple[float, float], ...] = option(
        (),
        read=_stretches,
        repeated=True,
        metavar="START:END",
        flag="--contact-free",
        unit=units.TIME,
    )
    free_log: LogSource | None = option(None, metavar="LOG", flag="--contact-free-log")
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
        """Note stretches that end before they begin, and components that are given twice."""
        for start, end in self.free:
            if not start < end:
                problems.add(
                    "free", f"{start:g}:{end:g} s is empty", "name the start before the end"
                )
        if len(set(self.components)) < len(self.components):
            problems.add("components", "one is given twice", "name each once")

    @property
    def stated(self) -> dict[str, Any]:
        """Parts of a `Preparation` that win over each log's own."""
        values = {name: getattr(self, name) for name in _STATED}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactInterval(ReprMixin):
    """A stretch in which an estimate exceeds its threshold.

    Attributes:
        start, end: first and last sample above a threshold, s.
        time: of the largest estimate, as a share of its threshold, s.
        force: estimate at that time, on the platform's velocities (n,), N or N m.
        wrench: the same as a wrench at the tool (6,), N and N m in the base frame; zero where no
            component may act.
    """

    start: float
    end: float
    time: float
    force: np.ndarray
    wrench: np.ndarray


def _duration(time: np.ndarray) -> float:
    return float(time[-1] - time[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalWrench(Result):
    """Forces from outside during a log.

    Attributes:
        model: what explains the actuators' forces.
        time: of the samples (N,), s.
        force: estimate on the platform's velocities (N, n), N or N m.
        wrench: the same as a wrench at the tool (N, 6), N and N m in the base frame.
        components: of the wrench that may act; the others are zero by assumption.
        threshold: of an alarm, on the platform's velocities (n,).
        noise: root mean square of the estimate without contact (n,).
        offset: mean of the estimate without contact (n,).
        wrench_noise: root mean square of the wrench without contact (6,).
        free: stretches without contact, start and end in s.
        free_is_searched: whether they were found from the log, and not named.
        free_duration: of all of them, s.
        contacts: in the order of time.
        false_alarms: of the other log without contact; None without one.
    """

    model: Model = field(repr=False, metadata=json_keys(machine="mechanism.name"))
    time: np.ndarray = field(metadata=json_keys("duration_s", summary=_duration))
    force: np.ndarray = field(metadata=OMITTED)
    wrench: np.ndarray = field(metadata=OMITTED)
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

    def variables(self) -> Iterator[Variable]:
        """Estimates on the platform's velocities, and the wrench at the tool, over time."""
        yield time_axis(self.time)
        yield from columns("force", *self.freedoms, self.force)
        yield from columns("wrench", COMPONENTS, COMPONENT_UNITS, self.wrench)

    @property
    @in_json("freedoms")
    def freedom_names(self) -> tuple[str, ...]:
        """Names of the platform's velocities."""
        return self.freedoms[0]

    @property
    @in_json()
    def force_units(self) -> tuple[str, ...]:
        """Units of the forces on them."""
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
    """Estimate the wrench that acts on the platform from outside, sample by sample, and find contacts.

    With momenta p, the forces u of the actuators and the machine's other forces h, the estimate r
    of the force on the platform's velocities follows (dx/dw)^T r = G^T (p' + h) - (A G)^T u as a
    first-order lag of the bandwidth K (`MomentumObserver`). The wrench w at the tool follows from
    J^T w = r, J the rows of the tool's Jacobian for the components that may act.

    Identify the machine first: what its masses and friction do not explain raises the threshold.

    Args:
        machine: its description with identified values, or a model of it.
        log: positions and forces of all actuators.
        options: how; the defaults without.
        progress: called with what is done and what there is to do.

    Returns:
        Estimates, thresholds from the stretches without contact, and contacts.

    Raises:
        InputError: options that have no meaning for this log or this machine.
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
        >>> force[2000:2200] -= 0.5  # something pushes the crank
        >>> sensors = tl.logs.Sensors(resolution=[1e-5], force_noise=[0.01])
        >>> names = ["motor"], ["rad"], ["N m"]
        >>> log = tl.logs.measure(time, motion[0][:, None], force, *names, sensors, np.random.default_rng(0))
        >>> [round(contact.start) for contact in tl.estimate_external_wrench(model, log).contacts]
        [10]
    """
    options = options or ExternalWrenchOptions()
    model = modelled(machine)
    names = ["log"] if options.free_log is None else ["log", "free_log"]
    stages = Stages(progress, 1 + len(names))
    sources = [log] if options.free_log is None else [log, options.free_log]
    logs, misfits = _read(model, sources, names, options)
    stages.done()
    beyond = _beyond_stops(model, logs)
    if options.within_limits:
        require_within_limits(beyond)
    estimates = [_estimated(model, entry, options) for entry in stages.over(logs)]
    return _judged(model, logs, (*beyond, *misfits), estimates, options)


def _read(
    model: Model, sources: list[LogSource], names: list[str], options: ExternalWrenchOptions
) -> tuple[list[MeasuredLog], tuple[Diagnostic, ...]]:
    """Return the logs with their preparations, and what makes their positions doubtful.

    A spike of a force may be a contact, and is left to the observer.
    """
    repaired = repairs(
        model, PreparationOptions(fill_gaps=options.fill_gaps, resample=options.resample)
    )
    logs: list[MeasuredLog] = []
    for source, name in zip(sources, names, strict=True):
        entry = recorded(source, name, None, repaired)
        _require_channels(model, entry)
        how = replace(
            entry.preparation or (logs[0].how if logs else entry.how),
            decimation=1,
            **options.stated,
        )
        if how.cutoff is None:
            above = ABOVE * options.bandwidth / (2.0 * np.pi)
            how = replace(how, cutoff=min(above, HIGHEST_CUTOFF / sample_period(entry.log)))
        logs.append(replace(entry, preparation=replace(how, trim=max(how.trim, ENDS))))
    logs, _ = less_known_forces(without_saturation(model, logs))
    bad = [
        problem
        for entry in logs
        for problem in without_bad_samples(entry.log)[1]
        if problem.where[:5] != "force"
    ]
    logs, misfits = with_all_encoders(model, logs)
    return logs, (*misfits, *of_bad_samples(bad))


def _require_channels(model: Model, log: MeasuredLog) -> None:
    """Refuse a log without the positions and forces of all actuators, in the machine's units."""
    port = model.actuators.ports.position
    force_units = dict(zip(*model.output_ports("actuators"), strict=True))
    problems = channel_problems(
        log.log,
        {"position": dict(zip(port.columns, port.units, strict=True)), "force": force_units},
    )
    InputError.raise_if_any(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Estimate:
    """Estimates of one log.

    Attributes:
        time: (N,), s.
        period: s.
        force: from outside, on the platform's velocities (N, n).
        needed: what the model needs for the motion, on the same velocities behind the same lag (N,
            n).
        jacobian: of the tool (N, 6, n).
    """

    time: np.ndarray
    period: float
    force: np.ndarray
    needed: np.ndarray
    jacobian: np.ndarray


def _estimated(model: Model, log: MeasuredLog, options: ExternalWrenchOptions) -> _Estimate:
    """Return the estimates of one log."""
    how = log.how
    raw, prepared = log.log, log.prepared()
    period = sample_period(raw)
    actuators = [actuator.name for actuator in model.mechanism.actuators]
    force = samples(raw, "force", actuators)
    force = _filtered(force, how, period)[how.trim : len(force) - how.trim]
    port = model.actuators.ports.position
    position = samples(prepared, "position", port.columns)
    q = np.asarray(model.actuators.track(position).q)
    motion = MeasuredMotion(
        period=period,
        position=position,
        velocity=samples(prepared, "velocity", port.columns),
        force=_between(force),
        q=q[0],
    )
    observer: ForceObserver = OBSERVERS[options.observer]
    at = model.platform.ports.at(q)
    still = np.zeros((len(q), model.platform.ports.velocity.size))
    return _Estimate(
        time=np.asarray(prepared.time),
        period=period,
        force=observer.forces(model, motion, options.bandwidth),
        needed=observer.forces(
            model, replace(motion, force=np.zeros_like(motion.force)), options.bandwidth
        ),
        jacobian=np.asarray(model.platform.tool(at, still, start=q).jacobian),
    )


def _filtered(force: np.ndarray, how: Preparation, period: float) -> np.ndarray:
    """Return forces behind the filter of the positions, so that both are late by the same time: by none."""
    if how.cutoff is None:
        return force
    return butterworth(force, rate=1.0 / period, cutoff=how.cutoff, order=how.order)


def _between(force: np.ndarray) -> np.ndarray:
    """Return the mean force of each step between two samples; the last sample keeps its own."""
    return np.concatenate([0.5 * (force[:-1] + force[1:]), force[-1:]])


def wrench_components(model: Model, asked: tuple[str, ...]) -> tuple[int, ...]:
    """Return the components of the tool's wrench that may act, as rows of its Jacobian.

    Without a choice, components are taken in their order, forces first, as long as the machine
    distinguishes each from those before it at the reference pose.

    Raises:
        InputError: the machine cannot distinguish the chosen components.
    """
    reference = model.assembly.q[None]
    still = np.zeros((1, model.platform.ports.velocity.size))
    jacobian = np.asarray(
        model.platform.tool(model.platform.ports.at(reference), still, start=reference).jacobian
    )[0]
    length = model.assembly.loops.length
    rows = jacobian * np.array([1.0] * 3 + [length] * 3)[:, None]
    rows = rows * _velocity_scale(model, length)
    least = LEAST_DIRECTION * max(float(np.linalg.norm(rows, axis=1).max()), 1e-300)
    chosen: list[int] = []
    basis: list[np.ndarray] = []
    for k in [COMPONENTS.index(name) for name in asked] or range(len(COMPONENTS)):
        rest = rows[k] - sum(
            (direction * (direction @ rows[k]) for direction in basis), np.zeros(rows.shape[1])
        )
        size = float(np.linalg.norm(rest))
        if size > least:
            chosen.append(k)
            basis.append(rest / size)
        elif asked:
            what = f"{COMPONENTS[k]} cannot be determined at the reference pose"
            what += f" next to {', '.join(COMPONENTS[i] for i in chosen)}" if chosen else ""
            freedoms = rows.shape[1]
            raise InputError.of(
                "components", what, f"name up to {freedoms} that move this platform, or none"
            )
    return tuple(chosen)


def _velocity_scale(model: Model, length: float) -> np.ndarray:
    """Return factors (n,) that give the platform's velocities one unit: that of a length per second."""
    is_turning = [unit == "rad/s" for unit in model.platform.ports.velocity.units]
    return np.where(is_turning, 1.0 / length, 1.0)


def _wrench(estimate: _Estimate, components: tuple[int, ...]) -> np.ndarray:
    """Return wrenches (N, 6) with J^T w = r; by least squares where components are fewer than freedoms."""
    rows = estimate.jacobian[:, list(components), :].transpose(0, 2, 1)
    wrench = np.zeros((len(estimate.force), len(COMPONENTS)))
    wrench[:, list(components)] = np.einsum("nij,nj->ni", np.linalg.pinv(rows), estimate.force)
    return wrench


def _judged(
    model: Model,
    logs: list[MeasuredLog],
    of_motion: tuple[Diagnostic, ...],
    estimates: list[_Estimate],
    options: ExternalWrenchOptions,
) -> ExternalWrench:
    """Return thresholds, contacts and false alarms of the estimates."""
    estimate = estimates[0]
    components = wrench_components(model, options.components)
    wrench = _wrench(estimate, components)
    blocks = blocks_of(estimate.force, estimate.period, options.bandwidth)
    is_free = _free_blocks(estimate, blocks, options)
    limits = threshold(blocks.largest[is_free], blocks.duration, options.alarms)
    quiet = np.repeat(is_free, blocks.size)
    quiet = np.concatenate([quiet, np.zeros(len(estimate.time) - len(quiet), dtype=bool)])
    pause = round(PAUSE / options.bandwidth / estimate.period)
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
            alarms=count, duration=duration, expected=options.alarms * duration / HOUR
        )
    return ExternalWrench(
        diagnostics=(
            *_of_blocks(is_free, blocks, is_searched=not options.free),
            _unexplained(model, estimate, quiet),
            *([] if false_alarms is None else [_of_false_alarms(false_alarms)]),
            *forces_at_limits(logs),
            *of_motion,
            *omission_diagnostics(model.mechanism),
        ),
        provenance=provenance(
            options={
                "observer": options.observer,
                "bandwidth": options.bandwidth,
                "alarms": options.alarms,
                "free": options.free,
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
        noise=_root_mean_square(estimate.force[quiet]),
        offset=estimate.force[quiet].mean(axis=0),
        wrench_noise=_root_mean_square(wrench[quiet]),
        free=_as_stretches(estimate, quiet),
        free_is_searched=not options.free,
        free_duration=float(quiet.sum() * estimate.period),
        contacts=contacts,
        false_alarms=false_alarms,
    )


def _root_mean_square(values: np.ndarray) -> np.ndarray:
    """Return the root mean square of every column."""
    return np.sqrt(np.mean(np.square(values), axis=0))


def _free_blocks(estimate: _Estimate, blocks: Blocks, options: ExternalWrenchOptions) -> np.ndarray:
    """Return which blocks hold no contact: those within the named stretches, or found from the estimates.

    Raises:
        InputError: no block lies within the named stretches.
    """
    if not options.free:
        return blocks_without_contact(blocks)
    starts = estimate.time[0] + blocks.duration * np.arange(len(blocks.largest))
    is_free = np.zeros(len(starts), dtype=bool)
    for begin, end in options.free:
        is_free |= (starts >= begin - 0.5 * estimate.period) & (
            starts + blocks.duration <= end + estimate.period
        )
    if not is_free.any():
        what = f"no {blocks.duration:.3g} s of the log, {estimate.time[0]:.4g} to {estimate.time[-1]:.4g} s, lie within"
        raise InputError.of(
            "free", f"{what} the named stretches", "name longer stretches of this log"
        )
    return is_free


def _as_stretches(estimate: _Estimate, quiet: np.ndarray) -> tuple[tuple[float, float], ...]:
    """Return start and end, s, of the stretches without contact."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], quiet, [False]]).astype(int)))
    return tuple(
        (float(estimate.time[first]), float(estimate.time[last - 1]))
        for first, last in zip(edges[::2], edges[1::2], strict=True)
    )


def _contact(
    estimate: _Estimate, wrench: np.ndarray, limits: np.ndarray, first: int, last: int
) -> ContactInterval:
    """Return the contact between two samples."""
    shares = (np.abs(estimate.force[first : last + 1]) / limits).max(axis=1)
    worst = first + int(shares.argmax())
    return ContactInterval(
        start=float(estimate.time[first]),
        end=float(estimate.time[last]),
        time=float(estimate.time[worst]),
        force=estimate.force[worst],
        wrench=wrench[worst],
    )


def _of_blocks(is_free: np.ndarray, blocks: Blocks, *, is_searched: bool) -> Iterator[Diagnostic]:
    """Yield how much of the log is without contact."""
    yield diagnostic(
        f"stretches of {blocks.duration:.3g} s without contact",
        is_free.sum(),
        at_least=float(FEWEST_BLOCKS),
        advice="the threshold is extrapolated from few: record longer without contact",
    )
    if is_searched:
        yield diagnostic(
            "share of the log that is taken as contact",
            1.0 - is_free.mean(),
            at_most=MOST_CONTACT,
            advice="stretches without contact cannot be found from the log itself: name them (free)",
        )


def _unexplained(model: Model, estimate: _Estimate, quiet: np.ndarray) -> Diagnostic:
    """Return the share of the forces without contact that the model does not explain; the largest of both units."""
    is_turning = np.array([unit == "rad/s" for unit in model.platform.ports.velocity.units])
    shares = []
    for alike in (is_turning, ~is_turning):
        needed = float(np.linalg.norm(estimate.needed[quiet][:, alike]))
        if needed > 0.0:
            shares.append(float(np.linalg.norm(estimate.force[quiet][:, alike])) / needed)
    return diagnostic(
        "share of the forces without contact that the model does not explain",
        max(shares, default=None),
        at_most=MOST_UNEXPLAINED,
        advice="identify masses and friction of this machine first, and check signs and units of the forces",
    )


def _of_false_alarms(alarms: FalseAlarms) -> Diagnostic:
    """Return the probability of at least as many false alarms at the rate that the threshold allows."""
    return diagnostic(
        f"probability of {alarms.alarms} false alarms in {alarms.duration:.4g} s of the free log",
        alarms.probability,
        at_least=LEAST_PROBABILITY,
        advice=f"{alarms.per_hour:.3g} an hour: take a threshold from a longer log without contact that moves alike",
    )


def of_bad_samples(problems: Sequence[Problem]) -> Iterator[Diagnostic]:
    """Yield each channel with spikes, drop-outs or stretches that stand still: it makes the result doubtful."""
    for problem in problems:
        yield diagnostic(
            f"bad samples of {problem.where}",
            1.0,
            at_most=0.0,
            advice=f"{problem.what}: {problem.remedy}",
        )


def forces_at_limits(logs: list[MeasuredLog]) -> Iterator[Diagnostic]:
    """Yield forces that a limit holds."""
    for entry in logs:
        for name, count in left_out_counts(entry.log).items():
            yield diagnostic(
                f"{_prefix(entry, logs)}samples of force.{name} at its limit",
                count,
                at_most=0.0,
                advice="the drive gives another force than the log states: estimates there are wrong",
            )


def _beyond_stops(model: Model, logs: list[MeasuredLog]) -> tuple[Diagnostic, ...]:
    """Return motions beyond the stops of the machine file."""
    return tuple(
        replace(item, name=f"{_prefix(entry, logs)}{item.name}")
        for entry in logs
        for item in motion_limits(model, entry.log)
    )


def _prefix(log: MeasuredLog, logs: list[MeasuredLog]) -> str:
    """Return the name of a log for messages, where there are several."""
    return "" if len(logs) == 1 else f"{log.name}: "
