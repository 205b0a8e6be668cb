"""Hostile input: every reader answers a damaged file with a value or a named refusal, every command with an exit code.

`make fuzz` runs the same with coverage as its guide and `make nightly` 200 000 files and 5 000 machines; what those
found lies in ``fuzz/found`` and is replayed here.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import typer
from fuzz.machines import tried
from fuzz.mutation import HOSTILE, Draw, mutated
from fuzz.targets import FOUND, TARGETS, outcome
from hypothesis import given, settings, strategies as st
from typer.testing import CliRunner

from tauloop.cli.app import app

#: Damaged files of each kind in `make test`: up to 2 s of processor time for each kind.
FILES = 40
#: Random machines built in `make test`: a second each.
MACHINES = 4
#: Command lines tried in `make test`, and the time after which one counts as work and not as a refusal, s.
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


@pytest.mark.parametrize("path", sorted(FOUND.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_was_found_before_stays_mended(path):
    outcome(TARGETS[path.parent.name], path.read_bytes())


def test_a_fault_would_be_seen(tmp_path):
    from dataclasses import replace

    def careless(path: Path) -> None:
        raise KeyError(path.name)

    with pytest.raises(AssertionError, match="KeyError"):
        outcome(replace(TARGETS["csv"], read=careless), b"")


@pytest.mark.parametrize("seed", range(MACHINES))
def test_a_random_machine_is_evaluated_or_refused(seed):
    tried(seed)


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


def commands() -> dict[str, Any]:
    group: Any = typer.main.get_command(app)
    context = typer.Context(group)
    return {name: group.get_command(context, name) for name in group.list_commands(context) if name not in SERVING}


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
            words += [parameter.opts[0]] if getattr(parameter, "is_flag", False) else [parameter.opts[0], value]
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
    assert result.exception is None or isinstance(result.exception, SystemExit | KeyboardInterrupt), (line, result)
    assert result.exit_code in (0, 1, 2, 130), line
    if "--json" in line and result.exit_code in (0, 1):
        json.loads(result.stdout)
