"""Kinematics and dynamics in maximal coordinates: six of each body, joints as constraints, motions by the SVD.

These equations are independent of Tauloop's. They read the description of a machine alone and use
NumPy alone: rods are bodies as well, no joint has coordinates of its own, and nothing is eliminated
but by singular values.

Source: Haug 1989, Computer aided kinematics and dynamics of mechanical systems, chapters 9 and 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tauloop.mechanism.expression import Expression
from tauloop.mechanism.model import BASE, Friction, Inertia, Mechanism, Placement, Rod, SlenderPart

#: Singular values below this share of the largest one are zero.
RANK_FLOOR = 1e-9
#: Newton's method has arrived when its step is below this, characteristic lengths or rad: the next
#: one is rounding.
ARRIVED = 1e-9
#: Largest residual of a closed pose, characteristic lengths or rad: rounding.
CLOSED = 1e-12
MAX_STEPS = 30

#: Directions in which each kind of joint blocks translation and rotation: "x", "y", "z" of the near
#: frame; "u", "w" across the joint's axis; "n" across both axes of a universal joint.
BLOCKED = {
    "fixed": ("xyz", "xyz"),
    "revolute": ("xyz", "uw"),
    "prismatic": ("uw", "xyz"),
    "cylindrical": ("uw", "uw"),
    "universal": ("xyz", "n"),
    "spherical": ("xyz", ""),
    "planar": ("z", "xy"),
    "schoenflies": ("", "xy"),
    "translational": ("", "xyz"),
    "free": ("", ""),
}
#: Rates of each kind of joint: suffix, whether it turns, direction ("a": its axis; "1", "2": a
#: universal joint's).
_SLIDES = (("x", False, "x"), ("y", False, "y"), ("z", False, "z"))
_BALL = (("wx", True, "x"), ("wy", True, "y"), ("wz", True, "z"))
_TURN = (("angle", True, "z"),)
RATES: dict[str, tuple[tuple[str, bool, str], ...]] = {
    "fixed": (),
    "revolute": (("", True, "a"),),
    "prismatic": (("", False, "a"),),
    "cylindrical": (("angle", True, "a"), ("slide", False, "a")),
    "universal": (("first", True, "1"), ("second", True, "2")),
    "spherical": _BALL,
    "planar": (*_SLIDES[:2], *_TURN),
    "schoenflies": (*_SLIDES, *_TURN),
    "translational": _SLIDES,
    "free": (*_SLIDES, *_BALL),
}
#: Coordinates of joints without a reference.
NEUTRAL = {
    "fixed": (),
    "revolute": (0.0,),
    "prismatic": (0.0,),
    "cylindrical": (0.0,) * 2,
    "universal": (0.0,) * 2,
    "spherical": (1.0, 0.0, 0.0, 0.0),
    "planar": (0.0,) * 3,
    "schoenflies": (0.0,) * 4,
    "translational": (0.0,) * 3,
    "free": (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0),
}


def skew(x: np.ndarray) -> np.ndarray:
    """Return the matrix of the cross product x times a vector."""
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cross product, ten times faster than NumPy's for single vectors."""
    return np.array(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )


def rotation(vector: np.ndarray) -> np.ndarray:
    """Return the rotation matrix of a rotation vector (Rodrigues)."""
    angle = float(np.linalg.norm(vector))
    K = skew(vector)
    if angle < 1e-8:
        return np.eye(3) + K + K @ K / 2
    return np.eye(3) + np.sin(angle) / angle * K + (1 - np.cos(angle)) / angle**2 * K @ K


def rotation_vector(R: np.ndarray) -> np.ndarray:
    """Return the rotation vector of a rotation of less than half a turn."""
    axis = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2
    sine, cosine = float(np.linalg.norm(axis)), (np.trace(R) - 1) / 2
    return axis if sine < 1e-12 else np.arctan2(sine, cosine) / sine * axis


def quaternion(R: np.ndarray) -> np.ndarray:
    """Return the unit quaternion (w, x, y, z) of a rotation of less than half a turn."""
    vector = rotation_vector(R)
    angle = float(np.linalg.norm(vector))
    return np.array([np.cos(angle / 2), *(0.5 * np.sinc(angle / 2 / np.pi) * vector)])


def rotation_of(q: Sequence[float]) -> np.ndarray:
    """Return the rotation matrix of a unit quaternion (w, x, y, z)."""
    w, v = q[0], np.asarray(q[1:])
    return np.eye(3) + 2 * w * skew(v) + 2 * skew(v) @ skew(v)


def unit(letter: str) -> np.ndarray:
    """Return the unit vector of a coordinate axis."""
    return np.eye(3)["xyz".index(letter)]


def joint_pose(kind: str, axes: Sequence[str], x: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Return orientation and origin of the far frame in the near frame at joint coordinates x."""
    R, p = np.eye(3), np.zeros(3)
    if kind in ("revolute", "cylindrical"):
        R = rotation(x[0] * unit(axes[0]))
    if kind in ("prismatic", "cylindrical"):
        p = x[-1] * unit(axes[0])
    elif kind == "universal":
        R = rotation(x[0] * unit(axes[0])) @ rotation(x[1] * unit(axes[1]))
    elif kind in ("planar", "schoenflies"):
        R, p = rotation(x[-1] * unit("z")), np.array([*x[:-1], 0.0])[:3]
    elif kind == "translational":
        p = np.array(x)
    elif kind == "spherical":
        R = rotation_of(x)
    elif kind == "free":
        R, p = rotation_of(x[3:]), np.array(x[:3])
    return R, p


@dataclass(frozen=True)
class Frame:
    """A frame on a body, -1 the base: its orientation and origin in the body."""

    body: int
    R: np.ndarray
    p: np.ndarray


@dataclass(frozen=True)
class Link:
    """A joint of the description, or one within a rod.

    Attributes:
        name: prefix of its rates.
        kind: of `BLOCKED`.
        axes: letters of its axes.
        near, far: the frames that coincide at zero coordinates.
        start: coordinates of the reference pose.
    """

    name: str
    kind: str
    axes: tuple[str, ...]
    near: Frame
    far: Frame
    start: tuple[float, ...] = ()

    @property
    def letters(self) -> dict[str, str]:
        """Directions of the near frame, by their letters in `BLOCKED` and `RATES`."""
        axis = self.axes[0] if self.axes else "z"
        across = {"u": "yzx"["xyz".index(axis)], "w": "zxy"["xyz".index(axis)]}
        return {"x": "x", "y": "y", "z": "z", "a": axis, "1": axis, **across}


#: Mass, first moment (3,) and inertia (3, 3) about the origin of a body.
Masses = tuple[float, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class RodBodies:
    """A rod as one body, or as two of a telescopic rod; their z axis leads from A to B.

    Attributes:
        rod: its description.
        lower, upper: numbers of the bodies, with origins at A and at B; None where there is no
            second one.
        start, end: the frames at A and B on its neighbors; the x axis of the first is that of a
            universal joint.
        length: of a fixed rod, m.
    """

    rod: Rod
    lower: int
    upper: int | None
    start: Frame
    end: Frame
    length: float

    @property
    def is_spinless(self) -> bool:
        """Whether it never turns about itself."""
        return not (self.rod.is_full and self.rod.spin == "universal")

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Joints at both ends, and the slide of a telescopic rod."""
        foot = Frame(self.lower, np.eye(3), np.zeros(3))
        joint, axes = ("spherical", ()) if self.is_spinless else ("universal", ("x", "y"))
        first = Link("", joint, axes, self.start, foot)
        if self.upper is None:
            tip = Frame(self.lower, np.eye(3), np.array([0.0, 0.0, self.length]))
            return first, Link("", "spherical", (), tip, self.end)
        head = Frame(self.upper, np.eye(3), np.zeros(3))
        slide = Link(self.rod.name, "prismatic", ("z",), foot, head)
        return first, slide, Link("", "spherical", (), head, self.end)

    def placed(self, pose: Pose) -> Pose:
        """Return a pose with the bodies of the rod between its ends; y is across the first axis."""
        frame, A, _ = pose.of(self.start)
        B = pose.of(self.end)[1]
        z = (B - A) / np.linalg.norm(B - A)
        y = cross(frame[:, 0], z)
        y /= np.linalg.norm(y)
        R, p = pose.R.copy(), pose.p.copy()
        for body, origin in ((self.lower, A), (self.upper, B)):
            if body is not None:
                R[body], p[body] = np.stack([cross(y, z), y, z], axis=1), origin
        return Pose(R, p)


@dataclass(frozen=True)
class Pose:
    """Orientations (n, 3, 3) and origins (n, 3) of all bodies."""

    R: np.ndarray
    p: np.ndarray

    def of(self, frame: Frame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return orientation and origin of a frame, and the origin of its body, all in the base."""
        if frame.body < 0:
            return frame.R, frame.p, np.zeros(3)
        R, p = self.R[frame.body], self.p[frame.body]
        return R @ frame.R, p + R @ frame.p, p

    def moved(self, step: np.ndarray) -> Pose:
        """Return the pose after a displacement (6 n,): of the origin, and a rotation vector, for each body."""
        steps = step.reshape(-1, 6)
        return Pose(
            np.array([rotation(s[3:]) @ R for s, R in zip(steps, self.R, strict=True)]),
            self.p + steps[:, :3],
        )


@dataclass(frozen=True)
class Relative:
    """Motion of a link's far frame as seen from its near frame, in base axes.

    Attributes:
        Jv, Jw: relative velocity and angular velocity per unit of all velocities (3, 6 n).
        bv: rate of the relative velocity at zero acceleration; that of the angular velocity is
            zero.
        F, C: orientations of both frames.
        w_near, w_far: angular velocities.
        v, w: the relative velocities themselves.
    """

    Jv: np.ndarray
    Jw: np.ndarray
    bv: np.ndarray
    F: np.ndarray
    C: np.ndarray
    w_near: np.ndarray
    w_far: np.ndarray
    v: np.ndarray
    w: np.ndarray

    def row(self, link: Link, turns: bool, letter: str) -> tuple[np.ndarray, float]:
        """Return the Jacobian (6 n,) of a relative rate along a direction, and its rate at zero acceleration."""
        e, e_rate = self._direction(link, letter)
        J, b, rate = (self.Jw, np.zeros(3), self.w) if turns else (self.Jv, self.bv, self.v)
        return e @ J, float(e @ b + e_rate @ rate)

    def _direction(self, link: Link, letter: str) -> tuple[np.ndarray, np.ndarray]:
        if letter == "2":
            e = self.C @ unit(link.axes[1])
            return e, cross(self.w_far, e)
        if letter == "n":
            (first, first_rate), (second, second_rate) = (
                self._direction(link, "1"),
                self._direction(link, "2"),
            )
            return cross(first, second), cross(first_rate, second) + cross(first, second_rate)
        e = self.F @ unit(link.letters[letter])
        return e, cross(self.w_near, e)


@dataclass(frozen=True)
class Rows:
    """Linear functions of the velocities: Jacobian (k, 6 n), and the rates (k,) at zero acceleration."""

    J: np.ndarray
    bias: np.ndarray

    def combined(self, weights: np.ndarray) -> Rows:
        """Return linear combinations, weights (l, k)."""
        return Rows(weights @ self.J, weights @ self.bias)


@dataclass(frozen=True)
class Law:
    """What acts against one rate: an inertia, friction and a spring."""

    weights: np.ndarray
    inertia: float = 0.0
    friction: Friction | None = None
    stiffness: float = 0.0
    rest: float = 0.0


@dataclass(frozen=True)
class Maximal:
    """A machine in maximal coordinates.

    Attributes:
        machine: its description.
        bodies: names of the bodies, those of rods included.
        inertias: mass, first moment and inertia about the origin of each, in the body.
        joints: joints of the description.
        rods: rods as bodies.
        length: characteristic length, m.
    """

    machine: Mechanism
    bodies: tuple[str, ...]
    inertias: tuple[Masses, ...]
    joints: tuple[Link, ...]
    rods: tuple[RodBodies, ...]
    length: float

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """All joints, with those at the ends of rods and within them."""
        return (*self.joints, *(link for rod in self.rods for link in rod.links))

    @cached_property
    def rates(self) -> tuple[str, ...]:
        """Names of the rates of all joints and telescopic rods."""
        named = [link for link in self.links if link.name]
        return tuple(
            f"{link.name}.{suffix}".rstrip(".")
            for link in named
            for suffix, _, _ in RATES[link.kind]
        )

    @cached_property
    def scale(self) -> np.ndarray:
        """Unit displacement of every maximal coordinate."""
        return np.tile([self.length] * 3 + [1.0] * 3, len(self.bodies))

    # Positions

    def start(self) -> Pose:
        """Return the pose of the joints' reference coordinates, before loops are closed."""
        n = len(self.bodies)
        R, p, known = np.zeros((n, 3, 3)), np.zeros((n, 3)), {-1}
        remaining = list(self.joints)
        while remaining:
            ready = [link for link in remaining if {link.near.body, link.far.body} & known]
            for link in ready:
                remaining.remove(link)
                near, far = link.near, link.far
                if {near.body, far.body} <= known:
                    continue
                pose = Pose(R, p)
                turned, offset = joint_pose(link.kind, link.axes, link.start or NEUTRAL[link.kind])
                if near.body in known:
                    F, origin, _ = pose.of(near)
                    frame, place, body = F @ turned, origin + F @ offset, far
                else:
                    C, origin, _ = pose.of(far)
                    frame = C @ turned.T
                    place, body = origin - frame @ offset, near
                R[body.body] = frame @ body.R.T
                p[body.body] = place - R[body.body] @ body.p
                known.add(body.body)
        return self._with_rods(Pose(R, p))

    def _with_rods(self, pose: Pose) -> Pose:
        for rod in self.rods:
            pose = rod.placed(pose)
        return pose

    def residuals(self, pose: Pose) -> np.ndarray:
        """Return how far all constraints are from satisfied, characteristic lengths or rad."""
        values = []
        for link in self.links:
            F, near, _ = pose.of(link.near)
            C, far, _ = pose.of(link.far)
            d, letters = F.T @ (far - near) / self.length, link.letters
            slides, turns = BLOCKED[link.kind]
            values += [d @ unit(letters[letter]) for letter in slides]
            relative = F.T @ C
            if turns == "n":
                values.append(-unit(link.axes[0]) @ relative @ unit(link.axes[1]))
            elif turns == "xyz":
                values += [*rotation_vector(relative)]
            elif turns:
                axis = unit(letters["a"])
                values += [cross(axis, relative @ axis) @ unit(letters[letter]) for letter in turns]
        values += [0.0] * len(self._spinless)  # a spin opens no joint
        values += [
            *((self.coupling_weights @ self.coordinates(pose) - self.offsets) / self.coupling_scale)
        ]
        return np.array(values)

    def closed(
        self, pose: Pose, rows: Sequence[int] = (), targets: Sequence[float | np.ndarray] = ()
    ) -> Pose | None:
        """Return the pose that satisfies all constraints, by Newton's method; None where it does not arrive.

        Args:
            pose: start.
            rows: rates whose coordinates are given; of a ball all three.
            targets: their coordinates; of a ball its rotation matrix, which stands for each of its
                three rates.
        """
        for _ in range(MAX_STEPS):
            motion = self.at(pose)
            J = np.concatenate(
                [motion.constraints.J * self._row_scale[:, None], motion.rates.J[list(rows)]]
            )
            J[len(J) - len(rows) :] /= self.rate_scale[list(rows)][:, None]
            missing = self._missing(pose, rows, targets)
            residual = np.concatenate([self.residuals(pose), missing])
            step = np.linalg.lstsq(J * self.scale, -residual, rcond=RANK_FLOOR)[0]
            if not np.abs(step).max(initial=0.0) < 1.0:
                return None
            pose = pose.moved(step * self.scale)
            if np.abs(step).max(initial=0.0) < ARRIVED:
                break
        left = np.concatenate([self.residuals(pose), self._missing(pose, rows, targets)])
        return self._with_rods(pose) if np.abs(left).max(initial=0.0) < CLOSED else None

    def _missing(
        self, pose: Pose, rows: Sequence[int], targets: Sequence[float | np.ndarray]
    ) -> np.ndarray:
        coordinates = self.coordinates(pose)
        values = []
        for row, target in zip(rows, targets, strict=True):
            if isinstance(target, np.ndarray):
                R = self.ball(pose, self.rates[row].rpartition(".")[0])
                values.append(rotation_vector(R @ target.T)["xyz".index(self.rates[row][-1])])
            else:
                values.append((coordinates[row] - target) / self.rate_scale[row])
        return np.array(values)

    def ball(self, pose: Pose, joint: str) -> np.ndarray:
        """Return the relative rotation of a free or spherical joint."""
        link = next(link for link in self.links if link.name == joint)
        return pose.of(link.near)[0].T @ pose.of(link.far)[0]

    def coordinates(self, pose: Pose) -> np.ndarray:
        """Return the scalar coordinates behind all rates; NaN for those of balls, which have none."""
        values: list[float] = []
        for link in self.links:
            if not link.name:
                continue
            F, near, _ = pose.of(link.near)
            C, far, _ = pose.of(link.far)
            relative, d = F.T @ C, F.T @ (far - near)
            letters = link.letters
            for suffix, turns, letter in RATES[link.kind]:
                if not turns:
                    values.append(float(d @ unit(letters[letter])))
                elif suffix.startswith("w"):
                    values.append(np.nan)
                elif link.kind == "universal":
                    first, second = unit(link.axes[0]), unit(link.axes[1])
                    third = cross(first, second)
                    turned = relative @ second if suffix == "first" else relative.T @ first
                    values.append(
                        float(
                            np.arctan2(
                                turned @ third, turned @ (second if suffix == "first" else first)
                            )
                        )
                    )
                else:
                    axis = letters[letter]
                    e, f = unit("yzx"["xyz".index(axis)]), unit("zxy"["xyz".index(axis)])
                    values.append(float(np.arctan2(f @ relative @ e, e @ relative @ e)))
        return np.array(values)

    # Velocities and accelerations

    def at(self, pose: Pose, velocity: np.ndarray | None = None) -> Motion:
        """Return constraints and rates at a pose and velocities (6 n,); at rest without them."""
        V = np.zeros(6 * len(self.bodies)) if velocity is None else velocity
        relatives = [self._relative(link, pose, V) for link in self.links]
        constraints, rates = [], []
        for link, relative in zip(self.links, relatives, strict=True):
            for turns, letters in zip((False, True), BLOCKED[link.kind], strict=True):
                constraints += [relative.row(link, turns, letter) for letter in letters]
            if link.name:
                rates += [
                    relative.row(link, turns, letter) for _, turns, letter in RATES[link.kind]
                ]
        for body in self._spinless:
            row = np.zeros(len(V))
            row[6 * body + 3 : 6 * body + 6] = pose.R[body][:, 2]
            constraints.append((row, 0.0))  # the rate of u is w x u, which is across w
        rate_rows = _stacked(rates, len(V))
        gears = rate_rows.combined(self.coupling_weights)
        joints = _stacked(constraints, len(V))
        return Motion(
            system=self,
            pose=pose,
            velocity=V,
            constraints=Rows(
                np.concatenate([joints.J, gears.J]), np.concatenate([joints.bias, gears.bias])
            ),
            rates=rate_rows,
        )

    def _relative(self, link: Link, pose: Pose, V: np.ndarray) -> Relative:
        near, far = link.near.body, link.far.body
        F, _, p_near = pose.of(link.near)
        C, far_origin, p_far = pose.of(link.far)
        Jv, Jw = np.zeros((2, 3, len(V)))
        v_near = w_near = v_far = w_far = np.zeros(3)
        reach, arm = far_origin - p_near, far_origin - p_far
        if near >= 0:
            v_near, w_near = V[6 * near : 6 * near + 3], V[6 * near + 3 : 6 * near + 6]
            Jv[:, 6 * near : 6 * near + 3] = -np.eye(3)
            Jv[:, 6 * near + 3 : 6 * near + 6] = skew(reach)
            Jw[:, 6 * near + 3 : 6 * near + 6] = -np.eye(3)
        if far >= 0:
            v_far, w_far = V[6 * far : 6 * far + 3], V[6 * far + 3 : 6 * far + 6]
            Jv[:, 6 * far : 6 * far + 3] = np.eye(3)
            Jv[:, 6 * far + 3 : 6 * far + 6] = -skew(arm)
            Jw[:, 6 * far + 3 : 6 * far + 6] = np.eye(3)
        turning = cross(w_far, arm)
        bias = cross(w_far, turning) - cross(w_near, v_far + turning - v_near)
        return Relative(Jv, Jw, bias, F, C, w_near, w_far, Jv @ V, w_far - w_near)

    # What the description states

    @cached_property
    def rate_scale(self) -> np.ndarray:
        """Unit of every rate: the characteristic length, or one radian."""
        flags = [turns for link in self.links if link.name for _, turns, _ in RATES[link.kind]]
        return np.where(flags, 1.0, self.length)

    @cached_property
    def _row_scale(self) -> np.ndarray:
        """Factors that make constraints pure numbers."""
        factors: list[float] = []
        for link in self.links:
            slides, turns = BLOCKED[link.kind]
            factors += [1.0 / self.length] * len(slides) + [1.0] * len(turns)
        return np.array([*factors, *[1.0] * len(self._spinless), *(1.0 / self.coupling_scale)])

    @cached_property
    def _spinless(self) -> tuple[int, ...]:
        """Bodies of rods that never turn about themselves."""
        return tuple(rod.lower for rod in self.rods if rod.is_spinless)

    def weights(self, terms: Sequence[tuple[str, Expression]]) -> np.ndarray:
        """Return the combination of rates that an actuator, a coupling or a loss states."""
        row = np.zeros(len(self.rates))
        for name, ratio in terms:
            row[self.rates.index(name)] = self.machine.value(ratio)
        return row

    @cached_property
    def coupling_weights(self) -> np.ndarray:
        """Combinations of rates (g, k) that couplings make zero."""
        rows = [self.weights(coupling.terms) for coupling in self.machine.couplings]
        return np.array(rows).reshape(len(rows), len(self.rates))

    @cached_property
    def coupling_scale(self) -> np.ndarray:
        """Unit of every coupling."""
        return np.array(
            [1.0 if coupling.is_angular else self.length for coupling in self.machine.couplings]
        )

    @cached_property
    def offsets(self) -> np.ndarray:
        """Values of the couplings' sums."""
        return np.array(
            [self.machine.value(coupling.offset) for coupling in self.machine.couplings]
        )

    @cached_property
    def actuator_weights(self) -> np.ndarray:
        """Combinations of rates (n_u, k) that are the motors' velocities."""
        rows = [self.weights(actuator.drives) for actuator in self.machine.actuators]
        return np.array(rows).reshape(len(rows), len(self.rates))

    @cached_property
    def laws(self) -> tuple[Law, ...]:
        """What acts on rates: freedoms, motors and losses."""
        value, laws = self.machine.value, []
        for name, freedom in self.machine.freedoms.items():
            spring = freedom.spring
            laws.append(
                Law(
                    weights=np.eye(len(self.rates))[self.rates.index(name)],
                    inertia=0.0 if freedom.inertia is None else value(freedom.inertia),
                    friction=freedom.friction,
                    stiffness=0.0 if spring is None else value(spring.stiffness),
                    rest=0.0 if spring is None else value(spring.rest),
                )
            )
        for actuator in self.machine.actuators:
            inertia = 0.0 if actuator.inertia is None else value(actuator.inertia)
            laws.append(
                Law(
                    weights=self.weights(actuator.drives),
                    inertia=inertia,
                    friction=actuator.friction,
                )
            )
        laws += [
            Law(weights=self.weights(loss.terms), friction=loss.friction)
            for loss in self.machine.losses
        ]
        return tuple(laws)

    def friction(self, law: Friction, v: float) -> float:
        """Return the friction force at a speed."""

        def value(expression: Expression | None) -> float:
            return 0.0 if expression is None else self.machine.value(expression)

        force = value(law.viscous) * v + value(law.viscous_asymmetry) * abs(v) + value(law.offset)
        excess = 0.0
        if law.static is not None and law.stribeck is not None:
            excess = (value(law.static) - value(law.coulomb)) * np.exp(
                -((v / value(law.stribeck)) ** 2)
            )
        return (
            force
            + (value(law.coulomb) + excess) * np.sign(v)
            + value(law.coulomb_asymmetry) * abs(np.sign(v))
        )


def _stacked(rows: list[tuple[np.ndarray, float]], n: int) -> Rows:
    return Rows(
        np.array([J for J, _ in rows]).reshape(len(rows), n), np.array([bias for _, bias in rows])
    )


@dataclass(frozen=True)
class Motion:
    """A machine at a pose and velocities: constraints, rates, masses and forces."""

    system: Maximal
    pose: Pose
    velocity: np.ndarray
    constraints: Rows
    rates: Rows

    @cached_property
    def _singular(self) -> tuple[np.ndarray, int, np.ndarray]:
        """Singular values of the unit-free constraints, their rank, and right singular vectors."""
        J = self.system._row_scale[:, None] * self.constraints.J * self.system.scale
        if not len(J):
            return np.ones(1), 0, np.eye(J.shape[1])
        _, sigma, Vt = np.linalg.svd(J)
        return sigma, int((sigma > RANK_FLOOR * sigma[0]).sum()), Vt

    @property
    def mobility(self) -> int:
        """Number of independent motions."""
        return len(self.velocity) - self._singular[1]

    @cached_property
    def motions(self) -> np.ndarray:
        """Orthonormal unit-free motions (6 n, m) that all constraints allow."""
        return self._singular[2][self._singular[1] :].T

    def condition(self, independent: Sequence[int]) -> float:
        """Return how badly constraints and given rates, or the motors', determine all velocities, dimensionless."""
        motors = self.system.actuator_weights @ self.rates.J
        motors = motors / np.abs(motors * self.system.scale).max(
            axis=1, initial=1e-300, keepdims=True
        )
        rates = self.rates.J[list(independent)] / self._units(list(independent))
        sigma, rank, _ = self._singular
        loops = sigma[0] / sigma[rank - 1] if rank else 1.0
        return float(
            loops * max(_spread(J * self.system.scale @ self.motions) for J in (rates, motors))
        )

    def embedding(self, independent: Sequence[int]) -> np.ndarray:
        """Return velocities (6 n, m) per unit of independent rates."""
        E = self.rates.J[list(independent)] * self.system.scale @ self.motions
        return self.system.scale[:, None] * (self.motions @ np.linalg.inv(E))

    def accelerations(self, independent: Sequence[int], rates: np.ndarray) -> np.ndarray:
        """Return accelerations (6 n,) that keep the constraints and give independent rates' rates."""
        rows, system = list(independent), self.system
        J = np.concatenate(
            [
                system._row_scale[:, None] * self.constraints.J,
                self.rates.J[rows] / self._units(rows),
            ]
        )
        right = [
            -system._row_scale * self.constraints.bias,
            (rates - self.rates.bias[rows]) / self._units(rows)[:, 0],
        ]
        return (
            system.scale
            * np.linalg.lstsq(J * system.scale, np.concatenate(right), rcond=RANK_FLOOR)[0]
        )

    def _units(self, rows: list[int]) -> np.ndarray:
        return self.system.rate_scale[rows][:, None]

    @cached_property
    def mass_matrix(self) -> np.ndarray:
        """Masses (6 n, 6 n) of all bodies and of the inertias of rates."""
        n = len(self.system.bodies)
        M = np.zeros((6 * n, 6 * n))
        for i, (m, mc, I) in enumerate(self._in_base):
            at = slice(6 * i, 6 * i + 6)
            M[at, at] = np.block([[m * np.eye(3), -skew(mc)], [skew(mc), I]])
        for law in self.system.laws:
            row = law.weights @ self.rates.J
            M += law.inertia * np.outer(row, row)
        return M

    @cached_property
    def _in_base(self) -> list[tuple[float, np.ndarray, np.ndarray]]:
        return [
            (m, R @ mc, R @ I @ R.T)
            for (m, mc, I), R in zip(self.system.inertias, self.pose.R, strict=True)
        ]

    @cached_property
    def gyroscopic(self) -> np.ndarray:
        """Inertial forces (6 n,) at zero acceleration."""
        forces = []
        for (_, mc, I), (_, w) in zip(self._in_base, self.velocity.reshape(-1, 2, 3), strict=True):
            forces += [cross(w, cross(w, mc)), cross(w, I @ w)]
        total = np.concatenate(forces)
        for law in self.system.laws:
            total = total + law.inertia * (law.weights @ self.rates.bias) * (
                law.weights @ self.rates.J
            )
        return total

    @cached_property
    def weight(self) -> np.ndarray:
        """Forces (6 n,) that carry all bodies against gravity."""
        g = self.gravity
        return np.concatenate(
            [np.concatenate([-m * g, -cross(mc, g)]) for m, mc, _ in self._in_base]
        )

    @property
    def gravity(self) -> np.ndarray:
        """Acceleration of gravity (3,), m/s^2."""
        return np.array([self.system.machine.value(x) for x in self.system.machine.gravity])

    @cached_property
    def losses(self) -> np.ndarray:
        """Forces (6 n,) against friction and springs."""
        total = np.zeros(len(self.velocity))
        coordinates = np.nan_to_num(self.system.coordinates(self.pose))
        for law in self.system.laws:
            row = law.weights @ self.rates.J
            force = law.stiffness * (law.weights @ coordinates - law.rest) if law.stiffness else 0.0
            if law.friction is not None:
                force += self.system.friction(law.friction, float(row @ self.velocity))
            total += force * row
        return total

    def forces(self, acceleration: np.ndarray) -> np.ndarray:
        """Return all forces (6 n,) that a motion needs."""
        return self.mass_matrix @ acceleration + self.gyroscopic + self.weight + self.losses

    @property
    def kinetic_energy(self) -> float:
        """Kinetic energy, J."""
        return float(self.velocity @ self.mass_matrix @ self.velocity / 2)

    @property
    def potential_energy(self) -> float:
        """Potential energy of gravity and springs, J."""
        energy = -sum(
            float(self.gravity @ (m * p + mc))
            for (m, mc, _), p in zip(self._in_base, self.pose.p, strict=True)
        )
        coordinates = np.nan_to_num(self.system.coordinates(self.pose))
        for law in self.system.laws:
            q = float(law.weights @ coordinates)
            energy += law.stiffness * (q * q / 2 - law.rest * q)
        return energy

    def tool(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return origin and orientation of the tool, and its twist (6, 6 n) per unit of all velocities."""
        placement = self.system.machine.platform.tool
        frame = _frame(self.system.machine, self.system.bodies, placement)
        R, p, origin = self.pose.of(frame)
        J = np.zeros((6, len(self.velocity)))
        at = 6 * frame.body
        J[:3, at : at + 3] = J[3:, at + 3 : at + 6] = np.eye(3)
        J[:3, at + 3 : at + 6] = -skew(p - origin)
        return p, R, J

    def constraint_forces(self, forces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return multipliers of all constraints for forces (6 n,), and null vectors (c, k) that leave them open."""
        J = self.system._row_scale[:, None] * self.constraints.J * self.system.scale
        U, sigma, Vt = np.linalg.svd(J)
        rank = int((sigma > RANK_FLOOR * sigma[0]).sum())
        lam = U[:, :rank] @ ((Vt[:rank] @ (self.system.scale * forces)) / sigma[:rank])
        return lam * self.system._row_scale, U[:, rank:] * self.system._row_scale[:, None]


def _spread(matrix: np.ndarray) -> float:
    sigma = np.linalg.svd(matrix, compute_uv=False)
    return float(sigma[0] / sigma[-1]) if len(sigma) and sigma[-1] > 0 else np.inf


def _frame(machine: Mechanism, bodies: Sequence[str], placement: Placement) -> Frame:
    R = np.eye(3)
    for turn in placement.turns:
        R = R @ rotation(machine.value(turn.angle) * unit(turn.axis))
    p = np.array([machine.value(x) for x in placement.position])
    return Frame(-1 if placement.body == BASE else bodies.index(placement.body), R, p)


def _inertia(machine: Mechanism, inertia: Inertia | None) -> Masses:
    if inertia is None:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = (machine.value(x) for x in inertia.parameters)
    return m, np.array([hx, hy, hz]), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _rod_inertia(machine: Mechanism, part: SlenderPart | Inertia | None, sign: float) -> Masses:
    """Return the inertia of a part of a rod; that of a slender upper part is measured from B towards A."""
    if not isinstance(part, SlenderPart):
        return _inertia(machine, part)
    m, h, J = (machine.value(x) for x in part.parameters)
    return m, np.array([0.0, 0.0, sign * h]), np.diag([J, J, 0.0])


def _first_axis(machine: Mechanism, rod: Rod) -> np.ndarray:
    """Return a rotation whose x axis is the first axis of a rod's universal joint, in the body at A."""
    if rod.first_axis is None:
        # any axis will do
        return np.linalg.qr(np.array([[0.3, 1.0, 0.0], [0.5, 0.0, 1.0], [0.8, 0.0, 0.0]]))[0]
    x = np.array([machine.value(component) for component in rod.first_axis])
    x /= np.linalg.norm(x)
    y = cross(unit("xyz"[int(np.argmin(np.abs(x)))]), x)
    y /= np.linalg.norm(y)
    return np.stack([x, y, cross(x, y)], axis=1)


def maximal(machine: Mechanism) -> Maximal:
    """Return the equations of a machine in maximal coordinates."""
    bodies = [body.name for body in machine.bodies]
    inertias = [_inertia(machine, body.inertia) for body in machine.bodies]
    joints = [
        Link(
            joint.name,
            joint.kind,
            joint.axes,
            _frame(machine, bodies, joint.parent),
            _frame(machine, bodies, joint.child),
            joint.reference,
        )
        for joint in machine.joints
    ]
    rods = []
    for rod in machine.rods:
        inertias.append(_rod_inertia(machine, rod.lower, 1.0))
        lower, upper = len(inertias) - 1, None
        if rod.telescope is not None:
            inertias.append(_rod_inertia(machine, rod.upper, -1.0))
            upper = len(inertias) - 1
        start, end = _frame(machine, bodies, rod.start), _frame(machine, bodies, rod.end)
        start = Frame(start.body, _first_axis(machine, rod), start.p)
        length = 0.0 if rod.length is None else machine.value(rod.length)
        rods.append(RodBodies(rod, lower, upper, start, end, length))
    names = (*bodies, *(f"part {i}" for i in range(len(bodies), len(inertias))))
    return Maximal(
        machine, names, tuple(inertias), tuple(joints), tuple(rods), machine.characteristic_length
    )
