"""The fastest law along a stroke: a profile that satisfies limits also between its grid points.

The profile is first computed on a coarse grid. This profile determines a grid that is uniformly
distributed over a weighted sum of time, parameter and change of forces. On this grid, `sweep`
computes the profile. The limits are then checked at points between the grid points. The limits of an
interval are reduced by the excess there, and the profile is computed again, until there is no
excess. Peaks between these points are removed by lowering the rate of the whole law, as for any
other law.
"""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import PoseError
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.motion.fastest.law import ProfileLaw
from tauloop.motion.fastest.limits import LimitRows, PathRows, infeasible_error
from tauloop.motion.fastest.sweeps import NoProfileError, Profile, sweep
from tauloop.motion.laws import Law
from tauloop.motion.rate_limits.peaks import refined, vertices
from tauloop.motion.rate_limits.scaling import Quadratics, largest_rate, stacked
from tauloop.motion.rate_limits.stroke_limits import sample_times
from tauloop.motion.strokes.stroke import Stroke

#: Number of intervals of the grid.
INTERVALS = 1000
#: Number of points in each interval at which limits are checked.
POINTS_PER_INTERVAL = 10
#: Number of checked points in each of the outermost intervals. Close to rest, viscous friction grows
#: with the square root of the distance.
BETWEEN_ENDS = 100
#: Number of these intervals at either end.
END_INTERVALS = 5
#: Number of halvings of an interval next to rest or a reversal if friction decreases with speed.
END_HALVINGS = 8
#: Fractions of an interval after rest or a reversal at which friction that decreases with speed is
#: checked.
HALVES = 0.5 ** np.arange(1, 41)
#: Maximum number of sweeps.
MAX_SWEEPS = 24
#: Excess at which the sweeps end.
SWEEP_TOLERANCE = 1e-9
#: Excess between the ends of an interval above which its acceleration is made constant in the first
#: sweeps.
ROUGH_TOLERANCE = 1e-3
#: Number of these first sweeps.
ROUGH_SWEEPS = 4
#: Excess above which the acceleration of an interval is made constant in any sweep, if the excess
#: does not decrease.
STALL_TOLERANCE = 1e-6
#: Ratio of the excess to that of the previous sweep above which it does not decrease.
STALL_SHARE = 0.5
#: Factor on the reduction of limits in each sweep, for intervals with a constant acceleration whose
#: excess does not decrease.
CORRECTION_FACTOR = 2.0
#: Maximum number of sweeps before limits are reduced, if rows depend on the squared speeds of the
#: previous sweep.
MAX_SETTLING_SWEEPS = 12
#: Change of the squared speeds, as a fraction of the largest, at which they have converged.
SETTLING_TOLERANCE = 1e-4
#: Weight of time in the distribution of the grid.
TIME_SHARE = 1.0
#: Weight of the path's parameter in the distribution of the grid.
PATH_SHARE = 0.3
#: Weight of the change of forces in the distribution of the grid.
CHANGE_SHARE = 0.5
#: Number of bisections for the time at which a law passes a parameter, down to rounding.
PLANNING_HALVINGS = 52
#: Normalized time just after the start.
START_OFFSET = 1e-6
#: Relative excess between points above which a lower rate of the profile is searched for.
PROFILE_TOLERANCE = 1e-5
#: Maximum number of rounds of peaks between samples when the rate is computed.
MAX_PEAK_ROUNDS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class FastestLaw(ReprMixin):
    """The fastest law along a stroke.

    Attributes:
        law: the motion law.
        duration: duration, s.
        rows: all limits along the stroke.
        unit: rate that is the unit of speeds in the rows, 1/s.
        sweeps: number of sweeps.
    """

    law: Law
    duration: float
    rows: PathRows
    unit: float
    sweeps: int


def fastest_law(rows: PathRows, *, intervals: int = INTERVALS) -> FastestLaw:
    """Return the fastest motion along a stroke under limits, from rest to rest.

    Args:
        rows: the limits along the stroke.
        intervals: number of intervals of the grid.

    Raises:
        PoseError: no motion satisfies the limits. The message states where.
    """
    unit = rows.unit()
    profile, sweeps = fastest_profile(rows, unit, intervals)
    law = ProfileLaw(profile)
    rate = unit / law.duration
    highest = highest_share(rows, law, rate)
    # near its own rate, a law that satisfies all limits may be limited only by friction that
    # decreases with speed
    if highest <= 1.0 + PROFILE_TOLERANCE:
        rate = rate / max(highest, 1.0)
    else:
        rate = law_rate(rows, law, rate)
    return FastestLaw(law=law, duration=1.0 / rate, rows=rows, unit=unit, sweeps=sweeps)


def fastest_profile(rows: PathRows, unit: float, intervals: int) -> tuple[Profile, int]:
    """Return the fastest profile on a grid with a number of intervals, and the number of sweeps."""
    stroke = rows.stroke
    breaks = np.array(stroke.breaks)
    kinks = np.array(stroke.kinks)
    coarse = with_breaks(np.linspace(0.0, 1.0, max(intervals // 4, 8) + 1), kinks)
    coarse_rows = _Grid(rows, unit, coarse, breaks, between=False)
    first = coarse_rows.swept(stroke, np.ones(len(coarse) - 1))
    grid = with_breaks(_distributed_grid(first, coarse_rows.left, intervals), kinks)
    friction = stroke.dry_friction
    if friction is not None and friction.depends_on_speed:
        grid = _with_reversal_points(grid, stroke.friction_sides.reversals)
    fine = _Grid(rows, unit, grid, breaks, between=True)
    n = len(grid) - 1
    is_constant = np.zeros(n)
    is_constant[[0, -1]] = 1.0
    fine.x = np.interp(grid, first.grid, first.x)
    previous_excess = np.full(n, np.inf)
    reduction_factors = np.ones(n)
    settling = fine.settle(stroke, is_constant)
    profile = first
    for k in range(settling, MAX_SWEEPS + settling):
        profile = fine.swept(stroke, is_constant)
        excess = fine.excess(profile)
        dips = profile.dips & (is_constant == 0)
        if excess.max() < SWEEP_TOLERANCE and not dips.any():
            return profile, k + 1
        largest_excess = excess.max(axis=1)
        is_rough = (largest_excess > ROUGH_TOLERANCE) & (k < settling + ROUGH_SWEEPS)
        is_stalled = largest_excess > STALL_SHARE * previous_excess
        becomes_constant = is_rough | (largest_excess > STALL_TOLERANCE) & is_stalled | dips
        becomes_constant &= is_constant == 0
        # if a constant acceleration does not reduce the excess, a limit is much tighter inside the
        # interval than at both ends
        needs_correction = (is_constant == 1) & (largest_excess > SWEEP_TOLERANCE) & is_stalled
        reduction_factors[needs_correction] *= CORRECTION_FACTOR
        is_constant[becomes_constant] = 1.0
        previous_excess = largest_excess
        reduction = reduction_factors[:, None] * np.maximum(excess, 0.0)
        fine.reduce_limits(np.where(becomes_constant[:, None], 0.0, reduction))
    return profile, MAX_SWEEPS + settling


class _Grid:
    """Limits at the n + 1 points of a grid and between them, with reductions of the limits.

    Attributes:
        grid: parameters of the path (n + 1,).
        left, right: limits at the start and at the end of each interval.
        top: largest squared speeds (n + 1,).
        x: squared speeds (n + 1,) of the last sweep.
    """

    def __init__(
        self, rows: PathRows, unit: float, grid: np.ndarray, breaks: np.ndarray, between: bool
    ) -> None:
        """Evaluate the limits at the points of a grid, and also between them if `between`."""
        self.grid = grid
        n = len(grid) - 1
        fractions = _checked_fractions(grid, rows.stroke) if between else [np.zeros(0)] * n
        counts = np.array([len(in_interval) for in_interval in fractions])
        # checked points: first point of each interval, and interval and offset of each point
        self._first_points = np.cumsum(counts) - counts
        self._intervals = np.repeat(np.arange(n), counts)
        self._offsets = np.concatenate(fractions) * np.diff(grid)[self._intervals]
        ends = np.where(np.isin(grid[1:], breaks), np.nextafter(grid[1:], 0.0), grid[1:])
        is_break = _is_break(grid, breaks)
        # The end of an interval before a break is just before the break, and its limits are
        # additional rows.
        all_points = rows.at(np.concatenate([grid[:-1], ends[-1:], ends[:-1][is_break]]), unit)
        right_points = np.arange(1, n + 1)
        right_points[np.flatnonzero(is_break)] = n + 1 + np.arange(is_break.sum())
        self.left = part(all_points, np.arange(n))
        self.right = part(all_points, right_points)
        self.top = np.append(self.left.top, self.right.top[-1])
        self.top[1:] = np.minimum(self.top[1:], self.right.top)
        self._between = rows.at(grid[self._intervals] + self._offsets, unit) if between else None
        self._reductions = np.zeros(self.left.r.shape)
        self.x = np.zeros(n + 1)

    def settle(self, stroke: Stroke, is_constant: np.ndarray) -> int:
        """Sweep until the squared speeds converge, and return the number of sweeps.

        Rows with viscous or static friction depend on the squared speeds of the last sweep.
        """
        if not self.left.g.any() and not self.left.e.any():
            return 0
        for k in range(MAX_SETTLING_SWEEPS):
            previous = self.x
            x = self.swept(stroke, is_constant).x
            if np.abs(x - previous).max() <= SETTLING_TOLERANCE * x.max():
                return k + 1
        return MAX_SETTLING_SWEEPS

    def swept(self, stroke: Stroke, is_constant: np.ndarray) -> Profile:
        """Return the fastest profile under the reduced limits (see `sweep`)."""
        left = self.left.linearized(self.x[:-1])
        right = self.right.linearized(self.x[1:])
        left[:, :, 2] -= self._reductions
        right[:, :, 2] -= self._reductions
        try:
            profile = sweep(self.grid, left, right, np.minimum(self.top, 1e6), is_constant)
        except NoProfileError as error:
            raise infeasible_error(stroke, self.left, self.grid, error.args[0]) from error
        self.x = profile.x
        return profile

    def excess(self, profile: Profile) -> np.ndarray:
        """Return the largest excess of each row in each interval (n, m)."""
        assert self._between is not None
        x, a = profile.at(self._intervals, self._offsets)
        excess = self._between.excess(x, a)
        return np.asarray(np.maximum.reduceat(excess, self._first_points, axis=0))

    def reduce_limits(self, reduction: np.ndarray) -> None:
        """Reduce the m limits of each interval by (n, m)."""
        self._reductions += reduction


def _with_reversal_points(grid: np.ndarray, reversals: np.ndarray) -> np.ndarray:
    """Return a grid with additional points where static friction decreases to sliding friction."""
    fractions = 0.5 ** np.arange(1, END_HALVINGS + 1)
    k = np.flatnonzero(np.isin(grid, reversals))
    after = np.append(0, k)  # intervals after the start and after reversals
    before = np.append(k - 1, len(grid) - 2)  # intervals before reversals and before the end
    d = np.diff(grid)
    points_after = grid[after, None] + d[after, None] * fractions
    points_before = grid[before + 1, None] - d[before, None] * fractions
    return np.unique(np.concatenate([grid, points_after.ravel(), points_before.ravel()]))


def _checked_fractions(grid: np.ndarray, stroke: Stroke) -> list[np.ndarray]:
    """Return the fractions of each interval at which limits are checked.

    The points are close together next to the ends and to reversals.
    """
    n = len(grid) - 1
    friction = stroke.dry_friction
    coarse = np.arange(POINTS_PER_INTERVAL) / POINTS_PER_INTERVAL
    close = np.arange(BETWEEN_ENDS) / BETWEEN_ENDS
    fractions = [coarse] * n
    decreases_with_speed = friction is not None and friction.depends_on_speed
    end_intervals = END_INTERVALS + (END_HALVINGS if decreases_with_speed else 0)
    for k in range(min(end_intervals, n)):
        fractions[k] = close
        fractions[n - 1 - k] = close
    fractions[0] = close**2
    fractions[-1] = 1.0 - (1.0 - close) ** 2
    if decreases_with_speed:
        reversals = np.flatnonzero(np.isin(grid, stroke.friction_sides.reversals)).tolist()
        for after in [0, *reversals]:
            fractions[after] = np.union1d(fractions[after], HALVES)
        for before in [*(k - 1 for k in reversals), n - 1]:
            fractions[before] = np.union1d(fractions[before], 1.0 - HALVES)
    return fractions


def _is_break(grid: np.ndarray, breaks: np.ndarray) -> np.ndarray:
    """Return whether the end of each interval except the last is a break (n - 1,)."""
    return np.isin(grid[1:-1], breaks)


def part(rows: LimitRows, points: np.ndarray) -> LimitRows:
    """Return the rows of some points."""
    columns = {name: getattr(rows, name)[points] for name in ("p", "q", "g", "r", "e", "c", "top")}
    return LimitRows(names=rows.names, **columns)


def with_breaks(grid: np.ndarray, breaks: np.ndarray) -> np.ndarray:
    """Return a grid in which the points nearest to the kinks of a path are moved onto them.

    If a point has already been moved, the kink is added as a new point.
    """
    grid = grid.copy()
    moved_points = set[int]()
    added = []
    for u in breaks.tolist():
        nearest = 1 + int(np.abs(grid[1:-1] - u).argmin())
        if nearest in moved_points:
            added.append(u)
            continue
        moved_points.add(nearest)
        grid[nearest] = u
    return np.union1d(grid, added)


def _distributed_grid(profile: Profile, rows: LimitRows, intervals: int) -> np.ndarray:
    """Return a grid that is uniform over a weighted sum of time, parameter and change of forces."""
    time = profile.times()
    length = np.diff(profile.grid)
    changes = sum(
        (
            np.abs(np.diff(values, axis=0, append=values[-1:]))
            / np.abs(values).max(axis=0, initial=1e-300)
        ).max(axis=1)
        for values in (rows.p, rows.q)
    )
    weight = (
        TIME_SHARE * time / time.sum()
        + PATH_SHARE * length
        + CHANGE_SHARE * changes / max(np.sum(changes), 1e-300)
    )
    cumulative = np.concatenate([[0.0], np.cumsum(weight)])
    grid = np.interp(np.linspace(0.0, cumulative[-1], intervals + 1), cumulative, profile.grid)
    grid[0], grid[-1] = 0.0, 1.0
    return grid


def law_rate(rows: PathRows, law: Law, near: float) -> float:
    """Return the largest rate (1/s) at which a law satisfies all limits, also between samples.

    `fastest_rate` is similar, with fewer limits.

    Args:
        rows: the limits.
        law: motion law over normalized time.
        near: a rate of the same magnitude, 1/s.

    Raises:
        PoseError: no rate satisfies the limits, or nothing limits the rate.
    """
    x = _times(rows, law)
    rate = near
    highest = 1.0
    shares = _quadratics(rows, law, x, rate)
    for _ in range(MAX_PEAK_ROUNDS):
        largest = _largest(shares)
        has_settled = abs(largest - rate) <= SWEEP_TOLERANCE * rate
        rate = largest
        values = shares.at(rate).max(axis=1) if rows.are_quadratic else None
        peak_times, heights = peaks(rows, law, rate, x, values)
        highest = float(heights[0])
        if highest <= 1.0 + SWEEP_TOLERANCE and has_settled:
            return rate
        new_times = np.setdiff1d(peak_times, x)
        x, order = np.unique(np.concatenate([x, new_times]), return_index=True)
        if not rows.are_quadratic:
            shares = _quadratics(rows, law, x, rate)
        elif len(new_times):
            shares = stacked([shares, _quadratics(rows, law, new_times, rate)]).part(order)
    return rate / max(highest, 1.0)


def sampled_rate(rows: PathRows, law: Law, near: float) -> float:
    """Return the largest rate (1/s) at which a law satisfies all limits at samples.

    Raises:
        PoseError: see `law_rate`.
    """
    return _largest(_quadratics(rows, law, _times(rows, law), near))


def _largest(shares: Quadratics) -> float:
    """Return the largest rate (1/s) at which no fraction of a limit exceeds 1.

    Raises:
        PoseError: no rate satisfies the limits, or nothing limits the rate.
    """
    largest = largest_rate(Quadratics(a=shares.a, b=shares.b, c=shares.c - 1.0))
    if 0 < largest < np.inf:
        return largest
    what = (
        "no rate of this law satisfies all limits"
        if largest == 0
        else "nothing limits the rate of this law"
    )
    raise PoseError.of("limits", what, "choose another law or other limits")


def _quadratics(rows: PathRows, law: Law, x: np.ndarray, rate: float) -> Quadratics:
    """Return the fractions of limits (N, k) at normalized times (N,) as quadratics in the rate."""
    progress = law.at(x)
    return Quadratics.through(rate, lambda rates: rows.shares_at(progress, rates)[0])


def highest_share(rows: PathRows, law: Law, rate: float) -> float:
    """Return the largest fraction of any limit for a law at a rate (1/s), also between samples."""
    return float(peaks(rows, law, rate, _times(rows, law))[1][0])


def _times(rows: PathRows, law: Law) -> np.ndarray:
    """Return normalized times that resolve all peaks, also inside each piece of a law."""
    breaks = np.array([0.0, *law.breaks, 1.0])
    fractions = (np.arange(POINTS_PER_INTERVAL) + 0.5) / POINTS_PER_INTERVAL
    inside = breaks[:-1, None] + np.diff(breaks)[:, None] * fractions
    return np.unique(
        np.concatenate([sample_times(rows.stroke, law), inside.ravel(), reversal_times(rows, law)])
    )


def reversal_times(rows: PathRows, law: Law) -> np.ndarray:
    """Return normalized times on both sides of jumps of dry friction, and just inside both ends."""
    reversals = rows.stroke.friction_sides.reversals
    before = np.zeros(len(reversals))
    after = np.ones(len(reversals))
    for _ in range(PLANNING_HALVINGS if len(reversals) else 0):
        middle = 0.5 * (before + after)
        is_before = law.at(middle).s < reversals
        before = np.where(is_before, middle, before)
        after = np.where(is_before, after, middle)
    return np.concatenate([[START_OFFSET, 1.0 - START_OFFSET], before, after])


def peaks(
    rows: PathRows, law: Law, rate: float, x: np.ndarray, values: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return normalized times and heights of the largest fractions of limits at a rate (1/s).

    Args:
        rows: the limits.
        law: motion law over normalized time.
        rate: rate of the law, 1/s.
        x: normalized times that resolve all peaks (N,).
        values: largest fraction at each of these times (N,), if known.
    """

    def share(x: np.ndarray) -> np.ndarray:
        return np.asarray(rows.shares(law.at(x), rate)[0].max(axis=1))

    values = share(x) if values is None else values
    # most largest fractions of a fastest law are 1, so there would be too many peaks to refine
    tops = vertices(x, values)
    if len(tops):
        x, places = np.unique(np.concatenate([x, tops]), return_index=True)
        values = np.concatenate([values, share(tops)])[places]
    return refined(share, x, values)
