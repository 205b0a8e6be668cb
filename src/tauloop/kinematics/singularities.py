"""Singular poses of closed loops: distances from them, and where a motion passes them.

All consistent motions of an assembled pose are the null space of the loop Jacobian K. A pose is
singular

- of type 1 (serial, leg side) where a motion leaves the platform's independent coordinates at rest:
  a leg is stretched or folded, and the platform cannot leave its workspace there;
- of type 2 (parallel, platform side) where a motion leaves all actuators at rest, apart from the
  passive motions that do so at every pose: the actuators no longer control the machine, and the
  forces that they would need grow without bound;
- a constraint singularity where K itself loses rank: the machine gains a degree of freedom.

Each type has a dimensionless measure between zero (singular) and one.

Source: Gosselin and Angeles 1990, Singularity analysis of closed-loop kinematic chains; Zlatanov,
Bonev and Gosselin 2002 for constraint singularities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cache

import numpy as np

from tauloop.common.errors import AssemblyError, InputError, PoseError, Problems, solving
from tauloop.common.records import DEFERRED, dataclass, deferred
from tauloop.compiler.state import State
from tauloop.equations.ports import PLATFORM, Entry
from tauloop.model import Model

#: Number of bisections between two samples to locate a crossing.
BISECTIONS = 40
#: Number of poses that are processed together; it limits the memory of intermediate matrices.
SINGULARITY_CHUNK = 8192
#: Kinds of singularity: type 1 (serial), type 2 (parallel), and of the loop constraints.
SINGULARITY_KINDS = ("serial", "parallel", "constraint")
#: Default of the smallest accepted distance from singularities.
DEFAULT_DISTANCE = 0.05
#: Fraction of the reference pose's distance that is the limit if that distance is smaller than the
#: default.
REFERENCE_FRACTION = 0.5
#: Distance below which the reference pose counts as singular, so that the default applies.
SINGULAR_DISTANCE = 1e-6
#: Names of the determinants that change sign at singularities.
_DETERMINANTS = ("serial_determinant", "parallel_determinant")


@dataclass(frozen=True, slots=True, kw_only=True)
class Singularities:
    """Distances of N poses from singularities.

    The three distances are computed together when one of them is first read, and the determinants
    likewise.

    Attributes:
        serial: distance from type 1 (N,): smallest norm of the independent (platform) velocities
            over all motions of unit norm.
        parallel: distance from type 2 (N,): smallest norm of the actuator velocities over all
            motions of unit norm that are orthogonal to the passive degrees of freedom. It is zero
            where the machine can move with its actuators at rest, apart from the passive degrees of
            freedom.
        constraint: ratio of the smallest to the largest singular value (N,) of the loop Jacobian.
        serial_determinant, parallel_determinant: determinants (N,) of the loop Jacobian stacked
            with the rows of the platform's, or the actuators', velocities. They change sign where a
            motion passes a singularity of that type.
        length: unit of length, m; the unit of rotations is one radian.
    """

    serial: np.ndarray = field(metadata=DEFERRED)
    parallel: np.ndarray = field(metadata=DEFERRED)
    constraint: np.ndarray = field(metadata=DEFERRED)
    serial_determinant: np.ndarray = field(metadata=DEFERRED)
    parallel_determinant: np.ndarray = field(metadata=DEFERRED)
    length: float

    def distance(self, kind: str) -> np.ndarray:
        """Return the distance (N,) of one of `SINGULARITY_KINDS`, or a determinant (N,)."""
        return np.asarray(getattr(self, kind))


@solving(PoseError)
def singularities(model: Model, q: np.ndarray) -> Singularities:
    """Return how far assembled poses are from singularities.

    K (loop Jacobian) and A (actuator velocities per velocity) are dimensionless. N is an
    orthonormal basis of all motions (K N = 0), and P selects the independent velocities. The
    distances are the smallest singular value of P N, the smallest singular value of A N, and the
    ratio of the smallest to the largest singular value of K. With p passive degrees of freedom, p
    singular values of A N are zero at every pose, so the next larger one is used.

    Args:
        model: the machine.
        q: assembled coordinates (N, n_q).

    Returns:
        Distances of every pose from singularities of each kind.
    """
    q = np.array(q)  # the caller may change its array before the distances are computed

    @cache
    def distances() -> dict[str, np.ndarray]:
        return _measures_of_closed_poses(model, q, SINGULARITY_KINDS, _distances)

    @cache
    def determinants() -> dict[str, np.ndarray]:
        return _measures_of_closed_poses(model, q, _DETERMINANTS, _determinants)

    return Singularities(
        serial=deferred(lambda: distances()["serial"]),
        parallel=deferred(lambda: distances()["parallel"]),
        constraint=deferred(lambda: distances()["constraint"]),
        serial_determinant=deferred(lambda: determinants()["serial_determinant"]),
        parallel_determinant=deferred(lambda: determinants()["parallel_determinant"]),
        length=model.assembly.loops.length,
    )


def least_distance(
    model: Model, wanted: float | None = None, kinds: Sequence[str] = SINGULARITY_KINDS
) -> float:
    """Return the smallest accepted distance from singularities of a machine's poses.

    The distances depend on the machine's proportions: with many short links they are small even at
    poses where the machine works well. The default is therefore 0.05, or half of the reference
    pose's distance if that is less than 0.05.

    Args:
        model: the machine.
        wanted: the smallest accepted distance; None for the default.
        kinds: the kinds of singularity (`SINGULARITY_KINDS`) to stay away from.
    """
    if wanted is not None:
        return wanted
    measures = singularities(model, model.assembly.q[None])
    reference_distance = min(float(measures.distance(kind)[0]) for kind in kinds)
    if SINGULAR_DISTANCE < reference_distance < DEFAULT_DISTANCE:
        return REFERENCE_FRACTION * reference_distance
    return DEFAULT_DISTANCE


def _measures_of_closed_poses(
    model: Model,
    q: np.ndarray,
    names: Sequence[str],
    measure: Callable[[Model, np.ndarray, np.ndarray], Sequence[np.ndarray]],
) -> dict[str, np.ndarray]:
    """Return the measures (N,) of poses by name; NaN where a pose is out of reach.

    Args:
        model: the machine.
        q: coordinates (N, n_q); not finite where out of reach.
        names: names of the measures.
        measure: function of the machine, the dimensionless loop Jacobian (n, rank, n_moving) and
            the indices of the moving velocities; returns one array (n,) for each name.
    """
    assembly = model.assembly
    loops = assembly.loops
    moving = np.array([i for i in range(loops.topology.n_v) if i not in assembly.frozen], dtype=int)
    measures = {name: np.full(len(q), np.nan) for name in names}
    reached = np.flatnonzero(np.isfinite(q).all(axis=1))
    for first in range(0, len(reached), SINGULARITY_CHUNK):
        chosen = reached[first : first + SINGULARITY_CHUNK]
        _, K = loops.residuals(q[chosen])
        K = loops.scaled(K)[:, list(assembly.rows)][:, :, moving]
        for name, values in zip(names, measure(model, K, moving), strict=True):
            measures[name][chosen] = values
    return measures


def _distances(model: Model, K: np.ndarray, moving: np.ndarray) -> Sequence[np.ndarray]:
    """Return the distances (n,) from singularities, in the order of `SINGULARITY_KINDS`."""
    n, rank, n_v = K.shape
    if rank:
        _, sigma, Vt = np.linalg.svd(K, full_matrices=True)
        motions = Vt[:, rank:].transpose(0, 2, 1)
        constraint = sigma[:, -1] / np.maximum(sigma[:, 0], 1e-300)
    else:
        motions = np.broadcast_to(np.eye(n_v), (n, n_v, n_v))
        constraint = np.ones(n)
    serial = _smallest(_independent_rows(model, moving) @ motions)
    parallel = _smallest(
        actuator_map(model)[:, moving] @ motions, passive=len(model.assembly.passive)
    )
    return serial, parallel, constraint


def _determinants(model: Model, K: np.ndarray, moving: np.ndarray) -> Sequence[np.ndarray]:
    """Return the determinants (n,) whose signs change at singularities (`_DETERMINANTS`)."""
    leading = actuator_map(model)[:, moving][list(model.assembly.leading)]
    return _determinant(K, _independent_rows(model, moving)), _determinant(K, leading)


def _independent_rows(model: Model, moving: np.ndarray) -> np.ndarray:
    """Return the rows (m, n_moving) that select the independent velocities."""
    return np.eye(model.topology.n_v)[list(model.assembly.independent)][:, moving]


def actuator_map(model: Model) -> np.ndarray:
    """Return the actuator velocities per dimensionless velocity (n_u, n_v).

    Each row has unit length, so that gears have no effect.
    """
    loops = model.assembly.loops
    A = loops.transmission * loops.velocity_scale
    return np.asarray(A / np.maximum(np.linalg.norm(A, axis=1, keepdims=True), 1e-300))


def _smallest(matrices: np.ndarray, passive: int = 0) -> np.ndarray:
    """Return the smallest singular value (N,) of matrices (N, r, m); zero if r < m - passive.

    Args:
        matrices: the matrices.
        passive: number of smallest singular values to skip, which belong to passive motions.
    """
    n_actuated = matrices.shape[2] - passive
    if n_actuated == 0:
        return np.ones(len(matrices))
    if matrices.shape[1] < n_actuated:
        return np.zeros(len(matrices))
    return np.asarray(np.linalg.svd(matrices, compute_uv=False)[:, n_actuated - 1])


def _determinant(K: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the determinants (N,) of K stacked with further rows; NaN if not square."""
    stack = np.concatenate([K, np.broadcast_to(rows, (len(K), *rows.shape))], axis=1)
    if stack.shape[1] != stack.shape[2]:
        return np.full(len(K), np.nan)
    return np.linalg.det(stack)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approach:
    """The closest approach of a motion to singularities of one kind.

    Attributes:
        kind: one of `SINGULARITY_KINDS`.
        sample: index of the closest sample.
        distance: distance of that sample from the singularity (see `Singularities`).
        pose: given positions of that sample, by name.
    """

    kind: str
    sample: int
    distance: float
    pose: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """A singularity that a motion passes between two samples.

    Attributes:
        kind: "serial" or "parallel".
        at: position of the crossing as a fractional sample index.
        pose: given positions at the crossing, by name.
    """

    kind: str
    at: float
    pose: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SingularityReport:
    """Singularities that a motion approaches or passes.

    Attributes:
        approaches: closest approach to each kind of singularity; computed when first read.
        crossings: singularities that the motion passes, in order.
        measures: distances of all samples from singularities.
    """

    approaches: tuple[Approach, ...] = field(metadata=DEFERRED)
    crossings: tuple[Crossing, ...]
    measures: Singularities


@solving(PoseError)
def singularity_report(
    model: Model, motion: State, *, entry: Entry = PLATFORM
) -> SingularityReport:
    """Return the closest approaches to singularities and crossings of a sampled motion.

    A crossing is a change of sign of a determinant between two samples. It is located by bisection
    on the straight line between the two given positions; the loops are closed at each point.

    Args:
        model: the machine.
        motion: states of consecutive samples, from `Motion.kinematics` or `Motion.track`.
        entry: whose motion was given, `PLATFORM` or `ACTUATORS`. A motion given for the platform
            cannot pass serial singularities, and a motion given for the actuators cannot pass
            parallel ones, because the motion ends there.

    Raises:
        InputError: the motion has fewer than two samples.
    """
    q = np.atleast_2d(motion.q)
    if len(q) < 2:
        raise InputError.of("motion", f"has {len(q)} sample", "give at least two")
    functions = model.functions(entry)
    columns = functions.ports.position.columns
    values = functions.ports.at(q)
    measures = singularities(model, q)
    crossings = [
        crossing
        for kind in ("serial", "parallel")
        for crossing in _crossings(
            model, entry, kind, measures.distance(f"{kind}_determinant"), values, q
        )
    ]
    return SingularityReport(
        approaches=deferred(
            lambda: tuple(_approach(kind, measures, columns, values) for kind in SINGULARITY_KINDS)
        ),
        crossings=tuple(sorted(crossings, key=lambda crossing: crossing.at)),
        measures=measures,
    )


def _approach(
    kind: str, measures: Singularities, columns: Sequence[str], values: np.ndarray
) -> Approach:
    """Return the closest approach of a motion with given positions (N, n) to one kind."""
    distances = measures.distance(kind)
    sample = int(np.argmin(distances))
    return Approach(
        kind=kind,
        sample=sample,
        distance=float(distances[sample]),
        pose=dict(zip(columns, map(float, values[sample]), strict=True)),
    )


def _crossings(
    model: Model,
    entry: Entry,
    kind: str,
    determinant: np.ndarray,
    values: np.ndarray,
    q: np.ndarray,
) -> list[Crossing]:
    """Return the crossings of one kind, where the determinant (N,) changes sign between samples.

    Args:
        model: the machine.
        entry: whose motion was given.
        kind: "serial" or "parallel".
        determinant: determinant of this kind at all samples (N,).
        values: given positions (N, n).
        q: coordinates (N, n_q).
    """
    functions = model.functions(entry)
    with np.errstate(invalid="ignore"):
        before = np.flatnonzero(determinant[:-1] * determinant[1:] < 0)
    if not len(before):
        return []
    # Bisect the fraction of the line between the samples before and after each crossing.
    lower = np.zeros(len(before))
    upper = np.ones(len(before))
    near = q[before]
    for _ in range(BISECTIONS):
        middle = 0.5 * (lower + upper)
        position = values[before] + middle[:, None] * (values[before + 1] - values[before])
        state = functions.evaluate(position, start=near)
        sign = singularities(model, state.q).distance(f"{kind}_determinant") * determinant[before]
        is_before = sign > 0
        lower = np.where(is_before, middle, lower)
        upper = np.where(is_before, upper, middle)
    middle = 0.5 * (lower + upper)
    position = values[before] + middle[:, None] * (values[before + 1] - values[before])
    columns = functions.ports.position.columns
    return [
        Crossing(kind=kind, at=float(i + s), pose=dict(zip(columns, map(float, row), strict=True)))
        for i, s, row in zip(before, middle, position, strict=True)
    ]


def require_regular(report: SingularityReport, *, smallest: float = 1e-3) -> None:
    """Raise an error if a motion passes a singularity or comes too near to one.

    Args:
        report: report of the motion.
        smallest: smallest accepted distance from singularities.

    Raises:
        AssemblyError: the motion passes a singularity or comes too near; the message gives the
            kinds, the poses and the distances.
    """
    problems = Problems()
    remedy = "move the path away from it; see `tauloop workspace`"
    for crossing in report.crossings:
        what = f"the motion passes a {crossing.kind} singularity at {_pose(crossing.pose)}"
        problems.add(f"sample {crossing.at:.2f}", what, remedy)
    # Without a positive limit, the distances, which are not negative, need not be computed.
    for approach in report.approaches if smallest > 0.0 else ():
        if approach.distance < smallest:
            what = (
                f"comes as near as {approach.distance:.2g} to a {approach.kind} singularity "
                f"(limit {smallest:.2g}) at {_pose(approach.pose)}"
            )
            problems.add(f"sample {approach.sample}", what, remedy)
    AssemblyError.raise_if_any(problems)


def _pose(pose: dict[str, float]) -> str:
    """Return given positions as text."""
    return ", ".join(f"{name} = {value:.4g}" for name, value in pose.items())
