"""The two-run method: forces of a structure from a run with and a run without the structure.

Both runs have the same motion.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np
import scipy.fft

from tauloop.common.datasets import Variable, rows, time_axis
from tauloop.common.errors import (
    IdentificationError,
    InputError,
    LogError,
    Problem,
    Problems,
    solving,
)
from tauloop.common.keywords import keywords
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.identification.preparation.periods import FORCE_NOISE, PeriodAverage, average_periods
from tauloop.logs import channels, read_log, sample_period, samples, units
from tauloop.logs.log import TIME, as_signals, build_log, port_channels
from tauloop.mechanism.description.units import TIME as DURATION
from tauloop.mechanism.suggestions import listing

if TYPE_CHECKING:
    import xarray as xr

#: Quantity of the result's log: force of the connected run.
CONNECTED_FORCE = "connected_force"
#: Quantity of the result's log: force that the actuators need without the structure.
OWN_FORCE = "own_force"
#: Quantities of the connected run that the result's log contains.
MOTION_QUANTITIES = ("position", "velocity")
#: Largest relative difference of the sampling periods of the two runs.
PERIOD_TOLERANCE = 1e-6
#: Number of Gauss-Newton steps for the delay's fraction of a sample.
DELAY_STEPS = 5
#: Number of samples by which a record may be extrapolated, to allow for rounding of the delay.
EDGE_TOLERANCE = 1e-6
#: Runs whose positions differ by more than this fraction of the stroke (RMS) are rejected.
MAX_MOTION_DIFFERENCE = 0.05
#: The result is doubtful if positions differ by more than this fraction of the stroke (RMS),
#: because the forces then belong to different motions.
DOUBTFUL_MOTION_DIFFERENCE = 0.005
#: Smallest fraction of the connected run that the disconnected run must cover after alignment.
MIN_COVERED_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TwoRuns(Result):
    """Forces of the structure without the actuators' own forces.

    Attributes:
        log: motion of the connected run (all channels), and for each channel that has a force in
            both runs: the structure's force, the force of the connected run and the actuator's own
            force (N or N m).
        delay: delay of the disconnected run relative to the connected run, s, estimated from the
            positions.
        motion_mismatch: RMS difference of both runs' positions after alignment, without constant
            offsets, by channel, m or rad.
        noise: standard deviation of one sample of the structure's force, by channel: square root of
            the sum of the variances of both averages. Empty if no period was given, because then
            noise and force cannot be separated.
        removed: RMS of the actuator's own force divided by the RMS of the connected force, both
            without their means, by channel.
        dropped: columns of the connected run that the result does not contain, except forces.
        unmatched: channels whose force is in only one of the runs; the result does not contain
            them.
        periods: numbers of averaged periods of the connected and of the disconnected run.
    """

    log: xr.Dataset = field(metadata=OMITTED)
    delay: float
    motion_mismatch: Mapping[str, float]
    noise: Mapping[str, float]
    removed: Mapping[str, float]
    dropped: tuple[str, ...]
    unmatched: tuple[str, ...]
    periods: tuple[int, int]

    apart = old_attribute("apart", "motion_mismatch")

    def variables(self) -> Iterator[Variable]:
        """Yield the channels of the log over time, and `removed` over `channel`."""
        signals = as_signals(self.log)
        yield time_axis(signals.time)
        for channel in signals.channels:
            yield Variable(
                name=channel.name, values=channel.values, over=(TIME,), unit=channel.unit
            )
        yield from rows("channel", self.removed, removed=list(self.removed.values()))

    def __str__(self) -> str:
        fractions = ", ".join(f"{name} {share:.0%}" for name, share in self.removed.items())
        return (
            f"the actuators' own forces are subtracted ({fractions} of the forces), from a run with "
            f"a delay of {self.delay:.4g} s"
        )

    def log_with_noise(self) -> xr.Dataset:
        """Return the log with an additional channel for the known noise of every force.

        `identify` weights averaged periods with this noise.
        """
        log = self.log
        for name, noise in self.noise.items():
            attributes = log[f"force.{name}"].attrs | {"quantity": FORCE_NOISE}
            log = log.assign(
                {
                    f"{FORCE_NOISE}.{name}": (
                        (TIME,),
                        np.full(len(log[TIME]), noise),
                        attributes,
                    )
                }
            )
        return log


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtractionOptions(Options):
    """Options of the alignment of two runs.

    Attributes:
        period: period of the motion, such as 10s. Both runs are averaged over their periods, which
            also determines their noise; the log of the result is one period. The runs must be in
            periodic steady state from the first sample on.
        max_delay: largest delay between the runs, s; both directions are searched.

    Examples:
        >>> import tauloop as tl
        >>> tl.SubtractionOptions(period=0.5).period
        0.5
    """

    period: float | None = option(None, metavar="TIME", unit=DURATION)
    max_delay: float = option(2.0, least=0.0, metavar="TIME", unit=DURATION)


@keywords(SubtractionOptions)
@solving(IdentificationError)
def subtract_actuator_forces(
    connected: str | Path | xr.Dataset,
    disconnected: str | Path | xr.Dataset,
    options: SubtractionOptions | None = None,
    *,
    progress: Progress | None = None,
) -> TwoRuns:
    """Subtract the actuators' own forces from the forces of a run with the structure.

    For each sample, F_structure(t) = F_connected(t) - F_disconnected(t + d). The delay d minimizes
    the difference of the positions: cross-correlation finds the nearest sample, and Gauss-Newton
    steps find the fraction of a sample. With a period, both runs are first averaged over their
    periods. The average is then shifted by its Fourier series, which does not change its noise.
    Without a period, a cubic spline interpolates the disconnected run. If friction jumps from one
    sample to the next, no interpolation is accurate: start both runs on the same clock, or sample
    faster.

    The difference does not contain forces that depend only on the actuators' motion: friction,
    hysteresis, inertia of drives and carts, cogging. It contains all forces that the structure
    adds, including load-dependent friction and vibration of the frame.

    Args:
        connected: log, or its file, with positions of all actuators and forces of some actuators.
        disconnected: log, or its file, of the same motion without the structure, with positions and
            forces of the same actuators.
        options: options of the alignment.
        progress: called with the completed and the total number of steps.

    Returns:
        The log with the forces of the structure, and the agreement of both motions.

    Raises:
        LogError: no force is in both runs, units differ, or the motions differ.
        InputError: the sampling rates differ, or the runs are too short for the period.

    Source: Lyzell and Hovland, section 3.

    Examples:
        >>> import tauloop as tl
        >>> import numpy as np
        >>> model = tl.Model(tl.load("four_bar"))
        >>> time = np.linspace(0.0, 4.0, 801)
        >>> angle = np.pi * np.sin(2.0 * time) + 0.5 * np.sin(7.0 * time)
        >>> speed = 2.0 * np.pi * np.cos(2.0 * time) + 3.5 * np.cos(7.0 * time)
        >>> rate = -4.0 * np.pi * np.sin(2.0 * time) - 24.5 * np.sin(7.0 * time)
        >>> motion = angle[:, None], speed[:, None], rate[:, None]
        >>> own = 0.1 * np.sign(motion[1]) + 0.02 * motion[2]
        >>> whole = own + model.actuators.inverse_dynamics(*motion).force
        >>> sensors, rng = tl.logs.Sensors(resolution=[0.0], force_noise=[1e-3]), np.random.default_rng(1)
        >>> units = ["motor"], ["rad"], ["N m"], sensors, rng
        >>> connected, alone = (tl.logs.measure(time, motion[0], force, *units) for force in (whole, own))
        >>> runs = tl.subtract_actuator_forces(connected, alone)
        >>> runs.to_pandas().columns.tolist()
        ['position.motor', 'force.motor', 'connected_force.motor', 'own_force.motor']
    """
    options = options or SubtractionOptions()
    stages = Stages(progress, 3)
    _require_logs({"connected": connected, "disconnected": disconnected})
    connected, disconnected = (_as_log(log) for log in stages.over((connected, disconnected)))
    names, unmatched = _common(connected, disconnected)
    step = _common_period(connected, disconnected)
    noise: dict[str, float] = {}
    periods = (1, 1)
    if options.period is not None:
        first = average_periods(connected, options.period)
        second = average_periods(disconnected, options.period)
        noise = _noise_of_difference(first, second, names)
        connected, disconnected = first.log, second.log
        periods = (first.periods, second.periods)
    interpolation = _Record if options.period is None else _Periodic
    alignment = _aligned(
        samples(connected, "position", names),
        samples(disconnected, "position", names),
        interpolation,
        options.max_delay / step,
    )
    covered = alignment.covered
    shift = alignment.shift
    differences = alignment.difference
    _require_same_motion(names, differences, shift * step)
    force = samples(connected, "force", names)[covered]
    disconnected_force = samples(disconnected, "force", names)
    own_force = interpolation(disconnected_force).values_at(covered, shift)
    stages.done()
    return TwoRuns(
        log=_log(connected, names, covered, force, own_force),
        delay=float(shift * step),
        motion_mismatch=dict(zip(names, (differences * alignment.stroke).tolist(), strict=True)),
        noise=noise,
        removed=_own_force_fractions(names, force, own_force),
        dropped=_dropped(connected),
        unmatched=unmatched,
        periods=periods,
        diagnostics=(_motion_difference(differences),),
        provenance=provenance(
            packages=("numpy", "scipy", "xarray"),
            options=asdict(options),
            inputs={
                "connected_samples": len(connected[TIME]),
                "disconnected_samples": len(disconnected_force),
            },
        ),
    )


def _own_force_fractions(
    names: tuple[str, ...], force: np.ndarray, own_force: np.ndarray
) -> dict[str, float]:
    """Return the standard deviations of the own forces divided by those of the forces, by name."""
    deviations = np.maximum(force.std(axis=0), np.finfo(float).tiny)
    return dict(zip(names, (own_force.std(axis=0) / deviations).tolist(), strict=True))


def _as_log(source: str | Path | xr.Dataset) -> xr.Dataset:
    """Return a log, which is read if the source is a file."""
    return read_log(source) if isinstance(source, str | Path) else source


def _motion_difference(differences: np.ndarray) -> Diagnostic:
    """Return the diagnostic of RMS differences (n,) of the motions, as fractions of the strokes."""
    return diagnostic(
        "difference of the two runs' motions, RMS over the stroke, largest of all actuators",
        differences.max(),
        at_most=DOUBTFUL_MOTION_DIFFERENCE,
        advice="the actuators' own forces belong to another motion: repeat both runs with "
        "the same references, at a lower speed",
    )


def _common_period(connected: xr.Dataset, disconnected: xr.Dataset) -> float:
    """Return the sampling period of both runs, s.

    Raises:
        InputError: the runs have different sampling periods.
    """
    step = sample_period(connected)
    disconnected_step = sample_period(disconnected)
    if abs(disconnected_step / step - 1.0) > PERIOD_TOLERANCE:
        raise InputError.of(
            "disconnected",
            f"is sampled every {disconnected_step:.6g} s, but the connected run every {step:.6g} s",
            "record both runs at the same rate",
        )
    return step


def _noise_of_difference(
    first: PeriodAverage, second: PeriodAverage, names: tuple[str, ...]
) -> dict[str, float]:
    """Return the standard deviations of differences of averaged forces, by channel."""
    noise: dict[str, float] = {}
    for name in names:
        channel = f"force.{name}"
        noise[name] = math.hypot(first.deviation(channel), second.deviation(channel))
    return noise


@dataclass(frozen=True, slots=True, kw_only=True)
class _Alignment:
    """The shift that aligns the disconnected run with the connected run.

    Attributes:
        shift: shift of the disconnected run, in samples.
        covered: indices of the samples of the connected run that the disconnected run covers.
        stroke: (n,) range of each position of the connected run, m or rad.
        difference: (n,) RMS difference of the positions divided by the stroke, without constant
            offsets; zero for positions at rest.
    """

    shift: float
    covered: np.ndarray
    stroke: np.ndarray
    difference: np.ndarray


def _aligned(
    position: np.ndarray,
    disconnected_position: np.ndarray,
    interpolation: type[_Record | _Periodic],
    largest_shift: float,
) -> _Alignment:
    """Return the shift of the disconnected run for which the positions (N, n) differ least.

    Raises:
        LogError: no actuator moves, or the disconnected run covers too little of the connected run.
    """
    stroke = np.ptp(position, axis=0)
    moving = stroke > 0.0
    if not moving.any():
        raise LogError.of("connected", "no actuator moves", "excite the actuators")
    count = len(position)
    scaled = position[:, moving] / stroke[moving]
    signal = interpolation(disconnected_position[:, moving] / stroke[moving])
    shift = _delay(scaled, signal, min(largest_shift, count / 2))
    covered = signal.covered(count, shift)
    if len(covered) < MIN_COVERED_SHARE * count:
        raise LogError.of(
            "disconnected",
            f"covers {len(covered)} of {count} samples of the connected run after alignment",
            "record the whole motion in both runs",
        )
    difference = np.zeros(len(stroke))
    difference[moving] = (scaled[covered] - signal.values_at(covered, shift)).std(axis=0)
    return _Alignment(shift=shift, covered=covered, stroke=stroke, difference=difference)


def _dropped(connected: xr.Dataset) -> tuple[str, ...]:
    """Return the columns of the connected run, except forces, that the result does not contain."""
    return tuple(
        str(name)
        for name, array in connected.data_vars.items()
        if array.attrs["quantity"] not in (*MOTION_QUANTITIES, "force")
    )


@final
class _Record:
    """Samples (N, n) of a record of finite length, with cubic interpolation between them."""

    def __init__(self, values: np.ndarray) -> None:
        # SciPy's interpolation is slow to import, and `identify` does not need it.
        from scipy.interpolate import make_interp_spline

        self._values = values
        self._spline = make_interp_spline(np.arange(len(values)), values, k=3)
        self._slope = self._spline.derivative()

    def covered(self, count: int, shift: float) -> np.ndarray:
        """Return the samples k < `count` of another run for which this run contains k + shift."""
        k = np.arange(count)
        last = len(self._values) - 1
        return k[(k + shift >= -EDGE_TOLERANCE) & (k + shift <= last + EDGE_TOLERANCE)]

    def values_at(self, k: np.ndarray, shift: float) -> np.ndarray:
        """Return the values at k + shift."""
        return np.asarray(self._spline(k + shift))

    def slope_at(self, k: np.ndarray, shift: float) -> np.ndarray:
        """Return the derivatives at k + shift, per sample."""
        return np.asarray(self._slope(k + shift))

    def correlation(self, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return all integer shifts s, and for each the correlation of another run with this run.

        The correlation is the mean over k of other(k) this(k + s) after the means are subtracted,
        summed over channels.
        """
        # SciPy's signal processing is slow to import, and `identify` does not need it.
        import scipy.signal

        this = self._values - self._values.mean(axis=0)
        other = other - other.mean(axis=0)
        products = scipy.signal.fftconvolve(this, other[::-1], axes=0).sum(axis=1)
        shifts = scipy.signal.correlation_lags(len(this), len(other))
        overlap = np.minimum(len(other), len(this) - shifts) - np.maximum(0, -shifts)
        return shifts, products / overlap


@final
class _Periodic:
    """Samples (N, n) of one period, interpolated and continued by their Fourier series."""

    def __init__(self, values: np.ndarray) -> None:
        self._count = len(values)
        self._spectrum = scipy.fft.rfft(values, axis=0)
        self._i_omega = 2j * np.pi * scipy.fft.rfftfreq(self._count)[:, None]

    def covered(self, count: int, shift: float) -> np.ndarray:
        """Return all samples of the other run."""
        return np.arange(count)

    def values_at(self, k: np.ndarray, shift: float) -> np.ndarray:
        """Return the values at k + shift."""
        return self._shifted(self._spectrum, k, shift)

    def slope_at(self, k: np.ndarray, shift: float) -> np.ndarray:
        """Return the derivatives at k + shift, per sample."""
        return self._shifted(self._spectrum * self._i_omega, k, shift)

    def correlation(self, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the integer shifts of up to half a period, and the correlation for each."""
        spectrum = self._spectrum * np.conj(scipy.fft.rfft(other, axis=0))
        spectrum[0] = 0.0
        circular = scipy.fft.irfft(spectrum, n=self._count, axis=0).sum(axis=1) / self._count
        shifts = np.arange(self._count) - self._count // 2
        return shifts, np.asarray(circular[shifts])

    def _shifted(self, spectrum: np.ndarray, k: np.ndarray, shift: float) -> np.ndarray:
        """Return the signal of a spectrum at k + shift."""
        shifted = spectrum * np.exp(self._i_omega * shift)
        return np.asarray(scipy.fft.irfft(shifted, n=self._count, axis=0)[k])


def _delay(first: np.ndarray, second: _Record | _Periodic, largest: float) -> float:
    """Return the shift s, in samples, for which second(k + s) is closest to first(k).

    Constant offsets are ignored.
    """
    shifts, products = second.correlation(first)
    searched = np.abs(shifts) <= largest
    shift = float(shifts[searched][np.argmax(products[searched])])
    for _ in range(DELAY_STEPS):
        k = second.covered(len(first), shift)
        difference = first[k] - second.values_at(k, shift)
        slope = second.slope_at(k, shift)
        slope = slope - slope.mean(axis=0)
        shift += float(np.clip(np.sum(slope * difference) / np.sum(slope**2), -1.0, 1.0))
    return shift


def _common(
    connected: xr.Dataset, disconnected: xr.Dataset
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the channels with position and force in both runs, and other channels with a force.

    Raises:
        LogError: no channel is in both runs, or units differ.
    """
    in_connected = _complete_channels(connected)
    in_disconnected = _complete_channels(disconnected)
    with_force = tuple(
        dict.fromkeys((*channels(connected, "force"), *channels(disconnected, "force")))
    )
    names = tuple(name for name in with_force if name in in_connected & in_disconnected)
    if not names:
        raise LogError.of(
            "force",
            "no channel has position and force in both runs: the connected run has "
            f"{listing(sorted(in_connected))}, the disconnected run "
            f"{listing(sorted(in_disconnected))}",
            "use the same channel names in both logs",
        )
    problems = Problems()
    for quantity in ("position", "force"):
        connected_units = units(connected, quantity)
        disconnected_units = units(disconnected, quantity)
        for name in names:
            if connected_units[name] != disconnected_units[name]:
                problems.add(
                    f"{quantity}.{name}",
                    f"is in {disconnected_units[name]} in the disconnected run, but in "
                    f"{connected_units[name]} in the connected run",
                    "correct the unit of the column",
                )
    LogError.raise_if_any(problems)
    return names, tuple(name for name in with_force if name not in names)


def _complete_channels(log: xr.Dataset) -> set[str]:
    """Return the channels of a log that have position and force."""
    return set(channels(log, "force")) & set(channels(log, "position"))


def _require_same_motion(names: tuple[str, ...], differences: np.ndarray, delay: float) -> None:
    """Reject runs whose positions differ by too large a fraction of the stroke."""
    LogError.raise_if_any(
        Problem(
            f"position.{name}",
            f"differs between the runs by {difference:.1%} of its stroke (RMS, after a shift of "
            f"{delay:.4g} s)",
            "run the same motion twice, or allow a larger delay if one run starts much later",
        )
        for name, difference in zip(names, differences.tolist(), strict=True)
        if difference > MAX_MOTION_DIFFERENCE
    )


def _log(
    connected: xr.Dataset,
    names: tuple[str, ...],
    covered: np.ndarray,
    force: np.ndarray,
    own_force: np.ndarray,
) -> xr.Dataset:
    """Return the log of the result, with the quantities of motion and force."""
    all_units = units(connected, "force")
    force_units = [all_units[name] for name in names]
    signals = [
        replace(item, values=item.values[covered])
        for item in as_signals(connected).channels
        if item.quantity in MOTION_QUANTITIES
    ]
    signals += port_channels("force", names, force_units, force - own_force)
    signals += port_channels(CONNECTED_FORCE, names, force_units, force)
    signals += port_channels(OWN_FORCE, names, force_units, own_force)
    return build_log(connected[TIME].to_numpy()[covered], signals)


def _require_logs(logs: Mapping[str, object]) -> None:
    """Reject arguments that are neither a log nor a path."""
    InputError.raise_if_any(
        Problem(name, f"is of type {type(log).__name__}", "give a path or an xarray.Dataset")
        for name, log in logs.items()
        if not isinstance(log, str | Path) and not hasattr(log, "data_vars")
    )
