"""Further quantities over a workspace map, which other packages compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from tauloop.common.records import dataclass
from tauloop.kinematics.workspaces.map import MapQuantity, Workspace, usable_states

#: Number of halvings of the grid's step in the search for an extreme value between its points.
HALVINGS = 10
#: Function of coordinates (N, n_q) that returns quantities (N,) by name.
QuantityFunction = Callable[[np.ndarray], Mapping[str, np.ndarray]]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantityKind:
    """A quantity that a map can have.

    Attributes:
        name: name of the quantity in `Workspace.arrays`.
        label: label of the color scale, without the unit.
        unit: SI unit.
        shown_unit: unit in plots and tables.
        factor: factor from the SI unit to `shown_unit`.
        is_better_low: whether low values are better, so that the highest value is the worst.
    """

    name: str
    label: str
    unit: str
    shown_unit: str
    factor: float = 1.0
    is_better_low: bool = False


def with_quantities(
    workspace: Workspace,
    kinds: tuple[QuantityKind, ...],
    calculate: QuantityFunction,
    *,
    at_once: int,
    progress: Callable[[int, int], None] | None = None,
) -> Workspace:
    """Return a map with additional quantities at its usable poses, and with their worst values.

    The search for the worst pose starts at the worst grid point and continues between the grid
    points with halved steps.

    Args:
        workspace: the map.
        kinds: the quantities.
        calculate: function of coordinates (N, n_q) that returns the quantities by name.
        at_once: number of poses per call of `calculate`.
        progress: called with the number of finished poses and their total.
    """
    points = np.stack(np.meshgrid(*workspace.axes.values(), indexing="ij"), axis=-1)
    chosen = points[workspace.usable]
    _, q = usable_states(workspace, chosen)
    values = {kind.name: np.full(workspace.usable.shape, np.nan) for kind in kinds}
    parts = []
    for first in range(0, len(q), at_once):
        parts.append(calculate(q[first : first + at_once]))
        if progress is not None:
            progress(min(first + at_once, len(q)), len(q))
    quantities = []
    for kind in kinds:
        at_points = np.concatenate([part[kind.name] for part in parts]) if parts else np.zeros(0)
        values[kind.name][workspace.usable] = at_points
        sign = -1.0 if kind.is_better_low else 1.0
        worst, pose = np.nan, np.full(len(workspace.axes), np.nan)
        if np.isfinite(at_points).any():
            worst, pose = _worst(workspace, kind.name, calculate, sign, chosen, at_points)
        quantities.append(
            MapQuantity(
                name=kind.name,
                label=kind.label,
                unit=kind.unit,
                shown_unit=kind.shown_unit,
                factor=kind.factor,
                worst=worst,
                worst_pose=dict(zip(workspace.axes, pose.tolist(), strict=True)),
            )
        )
    return replace(
        workspace,
        arrays={**workspace.arrays, **values},
        quantities=(*workspace.quantities, *quantities),
    )


def _worst(
    workspace: Workspace,
    name: str,
    calculate: QuantityFunction,
    sign: float,
    points: np.ndarray,
    values: np.ndarray,
) -> tuple[float, np.ndarray]:
    """Return the worst value and its position (d,), from values (N,) at points (N, d).

    Args:
        workspace: the map.
        name: name of the quantity.
        calculate: function of coordinates (N, n_q).
        sign: 1 if the lowest value is the worst, -1 if the highest is.
        points, values: usable poses of the grid.
    """
    start = int(np.nanargmin(sign * values))
    worst, position = float(values[start]), points[start]
    axes = tuple(workspace.axes.values())
    low = np.array([axis[0] for axis in axes])
    high = np.array([axis[-1] for axis in axes])
    step = np.array([axis[1] - axis[0] if len(axis) > 1 else 0.0 for axis in axes])
    neighbors = np.stack(np.meshgrid(*[(-1.0, 0.0, 1.0)] * len(axes), indexing="ij"), axis=-1)
    neighbors = neighbors.reshape(-1, len(axes))
    for _ in range(HALVINGS):
        step = 0.5 * step
        near = np.unique(np.clip(position + neighbors * step, low, high), axis=0)
        is_usable, q = usable_states(workspace, near)
        if not is_usable.any():
            break
        nearby = calculate(q[is_usable])[name]
        index = int(np.nanargmin(sign * nearby))
        if sign * nearby[index] < sign * worst:
            worst, position = float(nearby[index]), near[is_usable][index]
    return worst, position
