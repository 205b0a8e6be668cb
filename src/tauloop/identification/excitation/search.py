"""Random excitations under the limits of a problem: what optimisation has to beat, and where it starts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tauloop.common.errors import IdentificationError
from tauloop.common.records import dataclass
from tauloop.identification.excitation.problem import ExcitationProblem
from tauloop.motion.fourier import fourier_basis
from tauloop.motion.sampled import SampledMotion

#: Sizes at which a random series is tried, from the largest that its channels' limits allow; the
#: first that keeps all other limits is taken.
SIZES = (1.0, 0.85, 0.7, 0.55, 0.4, 0.25, 0.1, 0.02)
#: Share of the reach by which centres are shifted at random, at most.
SHIFT = 0.5
#: Series are screened on every so many samples first: most break a limit there already.
THINNED = 8
#: Samples screened at once; bounds the memory of their regressors. The first series come alone, to
#: have one to keep.
CHUNK, FIRST = 60_000, 25


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RandomSearch:
    """Random series that keep all limits.

    Attributes:
        coefficients: (S, n_free, 2 K + 1).
        triangles: R (S, n, n) with R^T R = Y^T Y, Y the weighted regressor of all unknowns on the
            grid.
        tried: number of series.
    """

    coefficients: np.ndarray
    triangles: np.ndarray
    tried: int


def random_search(
    problem: ExcitationProblem,
    count: int,
    rng: np.random.Generator,
    *,
    is_stopped: Callable[[], bool] = lambda: False,
    keep: Callable[[RandomSearch], None] = lambda _: None,
) -> RandomSearch:
    """Random series, each as large as the limits allow.

    Coefficients mu and nu are uniform and alike for all harmonics, centres uniform within half of
    the reach. Every series as a whole is made as large as the channels' limits allow, then smaller
    by steps until all others are kept.

    Args:
        problem: the task.
        count: number of series.
        rng: source of randomness.
        is_stopped: whether to end with the series that there are.
        keep: called again and again with all that there are.

    Raises:
        IdentificationError: not one series keeps the limits.
    """
    kept, triangles, tried, result = [], [], 0, None
    step = max(CHUNK // len(problem.grid), 1)
    while tried < count and not is_stopped():
        drawn = _draw(problem, min(step if tried else min(FIRST, step), count - tried), rng)
        coefficients, regressor = _fitted(problem, drawn)
        tried += len(drawn)
        if len(coefficients):
            kept.append(coefficients)
            triangles.append(np.linalg.qr(regressor, mode="r"))
        if kept:
            result = RandomSearch(
                coefficients=np.concatenate(kept), triangles=np.concatenate(triangles), tried=tried
            )
            keep(result)
    if result is None:
        what = f"none of {tried} random series keeps them, even at {SIZES[-1]:.0%} of the channels' limits"
        raise IdentificationError.of(
            "limits", what, "choose a centre farther from the limits, or wider limits"
        )
    return result


def _draw(problem: ExcitationProblem, count: int, rng: np.random.Generator) -> np.ndarray:
    """Coefficients (S, n_free, 2 K + 1) as large as the limits of the channels allow."""
    K, B = problem.task.harmonics, problem.admitted
    reach, center = problem.reach[problem.free], problem.center[problem.free]
    order = np.arange(1, K + 1)
    moved = rng.uniform(-1.0, 1.0, size=(count, len(reach), 2 * K + 1)) / np.r_[1.0, order, order]
    offset = SHIFT * moved[..., 0]
    moved[..., 0] = 0.0
    moved = (moved @ B) @ B.T
    moved[..., 0] = offset
    moved *= reach[:, None]
    drawn = moved.copy()
    drawn[..., 0] += center
    share = problem.channel_shares(drawn, problem.grid).max(axis=(1, 2))
    # but for the range in the machine file
    unlimited = np.isinf(problem.limits[:, problem.free]).all(axis=0)
    if unlimited.any():
        position, *_ = fourier_basis(problem.grid, K, problem.task.period)
        peaks = np.abs(moved[:, unlimited] @ position.T).max(axis=-1) / reach[unlimited]
        share = np.maximum(share, peaks.max(axis=1))
    moved /= np.maximum(share, np.finfo(float).tiny)[:, None, None]
    moved[..., 0] += center
    return moved


def _fitted(problem: ExcitationProblem, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Those that can be made to keep all limits, and their weighted regressors (S, N n_out, n_unknowns)."""
    series: list[np.ndarray] = []
    regressors: list[np.ndarray] = []
    waiting = drawn
    for size in SIZES:
        if not len(waiting):
            break
        good = np.flatnonzero(
            screened(problem, shrunk(problem, waiting, size), problem.grid[::THINNED])[1]
        )
        coefficients = shrunk(problem, waiting[good], size)
        regressor, kept = screened(problem, coefficients)
        series.append(coefficients[kept])
        regressors.append(regressor[kept])
        waiting = np.delete(waiting, good[kept], axis=0)
    return np.concatenate(series), np.concatenate(regressors)


def shrunk(problem: ExcitationProblem, coefficients: np.ndarray, size: float) -> np.ndarray:
    """The same series (..., n_free, 2 K + 1), nearer to the centre by a factor."""
    result = size * coefficients
    result[..., 0] += (1.0 - size) * problem.center[problem.free]
    return np.asarray(result)


def screened(
    problem: ExcitationProblem, coefficients: np.ndarray, grid: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted regressors (S, N n_out, n_unknowns) of series on the grid, and which keep all bounds there (S,).

    Args:
        problem: the task.
        coefficients: of the series (S, n_free, 2 K + 1).
        grid: times (N,); the problem's without it.
    """
    grid = problem.grid if grid is None else grid
    count, N = len(coefficients), len(grid)
    n = len(problem.channels)
    parts = np.zeros((3, count, N, n))
    parts[0] = problem.center
    bases = fourier_basis(grid, problem.task.harmonics, problem.task.period)
    for level, basis in enumerate(bases):
        parts[level][..., problem.free] = np.moveaxis(coefficients @ basis.T, 1, 2)
    position, velocity, acceleration = parts.reshape(3, count * N, n)
    motion = SampledMotion(
        time=np.tile(grid, count), position=position, velocity=velocity, acceleration=acceleration
    )
    regressor, broken = problem.screen(motion)
    scaled = regressor * (problem.weights / np.sqrt(N))[:, None]
    good = np.asarray((broken.reshape(count, N) <= 0.0).all(axis=1))
    return scaled.reshape(count, N * regressor.shape[1], regressor.shape[-1]), good
