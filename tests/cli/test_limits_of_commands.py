"""Commands that use poses name what lies beyond a stop, and refuse it where they are asked to (--within-limits)."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run
from kills import prepare
from machine_texts import shipped_text

from tauloop.cli.commands import COMMANDS

#: The joint at the five-bar's tip, which is cut, is at 97.55 deg in the reference pose: 2.45 deg
#: beyond this stop.
TIP = "    reference: 97.55008118966038 deg\n"
BEYOND = "    reference: 105 deg\n    limits: [100 deg, 110 deg]\n"
SAID = "deg beyond its stop at 100 deg"
#: Words of every command that uses poses of a machine; {machine} is a five-bar with that stop.
WORDS = {
    "verify": ("{machine}", "--states", "3"),
    "view": ("{machine}", "--png", "{out}/view.png"),
    "fk": ("{machine}",),
    "ik": ("{machine}",),
    "jacobian": ("{machine}",),
    "modes": ("{machine}",),
    "workspace": ("{machine}", "--range", "x=-0.01:0.01,y=0.41:0.43", "--resolution", "0.01"),
    "dynamics": ("{machine}",),
    "motion": ("{machine}", "--to", "x=0.002", "--time", "1"),
    "simulate": ("{machine}", "--duration", "0.002"),
    "control": ("{machine}", "--to", "x=0.002", "--time", "0.1", "--controller", "pd"),
    "reduce": ("{machine}", "--states", "3"),
    "export": ("c", "{machine}", "--out", "{out}"),
    "excite": ("{machine}", "--random", "4", "--starts", "0", "--harmonics", "2"),
    "identify": ("{machine}", "{given}/log.csv"),
    "forces": ("{machine}", "{given}/log.csv"),
    "fold": ("{machine}", "{given}/log.csv", "--folder", "{out}/folded", "--errors", "independent"),
    "calibrate": (
        "{machine}",
        "{given}/poses.csv",
        "--parameters",
        "*length*",
        "--noise",
        "0.01 mm",
    ),
    "poses": ("{machine}", "--count", "4", "--candidates", "20", "--parameters", "link_length"),
    "play": ("{machine}", "--range", "x=-0.01:0.01,y=0.41:0.43"),
}
#: The other commands, and why they have no such option.
WITHOUT = {
    "ballbar": "has it; its machine needs drive lines (see test_drives_machine.py)",
    "machines": "uses no pose",
    "fastest": "refuses a path beyond them, whatever it is asked",
    "transfer": "keeps within them",
    "cycle": "refuses a way beyond them",
    "detect-hit": "runs a stroke under a controller, whose run says it",
    "track": "follows the log of a machine, wherever that went",
    "new": "checks the work volume of a new file and says what does not reach",
    "demo": "plans within the limits",
    "report": "shows results and computes no pose",
    "doctor": "uses no pose",
    "show": "describes the machine",
    "check": "says it of the reference pose, which is a problem: exit code 1",
    "regroup": "is about parameters at all poses",
    "link-parameters": "is about parameters at all poses",
    "equations": "holds at all poses",
    "cost": "counts operations; says it of the reference pose",
    "convert": "writes what it has read",
    "subtract": "knows two logs and no machine",
    "drive": "knows a drive line and no machine",
    "tune": "knows a drive line and no machine",
    "fit-plant": "knows a drive line and no machine",
    "cache": "uses no machine",
    "study": "varies machines; what a sample is refused for is kept with it",
    "schema": "uses no machine",
    "run": "is driven by a controller elsewhere",
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine whose reference pose is beyond a stop, a log of its stroke, and measured poses."""
    folder = tmp_path_factory.mktemp("given")
    prepare(folder)
    (folder / "machine.yaml").write_text(shipped_text("five_bar", (TIP, BEYOND)), encoding="utf-8")
    return folder


def call(command: str, inputs: Path, out: Path, *options: str, code: int | None = None) -> str:
    words = [
        word.format(machine=inputs / "machine.yaml", given=inputs, out=out)
        for word in WORDS[command]
    ]
    result = run(command, *words, *options, code=code)
    return " ".join((result.output + (result.stderr or "")).split())


#: Commands that take long once nothing refuses.
LONG = (
    "verify",
    "modes",
    "reduce",
    "simulate",
    "identify",
    "fold",
    "calibrate",
    "excite",
    "control",
    "view",
)


@pytest.mark.parametrize("command", WORDS)
def test_a_command_refuses_what_is_beyond_a_stop_when_asked(
    command: str, inputs: Path, tmp_path: Path
) -> None:
    assert SAID in call(command, inputs, tmp_path, "--within-limits", code=2)


@pytest.mark.parametrize(
    "command",
    [pytest.param(name, marks=[pytest.mark.nightly] if name in LONG else []) for name in WORDS],
)
def test_a_command_names_what_is_beyond_a_stop(command: str, inputs: Path, tmp_path: Path) -> None:
    assert SAID in call(command, inputs, tmp_path)


def test_no_command_is_forgotten() -> None:
    assert set(WORDS) | set(WITHOUT) == set(COMMANDS)
    for command in COMMANDS:
        text = run(command, "--help").output
        assert ("--within-limits" in text) is (command in WORDS or command == "ballbar")
