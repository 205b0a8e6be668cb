"""What `convert` writes is read again and compared, and machines that once came back as others."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from scaled_machines import Scale, scaled

import tauloop as tl
from tauloop.common.errors import DescriptionError
from tauloop.common.result import Status
from tauloop.formats import load
from tauloop.formats.format import Written
from tauloop.formats.own import Sdf
from tauloop.formats.sdf.writer import to_sdf
from tauloop.mechanism.model import Mechanism
from tauloop.model.tool import ToolMotion

HEAD = "format: tauloop-machine/1\nprovenance: {status: chosen, source: test}\ngravity: [0, 0, -9.81 m/s^2]\n"
LINK = "{mass: 1 kg, center: [0.1 m, 0, 0], inertia: {xx: 0.001 kg m^2, yy: 0.01 kg m^2, zz: 0.01 kg m^2}}"
MACHINES = {
    "tool on a link whose joint is elsewhere": f"""{HEAD}name: arm
bodies: {{link: {LINK}}}
joints:
  pin: {{type: revolute, axis: z, parent: base, child: {{on: link, at: [0.1 m, 0.2 m, 0], turn: [{{x: 20 deg}}]}}}}
actuators: {{motor: {{on: pin}}}}
platform: {{body: link, tool: {{at: [0.3 m, 0, 0], turn: [{{z: 90 deg}}]}}, independent: [pin]}}""",
    "driven universal joint": f"""{HEAD}name: fork
bodies: {{link: {LINK}}}
joints: {{wrist: {{type: universal, axes: [x, y], parent: base, child: link}}}}
actuators: {{roll: {{on: wrist.first}}, pitch: {{on: wrist.second}}}}
platform: {{body: link, independent: [wrist.first, wrist.second]}}""",
    "losses of a universal joint": f"""{HEAD}name: fork
bodies: {{link: {LINK}}}
joints: {{wrist: {{type: universal, axes: [x, y], parent: base, child: link}}}}
actuators: {{roll: {{on: wrist.first}}}}
losses: {{seal: {{of: {{wrist.first: 1, wrist.second: 2}}, friction: {{viscous: 0.3 N m s/rad}}}}}}
platform: {{body: link, independent: [wrist.first, wrist.second]}}""",
    "motor on a free platform": f"""{HEAD}name: freely
bodies: {{plate: {LINK}}}
actuators: {{mx: {{on: platform.x}}}}
platform: {{body: plate, motion: free, independent: [x, y, z, wx, wy, wz]}}""",
    "loop closed at a slide": f"""{HEAD}name: slider
bodies: {{crank: {LINK}, rod: {LINK}, piston: {LINK}}}
joints:
  shoulder: {{type: revolute, axis: z, parent: base, child: crank, reference: 90 deg}}
  knee: {{type: revolute, axis: z, parent: {{on: crank, at: [0.3 m, 0, 0]}}, child: rod, reference: -90 deg-asin(0.6)}}
  pin: {{type: revolute, axis: z, parent: {{on: rod, at: [0.5 m, 0, 0]}}, child: piston, reference: asin(0.6)}}
  slide: {{type: prismatic, axis: x, parent: base, child: piston, reference: 0.4 m, cut: yes}}
actuators: {{motor: {{on: shoulder}}}}
platform: {{body: crank, independent: [shoulder]}}""",
    "one motor on two joints of a loop": f"""{HEAD}name: bars
bodies: {{crank: {LINK}, coupler: {LINK}, rocker: {LINK}}}
joints:
  a: {{type: revolute, axis: z, parent: base, child: crank}}
  b: {{type: revolute, axis: z, parent: {{on: crank, at: [0, 0.2 m, 0]}}, child: coupler}}
  c: {{type: revolute, axis: z, parent: {{on: base, at: [0.3 m, 0, 0]}}, child: rocker}}
  d:
    type: revolute
    axis: z
    parent: {{on: coupler, at: [0.3 m, 0, 0]}}
    child: {{on: rocker, at: [0, 0.2 m, 0]}}
actuators: {{motor: {{drives: {{a: 2, c: 1}}}}}}
platform: {{body: crank, independent: [a]}}""",
    "motor that is called as one of its joints": f"""{HEAD}name: belt
bodies: {{upper: {LINK}, fore: {LINK}}}
joints:
  shoulder: {{type: revolute, axis: z, parent: base, child: upper}}
  elbow: {{type: revolute, axis: z, parent: {{on: upper, at: [0.3 m, 0, 0]}}, child: fore}}
actuators: {{shoulder: {{on: shoulder}}, elbow: {{drives: {{elbow: 2, shoulder: -1}}}}}}
platform: {{body: fore, independent: [shoulder, elbow]}}""",
    "losses in the joint that closes the loop": f"""{HEAD}name: bars
bodies: {{crank: {LINK}, coupler: {LINK}, rocker: {LINK}}}
joints:
  a: {{type: revolute, axis: z, parent: base, child: crank, friction: {{viscous: 0.1 N m s/rad}}}}
  b:
    type: revolute
    axis: z
    parent: {{on: crank, at: [0, 0.2 m, 0]}}
    child: coupler
    friction: {{viscous: 0.2 N m s/rad}}
  c:
    type: revolute
    axis: z
    parent: {{on: base, at: [0.3 m, 0, 0]}}
    child: rocker
    friction: {{viscous: 0.3 N m s/rad}}
  d:
    type: revolute
    axis: z
    parent: {{on: coupler, at: [0.3 m, 0, 0]}}
    child: {{on: rocker, at: [0, 0.2 m, 0]}}
    friction: {{viscous: 0.4 N m s/rad}}
actuators: {{motor: {{on: a}}}}
platform: {{body: crank, independent: [a]}}""",
    "free joint that closes a loop, with a loss": f"""{HEAD}name: sledge
bodies: {{cart: {LINK}}}
joints:
  rail: {{type: prismatic, axis: x, parent: base, child: cart}}
  drag: {{type: free, parent: base, child: cart, freedoms: {{x: {{friction: {{viscous: 5 N s/m}}}}}}}}
actuators: {{motor: {{on: rail}}}}
platform: {{body: cart, independent: [rail]}}""",
    "gear on a free joint": f"""{HEAD}name: nut
bodies: {{plate: {LINK}, wheel: {LINK}}}
joints:
  float: {{type: free, parent: base, child: plate}}
  spin: {{type: revolute, axis: z, parent: plate, child: wheel}}
couplings: {{thread: {{of: {{spin: 1, float.z: 3 rad/m}}}}}}
actuators: {{motor: {{on: spin}}}}
platform: {{body: plate, independent: [float.x, float.y, float.z, float.wx, float.wy, float.wz]}}""",
}
#: A ball between turned frames that is turned at the start, with losses; seen from the base, or the
#: other way round.
BALL = f"""{HEAD}name: pendulum
bodies: {{link: {LINK}}}
joints:
  wrist:
    type: spherical
    parent: {{on: PARENT, at: [0.1 m, 0, 0.2 m], turn: [{{x: 20 deg}}, {{z: 50 deg}}]}}
    child: {{on: CHILD, at: [0, 0.1 m, 0], turn: [{{y: 40 deg}}]}}
    reference: {{turn: [{{z: 30 deg}}, {{x: 70 deg}}]}}
    freedoms: {{ACTING}}
platform: {{body: link, independent: [wrist.wx, wrist.wy, wrist.wz]}}"""
EQUAL_LOSSES = ", ".join(
    f"{word}: {{friction: {{viscous: 0.3 N m s/rad}}}}" for word in ("wx", "wy", "wz")
)
#: What MJCF has no place for: a loss that is not the same about all axes.
OTHER_LOSSES = "wx: {friction: {viscous: 0.3 N m s/rad, coulomb: 0.1 N m}}"

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1e-2" iyy="1e-2" izz="1e-2" ixy="0" ixz="0" iyz="0"/></inertial>'


def _hinge(name: str, parent: str, child: str, place: str) -> str:
    return f"""<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{child}"/>
<origin xyz="{place}"/><axis xyz="0 1 0"/></joint>"""


#: A four-bar whose file has no word on motors.
UNSTATED = f"""<robot name="bars"><link name="ground"/><link name="crank">{INERTIAL}</link>
<link name="coupler">{INERTIAL}</link><link name="rocker">{INERTIAL}</link>
{_hinge("a", "ground", "crank", "0 0 0")}{_hinge("b", "crank", "coupler", "0 0 0.2")}
{_hinge("c", "ground", "rocker", "0.3 0 0")}
<constraint name="d" type="revolute"><parent link="coupler"/><child link="rocker"/>
<parent_origin xyz="0.3 0 0"/><child_origin xyz="0 0 0.2"/><parent_axis xyz="0 1 0"/><child_axis xyz="0 1 0"/>
</constraint></robot>"""


def side_of(path: Path) -> Path | None:
    """Return the side file that is next to a file."""
    side = path.with_name(f"{path.name}.side.yaml")
    return side if side.exists() else None


def tool_at_reference(machine: Mechanism) -> ToolMotion:
    model = tl.Model(machine)
    return model.platform.tool(model.platform_position(model.assembly.q))


@cache
def tool_of(name: str) -> ToolMotion:
    """The tool of a machine that is written in several formats."""
    return tool_at_reference(tl.loads(MACHINES[name]))


@pytest.mark.parametrize("ending", ["yaml", "xml", "urdf", "sdf"])
@pytest.mark.parametrize("name", MACHINES)
def test_forces_and_tool_come_back(tmp_path: Path, name: str, ending: str) -> None:
    machine = tl.loads(MACHINES[name])
    conversion = tl.convert(machine, tmp_path / f"m.{ending}")
    assert [item.is_good for item in conversion.diagnostics] == [True, True]
    back = load(tmp_path / f"m.{ending}", side_of(tmp_path / f"m.{ending}"))
    assert {actuator.name for actuator in back.actuators} == {
        actuator.name for actuator in machine.actuators
    }
    tool = tool_at_reference(back)
    assert tool.place == pytest.approx(tool_of(name).place, abs=1e-12)
    assert tool.rotation == pytest.approx(tool_of(name).rotation, abs=1e-12)


@pytest.mark.parametrize("ends", [("base", "link"), ("link", "base")])
@pytest.mark.parametrize(
    ("ending", "acting"), [("sdf", OTHER_LOSSES), ("sdf", EQUAL_LOSSES), ("xml", EQUAL_LOSSES)]
)
def test_balls_keep_their_coordinates_and_losses(
    tmp_path: Path, ends: tuple[str, str], ending: str, acting: str
) -> None:
    text = BALL.replace("PARENT", ends[0]).replace("CHILD", ends[1]).replace("ACTING", acting)
    machine = tl.loads(text)
    conversion = tl.convert(machine, tmp_path / f"m.{ending}")
    assert [item.value is not None and item.is_good for item in conversion.diagnostics] == [
        True,
        True,
    ]
    back = load(tmp_path / f"m.{ending}", side_of(tmp_path / f"m.{ending}")).joint("wrist")
    assert back.bodies.index("link") == ends.index("link")
    assert back.reference == pytest.approx(machine.joint("wrist").reference, abs=1e-12)
    assert not any("differs" in note for note in conversion.written.notes)


def test_losses_of_a_ball_that_mjcf_cannot_hold_are_noted(tmp_path: Path) -> None:
    """The note was in all formats, and for three equal losses: a side file holds what acts on each axis."""
    text = BALL.replace("PARENT", "base").replace("CHILD", "link").replace("ACTING", OTHER_LOSSES)
    conversion = tl.convert(tl.loads(text), tmp_path / "m.xml")
    assert conversion.status is Status.DOUBTFUL
    note = "joint wrist: its rotations have different losses and springs; in MJCF, those of the first one act on all"
    assert note in conversion.written.notes


@pytest.mark.parametrize("ends", [("base", "link"), ("link", "base")])
@pytest.mark.parametrize("acting", ["", OTHER_LOSSES])
def test_forces_of_balls_are_compared_with_those_of_three_hinges(
    tmp_path: Path, ends: tuple[str, str], acting: str
) -> None:
    """URDF has no balls: the copy has other coordinates, and what acts on the ball is lost, which is doubtful."""
    text = BALL.replace("PARENT", ends[0]).replace("CHILD", ends[1]).replace("ACTING", acting)
    conversion = tl.convert(tl.loads(text), tmp_path / "m.urdf")
    forces, tool = conversion.diagnostics
    assert forces.value is not None
    assert tool.is_good
    assert conversion.status is (Status.DOUBTFUL if acting else Status.OK)
    assert forces.value < 1e-12 or acting


def test_files_of_two_formats_do_not_share_a_side_file(tmp_path: Path) -> None:
    for ending in ("urdf", "sdf"):
        tl.convert("four_bar", tmp_path / f"m.{ending}")
    names = sorted(path.name for path in tmp_path.glob("*.side.yaml"))
    assert names == ["m.sdf.side.yaml", "m.urdf.side.yaml"]


def test_a_slide_that_does_not_close_in_other_directions_is_refused(tmp_path: Path) -> None:
    machine = tl.loads(MACHINES["loop closed at a slide"])
    slide = machine.joint("slide")
    moved = replace(
        slide,
        parent=replace(slide.parent, position=tl.loads(MACHINES["driven universal joint"]).gravity),
    )
    joints = tuple(moved if joint is slide else joint for joint in machine.joints)
    with pytest.raises(DescriptionError, match="this loop is open by"):
        to_sdf(replace(machine, joints=joints))


@pytest.mark.parametrize(
    ("wrong", "value"),
    [
        (lambda text: text.replace("<mass>1</mass>", "<mass>1.001</mass>"), "forces"),
        (lambda text: text.replace("0.3 m", "0.301 m"), "tool"),
    ],
)
def test_a_writer_that_loses_something_makes_the_conversion_doubtful(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: object, value: str
) -> None:
    plain = Sdf.write

    def write(self: Sdf, mechanism: Mechanism, path: Path) -> Written:
        written = plain(self, mechanism, path)
        for file in (path, written.side):
            assert file is not None
            file.write_text(wrong(file.read_text()))  # type: ignore[operator]
        return written

    monkeypatch.setattr(Sdf, "write", write)
    machine = tl.loads(MACHINES["tool on a link whose joint is elsewhere"])
    conversion = tl.convert(machine, tmp_path / "m.sdf")
    assert conversion.status is Status.DOUBTFUL
    (bad,) = (item for item in conversion.diagnostics if not item.is_good)
    assert value in bad.name


def test_a_file_that_would_not_be_read_again_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Sdf.write

    def write(self: Sdf, mechanism: Mechanism, path: Path) -> Written:
        written = plain(self, mechanism, path)
        path.write_text(path.read_text().replace("<child>link</child>", "<child>nobody</child>"))
        return written

    monkeypatch.setattr(Sdf, "write", write)
    machine = tl.loads(MACHINES["tool on a link whose joint is elsewhere"])
    with pytest.raises(
        DescriptionError, match="an SDF file written for this machine cannot be read back"
    ):
        tl.convert(machine, tmp_path / "m.sdf")
    assert list(tmp_path.iterdir()) == []


def test_a_machine_that_does_not_assemble_is_written_and_not_compared(tmp_path: Path) -> None:
    text = MACHINES["loop closed at a slide"].replace(
        "x, parent: base", "x, parent: {on: base, at: [0, 5 m, 0]}"
    )
    conversion = tl.convert(tl.loads(text), tmp_path / "m.yaml")
    assert [item.value for item in conversion.diagnostics] == [None]
    assert "not compared" in conversion.diagnostics[0].name
    assert conversion.diagnostics[0].name in conversion.written.notes


def test_a_machine_that_is_locked_is_written_and_not_compared(tmp_path: Path) -> None:
    rail = "rail: {type: prismatic, axis: x, parent: base, child: cart}"
    text = MACHINES["free joint that closes a loop, with a loss"]
    locked = text.replace(
        rail, f"{rail}\n  lift: {{type: prismatic, axis: z, parent: base, child: cart}}"
    )
    conversion = tl.convert(tl.loads(locked), tmp_path / "m.urdf")
    (unknown,) = conversion.diagnostics
    assert "not compared" in unknown.name
    assert "mobility 0" in unknown.name


def test_solids_of_massless_rods_are_written(tmp_path: Path) -> None:
    """Rods of fixed length are bodies; MuJoCo draws cables itself, which are tendons."""
    delta = tl.load("delta")
    massless = replace(delta, rods=tuple(replace(rod, lower=None) for rod in delta.rods))
    tl.convert(massless.without_unused_parameters(), tmp_path / "m.xml")
    root = ElementTree.parse(tmp_path / "m.xml").getroot()
    for leg in (1, 2, 3):
        (link,) = root.findall(f".//body[@name='leg{leg}.forearm']")
        assert link.findall("geom")
    written = tl.convert("cable_robot", tmp_path / "m.xml").written
    assert not any("it is not written" in note for note in written.notes)
    assert np.isfinite(len(load(tmp_path / "m.xml").bodies))


@pytest.mark.parametrize("ending", ["urdf", "sdf", "xml", "yaml"])
def test_motors_that_a_file_does_not_state_are_not_stated_by_its_copy(
    tmp_path: Path, ending: str
) -> None:
    """An empty list of actuators would state that nothing is driven."""
    (tmp_path / "loop.urdf").write_text(UNSTATED, encoding="utf-8")
    machine = load(tmp_path / "loop.urdf")
    assert machine.unstated_motors == ("a", "b", "c")
    tl.convert(machine, tmp_path / f"m.{ending}")
    back = load(tmp_path / f"m.{ending}", side_of(tmp_path / f"m.{ending}"))
    assert set(back.unstated_motors) == set(machine.unstated_motors)
    (problem,) = tl.check(back).problems
    assert "the file does not specify which joints have motors" in problem.what
    assert ("--motors" in problem.remedy) == (ending != "yaml")
    assert ("actuators: {motor: {on: JOINT}}" in problem.remedy) == (ending == "yaml")


def test_unstated_motors_of_a_machine_file_are_coordinates_without_actuators(
    tmp_path: Path,
) -> None:
    (tmp_path / "loop.urdf").write_text(UNSTATED, encoding="utf-8")
    text = tl.dumps(load(tmp_path / "loop.urdf"))
    assert tl.loads(text).unstated_motors == ("a", "b", "c")
    with pytest.raises(DescriptionError, match="there is no coordinate named zz"):
        tl.loads(text.replace("unstated_motors: [a", "unstated_motors: [zz"))
    with pytest.raises(DescriptionError, match="the file has actuators, so its motors are known"):
        tl.loads(text.replace("\nplatform:", "\nactuators: {m: {on: a}}\nplatform:"))


def test_hinges_that_close_loops_of_small_machines_come_back(tmp_path: Path) -> None:
    """Two points 0.1 m apart held a hinge, and loop equations of a machine of micrometres nearly repeated others."""
    # so that MuJoCo leaves its moments as they are
    heavy = scaled("five_bar", Scale(1e-6, 1e9, 1.0))
    conversion = tl.convert(heavy, tmp_path / "five_bar.xml")
    assert conversion.status is Status.OK
    assert conversion.diagnostics[0].value < 1e-12


def test_inertia_that_a_format_adds_to_a_tiny_machine_is_a_finding(tmp_path: Path) -> None:
    """MuJoCo raises masses to 1e-13 kg and SDF moments to 1e-12 kg m^2: a multiple of what micrometres weigh."""
    tiny = scaled("five_bar", Scale(1e-6, 1e-18, 1.0))
    with pytest.raises(DescriptionError, match="boundmass=1e-13 changes the masses of the file"):
        tl.convert(tiny, tmp_path / "tiny.xml")
    assert tl.convert(tiny, tmp_path / "tiny.sdf").status is Status.DOUBTFUL
    assert tl.convert(tiny, tmp_path / "tiny.urdf").status is Status.OK


@pytest.mark.parametrize("ending", ["urdf", "sdf", "xml", "yaml"])
def test_forces_that_a_source_states_stay_left_out_in_its_copies(
    tmp_path: Path, ending: str
) -> None:
    """They were lost in URDF, SDF and MJCF, so that results of a copy were ok that were doubtful before."""
    forces = ("the drag (velocity_decay) of link rod", "the forces of the plugin 'a & <b>'")
    arm = tl.loads(MACHINES["tool on a link whose joint is elsewhere"])
    machine = replace(arm, omitted_forces=forces, unknown_elements=("<tune> of <link> (line 3)",))
    conversion = tl.convert(machine, tmp_path / f"five_bar.{ending}")
    assert conversion.status is Status.DOUBTFUL
    back = load(conversion.written.files[0], conversion.written.side)
    assert back.omitted_forces == machine.omitted_forces
    assert back.unknown_elements == machine.unknown_elements
    again = tl.convert(back, tmp_path / f"again.{ending}")
    assert again.status is Status.DOUBTFUL
    assert load(again.written.files[0], again.written.side).omitted_forces == machine.omitted_forces
