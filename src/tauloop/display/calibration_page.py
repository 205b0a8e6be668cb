"""A calibration on a page: the poses, errors before and after at each, what is left, corrections with error bars."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.calibration import Calibration
from tauloop.display.calibration_table import SHOWN, corrections
from tauloop.display.pieces import Piece, Plot, PlotTrace, by_name, motion, rounded
from tauloop.model import Model

#: Errors below this are rounding, and a logarithm has no zero.
LEAST = 1e-12


def calibration_page(result: Calibration) -> Iterator[Piece]:
    """What an engineer looks at first."""
    forward = result.problem.predicting()
    before = forward.evaluate(np.zeros(len(forward.free))).states
    poses = np.concatenate([state.q for state in before])
    yield from motion(
        Model(result.problem.mechanism),
        np.arange(1.0, len(poses) + 1),
        poses,
        "The poses",
        is_motion=False,
    )
    first = 1
    for series, old, new in zip(result.problem.series, before, result.errors, strict=True):
        number = rounded(np.arange(first, first + len(new)))
        first += len(new)
        units = dict.fromkeys(unit for _, unit in series.instrument.errors)
        for unit in units:
            factor, name = SHOWN.get(unit, (1.0, unit))
            same = [k for k, (_, other) in enumerate(series.instrument.errors) if other == unit]
            drawn = []
            for errors, what, look in (
                (old.errors, "nominal", "before"),
                (new, "calibrated", "after"),
            ):
                size = factor * np.linalg.norm(errors[:, same], axis=1)
                rms = float(np.sqrt(np.mean(size**2)))
                label = f"{what}, RMS {rms:.3g} {name}"
                drawn.append(
                    PlotTrace(name=label, x=number, y=rounded(np.maximum(size, LEAST)), look=look)
                )
            yield Plot(
                title=f"{series.instrument.name}: size of the error at each pose",
                x="pose",
                y=f"error [{name}]",
                traces=tuple(drawn),
                over_time=True,
                log_y=True,
            )
            left = tuple(
                PlotTrace(
                    name=series.instrument.errors[k][0],
                    x=number,
                    y=rounded(factor * new[:, k]),
                    look="points",
                )
                for k in same
            )
            yield Plot(
                title=f"{series.instrument.name}: what is left, predicted less measured",
                x="pose",
                y=f"error [{name}]",
                traces=left,
                over_time=True,
            )
    names, values, bars = corrections(result)
    yield by_name(
        *(
            "Corrections with error bars",
            "correction over the tolerance named at the left [1]",
            names,
        ),
        {"correction": values},
        deviation=bars,
        look="points",
        note="0 is the nominal geometry; bars are 95 % intervals.",
    )
