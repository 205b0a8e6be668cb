"""A gizmo at the tool: who drags it pulls the machine after it, through its closed loops, as far as they allow."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from tauloop.common.errors import AssemblyError, PoseError, TauloopError
from tauloop.common.records import dataclass
from tauloop.equations.assembly.limits import Limits
from tauloop.geometry.machine_geometry import MachineGeometry, MachineShape
from tauloop.viewer.handles import Handles
from tauloop.viewer.stage import Stage

#: Length of the gizmo's arrows over the machine's largest dimension.
ARROWS = 0.2
#: Steps of differences: share of the characteristic length (m), deg, pure numbers.
DIFFERENCES = {"m": 1e-4, "deg": 1e-2, "1": 1e-4}
#: Singular values below this share of the largest move nothing.
MOVES = 1e-4
#: Gauss-Newton steps of one drag, halvings of one step, and the least share by which a step must
#: bring the tool nearer.
STEPS, HALVINGS, NEARER = 4, 6, 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFreedom:
    """What the tool can do by itself at a pose.

    Attributes:
        axes: whether it moves along x, y and z: of its own frame where it turns, else of the base.
        turns: whether it turns otherwise than its place demands.
    """

    axes: tuple[bool, bool, bool]
    turns: bool


class Puller:
    """Finds the assembled pose whose tool is nearest to one that is asked for.

    Minimises |p - p*|^2 + L^2 |log(R* R^T)|^2 over the machine's handles by Gauss-Newton steps from
    the present pose; each step is followed through the closed loops, and halved where they do not
    close. L is the characteristic length, zero for a machine whose tool turns only as its place
    demands.
    """

    def __init__(
        self, handles: Handles, shape: MachineShape, limits: Limits, q: np.ndarray
    ) -> None:
        """Look at what the tool can do.

        Args:
            handles: by which the machine is moved.
            shape: where its tool is.
            limits: of its coordinates; stops stop the tool too.
            q: an assembled pose (n_q,) inside the workspace.
        """
        self._handles, self._shape, self._limits = handles, shape, limits
        self._steps = np.array(
            [
                DIFFERENCES[h.unit] * (shape.length if h.unit == "m" else 1.0)
                for h in handles.handles
            ]
        )
        self._weight = shape.length
        J, R = self._jacobian(q), shape.at(q[None]).tool_rotation[0]
        turns = _rank(J) > _rank(J[:3])
        reach = np.linalg.norm((R if turns else np.eye(3)).T @ J[:3], axis=1)
        along = reach > MOVES * max(float(np.linalg.norm(J, axis=1).max()), 1e-300)
        x, y, z = along.tolist()
        self.freedom = ToolFreedom(axes=(x, y, z), turns=turns)
        self._weight = shape.length if turns else 0.0

    def pulled(
        self, q: np.ndarray, place: np.ndarray, R: np.ndarray
    ) -> tuple[np.ndarray, TauloopError | None]:
        """The pose (n_q,) to which the machine follows its tool, and what keeps it from going all the way.

        Args:
            q: the present pose (n_q,).
            place: where the tool is wanted (3,), m.
            R: how it is wanted to stand (3, 3).
        """
        obstacle: TauloopError | None = None
        gap = self._gap(q, place, R)
        for _ in range(STEPS):
            try:
                change = np.linalg.lstsq(self._jacobian(q), gap, rcond=MOVES)[0] * self._steps
            except TauloopError as error:
                return q, error
            values = self._handles.values(q)
            for halving in range(HALVINGS):
                try:
                    tried = self._handles.at(q, values + change / 2**halving)
                    self._require_before_stops(q, tried)
                except (PoseError, AssemblyError) as error:
                    obstacle = error
                    continue
                left = self._gap(tried, place, R)
                if np.linalg.norm(left) < (1.0 - NEARER) * np.linalg.norm(gap):
                    q, gap = tried, left
                    break
            else:
                return q, obstacle
            if halving == 0:
                obstacle = None
        return q, obstacle

    def _require_before_stops(self, q: np.ndarray, tried: np.ndarray) -> None:
        """Refuse a pose that is farther beyond a stop than the present one."""
        margin, before = self._limits.margins(np.stack([tried, q]), ("stop",))
        if ((margin < 0.0) & (margin < before)).any():
            (worst, *_) = self._limits.beyond(tried[None])
            raise PoseError.of(worst.coordinate, worst.amount, "that is as far as it goes")

    def _gap(self, q: np.ndarray, place: np.ndarray, R: np.ndarray) -> np.ndarray:
        """From the tool to where it is wanted (6,), m."""
        return self._gaps(q[None], place, R)[0]

    def _gaps(self, q: np.ndarray, place: np.ndarray, R: np.ndarray) -> np.ndarray:
        geometry = self._shape.at(q)
        turn = Rotation.from_matrix(R @ geometry.tool_rotation.mT).as_rotvec()
        return np.concatenate([place - geometry.tool, self._weight * turn], axis=1)

    def _jacobian(self, q: np.ndarray) -> np.ndarray:
        """Motion of the tool (6, h) by one step of each handle; backwards where the workspace ends ahead."""
        here, geometry = self._handles.values(q), self._shape.at(q[None])
        columns = np.zeros((6, len(here)))
        for i, step in enumerate(np.diag(self._steps)):
            try:
                moved, sign = self._handles.at(q, here + step), 1.0
            except PoseError:
                moved, sign = self._handles.at(q, here - step), -1.0
            columns[:, i] = -sign * self._gap(moved, geometry.tool[0], geometry.tool_rotation[0])
        return columns


def _rank(matrix: np.ndarray) -> int:
    sizes = np.linalg.svd(matrix, compute_uv=False)
    return int((sizes > MOVES * max(sizes.max(initial=0.0), 1e-300)).sum())


class Gizmo:
    """Arrows and arcs at the tool, as far as the machine can use them."""

    def __init__(self, viewer: Stage, puller: Puller, size: float) -> None:
        """Put it at the tool.

        Args:
            viewer: whose machine follows.
            puller: that knows where to.
            size: the machine's largest dimension, m.
        """
        self._viewer, self._puller = viewer, puller
        self._held = False
        self._wanted: list[tuple[np.ndarray, np.ndarray]] = []
        freedom = puller.freedom
        self.node = viewer.server.scene.add_transform_controls(
            "/gizmo",
            scale=ARROWS * size,
            # arcs stand between two of them
            active_axes=freedom.axes if any(freedom.axes) else (True, True, True),
            disable_axes=not any(freedom.axes),
            disable_sliders=sum(freedom.axes) < 2,
            disable_rotations=not freedom.turns,
            depth_test=False,
            opacity=0.85,
        )
        self.node.on_update(self._dragged)

    def follow(self, geometry: MachineGeometry) -> None:
        """Stand at the tool, but in a hand, which is ahead of it."""
        if not self._held:
            self.node.position = geometry.tool[0]
            if self._puller.freedom.turns:
                self.node.wxyz = Rotation.from_matrix(geometry.tool_rotation[0]).as_quat(
                    scalar_first=True
                )

    def _dragged(self, event: Any) -> None:
        """Pull the machine to the newest of the places that have come in while it moved."""
        turn = Rotation.from_quat(event.target.wxyz, scalar_first=True).as_matrix()
        self._wanted = [(np.array(event.target.position), turn)]
        with self._viewer.lock:
            self._held = event.phase != "end"
            obstacle, q = None, self._viewer.q
            while self._wanted:
                q, obstacle = self._puller.pulled(q, *self._wanted.pop())
            self._viewer.show(q)
            if obstacle is not None:
                self._viewer.explain(obstacle, "The tool stops here:")
