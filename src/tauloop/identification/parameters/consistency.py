"""Physically consistent identification: all standard parameters, inside their cones, drawn to a prior from CAD.

Source: Wensing, Kim and Slotine 2018, Linear matrix inequalities for physically consistent inertial
parameter identification.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import ClassVar

import numpy as np
from scipy.linalg import eigh

from tauloop.common.datasets import Variable, rows
from tauloop.common.errors import IdentificationError, Problems, solving
from tauloop.common.options import option, require
from tauloop.common.plain import OMITTED, in_json
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, plain, provenance
from tauloop.identification.estimation.estimators import WeightedLeastSquares
from tauloop.identification.estimation.evaluation import OutputFit, judge_both, largest_loss
from tauloop.identification.estimation.fitting import fit
from tauloop.identification.estimation.result import Identification
from tauloop.identification.parameters.cones import (
    Cone,
    Regularisation,
    RegularisedBody,
    divergence,
    regularised,
)
from tauloop.identification.parameters.lmi import ConicProblem, ConicSolution, solve_conic
from tauloop.identification.parameters.prior_weight import (
    WeightTrial,
    chosen_weight,
    weight_diagnostic,
    widened,
)
from tauloop.identification.regression.data import RegressionData, split

FORMAT = "tauloop-consistent-identification/1"
#: An unknown of which the data can determine less than this share is the prior's.
PRIOR_ALONE = 0.01
#: Held-out error beside that of the unconstrained parameters, of the worst output.
LARGEST_LOSS = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicallyConsistent:
    """How physically consistent parameters are found.

    Attributes:
        weights: weights of the prior that are tried; the misfit counts as the mean square of
            residuals over noise. The one with the least error on a validation part of the training
            data is chosen (see `chosen_weight`). Where that is the first or the last of several,
            `WIDENING` decades beyond it are tried too; one at the end of those is a finding.
        validation_share: share at the end of the training data that chooses the weight, where there
            are no groups of samples for it; the held-out data do not.
        regularisation: what singular bodies of the prior are given.
        reweightings: of the unconstrained fit that the outputs' noise is taken from.
    """

    weights: tuple[float, ...] = option(
        tuple(float(w) for w in np.logspace(-6.0, 2.0, 9)),
        above=0.0,
        below=np.inf,
        remedy="give positive weights: without a prior masses run away at equal errors",
    )
    validation_share: float = option(0.3, above=0.0, below=1.0)
    regularisation: Regularisation = field(default_factory=Regularisation)
    reweightings: int = 3

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        require(self, IdentificationError)
        if not self.weights:
            raise IdentificationError.of(
                "PhysicallyConsistent.weights", "are none", "give at least one, above zero"
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConsistentIdentification(Result):
    """All standard parameters, such as a real machine can have.

    Attributes:
        parameters: (n_p,) values of the regressor's columns, SI.
        prior: (n_p,) values they were drawn to, after regularisation.
        regressor_parameters, units, outputs: names and units of the regressor's columns, names of
            its rows.
        unknowns, values: names and values of the unknowns; the columns themselves where there were
            no ties.
        data_share: (n,) share of each unknown that the data determine at the chosen weight.
        reachable_share: (n,) the same as the weight goes to zero: what these data can tell of it at
            all.
        prior_alone: unknowns of which the data cannot tell even one hundredth; the prior alone
            determines them.
        prior_directions: one unknown for each direction that the prior alone determines: moving it,
            with the base parameters as they are, changes no force.
        held: unknowns without effect and without prior, which keep the prior's value.
        regularised: bodies of the prior that were singular.
        at_bound: coefficients that are zero because they would be negative.
        weight, trials: the prior's weight, and how it was chosen.
        cones: the cones.
        solver_status: what the solver said.
        training, held_out: fit of every measured output.
        unconstrained: the base parameters of the same data without cones or prior.
    """

    json_format: ClassVar[str] = FORMAT
    parameters: np.ndarray = field(metadata=OMITTED)
    prior: np.ndarray = field(metadata=OMITTED)
    regressor_parameters: tuple[str, ...] = field(metadata=OMITTED)
    units: tuple[str, ...] = field(metadata=OMITTED)
    outputs: tuple[str, ...] = field(metadata=OMITTED)
    unknowns: tuple[str, ...] = field(metadata=OMITTED)
    values: np.ndarray = field(metadata=OMITTED)
    data_share: np.ndarray = field(metadata=OMITTED)
    reachable_share: np.ndarray = field(metadata=OMITTED)
    prior_alone: tuple[str, ...]
    prior_directions: tuple[str, ...]
    held: tuple[str, ...]
    regularised: tuple[RegularisedBody, ...]
    at_bound: tuple[str, ...]
    weight: float
    trials: tuple[WeightTrial, ...]
    cones: tuple[Cone, ...] = field(metadata=OMITTED)
    solver_status: str
    training: tuple[OutputFit, ...]
    held_out: tuple[OutputFit, ...]
    unconstrained: Identification

    def variables(self) -> Iterator[Variable]:
        """All standard parameters beside those that they were drawn to."""
        return rows(
            "parameter",
            self.regressor_parameters,
            self.units,
            value=self.parameters,
            prior=self.prior,
        )

    @property
    @in_json()
    def masses(self) -> dict[str, float]:
        """Mass of every body and part, kg."""
        return {cone.element: cone.mass(self.parameters) for cone in self.cones if cone.is_inertial}

    def predict(self, regressor: np.ndarray) -> np.ndarray:
        """Forces (N, n_out), SI, from a regressor (N, n_out, n_p)."""
        return np.asarray(np.asarray(regressor, dtype=float) @ self.parameters)

    @property
    @in_json("regressor_parameters")
    def named_parameters(self) -> dict[str, float]:
        """Values of the regressor's columns by name."""
        return dict(zip(self.regressor_parameters, self.parameters, strict=True))

    @property
    @in_json("prior")
    def named_prior(self) -> dict[str, float]:
        """Values that they were drawn to, by name."""
        return dict(zip(self.regressor_parameters, self.prior, strict=True))

    @property
    @in_json("data_share")
    def named_data_share(self) -> dict[str, float]:
        """Share that the data determine at the chosen weight, by unknown."""
        return dict(zip(self.unknowns, self.data_share, strict=True))

    @property
    @in_json("reachable_share")
    def named_reachable_share(self) -> dict[str, float]:
        """The same as the weight goes to zero."""
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
    """Identify all standard parameters inside their cones.

    Minimises the mean square of residuals over noise, halved, plus weight times the sum of D(P_b |
    P_b0) over bodies and rods b, with friction, drive inertia and stiffness not negative (Lee,
    Wensing and Park 2020, Geometric robot dynamic identification: a convex programming approach).
    The data enter by their triangle only.

    Args:
        training: samples to estimate from; a part of them chooses the weight.
        held_out: samples to judge by.
        cones: of the regressor's columns, `cones(model.parameters)`.
        prior: (n_p,) parameters from CAD, `model.pi`; singular bodies are regularised and named.
            Columns that were added behind those of the machine (`with_columns`) have none and need
            not be in it.
        options: weights and regularisation.
        groups: (N,) label of every training sample, such as the number of its log. Then every group
            is left out once, and the weight has the least error on those left out. Repetitions of
            one motion belong into one group: a motion that was fitted chooses the weight by its
            noise alone.

    Raises:
        IdentificationError: the data cannot support the identification, the prior has no use, or
            the solver fails.
    """
    options = options or PhysicallyConsistent()
    cones = tuple(cones)
    prior = _checked_prior(training, cones, prior)
    unconstrained = fit(training, held_out, WeightedLeastSquares(reweightings=options.reweightings))
    prior, changed = regularised(prior, cones, options.regularisation)
    whitening = unconstrained.estimate.weights
    parts, left_out = _parts(training, options, groups)
    sizes = np.array([len(part) for part in parts])
    triangles = [_whitened(part.triangles, whitening, len(part)) for part in parts]

    def validated(weights: Sequence[float]) -> tuple[WeightTrial, ...]:
        squares = np.zeros(len(weights))
        for k in left_out:
            others = np.arange(len(parts)) != k
            problem, held = _problem(
                training, _together(triangles, np.where(others, sizes, 0)), cones, prior
            )
            errors = [
                np.linalg.norm(
                    triangles[k] @ [*_all_values(training, problem, solution, held), -1.0]
                )
                for solution in solve_conic(problem, weights)
            ]
            squares += sizes[k] / sizes[left_out].sum() * np.square(errors)
        return tuple(
            WeightTrial(weight=float(weight), validation_error=float(error))
            for weight, error in zip(weights, np.sqrt(squares), strict=True)
        )

    trials = widened(validated, sorted(options.weights))
    weight = chosen_weight(trials)
    problem, held = _problem(training, _together(triangles, sizes), cones, prior)
    (solution,) = solve_conic(problem, (weight,))
    parameters = problem.ties_matrix @ solution.unknowns + problem.ties_offset
    training_fit, held_out_fit = judge_both(training, held_out, parameters)
    unknowns, values = training.unknowns, _all_values(training, problem, solution, held)
    share, reachable = (
        _with_held(x, held, len(unknowns)) for x in (solution.data_share, solution.reachable_share)
    )
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
            name for name, part in zip(unknowns, reachable, strict=True) if part < PRIOR_ALONE
        ),
        prior_directions=tuple(np.delete(unknowns, unconstrained.base.independent).tolist()),
        held=tuple(unknowns[j] for j in held),
        regularised=changed,
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
                "parts_left_out_for_the_weight": len(left_out),
                "outputs": training.outputs,
                "unknowns": len(unknowns),
                "cones": len(cones),
            },
        ),
    )
    return replace(result, diagnostics=_diagnostics(result, solution))


def _checked_prior(
    training: RegressionData, cones: tuple[Cone, ...], prior: np.ndarray
) -> np.ndarray:
    """The prior of all columns: zero for those behind the machine's own, which no cone needs."""
    count = len(training.parameters)
    problems = Problems()
    prior = np.asarray(prior, dtype=float)
    if prior.ndim == 1 and 0 < len(prior) < count and _is_of_machine(training, cones, len(prior)):
        prior = np.append(prior, np.zeros(count - len(prior)))
    if np.shape(prior) != (count,) or not np.isfinite(prior).all():
        what = f"has shape {np.shape(prior)} or numbers that are not finite"
        problems.add(
            "prior", what, f"give {count} finite values, one for each column of the regressor"
        )
    if (
        not any(cone.is_inertial for cone in cones)
        or max(cone.columns.max() for cone in cones) >= count
    ):
        what = f"{len(cones)} cones do not suit a regressor of {count} columns"
        problems.add(
            "cones", what, "take cones(model.parameters) of the model that made the regressor"
        )
    IdentificationError.raise_if_any(problems)
    return prior


def _is_of_machine(training: RegressionData, cones: tuple[Cone, ...], count: int) -> bool:
    """Whether the cones are of the first columns by their names, and reach the last inertia among them."""
    if not cones or max(cone.columns.max() for cone in cones) >= count:
        return False
    elements = [cone.element.removesuffix(" (upper part)") for cone in cones]
    names = [training.parameters[cone.columns[0]] for cone in cones]
    return all(name.startswith(element) for name, element in zip(names, elements, strict=True))


def _whitened(triangles: np.ndarray, weights: np.ndarray, samples: int) -> np.ndarray:
    """One triangle (n + 1, n + 1) of all outputs; its squared misfit is the mean square of residuals over noise."""
    rows = (weights[:, None, None] * triangles).reshape(-1, triangles.shape[-1])
    return np.asarray(np.linalg.qr(rows, mode="r")) / np.sqrt(samples * len(triangles))


def _parts(
    training: RegressionData, options: PhysicallyConsistent, groups: np.ndarray | None
) -> tuple[list[RegressionData], list[int]]:
    """Parts of the training data, and which of them are left out in turn to choose the weight."""
    if groups is None:
        return list(split(training, 1.0 - options.validation_share)), [1]
    labels = np.unique(groups)
    if np.shape(groups) != (len(training),) or len(labels) < 2:
        what = f"has shape {np.shape(groups)} and {len(labels)} labels for {len(training)} training samples"
        remedy = "give a label for each sample, and two or more groups; leave it out to validate by the last samples"
        raise IdentificationError.of("groups", what, remedy)
    return [training.part(np.flatnonzero(groups == label)) for label in labels], list(
        range(len(labels))
    )


def _together(triangles: Sequence[np.ndarray], sizes: np.ndarray) -> np.ndarray:
    """One triangle of several parts, each counted by its number of samples."""
    shares = np.sqrt(sizes / sizes.sum())
    return np.concatenate(
        [share * part for share, part in zip(shares, triangles, strict=True) if share > 0.0]
    )


def _problem(
    data: RegressionData, triangle: np.ndarray, cones: tuple[Cone, ...], prior: np.ndarray
) -> tuple[ConicProblem, np.ndarray]:
    """The problem over the unknowns that the data or the prior determine; the numbers of the others, which are held."""
    count, size = len(data.parameters), len(data.unknowns)
    matrix, offset = data.relations.matrix, np.asarray(data.relations.offset)
    inertial = np.zeros(count, dtype=bool)
    sizes = np.zeros(count)
    for cone in cones:
        if cone.is_inertial:
            inertial[cone.columns] = True
            spread = np.sqrt(np.diag(cone.matrix(prior)))
            sizes[cone.columns] = np.abs(cone.basis @ spread @ spread) + np.einsum(
                "jab,a,b->j", np.abs(cone.basis), spread, spread
            )
    norms = np.linalg.norm(triangle[:, :size], axis=0)
    has_prior = (np.abs(matrix) > 0.0)[inertial].any(axis=0)
    held = np.flatnonzero(~has_prior & (norms <= 1e-10 * norms.max()))
    free = np.setdiff1d(np.arange(size), held)
    known = np.linalg.lstsq(matrix, prior - offset)[0][held] if len(held) else np.zeros(0)
    with np.errstate(divide="ignore"):
        by_prior = np.min(
            np.where(
                np.abs(matrix) > 0.0,
                np.where(inertial, sizes, np.inf)[:, None] / np.abs(matrix),
                np.inf,
            ),
            axis=0,
        )
        scale = np.where(has_prior, by_prior, 1.0 / norms)
    return ConicProblem(
        matrix=triangle[:, free],
        right=triangle[:, size] - triangle[:, held] @ known,
        ties_matrix=matrix[:, free],
        ties_offset=offset + matrix[:, held] @ known,
        cones=cones,
        prior=prior,
        scale=scale[free],
    ), held


def _with_held(shares: np.ndarray, held: np.ndarray, size: int) -> np.ndarray:
    """Shares (n,) of all unknowns; zero for those that are held."""
    whole = np.zeros(size)
    whole[np.setdiff1d(np.arange(size), held)] = shares
    return whole


def _all_values(
    data: RegressionData, problem: ConicProblem, solution: ConicSolution, held: np.ndarray
) -> np.ndarray:
    """Values of all unknowns, with those that are held."""
    parameters = problem.ties_matrix @ solution.unknowns + problem.ties_offset
    if data.ties is None:
        return parameters
    values = np.linalg.lstsq(data.ties.matrix, parameters - np.asarray(data.ties.offset))[0]
    values[np.setdiff1d(np.arange(len(values)), held)] = solution.unknowns
    return np.asarray(values)


def _diagnostics(
    result: ConsistentIdentification, solution: ConicSolution
) -> tuple[Diagnostic, ...]:
    parameters, prior = result.parameters, result.prior
    inertial = [cone for cone in result.cones if cone.is_inertial]
    relative = [
        eigh(cone.matrix(parameters), cone.matrix(prior), eigvals_only=True) for cone in inertial
    ]
    numbers = [float(parameters[cone.columns[0]]) for cone in result.cones if not cone.is_inertial]
    return (
        diagnostic(
            "least eigenvalue of a pseudo-inertia, as a share of the prior's",
            min(sizes[0] for sizes in relative),
            at_least=0.0,
            advice="a body is not one that can exist: raise the weight of the prior",
        ),
        diagnostic(
            "largest eigenvalue of a pseudo-inertia, as a share of the prior's",
            max(sizes[-1] for sizes in relative),
            at_most=100.0,
            advice="a body ran away from the prior: raise the weight of the prior, or correct the prior",
        ),
        diagnostic(
            "least friction coefficient, drive inertia or stiffness (SI)",
            min(numbers) if numbers else None,
            at_least=-1e-12,
            advice="the solver left the cone",
        ),
        diagnostic(
            "sum of masses beside the prior's",
            sum(cone.mass(parameters) for cone in inertial)
            / sum(cone.mass(prior) for cone in inertial),
            at_least=0.2,
            at_most=5.0,
            advice="masses ran away: raise the weight of the prior, or correct the prior",
        ),
        diagnostic(
            "solution of the solver itself (1), or of Newton's method from the prior (0)",
            solution.from_solver,
            at_least=1.0,
            advice=f"the solver failed ({solution.status}): this is the best feasible set that was reached",
        ),
        diagnostic(
            "what a further Newton step would gain, as a share of the objective",
            solution.decrement,
            at_most=1e-8,
            advice=f"the solver stopped early ({solution.status})",
        ),
        diagnostic(
            "least slope at a bound, as a share of the largest",
            solution.multiplier,
            at_least=-1e-6,
            advice=f"a coefficient is held at zero wrongly; the solver said: {solution.status}",
        ),
        weight_diagnostic(result.trials, result.weight),
        diagnostic(
            "sum of the divergences from the prior",
            sum(divergence(cone.matrix(parameters), cone.matrix(prior)) for cone in inertial),
        ),
        diagnostic(
            "largest ratio of held-out RMSE to that of the unconstrained parameters",
            largest_loss(result.held_out, result.unconstrained.held_out),
            at_most=LARGEST_LOSS,
            advice="consistent parameters predict worse: lower the least weight, or look at the prior and the model",
        ),
    )
