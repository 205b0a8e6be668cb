"""Wrong signs of measured forces, and forces that the model does not explain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tauloop.common.errors import Problem, Problems
from tauloop.identification.estimation.estimators import weighted_solution
from tauloop.identification.estimation.evaluation import OutputFit
from tauloop.identification.regression.base_parameters import base_parameters
from tauloop.identification.regression.data import RegressionData

#: A sign is wrong if changing it reduces the misfit of all outputs by this factor.
MIN_SIGN_MISFIT_FALL = 2.0
#: A friction coefficient counts as negative if it is this number of standard deviations below zero.
MIN_NEGATIVE_DEVIATIONS = 10.0
#: A force is unexplained if its residual exceeds this percentage of the force.
MIN_UNEXPLAINED_PERCENT = 90.0
#: Forces below this fraction of the largest force of the same unit are not checked.
MIN_CHECKED_SHARE = 0.05
#: Outputs are comparable if their largest forces differ by less than this factor.
MAX_SIZE_RATIO = 3.0
#: An output is explained far worse if its relative error exceeds that of comparable outputs by this
#: factor, and exceeds `MIN_WORSE_PERCENT`.
MIN_WORSE_RATIO = 10.0
#: Smallest error of an output that is explained far worse, % of the force.
MIN_WORSE_PERCENT = 2.0


def wrong_signs(
    data: RegressionData,
    dissipative: Sequence[str] = (),
    drives: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Problem, ...]:
    """Return a problem for each output whose force has the wrong sign.

    A wrong sign shows in one of two ways. Parameters that outputs share fit much better if the sign
    of one output is changed. Or the estimated friction is significantly negative; this also detects
    wrong signs of outputs without shared parameters, and of all outputs.

    Args:
        data: the samples.
        dissipative: names of unknowns that cannot be negative, such as viscous and Coulomb
            friction.
        drives: names of the drives that act on the joint of such an unknown. The problem is then
            reported for the forces of these drives.
    """
    triangles = data.triangles
    names = [data.outputs[k] for k in data.kept]
    base = base_parameters(triangles[:, :, :-1], data.unknowns, data.unknown_units)
    columns = [*base.independent, len(data.unknowns)]
    triangles = triangles[:, :, columns]
    weights = 1.0 / np.linalg.norm(triangles[:, :, -1], axis=1)
    signs = np.ones(len(names))
    misfit = misfit_before = _misfit(triangles, signs, weights)
    while True:
        trials = []
        for number in range(len(signs)):
            tried = np.where(np.arange(len(signs)) == number, -signs, signs)
            trials.append(_misfit(triangles, tried, weights))
        best = int(np.argmin(trials))
        if trials[best] * MIN_SIGN_MISFIT_FALL >= misfit:
            break
        signs[best] *= -1.0
        misfit = trials[best]
    if 2 * np.sum(signs < 0.0) > len(signs):
        # Reversing all signs gives the same misfit, so report the smaller set of outputs.
        signs = -signs
    problems = Problems()
    for k in np.flatnonzero(signs < 0.0):
        what = (
            "has the wrong sign: after a change of sign the relative misfit of all outputs falls "
            f"from {misfit_before:.3g} to {misfit:.3g}"
        )
        remedy = (
            "change the sign in the column's unit ('-1 N m'), or of the actuator's ratio in the "
            "machine file"
        )
        problems.add(f"force.{names[k]}", what, remedy)
    estimate = weighted_solution(with_signs(triangles, signs), data.counts, weights)
    negative: dict[str, list[str]] = {}
    for i, parameter in enumerate(base.base):
        ratio = estimate.values[i] / max(estimate.standard_deviations[i], np.finfo(float).tiny)
        if parameter.representative in dissipative and ratio < -MIN_NEGATIVE_DEVIATIONS:
            acting = (drives or {}).get(parameter.representative, ())
            where = " and ".join(f"force.{drive}" for drive in acting) or parameter.representative
            negative.setdefault(where, []).append(
                f"{parameter.representative} is {estimate.values[i]:.4g} {parameter.unit}, "
                f"{-ratio:.3g} standard deviations below zero"
            )
    # Wrong signs of drives cause negative friction of passive joints as well.
    if any(where not in dissipative for where in negative):
        negative = {where: values for where, values in negative.items() if where not in dissipative}
    for where, values in negative.items():
        what = f"gains energy from friction, which is estimated as negative: {'; '.join(values)}"
        remedy = (
            "check the signs of its force and position and of all other forces; check whether the "
            "friction model lacks terms"
        )
        problems.add(where, what, remedy)
    return tuple(problems)


def unexplained(
    training: Sequence[OutputFit], held_out: Sequence[OutputFit]
) -> tuple[Problem, ...]:
    """Return a problem for each output that the model hardly explains.

    The residual of such an output is nearly as large as its force, in training and held-out data.
    Forces that are far smaller than those of other outputs with the same unit are not checked,
    because they may consist of noise only.

    Args:
        training, held_out: `Identification.training` and `Identification.held_out`.
    """
    largest: dict[str, float] = {}
    for fit in training:
        largest[fit.unit] = max(largest.get(fit.unit, 0.0), fit.scale)
    held_out_errors = {fit.output: fit.relative_error_percent for fit in held_out}
    problems = Problems()
    for fit in training:
        error = min(fit.relative_error_percent, held_out_errors.get(fit.output, np.inf))
        is_small = fit.scale <= MIN_CHECKED_SHARE * largest[fit.unit]
        if is_small or error <= MIN_UNEXPLAINED_PERCENT:
            continue
        what = (
            "is hardly explained by the motion: the residual of the model is "
            f"{fit.relative_error_percent:.3g} % of the force in the training data"
        )
        if fit.output in held_out_errors:
            what += f" and {held_out_errors[fit.output]:.3g} % in the held-out data"
        remedy = (
            "check the column of the force, its unit and time stamps, the order of the columns, and the "
            "machine file"
        )
        problems.add(f"force.{fit.output}", what, remedy)
    return tuple(problems)


def worse_than_comparable(
    training: Sequence[OutputFit], held_out: Sequence[OutputFit]
) -> tuple[Problem, ...]:
    """Return a problem for each output that is explained far worse than comparable outputs.

    Outputs are comparable if they have the same unit and forces of similar size.

    Args:
        training, held_out: `Identification.training` and `Identification.held_out`. For each
            output, the smaller error is used.
    """
    held_out_errors = {fit.output: fit.relative_error_percent for fit in held_out}
    errors = {
        fit.output: min(fit.relative_error_percent, held_out_errors.get(fit.output, np.inf))
        for fit in training
    }
    problems = Problems()
    for fit in training:
        comparable = [errors[other.output] for other in training if _are_comparable(fit, other)]
        if not comparable:
            continue
        error = errors[fit.output]
        usual_error = float(np.median(comparable))
        if error > max(MIN_WORSE_RATIO * usual_error, MIN_WORSE_PERCENT):
            what = (
                "is explained far worse than outputs of its size: the residual of the model is "
                f"{error:.3g} % of this force, but {usual_error:.3g} % of the others"
            )
            remedy = "check its sensor, its column, and special properties of its joint"
            problems.add(f"force.{fit.output}", what, remedy)
    return tuple(problems)


def _are_comparable(fit: OutputFit, other: OutputFit) -> bool:
    """Return whether two different outputs have the same unit and forces of similar size."""
    if other.output == fit.output or other.unit != fit.unit:
        return False
    return max(other.scale, fit.scale) < MAX_SIZE_RATIO * min(other.scale, fit.scale)


def with_signs(triangles: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Return triangles (n_out, m, r + 1) with the forces of each output multiplied by a sign."""
    signed = triangles.copy()
    signed[:, :, -1] *= signs[:, None]
    return signed


def _misfit(triangles: np.ndarray, signs: np.ndarray, weights: np.ndarray) -> float:
    """Return the RMS over the outputs of |residual| / |force|."""
    columns = triangles.shape[-1]
    rows = (weights[:, None, None] * with_signs(triangles, signs)).reshape(-1, columns)
    triangle = np.asarray(np.linalg.qr(rows, mode="r"))
    if len(triangle) < columns:
        return 0.0
    return float(abs(triangle[-1, -1]) / np.sqrt(len(signs)))
