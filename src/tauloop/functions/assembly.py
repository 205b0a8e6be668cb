"""Assembly: whether the loops close, their rank and redundancy, the mobility, and what is constant on the manifold.

Decided once at build, over many assembled states, from singular values of the loop Jacobian made free of units.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from tauloop.errors import AssemblyError, Problem
from tauloop.functions.closing import CLOSED, RANK_FLOOR, close_from_reference, close_loops, open_loops, random_walk
from tauloop.functions.hybrid_freedoms import DRIVEN, ROTATION, Actuation, actuation, independent_rows
from tauloop.functions.loops import Loops

#: Gap between kept and dropped singular values that a rank decision needs (design, "How the general machine works").
RANK_GAP = 1e3
#: A coordinate is constant when no motion of unit size moves it by more than this.
FROZEN = 1e-9
#: Jacobians above this condition number count as singular.
SINGULAR = 1e8


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """What the loops of a machine allow.

    Attributes:
        loops: the loop equations.
        q: assembled reference coordinates (n_q,).
        residual: largest loop residual there, m.
        states: assembled states (N, n_q) over which the rank was decided.
        singular_values: unit-free singular values of K at those states (N, min(c, n_v)).
        rank: rank of K.
        gap: smallest ratio of the last kept to the first dropped singular value.
        mobility: n_v - rank.
        frozen: indices of velocities that are zero in every motion.
        rows: indices of the loop equations kept.
        dropped: indices of the redundant ones.
        independent: indices of the independent velocities: those that the file names, completed where it names fewer.
        driven: indices of the velocities that actuators drive.
        platform_condition: condition of the kept loops in the dependent velocities, platform motion given (N,).
        actuator_condition: condition of the map from independent to actuator velocities (N,).
        actuator_rank: rank of the map from all motions to actuator velocities.
        leading: indices of the actuators whose motion is given; with redundant actuation the others follow them.
        passive: indices of the passive velocities: they move while all actuators rest.
        locked: indices of the velocities that are held on request; they are among the frozen.
        findings: what keeps the machine from working as described.
        notes: what whoever uses it has to know: passive freedoms, redundant actuation, coordinates chosen for him.
    """

    loops: Loops
    q: np.ndarray
    residual: float
    states: np.ndarray
    singular_values: np.ndarray
    rank: int
    gap: float
    mobility: int
    frozen: tuple[int, ...]
    rows: tuple[int, ...]
    dropped: tuple[int, ...]
    independent: tuple[int, ...]
    driven: tuple[int, ...]
    platform_condition: np.ndarray
    actuator_condition: np.ndarray
    actuator_rank: int
    leading: tuple[int, ...]
    passive: tuple[int, ...]
    locked: tuple[int, ...]
    findings: tuple[Problem, ...]
    notes: tuple[Problem, ...]

    @property
    def is_redundant(self) -> bool:
        """Whether there are more actuators than freedoms that they move, so that forces are not determined."""
        return len(self.leading) < len(self.loops.mechanism.actuators)

    @property
    def leading_driven(self) -> tuple[int, ...]:
        """Velocities that the leading actuators drive."""
        return tuple(np.flatnonzero(np.any(self.loops.transmission[list(self.leading)], axis=0)).tolist())

    @property
    def passive_names(self) -> tuple[str, ...]:
        """Names of the passive freedoms."""
        return tuple(self.loops.topology.velocity_names[i] for i in self.passive)

    @property
    def spare_actuators(self) -> tuple[str, ...]:
        """Names of the actuators that follow the leading ones."""
        actuators = self.loops.mechanism.actuators
        return tuple(actuator.name for i, actuator in enumerate(actuators) if i not in self.leading)

    def as_dict(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        shape, names = self.loops.topology, self.loops.names
        return {
            "coordinates": list(shape.coordinate_names),
            "velocities": list(shape.velocity_names),
            "reference": dict(zip(shape.coordinate_names, map(float, self.q), strict=True)),
            "residual_m": self.residual,
            "states": len(self.states),
            "loop_equations": len(names),
            "rank": self.rank,
            "singular_value_gap": self.gap if np.isfinite(self.gap) else None,
            "mobility": self.mobility,
            "actuators": len(self.loops.mechanism.actuators),
            "actuator_rank": self.actuator_rank,
            "passive": list(self.passive_names),
            "redundant_actuators": list(self.spare_actuators),
            "locked": [shape.velocity_names[i] for i in self.locked],
            "frozen": [shape.velocity_names[i] for i in self.frozen],
            "redundant_equations": [names[i] for i in self.dropped],
            "independent": [shape.velocity_names[i] for i in self.independent],
            "actuator_condition": _finite(self.actuator_condition),
            "platform_condition": _finite(self.platform_condition),
            "findings": [finding.as_dict() for finding in self.findings],
            "notes": [note.as_dict() for note in self.notes],
        }


def _finite(values: np.ndarray) -> float | None:
    return float(np.median(values)) if len(values) and np.isfinite(np.median(values)) else None


def assemble(loops: Loops, locked: tuple[int, ...] = ()) -> Assembly:
    """Close the loops from the reference pose and decide rank, mobility and redundancy.

    Args:
        loops: the loop equations.
        locked: velocities that are held at the assembled reference pose.

    Raises:
        AssemblyError: the loops cannot be closed at the given geometry; says which and by how much.
    """
    wanted = tuple(i for i in _independent(loops) if i not in locked)
    q, residual = close_from_reference(loops, wanted)
    if residual[0] > CLOSED:
        raise AssemblyError(open_loops(loops, q))
    notes: list[Problem] = []
    states, K_scaled, sigma = _sampled(loops, q, locked)
    regular = _most_regular(sigma)
    if regular:
        notes.append(_left_singular(loops, sigma))
        q, residual = close_loops(loops, states[regular : regular + 1], held=locked)
        states, K_scaled, sigma = _sampled(loops, q, locked)
    findings: list[Problem] = []
    rank, gap = _rank(sigma, findings)
    n_v = loops.topology.n_v
    motions = _null_space(K_scaled, rank, [i for i in range(n_v) if i not in locked])
    extent = np.abs(motions).max(axis=(0, 2)) if motions.shape[2] else np.zeros(n_v)
    frozen = tuple(int(i) for i in np.flatnonzero(extent < FROZEN))
    moving = [i for i in range(n_v) if i not in frozen]
    mobility = n_v - rank - len(locked)
    rows = _kept_rows(K_scaled[:, :, moving], len(moving) - mobility)
    driven = tuple(int(i) for i in np.flatnonzero(np.abs(loops.transmission).max(axis=0, initial=0.0) > 0))
    if not mobility:
        findings.append(
            Problem(
                where=loops.mechanism.name,
                what="the machine is locked: mobility 0",
                remedy="a geometry error of joints that must be parallel or equal may have locked it; compare the "
                "singular values of the nominal machine",
            )
        )
    found = _actuation(loops, motions, notes)
    independent = _completed(loops, motions, wanted, found.passive, notes)
    platform_condition = _platform_condition(loops, K_scaled, rows, independent, frozen, mobility, findings)
    actuator_condition = _actuator_condition(loops, motions, independent, found)
    return Assembly(
        loops=loops,
        q=q[0],
        residual=float(residual[0]),
        states=states,
        singular_values=sigma,
        rank=rank,
        gap=gap,
        mobility=mobility,
        frozen=frozen,
        rows=rows,
        dropped=tuple(i for i in range(len(loops.names)) if i not in rows),
        independent=independent,
        driven=driven,
        platform_condition=platform_condition,
        actuator_condition=actuator_condition,
        actuator_rank=found.rank,
        leading=found.leading,
        passive=found.passive,
        locked=locked,
        findings=tuple(findings),
        notes=tuple(notes),
    )


def _sampled(loops: Loops, q: np.ndarray, locked: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States (N, n_q) around an assembled one, unit-free Jacobians without the locked columns, singular values."""
    states = random_walk(loops, q, np.random.default_rng(0), locked=locked)
    _, K = loops.residuals(states)
    K_scaled = loops.scaled(K)
    K_scaled[:, :, list(locked)] = 0.0
    sigma = np.linalg.svd(K_scaled, compute_uv=False) if K.shape[1] else np.zeros((len(states), 0))
    return states, K_scaled, sigma


def _most_regular(sigma: np.ndarray) -> int:
    """The state farthest from a loss of rank, where the first state has lost some; else 0."""
    if sigma.shape[1] == 0 or not (sigma[:, 0] > 0).all():
        return 0
    relative = sigma / sigma[:, :1]
    ranks = (relative > RANK_FLOOR).sum(axis=1)
    rank = int(ranks.max())
    return 0 if ranks[0] == rank else int(np.argmax(relative[:, rank - 1]))


def _left_singular(loops: Loops, sigma: np.ndarray) -> Problem:
    ranks = (sigma > RANK_FLOOR * sigma[:, :1]).sum(axis=1)
    return Problem(
        where="reference pose",
        what=f"is singular: the loops have rank {ranks[0]} there and {ranks.max()} around it, so that ways to move "
        "branch off; a regular pose nearby, on one of them, is the reference instead",
        remedy="give a reference pose on the branch that you want",
        file=loops.mechanism.file,
    )


def _rank(sigma: np.ndarray, findings: list[Problem]) -> tuple[int, float]:
    """Rank with the largest gap common to all states; a singular reference or an unclear gap is a finding."""
    if sigma.shape[1] == 0 or sigma.size == 0:
        return 0, np.inf
    floor = np.maximum(sigma, RANK_FLOOR * 1e-6 * sigma[:, :1])
    ranks = (sigma > RANK_FLOOR * sigma[:, :1]).sum(axis=1)
    rank = int(ranks.max())
    gap = np.inf
    if rank < sigma.shape[1]:
        gap = float((floor[:, rank - 1] / floor[:, rank]).min()) if rank else np.inf
    if gap < RANK_GAP or (ranks != rank).any():
        findings.append(
            Problem(
                where="loops",
                what=f"the rank of the loop equations is unclear: it is {int(ranks.min())} to {rank} over the states "
                f"tried, with a gap of {gap:.2g} between kept and dropped singular values (needs {RANK_GAP:.0g})",
                remedy="the reference pose is singular, or joints meant to be parallel or equal are not quite so",
            )
        )
    return rank, gap


def _null_space(K_scaled: np.ndarray, rank: int, free: list[int]) -> np.ndarray:
    """Orthonormal motions (N, n_v, mobility), unit-free; velocities that are not free rest."""
    n, c, n_v = K_scaled.shape
    motions = np.zeros((n, n_v, len(free) - rank))
    if c == 0:
        motions[:, free] = np.eye(len(free))
        return motions
    _, _, Vt = np.linalg.svd(K_scaled[:, :, free], full_matrices=True)
    motions[:, free] = Vt[:, rank:, :].transpose(0, 2, 1)
    return motions


def _kept_rows(K_scaled: np.ndarray, rank: int) -> tuple[int, ...]:
    """A subset of rows that is independent at all states: pivoted QR over all of them, first rows preferred."""
    n, c, n_moving = K_scaled.shape
    if rank <= 0:
        return ()
    if rank == c:
        return tuple(range(c))
    preference = 1.0 - 1e-6 * np.arange(c) / c
    stacked = (preference[:, None, None] * K_scaled.transpose(1, 0, 2)).reshape(c, n * n_moving)
    triangle = np.linalg.qr(stacked.T, mode="r")  # the same pivots from a small matrix, which needs no threads
    _, pivots = scipy.linalg.qr(triangle, mode="r", pivoting=True)
    chosen: list[int] = []
    for row in pivots:
        candidate = sorted([*chosen, int(row)])
        sigma = np.linalg.svd(K_scaled[:, candidate], compute_uv=False)
        if (sigma[:, -1] > RANK_FLOOR * sigma[:, 0]).all():
            chosen = candidate
        if len(chosen) == rank:
            break
    return tuple(chosen)


def _independent(loops: Loops) -> tuple[int, ...]:
    names = loops.topology.velocity_names
    wanted = loops.mechanism.platform.independent
    problems = [
        Problem(
            where="platform.independent",
            what=f"{name} is not a coordinate of the extended space: its joint closes a loop",
            remedy=f"choose among {', '.join(names)}",
            file=loops.mechanism.file,
        )
        for name in wanted
        if name not in names
    ]
    if problems:
        raise AssemblyError(problems)
    return tuple(names.index(name) for name in wanted)


def conditions(matrices: np.ndarray) -> np.ndarray:
    """Condition numbers (N,) in the 2-norm; infinite where singular, one for empty matrices."""
    if matrices.shape[1] == 0 or matrices.shape[2] == 0:
        return np.ones(len(matrices))
    sigma = np.linalg.svd(matrices, compute_uv=False)
    with np.errstate(divide="ignore"):
        return np.asarray(sigma[:, 0] / sigma[:, -1])


def _platform_condition(
    loops: Loops,
    K_scaled: np.ndarray,
    rows: tuple[int, ...],
    independent: tuple[int, ...],
    frozen: tuple[int, ...],
    mobility: int,
    findings: list[Problem],
) -> np.ndarray:
    names = [loops.topology.velocity_names[i] for i in independent]
    if len(independent) != mobility:
        findings.append(
            Problem(
                where="platform.independent",
                what=f"names {len(independent)} coordinates ({', '.join(names)}) but the mobility is {mobility}",
                remedy=f"name {mobility} coordinates, or check the joints",
                file=loops.mechanism.file,
            )
        )
        return np.full(len(K_scaled), np.inf)
    dependent = [i for i in range(loops.topology.n_v) if i not in independent and i not in frozen]
    condition = conditions(K_scaled[:, list(rows)][:, :, dependent])
    if np.median(condition) > SINGULAR:
        findings.append(
            Problem(
                where="platform.independent",
                what=f"{', '.join(names)} do not determine the pose (condition number {np.median(condition):.2g})",
                remedy="name other coordinates of the platform",
                file=loops.mechanism.file,
            )
        )
    return condition


def _completed(
    loops: Loops, motions: np.ndarray, wanted: tuple[int, ...], passive: tuple[int, ...], notes: list[Problem]
) -> tuple[int, ...]:
    """The independent velocities that the file names, and more where they are fewer than the mobility.

    Further ones of a joint that the file names come first, then those of actuators and passive freedoms, so that the
    state is what is driven and what is free.
    """
    mobility = motions.shape[2]
    if len(wanted) >= mobility:
        return wanted
    weight = np.where(_scalar(loops), 1.0, ROTATION)
    weight[np.abs(loops.transmission).max(axis=0, initial=0.0) > 0] *= DRIVEN
    weight[list(passive)] *= DRIVEN
    joints = [name.rpartition(".")[0] for name in loops.topology.velocity_names]
    named = {joints[i] for i in wanted} - {""}
    weight *= np.array([DRIVEN**2 if joint in named else 1.0 for joint in joints])
    chosen = tuple(sorted(independent_rows(motions, mobility, wanted, weight)))
    names = loops.topology.velocity_names
    given = f"names {len(wanted)} coordinates ({', '.join(names[i] for i in wanted)})" if wanted else "names none"
    added = ", ".join(names[i] for i in chosen if i not in wanted)
    notes.append(
        Problem(
            where="platform.independent",
            what=f"{given} but the mobility is {mobility}; chosen by their conditioning: {added}",
            remedy=f"name {mobility} coordinates where others suit you better",
            file=loops.mechanism.file,
        )
    )
    return chosen


def _scalar(loops: Loops) -> np.ndarray:
    return np.array([i >= 0 for i in loops.topology.q_of_v], dtype=bool)


def _unit_free(loops: Loops) -> np.ndarray:
    """Actuator velocities per unit-free velocity (n_u, n_v), the largest entry of each row one."""
    A = loops.transmission * loops.velocity_scale
    unit = np.abs(A).max(axis=1, initial=0.0)
    return np.asarray(A / np.where(unit > 0, unit, 1.0)[:, None])


def _actuation(loops: Loops, motions: np.ndarray, notes: list[Problem]) -> Actuation:
    """What the actuators move, which of them lead, and which freedoms are passive."""
    mobility = motions.shape[2]
    scaled = _unit_free(loops)
    sigma = np.linalg.svd(scaled @ motions, compute_uv=False) if scaled.size and mobility else np.zeros((1, 0))
    rank = int((sigma > 1.0 / SINGULAR * np.maximum(sigma[:, :1], 1e-300)).sum(axis=1).max(initial=0))
    found = actuation(motions, scaled, loops.transmission, rank, _scalar(loops))
    actuators = [actuator.name for actuator in loops.mechanism.actuators]
    if rank < mobility:
        names = ", ".join(loops.topology.velocity_names[i] for i in found.passive)
        notes.append(
            Problem(
                where="actuators",
                what=f"no actuator moves {mobility - rank} of the {mobility} freedoms of the machine; passive: {names}",
                remedy="hybrid inverse dynamics gives their accelerations; add actuators, or lock the passive freedoms "
                "that are not meant to move freely",
                file=loops.mechanism.file,
            )
        )
    if rank < len(actuators):
        spare = ", ".join(name for i, name in enumerate(actuators) if i not in found.leading)
        notes.append(
            Problem(
                where="actuators",
                what=f"{len(actuators)} actuators ({', '.join(actuators)}) act on only {rank} freedoms: actuation is "
                f"redundant; inverse dynamics shares forces by the least norm, and motion is given without {spare}",
                remedy="weigh the actuators (`ForceSharing`) if the least sum of squares is not the share you want",
                file=loops.mechanism.file,
            )
        )
    return found


def _actuator_condition(
    loops: Loops, motions: np.ndarray, independent: tuple[int, ...], found: Actuation
) -> np.ndarray:
    """Condition (N,) of the map from independent to actuator (and passive) velocities."""
    mobility = motions.shape[2]
    if not mobility or len(independent) != mobility or len(found.leading) + len(found.passive) != mobility:
        return np.full(len(motions), np.inf)
    rows = np.concatenate([_unit_free(loops), np.eye(loops.topology.n_v)[list(found.passive)]])
    with np.errstate(all="ignore"):
        try:
            J = rows @ motions @ np.linalg.inv(motions[:, list(independent), :])
        except np.linalg.LinAlgError:
            return np.full(len(motions), np.inf)
    return conditions(J)
