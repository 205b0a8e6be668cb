"""A gizmo at the tool: dragging it moves the machine as far as its closed loops allow."""

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
#: Steps of finite differences: fraction of the characteristic length (m), deg, pure numbers.
DIFFERENCE_STEPS = {"m": 1e-4, "deg": 1e-2, "1": 1e-4}
#: Singular values below this fraction of the largest count as zero.
TOOL_RANK_TOLERANCE = 1e-4
#: Maximum number of Gauss-Newton steps of one drag, and of halvings of one step; smallest relative
#: decrease of the distance to the target in a step.
MAX_DRAG_STEPS, MAX_HALVINGS, MIN_DECREASE = 4, 6, 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFreedom:
    """Independent motions of the tool at a pose.

    Attributes:
        axes: whether the tool translates along x, y and z. The axes are those of the tool's frame
            if it rotates independently, otherwise those of the base frame.
        turns: whether the tool rotates independently of its position.
    """

    axes: tuple[bool, bool, bool]
    turns: bool


class Puller:
    """A solver for the assembled pose whose tool is nearest to a target.

    It minimizes |p - p*|^2 + L^2 |log(R* R^T)|^2 over the machine's handles by Gauss-Newton steps
    from the current pose. Each step follows the closed loops; it is halved until they close. L is
    the characteristic length, or zero for a machine whose tool does not rotate independently.
    """

    def __init__(
        self, handles: Handles, shape: MachineShape, limits: Limits, q: np.ndarray
    ) -> None:
        """Determine the freedom of the tool.

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
        turns = _rank(J) > _rank(J[:3])
        reach = np.linalg.norm((R if turns else np.eye(3)).T @ J[:3], axis=1)
        along = reach > TOOL_RANK_TOLERANCE * max(float(np.linalg.norm(J, axis=1).max()), 1e-300)
        x, y, z = along.tolist()
        self.freedom = ToolFreedom(axes=(x, y, z), turns=turns)
        self._weight = shape.length if turns else 0.0

    def pulled(
        self, q: np.ndarray, place: np.ndarray, R: np.ndarray
    ) -> tuple[np.ndarray, TauloopError | None]:
        """Return the pose (n_q,) whose tool is nearest to a target, and the error that stopped it.

        Args:
            q: the current pose (n_q,).
            place: target position of the tool (3,), m.
            R: target rotation of the tool (3, 3).

        Returns:
            The pose; the error at the next step, or None if the solver was not stopped by an error.
        """
        obstacle: TauloopError | None = None
        gap = self._gap(q, place, R)
        for _ in range(MAX_DRAG_STEPS):
            try:
                solution = np.linalg.lstsq(self._jacobian(q), gap, rcond=TOOL_RANK_TOLERANCE)[0]
                change = solution * self._steps
            except TauloopError as error:
                return q, error
            values = self._handles.values(q)
            for halving in range(MAX_HALVINGS):
                try:
                    tried = self._handles.at(q, values + change / 2**halving)
                    self._require_before_stops(q, tried)
                except (PoseError, AssemblyError) as error:
                    obstacle = error
                    continue
                remaining = self._gap(tried, place, R)
                if np.linalg.norm(remaining) < (1.0 - MIN_DECREASE) * np.linalg.norm(gap):
                    q, gap = tried, remaining
                    break
            else:
                return q, obstacle
            if halving == 0:
                obstacle = None
        return q, obstacle

    def _require_before_stops(self, q: np.ndarray, tried: np.ndarray) -> None:
        """Reject a pose that exceeds a stop by more than the current pose does."""
        margin, before = self._limits.margins(np.stack([tried, q]), ("stop",))
        if ((margin < 0.0) & (margin < before)).any():
            (worst, *_) = self._limits.beyond(tried[None])
            raise PoseError.of(worst.coordinate, worst.amount, "move in another direction")

    def _gap(self, q: np.ndarray, place: np.ndarray, R: np.ndarray) -> np.ndarray:
        """Return the difference between target and tool (6,), m: position, weighted rotation."""
        return self._gaps(q[None], place, R)[0]

    def _gaps(self, q: np.ndarray, place: np.ndarray, R: np.ndarray) -> np.ndarray:
        geometry = self._shape.at(q)
        turn = Rotation.from_matrix(R @ geometry.tool_rotation.mT).as_rotvec()
        return np.concatenate([place - geometry.tool, self._weight * turn], axis=1)

    def _jacobian(self, q: np.ndarray) -> np.ndarray:
        """Return the tool's motion (6, h) per step of each handle, by finite differences.

        At the border of the workspace, backward differences are used.
        """
        values, geometry = self._handles.values(q), self._shape.at(q[None])
        columns = np.zeros((6, len(values)))
        for i, step in enumerate(np.diag(self._steps)):
            try:
                moved, sign = self._handles.at(q, values + step), 1.0
            except PoseError:
                moved, sign = self._handles.at(q, values - step), -1.0
            columns[:, i] = -sign * self._gap(moved, geometry.tool[0], geometry.tool_rotation[0])
        return columns


def _rank(matrix: np.ndarray) -> int:
    sizes = np.linalg.svd(matrix, compute_uv=False)
    return int((sizes > TOOL_RANK_TOLERANCE * max(sizes.max(initial=0.0), 1e-300)).sum())


class Gizmo:
    """Arrows and arcs at the tool, for the motions that the machine allows."""

    def __init__(self, viewer: Stage, puller: Puller, size: float) -> None:
        """Place the gizmo at the tool.

        Args:
            viewer: viewer of the machine.
            puller: solver for the tool's motion.
            size: the machine's largest dimension, m.
        """
        self._viewer, self._puller = viewer, puller
        self._held = False
        self._wanted: list[tuple[np.ndarray, np.ndarray]] = []
        freedom = puller.freedom
        self.node = viewer.server.scene.add_transform_controls(
            "/gizmo",
            scale=ARROW_SIZE * size,
            # Each arc is between two axes.
            active_axes=freedom.axes if any(freedom.axes) else (True, True, True),
            disable_axes=not any(freedom.axes),
            disable_sliders=sum(freedom.axes) < 2,
            disable_rotations=not freedom.turns,
            depth_test=False,
            opacity=0.85,
        )
        self.node.on_update(self._dragged)

    def follow(self, geometry: MachineGeometry) -> None:
        """Move the gizmo to the tool, except while the user drags it."""
        if not self._held:
            self.node.position = geometry.tool[0]
            if self._puller.freedom.turns:
                self.node.wxyz = Rotation.from_matrix(geometry.tool_rotation[0]).as_quat(
                    scalar_first=True
                )

    def _dragged(self, event: Any) -> None:
        """Move the machine to the target; of several waiting targets, only the newest counts."""
        turn = Rotation.from_quat(event.target.wxyz, scalar_first=True).as_matrix()
        self._wanted = [(np.array(event.target.position), turn)]
        with self._viewer.lock:
            self._held = event.phase != "end"
            obstacle, q = None, self._viewer.q
            while self._wanted:
                q, obstacle = self._puller.pulled(q, *self._wanted.pop())
            self._viewer.show(q)
            if obstacle is not None:
                self._viewer.explain(obstacle, "The tool cannot go further:")
