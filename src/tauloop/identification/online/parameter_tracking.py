"""Tracking of payload and friction during a motion, by a recursive fit from a saved fit.

The saved fit of `tl.identify` contains base parameters with their covariance. Friction parameters
change slowly around their values, the payload at the tool changes quickly, and all other parameters
are constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tauloop.common.datasets import OVER_TIME, channels
from tauloop.common.errors import IdentificationError, InputError, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED, in_json, json_keys, records
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, provenance
from tauloop.equations.values import BODY_SUFFIXES
from tauloop.identification.machine_result import MachineIdentification
from tauloop.identification.online.causal_rows import CausalFilters, CausalRows, UpdateRows
from tauloop.identification.online.external_wrench import (
    bad_sample_diagnostics,
    force_limit_diagnostics,
)
from tauloop.identification.online.recursive_fit import RecursiveFit, Wander
from tauloop.identification.options import LogSource, PreparationOptions
from tauloop.identification.parameters.base_estimates import BaseEstimates
from tauloop.identification.preparation.channels import less_known_forces, without_saturation
from tauloop.identification.preparation.measured import recorded
from tauloop.identification.preparation.measured_log import MeasuredLog
from tauloop.identification.preparation.repairs import repairs
from tauloop.logs import sample_period, samples
from tauloop.logs.checks.bad_samples import without_bad_samples
from tauloop.logs.log import log_of
from tauloop.logs.matching import channel_problems
from tauloop.mechanism.description import units
from tauloop.mechanism.model import omission_diagnostics
from tauloop.mechanism.poses import placement_pose
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled
from tauloop.simulation.controllers.laws import read_bandwidth

if TYPE_CHECKING:
    import xarray as xr

#: Name of the payload among the parameters of a tracker.
PAYLOAD_PARAMETER = "payload"
#: Suffixes of the names of friction parameters.
FRICTION_SUFFIXES = (".viscous", ".coulomb", ".coulomb_asymmetry", ".stribeck", ".offset")
#: Number of samples that are filtered at a time.
SAMPLES_PER_PIECE = 8192
#: Options that are stored in the provenance of a track.
RECORDED_OPTIONS = (
    "max_payload",
    "payload_time",
    "friction_change",
    "friction_time",
    "bandwidth",
    "smoothing",
    "interval",
)
#: Half the width of a 95 % interval of a normal distribution, in standard deviations.
NORMAL_95 = 1.959964
#: Largest accepted RMS misfit of the updates, in standard deviations of the noise.
MAX_MISFIT = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackOptions(Options):
    """Options of the tracking: changes of parameters, filters and updates.

    Attributes:
        max_payload: largest mass at the tool, such as '2 kg'; 0 to track no payload.
        payload_time: time in which the payload can change by this mass.
        friction_change: largest change of a friction parameter, as a fraction of its value; 0 for
            constant friction.
        friction_time: time in which friction can change by this fraction.
        bandwidth: bandwidth of the filters of positions and forces, such as 100 (rad/s) or '20 Hz'.
        smoothing: bandwidth of the filters of the regression rows.
        interval: time between two updates.
        standstill: fraction of an actuator's largest speed in the log below which it is at rest.
        noise: standard deviation of the residual of each motor's force, by name; by default that of
            the saved fit.
        fill_gaps: maximum number of consecutive missing samples that are interpolated; the result
            reports the number of interpolated samples.
        resample: resample logs with nonuniform time stamps to uniform sampling.

    Examples:
        >>> import tauloop as tl
        >>> tl.TrackOptions(max_payload=2.0).max_payload
        2.0
    """

    max_payload: float = option(0.0, metavar="MASS", least=0.0, unit=units.MASS)
    payload_time: float = option(1.0, metavar="TIME", above=0.0, unit=units.TIME)
    friction_change: float = option(0.3, least=0.0)
    friction_time: float = option(60.0, metavar="TIME", above=0.0, unit=units.TIME)
    bandwidth: float = option(250.0, read=read_bandwidth, metavar="FREQUENCY", above=0.0)
    smoothing: float = option(60.0, read=read_bandwidth, metavar="FREQUENCY", above=0.0)
    interval: float = option(0.02, metavar="TIME", above=0.0, unit=units.TIME)
    standstill: float = option(0.02, least=0.0, below=1.0)
    noise: Mapping[str, float] = option(factory=dict, flag="", above=0.0, unit=units.FORCES)
    fill_gaps: int | None = option(None, least=1)
    resample: bool = False

    def _note_mismatches(self, problems: Problems) -> None:
        """Add a problem if nothing is tracked."""
        if not self.max_payload and not self.friction_change:
            problems.add(
                "max_payload",
                "max_payload and friction_change are both 0, so nothing is tracked",
                "give a largest payload, such as 2 kg, or a largest change of friction",
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrackerStart:
    """The initial state of a tracker.

    Attributes:
        names: names of the n parameters x: representatives of base parameters, and the payload.
        parameter_units: units of the parameters.
        columns: matrix C (n_pi, n): the columns for x are Y C, with the regressor Y.
        offset: (n_pi,) values of known parameters.
        values: (n,) values of x before the first sample.
        covariance: (n, n) covariance of x before the first sample.
        wander: random walks of the tracked parameters, by name.
        noise: (n_u,) standard deviation of each actuator's force.
    """

    names: tuple[str, ...]
    parameter_units: tuple[str, ...]
    columns: np.ndarray
    offset: np.ndarray
    values: np.ndarray
    covariance: np.ndarray
    wander: Mapping[str, Wander]
    noise: tuple[float, ...]

    def fit(self) -> RecursiveFit:
        """Return the recursive fit before the first sample."""
        return RecursiveFit(
            self.names,
            noise=self.noise,
            values=self.values,
            covariance=self.covariance,
            wander=self.wander,
        )


def _duration(time: np.ndarray) -> float:
    """Return the time between the first and the last update, s."""
    return float(time[-1] - time[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterTrack(Result):
    """Tracked parameters over the time of a log.

    Attributes:
        model: the machine.
        names: names of the n tracked parameters.
        parameter_units: units of the tracked parameters.
        time: (K,) times of the updates, s. The estimates describe the machine at times that are
            earlier by `filters.delay`.
        estimates: (K, n) values of the parameters, SI.
        deviations: (K, n) standard deviations of the parameters, SI.
        frozen: (K, n) True for parameters that are frozen because they are not excited.
        filters: filters of the samples.
        final: values of all parameters of the fit at the end, by name.
    """

    model: Model = field(repr=False, metadata=json_keys(machine="mechanism.name"))
    names: tuple[str, ...] = field(metadata=OMITTED)
    parameter_units: tuple[str, ...] = field(metadata=OMITTED)
    time: np.ndarray = field(metadata=json_keys("duration_s", summary=_duration) | OVER_TIME)
    estimates: np.ndarray = field(
        metadata=OMITTED | channels("time", names="names", units="parameter_units", name="estimate")
    )
    deviations: np.ndarray = field(
        metadata=OMITTED
        | channels("time", names="names", units="parameter_units", name="deviation")
    )
    frozen: np.ndarray = field(metadata=OMITTED)
    filters: CausalFilters = field(metadata=json_keys(delay_s="delay"))
    final: Mapping[str, float] = field(metadata=json_keys("parameters"))

    def log(self) -> xr.Dataset:
        """Return estimates and deviations over time as a log."""
        return log_of(self, "estimate", "deviation")

    def of(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return estimates and standard deviations (K,) of one parameter."""
        InputError.raise_if_any(unknown_names([name], self.names, "{!r} is not tracked", "name"))
        index = self.names.index(name)
        return self.estimates[:, index], self.deviations[:, index]

    @property
    @in_json()
    def tracked(self) -> list[dict[str, Any]]:
        """The tracked parameters at the end, with 95 % intervals."""
        value, deviation = self.estimates[-1], self.deviations[-1]
        half_widths = NORMAL_95 * np.outer(deviation, [-1.0, 1.0])
        return records(
            name=self.names,
            unit=self.parameter_units,
            value=value,
            interval_95=value[:, None] + half_widths,
            is_frozen=self.frozen[-1],
        )


def payload_column(model: Model) -> np.ndarray:
    """Return the inertial parameters (n_pi,) of a point mass of 1 kg at the tool.

    These parameters are added to the inertial parameters of the platform's body.

    Raises:
        InputError: the body has no inertial parameters.
    """
    platform = model.mechanism.platform
    point = placement_pose(model.mechanism, platform.tool).position
    inertia = point @ point * np.eye(3) - np.outer(point, point)
    values = [1.0, *point, *inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]]
    names = [parameter.name for parameter in model.parameters]
    column = np.zeros(len(names))
    for suffix, value in zip(BODY_SUFFIXES, values, strict=True):
        name = f"{platform.body}.{suffix}"
        if name in names:
            column[names.index(name)] = value
    if not column.any():
        raise InputError.of(
            "max_payload",
            f"the platform's body {platform.body} has no inertial parameters",
            "track only friction, with max_payload 0",
        )
    return column


def tracker_start(
    model: Model, fit: BaseEstimates | MachineIdentification | str | Path, options: TrackOptions
) -> TrackerStart:
    """Return the initial state of a tracker.

    Raises:
        InputError: the fit belongs to another machine, its unknowns were parameters of the machine
            file, or the actuators are redundant.
    """
    if model.assembly.is_redundant:
        raise InputError.of(
            "machine",
            "the actuators are redundant: every equation contains the forces of several drives",
            "track a machine with equal numbers of actuators and degrees of freedom",
        )
    saved = _saved_estimates(fit)
    names = [parameter.name for parameter in model.parameters]
    actuators = [actuator.name for actuator in model.mechanism.actuators]
    problems = Problems(
        unknown_names(
            saved.representatives, names, "{!r} is not a parameter of this machine", "fit"
        )
    )
    problems += unknown_names(saved.known, names, "{!r} is not a parameter of this machine", "fit")
    noise = {**saved.noise, **options.noise}
    problems += unknown_names(options.noise, actuators, "{!r} is not an actuator", "noise")
    for name in actuators:
        if not noise.get(name, 0.0) > 0.0:
            problems.add(
                "noise",
                f"the noise of the force of {name} is not known",
                "fit a log with the forces of all actuators, or give `noise`",
            )
    InputError.raise_if_any(problems)
    selection = np.zeros((len(names), len(saved.representatives)))
    for k, name in enumerate(saved.representatives):
        selection[names.index(name), k] = 1.0
    offset = np.zeros(len(names))
    for name, value in saved.known.items():
        offset[names.index(name)] = value
    tracked = list(saved.representatives)
    wander = {}
    parameter_units = [model.parameters[names.index(name)].unit for name in tracked]
    values, covariance = saved.values, saved.covariance
    for name, value, variance in zip(tracked, values, np.diag(covariance), strict=True):
        change = options.friction_change * max(abs(float(value)), float(np.sqrt(variance)))
        if name.endswith(FRICTION_SUFFIXES) and change > 0.0:
            max_deviation = float(np.hypot(change, np.sqrt(variance)))
            rate = change / np.sqrt(options.friction_time)
            wander[name] = Wander(rate=rate, range=max_deviation)
    if options.max_payload:
        selection = np.column_stack([selection, payload_column(model)])
        tracked.append(PAYLOAD_PARAMETER)
        parameter_units.append("kg")
        values = np.append(values, 0.0)
        covariance = np.pad(covariance, (0, 1))
        covariance[-1, -1] = options.max_payload**2
        wander[PAYLOAD_PARAMETER] = Wander(
            rate=options.max_payload / np.sqrt(options.payload_time), range=options.max_payload
        )
    if tuple(model.actuators.ports.position.columns) != tuple(actuators):
        raise InputError.of(
            "machine",
            "the positions of the actuators do not determine the motion",
            "track a machine with equal numbers of actuators and degrees of freedom",
        )
    return TrackerStart(
        names=tuple(tracked),
        parameter_units=tuple(parameter_units),
        columns=selection,
        offset=offset,
        values=values,
        covariance=covariance,
        wander=wander,
        noise=tuple(noise[name] for name in actuators),
    )


def _saved_estimates(fit: BaseEstimates | MachineIdentification | str | Path) -> BaseEstimates:
    """Return the saved fit, from a file or from memory.

    Raises:
        InputError: the fit does not contain the noise and the columns of the regressor, or it
            identified gains.
    """
    if isinstance(fit, str | Path):
        saved = BaseEstimates.read(Path(fit))
    else:
        saved = fit if isinstance(fit, BaseEstimates) else BaseEstimates.of(fit)
    if not saved.representatives or not saved.noise:
        raise InputError.of(
            "fit",
            "does not contain the columns of the regressor, or the noise",
            "give the result of tl.identify, or its JSON file",
        )
    if saved.has_gains:
        raise InputError.of(
            "fit",
            "contains identified gains of the drives, but the forces of this log are not scaled by them",
            "give forces in N or N m, and fit them without --gains",
        )
    return saved


@keywords(TrackOptions)
@solving(IdentificationError)
def track_parameters(
    machine: MachineSource,
    log: LogSource,
    fit: BaseEstimates | MachineIdentification | str | Path,
    options: TrackOptions | None = None,
    *,
    progress: Progress | None = None,
) -> ParameterTrack:
    """Track payload and friction along a log, as a controller would during the motion.

    Samples pass causal filters (`tauloop.identification.online.CausalFilters`) and give rows Y x =
    f of the base parameters x and the payload. A recursive fit (`RecursiveFit`) starts from the
    saved fit with its covariance. Each tracked parameter changes at its own rate; a parameter that
    is not excited is frozen.

    Args:
        machine: the machine of the saved fit.
        log: positions and forces of all actuators.
        fit: result of `identify`, or its JSON file.
        options: tracked parameters and their rates of change.
        progress: called with the completed and the total number of steps.

    Returns:
        Payload and friction over time, with standard deviations.

    Raises:
        InputError: the fit belongs to another machine, or the actuators are redundant.
        LogError: the log is damaged or lacks channels.
        PoseError: the log leaves the workspace of the machine.

    Examples:
        >>> import numpy as np
        >>> import tauloop as tl
        >>> model = tl.Model(tl.load("four_bar"))
        >>> time = np.arange(0.0, 8.0, 0.002)
        >>> angle = np.pi * np.sin(2.0 * time) + 0.5 * np.sin(7.0 * time)
        >>> speed = 2.0 * np.pi * np.cos(2.0 * time) + 3.5 * np.cos(7.0 * time)
        >>> rate = -4.0 * np.pi * np.sin(2.0 * time) - 24.5 * np.sin(7.0 * time)
        >>> motion = angle[:, None], speed[:, None], rate[:, None]
        >>> forces = model.actuators.inverse_dynamics(*motion).force
        >>> sensors = tl.logs.Sensors(resolution=[1e-5], force_noise=[1e-2])
        >>> rng = np.random.default_rng(1)
        >>> log = tl.logs.measure(time, motion[0], forces, ["motor"], ["rad"], ["N m"], sensors, rng)
        >>> saved = tl.identify(model, log)
        >>> track = tl.track_parameters(model, log, saved)
        >>> track.status.value, track.names
        ('ok', ('crank_pin.viscous', 'crank_pin.coulomb'))
    """
    options = options or TrackOptions()
    model = modeled(machine)
    start = tracker_start(model, fit, options)
    entry = _recorded_log(model, log, options)
    _, bad = without_bad_samples(entry.log)
    port = model.actuators.ports.position
    position = samples(entry.log, "position", port.columns)
    force = samples(entry.log, "force", [actuator.name for actuator in model.mechanism.actuators])
    filters = causal_filters(sample_period(entry.log), position, options)
    stages = Stages(progress, -(-len(position) // SAMPLES_PER_PIECE))
    rows = CausalRows(model, filters, start.columns, start.offset)
    fitted = start.fit()
    tracked = [start.names.index(name) for name in fitted.tracked]
    history = _UpdateHistory()
    for begin in stages.over(range(0, len(position), SAMPLES_PER_PIECE)):
        piece = slice(begin, begin + SAMPLES_PER_PIECE)
        history.update(fitted, rows(position[piece], force[piece]), tracked, filters)
    if not history.samples:
        raise InputError.of(
            "log",
            f"the {len(position)} samples are too few for one update",
            "record a longer log, or shorten the interval",
        )
    return ParameterTrack(
        diagnostics=(
            diagnostic(
                "misfit of the updates, in standard deviations of the noise",
                history.misfit,
                at_most=MAX_MISFIT,
                advice="the saved fit does not match this log: identify the machine again, or give the noise",
            ),
            *bad_sample_diagnostics(bad),
            *force_limit_diagnostics([entry]),
            *omission_diagnostics(model.mechanism),
        ),
        provenance=provenance(
            options={name: getattr(options, name) for name in RECORDED_OPTIONS},
            inputs={"machine": model.mechanism.name, "log": entry.name, "samples": len(position)},
            packages=("numpy", "casadi", "scipy"),
        ),
        model=model,
        names=fitted.tracked,
        parameter_units=tuple(start.parameter_units[k] for k in tracked),
        time=np.asarray(entry.log.time)[history.samples],
        estimates=np.array(history.estimates),
        deviations=np.array(history.deviations),
        frozen=np.array(history.frozen),
        filters=filters,
        final=dict(zip(start.names, fitted.values.tolist(), strict=True)),
    )


def _recorded_log(model: Model, log: LogSource, options: TrackOptions) -> MeasuredLog:
    """Return the log without saturated samples and known forces.

    Raises:
        InputError: the log lacks channels, or they have wrong units.
    """
    repaired = repairs(
        model, PreparationOptions(fill_gaps=options.fill_gaps, resample=options.resample)
    )
    entry = recorded(log, "log", None, repaired)
    (entry,), _ = less_known_forces(without_saturation(model, [entry]))
    port = model.actuators.ports.position
    force_units = dict(zip(*model.output_ports("actuators"), strict=True))
    position_units = dict(zip(port.columns, port.units, strict=True))
    InputError.raise_if_any(
        channel_problems(entry.log, {"position": position_units, "force": force_units})
    )
    return entry


class _UpdateHistory:
    """Results of a recursive fit after each update.

    Attributes:
        samples: index of the last sample of each update.
        estimates, deviations: values and standard deviations of the tracked parameters.
        frozen: True for tracked parameters that are frozen.
    """

    def __init__(self) -> None:
        self.samples: list[int] = []
        self.estimates: list[np.ndarray] = []
        self.deviations: list[np.ndarray] = []
        self.frozen: list[np.ndarray] = []
        self._misfits: list[np.ndarray] = []

    def update(
        self, fitted: RecursiveFit, updates: UpdateRows, tracked: list[int], filters: CausalFilters
    ) -> None:
        """Update the fit with each row of a piece of the log, and store the results."""
        elapsed = filters.interval * filters.period
        for sample, Y, f, is_used in zip(
            updates.samples, updates.regressor, updates.force, updates.counts, strict=True
        ):
            fitted.update(Y, f, elapsed, is_used)
            values = fitted.values
            self.samples.append(sample)
            self.estimates.append(values[tracked])
            self.deviations.append(fitted.tracked_deviations)
            self.frozen.append(fitted.is_frozen)
            self._misfits.append((f - Y @ values)[is_used] * fitted.weights[is_used])

    @property
    def misfit(self) -> float | None:
        """RMS of the residuals, in standard deviations; None if there are no residuals."""
        misfits = np.concatenate(self._misfits)
        return float(np.sqrt(np.mean(np.square(misfits)))) if len(misfits) else None


def causal_filters(period: float, position: np.ndarray, options: TrackOptions) -> CausalFilters:
    """Return the filters for a log with the motors' positions (N, n)."""
    speed = np.abs(np.diff(position, axis=0)).max(axis=0) / period
    return CausalFilters(
        period=period,
        motion=options.bandwidth,
        rows=options.smoothing,
        interval=max(1, round(options.interval / period)),
        standstill=tuple((options.standstill * speed).tolist()),
    )
