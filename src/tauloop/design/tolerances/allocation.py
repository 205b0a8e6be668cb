"""Tolerances of least cost with which the error of the tool stays within limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from tauloop.common.datasets import (
    channels,
    dimension,
    numbered,
    quantity_over,
    several,
)
from tauloop.common.errors import InputError, PoseError, solving
from tauloop.common.keywords import keywords
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, provenance
from tauloop.design.tolerances.allocation_problem import (
    AllocationProblem,
    LimitsExceeded,
    ToleranceAllocationOptions,
    allocation_problem,
    without_calibration,
)
from tauloop.design.tolerances.error_equations import Array
from tauloop.design.tolerances.tolerance_map import ToleranceMap, tolerance_map
from tauloop.elasticity.machine.poses import PoseInput
from tauloop.elasticity.static_analysis.stiffness import DIRECTIONS, TWIST_UNITS
from tauloop.model.model import MachineSource

#: Largest violation of a limit by the exact error of a solution, as a fraction of the limit.
MAX_VIOLATION = 1e-9
#: Relative change of the limits for the sensitivity of the cost.
LIMIT_STEP = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ToleranceAllocation(Result):
    """Tolerances of least cost.

    Attributes:
        map: errors of the tool due to the chosen tolerances.
        names: the m parameters whose tolerances are chosen.
        tolerances: (m,) chosen deviations ±t, m or rad.
        chosen_grades: (m,) standard grade of each; 0 where the tolerance is continuous, and -k for
            the k-th of the user's own choices, from the coarsest on.
        calibrated: tolerances of the parameters that a calibration corrects, m or rad.
        cost: cost of the chosen tolerances, including those of the calibrated parameters.
        stated_cost: cost of the stated tolerances.
        uncalibrated_cost: cost of the best choice without a calibration; infinite if no choice
            satisfies the limits. The calibration saves the difference from `cost`.
        lower_bound: lower bound of the cost: the optimum over continuous tolerances.
        error: (N, 6) largest error of the tool with the chosen tolerances, m and rad.
        limits: (6,) limits; infinite where none is stated.
        tighter_cost, looser_cost: cost if all limits were 5 % tighter, or looser; infinite if no
            choice satisfies them.
        active: texts on the active limits: directions and numbers of poses.
    """

    map: ToleranceMap = field(metadata=json_keys(machine="model.mechanism.name"))
    names: tuple[str, ...] = field(metadata=dimension("parameter"))
    tolerances: np.ndarray = field(metadata=quantity_over("parameter", name="tolerance"))
    chosen_grades: np.ndarray = field(metadata=quantity_over("parameter", name="grade", unit="1"))
    calibrated: dict[str, float]
    cost: float
    stated_cost: float
    uncalibrated_cost: float = field(metadata=json_keys(nullable=True))
    lower_bound: float
    error: np.ndarray = field(
        metadata=OMITTED
        | several(numbered("pose"), channels("pose", names=DIRECTIONS, units=TWIST_UNITS))
    )
    limits: np.ndarray = field(metadata=json_keys(nullable=True))
    tighter_cost: float = field(metadata=json_keys(nullable=True))
    looser_cost: float
    active: tuple[str, ...]

    @property
    @in_json()
    def largest_error(self) -> np.ndarray:
        """Largest error (6,) in each direction over all poses, m and rad."""
        return np.asarray(self.error.max(axis=0))

    @property
    @in_json()
    def saving(self) -> float:
        """Cost that the calibration saves; infinite if the limits cannot be met without it."""
        return self.uncalibrated_cost - self.cost

    @property
    @in_json()
    def cost_sensitivity(self) -> float:
        """Relative change of the cost per relative change of all limits.

        With -2, limits that are 1 % tighter increase the cost by 2 %. It is a central difference over
        limits that are 5 % tighter and looser; infinite if no choice satisfies the tighter limits.
        """
        return (self.looser_cost - self.tighter_cost) / (2.0 * LIMIT_STEP * self.cost)


@keywords(ToleranceAllocationOptions)
@solving(PoseError)
def allocate_tolerances(
    machine: MachineSource,
    poses: PoseInput = None,
    options: ToleranceAllocationOptions | None = None,
) -> ToleranceAllocation:
    """Return the tolerances of least cost with which the tool's error stays within limits.

    The cost Σ cᵢ t₀ᵢ / tᵢ is minimized subject to Σ |sᵢ| tᵢ <= limit for each direction and pose. Here tᵢ
    are the tolerances, t₀ᵢ the stated tolerances, cᵢ their costs, and sᵢ the errors of the tool per unit
    of tᵢ. Continuous tolerances follow from the dual problem, whose value is a lower bound. Grades are
    chosen by mixed-integer programming. If redundant loops couple the errors, the sum is an upper bound.

    The errors of encoders, clearances, heat and loads are constant, and reduce the limits. A parameter
    has the same tolerance in all parts. Calibrated parameters contribute three standard deviations of
    their estimates. Other errors contribute their full effect, including their effect on the estimates.
    Source: Boyd, Vandenberghe 2004, Convex Optimization, section 5.1 (the dual function).

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        poses: as in `tolerance_map`.
        options: limits, grades, costs, and sources of error.

    Raises:
        InputError: no limit is given, a name, unit or value is wrong, or no choice satisfies the limits.
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
    problem = allocation_problem(machine, poses, options)
    chosen, cost, lower_bound = problem.least_cost()
    if chosen is None:
        raise _no_choice(problem)
    uncalibrated = cost
    if problem.calibrated:
        uncalibrated = _cost_without_calibration(machine, poses, options)
    tolerances = dict(zip(problem.names, map(float, chosen), strict=True))
    errors = tolerance_map(machine, poses, replace(options.sources, tolerances=tolerances))
    error = problem.fixed + np.einsum("ndm,m->nd", problem.per_unit, chosen)
    return ToleranceAllocation(
        map=errors,
        names=problem.names,
        tolerances=chosen,
        chosen_grades=_grades_of(chosen, problem.menu),
        calibrated=problem.calibrated,
        cost=cost,
        stated_cost=problem.stated_cost,
        uncalibrated_cost=uncalibrated,
        lower_bound=lower_bound,
        error=error,
        limits=problem.limits,
        tighter_cost=problem.least_cost(1.0 - LIMIT_STEP)[1],
        looser_cost=problem.least_cost(1.0 + LIMIT_STEP)[1],
        active=tuple(_active(error, problem.limits)),
        diagnostics=(
            *errors.diagnostics,
            diagnostic(
                "largest error beyond its limit, fraction of the limit",
                float((error / problem.limits - 1.0).max()),
                at_most=MAX_VIOLATION,
                advice="report this as a bug in Tauloop",
            ),
            diagnostic("relative optimality gap of the cost", cost / lower_bound - 1.0),
        ),
        provenance=provenance(
            options={"grades": list(options.grades)},
            inputs={"machine": errors.model.mechanism.name, "poses": len(error)},
        ),
    )


def _cost_without_calibration(
    machine: MachineSource, poses: PoseInput, options: ToleranceAllocationOptions
) -> float:
    """Return the least cost without the calibration; infinite if no choice satisfies the limits."""
    try:
        problem = allocation_problem(machine, poses, without_calibration(options))
    except LimitsExceeded:
        return np.inf
    return problem.least_cost()[1]


def _no_choice(problem: AllocationProblem) -> InputError:
    """Return the error that states which limit the finest grades exceed, and by which factor."""
    finest = np.array([min(item.values()) for item in problem.menu])
    excess = np.einsum("ndm,m->nd", problem.per_unit, finest) / problem.budget
    pose, axis = np.unravel_index(int(excess.argmax()), excess.shape)
    what = (
        f"{DIRECTIONS[axis]}: the finest grades cause {excess[pose, axis]:.3g} times the error that "
        f"the limit allows at pose {pose + 1}"
    )
    return InputError.of("limits", what, "widen the limit, or add finer grades or choices")


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
    """Yield the directions in which the error reaches 99.9 % of the limit, with the pose."""
    for axis in np.flatnonzero(np.isfinite(limits)):
        pose = int(error[:, axis].argmax())
        fraction = error[pose, axis] / limits[axis]
        if fraction >= 0.999:
            yield f"{DIRECTIONS[axis]} at pose {pose + 1}"
