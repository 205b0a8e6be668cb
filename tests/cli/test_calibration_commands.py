"""``tauloop calibrate`` and ``poses``: what they print, write and refuse, and their JSON beside the functions'."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from calibration_sessions import encoders, machine, measured, part_errors, written
from command_line import problems, run, run_json, text_of

from tauloop import load
from tauloop.calibration import (
    Bounds,
    CalibrationOptions,
    Cauchy,
    Contact,
    FitOptions,
    PosePlanOptions,
    Position,
    Series,
    calibrate,
    plan_poses,
)
from tauloop.calibration.pose_selection.candidates import PoseLimits

NAME, NOISE = "gantry_tau_3dof", 2e-5
NEEDED = ("--noise", "0.02 mm", "--parameters", "track*.length")
SIZES = (
    "plan",
    "poses",
    NAME,
    "--parameters",
    "track*.length,track*.offset_?",
    "--count",
    10,
    "--candidates",
    60,
)
PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def series() -> Series:
    """Twenty-five poses of a machine with other lengths."""
    draw = np.random.default_rng(8)
    true = part_errors(NAME, ("track*.length",), 3e-4, draw)
    return measured(NAME, true, Position(name="t"), encoders(NAME, 25, draw), NOISE)


@pytest.fixture(scope="module")
def table(series: Series, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(series, tmp_path_factory.mktemp("session") / "tracker.csv")


def test_calibrate_prints_its_judgement_and_writes_machine_figure_and_result(
    table: Path, tmp_path: Path
) -> None:
    out, figure, document = tmp_path / "c.yaml", tmp_path / "c.png", tmp_path / "c.json"
    hal = tmp_path / "c.hal"
    files = ("--out", out, "--out", figure, "--out", document, "--out", hal)
    against = ("--compare-with", "track*.length,track*.yaw", "--random-splits", 2)
    text = text_of("calibrate", NAME, table, *NEEDED, *files, *against)
    assert "status: ok" in text
    assert "recommended: --parameters" in text
    again = load(out)
    for row in json.loads(document.read_text(encoding="utf-8"))["parameters"]:
        assert again.parameters[row["name"]].value == pytest.approx(row["value"], rel=1e-12)
        assert again.parameters[row["name"]].status == "calibrated"
    assert figure.read_bytes().startswith(PNG)
    lines = [
        line.split()
        for line in hal.read_text(encoding="ascii").splitlines()
        if line.startswith("setp ")
    ]
    set_to = {pin.removeprefix(f"{NAME}_kins."): float(value) for _, pin, value in lines}
    lengths = [f"track{k}.length" for k in (1, 2, 3)]
    assert [set_to[name] for name in lengths] == pytest.approx(
        [1e3 * again.parameters[name].value for name in lengths]
    )
    assert set_to["track1.length"] != 1250.0


def test_the_json_of_calibrate_is_the_functions(table: Path) -> None:
    words = (
        "--loss",
        "CAUCHY",
        "--priors",
        "track1*,track2*",
        "--priors",
        "track3*",
        "--bounds",
        "track1.length=:2 m",
    )
    command = (
        "calibrate",
        NAME,
        table,
        "--noise",
        "20 um",
        "--parameters",
        "track*.length",
        *words,
        "--replicates",
        3,
    )
    limits = {"track1.length": Bounds(upper=2.0, unit="m")}
    options = CalibrationOptions(
        noise="20 um",
        parameters=("track*.length",),
        priors=("track1*", "track2*", "track3*"),
        fit=FitOptions(loss=Cauchy(), bounds=limits),
        replicates=3,
    )
    result = calibrate(machine(NAME), [table], options)
    assert run_json(*command) == json.loads(json.dumps(result.as_dict()))


@pytest.mark.parametrize(
    ("spoilt", "says"),
    [
        ("a drift", "residuals: y of tracker has a trend with order"),
        ("a pose", "outlier: tracker, pose 8 (line 9): x off by -0.6"),
        ("a bound", "unknowns at a bound (track1.length): 1"),
    ],
)
def test_calibrate_says_why_its_result_is_doubtful(
    series: Series, tmp_path: Path, spoilt: str, says: str
) -> None:
    """A drift of six standard deviations, a pose that is thirty off, a length that may not reach its value."""
    readings, words = series.readings.copy(), NEEDED
    if spoilt == "a drift":
        readings[:, 1] += 6 * NOISE * np.linspace(-1, 1, 25)
    elif spoilt == "a pose":
        readings[7, 0] += 30 * NOISE
    else:
        length = 1e3 * machine(NAME).parameters["track1.length"].value
        words = (
            *NEEDED,
            "--bounds",
            f"track1.length={length - 0.001} mm:{length + 0.001} mm,track2.length=:2 m",
        )
    spoiled = written(replace(series, readings=readings), tmp_path / "t.csv")
    assert says in text_of(
        "calibrate", NAME, spoiled, *words, code=None if spoilt == "a drift" else 1
    )


def test_calibrate_says_which_swaps_cannot_be_seen(tmp_path: Path) -> None:
    name, draw = "linear_delta", np.random.default_rng(1)
    poses = encoders(name, 30, draw, 0.02)
    bed = written(measured(name, {}, Contact(name="bed"), poses, NOISE), tmp_path / "bed.csv", name)
    words = ("--measure", "contact", "--noise", "0.02 mm", "--parameters", "tower*.end_stop")
    text = text_of("calibrate", name, bed, *words, code=None)
    remark = "cannot show whether the encoders of tower1.motor and tower2.motor are swapped: check the wiring"
    assert remark in text


def test_calibrate_refuses_words_that_cannot_be_read(table: Path) -> None:
    words = ("--loss", "cubic", "--bounds", "track1.length=1 kg:")
    answer = problems("calibrate", NAME, table, *NEEDED, *words)
    assert [problem["where"] for problem in answer] == ["--bounds", "--loss"]
    assert "squares, huber, cauchy" in answer[1]["remedy"]
    (gross,) = problems(
        "calibrate", NAME, table, "--noise", "0.02 mm", "--parameters", "track1.lenght"
    )
    assert "did you mean" in gross["remedy"]


def test_poses_writes_its_plan_and_its_json_is_the_functions(tmp_path: Path) -> None:
    figure, out = tmp_path / "poses.png", tmp_path / "poses.csv"
    more = ("--curve", "--ranges", "y=-200:200 mm")
    answer = run_json(*SIZES, *more, "--out", figure, "--out", out)
    limits = PoseLimits(ranges={"platform.y": (-0.2, 0.2)})
    parameters = ("track*.length", "track*.offset_?")
    options = PosePlanOptions(
        parameters=parameters, count=10, candidates=60, curve=True, limits=limits
    )
    assert answer == json.loads(json.dumps(plan_poses(load(NAME), options).as_dict()))
    assert answer["status"] == "ok"
    assert len(answer["positions"]) == len(answer["encoders"]) == 10
    assert [point["count"] for point in answer["curve"]] == [4, 6, 8, 10, 15, 20, 30, 40]
    assert figure.stat().st_size > 10_000
    lines = out.read_text().splitlines()
    assert (
        lines[0] == "pose,track1.motor,track2.motor,track3.motor,platform.x,platform.y,platform.z"
    )
    assert [float(text) for text in lines[1].split(",")[1:4]] == pytest.approx(
        answer["encoders"][0], abs=1e-8
    )
    assert "observability O5" in run(*SIZES).stdout


def test_poses_refuses_all_bad_options_at_once() -> None:
    answer = problems("plan", "poses", NAME, "--measure", "smell", "--criterion", "Q")
    assert {problem["where"] for problem in answer} == {"--measure", "--criterion", "--parameters"}
    for center, what in (
        ("1, 2", "is not three lengths"),
        ("1 deg, 2, 3", "is an angle (rad) where a length (m)"),
    ):
        bar = ("--parameters", "track1.length", "--measure", "distance", "--ball-center", center)
        assert what in problems("plan", "poses", NAME, *bar)[0]["what"]
