"""Labels in the scene, placed next to the named points and off motors and other labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from tauloop.viewer.scene.camera import Camera

#: Width of a letter in the page, pixels.
LETTER_WIDTH = 7.0
#: Height of a line of a label in the page, pixels.
LABEL_HEIGHT = 17.0
#: Margin of a label in the page, pixels.
LABEL_MARGIN = 5.0
#: Candidate distances of a label from its point, pixels.
DISTANCES = (4.0, 12.0, 22.0, 34.0, 48.0, 66.0, 90.0)
#: Candidate directions from the point to its label in the picture, in order of preference.
LABEL_DIRECTIONS = np.array([(1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1)])
#: Cost of a position per pixel of distance from the named point.
DISTANCE_COST = 0.2
#: Cost of a position per pixel of movement of the label.
JUMP_COST = 0.03
#: Cost of a position per pixel by which another named point is nearer.
CONFUSION_COST = 2.0
#: Cost of a position per covered point of a solid.
POINT_COST = 1.0
#: Cost of a position per pixel outside the picture.
OUTSIDE_COST = 10.0
#: Cost of a position per covered square pixel of another label.
LABEL_COST = 3.0
#: Cost of a position per covered point of a motor.
MOTOR_COST = 50.0


class Label:
    """A text at a point of the machine.

    Attributes:
        text: text of the label.
        point: the named point (3,), m.
        center: middle of the label in the picture (2,), pixels from the point; None before the
            label is placed.
        node: node of the label in the scene.
    """

    def __init__(self, node: Any, text: str, point: np.ndarray) -> None:
        """Create a label without a position in the picture."""
        self.node = node
        self.text = text
        self.point = point
        self.center: Any = None

    @property
    def half_size(self) -> np.ndarray:
        """Half of width and height in the page (2,), pixels."""
        lines = self.text.split("\n")
        width = LETTER_WIDTH * max(map(len, lines)) + LABEL_MARGIN
        return 0.5 * np.array([width, LABEL_HEIGHT * len(lines)])


class SceneLabels:
    """The labels of a scene, arranged for the camera that moved last.

    Attributes:
        camera: camera that moved last.
        labels: labels by the path of their node.
    """

    def __init__(self, scene: Any, camera: Camera) -> None:
        """Start without labels.

        Args:
            scene: the scene of a `viser.ViserServer`.
            camera: the first camera.
        """
        self._scene = scene
        self.camera = camera
        self.labels: dict[str, Label] = {}
        self._is_visible = True
        self._motors: dict[str, np.ndarray] = {}
        self._solids: dict[str, np.ndarray] = {}

    def put(self, path: str, text: str, point: np.ndarray) -> None:
        """Add or change a label; `arrange` places it."""
        if path not in self.labels:
            node = self._scene.add_label(
                path, text, position=tuple(point), anchor="center-center", visible=self._is_visible
            )
            self.labels[path] = Label(node, text, point)
        label = self.labels[path]
        label.point = np.asarray(point)
        if label.text != text:
            label.text = label.node.text = text
            label.center = None

    def remove(self, path: str) -> None:
        """Remove a label, if it is shown."""
        if label := self.labels.pop(path, None):
            label.node.remove()

    def set_visible(self, is_visible: bool) -> None:
        """Show or hide all labels."""
        self._is_visible = is_visible
        for label in self.labels.values():
            label.node.visible = is_visible

    def look_from(self, camera: Camera) -> None:
        """Arrange the labels for another camera."""
        self.camera = camera
        self.arrange(is_new_view=True)

    def avoid(self, machine: str, motors: np.ndarray, solids: np.ndarray) -> None:
        """Set the points of a machine that labels should not cover.

        Args:
            machine: name of the machine's node.
            motors: points on the surfaces of motors (N, 3); labels never cover them if possible.
            solids: points on all solids (N, 3); labels cover few of them.
        """
        self._motors[machine] = motors
        self._solids[machine] = solids

    def arrange(self, *, is_new_view: bool = False) -> None:
        """Move labels that cover a motor or another label; in a new view, all labels."""
        if not self.labels:
            return
        camera = self.camera
        motor_points = camera.pixels(np.concatenate([*self._motors.values()]))
        solid_points = camera.pixels(np.concatenate([*self._solids.values()]))
        placed_boxes = np.empty((0, 4))
        anchors = camera.pixels(np.array([label.point for label in self.labels.values()]))
        for index, (label, anchor) in enumerate(zip(self.labels.values(), anchors, strict=True)):
            other_anchors = np.delete(anchors, index, axis=0)
            is_misplaced = is_new_view or label.center is None
            if is_misplaced or self._overlap_cost(label, anchor, motor_points, placed_boxes) > 0.0:
                label.center = self._best_center(
                    label, anchor, other_anchors, motor_points, solid_points, placed_boxes
                )
            center = label.center
            placed_boxes = np.vstack(
                [placed_boxes, np.concatenate([anchor + center, label.half_size])]
            )
            label.node.position = tuple(camera.shifted(label.point, center))

    def _overlap_cost(
        self, label: Label, anchor: np.ndarray, motor_points: np.ndarray, placed_boxes: np.ndarray
    ) -> float:
        """Return the cost of covered motors and labels at the current position of a label."""
        centers = (anchor + label.center)[None]
        return float(self._overlap_costs(centers, label.half_size, motor_points, placed_boxes)[0])

    def _best_center(
        self,
        label: Label,
        anchor: np.ndarray,
        others: np.ndarray,
        motor_points: np.ndarray,
        solid_points: np.ndarray,
        placed_boxes: np.ndarray,
    ) -> np.ndarray:
        """Return the center of a label with the lowest cost (2,), pixels from its point.

        Args:
            label: the label.
            anchor: point of the label in the picture (2,), pixels.
            others: points of the other labels (k, 2).
            motor_points: points of motors (N, 2).
            solid_points: points of solids (N, 2).
            placed_boxes: centers and half sizes of the labels that are already placed (k, 4).
        """
        half = label.half_size
        steps = np.array([d for d in DISTANCES for _ in LABEL_DIRECTIONS])
        directions = np.tile(LABEL_DIRECTIONS, (len(DISTANCES), 1))
        unit = directions / np.linalg.norm(directions, axis=1, keepdims=True)
        offsets = unit * steps[:, None] + directions * half
        centers = anchor + offsets
        costs = self._overlap_costs(centers, half, motor_points, placed_boxes)
        costs += DISTANCE_COST * steps
        if label.center is not None:
            costs += JUMP_COST * np.linalg.norm(offsets - label.center, axis=1)
        costs += CONFUSION_COST * _confusion(centers, half, anchor, others)
        costs += POINT_COST * _covered(centers, half, solid_points)
        frame = 0.5 * np.array(self.camera.size) - half
        costs += OUTSIDE_COST * np.clip(np.abs(centers) - frame, 0.0, None).sum(axis=1)
        return np.asarray(offsets[int(np.argmin(costs))])

    @staticmethod
    def _overlap_costs(
        centers: np.ndarray, half: np.ndarray, motor_points: np.ndarray, placed_boxes: np.ndarray
    ) -> np.ndarray:
        """Return the cost of covered motors and labels at centers (N, 2)."""
        motors = MOTOR_COST * _covered(centers, half, motor_points)
        distance = np.abs(centers[:, None] - placed_boxes[None, :, :2])
        overlap = np.clip(half + placed_boxes[:, 2:] - distance, 0.0, None)
        return np.asarray(motors + LABEL_COST * overlap.prod(axis=2).sum(axis=1))


def _confusion(
    centers: np.ndarray, half: np.ndarray, anchor: np.ndarray, others: np.ndarray
) -> np.ndarray:
    """Return by how many pixels each box (N,) is nearer to another named point than to its own.

    Points that nearly coincide in the picture are ignored, because no position of a label can
    distinguish them.

    Args:
        centers: centers of the boxes (N, 2).
        half: half size of the boxes (2,).
        anchor: the named point of the label (2,).
        others: points of other labels (k, 2).
    """
    separate = others[np.linalg.norm(others - anchor, axis=1) > LABEL_HEIGHT]
    if not len(separate):
        return np.zeros(len(centers))
    distances = [
        np.linalg.norm(np.clip(np.abs(centers - point) - half, 0.0, None), axis=1)
        for point in (anchor, *separate)
    ]
    return np.clip(distances[0] + LABEL_MARGIN - np.min(distances[1:], axis=0), 0.0, None)


def _covered(centers: np.ndarray, half: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the number of points (M, 2) in boxes with centers (N, 2) and half sizes (2,)."""
    distance = np.abs(centers[:, None] - points[None])
    return np.asarray((distance < half).all(axis=2).sum(axis=1), dtype=float)


def surface_points(vertices: np.ndarray, faces: np.ndarray, spacing: float) -> np.ndarray:
    """Return points (N, 3) on the edges of triangles, m.

    Args:
        vertices: vertices (n, 3), m.
        faces: indices of the vertices of triangles (f, 3).
        spacing: largest distance between points, m; points closer to each other may be merged.
    """
    edges = np.unique(np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    starts = vertices[edges[:, 0]]
    ends = vertices[edges[:, 1]]
    counts = np.ceil(np.linalg.norm(ends - starts, axis=1) / spacing).astype(int) + 1
    edge = np.repeat(np.arange(len(edges)), counts)
    number = np.arange(len(edge)) - np.repeat(np.cumsum(counts) - counts, counts)
    fraction = (number / np.maximum(counts[edge] - 1, 1))[:, None]
    points = starts[edge] * (1.0 - fraction) + ends[edge] * fraction
    _, first = np.unique(np.round(points / spacing), axis=0, return_index=True)
    return np.asarray(points[np.sort(first)])
