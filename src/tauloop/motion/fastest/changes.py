"""The fastest law with bounded changes of forces and accelerations.

The unknowns are speeds v = du/dt and accelerations a = d2u/dt2 at points along the path. Between
points, a is linear in u: v_{k+1}^2 - v_k^2 = d (a_k + a_{k+1}). All other limits are unchanged.
With the time 2 d / (v_k + v_{k+1}) from point to point, the rate of change of each force is
bounded: |f_{k+1} - f_k| (v_k + v_{k+1}) / (2 d) <= rate. Only this product is not convex. IPOPT
starts from a slow smooth law. If the motors hold the machine at the start and the end, the first
and the last interval have a jerk that is constant in time.

Dry friction jumps where a joint reverses. Changes are computed without it. Forces satisfy their
limits on both sides of a jump.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from tauloop.common.errors import PoseError
from tauloop.common.records import dataclass
from tauloop.motion.fastest.law import ProfileLaw
from tauloop.motion.fastest.limits import LimitRows, PathForces, PathRows
from tauloop.motion.fastest.planning import (
    FastestLaw,
    highest_share,
    law_rate,
    sampled_rate,
    with_breaks,
)
from tauloop.motion.fastest.sweeps import Profile
from tauloop.motion.laws import POLYNOMIAL_4567, Law

#: Number of intervals along the path.
PATH_POINTS = 400
#: Maximum number of IPOPT iterations.
MAX_SOLVER_STEPS = 500
#: Tolerance of the optimum.
TOLERANCE = 1e-7
#: Factor of the initial law's duration on the shortest duration of this law.
START_SLOWDOWN = 1.6
#: Weight of the path's parameter, relative to time, in the distribution of the points.
PATH_SHARE = 0.5
#: Weight of changes of forces, relative to time, in the distribution of the points.
CHANGE_SHARE = 0.5
#: Maximum number of programs. The limits of each are reduced by the excess between points of the
#: previous program.
MAX_PROGRAMS = 4
#: Number of points at which the final changes are evaluated.
CHECK_POINTS = 4001
#: Maximum number of rounds to determine the rate.
MAX_RATE_ROUNDS = 30
#: Relative excess of changes at which these rounds end.
RATE_TOLERANCE = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Quantities with bounded changes: y = alpha a + beta x + gamma sqrt(x) + rest.

    The squared speed of the path's parameter is x, its acceleration a. The columns are scaled so
    that a change of 1 per second is allowed.

    Attributes:
        scalars: forces whose changes are bounded individually.
        vectors: components of a vector, the length of whose change is bounded; empty for no bound.
    """

    scalars: tuple[PathForces, ...]
    vectors: tuple[PathForces, ...]


def limited_law(fastest: FastestLaw, *, points: int = PATH_POINTS) -> FastestLaw:
    """Return the fastest law with bounded changes of motor forces and of the tool's acceleration.

    Args:
        fastest: the law without these bounds.
        points: number of intervals along the path.

    Raises:
        PoseError: no law is found.
    """
    rows = fastest.rows
    unit = fastest.unit
    grid = _grid(fastest, points)
    allowed = np.ones(len(grid) - 1)
    program = _Program(rows, unit, grid)
    law, rate, changes = _solved_law(program, rows, unit, allowed)
    for _ in range(MAX_PROGRAMS - 1):
        used, parameters = changes.used_fractions(rate)
        k = np.clip(np.searchsorted(grid, parameters, side="right") - 1, 0, len(allowed) - 1)
        largest_used = np.zeros(len(allowed))
        np.maximum.at(largest_used, k, used)
        if largest_used.max() <= 1.0 + 1e-3:
            break
        allowed = allowed / np.maximum(largest_used, 1.0)
        law, rate, changes = _solved_law(program, rows, unit, allowed)
    rate = changes.slowed(rate)
    unbounded_rate = 1.0 / fastest.duration
    # Additional limits cannot shorten a motion. A shorter motion here is due to the different
    # grids.
    if rate > unbounded_rate and highest_share(rows, law, unbounded_rate) <= 1.0 + RATE_TOLERANCE:
        rate = unbounded_rate
    return replace(fastest, law=law, duration=1.0 / rate)


def _solved_law(
    program: _Program, rows: PathRows, unit: float, allowed: np.ndarray
) -> tuple[ProfileLaw, float, LawChanges]:
    """Return the law of a program, its rate (1/s) without bounds of changes, and its changes."""
    law = ProfileLaw(program.solved(allowed))
    return law, law_rate(rows, law, unit / law.duration), LawChanges(rows, law, unit)


class LawChanges:
    """Changes of forces and accelerations along a law, of which the rate is free.

    The coefficients do not depend on the rate and are computed once.
    """

    def __init__(self, rows: PathRows, law: Law, unit: float, points: int = CHECK_POINTS) -> None:
        """Evaluate the coefficients.

        Args:
            rows: the limits.
            law: motion law over normalized time.
            unit: a rate of the same magnitude as the motion's rate, 1/s.
            points: number of points, evenly spaced in time.
        """
        self._progress = law.at(np.linspace(0.0, 1.0, points))
        self._changes = _changes(rows, self._progress.s, unit)

    def used_fractions(self, rate: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the largest used fractions of the bounds at a rate (1/s), and where they are used.

        Returns:
            Fractions (M,) in M = points - 1 intervals of time, and the path's parameter (M,) in the
            middle of each interval.
        """
        progress = self._progress
        intervals = len(self._progress.s) - 1
        v = progress.derivative[:, None] * rate
        a = progress.second_derivative[:, None] * rate**2

        def steps(y: PathForces) -> np.ndarray:
            """Return the changes per second in the intervals."""
            values = y.alpha * a + y.beta * v**2 + y.gamma * v + y.rest
            return np.asarray(np.diff(values, axis=0) * intervals * rate)

        used = [np.abs(steps(y)).max(axis=1) for y in self._changes.scalars]
        used += [np.linalg.norm(steps(y), axis=1) for y in self._changes.vectors]
        return np.max(used, axis=0), 0.5 * (progress.s[1:] + progress.s[:-1])

    def slowed(self, rate: float) -> float:
        """Return the rate at which bounds of changes are also satisfied, 1/s.

        Changes of inertial forces are proportional to the third power of the rate.
        """
        for _ in range(MAX_RATE_ROUNDS):
            share = float(self.used_fractions(rate)[0].max())
            if share <= 1.0 + RATE_TOLERANCE:
                break
            rate *= min(share ** (-1.0 / 3.0), 1.0 - RATE_TOLERANCE)
        return rate


def changes_taken(
    rows: PathRows, law: Law, rate: float, unit: float, points: int = CHECK_POINTS
) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest used fraction of the bounds of changes at a rate (1/s), along a law.

    Returns:
        Fractions (M,) in M = points - 1 intervals of time, and the path's parameter in the middle of
        each interval (M,).
    """
    return LawChanges(rows, law, unit, points).used_fractions(rate)


def _changes(rows: PathRows, u: np.ndarray, unit: float) -> Changes:
    """Return the quantities with bounded changes at parameters u (N,)."""
    scalars = []
    vectors = []
    limits = rows.limits
    if limits.reversal > 0:
        limited = np.flatnonzero(np.isfinite(rows.full))
        scale = limits.reversal / (2.0 * rows.full[limited])
        for y in rows.even_quantities(u, unit):
            values = {
                name: getattr(y, name)[:, limited] * scale
                for name in ("alpha", "beta", "gamma", "rest")
            }
            scalars.append(replace(y, **values))
    if np.isfinite(limits.tool_jerk):
        tangent, normal = rows.tool(u)
        zero = np.zeros_like(tangent)
        none = np.zeros((len(u), 0))
        constant = {
            "gamma": zero,
            "rest": zero,
            "rates": zero,
            "falling": zero[:, :, None][:, :, :0],
            "fall": none,
        }
        values = {"alpha": tangent / limits.tool_jerk, "beta": normal / limits.tool_jerk}
        vectors.append(PathForces(names=("tool jerk",) * 3, **constant, **values))
    return Changes(scalars=tuple(scalars), vectors=tuple(vectors))


def _grid(fastest: FastestLaw, points: int) -> np.ndarray:
    """Return points along the path, distributed over time, path and changes of forces.

    The time is that of the mean of the fastest law and a smooth law.
    """
    rows = fastest.rows
    time = np.linspace(0.0, 1.0, 4001)
    u = 0.5 * (fastest.law.at(time).s + POLYNOMIAL_4567.at(time).s)
    at = rows.at(u, fastest.unit)
    moves = sum(
        (np.abs(np.diff(values, axis=0)) / np.abs(values).max(axis=0, initial=1e-300)).max(axis=1)
        for values in (at.p, at.q)
    )
    weight = (
        np.diff(time) + PATH_SHARE * np.diff(u) + CHANGE_SHARE * moves / max(np.sum(moves), 1e-300)
    )
    cumulative = np.concatenate([[0.0], np.cumsum(weight)])
    grid = np.interp(np.linspace(0.0, cumulative[-1], points + 1), cumulative, u)
    grid[0], grid[-1] = 0.0, 1.0
    return with_breaks(grid, np.array(rows.stroke.kinks))


def slowed(rows: PathRows, law: Law, rate: float, unit: float) -> float:
    """Return the rate at which bounds of changes are also satisfied, 1/s."""
    return LawChanges(rows, law, unit).slowed(rate)


class _Program:
    """The nonlinear program of the fastest law on a grid of n intervals.

    The unknowns are the speeds v and accelerations a of the path's parameter at the points. The
    parameters are the allowed changes in each interval.
    """

    def __init__(self, rows: PathRows, unit: float, grid: np.ndarray) -> None:
        """Build the objective and the constraints."""
        n = len(grid) - 1
        d = np.diff(grid)
        is_held = rows.limits.ends == "held"
        at = rows.at(grid, unit)
        changes = _changes(rows, grid, unit)
        unknown = ca.MX.sym("va", 2 * (n + 1))
        allowed = ca.MX.sym("allowed", n)
        v = unknown[: n + 1]
        a = unknown[n + 1 :]
        starts = slice(0, n)
        ends = slice(1, n + 1)
        # Change of v^2 per d (a_start + a_end): 1 if the acceleration is linear along the path, 3/2
        # if the jerk is constant in time, as at ends at rest.
        factors = np.ones(n)
        if is_held:
            factors[[0, -1]] = 1.5
        equal = (v[ends] ** 2 - v[starts] ** 2) / d - factors * (a[starts] + a[ends])
        bounded = [_Bounded(values=equal, low=np.zeros(n), high=np.zeros(n))]
        bounded += _limit_constraints(at, v, a)
        jumps = np.flatnonzero(np.isin(grid, rows.stroke.breaks))
        if len(jumps):  # At jumps, the limits on both sides must be satisfied.
            points = jumps.tolist()
            bounded += _limit_constraints(
                rows.at(np.nextafter(grid[jumps], 0.0), unit), v[points], a[points]
            )
        speed = (v[ends] + v[starts]) / (2.0 * d) * unit

        def steps(y: PathForces, i: int) -> ca.MX:
            """Return the changes of a quantity in the intervals, divided by the allowed changes."""
            alpha = ca.DM(y.alpha[:, i] * unit**2)
            beta = ca.DM(y.beta[:, i] * unit**2)
            gamma = ca.DM(y.gamma[:, i] * unit)
            values = alpha * a + beta * v**2 + gamma * v + y.rest[:, i]
            return (values[ends] - values[starts]) * speed / allowed

        ones = np.ones(n)
        none = np.full(n, -np.inf)
        for y in changes.scalars:
            for i in range(y.alpha.shape[1]):
                bounded.append(_Bounded(values=steps(y, i), low=-ones, high=ones))
        for y in changes.vectors:
            squares = steps(y, 0) ** 2 + steps(y, 1) ** 2 + steps(y, 2) ** 2
            bounded.append(_Bounded(values=squares, low=none, high=ones))
        self._grid = grid
        self._start = _slow_start(rows, unit, grid)
        self._solves = 0
        self._program: Any = {
            "x": unknown,
            "p": allowed,
            "f": ca.sum1(2.0 * d / (v[starts] + v[ends])),
            "g": ca.vertcat(*(part.values for part in bounded)),
        }
        low = np.zeros(2 * (n + 1))
        high = np.full(2 * (n + 1), 1e5)
        low[1:n] = 1e-9
        high[: n + 1] = np.sqrt(np.minimum(at.top, 1e10))
        high[[0, n]] = 0.0
        low[n + 1 :] = -1e5
        if is_held:
            low[[n + 1, -1]] = 0.0
            high[[n + 1, -1]] = 0.0
        self._bounds: dict[str, Any] = {
            "lbx": low,
            "ubx": high,
            "lbg": np.concatenate([part.low for part in bounded]),
            "ubg": np.concatenate([part.high for part in bounded]),
        }

    @cached_property
    def _first_solver(self) -> ca.Function:
        """Solver that starts far from the solution."""
        return self._solver(1e-2)

    @cached_property
    def _next_solver(self) -> ca.Function:
        """Solver that starts from the solution for similar bounds."""
        return self._solver(1e-4)

    def _solver(self, barrier: float) -> ca.Function:
        """Return IPOPT with an initial barrier parameter."""
        settings: dict[str, object] = {
            "print_level": 0,
            "sb": "yes",
            "max_iter": MAX_SOLVER_STEPS,
            "tol": TOLERANCE,
            "mu_init": barrier,
        }
        options: dict[str, Any] = {"print_time": False, "ipopt": settings}
        return ca.nlpsol("law", "ipopt", self._program, options)

    def solved(self, allowed: np.ndarray) -> Profile:
        """Return the profile that IPOPT finds, with given allowed changes of the intervals (n,).

        IPOPT starts from the last profile if there is one.

        Raises:
            PoseError: no profile is found.
        """
        n = len(self._grid) - 1
        solver = self._first_solver if self._solves == 0 else self._next_solver
        solution = solver(x0=self._start, p=allowed, **self._bounds)
        if not solver.stats()["success"]:
            what = (
                f"no law within the bounds of changes was found: {solver.stats()['return_status']}"
            )
            raise PoseError.of(
                "reversal", what, "allow a shorter reversal or more jerk, or choose another path"
            )
        self._start = np.asarray(solution["x"]).ravel()
        self._solves += 1
        v = self._start[: n + 1]
        a = self._start[n + 1 :]
        return Profile(grid=self._grid, x=v**2, first=a[:-1].copy(), second=a[1:].copy())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounded:
    """Expressions (N,) of a nonlinear program with their lower and upper bounds (N,)."""

    values: ca.MX
    low: np.ndarray
    high: np.ndarray


def _limit_constraints(at: LimitRows, v: ca.MX, a: ca.MX) -> list[_Bounded]:
    """Return the limits at N points as constraints on speeds and accelerations (N,).

    Two rows that bound the same values from both sides become one constraint with two bounds, which
    halves the linear systems of the solver.
    """
    bounded = []
    opposite = _opposite_rows(at)
    for i in range(at.p.shape[1]):
        if i in opposite.values():
            continue
        values = ca.DM(at.p[:, i]) * v**2 + ca.DM(at.q[:, i]) * a + ca.DM(at.g[:, i]) * v
        for j in range(at.c.shape[1]):
            values += ca.DM(at.e[:, i, j]) * ca.exp(-ca.DM(at.c[:, j]) * v**2)
        other = opposite.get(i)
        low = np.full(len(at.p), -np.inf) if other is None else -at.r[:, other]
        bounded.append(_Bounded(values=values, low=low, high=at.r[:, i]))
    return bounded


def _opposite_rows(at: LimitRows) -> dict[int, int]:
    """Return the index of the row with the opposite coefficients, by the index of a first row."""
    count = at.p.shape[1]
    columns = [
        np.concatenate([at.p[:, i], at.q[:, i], at.g[:, i], at.e[:, i].ravel()])
        for i in range(count)
    ]
    opposite: dict[int, int] = {}
    for i in range(count - 1):
        # both sides of a force are adjacent rows
        if i not in opposite.values() and np.array_equal(columns[i], -columns[i + 1]):
            opposite[i] = i + 1
    return opposite


def _slow_start(rows: PathRows, unit: float, grid: np.ndarray) -> np.ndarray:
    """Return the speeds, followed by the accelerations, of a slow smooth law (2 n + 2,)."""
    law = POLYNOMIAL_4567
    time = np.linspace(0.0, 1.0, 4001)
    rate = sampled_rate(rows, law, unit)
    duration = START_SLOWDOWN / rate + rows.limits.reversal
    progress = law.at(time)
    v = np.interp(grid, progress.s, progress.derivative) / duration / unit
    a = np.interp(grid, progress.s, progress.second_derivative) / (duration * unit) ** 2
    return np.concatenate([v, a])
