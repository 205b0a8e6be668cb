"""Assembly of a machine: closed loops, their rank and redundancy, mobility, and constants.

These properties are determined once, when the machine is built, from the singular values of the
dimensionless loop Jacobian at many assembled states.

Source: Golub, Klema and Stewart 1976, Rank degeneracy and least squares problems: rank by a gap of
singular values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.errors import AssemblyError, Problem, Problems
from tauloop.common.names.lazy import lazy_functions
from tauloop.common.plain import OMITTED, PlainData, in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.assembly.blocks import null_spaces, singular_values
from tauloop.equations.assembly.closing import (
    CLOSED,
    RANK_FLOOR,
    Probe,
    close_loops,
    open_loops,
    probed,
)
from tauloop.equations.assembly.freedoms.coordinates import (
    actuator_conditions,
    completed,
    conditions,
    found_actuation,
    independent_rows,
    named_independent,
    platform_conditions,
)
from tauloop.equations.assembly.loops import Loops
from tauloop.equations.assembly.reference_pose import (
    NEARLY_SINGULAR,
    Maps,
    Substitute,
    constraint_substitute,
    maps_of,
    reference_pose,
    regular_state,
    weakness,
)
from tauloop.equations.operators import fast_operators
from tauloop.equations.topology import Topology
from tauloop.equations.values import quantile
from tauloop.mechanism.model import Mechanism

if TYPE_CHECKING:
    from tauloop.equations.assembly.freedoms.leading_drive import LeadingDrive, leading_drive
else:
    (leading_drive,) = lazy_functions(
        "tauloop.equations.assembly.freedoms.leading_drive", "leading_drive"
    )

#: Smallest ratio of the last singular value within the rank to the next one for which the rank is
#: clear.
RANK_GAP = 1e3
#: Singular values below this fraction of the largest, with such a gap above them, come from rounded
#: numbers in the file.
ROUNDED_EQUATIONS = 1e-4


def most_regular(sigma: np.ndarray) -> int:
    """Return the index of the most regular state if the first one loses rank; otherwise 0.

    The first state also loses rank if it is nearly singular.
    """
    if sigma.shape[1] == 0 or not (sigma[:, 0] > 0).all():
        return 0
    relative = sigma / sigma[:, :1]
    ranks = (relative > RANK_FLOOR).sum(axis=1)
    rank = int(ranks.max())
    if rank == 0:
        return 0
    least = relative[:, rank - 1]
    best = int(np.argmax(least))
    nearly = least[0] < NEARLY_SINGULAR and least[best] > RANK_GAP * least[0]
    return best if ranks[0] < rank or nearly else 0


def common_rank(sigma: np.ndarray, findings: Problems) -> tuple[int, float]:
    """Return the rank of the loops and the smallest gap of singular values over all states.

    A singular reference pose or an unclear gap is added to the findings.
    """
    if sigma.shape[1] == 0 or sigma.size == 0:
        return 0, np.inf
    floor = np.maximum(sigma, RANK_FLOOR * 1e-6 * sigma[:, :1])
    ranks = (sigma > RANK_FLOOR * sigma[:, :1]).sum(axis=1)
    rank = int(ranks.max())
    gap = np.inf
    if rank < sigma.shape[1]:
        gap = float((floor[:, rank - 1] / floor[:, rank]).min()) if rank else np.inf
    if gap < RANK_GAP or (ranks != rank).any():
        findings.add(
            "loops",
            f"the rank of the loop equations is unclear: it is {int(ranks.min())} to {rank} over "
            f"the states tried, and the ratio of singular values at the rank is {gap:.2g} (needs "
            f"{RANK_GAP:.0g})",
            "choose a reference pose away from singularities, and make joints exactly parallel or "
            "equal that are meant to be so",
        )
    return rank, gap


def nearly_repeated(
    sigma: np.ndarray, rank: int, constant: list[str], file: str
) -> tuple[Problem, ...]:
    """Return the problem of loop equations that are redundant up to the digits of the file.

    Such equations constrain degrees of freedom that exact numbers would leave free.

    Args:
        sigma: singular values (N, k), the largest first.
        rank: rank of the loops.
        constant: names of the velocities that are zero in every motion.
        file: the machine file.
    """
    if rank < 2 or not (sigma[:, 0] > 0).all():
        return ()
    relative = sigma[:, :rank] / sigma[:, :1]
    least = np.maximum(relative[:, 1:], np.finfo(float).tiny)
    gaps = (relative[:, :-1] / least).min(axis=0)
    weak = np.flatnonzero((gaps >= RANK_GAP) & (relative[:, 1:].max(axis=0) < ROUNDED_EQUATIONS))
    if not len(weak):
        return ()
    first = int(weak[0]) + 1
    least, most, next_one = (f"{relative[0, k]:.2g}" for k in (rank - 1, first, first - 1))
    what = (
        f"nearly, but not exactly, redundant equations: {rank - first} (singular values {least} to "
        f"{most} of the largest, the next is {next_one}); they constrain degrees of freedom that "
        f"exact numbers would leave free; constant coordinates: {', '.join(constant) or 'none'}"
    )
    remedy = (
        "rounded numbers in a file cause this, such as quaternions with six digits: write axes "
        "that are meant to be parallel, and points that are meant to coincide, with 15 digits; or "
        "close these loops with joints that constrain less"
    )
    return (Problem(where="loops", what=what, remedy=remedy, file=file),)


def null_space(K_scaled: np.ndarray, rank: int, free: list[int]) -> np.ndarray:
    """Return orthonormal dimensionless motions (N, n_v, mobility); only `free` velocities move."""
    n, c, n_v = K_scaled.shape
    motions = np.zeros((n, n_v, len(free) - rank))
    if c == 0:
        motions[:, free] = np.eye(len(free))
        return motions
    motions[:, free] = null_spaces(K_scaled[:, :, free], rank)
    return motions


def motions_at(loops: Loops, q: np.ndarray, rank: int, locked: tuple[int, ...]) -> np.ndarray:
    """Return motions (1, n_v, mobility) at a pose (1, n_q), as in `null_space`.

    The result is empty (0, n_v, mobility) if the loops have a lower rank at this pose.
    """
    free = [i for i in range(loops.topology.n_v) if i not in locked]
    K = loops.scaled(loops.residuals(q)[1])
    motions = null_space(K, rank, free)
    sigma = singular_values(K[:, :, free]) if K.shape[1] else np.ones((1, 1))
    return motions[: int(rank == 0 or sigma[0, rank - 1] > RANK_FLOOR * sigma[0, 0])]


def kept_rows(K_scaled: np.ndarray, rank: int) -> tuple[int, ...]:
    """Return indices of rows that are independent at all states, chosen by pivoting.

    The first rows are preferred.
    """
    n, c, n_moving = K_scaled.shape
    if rank <= 0:
        return ()
    if rank == c:
        return tuple(range(c))
    preference = 1.0 - 1e-6 * np.arange(c) / c
    stacked = (preference[:, None, None] * K_scaled.transpose(1, 0, 2)).reshape(c, n * n_moving)
    # a small matrix with the same pivots, which needs no threads
    triangle = np.asarray(np.linalg.qr(stacked.T, mode="r"))
    order = independent_rows(triangle.T[None], c)
    first = sorted(order[:rank])
    if _are_independent(K_scaled[:, first]):
        return tuple(first)
    chosen: list[int] = []
    for row in order:
        candidate = sorted([*chosen, row])
        if _are_independent(K_scaled[:, candidate]):
            chosen = candidate
        if len(chosen) == rank:
            break
    return tuple(chosen)


def _are_independent(rows: np.ndarray) -> bool:
    """Return whether rows (N, r, n) are independent at all states."""
    sigma = singular_values(rows)
    return bool((sigma[:, -1] > RANK_FLOOR * sigma[:, 0]).all())


#: A coordinate is constant if no motion of unit size moves it by more than this.
FROZEN_TOLERANCE = 1e-9


def spread(values: np.ndarray) -> dict[str, float | None]:
    """Return statistics of condition numbers (N,): reference pose, median and worst.

    Infinite values are None.
    """
    statistics = {"reference": values[0], "median": quantile(values, 0.5), "worst": values.max()}
    return {
        name: float(value) if np.isfinite(value) else None for name, value in statistics.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly(PlainData, ReprMixin):
    """Mobility, rank, redundancy and actuation of a machine's loops.

    Attributes:
        loops: the loop equations.
        q: assembled reference coordinates (n_q,).
        residual: largest loop residual at the reference pose, m.
        states: assembled states (N, n_q) at which the rank was determined.
        singular_values: dimensionless singular values of K at these states (N, min(c, n_v)).
        rank: rank of K.
        gap: smallest ratio of the last singular value within the rank to the next one.
        mobility: n_v - rank.
        frozen: indices of velocities that are zero in every motion.
        rows: indices of the independent loop equations.
        dropped: indices of the redundant loop equations.
        independent: indices of the independent velocities: those that the file names, and further
            ones if the file names too few.
        driven: indices of the velocities that actuators drive.
        platform_condition: condition number (N,) of the independent loop equations in the dependent
            velocities, with given platform motion; the reference pose is first, and infinite values
            are singular.
        actuator_condition: condition number (N,) of the map from independent to actuator
            velocities, in the same order.
        actuator_rank: rank of the map from all motions to actuator velocities.
        leading: indices of the actuators whose motion is given; with redundant actuation, the other
            actuators follow them.
        passive: indices of the passive velocities, which can move while all actuators rest.
        locked: indices of the velocities that are locked on request; they are among `frozen`.
        substitute: the singularity of the pose in the file, if a regular pose is the reference
            instead.
        moved: notes that the reference pose differs from the file's; they are also in `notes`.
        findings: problems because of which the machine does not work as described.
        notes: information for the user: passive degrees of freedom, redundant actuation,
            coordinates chosen automatically.

    Examples:
        >>> import tauloop as tl
        >>> assembly = tl.Model(tl.load("delta")).assembly
        >>> assembly.mobility, assembly.rank
        (3, 3)
    """

    loops: Loops = field(
        metadata=json_keys(
            coordinates="topology.coordinate_names", velocities="topology.velocity_names"
        )
    )
    q: np.ndarray = field(metadata=OMITTED)
    residual: float = field(metadata=json_keys("residual_m"))
    states: np.ndarray = field(metadata=json_keys(summary=len))
    singular_values: np.ndarray = field(metadata=OMITTED)
    rank: int
    gap: float = field(metadata=json_keys("singular_value_gap", nullable=True))
    mobility: int
    frozen: tuple[int, ...] = field(metadata=OMITTED)
    rows: tuple[int, ...] = field(metadata=OMITTED)
    dropped: tuple[int, ...] = field(metadata=OMITTED)
    independent: tuple[int, ...] = field(metadata=OMITTED)
    driven: tuple[int, ...] = field(metadata=OMITTED)
    platform_condition: np.ndarray = field(metadata=json_keys(summary=spread))
    actuator_condition: np.ndarray = field(metadata=json_keys(summary=spread))
    actuator_rank: int
    leading: tuple[int, ...] = field(metadata=OMITTED)
    passive: tuple[int, ...] = field(metadata=OMITTED)
    locked: tuple[int, ...] = field(metadata=OMITTED)
    substitute: Substitute | None
    moved: tuple[Problem, ...] = field(metadata=OMITTED)
    findings: tuple[Problem, ...]
    notes: tuple[Problem, ...]

    @property
    def mechanism(self) -> Mechanism:
        """The machine, with the ends that its loops need (see `topology.with_ends`)."""
        return self.loops.mechanism

    @property
    def topology(self) -> Topology:
        """Coordinates and velocities of the machine."""
        return self.loops.topology

    @property
    def is_redundant(self) -> bool:
        """Whether there are more actuators than driven motions, so that forces are not unique."""
        return len(self.leading) < len(self.loops.mechanism.actuators)

    @property
    def leading_drive(self) -> LeadingDrive:
        """The coordinates that the leading actuators drive."""
        q_of_v = self.topology.q_of_v
        constants = {i: float(self.q[q_of_v[i]]) for i in self.frozen if q_of_v[i] >= 0}
        return leading_drive(self.loops, self.leading, self.passive, constants)

    @property
    def leading_driven(self) -> tuple[int, ...]:
        """Velocities that the leading actuators drive, except those that couplings determine."""
        return self.leading_drive.v

    @property
    @in_json("passive")
    def passive_names(self) -> tuple[str, ...]:
        """Names of the passive degrees of freedom."""
        return tuple(self.loops.topology.velocity_names[i] for i in self.passive)

    @property
    def multiplier_units(self) -> tuple[str, ...]:
        """Units of the multipliers of independent loop equations: N (lengths), N m (directions)."""
        return tuple("N" if self.loops.is_length[i] else "N m" for i in self.rows)

    @property
    def spare(self) -> tuple[int, ...]:
        """Indices of the redundant actuators, which follow the leading ones."""
        return tuple(i for i in range(len(self.loops.mechanism.actuators)) if i not in self.leading)

    @property
    @in_json("redundant_actuators")
    def spare_actuators(self) -> tuple[str, ...]:
        """Names of the redundant actuators, which follow the leading ones."""
        return tuple(self.loops.mechanism.actuators[i].name for i in self.spare)

    def loop_conditions(self, q: np.ndarray, known: Iterable[int]) -> np.ndarray:
        """Return condition numbers (N,) of the dimensionless loops in the unknown velocities.

        Args:
            q: poses (N, n_q).
            known: indices of the velocities that are known.
        """
        resting = {*known, *self.frozen}
        moving = [i for i in range(self.topology.n_v) if i not in resting]
        return conditions(
            self.loops.scaled(self.loops.residuals(q)[1])[:, list(self.rows)][:, :, moving]
        )

    def pose_conditions(self, q: np.ndarray, known: Iterable[int]) -> np.ndarray:
        """Return dimensionless condition numbers (N,) of poses.

        The result is the larger of two condition numbers: that of K in the unknown velocities, and
        that of the force map [S K^T] of the leading actuators.

        Args:
            q: poses (N, n_q).
            known: indices of the velocities that are known.
        """
        loops = self.loops
        K = loops.scaled(loops.residuals(q)[1])[:, list(self.rows)]
        moving = [i for i in range(loops.topology.n_v) if i not in self.frozen]
        known = set(known)
        unknown = [i for i in moving if i not in known]
        S = (loops.transmission * loops.velocity_scale)[list(self.leading)][:, moving]
        S = S / np.maximum(np.abs(S).max(axis=1, keepdims=True, initial=0.0), 1e-300)
        force_map = np.concatenate(
            [np.broadcast_to(S, (len(q), *S.shape)), K[:, :, moving]], axis=1
        )
        return np.maximum(conditions(K[:, :, unknown]), conditions(force_map))

    @property
    @in_json()
    def reference(self) -> dict[str, float]:
        """The reference pose by coordinate."""
        return dict(zip(self.topology.coordinate_names, map(float, self.q), strict=True))

    @property
    @in_json()
    def loop_equations(self) -> int:
        """Number of loop equations, including redundant ones."""
        return len(self.loops.names)

    @property
    @in_json("actuators")
    def actuator_count(self) -> int:
        """Number of actuators."""
        return len(self.mechanism.actuators)

    @property
    @in_json("redundant_equations")
    def dropped_names(self) -> tuple[str, ...]:
        """Names of the redundant loop equations."""
        return tuple(self.loops.names[i] for i in self.dropped)

    @property
    @in_json("independent")
    def independent_names(self) -> tuple[str, ...]:
        """Names of the independent velocities."""
        return self._velocities(self.independent)

    def with_constant_coordinates(self) -> Assembly:
        """Return the assembly in which only locked coordinates are frozen.

        Coordinates that loops keep constant are then among the moving ones, with the equations that
        keep them constant. So the balance on all other coordinates determines the forces of all
        these equations.
        """
        free = [i for i in range(self.loops.topology.n_v) if i not in self.locked]
        _, K = self.loops.residuals(self.states)
        rows = kept_rows(self.loops.scaled(K)[:, :, free], self.rank)
        dropped = tuple(i for i in range(len(self.loops.names)) if i not in rows)
        return replace(self, frozen=self.locked, rows=rows, dropped=dropped)

    @property
    @in_json("frozen")
    def frozen_names(self) -> tuple[str, ...]:
        """Names of the velocities that are zero in every motion."""
        return self._velocities(self.frozen)

    @property
    @in_json("locked")
    def locked_names(self) -> tuple[str, ...]:
        """Names of the velocities that are locked on request."""
        return self._velocities(self.locked)

    def _velocities(self, indices: Iterable[int]) -> tuple[str, ...]:
        return tuple(self.topology.velocity_names[i] for i in indices)


@fast_operators()
def assemble(loops: Loops, locked: tuple[int, ...] = ()) -> Assembly:
    """Close the loops from the reference pose and determine rank, mobility and redundancy.

    If that pose is singular, a regular pose nearby is the reference instead.

    Args:
        loops: the loop equations.
        locked: indices of velocities that are locked at the assembled reference pose.

    Returns:
        The assembly, with its reference pose and its choice of independent coordinates.

    Raises:
        AssemblyError: nothing can move, or the loops cannot be closed with the given geometry; the
            message lists the loops and their errors.
    """
    if not loops.topology.n_v:
        raise AssemblyError.of(
            "joints",
            "nothing can move: no joint and no rod has a degree of freedom",
            "give at least one joint a type other than fixed",
            file=loops.mechanism.file,
        )
    wanted = tuple(i for i in named_independent(loops) if i not in locked)
    start = reference_pose(loops, wanted)
    if start.residual[0] > CLOSED:
        raise AssemblyError(open_loops(loops, start.q))
    probe, substitute = probed(loops, start.q, locked), None
    if regular := most_regular(probe.sigma):
        substitute = constraint_substitute(probe, regular)
        probe = _states_around(loops, probe, regular, locked)
    assembly, maps = _assembly_of_states(loops, probe, start.q, wanted, locked)
    regular, singular = regular_state(maps, probe.q)
    if singular is not None:
        substitute = singular if substitute is None else substitute
        probe = _states_around(loops, probe, regular, locked)
        assembly, maps = _assembly_of_states(loops, probe, start.q, wanted, locked)
    moved = start.notes
    if substitute is not None:
        condition = max(float(weakness(maps.serial)[0]), float(weakness(maps.parallel)[0]))
        moved = (*moved, substitute.note(loops, assembly.q, assembly.independent, condition))
    return replace(
        assembly,
        substitute=substitute,
        moved=moved,
        notes=(*moved, *assembly.notes),
        findings=(*start.findings, *assembly.findings),
    )


def _states_around(loops: Loops, probe: Probe, state: int, locked: tuple[int, ...]) -> Probe:
    """Return states around one of the states of a probe."""
    q, _ = close_loops(loops, probe.states[state : state + 1], held=locked)
    return probed(loops, q, locked)


def _assembly_of_states(
    loops: Loops, probe: Probe, start: np.ndarray, wanted: tuple[int, ...], locked: tuple[int, ...]
) -> tuple[Assembly, Maps]:
    """Return the assembly: rank, mobility and redundancy over the states, and its motions.

    Args:
        loops: the loop equations.
        probe: the states.
        start: start values (1, n_q) of the file.
        wanted, locked: velocities that the file names as independent, and locked velocities.
    """
    findings = Problems()
    notes = Problems()
    rank, gap = common_rank(probe.sigma, findings)
    n_v = loops.topology.n_v
    motions = null_space(probe.K, rank, [i for i in range(n_v) if i not in locked])
    extent = np.abs(motions).max(axis=(0, 2)) if motions.shape[2] else np.zeros(n_v)
    frozen = _whole_rotations(loops.topology, np.flatnonzero(extent < FROZEN_TOLERANCE).tolist())
    moving = [i for i in range(n_v) if i not in frozen]
    mobility = n_v - rank - len(locked)
    rows = kept_rows(probe.K[:, :, moving], len(moving) - mobility)
    findings += [
        *_locked_machine(loops, mobility),
        *(probe.standing_still(loops) if mobility else ()),
    ]
    if mobility:
        constant = [loops.topology.velocity_names[i] for i in frozen if i not in locked]
        findings += nearly_repeated(probe.sigma, rank, constant, loops.mechanism.file)
    actuation = found_actuation(loops, motions, notes)
    at_start = motions_at(loops, start, rank, locked)
    independent = completed(loops, motions, at_start, wanted, actuation.passive, notes)
    platform_condition = platform_conditions(
        loops, probe.K, rows, independent, frozen, motions, findings
    )
    assembly = Assembly(
        loops=loops,
        q=probe.q[0],
        residual=probe.residual,
        states=probe.states,
        singular_values=probe.sigma,
        rank=rank,
        gap=gap,
        mobility=mobility,
        frozen=frozen,
        rows=rows,
        dropped=tuple(i for i in range(len(loops.names)) if i not in rows),
        independent=independent,
        driven=tuple(
            int(i) for i in np.flatnonzero(np.abs(loops.transmission).max(axis=0, initial=0.0) > 0)
        ),
        platform_condition=platform_condition,
        actuator_condition=actuator_conditions(loops, motions, independent, actuation),
        actuator_rank=actuation.rank,
        leading=actuation.leading,
        passive=actuation.passive,
        locked=locked,
        substitute=None,
        moved=(),
        findings=tuple(findings),
        notes=tuple(notes),
    )
    return assembly, maps_of(loops, motions, independent, actuation)


def _whole_rotations(topology: Topology, resting: list[int]) -> tuple[int, ...]:
    """Return the velocities that are always zero; those of a quaternion only if all three are.

    If a ball joint rotates about only one axis, no component of its quaternion is constant, so its
    loop equations are kept.
    """
    partly = {
        iv + k
        for _, iv in topology.quaternions
        for k in range(3)
        if not {iv, iv + 1, iv + 2} <= set(resting)
    }
    return tuple(i for i in resting if i not in partly)


def _locked_machine(loops: Loops, mobility: int) -> tuple[Problem, ...]:
    if mobility:
        return ()
    return (
        Problem(
            where=loops.mechanism.name,
            what="the machine is locked: mobility 0",
            remedy="geometry errors of joints that must be parallel or equal may have locked it; "
            "compare the singular values with those of the nominal machine",
        ),
    )
