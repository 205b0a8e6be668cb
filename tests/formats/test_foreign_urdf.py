"""What the URDFs of others hold: other joint types, cut elements, a link called base, and what must not be passed over.

Oracles: Pinocchio's reader with the joints put in its place as Gepetto's loader does, and, for
``<constraint>``, the conditions of the solver of its authors (HIT-Robotics/robot_model,
`fixed_constraint.cpp`) written out in NumPy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extras import extra
from scipy.spatial.transform import Rotation
from tree_numbers import OpenTree

from tauloop import Model
from tauloop.common.errors import DescriptionError
from tauloop.formats import load
from tauloop.formats.options import ImportOptions
from tauloop.formats.urdf.reader import load_urdf
from tauloop.formats.urdf.writer import to_urdf
from tauloop.kinematics import random_states
from tauloop.mechanism.model import Mechanism

CASES = Path(__file__).parents[1] / "cases"
#: Two programs sum the same products of some twenty factors of size one.
AGREEMENT = 1e-12
#: Loops of an assembled state, m or pure number.
CLOSED = 1e-9
#: A rank by singular values: the smallest that counts is 1e-3 here, the largest that does not is at
#: differences' 1e-7.
RANK = 1e-5
STATES = 5


def link(name: str, k: int = 1) -> str:
    """A link with all ten inertial figures."""
    inertia = f'ixx="{0.2 * k}" iyy="{0.3 * k}" izz="{0.4 * k}" ixy="0.02" ixz="-0.03" iyz="0.01"'
    origin = f'<origin xyz="{0.1 * k} -0.05 0.2" rpy="0.3 0 {0.2 * k}"/>'
    return f'<link name="{name}"><inertial>{origin}<mass value="{k}"/><inertia {inertia}/></inertial></link>'


def joint(name: str, parent: str, child: str, inside: str = "", kind: str = "continuous") -> str:
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inside}</joint>'


def robot(*elements: str, head: str = "") -> str:
    """One element a line, the first on line 2."""
    return "\n".join([f'<robot name="r"{head}>', *elements, "</robot>"])


def read(folder: Path, text: str, side: str | None = None, **options: Any) -> Mechanism:
    (folder / "r.urdf").write_text(text, encoding="utf-8")
    if side is not None:
        (folder / "side.yaml").write_text(side, encoding="utf-8")
    return load(
        folder / "r.urdf",
        None if side is None else folder / "side.yaml",
        options=ImportOptions(**options),
    )


def problems(
    folder: Path, text: str, side: str | None = None
) -> list[tuple[str, str, str, int | None]]:
    with pytest.raises(DescriptionError) as caught:
        read(folder, text, side)
    return [(p.where, p.what, p.remedy, p.line) for p in caught.value.problems]


# Joints of other kinds by Gepetto's robot.yaml

BENT = '<origin xyz="0.3 0.1 -0.2" rpy="0.4 -0.7 1.1"/><axis xyz="0 1 0"/>'
CHAIN = robot(
    '<link name="ground"/>',
    joint(
        "one",
        "ground",
        "a",
        BENT + '<limit lower="-1" upper="1" effort="5" velocity="9"/><dynamics damping="2"/>',
        "revolute",
    ),
    link("a"),
    joint("two", "a", "b", BENT),
    link("b", 2),
    joint("three", "b", "c", BENT),
    link("c", 3),
    joint("four", "c", "d", BENT),
    link("d", 4),
)


def as_gepetto_loads(path: Path, names: list[str], types: list[str]) -> Any:
    """A Pinocchio model made over as `completeRobotLoader` does: joints of other kinds in the same places."""
    pin = extra("pinocchio")
    old, new, held = pin.buildModelFromUrdf(str(path)), pin.Model(), []
    for k in range(1, old.njoints):
        place, name = old.jointPlacements[k], old.names[k]
        parent = next(
            i for i in range(new.njoints) if new.names[i].split("+")[0] == old.names[old.parents[k]]
        )
        kind = dict(zip(names, types, strict=True)).get(name, "")
        if kind == "SPHERICAL":
            number = new.addJoint(parent, pin.JointModelSpherical(), place, name)
        elif kind.startswith("UJOINT"):
            first, second = (getattr(pin, f"JointModelR{letter}")() for letter in kind[-2:])
            middle = new.addJoint(parent, first, place, "first of " + name)
            new.addJointFrame(middle)
            number = new.addJoint(middle, second, pin.SE3.Identity(), name)
        else:
            number = new.addJoint(parent, old.joints[k], place, name)
            held += [number] if kind == "FIXED" else []
        new.addJointFrame(number)
        new.appendBodyToJoint(number, old.inertias[k], pin.SE3.Identity())
        new.addFrame(pin.Frame("abcd"[k - 1], number, pin.SE3.Identity(), pin.FrameType.OP_FRAME))
    return pin.buildReducedModel(new, held, pin.neutral(new))


def test_joints_of_other_kinds_move_as_those_of_gepettos_loader(tmp_path: Path) -> None:
    pin = extra("pinocchio")
    names, types = ["one", "two", "three"], ["SPHERICAL", "UJOINT_ZX", "FIXED"]
    mechanism = read(
        tmp_path, CHAIN, f"name_mot: [four]\njoint_name: {names}\njoint_type: {types}\n"
    )
    assert [j.kind for j in mechanism.joints] == ["spherical", "universal", "fixed", "revolute"]
    assert [actuator.name for actuator in mechanism.actuators] == ["four"]
    assert mechanism.joint("two").axes == ("z", "x")
    assert all(f.friction is None and f.lower == -np.inf for f in mechanism.joint("one").freedoms)
    for note in ("one: SPHERICAL", "two: UJOINT_ZX", "three: FIXED"):
        assert f"- {note} by the side file" in mechanism.description
    tree, other = OpenTree(mechanism), as_gepetto_loads(tmp_path / "r.urdf", names, types)
    data, random = other.createData(), np.random.default_rng(1)
    assert tree.shape.velocity_names == (
        "one.wx",
        "one.wy",
        "one.wz",
        "two.first",
        "two.second",
        "four",
    )
    for _ in range(STATES):
        turn, (first, second, last) = Rotation.random(rng=random), random.uniform(-2, 2, size=3)
        q = np.concatenate([turn.as_quat(scalar_first=True), [first, second, last]])
        theirs = np.concatenate([turn.as_quat(), [first, second, np.cos(last), np.sin(last)]])
        v, a = random.uniform(-1, 1, size=(2, 6))
        mine, poses = tree(q, v, a)
        inward = np.eye(6)  # their angular velocity of a ball joint is in the child's frame
        inward[:3, :3] = turn.as_matrix().T
        tau = inward.T @ pin.rnea(other, data, theirs, inward @ v, inward @ a)
        pin.framesForwardKinematics(other, data, theirs)
        assert np.abs(mine - tau).max() < AGREEMENT * np.abs(tau).max()
        for body, T in poses.items():
            assert np.abs(T - data.oMf[other.getFrameId(body)].homogeneous).max() < AGREEMENT, body


def test_cardan_is_the_older_name_of_a_universal_joint(tmp_path: Path) -> None:
    mechanism = read(tmp_path, CHAIN, "name_mot: [four]\njoint_name: [two]\njoint_type: [CARDAN]\n")
    assert (mechanism.joint("two").kind, mechanism.joint("two").axes) == ("universal", ("x", "y"))


@pytest.mark.parametrize(
    ("side", "expected"),
    [
        ("joint_name: [one]", [("joint_name", 1)]),
        ("joint_name: [one]\njoint_type: []", [("joint_type", 2)]),
        ("joint_name: [one]\njoint_type: [BALL]", [("joint_type[0]", 2)]),
        (
            "joint_name: [one, one, ten]\njoint_type: [FIXED, FIXED, FIXED]",
            [("joint_name[1]", 1), ("joint_name[2]", 1)],
        ),
        ("joint_name: [one]\njoint_type: [UJOINT_XX]", [("joint_type[0]", 2)]),
        ("name_mot: [one]\njoint_name: [one]\njoint_type: [SPHERICAL]", [("name_mot[0]", 1)]),
    ],
)
def test_wrong_joint_types_are_refused(
    tmp_path: Path, side: str, expected: list[tuple[str, int]]
) -> None:
    assert [(where, line) for where, _, _, line in problems(tmp_path, CHAIN, side)] == expected


# Cut elements

FRAMES = (
    '<parent link="b"/><parent_origin xyz="0.2 0.1 0" rpy="0.3 0.5 -0.2"/>',
    '<child link="e"/><child_origin xyz="-0.1 0.15 0.05" rpy="-0.6 0.1 0.4"/>',
)
#: Type, axes, and how many of the six conditions are left.
CUTS = {
    "link": ("", 6),
    "spherical_joint": ("", 3),
    "revolute": ('<parent_axis xyz="0.6 0 -0.8"/>', 5),
    "prismatic_joint": ('<parent_axis xyz="0 2 0"/>', 5),
    "universal": ('<parent_axis xyz="0 0.6 0.8"/><child_axis xyz="1 0 0"/>', 4),
}


def two_chains(kind: str, axes: str) -> str:
    """Two chains of many freedoms that a cut element joins."""
    legs = []
    for names, at in (("ab", "0 0 0"), ("de", "0.4 0.1 0.2")):
        legs += [joint(f"fly_{names[0]}", "ground", names[0], f'<origin xyz="{at}"/>', "floating")]
        legs += [
            link(names[0]),
            joint(f"turn_{names[1]}", names[0], names[1], BENT),
            link(names[1], 2),
        ]
    return robot(
        '<link name="ground"/>',
        *legs,
        f'<constraint name="cut" type="{kind}">{"".join(FRAMES)}{axes}</constraint>',
    )


def conditions(kind: str, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """What is zero: projections of [p_A - p_B; vee(R - R^T) / 2], R = R_A^T R_B (their `FixedConstraint::h_full`)."""
    R, gap = A[:3, :3].T @ B[:3, :3], A[:3, 3] - B[:3, 3]
    turned = 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    if kind == "revolute":  # their `RevoluteJointConstraint::projection`
        axis = np.array([0.6, 0.0, -0.8])
        first = np.cross(axis, [1.0, 0.0, 0.0])
        first /= np.linalg.norm(first)
        return np.concatenate([gap, [first @ turned, np.cross(axis, first) @ turned]])
    if kind == "prismatic_joint":
        return np.concatenate([(A[:3, :3].T @ gap)[[0, 2]], turned])
    if kind == "universal":
        return np.append(gap, A[:3, :3] @ [0.0, 0.6, 0.8] @ B[:3, 0])
    return gap if kind == "spherical_joint" else np.concatenate([gap, turned])


def placed(xyz: list[float], rpy: list[float]) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.from_euler("xyz", rpy).as_matrix(), xyz
    return T


@pytest.mark.parametrize("kind", CUTS)
def test_a_cut_element_leaves_what_its_authors_solver_leaves(tmp_path: Path, kind: str) -> None:
    axes, count = CUTS[kind]
    mechanism = read(tmp_path, two_chains(kind, axes))
    assert "not used" not in mechanism.description
    model = Model(mechanism)
    assert model.assembly.rank == count
    tree = OpenTree(mechanism)
    zero = np.zeros(tree.shape.n_v)
    frames = placed([0.2, 0.1, 0.0], [0.3, 0.5, -0.2]), placed([-0.1, 0.15, 0.05], [-0.6, 0.1, 0.4])

    def h(q: np.ndarray) -> np.ndarray:
        _, poses = tree(q, zero, zero)
        return conditions(kind, poses["b"] @ frames[0], poses["e"] @ frames[1])

    states = model.assembly.states[:STATES]
    _, K = model.assembly.loops.residuals(states)
    for q, rows in zip(states, K, strict=True):
        assert np.abs(h(q)).max() < CLOSED
        free = np.linalg.svd(rows)[2][count:].T
        for direction in free.T:  # every motion that our equations allow keeps theirs
            steps = [1e-5 * direction, -1e-5 * direction]
            ahead, behind = (h(_moved(model, q, step)) for step in steps)
            assert np.abs(ahead - behind).max() / 2e-5 < RANK


def _moved(model: Model, q: np.ndarray, step: np.ndarray) -> np.ndarray:
    from tauloop.equations.topology import integrate

    return integrate(model.topology, q[None], step[None])[0]


def test_the_case_with_a_constraint_is_read_with_its_loop(tmp_path: Path) -> None:
    mechanism = load(CASES / "constraint.urdf")
    assert [j.name for j in mechanism.joints if j.is_cut] == ["loop1"]
    assert "- loop1: there is no <parent_axis>, so the axis is x" in mechanism.description
    # hinges about z and about x between the same two links leave no freedom
    assert Model(mechanism).assembly.mobility == 0
    text = (
        (CASES / "constraint.urdf")
        .read_text()
        .replace(
            '"revolute"><parent link="base"/><parent_o', '"hinge"><parent link="base"/><parent_o'
        )
    )
    ((where, what, _, _),) = problems(tmp_path, text)
    assert (where, what) == ("loop1", "'hinge' is not a type of constraint")


# What ties links together and is not read is refused; what is not URDF is named


@pytest.mark.parametrize(
    ("element", "where", "what"),
    [
        (
            "<drake:linear_bushing_rpy/>",
            "drake:linear_bushing_rpy",
            "<drake:linear_bushing_rpy> is not supported",
        ),
        ('<drake:joint name="ball" type="ball"/>', "ball", "<drake:joint> is not supported"),
        (
            "<drake:weld_constraint/>",
            "drake:weld_constraint",
            "<drake:weld_constraint> is not supported",
        ),
        ('<include filename="hand.urdf"/>', "include", "<include> is not supported"),
        (
            '<group><link name="z"/></group>',
            "group",
            "<group> contains links or joints, which are only read at the top level",
        ),
    ],
)
def test_an_element_that_ties_links_and_is_not_read_is_refused(
    tmp_path: Path, element: str, where: str, what: str
) -> None:
    text = CHAIN.replace("</robot>", element + "</robot>").replace(
        'name="r"', 'name="r" xmlns:drake="d"'
    )
    refusals = problems(tmp_path, text)
    assert [(w, x) for w, x, _, _ in refusals] == [(where, what)]


def test_parts_that_are_there_twice_and_losses_below_zero_are_refused(tmp_path: Path) -> None:
    text = CHAIN.replace('damping="2"', 'damping="-2" friction="-1"')
    assert [what for _, what, _, _ in problems(tmp_path, text)] == [
        "damping is -2",
        "friction is -1",
    ]
    twice = CHAIN.replace("</inertial></link>", '<mass value="9"/></inertial></link>', 1)
    twice = twice.replace(
        'name="two" type="continuous">', 'name="two" type="continuous"><origin xyz="1 0 0"/>'
    )
    refusals = [(where, what) for where, what, _, _ in problems(tmp_path, twice)]
    assert refusals == [("a", "has 2 elements <mass>"), ("two", "has 2 elements <origin>")]
    listed = read(
        tmp_path,
        CHAIN.replace("</robot>", '<ros2_control><joint name="one"/></ros2_control></robot>'),
    )
    assert "not used: ros2_control (1)" in listed.description


def test_an_sdf_is_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text('<sdf version="1.9"><model name="m"/></sdf>')
    with pytest.raises(DescriptionError) as caught:
        load(tmp_path / "r.xml")
    (problem,) = caught.value.problems
    assert problem.what == "the root element is <sdf>, not <robot>"
    assert "an SDF (Gazebo) file; name it NAME.sdf" in problem.remedy


def test_an_expanded_xacro_is_a_urdf_by_any_name(tmp_path: Path) -> None:
    (tmp_path / "r.xacro").write_text(
        CHAIN.replace('name="r"', 'name="r" xmlns:xacro="http://ros.org/wiki/xacro"')
    )
    assert [body.name for body in load(tmp_path / "r.xacro").bodies] == ["a", "b", "c", "d"]


def test_attributes_that_are_not_used_are_listed(tmp_path: Path) -> None:
    text = CHAIN.replace('effort="5"', 'effort="5" jerk="9"').replace(
        'damping="2"', 'damping="2" spring_stiffness="7"'
    )
    note = "- attributes not used: jerk of limit (1), spring_stiffness of dynamics (1)"
    assert note in read(tmp_path, text).description


def test_a_quaternion_in_an_origin_is_read(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    turns = [
        Rotation.random(rng=random),
        Rotation.from_euler("y", 90, degrees=True),
        Rotation.from_euler("z", 180, degrees=True),
    ]
    for turn in turns:
        quaternion = " ".join(f"{part:.16g}" for part in turn.as_quat())
        origin = f'<origin xyz="1 2 3" quat_xyzw="{quaternion}"/><axis xyz="0 0 1"/>'
        tree = OpenTree(
            read(
                tmp_path,
                robot('<link name="ground"/>', joint("j", "ground", "a", origin), link("a")),
            )
        )
        _, poses = tree(np.zeros(1), np.zeros(1), np.zeros(1))
        assert np.abs(poses["a"][:3, :3] - turn.as_matrix()).max() < AGREEMENT
    wrong = robot(
        '<link name="ground"/>',
        joint("j", "ground", "a", '<origin quat_xyzw="0 0 0 2" rpy="0 0 0"/>'),
        link("a"),
    )
    assert [what for _, what, _, _ in problems(tmp_path, wrong)] == [
        "has both rpy and quat_xyzw",
        "the quaternion has length 2",
    ]


# Names, ends and shapes of the robots that many have

ARM = robot(
    '<link name="base_link"/>',
    joint("base_link-base", "base_link", "base", '<origin rpy="0 0 3.141592653589793"/>', "fixed"),
    '<link name="base"/>',
    joint(
        "pan",
        "base_link",
        "upper",
        BENT + '<limit lower="-6" upper="6" effort="330" velocity="2"/>',
        "revolute",
    ),
    link("upper"),
    joint("lift", "upper", "fore", BENT),
    link("fore", 2),
    joint("fore-tool0", "fore", "tool0", BENT, "fixed"),
    '<link name="tool0"><visual/></link>',
    joint("fore-sensor", "fore", "sensor", "", "fixed"),
    '<link name="sensor"/>',
)


def test_a_link_called_base_is_not_the_immovable_one(tmp_path: Path) -> None:
    pin = extra("pinocchio")
    mechanism = read(tmp_path, ARM)
    assert [body.name for body in mechanism.bodies] == [
        "base_frame",
        "upper",
        "fore",
        "tool0",
        "sensor",
    ]
    for note in (
        "- the root link 'base_link' is the immovable base",
        "- link 'base' is renamed to 'base_frame'",
        "- tool0: it has a shape but no <inertial>, so it is massless",
        "- the platform is sensor, the last of the frames on its link: tool0, sensor",
    ):
        assert note in mechanism.description
    assert mechanism.platform.independent == ("pan", "lift")
    assert read(tmp_path, ARM, platform_body="tool0").platform.body == "tool0"
    side = "format: tauloop-urdf-side/1\nplatform: {body: tool0}\nclosed_loop: [[base, tool0]]\ntype: [3d]\n"
    (cut,) = (j for j in read(tmp_path, ARM, side).joints if j.is_cut)
    assert (cut.parent.body, cut.child.body) == ("base_frame", "tool0")
    tree, other = OpenTree(mechanism), pin.buildModelFromUrdf(str(tmp_path / "r.urdf"))
    data, random = other.createData(), np.random.default_rng(2)
    for _ in range(STATES):
        q, v, a = random.uniform(-2, 2, size=(3, 2))
        theirs = np.array([q[0], np.cos(q[1]), np.sin(q[1])])
        mine, poses = tree(q, v, a)
        tau = pin.rnea(other, data, theirs, v, a)
        assert np.abs(mine - tau).max() < AGREEMENT * np.abs(tau).max()
        pin.framesForwardKinematics(other, data, theirs)
        for body, name in (("base_frame", "base"), ("tool0", "tool0"), ("sensor", "sensor")):
            assert (
                np.abs(poses[body] - data.oMf[other.getFrameId(name)].homogeneous).max() < AGREEMENT
            )


def test_the_name_that_base_gets_is_free(tmp_path: Path) -> None:
    mechanism = read(tmp_path, ARM.replace('"sensor"', '"base_frame"'))
    assert [body.name for body in mechanism.bodies] == [
        "base_frame_",
        "upper",
        "fore",
        "tool0",
        "base_frame",
    ]


def test_a_fixed_joint_that_mimics_is_noted_and_one_of_multiplier_zero_is_held(
    tmp_path: Path,
) -> None:
    text = ARM.replace(
        '<joint name="fore-tool0" type="fixed">',
        '<joint name="fore-tool0" type="fixed"><mimic joint="pan"/>',
    )
    mechanism = read(tmp_path, text)
    assert mechanism.couplings == ()
    assert (
        "- fore_tool0: a fixed joint cannot follow another, so its <mimic> is omitted"
        in mechanism.description
    )
    text = ARM.replace(
        '<joint name="lift" type="continuous">',
        '<joint name="lift" type="continuous"><mimic joint="pan" multiplier="0" offset="0.3"/>',
    )
    mechanism = read(tmp_path, text)
    (coupling,) = mechanism.couplings
    assert ([name for name, _ in coupling.terms], mechanism.value(coupling.offset)) == (
        ["lift"],
        0.3,
    )
    assert [actuator.name for actuator in mechanism.actuators] == ["pan"]
    model = Model(mechanism)
    states = random_states(model, STATES, np.random.default_rng(0))
    held = model.topology.coordinate_names.index("lift")
    assert np.abs(states.q[:, held] - 0.3).max() < AGREEMENT


def test_a_side_file_without_provenance_holds_a_joint(tmp_path: Path) -> None:
    side = "format: tauloop-urdf-side/1\ncouplings:\n  clamp: {of: {two: 1}, offset: 30 deg}\n"
    mechanism = read(tmp_path, CHAIN, side)
    assert "- side.yaml states no provenance, so its values are chosen" in mechanism.description
    leaf = mechanism.parameters["clamp.offset"]
    assert (leaf.value, leaf.status, leaf.source) == (
        pytest.approx(np.pi / 6),
        "chosen",
        "side.yaml",
    )
    model = Model(mechanism)
    assert (model.assembly.mobility, [a.name for a in mechanism.actuators]) == (
        3,
        ["one", "three", "four"],
    )
    # the arm with its second joint welded at 30 degrees by Pinocchio; it has damping in its first
    # joint
    pin = extra("pinocchio")
    q, v, a = np.random.default_rng(3).uniform(-1, 1, size=(3, STATES, 3))
    force = model.actuators.inverse_dynamics(q, v, a).force - np.outer(2.0 * v[:, 0], [1, 0, 0])
    other = pin.buildModelFromUrdf(str(tmp_path / "r.urdf"))
    start = pin.integrate(other, pin.neutral(other), np.array([0.0, np.pi / 6, 0.0, 0.0]))
    welded = pin.buildReducedModel(other, [other.getJointId("two")], start)
    data = welded.createData()
    neutral = pin.neutral(welded)
    expected = [
        pin.rnea(welded, data, pin.integrate(welded, neutral, row), *rates)
        for row, *rates in zip(q, v, a, strict=True)
    ]
    assert np.abs(force - expected).max() < AGREEMENT * np.abs(expected).max()


# Gravity


def test_a_plain_urdf_has_the_gravity_of_urdf_and_says_so(tmp_path: Path) -> None:
    mechanism = read(tmp_path, ARM)
    assert [mechanism.value(g) for g in mechanism.gravity] == [0.0, 0.0, -9.81]
    leaf = mechanism.parameters["gravity[2]"]
    assert (leaf.status, leaf.source) == (
        "chosen",
        "convention of URDF; the file does not state it",
    )
    assert (
        "- gravity is 9.81 m/s^2 along -z, the convention of URDF; the file does not state it"
        in mechanism.description
    )


def test_gravity_and_platform_may_be_said_beside_it(tmp_path: Path) -> None:
    mechanism = read(tmp_path, ARM, gravity=(0.0, -9.81, 0.0), platform_body="tool0")
    assert [p.name for p in mechanism.parameters if p.group == "gravity"] == ["gravity[1]"]
    assert "gravity" not in mechanism.description
    assert mechanism.platform.body == "tool0"


# Welded links


def test_welded_links_have_ten_parameters_together(tmp_path: Path) -> None:
    pin = extra("pinocchio")
    text = robot(
        '<link name="world"/>',
        joint("plinth", "world", "foot", BENT, "fixed"),
        link("foot", 5),
        joint("one", "foot", "a", BENT),
        link("cover", 2),
        joint("a-cover", "a", "cover", BENT, "fixed"),
        link("a"),
        joint("cover-lid", "cover", "lid", BENT, "fixed"),
        link("lid", 3),
        joint("two", "lid", "b", BENT),
        '<link name="b"/>',
        joint("b-load", "b", "load", BENT, "fixed"),
        link("load", 4),
    )
    mechanism = read(tmp_path, text)
    model = Model(mechanism)
    assert {p.element for p in model.parameters} == {"a", "load"}
    assert len(model.parameters) == 20
    assert {p.name for p in mechanism.parameters if p.name.endswith("mass")} == {
        "a.mass",
        "load.mass",
    }
    assert mechanism.parameters["a.mass"].value == pytest.approx(6.0)
    assert mechanism.parameters["a.mass"].source == "r.urdf: cover, a, lid"
    for note in (
        "- a includes the inertia of the bodies welded to it: cover, lid",
        "- foot: welded to the base, so the inertia has no effect",
    ):
        assert note in mechanism.description
    # Pinocchio adds what is welded up as well
    tree, other = OpenTree(mechanism), pin.buildModelFromUrdf(str(tmp_path / "r.urdf"))
    data, random = other.createData(), np.random.default_rng(5)
    for _ in range(STATES):
        q, v, a = random.uniform(-2, 2, size=(3, 2))
        mine, _ = tree(q, v, a)
        tau = pin.rnea(other, data, np.ravel([[np.cos(x), np.sin(x)] for x in q]), v, a)
        assert np.abs(mine - tau).max() < AGREEMENT * np.abs(tau).max()


@pytest.mark.parametrize("name", ["five_bar", "delta"])
def test_what_is_written_has_its_loops_without_the_side_file(name: str, tmp_path: Path) -> None:
    """`<constraint>` out and in: the cuts of the side file, between the same places, and its mobility."""
    written = to_urdf(load(name), "meshes")
    urdf, side = tmp_path / "m.urdf", tmp_path / "side.yaml"
    urdf.write_text(written.text)
    side.write_text(written.side)
    alone, whole = load(urdf), load_urdf(urdf, side)
    cuts = [
        [(j.name, j.kind, j.parent, j.child) for j in machine.joints if j.is_cut]
        for machine in (alone, whole)
    ]
    assert cuts[0] == cuts[1]
    assert written.text.count("<constraint ") == len(cuts[0]) > 0
    assert Model(alone).assembly.mobility == Model(load(name)).assembly.mobility


def test_drakes_rotor_in_a_joint_of_a_urdf_is_sent_to_its_transmission(tmp_path: Path) -> None:
    """Drake reads it in the `<actuator>` of a `<transmission>` alone."""
    text = (
        '<robot name="m" xmlns:drake="d"><link name="b"/><link name="l"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="j" type="continuous"><parent link="b"/><child link="l"/>'
        '<drake:gear_ratio value="10"/></joint></robot>'
    )
    (tmp_path / "m.urdf").write_text(text)
    with pytest.raises(DescriptionError) as raised:
        load(tmp_path / "m.urdf")
    (problem,) = raised.value.problems
    assert problem.what == "<drake:gear_ratio> in a joint is not supported"
    assert "use its <actuator>" in problem.remedy


def test_the_length_of_an_axis_is_printed_with_the_digits_that_matter(tmp_path: Path) -> None:
    (tmp_path / "m.urdf").write_text(
        '<robot name="m"><link name="b"/><link name="l"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="j" type="continuous"><parent link="b"/><child link="l"/>'
        '<axis xyz="0 -0.70711 0.70711"/></joint></robot>'
    )
    assert (
        "j: the axis has length 1.000005 and is normalized" in load(tmp_path / "m.urdf").description
    )
