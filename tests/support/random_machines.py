"""Random machines of twelve families and of any size, whose loops close by construction.

A machine is laid out in the base frame, in natural units: bodies and joints are put somewhere, and
the frames of the joints follow. Every description hence has its reference pose on its own branch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from maximal import joint_pose, rotation, unit

from tauloop.mechanism.expression import Constant, ParameterTable
from tauloop.mechanism.model import (
    BASE,
    JOINT_KINDS,
    PLATFORM_JOINT,
    Actuator,
    Body,
    CombinedFriction,
    Coupling,
    Freedom,
    Friction,
    Inertia,
    Joint,
    Mechanism,
    Placement,
    Platform,
    Rod,
    SlenderPart,
    Spring,
    Telescope,
    Turn,
)

#: Sizes of machines, m.
SMALLEST, LARGEST = 1e-6, 1e2
#: Acceleration of gravity, natural units, and its size in SI, m/s^2.
GRAVITY, WEIGHT = np.array([0.03, -0.05, -0.99]), 9.81
DENSITY = 1e3
SPACE = tuple(f"{PLATFORM_JOINT}.{name}" for name in ("x", "y", "z", "wx", "wy", "wz"))


class Size(NamedTuple):
    """Natural units of a machine in SI."""

    length: float
    mass: float
    time: float

    @property
    def force(self) -> float:
        """Unit of force, N."""
        return self.mass * self.length / self.time**2

    def forces(self, turns: Sequence[bool]) -> np.ndarray:
        """Return the units (n,) of forces and torques."""
        return np.where(turns, self.force * self.length, self.force)

    def displacements(self, turns: Sequence[bool]) -> np.ndarray:
        """Return the units (n,) of displacements, m or rad."""
        return np.where(turns, 1.0, self.length)


def random_size(rng: np.random.Generator) -> Size:
    """Return a size between a micrometre and a hundred metres, with gravity as it is."""
    length = float(np.exp(rng.uniform(np.log(SMALLEST), np.log(LARGEST))))
    return Size(
        length, DENSITY * length**3 * float(rng.uniform(0.3, 3.0)), float(np.sqrt(length / WEIGHT))
    )


class Layout:
    """A machine that is being laid out, in natural units and the base frame."""

    def __init__(self, rng: np.random.Generator, size: Size) -> None:
        """Start with the base alone."""
        self.rng, self.size = rng, size
        self.poses: dict[str, tuple[np.ndarray, np.ndarray]] = {BASE: (np.eye(3), np.zeros(3))}
        self.bodies: list[Body] = []
        self.joints: list[Joint] = []
        self.rods: list[Rod] = []
        self.couplings: list[Coupling] = []
        self.actuators: list[Actuator] = []
        self.losses: list[CombinedFriction] = []
        self.turns: dict[str, bool] = {}

    def value(self, number: float, length: int = 0, mass: int = 0, time: int = 0) -> Constant:
        """Return a number of natural units in SI, by the powers of its dimension."""
        size = self.size
        return Constant(float(number) * size.length**length * size.mass**mass * size.time**time)

    def body(
        self, name: str, place: Sequence[float] | np.ndarray, *, turned: np.ndarray | None = None
    ) -> str:
        """Add a body with a random inertia."""
        R = self.any_rotation() if turned is None else turned
        self.poses[name] = (R, np.asarray(place, dtype=float))
        self.bodies.append(Body(name=name, inertia=self.inertia(float(self.rng.uniform(0.3, 2.0)))))
        return name

    def any_rotation(self) -> np.ndarray:
        """Return a random rotation of at most a radian about each axis."""
        return rotation(self.rng.uniform(-1.0, 1.0, size=3))

    def inertia(self, mass: float, center: Sequence[float] | None = None) -> Inertia:
        """Return the inertia of a cloud of points."""
        points = 0.15 * self.rng.normal(size=(6, 3)) + (
            0.1 * self.rng.normal(size=3) if center is None else center
        )
        second = mass / 6 * sum(p @ p * np.eye(3) - np.outer(p, p) for p in points)
        moments = [second[i, j] for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))]
        first = mass * points.mean(axis=0)
        return Inertia.of(
            (
                self.value(mass, mass=1),
                *(self.value(x, mass=1, length=1) for x in first),
                *(self.value(x, mass=1, length=2) for x in moments),
            )
        )

    def slender(self, length: float) -> SlenderPart:
        """Return a slender part whose mass centre is about its middle."""
        m, s = float(self.rng.uniform(0.1, 0.6)), float(self.rng.uniform(0.3, 0.7)) * length
        moment = m * s * s + m * length**2 / 12
        parameters = (
            self.value(m, mass=1),
            self.value(m * s, mass=1, length=1),
            self.value(moment, mass=1, length=2),
        )
        return SlenderPart.of(parameters)

    def frame(self, body: str, R: np.ndarray, p: np.ndarray) -> Placement:
        """Return a frame on a body, from its pose in the base."""
        R_body, p_body = self.poses[body]
        own, x = R_body.T @ R, R_body.T @ (p - p_body)
        angles = {
            "z": np.arctan2(-own[0, 1], own[1, 1]),
            "x": np.arcsin(np.clip(own[2, 1], -1.0, 1.0)),
            "y": np.arctan2(-own[2, 0], own[2, 2]),
        }
        turns = tuple(Turn(axis, Constant(float(angle))) for axis, angle in angles.items())  # type: ignore[arg-type]
        return Placement(body=body, position=tuple(self.value(c, length=1) for c in x), turns=turns)  # type: ignore[arg-type]

    def joint(
        self,
        name: str,
        kind: str,
        bodies: tuple[str, str],
        place: Sequence[float] | np.ndarray,
        *,
        R: np.ndarray | None = None,
        axes: tuple[str, ...] = (),
        x: Sequence[float] | None = None,
        is_bare: bool = False,
    ) -> str:
        """Add a joint whose near frame is here, at joint coordinates x; both frames follow from its bodies' poses."""
        kinds, rng = JOINT_KINDS[kind], self.rng
        if x is None:
            x = [
                float(c == "qw") if c.startswith("q") else float(rng.uniform(-0.6, 0.6))
                for c in kinds.coordinates
            ]
        near_R = self.any_rotation() if R is None else R
        turned, offset = joint_pose(kind, axes, x)
        near_p = np.asarray(place, dtype=float)
        scalars = sum(not c.startswith("q") for c in kinds.coordinates)  # a quaternion comes last
        units = np.ones(len(kinds.coordinates))
        units[:scalars] = self.size.displacements(kinds.angular[:scalars])
        self.joints.append(
            Joint(
                name=name,
                kind=kind,
                parent=self.frame(bodies[0], near_R, near_p),
                child=self.frame(bodies[1], near_R @ turned, near_p + near_R @ offset),
                axes=axes,  # type: ignore[arg-type]
                reference=tuple(float(c) for c in np.asarray(x) * units),
                freedoms=tuple(
                    Freedom()
                    if is_bare
                    else self.freedom(turns, has_coordinate=suffix in kinds.coordinates)
                    for suffix, turns in zip(kinds.velocities, kinds.angular, strict=True)
                ),
            )
        )
        for suffix, turns in zip(kinds.velocities, kinds.angular, strict=True):
            if suffix not in ("wx", "wy", "wz"):
                self.turns[f"{name}.{suffix}".rstrip(".")] = turns
        return name

    def freedom(self, turns: bool, *, has_coordinate: bool = True) -> Freedom:
        """Return what acts on a freedom: nothing in two of three."""
        rng = self.rng
        if rng.uniform() < 0.66:
            return Freedom()
        spring = Spring(
            stiffness=self.value(rng.uniform(0.1, 1.0), mass=1, length=2 * turns, time=-2),
            rest=self.value(rng.uniform(-0.3, 0.3), length=int(not turns)),
        )
        inertia = self.value(rng.uniform(0.01, 0.1), mass=1, length=2 * turns)
        friction = self.friction(turns)
        return Freedom(
            friction=friction if rng.uniform() < 0.7 else None,
            spring=spring if rng.uniform() < 0.7 and has_coordinate else None,
            inertia=inertia if rng.uniform() < 0.7 else None,
        )

    def friction(self, turns: bool) -> Friction:
        """Return a friction law, with dry friction in one of three."""
        rng, torque = self.rng, int(turns)

        def force(number: float) -> Constant:
            return self.value(number, mass=1, length=1 + torque, time=-2)

        def damping(number: float) -> Constant:
            return self.value(number, mass=1, length=2 * torque, time=-1)

        smooth = {
            "viscous": damping(rng.uniform(0.1, 0.5)),
            "offset": force(rng.uniform(-0.2, 0.2)),
        }
        if rng.uniform() < 0.66:
            return Friction(**smooth)
        return Friction(
            **smooth,
            coulomb=force(0.2),
            static=force(rng.uniform(0.2, 0.4)),
            stribeck=self.value(rng.uniform(0.2, 1.0), length=int(not turns), time=-1),
            viscous_asymmetry=damping(0.05),
            coulomb_asymmetry=force(0.03),
        )

    def motor(self, *drives: tuple[str, float]) -> None:
        """Add an actuator on coordinates with ratios, with a rotor and friction in half of all."""
        turns = self.turns[drives[0][0]]
        rng, terms = self.rng, self.terms(drives, turns)
        inertia = (
            self.value(rng.uniform(0.01, 0.1), mass=1, length=2 * turns)
            if rng.uniform() < 0.5
            else None
        )
        friction = self.friction(turns) if rng.uniform() < 0.3 else None
        name = f"motor{len(self.actuators)}"
        self.actuators.append(
            Actuator(name=name, drives=terms, is_rotary=turns, inertia=inertia, friction=friction)
        )

    def terms(
        self, drives: Sequence[tuple[str, float]], turns: bool
    ) -> tuple[tuple[str, Constant], ...]:
        """Return coordinates with their ratios, in a sum that is an angle or a length."""
        return tuple(
            (name, self.value(ratio, length=int(self.turns[name]) - int(turns)))
            for name, ratio in drives
        )

    def coupling(self, drives: Sequence[tuple[str, float]]) -> None:
        """Add a gear between coordinates that holds in the reference pose."""
        turns = self.turns[drives[0][0]]
        terms = self.terms(drives, turns)
        start = {
            name: x
            for joint in self.joints
            for name, x in zip(joint.velocity_names, joint.reference, strict=False)
        }
        offset = sum(ratio.value * start[name] for name, ratio in terms)
        name = f"gear{len(self.couplings)}"
        self.couplings.append(
            Coupling(name=name, terms=terms, offset=Constant(float(offset)), is_angular=turns)
        )

    def loss(self, drives: Sequence[tuple[str, float]]) -> None:
        """Add friction of a combination of coordinates."""
        turns = self.turns[drives[0][0]]
        name = f"loss{len(self.losses)}"
        terms = self.terms(drives, turns)
        self.losses.append(
            CombinedFriction(
                name=name, terms=terms, friction=self.friction(turns), is_angular=turns
            )
        )

    def rod(
        self,
        name: str,
        A: tuple[str, np.ndarray],
        B: tuple[str, np.ndarray],
        *,
        telescopic: bool = False,
    ) -> str:
        """Add a rod of a random model between two points of the base frame."""
        rng, d = self.rng, np.asarray(B[1]) - np.asarray(A[1])
        length = float(np.linalg.norm(d))
        model = str(rng.choice(["slender", "slender", "full", "massless"]))
        start, end = (self.frame(body, np.eye(3), np.asarray(point)) for body, point in (A, B))
        spin, axis, lower, upper = "none", None, None, None
        if model == "slender":
            lower, upper = self.slender(length), self.slender(length) if telescopic else None
        elif model == "full":
            spin = str(rng.choice(["universal", "universal", "none"]))
            side = unit("xyz"[int(np.argmin(np.abs(d)))]) + 0.2 * rng.normal(size=3)
            axis = tuple(
                Constant(float(c)) for c in self.poses[A[0]][0].T @ side / np.linalg.norm(side)
            )
            lower = self.inertia(0.4, (0.02, 0.01, 0.4 * length))
            upper = self.inertia(0.3, (0.01, -0.02, -0.3 * length)) if telescopic else None
        telescope = (
            Telescope(reference=length * self.size.length, freedom=self.freedom(False))
            if telescopic
            else None
        )
        self.rods.append(
            Rod(
                name=name,
                start=start,
                end=end,
                length=None if telescopic else self.value(length, length=1),
                telescope=telescope,
                lower=lower,
                upper=upper,
                spin=spin,  # type: ignore[arg-type]
                first_axis=axis,  # type: ignore[arg-type]
            )
        )
        if telescopic:
            self.turns[name] = False
        return name

    def platform(self, kind: str, place: Sequence[float], name: str = "plate") -> str:
        """Add a platform with coordinates of its own."""
        R = rotation(self.rng.uniform(-0.3, 0.3, size=3)) if kind == "free" else np.eye(3)
        x = list(place)
        if kind in ("planar", "schoenflies"):
            angle = float(self.rng.uniform(-0.4, 0.4))
            R, x = rotation(angle * unit("z")), [*place, angle]
        if kind == "free":
            half = np.linalg.norm(_vector(R)) / 2
            axis = _vector(R) / (2 * half)
            x = [*place, np.cos(half), *(np.sin(half) * axis)]
        self.body(name, [*place, 0.0, 0.0][:3], turned=R)
        joint = {"name": PLATFORM_JOINT, "kind": kind, "bodies": (BASE, name), "place": np.zeros(3)}
        self.joint(**joint, R=np.eye(3), x=x, is_bare=True)  # type: ignore[arg-type]
        return name

    def finish(self, platform: str, independent: Sequence[str]) -> Mechanism:
        """Return the machine."""
        tool = self.frame(
            platform, self.any_rotation(), self.poses[platform][1] + 0.2 * self.rng.normal(size=3)
        )
        return Mechanism(
            name="random",
            parameters=ParameterTable(()),
            gravity=tuple(
                self.value(WEIGHT * self.size.time**2 / self.size.length * g, length=1, time=-2)
                for g in GRAVITY
            ),  # type: ignore[arg-type]
            bodies=tuple(self.bodies),
            joints=tuple(self.joints),
            rods=tuple(self.rods),
            couplings=tuple(self.couplings),
            actuators=tuple(self.actuators),
            losses=tuple(self.losses),
            platform=Platform(body=platform, tool=tool, independent=tuple(independent)),
        )


def _vector(R: np.ndarray) -> np.ndarray:
    axis = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2
    sine = float(np.linalg.norm(axis))
    return np.arctan2(sine, (np.trace(R) - 1) / 2) / sine * axis


def around(angle: float, radius: float, z: float = 0.0) -> np.ndarray:
    """Return a point of a circle about z."""
    return np.array([radius * np.cos(angle), radius * np.sin(angle), z])


def about_z(angle: float) -> np.ndarray:
    """Return a rotation about z."""
    return rotation(angle * unit("z"))


def pick(rng: np.random.Generator, names: Sequence[str], count: int) -> list[str]:
    """Return some of several names, in their order."""
    chosen = set(rng.choice(len(names), size=count, replace=False).tolist())
    return [name for i, name in enumerate(names) if i in chosen]


def serial(layout: Layout) -> Mechanism:
    """A chain of joints of all kinds, some of them described from the tip to the base; all freedoms are driven."""
    rng, inner, place = layout.rng, BASE, np.zeros(3)
    kinds = (
        "revolute",
        "prismatic",
        "cylindrical",
        "universal",
        "revolute",
        "planar",
        "schoenflies",
        "fixed",
    )
    for i in range(int(rng.integers(2, 5))):
        kind = str(rng.choice(kinds)) if i else "revolute"
        place = place + 0.4 * rng.normal(size=3)
        outer = layout.body(f"link{i}", place + 0.3 * rng.normal(size=3))
        is_reversed = bool(JOINT_KINDS[kind].reversible and rng.uniform() < 0.4)
        axes = tuple(rng.permutation(["x", "y", "z"]).tolist()[: JOINT_KINDS[kind].axes])
        layout.joint(
            f"joint{i}", kind, (outer, inner) if is_reversed else (inner, outer), place, axes=axes
        )
        inner = outer
    names = list(layout.turns)
    for name in names:
        layout.motor((name, float(rng.uniform(0.5, 3.0))))
    return layout.finish(inner, names)


def coupled(layout: Layout) -> Mechanism:
    """A chain whose coordinates are coupled by gears, with motors that each drive several of them."""
    rng, inner, place = layout.rng, BASE, np.zeros(3)
    for i in range(int(rng.integers(3, 6))):
        place = place + 0.4 * rng.normal(size=3)
        outer = layout.body(f"link{i}", place + 0.3 * rng.normal(size=3))
        layout.joint(
            f"joint{i}",
            str(rng.choice(["revolute", "prismatic"])),
            (inner, outer),
            place,
            axes=("z",),
        )
        inner = outer
    names = list(layout.turns)
    free = pick(rng, names, len(names) - int(rng.integers(1, 3)))
    for name in names:
        if name not in free:
            partners = pick(rng, free, min(len(free), int(rng.integers(1, 3))))
            layout.coupling(
                [(name, 1.0), *((other, float(rng.uniform(-1.5, 1.5))) for other in partners)]
            )
    ratios = np.eye(len(free)) * 2.0 + rng.uniform(-0.8, 0.8, size=(len(free), len(free)))
    for name, row in zip(free, ratios, strict=True):
        layout.motor(
            (name, row[free.index(name)]),
            *((o, r) for o, r in zip(free, row, strict=True) if o != name),
        )
    layout.loss([(names[0], 1.0), (names[1], -0.7)])
    return layout.finish(inner, free)


def planar_loop(layout: Layout) -> Mechanism:
    """A planar chain of four to six links in a slanted plane, closed; its spatial equations are redundant."""
    rng, plane = layout.rng, layout.any_rotation()
    count = int(rng.integers(4, 7))
    angles = 2 * np.pi * (np.arange(count) + rng.uniform(-0.3, 0.3, size=count)) / count
    points = [plane @ around(angle, float(rng.uniform(0.5, 1.0))) for angle in angles]
    names = [BASE, *(f"link{i}" for i in range(1, count))]
    for i in range(1, count):
        layout.body(names[i], (points[i - 1] + points[i]) / 2)
    for i in range(count):
        is_slide = i == 1 and rng.uniform() < 0.4
        kind, axes = ("prismatic", ("x",)) if is_slide else ("revolute", ("z",))
        bodies = names[i], names[(i + 1) % count]
        R = plane @ about_z(float(rng.uniform(-3, 3)))
        layout.joint(f"joint{i}", kind, bodies, points[i], R=R, axes=axes)
    moved = pick(rng, list(layout.turns), count - 3)
    for name in moved:
        layout.motor((name, float(rng.uniform(0.5, 2.0))))
    return layout.finish(names[count // 2], moved)


def nested(layout: Layout) -> Mechanism:
    """Loops within loops: a driven crank, and pairs of links that join bodies of loops before them."""
    rng, plane = layout.rng, layout.any_rotation()

    def pin(name: str, bodies: tuple[str, str], place: np.ndarray) -> None:
        layout.joint(
            name,
            "revolute",
            bodies,
            plane @ place,
            R=plane @ about_z(float(rng.uniform(-3, 3))),
            axes=("z",),
        )

    places = {BASE: np.zeros(3), "crank": np.array([0.3, 0.1, 0.0])}
    layout.body("crank", plane @ places["crank"])
    pin("drive", (BASE, "crank"), np.zeros(3))
    for i in range(int(rng.integers(2, 4))):
        first, second = (str(name) for name in rng.choice(list(places), size=2, replace=False))
        A, C = (places[name] + [*rng.uniform(-0.4, 0.4, size=2), 0.0] for name in (first, second))
        C = C + 0.5 * unit("x")
        across = np.array([-(C - A)[1], (C - A)[0], 0.0])
        B = (A + C) / 2 + float(rng.choice([-1.0, 1.0])) * rng.uniform(0.6, 1.2) * across
        links = f"near{i}", f"far{i}"
        for name, end in zip(links, (A, C), strict=True):
            places[name] = (end + B) / 2
            layout.body(name, plane @ places[name])
        pin(f"a{i}", (first, links[0]), A)
        pin(f"b{i}", links, B)
        pin(f"c{i}", (links[1], second), C)
    layout.motor(("drive", float(rng.uniform(0.5, 2.0))))
    return layout.finish(layout.bodies[-1].name, ["drive"])


def spatial_loop(layout: Layout) -> Mechanism:
    """One spatial loop of mixed joints, of mobility one or two."""
    rng, mobility = layout.rng, int(layout.rng.integers(1, 3))
    sizes = {"revolute": 1, "prismatic": 1, "cylindrical": 2, "universal": 2, "spherical": 3}
    kinds = ["revolute"] * mobility
    while sum(sizes[kind] for kind in kinds) < 6 + mobility:
        left = 6 + mobility - sum(sizes[kind] for kind in kinds)
        fitting = [
            kind for kind, size in sizes.items() if size <= left and (size < 3 or kind not in kinds)
        ]
        kinds.append(str(rng.choice(fitting)))
    names = [BASE, *(f"link{i}" for i in range(1, len(kinds)))]
    angles = 2 * np.pi * np.arange(len(kinds)) / len(kinds)
    points = [around(angle, 0.8) + 0.25 * rng.normal(size=3) for angle in angles]
    for name, point in zip(names[1:], points, strict=False):
        layout.body(name, point + 0.2 * rng.normal(size=3))
    for i, kind in enumerate(kinds):
        axes = tuple(rng.permutation(["x", "y", "z"]).tolist()[: JOINT_KINDS[kind].axes])
        R = rotation(rng.uniform(-2.0, 2.0, size=3))
        layout.joint(
            f"joint{i}", kind, (names[i], names[(i + 1) % len(kinds)]), points[i], R=R, axes=axes
        )
    moved = [f"joint{i}" for i in range(mobility)]
    for name in moved:
        layout.motor((name, float(rng.uniform(0.5, 2.0))))
    return layout.finish(names[-1], moved)


def planar_platform(layout: Layout) -> Mechanism:
    """A planar platform on three legs, or on four with more motors than freedoms."""
    rng = layout.rng
    plate = layout.platform("planar", [float(x) for x in rng.uniform(-0.1, 0.1, size=2)])
    legs = int(rng.integers(3, 5))
    for i in range(legs):
        angle = 2 * np.pi * i / legs + float(rng.uniform(-0.2, 0.2))
        foot, top = around(angle, 1.2), around(angle + 0.7, 0.3) + layout.poses[plate][1]
        kind = str(rng.choice(["turning", "sliding", "rod"]))
        if kind == "rod":
            layout.motor((layout.rod(f"leg{i}", (BASE, foot), (plate, top), telescopic=True), 1.0))
            continue
        lower, upper = layout.body(f"lower{i}", foot), layout.body(f"upper{i}", top)
        knee = (foot + top) / 2 + 0.4 * np.cross(unit("z"), top - foot)
        first, axes = ("revolute", ("z",)) if kind == "turning" else ("prismatic", ("x",))
        R = about_z(angle + float(rng.uniform(0.8, 1.4)))
        layout.joint(f"hip{i}", first, (BASE, lower), foot, R=R, axes=axes)
        layout.joint(f"knee{i}", "revolute", (lower, upper), knee, R=about_z(0.3), axes=("z",))
        layout.joint(f"tip{i}", "revolute", (plate, upper), top, R=about_z(-0.2), axes=("z",))
        layout.motor((f"hip{i}", float(rng.uniform(0.5, 2.0))))
    return layout.finish(plate, [f"{PLATFORM_JOINT}.{name}" for name in ("x", "y", "angle")])


def _leg(
    layout: Layout,
    name: str,
    foot: np.ndarray,
    heading: float,
    ends: Sequence[tuple[str, np.ndarray]],
) -> None:
    """Add a driven arm or cart on the base, and rods from it to points of a platform, with equal offsets."""
    rng, is_arm = layout.rng, layout.rng.uniform() < 0.6
    tops = np.array([point for _, point in ends])
    middle = tops.mean(axis=0)
    elbow = foot + rotation(heading * unit("z")) @ np.array(
        [0.35, 0.05, float(rng.uniform(-0.1, 0.1))]
    )
    link = layout.body(f"{name}.link", (foot + elbow) / 2)
    R = about_z(heading) if is_arm else about_z(heading) @ rotation(0.2 * rng.normal(size=3))
    kind, axes = ("revolute", ("y",)) if is_arm else ("prismatic", ("z",))
    layout.joint(f"{name}.joint", kind, (BASE, link), foot, R=R, axes=axes)
    for i, (body, top) in enumerate(ends):
        layout.rod(f"{name}.rod{i}", (link, elbow + top - middle), (body, top))
    layout.motor((f"{name}.joint", float(rng.uniform(0.5, 2.0))))


def hexapod(layout: Layout) -> Mechanism:
    """A free platform on six legs of mixed kinds."""
    rng = layout.rng
    plate = layout.platform("free", [*rng.uniform(-0.1, 0.1, size=2), float(rng.uniform(0.6, 0.9))])
    R, p = layout.poses[plate]
    for i in range(6):
        lower, upper = (np.pi / 3 * (i + sign * (0.35 if i % 2 else -0.35)) for sign in (1, -1))
        foot = around(lower, 0.8) + 0.05 * rng.normal(size=3)
        top = p + R @ (around(upper, 0.35) + 0.03 * rng.normal(size=3))
        if rng.uniform() < 0.5:
            layout.motor((layout.rod(f"leg{i}", (BASE, foot), (plate, top), telescopic=True), 1.0))
        else:
            _leg(layout, f"leg{i}", foot, lower, [(plate, top)])
    return layout.finish(plate, SPACE)


def delta(layout: Layout) -> Mechanism:
    """Three arms or carts with one rod each on a plate that only translates, or with pairs of parallel rods."""
    rng, has_pairs = layout.rng, layout.rng.uniform() < 0.5
    place = [*rng.uniform(-0.1, 0.1, size=2), float(rng.uniform(-0.8, -0.6))]
    if has_pairs:
        plate = layout.body("plate", place, turned=np.eye(3))
        x = [*place, 1.0, 0.0, 0.0, 0.0]
        layout.joint(
            PLATFORM_JOINT, "free", (BASE, plate), np.zeros(3), R=np.eye(3), x=x, is_bare=True
        )
    else:
        plate = layout.platform("translational", place)
    for i in range(3):
        heading = 2 * np.pi * i / 3 + float(rng.uniform(-0.2, 0.2))
        top, across = (
            layout.poses[plate][1] + around(heading, 0.15),
            about_z(heading) @ np.array([0.0, 0.12, 0.0]),
        )
        ends = [(plate, top + across), (plate, top - across)] if has_pairs else [(plate, top)]
        _leg(layout, f"leg{i}", around(heading, 0.4), heading, ends)
    return layout.finish(plate, SPACE[:3])


def schoenflies(layout: Layout) -> Mechanism:
    """Four arms or carts that move a plate in three directions and about the vertical."""
    rng = layout.rng
    plate = layout.platform(
        "schoenflies", [*rng.uniform(-0.1, 0.1, size=2), float(rng.uniform(-0.8, -0.6))]
    )
    R, p = layout.poses[plate]
    for i in range(4):
        heading = np.pi / 2 * i + float(rng.uniform(-0.2, 0.2))
        top = p + R @ around(heading + 0.9, 0.25, float(rng.uniform(-0.05, 0.05)))
        _leg(layout, f"leg{i}", around(heading, 0.6), heading, [(plate, top)])
    return layout.finish(plate, [f"{PLATFORM_JOINT}.{name}" for name in ("x", "y", "z", "angle")])


def gantry(layout: Layout) -> Mechanism:
    """Three carts on parallel ways with one, two and three parallel rods to a plate."""
    rng = layout.rng
    plate = layout.body(
        "plate", [float(rng.uniform(-0.1, 0.1)), *rng.uniform(-0.1, 0.1, size=2)], turned=np.eye(3)
    )
    place = layout.poses[plate][1]
    x = [*place, 1.0, 0.0, 0.0, 0.0]
    layout.joint(PLATFORM_JOINT, "free", (BASE, plate), np.zeros(3), R=np.eye(3), x=x, is_bare=True)
    ways = ((0.8, 0.6), (-0.9, 0.5), (0.1, -0.9))
    along_x = rotation(np.pi / 2 * unit("y"))
    for i, (y, z) in enumerate(ways):
        cart = layout.body(f"cart{i}", [float(rng.uniform(-0.8, -0.4)), y, z])
        joint = {"R": along_x, "axes": ("z",), "x": [float(rng.uniform(-0.3, 0.3))]}
        layout.joint(f"way{i}", "prismatic", (BASE, cart), layout.poses[cart][1], **joint)  # type: ignore[arg-type]
        corners = 0.15 * rng.normal(size=(i + 1, 3)) + 0.2 * np.eye(3)[: i + 1]
        for k, corner in enumerate(corners):
            layout.rod(
                f"rod{i}{k}", (cart, layout.poses[cart][1] + corner), (plate, place + corner)
            )
        layout.motor((f"way{i}", 1.0))
    return layout.finish(plate, SPACE[:3])


def cables(layout: Layout) -> Mechanism:
    """A plate on one or two more telescopic legs than it has freedoms: its motors can press against each other."""
    rng, is_planar = layout.rng, layout.rng.uniform() < 0.5
    count = (3 if is_planar else 6) + int(rng.integers(1, 3))
    if is_planar:
        plate = layout.platform("planar", [float(x) for x in rng.uniform(-0.1, 0.1, size=2)])
    else:
        plate = layout.platform("free", [float(x) for x in rng.uniform(-0.1, 0.1, size=3)])
    R, p = layout.poses[plate]
    for i in range(count):
        angle = 2 * np.pi * i / count + float(rng.uniform(-0.1, 0.1))
        height = 0.0 if is_planar else (1.0 if i % 2 else -1.0)
        anchor = around(angle, 1.5, height)
        top = p + R @ around(angle + (0.8 if i % 2 else -0.8), 0.3, 0.15 * height)
        layout.motor((layout.rod(f"cable{i}", (BASE, anchor), (plate, top), telescopic=True), 1.0))
    names = (
        [f"{PLATFORM_JOINT}.{name}" for name in ("x", "y", "angle")] if is_planar else list(SPACE)
    )
    return layout.finish(plate, names)


def ankle(layout: Layout) -> Mechanism:
    """A foot on a universal joint, moved by two cranks with rods or telescopic rods, on a shin that may turn."""
    rng, shin, driven = layout.rng, BASE, []
    if rng.uniform() < 0.5:
        shin = layout.body("shin", [0.0, 0.0, 0.5])
        layout.joint(
            "knee", "revolute", (BASE, shin), np.array([0.0, 0.0, 0.9]), R=np.eye(3), axes=("y",)
        )
        layout.motor(("knee", 1.5))
        driven = ["knee"]
    foot = layout.body("foot", [0.1, 0.0, -0.1])
    layout.joint(
        "ankle",
        "universal",
        (shin, foot),
        np.zeros(3),
        R=np.eye(3),
        axes=("y", "x"),
        x=rng.uniform(-0.2, 0.2, size=2),
    )
    for side in (-1.0, 1.0):
        top = np.array([-0.25, 0.2 * side, 0.5]) + 0.05 * rng.normal(size=3)
        heel = np.array([-0.3, 0.15 * side, -0.05]) + 0.03 * rng.normal(size=3)
        name = "left" if side < 0 else "right"
        if rng.uniform() < 0.5:
            layout.motor(
                (layout.rod(f"{name}.rod", (shin, top), (foot, heel), telescopic=True), 1.0)
            )
            continue
        tip = top + np.array([-0.2, 0.02, 0.05])
        crank = layout.body(f"{name}.crank", (top + tip) / 2)
        layout.joint(
            f"{name}.hip",
            "revolute",
            (shin, crank),
            top,
            R=rotation(0.2 * rng.normal(size=3)),
            axes=("y",),
        )
        layout.rod(f"{name}.rod", (crank, tip), (foot, heel))
        layout.motor((f"{name}.hip", float(rng.uniform(0.5, 2.0))))
    return layout.finish(foot, [*driven, "ankle.first", "ankle.second"])


FAMILIES: tuple[Callable[[Layout], Mechanism], ...] = (
    serial,
    coupled,
    planar_loop,
    nested,
    spatial_loop,
    planar_platform,
    hexapod,
    delta,
    schoenflies,
    gantry,
    cables,
    ankle,
)
