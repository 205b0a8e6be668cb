"""Random mechanisms for property tests: serial chains, platforms on six legs, and four-bars."""

from __future__ import annotations

import numpy as np

from tauloop.mechanism.expression import ONE, ZERO, Constant, ParameterTable, triple
from tauloop.mechanism.model import (
    BASE,
    JOINT_KINDS,
    Actuator,
    AxisName,
    Body,
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
    Vector,
)


def vector(values: np.ndarray) -> Vector:
    """Return three numbers as constant expressions."""
    return triple(Constant(float(value)) for value in values)


def placement(rng: np.random.Generator, body: str, size: float = 0.3) -> Placement:
    """Return a frame at a random position and orientation on a body."""
    turns = tuple(Turn(axis, Constant(float(rng.uniform(-1, 1)))) for axis in ("z", "x", "y"))
    return Placement(body=body, position=vector(size * rng.normal(size=3)), turns=turns)


def inertia(
    rng: np.random.Generator, mass: float | None = None, center: np.ndarray | None = None
) -> Inertia:
    """Return the inertia of random point masses, which is physically consistent.

    Args:
        rng: random generator.
        mass: total mass, kg; random by default.
        center: (3,) mass center, m; random by default.
    """
    m = rng.uniform(0.5, 3.0) if mass is None else mass
    points = 0.1 * rng.normal(size=(6, 3))
    points -= points.mean(axis=0)
    points += 0.1 * rng.normal(size=3) if center is None else center
    masses = np.full(6, m / 6)
    c = masses @ points
    inertias = [p @ p * np.eye(3) - np.outer(p, p) for p in points]
    I = sum(mass * matrix for mass, matrix in zip(masses, inertias, strict=True))
    second = [I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]]
    return Inertia(
        mass=Constant(float(m)),
        first_moment=vector(c),
        second_moment=tuple(Constant(float(x)) for x in second),  # type: ignore[arg-type]
    )


def slender(rng: np.random.Generator, length: float) -> SlenderPart:
    """Return a slender link of random mass with its mass center near the middle."""
    m = rng.uniform(0.2, 1.0)
    s = rng.uniform(0.3, 0.7) * length
    return SlenderPart(
        mass=Constant(m),
        first_moment=Constant(m * s),
        second_moment=Constant(m * s * s + m * length**2 / 12),
    )


def mechanism(**parts: object) -> Mechanism:
    """Return a machine with these parts, without parameters, and with gravity tilted from -z."""
    return Mechanism(
        name="random",
        parameters=ParameterTable(()),
        gravity=vector(np.array([0.3, -0.4, -9.7])),
        **parts,  # type: ignore[arg-type]
    )


def serial_chain(rng: np.random.Generator, length: int = 4) -> Mechanism:
    """Return a chain of random joints with all scalar degrees of freedom driven.

    The parent of some joints is on the side of the tip.
    """
    kinds = ("revolute", "prismatic", "cylindrical", "universal", "revolute", "planar", "fixed")
    bodies = []
    joints = []
    actuators = []
    names: list[str] = []
    previous = BASE
    for i in range(length):
        body = f"link_{i}"
        kind = str(rng.choice(kinds))
        axes = tuple(rng.permutation(["x", "y", "z"])[: JOINT_KINDS[kind].axes])
        parent = placement(rng, previous)
        child = placement(rng, body)
        if JOINT_KINDS[kind].reversible and rng.uniform() < 0.4:
            parent, child = child, parent
        freedoms = tuple(
            Freedom(
                friction=Friction(
                    viscous=Constant(0.3), coulomb=Constant(0.2), offset=Constant(0.1)
                ),
                spring=Spring(stiffness=Constant(5.0), rest=Constant(0.2)),
                inertia=Constant(0.05),
            )
            for _ in JOINT_KINDS[kind].velocities
        )
        count = len(JOINT_KINDS[kind].coordinates)
        joint = Joint(
            name=f"joint_{i}",
            kind=kind,
            parent=parent,
            child=child,
            axes=axes,
            reference=tuple(rng.uniform(-0.5, 0.5, size=count)),
            freedoms=freedoms,
        )
        bodies.append(Body(name=body, inertia=inertia(rng)))
        joints.append(joint)
        for name in joint.velocity_names:
            actuators.append(
                Actuator(
                    name=f"motor_{len(names)}",
                    drives=((name, Constant(float(rng.uniform(0.5, 3)))),),
                    inertia=Constant(0.01),
                )
            )
            names.append(name)
        previous = body
    return mechanism(
        bodies=tuple(bodies),
        joints=tuple(joints),
        actuators=tuple(actuators),
        platform=Platform(body=previous, tool=Placement(body=previous), independent=tuple(names)),
    )


def six_legs(rng: np.random.Generator) -> Mechanism:
    """Return a free platform on six legs of random kinds."""
    bodies = [Body(name="plate", inertia=inertia(rng, mass=4.0))]
    joints = [
        Joint(
            name="platform",
            kind="free",
            parent=Placement(body=BASE),
            child=Placement(body="plate"),
            reference=(0.0, 0.0, 0.6, 1.0, 0.0, 0.0, 0.0),
        )
    ]
    rods = []
    actuators = []
    for i in range(6):
        leg = f"leg{i}"
        foot_angle = np.pi / 3 * (i + (0.35 if i % 2 else -0.35))
        top_angle = np.pi / 3 * (i + (-0.35 if i % 2 else 0.35))
        foot = 0.5 * np.array([np.cos(foot_angle), np.sin(foot_angle), 0.0])
        foot += 0.03 * rng.normal(size=3)
        top = 0.25 * np.array([np.cos(top_angle), np.sin(top_angle), 0.0])
        top += 0.02 * rng.normal(size=3)
        kind = str(rng.choice(["telescopic", "telescopic_full", "arm", "cart", "cart_full"]))
        end = Placement(body="plate", position=vector(top))
        span = top + np.array([0, 0, 0.6]) - foot
        length = float(np.linalg.norm(span))
        axis = vector(np.array([0.6, 0.0, -0.8]) if i % 2 else np.array([0.0, 1.0, 0.0]))
        if kind.startswith("telescopic"):
            has_full_inertia = kind.endswith("full")
            rods.append(
                Rod(
                    name=f"{leg}.rod",
                    start=Placement(body=BASE, position=vector(foot)),
                    end=end,
                    telescope=Telescope(reference=length, freedom=Freedom(inertia=Constant(0.3))),
                    lower=inertia(rng, 1.0, np.array([0.01, 0.0, 0.2]))
                    if has_full_inertia
                    else slender(rng, length),
                    upper=inertia(rng, 0.5, np.array([0.0, 0.01, -0.2]))
                    if has_full_inertia
                    else slender(rng, length),
                    spin="universal" if has_full_inertia else "none",
                    first_axis=axis if has_full_inertia else None,
                )
            )
            actuators.append(Actuator(name=f"{leg}.motor", drives=((f"{leg}.rod", ONE),)))
            continue
        body = f"{leg}.link"
        name = f"{leg}.joint"
        bodies.append(Body(name=body, inertia=inertia(rng)))
        base = Placement(
            body=BASE, position=vector(foot), turns=(Turn("z", Constant(float(foot_angle))),)
        )
        c = np.cos(foot_angle)
        s = np.sin(foot_angle)
        R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        letter: AxisName = "y" if kind == "arm" else "z"
        if kind == "arm":
            joint = "revolute"
            start = -0.4
            point = np.array([0.25, 0.0, 0.05])
            R_arm = np.array(
                [[np.cos(start), 0, np.sin(start)], [0, 1, 0], [-np.sin(start), 0, np.cos(start)]]
            )
            offset = R @ R_arm @ point
        else:
            joint = "prismatic"
            start = 0.05
            point = np.array([0.0, 0.05, 0.0])
            offset = R @ (point + np.array([0, 0, start]))
        child = Placement(body=body)
        joints.append(
            Joint(
                name=name, kind=joint, parent=base, child=child, axes=(letter,), reference=(start,)
            )
        )
        has_full_inertia = kind == "cart_full"
        length = float(np.linalg.norm(span - offset))
        rods.append(
            Rod(
                name=f"{leg}.rod",
                start=Placement(body=body, position=vector(point)),
                end=end,
                length=Constant(length),
                lower=inertia(rng, 0.8, np.array([0.01, 0.02, 0.2]))
                if has_full_inertia
                else slender(rng, length),
                spin="universal" if has_full_inertia else "none",
                first_axis=axis if has_full_inertia else None,
            )
        )
        actuators.append(
            Actuator(name=f"{leg}.motor", drives=((name, ONE),), inertia=Constant(0.02))
        )
    return mechanism(
        bodies=tuple(bodies),
        joints=tuple(joints),
        rods=tuple(rods),
        actuators=tuple(actuators),
        platform=Platform(
            body="plate",
            tool=Placement(body="plate"),
            independent=tuple(f"platform.{s}" for s in ("x", "y", "z", "wx", "wy", "wz")),
        ),
    )


def planar_loop(rng: np.random.Generator) -> Mechanism:
    """Return a planar four-bar of random size, whose spatial loop equations are redundant."""
    crank = rng.uniform(0.2, 0.3)
    rocker = rng.uniform(0.5, 0.7)
    ground = rng.uniform(0.6, 0.8)
    start = float(rng.uniform(0.8, 1.6))
    tip = crank * np.array([np.cos(start), np.sin(start)])
    rocker_angle = float(rng.uniform(1.2, 1.6))
    top = np.array([ground, 0.0]) + rocker * np.array([np.cos(rocker_angle), np.sin(rocker_angle)])
    coupler = float(np.linalg.norm(top - tip))
    x, y = top - tip
    coupler_angle = float(np.arctan2(y, x))

    def at(body: str, x: float) -> Placement:
        """Return a frame at a position x along a link."""
        return Placement(body=body, position=(Constant(x), ZERO, ZERO))

    def pin(name: str, parent: Placement, child: Placement, angle: float) -> Joint:
        """Return a revolute joint about z with a reference angle, rad."""
        return Joint(
            name=name, kind="revolute", parent=parent, child=child, axes=("z",), reference=(angle,)
        )

    return mechanism(
        bodies=tuple(
            Body(name=name, inertia=inertia(rng)) for name in ("crank", "coupler", "rocker")
        ),
        joints=(
            pin("shoulder", at(BASE, 0.0), at("crank", 0.0), start),
            pin("knee", at("crank", crank), at("coupler", 0.0), coupler_angle - start),
            pin("hip", at(BASE, ground), at("rocker", 0.0), rocker_angle),
            pin(
                "elbow", at("coupler", coupler), at("rocker", rocker), rocker_angle - coupler_angle
            ),
        ),
        actuators=(Actuator(name="motor", drives=(("shoulder", ONE),)),),
        platform=Platform(body="rocker", tool=Placement(body="rocker"), independent=("shoulder",)),
    )
