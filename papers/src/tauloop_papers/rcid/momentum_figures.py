"""The RCID's experiment: strokes, Table 2 as bars, and contact with a surface."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

import tauloop as tl
from tauloop.display import FAINT, LARGE, MEASURED, NORMAL, PREDICTED, RESIDUAL, SMALL, TEXT, clean
from tauloop.viewer import Playback, View
from tauloop_papers.rcid.results import Impedance
from tauloop_papers.rcid.table import METHODS, PARTS

#: Colors and line styles of the drives, of which pairs may have the same force.
DRIVE_COLORS, DRIVE_STYLES = (
    (PREDICTED, RESIDUAL, "#6a9a5b", MEASURED, "#8a6fb0", "#b08a3a"),
    ("-", "--"),
)
#: Captions of the figures.
CAPTIONS = {
    "machine": "As the paper's Figure 2: the machine, drawn from its model, level and in mid-stroke.",
    "figure-3": "As the paper's Figure 3: positions of the legs on base and platform, with the angles of Table 1; from "
    "the machine file.",
    "strokes": "Heights that the carriages need, from the lowest to the highest of all six, for three readings of the "
    "prescribed poses, with the machine's stroke (dashed) around its middle.",
    "operations": "Table 2 as bars: operations of the Coriolis and centripetal terms, by part and method.",
    "touch": "The intended kind of task of the machine: the platform meets a surface under impedance control "
    "and under force control. Dotted lines are the mass, spring and damper that it should imitate.",
}
#: Figures of the paper without data.
UNDRAWN = {
    "Figure 1": "a photograph of the prototype; its model is shown and moves above",
    "Figure 4": "the definition of b_cm, whose value is not printed; the machine file puts the mass centers of "
    "links in their middle",
}
#: Captions of the films.
FILMS = {
    "touch": "The platform meets the surface under impedance control, ten times slower. Drag to rotate it."
}
#: Slow-motion factor of a film, and its pictures per second.
SLOWER, PICTURES = 10.0, 20.0


def films(results: Impedance) -> dict[str, View]:
    """Return all motions of the experiment, by the suffix of their file names."""
    touch, model = results.touches[0], tl.Model(tl.load(results.settings.machine))
    position = np.tile(model.platform_position(model.assembly.q), (len(touch.time), 1))
    position[:, :3] += touch.place
    each = max(1, round(1.0 / (results.settings.step * SLOWER * PICTURES)))
    played = Playback(time=SLOWER * touch.time[::each], q=model.platform.track(position).q[::each])
    return {"touch": tl.view(model, tl.ViewOptions(motion=played))}


def figures(results: Impedance) -> dict[str, Figure]:
    """Return all figures of the experiment, by the suffix of their file names."""
    view = tl.view(tl.load(results.settings.machine))
    return {
        "machine": view.picture(),
        "figure-3": _points(view),
        "strokes": _strokes(results),
        "operations": _operations(results),
        "touch": _touch(results),
    }


def _points(view: View) -> Figure:
    """Draw the legs' joints on base (B) and platform (P) along z, with the angles between them."""
    figure = Figure(figsize=(9.0, 4.6), layout="constrained")
    rods = 1e3 * view.geometry.of_kind("rod")[0, :, :, :2]
    for axes, points, letter, name in zip(
        figure.subplots(1, 2), rods.swapaxes(0, 1), "BP", ("base", "platform"), strict=True
    ):
        clean(axes)
        radius, turns = np.hypot(*points.T).mean(), np.arctan2(points[:, 1], points[:, 0])
        around = np.linspace(0.0, 2 * np.pi, 181)
        axes.plot(radius * np.cos(around), radius * np.sin(around), color=FAINT, linewidth=1.0)
        axes.plot(*points.T, "o", color=PREDICTED, markersize=6)
        # joints at the same position share a label
        at: dict[tuple[int, int], list[str]] = {}
        for k, point in enumerate(points):
            at.setdefault((round(point[0]), round(point[1])), []).append(f"{letter}{k + 1}")
        for place, names in at.items():
            side = "left" if place[0] > 0 else "right"
            axes.annotate(
                ", ".join(names), 1.07 * np.array(place), ha=side, va="center", fontsize=NORMAL
            )
        first, last = sorted(turns, key=abs)[:2]
        between = np.rad2deg(abs(first - last)) if letter == "B" else 0.0
        for turn in (first, last) if between else ():
            axes.plot(
                [0, radius * np.cos(turn)],
                [0, radius * np.sin(turn)],
                color=RESIDUAL,
                linewidth=0.9,
            )
        shown = f"2φ_B = {between:.0f}°" if between else "2φ_P = 0°: two links share a position"
        axes.annotate(
            shown,
            (0.4 * radius, 0) if between else (0, 0),
            ha="left" if between else "center",
            fontsize=SMALL,
        )
        axes.set_xlim(-1.4 * radius, 1.4 * radius)
        axes.set_ylim(-1.4 * radius, 1.4 * radius)
        axes.set_aspect("equal")
        axes.set_xlabel(f"x_{letter} [mm]", fontsize=NORMAL, color=TEXT)
        axes.set_ylabel(f"y_{letter} [mm]", fontsize=NORMAL, color=TEXT)
        axes.set_title(f"{name}, radius {radius:.0f} mm", fontsize=LARGE, color=TEXT, loc="left")
    return figure


def _strokes(results: Impedance) -> Figure:
    figure = Figure(figsize=(9.0, 2.8), layout="constrained")
    axes = figure.add_subplot()
    clean(axes)
    places = np.arange(len(results.reaches))[::-1]
    for place, reach in zip(places, results.reaches, strict=True):
        low, high = 1e3 * reach.low.min(), 1e3 * reach.high.max()
        axes.plot([low, high], [place, place], color=PREDICTED, linewidth=9, solid_capstyle="butt")
        axes.annotate(
            f"{high - low:.1f} mm",
            (high, place),
            xytext=(6, -3),
            textcoords="offset points",
            fontsize=SMALL,
        )
    middle = (
        1e3 * float(np.mean([reach.low.min() + reach.high.max() for reach in results.reaches])) / 2
    )
    for side in (-0.5, 0.5):
        at = middle + side * 1e3 * results.settings.stroke
        axes.axvline(at, color=RESIDUAL, linewidth=1.0, linestyle="--")
    printed = f"printed: {1e3 * results.settings.stroke:.0f} mm"
    axes.annotate(
        printed, (middle, len(places) - 0.55), ha="center", fontsize=SMALL, color=RESIDUAL
    )
    axes.set_yticks(
        places, [reach.poses.replace(", ", "\n") for reach in results.reaches], fontsize=SMALL
    )
    axes.set_ylim(-0.6, len(places) - 0.4)
    axes.set_xlabel("height of the carriages [mm]", fontsize=NORMAL, color=TEXT)
    return figure


def _operations(results: Impedance) -> Figure:
    figure = Figure(figsize=(9.0, 4.0), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    places = np.arange(len(PARTS))[::-1]
    for axes, method, column, title in zip(
        panels, METHODS, (1, 2), ("Lagrange", "Generalized momentum"), strict=True
    ):
        clean(axes)
        stated = [sum(row[1] if column == 1 else row[2]) for row in PARTS.values()]
        ours = [sum(results.counts[method][part]) for part in PARTS]
        axes.barh(places + 0.2, stated, height=0.36, color=FAINT, label="paper")
        axes.barh(places - 0.2, ours, height=0.36, color=PREDICTED, label="ours")
        for place, pair in zip(places, zip(stated, ours, strict=True), strict=True):
            for shift, count in zip((0.2, -0.2), pair, strict=True):
                axes.text(
                    1.08 * count, place + shift, f"{count}", fontsize=SMALL, va="center", color=TEXT
                )
        axes.set_xscale("log")
        axes.set_xlim(100, 3e5)
        axes.set_yticks(places, [row[0] for row in PARTS.values()], fontsize=SMALL)
        axes.set_xlabel("operations", fontsize=NORMAL, color=TEXT)
        axes.set_title(title, fontsize=LARGE, color=TEXT, loc="left")
    panels[0].legend(frameon=False, fontsize=SMALL, loc="upper right")
    return figure


def _touch(results: Impedance) -> Figure:
    figure = Figure(figsize=(10.0, 6.4), layout="constrained")
    panels = figure.subplots(3, len(results.touches), sharex=True, sharey="row")
    for column, touch in zip(panels.T, results.touches, strict=True):
        for axes in column:
            clean(axes)
        place, force, drives = column
        for axis, color in ((2, PREDICTED), (0, MEASURED)):
            place.plot(
                touch.time,
                1e3 * touch.place[:, axis],
                color=color,
                linewidth=1.6,
                label="xyz"[axis],
            )
            same = "mass, spring, damper" if axis == 0 else None
            place.plot(
                touch.time,
                1e3 * touch.target[:, axis],
                ":",
                color=RESIDUAL,
                linewidth=1.2,
                label=same,
            )
        place.axhline(
            1e3 * results.settings.surface,
            color=FAINT,
            linewidth=1.0,
            linestyle="--",
            label="surface",
        )
        place.set_title(f"{touch.task.name} control", fontsize=LARGE, color=TEXT, loc="left")
        force.plot(touch.time, touch.pressure, color=RESIDUAL, linewidth=1.4)
        for k, color in enumerate(DRIVE_COLORS):
            drives.plot(
                touch.time,
                touch.force[:, k],
                DRIVE_STYLES[k % 2],
                color=color,
                linewidth=1.2,
                label=f"drive {k + 1}",
            )
        drives.set_xlabel("time [s]", fontsize=NORMAL, color=TEXT)
    for axes, label in zip(
        panels[:, 0],
        ("tool from home [mm]", "force on the surface [N]", "drive forces [N]"),
        strict=True,
    ):
        axes.set_ylabel(label, fontsize=NORMAL, color=TEXT)
    panels[0, 1].legend(frameon=False, fontsize=SMALL, loc="lower right")
    panels[2, 0].legend(frameon=False, fontsize=SMALL, ncols=3, loc="upper right")
    return figure
