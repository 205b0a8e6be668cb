"""Choice of tolerances at least cost, such that the tool keeps its limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from tauloop.common.datasets import Variable, columns
from tauloop.common.errors import InputError, PoseError, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, provenance
from tauloop.design.tolerances.error_equations import Array
from tauloop.design.tolerances.grades import grade_tolerance
from tauloop.design.tolerances.sources import Amounts, Candidate, amounts
from tauloop.design.tolerances.tolerance_map import (
    ToleranceMap,
    ToleranceMapOptions,
    tolerance_map,
)
from tauloop.elasticity.machine.poses import PoseInput
from tauloop.elasticity.static_analysis.stiffness import DIRECTIONS
from tauloop.mechanism.suggestions import listing
from tauloop.model.model import MachineSource

#: Directions in which errors can be limited, with their units.
LIMITED = tuple(
    Candidate(name=name, unit=unit)
    for name, unit in zip(DIRECTIONS, ("m",) * 3 + ("rad",) * 3, strict=True)
)
#: Largest violation of a limit by the exact error of a solution, as a fraction of the limit.
MAX_VIOLATION = 1e-9
#: Smallest effect of a stated tolerance that bounds it, as a fraction of the limit.
MIN_EFFECT = 1e-9
#: Step of the limits for the sensitivity of the cost.
LIMIT_STEP = 0.05
#: Relative gap between cost and lower bound at which the search for grades stops.
GAP = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class ToleranceAllocationOptions(Options):
    """Limits of the tool's error, and the tolerances to choose from.

    Attributes:
        limits: largest error along ``x``, ``y``, ``z`` (m) and about ``rx``, ``ry``, ``rz`` (rad).
        grades: standard grades (ISO 286-1) to choose from for lengths, such as 5, 6, 7; without
            them, all tolerances are continuous.
        costs: cost c of each parameter by name or pattern; a tolerance t costs c t₀ / t, where t₀
            is its value in `tolerances`. 1 where not stated.
        sources: tolerances t₀ of the parameters to choose, and other sources of error.

    Examples:
        >>> import tauloop as tl
        >>> tl.ToleranceAllocationOptions(limits={"x": "50 um"}, grades=(6, 7, 8)).grades
        (6, 7, 8)
    """

    limits: Amounts | None = option(None, read=str, metavar="VALUES")
    grades: tuple[int, ...] = option((), metavar="GRADES")
    costs: Amounts | None = option(None, read=str, metavar="VALUES")
    sources: ToleranceMapOptions = field(default_factory=ToleranceMapOptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToleranceAllocation(Result):
    """Tolerances at least cost.

    Attributes:
        map: errors of the tool by the chosen tolerances.
        names: the m parameters whose tolerances are chosen.
        tolerances: (m,) chosen deviations ±t, m or rad.
        chosen_grades: (m,) standard grade of each; 0 where the tolerance is continuous.
        cost: cost of the choice; that of the stated tolerances is `stated_cost`.
        stated_cost: cost of the stated tolerances.
        lower_bound: no choice costs less: the optimum over continuous tolerances.
        error: (N, 6) largest error of the tool with the chosen tolerances, m and rad.
        limits: (6,) limits; infinite where none is stated.
        tighter_cost, looser_cost: cost if all limits were 5 % tighter, or looser; infinite if no
            choice keeps them.
        active: directions and numbers of poses whose limits the choice uses fully, in words.
    """

    map: ToleranceMap = field(metadata=json_keys(machine="model.mechanism.name"))
    names: tuple[str, ...]
    tolerances: np.ndarray
    chosen_grades: np.ndarray
    cost: float
    stated_cost: float
    lower_bound: float
    error: np.ndarray = field(metadata=OMITTED)
    limits: np.ndarray = field(metadata=json_keys(nullable=True))
    tighter_cost: float = field(metadata=json_keys(nullable=True))
    looser_cost: float
    active: tuple[str, ...]

    @property
    @in_json()
    def largest_error(self) -> np.ndarray:
        """Largest error (6,) in each direction over all poses, m and rad."""
        return np.asarray(self.error.max(axis=0))

    def variables(self) -> Iterator[Variable]:
        """Return the tolerances, and the errors over the poses."""
        number = ("parameter",)
        yield Variable(name="parameter", values=np.array(self.names), over=number)
        yield Variable(name="tolerance", values=self.tolerances, unit="", over=number)
        yield Variable(name="grade", values=self.chosen_grades, unit="1", over=number)
        over = ("pose",)
        yield Variable(name="pose", values=np.arange(1, len(self.error) + 1), over=over)
        yield from columns("error", DIRECTIONS, ("m",) * 3 + ("rad",) * 3, self.error, over)


@keywords(ToleranceAllocationOptions)
@solving(PoseError)
def allocate_tolerances(
    machine: MachineSource,
    poses: PoseInput = None,
    options: ToleranceAllocationOptions | None = None,
) -> ToleranceAllocation:
    """Return the tolerances of least cost with which the tool's error stays within limits.

    Minimizes Σ cᵢ t₀ᵢ / tᵢ with Σ |sᵢ| tᵢ <= limit for each direction and pose. Continuous
    tolerances follow from the dual problem, whose value is a lower bound; grades are chosen by
    mixed-integer programming. Encoders, clearances, heat and loads keep their values, and use part
    of the limits. One tolerance of a parameter holds for all parts.
    Source: Boyd, Vandenberghe 2004, Convex Optimization, section 5.1 (the dual function).

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        poses: as in `tolerance_map`.
        options: limits, grades, costs, and sources of error.

    Raises:
        InputError: no limit is given, a name, unit or value is wrong, or no choice keeps the limits.
        PoseError: a pose is out of reach or singular.

    Examples:
        >>> import tauloop as tl
        >>> result = tl.allocate_tolerances(
        ...     "delta",
        ...     {"z": "-0.5 m"},
        ...     tolerances={"arm_length": "0.1 mm", "forearm_length": "0.1 mm"},
        ...     limits={"x": "0.1 mm"},
        ... )
        >>> result.names
        ('arm_length', 'forearm_length')
    """
    options = options or ToleranceAllocationOptions()
    errors = tolerance_map(machine, poses, options.sources)
    limits = _limits(options)
    names, per_unit, fixed = _by_parameter(errors)
    start = np.array([_tolerance(errors, name) for name in names])
    costs = _costs(options, names) * start
    budget = limits - fixed
    _require_budget(errors, budget, fixed, limits)
    rows, room = _constraints(per_unit, budget)
    _require_bounded(names, rows * start, room)
    menu = _menu(errors, names, start, options.grades)
    bound = continuous_allocation(rows, room, costs)
    chosen, cost = _chosen(rows, room, costs, menu, bound)
    if chosen is None:
        raise _nothing_fits(errors, per_unit, budget, menu)
    scaled = (1.0 - LIMIT_STEP, 1.0 + LIMIT_STEP)
    other = [_cost_at(per_unit, factor * limits - fixed, costs, menu) for factor in scaled]
    error = fixed + np.einsum("ndm,m->nd", per_unit, chosen)
    stated = dict(zip(names, map(float, chosen), strict=True))
    errors = tolerance_map(machine, poses, replace(options.sources, tolerances=stated))
    return ToleranceAllocation(
        map=errors,
        names=names,
        tolerances=chosen,
        chosen_grades=_grades_of(chosen, menu),
        cost=cost,
        stated_cost=float((costs / start).sum()),
        lower_bound=bound.lower_bound,
        error=error,
        limits=limits,
        tighter_cost=other[0],
        looser_cost=other[1],
        active=tuple(_active(error, limits)),
        diagnostics=(
            *errors.diagnostics,
            diagnostic(
                "largest error beyond its limit, fraction of the limit",
                float((error / limits - 1.0).max()),
                at_most=MAX_VIOLATION,
                advice="report this as a bug in Tauloop",
            ),
            diagnostic("cost above the lower bound, fraction", cost / bound.lower_bound - 1.0),
        ),
        provenance=provenance(
            options={"grades": list(options.grades)},
            inputs={"machine": errors.model.mechanism.name, "poses": len(error)},
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ContinuousAllocation:
    """Optimal continuous tolerances.

    Attributes:
        tolerances: (m,) feasible tolerances.
        cost: their cost.
        lower_bound: value of the dual function, which no choice undercuts.
        prices: (r,) decrease of the cost per unit of each limit.
    """

    tolerances: Array
    cost: float
    lower_bound: float
    prices: Array


def continuous_allocation(rows: Array, room: Array, costs: Array) -> ContinuousAllocation:
    """Return t > 0 that minimizes Σ kᵢ / tᵢ with A t <= b.

    The dual function is g(λ) = 2 Σ √(kᵢ (Aᵀλ)ᵢ) - bᵀλ, with tᵢ = √(kᵢ / (Aᵀλ)ᵢ).

    Args:
        rows: A (r, m), not negative, with an entry in each column.
        room: b (r,), positive.
        costs: k (m,), positive.
    """
    from scipy.optimize import minimize

    scale = rows / room[:, None]

    def negative_dual(price: Array) -> tuple[float, Array]:
        load = np.maximum(price @ scale, np.finfo(float).tiny)
        value = 2.0 * np.sqrt(costs * load).sum() - price.sum()
        gradient = scale @ np.sqrt(costs / load) - 1.0
        return -value, -gradient

    # One common price is the optimum of one common limit: a start in the right order of magnitude.
    start = np.full(len(room), np.sqrt(costs * scale.sum(axis=0)).sum() ** 2 / len(room) ** 2)
    solution = minimize(
        negative_dual,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * len(room),
        options={"maxiter": 5000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-12},
    )
    price = np.asarray(solution.x)
    load = np.maximum(price @ scale, np.finfo(float).tiny)
    tolerances = np.sqrt(costs / load)
    tolerances = tolerances / (scale @ tolerances).max()
    return ContinuousAllocation(
        tolerances=tolerances,
        cost=float((costs / tolerances).sum()),
        lower_bound=-float(solution.fun),
        prices=price / room,
    )


def _limits(options: ToleranceAllocationOptions) -> Array:
    """Return the limits (6,); infinite where none is stated.

    Raises:
        InputError: none is stated, or a name, unit or value is wrong.
    """
    problems = Problems()
    stated = amounts("limits", options.limits, LIMITED, problems)
    if not stated and not problems:
        problems.add("limits", "no limit is given", "state one, such as limits={'x': '50 um'}")
    for name, value in stated.items():
        if value == 0.0:
            problems.add("limits", f"{name} is zero", "give a positive limit")
    InputError.raise_if_any(problems)
    return np.array([stated.get(name, np.inf) for name in DIRECTIONS])


def _costs(options: ToleranceAllocationOptions, names: Sequence[str]) -> Array:
    """Return the costs (m,) of the stated tolerances.

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
    return np.array([stated.get(name, 1.0) for name in names])


def _by_parameter(errors: ToleranceMap) -> tuple[tuple[str, ...], Array, Array]:
    """Return the parameters, their errors (N, 6, m) per unit, and those of other sources (N, 6).

    Raises:
        InputError: no tolerance of a parameter is stated.
    """
    owners = [
        name.partition("@")[0] if kind == "parameter" and tolerance > 0.0 else ""
        for name, kind, tolerance in zip(
            errors.sources, errors.kinds, errors.tolerances, strict=True
        )
    ]
    names = tuple(dict.fromkeys(owner for owner in owners if owner))
    if not names:
        remedy = "state the tolerances to choose, such as tolerances={'*': '0.1 mm'}"
        raise InputError.of("tolerances", "none of a parameter is given", remedy)
    per_unit = np.zeros((*errors.worst.shape, len(names)))
    fixed = np.zeros(errors.worst.shape)
    for i, owner in enumerate(owners):
        if owner:
            share = errors.contributions[:, :, i] / errors.tolerances[i]
            per_unit[:, :, names.index(owner)] += share
        else:
            fixed += errors.contributions[:, :, i]
    return names, per_unit, fixed


def _tolerance(errors: ToleranceMap, name: str) -> float:
    """Return the stated tolerance of a parameter."""
    owners = [source.partition("@")[0] for source in errors.sources]
    return float(errors.tolerances[owners.index(name)])


def _require_budget(errors: ToleranceMap, budget: Array, fixed: Array, limits: Array) -> None:
    """Raise if other sources alone exceed a limit.

    Raises:
        InputError: they do.
    """
    if (budget > 0.0).all():
        return
    pose, axis = np.unravel_index(int(budget.argmin()), budget.shape)
    what = (
        f"{DIRECTIONS[axis]}: encoders, clearances, heat and loads alone cause "
        f"{fixed[pose, axis]:.4g} at pose {pose + 1}, and the limit is {limits[axis]:.4g}"
    )
    raise InputError.of("limits", what, "widen the limit, or reduce these sources")


def _require_bounded(names: Sequence[str], effects: Array, room: Array) -> None:
    """Raise if a limit does not bound each tolerance.

    Args:
        names: the parameters (m).
        effects: errors (r, m) by the stated tolerances, in the limited directions.
        room: limits (r,).

    Raises:
        InputError: a parameter has no effect in the limited directions.
    """
    share = (effects / room[:, None]).max(axis=0, initial=0.0)
    free = [name for name, largest in zip(names, share, strict=True) if largest < MIN_EFFECT]
    if free:
        what = f"no limit bounds {listing(free)}: no error in the limited directions"
        raise InputError.of(
            "limits", what, "limit another direction, or leave these tolerances out"
        )


def _constraints(per_unit: Array, budget: Array) -> tuple[Array, Array]:
    """Return the rows A (r, m) and limits b (r,) of all poses and limited directions."""
    is_limited = np.isfinite(budget)
    rows, room = per_unit[is_limited], budget[is_limited]
    has_effect = (rows > 0.0).any(axis=1)
    return rows[has_effect], room[has_effect]


def _menu(
    errors: ToleranceMap, names: Sequence[str], start: Array, grades: Sequence[int]
) -> tuple[dict[int, float], ...]:
    """Return the tolerances to choose from by grade, for each parameter.

    A parameter that is not a length keeps its stated tolerance, as grade 0. Without grades the
    tuple is empty.
    """
    if not grades:
        return ()
    units = dict(zip((s.partition("@")[0] for s in errors.sources), errors.units, strict=True))
    values = errors.model.mechanism.parameters.values
    result: list[dict[int, float]] = []
    for name, tolerance in zip(names, start, strict=True):
        if units[name] == "m":
            result.append({grade: grade_tolerance(values[name], grade) for grade in grades})
        else:
            result.append({0: float(tolerance)})
    return tuple(result)


def _chosen(
    rows: Array,
    room: Array,
    costs: Array,
    menu: tuple[dict[int, float], ...],
    bound: ContinuousAllocation,
) -> tuple[Array | None, float]:
    """Return the tolerances (m,) and their cost; None if no choice keeps the limits."""
    if not menu:
        return bound.tolerances, bound.cost
    return graded_allocation(rows, room, costs, [[*item.values()] for item in menu])


def graded_allocation(
    rows: Array, room: Array, costs: Array, menu: Sequence[Sequence[float]]
) -> tuple[Array | None, float]:
    """Return one tolerance (m,) of each menu with the least Σ kᵢ / tᵢ and A t <= b, and the cost.

    None and infinity if no choice keeps the limits.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    values = np.concatenate([np.asarray(item, dtype=float) for item in menu])
    owner = np.repeat(np.arange(len(menu)), [len(item) for item in menu])
    one_each = (owner[None] == np.arange(len(menu))[:, None]).astype(float)
    scaled = rows[:, owner] * values / room[:, None]
    solution = milp(
        costs[owner] / values,
        integrality=np.ones(len(values)),
        bounds=Bounds(0.0, 1.0),
        constraints=[
            LinearConstraint(scaled, -np.inf, 1.0),
            LinearConstraint(one_each, 1.0, 1.0),
        ],
        options={"mip_rel_gap": GAP},
    )
    if solution.x is None:
        return None, np.inf
    picked = [int(np.argmax(np.where(owner == i, solution.x, -1.0))) for i in range(len(menu))]
    chosen = values[picked]
    return chosen, float((costs / chosen).sum())


def _cost_at(
    per_unit: Array, budget: Array, costs: Array, menu: tuple[dict[int, float], ...]
) -> float:
    """Return the least cost within a budget; infinite if no choice keeps it."""
    if not (budget > 0.0).all():
        return np.inf
    rows, room = _constraints(per_unit, budget)
    bound = continuous_allocation(rows, room, costs)
    return _chosen(rows, room, costs, menu, bound)[1]


def _nothing_fits(
    errors: ToleranceMap, per_unit: Array, budget: Array, menu: tuple[dict[int, float], ...]
) -> InputError:
    """Return the refusal that states by how much the finest grades exceed which limit."""
    finest = np.array([min(item.values()) for item in menu])
    excess = np.einsum("ndm,m->nd", per_unit, finest) / budget
    pose, axis = np.unravel_index(int(excess.argmax()), excess.shape)
    what = (
        f"{DIRECTIONS[axis]}: the finest grades use {excess[pose, axis]:.3g} times what the limit "
        f"leaves at pose {pose + 1}"
    )
    return InputError.of("limits", what, "widen the limit, or add finer grades")


def _grades_of(chosen: Array, menu: Sequence[Mapping[int, float]]) -> np.ndarray:
    """Return the grade of each tolerance; 0 for continuous ones."""
    if not menu:
        return np.zeros(len(chosen), dtype=int)
    grades: list[int] = []
    for tolerance, item in zip(chosen, menu, strict=True):
        distance = {grade: abs(value - tolerance) for grade, value in item.items()}
        grades.append(min(distance, key=distance.__getitem__))
    return np.array(grades, dtype=int)


def _active(error: Array, limits: Array) -> Iterator[str]:
    """Yield the limits that are used to 99.9 %, with the pose of the largest error."""
    for axis in np.flatnonzero(np.isfinite(limits)):
        pose = int(error[:, axis].argmax())
        share = error[pose, axis] / limits[axis]
        if share >= 0.999:
            yield f"{DIRECTIONS[axis]} at pose {pose + 1}"
