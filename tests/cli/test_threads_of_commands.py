"""``--workers N``: every command that runs batches has it, and no number depends on N."""

from __future__ import annotations

import pytest
from command_line import run_json
from compiled_machines import compilers

from tauloop.cli.app import find_command
from tauloop.cli.commands import COMMANDS

#: Commands with the option; what others compute is no batch: few poses, or fits whose steps follow
#: one another.
HAVING = (
    *("fk", "ik", "modes", "workspace", "dynamics", "design motors", "simulate", "identify"),
    "calibrate",
    *("plan excitation", "plan poses", "control follow", "control collision", "log forces"),
    *("accuracy backlash", "drive tune", "drive fit", "study run"),
    "design synthesize",
)
#: More samples than two threads share out.
WORDS = (
    "workspace five_bar --resolution 0.004",
    "control follow five_bar --end x=0.02 --duration 0.5 --rate 20kHz --controller computed-torque",
    pytest.param("simulate five_bar --duration 0.02", marks=[pytest.mark.nightly]),
)


def test_every_command_that_runs_batches_has_the_option() -> None:
    having = {
        name
        for name in COMMANDS
        if any("--workers" in item.opts for item in find_command(name).params)
    }
    assert having == set(HAVING)


@pytest.mark.skipif(not compilers(), reason="needs a C compiler, and there is none here")
@pytest.mark.parametrize("words", WORDS)
def test_no_number_depends_on_threads(words: str) -> None:
    assert run_json(*words.split(), "--workers", "1") == run_json(*words.split(), "--workers", "3")
