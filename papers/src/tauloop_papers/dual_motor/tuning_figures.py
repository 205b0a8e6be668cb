"""Figures of a tuning experiment: descents of the searches, and the cost map of the switching."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import tauloop as tl
from tauloop.display import FAINT, LARGE, MEASURED, NORMAL, PREDICTED, RESIDUAL, SMALL, TEXT, clean
from tauloop.viewer import Playback, View
from tauloop_papers.dual_motor.results import Table
from tauloop_papers.dual_motor.tuning import DriveTuning

#: Color and marker of the methods, in the order of the settings.
METHOD_STYLES = ((PREDICTED, "o"), (RESIDUAL, "s"), ("#4f8a5b", "^"), (MEASURED, "D"))
#: Range of the colored cost map above its smallest cost, as a share.
COST_RANGE = 0.25
#: Panels of searches per row.
PANELS_PER_ROW = 3
#: Plotted duration of position and torques in rise times, and limits of the torques, N m.
RISES, TORQUES = 8.0, (-15.0, 45.0)
#: Time after which the plotted error determines its scale, s.
SCALE_TIME = 10.0
#: Captions of the films, and the filmed duration, s.
FILMS = {
    "step": "Figure 5: a step of the cart on its rack; the master's and the slave's pinion turn. Drag to rotate it."
}
FILM = 4.0
#: Figures of the paper without data.
UNDRAWN = {
    "Figure 5": "a picture of the play in gearboxes and racks; its model moves above",
    "Figure 6": "the diagram of the Dymola model: three masses, two of them with play, as in the drive line's file "
    "(`tauloop drive step dual_motor_inferred`)",
    "Figure 7": "the block diagram of the control, see `control` in the same file",
}
#: Captions of the figures.
CAPTIONS = {
    "figure-8": "As the paper's Figure 8: a step of the axis with two motors, position and torques; next to it the "
    "same "
    "plant with one motor. The kick of the derivative part at the very start is cut off. Below: errors of both "
    "later. One motor hunts through its play, two do not. The paper prints no scales.",
    "figure-9": "As the paper's Figure 9: the switching function, for the first and the chosen pair of parameters.",
    "descents": "Tables 1 to 3 as descents: smallest cost by number of simulations, for each method and start.",
    "map": "Cost of the switching over both thresholds, with starts and ends of all searches.",
    "front": "Not in the paper: compromises of energy and overshoot, and designs over plants that scatter.",
}


def figures(tuning: DriveTuning) -> dict[str, Figure]:
    """Return all figures of the experiment, by the suffix of their file names."""
    return {
        "figure-8": _steps(tuning),
        "figure-9": _switching(tuning),
        "descents": _descents(tuning),
        "map": _maps(tuning),
        "front": _front(tuning),
    }


def films(tuning: DriveTuning) -> dict[str, View]:
    """Return all motions of the experiment, by the suffix of their file names."""
    record = tuning.cycling.records["as-written"]
    model = tl.Model(
        tl.loads(
            files("tauloop_papers.dual_motor").joinpath("axis.yaml").read_text(encoding="utf-8")
        )
    )
    cart = record.signal("cart.position")
    turns = [record.signal(f"motor{k}.position") for k in (1, 2)]
    shown = record.time <= FILM
    played = Playback(time=record.time[shown], q=np.column_stack([cart, *turns])[shown])
    return {"step": tl.view(model, tl.ViewOptions(motion=played))}


def _steps(tuning: DriveTuning) -> Figure:
    """Draw position and torques with two motors and one, and their later errors."""
    figure = Figure(figsize=(10.0, 7.2), layout="constrained")
    panels = figure.subplots(3, 2, sharey="row", height_ratios=(2, 1.6, 1.6))
    names = {"as-written": "two motors, switching", "one": "one motor, the same plant"}
    time, errors = tuning.cycling.later
    beginning = float(tuning.cycling.records["as-written"].criteria.rise_time[0])
    for column, (motors, title) in enumerate(names.items()):
        record = tuning.cycling.records[motors]
        position, torque, error = panels[:, column]
        for axes in panels[:, column]:
            clean(axes)
        position.axhline(1e3 * record.reference, color=FAINT, linewidth=1.0, linestyle="--")
        position.plot(
            record.time, 1e3 * record.signal("cart.position"), color=PREDICTED, linewidth=1.4
        )
        position.set_title(title, fontsize=NORMAL, color=TEXT, loc="left")
        for k, color in ((1, RESIDUAL), (2, MEASURED)):
            if f"drive{k}.torque [N m]" in record.signals:
                torque.plot(
                    record.time,
                    record.signal(f"drive{k}.torque"),
                    color=color,
                    linewidth=1.2,
                    label=f"motor {k}",
                )
        torque.set_ylim(*TORQUES)
        for axes in (position, torque):
            axes.set_xlim(0.0, min(float(record.time[-1]), RISES * beginning))
        error.plot(time, 1e3 * errors[motors], color=PREDICTED, linewidth=1.2)
        torque.set_xlabel("time [s]", fontsize=NORMAL, color=TEXT)
        error.set_xlabel("time [s], longer", fontsize=NORMAL, color=TEXT)
    most = 1.2e3 * max(float(np.abs(error[time > SCALE_TIME]).max()) for error in errors.values())
    panels[2, 0].set_ylim(-most, most)
    labels = ("position [mm]", "torque [N m]", "off the reference [mm]")
    for axes, label in zip(panels[:, 0], labels, strict=True):
        axes.set_ylabel(label, fontsize=NORMAL, color=TEXT)
    panels[1, 0].legend(frameon=False, fontsize=SMALL)
    return figure


def _switching(tuning: DriveTuning) -> Figure:
    """Draw the switching variable over the relative error, as simulated."""
    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    axes = figure.add_subplot()
    clean(axes)
    pairs = ((tuning.settings.before.best, FAINT), (tuning.settings.after.best, PREDICTED))
    relative = np.linspace(0.0, 1.0, 401)
    for (most, least), color in pairs:
        share = np.clip((relative - least) / (most - least), 0.0, 1.0)
        label = f"e_max {most:g}, e_min {least:g}"
        axes.plot(relative, 1 - share**2 * (3 - 2 * share), color=color, linewidth=1.8, label=label)
    axes.set_xlabel("relative error e_abs", fontsize=NORMAL, color=TEXT)
    axes.set_ylabel("|v|", fontsize=NORMAL, color=TEXT)
    axes.legend(frameon=False, fontsize=SMALL)
    return figure


def _descents(tuning: DriveTuning) -> Figure:
    """Draw cost above the best known over evaluations, with one panel per start."""
    cells = [(table, start) for table in tuning.tables for start in table.study.starts]
    rows = -(-len(cells) // PANELS_PER_ROW)
    figure = Figure(figsize=(3.7 * PANELS_PER_ROW, 3.9 * rows), layout="constrained")
    for k, (table, start) in enumerate(cells):
        axes = figure.add_subplot(rows, PANELS_PER_ROW, k + 1)
        clean(axes)
        least = min(table.grid_cost, *(search.cost for search in table.searches))
        searches = [search for search in table.searches if search.start == start]
        for search, (color, _) in zip(searches, METHOD_STYLES, strict=True):
            above = np.maximum(np.array(search.descent) / least - 1.0, 1e-6)
            label = f"{search.method}: {search.cost:.4g}"
            axes.loglog(
                np.arange(1, len(above) + 1), above, color=color, linewidth=1.3, label=label
            )
        axes.axhline(0.01, color=TEXT, linewidth=0.8, linestyle="--")
        title = f"{table.study.name}, from ({', '.join(f'{value:g}' for value in start.at)})"
        axes.set_title(title, fontsize=NORMAL, color=TEXT, loc="left")
        axes.set_xlabel("evaluations", fontsize=NORMAL, color=TEXT)
        if k % PANELS_PER_ROW == 0:
            axes.set_ylabel("cost above the best known [share]", fontsize=NORMAL, color=TEXT)
        axes.legend(
            fontsize=SMALL, frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.2)
        )
    figure.suptitle(
        "Progress of the methods (dashed: 1 % above the best)",
        fontsize=LARGE,
        color=TEXT,
        x=0.01,
        ha="left",
    )
    return figure


def _maps(tuning: DriveTuning) -> Figure:
    """Draw the cost over the grid for studies of two parameters, with all searches."""
    tables = [table for table in tuning.tables if len(table.study.bounds) == 2]
    figure = Figure(figsize=(5.4 * len(tables), 4.6), layout="constrained")
    for k, table in enumerate(tables):
        _map(figure, figure.add_subplot(1, len(tables), k + 1), table)
    return figure


def _map(figure: Figure, axes: Axes, table: Table) -> None:
    clean(axes)
    costs = np.array([np.nan if cost is None else cost for cost in table.grid_costs]).reshape(
        table.study.grid
    )
    first, second = table.grid_axes
    least = float(np.nanmin(costs))
    most = min(float(np.nanmax(costs)), least * (1 + COST_RANGE))
    levels = np.linspace(least, most, 15)
    filled = axes.contourf(first, second, np.minimum(costs, most).T, levels=levels, cmap="cividis")
    bar = figure.colorbar(filled, ax=axes, ticks=levels[::2], format="%.4g")
    bar.set_label("cost", fontsize=NORMAL, color=TEXT)
    bar.ax.tick_params(labelsize=SMALL)
    methods = list(dict.fromkeys(search.method for search in table.searches))
    for search in table.searches:
        color, marker = METHOD_STYLES[methods.index(search.method)]
        label = search.method if search.start == table.study.starts[0] else None
        axes.plot(
            *zip(search.start.at, search.best, strict=True),
            color="white",
            linewidth=0.6,
            linestyle=":",
        )
        axes.plot(
            *search.best,
            marker,
            color=color,
            markeredgecolor="white",
            markersize=7,
            linestyle="none",
            label=label,
            clip_on=False,
        )
    for start in table.study.starts:
        axes.plot(*start.at, "x", color="white", markersize=8, markeredgewidth=1.8, clip_on=False)
    names = list(table.study.bounds)
    axes.set_xlabel(names[0], fontsize=NORMAL, color=TEXT)
    axes.set_ylabel(names[1], fontsize=NORMAL, color=TEXT)
    axes.set_title(
        f"{table.study.name}: starts (crosses) and ends", fontsize=NORMAL, color=TEXT, loc="left"
    )
    axes.legend(fontsize=SMALL, loc="upper left", facecolor="white", framealpha=0.8)


def _front(tuning: DriveTuning) -> Figure:
    """Draw the Pareto front, and designs over random plants."""
    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    axes = figure.add_subplot(1, 2, 1)
    clean(axes)
    energy, overshoot = tuning.front_criteria.T
    axes.plot(energy, overshoot * 1e3, "o-", color=PREDICTED, markersize=4, linewidth=1.0)
    axes.set_xlabel("energy of a step [(N m)² s]", fontsize=NORMAL, color=TEXT)
    axes.set_ylabel("overshoot [mm]", fontsize=NORMAL, color=TEXT)
    axes.set_title(
        f"Pareto front, {len(energy)} compromises (NSGA-II)",
        fontsize=NORMAL,
        color=TEXT,
        loc="left",
    )
    axes = figure.add_subplot(1, 2, 2)
    clean(axes)
    for k, scatter in enumerate(tuning.scatters):
        known = [value for value in scatter.quantiles if value is not None]
        if known:
            axes.plot(
                [known[0], known[-1]], [k, k], color=FAINT, linewidth=6, solid_capstyle="butt"
            )
        if scatter.quantiles[1] is not None:
            axes.plot(scatter.quantiles[1], k, "o", color=RESIDUAL, markersize=7)
        label = (
            f"{scatter.failures:.0%} have no cost" if scatter.failures else "every plant has a cost"
        )
        axes.annotate(
            label,
            (0.98, k + 0.12),
            xycoords=("axes fraction", "data"),
            ha="right",
            fontsize=SMALL,
            color=TEXT,
        )
    names = []
    for scatter in tuning.scatters:
        point = ", ".join(f"{value:.2g}" for value in scatter.at)
        names.append(f"{scatter.name}\n({point})")
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_xlabel(
        "cost of Table 2: median (dot), 5 % to 95 %, if any", fontsize=NORMAL, color=TEXT
    )
    axes.set_title("Designs over random plants", fontsize=NORMAL, color=TEXT, loc="left")
    return figure
