"""New values in a user's machine file: comments, order and legs stay, only changed values differ."""

from dataclasses import replace
from difflib import ndiff
from pathlib import Path

import numpy as np
import pytest

import tauloop as tl
from tauloop.formats import machine_path
from tauloop.formats.writing.yaml_writer import write_yaml
from tauloop.mechanism.expression import Parameter, ParameterTable
from tauloop.mechanism.model import Mechanism

LIFT = """\
# A lift for tests: é, ü and 平 are characters of several bytes.
format: tauloop-machine/1
name: lift   # its name
provenance: {status: chosen, source: an example}
parameters:
  stroke: 200 mm   # between the stops
  load: {value: 2.5 kg, note: "measured, twice", bounds: [1 kg, 5 kg]}
  drum:
    value: 40 mm   # with one layer of rope
    note: radius
gravity: [0, 0, -9.81 m/s^2]   # Lund
bodies:
  car: {mass: load, inertia: {xx: 0.1 kg m^2, yy: 0.1 kg m^2, zz: 0.1 kg m^2}}
legs:
  - name: leg
    repeat: 2   # left and right
    bodies:
      wheel:   # of steel
        mass: 300 g
        inertia: {xx: 0.01 kg m^2, yy: 0.01 kg m^2, zz: 0.01 kg m^2}
    joints:
      axle:
        type: revolute
        axis: y
        parent: {on: car, at: [(2 * i - 3) * stroke, 0, 0]}
        child: {on: wheel, at: [0, 0, drum]}
        friction: {viscous: 0.1 N m s/rad}
    actuators:
      motor: {on: axle}
joints:
  slide: {type: prismatic, axis: z, parent: base, child: car}
actuators:
  hoist: {on: slide}
platform:
  body: car
  independent: [slide, leg1.axle, leg2.axle]
"""


def with_new_values(machine: Mechanism, seed: int) -> Mechanism:
    """Return a machine as a calibration returns it: other values, status and source."""
    rng = np.random.default_rng(seed)

    def changed(parameter: Parameter) -> Parameter:
        if np.isfinite([parameter.lower, parameter.upper]).any():
            return parameter
        value = parameter.value * (1 + 1e-4 * rng.uniform(-1, 1))
        source = 'poses of "tracker": #3, {a}'
        return replace(parameter, value=value, status="calibrated", source=source)

    return replace(machine, parameters=ParameterTable(tuple(map(changed, machine.parameters))))


def differences(before: str, after: str) -> tuple[list[str], list[str]]:
    """Return removed and added lines."""
    lines = list(ndiff(before.splitlines(), after.splitlines()))
    removed = [line[2:] for line in lines if line.startswith("- ")]
    return removed, [line[2:] for line in lines if line.startswith("+ ")]


@pytest.mark.parametrize("name", tl.shipped_machines())
def test_shipped_machines_keep_their_text(name: str, tmp_path: Path) -> None:
    machine = with_new_values(tl.load(name), seed=1)
    write_yaml(machine, tmp_path / "m.yaml")
    read = tl.load(tmp_path / "m.yaml")
    original, text = machine_path(name).read_text(), (tmp_path / "m.yaml").read_text()
    removed, added = differences(original, text)
    assert len(removed) <= len(machine.parameters) + 1
    assert len(added) <= 2 * len(machine.parameters) + 2
    comments = [line.partition(" #")[2] for line in original.splitlines()[1:]]
    assert all(comment in text for comment in comments)
    assert len(read.parameters) == len(machine.parameters)
    np.testing.assert_allclose(
        np.sort(read.parameters.vector()), np.sort(machine.parameters.vector()), rtol=1e-15
    )
    assert {item.status for item in read.parameters} == {item.status for item in machine.parameters}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_only_changed_values_differ(tmp_path: Path, newline: str) -> None:
    path = tmp_path / "lift.yaml"
    path.write_text(LIFT, newline=newline, encoding="utf-8")
    machine = tl.load(path).with_values({"stroke": 0.21, "load": "2600 g", "drum": "4.1 cm"})
    _, notes = write_yaml(machine, path)
    assert notes == ()
    removed, added = differences(LIFT, path.read_bytes().decode())
    assert removed == [
        "  stroke: 200 mm   # between the stops",
        '  load: {value: 2.5 kg, note: "measured, twice", bounds: [1 kg, 5 kg]}',
        "    value: 40 mm   # with one layer of rope",
    ]
    assert added == [
        "  stroke: 210 mm   # between the stops",
        '  load: {value: 2.6 kg, note: "measured, twice", bounds: [1 kg, 5 kg]}',
        "    value: 41 mm   # with one layer of rope",
    ]
    assert path.read_bytes().count(newline.encode()) == LIFT.count("\n")
    assert tl.load(path).parameters.values == pytest.approx(machine.parameters.values, rel=1e-15)


def test_status_and_source_are_written_next_to_a_value(tmp_path: Path) -> None:
    path = tmp_path / "lift.yaml"
    path.write_text(LIFT)
    machine = tl.load(path)
    changed = {"stroke", "load", "drum"}
    table = ParameterTable(
        tuple(
            replace(item, status="calibrated", source="ball bar") if item.name in changed else item
            for item in machine.parameters
        )
    )
    write_yaml(replace(machine, parameters=table), path)
    _, added = differences(LIFT, path.read_text())
    assert added == [
        "  stroke: {value: 200 mm, status: calibrated, source: ball bar}   # between the stops",
        "  load: {value: 2.5 kg, status: calibrated, source: ball bar, "
        'note: "measured, twice", bounds: [1 kg, 5 kg]}',
        "    status: calibrated",
        "    source: ball bar",
    ]
    assert tl.load(path).parameters == table


def test_values_that_differ_between_legs_become_parameters_of_each_leg(tmp_path: Path) -> None:
    path = tmp_path / "lift.yaml"
    path.write_text(LIFT)
    machine = tl.load(path).with_values(
        {"leg1.wheel.mass": 0.31, "leg2.axle.friction.viscous": 0.2, "leg2.wheel.inertia.yy": 0.02}
    )
    _, notes = write_yaml(machine, path)
    assert notes == (
        "legs now have different values, which are parameters of each leg: "
        "leg*.axle_friction_viscous, leg*.wheel_inertia_yy, leg*.wheel_mass",
    )
    removed, added = differences(LIFT, path.read_text())
    assert len(removed) == 3
    assert "        mass: wheel_mass" in added
    assert (
        "    each: {wheel_mass: [310 g, 300 g], wheel_inertia_yy: [0.01 kg m^2, 0.02 kg m^2], "
        "axle_friction_viscous: [0.1 N m s/rad, 0.2 N m s/rad]}"
    ) in added
    assert len(added) == 4
    read = tl.load(path).parameters.values
    assert read["leg1.wheel_mass"] == 0.31
    assert read["leg2.axle_friction_viscous"] == 0.2
    # The next change finds the parameters of each leg.
    again = tl.load(path).with_values({"leg2.wheel_mass": 0.32})
    assert write_yaml(again, path)[1] == ()
    assert "wheel_mass: [310 g, 320 g]" in path.read_text()


def test_a_file_that_has_changed_is_written_in_full_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "lift.yaml"
    path.write_text(LIFT)
    machine = tl.load(path).with_values({"stroke": 0.21})
    path.write_text(LIFT.replace("  drum:", "  more: 1 m\n  drum:"))
    _, notes = write_yaml(machine, tmp_path / "new.yaml")
    assert notes == (
        "comments, order and legs of lift.yaml are lost: "
        "the machine has other parameters than lift.yaml",
    )
    assert tl.load(tmp_path / "new.yaml").parameters.values == machine.parameters.values


def test_a_machine_without_a_file_is_written_without_a_note(tmp_path: Path) -> None:
    assert write_yaml(tl.loads(LIFT), tmp_path / "new.yaml") == ((), ())


def test_meshes_of_another_folder_are_found_from_the_new_one(tmp_path: Path) -> None:
    """A mesh that the new folder lacks makes the text useless there."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    mesh = "solid car\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\n"
    (tmp_path / "a" / "car.stl").write_text(mesh + "endloop\nendfacet\nendsolid car\n")
    text = LIFT + "visual:\n  car: {on: car, mesh: car.stl}\n"
    (tmp_path / "a" / "lift.yaml").write_text(text)
    machine = tl.load(tmp_path / "a" / "lift.yaml")
    _, notes = write_yaml(machine, tmp_path / "b" / "lift.yaml")
    assert len(notes) == 1
    assert tl.load(tmp_path / "b" / "lift.yaml").solids[0].mesh is not None


def test_a_calibrated_machine_keeps_the_comments_of_its_file(tmp_path: Path) -> None:
    original = machine_path("five_bar").read_text()
    text = original.replace("crank_length:", "crank_length:   # by hand, in 2019\n   ")
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    nominal = tl.load(path)
    length = nominal.parameters["crank_length"].value
    true = tl.Model(nominal.with_values({"crank_length": length + 1e-3}))
    motors = np.random.default_rng(1).uniform([1.6, 1.2], [1.9, 1.5], (12, 2))
    state = true.forward_kinematics(motors)
    read = np.stack(
        [state.coordinate("platform.x"), state.coordinate("platform.y"), np.zeros(12)], axis=1
    )
    series = tl.calibration.Series(
        instrument=tl.calibration.Position(name="tracker"),
        encoders=motors,
        readings=read,
        noise=1e-5,
    )
    calibration = tl.calibrate(path, series, parameters=("crank_length",))
    _, notes = write_yaml(calibration.mechanism, path)
    assert notes == ()
    removed, added = differences(text, path.read_text())
    assert len(removed) == len(added) == 1
    assert "status: calibrated, source: 'tauloop calibrate, 12 poses of tracker;" in added[0]
    assert tl.load(path).parameters["crank_length"].value == pytest.approx(length + 1e-3, abs=1e-6)


def test_a_changed_value_does_not_keep_the_source_of_the_old_one(tmp_path: Path) -> None:
    text = LIFT.replace("status: chosen, source: an example", "status: given, source: Table 1")
    text = text.replace("value: 2.5 kg,", "value: 2.5 kg, status: chosen, source: a catalog,")
    path = tmp_path / "lift.yaml"
    path.write_text(text)
    machine = tl.load(path).with_values(stroke="210 mm", load="2.5 kg")
    assert machine.parameters["load"] == tl.load(path).parameters["load"]
    write_yaml(machine, path)
    source = "'changed from 200 mm (given: Table 1)'"
    _, added = differences(text, path.read_text())
    assert added == [
        f"  stroke: {{value: 210 mm, status: chosen, source: {source}}}   # between the stops"
    ]
    write_yaml(tl.load(path).with_values(stroke="220 mm", load="3 kg"), path)
    assert "source: 'changed from 210 mm (chosen: ''changed" not in path.read_text()
    again = tl.load(path).parameters
    assert again["load"].source == "changed from 2.5 kg (chosen: a catalog)"
    assert again["drum"].source == "Table 1"


def test_convert_keeps_the_text_of_a_machine_file(tmp_path: Path) -> None:
    path = tmp_path / "lift.yaml"
    path.write_text(LIFT)
    conversion = tl.convert(tl.load(path).with_values(stroke="210 mm"), path)
    assert conversion.written.notes == ()
    assert differences(LIFT, path.read_text())[1] == ["  stroke: 210 mm   # between the stops"]
