"""Kinematics modules for LinuxCNC: their functions, called directly, are Tauloop's; nothing hostile gets into them."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compiled_machines import compilers, model
from linuxcnc_modules import MACHINES, CompiledModule, compiled, in_units, poses, program_text
from machine_texts import shipped_text

import tauloop as tl
from tauloop.compiler.c.calling.library import Library
from tauloop.export.linuxcnc.machine import pin_name
from tauloop.export.tables import linuxcnc_tables

needs_compiler = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
#: mm or deg: two ways to the same numbers, a metre long, in double precision.
ROUNDING = 1e-9
#: As the makefile of LinuxCNC's modules has it, which are GNU C99.
STRICT = (
    "-std=gnu99",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-pedantic",
    "-Wconversion",
    "-fsyntax-only",
    "-xc",
    "-",
)
#: Machines of one kind each stay by day; the others are tried by night.
BY_NIGHT = ("linear_delta", "delta")
EVERY = [
    pytest.param(name, marks=[pytest.mark.nightly] if name in BY_NIGHT else []) for name in MACHINES
]


@needs_compiler
@pytest.mark.parametrize("name", EVERY)
def test_both_ways_are_tauloops(name: str):
    module, (world, joints) = compiled(name), poses(name)
    status, found_joints = module.inverse(world)
    assert not status.any()
    assert np.abs(found_joints - joints).max() < ROUNDING
    status, places = module.forward(joints)
    assert not status.any()
    assert np.abs(places - world).max() < ROUNDING


@needs_compiler
def test_motors_with_an_offset_are_counted_from_their_own_zero():
    """All numbers of joints differ by the offset, which is a parameter and changes on its pin too."""
    motor = ("motor_1: {on: shoulder_1,", "motor_1: {on: shoulder_1, offset: zero,")
    value = ("parameters:\n", "parameters:\n  zero: 20 deg\n")
    text = shipped_text("five_bar", motor, value)
    machine = tl.Model(tl.loads(text))
    export = tl.export_linuxcnc(machine)
    module = CompiledModule(
        export, Library.create(program_text(export)), np.array(machine.assembly.q)
    )
    world, joints = poses("five_bar")
    plain, shifted = compiled("five_bar").export.layout.joints, export.layout.joints
    ends = [(joint.home, joint.lower, joint.upper) for joint in (plain[0], shifted[0])]
    assert ends[1] == pytest.approx([end + 20.0 for end in ends[0]])
    names = [pin.parameter for pin in export.pins]
    pins = module.pins
    for offset in (20.0, 35.0):
        pins[names.index("zero")] = offset
        shift = np.array([offset, 0.0])
        status, angles = module.inverse(world, pins)
        assert not status.any()
        assert np.abs(angles - joints - shift).max() < ROUNDING
        status, places = module.forward(joints + shift, pins)
        assert not status.any()
        assert np.abs(places - world).max() < ROUNDING


@needs_compiler
@pytest.mark.parametrize("name", EVERY)
def test_a_calibrated_geometry_is_set_on_pins(name: str):
    """Oracle: Tauloop's model of the machine with other values."""
    module, rng = compiled(name), np.random.default_rng(7)
    names = [pin.parameter for pin in module.export.pins if not pin.parameter.startswith("tool.")]
    table = model(name).mechanism.parameters
    errors = {"m": 2e-4, "rad": 2e-4, "1": 1e-4}
    units = {"mm": "m", "deg": "rad", "1": "1"}
    moved = {
        pin.parameter: table[pin.parameter].value + errors[units[pin.unit]] * rng.normal()
        for pin in module.export.pins[: len(names)]
    }
    machine = model(name).mechanism.with_values(moved)
    lines = tl.export.linuxcnc.geometry_hal(machine).splitlines()
    *figures, asked = (line.split()[2] for line in lines if line.startswith("setp"))
    pins = np.array([*map(float, figures), 0.0])
    assert len(pins) == len(module.pins)
    assert (
        module.hash(pins)
        == int(asked)
        != module.hash(module.pins)
        == module.export.manifest["geometry"]
    )
    assert np.abs(pins - module.pins).max() > 1e-3
    world, before = poses(name)
    status, joints = module.inverse(world, pins)
    other = tl.Model(machine)
    expected = in_units(
        name,
        other.actuator_position(
            other.platform.kinematics(
                tl.export.linuxcnc.platform_positions(module.export.layout, world)
            ).q
        ),
    )
    assert not status.any()
    assert np.abs(expected - before).max() > 1e-2
    assert np.abs(joints - expected).max() < ROUNDING
    status, places = module.forward(joints, pins)
    assert not status.any()
    assert np.abs(places - world).max() < ROUNDING


@needs_compiler
@pytest.mark.parametrize("name", EVERY)
def test_what_is_out_of_reach_or_no_number_is_refused_and_writes_nothing(name: str):
    module, (world, joints) = compiled(name), poses(name)
    far = world[:3].copy()
    far[0, module.export.layout.axes[1].number] += 1e5
    far[1, module.export.layout.axes[1].number] = np.nan
    far[2, module.export.layout.axes[1].number] = np.inf
    status, answers = module.inverse(far)
    if name == "hexapod":  # whose legs have any length: stops are LinuxCNC's limits of joints
        assert status.tolist() == [0, -1, -1]
        assert np.isnan(answers[1:]).all()
    else:
        assert status.tolist() == [-1, -1, -1]
        assert np.isnan(answers).all()
    wrong = joints[:2].copy()
    wrong[0] *= np.where(np.arange(len(wrong[0])) % 2, 5.0, -3.0)
    wrong[1, 0] = np.nan
    status, places = module.forward(wrong)
    assert status.tolist() == [-1, -1]
    assert np.isnan(places).all()


@needs_compiler
def test_a_pin_that_is_no_number_stops_the_machine():
    module, (world, joints) = compiled("five_bar"), poses("five_bar")
    pins = module.pins
    pins[1] = np.nan
    assert module.inverse(world[:1], pins)[0].tolist() == [-1]
    assert module.forward(joints[:1], pins)[0].tolist() == [-1]


@needs_compiler
def test_forward_finds_no_pose_that_the_inverse_would_leave_with_a_jump():
    """Both cranks mirrored about the line between the motors: the tip below it is another working mode."""
    module, (_, joints) = compiled("five_bar"), poses("five_bar")
    assert module.forward(-joints[:1])[0].tolist() == [-1]


@needs_compiler
@pytest.mark.parametrize("compiler", compilers())
def test_the_text_is_strict_c_without_heap_or_library(compiler: str):
    for name in ("five_bar", "hexapod"):
        text = program_text(compiled(name).export)
        done = subprocess.run(
            [compiler, *STRICT], input=text, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert not re.search(
            r"\b(?:malloc|calloc|free|printf|goto|while)\b",
            re.sub(r"/\*.*?\*/", "", text, flags=re.S),
        )
        calls = set(
            re.findall(
                r"\b(?<!tauloop_)(?:sin|cos|tan|exp|log|pow|atan2|sqrt|fabs|floor)\b(?=\()", text
            )
        )
        assert calls <= {"sin", "cos", "atan2", "sqrt", "fabs", "floor"}


def test_the_same_machine_gives_the_same_files_without_time_or_place(tmp_path: Path):
    first = tl.export_linuxcnc(tl.load("five_bar"), folder=tmp_path)
    assert first.files == compiled("five_bar").export.files
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(first.files)
    assert {path.name for path in tmp_path.iterdir() if path.stat().st_mode & 0o100} == {
        "five_bar_headless.py"
    }
    manifest = json.loads((tmp_path / "five_bar_kins_manifest.json").read_text(encoding="utf-8"))
    assert manifest["licence"] == "GPL-2.0-or-later"
    assert 'MODULE_LICENSE("GPL")' in first.files["five_bar_kins.c"]
    assert manifest["axes"] == "XY"
    assert [joint["unit"] for joint in manifest["joints"]] == ["deg", "deg"]
    assert len(manifest["machine"]["sha256"]) == 64


def test_the_command_states_the_license_of_the_module():
    lines = list(linuxcnc_tables(compiled("five_bar").export))
    assert "GPL-2.0-or-later" in lines[-1]


def test_limits_of_the_file_are_those_of_the_simulation():
    text = compiled("hexapod").export.files["hexapod.ini"]
    joints = text.split("[JOINT_")[1:]
    assert len(joints) == 6
    assert all(
        "MIN_LIMIT = 330\nMAX_LIMIT = 530\nMAX_VELOCITY = 600\n" in joint for joint in joints
    )
    # 60 mm of tool above the plate's 300 to 400 mm
    assert "[AXIS_Z]\nMIN_LIMIT = 360\nMAX_LIMIT = 460\n" in text
    bar = compiled("five_bar").export.files["five_bar.ini"]
    assert bar.count("nominal range of the drawing, not a stop") == 2
    assert bar.count("TYPE = ANGULAR") == 2
    assert "COORDINATES = XY\n" in bar


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("tower1.end_stop", "tower1.end-stop"),
        ("platform.tool.at[2]", "platform.tool.at.2"),
        ("x; rm -rf /\nsetp", "x-rm-rf-setp"),
        ("größe", "gr-e"),
        ("…", "pin"),
        ("a" * 60, "a" * 20),
    ],
)
def test_names_of_a_file_become_plain_names_of_pins(text: str, name: str):
    assert pin_name(text, set(), 20) == name


def test_no_two_pins_have_one_name():
    taken: set[str] = set()
    assert [
        pin_name(text, taken, 8) for text in ("a_b", "a-b", "a b", "abcdefghij", "abcdefghik")
    ] == [*("a-b", "a-b-2", "a-b-3", "abcdefgh", "abcd-2")]


def test_hostile_names_reach_no_file_as_they_are():
    """A reader refuses such names in files; a mechanism that is made in Python may have any."""
    machine = tl.load("five_bar")
    first = replace(machine.actuators[0], name="m1 */\nsetp q 1")
    machine = replace(
        machine, name="x*/;$(reboot)#\nloadrt y", actuators=(first, machine.actuators[1])
    )
    export = tl.export_linuxcnc(machine, tl.LinuxcncOptions(name="x"))
    for file, content in export.files.items():
        lines = [line for line in content.splitlines() if "reboot" in line or "setp q" in line]
        assert all(
            line.startswith(("/*", "# ", "(")) or file.endswith(".json") for line in lines
        ), (file, lines)
    assert not [
        line
        for line in export.files["x.hal"].splitlines()
        if line.startswith(("loadrt y", "setp q"))
    ]


@pytest.mark.parametrize(
    ("machine", "says"),
    [
        ("cable_robot", "8 actuators share 6 degrees of freedom"),
        ("gantry_tau_5dof", "do not correspond to the axes X, Y, Z, A, B, C"),
        ("four_bar", "do not correspond to the axes X, Y, Z, A, B, C"),
    ],
)
def test_machines_that_linuxcnc_cannot_drive_are_refused(machine: str, says: str):
    with pytest.raises(tl.InputError, match=says):
        tl.export_linuxcnc(tl.load(machine))


def test_a_motor_over_coupled_joints_is_refused(tmp_path: Path):
    text = """<mujoco><worldbody>
     <body name="a"><joint name="qa" type="slide" axis="1 0 0"/>
      <inertial mass="1" pos="0 0 0" diaginertia="0.01 0.01 0.01"/></body>
     <body name="b"><joint name="qb" type="slide" axis="1 0 0"/>
      <inertial mass="1" pos="0 0 0" diaginertia="0.01 0.01 0.01"/></body></worldbody>
     <tendon><fixed name="belt"><joint joint="qa" coef="1"/><joint joint="qb" coef="1"/></fixed></tendon>
     <equality><joint joint1="qb" joint2="qa" polycoef="0 2 0 0 0"/></equality>
     <actuator><motor name="pull" tendon="belt"/></actuator></mujoco>"""
    path = tmp_path / "belt.xml"
    path.write_text(text)
    with pytest.raises(
        tl.InputError, match="qa: driven by a motor that also drives other coordinates"
    ):
        tl.export_linuxcnc(tl.load(path))


def test_a_work_space_that_is_not_reached_is_refused():
    narrow = ("limits: {drawing: [30 deg, 190 deg]}", "limits: {drawing: [130 deg, 131 deg]}")
    with pytest.raises(tl.InputError, match="even 10 % of the ranges exceeds the joint limits"):
        tl.export_linuxcnc(tl.loads(shipped_text("five_bar", narrow)))


def test_a_model_with_free_parameters_is_refused():
    with pytest.raises(tl.InputError, match=r"free parameters \(crank_length\)"):
        tl.export_linuxcnc(tl.Model(tl.load("five_bar"), free=("crank_length",)))
