"""Figures with some of a result's plots, or with several results."""

from __future__ import annotations

from matplotlib.figure import Figure

from tauloop.display.pieces import Paragraph, Plot
from tauloop.display.plots.identification.identification_plots import fit_plots
from tauloop.display.plots.motion.drive_plots import play_plots, step_plots
from tauloop.display.plots.motion.workspace_plots import (
    FIGURE_POINTS,
    line_plot,
    section_plot,
)
from tauloop.display.renderers.matplotlib_renderer import plots_figure
from tauloop.drives import DriveStep
from tauloop.drives.machine.play import PlayMap
from tauloop.identification import Identification, RegressionData
from tauloop.kinematics.workspaces.map import Workspace


def workspace_figure(workspace: Workspace, measure: str = "parallel") -> Figure:
    """Return a figure of a workspace map over its first two axes, or over its only axis.

    Args:
        workspace: the map.
        measure: one of `MEASURE_LABELS`, or an output of the machine file. It colors a section.
            Along a single axis, the output or all measures are drawn.

    Raises:
        InputError: the measure is unknown.
    """
    section = workspace.section()
    plot = (
        line_plot(workspace, measure)
        if section is None
        else section_plot(section, measure, FIGURE_POINTS)
    )
    return plots_figure(f"Workspace of {workspace.provenance.inputs['machine']}", [plot])


def steps_figure(*steps: DriveStep) -> Figure:
    """Return a figure of step responses, one column for each, with the same scales."""
    columns: list[list[Plot]] = []
    paragraphs: list[Paragraph] = []
    for step in steps:
        pieces = list(step_plots(step, *steps))
        columns.append([piece for piece in pieces if isinstance(piece, Plot)])
        paragraphs += [piece for piece in pieces if isinstance(piece, Paragraph)]
    plots_by_row = [plot for row in zip(*columns, strict=False) for plot in row]
    title = f"Step of {' and '.join(step.line.name for step in steps)}"
    return plots_figure(title, [*paragraphs, *plots_by_row], len(steps) if len(steps) > 1 else None)


def play_figure(play: PlayMap, title: str) -> Figure:
    """Return a figure of a backlash map."""
    return plots_figure(title, play_plots(play))


def identification_figure(
    identification: Identification,
    training: RegressionData,
    held_out: RegressionData | None = None,
    *,
    title: str = "Identification",
) -> Figure:
    """Return a figure of measured and predicted forces, residuals and their spectrum.

    Args:
        identification: result of `fit`.
        training, held_out: data for the fit, and data for its validation.
        title: heading of the figure.
    """
    return plots_figure(title, fit_plots(identification, training, held_out))
