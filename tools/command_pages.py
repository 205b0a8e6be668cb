"""``python tools/command_pages.py``: write the pages of commands from the program's own help."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import tauloop as tl
from tauloop.cli.app import find_command
from tauloop.cli.commands import COMMANDS, GROUPS, SECTIONS
from tauloop.cli.options import flags as flags_of, options_class
from tauloop.common.options import KEY

DOCS = Path(__file__).parents[1] / "docs"
#: The overview, and the folder of the pages of sections and groups.
PAGE, FOLDER = DOCS / "command-line.md", DOCS / "commands"
#: Lines of the overview between which the generated part is.
START, END = (
    "<!-- written by tools/command_pages.py: start -->\n",
    "<!-- written by tools/command_pages.py: end -->\n",
)
#: An option that so many commands have, in the same words, is explained once; so are so many
#: options of an earlier one.
SHARED, ALIKE = 6, 5
#: Pages of the site that say more of a command.
PAGES = {
    "machine-file.md": "new",
    "check.md": "check",
    "verify.md": "verify",
    "viewing.md": "view",
    "reports.md": "report",
    "kinematics.md": "fk, ik, jacobian, modes",
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
    "many-logs.md": "identify",
    "outgrowing-one-core.md": "study run, study show",
    "calibration.md": "calibrate",
    "pose-selection.md": "plan poses",
    "identification/known-parameters.md": "log subtract",
    "estimators.md": "control collision, log forces",
    "tracking.md": "log track",
    "drives.md": "drive step, accuracy ballbar, accuracy backlash",
    "drive-tuning.md": "drive tune, drive fit",
    "hardware-in-the-loop.md": "run plant",
    "generated-code.md": "export c, env cache",
    "generated-controllers.md": "export controller",
    "fmu.md": "export fmu",
    "linuxcnc.md": "export linuxcnc",
    "ros2.md": "export ros2",
    "exporting.md": "convert",
}
_TYPES = {"int": "NUMBER", "float": "NUMBER", "Path": "PATH"}


@cache
def command(name: str) -> Any:
    """Return a command of the program, imported."""
    return find_command(name)


def options(name: str) -> list[Any]:
    """Its options, without its arguments."""
    return [
        item
        for item in command(name).params
        if item.param_type_name == "option" and not item.hidden
    ]


def escaped(text: str) -> str:
    """Text as Markdown, on one line, that may stand in a table."""
    return re.sub(r"([|*])", r"\\\1", " ".join(text.split())).replace("<", "&lt;")


def flags(option: Any) -> str:
    """How an option is written: its names and what stands behind them."""
    kind = getattr(getattr(option, "type_descriptor", None), "annotation", None)
    name = getattr(kind, "__name__", "")
    value = "" if kind is bool else option.metavar or _TYPES.get(name, "TEXT")
    names = ", ".join(f"`{flag}{' ' + value if value else ''}`" for flag in option.opts)
    return escaped(names + "".join(f", `{flag}`" for flag in option.secondary_opts))


def default(option: Any) -> str:
    """What holds without the option; nothing where its text says that, or where it is a word that is left out."""
    if option.required:
        return "required"
    if isinstance(shown := getattr(option, "show_default", None), str):
        return escaped(f"`{shown}`")
    value = getattr(option.default, "value", option.default)
    is_nothing = value is None or value is False or value in ((), "")
    return "" if is_nothing else escaped(f"`{'on' if value is True else value}`")


Row = tuple[str, str, str]


def row(option: Any) -> Row:
    """A row of a table of options: how it is written, what holds without it, what it means."""
    return flags(option), default(option), escaped(option.help or "")


def table(rows: Iterable[Row]) -> Iterator[str]:
    """Lines of a table of options; without the second column where it is empty."""
    cells = [("option", "default", "meaning"), ("---", "---", "---"), *rows]
    shown = (0, 1, 2) if any(middle for _, middle, _ in cells[2:]) else (0, 2)
    return (f"| {' | '.join(cell[i] for i in shown)} |" for cell in cells)


@cache
def shared() -> dict[Row, Any]:
    """Options that stand in many commands in the same words, by their row."""
    rows = [(row(item), item) for name in COMMANDS for item in options(name)]
    counts = Counter(text for text, _ in rows)
    return {text: item for text, item in rows if counts[text] >= SHARED}


@cache
def earlier(name: str) -> tuple[str, list[Row]]:
    """Return the earlier command that shares most options with this one, and these options."""
    order = list(COMMANDS)
    own = [row(item) for item in options(name) if row(item) not in shared()]
    above = {
        other: set(map(row, options(other))) - {*earlier(other)[1]}
        for other in order[: order.index(name)]
    }
    alike = {other: [text for text in own if text in rows] for other, rows in above.items()}
    most = max(alike, key=lambda other: len(alike[other]), default="")
    return (most, alike[most]) if most and len(alike[most]) >= ALIKE else ("", [])


def page_of(name: str) -> str:
    """Return the page of a command in `FOLDER`: that of its section or group."""
    first = name.split()[0]
    titles = [title.lower() for title, entries in SECTIONS.items() if first in entries]
    return f"{titles[0] if titles else first}.md"


def anchor(name: str) -> str:
    """Return the link to a command, from a page of commands."""
    return f"{page_of(name)}#{name.replace(' ', '-')}"


def paragraphs(name: str) -> Iterator[str]:
    """The command's own words; what they say of exit codes stands last."""
    words = [" ".join(part.split()) for part in (command(name).help or "").split("\n\n")]
    codes = []
    for part in words:
        sentences = re.split(r"(?<=[.:]) (?=[A-Z])", part)
        codes += [sentence for sentence in sentences if sentence.startswith("Exit code")]
        if rest := " ".join(
            sentence for sentence in sentences if not sentence.startswith("Exit code")
        ):
            yield re.sub(r"([*])", r"\\\1", rest).replace("<", "&lt;")
    if codes:
        yield re.sub(r"(Exit code \d)", r"**\1**", " ".join(codes))


def renamed(options: type, path: str = "") -> Iterator[tuple[str, str]]:
    """Options whose fields have other names in Python: what they are called there, with the fields that they lie in."""
    own, hints = flags_of(options), get_type_hints(options)
    for item in fields(options):
        inner = options_class(hints[item.name])
        flag = own.get(item.name, "").partition("/")[0]
        if flag and flag != f"--{item.name.replace('_', '-')}":
            yield flag, f"{path}{item.name}"
        elif not flag and inner is not None and getattr(item.metadata.get(KEY), "flag", None) != "":
            yield from renamed(inner, f"{path}{item.name}.")


def in_python(name: str) -> str:
    """Return the functions and classes of options that do the same in Python."""
    function = inspect.unwrap(command(name).callback)
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    classes = [
        kind
        for item in parameters
        if (kind := options_class(item.annotation)) and kind.__name__ in dir(tl)
    ]
    functions = [*COMMANDS[name].python, *(f"tl.{kind.__name__}" for kind in classes)]
    words = ", ".join(f"`{word}`" for word in functions)
    others = ", ".join(
        f"`{flag}` is `{field}`" for kind in classes for flag, field in renamed(kind)
    )
    return f"In Python: {words}{'; ' if others else ''}{others}.\n"


def section(name: str) -> Iterator[str]:
    """What the page says of a command."""
    arguments = [item for item in command(name).params if item.param_type_name == "argument"]
    names = [
        f"{item.metavar or item.name.upper()}{'...' if item.nargs == -1 else ''}"
        for item in arguments
    ]
    yield f"## {name}\n"
    yield f"For example: `{command(name).epilog.removeprefix('Example: ')}`\n"
    for text in paragraphs(name):
        yield f"{text}\n"
    like, alike = earlier(name)
    own = [item for item in options(name) if row(item) not in shared() and row(item) not in alike]
    others = [item for item in arguments if item.name != "machine" and item.help]
    if own or others:
        words = zip(arguments, names, strict=True)
        above = [
            (f"`{word}`", default(item), escaped(item.help))
            for item, word in words
            if item in others
        ]
        yield from table([*above, *map(row, own)])
        yield ""
    if like:
        same = ", ".join(f"`{item.opts[0]}`" for item in options(name) if row(item) in alike)
        yield f"Explained at [{like}]({anchor(like)}): {same}.\n"
    more = [f"`{item.opts[0]}`" for item in options(name) if row(item) in shared()]
    pages = [page for page, commands in PAGES.items() if name in commands.split(", ")]
    links = ", ".join(f"[{Path(page).stem.replace('-', ' ')}](../{page})" for page in pages)
    further = f" More: {links}." if pages else ""
    yield f"Also [{', '.join(more)}](../command-line.md#options-of-many-commands).{further}\n"
    yield in_python(name)


def overview() -> Iterator[str]:
    """Return the generated lines of the overview."""
    yield "\n## Commands\n"
    yield "| section or group | commands |"
    yield "| --- | --- |"
    for title, names in pages().items():
        links = ", ".join(f"[`{name}`](commands/{anchor(name)})" for name in names)
        yield f"| [{title}](commands/{page_of(names[0])}) | {links} |"
    yield "\n## Options of many commands\n"
    yield from table(shared())
    yield ""


def pages() -> dict[str, list[str]]:
    """Return the commands of each page, by its title."""
    titles: dict[str, list[str]] = {}
    for name in COMMANDS:
        titles.setdefault(page_of(name).removesuffix(".md").capitalize(), []).append(name)
    return titles


def page(title: str, names: list[str]) -> str:
    """Return the page of a section or group."""
    group = GROUPS.get(title.lower())
    lines = [f"# {title} commands\n"]
    if group is not None:
        lines.append(f"{group.summary}\n")
    lines.append("| command | |")
    lines.append("| --- | --- |")
    for name in names:
        lines.append(
            f"| [`tauloop {name}`](#{name.replace(' ', '-')}) | {COMMANDS[name].summary} |"
        )
    for name in names:
        lines.append("")
        lines.append("\n".join(section(name)).rstrip("\n"))
    return "\n".join(lines) + "\n"


def updated() -> dict[Path, str]:
    """Return the text of each page, brought up to date."""
    before, rest = PAGE.read_text(encoding="utf-8").split(START)
    texts = {PAGE: before + START + "\n".join(overview()) + "\n" + END + rest.split(END)[1]}
    for title, names in pages().items():
        texts[FOLDER / page_of(names[0])] = page(title, names)
    return texts


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, text in updated().items():
        path.write_text(text, encoding="utf-8")
