"""Commands on a machine whose file states forces that are left out: results that need forces are doubtful."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run, run_json, text_of

from tauloop.cli.app import command_words

ARM = """<mujoco model="arm"><compiler angle="radian"/><worldbody>
<body name="upper"><joint name="shoulder" axis="0 1 0"/>
<inertial pos="0 0 0.1" mass="1" diaginertia="0.01 0.011 0.002"/>
<body name="lower" pos="0 0 0.2" gravcomp="1"><joint name="wrist" axis="0 1 0"/>
<inertial pos="0.2 0 0.1" mass="0.7" diaginertia="0.01 0.012 0.003"/></body></body></worldbody>
<actuator><motor name="a" joint="shoulder"/><motor name="b" joint="wrist"/></actuator></mujoco>"""
WEIGHT = "the compensation of the weight of body lower (gravcomp=1)"


@pytest.fixture
def arm(tmp_path: Path) -> Path:
    path = tmp_path / "arm.xml"
    path.write_text(ARM, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "command",
    [
        ["simulate", "--duration", "0.02"],
        ["dynamics"],
        ["verify", "--states", "2"],
        ["model", "cost"],
        ["convert", "arm.yaml"],
        ["export", "c", "--out", "code", "--functions", "inverse_dynamics"],
        ["model", "reduce"],
        ["model", "base-parameters"],
    ],
    ids=" ".join,
)
def test_results_that_need_forces_are_doubtful(
    arm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    count = len(command_words(command).split())
    words = [*command[:count], arm, *command[count:]]
    printed = text_of(*words, code=1)
    assert (
        printed.count(
            f"doubtful: forces of the source file that are left out: 1 (limit: at most 0): {WEIGHT}"
        )
        == 1
    )
    assert run_json(*words, code=1)["status"] == "doubtful"


def test_check_reports_them(arm: Path) -> None:
    assert f"omitted: {WEIGHT}" in " ".join(run("check", arm, code=1, columns=400).output.split())
    (problem,) = run_json("check", arm, code=1)["problems"]
    assert WEIGHT in problem["what"]


def test_kinematics_do_not_need_them(arm: Path) -> None:
    assert "doubtful" not in text_of("fk", arm, "--actuators", "a=0.1,b=0.2")


def test_the_next_command_of_a_process_has_its_own_machine(arm: Path) -> None:
    run("dynamics", arm, code=1)
    assert "doubtful" not in text_of("dynamics", "four_bar")
