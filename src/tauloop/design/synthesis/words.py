"""Texts on the requirements of a design: active and violated requirements, and their worst poses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.synthesis.elastic import ExpensiveScores
from tauloop.design.synthesis.evaluation import TaskEvaluator, WorstPose
from tauloop.design.synthesis.pose_measures import REACH
from tauloop.design.synthesis.task import RANGE, DesignRequirement, DesignVariable
from tauloop.mechanism.description.units import with_usual_unit

#: A requirement counts as active within this relative distance from its limit.
ACTIVE_TOLERANCE = 1e-3
#: A variable counts as at its bound within this fraction of its range.
BOUND_TOLERANCE = 1e-6
#: Step of neighbors, as a fraction of the range of a variable.
NEIGHBOR_STEP = 0.02


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RequirementState:
    """A requirement at a design.

    Attributes:
        requirement: requirement of the task whose state this is.
        value: the worst value of the quantity, SI.
        violation: relative violation at this value.
        text: text with the value, the limit and the pose.
    """

    requirement: DesignRequirement
    value: float
    violation: float
    text: str


def requirement_states(
    evaluator: TaskEvaluator, expensive: ExpensiveScores, x: np.ndarray
) -> tuple[RequirementState, ...]:
    """Return the states of all requirements of a design (d,), also between the poses of the grid."""
    task = evaluator.task
    worst: dict[str, WorstPose] = {}
    for item in evaluator.worst_poses(x, count=2):
        quantity = evaluator.quantities[item.column]
        for requirement in task.requirements:
            if requirement.quantity == quantity:
                previous = worst.get(requirement.name)
                if previous is None or _is_worse(requirement, item, previous):
                    worst[requirement.name] = item
    values = {name: float(number[0]) for name, number in evaluator.scores(x[None]).values.items()}
    if expensive.wanted:
        values |= expensive.quantities(x)
    states = []
    for requirement in task.requirements:
        worst_pose = worst.get(requirement.name)
        if worst_pose is None:
            value = values.get(requirement.quantity, np.nan)
        else:
            value = worst_pose.value
        violation = float(requirement.violation(np.array([value]))[0])
        text = _text(evaluator, requirement, value, worst_pose, x)
        states.append(
            RequirementState(requirement=requirement, value=value, violation=violation, text=text)
        )
    return tuple(states)


def _is_worse(requirement: DesignRequirement, item: WorstPose, other: WorstPose) -> bool:
    """Return whether the violation at a worst pose is larger than at another worst pose."""
    violations = requirement.violation(np.array([item.value, other.value]))
    return bool(violations[0] > violations[1])


def _text(
    evaluator: TaskEvaluator,
    requirement: DesignRequirement,
    value: float,
    item: WorstPose | None,
    x: np.ndarray,
) -> str:
    """Return a text with the value of a requirement, its limit and its worst pose."""
    where = "" if item is None else f" at {pose_text(evaluator, x, item.pose)}"
    if not np.isfinite(value):
        return f"{requirement.name} cannot be computed{where}"
    if requirement.quantity == REACH and item is not None:
        element = evaluator.columns[item.column].element
        distance = "beyond" if value > 0.0 else "from"
        percent = f"{100.0 * abs(value):.3g} %"
        return f"{element} is {percent} of its length {distance} the end of its reach{where}"
    if requirement.is_range:
        name = requirement.quantity.removeprefix(f"{RANGE} ")
        margin = requirement.scale - value
        state = "within" if margin >= 0.0 else "beyond"
        amount = with_usual_unit(abs(margin), requirement.unit)
        return f"{name} is {amount} {state} its range{where}"
    element = "" if item is None else evaluator.columns[item.column].element
    named = f" of {element}" if element else ""
    limit = with_usual_unit(requirement.limit, requirement.unit)
    kind = "at most" if requirement.is_upper else "at least"
    number = with_usual_unit(value, requirement.unit)
    return f"{requirement.name}{named} is {number} ({kind} {limit}){where}"


def pose_text(evaluator: TaskEvaluator, x: np.ndarray, pose: np.ndarray) -> str:
    """Return a pose (m,) of the box of a design as text."""
    task = evaluator.task
    values = task.centers(x[None])[0] + pose * task.half
    parts = []
    for i in np.flatnonzero(task.half > 0.0):
        name = task.axes.columns[i].rpartition(".")[2]
        parts.append(f"{name} = {with_usual_unit(float(values[i]), task.axes.units[i])}")
    return ", ".join(parts)


def active_texts(
    states: Sequence[RequirementState], variables: Sequence[DesignVariable], x: np.ndarray
) -> tuple[str, ...]:
    """Return texts on the active requirements and bounds of a design."""
    texts = [state.text for state in states if state.violation > -ACTIVE_TOLERANCE]
    for variable, value in zip(variables, x, strict=True):
        width = variable.upper - variable.lower
        for side, bound in (("lower", variable.lower), ("upper", variable.upper)):
            if abs(value - bound) <= BOUND_TOLERANCE * width:
                amount = f"{bound / variable.scale:.4g} {variable.unit}".strip()
                texts.append(f"{variable.name} is at its {side} bound, {amount}")
    return tuple(texts)
