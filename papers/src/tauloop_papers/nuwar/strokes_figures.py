"""Figures 2 and 3 of the NUWAR paper, and the shapes that it mentions."""

from __future__ import annotations

from matplotlib.figure import Figure

import tauloop as tl
from tauloop.display import LARGE, MEASURED, NORMAL, PREDICTED, RESIDUAL, SMALL, TEXT, clean
from tauloop.viewer import Playback, View
from tauloop_papers.nuwar.results import Strokes

MOTOR_COLORS = (PREDICTED, RESIDUAL, "#6a9a5b", MEASURED)
#: Captions of the figures.
CAPTIONS = {
    "machine": "As the paper's Figure 1a: the layout, drawn from the model, in which one rod represents each "
    "parallelogram of forearms.",
    "torques": "As the paper's Figure 2: torques of the motors over the elliptical stroke and back, with the motors' "
    "limit (dashed); next to it the Delta, for which the paper prints only the largest torque. The shape of the stroke "
    "is the paper's, its size is not.",
    "round-trip": "As the paper's Figure 3: the stroke by forward dynamics with these torques, minus the stroke "
    "that they were computed for. The paper states an exact match.",
    "shapes": "The shapes that section 6 mentions but does not show, in the plane of the stroke.",
}
#: Figures of the paper without data.
UNDRAWN = {"Figure 1b": "a photograph of the prototype; its model is shown and moves above"}

#: Names of the routes in captions.
ROUTES = {"independent": "independent coordinates"}

#: Captions of the films.
FILMS = {"stroke": "The stroke of Figure 2, which the paper animated in Matlab. Drag to rotate it."}


def films(strokes: Strokes) -> dict[str, View]:
    """Return all motions of the experiment, by the suffix of their file names."""
    run = strokes.runs[0]
    model = tl.Model(tl.load(run.machine))
    played = Playback(time=run.time, q=model.platform.track(run.position).q)
    return {"stroke": tl.view(model, tl.ViewOptions(motion=played))}


def figures(strokes: Strokes) -> dict[str, Figure]:
    """Return all figures of the experiment, by the suffix of their file names."""
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
        for i, color in enumerate(MOTOR_COLORS[:3]):
            axes.plot(
                run.time, run.torque[:, i], color=color, linewidth=1.4, label=f"motor {i + 1}"
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
        for i, color in enumerate(MOTOR_COLORS[:3]):
            axes.plot(
                trip.time, 1e12 * trip.error[:, i], color=color, linewidth=1.1, label="xyz"[i]
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
    for (name, points), color in zip(strokes.shapes.items(), MOTOR_COLORS, strict=True):
        axes.plot(points[:, 1], points[:, 2], color=color, linewidth=1.6, label=name)
    axes.set_aspect("equal")
    axes.set_xlabel("y [m]", color=TEXT, fontsize=NORMAL)
    axes.set_ylabel("z [m]", color=TEXT, fontsize=NORMAL)
    axes.legend(frameon=False, fontsize=SMALL)
    return figure
