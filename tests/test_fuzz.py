"""Hostile input: every reader answers a damaged file with a value or a named refusal, every command with an exit code.

Random machines come back from other formats, and files of others are read as they are meant or
refused by name. `make fuzz` runs the same with coverage as its guide and `make nightly` 200 000
files, 5 000 machines, 500 round trips and 1 000 files of others; what those found lies in
``fuzz/found`` and is replayed here.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz import foreign_files
from fuzz.campaign import KEPT
from fuzz.foreign_files import SNIPPETS, TRIALS, WRITERS, plain_machine
from fuzz.machines import tried
from fuzz.mutation import HOSTILE, Draw, mutated
from fuzz.round_trips import ROUND_TRIPS, machine_text, round_trip
from fuzz.targets import FOUND, TARGETS, FaultFound, outcome
from hypothesis import given, settings, strategies as st
from typer.testing import CliRunner

from tauloop.cli.app import app, find_command
from tauloop.cli.commands import COMMANDS
from tauloop.formats.sdf.writer import _SdfWriter
from tauloop.formats.xml.foreign_elements import Treatment

#: Damaged files of each kind in `make test`: up to 2 s of processor time for each kind.
FILES = 40
#: Random machines built in `make test`: a second each.
MACHINES = 4
#: Seeds of machines that are written and read again, and of files of others, in `make test`: a
#: second each.
ROUND_TRIP_SEEDS, FOREIGN_SEEDS = (4, 8), range(2)
#: Files of others, of which all together have every element that is read.
ALL_READ = 60
#: Command lines tried in `make test`, and the time after which one counts as work and not as a
#: refusal, s.
LINES, LONG = 30, 3


def draws(data: st.DataObject) -> Draw:
    return lambda n: data.draw(st.integers(0, n - 1))


@pytest.mark.parametrize("name", TARGETS)
def test_there_are_good_files_to_damage(name):
    assert TARGETS[name].corpus()


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=FILES)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_by_name(name, data):
    corpus = TARGETS[name].corpus()
    outcome(TARGETS[name], mutated(draws(data), data.draw(st.sampled_from(corpus)), corpus))


@pytest.mark.parametrize(
    "path", sorted(FOUND.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_what_was_found_before_stays_mended(path):
    outcome(KEPT[path.parent.name], path.read_bytes())


def test_a_fault_would_be_seen(tmp_path):
    from dataclasses import replace

    def careless(path: Path) -> None:
        raise KeyError(path.name)

    with pytest.raises(AssertionError, match="KeyError"):
        outcome(replace(TARGETS["csv"], read=careless), b"")


@pytest.mark.parametrize("seed", range(MACHINES))
def test_a_random_machine_is_evaluated_or_refused(seed):
    tried(seed)


# Round trips


@pytest.mark.parametrize("format_name", ROUND_TRIPS)
@pytest.mark.parametrize("seed", ROUND_TRIP_SEEDS)
def test_a_random_machine_comes_back_or_is_refused(seed: int, format_name: str) -> None:
    text = machine_text(seed)
    assert text is not None
    round_trip(format_name, text)


def test_a_writer_that_loses_mass_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = _SdfWriter._inertial

    def lossy(self: Any, name: str, element: Any, link: Any) -> None:
        plain(self, name, element, None)

    monkeypatch.setattr(_SdfWriter, "_inertial", lossy)
    text = machine_text(ROUND_TRIP_SEEDS[1])
    assert text is not None
    with pytest.raises(FaultFound, match="largest difference of forces"):
        round_trip("sdf", text)


# Files of others


def test_every_element_of_the_table_is_generated() -> None:
    """A new row needs a text in `SNIPPETS`, or its place in one of the files that are read."""
    places = set(SNIPPETS)
    for seed in range(ALL_READ):
        machine = plain_machine(np.random.default_rng(seed))
        for file_format, write in WRITERS.items():
            places |= foreign_files.places_in(file_format, write(machine))
    rows = foreign_files.rows_by_place()
    assert sorted(rows.keys() - places) == []
    assert sorted(SNIPPETS.keys() - rows.keys()) == []


@pytest.mark.parametrize("trial", TRIALS)
@pytest.mark.parametrize("seed", FOREIGN_SEEDS)
def test_a_file_of_others_is_read_as_it_is_meant_or_refused(seed: int, trial: str) -> None:
    TRIALS[trial](seed)


@pytest.mark.parametrize("file_format", WRITERS)
def test_every_harmless_element_leaves_the_machine_as_it_is(file_format: str) -> None:
    machine = plain_machine(np.random.default_rng(1))
    for place in foreign_files.places_of(file_format, Treatment.HARMLESS):
        foreign_files.require_same_machine(file_format, machine, [place], np.random.default_rng(0))


@pytest.mark.parametrize("file_format", WRITERS)
def test_every_refused_element_is_refused_by_its_name(file_format: str) -> None:
    machine = plain_machine(np.random.default_rng(1))
    for place in foreign_files.places_of(file_format, Treatment.REFUSED):
        foreign_files.require_refusal(
            file_format, WRITERS[file_format](machine), place, np.random.default_rng(0)
        )


@pytest.mark.parametrize("file_format", WRITERS)
def test_a_command_refuses_it_with_its_exit_code(file_format: str, tmp_path: Path) -> None:
    root = WRITERS[file_format](plain_machine(np.random.default_rng(1)))
    place = foreign_files.places_of(file_format, Treatment.REFUSED)[0]
    text = foreign_files.with_element(np.random.default_rng(0), root, place)
    path = tmp_path / f"machine{foreign_files.ENDINGS[file_format]}"
    path.write_text(foreign_files.text_of(root), encoding="utf-8")
    result = CliRunner().invoke(app, ["check", str(path)])
    assert result.exit_code == 2
    assert f"<{place[2]}>" in result.output, text


def test_an_element_that_changes_the_machine_is_not_harmless(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = ("mjcf", "*", "statistic")
    monkeypatch.setitem(SNIPPETS, place, '<option gravity="0 0 -1"/>')
    machine = plain_machine(np.random.default_rng(1))
    with pytest.raises(FaultFound, match="gravity"):
        foreign_files.require_same_machine("mjcf", machine, [place], np.random.default_rng(0))


def test_a_refused_element_that_is_read_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    place = ("mjcf", "*", "attach")
    monkeypatch.setitem(SNIPPETS, place, '<site name="extra"/>')
    root = WRITERS["mjcf"](plain_machine(np.random.default_rng(1)))
    with pytest.raises(FaultFound, match="is read"):
        foreign_files.require_refusal("mjcf", root, place, np.random.default_rng(0))


# Command lines

#: Values that options are given: sound ones of several kinds, and hostile words.
WORDS = (
    *(
        "five_bar",
        "delta",
        "x=0.1",
        "z=-0.5,x=nan",
        "1e-3",
        "3",
        "-1",
        "0",
        "no.yaml",
        "out.json",
        "out.png",
        "a,b",
        "",
    ),
    *(word.decode("utf-8", "replace") for word in HOSTILE if len(word) < 50),
)
#: Commands that serve a page until they are stopped.
SERVING = ("view",)


@cache
def commands() -> dict[str, Any]:
    return {name: find_command(name) for name in COMMANDS if name not in SERVING}


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Ctrl-C after some seconds: a command that still works then has accepted its options."""
    old = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)


def command_line(draw: Draw, name: str, command: Any) -> list[str]:
    """A command with its arguments and some of its options, each with a word that may or may not fit."""
    words: list[str] = []
    for parameter in command.params:
        value = WORDS[draw(len(WORDS))]
        if parameter.param_type_name == "argument":
            words.append(("five_bar", "delta", value)[draw(3)] if not words else value)
        elif draw(4) == 0 and parameter.name != "help":
            words += (
                [parameter.opts[0]]
                if getattr(parameter, "is_flag", False)
                else [parameter.opts[0], value]
            )
    return [name, *words]


@settings(max_examples=LINES)
@given(data=st.data())
def test_any_command_line_ends_in_an_exit_code(data, tmp_path_factory):
    known = commands()
    name = data.draw(st.sampled_from(sorted(known)))
    line = command_line(draws(data), name, known[name])
    folder = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("line"))
    try:
        with at_most(LONG):
            result = CliRunner().invoke(app, line)
    finally:
        os.chdir(folder)
    assert result.exception is None or isinstance(
        result.exception, SystemExit | KeyboardInterrupt
    ), (line, result)
    assert result.exit_code in (0, 1, 2, 130), line
    if "--json" in line and result.exit_code in (0, 1):
        json.loads(result.stdout)
