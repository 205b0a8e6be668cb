"""Poses of a task's box: a grid that includes the boundary, and neighbors of poses."""

from __future__ import annotations

import itertools
import math

import numpy as np

from tauloop.design.synthesis.task import DesignTask

#: Number of halvings of the step in the search for worst poses between the poses of the grid.
HALVINGS = 12


def grid_poses(task: DesignTask) -> np.ndarray:
    """Return poses (P, m) in half widths of the box, -1 to 1, the farthest from the center first.

    A box has a regular grid that includes its vertices. A cylinder has rings, the outermost of which is
    its rim. The number of poses is at most that of the task, but all vertices are always included.
    """
    varied = np.flatnonzero(task.half > 0.0)
    grid = (
        _disc_grid(task, varied) if task.radius is not None else _box_grid(task.count, len(varied))
    )
    poses = np.zeros((len(grid), len(task.half)))
    poses[:, varied] = grid
    distance = np.abs(grid)
    order = np.lexsort((-distance.sum(axis=1), -distance.max(axis=1)))
    return poses[order]


def _box_grid(count: int, axes: int) -> np.ndarray:
    """Return a regular grid (P, axes) of at most `count` poses, or of all vertices."""
    steps = max(int(round(count ** (1.0 / max(axes, 1)), 9)), 2)
    levels = np.linspace(-1.0, 1.0, steps)
    return np.array(list(itertools.product(levels, repeat=axes))).reshape(-1, axes)


def _disc_grid(task: DesignTask, varied: np.ndarray) -> np.ndarray:
    """Return rings of poses in the first two varied axes, at each level of the other axes."""
    n_other_axes = len(varied) - 2
    n_levels = 5 if n_other_axes == 1 else 3
    axis_levels = np.linspace(-1.0, 1.0, n_levels)
    levels = np.array(list(itertools.product(axis_levels, repeat=n_other_axes)))
    levels = levels.reshape(n_levels**n_other_axes, n_other_axes)
    disc_poses = max(task.count // len(levels), 7)
    rings = max(int(math.sqrt(disc_poses / 8.0)), 1)
    ring_poses = 6 * max((disc_poses - 1) // (6 * rings), 1)
    angles = 2.0 * np.pi * np.arange(ring_poses) / ring_poses
    disc = [np.zeros((1, 2))]
    for ring in range(1, rings + 1):
        disc.append(np.column_stack([np.cos(angles), np.sin(angles)]) * (ring / rings))
    points = np.concatenate(disc)
    return np.concatenate(
        [np.repeat(points, len(levels), axis=0), np.tile(levels, (len(points), 1))], axis=1
    )


def limited_poses(task: DesignTask, poses: np.ndarray) -> np.ndarray:
    """Return poses (P, m) after moving each to the nearest pose within the box or cylinder."""
    clipped = np.clip(poses, -1.0, 1.0)
    if task.radius is not None:
        disc = np.flatnonzero(task.half > 0.0)[:2]
        radius = np.linalg.norm(clipped[:, disc], axis=1, keepdims=True)
        clipped[:, disc] /= np.maximum(radius, 1.0)
    return clipped


def neighbors(task: DesignTask, pose: np.ndarray, step: float) -> np.ndarray:
    """Return a pose (m,) and its neighbors at a distance of `step` half widths, within the box."""
    varied = np.flatnonzero(task.half > 0.0)
    moves = np.zeros((3 ** len(varied), len(pose)))
    if len(varied) <= 3:
        moves[:, varied] = list(itertools.product((-1.0, 0.0, 1.0), repeat=len(varied)))
    else:
        moves = np.zeros((2 * len(varied) + 1, len(pose)))
        for k, axis in enumerate(varied):
            moves[2 * k, axis] = 1.0
            moves[2 * k + 1, axis] = -1.0
    return limited_poses(task, pose + step * moves)
