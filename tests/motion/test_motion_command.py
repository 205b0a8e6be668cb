"""`tauloop motion`: the table that it writes goes through `tauloop dynamics`; its choices and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from tauloop.cli.app import app
from tauloop.logs import read_log, samples

STROKE = [
    "nuwar",
    "--shape",
    "ellipse",
    "--from",
    "y=-0.144,z=-0.648",
    "--via",
    "y=0,z=-0.36",
    "--to",
    "y=0.144,z=-0.648",
]
CLOTHOID = ["--shape", "clothoid", "--from-heading", "0", "--to-heading", "1"]
MOTION_UNITS = {"position": "m", "velocity": "m/s", "acceleration": "m/s^2"}
#: A table at 1 kHz misses the peak between two samples.
BETWEEN_SAMPLES = 2e-3


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["motion", *arguments])
    return result.exit_code, result.output


def test_the_table_is_input_of_inverse_dynamics_and_has_the_same_peaks(tmp_path):
    table = tmp_path / "stroke.csv"
    code, text = run(*STROKE, "--acceleration", "294.82", "--returns", "--json", "--out", str(table))
    assert code == 0
    planned = json.loads(text)
    assert planned["peak_acceleration"] == pytest.approx(294.82)
    assert planned["total_s"] == pytest.approx(2 * planned["duration_s"])
    result = CliRunner().invoke(app, ["dynamics", "nuwar", "--motion", str(table), "--json"])
    assert result.exit_code == 0
    force = np.abs(json.loads(result.output)["force"]).max(axis=0)
    peaks = np.array([abs(row["peak_force"]) for row in planned["forces"]])
    assert force == pytest.approx(peaks, rel=BETWEEN_SAMPLES)
    assert (force <= peaks * (1 + 1e-12)).all()


def test_without_a_duration_the_machine_sets_it():
    code, text = run(*STROKE)
    assert code == 0
    assert "41.76" in text
    assert "100.0% of the limit of leg3.motor" in text
    code, text = run(*STROKE, "--share", "0.5", "--json")
    assert json.loads(text)["tightest_limit"]["share"] == pytest.approx(0.5)
    assert max(abs(row["peak_force"]) for row in json.loads(text)["forces"]) == pytest.approx(0.5 * 41.76)


@pytest.mark.parametrize(
    "shape",
    [
        [
            "--shape",
            "polyline",
            "--from",
            "y=-0.1",
            "--via",
            "y=-0.1,z=-0.42",
            "--via",
            "y=0.1,z=-0.42",
            "--to",
            "y=0.1",
        ],
        ["--shape", "spline", "--from", "y=-0.1", "--via", "x=0.02,y=0", "--to", "y=0.1"],
        ["--to", "y=0.1", "--law", "trapezoidal"],
    ],
    ids=["polyline", "spline", "line"],
)
def test_every_shape_ends_where_it_was_told(tmp_path, shape):
    table = tmp_path / "motion.csv"
    code, _ = run("delta", *shape, "--time", "0.4", "--out", str(table))
    assert code == 0
    log = read_log(table)
    assert samples(log, "position", ("platform.y", "platform.z"))[-1] == pytest.approx([0.1, -0.5])
    assert samples(log, "velocity")[[0, -1]] == pytest.approx(np.zeros((2, 3)), abs=1e-12)


def test_a_clothoid_leaves_and_arrives_as_it_was_told(tmp_path):
    table = tmp_path / "clothoid.csv"
    words = "--shape clothoid --from x=0,y=-0.1 --to x=0,y=0.1 --from-heading 45deg --to-heading 2.0 --time 0.5"
    assert run("delta", *words.split(), "--out", str(table))[0] == 0
    speed = samples(read_log(table), "velocity", ("platform.x", "platform.y"))
    heading = np.arctan2(speed[:, 1], speed[:, 0])
    assert heading[[2, -3]] == pytest.approx([np.pi / 4, 2.0], abs=1e-3)  # a few samples from rest


def test_a_multisine_stays_in_its_band_and_stroke_and_rests_at_its_ends(tmp_path):
    table, time = tmp_path / "sines.csv", 60.0
    words = "five_bar --entry actuators --shape multisine --from motor_1=100deg,motor_2=70deg --seed 2 --time 60"
    words += " --to motor_1=110deg,motor_2=75deg --frequencies 0.5,2 --frequency 100 --json"
    code, text = run(*words.split(), "--out", str(table))
    assert code == 0
    assert json.loads(text)["duration_s"] == time
    log = read_log(table)
    moved = samples(log, "position") - np.radians([100.0, 70.0])
    speed, pull = (samples(log, kind) for kind in ("velocity", "acceleration"))
    assert (np.abs(moved).max(axis=0) < np.radians([10.0, 5.0])).all()
    for values in (moved, speed, pull):
        assert values[[0, -1]] == pytest.approx(np.zeros((2, 2)), abs=1e-9)
    assert np.gradient(moved, 0.01, axis=0)[5:-5] == pytest.approx(speed[5:-5], abs=3e-3)
    assert np.gradient(speed, 0.01, axis=0)[5:-5] == pytest.approx(pull[5:-5], abs=0.1)
    power = np.abs(np.fft.rfft(moved * np.hanning(len(moved))[:, None], axis=0)) ** 2
    inside = (np.fft.rfftfreq(len(moved), 0.01) > 0.4) & (np.fft.rfftfreq(len(moved), 0.01) < 2.1)
    assert (power[inside].sum(axis=0) > 0.999 * power.sum(axis=0)).all()


def test_a_spline_from_a_table_and_a_turn(tmp_path):
    points = tmp_path / "points.csv"
    points.write_text("time [s],position.platform.z [mm]\n0,350\n1,360\n2,355\n", encoding="utf-8")
    code, text = run("hexapod", "--points", str(points), "--turn", "0,0,0.2", "--time", "0.5", "--json")
    assert code == 0
    assert json.loads(text)["columns"] == [f"platform.{name}" for name in ("z", "qw", "qx", "qy", "qz")]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nuwar"], "--to"),
        (["nuwar", "--to", "z=-0.5"], "has no length"),
        (["nuwar", "--to", "q=1"], "no coordinate"),
        (["nuwar", "--to", "z=-0.9"], "out of reach by 211.1 mm"),
        (["nuwar", "--to", "z=-0.4", "--time", "1", "--speed", "1"], "given beside time"),
        (["nuwar", "--to", "z=-0.4", "--time", "-1"], "above 0"),
        (["nuwar", "--to", "z=-0.4", "--via", "x=0"], "needs 0"),
        (["nuwar", "--to", "z=-0.4", "--turn", "0,0,1"], "no free orientation"),
        (["hexapod", "--to", "z=0.36", "--turn", "0,1"], "is not three numbers"),
        (["nuwar", "--to", "z=-0.4", "--shape", "star", "--law", "none"], "unknown: 'star'"),
        (
            ["nuwar", "--shape", "clothoid", "--from", "x=0", "--to", "y=0.1"],
            "--to-heading: a clothoid has no direction",
        ),
        (["nuwar", "--to", "z=-0.4", "--from-heading", "1"], "is of a clothoid alone"),
        (["hexapod", *CLOTHOID, "--to", "x=0.1"], "are no plane of two lengths"),
        (["nuwar", "--shape", "multisine", "--to", "z=-0.5", "--speed", "1"], "--time: a multisine has its own"),
        (["nuwar", "--shape", "multisine", "--to", "z=-0.5", "--time", "1", "--frequencies", "2,1"], "is no range"),
        (["hexapod", "--shape", "multisine", "--to", "qx=0.1", "--time", "1"], "numbers of a quaternion"),
        (["gantry_tau_5dof", "--shape", "polyline", "--to", "x=0.1", "--via", "x=0.05,qx=0.05"], "no lengths to blend"),
    ],
)
def test_what_makes_no_motion_is_refused(arguments, says):
    code, text = run(*arguments)
    assert code == 2
    assert says in text.replace("\n", " ")


def test_inverse_dynamics_of_a_table_through_a_singularity_is_refused(tmp_path):
    """The five-bar's distal links lie in one line at y = 0, which no row of the table hits."""
    table = tmp_path / "through.csv"
    y = np.linspace(0.42, -0.05, 42)
    assert np.abs(y).min() > 1e-3
    header = [f"{kind}.platform.{axis} [{unit}]" for kind, unit in MOTION_UNITS.items() for axis in "xy"]
    rows = [",".join(f"{value:.9g}" for value in (k / 41, 0, y[k], 0, -0.47, 0, 0)) for k in range(42)]
    table.write_text("\n".join([",".join(["time [s]", *header]), *rows]), encoding="utf-8")
    result = CliRunner().invoke(app, ["dynamics", "five_bar", "--motion", str(table), "--json"])
    assert result.exit_code == 2
    (problem,) = json.loads(result.output)["problems"]
    assert "passes a parallel singularity" in problem["what"]
    assert float(problem["where"].removeprefix("sample ")) == pytest.approx(0.42 / 0.47 * 41, abs=0.01)


# The example of the NUWAR paper
