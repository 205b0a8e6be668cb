"""The two-run method: a structure's forces, from a run with it and a run of the actuators alone at the same motion."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np
import scipy.fft

from tauloop.common.datasets import Variable, rows, time_axis
from tauloop.common.errors import IdentificationError, InputError, LogError, Problem, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, provenance
from tauloop.identification.preparation.periods import FORCE_NOISE, average_periods
from tauloop.logs import channels, read_log, sample_period, samples, units
from tauloop.logs.log import TIME, as_signals, build_log, port_channels
from tauloop.mechanism.description.units import TIME as DURATION
from tauloop.mechanism.suggestions import listing

if TYPE_CHECKING:
    import xarray as xr

#: Quantities of the result's log beside position and force: what was measured, and the actuators'
#: own part of it.
CONNECTED, OWN = "connected_force", "own_force"
#: Quantities of the connected run that the result keeps.
MOTION = ("position", "velocity")
#: Sampling periods of the two runs may differ by this share.
SAME_RATE = 1e-6
#: Gauss-Newton steps for the part of the delay below one sample; the error falls quadratically.
STEPS = 5
#: Samples by which a record may be read beyond its ends: rounding of a delay.
EDGE = 1e-6
#: Runs whose positions differ by more than this share of the stroke (RMS) did not move alike, and
#: are refused.
UNLIKE = 0.05
#: Above this share the difference of the motions may show in the difference of the forces.
DOUBTFUL = 0.005
#: Least share of the connected run that the disconnected one must cover after alignment.
COVERED = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TwoRuns(Result):
    """Forces of the structure alone.

    Attributes:
        log: motion of the connected run (all channels), and on each channel that has a force in
            both runs: the structure's force, the connected one and the actuator's own (N or N m).
        delay: by how much the disconnected run is late, s after its first sample; found from the
            positions.
        apart: RMS difference of both runs' positions after alignment, by channel, m or rad;
            constant offsets left out.
        noise: standard deviation of one sample of the structure's force, by channel: root of the
            sum of the variances of both averages. Empty where no period was given, since nothing
            tells noise from force then.
        removed: RMS of the actuator's own force over that of the connected force, means left out,
            by channel.
        dropped: columns of the connected run that the result has not, beside forces.
        unmatched: channels whose force only one of the runs has; the result has none of them.
        periods: averaged in the connected and in the disconnected run.
    """

    log: xr.Dataset = field(metadata=OMITTED)
    delay: float
    apart: Mapping[str, float]
    noise: Mapping[str, float]
    removed: Mapping[str, float]
    dropped: tuple[str, ...]
    unmatched: tuple[str, ...]
    periods: tuple[int, int]

    def variables(self) -> Iterator[Variable]:
        """The channels of the log over time; what is known of each force over `channel`."""
        signals = as_signals(self.log)
        yield time_axis(signals.time)
        for channel in signals.channels:
            yield Variable(
                name=channel.name, values=channel.values, over=(TIME,), unit=channel.unit
            )
        yield from rows("channel", self.removed, removed=list(self.removed.values()))

    def __str__(self) -> str:
        shares = ", ".join(f"{name} {share:.0%}" for name, share in self.removed.items())
        return f"the actuators' own forces are subtracted, of a run {self.delay:.4g} s late: {shares} of the forces"

    def log_with_noise(self) -> xr.Dataset:
        """The log, and beside every force of known noise a channel that holds it: `identify` weights periods by it."""
        log = self.log
        for name, noise in self.noise.items():
            attributes = log[f"force.{name}"].attrs | {"quantity": FORCE_NOISE}
            log = log.assign(
                {f"{FORCE_NOISE}.{name}": ((TIME,), np.full(len(log[TIME]), noise), attributes)}
            )
        return log


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtractionOptions(Options):
    """How two runs are aligned.

    Attributes:
        period: period of the motion, such as 10s: averages both runs, which are in periodic steady
            state from their first sample on, and shows their noise; the log is one period.
        largest_delay: delay between the runs that is searched, s, either way.

    Examples:
        >>> import tauloop as tl
        >>> tl.SubtractionOptions(period=0.5).period
        0.5
    """

    period: float | None = option(None, metavar="TIME", unit=DURATION)
    largest_delay: float = option(2.0, least=0.0, flag="--max-delay", metavar="TIME", unit=DURATION)


@keywords(SubtractionOptions)
@solving(IdentificationError)
def subtract_actuator_forces(
    connected: str | Path | xr.Dataset,
    disconnected: str | Path | xr.Dataset,
    options: SubtractionOptions | None = None,
    *,
    progress: Progress | None = None,
) -> TwoRuns:
    """Subtract the actuators' own forces, sample by sample: F_structure(t) = F_connected(t) - F_disconnected(t + d).

    The delay d minimises the positions' difference: cross-correlation to the sample, then
    Gauss-Newton steps. With a period, both runs are averaged over their periods first, and shifted
    by Fourier series, which leaves the noise as it is; without one, the disconnected run is
    interpolated by a cubic spline. Where friction jumps from one sample to the next no
    interpolation helps: start both runs on the same clock, or sample faster.

    What goes is all that depends on the actuators' motion alone: friction, hysteresis, drive and
    cart inertia, cogging. What stays is what the structure adds, also to friction (load) and to the
    frame's vibration.

    Args:
        connected: log, or its file: positions of all actuators, forces of some.
        disconnected: the same motion with the structure taken off; positions and forces of those
            actuators.
        options: how they are aligned.
        progress: called with what is done and what there is to do.

    Raises:
        LogError: no force in both runs, other units, or motions that are not alike.
        InputError: other sampling rates, or runs too short for the period.
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
    period, largest_delay, stages = options.period, options.largest_delay, Stages(progress, 3)
    _require_logs({"connected": connected, "disconnected": disconnected})
    connected, disconnected = (
        read_log(log) if isinstance(log, str | Path) else log
        for log in stages.over((connected, disconnected))
    )
    names, unmatched = _common(connected, disconnected)
    step = sample_period(connected)
    if abs(sample_period(disconnected) / step - 1.0) > SAME_RATE:
        what = f"is sampled every {sample_period(disconnected):.6g} s, the connected run every {step:.6g} s"
        raise InputError.of("disconnected", what, "record both runs at one rate")
    noise: dict[str, float] = {}
    periods = (1, 1)
    if period is not None:
        first, second = average_periods(connected, period), average_periods(disconnected, period)
        pairs = {
            name: (run.deviation(f"force.{name}") for run in (first, second)) for name in names
        }
        noise = {name: math.hypot(*pair) for name, pair in pairs.items()}
        connected, disconnected, periods = first.log, second.log, (first.periods, second.periods)
    positions = (samples(connected, "position", names), samples(disconnected, "position", names))
    stroke = np.ptp(positions[0], axis=0)
    moving = stroke > 0.0
    if not moving.any():
        raise LogError.of("connected", "nothing moves", "excite the actuators")
    scaled = [x[:, moving] / stroke[moving] for x in positions]
    kind = _Record if period is None else _Periodic
    signal = kind(scaled[1])
    shift = _delay(scaled[0], signal, min(largest_delay / step, len(scaled[0]) / 2))
    covered = signal.covered(len(scaled[0]), shift)
    if len(covered) < COVERED * len(scaled[0]):
        what = f"covers {len(covered)} of {len(scaled[0])} samples of the connected run after alignment"
        raise LogError.of("disconnected", what, "record the whole motion in both runs")
    difference = scaled[0][covered] - signal.at(covered, shift)
    shares = np.zeros(len(names))
    shares[moving] = difference.std(axis=0)
    _require_alike(names, shares, shift * step)
    force = samples(connected, "force", names)[covered]
    own = kind(samples(disconnected, "force", names)).at(covered, shift)
    spread = np.maximum(force.std(axis=0), np.finfo(float).tiny)
    stages.done()
    return TwoRuns(
        log=_log(connected, names, covered, force, own),
        delay=float(shift * step),
        apart=dict(zip(names, (shares * stroke).tolist(), strict=True)),
        noise=noise,
        removed=dict(zip(names, (own.std(axis=0) / spread).tolist(), strict=True)),
        dropped=tuple(
            str(name)
            for name, array in connected.data_vars.items()
            if array.attrs["quantity"] not in (*MOTION, "force")
        ),
        unmatched=unmatched,
        periods=periods,
        diagnostics=(
            diagnostic(
                "difference of the two runs' motions, RMS over the stroke, largest of all actuators",
                shares.max(),
                at_most=DOUBTFUL,
                advice="the actuators' own forces belong to another motion: run both with the same references, slower",
            ),
        ),
        provenance=provenance(
            packages=("numpy", "scipy", "xarray"),
            options=asdict(options),
            inputs={
                "connected_samples": len(positions[0]),
                "disconnected_samples": len(positions[1]),
            },
        ),
    )


@final
class _Record:
    """Samples (N, n) of a record with two ends; cubic between them."""

    def __init__(self, values: np.ndarray) -> None:
        # slow to import, and `identify` needs none
        from scipy.interpolate import make_interp_spline

        self._values = values
        self._spline = make_interp_spline(np.arange(len(values)), values, k=3)
        self._slope = self._spline.derivative()

    def covered(self, count: int, shift: float) -> np.ndarray:
        """Which samples k of another run, `count` in all, have a place k + shift in this one."""
        k = np.arange(count)
        return k[(k + shift >= -EDGE) & (k + shift <= len(self._values) - 1 + EDGE)]

    def at(self, k: np.ndarray, shift: float) -> np.ndarray:
        """Values at k + shift."""
        return np.asarray(self._spline(k + shift))

    def slope(self, k: np.ndarray, shift: float) -> np.ndarray:
        """Derivatives there, per sample."""
        return np.asarray(self._slope(k + shift))

    def correlation(self, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whole shifts s, and the mean over k of other(k) this(k + s) without means, summed over channels."""
        import scipy.signal  # slow to import, and `identify` needs none

        this, other = (x - x.mean(axis=0) for x in (self._values, other))
        products = scipy.signal.fftconvolve(this, other[::-1], axes=0).sum(axis=1)
        shifts = scipy.signal.correlation_lags(len(this), len(other))
        together = np.minimum(len(other), len(this) - shifts) - np.maximum(0, -shifts)
        return shifts, products / together


@final
class _Periodic:
    """Samples (N, n) of one whole period; between them and beyond the ends its Fourier series."""

    def __init__(self, values: np.ndarray) -> None:
        self._count = len(values)
        self._spectrum = scipy.fft.rfft(values, axis=0)
        self._turn = 2j * np.pi * scipy.fft.rfftfreq(self._count)[:, None]

    def covered(self, count: int, shift: float) -> np.ndarray:
        """All samples of the other run."""
        return np.arange(count)

    def at(self, k: np.ndarray, shift: float) -> np.ndarray:
        return self._read(self._spectrum, k, shift)

    def slope(self, k: np.ndarray, shift: float) -> np.ndarray:
        return self._read(self._spectrum * self._turn, k, shift)

    def correlation(self, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        spectrum = self._spectrum * np.conj(scipy.fft.rfft(other, axis=0))
        spectrum[0] = 0.0
        circular = scipy.fft.irfft(spectrum, n=self._count, axis=0).sum(axis=1) / self._count
        shifts = np.arange(self._count) - self._count // 2
        return shifts, np.asarray(circular[shifts])

    def _read(self, spectrum: np.ndarray, k: np.ndarray, shift: float) -> np.ndarray:
        return np.asarray(
            scipy.fft.irfft(spectrum * np.exp(self._turn * shift), n=self._count, axis=0)[k]
        )


def _delay(first: np.ndarray, second: _Record | _Periodic, largest: float) -> float:
    """Shift s in samples for which second(k + s) is nearest to first(k), constant offsets left out."""
    shifts, products = second.correlation(first)
    searched = np.abs(shifts) <= largest
    shift = float(shifts[searched][np.argmax(products[searched])])
    for _ in range(STEPS):
        k = second.covered(len(first), shift)
        slope, difference = second.slope(k, shift), first[k] - second.at(k, shift)
        slope = slope - slope.mean(axis=0)
        shift += float(np.clip(np.sum(slope * difference) / np.sum(slope**2), -1.0, 1.0))
    return shift


def _common(
    connected: xr.Dataset, disconnected: xr.Dataset
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Channels with position and force in both runs, and those with a force in one only."""
    has = [
        set(channels(log, "force")) & set(channels(log, "position"))
        for log in (connected, disconnected)
    ]
    order = tuple(dict.fromkeys((*channels(connected, "force"), *channels(disconnected, "force"))))
    names = tuple(name for name in order if name in has[0] & has[1])
    if not names:
        raise LogError.of(
            "force",
            f"no channel has position and force in both runs: the connected one has {listing(sorted(has[0]))}"
            f", the disconnected one {listing(sorted(has[1]))}",
            "name the channels of both logs alike",
        )
    LogError.raise_if_any(
        Problem(
            f"{quantity}.{name}",
            f"is in {theirs[name]} in the disconnected run, in {ours[name]} in the connected one",
            "correct the unit of the column",
        )
        for quantity in ("position", "force")
        for ours, theirs in [(units(connected, quantity), units(disconnected, quantity))]
        for name in names
        if ours[name] != theirs[name]
    )
    return names, tuple(name for name in order if name not in names)


def _require_alike(names: tuple[str, ...], shares: np.ndarray, delay: float) -> None:
    LogError.raise_if_any(
        Problem(
            f"position.{name}",
            f"differs between the runs by {share:.1%} of its stroke (RMS, after a shift of {delay:.4g} s)",
            "run the same motion twice; where it starts later than searched, allow a larger delay",
        )
        for name, share in zip(names, shares.tolist(), strict=True)
        if share > UNLIKE
    )


def _log(
    connected: xr.Dataset,
    names: tuple[str, ...],
    covered: np.ndarray,
    force: np.ndarray,
    own: np.ndarray,
) -> xr.Dataset:
    """The log of the result; quantities other than motion and force are left out."""
    unit = units(connected, "force")
    measured = as_signals(connected).channels
    signals = [
        replace(item, values=item.values[covered]) for item in measured if item.quantity in MOTION
    ]
    for quantity, values in (("force", force - own), (CONNECTED, force), (OWN, own)):
        signals += port_channels(quantity, names, [unit[name] for name in names], values)
    return build_log(connected[TIME].to_numpy()[covered], signals)


def _require_logs(logs: Mapping[str, object]) -> None:
    """Refuse what is neither a log nor a path, by the names of the arguments."""
    InputError.raise_if_any(
        Problem(name, f"is of type {type(log).__name__}", "give a path or an xarray.Dataset")
        for name, log in logs.items()
        if not isinstance(log, str | Path) and not hasattr(log, "data_vars")
    )
