"""Legs by the keys of Gepetto's files: ball and universal joints that a `robot.yaml` puts in place of a URDF's hinges.

The keys are those of Gepetto/example-parallel-robots: its cassie_like (two rods of two halves,
welded in the middle, all four ends SPHERICAL) and battobot_6d (UJOINT_ZY, UJOINT_YZ and SPHERICAL
ends); the leg is made up here. Pinocchio moves it by its own URDF reader, with the joints exchanged
as that repository's `completeRobotLoader` does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extras import extra
from scipy.spatial.transform import Rotation

from tauloop import Model
from tauloop.formats.urdf.reader import load_urdf
from tauloop.kinematics import random_states

pin = extra("pinocchio")

#: Loops closed, and forces that agree, to rounding of the solvers on both sides (m, rad; of the
#: largest force).
CLOSED, AGREEMENT = 1e-9, 1e-9
STATES = 6
MOTORS = ["motor_hip1", "motor_hip2", "motor_tigh", "motor_knee", "motor_ankle"]
BALLS = ["spherical_foot", "spherical_shin", "spherical_knee", "spherical_hip"]
SIDE = f"""closed_loop: [['closedloop1_B', 'closedloop1_A'], ['closedloop2_A', 'closedloop2_B']]
type: ['6d', '6D']
name_mot: {MOTORS}
joint_name: {BALLS}
"""
#: Types of the four ends; what is left free beside the five motors: the spin of a rod between two
#: balls.
TYPES = {
    "cassie_like": (["SPHERICAL"] * 4, 2),
    "battobot_6d": (["SPHERICAL", "UJOINT_ZY", "UJOINT_YZ", "SPHERICAL"], 0),
}
#: Joint, parent, child, where the joint is at zero (m), mass of the child (kg).
TREE = (
    ("motor_hip1", "pelvis", "hip_pitch", (0.0, 0.1, 0.0), 0.4),
    ("motor_hip2", "hip_pitch", "hip_roll", (0.02, 0.1, -0.04), 1.3),
    ("motor_tigh", "hip_roll", "tigh", (0.0, 0.12, -0.1), 5.0),
    ("motor_knee", "tigh", "shin", (0.12, 0.12, -0.15), 3.7),
    ("free_knee", "shin", "tarsus", (0.05, 0.12, -0.6), 1.9),
    ("motor_ankle", "tarsus", "crank", (-0.1, 0.15, -0.7), 0.04),
    ("free_ankle", "tarsus", "foot", (-0.3, 0.12, -0.8), 0.2),
    ("spherical_shin", "crank", "a1", (-0.16, 0.17, -0.72), 0.08),
    ("spherical_foot", "foot", "a2", (-0.33, 0.16, -0.75), 0.09),
    ("spherical_knee", "tarsus", "b1", (0.1, 0.1, -0.55), 0.12),
    ("spherical_hip", "tigh", "b2", (0.0, 0.09, -0.16), 0.11),
)
#: The hips turn about z and x, all other hinges about y.
AXES = {"motor_hip1": (0, 0, 1), "motor_hip2": (1, 0, 0)}
#: Frames of the weld in the middle of each rod: link and the ends between which it lies.
MIDDLES = {
    "closedloop1_A": ("a1", "spherical_shin", "spherical_foot"),
    "closedloop1_B": ("a2", "spherical_shin", "spherical_foot"),
    "closedloop2_A": ("b1", "spherical_knee", "spherical_hip"),
    "closedloop2_B": ("b2", "spherical_knee", "spherical_hip"),
}


def leg() -> str:
    """A URDF by where its links are at zero: frames turned at random, loops closed but for one half, 0.3 rad off."""
    random = np.random.default_rng(5)
    at = {"pelvis": (np.eye(3), np.zeros(3))}
    for _, _, child, place, _ in TREE:
        at[child] = (Rotation.random(rng=random).as_matrix(), np.array(place))
    where = {name: np.array(place) for name, _, _, place, _ in TREE}
    turn = Rotation.random(rng=random).as_matrix()
    frames = {
        name: (link, turn, 0.5 * (where[case] + where[two]))
        for name, (link, case, two) in MIDDLES.items()
    }
    skewed = Rotation.from_rotvec([0.1, 0.25, -0.15]).as_matrix()
    parts = ['<link name="pelvis"/>']
    for name, parent, child, _, mass in TREE:
        R, p = at[child]
        R_parent, p_parent = at[parent]
        axis = R.T @ np.array(AXES.get(name, (0, 1, 0)), dtype=float)
        begins = R @ skewed if name == "spherical_hip" else R
        parts.append(
            _joint(
                name,
                "revolute",
                parent,
                child,
                R_parent.T @ begins,
                R_parent.T @ (p - p_parent),
                axis,
            )
        )
        x, y, z = random.uniform(-0.05, 0.05, size=3)
        a, b, c = 1e-3 * random.uniform(1.0, 1.5, size=3)
        parts.append(
            f'<link name="{child}"><inertial><origin xyz="{x} {y} {z}"/><mass value="{mass}"/><inertia ixx="{a}" '
            f'iyy="{b}" izz="{c}" ixy="1e-4" ixz="0" iyz="-1e-4"/></inertial></link>'
        )
    for name, (link, R, p) in frames.items():
        R_link, p_link = at[link]
        parts.append(
            _joint(
                f"{name}_frame",
                "fixed",
                link,
                name,
                R_link.T @ R,
                R_link.T @ (p - p_link),
                np.zeros(3),
            )
        )
        parts.append(
            f'<link name="{name}"><inertial><mass value="1e-9"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" '
            'izz="0"/></inertial></link>'
        )
    return "<robot name='onshape'>" + "\n".join(parts) + "</robot>"


def _joint(
    name: str, kind: str, parent: str, child: str, R: np.ndarray, p: np.ndarray, axis: np.ndarray
) -> str:
    texts = [
        " ".join(f"{x:.17g}" for x in row)
        for row in (p, Rotation.from_matrix(R).as_euler("xyz"), axis)
    ]
    return (
        f'<joint name="{name}" type="{kind}"><origin xyz="{texts[0]}" rpy="{texts[1]}"/><axis xyz="{texts[2]}"/>'
        f'<parent link="{parent}"/><child link="{child}"/><limit effort="1" velocity="20"/></joint>'
    )


def as_its_loader_does(path: Path, types: dict[str, str]) -> Any:
    """A Pinocchio model with joints of other kinds in the same places; universal joints are two hinges."""
    old, new = pin.buildModelFromUrdf(str(path)), pin.Model()
    last = {0: 0}
    for k in range(1, old.njoints):
        parent, place, kind = (
            last[old.parents[k]],
            old.jointPlacements[k],
            types.get(old.names[k], ""),
        )
        joint = old.joints[k]
        if kind == "SPHERICAL":
            joint = pin.JointModelSpherical()
        elif kind:
            first, joint = (getattr(pin, f"JointModelR{letter}")() for letter in kind[-2:])
            parent, place = (
                new.addJoint(parent, first, place, f"{old.names[k]} first"),
                pin.SE3.Identity(),
            )
        last[k] = new.addJoint(parent, joint, place, old.names[k])
        new.appendBodyToJoint(last[k], old.inertias[k], pin.SE3.Identity())
    for frame in old.frames:
        if frame.type == pin.FrameType.BODY:
            new.addFrame(
                pin.Frame(frame.name, last[frame.parentJoint], frame.placement, frame.type), False
            )
    return new


def theirs(other: Any, model: Model, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Their coordinates, and the matrix from our velocities to theirs, whose balls turn in the child's frame."""
    names, velocities = model.topology.coordinate_names, model.topology.velocity_names
    at, G = pin.neutral(other), np.zeros((other.nv, len(velocities)))
    for k in range(1, other.njoints):
        joint, name = other.joints[k], other.names[k]
        rows, place = (
            slice(joint.idx_v, joint.idx_v + joint.nv),
            slice(joint.idx_q, joint.idx_q + joint.nq),
        )
        if joint.nv == 3:
            turn = Rotation.from_quat([q[names.index(f"{name}.q{x}")] for x in "xyzw"])
            at[place] = turn.as_quat()
            first = velocities.index(f"{name}.wx")
            G[rows, first : first + 3] = turn.as_matrix().T
            continue
        ours = name.replace(" ", ".") if name.endswith(" first") else name
        ours = ours if ours in names else f"{ours}.second"
        angle = q[names.index(ours)]
        at[place] = [angle] if joint.nq == 1 else [np.cos(angle), np.sin(angle)]
        G[rows, velocities.index(ours)] = 1.0
    return at, G


@pytest.mark.parametrize("name", TYPES)
def test_legs_of_gepettos_keys_close_and_are_driven_as_its_loader_has_them(
    tmp_path: Path, name: str
) -> None:
    types, spins = TYPES[name]
    path = tmp_path / "robot.urdf"
    path.write_text(leg(), encoding="utf-8")
    (tmp_path / "robot.yaml").write_text(f"{SIDE}joint_type: {types}\n", encoding="utf-8")
    model = Model(load_urdf(path, tmp_path / "robot.yaml"))
    assembly = model.assembly
    assert assembly.findings == ()
    assert (len(assembly.loops.names), assembly.rank) == (12, 12)
    assert (assembly.mobility, len(assembly.passive)) == (5 + spins, spins)
    other = as_its_loader_does(path, dict(zip(BALLS, types, strict=True)))
    states = random_states(model, STATES, np.random.default_rng(2))
    entry, A = model.actuators.ports, assembly.loops.transmission
    wanted = states.a @ A[list(assembly.leading)].T
    forces = model.hybrid.inverse_dynamics(
        entry.at(states.q), entry.rates(states.v), wanted, start=states.q
    ).forces
    data = other.createData()
    for q, v, a, force in zip(
        forces.state.q, forces.state.v, forces.state.a, forces.force, strict=True
    ):
        at, G = theirs(other, model, q)
        tau = np.array(pin.rnea(other, data, at, G @ v, G @ a))
        pin.computeJointJacobians(other, data, at)
        pin.updateFramePlacements(other, data)
        rows = []
        for k in (1, 2):
            ends = [other.getFrameId(f"closedloop{k}_{end}") for end in "AB"]
            gap = data.oMf[ends[0]].actInv(data.oMf[ends[1]])
            assert np.abs(gap.homogeneous - np.eye(4)).max() < CLOSED
            single, two = (
                pin.getFrameJacobian(other, data, end, pin.ReferenceFrame.LOCAL) for end in ends
            )
            rows.append(single - two)
        K = np.concatenate(rows)
        assert np.abs(K @ (G @ v)).max() < CLOSED
        S = np.zeros((other.nv, len(MOTORS)))
        for i, motor in enumerate(MOTORS):
            S[other.joints[other.getJointId(motor)].idx_v, i] = 1.0
        solution, *_ = np.linalg.lstsq(np.hstack([S, K.T]), tau, rcond=None)
        largest = np.abs(tau).max()
        assert np.abs(np.hstack([S, K.T]) @ solution - tau).max() < AGREEMENT * largest
        assert np.abs(solution[: len(MOTORS)] - force).max() < AGREEMENT * largest
