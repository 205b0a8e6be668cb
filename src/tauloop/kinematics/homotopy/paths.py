"""Path tracking: follow solutions of a polynomial system while its parameters change.

H(x, t) = F(x, y(t)) + e(t) = 0 with y(t) and e(t) straight lines in the complex numbers. Compiled
C code (`homotopy.c`) tracks the paths with a fourth-order Runge-Kutta predictor on dx/dt = -F_x^-1
(F_y y' + e') and Newton's method as corrector (section 2.3).

Source: Sommese and Wampler 2005, The Numerical Solution of Systems of Polynomials Arising in
Engineering and Science.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

import numpy as np

from tauloop.common.execution.stopping import StopCode
from tauloop.common.options import Options
from tauloop.common.records import dataclass


class PolynomialSystem(Protocol):
    """A square polynomial system with parameters: F(x, y) + e."""

    def linearized(
        self, x: np.ndarray, y: np.ndarray, y_rate: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return F (N, m), F_x (N, m, m) and F_y y' (N, m) at x (N, m), y and y' (N, k)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackingOptions(Options):
    """Options of path tracking.

    Attributes:
        tolerance: largest size of Newton's last step, relative to 1 + |x|, for a point to be
            accepted.
        corrections: maximum number of Newton steps per step of the path; if more are needed, the
            step is halved.
        end_tolerance, end_corrections: tolerance and maximum number of Newton steps at t = 1.
            Newton's method doubles the number of correct digits of a regular solution, but only
            halves the distance to a multiple solution.
        regular_ratio: largest ratio of two consecutive Newton steps of a regular solution. It is
            used if the last step at t = 1 is between the two tolerances, because rounding errors
            limit the step in ill-conditioned equations.
        first_step: initial step in t.
        longest_step: largest step in t.
        smallest_step: smallest step in t; paths that need smaller steps stop.
        infinity: size of a point beyond which a path has diverged.
        steps: maximum number of attempted steps.
    """

    tolerance: float = 1e-7
    corrections: int = 3
    end_tolerance: float = 1e-10
    end_corrections: int = 5
    regular_ratio: float = 0.01
    first_step: float = 0.05
    longest_step: float = 0.2
    smallest_step: float = 1e-13
    infinity: float = 1e6
    steps: int = 2000


class PathEnding(StopCode):
    """Reason why a path ended."""

    SUCCESS = 0
    MAX_STEPS = 1
    DIVERGED = 2
    STEP_TOO_SMALL = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterLine:
    """Parameters along a straight line from t = 0 to t = 1, one row for each of N paths.

    Attributes:
        y0, y1: parameters of F at t = 0 and 1 (N, k).
        e0, e1: constants added to F at t = 0 and 1 (N, m).
    """

    y0: np.ndarray
    y1: np.ndarray
    e0: np.ndarray
    e1: np.ndarray

    def at(
        self, rows: np.ndarray, t: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return y, y', e and e' of the given paths, each at its value of t (N,)."""
        y_rate = self.y1[rows] - self.y0[rows]
        e_rate = self.e1[rows] - self.e0[rows]
        return (
            self.y0[rows] + t[:, None] * y_rate,
            y_rate,
            self.e0[rows] + t[:, None] * e_rate,
            e_rate,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracked:
    """Results of path tracking.

    Attributes:
        x: last points (N, m).
        t: values of t that the paths reached (N,).
        endings: `PathEnding` of every path (N,).
        steps: number of attempted steps of all paths.
    """

    x: np.ndarray
    t: np.ndarray
    endings: np.ndarray
    steps: int

    @property
    def is_regular(self) -> np.ndarray:
        """Whether each path reached t = 1 at a regular solution (N,)."""
        return np.asarray(self.endings == PathEnding.SUCCESS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Convergence:
    """Convergence of Newton's method; steps are relative to the size of the point.

    Attributes:
        is_good: whether the last step was below the tolerance, and each step at most half the step
            before it (N,). A predicted point that needs longer corrections may be nearer to
            another path.
        ratio: ratio of the last step to the step before it (N,).
        largest: largest step (N,).
    """

    is_good: np.ndarray
    ratio: np.ndarray
    largest: np.ndarray


def newton(
    system: PolynomialSystem,
    x: np.ndarray,
    line: ParameterLine,
    rows: np.ndarray,
    t: np.ndarray,
    tolerance: float,
    iterations: int,
    predictor_size: np.ndarray | float = np.inf,
) -> tuple[np.ndarray, Convergence]:
    """Return the result of Newton's method at fixed parameters.

    Args:
        system: the polynomial system.
        x: initial points (N, m).
        line: parameters of all paths.
        rows: the paths (N,) of the points.
        t: values of t (N,).
        tolerance: largest last step, relative to the size of the point.
        iterations: maximum number of steps.
        predictor_size: size (N,) of the predictor's step relative to the size of the point; the
            first Newton step is compared with it.

    Returns:
        Points (N, m), and the convergence.
    """
    y, y_rate, e, _ = line.at(rows, t)
    x = np.array(x)
    last = np.full(len(x), np.inf)
    previous = np.broadcast_to(predictor_size, len(x)).astype(float)
    ratio = np.ones(len(x))
    largest = np.zeros(len(x))
    is_good = np.ones(len(x), dtype=bool)
    active = np.arange(len(x))
    for _ in range(iterations):
        F, J, _ = system.linearized(x[active], y[active], y_rate[active])
        dx = _solve(J, F + e[active])
        x[active] -= dx
        size = np.abs(dx).max(axis=1) / (1.0 + np.abs(x[active]).max(axis=1))
        is_good[active] &= (size <= 0.5 * last[active]) | (size < tolerance)
        ratio[active] = size / previous[active]
        largest[active] = np.maximum(largest[active], size)
        last[active] = size
        previous[active] = size
        active = active[~(size < tolerance)]
        if not len(active):
            break
    return x, Convergence(is_good=is_good & (last < tolerance), ratio=ratio, largest=largest)


def _solve(J: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the solutions of J z = b; NaN where J is singular, which stops that path's step."""
    try:
        return np.asarray(np.linalg.solve(J, b[..., None])[..., 0])
    except np.linalg.LinAlgError:
        result = np.full_like(b, np.nan)
        for i in range(len(b)):
            with suppress(np.linalg.LinAlgError):
                result[i] = np.linalg.solve(J[i], b[i])
        return result
