"""Figures of the tracker experiment: errors before and after, their causes, and identifiability."""

from __future__ import annotations

import itertools

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import tauloop as tl
from tauloop.display import FAINT, LARGE, MEASURED, NORMAL, PREDICTED, RESIDUAL, SMALL, TEXT, clean
from tauloop.viewer import Playback, View
from tauloop_papers.tracker.calibration import TrackerCalibration

MICRO = 1e6
#: Number of poses in the film, and of pictures from one pose to the next.
FILMED, BETWEEN = 12, 12
#: Seconds from pose to pose in the film.
PACE = 0.8
#: Captions of the figures.
CAPTIONS = {
    "machine": "The machine of the paper's Figures 1 and 2, drawn from the model: carts at X_i on tracks along c_i, "
    "and six links in clusters of 3, 2 and 1. Links of a cluster are parallel, so one with L_i represents them in "
    "eq. 1.",
    "figure-4": "As the paper's Figure 4: position errors of the validation poses after calibration, by one program "
    "(solid) and by another that shares no code with it (dashed).",
    "part-errors": "Left open by the paper: the error of eq. 1 as a function of the part errors. Median and range from "
    "10 to 90 % of all draws; dashed is the printed error.",
    "models": "Not in the paper: the same poses with the nominal geometry, and with all six links calibrated. Next to "
    "it the platform's tilt, which eq. 1 assumes constant.",
    "observability": "Not in the paper: the directions of the 51 parameters that the poses determine, and the "
    "effect of priors.",
}
#: Figures of the paper without data.
UNDRAWN = {
    "Figure 1": "a photograph of the machine; its model is shown and moves above",
    "Figure 3": "the diagram of the Modelica model, which the machine file replaces",
}
#: Captions of the films.
FILMS = {"poses": f"The machine passes the first {FILMED} poses of the session. Drag to rotate it."}


def films(calibration: TrackerCalibration) -> dict[str, View]:
    """Return all motions of the experiment, by the suffix of their file names."""
    stops = calibration.encoders[:FILMED]
    # from rest to rest by a fifth-order polynomial
    s = np.linspace(0.0, 1.0, BETWEEN, endpoint=False)[:, None]
    part = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    way = [first + part * (last - first) for first, last in itertools.pairwise(stops)]
    encoders = np.concatenate([*way, stops[-1:]])
    model = tl.Model(tl.load(calibration.settings.machine))
    played = Playback(
        time=np.arange(len(encoders)) * PACE / BETWEEN, q=model.forward_kinematics(encoders).q
    )
    return {"poses": tl.view(model, tl.ViewOptions(motion=played))}


def figures(calibration: TrackerCalibration) -> dict[str, Figure]:
    """Return all figures of the experiment, by the suffix of their file names."""
    return {
        "machine": tl.view(tl.load(calibration.settings.machine)).picture(),
        "figure-4": _figure_4(calibration),
        "part-errors": _growth(calibration),
        "models": _models(calibration),
        "observability": _told(calibration),
    }


def _numbers(calibration: TrackerCalibration) -> np.ndarray:
    """Return the numbers of the validation poses."""
    return np.asarray(2 * np.arange(len(calibration.simple.after)) + 2)


def _figure_4(calibration: TrackerCalibration) -> Figure:
    figure = Figure(figsize=(9.4, 3.8), layout="constrained")
    axes = figure.add_subplot()
    clean(axes)
    stated = calibration.settings.stated.error
    for errors, color, style, name in (
        (calibration.simple.after, PREDICTED, "-", "Tauloop"),
        (calibration.second, RESIDUAL, "--", "NumPy and SciPy alone"),
    ):
        length = np.linalg.norm(errors, axis=1) * MICRO
        axes.plot(
            _numbers(calibration),
            length,
            style,
            color=color,
            linewidth=1.2,
            label=f"{name}: mean {length.mean():.3g} µm",
        )
    label = f"the paper's mean: about {stated * MICRO:.0f} µm"
    axes.axhline(stated * MICRO, color=TEXT, linewidth=0.9, linestyle=":", label=label)
    axes.set_ylim(0.0, None)
    axes.set_xlabel("validation pose", fontsize=NORMAL, color=TEXT)
    axes.set_ylabel("absolute position error [µm]", fontsize=NORMAL, color=TEXT)
    axes.legend(
        fontsize=SMALL,
        frameon=False,
        ncols=3,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderpad=0.0,
    )
    return figure


def _growth(calibration: TrackerCalibration) -> Figure:
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes = figure.add_subplot()
    clean(axes)
    stated, draws = calibration.settings.stated.error, len(calibration.sizes[0].errors)
    size = np.array([point.size for point in calibration.sizes]) * 1e3
    quantiles = []
    for share in (0.1, 0.5, 0.9):
        errors = [point.quantile(share) for point in calibration.sizes]
        quantiles.append(np.array(errors) * MICRO)
    low, middle, high = quantiles
    axes.fill_between(
        size, low, high, color=PREDICTED, alpha=0.18, linewidth=0.0, label=f"80 % of {draws} draws"
    )
    axes.plot(size, middle, color=PREDICTED, marker=".", linewidth=1.4, label="median")
    own = next(iter(calibration.settings.part_errors.values())) * 1e3
    mean = calibration.simple.mean(calibration.simple.after) * MICRO
    axes.plot(
        [own], [mean], linestyle="none", marker="D", color=RESIDUAL, label="the session of Figure 4"
    )
    axes.axhline(
        stated * MICRO,
        color=TEXT,
        linewidth=0.9,
        linestyle="--",
        label=f"paper: {stated * MICRO:.0f} µm",
    )
    axes.set_xlim(0.0, None)
    axes.set_ylim(0.0, None)
    axes.set_xlabel(
        "standard deviation of part errors [mm; mrad and 1e-3 for tracks]",
        fontsize=NORMAL,
        color=TEXT,
    )
    axes.set_ylabel("mean validation error of eq. 1 [µm]", fontsize=NORMAL, color=TEXT)
    axes.legend(fontsize=SMALL, frameon=False, loc="upper left")
    return figure


def _models(calibration: TrackerCalibration) -> Figure:
    figure = Figure(figsize=(9.4, 4.0), layout="constrained")
    axes, side_axes = figure.subplots(1, 2, width_ratios=(1.9, 1.0))
    clean(axes)
    for errors, color, name in (
        (calibration.simple.before, FAINT, "nominal geometry"),
        (calibration.simple.after, RESIDUAL, f"{calibration.simple.unknowns} parameters (eq. 1)"),
        (
            calibration.full.after,
            PREDICTED,
            f"{calibration.full.unknowns} parameters, tolerance priors",
        ),
    ):
        length = np.linalg.norm(errors, axis=1) * MICRO
        label = f"{name}: mean {length.mean():.3g} µm"
        axes.semilogy(
            _numbers(calibration),
            length,
            marker=".",
            color=color,
            linewidth=1.0,
            markersize=4,
            label=label,
        )
    floor = calibration.noise * np.sqrt(8 / np.pi) * MICRO
    axes.axhline(
        floor,
        color=MEASURED,
        linewidth=0.9,
        linestyle="--",
        label=f"noise alone: mean {floor:.3g} µm",
    )
    axes.set_xlabel("validation pose", fontsize=NORMAL, color=TEXT)
    axes.set_ylabel("position error against the tracker [µm]", fontsize=NORMAL, color=TEXT)
    axes.legend(
        fontsize=SMALL,
        frameon=False,
        ncols=2,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderpad=0.0,
    )
    _tilt(calibration, side_axes)
    return figure


def _tilt(calibration: TrackerCalibration, axes: Axes) -> None:
    clean(axes)
    axes.hist(calibration.tilt * 1e3, bins=24, color=MEASURED)
    axes.set_xlabel("tilt of the platform [mrad]", fontsize=NORMAL, color=TEXT)
    axes.set_ylabel("poses", fontsize=NORMAL, color=TEXT)


def _told(calibration: TrackerCalibration) -> Figure:
    """Draw singular values, and errors of estimates with and without priors."""
    figure = Figure(figsize=(9.4, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1.0))
    clean(left)
    for name, ranks, color in (
        ("poses", calibration.ranks.poses, PREDICTED),
        ("positions only", calibration.ranks.positions, RESIDUAL),
    ):
        sizes = np.maximum(np.array(ranks.singular_values), 1e-13)
        label = (
            f"{name}: rank {ranks.rank} at the nominal geometry, {ranks.generic_rank} away from it"
        )
        left.semilogy(
            np.arange(1, len(sizes) + 1),
            sizes,
            marker=".",
            color=color,
            linewidth=1.0,
            label=label,
        )
    left.axhline(1.0, color=TEXT, linewidth=0.9, linestyle="--")
    left.text(1, 1.6, "standard deviation = 1 mm or mrad", fontsize=SMALL, color=TEXT)
    left.set_xlabel("direction in the space of the parameters", fontsize=NORMAL, color=TEXT)
    left.set_ylabel("singular value [noise per mm or mrad]", fontsize=NORMAL, color=TEXT)
    left.set_title("Observability at the nominal geometry", fontsize=LARGE, color=TEXT, loc="left")
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
    right.set_ylabel("errors of estimates over tolerance, RMS", fontsize=NORMAL, color=TEXT)
    right.set_title(
        "Effect of priors on unobservable directions", fontsize=LARGE, color=TEXT, loc="left"
    )
    return figure
