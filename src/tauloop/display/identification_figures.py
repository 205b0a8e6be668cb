"""The figure of an identification: measured, predicted and residual forces against time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tauloop.display.figures import (
    FAINT,
    MEASURED,
    NORMAL,
    PREDICTED,
    RESIDUAL,
    SMALL,
    TEXT,
    TINT,
    blank,
    clean,
    thin,
)
from tauloop.identification import Identification, MachineIdentification, OutputFit, RegressionData

if TYPE_CHECKING:  # half a second that a command without a figure need not wait for
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Inches: the figure's width, the height of a row, and the space above and below all rows.
WIDTH, ROW, HEAD, FOOT = 11.0, 1.75, 1.08, 0.55
#: Inches from the axis to its label.
LABEL_OFFSET = 0.5
#: The narrower of the two columns keeps at least this share of the width, however short its record.
NARROWEST = 0.3


def machine_identification_figure(identification: MachineIdentification) -> Figure:
    """The figure of its fit, with the machine and the logs in its heading."""
    title = f"{identification.model.mechanism.name}: {', '.join(identification.logs)}"
    return identification_figure(
        identification.identification, identification.training, identification.held_out, title=title
    )


def identification_figure(
    identification: Identification,
    training: RegressionData,
    held_out: RegressionData | None = None,
    *,
    title: str = "Identification",
) -> Figure:
    """One row per measured output: measured and predicted force above, residual below; held-out data beside training.

    Args:
        identification: result of `fit`.
        training, held_out: the data it was found from and judged by.
        title: heading of the figure.
    """
    parts = [("training", training, identification.training)]
    if held_out is not None:
        parts.append(("held out", held_out, identification.held_out))
    rows, columns = len(identification.training), len(parts)
    lengths = np.array([len(data) for _, data, _ in parts], dtype=float)
    widths = np.maximum(lengths / lengths.sum(), NARROWEST)

    height = HEAD + rows * ROW + FOOT
    figure = blank(WIDTH, height, title, _summary(identification), left=0.075)
    outer = figure.add_gridspec(
        rows,
        columns,
        width_ratios=list(widths),
        left=0.075,
        right=0.985,
        top=1 - HEAD / height,
        bottom=FOOT / height,
        hspace=0.27,
        wspace=0.035,
    )
    for column, (part, data, fits) in enumerate(parts):
        time = np.arange(len(data), dtype=float) if data.time is None else data.time
        measured = data.forces[:, data.kept]
        residual = identification.residual(data)
        for row, fit in enumerate(fits):
            inner = outer[row, column].subgridspec(2, 1, height_ratios=[2.6, 1.0], hspace=0.07)
            upper, lower = figure.add_subplot(inner[0]), figure.add_subplot(inner[1])
            lower.sharex(upper)
            _draw(upper, lower, time, measured[:, row], residual[:, row])
            heading = f"{part}: {_error(fit)}" if column else f"{fit.output}, {part}: {_error(fit)}"
            upper.set_title(
                heading, loc="left", fontsize=NORMAL, color=TEXT, pad=4, y=1.0
            )  # fixed: finding a place is slow
            if part == "held out":
                upper.set_facecolor(TINT)
                lower.set_facecolor(TINT)
            if row == rows - 1:
                lower.set_xlabel(
                    "time [s]" if data.time is not None else "sample", fontsize=NORMAL, color=TEXT
                )
            else:
                lower.tick_params(labelbottom=False)
    _share_scales(figure, identification, columns)
    _head(figure, height, with_held_out=held_out is not None)
    return figure


def _draw(
    upper: Axes, lower: Axes, time: np.ndarray, measured: np.ndarray, residual: np.ndarray
) -> None:
    for axes in (upper, lower):
        clean(axes)
        axes.axhline(0.0, color=FAINT, linewidth=0.8)
    upper.plot(*thin(time, measured), color=MEASURED, linewidth=2.2, solid_joinstyle="round")
    upper.plot(*thin(time, measured - residual), color=PREDICTED, linewidth=0.8)
    lower.plot(*thin(time, residual), color=RESIDUAL, linewidth=0.7)
    upper.tick_params(labelbottom=False, bottom=False)
    upper.spines["bottom"].set_visible(False)
    upper.locator_params(axis="y", nbins=4, steps=[1, 2, 2.5, 5, 10])
    upper.set_xlim(time[0], time[-1] if len(time) > 1 else time[0] + 1.0)


def _error(fit: OutputFit) -> str:
    return f"RMSE {fit.rmse:.3g} {fit.unit} ({fit.rmse_percent:.1f} %)"


def _share_scales(figure: Figure, identification: Identification, columns: int) -> None:
    """One scale for both columns of a row, labels at the left only."""
    panels = np.array(figure.axes, dtype=object).reshape(columns, -1, 2)
    for row, fit in enumerate(identification.training):
        # (strip, column, 2)
        limits = np.array([[cell.get_ylim() for cell in strip] for strip in panels[:, row].T])
        largest = float(np.abs(limits[1]).max())
        for upper, lower in panels[:, row]:
            upper.set_ylim(limits[0, :, 0].min(), limits[0, :, 1].max())
            lower.set_ylim(-largest, largest)
            lower.set_yticks([-_round_down(0.9 * largest), 0.0, _round_down(0.9 * largest)])
        for cell in panels[1:, row].ravel():
            cell.tick_params(labelleft=False)
        quantity = "torque" if fit.unit == "N m" else "force"
        panels[0, row, 0].set_ylabel(f"{quantity} [{fit.unit}]", fontsize=SMALL, color=TEXT)
        panels[0, row, 1].set_ylabel(f"residual\n[{fit.unit}]", fontsize=SMALL, color=TEXT)
    for cell in panels[0].ravel():  # in one line; aligning them by their measured sizes is slow
        width = WIDTH * cell.get_position().width
        cell.yaxis.set_label_coords(-LABEL_OFFSET / width, 0.5)


def _round_down(value: float) -> float:
    """The largest round number that is not above a positive value."""
    decade = 10.0 ** np.floor(np.log10(value))
    return float(
        decade
        * max(
            step
            for step in (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
            if step <= value / decade + 1e-9
        )
    )


def _summary(identification: Identification) -> str:
    base = identification.base
    return (
        f"{base.rank} base parameters of {len(base.parameters)} unknowns by {type(identification.estimator).__name__}; "
        f"condition number {identification.condition:.3g} (unit-norm columns); RMSE in % of the largest measured force"
    )


def _head(figure: Figure, height: float, *, with_held_out: bool) -> None:
    """Legend above the panels, where it covers nothing."""
    from matplotlib.lines import Line2D

    entries = [
        Line2D([], [], color=MEASURED, linewidth=2.2, label="measured"),
        Line2D([], [], color=PREDICTED, linewidth=0.9, label="predicted"),
        Line2D(
            [],
            [],
            color=RESIDUAL,
            linewidth=0.9,
            label="residual: measured less predicted, own scale",
        ),
    ]
    if with_held_out:
        entries.append(
            Line2D([], [], color=TINT, linewidth=8, label="held-out data (not used for the fit)")
        )
    figure.legend(
        handles=entries,
        loc="upper left",
        bbox_to_anchor=(0.068, 1 - 0.56 / height),
        ncols=len(entries),
        fontsize=NORMAL,
        labelcolor=TEXT,
        frameon=False,
        handlelength=2.0,
        columnspacing=2.0,
    )
