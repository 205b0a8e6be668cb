"""Figures of the search for a drive line's plant: its rows beside the printed ones, and what they determine."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from tauloop.drives import DETERMINED
from tauloop.report import FAINT, MEASURED, NORMAL, PREDICTED, RESIDUAL, SMALL, TEXT, clean
from tauloop_papers.dual_motor.plant import DrivePlant

#: Deviations are shown up to this share; beyond it all is as bad.
SHOWN = 1.0
LABELS = {
    "rise_time": "rise",
    "settling_time": "settling",
    "overshoot": "overshoot",
    "energy": "energy",
    "cost": "cost",
}
#: What each figure shows.
CAPTIONS = {
    "rows": "Every figure that the paper prints of its drive, by the plant that was fitted: ours over printed, less "
    "one.",
    "directions": "Which combinations of the plant's parameters the printed figures determine, and which stay open.",
}


def figures(found: DrivePlant) -> dict[str, Figure]:
    """All figures of the experiment by the ending of their files' names."""
    return {"rows": _rows(found), "directions": _directions(found)}


def _rows(found: DrivePlant) -> Figure:
    """Ours over printed less one, by row: shipped plant and this search."""
    rows = found.shipped.rows
    figure = Figure(figsize=(9.6, 0.24 * len(rows) + 1.4), layout="constrained")
    axes = figure.add_subplot()
    clean(axes)
    places = np.arange(len(rows))[::-1]
    for fit, colour, marker, label in (
        (found.found, FAINT, "s", "this search"),
        (found.shipped, PREDICTED, "o", "as shipped"),
    ):
        for held in (False, True):
            chosen = [k for k, row in enumerate(fit.rows) if row[4] == held]
            shares = np.array([fit.rows[k][3] / fit.rows[k][2] - 1.0 for k in chosen])
            axes.plot(
                np.clip(shares, -SHOWN, SHOWN) * 100,
                places[chosen],
                marker,
                color=colour,
                markerfacecolor="white" if held else colour,
                markersize=5,
                label=f"{label}, held out" if held else label,
            )
    axes.axvline(0.0, color=MEASURED, linewidth=0.8)
    axes.axvspan(-2.0, 2.0, color=FAINT, alpha=0.3, linewidth=0)
    axes.set_xscale("symlog", linthresh=2.0)
    axes.set_xticks([-100, -30, -10, -2, 0, 2, 10, 30, 100], ["-100", "-30", "-10", "-2", "0", "2", "10", "30", "100"])
    axes.set_yticks(places, [f"{name}: {LABELS[criterion]}" for name, criterion, *_ in rows], fontsize=SMALL)
    axes.set_xlabel("ours over printed, less one [%] (grey: within 2 %)", fontsize=NORMAL, color=TEXT)
    axes.set_title("The plant beside what is printed of it", fontsize=NORMAL, color=TEXT, loc="left")
    axes.legend(fontsize=SMALL, frameon=False, loc="lower left", bbox_to_anchor=(1.0, 0.0))
    return figure


def _directions(found: DrivePlant) -> Figure:
    """How much the rows change along each direction, and what the directions are made of."""
    fit = found.shipped
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
    left.set_xlabel("change of the rows over the ranges [tolerances]", fontsize=NORMAL, color=TEXT)
    left.set_ylabel("direction", fontsize=NORMAL, color=TEXT)
    left.set_title("Below the dashed line: not determined", fontsize=NORMAL, color=TEXT, loc="left")
    shown = right.imshow(np.abs(fit.directions), aspect="auto", cmap="cividis", vmin=0.0, vmax=1.0)
    names = [name.replace("_", " ") for name in fit.values]
    right.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=SMALL)
    right.set_yticks(range(len(order)), [str(k) for k in order], fontsize=SMALL)
    right.set_title("What they are made of (size of each part)", fontsize=NORMAL, color=TEXT, loc="left")
    figure.colorbar(shown, ax=right)
    return figure
