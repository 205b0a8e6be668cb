"""The command line: its commands, which are imported only when called, and their old names.

Exit codes: 0 success; 1 the command ran and found a fault (a failed check, a doubtful result); 2
invalid input.
"""

from __future__ import annotations

import enum
import functools
import importlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

import tauloop
from tauloop.cli.commands import (
    COMMAND_GROUPS,
    COMMANDS,
    HELP_SECTIONS,
    PAPER,
    PAPER_ENTRY_POINT,
    PAPER_REMEDY,
    TOP_LEVEL,
    CommandEntry,
    CommandGroup,
)
from tauloop.cli.outputs import FIGURE
from tauloop.cli.terminal.completion import TAKES_MACHINE, machines
from tauloop.common.errors import EngineError, reports_missing_extras
from tauloop.common.extensions import installed_plugins
from tauloop.common.names import deprecated
from tauloop.mechanism.suggestions import suggestion

#: Group of the entry points of commands in other distributions.
COMMAND_ENTRY_POINTS = "tauloop.commands"


#: Settings of commands: names of the option that prints the help.
HELP = {"help_option_names": ["-h", "--help"]}


class Quick:
    """A command that converts plain values itself, because Typer would import Pydantic (0.1 s)."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return options and arguments, including ``--help``."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in params:
            vars(parameter).setdefault(
                "process_value", functools.partial(_converted_value, parameter)
            )
        return params


def _converted_value(parameter: Any, ctx: Any, value: Any) -> Any:
    """Return the value of a parameter, converted as Typer does.

    Missing values, text, numbers and enumerations are converted here, other types by Typer.
    """
    descriptor = getattr(parameter, "type_descriptor", None)  # since Typer 0.29
    kind = descriptor.annotation if descriptor is not None and not descriptor.is_ranged else None
    is_missing = value is None and descriptor is not None and not parameter.required
    if is_missing:
        value = () if parameter.multiple or parameter.nargs == -1 else None
    elif isinstance(value, str) and (kind in (int, float) or isinstance(kind, enum.EnumType)):
        with suppress(ValueError):
            value = kind(value)
    if not is_missing and (value is None or type(value) is not kind):
        return type(parameter).process_value(parameter, ctx, value)
    return parameter.callback(ctx, parameter, value) if parameter.callback else value


class QuickCommand(Quick, TyperCommand):
    """A `Quick` command that stores its command line, and shows an example for wrong arguments."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments as `TyperCommand` does, and store the command line for reports.

        Returns:
            The arguments that the parser did not use.
        """
        from tauloop.cli.output import COMMAND_WORDS

        COMMAND_WORDS.set((*ctx.command_path.split(), *args))
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            # A missing argument has no message.
            if isinstance(error.param, TyperArgument) or not error.message:
                error.message = f"{error.message} {self.epilog or ''}".strip()
            raise


class FirstWord(QuickCommand):
    """A stand-in that completes a command's machine without importing the command."""

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Complete options with the command itself, which is imported for this.

        Returns:
            The completions of the incomplete word.
        """
        group = ctx.parent.command
        command = group.get_command(ctx.parent, ctx.info_name)
        return list(
            command.shell_complete(
                command.make_context(ctx.info_name, [], resilient_parsing=True), incomplete
            )
        )


def _first_word(machine: Annotated[str, typer.Argument(autocompletion=machines)]) -> None:
    """Accept a machine; this function is only completed, never called."""


class LazyGroup(Quick, TyperGroup):
    """A group of commands, each of which is imported when it is used, because imports are slow.

    Subclasses define the commands.
    """

    def entries(self) -> Mapping[str, CommandEntry | CommandGroup]:
        """Return the commands and groups of this group by name."""
        raise NotImplementedError

    def path_of(self, name: str) -> str:
        """Return the path of a command of this group, such as ``plan stroke``."""
        raise NotImplementedError

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return [*self.entries()]

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return matching commands with their summaries, without importing them."""
        if incomplete.startswith("-"):
            return list(super().shell_complete(ctx, incomplete))
        entries = self.entries()
        summaries = {
            name: entries[name].summary if name in entries else None
            for name in self.list_commands(ctx)
        }
        unimported = TyperGroup(
            commands={name: TyperCommand(name, help=text) for name, text in summaries.items()}
        )
        return list(
            unimported.shell_complete(
                unimported.make_context(ctx.info_name, [], resilient_parsing=True), incomplete
            )
        )

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first word names; suggest a command for an unknown word."""
        if args[0] not in self.entries() and not args[0].startswith("-"):
            # Reading the command names of installed packages is slow; only unknown words need it.
            commands = self.list_commands(ctx)
            if args[0] not in commands:
                hint = suggestion(args[0], commands) or f"choose among {', '.join(commands)}"
                ctx.fail(f"No such command {args[0]!r}: {hint}")
        is_first_word = ctx.resilient_parsing and len(args) == 1
        if is_first_word and self.path_of(args[0]) in TAKES_MACHINE:
            application = typer.Typer(add_completion=False)
            application.command(args[0], cls=FirstWord)(_first_word)
            return args[0], typer.main.get_command(application), []
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command or group with a name, or None."""
        entry = self.entries().get(cmd_name)
        if entry is None:
            return None
        if isinstance(entry, CommandGroup):
            return Subgroup(cmd_name)
        try:
            with reports_missing_extras():
                module = importlib.import_module(f"tauloop.cli.{entry.module}")
        except EngineError as error:
            return _without_extra(cmd_name, error)
        return build_command(
            cmd_name, getattr(module, entry.function), EXAMPLES[self.path_of(cmd_name)]
        )


def _without_extra(name: str, error: EngineError) -> Any:
    """Return a command that accepts any arguments and reports a missing extra."""
    from tauloop.cli.output import reports_errors

    def command() -> None:
        raise error

    application = typer.Typer(add_completion=False)
    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    application.command(name, context_settings=settings)(reports_errors(command))
    return typer.main.get_command(application)


class Subgroup(LazyGroup):
    """A group of commands, such as ``tauloop plan``."""

    def __init__(self, name: str) -> None:
        """Create the group with a name in `TOP_LEVEL`."""
        entry = TOP_LEVEL[name]
        assert isinstance(entry, CommandGroup)
        self._commands = entry.commands
        super().__init__(
            name=name,
            help=entry.summary,
            no_args_is_help=True,
            context_settings=HELP,
            rich_markup_mode=None,
        )

    def entries(self) -> Mapping[str, CommandEntry | CommandGroup]:
        """Return the commands of the group."""
        return self._commands

    def path_of(self, name: str) -> str:
        """Return the group's name and the command's name."""
        return f"{self.name} {name}"

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self._commands.items()])


class PaperGroup(LazyGroup):
    """The commands of the second distribution, which may not be installed."""

    def __init__(self) -> None:
        """Create the group."""
        super().__init__(
            name="paper",
            help=PAPER.summary,
            no_args_is_help=True,
            context_settings=HELP,
            rich_markup_mode=None,
        )

    def entries(self) -> Mapping[str, CommandEntry | CommandGroup]:
        """Return the commands of the group."""
        return PAPER.commands

    def path_of(self, name: str) -> str:
        """Return the group's name and the command's name."""
        return f"paper {name}"

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command of the distribution; fail if it is not installed."""
        entry = PAPER.commands.get(cmd_name)
        if entry is None:
            return None
        point = installed_plugins(COMMAND_ENTRY_POINTS).get(PAPER_ENTRY_POINT)
        if point is None:
            return ctx.fail(f"paper {cmd_name} is not installed: {PAPER_REMEDY}")
        module = importlib.import_module(point.module)
        return build_command(cmd_name, getattr(module, entry.function))

    format_commands = Subgroup.format_commands
    _commands = PAPER.commands


class TopLevel(LazyGroup):
    """The top level: all commands and groups, including commands of installed packages."""

    def entries(self) -> Mapping[str, CommandEntry | CommandGroup]:
        """Return Tauloop's own commands and groups."""
        return {**TOP_LEVEL, "paper": PAPER}

    def path_of(self, name: str) -> str:
        """Return the name itself, which is the path of a command of the top level."""
        return name

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words; names of earlier versions are replaced with a warning.

        Returns:
            The arguments that the parser did not use.
        """
        words, renamings = renew_command_line(args)
        if not ctx.resilient_parsing:
            for old, new in dict.fromkeys(renamings):
                release = f"Tauloop {deprecated.REMOVED_IN}"
                text = f"warning: {old} is deprecated and will be removed in {release}: use {new}"
                typer.echo(text, err=True)
            if renamings:
                _require_one_name(ctx, words, renamings)
        return list(super().parse_args(ctx, words))

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands and groups, including those of installed packages."""
        return [*self.entries(), *_plugin_commands()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command or group with a name, or None."""
        if cmd_name == "paper":
            return PaperGroup()
        if cmd_name in self.entries():
            return super().get_command(ctx, cmd_name)
        plugins = _plugin_commands()
        return build_command(cmd_name, plugins[cmd_name].load()) if cmd_name in plugins else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands without importing them."""
        groups = {**COMMAND_GROUPS, "paper": PAPER}
        plugins = {
            name: f"Command of {entry.dist.name}."
            for name, entry in _plugin_commands().items()
            if entry.dist
        }
        for title, entries in HELP_SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([_line(name, entry) for name, entry in entries.items()])
        with formatter.section("Groups"):
            formatter.write_dl([_line(name, entry) for name, entry in groups.items()])
        if plugins:
            with formatter.section("Others"):
                formatter.write_dl([*plugins.items()])


def _line(name: str, entry: CommandEntry | CommandGroup) -> tuple[str, str]:
    """Return a command's line in the help; the line of a group lists its commands."""
    if isinstance(entry, CommandEntry):
        return name, entry.summary
    return name, f"{entry.summary.removesuffix('.')}: {', '.join(entry.commands)}."


def _plugin_commands() -> dict[str, Any]:
    """Return the entry points of the commands of other installed packages, by name."""
    points = installed_plugins(COMMAND_ENTRY_POINTS)
    names = sorted({*points} - {*TOP_LEVEL, PAPER_ENTRY_POINT})
    return {name: points[name] for name in names}


def build_command(name: str, function: Any, example: str = "") -> Any:
    """Return the command that calls a function; the help of the command ends with the example."""
    application = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=HELP)
    epilog = f"Example: tauloop {example}" if example else None
    application.command(name, cls=QuickCommand, epilog=epilog)(function)
    return typer.main.get_command(application)


@functools.cache
def find_command(path: str) -> Any:
    """Return the imported command with a path such as ``plan stroke``."""
    group: Any = typer.main.get_command(app)
    for word in path.split():
        group = group.get_command(None, word)
    return group


app = typer.Typer(
    cls=TopLevel,
    name="tauloop",
    help="Parallel robots: kinematics, dynamics, simulation and identification from one description.",
    no_args_is_help=True,
    add_completion=True,
    context_settings=HELP,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(is_requested: bool) -> None:
    """Print the version and exit if it is requested."""
    if is_requested:
        typer.echo(f"tauloop {tauloop.__version__}")
        raise typer.Exit


@app.callback()
def _top_level_options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Define the options of the top level."""


def command_words(words: Sequence[str]) -> str:
    """Return the path of the command at the start of a command line, or ""."""
    for count in (2, 1):
        path = " ".join(words[:count])
        if path in COMMANDS:
            return path
    return ""


def _examples() -> dict[str, str]:
    """Return an example of each command, by its path."""
    lines = (Path(__file__).parent / "examples.txt").read_text(encoding="utf-8").splitlines()
    return {command_words(line.split()): line for line in lines}


#: Example of each command by its path, without ``tauloop``; the help of the command ends with it.
EXAMPLES: Mapping[str, str] = _examples()


def renew_command_line(words: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return a command line with current names, and the pairs of replaced and new names.

    Args:
        words: the words of a command line of any version, without ``tauloop``.
    """
    old = _old_command(words)
    renamings: list[tuple[str, str]] = []
    new_words = list(words)
    if old:
        new = deprecated.COMMANDS[old]
        new_words = [*new.split(), *words[1:]]
        renamings.append((f"tauloop {old}", f"tauloop {new}"))
    path = command_words(new_words)
    if not path:
        return new_words, renamings
    first = len(path.split())
    options, option_renamings = _renew_options(new_words[first:], _option_table(path, old, words))
    return [*new_words[:first], *options], renamings + option_renamings


def _require_one_name(ctx: Any, words: Sequence[str], renamings: Sequence[tuple[str, str]]) -> None:
    """Reject an old option in addition to the new one, unless the option can be repeated."""
    path = command_words(words)
    if not path:
        return
    unrepeatable = {
        name
        for item in find_command(path).params
        if getattr(item, "multiple", None) is False
        for name in item.opts
    }
    names = [word.partition("=")[0] for word in _before_separator(words)]
    for old, new in dict.fromkeys(renamings):
        if new in unrepeatable and names.count(new) > 1:
            ctx.fail(f"{old} is the old name of {new}, which is also given: give only {new}")


def _before_separator(words: Sequence[str]) -> Sequence[str]:
    """Return the words before ``--``, after which all words are arguments."""
    return words[: words.index("--")] if "--" in words else words


def _old_command(words: Sequence[str]) -> str:
    """Return the old command name at the start of a command line, or ""."""
    if not words or words[0] not in deprecated.COMMANDS:
        return ""
    name = words[0]
    if name not in TOP_LEVEL:
        return name
    if len(words) == 1 or words[1] in ("-h", "--help"):
        return ""
    commands = COMMAND_GROUPS[name].commands
    is_old_command = words[1] not in commands and not suggestion(words[1], commands)
    return name if is_old_command else ""


def _option_table(path: str, old: str, words: Sequence[str]) -> Mapping[str, str]:
    """Return the replacements of a command's old options, from `deprecated.OPTIONS`.

    A table with an old name of the command applies only if the command line uses that name. A
    table whose name ends with options applies only if the command line contains these options.
    """
    table = dict(deprecated.OPTIONS.get("", {}))
    command_line = " ".join(words).replace("=", " ")
    for key, options in deprecated.OPTIONS.items():
        name, dash, condition = key.partition(" --")
        applies = not dash or f"--{condition}" in command_line
        if name in (path, old) and name and applies:
            table |= options
    return table


def _renew_options(
    words: Sequence[str], table: Mapping[str, str]
) -> tuple[list[str], list[tuple[str, str]]]:
    """Return options and arguments with current names, and the pairs of replaced and new names."""
    renewed_words: list[str] = []
    arguments: list[str] = []
    renamings: list[tuple[str, str]] = []
    before_separator = _before_separator(words)
    remaining = iter(before_separator)
    for word in remaining:
        name, equals, value = _option_parts(word, table)
        new = table.get(name) if name.startswith("-") else None
        if new is None or new == name:
            renewed_words.append(word)
            continue
        is_argument = not new.startswith("-")
        # an entry such as "--backlash *1e-6" also scales the value
        new, _, factor = new.partition(" *")
        if not equals and (factor or is_argument):
            next_word = next(remaining, None)
            if next_word is None:
                renewed_words.append(name if is_argument else new)
                continue
            value = next_word
            equals = "="
        # `convert --out` named the machine file in earlier versions; now it names the picture.
        if is_argument and name == "--out" and value.endswith(FIGURE.endings):
            renewed_words += [name, value]
        elif is_argument:
            arguments.append(value)
            renamings.append((name, f"the argument {new}"))
        else:
            value = _scaled(value, float(factor)) if factor else value
            renewed_words.append(f"{new}{equals}{value}")
            renamings.append((name, new))
    return [*renewed_words, *arguments, *words[len(before_separator) :]], renamings


def _option_parts(word: str, table: Mapping[str, str]) -> tuple[str, str, str]:
    """Return the name of an option, the sign between name and value, and the value.

    The value of a short option can follow without a sign, as in ``-px``.
    """
    if word[:2] in table and len(word) > 2 and word[2] != "=":
        return word[:2], "=", word[2:]
    return word.partition("=")


def _scaled(value: str, factor: float) -> str:
    """Return the value of an option, such as ``a=20,b=30``, with its numbers multiplied."""
    return re.sub(
        r"(^|[=,])\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)(?=\s*(?:,|$))",
        lambda match: f"{match[1]}{float(match[2]) * factor:g}",
        value,
    )
