"""Pairs of links that onshape-to-robot writes where a loop closes."""

from __future__ import annotations

from pathlib import Path

import tauloop as tl
from tauloop.formats import load

LINK = """<link name="{name}"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
<inertia ixx="0.001" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
HINGE = """<joint name="{name}" type="continuous"><origin xyz="{xyz}" rpy="0 {pitch} 0"/><parent link="{parent}"/>
<child link="{child}"/><axis xyz="0 1 0"/></joint>"""
FRAME = """<link name="{name}"/><joint name="{name}_frame" type="fixed"><origin xyz="{xyz}"/><parent link="{parent}"/>
<child link="{name}"/></joint>"""


def four_bar(second: str = "closing_tip_2") -> str:
    """Return two arms on the base, the second with a forearm; the ends of the arms are the two frames."""
    links = "".join(LINK.format(name=name) for name in ("left", "right", "fore"))
    hinges = (
        HINGE.format(name="a", xyz="-0.1 0 0", pitch=-1.2, parent="base", child="left"),
        HINGE.format(name="b", xyz="0.1 0 0", pitch=-1.9, parent="base", child="right"),
        HINGE.format(name="c", xyz="0.2 0 0", pitch=1.0, parent="right", child="fore"),
    )
    frames = FRAME.format(name="closing_tip_1", xyz="0.3 0 0", parent="left")
    frames += FRAME.format(name=second, xyz="0.2 0 0", parent="fore")
    return f'<robot name="m"><link name="base"/>{links}{"".join(hinges)}{frames}</robot>'


def test_a_pair_of_closing_frames_is_a_ball_joint_with_a_note(tmp_path: Path) -> None:
    (tmp_path / "m.urdf").write_text(four_bar(), encoding="utf-8")
    machine = load(tmp_path / "m.urdf")
    assert (
        "closing_tip: a ball joint connects closing_tip_1 and closing_tip_2" in machine.description
    )
    assembly = tl.Model(machine).assembly
    assert assembly.mobility == 1
    assert assembly.residual < 1e-9


def test_half_a_pair_is_noted(tmp_path: Path) -> None:
    (tmp_path / "m.urdf").write_text(four_bar("closing_top_2"), encoding="utf-8")
    machine = load(tmp_path / "m.urdf", options=tl.formats.ImportOptions(platform_body="fore"))
    assert "closing_tip_1: its name is that of one of two coincident frames" in machine.description
    assert not any(joint.is_cut for joint in machine.joints)


def test_what_a_side_file_states_of_the_frames_holds(tmp_path: Path) -> None:
    (tmp_path / "m.urdf").write_text(four_bar(), encoding="utf-8")
    (tmp_path / "robot.yaml").write_text(
        "closed_loop: [[closing_tip_1, closing_tip_2]]\ntype: [revolute]\n", encoding="utf-8"
    )
    cut = [
        joint for joint in load(tmp_path / "m.urdf", tmp_path / "robot.yaml").joints if joint.is_cut
    ]
    assert [joint.kind for joint in cut] == ["revolute"]


def test_a_pair_that_is_written_is_closed_once_when_read_again(tmp_path: Path) -> None:
    """The frames of the written loop hang on the two links by fixed joints."""
    (tmp_path / "m.urdf").write_text(four_bar(), encoding="utf-8")
    tl.convert(load(tmp_path / "m.urdf"), tmp_path / "again.urdf")
    for side in (None, tmp_path / "again.urdf.side.yaml"):
        back = load(tmp_path / "again.urdf", side)
        assert [joint.kind for joint in back.joints if joint.is_cut] == ["spherical"]
