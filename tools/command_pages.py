"""``python tools/command_pages.py``: write the pages of commands from the program's own help."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import tauloop as tl
from tauloop.cli.app import find_command
from tauloop.cli.commands import COMMAND_GROUPS, COMMANDS, HELP_SECTIONS
from tauloop.cli.machine import ImportArguments
from tauloop.cli.options import flags as flags_of, options_class
from tauloop.common.options import KEY

DOCS = Path(__file__).parents[1] / "docs"
#: The overview, and the folder of the pages of sections and groups.
OVERVIEW_PAGE, FOLDER = DOCS / "command-line.md", DOCS / "commands"
#: Lines of the overview between which the generated part is.
START, END = (
    "<!-- written by tools/command_pages.py: start -->\n",
    "<!-- written by tools/command_pages.py: end -->\n",
)
#: An option that at least this number of commands have, in the same words, is explained once.
MIN_COMMANDS = 6
#: Options whose help differs only in what they apply to: the pages have these words for all.
COMMON_HELP = {"--seed": "Seed of the random numbers"}
#: Sentences that repeat the overview's table of exit codes.
GENERAL_EXIT_CODE = re.compile(
    r"Exit code 1 when (the|a) \w+ (is doubtful|is beyond a stop)"
    r"(, or the pose is beyond a stop|; the reason is printed)?\."
)
#: Values whose form the overview explains.
EXPLAINED_VALUES = {
    "ACCELERATION",
    "ANGLE",
    "FORCE",
    "FREQUENCY",
    "JERK",
    "LENGTH",
    "MASS",
    "NAME=LOW:HIGH",
    "NAME=VALUE",
    "NAMES",
    "QUANTITY",
    "SPEED",
    "STRESS",
    "TIME",
    "VALUES",
}
#: Extensions of files whose content the overview explains.
EXPLAINED_EXTENSIONS = {".csv", ".json", ".nc", ".png", ".yaml"}
#: A statement is cut at a colon after at least this number of words.
MIN_WORDS = 4
#: Explanations of choices with more words are those of the page on the command's subject.
MAX_WORDS_OF_CHOICES = 20
#: Options of all commands.
EVERYWHERE = {"--json", "--quiet"}
#: The anchor of the section about options that many commands have.
COMMON = "options-of-many-commands"
#: A command refers to an earlier one for at least this number of equal options, on the same page
#: and on another one.
MIN_EQUAL_ON_PAGE, MIN_EQUAL_ELSEWHERE = 1, 2
#: A reference names the options that a command lacks if that saves at least this number of names.
MIN_NAMES_SAVED = 5
#: Pages of the site that explain a command.
EXPLAINING_PAGES = {
    "machine-file.md": "new",
    "check.md": "check",
    "verify.md": "verify",
    "viewing.md": "view",
    "reports.md": "report",
    "kinematics.md": "fk, ik, jacobian, modes",
    "elastic-machines.md": "stiffness, vibration, accuracy thermal, accuracy compliance, "
    "accuracy compensate, "
    "accuracy compensation-table, export compensation",
    "how-to/tolerances.md": "accuracy tolerances, design tolerances",
    "how-to/prove-a-workspace.md": "design certify",
    "how-to/from-a-task-to-a-machine.md": "design synthesize",
    "workspace.md": "workspace",
    "motion.md": "plan stroke",
    "fastest-motion.md": "plan path",
    "transfers.md": "plan transfer",
    "cycles.md": "plan cycle",
    "simulation.md": "simulate",
    "control.md": "control follow",
    "formulations.md": "dynamics, model cost",
    "equations.md": "model equations, show",
    "reduced-models.md": "model reduce",
    "identification.md": "identify",
    "identification/identifiability.md": "model base-parameters",
    "identification/excitation.md": "plan excitation",
    "identification/link-parameters.md": "model link-parameters",
    "identification/recordings.md": "log describe",
    "many-logs.md": "identify",
    "outgrowing-one-core.md": "study run, study show",
    "calibration.md": "calibrate",
    "pose-selection.md": "plan poses",
    "identification/known-parameters.md": "log subtract",
    "estimators.md": "control collision, log forces",
    "identification/drive-stiffness.md": "log drive-stiffness",
    "tracking.md": "log track",
    "drives.md": "drive step, accuracy ballbar, accuracy backlash",
    "drive-tuning.md": "drive tune, drive fit",
    "hardware-in-the-loop.md": "run plant",
    "how-to/rerun-and-foxglove.md": "run stream",
    "generated-code.md": "export c, env cache",
    "generated-controllers.md": "export controller",
    "fmu.md": "export fmu",
    "linuxcnc.md": "export linuxcnc",
    "ros2.md": "export ros2",
    "actuator-maps.md": "export transmission",
    "exporting.md": "convert",
}
_TYPES = {"int": "NUMBER", "float": "NUMBER", "Path": "PATH"}
#: Ends of a help text that `option_line` writes in a shorter form.
_CHOICES = re.compile(r": (?P<choices>[\w.-]+(, [\w.-]+)* or [\w.-]+|[\w.-]+(, [\w.-]+)+)$")
#: An example in a help text.
EXAMPLE = re.compile(
    r", such as (?:'[^']*'|\d[^,;:()' ]*+)(?: \([^)]*\))?"
    r"(?: or (?:'[^']*'|\d[^,;:() ]*+))?(?: \([^)]*\))?(?!, or)"
)
_RANGE = re.compile(r": (?P<range>(at least|at most|above|below|finite)[^:;]*)$")


@cache
def command(name: str) -> Any:
    """Return a command of the program, imported."""
    return find_command(name)


def options(name: str) -> list[Any]:
    """Return the options of a command, without its arguments."""
    return [
        item
        for item in command(name).params
        if item.param_type_name == "option" and not item.hidden
    ]


def escaped(text: str) -> str:
    """Return the text as Markdown, on one line."""
    return re.sub(r"([|*])", r"\\\1", " ".join(text.split())).replace("<", "&lt;")


def default(item: Any) -> str:
    """Return the default of an option; "" where its text states it or there is none."""
    if isinstance(shown := getattr(item, "show_default", None), str):
        return shown
    value = getattr(item.default, "value", item.default)
    if value is True:
        return "on"
    return "" if value is None or value is False or value in ((), "") else str(value)


def flags(option: Any, value: str) -> str:
    """Return the names of an option as code, the first with the name of its value.

    The overview explains the short form of ``--out``.
    """
    first, *others = option.opts
    if first == "--out":
        others = []
    named = f"{first} {value}" if value else first
    return ", ".join(f"`{name}`" for name in [named, *others, *option.secondary_opts])


def value_name(option: Any) -> str:
    """Return the name of an option's value, such as TIME; "" for a switch."""
    kind = getattr(getattr(option, "type_descriptor", None), "annotation", None)
    if kind is bool:
        return ""
    return str(option.metavar or _TYPES.get(getattr(kind, "__name__", ""), "TEXT"))


def first_statement(text: str, ends: str) -> str:
    """Return a help text up to the first of these signs before a space, outside parentheses."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and character in ends and text[place + 1 : place + 2] in ("", " "):
            return text[:place]
    return text


def short_help(text: str) -> str:
    """Return the statement of a help text, without explanations of its values."""
    sentence = first_statement(text, ".;")
    statement = first_statement(sentence, ":")
    is_condition = statement.startswith(("With ", "Of ", "In place "))
    is_short = len(statement.split()) < MIN_WORDS
    return sentence if is_condition or is_short else statement


def option_line(option: Any) -> str:
    """Return one line about an option: names, value, default and range, and the first statement.

    ``-h`` and the classes of options in the API have the whole text.
    """
    value = value_name(option)
    text = COMMON_HELP.get(option.opts[0], " ".join((option.help or "").split()))
    repeated = "..." if text.endswith("May be repeated.") else ""
    text = text.removesuffix("May be repeated.").rstrip(". ")
    limits = ""
    if found := _RANGE.search(text):
        text, limits = short_help(text[: found.start()]), short_range(found["range"])
    elif found := _CHOICES.search(text):
        text = first_statement(text[: found.start()], ".")
        if len(text.split()) > MAX_WORDS_OF_CHOICES:
            # the page on the command's subject explains the choices
            text = first_statement(text, ":")
        value = "|".join(re.split(r", | or ", found["choices"]))
    else:
        text = short_help(text)
    if value in EXPLAINED_VALUES:
        text = EXAMPLE.sub("", text).removesuffix(", separated by commas")
    if option.opts[0] == "--out":
        text = short_endings(text)
    notes = ", ".join(note for note in (code(default(option)), limits) if note)
    noted = f" ({notes})" if notes else ""
    return f"- {flags(option, value + repeated)}{noted}: {escaped(text)}"


def short_range(text: str) -> str:
    """Return a range as ``low to high``; "" where it only excludes negative numbers or zero."""
    if re.fullmatch(r"(at least|above) [01]( and finite)?", text):
        return ""
    text = re.sub(r"^at least (\S+) and at most (\S+)$", r"\1 to \2", text)
    for words, sign in (("at least", "≥"), ("at most", "≤"), ("above", "\\>"), ("below", "&lt;")):
        text = text.replace(words, sign)
    return text.replace(" and finite", "").replace(" and", ",")


def short_endings(text: str) -> str:
    """Return the help of ``--out`` with one extension for each kind of file (the overview has all).

    Where the overview explains all of them, the endings are enough.
    """
    text = re.sub(r"\((\.[a-z]+)(?:, \.[a-z]+)+\)", r"(\1)", text)
    endings = re.findall(r"\(([^)]*)\)", text)
    if set(endings) <= EXPLAINED_EXTENSIONS:
        *others, last = endings
        return f"{', '.join(others)} or {last}" if others else last
    return text.replace("the whole result, for `tauloop report`", "the result")


def code(text: str) -> str:
    """Return the text in the form of code; "" for ""."""
    return f"`{text}`" if text else ""


@cache
def machine_options() -> set[str]:
    """Return the lines of the options by which commands take a machine."""
    names = {f"--{item.name.replace('_', '-')}" for item in fields(ImportArguments)}
    flags_of_arguments = {"--set", *names}
    return {line for line, item in shared().items() if item.opts[0] in flags_of_arguments}


@cache
def shared() -> dict[str, Any]:
    """Return the options that many commands have in the same words, by their line."""
    lines = [(option_line(item), item) for name in COMMANDS for item in options(name)]
    counts = Counter(line for line, _ in lines)
    return {line: item for line, item in lines if counts[line] >= MIN_COMMANDS}


@cache
def own_lines(name: str) -> dict[str, Any]:
    """Return the options of a command that are not explained for many commands, by their line."""
    lines = {option_line(item): item for item in options(name)}
    return {line: item for line, item in lines.items() if line not in shared()}


@cache
def explained_earlier(name: str) -> dict[str, dict[str, Any]]:
    """Return the options that earlier commands explain in the same words, by these commands."""
    remaining = dict(own_lines(name))
    references = {}
    for other in list(COMMANDS)[: list(COMMANDS).index(name)]:
        elsewhere = {
            line for options_of in explained_earlier(other).values() for line in options_of
        }
        equal = {
            line: item
            for line, item in remaining.items()
            if line in own_lines(other) and line not in elsewhere
        }
        is_on_page = page_of(other) == page_of(name)
        if len(equal) >= (MIN_EQUAL_ON_PAGE if is_on_page else MIN_EQUAL_ELSEWHERE):
            references[other] = equal
            remaining = {line: item for line, item in remaining.items() if line not in equal}
    return references


def page_of(name: str) -> str:
    """Return the page of a command in `FOLDER`: that of its section or group."""
    first = name.split()[0]
    titles = [title.lower() for title, entries in HELP_SECTIONS.items() if first in entries]
    return f"{titles[0] if titles else first}.md"


def anchor(name: str) -> str:
    """Return the link to a command, from a page of commands."""
    return f"{page_of(name)}#{name.replace(' ', '-')}"


def paragraphs(name: str) -> Iterator[str]:
    """Return the paragraphs of a command's help; sentences about exit codes come last.

    A command that another page explains has the first paragraph alone.
    """
    codes, others = [], []
    for part in (command(name).help or "").split("\n\n"):
        sentences = re.split(r"(?<=[.:]) (?=[A-Z])", " ".join(part.split()))
        codes += [
            sentence
            for sentence in sentences
            if sentence.startswith("Exit code") and not GENERAL_EXIT_CODE.fullmatch(sentence)
        ]
        others.append([text for text in sentences if not text.startswith("Exit code")])
    for sentences in others[:1] if pages_about(name) else others:
        if sentences:
            yield re.sub(r"([*])", r"\\\1", " ".join(sentences)).replace("<", "&lt;")
    if codes:
        yield re.sub(r"(Exit code \d)", r"**\1**", " ".join(codes))


def pages_about(name: str) -> list[str]:
    """Return the pages of the site that explain a command."""
    return [page for page, commands in EXPLAINING_PAGES.items() if name in commands.split(", ")]


def renamed(options: type, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield options whose fields have other names in Python, with the path of the field."""
    own, hints = flags_of(options), get_type_hints(options)
    for item in fields(options):
        inner = options_class(hints[item.name])
        flag = own.get(item.name, "").partition("/")[0]
        if flag and flag != f"--{item.name.replace('_', '-')}":
            yield flag, f"{path}{item.name}"
        elif not flag and inner is not None and getattr(item.metadata.get(KEY), "flag", None) != "":
            yield from renamed(inner, f"{path}{item.name}.")


def references(name: str) -> str:
    """Return the functions that do the same in Python, and the pages about a command."""
    functions = ", ".join(code(word) for word in COMMANDS[name].python)
    links = ", ".join(
        f"[{Path(page).stem.replace('-', ' ')}](../{page})" for page in pages_about(name)
    )
    return f"See {links}, {functions}." if links else f"See {functions}."


def python_names() -> dict[str, set[str]]:
    """Return the keywords of options that have other names in Python."""
    names: dict[str, set[str]] = {}
    for name in COMMANDS:
        function = inspect.unwrap(command(name).callback)
        for parameter in inspect.signature(function, eval_str=True).parameters.values():
            kind = options_class(parameter.annotation)
            if kind is not None and kind.__name__ in dir(tl):
                for flag, path in renamed(kind):
                    names.setdefault(flag, set()).add(path.rpartition(".")[2])
    return names


def section(name: str) -> Iterator[str]:
    """Return the lines of a command's section."""
    yield f"## {name}\n"
    yield f"`{command(name).epilog.removeprefix('Example: ')}`\n"
    for text in paragraphs(name):
        yield f"{text}\n"
    earlier = explained_earlier(name)
    elsewhere = {line for options_of in earlier.values() for line in options_of}
    lines = [*argument_lines(name), *(line for line in own_lines(name) if line not in elsewhere)]
    if lines:
        yield from lines
        yield ""
    for other, options_of in earlier.items():
        yield f"As in [{other}]({anchor(other)}): {named_options(other, options_of)}.\n"
    further = [
        f"`{item.opts[0]}`"
        for item in options(name)
        if option_line(item) in shared()
        and option_line(item) not in machine_options()
        and item.opts[0] not in EVERYWHERE
    ]
    if further:
        yield f"Also [{', '.join(further)}](../command-line.md#{COMMON}).\n"
    yield f"{references(name)}\n"


def named_options(other: str, equal: dict[str, Any]) -> str:
    """Return the names of the options that another command explains, or of those that are missing."""
    elsewhere = {line for options_of in explained_earlier(other).values() for line in options_of}
    listed = {line: item for line, item in own_lines(other).items() if line not in elsewhere}
    names = [code(item.opts[0]) for line, item in listed.items() if line in equal]
    missing = [code(item.opts[0]) for line, item in listed.items() if line not in equal]
    if len(names) - len(missing) < MIN_NAMES_SAVED:
        return ", ".join(names)
    return f"all options except {', '.join(missing)}" if missing else "all options"


def argument_lines(name: str) -> Iterator[str]:
    """Return a line for each argument of a command other than the machine."""
    for item in command(name).params:
        if item.param_type_name == "argument" and item.name != "machine" and item.help:
            value = f"{item.metavar or item.name.upper()}{'...' if item.nargs == -1 else ''}"
            noted = f" (`{default(item)}`)" if default(item) else ""
            yield f"- `{value}`{noted}: {escaped(item.help).rstrip('.')}"


def overview() -> Iterator[str]:
    """Return the generated lines of the overview."""
    yield "\n## Commands\n"
    for title, names in pages().items():
        links = ", ".join(f"[`{name}`](commands/{anchor(name)})" for name in names)
        yield f"- [{title}](commands/{page_of(names[0])}): {links}"
    yield ""
    yield f"## {COMMON.replace('-', ' ').capitalize()}\n"
    yield "All commands:\n"
    yield from (line for line, item in shared().items() if item.opts[0] in EVERYWHERE)
    yield "\nCommands about a machine; all except `--set` apply only to [imported files](importing.md):\n"
    yield from (line for line, item in shared().items() if line in machine_options())
    yield '\nCommands that list them after "Also":\n'
    yield from (
        line
        for line, item in shared().items()
        if option_line(item) not in machine_options() and item.opts[0] not in EVERYWHERE
    )
    yield "\n## Keywords in Python\n"
    yield "Each option is a keyword argument of the same name: `--tool-jerk 500` is `tool_jerk=500`."
    for flag, names in sorted(python_names().items()):
        yield f"`{flag}` is {', '.join(map(code, sorted(names)))}."
    yield ""


def pages() -> dict[str, list[str]]:
    """Return the commands of each page, by its title."""
    titles: dict[str, list[str]] = {}
    for name in COMMANDS:
        titles.setdefault(page_of(name).removesuffix(".md").capitalize(), []).append(name)
    return titles


def page(title: str, names: list[str]) -> str:
    """Return the page of a section or group."""
    group = COMMAND_GROUPS.get(title.lower())
    lines = [f"# {title} commands"]
    if group is not None:
        lines.append(f"\n{group.summary}")
    for name in names:
        lines.append("")
        lines.append("\n".join(section(name)).rstrip("\n"))
    return "\n".join(lines) + "\n"


def updated() -> dict[Path, str]:
    """Return the text of each page, brought up to date."""
    before, rest = OVERVIEW_PAGE.read_text(encoding="utf-8").split(START)
    texts = {
        OVERVIEW_PAGE: before + START + "\n".join(overview()) + "\n" + END + rest.split(END)[1]
    }
    for title, names in pages().items():
        texts[FOLDER / page_of(names[0])] = page(title, names)
    return texts


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, text in updated().items():
        path.write_text(text, encoding="utf-8")
