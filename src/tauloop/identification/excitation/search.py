"""Random excitations within the limits of a problem, as starts of the optimization."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tauloop.common.errors import IdentificationError
from tauloop.common.records import dataclass
from tauloop.identification.excitation.problem import ExcitationProblem
from tauloop.motion.excitation.fourier import fourier_basis
from tauloop.motion.sampled import SampledMotion

#: Amplitudes that are tried for a random series, as fractions of the largest amplitude that the
#: channels' limits allow. The first amplitude that meets all other limits is used.
SERIES_SIZES = (1.0, 0.85, 0.7, 0.55, 0.4, 0.25, 0.1, 0.02)
#: Largest random shift of a center, as a fraction of the reach.
MAX_CENTER_SHIFT = 0.5
#: Series are first screened at every SCREENING_STRIDE-th sample. This rejects most series, because
#: most violate a limit at one of these samples.
SCREENING_STRIDE = 8
#: Number of samples that are screened at a time, which limits the memory of their regressors.
SAMPLES_PER_CHUNK = 60_000
#: Number of series in the first chunk, which is small so that there is an early result.
FIRST_CHUNK_SERIES = 25


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RandomSearch:
    """Random series that meet all limits.

    Attributes:
        coefficients: (S, n_free, 2 K + 1).
        triangles: QR factors R (S, n, n) with R^T R = Y^T Y, where Y is the weighted regressor of
            all unknowns on the grid.
        tried: number of series that were tried.
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
    """Return random series, each as large as the limits allow.

    The velocity coefficients mu and nu are uniformly distributed, with the same distribution for
    all harmonics. Centers are uniformly distributed within half of the reach. Every series is
    scaled to the channels' limits, and then reduced in steps until it meets all other limits.

    Args:
        problem: the task.
        count: number of series to try.
        rng: random generator.
        is_stopped: function that returns True to end the search early.
        keep: called repeatedly with all series so far.

    Raises:
        IdentificationError: no series meets the limits.
    """
    series = []
    triangles = []
    tried = 0
    result = None
    chunk = max(SAMPLES_PER_CHUNK // len(problem.grid), 1)
    chunk_length = min(FIRST_CHUNK_SERIES, chunk)
    while tried < count and not is_stopped():
        drawn = _draw(problem, min(chunk_length, count - tried), rng)
        coefficients, regressor = _reduced_to_limits(problem, drawn)
        tried += len(drawn)
        chunk_length = chunk
        if len(coefficients):
            series.append(coefficients)
            triangles.append(np.linalg.qr(regressor, mode="r"))
        if series:
            result = RandomSearch(
                coefficients=np.concatenate(series),
                triangles=np.concatenate(triangles),
                tried=tried,
            )
            keep(result)
    if result is None:
        raise IdentificationError.of(
            "limits",
            f"none of {tried} random series meets the limits, even at {SERIES_SIZES[-1]:.0%} of the amplitude that "
            "the channels' limits allow",
            "choose a trajectory center farther from the limits, or wider limits",
        )
    return result


def _draw(problem: ExcitationProblem, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return random coefficients (S, n_free, 2 K + 1) as large as the channels' limits allow."""
    K = problem.task.harmonics
    B = problem.admitted
    reach = problem.reach[problem.free]
    center = problem.center[problem.free]
    order = np.arange(1, K + 1)
    scale = np.r_[1.0, order, order]
    centered = rng.uniform(-1.0, 1.0, size=(count, len(reach), 2 * K + 1)) / scale
    offset = MAX_CENTER_SHIFT * centered[..., 0]
    centered[..., 0] = 0.0
    centered = (centered @ B) @ B.T
    centered[..., 0] = offset
    centered *= reach[:, None]
    drawn = centered.copy()
    drawn[..., 0] += center
    fractions = problem.channel_shares(drawn, problem.grid).max(axis=(1, 2))
    # Channels without limits in the task are limited by their range in the machine file.
    unlimited = np.isinf(problem.limits[:, problem.free]).all(axis=0)
    if unlimited.any():
        position, *_ = fourier_basis(problem.grid, K, problem.task.period)
        peaks = np.abs(centered[:, unlimited] @ position.T).max(axis=-1) / reach[unlimited]
        fractions = np.maximum(fractions, peaks.max(axis=1))
    centered /= np.maximum(fractions, np.finfo(float).tiny)[:, None, None]
    centered[..., 0] += center
    return centered


def _reduced_to_limits(
    problem: ExcitationProblem, drawn: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the series that meet all limits after a reduction, and their weighted regressors.

    Returns:
        Coefficients (S, n_free, 2 K + 1); regressors (S, N n_out, n_unknowns).
    """
    series: list[np.ndarray] = []
    regressors: list[np.ndarray] = []
    remaining = drawn
    for factor in SERIES_SIZES:
        if not len(remaining):
            break
        coarse_grid = problem.grid[::SCREENING_STRIDE]
        _, is_candidate = screened(problem, shrunk(problem, remaining, factor), coarse_grid)
        candidates = np.flatnonzero(is_candidate)
        coefficients = shrunk(problem, remaining[candidates], factor)
        regressor, meets_limits = screened(problem, coefficients)
        series.append(coefficients[meets_limits])
        regressors.append(regressor[meets_limits])
        remaining = np.delete(remaining, candidates[meets_limits], axis=0)
    return np.concatenate(series), np.concatenate(regressors)


def shrunk(problem: ExcitationProblem, coefficients: np.ndarray, factor: float) -> np.ndarray:
    """Return series (..., n_free, 2 K + 1) scaled about the center by a factor."""
    result = factor * coefficients
    result[..., 0] += (1.0 - factor) * problem.center[problem.free]
    return np.asarray(result)


def screened(
    problem: ExcitationProblem, coefficients: np.ndarray, grid: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted regressors of series on a grid, and whether they meet all bounds there.

    Args:
        problem: the task.
        coefficients: (S, n_free, 2 K + 1).
        grid: times (N,); by default the problem's grid.

    Returns:
        Regressors (S, N n_out, n_unknowns); True (S,) for series within all bounds.
    """
    grid = problem.grid if grid is None else grid
    count = len(coefficients)
    N = len(grid)
    n = len(problem.channels)
    motion_values = np.zeros((3, count, N, n))
    motion_values[0] = problem.center
    bases = fourier_basis(grid, problem.task.harmonics, problem.task.period)
    for order, basis in enumerate(bases):
        motion_values[order][..., problem.free] = np.moveaxis(coefficients @ basis.T, 1, 2)
    position, velocity, acceleration = motion_values.reshape(3, count * N, n)
    motion = SampledMotion(
        time=np.tile(grid, count), position=position, velocity=velocity, acceleration=acceleration
    )
    regressor, violation = problem.screen(motion)
    scaled = regressor * (problem.weights / np.sqrt(N))[:, None]
    meets_limits = np.asarray((violation.reshape(count, N) <= 0.0).all(axis=1))
    return scaled.reshape(count, N * regressor.shape[1], regressor.shape[-1]), meets_limits
