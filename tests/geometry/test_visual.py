"""The section `visual` of machine files: what is read, what is refused, and that it reads back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from extras import extra

import tauloop as tl

ARM = """
format: tauloop-machine/1
name: arm
provenance: {status: chosen, source: a test}
gravity: [0, 0, -9.81 m/s^2]
parameters: {length: 0.5 m}
frames:
  elbow: {on: upper, at: [length, 0, 0], turn: [{z: 90 deg}]}
bodies:
  upper: {mass: 1 kg, center: [length / 2, 0, 0]}
  lower: {mass: 1 kg, center: [0.1 m, 0, 0]}
joints:
  shoulder: {type: revolute, axis: y, parent: base, child: upper}
  bend: {type: revolute, axis: y, parent: elbow, child: lower}
rods:
  strut: {from: {on: base, at: [0.1 m, 0, -0.2 m]}, to: {on: upper, at: [0.2 m, 0, 0]}, telescopic: {reference: 0.2 m},
          model: massless}
actuators:
  motor: {on: strut}
  second: {on: bend}
platform: {body: lower, independent: [shoulder, bend]}
visual:
"""
GOOD = """
  tube: {on: upper, at: [length / 2, 0, 0], turn: [{y: 90 deg}], capsule: {radius: 20 mm, length: length}}
  cap: {on: elbow, at: [0.1 m, 0, 0], box: [1 cm, 2 cm, 3 cm], color: '#D08C2E'}
  knob: {on: base, sphere: 30 mm}
  piston: {on: strut.upper, cylinder: {radius: 5 mm, length: 0.1 m}}
"""


def test_solids_stand_on_bodies_frames_and_rods_and_are_no_parameters() -> None:
    machine = tl.loads(ARM + GOOD)
    assert machine.parameters.names == tl.loads(ARM.replace("visual:\n", "")).parameters.names
    tube, cap, knob, piston = machine.solids
    assert (tube.body, tube.shape, tube.size, tube.position) == (
        "upper",
        "capsule",
        (0.02, 0.5),
        (0.25, 0.0, 0.0),
    )
    assert cap.body == "upper"
    assert cap.position == pytest.approx((0.5, 0.1, 0.0))  # the frame's x is the body's y
    assert (cap.color, cap.size) == ("#d08c2e", (0.01, 0.02, 0.03))
    assert (knob.body, knob.size) == ("base", (0.03,))
    assert (piston.body, piston.size) == ("strut.upper", (0.005, 0.1))


def test_a_machine_with_solids_reads_back_as_it_was() -> None:
    machine = tl.loads(ARM + GOOD)
    assert tl.loads(tl.dumps(machine)).solids == machine.solids


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{on: upper, sphere: 1 cm, box: [1 m, 1 m, 1 m]}", "one shape, not 2"),
        ("{on: upper}", "one shape, not 0"),
        ("{on: upper, sphere: 1 cm, scale: 2}", "only a mesh can have `scale`"),
        ("{on: upper, sphere: 1 cm, color: red}", "'red' is not a color"),
        ("{on: upper, sphere: -1 cm}", "positive"),
        ("{on: strut, sphere: 1 cm}", "telescopic: it has two parts"),
        ("{on: nowhere, sphere: 1 cm}", "no body or frame named nowhere"),
        ("{on: upper, mesh: part.step}", "not a supported mesh file"),
        ("{on: upper, box: [1 m, 1 m]}", "2 items, not 3"),
        ("{on: upper, cylinder: {radius: 1 cm}}", "length"),
    ],
)
def test_what_is_no_solid_is_refused_with_its_place(line: str, words: str) -> None:
    with pytest.raises(tl.DescriptionError, match="visual") as refused:
        tl.loads(f"{ARM}  bad: {line}\n")
    assert words in str(refused.value)


def test_a_mesh_is_looked_for_beside_the_machine_file(tmp_path: Path) -> None:
    trimesh = extra("trimesh")
    path = tmp_path / "arm.yaml"
    path.write_text(f"{ARM}  part: {{on: upper, mesh: part.stl, scale: 0.001}}\n")
    with pytest.raises(tl.DescriptionError, match=r"there is no file .*part\.stl"):
        tl.load(path)
    trimesh.creation.box(extents=(10.0, 20.0, 30.0)).export(tmp_path / "part.stl")
    (part,) = tl.load(path).solids
    from tauloop.geometry import triangles

    assert np.ptp(triangles(part).vertices, axis=0) == pytest.approx([0.01, 0.02, 0.03])
    (tmp_path / "part.stl").write_bytes(b"nothing")
    with pytest.raises(tl.InputError, match=r"part\.stl"):
        triangles(part)


def test_the_british_key_of_colors_is_read_with_a_warning_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "arm.yaml"
    path.write_text(
        ARM
        + GOOD.replace("color:", "colour:")
        + GOOD.replace("color:", "colour:")
        .replace("cap:", "cap_2:")
        .replace("tube:", "tube_2:")
        .replace("knob:", "knob_2:")
        .replace("piston:", "piston_2:")
    )
    with pytest.warns(DeprecationWarning, match="^colour is deprecated .*: use color$") as caught:
        machine = tl.load(path)
    (warned,) = caught  # once for a file
    line = 1 + next(i for i, text in enumerate(path.read_text().splitlines()) if "colour" in text)
    assert (warned.filename, warned.lineno) == (str(path), line)
    assert [solid.color for solid in machine.solids if solid.shape == "box"] == ["#d08c2e"] * 2
    both = "{on: upper, sphere: 1 cm, color: '#d08c2e', colour: '#d08c2e'}"
    with pytest.raises(tl.DescriptionError, match=r"bad.colour: is the old name of color, which"):
        tl.loads(f"{ARM}  bad: {both}\n")
    with pytest.raises(tl.DescriptionError, match="unknown key in a rod"):
        tl.loads(ARM.replace("model: massless", "model: massless, colour: red"))


def test_the_warning_of_an_old_key_is_shown_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "arm.yaml"
    path.write_text(ARM + GOOD.replace("color:", "colour:"))
    command = [sys.executable, "-m", "tauloop", "show", str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "DeprecationWarning: colour is deprecated" in run.stderr
    assert f"{path}:" in run.stderr
