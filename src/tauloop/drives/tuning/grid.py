"""Costs on a dense grid within the bounds of a tuning: a reference for the search methods."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.drives.tuning.evaluations import BatchCost

#: Maximum number of points in one call of the cost.
GRID_CHUNK = 4096


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid(ReprMixin):
    """Costs on a rectangular grid.

    Attributes:
        names: names of the parameters (n).
        axes: values of each parameter.
        costs: costs on the grid, with one dimension for each parameter; NaN where a cost is not
            finite.
    """

    names: tuple[str, ...]
    axes: tuple[np.ndarray, ...]
    costs: np.ndarray

    @property
    def cost(self) -> float:
        """Smallest cost."""
        return float(np.nanmin(self.costs))

    @property
    def best(self) -> np.ndarray:
        """Point of the smallest cost (n,)."""
        indices = np.unravel_index(np.nanargmin(self.costs), self.costs.shape)
        return np.array([axis[k] for axis, k in zip(self.axes, indices, strict=True)])

    @property
    def minima(self) -> np.ndarray:
        """Grid points (k, n) without a better neighbor, smallest cost first.

        A search method may end at any of these local minima.
        """
        costs = np.where(np.isfinite(self.costs), self.costs, np.inf)
        is_minimum = np.isfinite(costs)
        for axis in range(costs.ndim):
            padded = np.moveaxis(np.pad(costs, 1, constant_values=np.inf), axis, 0)
            inner = (slice(1, -1),) * (costs.ndim - 1)
            for side in (padded[:-2], padded[2:]):
                is_minimum &= costs <= np.moveaxis(side[(slice(None), *inner)], 0, axis)
        indices = np.argwhere(is_minimum)
        indices = indices[np.argsort(costs[is_minimum], kind="stable")]
        return np.stack([axis[indices[:, k]] for k, axis in enumerate(self.axes)], axis=1)


def dense_grid(
    cost: BatchCost, bounds: Mapping[str, tuple[float, float]], counts: tuple[int, ...]
) -> Grid:
    """Return the costs on a regular grid over the bounds, including the corners.

    Args:
        cost: function of points (N, n) to costs (N,).
        bounds: lower and upper bound by name.
        counts: number of grid points along each parameter (n,), two or more.

    Raises:
        InputError: the counts do not fit the bounds, or no point has a finite cost.
    """
    if len(counts) != len(bounds) or min(counts, default=0) < 2:
        what = f"are {counts} for {counted(len(bounds), 'parameter')}"
        raise InputError.of("counts", what, "give two or more for each parameter")
    axes = tuple(
        np.linspace(*bounds[name], count) for name, count in zip(bounds, counts, strict=True)
    )
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    costs = np.concatenate(
        [cost(points[k : k + GRID_CHUNK]) for k in range(0, len(points), GRID_CHUNK)]
    )
    if not np.isfinite(costs).any():
        what = f"none of {len(costs)} grid points has a finite cost"
        raise InputError.of("cost", what, "narrow the bounds to points with a finite cost")
    costs = np.where(np.isfinite(costs), costs, np.nan)
    return Grid(names=tuple(bounds), axes=axes, costs=costs.reshape(tuple(counts)))
