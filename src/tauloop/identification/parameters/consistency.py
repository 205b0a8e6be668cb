"""Physically consistent identification of all standard parameters, with a prior from CAD.

Source: Wensing, Kim and Slotine 2018, Linear matrix inequalities for physically consistent inertial
parameter identification.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import ClassVar

import numpy as np
from scipy.linalg import eigh

from tauloop.common.counts import counted
from tauloop.common.datasets import dimension, quantity_over
from tauloop.common.errors import IdentificationError, Problems, solving
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.options import Options, option, require
from tauloop.common.plain import OMITTED, in_json
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, plain, provenance
from tauloop.identification.estimation.estimators import WeightedLeastSquares
from tauloop.identification.estimation.evaluation import OutputFit, judge_both, largest_loss
from tauloop.identification.estimation.fitting import fit_regression
from tauloop.identification.estimation.result import Identification
from tauloop.identification.parameters.cones import (
    Cone,
    Regularization,
    RegularizedBody,
    divergence,
    regularized_prior,
    restricted_cone,
)
from tauloop.identification.parameters.lmi import ConicProblem, ConicSolution, solve_conic
from tauloop.identification.parameters.prior_weight import (
    WeightTrial,
    chosen_weight,
    weight_diagnostic,
    widened,
)
from tauloop.identification.regression.data import RegressionData, split_data

#: First entry of the JSON file. The number increases when the meaning of an entry changes.
CONSISTENT_FORMAT = "tauloop-consistent-identification/1"
#: An unknown counts as determined by the prior alone if the data can determine less than this
#: fraction of it (`ConsistentIdentification.reachable_share`).
MIN_DATA_SHARE = 0.01
#: Largest accepted ratio of the held-out error to that of the unconstrained parameters.
MAX_ERROR_RATIO = 1.05
#: Unknowns without prior have no effect if the norm of their column is below this fraction of the
#: largest norm.
NO_EFFECT_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicallyConsistent(Options):
    """Options of the physically consistent identification.

    Attributes:
        weights: candidate weights of the prior, relative to the mean square of residuals divided by
            the noise. The weight with the smallest error on a validation part of the training data
            is chosen (see `chosen_weight`). If the best candidate is the first or the last of
            several, `EXTRA_DECADES` decades beyond it are tried too. A diagnostic reports a chosen
            weight at the end of this range.
        validation_share: fraction at the end of the training data that is used to choose the
            weight, unless groups of samples are given. Held-out data are not used for the choice.
        regularization: mass and inertia of bodies that are singular in the prior.
        reweightings: number of reweightings of the unconstrained fit, which determines the noise of
            the outputs.
    """

    weights: tuple[float, ...] = option(
        tuple(float(w) for w in np.logspace(-6.0, 2.0, 9)),
        above=0.0,
        below=np.inf,
        remedy="give positive weights; without a prior, some masses can become arbitrarily large",
    )
    validation_share: float = option(0.3, above=0.0, below=1.0)
    regularization: Regularization = field(default_factory=Regularization)
    reweightings: int = 3

    def __post_init__(self) -> None:
        """Check the ranges of the options."""
        require(self, IdentificationError)
        if not self.weights:
            raise IdentificationError.of(
                "PhysicallyConsistent.weights", "is empty", "give at least one positive weight"
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConsistentIdentification(Result):
    """Physically consistent values of all standard parameters.

    Attributes:
        parameters: (n_p,) values of the regressor's columns, SI.
        prior: (n_p,) prior values of the columns, after regularization.
        regressor_parameters: names of the regressor's columns.
        units: units of the regressor's columns.
        outputs: names of the regressor's rows.
        unknowns: names of the unknowns; without ties these are the columns.
        values: (n,) values of the unknowns.
        data_share: (n,) fraction of each unknown that the data determine at the chosen weight.
        reachable_share: (n,) limit of `data_share` as the weight goes to zero. It is the largest
            fraction that these data can determine.
        prior_alone: unknowns of which the data can determine less than 1 %.
        prior_directions: one unknown for each direction that is determined only by the prior. A
            change of this unknown at constant base parameters changes no force.
        held: unknowns without effect and without prior, which keep their values in `prior`.
        regularized: bodies of the prior that were singular.
        at_bound: coefficients that are zero because they would be negative otherwise.
        weight: chosen weight of the prior.
        trials: weights that were tried, with their validation errors.
        cones: cones of the parameters.
        solver_status: status that the solver returned.
        training, held_out: fit of every measured output to training and held-out data.
        unconstrained: the base parameters identified from the same data without cones or prior.
    """

    quantity_order: ClassVar[tuple[str, ...]] = ("parameter", "value", "prior")
    json_format: ClassVar[str] = CONSISTENT_FORMAT
    regularised = old_attribute("regularised", "regularized")
    parameters: np.ndarray = field(
        metadata=OMITTED | quantity_over("parameter", units="units", name="value")
    )
    prior: np.ndarray = field(metadata=OMITTED | quantity_over("parameter", units="units"))
    regressor_parameters: tuple[str, ...] = field(metadata=OMITTED | dimension("parameter"))
    units: tuple[str, ...] = field(metadata=OMITTED)
    outputs: tuple[str, ...] = field(metadata=OMITTED)
    unknowns: tuple[str, ...] = field(metadata=OMITTED)
    values: np.ndarray = field(metadata=OMITTED)
    data_share: np.ndarray = field(metadata=OMITTED)
    reachable_share: np.ndarray = field(metadata=OMITTED)
    prior_alone: tuple[str, ...]
    prior_directions: tuple[str, ...]
    held: tuple[str, ...]
    regularized: tuple[RegularizedBody, ...]
    at_bound: tuple[str, ...]
    weight: float
    trials: tuple[WeightTrial, ...]
    cones: tuple[Cone, ...] = field(metadata=OMITTED)
    solver_status: str
    training: tuple[OutputFit, ...]
    held_out: tuple[OutputFit, ...]
    unconstrained: Identification

    @property
    @in_json()
    def masses(self) -> dict[str, float]:
        """Mass of every body and part, kg."""
        return {cone.element: cone.mass(self.parameters) for cone in self.cones if cone.is_inertial}

    def predict(self, regressor: np.ndarray) -> np.ndarray:
        """Return the forces (N, n_out), SI, for a regressor (N, n_out, n_p)."""
        return np.asarray(np.asarray(regressor, dtype=float) @ self.parameters)

    @property
    @in_json("regressor_parameters")
    def named_parameters(self) -> dict[str, float]:
        """Values of the regressor's columns by name."""
        return dict(zip(self.regressor_parameters, self.parameters, strict=True))

    @property
    @in_json("prior")
    def named_prior(self) -> dict[str, float]:
        """Prior values of the regressor's columns by name."""
        return dict(zip(self.regressor_parameters, self.prior, strict=True))

    @property
    @in_json("data_share")
    def named_data_share(self) -> dict[str, float]:
        """Fraction of each unknown that the data determine at the chosen weight, by name."""
        return dict(zip(self.unknowns, self.data_share, strict=True))

    @property
    @in_json("reachable_share")
    def named_reachable_share(self) -> dict[str, float]:
        """Fraction of each unknown that the data determine as the weight goes to zero, by name."""
        return dict(zip(self.unknowns, self.reachable_share, strict=True))


@solving(IdentificationError)
def fit_consistent(
    training: RegressionData,
    held_out: RegressionData,
    cones: Sequence[Cone],
    prior: np.ndarray,
    options: PhysicallyConsistent | None = None,
    *,
    groups: np.ndarray | None = None,
) -> ConsistentIdentification:
    """Return all standard parameters, identified inside their cones.

    The objective is half the mean square of the residuals divided by the noise, plus the weight
    times the sum of D(P_b | P_b0) over bodies and rods b. P_b is the pseudo-inertia, P_b0 its
    prior, and D the log-determinant divergence (`divergence`). Friction, drive inertia and
    stiffness cannot become negative (Lee, Wensing and Park 2020, Geometric robot dynamic
    identification: a convex programming approach). Only the QR factor of the data is used.

    Args:
        training: samples to estimate from; a part of them is used to choose the weight.
        held_out: samples to validate with.
        cones: cones of the regressor's columns, `consistency_cones(model.parameters)`.
        prior: (n_p,) parameters from CAD, `model.pi`; singular bodies are regularized and reported.
            Columns that were added after those of the machine (`with_columns`) have no prior and
            can be omitted.
        options: weights and regularization.
        groups: (N,) label of every training sample, such as the index of its log. If labels are
            given, every group is left out once, and the weight with the smallest error on the
            groups left out is chosen. Repetitions of one motion must be in the same group;
            otherwise validation data repeat the fitted motion and show only the noise.

    Raises:
        IdentificationError: the data do not determine the parameters, the prior is unusable, or
            the solver fails.
    """
    options = options or PhysicallyConsistent()
    cones = tuple(cones)
    prior = _checked_prior(training, cones, prior)
    unconstrained = fit_regression(
        training, held_out, WeightedLeastSquares(reweightings=options.reweightings)
    )
    cones, singular = _restricted(training, cones, prior)
    prior, changed = regularized_prior(prior, singular, options.regularization)
    validation = _weight_validation(
        training, options, groups, unconstrained.estimate.weights, cones, prior
    )
    trials = widened(validation.trials, sorted(options.weights))
    weight = chosen_weight(trials)
    triangle = _combined_triangle(validation.triangles, validation.sizes)
    problem, held = _conic_problem(training, triangle, cones, prior)
    (solution,) = solve_conic(problem, (weight,))
    parameters = problem.ties_matrix @ solution.unknowns + problem.ties_offset
    training_fit, held_out_fit = judge_both(training, held_out, parameters)
    unknowns, values = training.unknowns, _all_values(training, problem, solution, held)
    share = _with_held(solution.data_share, held, len(unknowns))
    reachable = _with_held(solution.reachable_share, held, len(unknowns))
    result = ConsistentIdentification(
        parameters=parameters,
        prior=prior,
        regressor_parameters=training.parameters,
        units=training.parameter_units,
        outputs=training.outputs,
        unknowns=unknowns,
        values=values,
        data_share=share,
        reachable_share=reachable,
        prior_alone=tuple(
            name
            for name, reached in zip(unknowns, reachable, strict=True)
            if reached < MIN_DATA_SHARE
        ),
        prior_directions=tuple(np.delete(unknowns, unconstrained.base.independent).tolist()),
        held=tuple(unknowns[j] for j in held),
        regularized=changed,
        at_bound=solution.at_bound,
        weight=weight,
        trials=trials,
        cones=cones,
        solver_status=solution.status,
        training=training_fit,
        held_out=held_out_fit,
        unconstrained=unconstrained,
        diagnostics=(),
        provenance=provenance(
            packages=("numpy", "scipy", "cvxpy", "clarabel"),
            options=plain(options),
            inputs={
                "training_samples": len(training),
                "held_out_samples": len(held_out),
                "parts_left_out_for_the_weight": len(validation.left_out),
                "outputs": training.outputs,
                "unknowns": len(unknowns),
                "cones": len(cones),
            },
        ),
    )
    return replace(result, diagnostics=_diagnostics(result, solution))


def _weight_validation(
    training: RegressionData,
    options: PhysicallyConsistent,
    groups: np.ndarray | None,
    output_weights: np.ndarray,
    cones: tuple[Cone, ...],
    prior: np.ndarray,
) -> _WeightValidation:
    """Return the validation that chooses the weight of the prior."""
    parts, left_out = _validation_parts(training, options, groups)
    return _WeightValidation(
        training=training,
        triangles=[_whitened(part.triangles, output_weights, len(part)) for part in parts],
        sizes=np.array([len(part) for part in parts]),
        left_out=left_out,
        cones=cones,
        prior=prior,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _WeightValidation:
    """Parts of the training data, each of which validates weights of the prior.

    Attributes:
        training: all training data.
        triangles: whitened QR factor of each part.
        sizes: number of samples of each part.
        left_out: indices of the parts that are left out, one at a time.
        cones, prior: cones of the parameters and their prior.
    """

    training: RegressionData
    triangles: Sequence[np.ndarray]
    sizes: np.ndarray
    left_out: Sequence[int]
    cones: tuple[Cone, ...]
    prior: np.ndarray

    def trials(self, weights: Sequence[float]) -> tuple[WeightTrial, ...]:
        """Return the errors of weights on the parts that are left out."""
        squares = np.zeros(len(weights))
        total = self.sizes[self.left_out].sum()
        for k in self.left_out:
            squares += self.sizes[k] / total * np.square(self._errors(k, weights))
        return tuple(
            WeightTrial(weight=float(weight), validation_error=float(error))
            for weight, error in zip(weights, np.sqrt(squares), strict=True)
        )

    def _errors(self, k: int, weights: Sequence[float]) -> list[float]:
        """Return the error of each weight on the part with index k after a fit to the others."""
        is_fitted = np.arange(len(self.sizes)) != k
        triangle = _combined_triangle(self.triangles, np.where(is_fitted, self.sizes, 0))
        problem, held = _conic_problem(self.training, triangle, self.cones, self.prior)
        errors = []
        for solution in solve_conic(problem, weights):
            values = _all_values(self.training, problem, solution, held)
            errors.append(float(np.linalg.norm(self.triangles[k] @ [*values, -1.0])))
        return errors


def _checked_prior(
    training: RegressionData, cones: tuple[Cone, ...], prior: np.ndarray
) -> np.ndarray:
    """Return the prior (n_p,) of all columns after checks; zero for columns without prior.

    Raises:
        IdentificationError: the prior has another shape, is not finite, or cones do not match.
    """
    count = len(training.parameters)
    problems = Problems()
    prior = np.asarray(prior, dtype=float)
    if prior.ndim == 1 and 0 < len(prior) < count and _is_of_machine(training, cones, len(prior)):
        prior = np.append(prior, np.zeros(count - len(prior)))
    has_shape = np.shape(prior) == (count,)
    if not has_shape or not np.isfinite(prior).all():
        problems.add(
            "prior",
            "contains values that are not finite" if has_shape else f"has shape {np.shape(prior)}",
            f"give {counted(count, 'finite value')}, one for each column of the regressor",
        )
    has_inertia = any(cone.is_inertial for cone in cones)
    if not has_inertia or max(cone.columns.max() for cone in cones) >= count:
        problems.add(
            "cones",
            f"{counted(len(cones), 'cone', 'do')} not match a regressor of {counted(count, 'column')}",
            "use consistency_cones(model.parameters) with the model that made the regressor",
        )
    IdentificationError.raise_if_any(problems)
    return prior


def _restricted(
    training: RegressionData, cones: tuple[Cone, ...], prior: np.ndarray
) -> tuple[tuple[Cone, ...], list[Cone]]:
    """Return the cones restricted by known values, and the cones whose prior may be regularized.

    A point mass with known inertia is not regularized if its prior has a positive mass.
    """
    matrix, offset = training.relations.matrix, np.asarray(training.relations.offset)
    restricted, singular = [], []
    for cone in cones:
        possible = restricted_cone(cone, matrix, offset)
        if possible is None:
            continue
        restricted.append(possible)
        is_point = possible.basis.shape != cone.basis.shape
        if not is_point or np.linalg.eigvalsh(possible.matrix(prior))[0] <= 0.0:
            singular.append(cone)
    return tuple(restricted), singular


def _is_of_machine(training: RegressionData, cones: tuple[Cone, ...], count: int) -> bool:
    """Return whether the cones belong to the first `count` columns, by their names."""
    if not cones or max(cone.columns.max() for cone in cones) >= count:
        return False
    elements = [cone.element.removesuffix(" (upper part)") for cone in cones]
    names = [training.parameters[cone.columns[0]] for cone in cones]
    return all(name.startswith(element) for name, element in zip(names, elements, strict=True))


def _whitened(triangles: np.ndarray, weights: np.ndarray, samples: int) -> np.ndarray:
    """Return the triangular QR factor (n + 1, n + 1) of all outputs together.

    The squared misfit of this factor is the mean square of the residuals divided by the noise.
    """
    rows = (weights[:, None, None] * triangles).reshape(-1, triangles.shape[-1])
    return np.asarray(np.linalg.qr(rows, mode="r")) / np.sqrt(samples * len(triangles))


def _validation_parts(
    training: RegressionData, options: PhysicallyConsistent, groups: np.ndarray | None
) -> tuple[list[RegressionData], list[int]]:
    """Return parts of the training data, and the indices of the parts that are left out in turn."""
    if groups is None:
        return list(split_data(training, 1.0 - options.validation_share)), [1]
    labels = np.unique(groups)
    if np.shape(groups) != (len(training),) or len(labels) < 2:
        raise IdentificationError.of(
            "groups",
            f"has shape {np.shape(groups)} and {counted(len(labels), 'different label')} for "
            f"{counted(len(training), 'training sample')}",
            "give a label for each sample, with at least 2 groups, or omit the labels to validate with the last "
            "samples",
        )
    parts = [training.part(np.flatnonzero(groups == label)) for label in labels]
    return parts, list(range(len(labels)))


def _combined_triangle(triangles: Sequence[np.ndarray], sizes: np.ndarray) -> np.ndarray:
    """Return the stacked QR factors of several parts, weighted by their numbers of samples."""
    weights = np.sqrt(sizes / sizes.sum())
    return np.concatenate(
        [weight * part for weight, part in zip(weights, triangles, strict=True) if weight > 0.0]
    )


def _conic_problem(
    data: RegressionData, triangle: np.ndarray, cones: tuple[Cone, ...], prior: np.ndarray
) -> tuple[ConicProblem, np.ndarray]:
    """Return the problem over the unknowns that the data or the prior determine.

    Returns:
        The problem, and the indices of the other unknowns, which are held constant.
    """
    count = len(data.parameters)
    unknown_count = len(data.unknowns)
    matrix, offset = data.relations.matrix, np.asarray(data.relations.offset)
    is_inertial = np.zeros(count, dtype=bool)
    scales = np.full(count, np.inf)
    for cone in cones:
        if cone.is_inertial:
            is_inertial[cone.columns] = True
            spread = np.sqrt(np.diag(cone.matrix(prior)))
            spans = np.abs(cone.basis @ spread @ spread) + np.einsum(
                "jab,a,b->j", np.abs(cone.basis), spread, spread
            )
            scales[cone.columns] = np.where(spans > 0.0, spans, np.inf)
    norms = np.linalg.norm(triangle[:, :unknown_count], axis=0)
    is_related = np.abs(matrix) > 0.0
    has_prior = is_related[is_inertial].any(axis=0)
    held = np.flatnonzero(~has_prior & (norms <= NO_EFFECT_TOLERANCE * norms.max()))
    free = np.setdiff1d(np.arange(unknown_count), held)
    known = np.linalg.lstsq(matrix, prior - offset)[0][held] if len(held) else np.zeros(0)
    with np.errstate(divide="ignore"):
        prior_scale = np.where(is_related, scales[:, None] / np.abs(matrix), np.inf).min(axis=0)
        scale = np.where(has_prior, prior_scale, 1.0 / norms)
    return ConicProblem(
        matrix=triangle[:, free],
        right=triangle[:, unknown_count] - triangle[:, held] @ known,
        ties_matrix=matrix[:, free],
        ties_offset=offset + matrix[:, held] @ known,
        cones=cones,
        prior=prior,
        scale=scale[free],
    ), held


def _with_held(shares: np.ndarray, held: np.ndarray, count: int) -> np.ndarray:
    """Return the fractions (n,) of all unknowns; zero for unknowns that are held constant."""
    result = np.zeros(count)
    result[np.setdiff1d(np.arange(count), held)] = shares
    return result


def _all_values(
    data: RegressionData, problem: ConicProblem, solution: ConicSolution, held: np.ndarray
) -> np.ndarray:
    """Return the values of all unknowns, including those that are held constant."""
    parameters = problem.ties_matrix @ solution.unknowns + problem.ties_offset
    if data.ties is None:
        return parameters
    values = np.linalg.lstsq(data.ties.matrix, parameters - np.asarray(data.ties.offset))[0]
    values[np.setdiff1d(np.arange(len(values)), held)] = solution.unknowns
    return np.asarray(values)


def _diagnostics(
    result: ConsistentIdentification, solution: ConicSolution
) -> tuple[Diagnostic, ...]:
    """Return diagnostics of the parameters, the solver and the weight of the prior."""
    parameters, prior = result.parameters, result.prior
    inertial = [cone for cone in result.cones if cone.is_inertial]
    relative = [
        eigh(cone.matrix(parameters), cone.matrix(prior), eigvals_only=True) for cone in inertial
    ]
    coefficients = [
        float(parameters[cone.columns[0]]) for cone in result.cones if not cone.is_inertial
    ]
    mass = sum(cone.mass(parameters) for cone in inertial)
    prior_mass = sum(cone.mass(prior) for cone in inertial)
    return (
        diagnostic(
            "least eigenvalue of a pseudo-inertia, as a fraction of the prior's",
            min((eigenvalues[0] for eigenvalues in relative), default=None),
            at_least=0.0,
            advice="a body is not physically possible: raise the weight of the prior",
        ),
        diagnostic(
            "largest eigenvalue of a pseudo-inertia, as a fraction of the prior's",
            max((eigenvalues[-1] for eigenvalues in relative), default=None),
            at_most=100.0,
            advice="a body is far from the prior: raise the weight of the prior, or correct the prior",
        ),
        diagnostic(
            "least friction coefficient, drive inertia or stiffness (SI)",
            min(coefficients) if coefficients else None,
            at_least=-1e-12,
            advice="the solution violates the physical-consistency constraints: raise the weight of the prior",
        ),
        diagnostic(
            "ratio of the sum of masses to the prior's",
            mass / prior_mass if prior_mass else None,
            at_least=0.2,
            at_most=5.0,
            advice="masses are far from the prior: raise the weight of the prior, or correct the prior",
        ),
        diagnostic(
            "solution of the solver itself (1), or of Newton's method from the prior (0)",
            solution.from_solver,
            at_least=1.0,
            advice=f"the solver failed ({solution.status}), and this is the best feasible solution that was found: "
            "raise the weight of the prior, or correct the prior",
        ),
        diagnostic(
            "relative decrease of the objective by a further Newton step",
            solution.decrement,
            at_most=1e-8,
            advice=f"the solver stopped early ({solution.status}): raise the weight of the prior, "
            "or record data with richer excitation",
        ),
        diagnostic(
            "smallest slope at a bound, relative to the largest",
            solution.multiplier,
            at_least=-1e-6,
            advice=f"a coefficient is held at zero although a positive value fits better (solver status: "
            f"{solution.status}): change the weight of the prior slightly",
        ),
        weight_diagnostic(result.trials, result.weight),
        diagnostic(
            "sum of the divergences from the prior",
            sum(divergence(cone.matrix(parameters), cone.matrix(prior)) for cone in inertial),
        ),
        diagnostic(
            "largest ratio of held-out RMSE to that of the unconstrained parameters",
            largest_loss(result.held_out, result.unconstrained.held_out),
            at_most=MAX_ERROR_RATIO,
            advice="consistent parameters predict worse than unconstrained ones: lower the smallest weight, or "
            "check the prior and the model",
        ),
    )
