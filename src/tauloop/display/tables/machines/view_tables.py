"""A machine that is looked at (`tauloop.viewer.View`), for the terminal: where its tool and its axes are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table


def view_tables(view: Any) -> Iterator[Printed]:
    """Places of the tool and of the actuators' axes, and doubts."""
    geometry = view.geometry
    places = [(f"tool on {geometry.shape.platform}", geometry.tool[0])]
    places += [
        (f"axis of {axis.name}", origin)
        for axis, origin in zip(geometry.shape.drives, geometry.drives[0][0], strict=True)
    ]
    rows = ((name, *(round(x, 5) + 0.0 for x in place)) for name, place in places)
    heads = (("x [m]", ".5f"), ("y [m]", ".5f"), ("z [m]", ".5f"))
    yield table(view.model.mechanism.name, "what", *heads, rows=rows)
    yield from doubts(view)
