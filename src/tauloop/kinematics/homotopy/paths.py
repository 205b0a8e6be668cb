"""Path tracking: solutions of a polynomial system are followed while its parameters change.

H(x, t) = F(x, y(t)) + e(t) = 0 with y(t) and e(t) straight lines in the complex numbers. All paths
advance together, each with its own step: a fourth-order Runge-Kutta predictor on dx/dt = -F_x^-1
(F_y y' + e'), Newton's method as corrector (Sommese and Wampler, The Numerical Solution of Systems
of Polynomials, 2005, section 2.3).

Source: Sommese and Wampler 2005, The Numerical Solution of Systems of Polynomials Arising in
Engineering and Science.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import field
from typing import Protocol

import numpy as np

from tauloop.common.errors import PoseError, solving
from tauloop.common.options import Options
from tauloop.common.records import dataclass
from tauloop.common.stopping import StopCode


class PolynomialSystem(Protocol):
    """A square polynomial system with parameters: F(x, y) + e."""

    def linearised(
        self, x: np.ndarray, y: np.ndarray, y_rate: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return F (N, m), F_x (N, m, m) and F_y y' (N, m) at x (N, m), y and y' (N, k)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackingOptions(Options):
    """Options of path tracking.

    Attributes:
        tolerance: Newton's last step, relative to 1 + |x|, with which a point counts as on the
            path.
        corrections: Newton steps per step of the path; needing more halves the step.
        end_tolerance, end_corrections: the same for the solution at t = 1. Newton's method doubles
            the digits of a regular solution, but only halves the distance to a multiple one.
        first_step: first step in t; also the longest.
        smallest_step: paths that need smaller steps stop.
        infinity: paths that grow beyond this size have diverged.
        steps: largest number of steps tried.
    """

    tolerance: float = 1e-7
    corrections: int = 3
    end_tolerance: float = 1e-10
    end_corrections: int = 5
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
    """Parameters along a straight line, one row for each path.

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
        """Return y, y', e and e' of paths at their individual t."""
        y_rate, e_rate = self.y1[rows] - self.y0[rows], self.e1[rows] - self.e0[rows]
        return (
            self.y0[rows] + t[:, None] * y_rate,
            y_rate,
            self.e0[rows] + t[:, None] * e_rate,
            e_rate,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracked:
    """Ends of paths.

    Attributes:
        x: last points (N, m).
        t: values of t that they reached (N,).
        endings: `PathEnding` of every path (N,).
        steps: steps tried by the whole batch.
    """

    x: np.ndarray
    t: np.ndarray
    endings: np.ndarray
    steps: int

    @property
    def is_regular(self) -> np.ndarray:
        """Which paths reached t = 1 at a regular solution (N,)."""
        return np.asarray(self.endings == PathEnding.SUCCESS)


@dataclass(slots=True)
class _Paths:
    """State of all paths that are being followed."""

    x: np.ndarray
    t: np.ndarray
    h: np.ndarray
    successes: np.ndarray
    endings: np.ndarray
    active: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.active = np.arange(len(self.x))


@solving(PoseError)
def track(
    system: PolynomialSystem,
    x: np.ndarray,
    line: ParameterLine,
    options: TrackingOptions | None = None,
) -> Tracked:
    """Follow solutions x (N, m) from t = 0 to t = 1.

    A path whose Jacobian turns singular at t = 1 (a multiple solution, or one at infinity) takes
    ever smaller steps towards it and is reported as stopped or infinite, never as regular.
    """
    options = options or TrackingOptions()
    n = len(x)
    paths = _Paths(
        x=np.array(x, dtype=complex),
        t=np.zeros(n),
        h=np.full(n, options.first_step),
        successes=np.zeros(n, dtype=int),
        endings=np.full(n, int(PathEnding.MAX_STEPS)),
    )
    steps = 0
    with np.errstate(all="ignore"):  # a step that overflows is refused
        while len(paths.active) and steps < options.steps:
            _step(system, paths, line, options)
            steps += 1
    return Tracked(x=paths.x, t=paths.t, endings=paths.endings, steps=steps)


def _step(
    system: PolynomialSystem, paths: _Paths, line: ParameterLine, options: TrackingOptions
) -> None:
    """Try one step of every active path and adapt its length."""
    rows = paths.active
    t = paths.t[rows]
    remaining = 1.0 - t
    h = np.minimum(paths.h[rows], remaining)
    trial = _predicted(system, paths.x[rows], line, rows, t, h)
    is_last = h >= remaining
    t_trial = np.where(is_last, 1.0, t + h)
    trial, is_good = newton(
        system, trial, line, rows, t_trial, options.tolerance, options.corrections
    )
    ending = np.flatnonzero(is_good & is_last)
    if len(ending):
        trial[ending], is_good[ending] = newton(
            system,
            trial[ending],
            line,
            rows[ending],
            t_trial[ending],
            options.end_tolerance,
            options.end_corrections,
        )
    moved = rows[is_good]
    paths.x[moved] = trial[is_good]
    paths.t[moved] = t_trial[is_good]
    paths.successes[moved] += 1
    failed = rows[~is_good]
    paths.successes[failed] = 0
    paths.h[rows] = np.where(is_good, paths.h[rows], 0.5 * h)
    grown = moved[paths.successes[moved] >= 3]
    paths.h[grown] = np.minimum(2.0 * paths.h[grown], options.longest_step)
    paths.successes[grown] = 0
    size = np.abs(paths.x[rows]).max(axis=1)
    is_short, is_large = paths.h[rows] < options.smallest_step, size > options.infinity
    paths.endings[rows[is_short]] = PathEnding.STEP_TOO_SMALL
    paths.endings[rows[is_large]] = PathEnding.DIVERGED
    paths.endings[rows[is_good & is_last]] = PathEnding.SUCCESS
    done = (is_good & is_last) | is_large | is_short
    paths.active = rows[~done]


def _tangent(
    system: PolynomialSystem, x: np.ndarray, line: ParameterLine, rows: np.ndarray, t: np.ndarray
) -> np.ndarray:
    y, y_rate, _, e_rate = line.at(rows, t)
    _, J, rate = system.linearised(x, y, y_rate)
    return -_solved(J, rate + e_rate)


def _predicted(
    system: PolynomialSystem,
    x: np.ndarray,
    line: ParameterLine,
    rows: np.ndarray,
    t: np.ndarray,
    h: np.ndarray,
) -> np.ndarray:
    half, step = 0.5 * h[:, None], h[:, None]
    k1 = _tangent(system, x, line, rows, t)
    k2 = _tangent(system, x + half * k1, line, rows, t + 0.5 * h)
    k3 = _tangent(system, x + half * k2, line, rows, t + 0.5 * h)
    k4 = _tangent(system, x + step * k3, line, rows, t + h)
    return x + step / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)


def newton(
    system: PolynomialSystem,
    x: np.ndarray,
    line: ParameterLine,
    rows: np.ndarray,
    t: np.ndarray,
    tolerance: float,
    iterations: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the result of Newton's method at fixed parameters.

    Returns:
        Points (N, m), and whether the last step was below the tolerance and no step longer than
        half the one before (N,): a prediction that Newton's method has to pull far may lie nearer
        to another path.
    """
    y, y_rate, e, _ = line.at(rows, t)
    x, last = np.array(x), np.full(len(x), np.inf)
    is_good, active = np.ones(len(x), dtype=bool), np.arange(len(x))
    for _ in range(iterations):
        F, J, _ = system.linearised(x[active], y[active], y_rate[active])
        dx = _solved(J, F + e[active])
        x[active] -= dx
        size = np.abs(dx).max(axis=1) / (1.0 + np.abs(x[active]).max(axis=1))
        is_good[active] &= (size <= 0.5 * last[active]) | (size < tolerance)
        last[active] = size
        active = active[~(size < tolerance)]
        if not len(active):
            break
    return x, is_good & (last < tolerance)


def _solved(J: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the solutions of J z = b; NaN where J is singular, which stops that path's step."""
    try:
        return np.asarray(np.linalg.solve(J, b[..., None])[..., 0])
    except np.linalg.LinAlgError:
        result = np.full_like(b, np.nan)
        for i in range(len(b)):
            with suppress(np.linalg.LinAlgError):
                result[i] = np.linalg.solve(J[i], b[i])
        return result
