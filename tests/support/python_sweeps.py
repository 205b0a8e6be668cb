"""The sweeps of `reach.c` in Python, each step solved as a linear program by HiGHS."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from tauloop.motion.fastest.sweeps import NoProfileError, Profile


def reference_sweep(
    grid: np.ndarray, left: np.ndarray, right: np.ndarray, top: np.ndarray, is_constant: np.ndarray
) -> Profile:
    """Return the profile of `sweep`."""
    n = len(grid) - 1
    results = (*(np.zeros(n + 1) for _ in range(3)), np.zeros(n), np.zeros(n))
    place = _sweep([grid, left, right, top, is_constant, np.zeros(2)], results)
    if place >= 0:
        raise NoProfileError(place % n)
    return Profile(grid=grid, x=results[2], first=results[3], second=results[4])


def _sweep(rows: list[np.ndarray], results: tuple[np.ndarray, ...]) -> int:
    """Return the sweeps of `reach.c`; each step is a program of HiGHS in (x_l, a_l, x_r, a_r)."""
    grid, left, right, top, is_constant, ends = rows
    low, high, x, first, second = results
    n = len(grid) - 1
    low[n] = high[n] = ends[1]
    for k in range(n - 1, -1, -1):
        step = _Interval(
            grid[k + 1] - grid[k],
            left[k],
            right[k],
            top[k],
            (low[k + 1], high[k + 1]),
            is_constant[k] > 0.5,
        )
        reached = step.largest(-1.0, 0.0), step.largest(1.0, 0.0)
        if reached[0] is None or reached[1] is None:
            return k
        high[k], low[k] = reached[0][0], max(reached[1][0], 0.0)
    x[0] = ends[0]
    if low[0] > ends[0] + 1e-9:
        return 0
    for k in range(n):
        fixed = (x[k] - 1e-12, x[k] + 1e-12)
        step = _Interval(
            grid[k + 1] - grid[k],
            left[k],
            right[k],
            np.inf,
            (low[k + 1], high[k + 1]),
            is_constant[k] > 0.5,
        )
        ahead = step.largest(0.0, -1.0, fixed)
        if ahead is None:
            return n + k
        x[k + 1], first[k], second[k] = ahead[2], ahead[1], ahead[3]
    return -1


class _Interval:
    """One interval: all rows of both ends, and the equations that connect its ends."""

    def __init__(
        self,
        d: float,
        left: np.ndarray,
        right: np.ndarray,
        top: float,
        behind: tuple[float, float],
        is_constant: bool,
    ) -> None:
        zero = np.zeros((len(left), 2))
        self._rows = np.block([[left[:, :2], zero], [zero, right[:, :2]]])
        self._room = np.concatenate([left[:, 2], right[:, 2]])
        self._equal = np.array([[1.0, d, -1.0, d], [0.0, 1.0, 0.0, -1.0]])[
            : 2 if is_constant else 1
        ]
        self._top, self._behind = top, behind

    def largest(
        self, here: float, there: float, fixed: tuple[float, float] | None = None
    ) -> np.ndarray | None:
        """Return (x_l, a_l, x_r, a_r) with the least here x_l + there x_r; None if infeasible."""
        bounds = [fixed or (0.0, self._top), (None, None), self._behind, (None, None)]
        solution = linprog(
            [here, 0.0, there, 0.0],
            self._rows,
            self._room,
            self._equal,
            np.zeros(len(self._equal)),
            bounds,
        )
        return np.asarray(solution.x) if solution.status == 0 else None
