"""Expensive quantities of candidates at a few poses of the box: stiffness, modes, errors, loads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tauloop.common.errors import InputError, TauloopError
from tauloop.design.synthesis.actuator_scores import ActuatorScores, PreparedMotion
from tauloop.design.synthesis.evaluation import (
    UNKNOWN_VIOLATION,
    Scores,
    TaskEvaluator,
    signed,
)
from tauloop.design.synthesis.task import EXPENSIVE, ToolLoadCase
from tauloop.design.tolerances.tolerance_map import ToleranceMapOptions, tolerance_map
from tauloop.dynamics.joint_forces import joint_forces
from tauloop.elasticity import VibrationOptions, compliance_matrices, stiffness, vibration
from tauloop.mechanism.model import PLATFORM_JOINT
from tauloop.model import Model

#: Number of the hardest poses of the box, in addition to its center.
FEW_POSES = 8


class ExpensiveScores:
    """Scores of candidates with expensive quantities, for those that pass the cheap requirements.

    Attributes:
        wanted: names of the expensive quantities of the task.
        poses: poses (P, m) at which they are computed, in half widths of the box.
        evaluated: number of candidates for which they were computed.
        doubts: diagnostics outside their limits at the last candidate, in words.
        problem: why the last failed candidate could not be computed; "" if none failed.
    """

    def __init__(self, evaluator: TaskEvaluator, prepared: PreparedMotion | None = None) -> None:
        """Store the evaluator and the poses at which expensive quantities are computed.

        The quantities are computed once for the nominal machine at its reference pose.

        Raises:
            InputError: they are not defined for this machine, such as stiffness without elastic data.
        """
        self._evaluator, self._task = evaluator, evaluator.task
        task = self._task
        wanted = {r.quantity for r in task.requirements} | {o.quantity for o in task.objectives}
        self.actuators = ActuatorScores(evaluator, prepared)
        self._own = tuple(name for name in EXPENSIVE if name in wanted)
        self.wanted = (*self.actuators.wanted, *self._own)
        grid = evaluator.poses
        self.poses = np.concatenate([grid[:FEW_POSES], np.zeros((1, grid.shape[1]))])
        self.evaluated = 0
        self.doubts: list[str] = []
        self.problem = ""
        model = task.model
        if self._own:
            here = np.atleast_2d(model.platform_position(model.assembly.q))
            self._worst(model, here, here - evaluator.base_positions(np.zeros_like(self.poses[:1])))

    def __call__(self, x: np.ndarray) -> Scores:
        """Return scores of candidates (N, d); expensive ones only where the cheap ones suffice."""
        scores = self._evaluator.scores(x, leaves_early=True)
        return scores if not self.wanted else self.complete(x, scores)

    def complete(self, x: np.ndarray, scores: Scores, at_most: float = 0.0) -> Scores:
        """Return scores with the expensive quantities of candidates of small enough violation."""
        values = {name: np.full(len(x), np.nan) for name in self.wanted}
        passes = scores.worst <= at_most
        for name, numbers in self.actuators.values(x[passes]).items():
            values[name][passes] = numbers
        for candidate in np.flatnonzero(passes & self._actuators_pass(values)):
            for name, value in self._own_quantities(x[candidate]).items():
                values[name][candidate] = value
        violations, objectives = scores.violations.copy(), scores.objectives.copy()
        for i, requirement in enumerate(self._task.requirements):
            if requirement.quantity in values:
                violation = requirement.violation(values[requirement.quantity])
                known = np.where(np.isfinite(violation), violation, UNKNOWN_VIOLATION)
                violations[passes, i] = known[passes]
        for k, objective in enumerate(self._task.objectives):
            if objective.quantity in values:
                objectives[:, k] = signed(objective, values[objective.quantity])
        return replace(
            scores,
            values={**scores.values, **values},
            violations=violations,
            objectives=objectives,
        )

    def _actuators_pass(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return whether candidates (N,) meet the requirements of their actuators."""
        passes = np.ones(len(next(iter(values.values()))), dtype=bool)
        for requirement in self._task.requirements:
            if requirement.quantity in self.actuators.wanted:
                passes &= requirement.violation(values[requirement.quantity]) <= 0.0
        return passes

    def quantities(self, x: np.ndarray) -> Mapping[str, float]:
        """Return the worst expensive quantities over the poses of a candidate (d,), SI.

        A candidate that cannot be computed has quantities of NaN.
        """
        of_actuators = self.actuators.values(x[None])
        return {name: float(v[0]) for name, v in of_actuators.items()} | dict(
            self._own_quantities(x)
        )

    def _own_quantities(self, x: np.ndarray) -> Mapping[str, float]:
        """Return the quantities that are computed candidate by candidate."""
        if not self._own:
            return {}
        self.evaluated += 1
        task = self._task
        positions = self._evaluator.base_positions(self.poses) + self._evaluator.shifts(x[None])
        try:
            model = Model(task.model.mechanism.with_values(task.values(x)))
            return self._worst(model, positions, self._evaluator.shifts(x[None]))
        except TauloopError as error:
            self.problem = str(error.problems[0])
            return dict.fromkeys(self._own, np.nan)

    def _worst(self, model: Model, positions: np.ndarray, shift: np.ndarray) -> dict[str, float]:
        """Return the worst quantities of a machine over positions, and store their doubts.

        Args:
            model: the machine.
            positions: positions (P, p).
            shift: displacement (1, p) to the center of the box.
        """
        result: dict[str, float] = {}
        self.doubts = []
        if "stiffness" in self._own:
            elastic = stiffness(model, positions)
            result["stiffness"] = float(elastic.worst_translational.min())
            self.doubts += [f"stiffness: {line}" for line in elastic.advice]
        if "first_mode" in self._own:
            modes = vibration(model, positions, VibrationOptions(count=1))
            result["first_mode"] = float(modes.frequency[:, 0].min())
            self.doubts += [f"first mode: {line}" for line in modes.advice]
        if "accuracy" in self._own:
            stated: Any = dict(self._task.tolerances)
            errors = tolerance_map(model, positions, ToleranceMapOptions(**stated))
            result["accuracy"] = float(errors.worst_distance.max())
            self.doubts += [f"accuracy: {line}" for line in errors.advice]
        cases = [(load.wrench, self._loaded(load, positions, shift)) for load in self._task.loads]
        if "deflection" in self._own:
            result["deflection"] = max(largest_deflection(model, *case) for case in cases)
        if "joint_force" in self._own:
            cases.append((np.zeros(6), positions))
            result["joint_force"] = max(largest_joint_force(model, *case) for case in cases)
        return result

    def _loaded(self, load: ToolLoadCase, positions: np.ndarray, shift: np.ndarray) -> np.ndarray:
        """Return the positions (P, p) at which a load case acts."""
        if load.offset is None:
            return positions
        return self._evaluator.positions_at(load.offset) + shift


def largest_deflection(model: Model, wrench: np.ndarray, positions: np.ndarray) -> float:
    """Return the largest displacement (m) of the tool under a wrench (6,) alone at positions (P, p)."""
    twist = compliance_matrices(model, positions) @ wrench
    return float(np.linalg.norm(twist[:, :3], axis=1).max())


def largest_joint_force(model: Model, wrench: np.ndarray, positions: np.ndarray) -> float:
    """Return the largest force (N) in a joint or rod end at rest, under weight and a wrench (6,).

    A component that rigid bodies do not determine counts as zero.

    Raises:
        InputError: joints of the machine carry the tool in a chain, whose forces in joints lack the
            wrench.
    """
    is_virtual = any(joint.name == PLATFORM_JOINT for joint in model.mechanism.joints)
    if wrench.any() and not is_virtual:
        what = f"the tool of {model.mechanism.name} is carried by a chain of joints"
        raise InputError.of("joint_force", what, "leave out loads or joint_force")
    still = np.zeros((len(positions), model.platform.ports.velocity.size))
    load = np.tile(wrench, (len(positions), 1))
    forces = model.platform.inverse_dynamics(positions, still, still, wrench=load)
    joints = joint_forces(model, np.arange(float(len(positions))), forces)
    # the virtual joint of the platform carries the wrench in this balance
    chosen = [k for k, point in enumerate(joints.points) if point.name != PLATFORM_JOINT]
    return float(np.linalg.norm(np.nan_to_num(joints.wrench[:, chosen, :3]), axis=-1).max())
