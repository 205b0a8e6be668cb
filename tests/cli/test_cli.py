"""The command line from the outside: what it prints, what its JSON holds, and its exit codes 0, 1 and 2."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import problems, run, run_json, text_of
from core_machines import CORE_MACHINES
from extras import extra
from machine_texts import shipped_text
from plots_alike import require_alike

import tauloop as tl
import tauloop.verification.engines.verification
from tauloop import Model, load
from tauloop.cli.commands import COMMANDS
from tauloop.common.result import plain
from tauloop.compiler.c.calling.compiler import compiler_path
from tauloop.display import Plot, read_record
from tauloop.equations.ports import ACTUATORS, Entry
from tauloop.logs import read_log, samples, units, write_log
from tauloop.logs.log import Channel, build_log
from tauloop.mechanism import json_schema, shipped_machines
from tauloop.motion import random_multisine

#: The same program run twice, or by its two entries: rounding through the conditioning of a regular
#: machine.
SAME = 1e-9


# Machines, show, check, schema


def test_machines_lists_every_shipped_machine():
    rows = run_json("list")["machines"]
    assert [row["name"] for row in rows] == list(shipped_machines())
    text = run("list").stdout
    for row in rows:
        assert row["name"] in text
        machine = load(row["name"])
        assert [row[key] for key in ("bodies", "joints", "rods", "actuators")] == [
            len(part) for part in (machine.bodies, machine.joints, machine.rods, machine.actuators)
        ]


@pytest.mark.parametrize("name", CORE_MACHINES)
def test_every_shipped_machine_checks_and_shows(name):
    model = Model(load(name))
    checked = plain(tl.check(model).as_dict())
    assert checked["status"] == "ok"
    assembly = checked["assembly"]
    assert assembly["findings"] == []
    assert (
        assembly["mobility"]
        == assembly["actuators"]
        == assembly["actuator_rank"]
        == len(assembly["independent"])
    )
    assert assembly["rank"] + assembly["mobility"] == len(assembly["velocities"])
    shown = plain(tl.describe(model).as_dict())
    assert shown["assembly"] == assembly
    assert [p["name"] for p in shown["parameters"]] == list(model.mechanism.parameters.names)
    unknowns = [unknown for block in shown["blocks"] for unknown in block["unknowns"]]
    assert len(set(unknowns)) == len(unknowns)
    assert all(len(block["equations"]) == len(block["unknowns"]) for block in shown["blocks"])


def test_check_and_show_as_text():
    assert run("check", "five_bar").stdout.rstrip().endswith("ok")
    text = run("show", "five_bar", "--table", "--blocks").stdout
    for word in (
        "platform.x, platform.y",
        "motor_1, motor_2",
        "rank 4",
        "link_length",
        "chosen",
        "Position blocks",
    ):
        assert word in text
    assert "[" not in run("show", "five_bar").stdout


def test_schema_is_the_published_one():
    assert json.loads(run("env", "schema").stdout) == json_schema() == run_json("env", "schema")


def test_a_machine_with_findings_is_shown_but_fails_its_check(tmp_path):
    path = tmp_path / "locked.yaml"
    moved = "at: [side * base_outer + (i - 1) * 0.1 mm, 0, 0]"
    path.write_text(
        shipped_text("spidermill", ("at: [side * base_outer, 0, 0]", moved)), encoding="utf-8"
    )
    answer = run_json("check", path, code=1)
    assert answer["status"] == "doubtful"
    nearly, finding = answer["assembly"]["findings"]
    assert nearly["where"] == "loops"
    assert "nearly, but not exactly, redundant equations: 1" in nearly["what"]
    assert finding["where"] == "platform.independent"
    assert "the mobility is 1" in finding["what"]
    text = run("check", path, code=1).stdout
    assert "the mobility is 1" in text
    assert text.rstrip().endswith("not usable as described")
    assert run_json("show", path)["blocks"] == []
    # what cannot be computed is an error, not a finding
    assert [problem["what"] for problem in problems("dynamics", path)] == [
        nearly["what"],
        finding["what"],
    ]


def test_passive_freedoms_and_redundant_actuators_are_named(tmp_path):
    path = tmp_path / "two_motors.yaml"
    path.write_text(
        shipped_text(
            "delta",
            ("    actuators:\n      motor: {on: shoulder, force: 41.76 N m}\n", ""),
            (
                "platform:\n",
                "actuators: {one: {on: leg1.shoulder}, two: {on: leg2.shoulder}}\nplatform:\n",
            ),
        ),
        encoding="utf-8",
    )
    assembly = run_json("check", path)["assembly"]
    assert (assembly["passive"], assembly["mobility"], assembly["actuator_rank"]) == (
        ["leg3.shoulder"],
        3,
        2,
    )
    assert len(assembly["notes"]) == 1
    for command in ("check", "show"):
        assert "passive leg3.shoulder" in " ".join(run(command, path).stdout.split())
    assert (
        "no actuator moves 1 of the 3 degrees of freedom" in problems("dynamics", path)[0]["what"]
    )
    answer = run_json("dynamics", path, "--coordinates", "actuators", "--acceleration", "one=2")
    assert (answer["passive"], answer["shared"]) == (["leg3.shoulder"], False)
    assert (np.shape(answer["force"]), np.shape(answer["passive_acceleration"])) == ((1, 2), (1, 1))
    out = tmp_path / "forces.csv"
    printed = run(
        "dynamics", path, "--coordinates", "actuators", "--acceleration", "one=2", "--out", out
    ).stdout
    assert "Passive accelerations" in printed
    again = run_json("dynamics", path, "--coordinates", "actuators", "--motion", out)
    assert np.allclose(again["force"], answer["force"], rtol=1e-9)
    path.write_text(
        shipped_text("four_bar", ("  motor: {on", "  second: {on: rocker_pin}\n  motor: {on")),
        encoding="utf-8",
    )
    assembly = run_json("check", path)["assembly"]
    assert (assembly["redundant_actuators"], assembly["actuator_rank"]) == (["second"], 1)
    assert "redundant actuators second" in " ".join(run("check", path).stdout.split())
    assert run_json("dynamics", path)["shared"]
    assert "the smallest sum of squares" in run("dynamics", path, "--out", out).stdout


def test_all_problems_of_a_broken_file_come_at_once(tmp_path):
    path = tmp_path / "broken.yaml"
    path.write_text(
        shipped_text(
            "delta",
            ("mass: plate_mass", "mass: -1 kg, mas: 3"),
            ("x: {drawing: [-0.2 m,", "x: {drawing: [-0.2,"),
            ("axis: y", "axis: why"),
        ),
        encoding="utf-8",
    )
    refusals = problems("check", path)
    lines = path.read_text(encoding="utf-8").splitlines()
    for where, line in (
        ("mass", "plate: {mass"),
        ("limits.x", "x: {drawing: [-0.2,"),
        ("axis", "axis: why"),
    ):
        (number,) = [i for i, text in enumerate(lines, start=1) if line in text]
        assert any(
            where in p["where"] and p["line"] == number and p["file"] == str(path) for p in refusals
        )


@pytest.mark.parametrize("content", [b"", bytes(range(256)) * 8, b"name: x", b"[" * 5000])
@pytest.mark.parametrize(
    "command", [["check"], ["show"], ["dynamics"], ["verify"], ["identify", "{}", "log.csv"]]
)
def test_files_that_are_no_machines(tmp_path, content, command):
    path = tmp_path / "machine.yaml"
    path.write_bytes(content)
    arguments = [part.format(path) for part in command] if len(command) > 1 else [*command, path]
    assert problems(*arguments)[0]["file"] == str(path)


def test_misspelt_machines_and_files_that_are_not_there(tmp_path):
    assert "hexapod" in problems("show", "hexapot")[0]["remedy"]
    assert problems("show", tmp_path / "none.yaml")[0]["file"].endswith("none.yaml")
    assert "folder" in problems("show", f"{tmp_path}/")[0]["what"]


# Dynamics


def test_forces_of_a_pose_are_those_of_the_library():
    arguments = (
        "dynamics",
        "delta",
        "--pose",
        "x=0.1, platform.z=-0.5",
        "--acceleration",
        "z=2",
        "--velocity",
        "y=-1",
    )
    model = Model(load("delta"))
    force = model.platform.inverse_dynamics([0.1, 0, -0.5], [0, -1, 0], [0, 0, 2]).force
    text = run(*arguments).stdout
    assert text.count("N m") == 3
    for name, value in zip(model.output_ports("actuators")[0], force, strict=True):
        assert name in text
        assert f"{value:.6g}" in text


def test_a_pose_that_is_not_given_is_the_reference():
    model = Model(load("hexapod"))
    assert tl.inverse_dynamics(model).forces.state.q[0] == pytest.approx(model.assembly.q, abs=SAME)


def table_of_motion(name: str, path: Path, stroke: float, count: int, rate: float) -> Path:
    """A table of multisines of all independent coordinates around the reference pose."""
    model = Model(load(name))
    center = model.platform_position(model.assembly.q)
    excitation = random_multisine(
        center, np.full(len(center), stroke), np.random.default_rng(7), lowest=0.3, highest=2.0
    )
    motion = excitation.sample(np.arange(count) / rate)
    signals = [
        Channel(quantity=kind, channel=column, values=getattr(motion, kind)[:, i].copy(), unit=unit)
        for kind, port in model.platform.ports.motion.items()
        for i, (column, unit) in enumerate(zip(port.columns, port.units, strict=True))
    ]
    return write_log(path, build_log(motion.time, signals))


def test_a_table_goes_in_and_out_and_in_again_by_the_other_entry(tmp_path):
    motion = table_of_motion("five_bar", tmp_path / "motion.csv", 0.06, 40, 20.0)
    model = Model(load("five_bar"))
    by_platform = tl.inverse_dynamics(model, tl.DynamicsOptions(motion=motion))
    out = write_log(tmp_path / "forces.csv", by_platform.log())
    force = by_platform.forces.force
    assert force.shape == (40, 2)
    assert np.ptp(force, axis=0).min() > 0.1  # the motion needs changing forces
    log = read_log(out)
    assert samples(log, "force") == pytest.approx(force, rel=SAME)
    assert set(units(log, "force").values()) == {"N m"}
    by_actuators = tl.inverse_dynamics(
        model, tl.DynamicsOptions(motion=out, coordinates=ACTUATORS)
    ).forces
    assert by_actuators.force == pytest.approx(force, rel=SAME, abs=SAME * np.abs(force).max())
    assert by_actuators.state.q == pytest.approx(by_platform.forces.state.q, abs=SAME)
    again = tl.inverse_dynamics(model, tl.DynamicsOptions(motion=out)).forces
    assert again.force == pytest.approx(force, rel=SAME)
    text = run("dynamics", "five_bar", "--motion", out).stdout
    assert "40 samples" in text
    assert "time [s]" in text
    assert f"{np.abs(force).max():.5g}" in text


def test_a_free_platform_keeps_its_quaternion_in_a_table(tmp_path):
    # a unit quaternion to nine digits
    tilted = tl.DynamicsOptions(pose={"qw": 0.995, "qx": 0.09987492, "z": 0.36})
    model = Model(load("hexapod"))
    first = tl.inverse_dynamics(model, tilted)
    out = write_log(tmp_path / "pose.csv", first.log())
    for entry in Entry:
        again = tl.inverse_dynamics(model, tl.DynamicsOptions(motion=out, coordinates=entry))
        # nine digits of the quaternion
        assert again.forces.force == pytest.approx(first.forces.force, rel=1e-7)


def test_nuwar_below_its_reach_is_told_by_leg_and_millimetres():
    """The paper prints z = -0.9 m: how far each forearm misses is found again by a search over the motor's angle."""
    alpha, beta = np.arctan(np.sqrt(0.5)), np.radians(60)
    angle = np.linspace(-np.pi, np.pi, 2_000_001)
    radial, tangential, up = np.eye(3)
    turned_radial = np.cos(beta) * radial + np.sin(beta) * tangential
    axis = np.cos(alpha) * (np.cos(beta) * tangential - np.sin(beta) * radial) + np.sin(alpha) * up
    arms = np.cos(angle)[:, None] * turned_radial + np.sin(angle)[:, None] * np.cross(
        axis, turned_radial
    )
    elbows = 0.194 * radial + 0.26 * arms
    missing = np.linalg.norm(elbows - (0.03 * radial - 0.9 * up), axis=1).min() - 0.48
    refusals = problems("dynamics", "nuwar", "--pose", "z=-0.9")
    assert [p["where"] for p in refusals] == [f"leg{i}.forearm" for i in (1, 2, 3)]
    for problem in refusals:
        assert f"out of reach by {1e3 * missing:.4g} mm" in problem["what"]


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (
            ["--pose", "q=1,z=a,y,x=0,x=0.1"],
            ["'q'", "'a' is not a number", "'y'", "x is given twice"],
        ),
        (["--pose", "x=nan"], ["--pose x", "nan is not a finite number"]),
        (
            ["--actuators", "motor=0.3"],
            ["leg1.motor, leg2.motor, leg3.motor"],
        ),
        (["--motion", "m.csv", "--velocity", "x=1"], ["--motion", "given in addition to velocity"]),
        (["--side", "side.yaml"], ["delta is a machine file, which has no side file"]),
        (["--motion", "none.csv"], ["no such file"]),
        (["--from-momenta"], ["--from-momenta", "finite differences need more than one pose"]),
        (["--out", "forces.txt"], ["--out", "'forces.txt' does not have the extension"]),
        (["--out", "no_such_folder/forces.csv"], ["cannot be written"]),
    ],
)
def test_options_of_dynamics_that_cannot_be(arguments, texts):
    refusals = " | ".join(p["where"] + p["what"] for p in problems("dynamics", "delta", *arguments))
    for text in texts:
        assert text in refusals


def test_a_table_with_missing_columns_and_other_units(tmp_path):
    path = tmp_path / "motion.csv"
    path.write_text(
        "time [s],position.platform.x [m],position.platform.y [rad],velocity.platform.x [m/s]\n0,0,0,0\n1,0,0,0\n",
        encoding="utf-8",
    )
    refusals = {p["where"]: p["what"] for p in problems("dynamics", "delta", "--motion", path)}
    assert "is in rad, but the machine needs m" in refusals["position.platform.y"]
    assert set(refusals) - {"position.platform.y"} == {
        "position.platform.z",
        *(f"velocity.platform.{axis}" for axis in "yz"),
        *(f"acceleration.platform.{axis}" for axis in "xyz"),
    }


# Verify


@pytest.fixture(scope="module")
def engine() -> str:
    extra("pinocchio")
    return "Pinocchio"


def test_verify_agrees_and_says_so(engine):
    answer = run_json("verify", "five_bar", "--states", 50)
    assert answer["status"] == "ok"
    assert answer["states"] == 50
    assert engine in [row["engine"] for row in answer["engines"]]
    assert (
        max(row["largest_difference"] for row in answer["engines"]) <= answer["tolerance"] == 1e-9
    )
    text = run("verify", "five_bar", "--states", 50).stdout
    assert engine in text
    assert "agrees" in text


def test_verify_fails_when_engines_disagree(engine, monkeypatch):
    # nothing agrees to the last bit
    monkeypatch.setattr(tauloop.verification.engines.verification, "TOLERANCE", 0.0)
    assert run_json("verify", "delta", "--states", 5, code=1)["status"] == "doubtful"
    assert "DISAGREES" in run("verify", "delta", "--states", 5, code=1).stdout


# Identify


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Path:
    """A log of a five-bar without noise, written by the command line itself."""
    folder = tmp_path_factory.mktemp("five_bar")
    motion = table_of_motion("five_bar", folder / "motion.csv", 0.07, 2000, 400.0)
    run("dynamics", "five_bar", "--motion", motion, "--out", folder / "log.csv")
    return folder / "log.csv"


FILTER = ("--trim", 20, "--decimation", 10)


def test_identify_from_a_log_that_dynamics_wrote(log, tmp_path):
    json_file, figure = tmp_path / "result.json", tmp_path / "fit.png"
    files = ("--out", json_file, "--out", figure)
    printed = run_json("identify", "five_bar", log, *FILTER, "--unknowns", "file", *files)
    assert figure.read_bytes().startswith(b"\x89PNG")
    for plot in (piece for piece in read_record(json_file).pieces if isinstance(piece, Plot)):
        require_alike(plot)
        assert len({trace.name for trace in plot.traces}) == len(plot.traces)
    document = json.loads(json_file.read_text(encoding="utf-8"))
    assert document.pop("report")["kind"] == "MachineIdentification"
    assert document == printed
    assert document["status"] == "ok"
    for parameter in document["base_parameters"]:
        assert parameter["unit"]
        assert parameter["standard_deviation"] > 0
    assert [output["name"] for output in document["outputs"]] == ["motor_1", "motor_2"]
    # positions are differentiated numerically, hence not exact
    assert max(output["held_out"]["rmse_percent"] for output in document["outputs"]) < 1.0


def test_identify_judges_by_a_second_log(log):
    parts = read_log(log)
    first, second = log.with_name("first.csv"), log.with_name("second.csv")
    write_log(first, parts.isel(time=slice(0, 1200)))
    write_log(second, parts.isel(time=slice(1200, None)))
    answer = run_json(
        "identify", "five_bar", first, "--validation", second, *FILTER, "--estimator", "ols"
    )
    assert "whole_log" not in answer
    assert answer["estimator"]["name"] == "OrdinaryLeastSquares"
    assert all(
        output["held_out"]["samples"] < output["training"]["samples"]
        for output in answer["outputs"]
    )


def test_doubtful_identification_exits_with_one(log):
    """Without a decent motion in the training part the result is doubtful, and says why."""
    parts = read_log(log)
    short = log.with_name("short.csv")
    write_log(short, parts.isel(time=slice(0, 500)))
    answer = run_json("identify", "five_bar", short, "--trim", 20, "--hold-out", 0.85, code=1)
    assert answer["status"] == "doubtful"
    assert answer["advice"]


@pytest.mark.parametrize(
    ("arguments", "wheres"),
    [
        (
            ["--estimator", "best", "--unknowns", "all", "--output", "legs"],
            ["--unknowns", "--output", "--estimator"],
        ),
        (["--cutoff", 5000], ["--cutoff"]),
        (
            ["--cutoff", -1, "--decimation", 0, "--order", 0, "--trim", -1],
            ["--cutoff", "--order", "--trim", "--decimation"],
        ),
        (["--trim", 1000], ["log"]),
        (["--out", "fit.nothing", *FILTER], ["--out"]),
        (["--out", "no_such_folder/a.json", *FILTER], ["no_such_folder/a.json"]),
    ],
)
def test_options_of_identify_that_cannot_be(log, arguments, wheres):
    assert [p["where"] for p in problems("identify", "five_bar", log, *arguments)] == wheres


def test_a_log_of_another_machine(tmp_path):
    run("dynamics", "hexapod", "--out", tmp_path / "log.csv")
    refusals = {p["where"]: p["what"] for p in problems("identify", "delta", tmp_path / "log.csv")}
    assert refusals == {
        **{f"position.leg{i}.motor": "is in m, but the machine needs rad" for i in (1, 2, 3)},
        **{f"force.leg{i}.motor": "is in N, but the machine needs N m" for i in (1, 2, 3)},
    }


# The computer and the cache


def test_the_json_of_doctor_is_the_functions(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # which no other test fills meanwhile
    tl.doctor()
    assert run_json("env", "doctor") == plain(tl.doctor().as_dict())


@pytest.mark.skipif(compiler_path() is None, reason="needs a C compiler, and there is none here")
def test_cache_lists_what_is_damaged_and_removes_all(tmp_path):
    library = tl.load_function("pendulum_arm", folder=tmp_path).library
    content = library.read_bytes()
    library.unlink()  # this process has loaded it: the same file must not change under its feet
    library.write_bytes(content[:-1] + b"?")
    assert "1 damaged" in run("env", "cache", "--folder", tmp_path, code=1).stdout
    run("env", "cache", "--folder", tmp_path, "--clear")
    assert list(tmp_path.iterdir()) == []


# The frame


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_json(command):
    assert "--json" in run(*command.split(), "--help").stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["show"],
        ["show", "delta", "--colour"],
        ["verify", "delta", "--states", "0"],
        ["verify", "delta", "--seed", "-1"],
        ["identify", "delta", "log.csv", "--hold-out", "1.5"],
    ],
)
def test_what_is_no_command_line_exits_with_two(arguments):
    result = run(*arguments, code=2)
    assert not result.stdout
    assert "Traceback" not in result.stderr


def test_the_program_lists_its_commands():
    text = "".join(run("--help").stdout.split())
    assert all(word in text for command in COMMANDS for word in command.split())


def test_a_command_of_a_distribution_that_is_not_installed_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr("tauloop.cli.app.COMMAND_ENTRY_POINTS", "tauloop.commands.of.nobody")
    assert "reproduce" in run("--help").output
    assert "pip install ./papers" in " ".join(run("paper", "reproduce", code=2).stderr.split())
    run("produce", code=2)


def test_the_picture_of_a_derived_result_is_drawn_once(tmp_path: Path) -> None:
    """A transfer is a fastest motion too, whose part has no picture of its own."""
    picture = tmp_path / "free.png"
    printed = text_of(
        "plan",
        "transfer",
        "five_bar",
        "--end",
        "x=0.02",
        "--intervals",
        12,
        "--out",
        picture,
        code=None,
    )
    assert printed.count("written:") == 1
    assert [file.name for file in tmp_path.iterdir()] == [picture.name]
