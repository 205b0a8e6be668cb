"""Plots of a calibration: errors before and after at each pose, corrections with error bars."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.calibration import Calibration
from tauloop.common.counts import counted
from tauloop.display.palette import MEASURED, PREDICTED
from tauloop.display.pieces import Paragraph, Piece, Plot, PlotTrace
from tauloop.display.plots.building import by_name, motion, rounded
from tauloop.display.tables.identification.calibration_tables import corrections
from tauloop.mechanism.description.units import usual_unit
from tauloop.model import Model

#: Smallest drawn error, because a logarithmic axis has no zero; smaller errors are rounding errors.
MIN_ERROR = 1e-12


def calibration_scene(result: Calibration) -> Iterator[Piece]:
    """Yield the machine at the measured poses, one after the other."""
    poses = np.concatenate([state.q for state in _nominal_states(result)])
    model = Model(result.problem.mechanism)
    numbers = np.arange(1.0, len(poses) + 1)
    yield from motion(model, numbers, poses, "Measured poses", is_motion=False)


def _nominal_states(result: Calibration) -> tuple:  # type: ignore[type-arg]
    """Return the states of each series at the nominal geometry."""
    forward = result.problem.predicting()
    return tuple(forward.evaluate(np.zeros(len(forward.free))).states)


def calibration_plots(result: Calibration) -> Iterator[Paragraph | Plot]:
    """Yield errors of each series, and the corrections."""
    yield Paragraph(
        text=f"{counted(len(result.estimates), 'parameter')} from "
        f"{counted(result.problem.n_poses, 'pose')}. Errors at each pose, with nominal and with "
        "calibrated geometry.",
        tone="note",
    )
    outliers = {outlier.pose_index for outlier in result.outliers}
    first = 0
    for series, nominal, new in zip(
        result.problem.series, _nominal_states(result), result.errors, strict=True
    ):
        number = np.arange(first + 1.0, first + len(new) + 1)
        outlying = [i for i in range(len(new)) if first + i in outliers]
        first += len(new)
        for unit in dict.fromkeys(unit for _, unit in series.instrument.errors):
            factor, display_unit = usual_unit(unit)
            same_unit = [
                k for k, (_, other) in enumerate(series.instrument.errors) if other == unit
            ]
            magnitudes = [
                factor * np.linalg.norm(errors[:, same_unit], axis=1)
                for errors in (nominal.errors, new)
            ]
            drawn = [
                *_magnitudes(number, magnitudes[0], "nominal", "before", MEASURED, display_unit),
                *_magnitudes(number, magnitudes[1], "calibrated", "after", PREDICTED, display_unit),
            ]
            if outlying:
                x, y = rounded(number[outlying]), rounded(magnitudes[1][outlying])
                drawn.append(PlotTrace(name="outlier", x=x, y=y, style="rings"))
            yield Plot(
                title=f"{series.instrument.name}: magnitude of the error at each pose",
                x="pose",
                y=f"error [{display_unit}]",
                traces=tuple(drawn),
                over_time=True,
                log_y=True,
            )
            residuals = tuple(
                PlotTrace(
                    name=series.instrument.errors[k][0],
                    x=rounded(number),
                    y=rounded(factor * new[:, k]),
                    style="points",
                )
                for k in same_unit
            )
            yield Plot(
                title=f"{series.instrument.name}: residual, predicted minus measured",
                x="pose",
                y=f"error [{display_unit}]",
                traces=residuals,
                over_time=True,
            )
    names, values, bars = corrections(result)
    yield by_name(
        "Corrections with error bars",
        "correction / tolerance (tolerance in the labels) [1]",
        names,
        {"correction": values},
        deviation=bars,
        style="points",
        note="0 is the nominal geometry; bars are 95 % intervals.",
    )


def _magnitudes(
    number: np.ndarray, values: np.ndarray, label: str, style: str, color: str, unit: str
) -> Iterator[PlotTrace]:
    """Yield the magnitudes of errors as points, and their root mean square as a line."""
    rms = float(np.sqrt(np.mean(values**2)))
    y = rounded(np.maximum(values, MIN_ERROR))
    yield PlotTrace(name=f"{label}, RMS {rms:.3g} {unit}", x=rounded(number), y=y, style=style)
    level = rounded([max(rms, MIN_ERROR)] * 2)
    ends = rounded([number[0] - 0.5, number[-1] + 0.5])
    yield PlotTrace(name=f"RMS, {label}", x=ends, y=level, style="dotted", color=color)
