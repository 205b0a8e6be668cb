"""The table of elements: the page follows from it, and elements in none of its lists are problems of `check`."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import foreign_elements_page
import pytest
from extras import extra

import tauloop as tl
from tauloop.formats.xml.foreign_elements import ANY_PARENT, ELEMENT_ROWS, row_of

LINK = '<link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
URDF = f"""<robot name="m"><link name="a"/>{LINK}%s</link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>%s</robot>"""
SDF = """<sdf version="1.9"><model name="m"><link name="a"/><link name="b">%s</link>
<joint name="j" type="continuous"><parent>a</parent><child>b</child><axis/></joint>%s</model></sdf>"""
MJCF = """<mujoco><worldbody><body name="b"><joint name="j"/><geom size="0.1"/>%s</body></worldbody>
<actuator><motor joint="j"/></actuator>%s</mujoco>"""

#: Elements of SDF by their parents, of the versions 1.5 to 1.12 of the specification together.
SDF_ELEMENTS = {
    "axis": "dynamics initial_position limit mimic use_parent_model_frame xyz",
    "axis2": "dynamics initial_position limit mimic use_parent_model_frame xyz",
    "dynamics": "damping friction spring_reference spring_stiffness",
    "frame": "pose",
    "inertia": "ixx ixy ixz iyy iyz izz",
    "inertial": "auto_inertia_params density fluid_added_mass frame inertia mass pose",
    "joint": "axis axis2 child frame gearbox_ratio gearbox_reference_body parent physics pose "
    "screw_thread_pitch sensor thread_pitch",
    "limit": "dissipation effort lower stiffness upper velocity",
    "link": "audio_sink audio_source battery collision enable_wind frame gravity inertial kinematic light "
    "must_be_base_link particle_emitter pose projector self_collide sensor velocity_decay visual",
    "mimic": "multiplier offset reference",
    "model": "allow_auto_disable enable_wind frame gripper include joint link model model_state plugin "
    "pose self_collide static",
    "sdf": "actor light model world",
    "world": "actor atmosphere audio frame gravity gui include joint light magnetic_field model physics "
    "plugin population road scene spherical_coordinates state wind",
}


def test_the_page_follows_from_the_table() -> None:
    page = foreign_elements_page.ELEMENTS_PAGE.read_text(encoding="utf-8")
    assert page == foreign_elements_page.text(), "run python tools/foreign_elements_page.py"


def test_an_element_is_in_one_list() -> None:
    places = Counter((row.file_format, row.parent, tag) for row in ELEMENT_ROWS for tag in row.tags)
    assert [place for place, count in places.items() if count > 1] == []


def test_every_element_of_mujoco_has_a_row() -> None:
    """Elements of sections that are harmless as a whole are not entered."""
    schema = extra("mujoco").mj_printSchema(False, False)
    harmless = {tag for row in ELEMENT_ROWS if row.file_format == "mjcf" for tag in row.tags}
    rows = [
        (len(match[1]), match[2])
        for match in re.finditer(r"^( *)([a-z_A-Z0-9]+) \([!?*R]\)", schema, re.M)
    ]
    path: list[str] = []
    missing = []
    for indent, tag in rows:
        path = [*path[: indent // 3], tag]
        entered = all(
            (row := row_of("mjcf", ANY_PARENT, parent)) is None or row.treatment.value == "read"
            for parent in path[:-1]
        )
        if entered and tag not in harmless:
            missing.append("/".join(path))
    assert missing == []


def test_every_element_of_the_specification_of_sdf_has_a_row() -> None:
    """Elements inside others that are harmless or refused as a whole are not entered."""
    missing = [
        f"{parent}/{tag}"
        for parent, tags in SDF_ELEMENTS.items()
        for tag in tags.split()
        if row_of("sdf", parent, tag) is None
    ]
    assert missing == []


@pytest.mark.parametrize(("text", "ending"), [(URDF, "urdf"), (SDF, "sdf"), (MJCF, "xml")])
def test_an_element_in_none_of_the_lists_is_a_problem_of_check(
    tmp_path: Path, text: str, ending: str
) -> None:
    path = tmp_path / f"m.{ending}"
    for inside, outside, names in (
        ("<wibble/>", "", ["wibble"]),
        ("", "<foo><bar/></foo>\n<foo/>", ["foo"]),
    ):
        path.write_text(text % (inside, outside), encoding="utf-8")
        machine = tl.load(path)
        assert [name.partition(">")[0].strip("<") for name in machine.unknown_elements] == names
        inspection = tl.check(machine)
        assert not inspection.is_usable
        assert any(f"<{names[0]}>" in problem.where for problem in inspection.problems)
        again = tl.loads(tl.dumps(machine))
        assert again.unknown_elements == machine.unknown_elements
    path.write_text(text % ("", ""), encoding="utf-8")
    assert tl.check(tl.load(path)).is_usable


@pytest.mark.parametrize(
    ("gazebo", "omitted"),
    [
        ('<gazebo reference="b"><material>Gazebo/Red</material></gazebo>', ()),
        (
            '<gazebo reference="j"><springStiffness>3</springStiffness></gazebo>',
            ("the spring of joint j",),
        ),
        ('<gazebo reference="j"><springStiffness>0</springStiffness></gazebo>', ()),
        (
            '<gazebo><plugin name="sea" filename="libhydrodynamics.so"/></gazebo>',
            ("the forces of the plugin 'sea'",),
        ),
    ],
)
def test_forces_of_gazebo_elements(tmp_path: Path, gazebo: str, omitted: tuple[str, ...]) -> None:
    (tmp_path / "m.urdf").write_text(URDF % ("", gazebo), encoding="utf-8")
    assert tl.load(tmp_path / "m.urdf").omitted_forces == omitted


def test_gravity_that_gazebo_switches_off(tmp_path: Path) -> None:
    text = URDF % ("", '<gazebo reference="b"><turnGravityOff>true</turnGravityOff></gazebo>')
    (tmp_path / "m.urdf").write_text(text, encoding="utf-8")
    machine = tl.load(tmp_path / "m.urdf")
    assert [machine.value(x) for x in machine.gravity] == [0.0, 0.0, 0.0]


def test_losses_of_an_older_form(tmp_path: Path) -> None:
    losses = '<joint_properties friction="%s"/></joint>'
    for value, omitted in (("0.0", ()), ("0.5", ("friction in <joint_properties> of joint j",))):
        (tmp_path / "m.urdf").write_text(
            (URDF % ("", "")).replace("</joint>", losses % value), encoding="utf-8"
        )
        assert tl.load(tmp_path / "m.urdf").omitted_forces == omitted


@pytest.mark.parametrize(
    ("limit", "effects"),
    [
        ('<limit lower="0" upper="0"/>', ["<limit> of j with the equal ends 0, read as no limits"]),
        (
            '<limit upper="0" effort="3"/>',
            ["<limit> of j with the equal ends 0, read as no limits"],
        ),
        ('<limit effort="3" velocity="1"/>', []),
        ('<limit lower="0" upper="0.1"/>', []),
    ],
)
def test_equal_limits_are_a_problem_of_check(
    tmp_path: Path, limit: str, effects: list[str]
) -> None:
    """Gazebo and Drake lock such a joint, but some exporters write zeros for no limits."""
    text = (
        (URDF % ("", "")).replace("continuous", "revolute").replace("</joint>", f"{limit}</joint>")
    )
    (tmp_path / "m.urdf").write_text(text, encoding="utf-8")
    machine = tl.load(tmp_path / "m.urdf")
    assert list(machine.unknown_elements) == effects
    assert tl.check(machine).is_usable == (not effects)
    side = "format: tauloop-urdf-side/1\njoints: {j: {limits: [-1 rad, 1 rad]}}\n"
    (tmp_path / "side.yaml").write_text(side, encoding="utf-8")
    assert tl.load(tmp_path / "m.urdf", tmp_path / "side.yaml").unknown_elements == ()
