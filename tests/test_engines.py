"""The engines against hand-made dynamics: d'Alembert's principle by differences, the reduction of slender rods, and
each other, on machines built here by hand; then Tauloop against the engines on the machines that it ships."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from tauloop.engines import Engine, Motion, compare, frictionless, mujoco_engine, pinocchio_engine
from tauloop.engines.building import rigid_tree
from tauloop.engines.check import check_inverse_dynamics
from tauloop.engines.joints import joint_coordinates, joint_pose
from tauloop.engines.least_squares import LeastSquares
from tauloop.engines.poses import quaternion_rotation, rotation_quaternion
from tauloop.errors import EngineError, InputError
from tauloop.mechanism import load, shipped_machines
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
    ParameterTable,
    Placement,
    Platform,
    Rod,
    SlenderPart,
    Spring,
    Telescope,
    Turn,
)

pytest.importorskip("pinocchio", reason="Pinocchio is not installed: no comparison with it")
pytest.importorskip("mujoco", reason="MuJoCo is not installed: no comparison with it")

MAKERS = {"Pinocchio": pinocchio_engine, "MuJoCo": mujoco_engine}

#: Two engines, or an engine and a closed formula: rounding through a solve at condition numbers up to 1e3 or so.
EXACT = 1e-10

#: Differences of fourth order with step 2e-3: rounding 1e-16 / h^2 = 3e-11 and truncation h^4 times sixth derivatives.
BY_DIFFERENCES = 2e-6
STEP = 2e-3

#: Loops closed by Newton, in metres and in (m/s^2) of motions of order one.
CLOSED = 1e-9

GRAVITY = np.array([0.3, -0.8, -9.7])


# Machines by hand.


def vector(x: Any) -> tuple[Constant, Constant, Constant]:
    a, b, c = (Constant(float(value)) for value in x)
    return a, b, c


def place(body: str, position: Any = (0, 0, 0), *turns: tuple[str, float]) -> Placement:
    return Placement(
        body=body, position=vector(position), turns=tuple(Turn(axis, Constant(angle)) for axis, angle in turns)
    )


def about_origin(mass: float, center: np.ndarray, inertia: np.ndarray) -> Inertia:
    """Ten parameters from those about the mass centre."""
    J = inertia + mass * (center @ center * np.eye(3) - np.outer(center, center))
    second = tuple(Constant(J[i, j]) for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)))
    return Inertia(mass=Constant(mass), first_moment=vector(mass * center), second_moment=second)


def solid(rng: np.random.Generator) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, mass centre and inertia about it of five point masses and then some."""
    points, mass = rng.normal(scale=0.2, size=(5, 3)), rng.uniform(0.5, 2.0)
    points -= points.mean(axis=0)
    J = sum(mass / 5 * (x @ x * np.eye(3) - np.outer(x, x)) for x in points)
    return mass, rng.normal(scale=0.1, size=3), J


def machine(**parts: Any) -> Mechanism:
    defaults: dict[str, Any] = {"name": "trial", "parameters": ParameterTable(), "gravity": vector(GRAVITY)}
    body = parts["bodies"][-1].name
    defaults["platform"] = Platform(body=body, tool=Placement(body=body))
    return Mechanism(**(defaults | parts))


def drive_all(joints: Any) -> tuple[Actuator, ...]:
    return tuple(
        Actuator(name=f"motor_{name}", drives=((name, Constant(1.0)),))
        for joint in joints
        for name in joint.velocity_names
    )


# Mechanics by hand.


def pose_of(placement: Placement) -> np.ndarray:
    """A placement as a homogeneous matrix (4, 4)."""
    T = np.eye(4)
    T[:3, 3] = [x.value for x in placement.position]
    for turn in placement.turns:
        T[:3, :3] = T[:3, :3] @ Rotation.from_euler(turn.axis, turn.angle.value).as_matrix()
    return T


def motion_of(joint: Joint, q: np.ndarray) -> np.ndarray:
    """Pose (4, 4) of a joint's child frame in its parent frame."""
    T = np.eye(4)
    if joint.kind == "revolute":
        T[:3, :3] = Rotation.from_euler(joint.axes[0], q[0]).as_matrix()
    elif joint.kind == "prismatic":
        T["xyz".index(joint.axes[0]), 3] = q[0]
    elif joint.kind == "cylindrical":
        T[:3, :3] = Rotation.from_euler(joint.axes[0], q[0]).as_matrix()
        T["xyz".index(joint.axes[0]), 3] = q[1]
    elif joint.kind == "universal":
        T[:3, :3] = (Rotation.from_euler(joint.axes[0], q[0]) * Rotation.from_euler(joint.axes[1], q[1])).as_matrix()
    elif joint.kind == "planar":
        T[:2, 3] = q[:2]
        T[:3, :3] = Rotation.from_euler("z", q[2]).as_matrix()
    elif joint.kind in ("translational", "free"):
        T[:3, 3] = q[:3]
    if joint.kind in ("spherical", "free"):
        T[:3, :3] = Rotation.from_quat(np.roll(q[-4:], -1)).as_matrix()
    return T


def shifted(joint: Joint, q: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Coordinates after a displacement; q(t) = shifted(q, v t + a t²/2) has velocity v and acceleration a at t = 0."""
    if joint.kind not in ("spherical", "free"):
        return q + shift
    turned = Rotation.from_rotvec(shift[-3:]) * Rotation.from_quat(np.roll(q[-4:], -1))
    return np.concatenate([q[:-4] + shift[:-3], np.roll(turned.as_quat(), 1)])


def random_coordinates(joint: Joint, rng: np.random.Generator) -> np.ndarray:
    q = rng.uniform(-1.0, 1.0, len(joint.coordinate_names))
    if joint.kind in ("spherical", "free"):
        q[-4:] /= np.linalg.norm(q[-4:])
    return q


#: Coefficients of central differences of fourth order at -2, -1, 0, 1, 2 steps.
FIRST = np.array([1, -8, 0, 8, -1]) / 12
SECOND = np.array([-1, 16, -30, 16, -1]) / 12


def dalembert(poses: Callable[[np.ndarray], list[np.ndarray]], solids: Any, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Generalised forces (n,): sum of m (c'' - g)·∂c/∂x + (J w' + w × J w)·∂θ/∂x over the bodies.

    Args:
        poses: poses (4, 4) of all bodies after a displacement x (n,) from the state.
        solids: (mass, centre, inertia about it) of each.
        v, a: velocity and acceleration of x.
    """
    times = STEP * np.arange(-2, 3)
    path = [poses(v * t + a * t * t / 2) for t in times]
    rays = [[poses(np.eye(len(v))[k] * t) for t in times] for k in range(len(v))]
    tau = np.zeros(len(v))
    for i, (mass, center, J_local) in enumerate(solids):
        here = path[2][i]
        c = np.array([(T[i] @ [*center, 1.0])[:3] for T in path])
        # turn from the middle pose: a rotation vector, whose rates at zero are w and w'
        turn = np.array([Rotation.from_matrix(T[i][:3, :3] @ here[:3, :3].T).as_rotvec() for T in path])
        acceleration, w, w_rate = SECOND @ c / STEP**2, FIRST @ turn / STEP, SECOND @ turn / STEP**2
        J = here[:3, :3] @ J_local @ here[:3, :3].T
        force, moment = mass * (acceleration - GRAVITY), J @ w_rate + np.cross(w, J @ w)
        for k, ray in enumerate(rays):
            points = np.array([(T[i] @ [*center, 1.0])[:3] for T in ray])
            turns = np.array([Rotation.from_matrix(T[i][:3, :3] @ here[:3, :3].T).as_rotvec() for T in ray])
            tau[k] += force @ (FIRST @ points) / STEP + moment @ (FIRST @ turns) / STEP
    return tau


def as_motion(joints: Any, states: list[list[tuple[np.ndarray, np.ndarray, np.ndarray]]]) -> Motion:
    """From (q, v, a) by sample and joint."""
    q, v, a = {}, {}, {}
    for j, joint in enumerate(joints):
        columns = [np.array([state[j][k] for state in states]) for k in range(3)]
        q |= dict(zip(joint.coordinate_names, columns[0].T, strict=True))
        v |= dict(zip(joint.velocity_names, columns[1].T, strict=True))
        a |= dict(zip(joint.velocity_names, columns[2].T, strict=True))
    return Motion(q=q, v=v, a=a)


def both(mechanism: Mechanism, motion: Motion) -> dict[str, Any]:
    return {name: make(mechanism).inverse_dynamics(motion) for name, make in MAKERS.items()}


def assert_near(found: np.ndarray, wanted: np.ndarray, tolerance: float) -> None:
    """Relative to the largest force of each sample."""
    assert found.shape == wanted.shape
    scale = np.max(np.abs(wanted), axis=1, keepdims=True)
    assert np.all(scale > 0.0)
    assert np.max(np.abs(found - wanted) / scale) < tolerance


def assert_all_near(forces: dict[str, Any], wanted: np.ndarray, tolerance: float) -> None:
    for found in forces.values():
        assert_near(found.forces, wanted, tolerance)
        for residual in (found.closure, found.closure_rate, found.closure_acceleration, found.balance):
            assert np.max(residual) < max(CLOSED, tolerance)
    assert_near(forces["MuJoCo"].forces, forces["Pinocchio"].forces, EXACT)


# Least squares.


@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 8), columns=st.integers(1, 8), rank=st.integers(1, 8))
def test_least_squares_of_any_rank(seed: int, rows: int, columns: int, rank: int) -> None:
    rng = np.random.default_rng(seed)
    rank = min(rank, rows, columns)
    U, V = (np.linalg.qr(rng.normal(size=(size, size)))[0][:, :rank] for size in (rows, columns))
    A, b = (U * rng.uniform(1.0, 5.0, rank)) @ V.T, rng.normal(size=rows)
    solver = LeastSquares.of(np.array([A, 2 * A]))
    wanted = np.linalg.lstsq(A, b, rcond=1e-9)[0]
    assert np.allclose(solver.solve(np.array([b, b])), [wanted, wanted / 2], rtol=0, atol=1e-13)
    assert np.allclose(solver.null[0], np.eye(columns) - V @ V.T, rtol=0, atol=1e-13)


def test_undetermined_unknowns_are_told() -> None:
    A = np.array([[[1.0, 0, 0, 1], [0, 1, 0, 0]], [[1, 0, 0, 0], [0, 1, 0, 0]]])
    assert np.allclose(LeastSquares.of(A).undetermined(), [np.sqrt(0.5), 0, 1, 1])


# Rotations and joints.


@given(seed=st.integers(0, 2**32 - 1))
def test_quaternions_and_rotations_are_inverse(seed: int) -> None:
    rotations = Rotation.random(20, rng=np.random.default_rng(seed))
    quaternions = rotation_quaternion(rotations.as_matrix())
    assert np.allclose(quaternion_rotation(quaternions), rotations.as_matrix(), rtol=0, atol=1e-14)
    half_turns = rotation_quaternion(np.array([np.diag([1.0, -1, -1]), np.diag([-1.0, 1, -1]), np.diag([-1.0, -1, 1])]))
    assert np.allclose(np.abs(half_turns), np.eye(4)[1:])


AXES = {"revolute": ("y",), "prismatic": ("x",), "cylindrical": ("z",), "universal": ("x", "y")}


@pytest.mark.parametrize("kind", [kind for kind in JOINT_KINDS if kind != "fixed"])
def test_joint_coordinates_come_back_from_the_pose(kind: str) -> None:
    rng = np.random.default_rng(3)
    joint = Joint(name="j", kind=kind, parent=place("base"), child=place("b"), axes=AXES.get(kind, ()))
    q = np.array([random_coordinates(joint, rng) for _ in range(30)])
    pose = joint_pose(joint, dict(zip(joint.coordinate_names, q.T, strict=True)))
    by_hand = np.array([motion_of(joint, row) for row in q])
    assert np.allclose(pose.rotation, by_hand[:, :3, :3], rtol=0, atol=1e-14)
    assert np.allclose(pose.position, by_hand[:, :3, 3], rtol=0, atol=1e-14)
    found = joint_coordinates(joint, pose)
    if kind in ("spherical", "free"):
        found[:, -4:] *= np.sign(np.sum(found[:, -4:] * q[:, -4:], axis=1, keepdims=True))
    assert np.allclose(found, q, rtol=0, atol=1e-14)


# Trees.


def random_tree(rng: np.random.Generator, kinds: list[str], flips: list[bool]) -> tuple[Mechanism, list[Any]]:
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


def tree_poses(mechanism: Mechanism, q: list[np.ndarray]) -> Callable[[np.ndarray], list[np.ndarray]]:
    """Poses of the bodies of a random tree after a displacement of all velocities."""

    def poses(x: np.ndarray) -> list[np.ndarray]:
        found = {"base": np.eye(4)}
        start = 0
        for joint, q_j in zip(mechanism.joints, q, strict=True):
            stop = start + len(joint.velocity_names)
            across = (
                pose_of(joint.parent)
                @ motion_of(joint, shifted(joint, q_j, x[start:stop]))
                @ np.linalg.inv(pose_of(joint.child))
            )
            start = stop
            if joint.parent.body in found:
                found[joint.child.body] = found[joint.parent.body] @ across
            else:
                found[joint.parent.body] = found[joint.child.body] @ np.linalg.inv(across)
        return [found[body.name] for body in mechanism.bodies]

    return poses


@given(
    seed=st.integers(0, 2**32 - 1),
    chain=st.lists(st.tuples(st.sampled_from(list(JOINT_KINDS)), st.booleans()), min_size=1, max_size=4),
)
def test_trees_of_all_joints_agree_with_dalembert(seed: int, chain: list[tuple[str, bool]]) -> None:
    rng = np.random.default_rng(seed)
    chain = [("universal", False), *chain]
    mechanism, solids = random_tree(rng, [kind for kind, _ in chain], [is_flipped for _, is_flipped in chain])
    q = [random_coordinates(joint, rng) for joint in mechanism.joints]
    v, a = ([rng.normal(size=len(joint.velocity_names)) for joint in mechanism.joints] for _ in range(2))
    wanted = dalembert(tree_poses(mechanism, q), solids, np.concatenate(v), np.concatenate(a))
    motion = as_motion(mechanism.joints, [list(zip(q, v, a, strict=True))])
    assert_all_near(both(mechanism, motion), wanted[None], BY_DIFFERENCES)


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
        name="swing", kind="revolute", parent=place("base"), child=place("arm"), axes=("y",), freedoms=(freedom,)
    )
    return machine(
        gravity=vector((0, 0, -9.81)),
        bodies=(Body(name="arm", inertia=inertia),),
        joints=(joint,),
        actuators=(Actuator(name="motor", drives=(("swing", Constant(3.0)),), inertia=Constant(0.1)),),
    )


def test_pendulum_with_gear_rotor_and_spring() -> None:
    q, v, a = np.random.default_rng(0).normal(size=(3, 50))
    # turning about +y lowers the arm, which lies along x at zero; friction is left out
    torque = (0.3 + 0.04 + 3.0**2 * 0.1) * a - 0.6 * 9.81 * np.cos(q) + 5.0 * (q - 0.2)
    forces = both(pendulum(), Motion(q={"swing": q}, v={"swing": v}, a={"swing": a}))
    assert_all_near(forces, torque[:, None] / 3.0, 1e-13)


# Cut joints.


@pytest.mark.parametrize("is_flipped", [False, True])
@pytest.mark.parametrize("kind", [kind for kind in JOINT_KINDS if kind not in ("fixed", "free")])
def test_cut_joint_of_every_kind(kind: str, is_flipped: bool) -> None:
    """A body with free coordinates on a moving carrier, and a joint between the two that is cut.

    The body is driven along as many mixed directions S of its free velocities v as the joint leaves. By hand: with
    the joint's own velocities y and v = G y, Gᵀ S u are the forces on y.
    """
    rng = np.random.default_rng(7)
    carried = Joint(name="carried", kind="free", parent=place("base"), child=place("carrier"))
    free = Joint(name="platform", kind="free", parent=place("carrier"), child=place("body"))
    ends = [place("carrier", (0.1, 0.2, -0.3), ("y", 0.4)), place("body", (-0.2, 0.1, 0.1), ("z", 0.7), ("x", -0.3))]
    if is_flipped:
        ends.reverse()
    cut = Joint(name="guide", kind=kind, parent=ends[0], child=ends[1], axes=AXES.get(kind, ()))
    solids = [solid(rng), solid(rng)]
    n = len(cut.velocity_names)
    S = rng.normal(size=(6, n))
    mixed = tuple(
        Actuator(name=f"m{k}", drives=tuple(zip(free.velocity_names, map(Constant, map(float, column)), strict=True)))
        for k, column in enumerate(S.T)
    )
    mechanism = machine(
        bodies=tuple(
            Body(name=name, inertia=about_origin(*x)) for name, x in zip(("carrier", "body"), solids, strict=True)
        ),
        joints=(cut, carried, free),
        actuators=(*drive_all([carried]), *mixed),
    )
    assert rigid_tree(mechanism).tree == ("carried", "platform")

    states, wanted = [], []
    times = STEP * np.arange(-2, 3)
    for _ in range(3):
        Q, V, A = random_coordinates(carried, rng), rng.normal(size=6), rng.normal(size=6)
        q, v, a = random_coordinates(cut, rng), rng.normal(size=n), rng.normal(size=n)

        def relative(y: np.ndarray, q: np.ndarray = q) -> np.ndarray:
            across = pose_of(cut.parent) @ motion_of(cut, shifted(cut, q, y)) @ np.linalg.inv(pose_of(cut.child))
            return np.linalg.inv(across) if is_flipped else across

        def poses(x: np.ndarray, Q: np.ndarray = Q, relative: Any = relative) -> list[np.ndarray]:
            carrier = motion_of(carried, shifted(carried, Q, x[:6]))
            return [carrier, carrier @ relative(x[6:])]

        here = relative(np.zeros(n))

        def displacement(y: np.ndarray, relative: Any = relative, here: np.ndarray = here) -> np.ndarray:
            T = relative(y)
            return np.concatenate([T[:3, 3], Rotation.from_matrix(T[:3, :3] @ here[:3, :3].T).as_rotvec()])

        path = np.array([displacement(v * t + a * t * t / 2) for t in times])
        G = np.array([FIRST @ np.array([displacement(row * t) for t in times]) / STEP for row in np.eye(n)]).T
        q_free = np.concatenate([here[:3, 3], np.roll(Rotation.from_matrix(here[:3, :3]).as_quat(), 1)])
        states.append([(Q, V, A), (q_free, FIRST @ path / STEP, SECOND @ path / STEP**2)])
        tau = dalembert(poses, solids, np.concatenate([V, v]), np.concatenate([A, a]))
        wanted.append(np.concatenate([tau[:6], np.linalg.solve(G.T @ S, tau[6:])]))
    assert_all_near(both(mechanism, as_motion([carried, free], states)), np.array(wanted), BY_DIFFERENCES)


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
        Joint(name=name, kind="revolute", parent=parent, child=child, axes=("z",), reference=(float(angle),))
        for (name, parent, child), angle in zip(ends, reference, strict=True)
    )
    return machine(
        bodies=tuple(Body(name=name, inertia=about_origin(*x)) for name, x in zip(names, solids, strict=True)),
        joints=joints,
        actuators=(Actuator(name="motor", drives=(("shoulder", Constant(1.0)),)),),
    ), solids


def turn_z(angle: float, x: float = 0.0, y: float = 0.0) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:2, 3] = Rotation.from_euler("z", angle).as_matrix(), (x, y)
    return T


@pytest.mark.parametrize("given_joints", [("shoulder",), ("shoulder", "elbow"), ("shoulder", "elbow", "wrist", "foot")])
def test_four_bar_finds_the_joints_that_are_not_given(given_joints: tuple[str, ...]) -> None:
    mechanism, solids = four_bar()
    assert len(set(rigid_tree(mechanism).tree)) == 3
    rng = np.random.default_rng(5)
    states, wanted = [], []
    times = STEP * np.arange(-2, 3)
    for _ in range(8):
        q, v, a = rng.uniform(0.5, 1.3), rng.normal(), rng.normal()

        def poses(x: np.ndarray, q: float = q) -> list[np.ndarray]:
            crank, elbow, _, rocker = four_bar_angles(q + x[0])
            tip = CRANK * np.array([np.cos(crank), np.sin(crank)])
            return [turn_z(crank), turn_z(crank + elbow, *tip), turn_z(rocker, GROUND_BAR)]

        path = np.array([four_bar_angles(q + v * t + a * t * t / 2) for t in times])
        states.append(list(zip(path[2][:, None], FIRST @ path / STEP, SECOND @ path / STEP**2, strict=True)))
        wanted.append(dalembert(poses, solids, np.array([v]), np.array([a])))
    states = [[(q, np.atleast_1d(v), np.atleast_1d(a)) for q, v, a in state] for state in states]
    order = [joint.name for joint in mechanism.joints]
    motion = as_motion(
        [mechanism.joint(name) for name in given_joints],
        [[state[order.index(name)] for name in given_joints] for state in states],
    )
    assert_all_near(both(mechanism, motion), np.array(wanted), BY_DIFFERENCES)


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
            Joint(name=f"q{i}", kind="revolute", parent=shoulder, child=place(f"arm{i}"), axes=("y",), reference=(0.3,))
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
    mechanism = machine(bodies=tuple(bodies), joints=tuple(joints), rods=tuple(rods), actuators=actuators)
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


def three_arm_motion(samples: int) -> tuple[Motion, np.ndarray]:
    """Random states, the arms' angles by exact differentiation of the forearms' length; and p, v, a (N, 3, 3)."""
    rng = np.random.default_rng(2)
    q: dict[str, Any] = {}
    v: dict[str, Any] = {}
    a: dict[str, Any] = {}
    p = np.array([0, 0, -0.45]) + rng.uniform(-0.1, 0.1, (samples, 3))
    hand = np.stack([p, *rng.normal(size=(2, samples, 3))], axis=1)
    for k, given_values in enumerate((q, v, a)):
        given_values |= dict(zip(("platform.x", "platform.y", "platform.z"), hand[:, k].T, strict=True))
    for i in range(3):
        rows = np.array([elbow(i, *state)[:3] for state in hand])
        q[f"q{i}"], v[f"q{i}"], a[f"q{i}"] = rows.T
    return Motion(q=q, v=v, a=a), hand


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
SLENDER = SlenderPart(mass=Constant(ROD_MASS), first_moment=Constant(ROD_H), second_moment=Constant(ROD_J))
THIN = (ROD_MASS, np.array([0, 0, 0.2]), np.diag([2e-3, 2e-3, 0.0]))


def test_slender_rods_agree_with_their_exact_reduction() -> None:
    """machines.md, two-point rods: f_A = m_AA (a_A - g) + m_AB (a_B - g), f_B = m_AB (a_A - g) + m_BB (a_B - g)."""
    mechanism, _ = three_arms({"lower": SLENDER}, THIN)
    motion, hand = three_arm_motion(20)
    L = FOREARM
    m_AA, m_AB, m_BB = ROD_MASS - 2 * ROD_H / L + ROD_J / L**2, ROD_H / L - ROD_J / L**2, ROD_J / L**2
    wanted = []
    for p, v, a in hand:
        on_hand, directions, torques, pulls = HAND_MASS * (a - GRAVITY), [], [], []
        for i in range(3):
            _, _, second, e_theta, d, a_A = elbow(i, p, v, a)
            f_A = m_AA * (a_A - GRAVITY) + m_AB * (a - GRAVITY)
            on_hand = on_hand + m_AB * (a_A - GRAVITY) + m_BB * (a - GRAVITY)
            directions.append(d / L)
            pulls.append(d @ e_theta / L)
            torques.append(ARM_INERTIA * second - ARM_MASS * ARM_CENTER / ARM * (e_theta @ GRAVITY) + e_theta @ f_A)
        multipliers = np.linalg.solve(np.array(directions).T, on_hand)
        wanted.append(np.array(torques) + multipliers * pulls)
    assert_all_near(both(mechanism, motion), np.array(wanted), 1e-11)


FULL_J = np.array([[3e-3, 4e-4, 2e-4], [4e-4, 2e-3, -3e-4], [2e-4, -3e-4, 1e-3]])
FULL = (0.15, np.array([0.01, -0.02, 0.21]), FULL_J)
ROUND = (0.15, np.array([0.0, 0.0, 0.21]), np.diag([2e-3, 2e-3, 7e-4]))


@pytest.mark.parametrize("model", ["massless", "slender", "full", "round without spin"])
def test_rods_of_fixed_length_agree_with_dalembert(model: str) -> None:
    rods: dict[str, tuple[dict[str, Any], Any]] = {
        "massless": ({}, (0.0, np.zeros(3), np.zeros((3, 3)))),
        "slender": ({"lower": SLENDER}, THIN),
        "full": ({"lower": about_origin(*FULL), "spin": "universal", "first_axis": vector(FIRST_AXIS)}, FULL),
        # its axial inertia has no effect: the hand-made rod, which spins as a universal joint makes it, has none
        "round without spin": ({"lower": about_origin(*ROUND)}, (0.15, ROUND[1], np.diag([2e-3, 2e-3, 0.0]))),
    }
    mechanism, solids = three_arms(*rods[model])
    motion, hand = three_arm_motion(4)
    wanted = []
    for p, v, a in hand:
        tau = dalembert(lambda x, p=p: three_arm_poses(p + x), solids, v, a)
        legs = [elbow(i, p, v, a) for i in range(3)]
        J = np.array([d / (d @ e_theta) for *_, e_theta, d, _ in legs])
        wanted.append(np.linalg.solve(J.T, tau))
    assert_all_near(both(mechanism, motion), np.array(wanted), BY_DIFFERENCES)


# A platform on six telescopic rods, written from the base or from the platform.

BASE_ANGLES, TOP_ANGLES = np.radians([[10, 110, 130, 230, 250, 350], [50, 70, 170, 190, 290, 310]])
BASE_POINTS = [np.array([0.5 * np.cos(t), 0.5 * np.sin(t), 0.02 * i]) for i, t in enumerate(BASE_ANGLES)]
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
    actuators = tuple(Actuator(name=f"m{i}", drives=((f"leg{i}", Constant(1.0)),)) for i in range(6))
    plate = Body(name="plate", inertia=about_origin(*PAYLOAD))
    return machine(bodies=(plate,), joints=(free,), rods=tuple(rods), actuators=actuators)


def six_leg_states(samples: int) -> tuple[Motion, list[Any]]:
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
            rows.append([L, rate, u @ d_second + (d_rate @ d_rate - rate**2) / L, *u, *np.cross(r, u)])
        table = np.array(rows)
        lengths.append(table[:, :3])
        by_hand.append((p, turn, v, a, table[:, 2], table[:, 3:]))
        states.append([(np.concatenate([p, np.roll(turn.as_quat(), 1)]), v, a)])
    motion = as_motion([joint], states)
    for k, given_values in enumerate((motion.q, motion.v, motion.a)):
        assert isinstance(given_values, dict)
        given_values |= {f"leg{i}": np.array([rows[i, k] for rows in lengths]) for i in range(6)}
    return motion, by_hand


def six_leg_poses(p: np.ndarray, turn: Rotation, from_platform: bool) -> Callable[[np.ndarray], list[np.ndarray]]:
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


THIN_UPPER = SlenderPart(mass=Constant(0.4), first_moment=Constant(0.06), second_moment=Constant(0.06 * 0.15 + 3e-3))


@pytest.mark.parametrize("from_platform", [False, True])
@pytest.mark.parametrize("model", ["massless", "slender", "full"])
def test_telescopic_rods_agree_with_dalembert(model: str, from_platform: bool) -> None:
    nothing = (0.0, np.zeros(3), np.zeros((3, 3)))
    inertias = {"lower": about_origin(*FULL), "upper": about_origin(*UPPER)}
    full = inertias | {"spin": "universal", "first_axis": vector(LEG_AXIS)}
    rods: dict[str, tuple[dict[str, Any], Any, Any]] = {
        "massless": ({}, nothing, nothing),
        "slender": (
            {"lower": SLENDER, "upper": THIN_UPPER},
            THIN,
            (0.4, np.array([0, 0, -0.15]), np.diag([3e-3, 3e-3, 0.0])),
        ),
        "full": (full, FULL, UPPER),
    }
    rod, lower, upper = rods[model]
    motion, states = six_leg_states(4)
    solids = [PAYLOAD, *[lower] * 6, *[upper] * 6]
    wanted = []
    for p, turn, v, a, second, J in states:
        tau = dalembert(six_leg_poses(p, turn, from_platform), solids, v, a)
        wanted.append(np.linalg.solve(J.T, tau) + 0.3 * second)
    mechanism = six_legs(rod, from_platform=from_platform)
    assert_all_near(both(mechanism, motion), np.array(wanted), BY_DIFFERENCES)


def test_lengths_of_rods_need_not_be_given() -> None:
    mechanism = six_legs({"lower": SLENDER, "upper": THIN_UPPER}, from_platform=False)
    motion, _ = six_leg_states(5)
    poor = Motion(**{part: {k: x for k, x in getattr(motion, part).items() if "leg" not in k} for part in "qva"})
    wanted = pinocchio_engine(mechanism).inverse_dynamics(motion).forces
    for found in both(mechanism, poor).values():
        assert_near(found.forces, wanted, EXACT)


@pytest.mark.parametrize("is_flipped", [False, True])
@pytest.mark.parametrize("engine", MAKERS)
def test_orientation_is_found_from_lengths_alone(engine: str, is_flipped: bool) -> None:
    """A plate on a ball and three telescopic rods: forward kinematics from the reference pose."""
    rng = np.random.default_rng(6)
    ends = [place("base", (0, 0, 0.5), ("x", 0.1)), place("plate", (0, 0, -0.1), ("z", 0.2))]
    if is_flipped:
        ends.reverse()
    ball = Joint(name="wrist", kind="spherical", parent=ends[0], child=ends[1])
    pairs = list(zip(BASE_POINTS[::2], TOP_POINTS[::2], strict=True))
    rods = tuple(
        Rod(
            name=f"leg{i}",
            start=place("base", A),
            end=place("plate", B),
            telescope=Telescope(reference=0.7),
            lower=SLENDER,
        )
        for i, (A, B) in enumerate(pairs)
    )
    actuators = tuple(Actuator(name=f"m{i}", drives=((f"leg{i}", Constant(1.0)),)) for i in range(3))
    bodies = (Body(name="plate", inertia=about_origin(*PAYLOAD)),)
    mechanism = machine(bodies=bodies, joints=(ball,), rods=rods, actuators=actuators)
    times = STEP * np.arange(-2, 3)
    lengths, wanted = [], []
    for _ in range(5):
        q = np.roll(Rotation.from_rotvec(rng.normal(scale=0.15, size=3)).as_quat(), 1)
        v, a = rng.normal(size=(2, 3))

        def poses(x: np.ndarray, q: np.ndarray = q) -> list[np.ndarray]:
            across = pose_of(ball.parent) @ motion_of(ball, shifted(ball, q, x)) @ np.linalg.inv(pose_of(ball.child))
            plate = np.linalg.inv(across) if is_flipped else across
            legs = [rod_frame(A, (plate @ [*B, 1])[:3], LEG_AXIS, A) for A, B in pairs]
            return [plate, *legs]

        def spans(x: np.ndarray, poses: Any = poses) -> np.ndarray:
            return np.array([np.linalg.norm((poses(x)[0] @ [*B, 1])[:3] - A) for A, B in pairs])

        path = np.array([spans(v * t + a * t * t / 2) for t in times])
        J = np.array([FIRST @ np.array([spans(row * t) for t in times]) / STEP for row in np.eye(3)]).T
        lengths.append([path[2], FIRST @ path / STEP, SECOND @ path / STEP**2])
        wanted.append(np.linalg.solve(J.T, dalembert(poses, [PAYLOAD, *[THIN] * 3], v, a)))
    columns = np.array(lengths).transpose(1, 2, 0)
    motion = Motion(**{part: {f"leg{i}": x for i, x in enumerate(columns[k])} for k, part in enumerate("qva")})
    found = MAKERS[engine](mechanism).inverse_dynamics(motion)
    assert_near(found.forces, np.array(wanted), BY_DIFFERENCES)
    assert np.max(found.closure) < CLOSED


def test_many_states_are_worked_on_in_pieces() -> None:
    mechanism, _ = three_arms({"lower": SLENDER}, THIN)
    motion, _ = three_arm_motion(600)
    one = Motion(**{part: {k: x[555:556] for k, x in getattr(motion, part).items()} for part in "qva"})
    engine = pinocchio_engine(mechanism)
    forces = engine.inverse_dynamics(motion)
    assert forces.forces.shape == (600, 3)
    assert_near(engine.inverse_dynamics(one).forces, forces.forces[555:556], 1e-13)
    assert np.max(forces.closure) < 1e-14


@pytest.mark.parametrize("machine_name", ["arms", "legs", "bar"])
def test_start_is_exact_on_the_manifold(machine_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Newton: what is missing is worked out from the poses of the bodies, which the given joints determine."""
    if machine_name == "arms":
        mechanism, motion = three_arms({"lower": SLENDER}, THIN)[0], three_arm_motion(5)[0]
    elif machine_name == "legs":
        mechanism, motion = six_legs({"lower": SLENDER, "upper": THIN_UPPER}, from_platform=True), six_leg_states(5)[0]
        motion = Motion(**{part: {k: x for k, x in getattr(motion, part).items() if "leg" not in k} for part in "qva"})
    else:
        mechanism = four_bar()[0]
        angles = dict(zip(("shoulder", "elbow", "wrist"), four_bar_angles(0.6)[:, None], strict=False))
        rest = {name: np.zeros(1) for name in angles}
        motion = Motion(q=angles, v=rest, a=rest)
        assert "foot" in rigid_tree(mechanism).tree
    monkeypatch.setattr("tauloop.engines.engine.MOST_STEPS", 0)
    assert np.max(pinocchio_engine(mechanism).inverse_dynamics(motion).closure) < 1e-14


# Comparison.


def test_compare_names_the_largest_difference() -> None:
    mechanism, _ = three_arms({"lower": SLENDER}, THIN)
    motion, _ = three_arm_motion(6)
    forces = mujoco_engine(mechanism).inverse_dynamics(motion).forces
    right = compare(mechanism, motion, forces)
    assert [found.engine for found in right.comparisons] == ["Pinocchio", "MuJoCo"]
    assert right.not_run == ()
    assert right.samples == 6
    assert right.worst < EXACT
    wrong = forces.copy()
    wrong[4, 1] += 1e-3 * np.max(np.abs(forces[4]))
    found = compare(mechanism, motion, wrong).comparisons[0]
    assert (found.sample, found.actuator) == (4, "m1")
    assert found.largest_difference == pytest.approx(1e-3, rel=2e-3)
    assert found.worst == found.largest_difference


def test_compare_shows_states_off_the_manifold() -> None:
    """Forces that agree say nothing when the loops are open: the residuals tell."""
    mechanism, _ = three_arms({"lower": SLENDER}, THIN)
    motion, _ = three_arm_motion(3)
    moved = {name: x + 1e-4 if name == "platform.x" else x for name, x in motion.q.items()}
    forces = pinocchio_engine(mechanism).inverse_dynamics(motion).forces
    found = compare(mechanism, replace(motion, q=moved), forces)
    assert all(1e-5 < comparison.closure < 1e-3 for comparison in found.comparisons)
    assert all(comparison.worst >= comparison.closure for comparison in found.comparisons)


def test_compare_shows_motion_without_actuator() -> None:
    """One motor on a double pendulum: the second joint needs a torque that is not there."""
    mechanism, _ = random_tree(np.random.default_rng(0), ["revolute", "revolute"], [False, False])
    mechanism = replace(mechanism, actuators=mechanism.actuators[:1])
    state = {"j0": np.array([0.3]), "j1": np.array([0.4])}
    found = compare(mechanism, Motion(q=state, v=state, a=state), np.array([[1.0]]))
    assert all(comparison.balance > 1e-3 for comparison in found.comparisons)
    assert found.worst > 1e-3


def test_compare_scales_samples_without_force_by_the_others() -> None:
    mechanism = pendulum()
    still = frictionless(replace(mechanism, gravity=vector((0, 0, 0))))
    motion = Motion(q={"swing": np.array([0.2, 1.0])}, v={"swing": np.zeros(2)}, a={"swing": np.zeros(2)})
    forces = np.array([[1e-9], [5.0 * 0.8 / 3.0]])
    found = compare(still, motion, forces).comparisons[0]
    assert found.largest_difference == pytest.approx(1e-9 / (1e-3 * forces[1, 0]))


def test_frictionless_takes_friction_alone() -> None:
    plain = frictionless(pendulum())
    assert plain.joints[0].freedoms[0].friction is None
    assert plain.joints[0].freedoms[0].spring == pendulum().joints[0].freedoms[0].spring
    assert frictionless(plain) == plain
    legs = six_legs({}, from_platform=False)
    rough = Freedom(friction=Friction(coulomb=Constant(1.0)), inertia=Constant(0.3))
    rod = replace(legs.rods[0], telescope=Telescope(reference=0.66, freedom=rough))
    motor = replace(legs.actuators[0], friction=Friction(viscous=Constant(2.0)))
    sticky = replace(legs, rods=(rod, *legs.rods[1:]), actuators=(motor, *legs.actuators[1:]))
    assert frictionless(sticky) == legs


def test_compare_says_which_engine_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    mechanism = pendulum()
    motion = Motion(q={"swing": np.zeros(1)}, v={"swing": np.zeros(1)}, a={"swing": np.zeros(1)})
    found = compare(mechanism, motion, np.ones((1, 1)))
    assert [comparison.engine for comparison in found.comparisons] == ["Pinocchio"]
    assert "MuJoCo" in found.not_run[0][0]
    monkeypatch.setitem(sys.modules, "pinocchio", None)
    with pytest.raises(EngineError, match=r"pip install tauloop\[engines\]") as caught:
        compare(mechanism, motion, np.ones((1, 1)))
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize("forces", [np.ones((2, 1)), np.ones(1), np.full((1, 1), np.nan)])
def test_compare_refuses_forces_that_do_not_fit(forces: np.ndarray) -> None:
    motion = Motion(q={"swing": np.zeros(1)}, v={"swing": np.zeros(1)}, a={"swing": np.zeros(1)})
    with pytest.raises(InputError, match="forces"):
        compare(pendulum(), motion, forces)


@pytest.mark.parametrize("name", shipped_machines())
def test_tauloop_agrees_with_the_engines_on_every_shipped_machine(name: str) -> None:
    found = check_inverse_dynamics(load(name), 20, np.random.default_rng(8))
    assert [comparison.engine for comparison in found.comparisons] == ["Pinocchio", "MuJoCo"]
    assert found.worst < EXACT


# What is refused.


@pytest.mark.parametrize(
    "inertia",
    [
        (0.15, np.array([0, 0, 0.2]), np.diag([2e-3, 3e-3, 1e-3])),
        (0.15, np.array([0.01, 0, 0.2]), np.diag([2e-3, 2e-3, 1e-3])),
    ],
)
def test_rod_without_spin_must_be_a_body_of_revolution(inertia: Any) -> None:
    mechanism, _ = three_arms({"lower": about_origin(*inertia)}, None)
    with pytest.raises(EngineError, match="body of revolution") as caught:
        rigid_tree(mechanism)
    assert [problem.where for problem in caught.value.problems] == ["rods.rod0", "rods.rod1", "rods.rod2"]


def test_first_moment_needs_a_mass() -> None:
    mechanism = pendulum()
    inertia = Inertia(mass=ZERO, first_moment=vector((0.1, 0, 0)))
    with pytest.raises(EngineError, match="no centre of mass"):
        rigid_tree(replace(mechanism, bodies=(Body(name="arm", inertia=inertia),)))


def test_body_without_joint_is_named() -> None:
    with pytest.raises(EngineError, match=r"bodies\.lost"):
        rigid_tree(replace(pendulum(), bodies=(*pendulum().bodies, Body(name="lost"))))


def test_actuator_on_a_cut_joint_is_named() -> None:
    mechanism, _ = four_bar()
    names = ("shoulder", "elbow", "wrist", "foot")
    everywhere = tuple(Actuator(name=f"m_{name}", drives=((name, Constant(1.0)),)) for name in names)
    with pytest.raises(EngineError, match="no coordinate of the tree") as caught:
        rigid_tree(replace(mechanism, actuators=everywhere))
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("engine", MAKERS)
def test_actuators_that_work_against_each_other_are_refused(engine: str) -> None:
    mechanism, _ = four_bar()
    second = Actuator(name="second", drives=(("foot", Constant(1.0)),))
    mechanism = replace(mechanism, actuators=(*mechanism.actuators, second))
    motion = Motion(q={"shoulder": np.array([0.9])}, v={"shoulder": np.zeros(1)}, a={"shoulder": np.zeros(1)})
    with pytest.raises(EngineError, match="motor, second"):
        MAKERS[engine](mechanism).inverse_dynamics(motion)


@pytest.mark.parametrize("engine", MAKERS)
def test_motion_that_leaves_something_open_is_refused(engine: str) -> None:
    mechanism, _ = random_tree(np.random.default_rng(1), ["revolute", "spherical"], [False, True])
    zero = {"j0": np.zeros(1)}
    with pytest.raises(EngineError, match=r"j1\.wx, j1\.wy, j1\.wz"):
        MAKERS[engine](mechanism).inverse_dynamics(Motion(q=zero, v=zero, a=zero))


def engine_and_motion() -> tuple[Engine, Motion]:
    mechanism = six_legs({}, from_platform=False)
    return pinocchio_engine(mechanism), six_leg_states(3)[0]


def test_all_faults_of_a_motion_are_told_at_once() -> None:
    engine, motion = engine_and_motion()
    q = dict(motion.q) | {"platfrom.x": np.zeros(3), "leg1": np.array([1.0, np.nan, 1.0])}
    v = {name: x for name, x in motion.v.items() if name not in ("platform.wy", "leg2")}
    a = dict(motion.a) | {"leg0": np.zeros(4)}
    with pytest.raises(InputError) as caught:
        engine.inverse_dynamics(Motion(q=q, v=v, a=a))
    text = str(caught.value)
    assert len(caught.value.problems) == 5
    assert "did you mean platform.x?" in text
    assert "v['platform.wy'] missing" in text
    assert "leg2: not given in all" in text
    assert "1 numbers are not finite" in text
    assert "(3,), (4,)" in text


def test_quaternions_must_be_unit_quaternions() -> None:
    engine, motion = engine_and_motion()
    nearly = {name: x * (1 + 1e-9) if ".q" in name else x for name, x in motion.q.items()}
    wanted = engine.inverse_dynamics(motion)
    assert_near(engine.inverse_dynamics(replace(motion, q=nearly)).forces, wanted.forces, EXACT)
    doubled = {name: 2 * x if ".q" in name else x for name, x in motion.q.items()}
    with pytest.raises(InputError, match="norm differs from one by up to 1"):
        engine.inverse_dynamics(replace(motion, q=doubled))


def test_empty_motion_is_refused() -> None:
    engine, _ = engine_and_motion()
    with pytest.raises(InputError, match="shapes"):
        engine.inverse_dynamics(Motion(q={}, v={}, a={}))
