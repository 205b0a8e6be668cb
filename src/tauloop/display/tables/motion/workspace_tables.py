"""Tables of a workspace: numbers of poses, and the elements that exclude poses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.kinematics.singularities import DEFAULT_DISTANCE
from tauloop.kinematics.workspaces.map import MapQuantity, Reason, Workspace

#: Maximum number of listed elements.
MAX_ELEMENTS = 10
#: Name of the usable size by the number of varied positions.
_EXTENTS = {1: "range", 2: "area", 3: "volume"}


def workspace_tables(workspace: Workspace) -> Iterator[Printed]:
    """Yield numbers of usable and excluded poses, the elements that exclude poses, and the size."""
    sizes = " x ".join(f"{len(axis)} {name}" for name, axis in workspace.axes.items())
    title = f"Workspace of {workspace.provenance.inputs['machine']}: {sizes}"
    counts = {reason.text: int((workspace.reason == reason).sum()) for reason in Reason}
    rows = ((text, count, count / workspace.reason.size) for text, count in counts.items())
    yield table(title, "pose", ("number", ""), ("share", ".1%"), rows=rows)
    excluding = list(workspace.excluded_by().items())[:MAX_ELEMENTS]
    yield table("Elements that exclude poses", "element", ("poses", ""), rows=excluding)
    if workspace.quantities:
        yield table(
            "Worst pose",
            "quantity",
            ("value", ".4g"),
            "unit",
            "pose",
            rows=[_worst_row(workspace, quantity) for quantity in workspace.quantities],
        )
    least = workspace.limits.singularity or 0.0
    if least < DEFAULT_DISTANCE:
        yield (
            f"poses count as singular at a distance from singularities below {least:.3g} "
            f"(--singularity, default {DEFAULT_DISTANCE:g})"
        )
    extent = _EXTENTS.get(sum(len(axis) > 1 for axis in workspace.axes.values()), "size")
    yield f"usable {extent}: {workspace.size_text}"
    yield from doubts(workspace)


def _worst_row(workspace: Workspace, quantity: MapQuantity) -> tuple[object, ...]:
    """Return the row of a quantity: its worst value, and the pose with angles in degrees."""
    texts = []
    for (name, value), unit in zip(quantity.worst_pose.items(), workspace.units, strict=True):
        shown = f"{np.degrees(value):.4g} deg" if unit == "rad" else f"{value:.4g} {unit}"
        texts.append(f"{name} = {shown}")
    worst = float(quantity.factor * quantity.worst)
    value_or_none = worst if np.isfinite(worst) else None
    return quantity.label, value_or_none, quantity.shown_unit, ", ".join(texts)
