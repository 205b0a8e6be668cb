"""``tauloop drive``, ``ballbar``, ``play``, ``tune`` and ``fit-plant``: text, files, exit codes, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import problems, run, run_json, text_of

import tauloop as tl
from tauloop.drives import DriveLineFitOptions, TuningOptions, load_drive
from tauloop.export.drive_control import export_control
from tauloop.logs import read_log
from tauloop.mechanism.description.drives.drive_file import DRIVE_FORMAT

RACKS = Path(__file__).parents[2] / "examples" / "gantry_tau_racks" / "gantry_tau_racks.yaml"
PNG = b"\x89PNG"
STEPS = """
format: tauloop-steps/1
steps:
  slow: {step: 100 mm, set: {kp: 150, ti: 1.8}, measured: {rise_time: 660 ms, energy: 2000 N^2 m^2 s}}
  judge: {step: 50 mm, set: {kp: 200, ti: 1.5}, measured: {rise_time: 560 ms}, held_out: yes}
"""
TUNE = (
    "drive tune dual_motor_axis --bounds kp=100:300,ti=0.5:2 --scales rise_time=1.7 --scales "
    "settling_time=4 --budget 20"
)


def test_drive_prints_its_cycle_and_draws(tmp_path: Path) -> None:
    picture = tmp_path / "step.png"
    words = ("--duration", 30, "--cycle", "--compare", "dual_motor_axis", "--out", picture)
    text = text_of("drive", "step", "single_motor_axis", *words)
    for word in ("rise time", "energy", "simulated", "describing function", "events"):
        assert word in text
    assert picture.read_bytes().startswith(PNG)
    assert "cart.position > 0.03, the end" in text_of(
        "drive", "step", "dual_motor_axis", "--until", "cart.position>0.03"
    )


def test_drive_writes_its_signals_as_a_log(tmp_path: Path) -> None:
    run("drive", "step", "single_motor_axis", "--duration", 0.1, "--out", tmp_path / "step.csv")
    log = read_log(tmp_path / "step.csv")
    step = tl.simulate_drive_line(
        load_drive("single_motor_axis"), tl.DriveOptions(duration=0.1)
    ).to_xarray()
    assert set(log) == {name for name in step if "." in str(name)}
    for name in log:
        assert log[name].equals(step[name])
        assert log[name].attrs["units"] == step[name].attrs["units"]


def test_drive_writes_the_control_law_in_c(tmp_path: Path) -> None:
    text = run("drive", "step", "dual_motor_axis", "--duration", 0.01, "--out", tmp_path).stdout
    made = export_control(load_drive("dual_motor_axis"))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict(made.files)
    assert f"{made.name}.h" in text.replace("\n", "")


def test_a_step_that_diverges_is_said_and_fails() -> None:
    assert "diverged at" in text_of("drive", "step", "dual_motor_axis", "--set", "ti=0.001", code=1)


@pytest.mark.parametrize(
    ("words", "where"),
    [
        ("drive step single_motor_axis --compare dual_motor_axis", "--compare"),
        ("drive step dual_motor_axis --set gapp=1", ""),
        ("drive step dual_motor_axis --set gap", ""),
        ("drive step dual_motor_axis --set gap=wide", ""),
        ("drive step dual_motor_axis --set gap=-1", ""),
        ("drive step dual_motor_axis --set gap=0", ""),
        ("drive step dual_motor_axis --until cart.postion>1", "--until cart.postion"),
        ("drive step dual_motor_axis --record cart.postion>1", "--record cart.postion"),
        (
            "accuracy ballbar RACKS --radius 0.05 --speed 0.6 --until platfrm.x>0 --only rigid",
            "--until",
        ),
        ("accuracy ballbar RACKS --only rigd", "--only"),
        ("accuracy ballbar RACKS --plane x", ""),
        ("accuracy ballbar gantry_tau_3dof", ""),
        ("accuracy backlash gantry_tau_3dof --plane y", ""),
    ],
)
def test_what_cannot_be_is_refused_by_the_name_of_its_option(words: str, where: str) -> None:
    assert problems(*words.replace("RACKS", str(RACKS)).split())[0]["where"].startswith(where)


def test_ballbar_prints_draws_watches_and_ends(tmp_path: Path) -> None:
    picture, options = tmp_path / "circle.png", ("--radius", 0.05, "--speed", 0.6)
    text = text_of("accuracy", "ballbar", RACKS, *options, "--only", "dual,rigid", "--out", picture)
    assert all(word in text for word in ("two motors", "rigid", "[um]"))
    assert picture.read_bytes().startswith(PNG)
    events = ("--until", "platform.x>0.02", "--record", "velocity.platform.x>0.05")
    answer = run_json("accuracy", "ballbar", RACKS, *options, *events, "--only", "rigid")
    watched, ended = answer["events"]["rigid"]
    assert (watched["name"], ended["name"]) == ("velocity.platform.x > 0.05", "platform.x > 0.02")
    assert 0 < watched["time_s"] < ended["time_s"]
    assert "rigid" in answer["ended_early"]


def test_play_prints_draws_and_writes(tmp_path: Path) -> None:
    picture, out = tmp_path / "play.png", tmp_path / "play.nc"
    text = text_of(
        "accuracy", "backlash", "gantry_tau_3dof", "--plane", "y,z", "--out", picture, "--out", out
    )
    assert "all, worst case" in text
    assert "workspace: platform.x" in text
    assert picture.read_bytes().startswith(PNG)
    assert out.stat().st_size > 0


def test_show_and_schema_know_drive_lines() -> None:
    text = text_of("show", RACKS)
    assert "drive2 (slave)" in text
    assert "9.6 kg" in text
    line = run_json("show", RACKS)["actuators"][0]["drive_line"]
    assert line["play"] == pytest.approx({"rack1": 5e-5, "rack2": 5e-5})
    assert json.loads(run("env", "schema", "--drive-line").stdout)["title"] == DRIVE_FORMAT


def test_tune_says_how_to_use_what_it_has_found_and_its_json_is_the_functions() -> None:
    assert "tauloop drive step dual_motor_axis --set kp=" in text_of(
        *TUNE.split(), "--duration", 6, code=None
    )
    options = TuningOptions(
        bounds={"kp": (100.0, 300.0), "ti": (0.5, 2.0)},
        scales={"rise_time": 1.7, "settling_time": 4.0},
        budget=20,
        duration=6.0,
    )
    tuning = tl.tune_drive_line(load_drive("dual_motor_axis"), options)
    assert run_json(*TUNE.split(), "--duration", 6, code=None) == json.loads(
        json.dumps(tuning.as_dict())
    )
    problem, *_ = problems("drive", "tune", "dual_motor_axis", "--bounds", "kp=1")
    assert "kp: '1' is not LOW:HIGH" in problem["what"]


def test_fit_plant_prints_what_was_held_out_and_its_json_is_the_functions(tmp_path: Path) -> None:
    steps = tmp_path / "steps.yaml"
    steps.write_text(STEPS, encoding="utf-8")
    words = (
        "drive",
        "fit",
        "dual_motor_axis",
        steps,
        "--bounds",
        "cart_viscous=10:100,preload=5:12",
        "--generations",
        0,
    )
    assert "held out" in text_of(*words, code=None)
    options = DriveLineFitOptions(
        bounds={"cart_viscous": (10.0, 100.0), "preload": (5.0, 12.0)}, generations=0
    )
    seen: list[tuple[int, int]] = []
    fitted = tl.fit_drive_line(
        load_drive("dual_motor_axis"),
        steps,
        options,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]
    assert run_json(*words, code=None) == json.loads(json.dumps(fitted.as_dict()))


def test_fit_plant_says_all_that_is_wrong_with_its_file(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(
        "format: tauloop-steps/1\nsteps:\n  a: {step: 1 mm, measured: {rise_tme: 1 m}, held: yes}\n"
    )
    text = run("drive", "fit", "dual_motor_axis", wrong, "--bounds", "gap=1e-5:1e-3", code=2).stderr
    for word in ("rise_tme", "held", "line 3"):
        assert word in text
