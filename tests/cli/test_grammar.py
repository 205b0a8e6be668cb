"""One grammar over all commands: the same options mean the same, each help has an example, the tab key knows names."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import command_pages
import pytest
import typer
from typer._completion_shared import get_completion_script

from tauloop.cli.app import app
from tauloop.cli.commands import COMMANDS
from tauloop.cli.examples import EXAMPLES
from tauloop.cli.terminal.completion import TAKES_MACHINE
from tauloop.mechanism import shipped_machines

#: Commands without a machine, a template, a drive line or results as their first argument.
WITHOUT_ARGUMENT = {"machines", "schema", "doctor", "cache"}
GROUP: LazyGroup = typer.main.get_command(app)  # type: ignore[assignment]


def command(name: str) -> Any:
    return GROUP.get_command(None, name)


def options(name: str) -> dict[str, Any]:
    return {
        flag: item for item in command(name).params for flag in item.opts if flag.startswith("-")
    }


#: What an option is, wherever it is: how its help begins and ends, and the type of its value.
MEANING = {
    "--json": ("Print JSON for machines instead of text.", "", "bool"),
    "--quiet": ("Print problems alone: no tables, notes, progress.", "", "bool"),
    "--out": ("Write ", "", "path"),
    "--figure": ("Draw ", "into this file (PNG, PDF, SVG)", "path"),
    "--json-file": ("Write the whole result to this JSON file", "", "path"),
    "--seed": ("Seed of ", "at least 0", "int"),
}
LISTS = "lists what is there"
NO_CHANCE = "uses no random numbers"
#: Commands without an option, and why: a new command has all of them, or stands here.
WITHOUT: dict[str, dict[str, str]] = {
    "--json": {},
    "--quiet": {},
    "--out": {
        **dict.fromkeys(("machines", "doctor", "cache"), LISTS),
        **dict.fromkeys(
            ("show", "check", "verify", "cost", "regroup", "link-parameters"), "its tables; --json"
        ),
        **dict.fromkeys(("fk", "ik", "jacobian", "modes"), "few numbers of some poses; --json"),
        **dict.fromkeys(("tune", "fit-plant"), "prints the values for drive --set"),
        "schema": "prints its one document",
        "view": "--png and --film name two kinds of files",
        "equations": "--text, --latex and --python name three kinds of files",
        **dict.fromkeys(
            ("ballbar", "detect-hit"), "some laps or blows, which are no log; --json-file"
        ),
    },
    "--figure": {
        **dict.fromkeys(("machines", "doctor", "cache", "schema"), LISTS),
        **dict.fromkeys(("fk", "ik", "jacobian"), "tauloop view draws the machine in a pose"),
        **dict.fromkeys(("verify", "cost", "reduce"), "numbers to compare, each in its row"),
        **dict.fromkeys(("equations", "regroup"), "formulas"),
        "study": "its parts are columns for any plot",
        "fold": "keeps no samples to draw; identify draws those of a log",
        **dict.fromkeys(("export", "run"), "code, or numbers of a clock; --out"),
        **dict.fromkeys(("demo", "report"), "draws a page"),
    },
    "--json-file": {
        **dict.fromkeys(("machines", "doctor", "cache", "schema"), LISTS),
        **dict.fromkeys(("demo", "report"), "makes the page itself"),
        **dict.fromkeys(
            ("new", "view", "equations", "export", "convert", "reduce", "subtract"),
            "its files are all",
        ),
        **dict.fromkeys(
            ("show", "check", "fk", "ik", "jacobian", "regroup", "play"), "has no page; --json"
        ),
        **dict.fromkeys(("link-parameters", "tune", "fit-plant"), "has no page; --json"),
        "run": "counts and times of a clock; --json",
        **dict.fromkeys(("dynamics", "motion"), "its page is that of a simulation or a demo"),
    },
    "--seed": {
        **dict.fromkeys(
            ("demo", "machines", "show", "check", "new", "view", "schema", "doctor", "cache"),
            NO_CHANCE,
        ),
        **dict.fromkeys(
            ("jacobian", "workspace", "play", "dynamics", "simulate", "equations", "cost"),
            NO_CHANCE,
        ),
        **dict.fromkeys(("transfer", "cycle"), NO_CHANCE),
        "study": "its file says it",
        "fold": NO_CHANCE,
        **dict.fromkeys(
            (
                "identify",
                "forces",
                "track",
                "subtract",
                "drive",
                "ballbar",
                "convert",
                "report",
                "run",
            ),
            NO_CHANCE,
        ),
    },
}


@pytest.mark.parametrize("flag", MEANING)
def test_an_option_has_one_meaning_and_each_command_has_it_or_a_reason(flag: str):
    """A new command takes the option or says in `WITHOUT` why not."""
    beginning, end, kind = MEANING[flag]
    having = set()
    for name in COMMANDS:
        if (option := options(name).get(flag)) is None:
            continue
        having.add(name)
        assert option.help.startswith(beginning), name
        assert end in option.help, name
        assert kind in str(option.type_descriptor.annotation).lower(), name
    assert having | WITHOUT[flag].keys() == set(COMMANDS)
    assert having & WITHOUT[flag].keys() == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_arguments_come_in_one_order(name: str):
    arguments = [item.name for item in command(name).params if item.param_type_name == "argument"]
    assert bool(arguments) == (name not in WITHOUT_ARGUMENT)
    if "machine" in arguments and name not in ("export", "run"):  # whose kinds come before it
        assert arguments[0] == "machine"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_usage_names_arguments_in_capitals_and_marks_once_those_that_may_be_left_out(name: str):
    taken = command(name)
    usage = taken.get_usage(taken.make_context(name, [], resilient_parsing=True)).partition(
        "[OPTIONS]"
    )[2]
    assert usage == usage.upper()
    assert "[[" not in usage


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_ends_with_an_example_that_the_command_can_read(name: str):
    words = shlex.split(EXAMPLES[name])
    assert words[0] == name
    taken = command(name)
    assert taken.epilog == f"Example: tauloop {EXAMPLES[name]}"
    context = taken.make_context(name, words[1:])  # all options known, all values of their kind
    machine = context.params.get("machine")
    assert machine is None or machine.endswith(".yaml") or machine in shipped_machines()


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_missing_is_named_beside_an_example(name: str):
    taken = command(name)
    needed = [item.name for item in taken.params if item.required]
    if not needed:
        return
    with pytest.raises(typer.BadParameter) as refused:
        taken.make_context(name, [])
    assert refused.value.param.name == needed[0]
    assert f"Example: tauloop {EXAMPLES[name]}" in refused.value.format_message()


@pytest.mark.parametrize("name", ["export", "run"])
def test_a_machine_in_the_place_of_a_kind_is_refused_before_anything_is_missing(name: str):
    with pytest.raises(typer.BadParameter) as refused:
        command(name).make_context(name, ["delta"])
    message = refused.value.format_message()
    assert ": 'delta' is not one of '" in message
    assert f"Example: tauloop {EXAMPLES[name]}" in message


def test_the_tab_key_knows_which_commands_take_a_machine():
    first = {
        name: [item.name for item in command(name).params if item.param_type_name == "argument"]
        for name in COMMANDS
    }
    assert {name for name, names in first.items() if names[:1] == ["machine"]} == TAKES_MACHINE


def test_every_command_has_an_example_and_no_other_has():
    assert set(EXAMPLES) == set(COMMANDS)


def test_the_page_of_commands_says_what_the_program_says():
    """Options, defaults, examples and exit codes."""
    assert command_pages.PAGE.read_text(encoding="utf-8") == command_pages.updated(), (
        "run tools/command_pages.py"
    )
    assert {
        name for names in command_pages.PAGES.values() for name in names.split()
    } <= COMMANDS.keys()


# The tab key


def completed(words: str, shell: str = "bash") -> list[str]:
    count = len(words.split()) - 1 + words.endswith(" ")
    surroundings = os.environ | {
        "COMP_WORDS": words,
        "COMP_CWORD": str(count),
        "_TYPER_COMPLETE_ARGS": words,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TAULOOP_COMPLETE": f"complete_{shell}",
    }
    program = (
        "import sys\nfrom tauloop.cli.app import app\n"
        "try:\n    app(prog_name='tauloop')\nfinally:\n    assert 'casadi' not in sys.modules or ' -' in sys.argv[1]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, words],
        env=surroundings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "AssertionError" not in done.stderr
    return done.stdout.split("\n")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("tauloop che", ["check"]),
        ("tauloop check delt", ["delta"]),
        ("tauloop check --driv", ["--driven"]),
        ("tauloop new mine --template hexap", ["hexapod"]),
        ("tauloop new mine --template delta --set arm_l", ["arm_length"]),
        ("tauloop fk five_bar --actuators motor", ["motor_1", "motor_2"]),
        ("tauloop model equations delta --keep plate_mass,arm_le", ["plate_mass,arm_length"]),
        ("tauloop model equations nothing --keep plate", []),
    ],
)
def test_the_tab_key_knows_commands_machines_parameters_and_actuators(words: str, names: list[str]):
    assert [name for name in completed(words) if name] == names


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_answered_by_their_protocols(shell: str):
    assert "delta" in " ".join(completed("tauloop check delt", shell))


def test_a_real_bash_completes(tmp_path: Path):
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    program = tmp_path / "tauloop"
    start = "from tauloop.cli.app import app; app(prog_name='tauloop')"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "{start}" "$@"\n')
    program.chmod(0o755)
    script = get_completion_script(
        prog_name="tauloop", complete_var="_TAULOOP_COMPLETE", shell="bash"
    )
    function = re.search(r"^\s*(_\w+)\(\)", script, re.M)
    assert function is not None
    asked = f"{script}\nCOMP_WORDS=(tauloop check hexap); COMP_CWORD=2; {function[1]} tauloop; echo ${{COMPREPLY[@]}}"
    surroundings = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", asked], env=surroundings, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["hexapod"], done.stderr
