"""Turns of angles: what a loop tells of an angle is its cosine and sine; the whole turns come from elsewhere.

At a single pose they come from start values, along a motion from the sample before: every angle is the one nearest to
what it was, a + 2 pi floor((near - a) / 2 pi + 1/2).
"""

from __future__ import annotations

import casadi as ca
import numpy as np

TURN = 2.0 * np.pi


def nearest_turn(angle: ca.SX, near: ca.SX) -> ca.SX:
    """The same angle, by whole turns as near as can be to another (rad)."""
    return angle + TURN * ca.floor((near - angle) * (1.0 / TURN) + 0.5)


def nearest_turns(q: np.ndarray, near: np.ndarray, turning: tuple[int, ...]) -> np.ndarray:
    """Coordinates (N, n_q) with some angles, by index, on the turn nearest to others (N, n_q) or (n_q,)."""
    q, columns = q.copy(), list(turning)
    q[:, columns] -= TURN * np.round((q[:, columns] - near[..., columns]) / TURN)
    return q


def continued(q: np.ndarray, turning: tuple[int, ...]) -> np.ndarray:
    """Coordinates (N, n_q) of consecutive samples of a motion, some angles of which go on without jumps of turns."""
    q, columns = q.copy(), list(turning)
    turns = np.round(np.diff(q[:, columns], axis=0) / TURN)
    q[1:, columns] -= TURN * np.cumsum(turns, axis=0)
    return q
