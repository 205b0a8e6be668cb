"""Figures of the tracker experiment: errors before and after, what they follow from, and what can be told."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tauloop.report import FAINT, LARGE, MEASURED, NORMAL, PREDICTED, RESIDUAL, SMALL, TEXT, clean
from tauloop_papers.tracker.calibration import TrackerCalibration

MICRO = 1e6
#: What each figure shows.
CAPTIONS = {
    "errors": "As the paper's Figure 4: position errors of the poses that were not used for the fit. Below, how they "
    "follow from the part errors, and the platform's tilt, which eq. 1 takes for constant.",
    "observability": "Not in the paper: which directions of the 51 parameters the poses show, and what priors hold.",
}


def figures(calibration: TrackerCalibration) -> dict[str, Figure]:
    """All figures of the experiment by the ending of their files' names."""
    return {"errors": _errors(calibration), "observability": _told(calibration)}


def _errors(calibration: TrackerCalibration) -> Figure:
    """Errors pose by pose as in the paper's Figure 4, and how they grow with the part errors."""
    figure = Figure(figsize=(9.4, 7.4), layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=(1.25, 1.0))
    axes = figure.add_subplot(grid[0, :])
    clean(axes)
    stated = calibration.settings.stated.error
    number = 2 * np.arange(len(calibration.simple.after)) + 2
    series = (
        (calibration.simple.before, FAINT, "nominal geometry", ":"),
        (calibration.simple.after, RESIDUAL, f"calibrated, {calibration.simple.unknowns} parameters (eq. 1)", "-"),
        (
            calibration.full.after,
            PREDICTED,
            f"calibrated, {calibration.full.unknowns} parameters, tolerance priors",
            "-",
        ),
    )
    for errors, colour, name, style in series:
        length = np.linalg.norm(errors, axis=1) * MICRO
        label = f"{name}: mean {length.mean():.3g} µm"
        axes.semilogy(number, length, style, marker=".", color=colour, linewidth=1.0, markersize=4, label=label)
    label = f"paper's Figure 4: mean {stated * MICRO:.0f} µm"
    axes.axhline(stated * MICRO, color=TEXT, linewidth=0.9, linestyle="--", label=label)
    floor = calibration.noise * np.sqrt(8 / np.pi) * MICRO
    axes.axhline(floor, color=MEASURED, linewidth=0.9, linestyle="--", label=f"noise alone: mean {floor:.3g} µm")
    axes.set_xlabel("number of the pose (the others were used for the fit)", fontsize=NORMAL, color=TEXT)
    axes.set_ylabel("position error against the tracker [µm]", fontsize=NORMAL, color=TEXT)
    axes.set_title(
        "Position errors of the poses that were not used for the fit", fontsize=LARGE, color=TEXT, loc="left"
    )
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, top * 8)
    axes.legend(fontsize=SMALL, frameon=False, loc="upper left", ncols=2)
    _growth(calibration, figure.add_subplot(grid[1, 0]), stated)
    _tilt(calibration, figure.add_subplot(grid[1, 1]))
    return figure


def _growth(calibration: TrackerCalibration, axes: Axes, stated: float) -> None:
    clean(axes)
    size = np.array([point.size for point in calibration.sizes]) * 1e3
    errors = np.array([point.errors for point in calibration.sizes]) * MICRO
    axes.loglog(size, np.median(errors, axis=1), color=RESIDUAL, linewidth=1.4, label="median")
    for column in errors.T:
        axes.loglog(size, column, linestyle="none", marker=".", color=RESIDUAL, markersize=5)
    axes.axhline(stated * MICRO, color=TEXT, linewidth=0.9, linestyle="--", label=f"paper: {stated * MICRO:.0f} µm")
    axes.set_xlabel("standard deviation of part errors [mm, mrad, 1e-3]", fontsize=NORMAL, color=TEXT)
    axes.set_ylabel("mean hold-out error, eq. 1 [µm]", fontsize=NORMAL, color=TEXT)
    axes.set_title("What eq. 1 leaves follows from the part errors", fontsize=NORMAL, color=TEXT, loc="left")
    axes.set_xticks(size, [f"{value:g}" for value in size], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_yticks([30, 50, 100, 200, 500], ["30", "50", "100", "200", "500"])
    axes.set_yticks([], minor=True)
    axes.legend(fontsize=SMALL, frameon=False)


def _tilt(calibration: TrackerCalibration, axes: Axes) -> None:
    clean(axes)
    axes.hist(calibration.tilt * 1e3, bins=24, color=MEASURED)
    axes.set_xlabel("tilt of the platform [mrad]", fontsize=NORMAL, color=TEXT)
    axes.set_ylabel("poses", fontsize=NORMAL, color=TEXT)
    axes.set_title("Eq. 1 takes the tilt for constant", fontsize=NORMAL, color=TEXT, loc="left")


def _told(calibration: TrackerCalibration) -> Figure:
    """Singular values at the nominal geometry, and the estimates' errors with and without priors."""
    figure = Figure(figsize=(9.4, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1.0))
    clean(left)
    for name, ranks, colour in (
        ("poses", calibration.ranks.poses, PREDICTED),
        ("positions only", calibration.ranks.positions, RESIDUAL),
    ):
        sizes = np.maximum(np.array(ranks.singular_values), 1e-13)
        label = f"{name}: rank {ranks.rank} at the nominal geometry, {ranks.generic_rank} away from it"
        left.semilogy(np.arange(1, len(sizes) + 1), sizes, marker=".", color=colour, linewidth=1.0, label=label)
    left.axhline(1.0, color=TEXT, linewidth=0.9, linestyle="--")
    left.text(1, 1.6, "standard deviation = 1 mm or mrad", fontsize=SMALL, color=TEXT)
    left.set_xlabel("direction in the space of the parameters", fontsize=NORMAL, color=TEXT)
    left.set_ylabel("singular value [noise per mm or mrad]", fontsize=NORMAL, color=TEXT)
    left.set_title("What the poses show at the nominal geometry", fontsize=LARGE, color=TEXT, loc="left")
    left.set_ylim(1e-14, 1e7)
    left.legend(fontsize=SMALL, frameon=False, loc="upper right")
    clean(right)
    looser = f"priors\n{calibration.settings.loose_priors:g} x looser"
    fits = {
        "nominal": calibration.full.unfitted_error,
        "priors": calibration.full.parameter_error,
        looser: calibration.loose.parameter_error,
    }
    values = [float(value or 0.0) for value in fits.values()]
    bars = right.bar(list(fits), values, color=(FAINT, PREDICTED, RESIDUAL), width=0.6)
    right.bar_label(bars, labels=[f"{value:.2g}" for value in values], fontsize=SMALL, color=TEXT)
    right.set_yscale("log")
    right.set_ylabel("estimates less truth over tolerance, RMS", fontsize=NORMAL, color=TEXT)
    right.set_title("Priors hold what is not shown", fontsize=LARGE, color=TEXT, loc="left")
    return figure
