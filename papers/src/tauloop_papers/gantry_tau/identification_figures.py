"""Figures of the two-run experiment: forces of models, effect of the second run, and estimates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import tauloop as tl
from tauloop.display import FAINT, LARGE, MEASURED, NORMAL, PREDICTED, RESIDUAL, SMALL, TEXT, clean
from tauloop.viewer import Playback, View
from tauloop_papers.gantry_tau.fits import relative_rms
from tauloop_papers.gantry_tau.identification import FILM_RATE, TwoRunIdentification
from tauloop_papers.gantry_tau.results import Pattern, Shown
from tauloop_papers.reproduction import squared

#: Limit of the linear range in the plot of parameters, which is logarithmic above.
LINEAR = 0.01
#: Markers of the estimates, in order.
MARKERS = ("o", "s", "D", "^")
#: Colors of the consistent fits to the small motions, and to the last design.
CONSISTENT = ("#b8860b", "#e0b23c")
ESTIMATE_COLORS = (RESIDUAL, PREDICTED, "#3f7f5f", "#8a6fb0")
_CURVES = "Thick: measured with the structure connected. Thin: the disconnected run plus the model's forces. "
#: Figure number of each row of Table 1 by captions, and different numbers in the text.
FIGURES = {"3-DOF": "3", "5-DOF I": "4", "5-DOF II": "5", "identified": "6"}
_IN_TEXT = {"5-DOF I": " (5 in its text)", "5-DOF II": " (6 in its text)"}
_NEAREST = " The plant is the one of the search nearest to Table 1 in all three rows."
_MODELS = {
    "3-DOF": f"the 3-dof model, with fixed lengths.{_NEAREST}",
    "5-DOF I": f"the 5-dof model on the same motion.{_NEAREST}",
    "5-DOF II": f"the 5-dof model, all actuators moving.{_NEAREST}",
    "identified": "the 5-dof model with the parameters of Table 2, on a motion that was not fitted.",
}
#: Captions of the figures.
CAPTIONS = {
    "machine": "The machine of the paper's Figure 1, drawn from the model: three carts, four links, two telescopes.",
    **{
        f"figure-{number}": f"As the paper's Figure {number}{_IN_TEXT.get(row, '')}. {_CURVES}{_MODELS[row]}"
        for row, number in FIGURES.items()
    },
    "table-1": "Table 1 as bars, and errors before identification by errors of hand measurement.",
    "pattern": "Table 1's pattern over the actuators. Left: printed differences of the rows 3-DOF and 5-DOF I, and "
    "their bounds for any plant, rigid or not, by the masses in the 3-dof model. Right: the nearest plants "
    "of the search, by size of the errors of hand measurement.",
    "two-runs": "The two-run method of section 3: force with the structure, without it, and their difference.",
    "parameters": "The sixteen parameters of Table 2 with standard deviations, and which of them each motion "
    "determines.",
}
#: Figures of the paper without data.
UNDRAWN = {
    "Figure 1": "a photograph of the machine; its model is shown and moves above",
    "Figure 2": "the four variables of a telescopic link, Q_1 to Q_3 and L: here the position of its cart, the "
    "direction of the link, which follows from the platform's pose, and its length",
}
#: Captions of the films.
FILMS = {
    "motion": "The motion of the row 5-DOF II, in which all five actuators move. Drag to rotate it."
}


def films(identification: TwoRunIdentification) -> dict[str, View]:
    """Return all motions of the experiment, by the suffix of their file names."""
    model = tl.Model(tl.load(identification.settings.machine))
    q = model.forward_kinematics(identification.filmed).q
    return {
        "motion": tl.view(
            model, tl.ViewOptions(motion=Playback(time=np.arange(len(q)) / FILM_RATE, q=q))
        )
    }


def figures(identified: TwoRunIdentification) -> dict[str, Figure]:
    """Return all figures of the experiment, by the suffix of their file names."""
    plants = identified.findings.pattern
    # Figures 3 to 5 are of the plant that has the printed errors, if it is known
    nearest = {} if plants is None else {curves.row: curves for curves in plants.curves}
    shown = [nearest.get(curves.row, curves) for curves in identified.shown]
    stated = identified.settings.stated.rows
    rows = {
        f"figure-{FIGURES[curves.row]}": forces_over_time(curves, stated[curves.row])
        for curves in shown
    }
    return {
        "machine": tl.view(tl.load(identified.settings.machine)).picture(),
        **rows,
        "table-1": _errors(identified),
        **({} if plants is None else {"pattern": _pattern(plants)}),
        "two-runs": _runs(identified),
        "parameters": _parameters(identified),
    }


def forces_over_time(curves: Shown, printed: Sequence[float]) -> Figure:
    """Return a figure of forces with the structure, and without it plus the model's forces.

    Args:
        curves: a row of Table 1 over time.
        printed: the errors of that row in the paper, % per actuator.
    """
    figure = Figure(figsize=(9.4, 6.4), layout="constrained")
    panels = figure.subplots(len(printed), 1, sharex=True)
    draw_forces(panels, curves, printed)
    panels[0].legend(
        fontsize=SMALL,
        frameon=False,
        ncols=2,
        loc="lower left",
        bbox_to_anchor=(0.0, 0.99),
        borderpad=0.0,
    )
    return figure


def draw_forces(panels: Sequence[Axes], curves: Shown, printed: Sequence[float]) -> None:
    """Draw a row of Table 1 over time, with one actuator per panel."""
    errors = relative_rms(curves.connected - curves.own, curves.model)
    for k, axes in enumerate(panels):
        clean(axes)
        axes.plot(
            curves.time,
            curves.connected[:, k],
            color=MEASURED,
            linewidth=3.0,
            label="measured, connected",
        )
        axes.plot(
            curves.time,
            curves.own[:, k] + curves.model[:, k],
            color=RESIDUAL,
            linewidth=0.9,
            label="disconnected + model",
        )
        axes.set_ylabel(f"actuator {k + 1} [N]", fontsize=NORMAL, color=TEXT)
        axes.set_title(
            f"error by eq. 3: {errors[k]:.2f} % (printed {printed[k]:.2f} %)",
            fontsize=NORMAL,
            color=TEXT,
            loc="right",
        )
    panels[-1].set_xlabel("time [s]", fontsize=NORMAL, color=TEXT)


def _errors(identification: TwoRunIdentification) -> Figure:
    figure = Figure(figsize=(9.4, 4.6), layout="constrained")
    table, growth = figure.subplots(1, 2)
    _table(identification, table)
    _growth(identification, growth)
    return figure


def _pattern(plants: Pattern) -> Figure:
    figure = Figure(figsize=(9.4, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    clean(left)
    bars = {"printed": plants.needed, **plants.bounds}
    place = np.arange(len(plants.needed))
    width = 0.8 / len(bars)
    for k, ((label, heights), color) in enumerate(
        zip(bars.items(), (TEXT, *ESTIMATE_COLORS, MEASURED), strict=False)
    ):
        left.bar(
            place + (k - 0.5 * len(bars) + 0.5) * width, heights, width, color=color, label=label
        )
    left.set_xticks(place, [f"actuator {k + 1}" for k in place])
    left.set_ylabel("difference of 3-DOF and 5-DOF I [points]", fontsize=NORMAL, color=TEXT)
    left.legend(
        fontsize=SMALL, frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderpad=0.0
    )
    clean(right)
    styles = {2: "--", 3: "-"}
    for (structure, rows), color in zip(
        dict.fromkeys((plant.structure, plant.rows) for plant in plants.nearest),
        ESTIMATE_COLORS,
        strict=False,
    ):
        curve = [
            plant for plant in plants.nearest if (plant.structure, plant.rows) == (structure, rows)
        ]
        right.plot(
            [plant.size for plant in curve],
            [plant.worst for plant in curve],
            styles[rows],
            marker=".",
            color=color,
            label=f"{structure}, {rows} rows",
        )
    right.set_ylim(0.0, None)
    right.set_xticks(sorted({plant.size for plant in plants.nearest}))
    right.set_xlabel(
        "bound of hand measurement errors [standard deviations]", fontsize=NORMAL, color=TEXT
    )
    right.set_ylabel("largest error of a cell [points]", fontsize=NORMAL, color=TEXT)
    right.legend(
        fontsize=SMALL, frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderpad=0.0
    )
    return figure


def _table(identified: TwoRunIdentification, axes: Axes) -> None:
    """Draw Table 1 as bars: printed next to ours."""
    clean(axes)
    stated = identified.settings.stated.rows
    names = list(identified.findings.rows)
    ticks, labels = [], []
    place = 0.0
    for name in names:
        pairs = list(zip(stated[name], identified.findings.rows[name], strict=True))
        for k, (printed, ours) in enumerate(pairs):
            first = place == 0.0
            axes.barh(place, printed, height=0.36, color=FAINT, label="paper" if first else None)
            axes.barh(
                place + 0.38, ours, height=0.36, color=PREDICTED, label="ours" if first else None
            )
            axes.text(
                max(printed, ours) + 0.4,
                place + 0.19,
                f"{printed:.1f} | {ours:.1f}",
                fontsize=SMALL,
                va="center",
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


def _growth(identified: TwoRunIdentification, axes: Axes) -> None:
    clean(axes)
    settings = identified.settings
    size = 100.0 * settings.built.mass * np.array(settings.error_scales)
    errors = identified.findings.growth.reshape(len(size), -1)
    low, middle, high = np.quantile(errors, (0.1, 0.5, 0.9), axis=1)
    axes.fill_between(size, low, high, color=FAINT, alpha=0.6, linewidth=0.0, label="80 % of draws")
    axes.plot(size, middle, color=PREDICTED, marker=".", linewidth=1.2, label="median")
    printed = [
        value for name, row in settings.stated.rows.items() if name != "identified" for value in row
    ]
    span = (min(printed), max(printed))
    axes.axhspan(
        *span,
        color=RESIDUAL,
        alpha=0.15,
        label=f"paper, not identified: {span[0]:.1f} to {span[1]:.1f} %",
    )
    axes.set_xlabel("errors of hand-measured masses [%]", fontsize=NORMAL, color=TEXT)
    axes.set_ylabel("error, 5-DOF I [%]", fontsize=NORMAL, color=TEXT)
    axes.set_title(
        "Before identification, by errors of hand measurement",
        fontsize=NORMAL,
        color=TEXT,
        loc="left",
    )
    axes.legend(fontsize=SMALL, frameon=False, loc="upper left")


def _runs(identified: TwoRunIdentification) -> Figure:
    """Draw the subtracted forces over time and over velocity."""
    figure = Figure(figsize=(11.5, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.6, 1.0))
    clean(left)
    example = identified.shown[-1]
    for values, color, width, label in (
        (example.connected, MEASURED, 1.0, "with the structure"),
        (example.own, RESIDUAL, 1.0, "without: the actuator alone"),
        (example.connected - example.own, PREDICTED, 1.2, "difference: the structure"),
    ):
        left.plot(example.time, values[:, 0], color=color, linewidth=width, label=label)
    left.set_xlabel("time [s]", fontsize=NORMAL, color=TEXT)
    left.set_ylabel(f"force of {identified.outputs[0]} [N]", fontsize=NORMAL, color=TEXT)
    left.set_title(
        "Two runs of one motion, averages over their periods",
        fontsize=LARGE,
        color=TEXT,
        loc="left",
        pad=20.0,
    )
    left.legend(
        fontsize=SMALL,
        frameon=False,
        ncols=3,
        loc="lower left",
        bbox_to_anchor=(0.0, 0.99),
        borderpad=0.0,
    )
    clean(right)
    right.plot(example.velocity[:, 0], example.own[:, 0], color=RESIDUAL, linewidth=0.7)
    right.set_xlabel("velocity [m/s]", fontsize=NORMAL, color=TEXT)
    right.set_ylabel("force of the actuator alone [N]", fontsize=NORMAL, color=TEXT)
    right.set_title("Hysteresis, friction and inertia", fontsize=LARGE, color=TEXT, loc="left")
    return figure


def _parameters(identified: TwoRunIdentification) -> Figure:
    """Draw estimates with deviations, described and built values, and deviations by noise alone."""
    figure = Figure(figsize=(11.5, 7.6), layout="constrained")
    top, bottom = figure.subplots(2, 1, height_ratios=(1.4, 1.0), sharex=True)
    data = identified.findings
    place = np.arange(len(identified.parameters), dtype=float)
    clean(top)
    top.set_yscale("symlog", linthresh=LINEAR)
    top.axhline(0.0, color=TEXT, linewidth=0.7)
    top.plot(
        place,
        identified.described,
        linestyle="none",
        marker="_",
        markersize=16,
        color=FAINT,
        mew=3,
        label="Table 3",
    )
    top.plot(
        place,
        data.built,
        linestyle="none",
        marker="_",
        markersize=16,
        color=TEXT,
        mew=1.5,
        label="as built",
    )
    shifts = np.linspace(-0.24, 0.0, len(data.estimates))
    for estimate, shift, color, marker in zip(
        data.estimates, shifts, ESTIMATE_COLORS, MARKERS, strict=False
    ):
        top.errorbar(
            place + shift,
            estimate.values,
            estimate.correlated,
            linestyle="none",
            marker=marker,
            markersize=4,
            color=color,
            elinewidth=1.0,
            label=f"least squares, {estimate.name}",
        )
    for fit, color, shift in zip(
        (data.consistent[0], data.consistent[-1]), CONSISTENT, (0.12, 0.24), strict=True
    ):
        top.plot(
            place + shift,
            fit.values,
            linestyle="none",
            marker="*",
            markersize=8,
            color=color,
            label=f"physically consistent, {fit.name}",
        )
    top.set_ylabel("value [SI], linear within ±0.01", fontsize=NORMAL, color=TEXT)
    top.set_title(
        "Table 2: estimates with standard deviations that include the residuals' correlation",
        fontsize=LARGE,
        color=TEXT,
        loc="left",
    )
    top.legend(
        fontsize=SMALL, frameon=False, ncols=3, loc="upper left", bbox_to_anchor=(0.0, -0.02)
    )
    clean(bottom)
    threshold = identified.settings.determined_deviation
    for estimate, shift, color, marker in zip(
        data.estimates, shifts, ESTIMATE_COLORS, MARKERS, strict=False
    ):
        bottom.semilogy(
            place + shift,
            100.0 * estimate.by_noise / np.abs(data.built),
            linestyle="none",
            marker=marker,
            markersize=5,
            color=color,
        )
    bottom.axhline(100.0 * threshold, color=TEXT, linewidth=0.9, linestyle="--")
    bottom.text(
        place[-1] + 0.4,
        90.0 * threshold,
        f"determined: below {threshold:.0%}",
        fontsize=SMALL,
        ha="right",
        va="top",
    )
    bottom.set_xticks(
        place,
        [
            f"{n}\n[{squared(u)}]"
            for n, u in zip(identified.parameters, identified.units, strict=True)
        ],
    )
    bottom.set_ylabel("deviation by noise alone [% of as built]", fontsize=NORMAL, color=TEXT)
    bottom.set_title(
        "Deviations by noise alone for each motion, equal recording times",
        fontsize=LARGE,
        color=TEXT,
        loc="left",
    )
    return figure
