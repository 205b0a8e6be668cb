"""Words of a command line: the command that they name, and current names for earlier ones.

The tables of old names are in `tauloop.common.names.deprecated`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tauloop.cli.commands import COMMAND_GROUPS, COMMANDS, TOP_LEVEL
from tauloop.cli.outputs import FIGURE
from tauloop.common.names import deprecated
from tauloop.mechanism.suggestions import suggestion


def command_words(words: Sequence[str]) -> str:
    """Return the words of a command line that name its command, or ""."""
    for count in (2, 1):
        path = " ".join(words[:count])
        if path in COMMANDS:
            return path
    return ""


def renewed(words: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return a command line, without ``tauloop``, with current names, and the replaced pairs.

    Args:
        words: the words of a command line of any version.
    """
    old = _old_command(words)
    replaced: list[tuple[str, str]] = []
    new_words = list(words)
    if old:
        new = deprecated.COMMANDS[old]
        new_words = [*new.split(), *words[1:]]
        replaced.append((f"tauloop {old}", f"tauloop {new}"))
    path = command_words(new_words)
    if not path:
        return new_words, replaced
    first = len(path.split())
    options, pairs = _renewed_options(new_words[first:], _option_table(path, old, words))
    return [*new_words[:first], *options], replaced + pairs


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
    is_meant = words[1] not in commands and not suggestion(words[1], commands)
    return name if is_meant else ""


def _option_table(path: str, old: str, words: Sequence[str]) -> Mapping[str, str]:
    """Return the old options of a command with their replacements.

    Tables of an old name of the command apply to that name alone; a table whose name ends with
    options applies where a command line has all of them.
    """
    table = dict(deprecated.OPTIONS.get("", {}))
    for key, options in deprecated.OPTIONS.items():
        name, dash, condition = key.partition(" --")
        is_given = not dash or f"--{condition}" in " ".join(words)
        if name in (path, old) and name and is_given:
            table |= options
    return table


def _renewed_options(
    words: Sequence[str], table: Mapping[str, str]
) -> tuple[list[str], list[tuple[str, str]]]:
    renewed_words: list[str] = []
    arguments: list[str] = []
    pairs: list[tuple[str, str]] = []
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        new = table.get(name) if name.startswith("-") else None
        if new is None or new == name:
            renewed_words.append(word)
        elif new.startswith("-"):
            new, _, factor = new.partition(" *")
            if factor:
                value, equals = value if equals else next(rest, ""), "="
                value = _scaled(value, float(factor))
            renewed_words.append(f"{new}{equals}{value}")
            pairs.append((name, new))
        else:
            value = value if equals else next(rest, "")
            # `convert --out` was once the machine file, and is the picture now.
            if name == "--out" and value.endswith(FIGURE.endings):
                renewed_words += [name, value]
                continue
            arguments.append(value)
            pairs.append((name, f"the argument {new}"))
    return [*renewed_words, *arguments], pairs


def _scaled(value: str, factor: float) -> str:
    """Return the value of an option with its numbers multiplied, such as ``a=20,b=30``."""
    return re.sub(
        r"(^|[=,])\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)(?=\s*(?:,|$))",
        lambda match: f"{match[1]}{float(match[2]) * factor:g}",
        value,
    )
