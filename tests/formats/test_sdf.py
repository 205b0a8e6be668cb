"""SDF in and out: machines come back with their forces, loops close natively, and the same model in other words."""

from __future__ import annotations

import math
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from scaled_machines import Scale, scaled

import tauloop as tl
from tauloop import DescriptionError, load
from tauloop.formats.sdf.model import SdfReader
from tauloop.formats.sdf.reader import read_sdf_tree
from tauloop.formats.sdf.writer import to_sdf, write_sdf
from tauloop.formats.xml.nodes import read_xml

#: Forces by way of a file: rounding, and the least moments that SDF asks of slender rods (1e-12 kg
#: m^2).
WRITTEN = 1e-10
#: The same numbers in another order.
ROUNDING = 1e-12


def forces(model: tl.Model, start: np.ndarray, actuators: tuple[str, ...]) -> np.ndarray:
    """At a few motions of the actuators, by their names, about a start."""
    rng = np.random.default_rng(0)
    names = list(model.actuators.ports.position.columns)
    order = [names.index(name) for name in actuators]
    x, v, a = (scale * rng.normal(size=(4, len(start))) for scale in (0.02, 1.0, 1.0))
    columns = np.argsort(order)
    force = model.actuators.inverse_dynamics(
        (start + x)[:, columns], v[:, columns], a[:, columns]
    ).force
    return force[:, order]


def compared(before: tl.Mechanism, after: tl.Mechanism) -> float:
    """Largest difference of forces, relative to the largest force."""
    first, second = tl.Model(before), tl.Model(after)
    names = first.actuators.ports.position.columns
    start = first.actuator_position(first.assembly.q)
    expected, actual = (forces(model, start, names) for model in (first, second))
    return float(np.abs(actual - expected).max() / np.abs(expected).max())


def written(name: str, folder: Path) -> tuple[Path, Path]:
    files, _ = write_sdf(load(name), folder / f"{name}.sdf")
    return folder / f"{name}.sdf", files[0]


@pytest.mark.parametrize("name", ["five_bar", "delta", "four_bar", "hexapod", "linear_delta"])
def test_a_machine_comes_back_with_the_forces_it_had(tmp_path: Path, name: str) -> None:
    path, side = written(name, tmp_path)
    assert compared(load(name), load(path, side)) < WRITTEN


def test_loops_close_natively(tmp_path: Path) -> None:
    """The links with two parents are those that the tree had to cut, and their joints meet at one place."""
    path, side = written("five_bar", tmp_path)
    joints = ElementTree.fromstring(to_sdf(load("five_bar")).text).findall(".//joint")
    children = [joint.findtext("child") for joint in joints]
    assert sorted(name for name in set(children) if children.count(name) > 1) == [
        "link_1",
        "link_2",
    ]
    tree = read_sdf_tree(path)
    assert [loop.kind for loop in tree.loops] == ["revolute"] * 2
    mobility = tl.Model(load(path, side)).assembly.mobility
    assert mobility == 2


def test_what_sdf_says_of_motors_and_gravity_needs_no_side_file(tmp_path: Path) -> None:
    """Passive joints have an effort of zero, so that the motors are known; gravity is that of the world."""
    path, side = written("four_bar", tmp_path)
    alone, whole = load(path), load(path, side)
    assert [actuator.drives[0][0] for actuator in alone.actuators] == [
        actuator.drives[0][0] for actuator in whole.actuators
    ]
    assert [alone.value(x) for x in alone.gravity] == [whole.value(x) for x in whole.gravity]


def in_other_words(path: Path) -> str:
    """The same model: links in the model's frame, in degrees or quaternions, joints and axes there, reversed pairs."""
    reader = SdfReader(str(path))
    model = reader.model(read_xml(path))
    assert model is not None
    lines = ['<sdf version="1.7"><model name="other">']
    angles = {
        name: np.arctan2(pose.rotation[1, 0], pose.rotation[0, 0])
        for name, pose in model.poses.items()
    }
    text = path.read_text()
    for k, (name, pose) in enumerate(model.poses.items()):
        inertial = re.search(rf'<link name="{name}">.*?(<inertial>.*?</inertial>)', text, re.DOTALL)
        x, y, z = pose.position.tolist()
        turn = float(angles[name])
        half = f'rotation_format="quat_xyzw">{x} {y} {z} 0 0 {math.sin(turn / 2)!r} {math.cos(turn / 2)!r}'
        place = half if k % 2 else f'degrees="true">{x!r} {y!r} {z!r} 0 0 {math.degrees(turn)!r}'
        lines.append(
            f'<link name="{name}"><pose {place}</pose>{inertial[1] if inertial else ""}</link>'
        )
    for k, joint in enumerate(joint for joint in model.joints if joint.axes):
        at = model.poses[joint.child] @ joint.frames[1]
        x, y, z = (float(value) for value in at.position)
        frame = f'<frame name="at_{joint.name}" attached_to="{joint.child}">'
        frame += f'<pose relative_to="__model__">{x!r} {y!r} {z!r} 0.3 0.2 0.1</pose></frame>'
        axis = (at.rotation @ joint.axes[0]).tolist()
        pair, sign = (
            ((joint.child, joint.parent), -1.0) if k % 2 else ((joint.parent, joint.child), 1.0)
        )
        effort = "-1" if joint.limit("effort") is None else "0"
        axis = " ".join(repr(sign * value) for value in axis)
        lines.append(
            f'{frame}<joint name="{joint.name}" type="revolute"><pose relative_to="at_{joint.name}"/>'
            f"<parent>{pair[0]}</parent><child>{pair[1]}</child>"
            f'<axis><xyz expressed_in="__model__">{axis}</xyz><limit><effort>{effort}</effort></limit></axis></joint>'
        )
    anchor = "<joint name='ground' type='fixed'><parent>world</parent><child>base</child></joint>"
    return "\n".join([*lines, anchor, "</model></sdf>"])


def test_the_same_model_in_other_words(tmp_path: Path) -> None:
    path, side = written("four_bar", tmp_path)
    other = tmp_path / "other.sdf"
    other.write_text(in_other_words(path))
    side_text = re.sub(r"offsets:.*?\n(?=\w)", "", side.read_text(), flags=re.DOTALL)
    (tmp_path / "plain.yaml").write_text(side_text)
    first, second = (load(file, tmp_path / "plain.yaml") for file in (path, other))
    assert compared(first, second) < ROUNDING


def test_what_sdf_has_and_tauloop_has_not_is_refused_with_its_line(tmp_path: Path) -> None:
    bad = """<sdf version="1.9"><model name="m">
<link name="a"/><link name="b"><pose relative_to="c"/></link>
<frame name="c"><pose relative_to="d"/></frame><frame name="d"><pose relative_to="c"/></frame>
<joint name="j" type="magnet"><parent>a</parent><child>b</child></joint>
<joint name="k" type="revolute"><parent>a</parent><child>nobody</child></joint>
<joint name="l" type="revolute"><parent>a</parent><child>b</child><axis><xyz>0 0 0</xyz></axis></joint>
</model></sdf>"""
    (tmp_path / "m.sdf").write_text(bad)
    with pytest.raises(DescriptionError) as caught:
        load(tmp_path / "m.sdf")
    problems = {(problem.line, problem.what) for problem in caught.value.problems}
    assert (4, "joints of type 'magnet' are not supported") in problems
    assert (5, "'nobody' is neither a link nor a frame on one") in problems
    assert (6, "the axis has length zero") in problems
    assert any("in a cycle" in what for _, what in problems)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('<sdf version="1.9"><model name="m"/></sdf>', "there is no <link>"),
        ('<sdf version="1.9"><world name="m"/></sdf>', "there is no <model>"),
        ('<sdf version="1.9"><model name="a"/><model name="b"/></sdf>', "there are 2 models: a, b"),
        ('<sdf version="1.4"><model name="m"><link name="a"/></model></sdf>', "older than 1.5"),
        ('<sdf><model name="m"><link name="a"/></model></sdf>', "older than 1.5, or not a version"),
        (
            '<!DOCTYPE a [<!ENTITY b "c">]><sdf version="1.9"/>',
            "document type and entity declarations are rejected",
        ),
        ("<robot/>", "the root element is <robot>"),
        (
            '<sdf version="1.9"><model name="m"><static>1</static><link name="a"/></model></sdf>',
            "does not move",
        ),
    ],
)
def test_what_is_no_model_of_a_machine_is_refused(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "m.world").write_text(text)
    with pytest.raises(DescriptionError, match=re.escape(what)):
        load(tmp_path / "m.world")


@pytest.mark.parametrize("length", [1e-8, 1.0, 1e6])
def test_a_start_that_closes_no_loop_is_not_written(length: float) -> None:
    """A machine of a few nanometres seemed closed, and one of kilometres seemed open by rounding."""
    machine = scaled("four_bar", Scale(length, length**3, 1.0))
    leaf = next(parameter for parameter in machine.parameters if parameter.unit == "m")
    to_sdf(machine)
    machine = machine.with_values({leaf.name: leaf.value * 1.01})
    with pytest.raises(DescriptionError, match="this loop is open by"):
        to_sdf(machine)


def test_a_link_without_inertia_has_that_of_sdf_and_a_free_one_moves(tmp_path: Path) -> None:
    text = """<sdf version="1.9"><model name="m"><link name="ground"/><link name="stone"><pose>1 2 3 0 0 0</pose></link>
<link name="arm"/><joint name="hinge" type="continuous"><parent>ground</parent><child>arm</child><axis/></joint>
</model></sdf>"""
    (tmp_path / "m.sdf").write_text(text)
    machine = load(tmp_path / "m.sdf", options=tl.formats.ImportOptions(platform_body="arm"))
    assert {joint.name: joint.kind for joint in machine.joints} == {
        "hinge": "revolute",
        "stone.free": "free",
    }
    assert machine.value(machine.body("arm").inertia.parameters[0]) == 1.0
    assert "no joint connects a link to the world, so 'ground'" in machine.description
    assert "SDF gives it 1 kg" in machine.description
