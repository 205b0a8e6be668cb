"""Expensive quantities of candidates at a few poses of the box: stiffness, modes, errors, loads."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from tauloop.common.errors import InputError, PoseError, TauloopError
from tauloop.design.synthesis.actuator_scores import ActuatorScores, PreparedMotion
from tauloop.design.synthesis.evaluation import (
    FEASIBLE,
    UNKNOWN_VIOLATION,
    Scores,
    TaskEvaluator,
    signed,
)
from tauloop.design.synthesis.task import (
    ELASTIC,
    EXPENSIVE,
    ONE_BY_ONE,
    WITH_DIFFERENCES,
    ToolLoadCase,
)
from tauloop.design.tolerances.tolerance_map import ToleranceMapOptions, tolerance_map
from tauloop.dynamics.joint_forces import joint_forces
from tauloop.elasticity import VibrationOptions, compliance_matrices, stiffness, vibration
from tauloop.elasticity.static_analysis.batch_compliance import compliance_at, parametric_compliance
from tauloop.elasticity.vibrations.batch_modes import parametric_frequencies
from tauloop.elasticity.vibrations.machine_modes import machine_modes
from tauloop.mechanism.model import PLATFORM_JOINT
from tauloop.model import Model

#: Number of poses that are farthest from the center of the box; the center is used in addition.
FEW_POSES = 8
#: Number of frequencies at each pose that a local search bounds. The lowest frequency alone is not
#: smooth where it equals the next one.
LOCAL_MODES = 4
#: Number of principal stiffnesses at each pose that a local search bounds, because the lowest
#: stiffness alone is not smooth either.
LOCAL_STIFFNESSES = 3
#: Step of finite differences, relative to the widths of the bounds.
BOUND_DIFFERENCE_STEP = 1e-5


class ExpensiveScores:
    """Scores of candidates with expensive quantities, for those that pass the cheap requirements.

    Attributes:
        actuators: forces and speeds of the actuators.
        wanted: names of the expensive quantities of the task.
        elastic: names of the elastic quantities among them.
        differenced: names of the quantities that are differentiated by finite differences.
        poses: poses (P, m) at which the expensive quantities are computed, in half widths of the
            box.
        evaluated: number of candidates for which expensive quantities were computed.
        doubts: texts on diagnostics outside their limits at the last candidate.
        problem: reason why the last failed candidate could not be computed; "" if none failed.
    """

    def __init__(self, evaluator: TaskEvaluator, prepared: PreparedMotion | None = None) -> None:
        """Store the evaluator and the poses at which expensive quantities are computed.

        The quantities are computed once for the nominal machine at its reference pose.

        Raises:
            InputError: a quantity is not defined for this machine, such as stiffness without
                elastic data.
        """
        self._evaluator = evaluator
        self._task = evaluator.task
        task = self._task
        wanted = {r.quantity for r in task.requirements} | {o.quantity for o in task.objectives}
        self.actuators = ActuatorScores(evaluator, prepared)
        self.elastic = tuple(name for name in ELASTIC if name in wanted)
        self._one_by_one = tuple(name for name in ONE_BY_ONE if name in wanted)
        self._at_few_poses = tuple(name for name in EXPENSIVE if name in wanted)
        self.wanted = (*self.actuators.wanted, *self._at_few_poses)
        self.differenced = tuple(name for name in WITH_DIFFERENCES if name in self.wanted)
        grid = evaluator.poses
        self.poses = np.concatenate([grid[:FEW_POSES], np.zeros((1, grid.shape[1]))])
        self.evaluated = 0
        self.doubts: list[str] = []
        self.problem = ""
        model = task.model
        if self._at_few_poses:
            position = np.atleast_2d(model.platform_position(model.assembly.q))
            shift = position - evaluator.base_positions(np.zeros_like(self.poses[:1]))
            self._diagnosed(model, position, shift)

    def __call__(self, x: np.ndarray) -> Scores:
        """Return scores of candidates (N, d).

        Expensive quantities are computed only for candidates that meet the cheap requirements.
        """
        scores = self._evaluator.scores(x, leaves_early=True)
        return scores if not self.wanted else self.complete(x, scores)

    def complete(self, x: np.ndarray, scores: Scores) -> Scores:
        """Return scores with the expensive quantities of candidates that have no violation."""
        values = {name: np.full(len(x), np.nan) for name in self.wanted}
        passes = scores.worst <= FEASIBLE
        for name, worst in self.worst(x[passes]).items():
            values[name][passes] = worst
        violations = scores.violations.copy()
        objectives = scores.objectives.copy()
        for i, requirement in enumerate(self._task.requirements):
            if requirement.quantity in values:
                violation = requirement.violation(values[requirement.quantity])
                defined = np.where(np.isfinite(violation), violation, UNKNOWN_VIOLATION)
                violations[passes, i] = defined[passes]
        for k, objective in enumerate(self._task.objectives):
            if objective.quantity in values:
                objectives[:, k] = signed(objective, values[objective.quantity])
        return replace(
            scores,
            values={**scores.values, **values},
            violations=violations,
            objectives=objectives,
        )

    def worst(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return the worst expensive quantities (N,) of candidates (N, d), SI, without diagnostics.

        The quantities of actuators are computed first. The others are NaN for candidates that violate a
        requirement on actuators. A quantity that cannot be computed is NaN. The values of a candidate
        do not depend on other candidates.
        """
        result = {name: np.full(len(x), np.nan) for name in self.wanted} | self.actuators.values(x)
        if not self._at_few_poses:
            return result
        passes = self._actuators_pass(result, len(x))
        passing = x[passes]
        self.evaluated += len(passing)
        for name, rows in self._elastic_rows(passing, 1).items():
            result[name][passes] = rows.min(axis=1)
        if self._one_by_one:
            for candidate in np.flatnonzero(passes):
                for name, value in self._loads_and_errors_of(x[candidate]).items():
                    result[name][candidate] = value
        return result

    def _actuators_pass(self, values: Mapping[str, np.ndarray], count: int) -> np.ndarray:
        """Return whether candidates (N,) meet the requirements of their actuators."""
        passes = np.ones(count, dtype=bool)
        for requirement in self._task.requirements:
            if requirement.quantity in self.actuators.wanted:
                passes &= requirement.violation(values[requirement.quantity]) <= FEASIBLE
        return passes

    def local_rows(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return values (N, r) of each differenced quantity of candidates (N, d).

        The r values are principal stiffnesses or lowest frequencies at the poses, or forces or speeds
        of every actuator. The worst of them is the value of the quantity.
        """
        rows = self._elastic_rows(x, max(LOCAL_MODES, LOCAL_STIFFNESSES))
        if set(self.differenced) - set(self.elastic):
            for name, row in self.actuators.rows(x).items():
                if name in self.differenced:
                    rows[name] = row
        return rows

    def local_slopes(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return the derivatives (r, d) of `local_rows` of a candidate (d,), by finite differences.

        Steps are `BOUND_DIFFERENCE_STEP` times the widths of the bounds, away from the nearer bound.
        """
        lower, upper = self._task.bounds
        steps = BOUND_DIFFERENCE_STEP * (upper - lower)
        steps = np.where(x - lower > upper - x, -steps, steps)
        rows = self.local_rows(np.concatenate([x[None], x + np.diag(steps)]))
        return {name: ((row[1:] - row[0]) / steps[:, None]).T for name, row in rows.items()}

    def _elastic_rows(self, x: np.ndarray, count: int) -> dict[str, np.ndarray]:
        """Return the lowest stiffnesses and frequencies (N, P count) of candidates (N, d)."""
        if not self.elastic or not len(x):
            return {name: np.zeros((len(x), 1)) for name in self.elastic}
        poses = len(self.poses)
        shifts = np.repeat(self._evaluator.shifts(x), poses, axis=0)
        positions = np.tile(self._evaluator.base_positions(self.poses), (len(x), 1)) + shifts
        theta = np.repeat(self._task.theta(x), poses, axis=0)
        q = self._coordinates(positions, theta)
        result = {}
        if "stiffness" in self.elastic:
            rows = self._stiffnesses(x, q, theta)[:, : min(count, LOCAL_STIFFNESSES)]
            result["stiffness"] = rows.reshape(len(x), -1)
        if "first_mode" in self.elastic:
            result["first_mode"] = self._frequencies(x, q, theta, count).reshape(len(x), -1)
        return result

    def _coordinates(self, positions: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return coordinates (N, n_q) at positions (N, p); NaN for positions out of reach."""
        platform = self._evaluator.measures.model.platform
        try:
            return np.asarray(platform.kinematics(positions, theta=theta).q)
        except PoseError as error:
            self.problem = str(error.problems[0])
        q = np.full((len(positions), self._task.model.topology.n_q), np.nan)
        for i, position in enumerate(positions):
            with suppress(PoseError):
                q[i] = platform.kinematics(position[None], theta=theta[i : i + 1]).q[0]
        return q

    def _stiffnesses(self, x: np.ndarray, q: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return the principal stiffnesses (N P, 3) at the tool, the lowest first."""
        compliance = parametric_compliance(self._task.model, self._task.parameters, q, theta)
        if compliance is None:
            pairs = zip(x, np.split(q, len(x)), strict=True)
            compliance = np.concatenate([self._compliance(*pair) for pair in pairs])
        stiffnesses = np.full((len(q), 3), np.nan)
        is_known = np.isfinite(compliance).all(axis=(1, 2))
        principal = np.linalg.eigvalsh(compliance[is_known, :3, :3])[:, ::-1]
        stiffnesses[is_known] = np.where(
            principal > 0.0, 1.0 / np.maximum(principal, 1e-300), np.inf
        )
        return stiffnesses

    def _compliance(self, x: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Return the compliance (P, 6, 6) of a candidate (d,) at coordinates (P, n_q), or NaN."""
        unknown = np.full((len(q), 6, 6), np.nan)
        if not np.isfinite(q).all():
            return unknown
        try:
            return compliance_at(self._model(x), q, has_shear=False)
        except TauloopError as error:
            self.problem = str(error.problems[0])
            return unknown

    def _frequencies(
        self, x: np.ndarray, q: np.ndarray, theta: np.ndarray, count: int
    ) -> np.ndarray:
        """Return the lowest frequencies (N P, count)."""
        task = self._task
        rows = parametric_frequencies(task.model, task.parameters, q, theta, count)
        if rows is None:
            pairs = zip(x, np.split(q, len(x)), strict=True)
            rows = np.concatenate([self._modes(*pair, count) for pair in pairs])
        return rows

    def _modes(self, x: np.ndarray, q: np.ndarray, count: int) -> np.ndarray:
        """Return the lowest frequencies (P, count) of a candidate (d,) at coordinates, or NaN."""
        frequencies = np.full((len(q), count), np.nan)
        if not np.isfinite(q).all():
            return frequencies
        try:
            modes = machine_modes(self._model(x), q, VibrationOptions(count=count), None).modes
        except TauloopError as error:
            self.problem = str(error.problems[0])
            return frequencies
        # A machine with fewer modes repeats the highest frequency.
        n_modes = modes.frequencies.shape[1]
        frequencies[:, :n_modes] = modes.frequencies
        frequencies[:, n_modes:] = modes.frequencies[:, -1:]
        return frequencies

    def _model(self, x: np.ndarray) -> Model:
        """Return the machine of a candidate (d,)."""
        return Model(self._task.model.mechanism.with_values(self._task.values(x)))

    def _positions(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions (P, p) of a candidate (d,), and the displacement (1, p) to its box."""
        shift = self._evaluator.shifts(x[None])
        return self._evaluator.base_positions(self.poses) + shift, shift

    def quantities(self, x: np.ndarray) -> Mapping[str, float]:
        """Return the worst expensive quantities of a candidate (d,), SI.

        Stiffness and first mode are computed by `stiffness` and `vibration`, whose diagnostics are
        stored in `doubts`. Quantities that cannot be computed are NaN.
        """
        result = {name: float(v[0]) for name, v in self.actuators.values(x[None]).items()}
        if not self._at_few_poses:
            return result
        self.evaluated += 1
        try:
            return result | self._diagnosed(self._model(x), *self._positions(x))
        except TauloopError as error:
            self.problem = str(error.problems[0])
            return result | dict.fromkeys(self._at_few_poses, np.nan)

    def _loads_and_errors_of(self, x: np.ndarray) -> dict[str, float]:
        """Return the quantities of a candidate (d,) that are not computed in batches, or NaN."""
        try:
            return self._loads_and_errors(self._model(x), *self._positions(x))
        except TauloopError as error:
            self.problem = str(error.problems[0])
            return dict.fromkeys(self._one_by_one, np.nan)

    def _diagnosed(
        self, model: Model, positions: np.ndarray, shift: np.ndarray
    ) -> dict[str, float]:
        """Return the worst quantities of a machine over positions, and store `doubts`.

        Args:
            model: the machine.
            positions: positions (P, p).
            shift: displacement (1, p) to the center of the box.
        """
        result = self._loads_and_errors(model, positions, shift)
        if "stiffness" in self.elastic:
            elastic = stiffness(model, positions)
            result["stiffness"] = float(elastic.worst_translational.min())
            self.doubts += [f"stiffness: {line}" for line in elastic.advice]
        if "first_mode" in self.elastic:
            modes = vibration(model, positions, VibrationOptions(count=1))
            result["first_mode"] = float(modes.frequency[:, 0].min())
            self.doubts += [f"first mode: {line}" for line in modes.advice]
        return result

    def _loads_and_errors(
        self, model: Model, positions: np.ndarray, shift: np.ndarray
    ) -> dict[str, float]:
        """Return accuracy, deflection and joint force; the arguments are those of `_diagnosed`."""
        result: dict[str, float] = {}
        self.doubts = []
        if "accuracy" in self._one_by_one:
            tolerances: Any = dict(self._task.tolerances)
            errors = tolerance_map(model, positions, ToleranceMapOptions(**tolerances))
            result["accuracy"] = float(errors.worst_distance.max())
            self.doubts += [f"accuracy: {line}" for line in errors.advice]
        cases = [
            (load.wrench, self._load_positions(load, positions, shift)) for load in self._task.loads
        ]
        if "deflection" in self._one_by_one:
            result["deflection"] = max(largest_deflection(model, *case) for case in cases)
        if "joint_force" in self._one_by_one:
            cases.append((np.zeros(6), positions))
            result["joint_force"] = max(largest_joint_force(model, *case) for case in cases)
        return result

    def _load_positions(
        self, load: ToolLoadCase, positions: np.ndarray, shift: np.ndarray
    ) -> np.ndarray:
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

    Components that equilibrium of rigid bodies does not determine count as zero.

    Raises:
        InputError: a wrench is given, and a chain of joints carries the tool: `joint_forces` does not
            include the wrench in this case.
    """
    is_virtual = any(joint.name == PLATFORM_JOINT for joint in model.mechanism.joints)
    if wrench.any() and not is_virtual:
        what = f"the tool of {model.mechanism.name} is carried by a chain of joints"
        raise InputError.of("joint_force", what, "omit loads or joint_force")
    zeros = np.zeros((len(positions), model.platform.ports.velocity.size))
    load = np.tile(wrench, (len(positions), 1))
    forces = model.platform.inverse_dynamics(positions, zeros, zeros, wrench=load)
    joints = joint_forces(model, np.arange(float(len(positions))), forces)
    # In this balance the virtual joint of the platform carries the wrench, so it is excluded.
    real_joints = [k for k, point in enumerate(joints.points) if point.name != PLATFORM_JOINT]
    force = np.nan_to_num(joints.wrench[:, real_joints, :3])
    return float(np.linalg.norm(force, axis=-1).max())
