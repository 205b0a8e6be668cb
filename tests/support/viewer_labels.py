"""Where the labels of a viewer are in its picture, and what they cover."""

from __future__ import annotations

import numpy as np

from tauloop.viewer import Viewer
from tauloop.viewer.scene.labels import SceneLabels

#: Rounding of a camera's position, pixels.
ROUNDING = 1e-6


def boxes(labels: SceneLabels) -> np.ndarray:
    """Centers and half sizes of the labels in the picture (n, 4), from their nodes, pixels."""
    positions = np.array([label.node.position for label in labels.labels.values()])
    halves = np.array([label.half_size for label in labels.labels.values()])
    return np.hstack([labels.camera.pixels(positions), halves])


def covered_motor_points(viewer: Viewer) -> int:
    labels = viewer.scene.labels
    motors = labels.camera.pixels(viewer.scene.obstacles()[0])
    count = 0
    for box in boxes(labels):
        count += int((np.abs(motors - box[:2]) < box[2:] - ROUNDING).all(axis=1).sum())
    return count


def overlaps(labels: SceneLabels) -> int:
    placed = boxes(labels)
    count = 0
    for i, box in enumerate(placed):
        for other in placed[:i]:
            gap = np.abs(box[:2] - other[:2]) - (box[2:] + other[2:])
            count += bool((gap < -ROUNDING).all())
    return count
