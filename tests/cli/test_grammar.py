"""The grammar of the command line (docs/decisions/command-line.md): each rule, over all commands."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import reduce
from pathlib import Path
from typing import Any

import command_pages
import pytest
import typer
from command_line import run
from commands import function_of, written_by
from typer._completion_shared import get_completion_script

import tauloop as tl
from tauloop.cli.app import EXAMPLES, HELP, find_command, renew_command_line
from tauloop.cli.commands import (
    COMMAND_GROUPS,
    COMMANDS,
    EXPORT,
    HELP_SECTIONS,
    PLAN,
    RUN,
    TOP_LEVEL,
    CommandEntry,
    CommandGroup,
)
from tauloop.cli.terminal.completion import TAKES_MACHINE
from tauloop.common.names import deprecated
from tauloop.mechanism import shipped_machines

#: Commands without a subject: they list, or are about this computer.
WITHOUT_SUBJECT = {"list", "demo", "env doctor", "env cache", "env schema"}
#: What a command is about, by its first argument.
SUBJECTS = {"task", "machine", "line", "file", "results", "connected", "name"}
#: Groups that start with one command, because another issue brings the second.
GROWING = {"run"}
#: Short forms of options, everywhere.
SHORT_FORMS = {"-o": "--out", "-q": "--quiet", "-h": "--help", "-j": "--workers"}
#: The meaning of every option that several commands have in different words: how its help begins,
#: and the type of its value. A new option with a name of this list has this meaning; another meaning
#: needs another name.
MEANINGS = {
    "--bandwidth": ("Bandwidth of the", "FREQUENCY"),
    "--bounds": ("Range of", "NAME=LOW:HIGH"),
    "--clearance": ("Smallest distance", "LENGTH"),
    "--color": ("Color by a property of the", "str"),
    "--compare": ("Compare with this", "FILE"),
    "--controller": ("Law of the", "LAW"),
    "--count": ("Number of", "int"),
    "--criterion": ("Criterion to minimize", "str"),
    "--cutoff": ("Cutoff frequency of a zero-phase low-pass of positions and", "FREQUENCY"),
    "--damping": ("Damping ratio of the", "float"),
    "--velocity-differences": ("Compute velocities by finite differences of", ""),
    "--duration": ("Duration of", "TIME"),
    "--encoder-noise": ("Standard deviation of the", "str"),
    "--end": ("Position at the end, such as 'x=0.1' (SI, or with units);", "VALUES"),
    "--coordinates": ("Coordinates in which the", "Entry"),
    "--folder": ("Folder of the", "Path"),
    "--generations": ("Number of generations of the", "int"),
    "--hold": ("Channels or axes that are held", "NAME=VALUE"),
    "--hold-out": ("Fraction at the end of each log", "float"),
    "--intervals": ("Number of intervals of the", "int"),
    "--known": ("Known parameters", "NAME=VALUE"),
    "--max-acceleration": ("Largest acceleration", "LIMIT"),
    "--max-condition": ("Largest condition number of the", "float"),
    "--max-velocity": ("Largest velocity of", "LIMIT"),
    "--measure": ("Kind of", "str"),
    "--method": ("Integrator between", "str"),
    "--motion": ("Motion from a", "FILE"),
    "--motor-state": ("State of the motors", "str"),
    "--noise": ("Standard deviation of", "QUANTITY"),
    "--order": ("Order of the Butterworth", "int"),
    "--out": ("Write", "PATH"),
    "--output": ("Forces that are measured: of the actuators, or of the", "str"),
    "--parameters": ("Parameters to estimate, by name or pattern", "NAMES"),
    "--payload": ("Mass that is attached to the tool", "MASS"),
    "--period": ("Period of the motion, such as 10s", "TIME"),
    "--plane": ("Positions of the platform that", "NAMES"),
    "--population": ("Number of members of a generation: at least", "int"),
    "--port": ("Port; the next free port if it is in use", "int"),
    "--pose": ("Position of the platform, such as", "VALUES"),
    "--preload": ("Tensions of cables (N)", "str"),
    "--quantization": ("Step of the encoders, such as", "QUANTITIES"),
    "--ranges": ("Ranges of platform positions, such as 'x=-0.4:0.4,z=100:300", "NAME=LOW:HIGH"),
    "--rate": ("Samples per", "FREQUENCY"),
    "--resample": ("Resample logs with nonuniform time stamps to uniform sampling", ""),
    "--reversal": ("Time that motors need for a full reversal of their force,", "TIME"),
    "--reserve": ("Fraction of the", "float"),
    "--seed": ("Seed of", "int"),
    "--sensitivities": ("Parameters of the", "list"),
    "--set": ("Change parameters", "NAME=VALUE"),
    "--settling": ("Time at rest after the", "TIME"),
    "--shear": ("Include shear", ""),
    "--shm": ("Name of shared memory", "str"),
    "--singularity": ("Smallest distance to singularities", "float"),
    "--standstill": ("Fraction of an actuator's largest speed", "float"),
    "--starts": ("Number of searches", "int"),
    "--states": ("Number of random consistent", "int"),
    "--stiff": ("Integrate by implicit", ""),
    "--substeps": ("Integration steps per", "int"),
    "--tolerance": ("Relative tolerance of an integration", "float"),
    "--trim": ("Number of samples removed at each", "int"),
    "--until": ("End at this event", "EVENT"),
    "--velocity": ("Velocity of the platform or the", "VALUES"),
    "--workers": ("Number of parallel", "N"),
    "--wrench": ("Wrench at the tool, such as 'fx=10,mz=0.5' (N, N m, base", "VALUES"),
}
#: Options whose fields in Python have another name: `set` is a type of Python.
OTHER_KEYWORDS = {"--set": ["values"]}


def options(name: str) -> dict[str, Any]:
    """Return the options of a command by all of their names."""
    return {
        flag: item
        for item in find_command(name).params
        if item.param_type_name == "option"
        for flag in (*item.opts, *item.secondary_opts)
    }


def value_type(option: Any) -> str:
    """Return the type of an option's value: a word such as LENGTH, or the Python type; "" of a switch."""
    annotation = option.type_descriptor.annotation
    if annotation is bool:
        return ""
    return str(option.metavar or getattr(annotation, "__name__", annotation))


ALL_OPTIONS = [
    (name, flag, option)
    for name in COMMANDS
    for flag, option in options(name).items()
    if flag.startswith("--")
]


# 1. The subject comes first, then required inputs; everything optional is an option.


@pytest.mark.parametrize("name", COMMANDS)
def test_the_subject_comes_first_and_what_is_required_is_an_argument(name: str) -> None:
    parameters = find_command(name).params
    arguments = [item for item in parameters if item.param_type_name == "argument"]
    if name not in WITHOUT_SUBJECT:
        assert arguments[0].name in SUBJECTS
        assert arguments[0].required
    assert not [item.opts for item in parameters if item.required and item not in arguments]


def test_the_tab_key_knows_which_commands_take_a_machine() -> None:
    first = {
        name: [
            item.name for item in find_command(name).params if item.param_type_name == "argument"
        ]
        for name in COMMANDS
    }
    assert {name for name, names in first.items() if names[:1] == ["machine"]} == TAKES_MACHINE


# 2. Groups are nouns that print their help; three verbs take a kind. There is no third level.


@pytest.mark.parametrize(
    "name", [name for name, entry in TOP_LEVEL.items() if isinstance(entry, CommandGroup)]
)
def test_a_group_prints_its_help_and_has_two_commands(name: str) -> None:
    group = TOP_LEVEL[name]
    assert isinstance(group, CommandGroup)
    assert len(group.commands) >= 2 or name in GROWING
    assert all(isinstance(entry, CommandEntry) for entry in group.commands.values())
    shown = run(name, code=None)
    for command, entry in group.commands.items():
        assert command in shown.output
        assert entry.summary.split()[0] in shown.output


def test_the_top_level_has_five_sections_of_verbs_and_fits_on_a_screen() -> None:
    verbs = {name: entry for section in HELP_SECTIONS.values() for name, entry in section.items()}
    assert list(HELP_SECTIONS) == ["Start", "Compute", "Plan", "Measure", "Deliver"]
    assert len(verbs) == 23
    assert [entry for entry in verbs.values() if isinstance(entry, CommandGroup)] == [
        PLAN,
        EXPORT,
        RUN,
    ]
    assert not set(verbs) & set(COMMAND_GROUPS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_a_module_of_its_section_or_group(name: str) -> None:
    section = next(
        (title.lower() for title, entries in HELP_SECTIONS.items() if name.split()[0] in entries),
        name.split()[0],
    )
    assert COMMANDS[name].module.split(".")[0] == section
    modules = [command.module for command in COMMANDS.values()]
    assert modules.count(COMMANDS[name].module) == 1


# 3. Every command is one function, whose keywords are the names of its options.


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_calls_the_functions_of_the_table(name: str) -> None:
    command = COMMANDS[name]
    module = importlib.import_module(f"tauloop.cli.{command.module}")
    source = inspect.getsource(module)
    assert command.python
    for path in command.python:
        assert callable(reduce(getattr, path.split(".")[1:], tl)), path
        assert re.search(rf"\b{path.split('.')[-1]}\b", source), path


@pytest.mark.parametrize("name", [f"export {kind}" for kind in EXPORT.commands])
def test_an_export_is_the_function_of_its_name(name: str) -> None:
    assert COMMANDS[name].python == (f"tl.{name.replace(' ', '_')}",)


def test_options_are_named_after_keywords() -> None:
    """What the command line calls otherwise than Python is in the list, and nothing else."""
    assert command_pages.python_names() == {
        flag: set(fields) for flag, fields in OTHER_KEYWORDS.items()
    }


# 4. One name per meaning, one meaning per name, one value type per name.


def test_every_option_name_has_one_value_type() -> None:
    types: dict[str, set[str]] = {}
    for _, flag, option in ALL_OPTIONS:
        types.setdefault(flag, set()).add(value_type(option))
    assert {flag: kinds for flag, kinds in types.items() if len(kinds) > 1} == {}


def test_every_option_name_has_one_meaning() -> None:
    texts: dict[str, dict[str, str]] = {}
    for name, flag, option in ALL_OPTIONS:
        texts.setdefault(flag, {})[name] = option.help or ""
    for flag, by_command in texts.items():
        if flag not in MEANINGS:
            assert len(set(by_command.values())) == 1, f"{flag}: {by_command}"
            continue
        for name, text in by_command.items():
            assert text.startswith(MEANINGS[flag][0]), f"{name} {flag}: {text}"
    assert not set(MEANINGS) - set(texts)
    for _, flag, option in ALL_OPTIONS:
        if flag in MEANINGS:
            assert value_type(option) == MEANINGS[flag][1], flag


def test_short_forms_are_the_same_everywhere() -> None:
    shorts = {
        (short, option.opts[0] if option.opts[0].startswith("--") else option.opts[1])
        for name in COMMANDS
        for short, option in options(name).items()
        if not short.startswith("--")
    }
    assert HELP == {"help_option_names": ["-h", "--help"]}
    assert shorts | {("-h", "--help")} == set(SHORT_FORMS.items())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_prints_json_and_is_quiet_when_asked(name: str) -> None:
    assert {"--json", "--quiet"} <= set(options(name))
    assert ("--out" in options(name)) == any(
        kind is not None for kind in written_by(function_of(name)).values()
    )


# 5. Values.


@pytest.mark.parametrize(
    ("command", "with_units", "in_si"),
    [
        ("plan stroke delta --end x=0.05", "--duration 300ms", "--duration 0.3"),
        ("plan stroke delta --end x=0.05", "--max-velocity 1m/s", "--max-velocity 1"),
        (
            "simulate four_bar",
            "--duration 10ms --fixed-step 1ms",
            "--duration 0.01 --fixed-step 1e-3",
        ),
        ("workspace five_bar", "--resolution 5cm", "--resolution 0.05"),
        ("drive step dual_motor_axis", "--step 5cm --duration 200ms", "--step 0.05 --duration 0.2"),
        (
            "plan stroke hexapod --end z=0.36",
            "--rotation 0,0,10deg",
            "--rotation 0,0,0.17453292519943295",
        ),
        (
            "drive step dual_motor_axis --duration 0.2",
            "--set gap=1mm,kp=250",
            "--set gap=1e-3,kp=250",
        ),
        ("ik five_bar", "--set crank_length=260mm", "--set crank_length=0.26"),
    ],
)
def test_a_quantity_takes_a_unit_and_a_number_alone_is_in_si(
    command: str, with_units: str, in_si: str
) -> None:
    words = [*command.split(), "--json"]
    answers = [run(*words, *option.split(), code=None) for option in (with_units, in_si)]
    assert answers[0].exit_code < 2
    assert answers[0].stdout == answers[1].stdout


def test_a_quantity_of_another_kind_is_refused_with_its_option() -> None:
    refused = run("plan", "stroke", "delta", "--end", "x=0.05", "--duration", "300mm", code=2)
    assert "--duration" in refused.stderr
    assert "time" in refused.stderr


def test_a_changed_parameter_changes_the_result_and_an_unknown_one_is_refused() -> None:
    plain, changed = (
        run("ik", "five_bar", *words, "--json").stdout
        for words in ((), ("--set", "crank_length=26cm"))
    )
    assert plain != changed
    refused = run("ik", "five_bar", "--set", "crank_lenght=1", code=2)
    assert "--set crank_lenght" in refused.stderr
    assert "crank_length" in refused.stderr


# 6. Switches.


def test_a_switch_has_a_twin_only_where_its_default_is_on() -> None:
    for name, flag, option in ALL_OPTIONS:
        if option.secondary_opts:
            assert option.secondary_opts == [f"--no-{option.opts[0].removeprefix('--')}"], name
            assert option.default is True, f"{name} {flag}"


# 7. Results go to standard output, everything else to standard error; exit codes.


def test_results_go_to_standard_output_and_problems_to_standard_error() -> None:
    done = run("show", "delta")
    assert done.stdout
    assert not done.stderr
    refused = run("show", "no_such_machine", code=2)
    assert refused.stderr
    assert not refused.stdout


# Files: the extension selects what is written.


def test_the_ending_of_a_file_chooses_what_it_holds(tmp_path: Path) -> None:
    table, picture, result = tmp_path / "a.csv", tmp_path / "b.png", tmp_path / "c.json"
    words = ("simulate", "four_bar", "--duration", "0.01")
    run(*words, "-o", table, "-o", picture, "-o", result, code=None)
    assert table.read_text(encoding="utf-8").startswith("time")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert '"status"' in result.read_text(encoding="utf-8")


def test_an_ending_that_a_command_does_not_write_is_refused_with_those_that_it_does(
    tmp_path: Path,
) -> None:
    refused = run("simulate", "four_bar", "--out", tmp_path / "a.html", code=2)
    for ending in (".csv", ".json", ".png"):
        assert ending in refused.stderr
    twice = ("-o", tmp_path / "a.csv", "-o", tmp_path / "b.parquet")
    assert "are both files for" in run("simulate", "four_bar", *twice, code=2).stderr


# Old names work for one release, with a warning.


@pytest.mark.parametrize("old", deprecated.COMMANDS)
def test_an_old_command_is_one_of_today(old: str) -> None:
    words, pairs = renew_command_line([old, "five_bar"])
    path = " ".join(words[:2]) if " ".join(words[:2]) in COMMANDS else words[0]
    assert path in COMMANDS or words[0] == "paper"
    assert pairs == [(f"tauloop {old}", f"tauloop {deprecated.COMMANDS[old]}")]


def test_a_group_with_the_name_of_an_old_command_is_not_mistaken_for_it() -> None:
    for name in set(deprecated.COMMANDS) & set(COMMAND_GROUPS):
        first = next(iter(COMMAND_GROUPS[name].commands))
        assert renew_command_line([name, first, "x"])[1] == []
        assert (
            renew_command_line([name, f"{first[:-1]}"])[1] == []
        )  # a typing error is not a machine
        assert renew_command_line([name, "--help"])[1] == []
        assert renew_command_line([name])[1] == []


@pytest.mark.parametrize("key", deprecated.OPTIONS)
def test_an_old_option_is_replaced_by_one_that_the_command_has(key: str) -> None:
    old_name = key.partition(" --")[0]
    path = deprecated.COMMANDS.get(old_name, old_name).partition(" --")[0]
    names = set(options(path)) if path else {flag for _, flag, _ in ALL_OPTIONS}
    for old, text in deprecated.OPTIONS[key].items():
        new = text.partition(" ")[0]
        assert new in names or new.isupper(), f"{key} {old}"
        if (
            path in COMMANDS
            and old_name == path
            and old != new
            and (path, old) != ("convert", "--out")
        ):
            assert old not in names, f"{key} {old} has a meaning of today"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "motion delta --from x=0 --to x=0.1 --time 1",
            "plan stroke delta --start x=0 --end x=0.1 --duration 1",
        ),
        ("dynamics delta --position z=-0.5", "dynamics delta --pose z=-0.5"),
        (
            "dynamics delta --entry actuators --position leg1.motor=0.1",
            "dynamics delta --coordinates actuators --actuators leg1.motor=0.1",
        ),
        (
            "dynamics delta --entry=actuators --position=leg1.motor=0.1",
            "dynamics delta --coordinates=actuators --actuators=leg1.motor=0.1",
        ),
        ("calibrate delta a -px*,y", "calibrate delta a --parameters=x*,y"),
        ("dynamics delta -- --position", "dynamics delta -- --position"),
        ("convert delta --out", "convert delta --out"),
        ("accuracy backlash gantry --play", "accuracy backlash gantry --backlash"),
        ("modes five_bar --working --position x=0", "modes five_bar --working --pose x=0"),
        ("convert delta --out a.xml --figure b.png", "convert delta --out b.png a.xml"),
        ("play gantry --play 20", "accuracy backlash gantry --backlash=2e-05"),
        ("play gantry --play a=20,b=30", "accuracy backlash gantry --backlash=a=2e-05,b=3e-05"),
        ("play gantry --play lines", "accuracy backlash gantry --backlash=lines"),
        ("fit-plant a b --tolerance 1", "drive fit a b --value-tolerance 1"),
        ("drive fit a b --tolerance 1", "drive fit a b --tolerance 1"),
        ("fold five_bar a.csv --folder b", "identify --folded folded five_bar a.csv --folded b"),
    ],
)
def test_an_old_command_line_becomes_that_of_today(old: str, new: str) -> None:
    assert renew_command_line(old.split())[0] == new.split()


def test_an_old_command_line_gives_the_same_result_with_a_warning() -> None:
    old = run("motion", "delta", "--to", "x=0.05", "--time", "0.3", "--json")
    new = run("plan", "stroke", "delta", "--end", "x=0.05", "--duration", "0.3", "--json")
    assert old.stdout == new.stdout
    assert not new.stderr
    for name in ("tauloop plan stroke", "--end", "--duration"):
        assert f"use {name}" in old.stderr


def test_an_old_option_next_to_the_new_one_is_refused_by_name() -> None:
    refused = run("dynamics", "delta", "--position", "z=-0.5", "--pose", "z=-0.4", code=2)
    assert "--position is the old name of --pose, which is also given" in refused.stderr


def test_an_old_option_that_may_be_repeated_warns_once(tmp_path: Path) -> None:
    figure, data = tmp_path / "a.png", tmp_path / "b.json"
    events = ("--watch", "crank_pin<0", "--watch=crank_pin>9")
    done = run(
        "simulate", "four_bar", "--duration=1ms", *events, "--json-file", data, "--out", figure
    )
    assert figure.is_file()
    assert data.is_file()
    assert done.stderr.count("--watch is deprecated") == 1
    assert done.stderr.count("--json-file is deprecated") == 1


def test_the_help_lists_no_old_name() -> None:
    listed = re.findall(r"^  ([a-z][a-z0-9-]*)  ", run("--help").stdout, re.M)
    assert set(listed) == {*TOP_LEVEL, "paper"}


# Help and documentation


@pytest.mark.parametrize("name", COMMANDS)
def test_the_usage_names_arguments_in_capitals_and_marks_once_those_that_may_be_left_out(
    name: str,
) -> None:
    command = find_command(name)
    usage = command.get_usage(command.make_context(name, [], resilient_parsing=True)).partition(
        "[OPTIONS]"
    )[2]
    assert usage == usage.upper()
    assert "[[" not in usage


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_ends_with_an_example_that_the_command_can_read(name: str) -> None:
    words = shlex.split(EXAMPLES[name])
    count = len(name.split())
    assert " ".join(words[:count]) == name
    assert renew_command_line(words) == (words, [])
    command = find_command(name)
    assert command.epilog == f"Example: tauloop {EXAMPLES[name]}"
    # all options are known, and all values are of their kind
    context = command.make_context(name, words[count:])
    machine = context.params.get("machine")
    assert machine is None or machine.endswith(".yaml") or machine in shipped_machines()


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_missing_is_named_with_an_example(name: str) -> None:
    command = find_command(name)
    needed = [item.name for item in command.params if item.required]
    if not needed:
        return
    with pytest.raises(typer.BadParameter) as refused:
        command.make_context(name, [])
    assert refused.value.param.name == needed[0]
    assert f"Example: tauloop {EXAMPLES[name]}" in refused.value.format_message()


@pytest.mark.parametrize("name", ["plan", "export", "run"])
def test_a_machine_in_the_place_of_a_kind_is_refused(name: str) -> None:
    refused = run(name, "delta", code=2)
    assert "No such command 'delta'" in " ".join(refused.stderr.split())


def test_every_command_has_an_example_and_no_other_has() -> None:
    assert list(EXAMPLES) == list(COMMANDS)


def test_the_pages_of_commands_state_what_the_program_states() -> None:
    """Options, defaults, examples and exit codes."""
    for path, text in command_pages.updated().items():
        assert path.read_text(encoding="utf-8") == text, "run tools/command_pages.py"
    assert {
        name for names in command_pages.EXPLAINING_PAGES.values() for name in names.split(", ")
    } <= COMMANDS.keys()


def test_a_help_text_is_cut_after_its_statement() -> None:
    """At a semicolon, a period or a colon, but not inside parentheses nor after a condition."""
    cut = command_pages.short_help
    assert (
        cut("Largest speed (joints: of any one); without it none.")
        == "Largest speed (joints: of any one)"
    )
    assert cut("Motion from a table: CSV or Parquet") == "Motion from a table"
    assert cut("With the two-run method: run without structure") == (
        "With the two-run method: run without structure"
    )
    assert (
        cut("NAME=SPEED: friction is larger below it") == "NAME=SPEED: friction is larger below it"
    )
    example = command_pages.EXAMPLE
    assert (
        example.sub("", "Bandwidth, such as 100 (rad/s) or '20 Hz': a delay")
        == "Bandwidth: a delay"
    )
    assert (
        example.sub("", "Mass, such as 0.5kg, or 0.5kg@0,0,20mm")
        == "Mass, such as 0.5kg, or 0.5kg@0,0,20mm"
    )


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
