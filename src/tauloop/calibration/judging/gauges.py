"""Gauge freedoms by what they are: motions of frames that no measurement shows.

A null direction of the Jacobian is a change of parameters; what it *does* is seen by where the
platform, the instruments' targets and the joints go at the measured poses, with dq/dx from the
calibration's own equations. That motion is compared with infinitesimal motions of frames:

    base frame       platform and target both move by e, or by e x p          the whole machine moves
    platform frame   the platform moves by R e, or turns about the target     the target stays, or moves too
    target           the target moves by R e                                  the platform stays
    scale            platform and target move by p                            the whole machine grows
    zero, scale      one joint's coordinate shifts by a constant, or in proportion; no body that is measured moves

The null space is searched for each of them in turn (least squares), and those that it holds become
its basis.

Source: Triggs, McLauchlan, Hartley and Fitzgibbon 2000, Bundle adjustment: a modern synthesis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import casadi as ca
import numpy as np
import scipy.linalg

from tauloop.calibration.problem.pose_equations import SymbolicPose, symbolic_pose
from tauloop.calibration.problem.problem import CalibrationProblem, Linearised
from tauloop.common.records import dataclass
from tauloop.equations.values import BatchFunction

#: A motion is in the null space when so much of its square is found there.
EXPLAINED = 0.999
#: Poses looked at, of every series.
MOST_POSES = 40
#: Motions below this share of the largest are none: derivatives are exact to about 1e-10.
STILL = 1e-7
#: By this share a row counts less than the one before it, so that rounding never chooses between
#: equal ones.
TIE = 1e-6
BASE_SHIFT = "translation of the base frame along"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """One freedom of a null space.

    Attributes:
        name: the motion that it is, in words; empty where it is none of those known.
        explained: share of (the square of) the named motion that it is; without a name, share of
            its own motion that all known motions explain together; None where nothing moves.
        direction: coefficients (k,) of the null space's basis.
    """

    name: str
    explained: float | None
    direction: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class _Motion:
    """A known motion: its field, and fields that may come with it (a turn is one about any axis of that direction).

    Attributes:
        name, field, along: these.
        axis: of a turn in the base frame; the first three fields along it are shifts.
    """

    name: str
    field: np.ndarray
    along: np.ndarray
    axis: np.ndarray | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fields:
    """What null directions move, in metres (turns by the characteristic length), at every pose.

    Attributes:
        target, body, turn: of the targets, the platform's origin and its orientation (3 N, k).
        joints: of all scalar coordinates but the platform's (N, n, k).
        coordinates: these coordinates (N, n), and their names.
        p_target, p_body, R: where targets and platform are (N, 3), (N, 3), (N, 3, 3).
        turns: whether the platform's orientation can change.
    """

    target: np.ndarray
    body: np.ndarray
    turn: np.ndarray
    joints: np.ndarray
    coordinates: np.ndarray
    names: tuple[str, ...]
    p_target: np.ndarray
    p_body: np.ndarray
    R: np.ndarray
    turns: bool
    length: float

    @property
    def motion(self) -> np.ndarray:
        """All motions of platform and targets stacked (9 N, k)."""
        return np.concatenate([self.target, self.body, self.turn])


def gauges(problem: CalibrationProblem, there: Linearised, null: np.ndarray) -> tuple[Gauge, ...]:
    """Freedoms of a null space, those first that are known motions.

    Args:
        problem: the calibration.
        there: its equations where the null space was found.
        null: null directions (n, k) in tolerances.
    """
    k = null.shape[1]
    if not k:
        return ()
    fields = _fields(problem, there, null * problem.tolerances[:, None])
    freedoms: list[Gauge] = []
    taken = np.zeros((k, 0))

    def keep(name: str, explained: float | None, direction: np.ndarray) -> None:
        nonlocal taken
        freedoms.append(Gauge(name=name, explained=explained, direction=direction))
        taken = np.column_stack([taken, direction / np.linalg.norm(direction)])

    joints, still = fields.joints.reshape(-1, k), _still(fields.motion)
    inner = joints @ still
    known = list(_motions(fields))
    for motion in known:
        direction, explained, shift = _nearest(fields.motion, motion)
        if explained >= EXPLAINED and _is_new(taken, direction):
            if still.shape[1]:  # of all ways to it, the one that moves the joints least
                direction = (
                    direction - still @ np.linalg.lstsq(inner, joints @ direction, rcond=STILL)[0]
                )
            shifted = sum(gauge.name.startswith(BASE_SHIFT) for gauge in freedoms)
            # where all shifts are free, so is the axis
            axis = _through(motion, shift) if shifted < 3 else ""
            text = motion.name + axis + _how(problem, fields, null, direction)
            keep(text, explained, direction)
    if still.shape[1]:
        for motion in _joint_motions(fields):
            part, explained, _ = _nearest(inner, motion)
            if explained >= EXPLAINED and _is_new(taken, still @ part):
                keep(motion.name, explained, still @ part)
        for direction in _sparse(null, still @ _still(inner)).T:
            if _is_new(taken, direction):
                keep(
                    "nothing moves: these parameters have no effect, or only together",
                    None,
                    direction,
                )
    everything = np.column_stack(
        [column for motion in known for column in (motion.field, *motion.along.T)]
    )
    for direction in _complement(taken, k).T:
        moved = fields.motion @ direction
        left = moved - everything @ np.linalg.lstsq(everything, moved, rcond=None)[0]
        size = float(moved @ moved)
        keep("", 1.0 - float(left @ left) / size if size > 0 else None, direction)
    return tuple(freedoms)


def _how(
    problem: CalibrationProblem, fields: _Fields, null: np.ndarray, direction: np.ndarray
) -> str:
    """By what a motion comes about: instruments that move along, and actuators that shift by constants."""
    moved = np.abs(null @ direction)
    names = [
        unknown.name.partition(".")[0]
        for unknown, size in zip(problem.estimated, moved, strict=True)
        if unknown.is_nuisance and size > STILL * moved.max()
    ]
    along = sorted({name for name in names if name != "encoder"})
    text = f", with {' and '.join(along)}" if along else ""
    driven = {name for actuator in problem.mechanism.actuators for name, _ in actuator.drives}
    columns = [j for j, name in enumerate(fields.names) if name in driven]
    shifts = fields.joints[:, columns] @ direction
    size = float(np.abs(fields.motion @ direction).max(initial=0.0))
    if (
        columns
        and (np.abs(shifts).min(axis=0) > STILL * size).all()
        and np.ptp(shifts, axis=0).max() < STILL * size
    ):
        text += ", by constant offsets of all actuators"
    return text


def _motions(fields: _Fields) -> Iterator[_Motion]:
    """Motions of frames; turns come after shifts, which they may contain."""
    n, L = len(fields.p_body), fields.length
    zero = np.zeros((n, 3))

    def motion(
        name: str,
        parts: tuple[np.ndarray, ...],
        along: Sequence[np.ndarray] = (),
        axis: np.ndarray | None = None,
    ) -> _Motion:
        """Of targets, platforms and turns (N, 3)."""
        field = np.concatenate([part.ravel() for part in parts])
        return _Motion(
            name=name,
            field=field,
            along=np.array(along).reshape(len(along), field.size).T,
            axis=axis,
        )

    axes = list(zip("xyz", np.eye(3), strict=True))
    shifts = []
    for letter, e in axes:
        shift = motion(f"{BASE_SHIFT} {letter}", (zero + e, zero + e, zero))
        shifts.append(shift.field)
        yield shift
    own = [
        motion(
            f"translation of the platform frame against the target along {letter}",
            (zero, fields.R @ e, zero),
        )
        for letter, e in axes
    ]
    # a platform that keeps its orientation does not turn with the base: its target comes off by a
    # constant
    loose = [] if fields.turns else [shift.field for shift in own]
    for letter, e in axes:
        turn = zero + L * e if fields.turns else zero
        body, target = np.cross(e, fields.p_body), np.cross(e, fields.p_target)
        yield motion(
            f"rotation of the base frame about {letter}",
            (target, body, turn),
            [*shifts, *loose],
            axis=e,
        )
    yield from own
    if fields.turns:
        for letter, e in axes:
            world = fields.R @ e
            body = np.cross(world, fields.p_body - fields.p_target)
            name = f"rotation of the platform frame about the target, about {letter}"
            yield motion(name, (zero, body, L * world), [shift.field for shift in own])
        both = [
            motion(
                f"translation of the platform frame with the target along {letter}",
                (R_e, R_e, zero),
            )
            for letter, R_e in ((letter, fields.R @ e) for letter, e in axes)
        ]
        loose = [shift.field for shift in both]
        yield from both
    for letter, e in axes:
        yield motion(
            f"translation of the target on the platform along {letter}", (fields.R @ e, zero, zero)
        )
    # tools keep their size where they are no unknowns
    comes_along = [*shifts, *(shift.field for shift in own), *loose]
    yield motion("scale of the whole machine", (fields.p_target, fields.p_body, zero), comes_along)


def _joint_motions(fields: _Fields) -> Iterator[_Motion]:
    """Shifts and stretches of one joint's coordinate."""
    n, width = fields.coordinates.shape
    for j, name in enumerate(fields.names):
        shift, stretch = np.zeros((2, n, width))
        shift[:, j] = 1.0
        stretch[:, j] = fields.coordinates[:, j]
        yield _Motion(
            name=f"zero point of {name}", field=shift.ravel(), along=np.zeros((n * width, 0))
        )
        yield _Motion(name=f"scale of {name}", field=stretch.ravel(), along=shift.reshape(-1, 1))


def _through(motion: _Motion, shift: np.ndarray) -> str:
    """Where the axis of a turn about e passes, e x t with the shift t that comes with it; empty at the origin."""
    if motion.axis is None:
        return ""
    point = 1e3 * np.cross(motion.axis, shift[:3])
    if np.abs(point).max() < 1e-3:
        return ""
    return " through (" + ", ".join(f"{value + 0.0:.4g}" for value in point.round(3)) + ") mm"


def _sparse(null: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Other combinations (k, m) of directions, each with a parameter of its own."""
    if not directions.shape[1]:
        return directions
    moved = null @ directions
    return np.asarray(directions @ np.linalg.inv(moved[np.sort(leading_rows(moved))]))


def leading_rows(null: np.ndarray) -> list[int]:
    """Rows of a matrix (n, k) that are a basis: the largest after each other, of equal ones the first.

    Source: Businger and Golub 1965, Linear least squares solutions by Householder transformations.
    """
    n, k = null.shape
    _, _, pivots = scipy.linalg.qr(
        null.T * (1.0 - TIE * np.arange(n)), pivoting=True, mode="economic"
    )
    return [int(i) for i in pivots[:k]]


def _nearest(fields: np.ndarray, motion: _Motion) -> tuple[np.ndarray, float, np.ndarray]:
    """Coefficients (k,) of fields (m, k) that come nearest a motion, what share of it they are, and what comes along.

    Least squares of |fields c - motion - along t| over c and t; the share is of what `along` cannot
    make up alone.
    """
    k = fields.shape[1]
    size = max(float(np.abs(fields).max(initial=0.0)), np.finfo(float).tiny)
    solution = np.linalg.lstsq(
        np.column_stack([fields / size, -motion.along]), motion.field, rcond=STILL
    )[0]
    left = fields @ solution[:k] / size - motion.field - motion.along @ solution[k:]
    own = motion.field - motion.along @ np.linalg.lstsq(motion.along, motion.field, rcond=None)[0]
    total = float(own @ own)
    share = (
        1.0 - float(left @ left) / total
        if total > STILL**2 * float(motion.field @ motion.field)
        else 0.0
    )
    return solution[:k] / size, share, solution[k:]


def _is_new(taken: np.ndarray, direction: np.ndarray) -> bool:
    """Whether a direction is not among those already taken."""
    size = float(np.linalg.norm(direction))
    if not size > 0:
        return False
    unit = direction / size
    if taken.shape[1]:
        unit = unit - taken @ np.linalg.lstsq(taken, unit, rcond=None)[0]
    return float(np.linalg.norm(unit)) > 1e-3


def _still(fields: np.ndarray) -> np.ndarray:
    """Orthonormal combinations (k, m) of fields (rows, k) that move nothing."""
    _, sizes, Vt = np.linalg.svd(fields, full_matrices=True)
    count = int((sizes > STILL * max(float(sizes.max(initial=0.0)), STILL)).sum())
    return np.asarray(Vt[count:].T)


def _complement(taken: np.ndarray, k: int) -> np.ndarray:
    """Orthonormal directions (k, m) across those taken."""
    if not taken.shape[1]:
        return np.eye(k)
    Q, _ = np.linalg.qr(taken, mode="complete")
    return np.asarray(Q[:, taken.shape[1] :])


def _fields(problem: CalibrationProblem, there: Linearised, directions: np.ndarray) -> _Fields:
    """What directions (n, k), SI, move at some poses of all series."""
    loops = problem.assembly.loops
    shape, L = loops.topology, loops.length
    full, x = problem.whole(directions), problem.whole(there.evaluation.correction)
    scalars = [
        i for i, j in enumerate(shape.q_of_v) if j >= 0 and i not in problem.assembly.independent
    ]
    parts: list[tuple[np.ndarray, ...]] = []
    turns = False
    for measured_pose, state, tangent in zip(
        problem.measured_poses, there.evaluation.states, there.tangents, strict=True
    ):
        pose = symbolic_pose(problem.reach, measured_pose.series.instrument)
        some = np.linspace(0, len(state.q) - 1, min(len(state.q), MOST_POSES)).round().astype(int)
        q, q_x = state.q[some], tangent[some]
        places, rates, changes = _placed(pose, measured_pose.series.instrument.name, q, x)
        v = q_x @ directions
        moved = rates @ v + changes @ full
        R, dR = (
            places[:, 6:].reshape(-1, 3, 3).transpose(0, 2, 1),
            moved[:, 6:].reshape(len(some), 3, 3, -1),
        )
        # columns of R are stacked: dR R^T is skew, its vector the turn
        spin = np.einsum("njik,nlj->nilk", dR, R)
        turn = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=1)
        turns |= bool(np.abs(rates[:, 6:]).max(initial=0.0) > STILL)
        coordinates = q[:, [shape.q_of_v[i] for i in scalars]]
        fields = (moved[:, :3], moved[:, 3:6], L * turn, v[:, scalars], coordinates)
        parts.append((*fields, places[:, :3], places[:, 3:6], R))
    target, body, turn, joints, coordinates, p_target, p_body, R = (
        np.concatenate(columns) for columns in zip(*parts, strict=True)
    )
    k = directions.shape[1]
    return _Fields(
        target=target.reshape(-1, k),
        body=body.reshape(-1, k),
        turn=turn.reshape(-1, k),
        joints=joints,
        coordinates=coordinates,
        names=tuple(shape.coordinate_names[shape.q_of_v[i]] for i in scalars),
        p_target=p_target,
        p_body=p_body,
        R=R,
        turns=turns,
        length=L,
    )


def _placed(
    pose: SymbolicPose, instrument: str, q: np.ndarray, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Target, platform's origin and orientation by columns (N, 12); derivatives in velocities and in unknowns."""
    scene = pose.scene
    body = scene.motion.bodies[scene.mechanism.platform.body]
    place = ca.densify(ca.vertcat(scene.target(instrument), body.p, ca.vec(ca.SX(body.R))))
    outputs = [
        place,
        ca.densify(ca.vec(pose.rates(place))),
        ca.densify(ca.vec(ca.jacobian(place, pose.x))),
    ]
    function = BatchFunction(ca.Function("placed", [pose.q, pose.x], outputs))
    n = len(q)
    places, rates, changes = function([q, np.broadcast_to(x, (n, len(x)))], n)
    rows = place.numel()
    return (
        places,
        rates.reshape(n, -1, rows).transpose(0, 2, 1),
        changes.reshape(n, -1, rows).transpose(0, 2, 1),
    )
