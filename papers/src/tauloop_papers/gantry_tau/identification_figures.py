"""Figures of the two-run experiment: forces by every model, what two runs take away, and what parameters come to."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tauloop.report import FAINT, LARGE, MEASURED, NORMAL, PREDICTED, RESIDUAL, SMALL, TEXT, clean
from tauloop_papers.gantry_tau.identification import TwoRunIdentification

#: Parameters are drawn on a scale that is linear below this size, and logarithmic above.
LINEAR = 0.01
#: Markers of the estimates, in their order.
MARKERS = ("o", "s", "D", "^")
#: Of the consistent fits to the small motions, and to the last design.
CONSISTENT = ("#b8860b", "#e0b23c")
COLOURS = (RESIDUAL, PREDICTED, "#3f7f5f", "#8a6fb0")
#: What each figure shows.
CAPTIONS = {
    "forces": "As the paper's Figures 3 to 6: forces of the three carts on the held-out motion, measured by two runs, "
    "as described before identification, and identified. Beside them Table 1 as bars, and how errors before "
    "identification grow with those of weighing by hand.",
    "two-runs": "The two-run method of section 3: force with the structure, without it, and their difference.",
    "parameters": "The sixteen parameters of Table 2 with standard deviations, and which of them each motion shows.",
}


def figures(found: TwoRunIdentification) -> dict[str, Figure]:
    """All figures of the experiment by the ending of their files' names."""
    return {"forces": _forces(found), "two-runs": _runs(found), "parameters": _parameters(found)}


def _forces(found: TwoRunIdentification) -> Figure:
    """The structure's forces of the hold-out motion as in the paper's Figures 3 to 6, and Table 1."""
    figure = Figure(figsize=(11.5, 7.6), layout="constrained")
    count = len(found.outputs)
    grid = figure.add_gridspec(count, 2, width_ratios=(1.7, 1.0))
    example = found.example
    panels = [figure.add_subplot(grid[k, 0]) for k in range(count)]
    for k, (name, axes) in enumerate(zip(found.outputs, panels, strict=True)):
        clean(axes)
        residual = example.structure[:, k] - example.identified[:, k]
        axes.plot(example.time, example.structure[:, k], color=MEASURED, linewidth=3.0, label="measured, two runs")
        axes.plot(
            example.time, example.described[:, k], color=RESIDUAL, linewidth=1.0, linestyle="--", label="as described"
        )
        axes.plot(example.time, example.identified[:, k], color=PREDICTED, linewidth=1.0, label="identified")
        axes.plot(example.time, residual, color=FAINT, linewidth=0.7, label="measured less identified", zorder=1)
        axes.set_ylabel(f"{name} [N]", fontsize=NORMAL, color=TEXT)
        if k == 0:
            axes.set_title(
                "Structure's forces of the hold-out motion", fontsize=LARGE, color=TEXT, loc="left", pad=20.0
            )
            axes.legend(
                fontsize=SMALL, frameon=False, ncols=4, loc="lower left", bbox_to_anchor=(0.0, 0.99), borderpad=0.0
            )
    panels[-1].set_xlabel("time [s]", fontsize=NORMAL, color=TEXT)
    _table(found, figure.add_subplot(grid[: count - 1, 1]))
    _growth(found, figure.add_subplot(grid[count - 1, 1]))
    return figure


def _table(found: TwoRunIdentification, axes: Axes) -> None:
    """Table 1 as bars: printed beside ours."""
    clean(axes)
    stated = found.settings.stated.rows
    names = list(found.findings.rows)
    ticks, labels = [], []
    place = 0.0
    for name in names:
        pairs = list(zip(stated[name], found.findings.rows[name], strict=True))
        for k, (printed, ours) in enumerate(pairs):
            first = place == 0.0
            axes.barh(place, printed, height=0.36, color=FAINT, label="paper" if first else None)
            axes.barh(place + 0.38, ours, height=0.36, color=PREDICTED, label="ours" if first else None)
            axes.text(
                max(printed, ours) + 0.4, place + 0.19, f"{printed:.1f} | {ours:.1f}", fontsize=SMALL, va="center"
            )
            ticks.append(place + 0.19)
            labels.append(f"{name}, act. {k + 1}")
            place += 1.0
        place += 0.5
    axes.set_yticks(ticks, labels)
    axes.invert_yaxis()
    axes.set_xlim(0.0, 1.25 * max(max(row) for row in stated.values()))
    axes.set_xlabel("relative RMS error, eq. 3 [%]", fontsize=NORMAL, color=TEXT)
    axes.set_title("Table 1", fontsize=LARGE, color=TEXT, loc="left")
    axes.legend(fontsize=SMALL, frameon=False, loc="lower right")


def _growth(found: TwoRunIdentification, axes: Axes) -> None:
    clean(axes)
    settings = found.settings
    size = 100.0 * settings.built.mass * np.array(settings.error_scales)
    errors = found.findings.growth.reshape(len(size), -1)
    low, middle, high = np.quantile(errors, (0.1, 0.5, 0.9), axis=1)
    axes.fill_between(size, low, high, color=FAINT, alpha=0.6, linewidth=0.0, label="80 % of draws")
    axes.plot(size, middle, color=PREDICTED, marker=".", linewidth=1.2, label="median")
    printed = [value for name, row in settings.stated.rows.items() if name != "identified" for value in row]
    span = (min(printed), max(printed))
    axes.axhspan(*span, color=RESIDUAL, alpha=0.15, label=f"paper, not identified: {span[0]:.1f} to {span[1]:.1f} %")
    axes.set_xlabel("errors of hand-measured masses [%]", fontsize=NORMAL, color=TEXT)
    axes.set_ylabel("error, 5-DOF I [%]", fontsize=NORMAL, color=TEXT)
    axes.set_title("Errors before identification follow from the hand's", fontsize=NORMAL, color=TEXT, loc="left")
    axes.legend(fontsize=SMALL, frameon=False, loc="upper left")


def _runs(found: TwoRunIdentification) -> Figure:
    """What is subtracted, over time and over velocity."""
    figure = Figure(figsize=(11.5, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.6, 1.0))
    clean(left)
    example = found.example
    for values, colour, width, label in (
        (example.connected, MEASURED, 1.0, "with the structure"),
        (example.own, RESIDUAL, 1.0, "without: the actuator alone"),
        (example.structure, PREDICTED, 1.2, "difference: the structure"),
    ):
        left.plot(example.time, values[:, 0], color=colour, linewidth=width, label=label)
    left.set_xlabel("time [s]", fontsize=NORMAL, color=TEXT)
    left.set_ylabel(f"force of {found.outputs[0]} [N]", fontsize=NORMAL, color=TEXT)
    left.set_title(
        "Two runs of one motion, averages over their periods", fontsize=LARGE, color=TEXT, loc="left", pad=20.0
    )
    left.legend(fontsize=SMALL, frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0.0, 0.99), borderpad=0.0)
    clean(right)
    right.plot(example.velocity[:, 0], example.own[:, 0], color=RESIDUAL, linewidth=0.7)
    right.set_xlabel("velocity [m/s]", fontsize=NORMAL, color=TEXT)
    right.set_ylabel("the actuator's own force [N]", fontsize=NORMAL, color=TEXT)
    right.set_title("Hysteresis, friction and inertia", fontsize=LARGE, color=TEXT, loc="left")
    return figure


def _parameters(found: TwoRunIdentification) -> Figure:
    """Estimates with deviations beside what is described and built, and how well noise lets them be told."""
    figure = Figure(figsize=(11.5, 7.6), layout="constrained")
    top, bottom = figure.subplots(2, 1, height_ratios=(1.4, 1.0), sharex=True)
    data = found.findings
    place = np.arange(len(found.parameters), dtype=float)
    clean(top)
    top.set_yscale("symlog", linthresh=LINEAR)
    top.axhline(0.0, color=TEXT, linewidth=0.7)
    top.plot(place, found.described, linestyle="none", marker="_", markersize=16, color=FAINT, mew=3, label="Table 3")
    top.plot(place, data.built, linestyle="none", marker="_", markersize=16, color=TEXT, mew=1.5, label="as built")
    shifts = np.linspace(-0.24, 0.0, len(data.estimates))
    for one, shift, colour, marker in zip(data.estimates, shifts, COLOURS, MARKERS, strict=False):
        top.errorbar(
            place + shift,
            one.values,
            one.correlated,
            linestyle="none",
            marker=marker,
            markersize=4,
            color=colour,
            elinewidth=1.0,
            label=f"least squares, {one.name}",
        )
    for fit, colour, shift in zip((data.consistent[0], data.consistent[-1]), CONSISTENT, (0.12, 0.24), strict=True):
        top.plot(
            place + shift,
            fit.values,
            linestyle="none",
            marker="*",
            markersize=8,
            color=colour,
            label=f"physically consistent, {fit.name}",
        )
    top.set_ylabel("value [SI], linear within ±0.01", fontsize=NORMAL, color=TEXT)
    top.set_title(
        "Table 2: estimates with standard deviations that count the residuals' correlation",
        fontsize=LARGE,
        color=TEXT,
        loc="left",
    )
    top.legend(fontsize=SMALL, frameon=False, ncols=3, loc="upper left", bbox_to_anchor=(0.0, -0.02))
    clean(bottom)
    told = found.settings.told
    for one, shift, colour, marker in zip(data.estimates, shifts, COLOURS, MARKERS, strict=False):
        bottom.semilogy(
            place + shift,
            100.0 * one.by_noise / np.abs(data.built),
            linestyle="none",
            marker=marker,
            markersize=5,
            color=colour,
        )
    bottom.axhline(100.0 * told, color=TEXT, linewidth=0.9, linestyle="--")
    bottom.text(place[-1] + 0.4, 90.0 * told, f"told: below {told:.0%}", fontsize=SMALL, ha="right", va="top")
    bottom.set_xticks(place, [f"{n}\n[{u}]" for n, u in zip(found.parameters, found.units, strict=True)])
    bottom.set_ylabel("deviation by noise alone [% of as built]", fontsize=NORMAL, color=TEXT)
    bottom.set_title("What noise lets each motion tell, equal recording times", fontsize=LARGE, color=TEXT, loc="left")
    return figure
