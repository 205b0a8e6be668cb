"""Figures of the search for a drive line's plant: its rows, and the determined directions."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from tauloop.display import FAINT, MEASURED, NORMAL, PREDICTED, RESIDUAL, SMALL, TEXT, clean
from tauloop.drives import DETERMINED
from tauloop_papers.dual_motor.plant import DrivePlant
from tauloop_papers.dual_motor.table import bar_of

#: Ticks of losses.
LOSSES = (20, 30, 50, 100, 150)
#: Largest plotted deviation, as a share.
MAX_DEVIATION = 1.0
LABELS = {
    "rise_time": "rise",
    "settling_time": "settling",
    "overshoot": "overshoot",
    "energy": "energy",
    "cost": "cost",
}
#: Captions of the figures.
CAPTIONS = {
    "rows": "All printed values of the drive, by the one plant, with play: ours over printed, minus one. Faint: the "
    "best plants of the other structures.",
    "structures": "Losses of all starts of every structure (dark: of its best fit), and the gain of the others if one "
    "value is left out.",
    "directions": "Combinations of the plant's parameters that the printed values determine, and that they leave open.",
}


def figures(plant: DrivePlant) -> dict[str, Figure]:
    """Return all figures of the experiment, by the suffix of their file names."""
    return {
        "rows": _rows(plant),
        "structures": _structures(plant),
        "directions": _directions(plant),
    }


def _rows(plant: DrivePlant) -> Figure:
    """Draw ours over printed, minus one, by row."""
    rows = plant.shipped.rows
    figure = Figure(figsize=(9.6, 0.24 * len(rows) + 1.4), layout="constrained")
    axes = figure.add_subplot()
    clean(axes)
    places = np.arange(len(rows))[::-1]
    others = [(item.fit, FAINT, "s", None) for item in plant.tried]
    for fit, color, marker, label in (
        *others,
        (plant.shipped, PREDICTED, "o", "the plant with play"),
    ):
        shares = np.array([row[3] / row[2] - 1.0 for row in fit.rows])
        axes.plot(
            np.clip(shares, -MAX_DEVIATION, MAX_DEVIATION) * 100,
            places,
            marker,
            color=color,
            markersize=5,
            label=label,
        )
    axes.axvline(0.0, color=MEASURED, linewidth=0.8)
    for place, row in zip(places, rows, strict=True):
        bar = 100 * bar_of(row[1], row[0])
        axes.plot(
            [-bar, bar],
            [place, place],
            color=RESIDUAL,
            linewidth=5,
            alpha=0.25,
            solid_capstyle="butt",
        )
    axes.set_xscale("symlog", linthresh=1.0)
    ticks = (-100, -30, -10, -3, -1, 0, 1, 3, 10, 30, 100)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_yticks(
        places, [f"{name}: {LABELS[criterion]}" for name, criterion, *_ in rows], fontsize=SMALL
    )
    axes.set_xlabel("ours over printed, less one [%] (red: the bars)", fontsize=NORMAL, color=TEXT)
    axes.set_title(
        "The plant compared with the printed values", fontsize=NORMAL, color=TEXT, loc="left"
    )
    return figure


def _structures(plant: DrivePlant) -> Figure:
    figure = Figure(figsize=(11.0, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes in (left, right):
        clean(axes)
    places = np.arange(len(plant.tried))[::-1]
    for place, item in zip(places, plant.tried, strict=True):
        left.plot(item.starts, np.full(len(item.starts), place), "o", color=FAINT, markersize=5)
        left.plot(item.kept, place, "o", color=PREDICTED, markersize=6)
    left.set_yticks(places, [item.structure.name for item in plant.tried], fontsize=SMALL)
    left.set_xscale("log")
    left.set_xticks(LOSSES, [str(loss) for loss in LOSSES])
    left.minorticks_off()
    left.set_xlabel("loss of every start (faint), and of the best fit", fontsize=NORMAL, color=TEXT)
    left.set_title("Structures", fontsize=NORMAL, color=TEXT, loc="left")
    gains = sorted(plant.left_out.items(), key=lambda pair: pair[1].gained)
    places = np.arange(len(gains))
    right.barh(places, [gain.gained for _, gain in gains], color=PREDICTED, height=0.7)
    right.set_yticks(places, [name for name, _ in gains], fontsize=SMALL)
    right.set_xlabel("reduction of the loss of all others", fontsize=NORMAL, color=TEXT)
    right.set_title("One value left out at a time", fontsize=NORMAL, color=TEXT, loc="left")
    return figure


def _directions(plant: DrivePlant) -> Figure:
    """Draw the change of the rows along each direction, and the components of the directions."""
    fit = plant.shipped
    figure = Figure(figsize=(10.4, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 2))
    clean(left)
    order = np.arange(1, len(fit.sensitivities) + 1)
    known = fit.sensitivities >= DETERMINED
    size = np.maximum(fit.sensitivities, 1e-3)
    left.semilogx(size[known], order[known], "o", color=PREDICTED)
    left.semilogx(size[~known], order[~known], "o", color=RESIDUAL)
    left.axvline(DETERMINED, color=TEXT, linewidth=0.8, linestyle="--")
    left.invert_yaxis()
    left.set_yticks(order)
    left.set_xlabel("change of the rows over the ranges [bars]", fontsize=NORMAL, color=TEXT)
    left.set_ylabel("direction", fontsize=NORMAL, color=TEXT)
    left.set_title("Below the dashed line: not determined", fontsize=NORMAL, color=TEXT, loc="left")
    shown = right.imshow(np.abs(fit.directions), aspect="auto", cmap="cividis", vmin=0.0, vmax=1.0)
    names = [name.replace("_", " ") for name in fit.values]
    right.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=SMALL)
    right.set_yticks(range(len(order)), [str(k) for k in order], fontsize=SMALL)
    right.set_title("Components of the directions", fontsize=NORMAL, color=TEXT, loc="left")
    figure.colorbar(shown, ax=right)
    return figure
