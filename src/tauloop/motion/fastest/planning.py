"""The fastest law along a stroke: a profile whose limits hold between the points of its grid too.

The profile is first found on a coarse grid. A grid that is even in time, parameter and change of forces follows, and on
it the profile by `sweep`. Ten points in each interval then show by how much a limit is exceeded between the grid's:
that is taken off the interval's limits, and the profile is found anew until nothing is left. Peaks between these points
are taken care of by the rate at which the law is run, as for any other law.
"""

from __future__ import annotations

import numpy as np

from tauloop.errors import PoseError
from tauloop.motion.fastest.law import ProfileLaw
from tauloop.motion.fastest.limits import LimitRows, PathRows, unmet
from tauloop.motion.fastest.sweeps import NoProfileError, Profile, sweep
from tauloop.motion.laws import Law
from tauloop.motion.limits import sample_times
from tauloop.motion.peaks import refined
from tauloop.motion.scaling import Quadratics, largest_rate
from tauloop.motion.stroke import Stroke
from tauloop.records import dataclass
from tauloop.shown import Shown

#: Intervals of the grid.
INTERVALS = 1000
#: Points in each interval at which limits are looked at.
BETWEEN = 10
#: Most sweeps, and the excess at which they end.
SWEEPS, EXCESS = 24, 1e-9
#: Intervals whose limits are exceeded by more between their ends get one acceleration for both, in the first sweeps.
ROUGH, ROUGH_SWEEPS = 1e-3, 4
#: So do those in which more than this is exceeded, and no less than this share of it in the sweep before.
STALLED, HARDLY = 1e-6, 0.5
#: Sweeps before limits are taken off where roots are put as tangents: these must have settled.
TANGENTS = 3
#: What makes up the grid: shares of time, parameter, and change of the forces.
TIME_SHARE, PATH_SHARE, CHANGE_SHARE = 1.0, 0.3, 0.5
#: Halvings that find where a joint turns; below this share of all speeds none moves; and a time just behind the start.
HALVINGS, STILL, BARELY = 12, 1e-9, 1e-6
#: Rounds of peaks between samples when the rate is found.
ROUNDS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class FastestLaw(Shown):
    """The fastest law along a stroke.

    Attributes:
        law: the motion law.
        duration: s.
        rows: all limits along the stroke.
        unit: the rate (1/s) in which rows are taken.
        sweeps: how many were needed.
    """

    law: Law
    duration: float
    rows: PathRows
    unit: float
    sweeps: int


def fastest_law(rows: PathRows, *, intervals: int = INTERVALS) -> FastestLaw:
    """The fastest motion along a stroke under limits, from rest to rest.

    Args:
        rows: the limits along the stroke.
        intervals: of the grid.

    Raises:
        PoseError: the limits cannot be met: where.
    """
    unit = rows.unit()
    profile, sweeps = fastest_profile(rows, unit, intervals)
    law = ProfileLaw(profile)
    rate = law_rate(rows, law, unit)
    return FastestLaw(law=law, duration=1.0 / rate, rows=rows, unit=unit, sweeps=sweeps)


def fastest_profile(rows: PathRows, unit: float, intervals: int) -> tuple[Profile, int]:
    """The profile on a grid of so many intervals, and the number of sweeps."""
    stroke = rows.stroke
    breaks, kinks = np.array(stroke.path.breaks), np.array(stroke.path.kinks)
    coarse = with_breaks(np.linspace(0.0, 1.0, max(intervals // 4, 8) + 1), kinks)
    looked = _Grid(rows, unit, coarse, breaks, 0)
    first = looked.swept(stroke, np.ones(len(coarse) - 1))
    grid = with_breaks(_spread(first, looked.left, intervals), kinks)
    fine = _Grid(rows, unit, grid, breaks, BETWEEN)
    n = len(grid) - 1
    is_constant = np.zeros(n)
    is_constant[[0, -1]] = 1.0
    fine.x = np.interp(grid, first.grid, first.x)
    before = np.full(n, np.inf)
    profile, settling = first, TANGENTS if fine.has_roots else 0
    for k in range(SWEEPS + settling):
        profile = fine.swept(stroke, is_constant)
        over = fine.excess(profile)
        if k >= settling and over.max() < EXCESS:
            return profile, k + 1
        if k < settling:
            continue
        most = over.max(axis=1)
        rough = (most > ROUGH) & (k < settling + ROUGH_SWEEPS) | (most > STALLED) & (most > HARDLY * before)
        rough &= is_constant == 0
        is_constant[rough], before = 1.0, most
        fine.take_off(np.where(rough[:, None], 0.0, np.maximum(over, 0.0)))
    return profile, SWEEPS + settling


class _Grid:
    """Rows at the points of a grid and between them, with what has been taken off their limits."""

    def __init__(self, rows: PathRows, unit: float, grid: np.ndarray, breaks: np.ndarray, between: int) -> None:
        self.grid, n = grid, len(grid) - 1
        self.k = np.tile(np.arange(n), between)
        self.w = np.repeat(np.arange(between) / max(between, 1), n) * np.diff(grid)[self.k]
        ends = np.where(np.isin(grid[1:], breaks), np.nextafter(grid[1:], 0.0), grid[1:])
        every = rows.at(np.concatenate([grid[:-1], ends[-1:], ends[:-1][_is_break(grid, breaks)]]), unit)
        order = np.arange(1, n + 1)
        order[np.flatnonzero(_is_break(grid, breaks))] = n + 1 + np.arange(_is_break(grid, breaks).sum())
        self.left, self.right = part(every, np.arange(n)), part(every, order)
        self.top = np.append(self.left.top, self.right.top[-1])
        self.top[1:] = np.minimum(self.top[1:], self.right.top)
        self.inside = rows.at(grid[self.k] + self.w, unit) if between else None
        self.off = np.zeros(self.left.r.shape)
        self.x = np.zeros(n + 1)

    @property
    def has_roots(self) -> bool:
        """Whether some row has a part in the root of x."""
        return bool(self.left.g.any())

    def swept(self, stroke: Stroke, is_constant: np.ndarray) -> Profile:
        """The profile under what is left of the limits."""
        left, right = self.left.three(self.x[:-1]), self.right.three(self.x[1:])
        left[:, :, 2] -= self.off
        right[:, :, 2] -= self.off
        try:
            profile = sweep(self.grid, left, right, np.minimum(self.top, 1e6), is_constant)
        except NoProfileError as error:
            raise unmet(stroke, self.left, self.grid, error.args[0]) from error
        self.x = profile.x
        return profile

    def excess(self, profile: Profile) -> np.ndarray:
        """Largest excess of each row in each interval (n, m)."""
        assert self.inside is not None
        x, a = profile.at(self.k, self.w)
        over = self.inside.excess(x, a)
        return np.asarray(over.reshape(-1, len(self.grid) - 1, over.shape[1]).max(axis=0))

    def take_off(self, over: np.ndarray) -> None:
        """Take off the limits of each interval (n, m)."""
        self.off += over


def _is_break(grid: np.ndarray, breaks: np.ndarray) -> np.ndarray:
    """Which ends of intervals but the last are breaks (n - 1,)."""
    return np.isin(grid[1:-1], breaks)


def part(rows: LimitRows, points: np.ndarray) -> LimitRows:
    """The rows of some points."""
    p, q, g, r, top = (getattr(rows, name)[points] for name in ("p", "q", "g", "r", "top"))
    return LimitRows(names=rows.names, p=p, q=q, g=g, r=r, top=top)


def with_breaks(grid: np.ndarray, breaks: np.ndarray) -> np.ndarray:
    """A grid whose nearest inner points are moved to the kinks of a path."""
    grid = grid.copy()
    for u in breaks:
        grid[1 + np.abs(grid[1:-1] - u).argmin()] = u
    return np.unique(grid)


def _spread(profile: Profile, rows: LimitRows, intervals: int) -> np.ndarray:
    """A grid over which time, parameter and change of the forces are spread alike."""
    time, length = profile.times(), np.diff(profile.grid)
    changes = sum(
        (np.abs(np.diff(values, axis=0, append=values[-1:])) / np.abs(values).max(axis=0, initial=1e-300)).max(axis=1)
        for values in (rows.p, rows.q)
    )
    weight = (
        TIME_SHARE * time / time.sum() + PATH_SHARE * length + CHANGE_SHARE * changes / max(np.sum(changes), 1e-300)
    )
    reached = np.concatenate([[0.0], np.cumsum(weight)])
    grid = np.interp(np.linspace(0.0, reached[-1], intervals + 1), reached, profile.grid)
    grid[0], grid[-1] = 0.0, 1.0
    return grid


def law_rate(rows: PathRows, law: Law, near: float) -> float:
    """Largest rate (1/s) at which any law keeps all limits, between samples too; as `fastest_rate`, with more limits.

    Args:
        rows: the limits.
        law: the law.
        near: a rate of its size, 1/s.

    Raises:
        PoseError: there is none.
    """
    x, rate, highest = sample_times(rows.stroke, law), near, 1.0
    x = np.union1d(x, turns(rows, law, x))
    for _ in range(ROUNDS):
        shares = Quadratics.around(rate, lambda r: rows.shares(law.at(x), r)[0])  # noqa: B023 - called at once
        largest = largest_rate(Quadratics(a=shares.a, b=shares.b, c=shares.c - 1.0))
        if not 0 < largest < np.inf:
            what = "no rate of this law keeps all limits" if largest == 0 else "nothing limits the rate of this law"
            raise PoseError.of("limits", what, "another law, or other limits")
        settled, rate = abs(largest - rate) <= EXCESS * rate, largest
        places, heights = peaks(rows, law, rate, x)
        highest = float(heights[0])
        if highest <= 1.0 + EXCESS and settled:
            return rate
        x = np.union1d(x, places)
    return rate / max(highest, 1.0)


def turns(rows: PathRows, law: Law, x: np.ndarray) -> np.ndarray:
    """Normalised times just before and just behind where motors and joints turn, start or stop: Coulomb friction jumps.

    Args:
        rows: the limits.
        law: the law.
        x: times between which a joint turns once at most (N,).
    """

    def speeds(x: np.ndarray) -> np.ndarray:
        progress = law.at(x)
        _, (values,) = next(rows.forces(progress.s, np.abs(progress.first)[None], np.zeros((1, len(x)))))
        return np.asarray(values[:, rows.count :])

    v = speeds(x)
    is_moving = np.abs(v) > STILL * np.abs(v).max(initial=0.0)
    k, i = np.nonzero((v[:-1] * v[1:] < 0) & is_moving[:-1] & is_moving[1:])
    before, behind = x[k], x[k + 1]
    for _ in range(HALVINGS if len(k) else 0):
        middle = 0.5 * (before + behind)
        is_ahead = speeds(middle)[np.arange(len(k)), i] * v[k, i] > 0
        before, behind = np.where(is_ahead, middle, before), np.where(is_ahead, behind, middle)
    return np.concatenate([[BARELY, 1.0 - BARELY], before, behind])


def peaks(rows: PathRows, law: Law, rate: float, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Normalised times of the highest shares of any limit, and these, when a law is run at a rate (1/s)."""

    def share(x: np.ndarray) -> np.ndarray:
        return np.asarray(rows.shares(law.at(x), rate)[0].max(axis=1))

    return refined(share, x, share(x))
