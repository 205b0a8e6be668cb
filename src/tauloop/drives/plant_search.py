"""Fit unknown values of a drive line to measured criteria of its step responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
from scipy.optimize import differential_evolution, least_squares

from tauloop.common.errors import InputError, Problems, solving
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.options import NamedFields
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.drives.axis.sensitivity import SensitiveAxis, differentiable_names
from tauloop.drives.axis.simulation import LINE_INTEGRATOR, Axis, simulate_axis
from tauloop.drives.criteria import NAMES
from tauloop.drives.machine.lines import MOTORS
from tauloop.drives.tuning.evaluations import box_differences
from tauloop.integrate.integrators import Integrator

#: Observations determine a direction of the unknowns if the criteria change along the direction by
#: at least this number of tolerances (root of the sum of squares) over the whole range.
DETERMINED = 1.0
#: Residuals are clipped to this number of tolerances, so that a failed run does not dominate.
RESIDUAL_BOUND = 1e3
#: The description of a direction lists the unknowns whose component is not smaller than this.
MIN_LISTED_COMPONENT = 0.3
#: Step of finite differences in the local fit and for the undetermined directions, as a fraction of
#: the range.
RANGE_DIFFERENCE_STEP = 2e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation(NamedFields, ReprMixin):
    """One step of the reference, with the measured (or published) values of its criteria.

    Attributes:
        name: name in tables.
        parameters: values of parameters of the drive line in this step; a string is the name of an
            unknown.
        step: step of the reference, m or rad, or the name of an unknown.
        scales: divisors of criteria, by name; the cost is the sum of the criteria, each divided
            by its scale. Empty if no cost is given.
        measured: measured values by criterion; with scales also ``cost``.
        tolerances: tolerances of these values, in their units.
        held_out: whether the step only validates the fit and does not enter it.
        motors: how the motors are used in this step, as in `DriveOptions`; parameters that the line
            then does not have are ignored.
    """

    name: str
    parameters: Mapping[str, float | str]
    step: float | str
    measured: Mapping[str, float]
    tolerances: Mapping[str, float]
    scales: Mapping[str, float]
    weights = old_attribute("weights", "scales")
    printed = old_attribute("printed", "measured")
    held_out: bool = False
    motors: str = MOTORS[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantUnknown:
    """One unknown value to fit.

    Attributes:
        name: name of a parameter of the drive line (which then applies to all observations), or a
            string that an observation uses.
        lower, upper: limits of the value; positive if `logarithmic`.
        logarithmic: whether the range is searched on a logarithmic scale.
    """

    name: str
    lower: float
    upper: float
    logarithmic: bool = True

    def at(self, share: np.ndarray) -> np.ndarray:
        """Return the values (N,) at fractions (N,) of the range."""
        if self.logarithmic:
            return np.asarray(self.lower * (self.upper / self.lower) ** share)
        return np.asarray(self.lower + share * (self.upper - self.lower))

    def slope(self, share: float) -> float:
        """Return the derivative of the value with respect to the fraction of the range."""
        if self.logarithmic:
            return float(self.at(np.array(share))) * float(np.log(self.upper / self.lower))
        return self.upper - self.lower

    def share(self, value: float) -> float:
        """Return the position of a value in the range: 0 at the lower end, 1 at the upper end."""
        if self.logarithmic:
            return float(np.log(value / self.lower) / np.log(self.upper / self.lower))
        return (value - self.lower) / (self.upper - self.lower)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlantFit(ReprMixin):
    """Fitted values of the unknowns, and how well the observations determine them.

    Attributes:
        values: values of the unknowns, SI.
        shares: these values as fractions of their ranges, from 0 to 1 (n,).
        rows: (step, criterion, measured value, fitted value, held out) of every measured value.
        sensitivities: singular values of d(residual)/d(fraction of the range), largest first (n,):
            change of the criteria over the range along each direction, in tolerances.
        directions: the right singular vectors, one in each row (n, n).
        loss: sum(sqrt(1 + r^2) - 1) over the rows that are not held out, with the residuals r in
            tolerances.
        evaluations: number of parameter sets that the whole search evaluated.
    """

    values: Mapping[str, float]
    shares: np.ndarray
    rows: tuple[tuple[str, str, float, float, bool], ...]
    sensitivities: np.ndarray
    directions: np.ndarray
    loss: float
    evaluations: int

    @property
    def named_rows(self) -> list[dict[str, Any]]:
        """The rows as dictionaries with the names of their columns."""
        names = ("step", "criterion", "measured", "fitted", "held_out")
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    @property
    def undetermined(self) -> np.ndarray:
        """Directions (k, n) that the observations do not determine within the ranges."""
        return self.directions[self.sensitivities < DETERMINED]

    def named(self, direction: np.ndarray) -> str:
        """Return a description of a direction (n,): its large components with their unknowns."""
        largest = [
            k
            for k in np.argsort(-np.abs(direction), kind="stable")
            if abs(direction[k]) >= MIN_LISTED_COMPONENT
        ]
        names = tuple(self.values)
        return ", ".join(f"{direction[k]:+.2f} {names[k]}" for k in largest)


def predicted(
    axis: Axis,
    unknowns: Sequence[PlantUnknown],
    observations: Sequence[Observation],
    shares: np.ndarray,
    integrator: Integrator | None = None,
    known: Mapping[str, float] | None = None,
    *,
    signed: bool = False,
) -> np.ndarray:
    """Simulate N parameter sets in one batch and return the values (N, m) of all measured criteria.

    Args:
        axis: the compiled drive line.
        unknowns: the n unknowns.
        observations: the k observations, whose order the columns follow.
        shares: values of the unknowns as fractions of their ranges (N, n).
        integrator: integrator of the equations.
        known: values that are not fitted, by name of a parameter or of a string in an observation.
        signed: whether the overshoot of a response that does not overshoot is the negative of its
            final error, which a search can follow, instead of zero; only where an overshoot is
            measured.
    """
    values: dict[int, list[np.ndarray]] = {}
    for batch in _batches(axis, unknowns, observations, shares, known):
        runs = simulate_axis(
            batch.axis, batch.columns, step=batch.steps, integrator=integrator or LINE_INTEGRATOR
        )
        criteria = {
            name: getattr(runs, name).reshape(len(batch.indices), len(shares)) for name in NAMES
        }
        for row, k in enumerate(batch.indices):
            criteria_of_k = {name: rows[row] for name, rows in criteria.items()}
            if signed and observations[k].measured.get("overshoot", 0.0) > 0:
                overshoot = criteria_of_k["overshoot"]
                criteria_of_k["overshoot"] = np.where(
                    overshoot > 0, overshoot, -criteria_of_k["final_error"]
                )
            values[k] = _measured_criteria(observations[k], criteria_of_k)
    return np.stack([column for k in range(len(observations)) for column in values[k]], axis=1)


def slopes(
    axis: Axis,
    unknowns: Sequence[PlantUnknown],
    observations: Sequence[Observation],
    share: np.ndarray,
    integrator: Integrator | None = None,
    known: Mapping[str, float] | None = None,
    cache: dict[Axis, SensitiveAxis] | None = None,
) -> np.ndarray:
    """Return the derivatives (m, n) of measured criteria with respect to fractions of the ranges.

    The derivatives are forward sensitivities, computed in one batch for each setup of the motors.
    The overshoot is signed, as in `predicted` with `signed`. Some derivatives cannot be computed
    and are NaN: those with respect to an unknown step or to a parameter that scales the evaluated
    position, and those of criteria without sensitivities, such as the swing.

    Args:
        axis, unknowns, observations, integrator, known: as in `predicted`.
        share: values of the unknowns as fractions of their ranges (n,).
        cache: axes with derivatives, for the next call with the same unknowns and observations.
    """
    cache = {} if cache is None else cache
    rows: dict[int, list[np.ndarray]] = {}
    index = {unknown.name: j for j, unknown in enumerate(unknowns)}
    for batch in _batches(axis, unknowns, observations, share[None], known):
        differentiable = differentiable_names(batch.axis)
        dependent = {
            name
            for parameters in batch.parameters
            for name, value in parameters.items()
            if value in index
        }
        names = [name for name in batch.columns if name in differentiable and name in dependent]
        derivatives: Mapping[str, np.ndarray] = {}
        has_overshoot = np.ones(len(batch.indices), bool)
        if names:
            if batch.axis not in cache:
                cache[batch.axis] = SensitiveAxis(batch.axis.line, names, runs=axis.runs)
            gradients = cache[batch.axis].gradients(
                batch.columns, step=batch.steps, integrator=integrator
            )
            derivatives = gradients.gradients
            has_overshoot = gradients.criteria.overshoot > 0
        unavailable = np.full((len(batch.indices), len(names)), np.nan)
        for row, (k, parameters) in enumerate(zip(batch.indices, batch.parameters, strict=True)):
            # derivatives of the parameters with respect to the fractions of the ranges
            chain = np.zeros((len(names), len(unknowns)))
            for name, value in parameters.items():
                if value not in index:
                    continue
                j = index[str(value)]
                if name in names:
                    chain[names.index(name), j] += unknowns[j].slope(share[j])
                else:
                    chain[:, j] = np.nan
            if observations[k].step in index:
                chain[:, index[str(observations[k].step)]] = np.nan
            changes = {name: derivatives.get(name, unavailable)[row] @ chain for name in NAMES}
            if observations[k].measured.get("overshoot", 0.0) > 0 and not has_overshoot[row]:
                changes["overshoot"] = -changes["final_error"]
            rows[k] = _measured_criteria(observations[k], changes)
    return np.array([row for k in range(len(observations)) for row in rows[k]])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """Runs of N parameter sets in the observations that use the motors in the same way.

    Attributes:
        axis: axis with this setup of motors.
        indices: indices of these k observations among all.
        parameters: parameters of each of these observations: numbers, or names of values.
        columns: values (k N,) by parameter; the N values of an observation are consecutive.
        steps: steps of the reference (k N,).
    """

    axis: Axis
    indices: Sequence[int]
    parameters: Sequence[Mapping[str, float | str]]
    columns: Mapping[str, np.ndarray]
    steps: np.ndarray


def _batches(
    axis: Axis,
    unknowns: Sequence[PlantUnknown],
    observations: Sequence[Observation],
    shares: np.ndarray,
    known: Mapping[str, float] | None,
) -> Iterator[_Batch]:
    """Yield a batch of runs for each setup of the motors, at fractions (N, n) of the ranges."""
    values = {name: np.full(len(shares), value) for name, value in (known or {}).items()}
    values |= {
        unknown.name: unknown.at(column) for unknown, column in zip(unknowns, shares.T, strict=True)
    }

    def column(number_or_name: float | str) -> np.ndarray:
        if isinstance(number_or_name, str):
            return values[number_or_name]
        return np.full(len(shares), number_or_name)

    for motors in dict.fromkeys(observation.motors for observation in observations):
        axis_with_setup = axis.with_motors(motors)
        indices = [k for k, observation in enumerate(observations) if observation.motors == motors]
        # a value with the name of a parameter applies to all observations
        defaults: dict[str, float | str] = {name: name for name in values}
        parameters: list[dict[str, float | str]] = []
        for k in indices:
            row = defaults | dict(observations[k].parameters)
            parameters.append(
                {name: value for name, value in row.items() if name in axis_with_setup.names}
            )
        columns: dict[str, np.ndarray] = {}
        for name in sorted(set().union(*parameters)):
            nominal = axis_with_setup.line.parameters.values[name]
            columns[name] = np.concatenate([column(row.get(name, nominal)) for row in parameters])
        yield _Batch(
            axis=axis_with_setup,
            indices=indices,
            parameters=parameters,
            columns=columns,
            steps=np.concatenate([column(observations[k].step) for k in indices]),
        )


def _measured_criteria(
    observation: Observation, criteria: Mapping[str, np.ndarray]
) -> list[np.ndarray]:
    """Return the measured criteria of an observation, or their derivatives.

    Args:
        observation: the observation.
        criteria: all criteria, or their derivatives, by name.
    """
    scaled = [criteria[key] / scale for key, scale in observation.scales.items()]
    return [
        np.sum(scaled, axis=0) if name == "cost" else criteria[name]
        for name in observation.measured
    ]


@solving(InputError)
def search_plant(
    axis: Axis,
    unknowns: Sequence[PlantUnknown],
    observations: Sequence[Observation],
    *,
    seed: int,
    generations: int = 100,
    population: int = 60,
    polish: int = 50,
    start: np.ndarray | None = None,
    spread: float | None = None,
    integrator: Integrator | None = None,
    known: Mapping[str, float] | None = None,
    exact: bool = False,
    progress: Progress | None = None,
) -> PlantFit:
    """Fit unknown values to measured criteria by differential evolution, then by least squares.

    Source of differential evolution: Storn and Price 1997.

    Both searches minimize sum(sqrt(1 + r^2) - 1) with the residuals r in tolerances. A few values that
    cannot be reproduced do not dominate this loss. The local fit is SciPy's least_squares.

    Args:
        axis: the compiled drive line.
        unknowns: parameters and other values to fit, with their ranges.
        observations: steps with measured values; those held out are not fitted.
        seed: seed of the random numbers.
        generations, population: effort of the global search; with zero generations only the local
            fit, from the start.
        polish: maximum number of evaluations of the local fit.
        start: initial guess as fractions of the ranges (n,), a member of the first population;
            default: the middle of the ranges.
        spread: standard deviation of the first population about the start; default: a uniform
            distribution over the ranges.
        integrator: integrator of the equations.
        known: values that are not fitted, as in `predicted`.
        exact: whether the local fit uses exact gradients (`slopes`), with finite differences where
            there are none; otherwise finite differences only.
        progress: called with the work done and the total work.

    Returns:
        The best values, how well they reproduce the measured ones, and which directions of the
        unknowns remain undetermined.

    Raises:
        InputError: no unknown or no measured value, an invalid range, a measured value without a
            tolerance, or an unknown that nothing uses; all problems at once.
    """
    _require(axis, unknowns, observations, known)
    misfit = _PlantMisfit(axis, unknowns, observations, integrator, known, is_exact=exact)
    stages = Stages(progress, 3)
    best = np.full(len(unknowns), 0.5) if start is None else np.clip(start, 0.0, 1.0)
    if generations > 0:
        first = _first_population(best, seed, population, spread)
        best = _differential_evolution(misfit, first, seed, generations, stages)
    stages.done()
    evaluation = count(1)

    def residuals(share: np.ndarray) -> np.ndarray:
        stages.part(next(evaluation), polish)
        return misfit.residuals(share[None])[0]

    solution = least_squares(
        residuals,
        best,
        jac=misfit.jacobian,
        bounds=(0.0, 1.0),
        loss="soft_l1",
        max_nfev=polish,
    )
    stages.done()
    fit = assess_plant(axis, unknowns, observations, solution.x, integrator=integrator, known=known)
    stages.done()
    return replace(fit, evaluations=misfit.evaluations + 2 * len(unknowns) + 1)


class _PlantMisfit:
    """Differences of simulated criteria from the measured values that are fitted, in tolerances.

    Attributes:
        evaluations: number of parameter sets that were simulated.
    """

    def __init__(
        self,
        axis: Axis,
        unknowns: Sequence[PlantUnknown],
        observations: Sequence[Observation],
        integrator: Integrator | None,
        known: Mapping[str, float] | None,
        *,
        is_exact: bool,
    ) -> None:
        """Store the arguments, which are those of `search_plant`."""
        self.evaluations = 0
        self._axis = axis
        self._unknowns = unknowns
        self._integrator = integrator
        self._known = known
        self._is_exact = is_exact
        self._fitted = [item for item in observations if not item.held_out]
        self._measured = np.array(
            [value for item in self._fitted for value in item.measured.values()]
        )
        self._tolerances = np.array(
            [item.tolerances[name] for item in self._fitted for name in item.measured]
        )
        self._sensitive_axes: dict[Axis, SensitiveAxis] = {}

    def residuals(self, shares: np.ndarray) -> np.ndarray:
        """Return the residuals (N, m) at fractions (N, n) of the ranges."""
        self.evaluations += len(shares)
        criteria = predicted(
            self._axis,
            self._unknowns,
            self._fitted,
            shares,
            self._integrator,
            self._known,
            signed=True,
        )
        return np.clip(
            (criteria - self._measured) / self._tolerances, -RESIDUAL_BOUND, RESIDUAL_BOUND
        )

    def jacobian(self, share: np.ndarray) -> np.ndarray:
        """Return the derivatives (m, n) of the residuals at fractions (n,) of the ranges.

        They are exact if `is_exact` and available, otherwise finite differences.
        """
        J = np.full((len(self._measured), len(share)), np.nan)
        if self._is_exact:
            J = slopes(
                self._axis,
                self._unknowns,
                self._fitted,
                share,
                self._integrator,
                self._known,
                self._sensitive_axes,
            )
            J = J / self._tolerances[:, None]
        columns = np.flatnonzero(np.isnan(J).any(axis=0))

        def residuals_of_columns(values: np.ndarray) -> np.ndarray:
            shares = np.tile(share, (len(values), 1))
            shares[:, columns] = values
            return self.residuals(shares)

        if len(columns):
            differences = box_differences(
                residuals_of_columns, share[columns], RANGE_DIFFERENCE_STEP
            ).T
            J[:, columns] = np.where(np.isnan(J[:, columns]), differences, J[:, columns])
        return J


def _first_population(
    best: np.ndarray, seed: int, population: int, spread: float | None
) -> np.ndarray:
    """Return the first population (population, n) of the global search, which contains `best`.

    The other members are distributed uniformly over the ranges, or normally about `best` with the
    standard deviation `spread`.
    """
    generator = np.random.default_rng(seed)
    first = generator.random((population, len(best)))
    if spread is not None:
        first = np.clip(best + spread * generator.standard_normal(first.shape), 0.0, 1.0)
    first[0] = best
    return first


def _differential_evolution(
    misfit: _PlantMisfit, first: np.ndarray, seed: int, generations: int, stages: Stages
) -> np.ndarray:
    """Return the best parameter set (n,) that differential evolution finds from a population."""
    generation = count(1)

    def losses(shares: np.ndarray) -> np.ndarray:
        stages.part(next(generation), generations + 1)
        return _soft_l1_loss(misfit.residuals(shares.T))

    evolution = differential_evolution(
        losses,
        [(0.0, 1.0)] * first.shape[1],
        init=first,
        maxiter=generations,
        tol=0.0,
        mutation=(0.4, 0.9),
        recombination=0.8,
        rng=np.random.default_rng(seed),
        polish=False,
        vectorized=True,
        updating="deferred",
    )
    return np.asarray(evolution.x)


def assess_plant(
    axis: Axis,
    unknowns: Sequence[PlantUnknown],
    observations: Sequence[Observation],
    share: np.ndarray,
    *,
    integrator: Integrator | None = None,
    known: Mapping[str, float] | None = None,
) -> PlantFit:
    """Return the fit for given values of the unknowns, without a search.

    The result states how well the values reproduce the measured values, and which directions of the
    unknowns the measured values determine.

    Args:
        axis, unknowns, observations, integrator, known: as in `search_plant`.
        share: values of the unknowns as fractions of their ranges (n,).

    Raises:
        InputError: as in `search_plant`.
    """
    _require(axis, unknowns, observations, known)
    training = [observation for observation in observations if not observation.held_out]
    tolerances = np.array([item.tolerances[name] for item in training for name in item.measured])

    def criteria_in_tolerances(shares: np.ndarray) -> np.ndarray:
        return predicted(axis, unknowns, training, shares, integrator, known) / tolerances

    derivatives = box_differences(criteria_in_tolerances, share, RANGE_DIFFERENCE_STEP)
    _, singular_values, directions = np.linalg.svd(derivatives.T)
    sensitivities = np.zeros(len(share))  # zero for directions beyond the number of measured values
    sensitivities[: len(singular_values)] = singular_values[: len(share)]
    criteria = predicted(axis, unknowns, observations, share[None], integrator, known)[0]
    is_fitted = np.array([not item.held_out for item in observations for _ in item.measured])
    measured = np.array([value for item in training for value in item.measured.values()])
    names = [
        (item.name, name, value, item.held_out)
        for item in observations
        for name, value in item.measured.items()
    ]
    return PlantFit(
        values={
            item.name: float(item.at(fraction))
            for item, fraction in zip(unknowns, share, strict=True)
        },
        shares=share,
        rows=tuple(
            (row, name, value, float(predicted_value), held_out)
            for (row, name, value, held_out), predicted_value in zip(names, criteria, strict=True)
        ),
        sensitivities=sensitivities,
        directions=directions,
        loss=float(_soft_l1_loss(((criteria[is_fitted] - measured) / tolerances)[None])[0]),
        evaluations=2 * len(share) + 1,
    )


def _soft_l1_loss(residuals: np.ndarray) -> np.ndarray:
    """Return the soft L1 losses (N,) of residuals (N, m), which limit the effect of outliers."""
    clipped = np.clip(residuals, -RESIDUAL_BOUND, RESIDUAL_BOUND)
    return np.asarray(np.sum(np.sqrt(1.0 + clipped**2) - 1.0, axis=1))


def _require(
    axis: Axis,
    unknowns: Sequence[PlantUnknown],
    observations: Sequence[Observation],
    known: Mapping[str, float] | None,
) -> None:
    """Reject unknowns and observations that cannot be fitted.

    Raises:
        InputError: with all problems.
    """
    problems = Problems()
    if not unknowns:
        problems.add("unknowns", "are empty", "name the parameters to fit")
    if not any(item.measured and not item.held_out for item in observations):
        problems.add(
            "observations",
            "contain no measured value to fit",
            "give an observation with measured values that is not held out",
        )
    names_in_observations = {
        value
        for item in observations
        for value in (*item.parameters.values(), item.step)
        if isinstance(value, str)
    }
    names = [item.name for item in unknowns]
    for item in unknowns:
        if not (np.isfinite([item.lower, item.upper]).all() and item.lower < item.upper):
            what = f"ranges from {item.lower:g} to {item.upper:g}"
            problems.add(item.name, what, "give two finite numbers, the lower one first")
        elif item.logarithmic and item.lower <= 0:
            what = f"has a logarithmic range that starts at {item.lower:g}"
            problems.add(item.name, what, "start the range above zero, or use logarithmic=False")
        if item.name not in names_in_observations and item.name not in axis.names:
            remedy = f"name one of {', '.join(axis.names)}, or use it in an observation"
            problems.add(item.name, "is not used by the drive line or by an observation", remedy)
    for name in sorted(set(known or {}) & set(names)):
        problems.add(
            name,
            "is both a known value and an unknown",
            "remove it from the known values or from the unknowns",
        )
    for name in sorted(names_in_observations - set(names) - set(known or {})):
        problems.add(
            name,
            "is in an observation, but is not an unknown",
            "add it to the unknowns or to the known values",
        )
    for observation in observations:
        for name in observation.measured:
            if not observation.tolerances.get(name, 0.0) > 0:
                what = f"has the tolerance {observation.tolerances.get(name)} for {name}"
                problems.add(observation.name, what, "give a positive tolerance")
            if name not in NAMES and not (name == "cost" and observation.scales):
                what = f"has a measured value of {name}, which is not a criterion"
                problems.add(
                    observation.name, what, f"name one of {', '.join(NAMES)}, or cost with scales"
                )
    InputError.raise_if_any(problems)
