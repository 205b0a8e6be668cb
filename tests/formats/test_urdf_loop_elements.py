"""Loops of a URDF that Isaac Sim and Gazebo write, and the link ``world`` that Drake adds.

The four-bar is one that other elements close too; where frames are is worked out from the poses of
the file by hand.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import tauloop as tl
from tauloop import DescriptionError, load
from tauloop.formats.options import ImportOptions
from tauloop.formats.urdf.parts import LinkFrame
from tauloop.formats.urdf.tree import read_urdf_tree

INERTIAL = """<inertial><origin xyz="0.1 0 0"/><mass value="1"/>
<inertia ixx="0.001" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>"""
FOUR_BAR = f"""<robot name="four_bar">
<link name="base_link"/><link name="crank">{INERTIAL}</link><link name="coupler">{INERTIAL}</link>
<link name="rocker">{INERTIAL}</link>
<joint name="A" type="revolute"><parent link="base_link"/><child link="crank"/><origin rpy="0 -1.2 0"/>
<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="10" velocity="5"/></joint>
<joint name="B" type="continuous"><parent link="crank"/><child link="coupler"/><origin xyz="0.2 0 0" rpy="0 1.2 0"/>
<axis xyz="0 1 0"/></joint>
<joint name="D" type="continuous"><parent link="base_link"/><child link="rocker"/><origin xyz="0.4 0 0" rpy="0 -1.2 0"/>
<axis xyz="0 1 0"/></joint>
<transmission name="t"><type>transmission_interface/SimpleTransmission</type><joint name="A"/><actuator name="m"/>
</transmission>
%s</robot>"""
CONSTRAINT = """<constraint name="C" type="%s"><parent link="rocker"/><parent_origin xyz="0.2 0 0" rpy="0 1.2 0"/>
<parent_axis xyz="0 1 0"/><child link="coupler"/><child_origin xyz="0.4 0 0"/></constraint>"""
GAZEBO = """<gazebo><joint name="C" type="revolute"><parent>rocker</parent><child>coupler</child>
<pose>0.4 0 0 0 0 0</pose><axis><xyz>0 1 0</xyz>%s</axis></joint></gazebo>"""
LOOP_JOINT = """<loop_joint name="C" type="%s"><link1 link="rocker" rpy="0 0.3 0" xyz="0.2 0 0"/>
<%s link="coupler" rpy="0 0 0" xyz="0.4 0 0"/></loop_joint>"""
#: Two ways to the same forces.
AGREEMENT = 1e-11


def read(folder: Path, text: str, **options: object) -> tl.Mechanism:
    (folder / "m.urdf").write_text(text, encoding="utf-8")
    return load(folder / "m.urdf", options=ImportOptions(**options))


def problems(folder: Path, text: str) -> list[tuple[str, str]]:
    with pytest.raises(DescriptionError) as caught:
        read(folder, text)
    return [(problem.where, problem.what) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("element", "same"),
    [
        (GAZEBO % "", CONSTRAINT % "revolute"),
        (LOOP_JOINT % ("spherical", "link1"), CONSTRAINT % "spherical"),
        (LOOP_JOINT % ("spherical", "link2"), CONSTRAINT % "spherical"),
    ],
)
def test_a_loop_moves_as_the_same_loop_written_otherwise(
    tmp_path: Path, element: str, same: str
) -> None:
    forces = []
    for text in (element, same):
        machine = read(tmp_path, FOUR_BAR % text, platform_body="coupler")
        assert "not used" not in machine.description
        model = tl.Model(machine)
        assert model.assembly.mobility == 1
        forces.append(model.actuators.inverse_dynamics([[0.3]], [[1.5]], [[-2.0]]).force)
    assert np.abs(forces[0] - forces[1]).max() < AGREEMENT * np.abs(forces[1]).max()


def placed(xyz: list[float], rpy: list[float]) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.from_euler("xyz", rpy).as_matrix(), xyz
    return T


def matrix(frame: LinkFrame) -> np.ndarray:
    return placed(list(frame.xyz), list(frame.rpy))


def test_a_joint_of_gazebo_is_where_its_child_puts_it_while_all_joints_are_at_zero(
    tmp_path: Path,
) -> None:
    """Two chains from the base that are bent in space, one on a fixed joint; the frames by products of matrices."""
    origins = {
        "a": ("base.link", [0.1, -0.2, 0.3], [0.3, -0.4, 0.5]),
        "b": ("a", [0.4, 0.1, 0.0], [-0.7, 0.2, 1.1]),
        "c": ("base.link", [-0.3, 0.5, 0.1], [1.0, 0.6, -0.2]),
        "d": ("c", [0.0, 0.2, -0.4], [0.1, 0.9, 0.3]),
    }
    parts = [
        '<link name="base.link"/>',
        *(f'<link name="{name}">{INERTIAL}</link>' for name in origins),
    ]
    T = {"base.link": np.eye(4)}
    for name, (parent, xyz, rpy) in origins.items():
        T[name] = T[parent] @ placed(xyz, rpy)
        texts = (" ".join(map(str, numbers)) for numbers in (xyz, rpy))
        kind = "fixed" if name == "d" else "continuous"
        origin = '<origin xyz="{}" rpy="{}"/>'.format(*texts)
        ends = f'<parent link="{parent}"/><child link="{name}"/>'
        parts.append(
            f'<joint name="to_{name}" type="{kind}">{origin}{ends}<axis xyz="0 0 1"/></joint>'
        )
    pose, axis = placed([0.05, -0.1, 0.2], [0.4, 0.8, -0.6]), np.array([0.6, 0.0, -0.8])
    inside = "<pose>0.05 -0.1 0.2 0.4 0.8 -0.6</pose><axis><xyz>0.6 0 -0.8</xyz></axis>"
    for parent, child in (("b", "d"), ("d", "b"), ("world", "b")):
        ends = f"<parent>{parent}</parent><child>{child}</child>"
        gazebo = f'<gazebo><joint name="close" type="prismatic">{ends}{inside}</joint></gazebo>'
        (tmp_path / "m.urdf").write_text(
            f'<robot name="m">{"".join(parts)}{gazebo}</robot>', encoding="utf-8"
        )
        tree = read_urdf_tree(tmp_path / "m.urdf")
        (loop,) = tree.loops
        where = T[child] @ pose
        names = {"world": "base.link"}
        assert (loop.predecessor.link, loop.successor.link) == (names.get(parent, parent), child)
        assert (
            np.abs(T[names.get(parent, parent)] @ matrix(loop.predecessor) - where).max()
            < AGREEMENT
        )
        assert np.abs(matrix(loop.successor) - pose).max() < AGREEMENT
        assert np.abs(np.array(loop.axis) - axis).max() < AGREEMENT
        assert any("Gazebo merges its link 'd'" in note for note in tree.notes) == (
            "d" in (parent, child)
        )


def test_losses_and_limits_of_a_joint_of_gazebo_are_not_passed_over(tmp_path: Path) -> None:
    inside = "<limit><lower>-1</lower></limit><dynamics><damping>0.5</damping></dynamics>"
    machine = read(tmp_path, FOUR_BAR % (GAZEBO % inside), platform_body="coupler")
    assert machine.omitted_forces == (
        "the losses, springs and rotor of joint C, which closes a loop",
    )
    assert "C: its limits are omitted, because it closes a loop" in machine.description


def test_what_a_joint_of_gazebo_holds_and_is_not_known_is_a_problem_of_check(
    tmp_path: Path,
) -> None:
    text = (GAZEBO % "").replace("<pose>", "<anchor>0 0 0</anchor><physics><ode/></physics><pose>")
    machine = read(tmp_path, FOUR_BAR % text, platform_body="coupler")
    assert [element.partition(" (")[0] for element in machine.unknown_elements] == [
        "<anchor> of <joint>"
    ]
    assert not tl.check(machine).is_usable


@pytest.mark.parametrize(
    ("element", "problem"),
    [
        (
            GAZEBO % '<mimic joint="A"><multiplier>1</multiplier></mimic>',
            ("C", "it closes a loop, so it has no coordinate, but a gear needs one"),
        ),
        (
            (GAZEBO % "")
            .replace("<pose>", "<drake:screw_thread_pitch/><pose>")
            .replace("<joint", '<joint xmlns:drake="d"'),
            ("drake:screw_thread_pitch", "<drake:screw_thread_pitch> in a joint is not supported"),
        ),
        (
            LOOP_JOINT % ("revolute", "link2"),
            (
                "C",
                "a <loop_joint> of type 'revolute' is not supported; Isaac Sim only has spherical ones",
            ),
        ),
        (
            '<loop_joint name="C" type="spherical"><parent link="rocker"/><child link="coupler"/></loop_joint>',
            ("C", "has 0 elements <link1> or <link2>"),
        ),
        (
            (LOOP_JOINT % ("spherical", "link2")).replace('"coupler"', '"couple"'),
            ("C", "the link2 link 'couple' does not exist"),
        ),
        (
            (GAZEBO % "").replace("revolute", "gearbox"),
            ("C", "joints of type 'gearbox' are not supported"),
        ),
        (
            (GAZEBO % "").replace("<parent>rocker", "<parent>rock"),
            ("C", "'rock' is neither a link nor a frame on one"),
        ),
        (
            (GAZEBO % "").replace("rocker", "world").replace("coupler", "base_link"),
            ("C", "it moves 'base_link', the root link, which is the fixed base in Tauloop"),
        ),
    ],
)
def test_wrong_loops_are_refused_by_name(
    tmp_path: Path, element: str, problem: tuple[str, str]
) -> None:
    assert problem in problems(tmp_path, FOUR_BAR % element)


def test_a_joint_of_gazebo_that_holds_the_root_to_the_world_is_no_loop(tmp_path: Path) -> None:
    held = (
        (GAZEBO % "")
        .replace("rocker", "world")
        .replace("coupler", "base_link")
        .replace("revolute", "fixed")
    )
    machine = read(tmp_path, FOUR_BAR % (CONSTRAINT % "revolute" + held), platform_body="coupler")
    assert [joint.name for joint in machine.joints if joint.is_cut] == ["C"]


# Drake 1.51 reads these models with the same bodies, and joints of the same types

DRAKE = f"""<robot name="m"><link name="arm">{INERTIAL}</link>
<joint name="hinge" type="revolute"><parent link="%s"/><child link="%s"/><origin xyz="0 0 1"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="10" velocity="5"/></joint>%s</robot>"""


def test_drakes_world_needs_no_link(tmp_path: Path) -> None:
    machine = read(tmp_path, DRAKE % ("world", "arm", ""))
    assert [(joint.name, joint.parent.body, joint.child.body) for joint in machine.joints] == [
        ("hinge", "base", "arm")
    ]
    assert (
        "world: this link is not in the file; it is the immovable world, as in Drake"
        in machine.description
    )
    assert tl.check(machine).is_usable
    same = read(
        tmp_path,
        (DRAKE % ("world", "arm", "")).replace(
            '<link name="arm">', '<link name="world"/><link name="arm">'
        ),
    )
    assert machine.joints == same.joints


def test_an_inertial_of_the_world_plays_no_part(tmp_path: Path) -> None:
    """Drake warns of it, complete or not."""
    text = DRAKE % (
        "world",
        "arm",
        '<link name="world"><inertial><mass value="3"/></inertial></link>',
    )
    machine = read(tmp_path, text)
    assert [body.name for body in machine.bodies] == ["arm"]
    assert (
        "world: its <inertial> has no effect, because the world does not move"
        in machine.description
    )


def test_what_hangs_on_nothing_next_to_drakes_world_moves_freely(tmp_path: Path) -> None:
    loose = f'<link name="loose">{INERTIAL}</link>'
    machine = read(tmp_path, DRAKE % ("world", "arm", loose), platform_body="loose")
    assert [(joint.name, joint.kind) for joint in machine.joints] == [
        ("hinge", "revolute"),
        ("loose.free", "free"),
    ]
    assert tl.Model(machine).assembly.mobility == 7
    again = DRAKE % ("world", "arm", '<link name="world"/>' + loose)
    assert [what for _, what in problems(tmp_path, again)] == [
        "neither this link nor 'world' is the child of a joint: these are separate trees"
    ]


def test_drakes_world_as_a_child_is_refused(tmp_path: Path) -> None:
    other = (
        '<joint name="other" type="continuous"><parent link="arm"/><child link="world"/></joint>'
    )
    assert ("other", "its child is the world, which does not move") in problems(
        tmp_path, DRAKE % ("world", "arm", other)
    )
    assert ("hinge", "its child is the world, which does not move") in problems(
        tmp_path, DRAKE % ("arm", "world", "")
    )
