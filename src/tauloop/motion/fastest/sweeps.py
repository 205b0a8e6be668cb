"""Reachable squared speeds along a path under limits, by two sweeps over a grid.

The limits are linear inequalities (rows) p x + q a <= r in the squared speed x = (du/dt)^2 and the
acceleration a = d2u/dt2 of the parameter u. The backward sweep finds the squared speeds from which
the end can be reached. The forward sweep selects the largest of these. Each interval of length d
has an acceleration at the left end (a_l) and at the right end (a_r), with x_{k+1} = x_k + d (a_l +
a_r). This is accurate to second order, while the usual scheme (a_l = a_r) is accurate to first
order. The usual scheme is used in intervals that are marked as constant.

Source: Pham and Pham 2018, A new approach to time-optimal path parameterization based on
reachability analysis; linear programs in two variables after Seidel 1991.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.compiler.c.calling.compiler import Compiler
from tauloop.compiler.c.calling.embedded import EmbeddedCompiler
from tauloop.compiler.c.calling.library import Library, compiler_for

#: A squared speed inside an interval counts as a dip if it is below this fraction of the squared
#: speeds at both ends.
DIP_RATIO = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile(ReprMixin):
    """Squared speeds and accelerations along a grid of n intervals.

    Attributes:
        grid: parameters u (n + 1,).
        x: squared speeds (n + 1,).
        first, second: accelerations at the start and the end of each interval (n,); linear in u
            between them.
    """

    grid: np.ndarray
    x: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @property
    def acceleration_slope(self) -> np.ndarray:
        """Derivatives da/du in the intervals (n,)."""
        return (self.second - self.first) / np.diff(self.grid)

    @property
    def dips(self) -> np.ndarray:
        """Whether the squared speed inside each interval (n,) is far below that at both ends."""
        has_minimum = (self.first < 0.0) & (self.second > 0.0)
        slope = np.where(has_minimum, self.acceleration_slope, 1.0)
        minimum = self.x[:-1] - self.first**2 / slope
        return np.asarray(has_minimum & (minimum < DIP_RATIO * np.minimum(self.x[:-1], self.x[1:])))

    def times(self) -> np.ndarray:
        """Return the duration of each interval (n,).

        The linear equation u'' = a_l + k (u - u_l) is solved exactly:
        tanh(sqrt(k) t / 2) = sqrt(k) d / (v_l + v_r). At an end where speed and acceleration
        vanish, the interval has a jerk that is constant in time instead, and t = 3 d / v.
        """
        d = np.diff(self.grid)
        v = np.sqrt(self.x)
        t = 2.0 * d / (v[1:] + v[:-1])
        z = 0.5 * np.sqrt(np.abs(self.acceleration_slope)) * t
        clipped = np.maximum(z, 1e-5)
        hyperbolic = np.arctanh(np.minimum(clipped, 1.0 - 1e-15)) / clipped
        trigonometric = np.arctan(clipped) / clipped
        factor = np.where(self.acceleration_slope > 0, hyperbolic, trigonometric)
        times = t * np.where(z <= 1e-5, 1.0, factor)
        is_smooth_start, is_smooth_end = self.has_smooth_ends
        if is_smooth_start:
            times[0] = 3.0 * d[0] / v[1]
        if is_smooth_end:
            times[-1] = 3.0 * d[-1] / v[-2]
        return np.asarray(times)

    @property
    def has_smooth_ends(self) -> tuple[bool, bool]:
        """Whether speed and acceleration vanish at the start, and at the end."""
        is_smooth_start = self.x[0] == 0.0 and self.first[0] == 0.0
        is_smooth_end = self.x[-1] == 0.0 and self.second[-1] == 0.0
        return bool(is_smooth_start), bool(is_smooth_end)

    def at(self, k: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return squared speeds and accelerations (N,) at distances w inside intervals k."""
        slope = self.acceleration_slope[k]
        a = self.first[k] + slope * w
        x = self.x[k] + 2.0 * self.first[k] * w + slope * w**2
        return np.maximum(x, 0.0), a


class NoProfileError(Exception):
    """Error that no profile satisfies all rows. Its argument is the index of the interval."""


def sweep(
    grid: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    top: np.ndarray,
    is_constant: np.ndarray,
) -> Profile:
    """Return the fastest profile from rest to rest.

    Args:
        grid: parameters u (n + 1,).
        left, right: rows (p, q, r) at the start and the end of each interval (n, m, 3).
        top: largest squared speeds (n + 1,).
        is_constant: whether the acceleration is constant in each interval (n,).

    Raises:
        NoProfileError: no profile satisfies all rows.
        EngineError: no C compiler was found, or it fails.
    """
    n, m = left.shape[:2]
    low = np.zeros(n + 1)
    high = np.zeros(n + 1)
    x = np.zeros(n + 1)
    first = np.zeros(n)
    second = np.zeros(n)
    grid_rows = [
        np.ascontiguousarray(values, dtype=float)
        for values in (grid, left, right, top, is_constant, np.zeros(2))
    ]
    function = _machine_code(compiler_for(n * m))
    memory = np.zeros(6 * m + 24)  # rows of both ends and 8 more, with three numbers each
    failure = function(n, m, *grid_rows, low, high, x, first, second, memory)
    if failure >= 0:
        raise NoProfileError(failure % n)
    return Profile(grid=grid, x=x, first=first, second=second)


@cache
def _machine_code(compiler: Compiler | EmbeddedCompiler) -> Callable[..., int]:
    """Return the compiled function of the two sweeps."""
    text = Path(__file__).with_name("reach.c").read_text(encoding="utf-8")
    return Library.create(text, compiler).function("reach", "nn************", "l")
