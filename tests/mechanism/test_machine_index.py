"""The index of shipped machines, and what machines say of themselves by command and by function."""

from __future__ import annotations

import pytest

import tauloop as tl
from tauloop.common.result import write_json
from tauloop.mechanism.shipped import INDEX, MachineIndex, first_sentence, machine_index, summarized


def test_the_index_is_what_the_machine_files_say(request: pytest.FixtureRequest) -> None:
    rows = MachineIndex(
        machines=tuple(summarized(name, tl.load(name)) for name in tl.shipped_machines())
    )
    if request.config.getoption("--update-golden"):
        write_json(INDEX, rows.as_dict())
    assert machine_index() == rows


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("A machine as in Fig. 3 of the paper. It\nmoves.", "A machine as in Fig. 3 of the paper"),
        ("Arm, cf. eq. 2 (Miller et al. 1995): more.", "Arm, cf. eq. 2 (Miller et al. 1995)"),
        ("One crank.\n", "One crank"),
    ],
)
def test_an_abbreviation_ends_no_sentence(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence
