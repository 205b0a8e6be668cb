"""Forces from outside during a log on a page, component by component of the wrench at the tool."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Piece, Plot, traces
from tauloop.identification.online.external_wrench import (
    COMPONENT_UNITS,
    COMPONENTS,
    ExternalWrench,
)


def wrench_page(result: ExternalWrench) -> Iterator[Piece]:
    """Yield a plot of each component that may act."""
    for name in result.components:
        place = COMPONENTS.index(name)
        yield Plot(
            title=f"Wrench from outside at the tool, {name}",
            x="time [s]",
            y=f"{name} [{COMPONENT_UNITS[place]}]",
            traces=tuple(traces(result.time, {"estimate": result.wrench[:, place]})),
            over_time=True,
        )
