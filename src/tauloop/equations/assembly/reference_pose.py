"""Reference pose of a machine: the assembled pose within the limits nearest to its start values.

Closing the loops gives the nearest assembled state, which may be wrong: the platform moved although
the legs could reach it, an angle differs by full revolutions, or a coordinate exceeds its limits.
In these cases the loops are closed from further starts, and the nearest resulting pose is used.

The pose may be singular. The columns of N are all consistent dimensionless motions of a pose
(K N = 0). P are the rows of the independent velocities, and A are the rows of the actuators and
passive freedoms. A pose is singular if P N, A N or K loses rank: the independent coordinates do not
determine the machine, the actuators do not hold it, or paths of motion branch. Then a regular pose
nearby is the reference instead.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from tauloop.common.errors import Problem
from tauloop.common.plain import OMITTED, PlainData, json_keys
from tauloop.common.records import dataclass
from tauloop.equations.assembly.closing import (
    AXIS_TOLERANCE,
    CLOSED,
    RANK_FLOOR,
    Probe,
    close_from_reference,
    close_loops,
)
from tauloop.equations.assembly.freedoms.coordinates import Actuation, unit_free
from tauloop.equations.assembly.limits import (
    coordinate_limits,
    excess,
    limited,
    limits_of,
    moved_inside,
)
from tauloop.equations.assembly.loops import Loops
from tauloop.equations.topology import integrate
from tauloop.mechanism.model import LIMIT_KINDS

#: A pose is singular if a singular value within the rank is below this fraction of the largest one,
#: but not at other poses. A map has lost a direction if its smallest singular value is below this
#: fraction of the largest over all states. Loops closed to 1e-10 locate a dead center only to the
#: square root, 1e-5; nearer poses may be beyond it.
NEARLY_SINGULAR = 1e-4


#: Number of random starts.
RANDOM_STARTS = 40
#: Standard deviation of their positions, characteristic lengths.
START_SPREAD = 1.0
#: Distance below which poses count as equal, rad or characteristic lengths.
POSE_TOLERANCE = 1e-5
#: A platform coordinate that changes by less than this when the loops close keeps the mode that the
#: file intends, rad or characteristic lengths.
INTENDED_MOVE = 0.35
#: Maximum number of coordinates that a message names.
MAX_NAMED = 6
#: Smallest displacement of such a coordinate, rad or characteristic lengths.
MIN_NAMED_MOVE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencePose:
    """Reference pose of a machine.

    Attributes:
        q: coordinates (1, n_q).
        residual: largest residual (1,) at the pose, characteristic lengths (or dimensionless).
        notes: notes on a change of the pose because of limits or further starts.
        findings: limits that could not be respected.
    """

    q: np.ndarray
    residual: np.ndarray
    notes: tuple[Problem, ...] = ()
    findings: tuple[Problem, ...] = ()


def reference_pose(loops: Loops, independent: tuple[int, ...]) -> ReferencePose:
    """Return the assembled pose that belongs to the start values of the file.

    Args:
        loops: the loop equations.
        independent: velocities whose coordinates keep the file's values if the loops close there.
    """
    start = np.array([loops.topology.reference])
    q, residual = close_from_reference(loops, independent)
    notes: tuple[Problem, ...] = ()
    change = np.abs(displacement(loops, start, q)[0, list(independent)])
    if residual[0] <= CLOSED and change.max(initial=0.0) > INTENDED_MOVE:
        poses = nearest_first(loops, start, closed_from_further_starts(loops, start, independent))
        if len(poses):
            q, residual = close_loops(loops, poses[:1])
            notes = (_from_further_starts(loops, independent[int(change.argmax())], start, poses),)
    q, residual = _on_the_nearest_turn(loops, start, q, residual)
    if residual[0] > CLOSED or not excess(loops, q).any():
        return ReferencePose(q=q, residual=residual, notes=notes)
    return _within_limits(loops, start, q, residual)


def _from_further_starts(loops: Loops, moved: int, start: np.ndarray, poses: np.ndarray) -> Problem:
    pose = named_pose(loops, poses[0], displacement(loops, start, poses[:1])[0])
    name = loops.topology.velocity_names[moved]
    return Problem(
        where="reference pose",
        what=f"from the start values of the file, the loops close only if {name} moves; it keeps "
        f"its value, and the nearest of {len(poses)} poses found from further starts is the "
        f"reference: {pose}",
        remedy="give a reference pose on the branch that you want",
        file=loops.mechanism.file,
    )


def displacement(loops: Loops, start: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the dimensionless displacements (N, n_v) from one pose (1, n_q) to others (N, n_q).

    Rotations are given as rotation vectors.
    """
    topology = loops.topology
    change = np.zeros((len(q), topology.n_v))
    for i, j in enumerate(topology.q_of_v):
        if j >= 0:
            change[:, i] = (q[:, j] - start[:, j]) / loops.velocity_scale[i]
    for iq, iv in topology.quaternions:
        p0, p = start[:, iq : iq + 1], start[:, iq + 1 : iq + 4]
        r0, r = q[:, iq : iq + 1], q[:, iq + 1 : iq + 4]
        real = p0 * r0 + (p * r).sum(axis=1, keepdims=True)
        vector = p0 * r - r0 * p - np.cross(r, p)
        size = np.linalg.norm(vector, axis=1, keepdims=True)
        angle = 2 * np.arctan2(size, np.abs(real))
        change[:, iv : iv + 3] = (
            np.where(real < 0, -1, 1) * vector / np.maximum(size, 1e-300) * angle
        )
    return change


def distance(loops: Loops, start: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the Euclidean norm (N,) of the displacement, rad or characteristic lengths."""
    return np.asarray(np.linalg.norm(displacement(loops, start, q), axis=1))


def distance_modulo_turns(loops: Loops, start: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the `distance` (N,) without full revolutions.

    Half a revolution has the same distance in both directions.
    """
    change, turns = displacement(loops, start, q), np.asarray(loops.topology.angular, dtype=bool)
    change[:, turns] = (change[:, turns] + np.pi) % (2 * np.pi) - np.pi
    return np.asarray(np.linalg.norm(change, axis=1))


def closed_from_further_starts(
    loops: Loops,
    start: np.ndarray,
    fixed: tuple[int, ...] = (),
    *,
    count: int = RANDOM_STARTS,
    searched: Loops | None = None,
) -> np.ndarray:
    """Return distinct assembled poses (M, n_q) within the limits, from one start and random ones.

    Repeated calls return the same poses.

    Args:
        loops: loop functions of the machine.
        start: coordinates (1, n_q). Random starts have lengths scattered around these, and
            uniformly distributed angles.
        fixed: indices of velocities whose coordinates keep their start values.
        count: number of random starts.
        searched: loops with additional equations, which are closed before the loops themselves.
    """
    topology, rng = loops.topology, np.random.default_rng(0)
    step = np.where(
        np.asarray(topology.angular, dtype=bool),
        rng.uniform(-np.pi, np.pi, (1 + count, topology.n_v)),
        START_SPREAD * loops.length * rng.normal(size=(1 + count, topology.n_v)),
    )
    step[0] = 0.0
    step[:, list(fixed)] = 0.0
    q = moved_inside(loops, integrate(topology, np.repeat(start, 1 + count, axis=0), step))
    if searched is not None:
        q, _ = close_loops(searched, q, held=fixed)
    q, residual = close_loops(loops, q, held=fixed)
    q, residual = _on_the_nearest_turn(loops, start, q, residual)
    strict = loops.aligned
    is_aligned = strict.openings(strict.residuals(q)[0]) < AXIS_TOLERANCE
    lengths = [i for _, i, _ in topology.telescopes]
    good = (
        (residual < CLOSED)
        & is_aligned
        & (q[:, lengths] > 0).all(axis=1)
        & ~excess(loops, q).any(axis=1)
    )
    return _different(loops, q[good])


def nearest_first(loops: Loops, start: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return poses (M, n_q) sorted by distance from a start (1, n_q).

    Poses at equal distances are sorted by larger coordinates.
    """
    distances = np.round(distance(loops, start, q), 3)
    scaled = q / loops.coordinate_scale
    return q[np.lexsort((*(-np.round(column, 3) for column in scaled.T[::-1]), distances))]


def _different(loops: Loops, q: np.ndarray) -> np.ndarray:
    kept: list[np.ndarray] = []
    for pose in q:
        if (
            not kept
            or distance_modulo_turns(loops, pose[None, :], np.array(kept)).min() > POSE_TOLERANCE
        ):
            kept.append(pose)
    return np.array(kept).reshape(len(kept), q.shape[1])


def _on_the_nearest_turn(
    loops: Loops, start: np.ndarray, q: np.ndarray, residual: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return poses (N, n_q) with angles within half a revolution, if loops remain closed."""
    turns = np.where(loops.topology.is_angle, np.round((q - start) / (2 * np.pi)), 0.0)
    if not turns.any():
        return q, residual
    nearest_turn, new_residual = close_loops(loops, q - 2 * np.pi * turns, iterations=3)
    same = loops.gaps(q - 2 * np.pi * turns, nearest_turn) < POSE_TOLERANCE
    better = same & ((new_residual <= CLOSED) | (residual > CLOSED))
    return np.where(better[:, None], nearest_turn, q), np.where(better, new_residual, residual)


def _within_limits(
    loops: Loops, start: np.ndarray, q: np.ndarray, residual: np.ndarray
) -> ReferencePose:
    """Return a pose within the limits if closing exceeded them."""
    limits = limits_of(loops.mechanism, loops.topology)
    exceeded = "; ".join(str(item) for kind in LIMIT_KINDS for item in limits.beyond(q, kind=kind))
    inside = moved_inside(loops, start)
    lower, upper = coordinate_limits(loops.topology)
    ranged = tuple(
        i
        for i, j in enumerate(loops.topology.q_of_v)
        if j >= 0 and np.isfinite([lower[j], upper[j]]).any()
    )
    for fixed, searched in ((ranged, None), ((), limited(loops))):
        poses = nearest_first(
            loops, inside, closed_from_further_starts(loops, inside, fixed, searched=searched)
        )
        if len(poses):
            nearest, new_residual = close_loops(loops, poses[:1])
            note = Problem(
                where="reference pose",
                what=f"closing the loops leads outside the limits: {exceeded}; the reference is "
                f"another pose within them, the nearest of {len(poses)} that were found: "
                + named_pose(loops, nearest[0], displacement(loops, start, nearest)[0]),
                remedy="give a reference pose within the limits, on the branch that you want",
                file=loops.mechanism.file,
            )
            return ReferencePose(q=nearest, residual=new_residual, notes=(note,))
    finding = Problem(
        where="reference pose",
        what=f"is outside the limits: {exceeded}; no assembled pose within them was found",
        remedy="give a reference pose within the limits, or widen them",
        file=loops.mechanism.file,
    )
    return ReferencePose(q=q, residual=residual, findings=(finding,))


def named_pose(loops: Loops, q: np.ndarray, change: np.ndarray) -> str:
    """Return the most displaced coordinates of a pose (n_q,) with their values, as text.

    `change` are the displacements (n_v,).
    """
    topology = loops.topology
    moved = [
        i
        for i in np.argsort(-np.abs(change), kind="stable")
        if topology.q_of_v[i] >= 0 and abs(change[i]) > MIN_NAMED_MOVE
    ]
    return ", ".join(
        f"{topology.velocity_names[i]} = "
        + (
            f"{np.degrees(q[topology.q_of_v[i]]):.4g} deg"
            if topology.angular[i]
            else f"{q[topology.q_of_v[i]]:.4g} m"
        )
        for i in sorted(moved[:MAX_NAMED])
    )


#: Effect of each kind of singularity.
SINGULARITY_EFFECTS = {
    "parallel": "the machine can move while all actuators rest",
    "serial": "actuators can move while the independent coordinates rest",
    "dead center": "an actuator or independent coordinate is at a turning point of its motion",
    "constraint": "paths of motion branch",
}


def in_words(kinds: tuple[str, ...], detail: str) -> str:
    """Return a text on kinds of singularities with their meaning and details."""
    return "; ".join(
        [*(f"{kind}: {SINGULARITY_EFFECTS[kind]}" for kind in kinds), *([detail] if detail else [])]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Substitute(PlainData):
    """A regular pose that replaces a singular reference pose of the file.

    Attributes:
        kinds: kinds of singularities, keys of `SINGULARITY_EFFECTS`.
        detail: coordinates or actuators at a dead center, or the rank of the loops.
        condition: condition number of the worst map at the singular pose; infinite at an exact
            singularity.
        q: the singular pose (n_q,).
    """

    kinds: tuple[str, ...]
    detail: str
    condition: float = field(metadata=json_keys("condition_there", nullable=True))
    q: np.ndarray = field(metadata=OMITTED)

    @property
    def text(self) -> str:
        """The kinds of singularity and the condition number, as text."""
        return f"{in_words(self.kinds, self.detail)}; condition number {self.condition:.3g}"

    def note(
        self, loops: Loops, q: np.ndarray, independent: tuple[int, ...], condition: float
    ) -> Problem:
        """Return the note that another pose is used.

        Args:
            loops: the loop equations.
            q: the pose used (n_q,).
            independent: indices of the independent velocities, whose coordinates the note names.
            condition: condition number of the pose used.
        """
        change = np.zeros(loops.topology.n_v)
        change[list(independent)] = 1.0
        pose = named_pose(loops, q, change)
        return Problem(
            where="reference pose",
            what=f"is singular ({self.text}); a regular pose nearby is used instead, unless "
            f"another pose is given: {pose} (condition number {condition:.3g})",
            remedy="give a regular reference pose, on the branch that you want",
            file=loops.mechanism.file,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Maps:
    """Maps from consistent motions to independent and to driven velocities, at many states.

    Attributes:
        serial, parallel: P N and A N (N, m, m), dimensionless.
        names: names of the rows of each map.
    """

    serial: np.ndarray
    parallel: np.ndarray
    serial_names: tuple[str, ...]
    parallel_names: tuple[str, ...]


def maps_of(
    loops: Loops, motions: np.ndarray, independent: tuple[int, ...], actuation: Actuation
) -> Maps:
    """Return the maps from all motions (N, n_v, m) to independent, and to driven, velocities."""
    names = loops.topology.velocity_names
    rows = np.concatenate([unit_free(loops), np.eye(loops.topology.n_v)[list(actuation.passive)]])
    actuators = (actuator.name for actuator in loops.mechanism.actuators)
    return Maps(
        serial=motions[:, list(independent)],
        parallel=rows @ motions,
        serial_names=tuple(names[i] for i in independent),
        parallel_names=(*actuators, *(names[i] for i in actuation.passive)),
    )


def weakness(matrices: np.ndarray) -> np.ndarray:
    """Return the largest singular value of all states over the smallest one of each state (N,).

    The ratio is at least one, and infinite where a map has lost a direction.
    """
    n, rows, m = matrices.shape
    if not m:
        return np.ones(n)
    if rows < m:
        return np.full(n, np.inf)
    sigma = np.linalg.svd(matrices, compute_uv=False)
    with np.errstate(divide="ignore"):
        return np.asarray(max(float(sigma.max()), 1e-300) / sigma[:, -1])


def constraint_substitute(probe: Probe, regular: int) -> Substitute:
    """Return the substitute for a pose where the loops lose rank, with a regular state nearby."""
    ranks = (probe.sigma > RANK_FLOOR * probe.sigma[:, :1]).sum(axis=1)
    least = probe.sigma[0, ranks[regular] - 1]
    return Substitute(
        kinds=("constraint",),
        detail=f"the loops have rank {ranks[0]} at this pose and {ranks[regular]} around it"
        if ranks[0] < ranks[regular]
        else "the loops nearly lose rank at this pose, but not around it",
        condition=float(probe.sigma[0, 0] / least) if least > 0 else np.inf,
        q=probe.q[0],
    )


def regular_state(maps: Maps, q: np.ndarray) -> tuple[int, Substitute | None]:
    """Return the index of the best conditioned state and the singularity of the first one.

    The result is 0 and None if the first state is regular.

    Args:
        maps: maps at all states.
        q: the first state (1, n_q).
    """
    serial, parallel = weakness(maps.serial), weakness(maps.parallel)
    worst = np.maximum(serial, parallel)
    best = int(np.argmin(worst))
    if worst[0] < 1.0 / NEARLY_SINGULAR or not worst[best] < 1.0 / NEARLY_SINGULAR:
        return 0, None
    kinds, at_dead_center = lost(maps)
    return best, Substitute(
        kinds=kinds,
        detail=standing(at_dead_center),
        condition=float(worst[0]),
        q=q[0],
    )


def lost(maps: Maps) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the kinds of singularity of the first state, and the coordinates at a dead center.

    If no map has lost a direction, the kind is that of the map nearest to it.
    """
    kinds, names = [], []
    serial, parallel = weakness(maps.serial), weakness(maps.parallel)
    limit = min(1.0 / NEARLY_SINGULAR, max(serial[0], parallel[0]))
    for kind, weak, matrices, rows in (
        ("serial", serial, maps.serial, maps.serial_names),
        ("parallel", parallel, maps.parallel, maps.parallel_names),
    ):
        if weak[0] < limit:
            continue
        norms = np.linalg.norm(matrices, axis=2)
        at_dead_center = [
            name
            for name, norm, largest in zip(rows, norms[0], norms.max(axis=0), strict=True)
            if norm < NEARLY_SINGULAR * largest
        ]
        kinds.append("dead center" if at_dead_center else kind)
        names += at_dead_center
    return tuple(dict.fromkeys(kinds)), tuple(dict.fromkeys(names))


def standing(names: tuple[str, ...]) -> str:
    """Return the text that coordinates or actuators do not move; empty if there are no names."""
    verb = "stands" if len(names) == 1 else "stand"
    return f"{', '.join(names)} {verb} still" if names else ""
