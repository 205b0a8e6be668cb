"""The problem of allocating tolerances: parameters, their effects, costs and limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.options import Options, listed, option
from tauloop.common.records import dataclass
from tauloop.design.tolerances.allocation_programs import (
    ContinuousAllocation,
    continuous_allocation,
    graded_allocation,
)
from tauloop.design.tolerances.calibrated import CalibratedEffects, calibrated_effects
from tauloop.design.tolerances.error_equations import Array
from tauloop.design.tolerances.grades import grade_tolerance
from tauloop.design.tolerances.sources import (
    AmountLists,
    Amounts,
    Candidate,
    amount_lists,
    amounts,
    geometric_candidates,
)
from tauloop.design.tolerances.tolerance_map import (
    ToleranceMap,
    ToleranceMapOptions,
    tolerance_map,
)
from tauloop.elasticity.machine.poses import PoseInput
from tauloop.elasticity.static_analysis.stiffness import DIRECTIONS
from tauloop.mechanism.description import units
from tauloop.mechanism.suggestions import listing
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled

#: Directions in which errors can be limited, with their units.
LIMIT_CANDIDATES = tuple(
    Candidate(name=name, unit=unit)
    for name, unit in zip(DIRECTIONS, ("m",) * 3 + ("rad",) * 3, strict=True)
)
#: A limit bounds a tolerance if the effect of the stated tolerance is at least this fraction of it.
MIN_EFFECT = 1e-9
#: Coverage factor: the remaining error of calibrated parameters, in standard deviations.
COVERAGE = 3.0


def _grades_in(text: str) -> tuple[int, ...]:
    """Return grades from a text such as ``6,7,8`` or ``IT6,IT7``.

    Raises:
        InputError: a part is not a grade.
    """
    grades = []
    for part in listed(text):
        number = part.upper().removeprefix("IT")
        if not number.isdecimal():
            raise InputError.of(
                "grades", f"{part!r} is not a grade", "give IT grades, such as 6,7,8"
            )
        grades.append(int(number))
    return tuple(grades)


class LimitsExceeded(InputError):
    """Sources of error that the allocation does not choose exceed a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToleranceAllocationOptions(Options):
    """Limits of the tool's error, and the tolerances to choose from.

    Attributes:
        limits: largest errors of the tool along x, y, z (m) and about rx, ry, rz (rad), such as
            'x=50um'.
        grades: standard grades (ISO 286-1) to choose from for lengths, such as 5, 6, 7; without
            them, all tolerances are continuous.
        tolerance_choices: tolerances to choose from by parameter, by name or pattern, instead of
            standard grades, such as 'arm_length=20um/50um/0.1mm'.
        costs: cost c of each parameter by name or pattern; a tolerance t costs c t₀ / t, where t₀
            is its value in `tolerances`. 1 where not stated.
        calibrated: manufacturing tolerances of the parameters that a calibration corrects afterwards,
            such as '*_length=0.5mm'.
        noise: standard deviation of the positions of the tool that an instrument measures for the
            calibration, such as 20um.
        readings: number of random poses within the limits that the instrument measures.
        sources: tolerances t₀ of the parameters to choose, and other sources of error.

    Examples:
        >>> import tauloop as tl
        >>> tl.ToleranceAllocationOptions(limits={"x": "50 um"}, grades=(6, 7, 8)).grades
        (6, 7, 8)
    """

    limits: Amounts | None = option(None, read=str, metavar="VALUES")
    grades: tuple[int, ...] = option((), read=_grades_in, metavar="GRADES")
    tolerance_choices: AmountLists | None = option(None, read=str, metavar="NAME=VALUE/VALUE")
    costs: Amounts | None = option(None, read=str, metavar="VALUES")
    calibrated: Amounts | None = option(None, read=str, metavar="VALUES")
    noise: float | None = option(None, above=0.0, metavar="QUANTITY", unit=units.LENGTH)
    readings: int = option(30, least=1, most=100_000)
    sources: ToleranceMapOptions = field(default_factory=ToleranceMapOptions)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AllocationProblem:
    """Parameters whose tolerances are chosen, and the limits of the tool's error.

    Attributes:
        errors: errors of the tool due to the stated tolerances.
        names: names of the m parameters.
        start: stated tolerances (m,) of these parameters.
        costs: products (m,) of cost and tolerance.
        per_unit: (N, 6, m) errors per unit of each tolerance.
        fixed: (N, 6) errors due to other sources.
        limits: (6,) limits; infinite where none is stated.
        menu: tolerances to choose from by grade, for each parameter; empty for continuous tolerances.
        calibrated: tolerances of parameters that a calibration corrects.
        calibrated_cost: cost of these tolerances.
        stated_cost: cost of all stated tolerances.
    """

    errors: ToleranceMap
    names: tuple[str, ...]
    start: Array
    costs: Array
    per_unit: Array
    fixed: Array
    limits: Array
    menu: tuple[dict[int, float], ...]
    calibrated: dict[str, float]
    calibrated_cost: float
    stated_cost: float

    @property
    def budget(self) -> Array:
        """Limits minus the errors due to other sources (N, 6)."""
        return np.asarray(self.limits - self.fixed)

    def least_cost(self, factor: float = 1.0) -> tuple[Array | None, float, float]:
        """Return the tolerances (m,) of least cost, this cost, and a lower bound of the cost.

        Args:
            factor: factor by which all limits are multiplied.

        Returns:
            None and infinite costs if no choice satisfies the limits.
        """
        budget = factor * self.limits - self.fixed
        if not (budget > 0.0).all():
            return None, np.inf, np.inf
        rows, remaining = constraints(self.per_unit, budget)
        bound = continuous_allocation(rows, remaining, self.costs)
        chosen, cost = _chosen(rows, remaining, self.costs, self.menu, bound)
        return chosen, cost + self.calibrated_cost, bound.lower_bound + self.calibrated_cost


def allocation_problem(
    machine: MachineSource, poses: PoseInput, options: ToleranceAllocationOptions
) -> AllocationProblem:
    """Return the problem of an allocation.

    Raises:
        InputError: no limit is given, a name, unit or value is wrong, or other sources exceed a limit.
    """
    model = modeled(machine)
    errors = tolerance_map(model, poses, options.sources)
    limits = _limits(options)
    calibrated = _calibrated(model, options)
    all_names = _parameters(errors)
    without_tolerance = [name for name in calibrated if name not in all_names]
    if without_tolerance:
        what = f"{listing(without_tolerance)} has no stated tolerance"
        remedy = "state it in `tolerances` too, because it defines the cost"
        raise InputError.of("calibrated", what, remedy)
    names = tuple(name for name in all_names if name not in calibrated)
    if not names:
        remedy = "state tolerances of other parameters, such as tolerances={'*': '0.1 mm'}"
        raise InputError.of("calibrated", "no parameter is left to choose", remedy)
    effects = None
    if calibrated and options.noise is not None:
        effects = calibrated_effects(
            model, poses, options.sources, calibrated, options.noise, options.readings
        )
    per_unit, fixed = _effects(errors, names, effects)
    start = np.array([_tolerance(errors, name) for name in names])
    by_name = _costs(options, all_names)
    costs = np.array([by_name[name] for name in names]) * start
    _require_budget(errors, limits - fixed, fixed, limits)
    rows, remaining = constraints(per_unit, limits - fixed)
    _require_bounded(names, rows * start, remaining)
    calibrated_costs = [
        by_name[name] * _tolerance(errors, name) / t for name, t in calibrated.items()
    ]
    return AllocationProblem(
        errors=errors,
        names=names,
        start=start,
        costs=costs,
        per_unit=per_unit,
        fixed=fixed,
        limits=limits,
        menu=_menu(errors, names, start, options.grades, _choices(model, options, names)),
        calibrated=calibrated,
        calibrated_cost=float(sum(calibrated_costs)),
        stated_cost=float(sum(by_name.values())),
    )


def _calibrated(model: Model, options: ToleranceAllocationOptions) -> dict[str, float]:
    """Return the tolerances of calibrated parameters by name.

    Raises:
        InputError: a name or value is wrong, or the instrument's noise is missing.
    """
    problems = Problems()
    candidates = geometric_candidates(model.assembly.mechanism)
    calibrated = amounts("calibrated", options.calibrated, candidates, problems)
    for name, value in calibrated.items():
        if value == 0.0:
            problems.add("calibrated", f"{name} is zero", "give the manufacturing tolerance")
    if calibrated and options.noise is None:
        problems.add("noise", "is not given", "state the noise of the instrument, such as '20 um'")
    if options.noise is not None and not calibrated and not problems:
        remedy = "state calibrated parameters, such as '*_length=0.5mm', or omit `noise`"
        problems.add("calibrated", "names no parameter", remedy)
    InputError.raise_if_any(problems)
    return calibrated


def without_calibration(options: ToleranceAllocationOptions) -> ToleranceAllocationOptions:
    """Return the options of the same allocation without a calibration."""
    return replace(options, calibrated=None, noise=None)


def _limits(options: ToleranceAllocationOptions) -> Array:
    """Return the limits (6,); infinite where none is stated.

    Raises:
        InputError: none is stated, or a name, unit or value is wrong.
    """
    problems = Problems()
    stated = amounts("limits", options.limits, LIMIT_CANDIDATES, problems)
    if not stated and not problems:
        problems.add("limits", "no limit is given", "give a limit, such as limits={'x': '50 um'}")
    for name, value in stated.items():
        if value == 0.0:
            problems.add("limits", f"{name} is zero", "give a positive limit")
    InputError.raise_if_any(problems)
    return np.array([stated.get(name, np.inf) for name in DIRECTIONS])


def _costs(options: ToleranceAllocationOptions, names: Sequence[str]) -> dict[str, float]:
    """Return the costs of the stated tolerances by name.

    Raises:
        InputError: a name or value is wrong.
    """
    problems = Problems()
    candidates = [Candidate(name=name, unit="1") for name in names]
    stated = amounts("costs", options.costs, candidates, problems)
    for name, value in stated.items():
        if value == 0.0:
            problems.add("costs", f"{name} is zero", "give a positive cost")
    InputError.raise_if_any(problems)
    return {name: stated.get(name, 1.0) for name in names}


def _parameters(errors: ToleranceMap) -> tuple[str, ...]:
    """Return the parameters whose tolerances are stated.

    Raises:
        InputError: there is none.
    """
    owners = [
        source.partition("@")[0]
        for source, kind in zip(errors.sources, errors.kinds, strict=True)
        if kind == "parameter"
    ]
    if not owners:
        remedy = "state the tolerances to choose, such as tolerances={'*': '0.1 mm'}"
        raise InputError.of("tolerances", "no tolerance of a parameter is given", remedy)
    return tuple(dict.fromkeys(owners))


def _effects(
    errors: ToleranceMap, names: Sequence[str], effects: CalibratedEffects | None
) -> tuple[Array, Array]:
    """Return the errors (N, 6, m) per unit of the tolerances, and due to other sources (N, 6)."""
    per_unit = np.zeros((*errors.worst.shape, len(names)))
    fixed = np.zeros(errors.worst.shape)
    if effects is not None:
        fixed += COVERAGE * effects.deviation
    for i, (source, kind) in enumerate(zip(errors.sources, errors.kinds, strict=True)):
        contribution = errors.contributions[:, :, i]
        if effects is not None and source in effects.per_unit:
            contribution = effects.per_unit[source] * errors.tolerances[i]
        owner = source.partition("@")[0]
        if kind == "parameter" and owner in names:
            per_unit[:, :, names.index(owner)] += contribution / errors.tolerances[i]
        elif kind != "parameter":
            fixed += contribution
    return per_unit, fixed


def _tolerance(errors: ToleranceMap, name: str) -> float:
    """Return the stated tolerance of a parameter."""
    owners = [source.partition("@")[0] for source in errors.sources]
    return float(errors.tolerances[owners.index(name)])


def _require_budget(errors: ToleranceMap, budget: Array, fixed: Array, limits: Array) -> None:
    """Check that other sources alone do not exceed a limit.

    Raises:
        LimitsExceeded: a limit is exceeded.
    """
    if (budget > 0.0).all():
        return
    pose, axis = np.unravel_index(int(budget.argmin()), budget.shape)
    what = (
        f"{DIRECTIONS[axis]}: encoders, clearances, heat and loads alone cause "
        f"{fixed[pose, axis]:.4g} at pose {pose + 1}, and the limit is {limits[axis]:.4g}"
    )
    raise LimitsExceeded.of("limits", what, "widen the limit, or reduce these sources")


def _require_bounded(names: Sequence[str], effects: Array, limits: Array) -> None:
    """Check that each tolerance is bounded by a limit.

    Args:
        names: names of the m parameters.
        effects: errors (r, m) due to the stated tolerances, in the limited directions.
        limits: limits (r,).

    Raises:
        InputError: a parameter has no effect in the limited directions.
    """
    fractions = (effects / limits[:, None]).max(axis=0, initial=0.0)
    unbounded = [
        name for name, fraction in zip(names, fractions, strict=True) if fraction < MIN_EFFECT
    ]
    if unbounded:
        what = f"no limit bounds {listing(unbounded)}: no error in the limited directions"
        raise InputError.of(
            "limits", what, "add a limit in another direction, or omit these tolerances"
        )


def constraints(per_unit: Array, budget: Array) -> tuple[Array, Array]:
    """Return the rows A (r, m) and limits b (r,) of all poses and limited directions."""
    is_limited = np.isfinite(budget)
    rows = per_unit[is_limited]
    limits = budget[is_limited]
    has_effect = (rows > 0.0).any(axis=1)
    return rows[has_effect], limits[has_effect]


def _choices(
    model: Model, options: ToleranceAllocationOptions, names: Sequence[str]
) -> dict[str, tuple[float, ...]]:
    """Return the user's own tolerances to choose from by name, m or rad.

    Raises:
        InputError: a name or value is wrong, or a parameter has neither grades nor choices.
    """
    problems = Problems()
    candidates = geometric_candidates(model.assembly.mechanism)
    choices = amount_lists("tolerance_choices", options.tolerance_choices, candidates, problems)
    not_chosen = [name for name in choices if name not in names]
    if not_chosen and not problems:
        what = f"{listing(not_chosen)} is not a parameter of the allocation"
        problems.add("tolerance_choices", what, "state its tolerance in `tolerances`")
    without_choices = [name for name in names if name not in choices]
    if choices and without_choices and not options.grades:
        what = f"{listing(without_choices)} has neither choices nor grades"
        problems.add("tolerance_choices", what, "give choices for all parameters, or grades")
    InputError.raise_if_any(problems)
    return choices


def _menu(
    errors: ToleranceMap,
    names: Sequence[str],
    start: Array,
    grades: Sequence[int],
    choices: Mapping[str, Sequence[float]],
) -> tuple[dict[int, float], ...]:
    """Return the tolerances to choose from by grade, for each parameter.

    The user's own tolerances have the grades -1, -2, ..., from the coarsest on. A parameter without
    choices that is not a length keeps its stated tolerance, as grade 0. Without grades and choices the
    tuple is empty.
    """
    if not grades and not choices:
        return ()
    units = dict(zip((s.partition("@")[0] for s in errors.sources), errors.units, strict=True))
    values = errors.model.mechanism.parameters.values
    result: list[dict[int, float]] = []
    for name, tolerance in zip(names, start, strict=True):
        if name in choices:
            result.append({-1 - i: value for i, value in enumerate(choices[name])})
        elif units[name] == "m":
            result.append({grade: grade_tolerance(values[name], grade) for grade in grades})
        else:
            result.append({0: float(tolerance)})
    return tuple(result)


def _chosen(
    rows: Array,
    limits: Array,
    costs: Array,
    menu: tuple[dict[int, float], ...],
    bound: ContinuousAllocation,
) -> tuple[Array | None, float]:
    """Return the tolerances (m,) and their cost; None if no choice satisfies the limits."""
    if not menu:
        return bound.tolerances, bound.cost
    return graded_allocation(rows, limits, costs, [[*item.values()] for item in menu])
