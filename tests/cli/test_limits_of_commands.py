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
    "view": ("{machine}", "--out", "{out}/view.png"),
    "fk": ("{machine}",),
    "ik": ("{machine}",),
    "jacobian": ("{machine}",),
    "modes": ("{machine}",),
    "workspace": ("{machine}", "--ranges", "x=-0.01:0.01,y=0.41:0.43", "--resolution", "0.01"),
    "dynamics": ("{machine}",),
    "design motors": ("{machine}", "{given}/motion.csv"),
    "plan stroke": ("{machine}", "--end", "x=0.002", "--duration", "1"),
    "simulate": ("{machine}", "--duration", "0.002"),
    "control follow": (
        *("{machine}", "--end", "x=0.002", "--duration", "0.1", "--controller", "pd"),
    ),
    "model reduce": ("{machine}", "--states", "3"),
    "export c": ("{machine}", "--out", "{out}"),
    "plan excitation": ("{machine}", "--random", "4", "--starts", "0", "--harmonics", "2"),
    "identify": ("{machine}", "{given}/log.csv"),
    "log forces": ("{machine}", "{given}/log.csv"),
    "calibrate": (
        *("{machine}", "{given}/poses.csv", "--parameters", "*length*", "--noise", "0.01 mm"),
    ),
    "plan poses": (
        *("{machine}", "--count", "4", "--candidates", "20", "--parameters", "link_length"),
    ),
    "accuracy backlash": ("{machine}", "--ranges", "x=-0.01:0.01,y=0.41:0.43"),
    "accuracy tolerances": ("{machine}", "--tolerances", "link_length=0.1mm", "--pose", "x=0"),
    "design tolerances": (
        *("{machine}", "--tolerances", "link_length=0.1mm", "--limits", "x=1mm", "--pose", "x=0"),
    ),
}
#: The other commands, and why they have no such option.
WITHOUT = {
    "design certify": "proves that its whole box is within the stops",
    "design synthesize": "requires that its whole box is within the stops of the task",
    "accuracy ballbar": "has it; its machine needs drive lines (see test_drives_machine.py)",
    **dict.fromkeys(
        (
            "stiffness",
            "vibration",
            "accuracy thermal",
            "accuracy compliance",
            "accuracy compensate",
            "accuracy compensation-table",
        ),
        "have it; their machine needs elastic data (see test_elastic_commands.py)",
    ),
    **dict.fromkeys(
        (
            *("export controller", "export fmu", "export linuxcnc", "export ros2"),
            *("export transmission", "export compensation"),
        ),
        "have it, as of export c",
    ),
    "list": "uses no pose",
    "plan path": "refuses a path beyond them in any case",
    "plan transfer": "keeps within them",
    "plan cycle": "refuses a path beyond them",
    "control collision": "runs a stroke under a controller, whose run reports it",
    "log drive-stiffness": "knows the log of a drive, wherever that went",
    "log track": "follows the log of a machine, wherever that went",
    "new": "checks the work volume of a new file and reports what does not reach",
    "demo": "plans within the limits",
    "report": "shows results and computes no pose",
    "env doctor": "uses no pose",
    "show": "describes the machine",
    "check": "reports it of the reference pose, which is a problem: exit code 1",
    "model base-parameters": "is about parameters at all poses",
    "model link-parameters": "is about parameters at all poses",
    "model equations": "holds at all poses",
    "model cost": "counts operations; reports it of the reference pose",
    "convert": "writes what it has read",
    "log describe": "reads columns and units; positions out of reach are of another unit",
    "log subtract": "knows two logs and no machine",
    "drive step": "knows a drive line and no machine",
    "drive tune": "knows a drive line and no machine",
    "drive fit": "knows a drive line and no machine",
    "env cache": "uses no machine",
    "study run": "varies machines; why a sample is refused is kept with it",
    "study show": "computes nothing",
    "env schema": "uses no machine",
    "run stream": "shows a motion, wherever that went",
    "run plant": "is driven by a controller elsewhere",
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
    result = run(*command.split(), *words, *options, code=code)
    return " ".join((result.output + (result.stderr or "")).split())


#: Commands that take long once nothing refuses.
LONG = (
    *("verify", "modes", "simulate", "identify", "calibrate", "view"),
    *("model reduce", "plan excitation", "control follow"),
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
        text = run(*command.split(), "--help").output
        assert ("--within-limits" in text) is (
            command in WORDS or WITHOUT[command].startswith(("has it", "have it"))
        )
