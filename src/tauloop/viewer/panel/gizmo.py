"""A gizmo at the tool: dragging the gizmo moves the machine as far as its closed loops allow."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from tauloop.common.errors import AssemblyError, PoseError, TauloopError
from tauloop.common.records import dataclass
from tauloop.equations.assembly.limits import Limits
from tauloop.geometry.machine_geometry import MachineGeometry, MachineShape
from tauloop.viewer.panel.handles import Handles
from tauloop.viewer.stage import Stage

#: Length of the gizmo's arrows, as a fraction of the machine's largest dimension.
ARROW_SIZE = 0.2
#: Steps of finite differences by unit: fraction of the characteristic length ("m"), degrees, and
#: dimensionless numbers.
DIFFERENCE_STEPS = {"m": 1e-4, "deg": 1e-2, "1": 1e-4}
#: Singular values below this fraction of the largest count as zero.
TOOL_RANK_TOLERANCE = 1e-4
#: Maximum number of Gauss-Newton steps of one drag.
MAX_DRAG_STEPS = 4
#: Maximum number of halvings of a Gauss-Newton step.
MAX_HALVINGS = 6
#: Smallest relative decrease of the distance to the target in an accepted step.
MIN_DECREASE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFreedom:
    """Degrees of freedom of the tool at a pose.

    Attributes:
        axes: whether the tool can translate along x, y and z. The axes are those of the tool's
            frame if the tool rotates independently, otherwise those of the base frame.
        rotates: whether the tool can rotate independently of its position.
    """

    axes: tuple[bool, bool, bool]
    rotates: bool


class Puller:
    """A solver for the assembled pose whose tool is nearest to a target.

    Gauss-Newton steps from the current pose minimize |p* - p|^2 + L^2 |log(R* R^T)|^2 over the
    values of the machine's handles. p and R are position and rotation of the tool, p* and R* those
    of the target. Each step follows the closed loops, and is halved until the loops close. L is the
    characteristic length, or zero for a machine whose tool does not rotate independently.
    """

    def __init__(
        self, handles: Handles, shape: MachineShape, limits: Limits, q: np.ndarray
    ) -> None:
        """Determine the degrees of freedom of the tool.

        Args:
            handles: handles of the machine.
            shape: shape of the machine with its tool.
            limits: limits of the coordinates; the tool also stops where a coordinate is at a stop.
            q: an assembled pose (n_q,) inside the workspace.
        """
        self._handles, self._shape, self._limits = handles, shape, limits
        self._steps = np.array(
            [
                DIFFERENCE_STEPS[h.unit] * (shape.length if h.unit == "m" else 1.0)
                for h in handles.handles
            ]
        )
        self._weight = shape.length
        J, R = self._jacobian(q), shape.at(q[None]).tool_rotation[0]
        rotates = _rank(J) > _rank(J[:3])
        frame_axes = R if rotates else np.eye(3)
        translations = np.linalg.norm(frame_axes.T @ J[:3], axis=1)
        largest = max(float(np.linalg.norm(J, axis=1).max()), 1e-300)
        x, y, z = (translations > TOOL_RANK_TOLERANCE * largest).tolist()
        self.freedom = ToolFreedom(axes=(x, y, z), rotates=rotates)
        self._weight = shape.length if rotates else 0.0

    def nearest_pose(
        self, q: np.ndarray, position: np.ndarray, R: np.ndarray
    ) -> tuple[np.ndarray, TauloopError | None]:
        """Return the pose (n_q,) nearest to a target, and the error that stopped the tool.

        Args:
            q: the current pose (n_q,).
            position: target position of the tool (3,), m.
            R: target rotation of the tool (3, 3).

        Returns:
            The pose, and the error of the rejected step; None if no error stopped the solver.
        """
        obstacle: TauloopError | None = None
        error_to_target = self._pose_error(q, position, R)
        for _ in range(MAX_DRAG_STEPS):
            try:
                solution = np.linalg.lstsq(
                    self._jacobian(q), error_to_target, rcond=TOOL_RANK_TOLERANCE
                )[0]
                change = solution * self._steps
            except TauloopError as error:
                return q, error
            values = self._handles.values(q)
            for halving in range(MAX_HALVINGS):
                try:
                    candidate = self._handles.at(q, values + change / 2**halving)
                    self._reject_motion_beyond_stops(q, candidate)
                except (PoseError, AssemblyError) as error:
                    obstacle = error
                    continue
                remaining = self._pose_error(candidate, position, R)
                limit = (1.0 - MIN_DECREASE) * np.linalg.norm(error_to_target)
                if np.linalg.norm(remaining) < limit:
                    q, error_to_target = candidate, remaining
                    break
            else:
                return q, obstacle
            if halving == 0:
                obstacle = None
        return q, obstacle

    def _reject_motion_beyond_stops(self, q: np.ndarray, candidate: np.ndarray) -> None:
        """Reject a pose that exceeds a stop by more than the current pose does."""
        margin, current_margin = self._limits.margins(np.stack([candidate, q]), ("stop",))
        if ((margin < 0.0) & (margin < current_margin)).any():
            (worst, *_) = self._limits.beyond(candidate[None])
            raise PoseError.of(worst.coordinate, worst.amount, "move in another direction")

    def _pose_error(self, q: np.ndarray, position: np.ndarray, R: np.ndarray) -> np.ndarray:
        """Return the difference between target and tool (6,), m: position, weighted rotation."""
        geometry = self._shape.at(q[None])
        rotation = Rotation.from_matrix(R @ geometry.tool_rotation[0].T).as_rotvec()
        return np.concatenate([position - geometry.tool[0], self._weight * rotation])

    def _jacobian(self, q: np.ndarray) -> np.ndarray:
        """Return the tool's motion (6, h) per step of each handle, by finite differences.

        At the border of the workspace, backward differences are used.
        """
        values, geometry = self._handles.values(q), self._shape.at(q[None])
        columns = np.zeros((6, len(values)))
        for i, step in enumerate(np.diag(self._steps)):
            try:
                displaced, sign = self._handles.at(q, values + step), 1.0
            except PoseError:
                displaced, sign = self._handles.at(q, values - step), -1.0
            error = self._pose_error(displaced, geometry.tool[0], geometry.tool_rotation[0])
            columns[:, i] = -sign * error
        return columns


def _rank(matrix: np.ndarray) -> int:
    """Return the numerical rank of a matrix."""
    singular_values = np.linalg.svd(matrix, compute_uv=False)
    largest = max(singular_values.max(initial=0.0), 1e-300)
    return int((singular_values > TOOL_RANK_TOLERANCE * largest).sum())


class Gizmo:
    """Arrows and arcs that drag the tool along its degrees of freedom."""

    def __init__(self, viewer: Stage, puller: Puller, size: float) -> None:
        """Place the gizmo at the tool.

        Args:
            viewer: viewer of the machine.
            puller: solver for the tool's motion.
            size: the machine's largest dimension, m.
        """
        self._viewer, self._puller = viewer, puller
        self._is_dragged = False
        # Position and rotation of the newest target that is not followed yet.
        self._targets: list[tuple[np.ndarray, np.ndarray]] = []
        freedom = puller.freedom
        self.node = viewer.server.scene.add_transform_controls(
            "/gizmo",
            scale=ARROW_SIZE * size,
            # Each arc is between two axes.
            active_axes=freedom.axes if any(freedom.axes) else (True, True, True),
            disable_axes=not any(freedom.axes),
            disable_sliders=sum(freedom.axes) < 2,
            disable_rotations=not freedom.rotates,
            depth_test=False,
            opacity=0.85,
        )
        self.node.on_update(self._dragged)

    def follow(self, geometry: MachineGeometry) -> None:
        """Move the gizmo to the tool, except while the user drags it."""
        if not self._is_dragged:
            self.node.position = geometry.tool[0]
            if self._puller.freedom.rotates:
                self.node.wxyz = Rotation.from_matrix(geometry.tool_rotation[0]).as_quat(
                    scalar_first=True
                )

    def _dragged(self, event: Any) -> None:
        """Move the machine to the target; of several waiting targets, only the newest is used."""
        rotation = Rotation.from_quat(event.target.wxyz, scalar_first=True).as_matrix()
        self._targets = [(np.array(event.target.position), rotation)]
        with self._viewer.lock:
            self._is_dragged = event.phase != "end"
            obstacle, q = None, self._viewer.q
            while self._targets:
                q, obstacle = self._puller.nearest_pose(q, *self._targets.pop())
            self._viewer.show(q)
            if obstacle is not None:
                self._viewer.explain(obstacle, "The tool cannot go further:")
