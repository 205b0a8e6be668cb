"""The assembled pose that a machine starts from: the nearest to its file's start values that is within its limits.

Closing takes the nearest assembled state, which may be none that is meant: the platform moved away although the legs
could reach it, an angle came out full turns away, or a coordinate left its range. Then the loops are closed again from
further starts, and the nearest of the poses found is taken.
"""

from __future__ import annotations

import numpy as np

from tauloop.assembly.closing import ALIGNED, CLOSED, close_from_reference, close_loops, coordinate_limits
from tauloop.assembly.limited_loops import excess, limited, moved_inside
from tauloop.assembly.loops import Loops, aligned
from tauloop.equations.topology import integrate
from tauloop.errors import Problem
from tauloop.records import dataclass

#: Further starts from which the nearest pose is chosen, and standard deviation of their positions, in lengths.
STARTS, SPREAD = 40, 1.0
#: Poses are the same when they are nearer than this, rad or characteristic lengths.
SAME = 1e-5
#: A start value that closing moves by less than this, rad or characteristic lengths, was meant.
NEAR = 0.35
#: A message names at most this many coordinates, and none that moved less, rad or characteristic lengths.
NAMED, SHOWN = 6, 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencePose:
    """Where a machine starts.

    Attributes:
        q: coordinates (1, n_q).
        residual: largest residual there (1,).
        notes, findings: what was done about limits, and what could not be.
    """

    q: np.ndarray
    residual: np.ndarray
    notes: tuple[Problem, ...] = ()
    findings: tuple[Problem, ...] = ()


def reference_pose(loops: Loops, independent: tuple[int, ...]) -> ReferencePose:
    """The assembled pose that is meant by the start values of the file.

    Args:
        loops: the loop equations.
        independent: velocities whose coordinates stay where the file puts them, if the loops close there.
    """
    start = np.array([loops.topology.reference])
    q, residual = close_from_reference(loops, independent)
    notes: tuple[Problem, ...] = ()
    way = np.abs(displacement(loops, start, q)[0, list(independent)])
    if residual[0] <= CLOSED and way.max(initial=0.0) > NEAR:
        found = nearest_first(loops, start, closed_from_further_starts(loops, start, independent))
        if len(found):
            q, residual = close_loops(loops, found[:1])
            notes = (_from_further_starts(loops, independent[int(way.argmax())], start, found),)
    q, residual = _on_the_nearest_turn(loops, start, q, residual)
    if residual[0] > CLOSED or not excess(loops, q).any():
        return ReferencePose(q=q, residual=residual, notes=notes)
    return _within_limits(loops, start, q, residual)


def _from_further_starts(loops: Loops, moved: int, start: np.ndarray, found: np.ndarray) -> Problem:
    pose = named_pose(loops, found[0], displacement(loops, start, found[:1])[0])
    name = loops.topology.velocity_names[moved]
    return Problem(
        where="reference pose",
        what=f"the loops close from the start values of the file only with {name} moved off; it stays, and "
        f"the nearest of {len(found)} poses found from further starts is the reference: {pose}",
        remedy="give a reference pose on the branch that you want",
        file=loops.mechanism.file,
    )


def displacement(loops: Loops, start: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Way from one pose to others, free of units: (N, n_v) from (1, n_q) to (N, n_q); rotations by their vectors."""
    shape = loops.topology
    way = np.zeros((len(q), shape.n_v))
    for i, j in enumerate(shape.q_of_v):
        if j >= 0:
            way[:, i] = (q[:, j] - start[:, j]) / loops.velocity_scale[i]
    for iq, iv in shape.quaternions:
        p0, p = start[:, iq : iq + 1], start[:, iq + 1 : iq + 4]
        r0, r = q[:, iq : iq + 1], q[:, iq + 1 : iq + 4]
        real = p0 * r0 + (p * r).sum(axis=1, keepdims=True)
        vector = p0 * r - r0 * p - np.cross(r, p)
        size = np.linalg.norm(vector, axis=1, keepdims=True)
        angle = 2 * np.arctan2(size, np.abs(real))
        way[:, iv : iv + 3] = np.where(real < 0, -1, 1) * vector / np.maximum(size, 1e-300) * angle
    return way


def distance(loops: Loops, start: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Root of the sum of squares (N,) of the ways of all coordinates, rad or characteristic lengths."""
    return np.asarray(np.linalg.norm(displacement(loops, start, q), axis=1))


def closed_from_further_starts(
    loops: Loops, start: np.ndarray, held: tuple[int, ...] = (), *, count: int = STARTS, searched: Loops | None = None
) -> np.ndarray:
    """Different assembled poses (M, n_q) within the limits, from one start and random ones; always the same.

    Args:
        loops: the loop equations.
        start: coordinates (1, n_q); those that are held stay there, lengths lie around them, and angles anywhere.
        held: indices of velocities whose coordinates stay.
        count: how many random starts.
        searched: loops with further equations, which are closed before the loops themselves.
    """
    shape, rng = loops.topology, np.random.default_rng(0)
    turning = np.asarray(shape.angular, dtype=bool)
    step = np.where(
        turning,
        rng.uniform(-np.pi, np.pi, (1 + count, shape.n_v)),
        SPREAD * loops.length * rng.normal(size=(1 + count, shape.n_v)),
    )
    step[0] = 0.0
    step[:, list(held)] = 0.0
    q = moved_inside(loops, integrate(shape, np.repeat(start, 1 + count, axis=0), step))
    if searched is not None:
        q, _ = close_loops(searched, q, held=held)
    q, residual = close_loops(loops, q, held=held)
    q, residual = _on_the_nearest_turn(loops, start, q, residual)
    strict = aligned(loops) if shape.cuts else loops
    upright = np.abs(strict.residuals(q)[0]).max(axis=1, initial=0.0) < ALIGNED
    lengths = [i for _, i, _ in shape.telescopes]
    good = (residual < CLOSED) & upright & (q[:, lengths] > 0).all(axis=1) & ~excess(loops, q).any(axis=1)
    return _different(loops, q[good])


def nearest_first(loops: Loops, start: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Poses (M, n_q) by their distance from one (1, n_q); among equals the one with larger coordinates comes first."""
    away = np.round(distance(loops, start, q), 3)
    return q[np.lexsort((*(-np.round(column, 3) for column in q.T[::-1]), away))]


def _different(loops: Loops, q: np.ndarray) -> np.ndarray:
    kept: list[np.ndarray] = []
    for pose in q:
        if not kept or distance(loops, pose[None, :], np.array(kept)).min() > SAME:
            kept.append(pose)
    return np.array(kept).reshape(len(kept), q.shape[1])


def _on_the_nearest_turn(
    loops: Loops, start: np.ndarray, q: np.ndarray, residual: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Poses (N, n_q) whose angles are brought within half a turn of the start, where the loops stay closed."""
    turns = np.where(loops.topology.is_angle, np.round((q - start) / (2 * np.pi)), 0.0)
    if not turns.any():
        return q, residual
    turned, left = close_loops(loops, q - 2 * np.pi * turns, iterations=3)
    same = np.abs(turned - q + 2 * np.pi * turns).max(axis=1) < SAME
    better = same & ((left <= CLOSED) | (residual > CLOSED))
    return np.where(better[:, None], turned, q), np.where(better, left, residual)


def _within_limits(loops: Loops, start: np.ndarray, q: np.ndarray, residual: np.ndarray) -> ReferencePose:
    """A pose within the limits, where closing left them."""
    said = beyond(loops, q)
    inside = moved_inside(loops, start)
    lower, upper = coordinate_limits(loops)
    ranged = tuple(i for i, j in enumerate(loops.topology.q_of_v) if j >= 0 and np.isfinite([lower[j], upper[j]]).any())
    for held, searched in ((ranged, None), ((), limited(loops))):
        found = nearest_first(loops, inside, closed_from_further_starts(loops, inside, held, searched=searched))
        if len(found):
            nearest, left = close_loops(loops, found[:1])
            note = Problem(
                where="reference pose",
                what=f"closing the loops leads outside the limits: {said}; another pose, within them, is the reference "
                f"instead, the nearest of {len(found)} that were found: "
                + named_pose(loops, nearest[0], displacement(loops, start, nearest)[0]),
                remedy="give a reference pose within the limits, on the branch that you want",
                file=loops.mechanism.file,
            )
            return ReferencePose(q=nearest, residual=left, notes=(note,))
    finding = Problem(
        where="reference pose",
        what=f"is outside the limits: {said}; no assembled pose within them was found",
        remedy="name a reference pose within the limits, or widen them",
        file=loops.mechanism.file,
    )
    return ReferencePose(q=q, residual=residual, findings=(finding,))


def named_pose(loops: Loops, q: np.ndarray, way: np.ndarray) -> str:
    """Values at a pose (n_q,) of the coordinates that lie farthest on the way (n_v,) to it."""
    shape = loops.topology
    moved = [i for i in np.argsort(-np.abs(way), kind="stable") if shape.q_of_v[i] >= 0 and abs(way[i]) > SHOWN]
    return ", ".join(
        f"{shape.velocity_names[i]} = "
        + (f"{np.degrees(q[shape.q_of_v[i]]):.4g} deg" if shape.angular[i] else f"{q[shape.q_of_v[i]]:.4g} m")
        for i in sorted(moved[:NAMED])
    )


def beyond(loops: Loops, q: np.ndarray) -> str:
    """Which coordinates of a pose (1, n_q) leave their limits, and by how much."""
    shape = loops.topology
    lower, upper = coordinate_limits(loops)
    texts = []
    for i in np.flatnonzero(excess(loops, q)[0]):
        factor, unit = (180 / np.pi, "deg") if shape.is_angle[i] else (1.0, "m")
        ends = f"{factor * lower[i]:.4g} to {factor * upper[i]:.4g} {unit}"
        texts.append(f"{shape.coordinate_names[i]} is at {factor * q[0, i]:.4g} {unit} (limits {ends})")
    return ", ".join(texts)
