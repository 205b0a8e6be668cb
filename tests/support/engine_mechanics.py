"""Machines and mechanics by hand, for the tests of the engines: d'Alembert's principle by differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from tauloop.mechanism.expression import Constant, ParameterTable
from tauloop.mechanism.model import Actuator, Inertia, Joint, Mechanism, Placement, Platform, Turn
from tauloop.verification.engines import NamedMotion, mujoco_engine, pinocchio_engine

MAKERS = {"Pinocchio": pinocchio_engine, "MuJoCo": mujoco_engine}

#: Two engines, or an engine and a closed formula: rounding through a solve at condition numbers up
#: to 1e3 or so.
EXACT = 1e-10

#: Differences of fourth order with step 2e-3: rounding 1e-16 / h^2 = 3e-11 and truncation h^4 times
#: sixth derivatives.
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
        body=body,
        position=vector(position),
        turns=tuple(Turn(axis, Constant(angle)) for axis, angle in turns),
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
    defaults: dict[str, Any] = {
        "name": "trial",
        "parameters": ParameterTable(),
        "gravity": vector(GRAVITY),
    }
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
        T[:3, :3] = (
            Rotation.from_euler(joint.axes[0], q[0]) * Rotation.from_euler(joint.axes[1], q[1])
        ).as_matrix()
    elif joint.kind == "planar":
        T[:2, 3] = q[:2]
        T[:3, :3] = Rotation.from_euler("z", q[2]).as_matrix()
    elif joint.kind in ("translational", "schoenflies", "free"):
        T[:3, 3] = q[:3]
    if joint.kind == "schoenflies":
        T[:3, :3] = Rotation.from_euler("z", q[3]).as_matrix()
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


def dalembert(
    poses: Callable[[np.ndarray], list[np.ndarray]], solids: Any, v: np.ndarray, a: np.ndarray
) -> np.ndarray:
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
        turn = np.array(
            [Rotation.from_matrix(T[i][:3, :3] @ here[:3, :3].T).as_rotvec() for T in path]
        )
        acceleration, w, w_rate = SECOND @ c / STEP**2, FIRST @ turn / STEP, SECOND @ turn / STEP**2
        J = here[:3, :3] @ J_local @ here[:3, :3].T
        force, moment = mass * (acceleration - GRAVITY), J @ w_rate + np.cross(w, J @ w)
        for k, ray in enumerate(rays):
            points = np.array([(T[i] @ [*center, 1.0])[:3] for T in ray])
            turns = np.array(
                [Rotation.from_matrix(T[i][:3, :3] @ here[:3, :3].T).as_rotvec() for T in ray]
            )
            tau[k] += force @ (FIRST @ points) / STEP + moment @ (FIRST @ turns) / STEP
    return tau


def as_motion(
    joints: Any, states: list[list[tuple[np.ndarray, np.ndarray, np.ndarray]]]
) -> NamedMotion:
    """From (q, v, a) by sample and joint."""
    q, v, a = {}, {}, {}
    for j, joint in enumerate(joints):
        columns = [np.array([state[j][k] for state in states]) for k in range(3)]
        q |= dict(zip(joint.coordinate_names, columns[0].T, strict=True))
        v |= dict(zip(joint.velocity_names, columns[1].T, strict=True))
        a |= dict(zip(joint.velocity_names, columns[2].T, strict=True))
    return NamedMotion(q=q, v=v, a=a)


def both(mechanism: Mechanism, motion: NamedMotion) -> dict[str, Any]:
    return {name: make(mechanism).inverse_dynamics(motion) for name, make in MAKERS.items()}


def assert_near(values: np.ndarray, wanted: np.ndarray, tolerance: float) -> None:
    """Relative to the largest force of each sample."""
    assert values.shape == wanted.shape
    scale = np.max(np.abs(wanted), axis=1, keepdims=True)
    assert np.all(scale > 0.0)
    assert np.max(np.abs(values - wanted) / scale) < tolerance


def assert_all_near(forces: dict[str, Any], wanted: np.ndarray, tolerance: float) -> None:
    for force in forces.values():
        assert_near(force.forces, wanted, tolerance)
        text = force.residuals
        for residual in (text.closure, text.closure_rate, text.closure_acceleration, force.balance):
            assert np.max(residual) < max(CLOSED, tolerance)
    assert_near(forces["MuJoCo"].forces, forces["Pinocchio"].forces, EXACT)
