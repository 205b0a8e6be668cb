"""Machines built by hand for the tests of the engines, each with its kinematics in closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from engine_mechanics import (
    about_origin,
    as_motion,
    drive_all,
    machine,
    motion_of,
    place,
    pose_of,
    shifted,
    solid,
    vector,
)
from scipy.spatial.transform import Rotation

from tauloop.mechanism.expression import ZERO, Constant
from tauloop.mechanism.model import (
    JOINT_KINDS,
    Actuator,
    Body,
    Freedom,
    Friction,
    Inertia,
    Joint,
    Mechanism,
    Rod,
    SlenderPart,
    Spring,
    Telescope,
)
from tauloop.verification.engines import NamedMotion

# Trees.


def random_tree(
    rng: np.random.Generator, kinds: list[str], flips: list[bool]
) -> tuple[Mechanism, list[Any]]:
    """Bodies on joints of these kinds, some written from the outer body to the inner one; every freedom driven."""
    joints, solids = [], []
    for i, (kind, is_flipped) in enumerate(zip(kinds, flips, strict=True)):
        inner = "base" if i == 0 else f"b{rng.integers(i)}"
        ends = [
            place(body, rng.normal(scale=0.3, size=3), ("x", rng.normal()), ("z", rng.normal()))
            for body in (inner, f"b{i}")
        ]
        if is_flipped:
            ends.reverse()
        axes = {1: (rng.choice(["x", "y", "z"]),), 2: tuple(rng.permutation(["x", "y", "z"])[:2])}
        joints.append(
            Joint(
                name=f"j{i}",
                kind=kind,
                parent=ends[0],
                child=ends[1],
                axes=tuple(str(axis) for axis in axes.get(JOINT_KINDS[kind].axes, ())),
            )
        )
        solids.append(solid(rng))
    bodies = tuple(Body(name=f"b{i}", inertia=about_origin(*x)) for i, x in enumerate(solids))
    return machine(bodies=bodies, joints=tuple(joints), actuators=drive_all(joints)), solids


def tree_poses(
    mechanism: Mechanism, q: list[np.ndarray]
) -> Callable[[np.ndarray], list[np.ndarray]]:
    """Poses of the bodies of a random tree after a displacement of all velocities."""

    def poses(x: np.ndarray) -> list[np.ndarray]:
        settings = {"base": np.eye(4)}
        start = 0
        for joint, q_j in zip(mechanism.joints, q, strict=True):
            stop = start + len(joint.velocity_names)
            across = (
                pose_of(joint.parent)
                @ motion_of(joint, shifted(joint, q_j, x[start:stop]))
                @ np.linalg.inv(pose_of(joint.child))
            )
            start = stop
            if joint.parent.body in settings:
                settings[joint.child.body] = settings[joint.parent.body] @ across
            else:
                settings[joint.parent.body] = settings[joint.child.body] @ np.linalg.inv(across)
        return [settings[body.name] for body in mechanism.bodies]

    return poses


def pendulum() -> Mechanism:
    freedom = Freedom(
        spring=Spring(stiffness=Constant(5.0), rest=Constant(0.2)),
        inertia=Constant(0.04),
        friction=Friction(viscous=Constant(9.0)),
    )
    inertia = Inertia(
        mass=Constant(2.0),
        first_moment=vector((0.6, 0, 0)),
        second_moment=(ZERO, ZERO, Constant(0.3), ZERO, ZERO, Constant(0.3)),
    )
    joint = Joint(
        name="swing",
        kind="revolute",
        parent=place("base"),
        child=place("arm"),
        axes=("y",),
        freedoms=(freedom,),
    )
    return machine(
        gravity=vector((0, 0, -9.81)),
        bodies=(Body(name="arm", inertia=inertia),),
        joints=(joint,),
        actuators=(
            Actuator(name="motor", drives=(("swing", Constant(3.0)),), inertia=Constant(0.1)),
        ),
    )


# A planar four-bar of revolute joints: spatial closure, hence redundant rows.

CRANK, COUPLER, ROCKER, GROUND_BAR = 0.2, 0.45, 0.35, 0.5


def four_bar_angles(crank: float) -> np.ndarray:
    """Turns about z in the order of the joints: crank, elbow, wrist (coupler to rocker), rocker against the base."""
    B, D = CRANK * np.array([np.cos(crank), np.sin(crank)]), np.array([GROUND_BAR, 0.0])
    along = D - B
    span = np.linalg.norm(along)
    cosine = (COUPLER**2 + span**2 - ROCKER**2) / (2 * COUPLER * span)
    coupler = np.arctan2(along[1], along[0]) + np.arccos(cosine)
    C = B + COUPLER * np.array([np.cos(coupler), np.sin(coupler)])
    rocker = np.arctan2(*(C - D)[::-1])
    return np.array([crank, coupler - crank, rocker - coupler, rocker])


def four_bar() -> tuple[Mechanism, list[Any]]:
    rng = np.random.default_rng(11)
    solids = [solid(rng) for _ in range(3)]
    names = ("crank", "coupler", "rocker")
    reference = four_bar_angles(0.9)
    # the coupler meets the rocker's far end; the rocker's frame is at its base joint D
    ends = (
        ("shoulder", place("base"), place("crank")),
        ("elbow", place("crank", (CRANK, 0, 0)), place("coupler")),
        ("wrist", place("coupler", (COUPLER, 0, 0)), place("rocker", (ROCKER, 0, 0))),
        ("foot", place("base", (GROUND_BAR, 0, 0)), place("rocker")),
    )
    joints = tuple(
        Joint(
            name=name,
            kind="revolute",
            parent=parent,
            child=child,
            axes=("z",),
            reference=(float(angle),),
        )
        for (name, parent, child), angle in zip(ends, reference, strict=True)
    )
    return machine(
        bodies=tuple(
            Body(name=name, inertia=about_origin(*x)) for name, x in zip(names, solids, strict=True)
        ),
        joints=joints,
        actuators=(Actuator(name="motor", drives=(("shoulder", Constant(1.0)),)),),
    ), solids


def turn_z(angle: float, x: float = 0.0, y: float = 0.0) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:2, 3] = Rotation.from_euler("z", angle).as_matrix(), (x, y)
    return T


# A translational machine with three arms and rods of fixed length.

ARM, FOREARM, RADIUS, HAND = 0.26, 0.48, 0.194, 0.03
ARM_MASS, ARM_CENTER, ARM_INERTIA, HAND_MASS = 0.977, 0.13, 0.01822, 0.5
AZIMUTHS = np.radians([0, 120, 240])
FIRST_AXIS = np.array([0.2, 1.0, 0.1])  # in the arm


def arm_directions(leg: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Radial, tangential and downward direction of a leg; the arm turns about the tangential one, downwards."""
    c, s = np.cos(AZIMUTHS[leg]), np.sin(AZIMUTHS[leg])
    return np.array([c, s, 0]), np.array([-s, c, 0]), np.array([0, 0, -1.0])


def arm_angle(leg: int, p: np.ndarray) -> float:
    """The angle that puts the elbow at the forearm's distance from the hand: A cos + B sin = C, elbow outwards."""
    radial, _, down = arm_directions(leg)
    d = p - (RADIUS - HAND) * radial
    A, B = 2 * ARM * d @ radial, 2 * ARM * d @ down
    C = d @ d + ARM**2 - FOREARM**2
    return float(np.arctan2(B, A) - np.arccos(C / np.hypot(A, B)))


def three_arms(rod: dict[str, Any], solids_of_rod: Any) -> tuple[Mechanism, list[Any]]:
    bodies, joints, rods = [], [], []
    arm_J = np.diag([0.0, 1.0, 1.0]) * (ARM_INERTIA - ARM_MASS * ARM_CENTER**2)
    arm = (ARM_MASS, np.array([ARM_CENTER, 0, 0]), arm_J)
    hand = (HAND_MASS, np.array([0.01, 0.02, -0.03]), np.diag([1e-3, 2e-3, 2e-3]))
    for i, azimuth in enumerate(AZIMUTHS):
        bodies.append(Body(name=f"arm{i}", inertia=about_origin(*arm)))
        shoulder = place("base", RADIUS * arm_directions(i)[0], ("z", float(azimuth)))
        joints.append(
            Joint(
                name=f"q{i}",
                kind="revolute",
                parent=shoulder,
                child=place(f"arm{i}"),
                axes=("y",),
                reference=(0.3,),
            )
        )
        rods.append(
            Rod(
                name=f"rod{i}",
                start=place(f"arm{i}", (ARM, 0, 0)),
                end=place("hand", HAND * arm_directions(i)[0]),
                length=Constant(FOREARM),
                **rod,
            )
        )
    bodies.append(Body(name="hand", inertia=about_origin(*hand)))
    joints.append(
        Joint(
            name="platform",
            kind="translational",
            parent=place("base"),
            child=place("hand"),
            reference=(0.0, 0.0, -0.45),
        )
    )
    actuators = tuple(Actuator(name=f"m{i}", drives=((f"q{i}", Constant(1.0)),)) for i in range(3))
    mechanism = machine(
        bodies=tuple(bodies), joints=tuple(joints), rods=tuple(rods), actuators=actuators
    )
    return mechanism, [*[arm] * 3, hand, *[solids_of_rod] * 3]


def rod_frame(A: np.ndarray, B: np.ndarray, first: np.ndarray, origin: np.ndarray) -> np.ndarray:
    """Pose of a rod frame: z from A to B, y along first × z."""
    T = np.eye(4)
    z = (B - A) / np.linalg.norm(B - A)
    y = np.cross(first, z) / np.linalg.norm(np.cross(first, z))
    T[:3, :3], T[:3, 3] = np.column_stack([np.cross(y, z), y, z]), origin
    return T


def three_arm_poses(p: np.ndarray) -> list[np.ndarray]:
    arms, rods = [], []
    for i in range(3):
        radial, tangential, _ = arm_directions(i)
        T = np.eye(4)
        turn = Rotation.from_euler("y", arm_angle(i, p)).as_matrix()
        T[:3, :3] = np.column_stack([radial, tangential, [0, 0, 1]]) @ turn
        T[:3, 3] = RADIUS * radial
        arms.append(T)
        A, B = (T @ [ARM, 0, 0, 1])[:3], p + HAND * radial
        rods.append(rod_frame(A, B, T[:3, :3] @ FIRST_AXIS, A))
    hand = np.eye(4)
    hand[:3, 3] = p
    return [*arms, hand, *rods]


def three_arm_motion(samples: int) -> tuple[NamedMotion, np.ndarray]:
    """Random states, the arms' angles by exact differentiation of the forearms' length; and p, v, a (N, 3, 3)."""
    rng = np.random.default_rng(2)
    q: dict[str, Any] = {}
    v: dict[str, Any] = {}
    a: dict[str, Any] = {}
    p = np.array([0, 0, -0.45]) + rng.uniform(-0.1, 0.1, (samples, 3))
    hand = np.stack([p, *rng.normal(size=(2, samples, 3))], axis=1)
    for k, given_values in enumerate((q, v, a)):
        given_values |= dict(
            zip(("platform.x", "platform.y", "platform.z"), hand[:, k].T, strict=True)
        )
    for i in range(3):
        rows = np.array([elbow(i, *state)[:3] for state in hand])
        q[f"q{i}"], v[f"q{i}"], a[f"q{i}"] = rows.T
    return NamedMotion(q=q, v=v, a=a), hand


def elbow(leg: int, p: np.ndarray, v: np.ndarray, a: np.ndarray) -> tuple[Any, ...]:
    """Arm angle with rates; ∂e/∂θ; forearm vector d; acceleration of the elbow e."""
    radial, _, down = arm_directions(leg)
    theta = arm_angle(leg, p)
    e = ARM * (np.cos(theta) * radial + np.sin(theta) * down)
    e_theta = ARM * (-np.sin(theta) * radial + np.cos(theta) * down)
    d = p - (RADIUS - HAND) * radial - e
    rate = d @ v / (d @ e_theta)
    d_rate = v - e_theta * rate
    second = (d_rate @ d_rate + d @ (a + e * rate**2)) / (d @ e_theta)
    return theta, rate, second, e_theta, d, e_theta * second - e * rate**2


ROD_MASS, ROD_H, ROD_J = 0.12, 0.12 * 0.2, 0.12 * 0.2**2 + 2e-3
SLENDER = SlenderPart(
    mass=Constant(ROD_MASS), first_moment=Constant(ROD_H), second_moment=Constant(ROD_J)
)
THIN = (ROD_MASS, np.array([0, 0, 0.2]), np.diag([2e-3, 2e-3, 0.0]))


FULL_J = np.array([[3e-3, 4e-4, 2e-4], [4e-4, 2e-3, -3e-4], [2e-4, -3e-4, 1e-3]])
FULL = (0.15, np.array([0.01, -0.02, 0.21]), FULL_J)
ROUND = (0.15, np.array([0.0, 0.0, 0.21]), np.diag([2e-3, 2e-3, 7e-4]))

# A platform on six telescopic rods, written from the base or from the platform.

BASE_ANGLES, TOP_ANGLES = np.radians([[10, 110, 130, 230, 250, 350], [50, 70, 170, 190, 290, 310]])
BASE_POINTS = [
    np.array([0.5 * np.cos(t), 0.5 * np.sin(t), 0.02 * i]) for i, t in enumerate(BASE_ANGLES)
]
TOP_POINTS = [np.array([0.25 * np.cos(t), 0.25 * np.sin(t), 0.0]) for t in TOP_ANGLES]
LEG_AXIS = np.array([0.9, 0.3, 0.1])
PAYLOAD = (6.0, np.array([0.02, -0.01, 0.05]), np.diag([0.05, 0.06, 0.08]))
UPPER = (0.4, np.array([0.01, 0.005, -0.15]), np.diag([4e-3, 4.5e-3, 1e-3]))


def six_legs(rod: dict[str, Any], *, from_platform: bool) -> Mechanism:
    free = Joint(
        name="platform",
        kind="free",
        parent=place("base"),
        child=place("plate"),
        reference=(0.0, 0.0, 0.6, 1.0, 0.0, 0.0, 0.0),
    )
    rods = []
    for i, (low, high) in enumerate(zip(BASE_POINTS, TOP_POINTS, strict=True)):
        ends = [place("base", low), place("plate", high)]
        if from_platform:
            ends.reverse()
        rods.append(
            Rod(
                name=f"leg{i}",
                start=ends[0],
                end=ends[1],
                telescope=Telescope(reference=0.66, freedom=Freedom(inertia=Constant(0.3))),
                **rod,
            )
        )
    actuators = tuple(
        Actuator(name=f"m{i}", drives=((f"leg{i}", Constant(1.0)),)) for i in range(6)
    )
    plate = Body(name="plate", inertia=about_origin(*PAYLOAD))
    return machine(bodies=(plate,), joints=(free,), rods=tuple(rods), actuators=actuators)


def six_leg_states(samples: int) -> tuple[NamedMotion, list[Any]]:
    """Random states with the legs' lengths by hand; and (p, R, twist, acceleration, ℓ'' (6), Jacobian (6, 6))."""
    rng = np.random.default_rng(4)
    joint = Joint(name="platform", kind="free", parent=place("base"), child=place("plate"))
    states, by_hand, lengths = [], [], []
    for _ in range(samples):
        p = np.array([0, 0, 0.6]) + rng.uniform(-0.08, 0.08, 3)
        turn = Rotation.from_rotvec(rng.normal(scale=0.2, size=3))
        v, a = rng.normal(size=6), rng.normal(size=6)
        rows = []
        for low, high in zip(BASE_POINTS, TOP_POINTS, strict=True):
            r = turn.apply(high)
            d, d_rate = p + r - low, v[:3] + np.cross(v[3:], r)
            d_second = a[:3] + np.cross(a[3:], r) + np.cross(v[3:], np.cross(v[3:], r))
            L = np.linalg.norm(d)
            u = d / L
            rate = u @ d_rate
            rows.append(
                [L, rate, u @ d_second + (d_rate @ d_rate - rate**2) / L, *u, *np.cross(r, u)]
            )
        table = np.array(rows)
        lengths.append(table[:, :3])
        by_hand.append((p, turn, v, a, table[:, 2], table[:, 3:]))
        states.append([(np.concatenate([p, np.roll(turn.as_quat(), 1)]), v, a)])
    motion = as_motion([joint], states)
    for k, given_values in enumerate((motion.q, motion.v, motion.a)):
        assert isinstance(given_values, dict)
        given_values |= {f"leg{i}": np.array([rows[i, k] for rows in lengths]) for i in range(6)}
    return motion, by_hand


def six_leg_poses(
    p: np.ndarray, turn: Rotation, from_platform: bool
) -> Callable[[np.ndarray], list[np.ndarray]]:
    """Poses of the plate, then of the six parts at the rods' starts and the six at their ends."""

    def poses(x: np.ndarray) -> list[np.ndarray]:
        plate = np.eye(4)
        plate[:3, :3], plate[:3, 3] = (Rotation.from_rotvec(x[3:]) * turn).as_matrix(), p + x[:3]
        parts: list[list[np.ndarray]] = [[], []]
        for low, high in zip(BASE_POINTS, TOP_POINTS, strict=True):
            ends = [low, (plate @ [*high, 1])[:3]]
            first = LEG_AXIS
            if from_platform:
                ends.reverse()
                first = plate[:3, :3] @ LEG_AXIS
            for part, origin in zip(parts, ends, strict=True):
                part.append(rod_frame(*ends, first, origin))
        return [plate, *parts[0], *parts[1]]

    return poses


THIN_UPPER = SlenderPart(
    mass=Constant(0.4), first_moment=Constant(0.06), second_moment=Constant(0.06 * 0.15 + 3e-3)
)
