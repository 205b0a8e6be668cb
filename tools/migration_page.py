"""``python tools/migration_page.py``: write docs/migration.md from the tables of deprecated names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tauloop.common.deprecated import (
    COMMANDS,
    JSON_KEYS,
    MEMBERS,
    MODULES,
    NAMES,
    OPTIONS,
    REMOVED_IN,
    SPLIT_PACKAGES,
)

PAGE = Path(__file__).parents[1] / "docs" / "migration.md"
HEAD = f"""# From version 0.1 to 0.2

Written by `tools/migration_page.py` from the tables of `tauloop.common.deprecated`, which the program itself uses.

Old names work in version 0.2 and are removed in {REMOVED_IN}. Python raises a `DeprecationWarning` that states the new
name; show these warnings with `python -W default::DeprecationWarning script.py`. The command line prints a warning and
runs the new command.

Options classes are no longer required: every function takes the fields of its options as keywords, and a machine may be
a model, a mechanism, a path or the name of a shipped machine.

```python
import tauloop as tl

tl.simulate(tl.load("delta"), tl.SimulationOptions(duration=0.1))  # 0.1
tl.simulate("delta", duration="0.1 s")  # 0.2
```
"""


def table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield the lines of a table."""
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def code(text: str) -> str:
    """Return text as code; nothing for an empty text."""
    return f"`{text}`" if text else ""


def commands() -> Iterator[tuple[str, ...]]:
    """Yield the old and new words of each command."""
    for old, new in COMMANDS.items():
        yield code(f"tauloop {old}"), code(f"tauloop {new}")


def options() -> Iterator[tuple[str, ...]]:
    """Yield the command, old and new name of each option, and the unit of a bare number."""
    for command, names in OPTIONS.items():
        for old, new in names.items():
            if old == new:
                continue
            name, _, factor = new.partition(" *")
            remark = f"a bare number was in units of {factor}, and is in SI now" if factor else ""
            yield (
                code(f"tauloop {command}") if command else "every command",
                code(old),
                code(name),
                remark,
            )


def names() -> Iterator[tuple[str, ...]]:
    """Yield the old and new name of each function and class."""
    for old, new in NAMES.items():
        package, _, _ = old.rpartition(".")
        yield code(old), code(f"{package}.{new}" if package else new)


def modules() -> Iterator[tuple[str, ...]]:
    """Yield each old module with the packages that have its names now."""
    for old, places in MODULES.items():
        yield code(old), ", ".join(map(code, places))
    for old, places in SPLIT_PACKAGES.items():
        yield f"{code(old)} (part of it)", ", ".join(map(code, places))


def text() -> str:
    """Return the text of the page."""
    lines = [HEAD, "## Functions and classes\n"]
    lines += table(("0.1", "0.2"), names())
    lines.append("\n## Members of enumerations\n")
    lines += table(("0.1", "0.2"), ((code(old), code(new)) for old, new in MEMBERS.items()))
    lines.append("\n## Attributes of results\n")
    renamed = [
        (code("result.evidence"), code("result.diagnostics")),
        (code("TwoRuns.apart"), code("TwoRuns.motion_mismatch")),
    ]
    lines += table(("0.1", "0.2"), renamed)
    lines.append("\n## Modules\n")
    lines += table(("0.1", "0.2"), modules())
    lines.append("\n## Commands\n")
    lines += table(("0.1", "0.2"), commands())
    lines.append("\n## Options of commands\n")
    lines += table(("command of 0.2", "0.1", "0.2", "remark"), options())
    lines.append("\n## Keys of JSON\n")
    lines += table(("0.1", "0.2"), ((code(old), code(new)) for old, new in JSON_KEYS.items()))
    lines.append(
        "\nThe JSON of every result has `status`, `advice`, `diagnostics` and `provenance`. Paths in study"
        " files (`keep`) may have old keys."
    )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
