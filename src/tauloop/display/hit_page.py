"""A blow at a moving platform on a page: the true force and what observers make of it, freedom by freedom."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Piece, Plot, traces
from tauloop.simulation.observers import CollisionDetection


def hit_page(result: CollisionDetection) -> Iterator[Piece]:
    """Estimates with the lag, of the first machine that was drawn."""
    for k, (name, unit) in enumerate(zip(*result.freedoms, strict=True)):
        shown = {"true": result.force[:, k]}
        shown |= {observer: item.estimate[:, k] for observer, item in result.lagged.items()}
        yield Plot(
            title=f"Force from outside along {name}",
            x="time [s]",
            y=f"force [{unit}]",
            traces=tuple(traces(result.time, shown)),
            over_time=True,
        )
