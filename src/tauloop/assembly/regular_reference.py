"""Singular reference poses: which kind of singularity, how near, and which regular pose is used instead.

All consistent motions of a pose, free of units, are the columns of N (K N = 0). With P the rows of the independent
velocities and A those of the actuators and passive freedoms, a pose is singular where P N, A N or K loses rank: then
the independent coordinates do not determine the machine, the actuators do not hold it, or ways to move branch off.
"""

from __future__ import annotations

import numpy as np

from tauloop.assembly.closing import RANK_FLOOR
from tauloop.assembly.coordinates import unit_free
from tauloop.assembly.freedoms import Actuation
from tauloop.assembly.loops import Loops
from tauloop.assembly.rank import NEARLY, Probe
from tauloop.assembly.reference_pose import named_pose
from tauloop.errors import Problem
from tauloop.records import dataclass

#: A map whose least stretch is below this share of its largest over all states has lost a direction.
LOST = NEARLY
#: What each kind of singular pose does.
MEANING = {
    "parallel": "the machine moves although all actuators rest",
    "serial": "actuators move although the independent coordinates rest",
    "dead centre": "an actuator or independent coordinate has turned back, whatever moves",
    "constraint": "ways to move branch off",
}


def in_words(kinds: tuple[str, ...], detail: str) -> str:
    """Kinds of singularities with their meaning, and what shows them."""
    return "; ".join([*(f"{kind}: {MEANING[kind]}" for kind in kinds), *([detail] if detail else [])])


@dataclass(frozen=True, slots=True, kw_only=True)
class Substitute:
    """A regular pose that stands in for a singular reference pose of the file.

    Attributes:
        kinds: of singularities there, among `MEANING`.
        detail: which coordinates or actuators stand still there (dead centres), or which rank the loops have.
        condition: largest over least stretch of the worst map there; infinite at the singularity itself.
        q: the singular pose (n_q,).
    """

    kinds: tuple[str, ...]
    detail: str
    condition: float
    q: np.ndarray

    @property
    def text(self) -> str:
        """Which singularity it is, in words, and the condition there."""
        return f"{in_words(self.kinds, self.detail)}; condition {self.condition:.3g} there"

    def note(self, loops: Loops, q: np.ndarray, independent: tuple[int, ...], condition: float) -> Problem:
        """The note that another pose is used.

        Args:
            loops: the loop equations.
            q: the pose used (n_q,).
            independent: indices of the velocities whose coordinates are named.
            condition: of the pose used.
        """
        way = np.zeros(loops.topology.n_v)
        way[list(independent)] = 1.0
        pose = named_pose(loops, q, way)
        return Problem(
            where="reference pose",
            what=f"is singular ({self.text}); a regular pose nearby is used instead, wherever no other pose is given: "
            f"{pose} (condition {condition:.3g})",
            remedy="give a regular reference pose, on the branch that you want",
            file=loops.mechanism.file,
        )

    def as_dict(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        condition = self.condition if np.isfinite(self.condition) else None
        return {"kinds": list(self.kinds), "detail": self.detail, "condition_there": condition}


@dataclass(frozen=True, slots=True, kw_only=True)
class Maps:
    """What determines the motions of the machine at many states: unit-free rows of each map, times N.

    Attributes:
        serial, parallel: P N and A N (N, m, m).
        names: of the rows of each.
    """

    serial: np.ndarray
    parallel: np.ndarray
    serial_names: tuple[str, ...]
    parallel_names: tuple[str, ...]


def maps_of(loops: Loops, motions: np.ndarray, independent: tuple[int, ...], found: Actuation) -> Maps:
    """Maps from all motions (N, n_v, m) to the independent, and to the driven and passive, velocities."""
    names = loops.topology.velocity_names
    rows = np.concatenate([unit_free(loops), np.eye(loops.topology.n_v)[list(found.passive)]])
    actuators = (actuator.name for actuator in loops.mechanism.actuators)
    return Maps(
        serial=motions[:, list(independent)],
        parallel=rows @ motions,
        serial_names=tuple(names[i] for i in independent),
        parallel_names=(*actuators, *(names[i] for i in found.passive)),
    )


def weakness(matrices: np.ndarray) -> np.ndarray:
    """Largest stretch over all states, over the least one of each (N,): at least one, infinite where a map lost one."""
    n, rows, m = matrices.shape
    if not m:
        return np.ones(n)
    if rows < m:
        return np.full(n, np.inf)
    sigma = np.linalg.svd(matrices, compute_uv=False)
    with np.errstate(divide="ignore"):
        return np.asarray(max(float(sigma.max()), 1e-300) / sigma[:, -1])


def constraint_substitute(probe: Probe, regular: int) -> Substitute:
    """What says that the loops lose rank at a pose, and not at that state around it."""
    ranks = (probe.sigma > RANK_FLOOR * probe.sigma[:, :1]).sum(axis=1)
    least = probe.sigma[0, ranks[regular] - 1]
    return Substitute(
        kinds=("constraint",),
        detail=f"the loops have rank {ranks[0]} there and {ranks[regular]} around it"
        if ranks[0] < ranks[regular]
        else "the loops nearly lose rank there, and not around it",
        condition=float(probe.sigma[0, 0] / least) if least > 0 else np.inf,
        q=probe.q[0],
    )


def regular_state(maps: Maps, q: np.ndarray) -> tuple[int, Substitute | None]:
    """The best conditioned of the states and what makes the first one singular; 0 and None where it is regular.

    Args:
        maps: at all states.
        q: the first state (1, n_q).
    """
    serial, parallel = weakness(maps.serial), weakness(maps.parallel)
    worst = np.maximum(serial, parallel)
    best = int(np.argmin(worst))
    if worst[0] < 1.0 / LOST or not worst[best] < 1.0 / LOST:
        return 0, None
    kinds, still = lost(maps)
    return best, Substitute(
        kinds=kinds,
        detail=standing(still),
        condition=float(worst[0]),
        q=q[0],
    )


def lost(maps: Maps) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which kinds of singularity the first state has, and which coordinates or actuators stand still there.

    Where no map has lost a direction the kind is that of the one that is nearest to it.
    """
    kinds, names = [], []
    serial, parallel = weakness(maps.serial), weakness(maps.parallel)
    enough = min(1.0 / LOST, max(serial[0], parallel[0]))
    for kind, weak, matrices, rows in (
        ("serial", serial, maps.serial, maps.serial_names),
        ("parallel", parallel, maps.parallel, maps.parallel_names),
    ):
        if weak[0] < enough:
            continue
        size = np.linalg.norm(matrices, axis=2)
        still = [name for name, now, most in zip(rows, size[0], size.max(axis=0), strict=True) if now < LOST * most]
        kinds.append("dead centre" if still else kind)
        names += still
    return tuple(dict.fromkeys(kinds)), tuple(dict.fromkeys(names))


def standing(names: tuple[str, ...]) -> str:
    """That coordinates or actuators stand still, in words; nothing where none does."""
    verb = "stands" if len(names) == 1 else "stand"
    return f"{', '.join(names)} {verb} still" if names else ""
