"""Plots of collision detection on a moving platform: true force and estimates of observers."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.palette import MEASURED
from tauloop.display.pieces import Paragraph, Plot, PlotSpan
from tauloop.display.plots.building import traces, with_common_scales
from tauloop.simulation.observers import CollisionDetection

#: Styles of the observers' estimates, which may coincide.
STYLES = ("measured", "predicted", "line")


def collision_plots(result: CollisionDetection) -> Iterator[Paragraph | Plot]:
    """Yield a plot for each degree of freedom of the platform, for the first machine.

    The shaded range contains the forces for which the first observer raises no alarm.
    """
    text = f"A collision at {result.at:.4g} s, and the forces that observers estimate."
    yield Paragraph(text=text, tone="note")
    plots = []
    for k, (name, unit) in enumerate(zip(*result.freedoms, strict=True)):
        drawn = traces(result.time, {"true": result.force[:, k]}, "step")
        for number, (observer, item) in enumerate(result.lagged.items()):
            style = STYLES[min(number, len(STYLES) - 1)]
            drawn += traces(result.time, {observer: item.estimate[:, k]}, style)
        spans = []
        for observer, item in list(result.lagged.items())[:1]:
            limit = float(item.threshold[k])
            label = f"no alarm, {observer}"
            spans.append(
                PlotSpan(
                    name=label,
                    start=-limit,
                    end=limit,
                    color=MEASURED,
                    across=True,
                    opacity=0.15,
                )
            )
        plots.append(
            Plot(
                title=f"External force along {name}",
                x="time [s]",
                y=f"force [{unit}]",
                traces=drawn,
                spans=tuple(spans),
                over_time=True,
            )
        )
    yield from with_common_scales(plots)
