"""Quantities, violations and objectives of candidates of a task."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.compiler.expressions import column
from tauloop.design.synthesis.population import Population
from tauloop.design.synthesis.pose_measures import (
    CLEARANCE,
    CONDITION,
    FOOTPRINT,
    LARGEST_SINGULAR_VALUE,
    RANGE,
    REACH,
    SMALLEST_SINGULAR_VALUE,
    SPEED,
    MeasureColumn,
    MeasureRequest,
    PoseMeasures,
)
from tauloop.design.synthesis.poses import HALVINGS, grid_poses, neighbors
from tauloop.design.synthesis.task import NOT_IN_BATCH, DesignObjective, DesignTask
from tauloop.equations.assembly.loops import nominal
from tauloop.equations.values import BatchFunction, dynamic_parameters

#: Largest relative violation of a design.
FEASIBLE = 1e-6
#: Relative violation beyond which a candidate is abandoned without its remaining poses.
WORST_VIOLATION = 1.0
#: Violation of a requirement whose value is undefined, such as at a pose out of reach. It is larger
#: than any defined violation, and small enough for violations of reach to be added to it.
UNKNOWN_VIOLATION = 1e9
#: Roles of dynamic parameters that are masses.
_MASSES = ("m", "upper_m")
#: Quantities by the kind of their measure.
_QUANTITY_OF = {
    REACH: "reach",
    SPEED: "joint_speed",
    CLEARANCE: "clearance",
    CONDITION: "condition_number",
    LARGEST_SINGULAR_VALUE: "largest_velocity_factor",
    SMALLEST_SINGULAR_VALUE: "smallest_velocity_factor",
}
#: Quantities whose worst value is the smallest over poses and elements.
_MINIMUM_QUANTITIES = ("clearance", "smallest_velocity_factor")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """Values of N candidates.

    Attributes:
        values: worst values (N,) over the poses by quantity, SI.
        violations: relative violations (N, r) of the requirements; -inf where not evaluated.
        objectives: objectives (N, k), smaller is better; NaN where not evaluated.
        poses: number of poses that were evaluated for each candidate (N,).
    """

    values: Mapping[str, np.ndarray]
    violations: np.ndarray
    objectives: np.ndarray
    poses: np.ndarray

    @property
    def worst(self) -> np.ndarray:
        """Largest violation of each candidate (N,)."""
        return np.asarray(self.violations.max(axis=1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorstPose:
    """A worst pose of one measure.

    Attributes:
        column: index of the measure.
        pose: the pose (m,) in half widths of the box.
        value: value of the measure there, SI (`MeasureColumn.value`, not `raw`).
    """

    column: int
    pose: np.ndarray
    value: float


def quantity_of(column: MeasureColumn) -> str:
    """Return the quantity that a measure belongs to."""
    return f"range {column.element}" if column.kind == RANGE else _QUANTITY_OF.get(column.kind, "")


class TaskEvaluator:
    """Cheap quantities of the candidates of a task, in one compiled batch."""

    def __init__(self, task: DesignTask, threads: int = 1) -> None:
        """Build the measures of a pose.

        Args:
            task: the task.
            threads: number of threads; results do not depend on it.

        Raises:
            InputError: the machine cannot be measured (`PoseMeasures`).
        """
        self.task = task
        wanted = {r.quantity for r in task.requirements} | {o.quantity for o in task.objectives}
        self._needs_footprint = "footprint" in wanted
        request = MeasureRequest(
            ranges=task.ranges,
            compute_condition="condition_number" in wanted,
            compute_singular_values=bool(
                wanted & {"largest_velocity_factor", "smallest_velocity_factor"}
            ),
            tool_speed=task.speeds[0] if "joint_speed" in wanted else 0.0,
            turning_speed=task.speeds[1] if "joint_speed" in wanted else 0.0,
            compute_clearance="clearance" in wanted,
            compute_footprint=self._needs_footprint,
            length=task.radian_length,
        )
        self.measures = PoseMeasures(task.model, task.parameters, request)
        self.columns = self.measures.columns
        self.quantities = tuple(quantity_of(item) for item in self.columns)
        self._population = Population(self.measures, threads)
        self.poses = grid_poses(task)

    @cached_property
    def cheap(self) -> tuple[int, ...]:
        """Indices of the requirements that the batch evaluates."""
        requirements = self.task.requirements
        return tuple(i for i, r in enumerate(requirements) if r.quantity not in NOT_IN_BATCH)

    @cached_property
    def reach(self) -> int:
        """Index of the requirement that all poses are within reach."""
        requirements = self.task.requirements
        return next(i for i, r in enumerate(requirements) if r.quantity == REACH)

    @cached_property
    def _parametric(self) -> BatchFunction:
        """Mass and the objectives that are expressions, with their derivatives."""
        mechanism = self.task.model.mechanism
        theta = ca.SX.sym("theta", len(self.task.parameters))
        symbols = {name: theta[i] for i, name in enumerate(self.task.parameters)}
        values = nominal(mechanism, symbols)
        pi = dynamic_parameters(mechanism, self.task.model.topology)
        masses = [values.scalar(item.expression) for item in pi if item.role in _MASSES]
        terms = [ca.sum1(column(ca.SX(mass) for mass in masses))]
        for objective in self.task.objectives:
            if objective.expression is not None:
                terms.append(ca.SX(values.scalar(objective.expression)))
        values_of_terms = ca.densify(ca.vertcat(*terms))
        slopes = ca.densify(ca.vec(ca.jacobian(values_of_terms, theta)))
        function = ca.Function("parametric", [theta], [values_of_terms, slopes], {"cse": True})
        return BatchFunction(function)

    def parametric(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mass and expressions (N, 1 + e), and their derivatives (N, 1 + e, d).

        The derivatives are with respect to the variables.
        """
        theta = np.ascontiguousarray(self.task.theta(x))
        values, flat = self._parametric([theta], len(x))
        slopes = flat.reshape(len(x), theta.shape[1], -1).transpose(0, 2, 1)
        return values, self._by_variables(slopes, np.zeros((len(x), slopes.shape[1], 0)))

    def _by_variables(self, by_theta: np.ndarray, by_position: np.ndarray) -> np.ndarray:
        """Return derivatives with respect to variables (N, c, d).

        Args:
            by_theta: derivatives with respect to parameters (N, c, p).
            by_position: derivatives with respect to positions (N, c, m).
        """
        variables = self.task.variables
        result = np.zeros((*by_theta.shape[:2], len(variables)))
        first = 0
        for i, variable in enumerate(variables):
            count = len(variable.parameters)
            result[:, :, i] = by_theta[:, :, first : first + count].sum(axis=2)
            first += count
            if variable.axis is not None and by_position.shape[2]:
                result[:, :, i] = by_position[:, :, self.position_column(variable.axis)]
        return result

    def position_column(self, axis: int) -> int:
        """Return the index in a position of the coordinate that an axis of the grid translates."""
        quaternion_column = self.task.axes.quaternion_start
        is_before = quaternion_column is None or axis < quaternion_column
        return axis if is_before else axis + 1

    def base_positions(self, poses: np.ndarray) -> np.ndarray:
        """Return positions (P, p) of poses (P, m) in half widths, about a center at zero."""
        return self.positions_at(poses * self.task.half)

    def positions_at(self, offsets: np.ndarray) -> np.ndarray:
        """Return positions (P, p) at displacements (P, m) from a center at zero, SI."""
        axes = self.task.axes
        values = np.array(offsets, dtype=float)
        orientation = [axes.columns.index(name) for name in axes.angles]
        joint_angles = [
            i for i in range(len(axes.columns)) if i not in orientation and axes.units[i] != "m"
        ]
        values[:, joint_angles] += axes.reference[joint_angles]
        return axes.positions(values)

    def shifts(self, x: np.ndarray) -> np.ndarray:
        """Return displacements (N, p) of the positions to the center of the box."""
        axes = self.task.axes
        centers = self.task.centers(x)
        base = self.base_positions(np.zeros((1, len(axes.columns))))
        shifts = np.zeros((len(x), base.shape[1]))
        for axis, unit in enumerate(axes.units):
            if unit == "m":
                shifts[:, self.position_column(axis)] = centers[:, axis]
        return shifts

    def scores(self, x: np.ndarray, *, leaves_early: bool = False) -> Scores:
        """Return cheap quantities, violations and objectives of candidates.

        Args:
            x: variables (N, d), SI.
            leaves_early: abandon a candidate, without evaluating its remaining poses, once a
                violation exceeds `WORST_VIOLATION`.
        """
        shift = self.shifts(x)
        caps = self._caps if leaves_early else None
        worst = self._population(self.task.theta(x), shift, self.base_positions(self.poses), caps)
        values = self._values(worst.raw)
        parametric, _ = self.parametric(x)
        values["mass"] = parametric[:, 0]
        violations = np.full((len(x), len(self.task.requirements)), -np.inf)
        reach_violation = self.task.requirements[self.reach].violation(values[REACH])
        unknown_violation = UNKNOWN_VIOLATION + np.maximum(np.nan_to_num(reach_violation), 0.0)
        for i in self.cheap:
            requirement = self.task.requirements[i]
            violation = requirement.violation(values[requirement.quantity])
            violations[:, i] = np.where(np.isfinite(violation), violation, unknown_violation)
        violations[~worst.is_sound, self.reach] = UNKNOWN_VIOLATION
        return Scores(
            values=values,
            violations=violations,
            objectives=self._objectives(values, parametric),
            poses=worst.poses,
        )

    @cached_property
    def _caps(self) -> np.ndarray:
        """Raw measures (c,) beyond which a candidate is abandoned."""
        caps = np.full(len(self.columns), np.inf)
        for j, item in enumerate(self.columns):
            for requirement in self.task.requirements:
                if requirement.quantity == self.quantities[j]:
                    limit = requirement.value_at(WORST_VIOLATION)
                    caps[j] = min(caps[j], item.raw(limit))
        return caps

    def _values(self, raw: np.ndarray) -> dict[str, np.ndarray]:
        """Return worst values by quantity from worst raw measures (N, c)."""
        values: dict[str, np.ndarray] = {}
        for j, item in enumerate(self.columns):
            quantity = self.quantities[j]
            if not quantity:
                continue
            value = item.value(raw[:, j])
            if quantity not in values:
                values[quantity] = value
            elif quantity in _MINIMUM_QUANTITIES:
                values[quantity] = np.minimum(values[quantity], value)
            else:
                values[quantity] = np.maximum(values[quantity], value)
        if self._needs_footprint:
            sides = [raw[:, j] for j, item in enumerate(self.columns) if item.kind == FOOTPRINT]
            values["footprint"] = (sides[0] + sides[1]) * (sides[2] + sides[3])
        return values

    def _objectives(self, values: Mapping[str, np.ndarray], parametric: np.ndarray) -> np.ndarray:
        """Return objectives (N, k), all of which are minimized; NaN where not evaluated."""
        columns = []
        # The first parametric value is the mass; those of expressions follow.
        expression_column = 1
        for objective in self.task.objectives:
            if objective.expression is not None:
                number = parametric[:, expression_column]
                expression_column += 1
            elif objective.quantity in values:
                number = values[objective.quantity]
            else:
                number = np.full(len(parametric), np.nan)
            columns.append(signed(objective, number))
        return np.column_stack(columns)

    def at_poses(self, x: np.ndarray, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return raw measures (P, c) of a single candidate, and their derivatives (P, c, d).

        The derivatives are with respect to the variables.

        Args:
            x: variables (d,).
            poses: poses (P, m) in half widths of the box.
        """
        theta, position = self._theta_and_position(x, poses)
        raw, slopes = self.measures.evaluate(theta, position)
        t = theta.shape[1]
        return raw, self._by_variables(slopes[:, :, :t], slopes[:, :, t:])

    def raw_at_poses(self, x: np.ndarray, poses: np.ndarray) -> np.ndarray:
        """Return raw measures (P, c) of a single candidate (d,) at poses (P, m) in half widths."""
        return self.measures.values(*self._theta_and_position(x, poses))

    def _theta_and_position(
        self, x: np.ndarray, poses: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        theta = np.repeat(self.task.theta(x[None]), len(poses), axis=0)
        return theta, self.base_positions(poses) + self.shifts(x[None])

    def worst_poses(self, x: np.ndarray, count: int = 3) -> list[WorstPose]:
        """Return the worst poses of each measure, also searching between the poses of the grid.

        Args:
            x: variables (d,).
            count: number of poses of the grid from which the search starts, for each measure.
        """
        raw = self.raw_at_poses(x, self.poses)
        known = np.where(np.isfinite(raw), raw, -np.inf)
        starts = np.argsort(-known, axis=0, kind="stable")[:count]
        columns = np.repeat(np.arange(len(self.columns)), len(starts))
        poses, values = self._climb(x, columns, self.poses[starts.T.ravel()])
        return [
            WorstPose(
                column=int(j), pose=pose, value=float(self.columns[j].value(np.array([raw]))[0])
            )
            for j, pose, raw in zip(columns, poses, values, strict=True)
        ]

    def worst_values(self, x: np.ndarray) -> dict[str, float]:
        """Return the worst values by quantity, SI, over the grid and between its poses.

        Args:
            x: variables (d,).
        """
        largest = self.raw_at_poses(x, self.poses).max(axis=0)
        for item in self.worst_poses(x, count=2):
            raw = self.columns[item.column].raw(item.value)
            largest[item.column] = max(largest[item.column], raw)
        return {name: float(value[0]) for name, value in self._values(largest[None]).items()}

    def _climb(
        self, x: np.ndarray, columns: np.ndarray, poses: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return poses (S, m) with locally largest raw measures, and these measures (S,).

        All poses move at once, so that each step is one batch.

        Args:
            x: variables (d,).
            columns: index of the measure that each pose maximizes (S,).
            poses: start of each pose (S, m).
        """
        varied = max(int((self.task.half > 0.0).sum()), 1)
        step = 1.0 / max(len(self.poses) ** (1.0 / varied) - 1.0, 1.0)
        best = np.full(len(poses), -np.inf)
        if not len(poses):
            return poses, best
        starts = np.arange(len(poses))
        for _ in range(HALVINGS):
            candidates = np.stack([neighbors(self.task, pose, step) for pose in poses])
            raw = self.raw_at_poses(x, candidates.reshape(-1, candidates.shape[2]))
            raw = raw.reshape(len(poses), candidates.shape[1], -1)[starts, :, columns]
            index = np.argmax(np.where(np.isfinite(raw), raw, -np.inf), axis=1)
            poses = candidates[starts, index]
            best = raw[starts, index]
            step *= 0.5
        return poses, best


def signed(objective: DesignObjective, number: np.ndarray) -> np.ndarray:
    """Return an objective (N,) with the sign for which smaller is better."""
    return np.asarray(number if objective.is_minimized else -number)
