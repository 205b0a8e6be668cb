"""Trends in the residuals of a log: drift with time or heat, transmission compliance, clock drift.

Each trend is a column that the model lacks. Each output is treated separately. The regressor, a
constant and the derivative of the force (a delay) are projected out of both the forces and the
column (Frisch and Waugh 1933). The remaining column is then fitted to the remaining forces. The
standard deviation of the coefficient is the sandwich estimate over blocks of the log, so that
intermittent model errors are not mistaken for a trend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.errors import IdentificationError, Problem, solving
from tauloop.common.records import dataclass
from tauloop.identification.regression.data import RegressionData
from tauloop.logs.rates import MIN_SPECTRUM_SAMPLES, in_band

#: Number of blocks of a log.
BLOCKS = 12
#: Minimum number of blocks in which a significant trend has the same sign.
MIN_EQUAL_SIGNS = 11
#: Minimum size of a significant trend, in standard deviations. A measured arm with large model
#: errors reaches 10.
MIN_DEVIATIONS = 6.0
#: Minimum fraction of the residual's power that a significant trend explains. The same arm reaches
#: 9 %.
MIN_EXPLAINED = 0.3
#: Minimum RMS force of a significant trend, as a fraction of the force's standard deviation.
MIN_TREND_SIZE = 0.005
#: Drifts are only detected for repeating motions, in which the predicted force crosses its mean at
#: least this number of times.
MIN_CROSSINGS = 16
#: Minimum deviation from the mean on both sides of a crossing, as a fraction of the force's
#: standard deviation.
MIN_CROSSING_SIZE = 0.5
#: In a repeating motion, the time derivative of the force (RMS) differs by less than this factor
#: between the slowest and the fastest block.
MAX_RATE_RATIO = 3.0
#: A delay, or the inverse angular frequency of a compliance, is at most this fraction of the log's
#: duration. Model errors of a slow motion resemble longer delays.
MAX_DELAY_SHARE = 0.02
#: A delay must explain this fraction of the residual's power. On a measured arm with large model
#: errors, 35 % of the residual of one joint resemble a delay.
MIN_DELAY_EXPLAINED = 0.4
#: Stribeck velocity of the friction that must not be mistaken for a delay, as a fraction of the
#: largest speed.
STRIBECK_VELOCITY_SHARE = 0.05
#: Maximum number of samples that are used, spread evenly over the log.
MAX_TREND_SAMPLES = 6000
#: Time constant of the heat, as a fraction of the log's duration.
THERMAL_TIME_SHARE = 1.0 / 3.0
#: The filter of the accelerations causes an apparent compliance. A compliance is only reported if
#: it exceeds the apparent one by this factor.
MIN_COMPLIANCE_RATIO = 3.0
#: Number of times at which a sudden change is tried first.
STEP_TIMES = 48
#: A change counts as sudden if the residual power with any drift is larger by this factor.
MIN_STEP_GAIN = 1.5
#: Directions of the columns with a smaller fraction of the largest singular value are ignored.
TREND_RANK_TOLERANCE = 1e-8
#: A column is indistinguishable from the regressor if the projection leaves a smaller fraction of
#: its norm.
MIN_REMAINING_SHARE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualTrend:
    """A trend in the residual of an output.

    Attributes:
        output: name of the output.
        unit: unit of the output.
        kind: "offset", "friction" or "scale" for drifts with time or heat; "delay", "clock" or
            "compliance".
        cause: "time" or "warmth" for a drift, "step" for a sudden change; empty otherwise.
        value: for a drift, the change of the offset, SI, or the relative change of friction or
            force, from the beginning to the end of the log, or from the smallest to the largest
            heat. For a delay, the time by which the force lags the motion, s. For a clock, the
            increase of the delay per second, s/s. For compliance, the inverse square, s^2, of the
            angular frequency at which the load would oscillate with the motor locked.
        deviations: value divided by its standard deviation.
        explained: explained fraction of the residual's power.
        force: RMS force that the trend explains, SI.
        time: time of a sudden change, s; NaN otherwise.
    """

    output: str
    unit: str
    kind: str
    cause: str
    value: float
    deviations: float
    explained: float
    force: float
    time: float = np.nan

    def __str__(self) -> str:
        if self.kind == "delay":
            verb = "lags" if self.value > 0.0 else "leads"
            return f"{verb} the motion by {1e3 * abs(self.value):.3g} ms"
        if self.kind == "clock":
            return (
                "has a delay that increases by "
                f"{1e6 * self.value:+.3g} us per second: the clocks drift"
            )
        if self.kind == "compliance":
            frequency = 1.0 / (2.0 * np.pi * np.sqrt(self.value))
            return (
                "has a residual that follows the second derivative of the force: the transmission "
                f"is compliant, its load oscillates at {frequency:.3g} Hz with the motor locked"
            )
        names = {"offset": "offset", "friction": "friction", "scale": "force for the same motion"}
        change = f"{100.0 * self.value:+.3g} %"
        if self.kind == "offset":
            change = f"{self.value:+.3g} {self.unit}"
        if self.cause == "step":
            name = names[self.kind]
            return f"changes suddenly at {self.time:.3g} s: its {name} changes by {change}"
        interval = "from beginning to end"
        if self.cause != "time":
            interval = "from coldest to warmest (heat from the square of the force)"
        return f"drifts with {self.cause}: its {names[self.kind]} changes by {change} {interval}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Column:
    """The column (N,) of a possible trend, and the trend's value for a coefficient of one.

    The column of a drift is the product of a function of time and `factor` (N,).
    """

    kind: str
    cause: str
    values: np.ndarray
    scale: float
    factor: np.ndarray | None = None


@solving(IdentificationError)
def residual_trends(
    data: RegressionData,
    friction: Sequence[str] = (),
    *,
    passed: Callable[[np.ndarray], np.ndarray] | None = None,
    speeds: np.ndarray | None = None,
) -> tuple[ResidualTrend, ...]:
    """Return the trends of the residuals of one log, for each output.

    For each output, the trend that explains most is first. The next trends explain the remaining
    residual.

    Args:
        data: regression data of one log, evenly sampled, with their times.
        friction: unknowns that are friction coefficients.
        passed: function that returns a signal (N,), at the times of the data, after the filter of
            the positions. The filter reduces accelerations, which looks like a compliance. None for
            no filter.
        speeds: velocities (N, n) of the motion at these times. They are required to detect a
            delay, because friction of any shape depends on velocities and can resemble a delay.
    """
    if data.time is None or len(data) - 2 * data.reach < max(4 * BLOCKS, MIN_SPECTRUM_SAMPLES):
        return ()
    trends: list[ResidualTrend] = []
    for k in data.kept:
        if len(data.rows(k)) == len(data):
            for trend in _output_trends(data, int(k), friction, passed, speeds):
                trends.append(replace(trend, output=data.outputs[k], unit=data.output_units[k]))
    return tuple(trends)


def trend_problems(trends: Sequence[ResidualTrend]) -> tuple[Problem, ...]:
    """Return the trends as problems to report."""
    remedies = {
        "delay": "align force and motion in time",
        "clock": "record forces and positions with one clock, or align them at both ends of the log",
        "compliance": "excite lower frequencies, measure on the load's side, or model the drive line",
        "offset": "warm up first, record shorter logs, and compare them (--compare-logs)",
        "step": "cut the log there, and give the parts as several logs; describe a payload that was "
        "attached there by --payload-body LOG=BODY",
    }
    return tuple(
        Problem(
            f"force.{trend.output}",
            f"{trend} ({100.0 * trend.explained:.3g} % of the residual's sum of squares, "
            f"{abs(trend.deviations):.3g} standard deviations)",
            remedies.get("step" if trend.cause == "step" else trend.kind, remedies["offset"]),
        )
        for trend in trends
    )


def _output_trends(
    data: RegressionData,
    k: int,
    friction: Sequence[str],
    passed: Callable[[np.ndarray], np.ndarray] | None,
    speeds: np.ndarray | None,
) -> Iterator[ResidualTrend]:
    """Yield the trends of the output with index k, without its name and unit.

    See `residual_trends`.
    """
    regressor, forces = data.of_output(k)
    time = np.asarray(data.time)
    step = (time[-1] - time[0]) / (len(time) - 1)
    norms = np.linalg.norm(regressor, axis=0)
    used = np.flatnonzero(norms > 0.0)
    columns = regressor[:, used] / norms[used]
    values, _, rank, _ = np.linalg.lstsq(columns, forces, rcond=TREND_RANK_TOLERANCE)
    if not rank:
        return
    predicted = columns @ values
    friction_columns = [i for i, j in enumerate(used) if data.unknowns[j] in friction]
    friction_force = columns[:, friction_columns] @ values[friction_columns]
    smooth_rate, _ = _derivatives(predicted - friction_force, step, data.reach)
    rate = smooth_rate + np.gradient(friction_force, step)
    edge = max(2, data.reach)
    count = min(MAX_TREND_SAMPLES, len(time) - 2 * edge)
    rows = np.unique(np.linspace(edge, len(time) - 1 - edge, count).round().astype(int))
    left_vectors, singular_values, _ = np.linalg.svd(columns[rows], full_matrices=False)
    basis = left_vectors[:, singular_values > TREND_RANK_TOLERANCE * singular_values[0]]
    basis = _append_column(basis, np.ones(len(rows)))
    deviation = float(np.std(forces[rows]))
    delay = _Column(kind="delay", cause="", values=-smooth_rate, scale=1.0)
    longest = MAX_DELAY_SHARE * float(time[-1] - time[0])
    if speeds is not None:
        trend = _delay_trend(delay, rows, basis, forces, speeds)
        if trend is not None and abs(trend.value) < longest:
            yield trend
    for nuisance in (rate, delay.values):
        basis = _append_column(basis, nuisance[rows])
    residual = _project_out(basis, forces[rows])
    candidates = list(_columns(time, step, predicted, rate, friction_force, data.reach))
    if not _is_repeating(predicted, rate):
        candidates = [candidate for candidate in candidates if candidate.kind == "compliance"]
    apparent = 0.0
    if passed is not None:
        removed = predicted - passed(predicted)
        apparent = _apparent_compliance(removed, candidates, rows, basis)
    while True:
        significant: list[tuple[ResidualTrend, _Column]] = []
        for candidate in candidates:
            trend = _significant_trend(candidate, rows, basis, residual, deviation, apparent)
            is_slow = candidate.kind == "compliance" and trend is not None
            if trend is not None and not (is_slow and trend.value > longest**2):
                significant.append((trend, candidate))
        drift = max((trend.explained for trend, _ in significant if trend.cause), default=0.0)
        for candidate in (candidate for candidate in candidates if candidate.cause == "time"):
            step_column, moment = _sudden_change(candidate, time, rows, basis, residual)
            trend = _significant_trend(step_column, rows, basis, residual, deviation, apparent)
            if trend is not None and (1.0 - trend.explained) * MIN_STEP_GAIN < 1.0 - drift:
                significant.append((replace(trend, time=moment), step_column))
        if not significant:
            return
        best, column = max(significant, key=lambda pair: pair[0].explained)
        yield best
        basis = _append_column(basis, column.values[rows])
        residual = _project_out(basis, residual)
        candidates = [
            candidate
            for candidate in candidates
            if candidate.kind != column.kind and not (candidate.cause and column.cause)
        ]


def _sudden_change(
    drift: _Column, time: np.ndarray, rows: np.ndarray, basis: np.ndarray, residual: np.ndarray
) -> tuple[_Column, float]:
    """Return the column of the step in time that explains most, and the time of this step.

    Args:
        drift: the column of a drift with time. The step has the same kind and factor.
        time: (N,) times.
        rows, basis, residual: as for `_significant_trend`.
    """
    assert drift.factor is not None
    factor = np.broadcast_to(drift.factor, time.shape)
    spacing = (time[rows[-1]] - time[rows[0]]) / (STEP_TIMES + 1)
    best_time = 0.5 * (time[rows[0]] + time[rows[-1]])
    for offsets in (np.arange(STEP_TIMES) - 0.5 * (STEP_TIMES - 1), np.linspace(-1.0, 1.0, 41)):
        times = best_time + spacing * offsets
        columns = (time[rows, None] >= times) * factor[rows, None]
        remaining = _project_out(basis, columns)
        powers = np.maximum(np.sum(remaining**2, axis=0), np.finfo(float).tiny)
        best_time = float(times[int(np.argmax((residual @ remaining) ** 2 / powers))])
    values = (time >= best_time) * factor
    return replace(drift, cause="step", values=values, scale=1.0), best_time


def _delay_trend(
    delay: _Column, rows: np.ndarray, basis: np.ndarray, forces: np.ndarray, speeds: np.ndarray
) -> ResidualTrend | None:
    """Return the delay of a force, or None if friction of some shape explains it."""
    largest = np.maximum(np.abs(speeds).max(axis=0), np.finfo(float).tiny)
    for v in (speeds / largest).T:
        sign = np.sign(v)
        stribeck = sign * np.exp(-np.abs(v) / STRIBECK_VELOCITY_SHARE)
        for shape in (v, sign, v * np.abs(v), v**3, stribeck):
            basis = _append_column(basis, shape[rows])
    residual = _project_out(basis, forces[rows])
    trend = _significant_trend(delay, rows, basis, residual, float(np.std(forces[rows])), 0.0)
    return None if trend is None or trend.explained < MIN_DELAY_EXPLAINED else trend


def _columns(
    time: np.ndarray,
    step: float,
    predicted: np.ndarray,
    rate: np.ndarray,
    friction_force: np.ndarray,
    reach: int,
) -> Iterator[_Column]:
    """Yield the columns of all trends except delays."""
    duration = time[-1] - time[0]
    heat = predicted**2
    size = max(float(heat.mean()), np.finfo(float).tiny)
    warmth = _thermal_lag(heat / size, step / (THERMAL_TIME_SHARE * duration))
    drifts = {"time": (time - time.mean()) / duration, "warmth": warmth - warmth.mean()}
    for cause, drift in drifts.items():
        span = float(np.ptp(drift))
        factors = {"offset": np.ones(1), "scale": predicted}
        if friction_force.any():
            factors["friction"] = friction_force
        for kind, factor in factors.items():
            yield _Column(kind=kind, cause=cause, values=drift * factor, scale=span, factor=factor)
    yield _Column(kind="clock", cause="", values=-(time - time.mean()) * rate, scale=1.0)
    # Friction jumps have no second derivative, so friction is subtracted first.
    _, second = _derivatives(predicted - friction_force, step, reach)
    yield _Column(kind="compliance", cause="", values=-second, scale=1.0)


def _derivatives(smooth: np.ndarray, step: float, reach: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first two derivatives (N,) of a force.

    They are zero at the ends, which the filter of the regressor affects (`RegressionData.reach`).
    """
    first, second = np.zeros(len(smooth)), np.zeros(len(smooth))
    inside = slice(reach, len(smooth) - reach)
    _, first[inside], second[inside] = in_band(smooth[inside], rate=1.0 / step)
    return first, second


def _is_repeating(predicted: np.ndarray, rate: np.ndarray) -> bool:
    """Return whether a motion repeats, so that its model errors do not look like a drift."""
    deviation = predicted - predicted.mean()
    is_far = np.abs(deviation) > MIN_CROSSING_SIZE * deviation.std()
    crossings = int(np.sum(np.diff(np.sign(deviation[is_far])) != 0.0))
    rates = np.array([np.sqrt(np.mean(part**2)) for part in np.array_split(rate, BLOCKS // 2)])
    return crossings >= MIN_CROSSINGS and float(rates.max()) < MAX_RATE_RATIO * float(rates.min())


def _thermal_lag(heat: np.ndarray, step: float) -> np.ndarray:
    """Return the temperature rise w (N,) due to heat: a first-order lag w' = heat - w, w(0) = 0.

    Args:
        heat: (N,) heat flow.
        step: sampling period, in time constants of the lag.
    """
    time = np.arange(len(heat)) * step
    scaled = np.cumsum(heat * np.exp(time - time[-1])) * step
    return np.asarray(scaled * np.exp(time[-1] - time))


def _significant_trend(
    column: _Column,
    rows: np.ndarray,
    basis: np.ndarray,
    residual: np.ndarray,
    force_deviation: float,
    apparent_compliance: float,
) -> ResidualTrend | None:
    """Return the trend of a column, or None if it is not significant."""
    values = column.values[rows]
    remaining = _project_out(basis, values)
    power = float(remaining @ remaining)
    if power <= MIN_REMAINING_SHARE**2 * float(values @ values):
        return None
    value = float(remaining @ residual) / power
    remaining_residual = residual - value * remaining
    scores = np.array(
        [block.sum() for block in np.array_split(remaining * remaining_residual, BLOCKS)]
    )
    deviation = np.sqrt(BLOCKS / (BLOCKS - 1.0) * (scores @ scores)) / power
    block_values = [block.sum() for block in np.array_split(remaining * residual, BLOCKS)]
    equal_signs = sum(block_value * value > 0.0 for block_value in block_values)
    explained = 1.0 - float(remaining_residual @ remaining_residual) / max(
        float(residual @ residual), np.finfo(float).tiny
    )
    size = abs(value) * np.sqrt(power / len(rows))
    if (
        abs(value) < MIN_DEVIATIONS * deviation
        or explained < MIN_EXPLAINED
        or equal_signs < MIN_EQUAL_SIGNS
        or size < MIN_TREND_SIZE * force_deviation
    ):
        return None
    if column.kind == "compliance" and value < MIN_COMPLIANCE_RATIO * apparent_compliance:
        return None
    return ResidualTrend(
        output="",
        unit="",
        kind=column.kind,
        cause=column.cause,
        value=value * column.scale,
        deviations=value / max(float(deviation), np.finfo(float).tiny),
        explained=explained,
        force=float(size),
    )


def _apparent_compliance(
    removed: np.ndarray, candidates: Sequence[_Column], rows: np.ndarray, basis: np.ndarray
) -> float:
    """Return the apparent compliance that the filter of the positions causes.

    Args:
        removed: (N,) part of the predicted force that the filter removes.
        candidates: the columns of trends, including that of compliance.
        rows: the samples that are used.
        basis: basis that is projected out of the columns.

    Returns:
        `ResidualTrend.value` of a compliance, s^2.
    """
    compliance = next(candidate for candidate in candidates if candidate.kind == "compliance")
    remaining = _project_out(basis, compliance.values[rows])
    power = float(remaining @ remaining)
    return float(remaining @ removed[rows]) / power if power > 0.0 else 0.0


def _append_column(basis: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis (N, r) extended by a column that is not in its span."""
    remaining = _project_out(basis, _project_out(basis, column))
    norm = float(np.linalg.norm(remaining))
    if norm <= TREND_RANK_TOLERANCE * np.linalg.norm(column):
        return basis
    return np.hstack([basis, (remaining / norm)[:, None]])


def _project_out(basis: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Return the part of a column that is orthogonal to a basis."""
    return np.asarray(column - basis @ (basis.T @ column))
