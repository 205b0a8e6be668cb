"""Figures 2 and 3 of the NUWAR paper, and the shapes that it names."""

from __future__ import annotations

from matplotlib.figure import Figure

import tauloop as tl
from tauloop.display import LARGE, MEASURED, NORMAL, PREDICTED, RESIDUAL, SMALL, TEXT, clean
from tauloop.viewer import Playback, View
from tauloop_papers.nuwar.results import Strokes

COLOURS = (PREDICTED, RESIDUAL, "#6a9a5b", MEASURED)
#: What each figure shows.
CAPTIONS = {
    "machine": "As the paper's Figure 1a: the layout, drawn from the model, in which one rod stands for each "
    "parallelogram of forearms.",
    "torques": "As the paper's Figure 2: torques of the motors over the elliptical stroke and back, with the motors' "
    "limit (dashed); beside it the Delta, of which the paper prints the largest torque alone. The shape of the stroke "
    "is the paper's, its size is not.",
    "round-trip": "As the paper's Figure 3: the stroke that forward dynamics makes of these torques, less the stroke "
    "that they were computed for. The paper says that they match exactly.",
    "shapes": "The shapes that section 6 names and does not show, in the plane of the stroke.",
}
#: Figures of the paper that hold no data.
UNDRAWN = {"Figure 1b": "a photograph of the prototype; its model is drawn and moves above"}

#: What the routes back are called.
ROUTES = {"independent": "independent coordinates"}

#: What each film shows.
FILMS = {"stroke": "The stroke of Figure 2, which the paper animated in Matlab. Drag to turn it."}


def films(strokes: Strokes) -> dict[str, View]:
    """All motions of the experiment by the ending of their files' names."""
    run = strokes.runs[0]
    model = tl.Model(tl.load(run.machine))
    played = Playback(time=run.time, q=model.platform.track(run.position).q)
    return {"stroke": tl.view(model, tl.ViewOptions(motion=played))}


def figures(strokes: Strokes) -> dict[str, Figure]:
    """All figures of the experiment by the ending of their files' names."""
    return {
        "machine": tl.view(tl.load(strokes.settings.machine)).picture(),
        "torques": _torques(strokes),
        "round-trip": _round_trip(strokes),
        "shapes": _shapes(strokes),
    }


def _torques(strokes: Strokes) -> Figure:
    settings = strokes.settings
    figure = Figure(figsize=(10.0, 4.2), layout="constrained")
    panels = figure.subplots(1, len(strokes.runs), sharey=True)
    for axes, run in zip(panels, strokes.runs, strict=True):
        clean(axes)
        for bound in (-settings.limit, settings.limit):
            name = f"limit, {settings.limit:g} N m" if bound > 0 else None
            axes.axhline(bound, color=TEXT, linewidth=0.8, linestyle="--", label=name)
        for i, colour in enumerate(COLOURS[:3]):
            axes.plot(
                run.time, run.torque[:, i], color=colour, linewidth=1.4, label=f"motor {i + 1}"
            )
        title = f"{run.machine}: peak {run.peak:.2f} N m (printed {settings.printed_peaks[run.machine]:.2f})"
        axes.set_title(title, color=TEXT, fontsize=LARGE, loc="left")
        axes.set_xlabel("time [s]", color=TEXT, fontsize=NORMAL)
    panels[0].set_ylabel("motor torque [N m]", color=TEXT, fontsize=NORMAL)
    panels[0].legend(frameon=False, ncols=2, loc="lower center", fontsize=SMALL)
    panels[0].set_ylim(-1.35 * settings.limit, 1.25 * settings.limit)
    return figure


def _round_trip(strokes: Strokes) -> Figure:
    figure = Figure(figsize=(10.0, 3.8), layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, trip in zip(panels, strokes.trips, strict=False):
        clean(axes)
        for i, colour in enumerate(COLOURS[:3]):
            axes.plot(
                trip.time, 1e12 * trip.error[:, i], color=colour, linewidth=1.1, label="xyz"[i]
            )
        route = ROUTES.get(trip.route, trip.route)
        title = f"{route}: at most {float(f'{1e12 * trip.largest:.2g}'):g} pm"
        axes.set_title(title, color=TEXT, fontsize=LARGE, loc="left")
        axes.set_xlabel("time [s]", color=TEXT, fontsize=NORMAL)
        axes.set_ylabel("error of the position [pm]", color=TEXT, fontsize=NORMAL)
    panels[0].legend(frameon=False, ncols=3, fontsize=SMALL)
    return figure


def _shapes(strokes: Strokes) -> Figure:
    figure = Figure(figsize=(6.4, 4.6), layout="constrained")
    axes = figure.add_subplot()
    clean(axes)
    for (name, points), colour in zip(strokes.shapes.items(), COLOURS, strict=True):
        axes.plot(points[:, 1], points[:, 2], color=colour, linewidth=1.6, label=name)
    axes.set_aspect("equal")
    axes.set_xlabel("y [m]", color=TEXT, fontsize=NORMAL)
    axes.set_ylabel("z [m]", color=TEXT, fontsize=NORMAL)
    axes.legend(frameon=False, fontsize=SMALL)
    return figure
