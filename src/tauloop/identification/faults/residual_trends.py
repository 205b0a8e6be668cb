"""What the residuals of a log still follow: time, warmth of the motion, bending of a transmission, a drifting clock.

Each is a column that the model lacks. Of every output by itself, what its regressor, a constant and
the derivative of the force (a delay) explain is taken out of forces and column alike (Frisch and
Waugh 1933); what is left of the forces is fitted by what is left of the column. The coefficient's
deviation is the sandwich over blocks of the log, so that a model error which comes and goes is no
trend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.errors import IdentificationError, Problem, solving
from tauloop.common.records import dataclass
from tauloop.identification.regression.data import RegressionData
from tauloop.logs.rates import MIN_SPECTRUM_SAMPLES, in_band

#: Blocks of a log; so many of them must tell the same sign.
BLOCKS, ALIKE = 12, 11
#: A trend is one beyond so many standard deviations, if it explains this share of the residual's
#: power and has this share of the force's standard deviation. A measured arm whose model lacks much
#: reaches 10 deviations and 9 %.
DEVIATIONS, EXPLAINED, SIZE = 6.0, 0.3, 0.005
#: With time can drift only what a motion shows again and again, alike: its force passes its mean so
#: many times (by half its standard deviation), and its rate changes by less than this factor from
#: the slowest block to the fastest.
PASSES, HALF, STEADY = 16, 0.5, 3.0
#: A delay must explain so much: of a measured arm whose model lacks much 35 % of one joint look
#: like one.
DELAYED = 0.4
#: Share of the largest speed at which friction may fall as Stribeck's does.
SLOW = 0.05
#: Samples that are looked at, evenly spread over the log.
LOOKED_AT = 6000
#: Warmth fades in this share of the log.
FADING = 1.0 / 3.0
#: What the preparation takes off accelerations feigns bending; a bending transmission is so many
#: times that.
ATTENUATION = 3.0
#: Directions of the columns below this share of the largest are none; a column of which less is
#: left cannot be told.
RANK, LEFT = 1e-8, 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualTrend:
    """What an output's residual follows.

    Attributes:
        output, unit: the output.
        kind: "offset", "friction" or "scale" with time or warmth; "delay"; "clock"; "compliance".
        cause: of a drift, "time" or "warmth"; empty otherwise.
        value: change of the offset, SI, or of friction or force as a share of themselves, from the
            beginning to the end of the log (of warmth, from its least to its largest); delay of the
            force behind the motion, s; drift of the clock, s/s: how much later per second forces
            come; of compliance the inverse square, s^2, of the angular frequency at which the load
            would swing with the motor held.
        deviations: value over standard deviation.
        explained: share of the residual's power.
    """

    output: str
    unit: str
    kind: str
    cause: str
    value: float
    deviations: float
    explained: float

    def __str__(self) -> str:
        percent = f"{100.0 * self.value:+.3g} %"
        if self.kind == "delay":
            return f"comes {'behind' if self.value > 0.0 else 'before'} the motion by {1e3 * abs(self.value):.3g} ms"
        if self.kind == "clock":
            return f"comes later and later behind the motion, by {1e6 * self.value:+.3g} us per second: clocks drift"
        if self.kind == "compliance":
            return (
                "follows the second derivative of the force: the transmission bends, its load swings at "
                f"{1.0 / (2.0 * np.pi * np.sqrt(self.value)):.3g} Hz with the motor held"
            )
        changed = f"{self.value:+.3g} {self.unit}" if self.kind == "offset" else percent
        over = (
            "from beginning to end"
            if self.cause == "time"
            else "from coldest to warmest, by force squared"
        )
        what = {"offset": "offset", "friction": "friction", "scale": "force for the same motion"}[
            self.kind
        ]
        return f"drifts with {self.cause}: its {what} changes by {changed} {over}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Column:
    """A column (N,) that a trend would have, and the value that one of it stands for."""

    kind: str
    cause: str
    values: np.ndarray
    scale: float


@solving(IdentificationError)
def residual_trends(
    data: RegressionData,
    friction: Sequence[str] = (),
    *,
    passed: Callable[[np.ndarray], np.ndarray] | None = None,
    speeds: np.ndarray | None = None,
) -> tuple[ResidualTrend, ...]:
    """Trends of the residuals of one log, output by output; the one that explains most first, then what is left.

    Args:
        data: one log, evenly sampled, with its times.
        friction: unknowns that are friction coefficients.
        passed: what the preparation of the positions makes of a signal (N,) at the times of the
            data; it takes off accelerations what a bending transmission adds. Nothing is taken off
            without it.
        speeds: velocities (N, n) of the motion at these times. A delay is looked for with them
            only: friction of any shape follows velocities, as a delay of inertial forces does.
    """
    if data.time is None or len(data) - 2 * data.reach < max(4 * BLOCKS, MIN_SPECTRUM_SAMPLES):
        return ()
    trends: list[ResidualTrend] = []
    for k in data.kept:
        rows = data.rows(k)
        if len(rows) == len(data):
            own = _of_output(data, int(k), friction, passed, speeds)
            trends += (
                replace(trend, output=data.outputs[k], unit=data.output_units[k]) for trend in own
            )
    return tuple(trends)


def trend_problems(trends: Sequence[ResidualTrend]) -> tuple[Problem, ...]:
    """Trends as findings."""
    remedies = {
        "delay": "align force and motion in time",
        "clock": "record forces and positions with one clock, or align them at both ends of the log",
        "compliance": "excite less far up, measure on the load's side, or model the drive line",
        "offset": "warm up first, record shorter logs, and compare them (--compare-logs)",
    }
    return tuple(
        Problem(
            f"force.{trend.output}",
            f"{trend} ({100.0 * trend.explained:.3g} % of what the model leaves, {abs(trend.deviations):.3g} "
            "standard deviations)",
            remedies.get(trend.kind, remedies["offset"]),
        )
        for trend in trends
    )


def _of_output(
    data: RegressionData,
    k: int,
    friction: Sequence[str],
    passed: Callable[[np.ndarray], np.ndarray] | None,
    speeds: np.ndarray | None,
) -> Iterator[ResidualTrend]:
    regressor, forces = data.of_output(k)
    time = np.asarray(data.time)
    step = (time[-1] - time[0]) / (len(time) - 1)
    norms = np.linalg.norm(regressor, axis=0)
    used = np.flatnonzero(norms > 0.0)
    columns = regressor[:, used] / norms[used]
    values, _, rank, _ = np.linalg.lstsq(columns, forces, rcond=RANK)
    if not rank:
        return
    predicted = columns @ values
    rubbing = [i for i, j in enumerate(used) if data.unknowns[j] in friction]
    rubbed = columns[:, rubbing] @ values[rubbing]
    rate, _ = _derivatives(predicted - rubbed, step, data.reach)
    rate += np.gradient(rubbed, step)
    edge = max(2, data.reach)
    at = np.linspace(edge, len(time) - 1 - edge, min(LOOKED_AT, len(time) - 2 * edge))
    at = np.unique(at.round().astype(int))
    left, sizes, _ = np.linalg.svd(columns[at], full_matrices=False)
    basis = left[:, sizes > RANK * sizes[0]]
    basis = _with(basis, np.ones(len(at)))
    force = float(np.std(forces[at]))
    late = _Column(
        kind="delay",
        cause="",
        values=-_derivatives(predicted - rubbed, step, data.reach)[0],
        scale=1.0,
    )
    if speeds is not None and (delayed := _delayed(late, at, basis, forces, speeds)):
        yield delayed
    for nuisance in (rate, late.values):
        basis = _with(basis, nuisance[at])
    residual = _off(basis, forces[at])
    candidates = list(_columns(time, step, predicted, rate, rubbed, data.reach))
    if not _repeats(predicted, rate):
        candidates = [candidate for candidate in candidates if candidate.kind == "compliance"]
    least = (
        _feigned(predicted - passed(predicted), candidates, at, basis)
        if passed is not None
        else 0.0
    )
    while True:
        judged = [
            trend
            for candidate in candidates
            if (trend := _judged(candidate, at, basis, residual, force, least))
        ]
        if not judged:
            return
        best, column = max(judged, key=lambda pair: pair[0].explained)
        yield best
        basis = _with(basis, column.values[at])
        residual = _off(basis, residual)
        candidates = [
            candidate
            for candidate in candidates
            if candidate.kind != column.kind and not (candidate.cause and column.cause)
        ]


def _delayed(
    late: _Column, at: np.ndarray, basis: np.ndarray, forces: np.ndarray, speeds: np.ndarray
) -> ResidualTrend | None:
    """A delay of the force, by what no friction of this motion can be."""
    for v in (speeds / np.maximum(np.abs(speeds).max(axis=0), np.finfo(float).tiny)).T:
        for shape in (v, np.sign(v), v * np.abs(v), v**3, np.sign(v) * np.exp(-np.abs(v) / SLOW)):
            basis = _with(basis, shape[at])
    judged = _judged(late, at, basis, _off(basis, forces[at]), float(np.std(forces[at])), 0.0)
    return None if judged is None or judged[0].explained < DELAYED else judged[0]


def _columns(
    time: np.ndarray,
    step: float,
    predicted: np.ndarray,
    rate: np.ndarray,
    rubbing: np.ndarray,
    reach: int,
) -> Iterator[_Column]:
    """What a residual may follow."""
    along = (time - time.mean()) / (time[-1] - time[0])
    heat = predicted**2
    size = max(float(heat.mean()), np.finfo(float).tiny)
    warmth = _faded(heat / size, step / (FADING * (time[-1] - time[0])))
    warmth -= warmth.mean()
    for cause, course in (("time", along), ("warmth", warmth)):
        span = float(np.ptp(course))
        yield _Column(kind="offset", cause=cause, values=course, scale=span)
        yield _Column(kind="scale", cause=cause, values=course * predicted, scale=span)
        if rubbing.any():
            yield _Column(kind="friction", cause=cause, values=course * rubbing, scale=span)
    yield _Column(kind="clock", cause="", values=-(time - time.mean()) * rate, scale=1.0)
    smooth = predicted - rubbing  # the jumps of friction have no second derivative
    yield _Column(
        kind="compliance", cause="", values=-_derivatives(smooth, step, reach)[1], scale=1.0
    )


def _derivatives(smooth: np.ndarray, step: float, reach: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first two derivatives (N,) of a force, zero where a filter lacked samples (`RegressionData.reach`)."""
    first, second = np.zeros(len(smooth)), np.zeros(len(smooth))
    inside = slice(reach, len(smooth) - reach)
    _, first[inside], second[inside] = in_band(smooth[inside], rate=1.0 / step)
    return first, second


def _repeats(predicted: np.ndarray, rate: np.ndarray) -> bool:
    """Whether a motion shows about the same again and again, so that what changes is not the motion."""
    above = predicted - predicted.mean()
    far = np.abs(above) > HALF * above.std()
    passes = int(np.sum(np.diff(np.sign(above[far])) != 0.0))
    speeds = np.array([np.sqrt(np.mean(part**2)) for part in np.array_split(rate, BLOCKS // 2)])
    return passes >= PASSES and float(speeds.max()) < STEADY * float(speeds.min())


def _faded(heat: np.ndarray, share: float) -> np.ndarray:
    """First-order lag of the heat, from cold: w' = heat - w, with time in its own constants."""
    along = np.arange(len(heat)) * share
    stretched = np.cumsum(heat * np.exp(along - along[-1])) * share
    return np.asarray(stretched * np.exp(along[-1] - along))


def _judged(
    column: _Column,
    at: np.ndarray,
    basis: np.ndarray,
    residual: np.ndarray,
    force: float,
    least: float,
) -> tuple[ResidualTrend, _Column] | None:
    """The trend of a column, if it is one."""
    values = column.values[at]
    own = _off(basis, values)
    power = float(own @ own)
    if power <= LEFT**2 * float(values @ values):
        return None
    value = float(own @ residual) / power
    rest = residual - value * own
    parts = np.array([part.sum() for part in np.array_split(own * rest, BLOCKS)])
    deviation = np.sqrt(BLOCKS / (BLOCKS - 1.0) * (parts @ parts)) / power
    signs = [part.sum() * value > 0.0 for part in np.array_split(own * residual, BLOCKS)]
    explained = 1.0 - float(rest @ rest) / max(float(residual @ residual), np.finfo(float).tiny)
    size = abs(value) * np.sqrt(power / len(at))
    if (
        abs(value) < DEVIATIONS * deviation
        or explained < EXPLAINED
        or sum(signs) < ALIKE
        or size < SIZE * force
    ):
        return None
    if column.kind == "compliance" and value < ATTENUATION * least:
        return None
    trend = ResidualTrend(
        output="",
        unit="",
        kind=column.kind,
        cause=column.cause,
        value=value * column.scale,
        deviations=value / max(float(deviation), np.finfo(float).tiny),
        explained=explained,
    )
    return trend, column


def _feigned(
    lost: np.ndarray, candidates: Sequence[_Column], at: np.ndarray, basis: np.ndarray
) -> float:
    """What the preparation of the positions feigns of `ResidualTrend.value` of a bending transmission, s^2.

    Args:
        lost: (N,) what it takes off the predicted force.
        candidates, at, basis: the columns, the samples and what is taken out of them.
    """
    own = next(
        _off(basis, candidate.values[at])
        for candidate in candidates
        if candidate.kind == "compliance"
    )
    power = float(own @ own)
    return float(own @ lost[at]) / power if power > 0.0 else 0.0


def _with(basis: np.ndarray, column: np.ndarray) -> np.ndarray:
    """The orthonormal basis (N, r) with one more column, unless it is in it."""
    own = _off(basis, _off(basis, column))
    size = float(np.linalg.norm(own))
    return (
        basis
        if size <= RANK * np.linalg.norm(column)
        else np.hstack([basis, (own / size)[:, None]])
    )


def _off(basis: np.ndarray, column: np.ndarray) -> np.ndarray:
    """What of a column is not in the basis."""
    return np.asarray(column - basis @ (basis.T @ column))
