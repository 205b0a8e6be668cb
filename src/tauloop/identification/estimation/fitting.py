"""Fit the base parameters to training data and judge them on held-out data."""

from __future__ import annotations

from dataclasses import Field, fields, is_dataclass, replace
from typing import Any

import numpy as np

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
from tauloop.identification.estimation.timing_terms import TimingTerm, counted, timing_terms
from tauloop.identification.estimation.whiteness import whiteness
from tauloop.identification.regression.base_parameters import (
    BaseParameters,
    RankOptions,
    base_parameters,
)
from tauloop.identification.regression.data import RegressionData

#: The largest force lies between this and one over it, N or N m, where forces are to be squared.
LEAST_FORCE = 1e-100
#: Held-out samples that are exact copies of training samples, at most this share: more is the same
#: record twice.
LARGEST_COPIED_SHARE = 0.05
#: A column whose values differ by less than this share of the largest is the same in all samples.
ROUNDING = 1e-10
#: Base parameters with a larger standard deviation, as a share of the value, are counted as
#: uncertain.
UNCERTAIN_SHARE = 0.3
#: A residual of this share of the largest force is exact: rates are known no better at the end of a
#: log.
EXACT_SHARE = 1e-7
#: A residual that is this share of the force in every output says that the force has nothing to do
#: with the motion.
UNEXPLAINED = 0.9


@solving(IdentificationError)
def fit(
    training: RegressionData,
    held_out: RegressionData | None,
    estimator: Estimator,
    *,
    rank: RankOptions | None = None,
    base: BaseParameters | None = None,
    errors: ErrorModel | None = None,
    bending: Bending | None = None,
) -> Identification:
    """Identify the base parameters.

    Args:
        training: samples to estimate from.
        held_out: samples to judge by, of the same machine and outputs; None says that there are
            none.
        estimator: such as `WeightedLeastSquares(reweightings=3)`.
        rank: how the rank is decided.
        base: base parameters that are known already (from another motion, or from random states);
            found from the training data when not given.
        errors: what standard deviations assume of the errors: `AutocorrelatedErrors()`, or
            `FilteredErrors` where white noise went through a known filter; independent errors when
            not given.
        bending: what bending transmissions change, where the motion of the training data is at
            hand.

    Raises:
        IdentificationError: the data cannot support the identification; with all problems found.
    """
    _require_sound(training, held_out, base)
    triangles = training.triangles
    size = len(training.unknowns)
    known, base = (
        base,
        base
        or base_parameters(triangles[:, :, :-1], training.unknowns, training.unknown_units, rank),
    )
    require_equations(len(triangles), training.counts, base.rank)
    condition, condition_si = (
        (base.condition, base.condition_si) if known is None else _conditions(base, triangles)
    )
    regression = BaseRegression(
        data=training, base=base, triangles=triangles[:, :, [*base.independent, size]]
    )
    estimate = estimator.estimate_from(regression)
    equations = estimator.equations(regression, estimate)
    terms: tuple[TimingTerm, ...] = ()
    if errors is not None:
        estimate = replace(estimate, covariance=errors.covariance(equations))
        if isinstance(estimator, CondensedEstimator):
            terms = timing_terms(regression, estimate, equations, bending)
    if isinstance(errors, AutocorrelatedErrors):
        estimate = counted(estimate, terms)
    _refuse_undetermined(base, estimate, condition)
    parameters = training.expand(base.spread(estimate.values))
    training_fit, held_out_fit = judge_both(training, held_out, parameters)
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
                "errors": None
                if errors is None
                else {"name": type(errors).__name__, **plain(errors)},
            },
            inputs={
                "training_samples": len(training),
                "held_out_samples": 0 if held_out is None else len(held_out),
                "outputs": training.outputs,
                "measured_outputs": [fit.output for fit in training_fit],
                "regressor_columns": len(training.parameters),
                "unknowns": size,
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
    """Name and options of an estimator as plain data; arrays and functions by their kind only."""
    held: tuple[Field[Any], ...] = fields(estimator) if is_dataclass(estimator) else ()
    values = {item.name: getattr(estimator, item.name) for item in held}
    return {"name": type(estimator).__name__} | {
        name: plain(value) if isinstance(value, bool | int | float | str) else type(value).__name__
        for name, value in values.items()
    }


def _require_sound(
    training: RegressionData, held_out: RegressionData | None, base: BaseParameters | None
) -> None:
    """Refuse data that cannot be fitted or judged by."""
    problems = Problems()
    most = float(np.abs(training.forces[:, training.kept]).max(initial=0.0))
    if not LEAST_FORCE < most < 1.0 / LEAST_FORCE:
        how = f"reach {most:.3g} N or N m" if most else "are zero"
        what = f"{how} in {'' if most else 'all '}{len(training)} samples"
        problems.add("forces", what, "check the columns of forces, their units and exponents")
    if not any(_changes(training.regressor[:, k]) for k in training.kept):
        what = f"the regressor is the same in all {len(training)} samples: nothing moves"
        problems.add(
            "training",
            what,
            "record a motion that excites all axes, with changing speeds and accelerations",
        )
    if held_out is not None:
        _judge_held_out(training, held_out, problems)
    if base is not None and base.parameters != training.unknowns:
        what = f"is of {len(base.parameters)} other parameters than the {len(training.unknowns)} unknowns"
        problems.add(
            "base", what, "find the base parameters with the names and ties of the training data"
        )
    IdentificationError.raise_if_any(problems)


def _changes(columns: np.ndarray) -> bool:
    """Whether some column (N, n) changes from sample to sample, by more than rounding."""
    return bool(
        (np.ptp(columns, axis=0) > ROUNDING * np.abs(columns).max(axis=0, initial=0.0)).any()
    )


def _judge_held_out(training: RegressionData, held_out: RegressionData, problems: Problems) -> None:
    """Note where held-out data are of another kind than the training data, or the same."""
    others = [
        what
        for what in ("parameters", "parameter_units", "outputs", "output_units", "unknowns")
        if getattr(training, what) != getattr(held_out, what)
    ]
    for what in others:
        problems.add(
            f"held-out {what}", "differ from those of the training data", "prepare both alike"
        )
    if not np.array_equal(np.asarray(training.measured), np.asarray(held_out.measured)):
        problems.add("held-out measured", "other outputs are measured", "measure the same outputs")
    elif not others and (copied := _copied(training, held_out)) > LARGEST_COPIED_SHARE * len(
        held_out
    ):
        what = f"{copied} of {len(held_out)} samples are copies of training samples"
        remedy = (
            "judge by samples that were kept out of the training data, such as split(data, 0.7)"
        )
        problems.add("held-out", what, remedy)


def _copied(training: RegressionData, held_out: RegressionData) -> int:
    """How many held-out samples occur in the training data, to the last bit of the forces and one regressor column."""
    kept = training.kept
    # The column that differs most from sample to sample tells samples apart even where forces are
    # quantised.
    column = int(np.argmax(np.ptp(training.regressor[:, kept[0]], axis=0)))

    def keys(data: RegressionData) -> list[bytes]:
        return [
            row.tobytes()
            for row in np.hstack([data.forces[:, kept], data.regressor[:, kept, column]])
        ]

    # forces with noise hardly ever repeat: only the samples whose first force does are compared in
    # full
    first = int(kept[0])
    alike = np.isin(held_out.forces[:, first], training.forces[:, first])
    if not alike.any():
        return 0
    known = set(keys(training))
    return sum(key in known for key in keys(held_out.part(np.flatnonzero(alike))))


def _conditions(base: BaseParameters, triangles: np.ndarray) -> tuple[float, float]:
    """Condition numbers on the training data of base parameters that were given: with unit-norm columns, and in SI.

    Raises:
        IdentificationError: base parameters that were given are not all excited by these data.
    """
    triangle = np.asarray(
        np.linalg.qr(triangles[:, :, base.independent].reshape(-1, base.rank), mode="r")
    )
    norms = np.linalg.norm(triangle, axis=0)
    _, sizes, directions = np.linalg.svd(triangle / np.where(norms > 0.0, norms, 1.0))
    if sizes[-1] <= base.options.tolerance * sizes[0]:
        weakest = np.abs(directions[-1])
        names = [base.base[i].short_name() for i in np.argsort(-weakest)[:4] if weakest[i] > 0.1]
        raise IdentificationError.of(
            "training",
            f"the data do not tell apart all {base.rank} base parameters that were given: the smallest "
            f"singular value with unit-norm columns is {sizes[-1] / sizes[0]:.3g} of the largest, in "
            f"{'; '.join(names)}",
            "record a motion that excites these, or find the base parameters from the training data",
        )
    return float(sizes[0] / sizes[-1]), float(np.linalg.cond(triangle))


def _refuse_undetermined(base: BaseParameters, estimate: Estimate, condition: float) -> None:
    """Refuse an estimate in which no parameter is known even to its own size."""
    deviations, sizes = estimate.standard_deviations, np.abs(estimate.values)
    if np.any(deviations <= sizes):
        return
    shares = 100.0 * deviations / np.maximum(sizes, np.finfo(float).eps * deviations)
    best = int(np.argmin(shares))
    raise IdentificationError.of(
        "training",
        f"no base parameter is determined: the best, {base.base[best].short_name()}, has a standard deviation "
        f"of {shares[best]:.3g} % of its value (condition number {condition:.3g} with unit-norm columns)",
        "record a motion that excites more, and check the units, signs and order of the force columns",
    )


def _optimality(equations: EstimatingEquations, forces: np.ndarray, weights: np.ndarray) -> float:
    """Largest |z_j^T e| / (|z_j / w| |w f|) over the parameters: zero at a solution of the estimating equations.

    For least squares, z = w^2 y: the cosine between the weighted residual and a base column. The
    residual and its products are taken from the samples themselves, not from their condensed form.
    """
    products = np.abs(equations.scores.sum(axis=0))
    norms = np.sqrt(np.einsum("nkr,k->r", equations.instruments**2, weights**-2.0))
    return float(np.max(products / (norms * np.linalg.norm(weights * forces))))


def _diagnostics(
    result: Identification, equations: EstimatingEquations, forces: np.ndarray
) -> tuple[Diagnostic, ...]:
    base, estimate = result.base, result.estimate
    uncertain = np.sum(estimate.standard_deviations > UNCERTAIN_SHARE * np.abs(estimate.values))
    return (
        diagnostic(
            "gap at the rank (unit-norm columns)",
            base.gap,
            at_least=1e3,
            advice="the rank is not beyond doubt: record a motion that excites more, or compare other tolerances",
        ),
        diagnostic(
            "singular values above the tolerance, less the rank",
            np.sum(base.singular_values > base.options.tolerance * base.singular_values[0])
            - base.rank,
            at_least=0.0,
            at_most=0.0,
            advice="two routes to the rank disagree: compare other tolerances",
        ),
        diagnostic(
            "condition number of the base regressor (unit-norm columns)",
            result.condition,
            at_most=1e4,
            advice="some base parameters are hardly excited: record a motion that excites more",
        ),
        diagnostic(
            "largest cosine between the weighted residual and a base column",
            _optimality(equations, forces, estimate.weights),
            at_most=1e-8,
            advice="the least-squares solution is inexact: the regressor is too ill conditioned",
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
    """How far the residuals are from white noise, and what that means for the standard deviations."""
    used = correlated = result.standard_deviations
    if not isinstance(errors, AutocorrelatedErrors):
        correlated = np.sqrt(np.diag(AutocorrelatedErrors().covariance(equations)))
    rows = [data.rows(k) for k in data.kept]
    tests = [whiteness(equations.residual[row, k]) for k, row in enumerate(rows)]
    return (
        diagnostic(
            "residual over force of the output that is described best, training data",
            min(fit.relative_error_percent for fit in result.training) / 100.0,
            at_most=UNEXPLAINED,
            advice="the motion explains hardly anything of the forces: look at order, units and times of the columns",
        ),
        diagnostic(
            "standard deviations that count the residuals' correlation, beside those given (median)",
            float(np.median(correlated[used > 0.0] / used[used > 0.0]))
            if (used > 0.0).any()
            else None,
        ),
        diagnostic(
            "Ljung-Box probability of white residuals, least of all outputs",
            min((test.probability for test in tests if test.probability is not None), default=None),
        ),
    )


def _held_out_diagnostics(result: Identification, data: RegressionData) -> tuple[Diagnostic, ...]:
    regressor = data.triangles[:, :, :-1]
    ratios = [
        judged.rmse / max(fit.rmse, EXACT_SHARE * fit.scale)
        for fit, judged in zip(result.training, result.held_out, strict=True)
    ]
    return (
        diagnostic(
            "misfit of the regrouping on the held-out data, largest of all columns",
            result.base.mismatch(regressor.reshape(-1, regressor.shape[-1])),
            at_most=1e-6,
            advice="the training motion hides parameters that act in the held-out one: train on more excitation",
        ),
        diagnostic(
            "largest ratio of RMSE on the held-out data to that on the training data",
            max(ratios),
            at_most=3.0,
            advice="the model does not carry over to new motions: train on more excitation, or model what is missing",
        ),
    )
