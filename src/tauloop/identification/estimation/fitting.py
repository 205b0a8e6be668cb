"""Fit of the base parameters to training data, with its errors on held-out data."""

from __future__ import annotations

from dataclasses import Field, fields, is_dataclass, replace
from typing import Any

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import IdentificationError, Problems, solving
from tauloop.common.result import Diagnostic, diagnostic, plain, provenance
from tauloop.identification.estimation.base_columns import BaseRegression
from tauloop.identification.estimation.bending import Bending
from tauloop.identification.estimation.error_models import (
    AutocorrelatedErrors,
    ErrorModel,
    EstimatingEquations,
)
from tauloop.identification.estimation.estimators import (
    CondensedEstimator,
    Estimate,
    Estimator,
    require_equations,
)
from tauloop.identification.estimation.evaluation import judge_both
from tauloop.identification.estimation.result import Identification
from tauloop.identification.estimation.timing_terms import (
    TimingTerm,
    timing_terms,
    with_bias_covariance,
)
from tauloop.identification.estimation.whiteness import whiteness
from tauloop.identification.regression.base_parameters import (
    BaseParameters,
    RankOptions,
    base_parameters,
)
from tauloop.identification.regression.data import RegressionData

#: The largest force must be between this value and its inverse, N or N m. Otherwise squares of
#: forces underflow or overflow.
MIN_FORCE = 1e-100
#: At most this fraction of the held-out samples may be exact copies of training samples. A larger
#: fraction means that both contain the same record.
LARGEST_COPIED_SHARE = 0.05
#: A column is constant if its values differ by less than this fraction of the largest.
CONSTANT_COLUMN_TOLERANCE = 1e-10
#: Base parameters with a larger standard deviation, as a fraction of the value, count as uncertain.
UNCERTAIN_SHARE = 0.3
#: A residual below this fraction of the largest force counts as exact, because derivatives at the
#: ends of a log are not more accurate.
EXACT_SHARE = 1e-7
#: Names of the diagnostics that tables of the result repeat.
WHITENESS_DIAGNOSTIC = "Ljung-Box probability of white residuals, least of all outputs"
CORRELATION_DIAGNOSTIC = (
    "ratio of standard deviations for correlated residuals to those reported (median)"
)
#: If the residual exceeds this fraction of the force in every output, the force does not depend on
#: the motion.
MAX_UNEXPLAINED_SHARE = 0.9


@solving(IdentificationError)
def fit_regression(
    training: RegressionData,
    held_out: RegressionData | None,
    estimator: Estimator,
    *,
    rank: RankOptions | None = None,
    base: BaseParameters | None = None,
    errors: ErrorModel | None = None,
    bending: Bending | None = None,
) -> Identification:
    """Return the base parameters identified from training data.

    Args:
        training: samples to estimate from.
        held_out: validation samples of the same machine and outputs; None to fit without
            validation.
        estimator: such as `WeightedLeastSquares(reweightings=3)`.
        rank: options of the rank decision.
        base: known base parameters (from another motion, or from random states). By default, the
            training data determine them.
        errors: error model of the standard deviations: `AutocorrelatedErrors()`, or
            `FilteredErrors` for white noise that passed a known filter. By default, errors are
            independent.
        bending: effect of compliant transmissions, if the motion of the training data is known.

    Raises:
        IdentificationError: the data do not determine the parameters; lists all problems.
    """
    _require_sound(training, held_out, base)
    triangles = training.triangles
    unknown_count = len(training.unknowns)
    is_known = base is not None
    if base is None:
        base = base_parameters(
            triangles[:, :, :-1], training.unknowns, training.unknown_units, rank
        )
    require_equations(len(triangles), training.counts, base.rank)
    if is_known:
        condition, condition_si = _conditions(base, triangles)
    else:
        condition = base.condition
        condition_si = base.condition_si
    regression = BaseRegression(
        data=training, base=base, triangles=triangles[:, :, [*base.independent, unknown_count]]
    )
    estimate = estimator.estimate_from(regression)
    equations = estimator.equations(regression, estimate)
    terms: tuple[TimingTerm, ...] = ()
    if errors is not None:
        estimate = replace(estimate, covariance=errors.covariance(equations))
        if isinstance(estimator, CondensedEstimator):
            terms = timing_terms(regression, estimate, equations, bending)
    if isinstance(errors, AutocorrelatedErrors):
        estimate = with_bias_covariance(estimate, terms)
    _refuse_undetermined(base, estimate, condition)
    parameters = training.expand(base.spread(estimate.values))
    training_fit, held_out_fit = judge_both(training, held_out, parameters)
    error_options: dict[str, Any] | None = None
    if errors is not None:
        error_options = {"name": type(errors).__name__, **plain(errors)}
    result = Identification(
        base=base,
        condition=condition,
        condition_si=condition_si,
        estimate=estimate,
        estimator=estimator,
        training=training_fit,
        held_out=held_out_fit,
        parameters=parameters,
        regressor_parameters=training.parameters,
        outputs=training.outputs,
        measured=np.asarray(training.measured),
        timing=terms,
        diagnostics=(),
        provenance=provenance(
            packages=("numpy", "scipy"),
            options={
                "estimator": estimator_options(estimator),
                "rank": plain(base.options),
                "errors": error_options,
            },
            inputs={
                "training_samples": len(training),
                "held_out_samples": 0 if held_out is None else len(held_out),
                "outputs": training.outputs,
                "measured_outputs": [fit.output for fit in training_fit],
                "regressor_columns": len(training.parameters),
                "unknowns": unknown_count,
            },
        ),
    )
    diagnostics = (
        *_diagnostics(result, equations, regression.forces),
        *_error_diagnostics(result, training, equations, errors),
        *estimator.diagnostics(regression, estimate),
        *(_held_out_diagnostics(result, held_out) if held_out is not None else ()),
    )
    return replace(result, diagnostics=diagnostics)


def estimator_options(estimator: Estimator) -> dict[str, object]:
    """Return the name and options of an estimator as plain data.

    Options that are arrays or functions are replaced by the name of their type.
    """
    options: dict[str, object] = {"name": type(estimator).__name__}
    items: tuple[Field[Any], ...] = fields(estimator) if is_dataclass(estimator) else ()
    for item in items:
        value = getattr(estimator, item.name)
        is_plain = isinstance(value, bool | int | float | str)
        options[item.name] = plain(value) if is_plain else type(value).__name__
    return options


def _require_sound(
    training: RegressionData, held_out: RegressionData | None, base: BaseParameters | None
) -> None:
    """Raise an error if the data cannot be fitted or validated."""
    problems = Problems()
    largest = float(np.abs(training.forces[:, training.kept]).max(initial=0.0))
    if not MIN_FORCE < largest < 1.0 / MIN_FORCE:
        if largest:
            message = f"reach {largest:.3g} N or N m in {counted(len(training), 'sample')}"
        else:
            message = f"are zero in all {counted(len(training), 'sample')}"
        problems.add("forces", message, "check the columns of forces, their units and exponents")
    if not any(_varies(training.regressor[:, k]) for k in training.kept):
        problems.add(
            "training",
            f"the regressor is the same in all {counted(len(training), 'sample')}: nothing moves",
            "record a motion that excites all axes, with changing speeds and accelerations",
        )
    if held_out is not None:
        _check_held_out(training, held_out, problems)
    if base is not None and base.parameters != training.unknowns:
        problems.add(
            "base",
            f"the {counted(len(base.parameters), 'parameter')} differ from the "
            f"{counted(len(training.unknowns), 'unknown')} of the training data",
            "compute the base parameters with the names and ties of the training data",
        )
    IdentificationError.raise_if_any(problems)


def _varies(columns: np.ndarray) -> bool:
    """Return whether some column (N, n) changes between samples by more than rounding."""
    ranges = np.ptp(columns, axis=0)
    sizes = np.abs(columns).max(axis=0, initial=0.0)
    return bool((ranges > CONSTANT_COLUMN_TOLERANCE * sizes).any())


def _check_held_out(training: RegressionData, held_out: RegressionData, problems: Problems) -> None:
    """Add problems if held-out data do not match the training data, or repeat them."""
    names = ("parameters", "parameter_units", "outputs", "output_units", "unknowns")
    different = [name for name in names if getattr(training, name) != getattr(held_out, name)]
    for name in different:
        problems.add(
            f"held-out {name}",
            "differ from those of the training data",
            "prepare training and held-out data in the same way",
        )
    if not np.array_equal(np.asarray(training.measured), np.asarray(held_out.measured)):
        problems.add("held-out measured", "other outputs are measured", "measure the same outputs")
        return
    if different:
        return
    copies = _count_copies(training, held_out)
    if copies > LARGEST_COPIED_SHARE * len(held_out):
        problems.add(
            "held-out",
            f"{copies} of {len(held_out)} samples are copies of training samples",
            "validate with samples that are not in the training data, such as split_data(data, 0.7)",
        )


def _count_copies(training: RegressionData, held_out: RegressionData) -> int:
    """Return the number of held-out samples that occur in the training data.

    Samples are equal if their forces and one regressor column are equal to the last bit. Samples
    without a usable force, whose rows are zero, are not counted.
    """
    kept = training.kept
    # The column with the largest range distinguishes samples even where forces are quantized.
    column = int(np.argmax(np.ptp(training.regressor[:, kept[0]], axis=0)))

    def keys(data: RegressionData) -> list[bytes]:
        rows = np.hstack([data.forces[:, kept], data.regressor[:, kept, column]])
        return [row.tobytes() for row in rows]

    # Noisy forces rarely repeat, so only held-out samples whose first force occurs in the training
    # data are compared in full.
    first_output = int(kept[0])
    is_repeated = np.isin(held_out.forces[:, first_output], training.forces[:, first_output])
    if held_out.present is not None:
        is_repeated &= held_out.present[:, kept].any(axis=1)
    if not is_repeated.any():
        return 0
    known = set(keys(training))
    return sum(key in known for key in keys(held_out.part(np.flatnonzero(is_repeated))))


def _conditions(base: BaseParameters, triangles: np.ndarray) -> tuple[float, float]:
    """Return the condition numbers of given base parameters on the training data.

    Returns:
        Condition number with unit-norm columns, and in SI units.

    Raises:
        IdentificationError: the data do not excite all of the base parameters.
    """
    triangle = np.asarray(
        np.linalg.qr(triangles[:, :, base.independent].reshape(-1, base.rank), mode="r")
    )
    norms = np.linalg.norm(triangle, axis=0)
    _, singular_values, directions = np.linalg.svd(triangle / np.where(norms > 0.0, norms, 1.0))
    if singular_values[-1] <= base.options.tolerance * singular_values[0]:
        weakest = np.abs(directions[-1])
        names = [base.base[i].short_name() for i in np.argsort(-weakest)[:4] if weakest[i] > 0.1]
        raise IdentificationError.of(
            "training",
            f"the data do not determine all {base.rank} base parameters that were given: the smallest "
            f"singular value with unit-norm columns is "
            f"{singular_values[-1] / singular_values[0]:.3g} of the largest, in "
            f"{'; '.join(names)}",
            "record a motion that excites them, or compute the base parameters from the training data",
        )
    condition = float(singular_values[0] / singular_values[-1])
    return condition, float(np.linalg.cond(triangle))


def _refuse_undetermined(base: BaseParameters, estimate: Estimate, condition: float) -> None:
    """Raise an error if every standard deviation exceeds the magnitude of its parameter."""
    deviations = estimate.standard_deviations
    magnitudes = np.abs(estimate.values)
    if np.any(deviations <= magnitudes):
        return
    percentages = 100.0 * deviations / np.maximum(magnitudes, np.finfo(float).eps * deviations)
    best = int(np.argmin(percentages))
    raise IdentificationError.of(
        "training",
        f"no base parameter is determined: the best, {base.base[best].short_name()}, has a standard deviation "
        f"of {percentages[best]:.3g} % of its value (condition number {condition:.3g} with unit-norm columns)",
        "record a motion that excites more, and check the units, signs and order of the force columns",
    )


def _optimality(equations: EstimatingEquations, forces: np.ndarray, weights: np.ndarray) -> float:
    """Return the largest |z_j^T e| / (|z_j / w| |w f|) over the parameters j.

    Here z_j is an instrument, e the residual, f the forces and w the weights of the outputs. The
    result is zero at a solution of the estimating equations. For least squares, z = w^2 y, and the
    ratio is the cosine between the weighted residual and a base column, times |w e| / |w f|. The
    residual is computed from the samples, not from their condensed form.
    """
    products = np.abs(equations.scores.sum(axis=0))
    norms = np.sqrt(np.einsum("nkr,k->r", equations.instruments**2, weights**-2.0))
    return float(np.max(products / (norms * np.linalg.norm(weights * forces))))


def _diagnostics(
    result: Identification, equations: EstimatingEquations, forces: np.ndarray
) -> tuple[Diagnostic, ...]:
    """Return diagnostics of the rank, the condition and the solution."""
    base = result.base
    estimate = result.estimate
    uncertain = np.sum(estimate.standard_deviations > UNCERTAIN_SHARE * np.abs(estimate.values))
    return (
        diagnostic(
            "gap at the rank (unit-norm columns)",
            base.gap,
            at_least=1e3,
            advice="the rank is uncertain: record a motion that excites more, or compare other tolerances",
        ),
        diagnostic(
            "singular values above the tolerance, less the rank",
            np.sum(base.singular_values > base.options.tolerance * base.singular_values[0])
            - base.rank,
            at_least=0.0,
            at_most=0.0,
            advice="the two methods that determine the rank disagree: compare other tolerances",
        ),
        diagnostic(
            "condition number of the base regressor (unit-norm columns)",
            result.condition,
            at_most=1e4,
            advice="some base parameters are hardly excited: record a motion that excites more",
        ),
        diagnostic(
            "largest normalized product of the residual and a column of the instruments",
            _optimality(equations, forces, estimate.weights),
            at_most=1e-8,
            advice="the least-squares solution is inexact because the regressor is too badly conditioned: record a "
            "motion that excites more",
        ),
        diagnostic(
            f"base parameters with a standard deviation above {100 * UNCERTAIN_SHARE:.0f} %",
            uncertain,
            unit=f"of {base.rank}",
        ),
    )


def _error_diagnostics(
    result: Identification,
    data: RegressionData,
    equations: EstimatingEquations,
    errors: ErrorModel | None,
) -> tuple[Diagnostic, ...]:
    """Return diagnostics of the residuals' correlation and its effect on standard deviations."""
    used = correlated = result.standard_deviations
    if not isinstance(errors, AutocorrelatedErrors):
        correlated = np.sqrt(np.diag(AutocorrelatedErrors().covariance(equations)))
    is_positive = used > 0.0
    ratio: float | None = None
    if is_positive.any():
        ratio = float(np.median(correlated[is_positive] / used[is_positive]))
    rows = [data.rows(k) for k in data.kept]
    tests = [whiteness(equations.residual[row, k]) for k, row in enumerate(rows)]
    probabilities = [test.probability for test in tests if test.probability is not None]
    return (
        diagnostic(
            "smallest relative residual of any output, training data",
            min(fit.relative_error_percent for fit in result.training) / 100.0,
            at_most=MAX_UNEXPLAINED_SHARE,
            advice="the motion hardly explains the forces: check the order, units and times of the columns",
        ),
        diagnostic(CORRELATION_DIAGNOSTIC, ratio),
        diagnostic(WHITENESS_DIAGNOSTIC, min(probabilities, default=None)),
    )


def _held_out_diagnostics(result: Identification, data: RegressionData) -> tuple[Diagnostic, ...]:
    """Return diagnostics of the prediction of held-out data."""
    regressor = data.triangles[:, :, :-1]
    ratios = [
        validation.rmse / max(fit.rmse, EXACT_SHARE * fit.scale)
        for fit, validation in zip(result.training, result.held_out, strict=True)
    ]
    return (
        diagnostic(
            "misfit of the regrouping on the held-out data, largest of all columns",
            result.base.mismatch(regressor.reshape(-1, regressor.shape[-1])),
            at_most=1e-6,
            advice="the held-out motion excites parameters that the training motion does not: train on a motion that "
            "excites more",
        ),
        diagnostic(
            "largest ratio of RMSE on the held-out data to that on the training data",
            max(ratios),
            at_most=3.0,
            advice="the model does not predict other motions: train on a motion that excites more, or add the missing "
            "effects to the model",
        ),
    )
