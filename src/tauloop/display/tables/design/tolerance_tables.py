"""Tables of tolerances: errors by direction, and sources of error, largest first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.common.counts import counted
from tauloop.design.tolerances.tolerance_map import ToleranceMap
from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.elasticity.static_analysis.stiffness import DIRECTIONS

#: Factor from each SI unit to the unit of the table, and this unit.
DISPLAY_UNITS = {"m": (1e6, "um"), "rad": (1e6, "urad")}
#: Maximum number of sources listed.
MAX_SOURCES = 40


def tolerance_tables(result: ToleranceMap) -> Iterator[Printed]:
    """Yield the largest errors in each direction, and the sources at the worst pose."""
    yield _directions_table(result)
    yield _sources_table(result)
    for note in result.notes:
        yield f"note: {note}"
    yield from doubts(result)


def _directions_table(result: ToleranceMap) -> Printed:
    """Return a table of the largest errors over all poses."""
    rows: list[tuple[object, ...]] = []
    for k, direction in enumerate(DIRECTIONS):
        unit = "um" if k < 3 else "urad"
        columns = (result.worst, result.root_sum_square, result.second_order, result.remainder)
        values = [1e6 * float(column[:, k].max()) for column in columns]
        bound = None if np.isnan(values[-1]) else values[-1]
        rows.append((direction, *values[:3], bound, unit))
    rows.append(("distance", 1e6 * float(result.worst_distance.max()), None, None, None, "um"))
    rows.append(("angle", 1e6 * float(result.worst_angle.max()), None, None, None, "urad"))
    count = len(result.tool)
    poses = counted(count, "pose")
    return table(
        f"Largest error of the tool of {result.model.mechanism.name} over {poses}",
        "direction",
        ("worst case", ".4g"),
        ("root of squares", ".4g"),
        ("second order", ".2g"),
        ("its proved bound", ".2g"),
        "unit",
        rows=rows,
    )


def _sources_table(result: ToleranceMap) -> Printed:
    """Return a table of the errors that each source alone causes at the worst pose."""
    pose = result.worst_pose
    shift = np.linalg.norm(result.contributions[pose, :3], axis=0)
    angle = np.linalg.norm(result.contributions[pose, 3:], axis=0)
    order = [i for i in np.argsort(-shift, kind="stable") if result.tolerances[i] > 0.0]
    rows: list[tuple[object, ...]] = []
    for i in order[:MAX_SOURCES]:
        factor, unit = DISPLAY_UNITS.get(result.units[i], (1.0, result.units[i]))
        tolerance = f"{factor * result.tolerances[i]:.4g} {unit}"
        rows.append((result.sources[i], result.kinds[i], tolerance, 1e6 * shift[i], 1e6 * angle[i]))
    n_omitted = len(order) - MAX_SOURCES
    return table(
        f"Sources of error, largest first, at pose {pose + 1}",
        "source",
        "kind",
        "tolerance ±",
        ("position [um]", ".4g"),
        ("rotation [urad]", ".4g"),
        rows=rows,
        note=f"and {counted(n_omitted, 'more source')}" if n_omitted > 0 else "",
    )
