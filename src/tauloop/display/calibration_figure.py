"""The figure of a calibration: errors before and after at every pose, and corrections with their error bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tauloop.calibration import Calibration
from tauloop.display.calibration_table import SHOWN, corrections
from tauloop.display.figures import FAINT, MEASURED, PREDICTED, RESIDUAL, SMALL, TEXT, blank, clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Inches: width, height of a panel of errors, of a line of parameters, space above and below.
WIDTH, PANEL, LINE, HEAD, FOOT, GAP = 9.0, 1.9, 0.22, 0.85, 0.5, 0.75


def calibration_figure(calibration: Calibration) -> Figure:
    """Above, the size of each series' error at every pose, before and after; below, corrections over tolerances."""
    forward = calibration.problem.predicting()
    before = [state.errors for state in forward.evaluate(np.zeros(len(forward.free))).states]
    count, lines = len(before), len(calibration.estimates)
    lower = max(1.4, LINE * lines + 0.4)
    height = HEAD + count * PANEL + (count - 1) * GAP + GAP + lower + FOOT
    poses = calibration.problem.n_poses
    summary = f"{lines} parameters from {poses} poses; size of the error at each pose, nominal and calibrated geometry"
    figure = blank(
        WIDTH, height, f"Calibration of {calibration.mechanism.name}", summary, left=0.085
    )
    top = height - HEAD
    outlying = {outlier.pose for outlier in calibration.outliers}
    first = 0
    for series, old, new in zip(
        calibration.problem.series, before, calibration.errors, strict=True
    ):
        unit = series.instrument.errors[0][1]
        factor, name = SHOWN.get(unit, (1.0, unit))
        same = [k for k, (_, other) in enumerate(series.instrument.errors) if other == unit]
        axes = figure.add_axes((0.085, (top - PANEL) / height, 0.89, PANEL / height))
        clean(axes)
        number = np.arange(1, len(old) + 1)
        for errors, colour, label, size in (
            (old, MEASURED, "nominal", 18.0),
            (new, PREDICTED, "calibrated", 10.0),
        ):
            values = np.maximum(factor * np.linalg.norm(errors[:, same], axis=1), 1e-12)
            rms = float(np.sqrt(np.mean(values**2)))
            axes.scatter(
                number,
                values,
                s=size,
                color=colour,
                linewidths=0,
                label=f"{label}, RMS {rms:.3g} {name}",
            )
            axes.axhline(rms, color=colour, linewidth=0.8)
        bad = [i for i in range(len(old)) if first + i in outlying]
        if bad:
            values = factor * np.linalg.norm(new[bad][:, same], axis=1)
            axes.scatter(
                number[bad], values, s=70, facecolors="none", edgecolors=RESIDUAL, label="outlier"
            )
        axes.set_yscale("log")
        axes.tick_params(which="minor", color=FAINT, length=2)
        axes.set_xlim(0.5, len(old) + 0.5)
        axes.set_ylabel(f"error [{name}]", fontsize=SMALL, color=TEXT)
        axes.set_xlabel(f"pose of {series.instrument.name}", fontsize=SMALL, color=TEXT, labelpad=2)
        axes.legend(
            loc="lower right",
            bbox_to_anchor=(1.0, 1.0),
            ncols=3,
            fontsize=SMALL,
            frameon=False,
            labelcolor=TEXT,
        )
        top -= PANEL + GAP
        first += len(old)
    _corrections(figure, calibration, (0.235, FOOT / height, 0.74, lower / height))
    return figure


def _corrections(
    figure: Figure, calibration: Calibration, box: tuple[float, float, float, float]
) -> None:
    axes = figure.add_axes(box)
    clean(axes)
    labels, values, bars = corrections(calibration)
    place = np.arange(len(labels))[::-1]
    axes.axvline(0.0, color=FAINT, linewidth=0.8)
    axes.errorbar(
        values,
        place,
        xerr=bars,
        fmt="o",
        color=PREDICTED,
        ecolor=MEASURED,
        markersize=3.5,
        elinewidth=2.5,
    )
    axes.set_yticks(place, labels)
    axes.set_ylim(-0.7, len(labels) - 0.3)
    note = "correction over the tolerance named at the left; bars are 95 % intervals"
    axes.set_xlabel(note, fontsize=SMALL, color=TEXT)
    left, bottom, width, height = box
    around = axes.get_tightbbox()
    cut = 0.0 if around is None else 0.01 - around.x0 / figure.bbox.width
    if cut > 0.0:  # long names need more room
        axes.set_position((left + cut, bottom, width - cut, height))
