"""Table of a view: positions of the tool and of the actuators' axes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tauloop.common.counts import counted
from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table


def view_tables(view: Any) -> Iterator[Printed]:
    """Yield the positions of the tool and of the actuators' axes, and doubts."""
    geometry = view.geometry
    positions = [(f"tool on {geometry.shape.platform}", geometry.tool[0])]
    positions += [
        (f"axis of {axis.name}", origin)
        for axis, origin in zip(geometry.shape.drives, geometry.drives[0][0], strict=True)
    ]
    rows = ((name, *(np.round(position, 5) + 0.0)) for name, position in positions)
    heads = (("x [m]", ".5f"), ("y [m]", ".5f"), ("z [m]", ".5f"))
    yield table(view.model.mechanism.name, "position", *heads, rows=rows)
    yield from doubts(view)


def stream_tables(stream: Any) -> Iterator[Printed]:
    """Yield the number of states sent to a viewer, their quantities, and doubts."""
    yield f"{counted(stream.states, 'state')} over {stream.duration:.4g} s, for {stream.viewer}"
    rows = ((name, unit) for name, unit in stream.quantities.items())
    yield table("Quantities", "name", "unit", rows=rows)
    yield from doubts(stream)
