"""Expensive quantities of candidates: stiffness, first mode and accuracy at a few poses of the box."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tauloop.common.errors import TauloopError
from tauloop.design.synthesis.evaluation import (
    UNKNOWN_VIOLATION,
    Scores,
    TaskEvaluator,
    signed,
)
from tauloop.design.synthesis.task import EXPENSIVE
from tauloop.design.tolerances.tolerance_map import ToleranceMapOptions, tolerance_map
from tauloop.elasticity import VibrationOptions, stiffness, vibration
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

    def __init__(self, evaluator: TaskEvaluator) -> None:
        """Store the evaluator and the poses at which expensive quantities are computed.

        The quantities are computed once for the nominal machine at its reference pose.

        Raises:
            InputError: they are not defined for this machine, such as stiffness without elastic data.
        """
        self._evaluator, self._task = evaluator, evaluator.task
        task = self._task
        wanted = {r.quantity for r in task.requirements} | {o.quantity for o in task.objectives}
        self.wanted = tuple(name for name in EXPENSIVE if name in wanted)
        grid = evaluator.poses
        self.poses = np.concatenate([grid[:FEW_POSES], np.zeros((1, grid.shape[1]))])
        self.evaluated = 0
        self.doubts: list[str] = []
        self.problem = ""
        model = task.model
        self._worst(model, model.platform_position(model.assembly.q))

    def __call__(self, x: np.ndarray) -> Scores:
        """Return scores of candidates (N, d); expensive ones only where the cheap ones suffice."""
        scores = self._evaluator.scores(x, leaves_early=True)
        return scores if not self.wanted else self.complete(x, scores)

    def complete(self, x: np.ndarray, scores: Scores) -> Scores:
        """Return scores with the expensive quantities of candidates that have no violation."""
        values = {name: np.full(len(x), np.nan) for name in self.wanted}
        passes = scores.worst <= 0.0
        for candidate in np.flatnonzero(passes):
            for name, value in self.quantities(x[candidate]).items():
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

    def quantities(self, x: np.ndarray) -> Mapping[str, float]:
        """Return the worst expensive quantities over the poses of a candidate (d,), SI.

        A candidate that cannot be computed has quantities of NaN.
        """
        self.evaluated += 1
        task = self._task
        positions = self._evaluator.base_positions(self.poses) + self._evaluator.shifts(x[None])
        try:
            model = Model(task.model.mechanism.with_values(task.values(x)))
            return self._worst(model, positions)
        except TauloopError as error:
            self.problem = str(error.problems[0])
            return dict.fromkeys(self.wanted, np.nan)

    def _worst(self, model: Model, positions: np.ndarray) -> dict[str, float]:
        """Return the worst quantities of a machine over positions, and store their doubts."""
        result: dict[str, float] = {}
        self.doubts = []
        if "stiffness" in self.wanted:
            elastic = stiffness(model, positions)
            result["stiffness"] = float(elastic.worst_translational.min())
            self.doubts += [f"stiffness: {line}" for line in elastic.advice]
        if "first_mode" in self.wanted:
            modes = vibration(model, positions, VibrationOptions(count=1))
            result["first_mode"] = float(modes.frequency[:, 0].min())
            self.doubts += [f"first mode: {line}" for line in modes.advice]
        if "accuracy" in self.wanted:
            stated: Any = dict(self._task.tolerances)
            errors = tolerance_map(model, positions, ToleranceMapOptions(**stated))
            result["accuracy"] = float(errors.worst_distance.max())
            self.doubts += [f"accuracy: {line}" for line in errors.advice]
        return result
