"""Force errors that the preparation of a log causes even without noise.

A low-pass filter removes part of the accelerations, samples are missing at the ends of a log, and
friction reverses between two samples. To estimate these errors, the prepared motion is treated as
exact and prepared a second time. The model's forces along the motion after one preparation are
fitted with the regressor after two preparations. The residuals of this fit are of the same size as
the errors of the preparation.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tauloop.common.errors import PoseError
from tauloop.identification.estimation.base_columns import base_columns
from tauloop.identification.estimation.result import Identification
from tauloop.identification.friction.element_motion import ElementMotion
from tauloop.identification.friction.presliding import PRESLIDING, presliding_columns
from tauloop.identification.friction.presliding_lengths import LENGTH_RESOLUTION, PreslidingChoice
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.from_log import regression_data
from tauloop.logs import Preparation, Signals
from tauloop.model import Model

#: The forces that a fault explains must be at least this multiple of the preparation's error.
MIN_PREPARATION_ERRORS = 3.0
#: Directions of unit-norm columns with a smaller fraction of the largest singular value are
#: ignored.
REFIT_RANK_TOLERANCE = 1e-8


def preparation_errors(
    model: Model,
    prepared_again: Signals,
    preparation: Preparation,
    part: RegressionData,
    result: Identification,
    *,
    output: str,
) -> dict[str, float]:
    """Return the RMS error, SI, that the preparation of a log causes, for each measured output.

    Args:
        model: the machine.
        prepared_again: the beginning of the log after two preparations.
        preparation: filters and rates of both preparations.
        part: regression data of the log after one preparation.
        result: the fit whose parameters give the forces.
        output: output of the fit: "actuators", or "joints" for forces on the driven coordinates.
    """
    names = [part.outputs[k] for k in part.kept]
    try:
        again = regression_data(
            model, prepared_again, preparation, output=output, prepared=prepared_again
        )
    except PoseError:
        # The motion after the second preparation can be out of reach at the ends. Faults are then
        # evaluated without this error.
        return dict.fromkeys(names, 0.0)
    count = min(len(again), len(part))
    inside = slice(part.reach, count - part.reach)
    prepared_once = part.regressor[inside]
    # Additional columns, such as those of Stribeck friction, remain unchanged.
    prepared_twice = prepared_once.copy()
    prepared_twice[:, :, [part.parameters.index(name) for name in again.parameters]] = (
        again.regressor[inside]
    )
    differences = ((prepared_once - prepared_twice) @ _values(result, part.parameters))[
        :, part.kept
    ]
    return _unfitted(part, prepared_twice, result, differences)


def length_errors(
    motion: ElementMotion,
    part: RegressionData,
    result: Identification,
    presliding: PreslidingChoice,
) -> dict[str, float]:
    """Return the RMS force errors, SI, if presliding lengths are wrong by one search step.

    The lengths are known up to the resolution of their search. Presliding friction with a wrong
    length resembles friction that is late.

    Args:
        motion: motion of the log.
        part: regression data of the log.
        result: the fit with the presliding friction.
        presliding: the presliding lengths. Lengths that the user gives count as exact.
    """
    total: dict[str, float] = {}
    for name, length in presliding.lengths.items():
        if name in presliding.stated:
            continue
        chosen, changed = (
            presliding_columns(motion, {name: tried}, presliding.staying)[0]
            for tried in (length, length * LENGTH_RESOLUTION)
        )
        count = min(len(chosen), len(part))
        inside = slice(part.reach, count - part.reach)
        level = _values(result, (f"{name}.{PRESLIDING}",))
        differences = ((changed - chosen)[inside] @ level)[:, part.kept]
        for output, error in _unfitted(part, part.regressor[inside], result, differences).items():
            total[output] = total.get(output, 0.0) + error
    return total


def _unfitted(
    part: RegressionData, regressor: np.ndarray, result: Identification, differences: np.ndarray
) -> dict[str, float]:
    """Return the RMS by output, SI, of force differences (N, n_kept) minus their fit.

    The fit is subtracted because parameters that are fitted to a log absorb part of its errors.
    """
    names = [part.outputs[k] for k in part.kept]
    rows = base_columns(part, regressor, result.base)
    deviations = {fitted.output: fitted.rmse for fitted in result.training}
    tiny = np.finfo(float).tiny
    weights = np.array([1.0 / max(deviations.get(name, 1.0), tiny) for name in names])
    unfitted = _without_fit(rows * weights[:, None], differences * weights) / weights
    return dict(zip(names, np.sqrt(np.mean(unfitted**2, axis=0)).tolist(), strict=True))


def _values(result: Identification, parameters: tuple[str, ...]) -> np.ndarray:
    """Return the fitted values (n,) of some parameters; zero where the fit has none."""
    fitted: Mapping[str, float] = dict(
        zip(result.regressor_parameters, result.parameters.tolist(), strict=True)
    )
    return np.array([fitted.get(name, 0.0) for name in parameters])


def _without_fit(rows: np.ndarray, forces: np.ndarray) -> np.ndarray:
    """Return forces (N, n_out) minus their least-squares fit by columns (N, n_out, r)."""
    columns = rows.reshape(-1, rows.shape[-1])
    norms = np.linalg.norm(columns, axis=0)
    norms[norms == 0.0] = 1.0
    unit = columns / norms
    values = np.linalg.lstsq(unit, forces.ravel(), rcond=REFIT_RANK_TOLERANCE)[0]
    return np.asarray(forces - (unit @ values).reshape(forces.shape))
