"""Names of gauge freedoms: motions of frames that do not affect the measurements.

A null direction of the Jacobian is a change of parameters x. It moves the platform, the
instruments' targets and the joints at the measured poses. The equations of the calibration give
dq/dx, the sensitivity of the coordinates q to x. The motion is compared with infinitesimal motions
of frames. Here e is an axis, p the position of the platform or target, and R the orientation of the
platform:

    motion                                      platform moves by         target moves by
    translation of the base frame               e                         e
    rotation of the base frame                  e x p, and rotates        e x p
    translation of the platform frame           R e                       0
    rotation of the platform about the target   R e x (p - p_target)      0
    translation of the platform and target      R e                       R e
    translation of the target                   0                         R e
    scale of the machine                        p                         p
    shift or scale of a joint coordinate        0                         0

For each of these motions, a least-squares fit decides whether the null space contains it. The
motions that it contains become its basis.

Source: Triggs, McLauchlan, Hartley and Fitzgibbon 2000, Bundle adjustment: a modern synthesis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import casadi as ca
import numpy as np
import scipy.linalg

from tauloop.calibration.problem.pose_equations import SymbolicPose, symbolic_pose
from tauloop.calibration.problem.problem import CalibrationProblem, Linearized
from tauloop.common.records import dataclass
from tauloop.equations.values import BatchFunction

#: A motion is in the null space if its projection has at least this fraction of its squared norm.
MIN_EXPLAINED_FRACTION = 0.999
#: Maximum number of poses of a series at which motions are evaluated.
MAX_SAMPLED_POSES = 40
#: Motions below this fraction of the largest are zero: derivatives are exact to about 1e-10.
MOTION_TOLERANCE = 1e-7
#: A rotation axis whose distance from the origin is below this, mm, passes through the origin.
AXIS_TOLERANCE_MM = 1e-3
#: A direction is new if at least this fraction of it is orthogonal to the previous directions.
MIN_NEW_FRACTION = 1e-3
#: Each row is weighted less than the preceding row by this fraction, so that rounding errors do not
#: decide between equal rows.
ROW_PREFERENCE = 1e-6
#: Beginning of the names of translations of the base frame.
BASE_SHIFT = "translation of the base frame along"
#: Name of a freedom that moves neither the platform, nor a target, nor a joint.
NO_MOTION = "nothing moves: these changes, made together, have no effect"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """A gauge freedom: a direction of a null space.

    Attributes:
        name: description of the corresponding motion; empty for an unknown motion.
        explained: fraction of the squared norm of the named motion that the freedom contains. If
            the name is empty, fraction of the freedom's motion that all known motions together
            explain. None if nothing moves.
        direction: coefficients (k,) in the basis of the null space.
    """

    name: str
    explained: float | None
    direction: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class _Motion:
    """A known motion of frames, such as a translation of the base.

    Attributes:
        name: description of the motion.
        field: displacements at all poses, stacked.
        free_fields: displacements that may be added without changing the name, as columns. For
            example, a rotation about any axis of the same direction is the rotation about the
            origin plus a translation.
        axis: axis of a rotation in the base frame; the first three columns of `free_fields` are
            then translations.
    """

    name: str
    field: np.ndarray
    free_fields: np.ndarray
    axis: np.ndarray | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fields:
    """Motions along k null directions at every pose, in meters.

    Rotations are multiplied by the characteristic length.

    Attributes:
        target: displacements of the targets (3 N, k).
        body: displacements of the platform's origin (3 N, k).
        rotation: rotations of the platform (3 N, k).
        joints: changes of all scalar coordinates except the platform's (N, n, k).
        coordinates: values of these coordinates (N, n).
        names: names of these coordinates.
        p_target: positions of the targets (N, 3), m.
        p_body: positions of the platform (N, 3), m.
        R: orientations of the platform (N, 3, 3).
        can_rotate: whether the platform's orientation can change.
        length: characteristic length, m.
    """

    target: np.ndarray
    body: np.ndarray
    rotation: np.ndarray
    joints: np.ndarray
    coordinates: np.ndarray
    names: tuple[str, ...]
    p_target: np.ndarray
    p_body: np.ndarray
    R: np.ndarray
    can_rotate: bool
    length: float

    @property
    def motion(self) -> np.ndarray:
        """All motions of platform and targets stacked (9 N, k)."""
        return np.concatenate([self.target, self.body, self.rotation])


class _Freedoms:
    """Freedoms of a null space with k dimensions, collected one after the other."""

    def __init__(self, k: int) -> None:
        self.gauges: list[Gauge] = []
        self._directions = np.zeros((k, 0))

    def add(self, name: str, explained: float | None, direction: np.ndarray) -> None:
        """Add a freedom."""
        self.gauges.append(Gauge(name=name, explained=explained, direction=direction))
        unit = direction / np.linalg.norm(direction)
        self._directions = np.column_stack([self._directions, unit])

    def is_new(self, direction: np.ndarray) -> bool:
        """Return whether a direction is independent of the freedoms added before."""
        return _is_new(self._directions, direction)

    def complement(self) -> np.ndarray:
        """Return orthonormal directions (k, m) that are orthogonal to the freedoms added before."""
        previous = self._directions
        if not previous.shape[1]:
            return np.eye(len(previous))
        Q, _ = np.linalg.qr(previous, mode="complete")
        return np.asarray(Q[:, previous.shape[1] :])

    @property
    def base_shifts(self) -> int:
        """Number of translations of the base frame."""
        return sum(gauge.name.startswith(BASE_SHIFT) for gauge in self.gauges)


def gauges(
    problem: CalibrationProblem, linearized: Linearized, null: np.ndarray
) -> tuple[Gauge, ...]:
    """Return the freedoms of a null space, known motions first.

    Args:
        problem: the calibration.
        linearized: linearization of the problem at the geometry of the null space.
        null: null directions (n, k), in units of the parameters' tolerances.
    """
    k = null.shape[1]
    if not k:
        return ()
    fields = _fields(problem, linearized, null * problem.tolerances[:, None])
    freedoms = _Freedoms(k)
    joints = fields.joints.reshape(-1, k)
    # Directions that move neither the platform nor a target.
    motionless = _null_space(fields.motion)
    motionless_joints = joints @ motionless
    known_motions = list(_motions(fields))
    for motion in known_motions:
        direction, explained, shift = _nearest(fields.motion, motion)
        if explained < MIN_EXPLAINED_FRACTION or not freedoms.is_new(direction):
            continue
        if motionless.shape[1]:
            # Choose the direction with this motion that moves the joints least.
            joint_motion = joints @ direction
            coefficients, *_ = np.linalg.lstsq(
                motionless_joints, joint_motion, rcond=MOTION_TOLERANCE
            )
            direction = direction - motionless @ coefficients
        # The axis of a rotation is arbitrary if all translations are free.
        axis = _axis_location(motion, shift) if freedoms.base_shifts < 3 else ""
        text = motion.name + axis + _suffix(problem, fields, null, direction)
        freedoms.add(text, explained, direction)
    if motionless.shape[1]:
        for motion in _joint_motions(fields):
            coefficients, explained, _ = _nearest(motionless_joints, motion)
            direction = motionless @ coefficients
            if explained >= MIN_EXPLAINED_FRACTION and freedoms.is_new(direction):
                freedoms.add(motion.name, explained, direction)
        for direction in _sparse(null, motionless @ _null_space(motionless_joints)).T:
            if freedoms.is_new(direction):
                freedoms.add(NO_MOTION, None, direction)
    known_fields = np.column_stack(
        [np.column_stack([motion.field, motion.free_fields]) for motion in known_motions]
    )
    for direction in freedoms.complement().T:
        direction_motion = fields.motion @ direction
        squared_norm = float(direction_motion @ direction_motion)
        fraction = None
        if squared_norm > 0:
            remainder = (
                direction_motion
                - known_fields @ np.linalg.lstsq(known_fields, direction_motion, rcond=None)[0]
            )
            fraction = 1.0 - float(remainder @ remainder) / squared_norm
        freedoms.add("", fraction, direction)
    return tuple(freedoms.gauges)


def _suffix(
    problem: CalibrationProblem, fields: _Fields, null: np.ndarray, direction: np.ndarray
) -> str:
    """Return a suffix of a name: instruments that also move, and offsets of all actuators.

    The offsets are named if every actuator shifts by a constant that is not zero.
    """
    changes = np.abs(null @ direction)
    names = [
        unknown.name.partition(".")[0]
        for unknown, change in zip(problem.estimated, changes, strict=True)
        if unknown.is_nuisance and change > MOTION_TOLERANCE * changes.max()
    ]
    moving_instruments = sorted({name for name in names if name != "encoder"})
    text = f", with {' and '.join(moving_instruments)}" if moving_instruments else ""
    driven_joints = {
        name for actuator in problem.mechanism.actuators for name, _ in actuator.drives
    }
    columns = [j for j, name in enumerate(fields.names) if name in driven_joints]
    shifts = fields.joints[:, columns] @ direction
    tolerance = MOTION_TOLERANCE * float(np.abs(fields.motion @ direction).max(initial=0.0))
    if not columns:
        return text
    all_shift = (np.abs(shifts).min(axis=0) > tolerance).all()
    is_constant = np.ptp(shifts, axis=0).max() < tolerance
    return f"{text}, by constant offsets of all actuators" if all_shift and is_constant else text


def _motions(fields: _Fields) -> Iterator[_Motion]:
    """Yield known motions of frames; rotations come after the translations they may contain."""
    n = len(fields.p_body)
    L = fields.length
    zero = np.zeros((n, 3))

    def motion(
        name: str,
        displacements: tuple[np.ndarray, ...],
        free_fields: Sequence[np.ndarray] = (),
        axis: np.ndarray | None = None,
    ) -> _Motion:
        """Return a motion from displacements of targets and platform, and rotations (N, 3)."""
        field = np.concatenate([displacement.ravel() for displacement in displacements])
        return _Motion(
            name=name,
            field=field,
            free_fields=np.array(free_fields).reshape(len(free_fields), field.size).T,
            axis=axis,
        )

    axes = list(zip("xyz", np.eye(3), strict=True))
    shifts = []
    for letter, e in axes:
        shift = motion(f"{BASE_SHIFT} {letter}", (zero + e, zero + e, zero))
        shifts.append(shift.field)
        yield shift
    platform_shifts = [
        motion(
            f"translation of the platform frame relative to the target along {letter}",
            (zero, fields.R @ e, zero),
        )
        for letter, e in axes
    ]
    # A platform with constant orientation does not rotate with the base, so a constant offset of
    # its target is added.
    target_offsets = [] if fields.can_rotate else [shift.field for shift in platform_shifts]
    for letter, e in axes:
        rotation = zero + L * e if fields.can_rotate else zero
        body = np.cross(e, fields.p_body)
        target = np.cross(e, fields.p_target)
        yield motion(
            f"rotation of the base frame about {letter}",
            (target, body, rotation),
            [*shifts, *target_offsets],
            axis=e,
        )
    yield from platform_shifts
    if fields.can_rotate:
        for letter, e in axes:
            R_e = fields.R @ e
            body = np.cross(R_e, fields.p_body - fields.p_target)
            name = f"rotation of the platform frame about the target, about {letter}"
            yield motion(name, (zero, body, L * R_e), [shift.field for shift in platform_shifts])
        common_shifts = []
        for letter, e in axes:
            R_e = fields.R @ e
            name = f"translation of the platform frame with the target along {letter}"
            common_shifts.append(motion(name, (R_e, R_e, zero)))
        target_offsets = [shift.field for shift in common_shifts]
        yield from common_shifts
    for letter, e in axes:
        yield motion(
            f"translation of the target on the platform along {letter}", (fields.R @ e, zero, zero)
        )
    # Translations are added because a tool that is not an unknown does not scale.
    free_fields = [*shifts, *(shift.field for shift in platform_shifts), *target_offsets]
    yield motion("scale of the whole machine", (fields.p_target, fields.p_body, zero), free_fields)


def _joint_motions(fields: _Fields) -> Iterator[_Motion]:
    """Yield a constant shift and a proportional change of each joint coordinate."""
    n, n_joints = fields.coordinates.shape
    for j, name in enumerate(fields.names):
        shift = np.zeros((n, n_joints))
        shift[:, j] = 1.0
        scaling = np.zeros((n, n_joints))
        scaling[:, j] = fields.coordinates[:, j]
        yield _Motion(
            name=f"zero point of {name}",
            field=shift.ravel(),
            free_fields=np.zeros((n * n_joints, 0)),
        )
        yield _Motion(
            name=f"scale of {name}", field=scaling.ravel(), free_fields=shift.reshape(-1, 1)
        )


def _axis_location(motion: _Motion, shift: np.ndarray) -> str:
    """Return a text with a point on the axis of a rotation; empty if the point is the origin.

    The point is e x t, with the axis e and the translation t of the rotation.
    """
    if motion.axis is None:
        return ""
    point = 1e3 * np.cross(motion.axis, shift[:3])
    if np.abs(point).max() < AXIS_TOLERANCE_MM:
        return ""
    return " through (" + ", ".join(f"{value + 0.0:.4g}" for value in point.round(3)) + ") mm"


def _sparse(null: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return combinations (k, m) of directions, each with a parameter that no other contains."""
    if not directions.shape[1]:
        return directions
    changes = null @ directions
    return np.asarray(directions @ np.linalg.inv(changes[np.sort(leading_rows(changes))]))


def leading_rows(null: np.ndarray) -> list[int]:
    """Return the rows of a matrix (n, k) that form a basis, by pivoting on the largest row.

    Of equal rows the first is preferred.

    Source: Businger and Golub 1965, Linear least squares solutions by Householder transformations.
    """
    n, k = null.shape
    weighted = null.T * (1.0 - ROW_PREFERENCE * np.arange(n))
    _, _, pivots = scipy.linalg.qr(weighted, pivoting=True, mode="economic")
    return [int(i) for i in pivots[:k]]


def _nearest(fields: np.ndarray, motion: _Motion) -> tuple[np.ndarray, float, np.ndarray]:
    """Return the combination of fields (m, k) that is nearest to a motion.

    This is the least-squares solution of |fields c - motion - free_fields t| over c and t.

    Returns:
        Coefficients c (k,), the fraction of the motion that they explain (not counting what
        `free_fields` alone explains), and coefficients t.
    """
    k = fields.shape[1]
    scale = max(float(np.abs(fields).max(initial=0.0)), np.finfo(float).tiny)
    columns = np.column_stack([fields / scale, -motion.free_fields])
    solution = np.linalg.lstsq(columns, motion.field, rcond=MOTION_TOLERANCE)[0]
    remainder = fields @ solution[:k] / scale - motion.field - motion.free_fields @ solution[k:]
    free = np.linalg.lstsq(motion.free_fields, motion.field, rcond=None)[0]
    reduced = motion.field - motion.free_fields @ free
    total = float(reduced @ reduced)
    explained = 0.0
    if total > MOTION_TOLERANCE**2 * float(motion.field @ motion.field):
        explained = 1.0 - float(remainder @ remainder) / total
    return solution[:k] / scale, explained, solution[k:]


def _is_new(previous: np.ndarray, direction: np.ndarray) -> bool:
    """Return whether a direction is independent of the previous directions (k, m)."""
    norm = float(np.linalg.norm(direction))
    if not norm > 0:
        return False
    unit = direction / norm
    if previous.shape[1]:
        unit = unit - previous @ np.linalg.lstsq(previous, unit, rcond=None)[0]
    return float(np.linalg.norm(unit)) > MIN_NEW_FRACTION


def _null_space(fields: np.ndarray) -> np.ndarray:
    """Return orthonormal combinations (k, m) of fields (rows, k) that do not move anything."""
    _, singular_values, Vt = np.linalg.svd(fields, full_matrices=True)
    largest = max(float(singular_values.max(initial=0.0)), MOTION_TOLERANCE)
    rank = int((singular_values > MOTION_TOLERANCE * largest).sum())
    return np.asarray(Vt[rank:].T)


def _fields(problem: CalibrationProblem, linearized: Linearized, directions: np.ndarray) -> _Fields:
    """Return the motions along directions (n, k), SI, at some poses of all series."""
    loops = problem.assembly.loops
    topology = loops.topology
    L = loops.length
    full_directions = problem.whole(directions)
    x = problem.whole(linearized.evaluation.correction)
    scalars = [
        i for i, j in enumerate(topology.q_of_v) if j >= 0 and i not in problem.assembly.independent
    ]
    columns_of_series: list[tuple[np.ndarray, ...]] = []
    can_rotate = False
    for measured_pose, state, tangent in zip(
        problem.measured_poses, linearized.evaluation.states, linearized.tangents, strict=True
    ):
        pose = symbolic_pose(problem.context, measured_pose.series.instrument)
        count = min(len(state.q), MAX_SAMPLED_POSES)
        samples = np.linspace(0, len(state.q) - 1, count).round().astype(int)
        q = state.q[samples]
        q_x = tangent[samples]
        values, d_values_dv, d_values_dx = _target_and_platform(
            pose, measured_pose.series.instrument.name, q, x
        )
        v = q_x @ directions
        motions = d_values_dv @ v + d_values_dx @ full_directions
        R = values[:, 6:].reshape(-1, 3, 3).transpose(0, 2, 1)
        dR = motions[:, 6:].reshape(count, 3, 3, -1)
        # dR R^T is skew; its axial vector is the rotation. Columns of R are stacked.
        skew = np.einsum("njik,nlj->nilk", dR, R)
        rotation = np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], axis=1)
        can_rotate |= bool(np.abs(d_values_dv[:, 6:]).max(initial=0.0) > MOTION_TOLERANCE)
        coordinates = q[:, [topology.q_of_v[i] for i in scalars]]
        fields = (motions[:, :3], motions[:, 3:6], L * rotation, v[:, scalars], coordinates)
        columns_of_series.append((*fields, values[:, :3], values[:, 3:6], R))
    target, body, rotation, joints, coordinates, p_target, p_body, R = (
        np.concatenate(columns) for columns in zip(*columns_of_series, strict=True)
    )
    k = directions.shape[1]
    return _Fields(
        target=target.reshape(-1, k),
        body=body.reshape(-1, k),
        rotation=rotation.reshape(-1, k),
        joints=joints,
        coordinates=coordinates,
        names=tuple(topology.coordinate_names[topology.q_of_v[i]] for i in scalars),
        p_target=p_target,
        p_body=p_body,
        R=R,
        can_rotate=can_rotate,
        length=L,
    )


def _target_and_platform(
    pose: SymbolicPose, instrument: str, q: np.ndarray, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return target, platform origin and platform orientation (column by column) at N poses.

    Returns:
        Values (N, 12), and their derivatives with respect to the velocities and to the unknowns.
    """
    scene = pose.scene
    body = scene.motion.bodies[scene.mechanism.platform.body]
    values = ca.densify(ca.vertcat(scene.target(instrument), body.p, ca.vec(ca.SX(body.R))))
    outputs = [
        values,
        ca.densify(ca.vec(pose.rates(values))),
        ca.densify(ca.vec(ca.jacobian(values, pose.x))),
    ]
    function = BatchFunction(ca.Function("target_and_platform", [pose.q, pose.x], outputs))
    n = len(q)
    poses, d_poses_dv, d_poses_dx = function([q, np.broadcast_to(x, (n, len(x)))], n)
    rows = values.numel()
    return (
        poses,
        d_poses_dv.reshape(n, -1, rows).transpose(0, 2, 1),
        d_poses_dx.reshape(n, -1, rows).transpose(0, 2, 1),
    )
