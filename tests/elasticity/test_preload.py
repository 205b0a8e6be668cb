"""Geometric stiffness against the second derivative of an independent nonlinear potential."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from tauloop.common.errors import InputError
from tauloop.elasticity.frame.assembled import AssembledStructure, assemble
from tauloop.elasticity.frame.beams import BeamProperties
from tauloop.elasticity.frame.preload import DeadLoad, geometric_stiffness
from tauloop.elasticity.frame.reduction import BALL, reduced_beam
from tauloop.elasticity.frame.statics import axial_forces, end_loads, gravity_load
from tauloop.elasticity.frame.structure import (
    ElasticJoint,
    RigidBody,
    RigidLink,
    Structure,
    beam_axes,
    beam_element,
    spatial_inertia,
)

#: Two routes to the same second derivative; forces are large, so that it is half of the stiffness.
AGREEMENT = 1e-9
GRAVITY = np.array([0.3, -0.2, -9.81])
FORCE = np.array([4e4, -7e4, 5e4])
ELBOW, WRIST, PLATE = (
    np.array([0.1, 0.0, 0.2]),
    np.array([0.5, 0.1, 0.3]),
    np.array([0.6, 0.5, 0.9]),
)
TOOL = PLATE + np.array([0.1, -0.05, 0.2])
MASSES = {"arm": 8.0, "hand": 5.0, "plate": 12.0}
CENTERS = {"arm": [0.2, 0.1, 0.0], "hand": [0.0, 0.1, 0.1], "plate": [0.05, 0.02, -0.03]}
ORIGINS = {"arm": ELBOW, "hand": WRIST + np.array([0.05, 0.0, 0.02]), "plate": PLATE}
AXES = {
    "elbow": np.array([[0.0, 1.0, 0.0]]),
    "wrist": np.array([[1.0, 0.0, 0.0], [0.0, 0.6, 0.8]]),
}
SPRINGS = {"elbow": np.array([3e5]), "wrist": np.array([2e5, 1e5])}
#: Rods between points of bodies, given in the base frame at the pose.
RODS = [
    ("base", [0.0, 0.9, 0.1], "plate", [0.5, 0.6, 0.9]),
    ("base", [1.2, 0.4, 0.0], "plate", [0.7, 0.5, 0.8]),
    ("base", [0.5, 1.3, 0.6], "plate", [0.6, 0.7, 1.0]),
    ("arm", [0.4, 0.2, 0.3], "plate", [0.6, 0.4, 0.8]),
    ("hand", [0.6, 0.1, 0.4], "plate", [0.55, 0.4, 0.95]),
    ("hand", [0.5, -0.1, 0.4], "plate", [0.7, 0.45, 1.0]),
    ("base", [0.0, 0.0, 1.5], "hand", [0.5, 0.1, 0.45]),
]


def loaded_structure() -> AssembledStructure:
    """Return an arm on a hinge, a hand on two hinges, and a plate on rods from all of them."""
    bodies = tuple(
        RigidBody(
            name=name,
            origin=ORIGINS[name],
            inertia=spatial_inertia(mass, mass * np.array(CENTERS[name]), np.eye(3)),
        )
        for name, mass in MASSES.items()
    )
    joints = tuple(
        ElasticJoint(
            name=name,
            parent=parent,
            child=child,
            point=point,
            motion=np.concatenate([np.zeros_like(AXES[name]), AXES[name]], axis=1).T,
            stiffness=np.diag(SPRINGS[name]),
        )
        for name, parent, child, point in (
            ("elbow", "base", "arm", ELBOW),
            ("wrist", "arm", "hand", WRIST),
        )
    )
    section = BeamProperties(axial=2e6, torsional=1.0, bending_y=1e3, bending_z=1e3)
    elements = []
    for number, (near, start, far, end) in enumerate(RODS):
        ends = np.array(start), np.array(end)
        length = np.array([np.linalg.norm(ends[1] - ends[0])])
        beam = reduced_beam(length, section, released=(BALL, BALL), modes=0)
        axes = beam_axes(*ends, np.array([0.3, -0.5, 0.81]))
        elements.append(beam_element(f"rod{number}", beam, (near, ends[0]), (far, ends[1]), axes))
    return assemble(Structure(bodies=bodies, joints=joints, elements=tuple(elements)))


def rotation(vector: ca.SX) -> ca.SX:
    """Return the rotation exp(S(v)) to third order, of which second derivatives at zero are exact."""
    S = ca.skew(vector)
    return ca.SX.eye(3) + S + S @ S / 2 + S @ S @ S / 6


def potential_hessian(axial: dict[str, np.ndarray], torques: list[np.ndarray]) -> np.ndarray:
    """Return the second derivative of the energy of rods, springs and dead loads at the pose."""
    q = ca.SX.sym("q", 9)
    arm = rotation(AXES["elbow"].T @ q[0:1])
    hand = arm @ rotation(AXES["wrist"].T @ q[1:3])
    wrist = ELBOW + arm @ (WRIST - ELBOW)
    plate = rotation(q[6:9])

    def placed(body: str, point: object) -> ca.SX:
        x = np.array(point)
        if body == "arm":
            return ELBOW + arm @ (x - ELBOW)
        if body == "hand":
            return wrist + hand @ (x - WRIST)
        if body == "plate":
            return PLATE + q[3:6] + plate @ (x - PLATE)
        return ca.SX(x)

    energy = -ca.dot(ca.SX(FORCE), placed("plate", TOOL))
    for name, mass in MASSES.items():
        energy -= mass * ca.dot(ca.SX(GRAVITY), placed(name, ORIGINS[name] + CENTERS[name]))
    for number, (near, start, far, end) in enumerate(RODS):
        length = float(np.linalg.norm(np.subtract(end, start)))
        stretch = ca.norm_2(placed(far, end) - placed(near, start)) - length
        force = float(axial[f"rod{number}"][0])
        energy += force * stretch + 2e6 / length * stretch**2 / 2
    energy += float(torques[0][0]) * q[0] + SPRINGS["elbow"][0] * q[0] ** 2 / 2
    for i in range(2):
        energy += float(torques[1][i]) * q[1 + i] + SPRINGS["wrist"][i] * q[1 + i] ** 2 / 2
    H, g = ca.hessian(energy, q)
    values = ca.Function("values", [q], [H, g])(np.zeros(9))
    assert np.abs(np.array(values[1])).max() < 1e-6 * np.abs(FORCE).max()
    return np.array(values[0])


def test_stiffness_under_load_is_the_second_derivative_of_the_potential() -> None:
    assembled = loaded_structure()
    load = gravity_load(assembled, GRAVITY)
    wrench = np.concatenate([FORCE, np.zeros(3)])
    load = load + (np.swapaxes(assembled.point_motion("plate", TOOL), -1, -2) @ wrench)
    x = np.linalg.solve(assembled.stiffness, load[..., None])[..., 0]
    axial = axial_forces(assembled, end_loads(assembled, x, GRAVITY))
    torques = [
        SPRINGS[joint.name] * (motion[0] @ x[0])
        for joint, motion in zip(assembled.structure.joints, assembled.joint_motion, strict=True)
    ]
    expected = potential_hessian(axial, torques)
    dead = (DeadLoad(body="plate", point=TOOL, wrench=wrench),)
    geometric = geometric_stiffness(assembled, x, GRAVITY, dead)[0]
    scale = np.abs(expected).max()
    assert np.abs(assembled.stiffness[0] + geometric - expected).max() <= AGREEMENT * scale
    # The loads matter in this test.
    assert np.abs(geometric).max() > 0.03 * scale


def test_closed_loops_of_rigid_joints_are_refused() -> None:
    body = RigidBody(name="bar", origin=np.array([1.0, 0.0, 0.0]))
    spring = ElasticJoint(
        name="spring",
        parent="base",
        child="bar",
        point=np.zeros(3),
        motion=np.eye(6),
        stiffness=1e3 * np.eye(6),
    )
    link = RigidLink(
        name="link", bodies=("base", "bar"), points=(np.zeros(3), np.array([0.0, 1.0, 0.0]))
    )
    assembled = assemble(Structure(bodies=(body,), joints=(spring,), links=(link,)))
    with pytest.raises(InputError, match="1 rigid constraints close loops"):
        geometric_stiffness(assembled, np.zeros((1, assembled.size)), GRAVITY)
