"""Limits of joints from the limits of their motors, and the reverse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin

#: Number of grid points per joint in the search for maxima over a range, for one joint, two joints
#: and so on; more joints use the last number.
JOINT_GRID_POINTS = (201, 41, 15, 9, 7)
#: Number of grid points per joint of each finer grid around the best position.
FINER_GRID_POINTS = 5
#: Number of finer grids, each over half the range of the grid before.
REFINEMENTS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedLimits(ReprMixin):
    """Limits of joints or motors that follow from the limits of the other side.

    Attributes:
        names: names of the joints or motors.
        lower, upper: lowest and highest positions (n,) that all limits of the machine allow, rad or
            m.
        velocity: largest speeds (n,) or (N, n), rad/s or m/s; infinite without limits.
        effort: largest torques or forces (n,) or (N, n), N m or N; infinite without limits.
    """

    names: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


def largest_alone(matrix: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Return the largest x_j (N, n) with |A x| within limits if all other x are zero.

    Args:
        matrix: A (N, m, n).
        limits: limits of A x (m,).
    """
    size = np.abs(matrix)
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = np.where(size > 0.0, limits[None, :, None] / size, np.inf)
    return np.asarray(bounds.min(axis=1))


def largest_together(matrix: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Return the largest |A x| (N, m) over all x within limits.

    Args:
        matrix: A (N, m, n).
        limits: limits of x (n,).
    """
    size = np.abs(matrix)
    with np.errstate(invalid="ignore"):
        products = np.where(size > 0.0, size * limits, 0.0)
    return np.asarray(products.sum(axis=2))


def maximum(
    value: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], ranges: np.ndarray
) -> np.ndarray:
    """Return the largest values (k,) of functions over the allowed part of a range.

    Each maximum is searched on a grid, then on finer grids around the best position.

    Args:
        value: function of joint positions (N, n) that returns values (N, k), and whether each
            position is allowed (N,).
        ranges: lower and upper ends (n, 2).
    """
    n = len(ranges)
    grid_points = JOINT_GRID_POINTS[min(n, len(JOINT_GRID_POINTS)) - 1]
    points = grid(ranges, grid_points)
    values, is_allowed = value(points)
    if not is_allowed.any():
        return np.full(values.shape[1], np.nan)
    values = np.where(is_allowed[:, None], values, -np.inf)
    return np.array(
        [
            _refined(value, k, points[int(values[:, k].argmax())], ranges, grid_points)
            for k in range(values.shape[1])
        ]
    )


def _refined(
    value: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    k: int,
    best: np.ndarray,
    ranges: np.ndarray,
    grid_points: int,
) -> float:
    """Return the largest value of function k near a position."""
    half = np.ptp(ranges, axis=1) / max(grid_points - 1, 1)
    largest = -np.inf
    for _ in range(REFINEMENTS):
        box = np.stack([best - half, best + half], axis=1)
        points = grid(np.clip(box, ranges[:, :1], ranges[:, 1:]), FINER_GRID_POINTS)
        points = np.concatenate([best[None], points])
        values, is_allowed = value(points)
        values = np.where(is_allowed, values[:, k], -np.inf)
        index = int(values.argmax())
        largest = max(largest, float(values[index]))
        best = points[index]
        half = 0.5 * half
    return largest


def grid(ranges: np.ndarray, samples: int) -> np.ndarray:
    """Return positions (N, n) on a grid over ranges (n, 2)."""
    axes = [np.linspace(lower, upper, samples) for lower, upper in ranges]
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
