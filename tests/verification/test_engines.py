"""The engines against hand-made dynamics: trees, cut joints and a planar loop by d'Alembert's principle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engine_machines import (
    CRANK,
    GROUND_BAR,
    four_bar,
    four_bar_angles,
    pendulum,
    random_tree,
    tree_poses,
    turn_z,
)
from engine_mechanics import (
    BY_DIFFERENCES,
    FIRST,
    SECOND,
    STEP,
    about_origin,
    as_motion,
    assert_all_near,
    both,
    dalembert,
    drive_all,
    machine,
    motion_of,
    place,
    pose_of,
    random_coordinates,
    shifted,
    solid,
)
from extras import extra
from hypothesis import given, strategies as st
from scipy.spatial.transform import Rotation

from tauloop import load
from tauloop.common.result import Status
from tauloop.mechanism.expression import Constant
from tauloop.mechanism.model import JOINT_KINDS, Actuator, Body, Joint
from tauloop.mechanism.poses import quaternion_rotation, rotation_quaternion, rotation_vector
from tauloop.mechanism.solids.primitives import joint_coordinates, joint_pose
from tauloop.verification.engines import NamedMotion
from tauloop.verification.engines.least_squares import LeastSquares
from tauloop.verification.engines.trees.building import rigid_tree
from tauloop.verification.engines.verification import VerifyOptions, verify

extra("pinocchio")
extra("mujoco")


# Least squares.


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 8),
    columns=st.integers(1, 8),
    rank=st.integers(1, 8),
)
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
    assert np.allclose(LeastSquares.of(A).null_norms(), [np.sqrt(0.5), 0, 1, 1])


# Rotations and joints.


@given(seed=st.integers(0, 2**32 - 1))
def test_quaternions_and_rotations_are_inverse(seed: int) -> None:
    rotations = Rotation.random(20, rng=np.random.default_rng(seed))
    quaternions = rotation_quaternion(rotations.as_matrix())
    assert np.allclose(quaternion_rotation(quaternions), rotations.as_matrix(), rtol=0, atol=1e-14)
    half_turns = rotation_quaternion(
        np.array([np.diag([1.0, -1, -1]), np.diag([-1.0, 1, -1]), np.diag([-1.0, -1, 1])])
    )
    assert np.allclose(np.abs(half_turns), np.eye(4)[1:])


@pytest.mark.parametrize("angle", [1e-12, 1e-6, 0.1, 3.0, np.pi - 1e-9, np.pi])
def test_rotation_vectors_are_scipys(angle: float) -> None:
    axes = np.concatenate([np.eye(3), np.random.default_rng(4).normal(size=(200, 3))])
    vectors = angle * axes / np.linalg.norm(axes, axis=1, keepdims=True)
    rotations = Rotation.from_rotvec(vectors).as_matrix()
    expected = Rotation.from_matrix(rotations).as_rotvec()
    computed = rotation_vector(rotations)
    # the sign of half a revolution is arbitrary where rounding decides it
    is_turned = (np.sum(computed * expected, axis=1) < 0.0) & (angle > np.pi - 1e-8)
    computed[is_turned] *= -1.0
    assert np.abs(computed - expected).max() < 1e-14 * max(angle, 1e-3)
    assert np.array_equal(rotation_vector(np.eye(3)), np.zeros(3))


AXES = {"revolute": ("y",), "prismatic": ("x",), "cylindrical": ("z",), "universal": ("x", "y")}


@pytest.mark.parametrize("kind", [kind for kind in JOINT_KINDS if kind != "fixed"])
def test_joint_coordinates_come_back_from_the_pose(kind: str) -> None:
    rng = np.random.default_rng(3)
    joint = Joint(
        name="j", kind=kind, parent=place("base"), child=place("b"), axes=AXES.get(kind, ())
    )
    q = np.array([random_coordinates(joint, rng) for _ in range(30)])
    pose = joint_pose(joint, dict(zip(joint.coordinate_names, q.T, strict=True)))
    by_hand = np.array([motion_of(joint, row) for row in q])
    assert np.allclose(pose.rotation, by_hand[:, :3, :3], rtol=0, atol=1e-14)
    assert np.allclose(pose.position, by_hand[:, :3, 3], rtol=0, atol=1e-14)
    result = joint_coordinates(joint, pose)
    if kind in ("spherical", "free"):
        result[:, -4:] *= np.sign(np.sum(result[:, -4:] * q[:, -4:], axis=1, keepdims=True))
    assert np.allclose(result, q, rtol=0, atol=1e-14)


@given(
    seed=st.integers(0, 2**32 - 1),
    chain=st.lists(
        st.tuples(st.sampled_from(list(JOINT_KINDS)), st.booleans()), min_size=1, max_size=4
    ),
)
def test_trees_of_all_joints_agree_with_dalembert(seed: int, chain: list[tuple[str, bool]]) -> None:
    rng = np.random.default_rng(seed)
    chain = [("universal", False), *chain]
    mechanism, solids = random_tree(
        rng, [kind for kind, _ in chain], [is_flipped for _, is_flipped in chain]
    )
    q = [random_coordinates(joint, rng) for joint in mechanism.joints]
    v, a = (
        [rng.normal(size=len(joint.velocity_names)) for joint in mechanism.joints] for _ in range(2)
    )
    wanted = dalembert(tree_poses(mechanism, q), solids, np.concatenate(v), np.concatenate(a))
    motion = as_motion(mechanism.joints, [list(zip(q, v, a, strict=True))])
    assert_all_near(both(mechanism, motion), wanted[None], BY_DIFFERENCES)


def test_pendulum_with_gear_rotor_and_spring() -> None:
    q, v, a = np.random.default_rng(0).normal(size=(3, 50))
    # turning about +y lowers the arm, which lies along x at zero; friction is left out
    torque = (0.3 + 0.04 + 3.0**2 * 0.1) * a - 0.6 * 9.81 * np.cos(q) + 5.0 * (q - 0.2)
    forces = both(pendulum(), NamedMotion(q={"swing": q}, v={"swing": v}, a={"swing": a}))
    assert_all_near(forces, torque[:, None] / 3.0, 1e-13)


# Cut joints.


@pytest.mark.parametrize("is_flipped", [False, True])
@pytest.mark.parametrize("kind", [kind for kind in JOINT_KINDS if kind not in ("fixed", "free")])
def test_cut_joint_of_every_kind(kind: str, is_flipped: bool) -> None:
    """A body with free coordinates on a moving carrier, and a joint between the two that is cut.

    The body is driven along as many mixed directions S of its free velocities v as the joint
    leaves. By hand: with the joint's own velocities y and v = G y, Gᵀ S u are the forces on y.
    """
    rng = np.random.default_rng(7)
    carried = Joint(name="carried", kind="free", parent=place("base"), child=place("carrier"))
    free = Joint(name="platform", kind="free", parent=place("carrier"), child=place("body"))
    ends = [
        place("carrier", (0.1, 0.2, -0.3), ("y", 0.4)),
        place("body", (-0.2, 0.1, 0.1), ("z", 0.7), ("x", -0.3)),
    ]
    if is_flipped:
        ends.reverse()
    cut = Joint(name="guide", kind=kind, parent=ends[0], child=ends[1], axes=AXES.get(kind, ()))
    solids = [solid(rng), solid(rng)]
    n = len(cut.velocity_names)
    S = rng.normal(size=(6, n))
    mixed = tuple(
        Actuator(
            name=f"m{k}",
            drives=tuple(zip(free.velocity_names, map(Constant, map(float, column)), strict=True)),
        )
        for k, column in enumerate(S.T)
    )
    mechanism = machine(
        bodies=tuple(
            Body(name=name, inertia=about_origin(*x))
            for name, x in zip(("carrier", "body"), solids, strict=True)
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
            across = (
                pose_of(cut.parent)
                @ motion_of(cut, shifted(cut, q, y))
                @ np.linalg.inv(pose_of(cut.child))
            )
            return np.linalg.inv(across) if is_flipped else across

        def poses(x: np.ndarray, Q: np.ndarray = Q, relative: Any = relative) -> list[np.ndarray]:
            carrier = motion_of(carried, shifted(carried, Q, x[:6]))
            return [carrier, carrier @ relative(x[6:])]

        here = relative(np.zeros(n))

        def displacement(
            y: np.ndarray, relative: Any = relative, here: np.ndarray = here
        ) -> np.ndarray:
            T = relative(y)
            return np.concatenate(
                [T[:3, 3], Rotation.from_matrix(T[:3, :3] @ here[:3, :3].T).as_rotvec()]
            )

        path = np.array([displacement(v * t + a * t * t / 2) for t in times])
        G = np.array(
            [FIRST @ np.array([displacement(row * t) for t in times]) / STEP for row in np.eye(n)]
        ).T
        q_free = np.concatenate(
            [here[:3, 3], np.roll(Rotation.from_matrix(here[:3, :3]).as_quat(), 1)]
        )
        states.append([(Q, V, A), (q_free, FIRST @ path / STEP, SECOND @ path / STEP**2)])
        tau = dalembert(poses, solids, np.concatenate([V, v]), np.concatenate([A, a]))
        wanted.append(np.concatenate([tau[:6], np.linalg.solve(G.T @ S, tau[6:])]))
    assert_all_near(
        both(mechanism, as_motion([carried, free], states)), np.array(wanted), BY_DIFFERENCES
    )


@pytest.mark.parametrize(
    "given_joints", [("shoulder",), ("shoulder", "elbow"), ("shoulder", "elbow", "wrist", "foot")]
)
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
        states.append(
            list(zip(path[2][:, None], FIRST @ path / STEP, SECOND @ path / STEP**2, strict=True))
        )
        wanted.append(dalembert(poses, solids, np.array([v]), np.array([a])))
    states = [[(q, np.atleast_1d(v), np.atleast_1d(a)) for q, v, a in state] for state in states]
    order = [joint.name for joint in mechanism.joints]
    motion = as_motion(
        [mechanism.joint(name) for name in given_joints],
        [[state[order.index(name)] for name in given_joints] for state in states],
    )
    assert_all_near(both(mechanism, motion), np.array(wanted), BY_DIFFERENCES)


def test_forces_of_a_machine_with_a_heavy_body_keep_their_digits() -> None:
    """Forces are summed about a point near the machine, whatever share of its mass one body has."""
    mechanism = load("four_bar")
    masses = [name for name in mechanism.parameters.names if name.endswith("mass")]
    answer = verify(mechanism.at_values({masses[-1]: 1e6}), VerifyOptions(states=5))
    assert answer.status is Status.OK, answer.advice
