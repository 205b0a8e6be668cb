"""Plots of external forces along a log: wrench at the tool, contacts, contact-free intervals."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.palette import MEASURED, PREDICTED
from tauloop.display.pieces import Plot, PlotSpan
from tauloop.display.plots.building import traces, with_common_scales
from tauloop.identification.online.external_wrench import (
    COMPONENT_UNITS,
    COMPONENTS,
    ExternalWrench,
)


def wrench_plots(result: ExternalWrench) -> Iterator[Plot]:
    """Yield a plot of each estimated component of the wrench."""
    spans = tuple(_spans(result))
    plots = []
    for name in result.components:
        k = COMPONENTS.index(name)
        plots.append(
            Plot(
                title=f"External wrench at the tool, {name}",
                x="time [s]",
                y=f"{name} [{COMPONENT_UNITS[k]}]",
                traces=traces(result.time, {"estimate": result.wrench[:, k]}),
                spans=spans,
                over_time=True,
            )
        )
    yield from with_common_scales(plots)


def _spans(result: ExternalWrench) -> Iterator[PlotSpan]:
    for start, end in result.free:
        yield PlotSpan(
            name="without contact",
            start=float(start),
            end=float(end),
            color=MEASURED,
            opacity=0.15,
        )
    for contact in result.contacts:
        yield PlotSpan(
            name="contact", start=float(contact.start), end=float(contact.end), color=PREDICTED
        )
