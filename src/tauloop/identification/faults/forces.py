"""Faults of measured forces that least squares would swallow: wrong signs of drives, nothing explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tauloop.common.errors import Problem, Problems
from tauloop.identification.estimation.estimators import weighted_solution
from tauloop.identification.estimation.evaluation import OutputFit
from tauloop.identification.regression.base_parameters import base_parameters
from tauloop.identification.regression.data import RegressionData

#: A sign is wrong if turning it lessens the misfit of all outputs by this factor.
TURNED = 2.0
#: A friction coefficient that is negative by so many standard deviations is no matter of noise.
CERTAIN = 10.0
#: A residual of so many percent of an output's force leaves next to nothing explained; forces below
#: this share of the largest of their unit do not count.
UNEXPLAINED, SMALL = 90.0, 0.05
#: Outputs are twins whose largest forces differ by less than this factor. One of them is worse
#: where this many times as much of it is left, and this many percent.
TWINS, TIMES_WORSE, LEAST_WORSE = 3.0, 10.0, 2.0


def wrong_signs(
    data: RegressionData,
    dissipative: Sequence[str] = (),
    drives: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Problem, ...]:
    """Outputs whose force has the wrong sign.

    Two signs of it: parameters that outputs share fit much better with one output turned round; or
    friction comes out negative beyond doubt, which also shows it where outputs share nothing, or
    all are turned.

    Args:
        data: the samples.
        dissipative: names of unknowns that cannot be negative, such as viscous and Coulomb
            friction.
        drives: names of the drives that act on the joint of such an unknown; they are named instead
            of it, once each.
    """
    triangles = data.triangles
    names = [data.outputs[k] for k in data.kept]
    base = base_parameters(triangles[:, :, :-1], data.unknowns, data.unknown_units)
    columns = [*base.independent, len(data.unknowns)]
    triangles = triangles[:, :, columns]
    weights = 1.0 / np.linalg.norm(triangles[:, :, -1], axis=1)
    signs = np.ones(len(names))
    misfit = first = _misfit(triangles, signs, weights)
    while True:
        trials = [
            _misfit(triangles, np.where(np.arange(len(signs)) == k, -signs, signs), weights)
            for k in range(len(signs))
        ]
        best = int(np.argmin(trials))
        if trials[best] * TURNED >= misfit:
            break
        signs[best] *= -1.0
        misfit = trials[best]
    if 2 * np.sum(signs < 0.0) > len(signs):
        signs = -signs  # the same misfit: say it with fewer
    problems = Problems()
    for k in np.flatnonzero(signs < 0.0):
        what = f"has the wrong sign: with it turned the relative misfit of all outputs falls from {first:.3g} to "
        remedy = "turn the sign in the column's unit ('-1 N m'), or the actuator's ratio in the machine file"
        problems.add(f"force.{names[k]}", f"{what}{misfit:.3g}", remedy)
    estimate = weighted_solution(signs_applied(triangles, signs), data.counts, weights)
    negative: dict[str, list[str]] = {}
    for i, parameter in enumerate(base.base):
        ratio = estimate.values[i] / max(estimate.standard_deviations[i], np.finfo(float).tiny)
        if parameter.representative in dissipative and ratio < -CERTAIN:
            acting = (drives or {}).get(parameter.representative, ())
            where = " and ".join(f"force.{drive}" for drive in acting) or parameter.representative
            negative.setdefault(where, []).append(
                f"{parameter.representative} as {estimate.values[i]:.4g} {parameter.unit}, {-ratio:.3g} standard "
                "deviations below zero"
            )
    # passive joints then follow from the drives
    if any(where not in dissipative for where in negative):
        negative = {
            where: figures for where, figures in negative.items() if where not in dissipative
        }
    for where, figures in negative.items():
        what = f"gains energy from friction, which comes out negative: {'; '.join(figures)}"
        remedy = "look at the signs of its force and position, or of all forces, or at what the friction model lacks"
        problems.add(where, what, remedy)
    return tuple(problems)


def unexplained(
    training: Sequence[OutputFit], held_out: Sequence[OutputFit]
) -> tuple[Problem, ...]:
    """Outputs of which the model explains next to nothing, in training and in held-out data alike.

    The residual is nearly as large as the force itself. Forces far smaller than those of other
    outputs of the same unit are left alone: a drive that needs none has noise only.

    Args:
        training, held_out: fits of `Identification`.
    """
    largest: dict[str, float] = {}
    for fit in training:
        largest[fit.unit] = max(largest.get(fit.unit, 0.0), fit.scale)
    judged = {fit.output: fit.relative_error_percent for fit in held_out}
    return tuple(
        Problem(
            f"force.{fit.output}",
            f"has next to nothing to do with the motion: what the model leaves of it is "
            f"{fit.relative_error_percent:.3g} % in the training data"
            + (
                f" and {judged[fit.output]:.3g} % in the held-out data"
                if fit.output in judged
                else ""
            ),
            "look at the column that it is read from, at its order, unit and time, and at the machine file",
        )
        for fit in training
        if min(fit.relative_error_percent, judged.get(fit.output, np.inf)) > UNEXPLAINED
        and fit.scale > SMALL * largest[fit.unit]
    )


def worse_than_twins(
    training: Sequence[OutputFit], held_out: Sequence[OutputFit]
) -> tuple[Problem, ...]:
    """Outputs that the model explains far worse than others of the same unit and of about the same size.

    Args:
        training, held_out: fits of `Identification`; an output counts with the smaller of both
            errors.
    """
    judged = {fit.output: fit.relative_error_percent for fit in held_out}
    errors = {
        fit.output: min(fit.relative_error_percent, judged.get(fit.output, np.inf))
        for fit in training
    }
    problems = Problems()
    for fit in training:
        twins = [
            errors[other.output]
            for other in training
            if other.output != fit.output
            and other.unit == fit.unit
            and max(other.scale, fit.scale) < TWINS * min(other.scale, fit.scale)
        ]
        error = errors[fit.output]
        if twins and error > max(TIMES_WORSE * float(np.median(twins)), LEAST_WORSE):
            what = (
                f"is explained far worse than outputs of its size: the model leaves {error:.3g} % of it, and "
                f"{np.median(twins):.3g} % of the others"
            )
            problems.add(
                f"force.{fit.output}",
                what,
                "check its sensor, its column, and what its joint has of its own",
            )
    return tuple(problems)


def signs_applied(triangles: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Triangles (n_out, m, r + 1) with the forces of some outputs turned."""
    turned = triangles.copy()
    turned[:, :, -1] *= signs[:, None]
    return turned


def _misfit(triangles: np.ndarray, signs: np.ndarray, weights: np.ndarray) -> float:
    """Root mean square over outputs of the residual's share of the force."""
    rows = (weights[:, None, None] * signs_applied(triangles, signs)).reshape(
        -1, triangles.shape[-1]
    )
    triangle = np.asarray(np.linalg.qr(rows, mode="r"))
    return (
        float(abs(triangle[-1, -1]) / np.sqrt(len(signs)))
        if len(triangle) == triangles.shape[-1]
        else 0.0
    )
