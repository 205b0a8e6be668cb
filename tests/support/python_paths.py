"""Path tracking in Python, a reference for `homotopy.c`: all paths advance together, each with its own step."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from tauloop.common.errors import PoseError, solving
from tauloop.common.records import dataclass
from tauloop.kinematics.homotopy.paths import (
    ParameterLine,
    PathEnding,
    PolynomialSystem,
    Tracked,
    TrackingOptions,
    _solve,
    newton,
)


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
    move = np.abs(trial - paths.x[rows]).max(axis=1) / (1.0 + np.abs(trial).max(axis=1))
    trial, near = newton(
        system, trial, line, rows, t_trial, options.tolerance, options.corrections, move
    )
    is_good = near.is_good
    ending = np.flatnonzero(is_good & is_last)
    if len(ending):
        trial[ending], end = newton(
            system,
            trial[ending],
            line,
            rows[ending],
            t_trial[ending],
            options.end_tolerance,
            options.end_corrections,
        )
        is_limited = (near.ratio[ending] < options.regular_ratio) & (
            end.largest < options.tolerance
        )
        is_good[ending] = end.is_good | is_limited
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
    _, J, rate = system.linearized(x, y, y_rate)
    return -_solve(J, rate + e_rate)


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
