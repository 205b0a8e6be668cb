"""The engines against hand-made dynamics: d'Alembert's principle by differences, the reduction of slender rods, and
each other. Machines are built here by hand; nothing of Tauloop's equations takes part."""

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
from tauloop.engines.joints import joint_coordinates, joint_pose
from tauloop.engines.poses import quaternion_rotation, rotation_quaternion
from tauloop.errors import EngineError, InputError
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
        Actuator(name=f"motor_{name}", drives=((name, Constant(1.0)),)) for joint in joints for name in joint.velocity_names
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
    states, wanted = [], []
    for _ in range(2):
        q = [random_coordinates(joint, rng) for joint in mechanism.joints]
        v, a = ([rng.normal(size=len(joint.velocity_names)) for joint in mechanism.joints] for _ in range(2))
        states.append(list(zip(q, v, a, strict=True)))
        wanted.append(dalembert(tree_poses(mechanism, q), solids, np.concatenate(v), np.concatenate(a)))
    assert_all_near(both(mechanism, as_motion(mechanism.joints, states)), np.array(wanted), BY_DIFFERENCES)


def pendulum() -> Mechanism:
    freedom = Freedom(
        spring=Spring(stiffness=Constant(5.0), rest=Constant(0.2)),
        inertia=Constant(0.04),
        friction=Friction(viscous=Constant(9.0)),
    )
    inertia = Inertia(
        mass=Constant(2.0), first_moment=vector((0.6, 0, 0)), second_moment=(ZERO, ZERO, Constant(0.3), ZERO, ZERO, Constant(0.3))
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


@pytest.mark.parametrize("kind", [kind for kind in JOINT_KINDS if kind not in ("fixed", "free")])
def test_cut_joint_of_every_kind(kind: str) -> None:
    """A body with free coordinates on one more joint, driven along as many mixed directions as that joint leaves.

    By hand: with the joint's own velocities y and v = G y, Gᵀ S u = Gᵀ τ, where τ moves the free body.
    """
    rng = np.random.default_rng(7)
    free = Joint(name="platform", kind="free", parent=place("base"), child=place("body"))
    cut = Joint(
        name="guide",
        kind=kind,
        parent=place("base", (0.1, 0.2, -0.3), ("y", 0.4)),
        child=place("body", (-0.2, 0.1, 0.1), ("z", 0.7), ("x", -0.3)),
        axes=AXES.get(kind, ()),
    )
    mass, center, J = solid(rng)
    n = len(cut.velocity_names)
    S = rng.normal(size=(6, n))
    names = free.velocity_names
    actuators = tuple(
        Actuator(name=f"m{k}", drives=tuple((name, Constant(S[i, k])) for i, name in enumerate(names))) for k in range(n)
    )
    mechanism = machine(
        bodies=(Body(name="body", inertia=about_origin(mass, center, J)),), joints=(cut, free), actuators=actuators
    )
    assert rigid_tree(mechanism).tree == ("platform",)

    states, wanted = [], []
    for _ in range(5):
        q, v, a = random_coordinates(cut, rng), rng.normal(size=n), rng.normal(size=n)

        def poses(x: np.ndarray, q: np.ndarray = q) -> list[np.ndarray]:
            return [pose_of(cut.parent) @ motion_of(cut, shifted(cut, q, x)) @ np.linalg.inv(pose_of(cut.child))]

        here = poses(np.zeros(n))[0]

        def displacement(x: np.ndarray, poses: Any = poses, here: np.ndarray = here) -> np.ndarray:
            T = poses(x)[0]
            return np.concatenate([T[:3, 3], Rotation.from_matrix(T[:3, :3] @ here[:3, :3].T).as_rotvec()])

        times = STEP * np.arange(-2, 3)
        path = np.array([displacement(v * t + a * t * t / 2) for t in times])
        rays = [np.array([displacement(row * t) for t in times]) for row in np.eye(n)]
        G = np.array([FIRST @ ray / STEP for ray in rays]).T
        q_free = np.concatenate([here[:3, 3], np.roll(Rotation.from_matrix(here[:3, :3]).as_quat(), 1)])
        states.append([(q_free, FIRST @ path / STEP, SECOND @ path / STEP**2)])
        wanted.append(np.linalg.solve(G.T @ S, dalembert(poses, [(mass, center, J)], v, a)))
    assert_all_near(both(mechanism, as_motion([free], states)), np.array(wanted), BY_DIFFERENCES)
