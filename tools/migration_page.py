"""``python tools/migration_page.py``: write docs/migration.md from the tables of deprecated names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tauloop.common.names.deprecated import (
    ATTRIBUTES,
    COMMANDS,
    JSON_KEYS,
    KEYWORDS,
    MACHINE_KEYS,
    MEMBERS,
    MODULES,
    NAMES,
    OPTIONS,
    REMOVED_IN,
    SPLIT_PACKAGES,
)

MIGRATION_PAGE = Path(__file__).parents[1] / "docs" / "migration.md"
INTRODUCTION = f"""# From version 0.1 to 0.2

Old names work in version 0.2 with a warning that names the new name, and are removed in {REMOVED_IN}. In Python, show
the warnings with `python -W default::DeprecationWarning script.py`.

Options classes are no longer required: functions take the fields of their options as keywords. A machine may be a
model, a mechanism, a path or the name of a shipped machine.

```python
import tauloop as tl

tl.simulate(tl.load("delta"), tl.SimulationOptions(duration=0.1))  # version 0.1
tl.simulate("delta", duration="0.1 s")  # version 0.2
```
"""


def code(text: str) -> str:
    """Return text as code."""
    return f"`{text}`"


def renamed(old: str, new: str) -> str:
    """Return an old and a new name."""
    return f"{code(old)} → {code(new)}"


def options() -> Iterator[str]:
    """Yield a line for each group of commands with renamed options that are not renamed keywords."""
    commands: dict[tuple[str, str], list[str]] = {}
    for command, names in OPTIONS.items():
        for pair in names.items():
            if pair[0] != pair[1] and pair not in flags_of_keywords():
                commands.setdefault(pair, []).append(command)
    pairs: dict[tuple[str, ...], list[str]] = {}
    for (old, new), names in commands.items():
        name, _, factor = new.partition(" *")
        remark = f" (a bare number is in SI now, not in units of {factor})" if factor else ""
        pairs.setdefault(tuple(names), []).append(renamed(old, name) + remark)
    for names, texts in pairs.items():
        heading = ", ".join(code(name) if name else "all commands" for name in names)
        yield f"- {heading}: {', '.join(texts)}"


@cache
def flags_of_keywords() -> set[tuple[str, str]]:
    """Return the old and new options that follow from renamed keywords."""
    return {(flag(old), flag(new)) for pairs in KEYWORDS.values() for old, new in pairs.items()}


def flag(keyword: str) -> str:
    """Return the option of a keyword."""
    return f"--{keyword.replace('_', '-')}"


def names() -> Iterator[str]:
    """Yield a line for each package with renamed functions and classes."""
    packages: dict[str, list[str]] = {}
    for old, new in NAMES.items():
        package, _, name = old.rpartition(".")
        packages.setdefault(package or "tauloop", []).append(renamed(name, new))
    for package, texts in packages.items():
        yield f"- {code(package)}: {', '.join(texts)}"


def members(table: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each class with renamed members."""
    classes: dict[str, list[str]] = {}
    for old, new in table.items():
        owner, _, name = old.rpartition(".")
        classes.setdefault(owner, []).append(renamed(name, new.removeprefix(f"{owner}.")))
    yield from lines_by_renames(classes)


def lines_by_renames(texts_of: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield a line for each set of renames, with all classes and functions that have it."""
    owners: dict[str, list[str]] = {}
    for owner, texts in texts_of.items():
        owners.setdefault(", ".join(texts), []).append(code(owner))
    for renames, names_of_owners in owners.items():
        yield f"- {', '.join(names_of_owners)}: {renames}"


def keywords() -> Iterator[str]:
    """Yield a line for each set of renamed keywords."""
    yield from lines_by_renames(
        {
            owner: [renamed(old, new) + remark(owner, old) for old, new in pairs.items()]
            for owner, pairs in sorted(KEYWORDS.items())
        }
    )


def remark(owner: str, old: str) -> str:
    """Return a remark on an old name that another field of the same class has now."""
    is_current = old in KEYWORDS[owner].values()
    return " (without a warning: the old name has another meaning now)" if is_current else ""


def modules() -> Iterator[str]:
    """Yield a line for each old module with the packages that have its names now."""
    for old, places in MODULES.items():
        yield f"- {code(old)} → {', '.join(map(code, places))}"
    for old, places in SPLIT_PACKAGES.items():
        yield f"- a part of {code(old)} → {', '.join(map(code, places))}"


def text() -> str:
    """Return the text of the page."""
    keys = ", ".join(renamed(old, new) for old, new in JSON_KEYS.items())
    lines = [INTRODUCTION, "## Functions and classes\n", *names()]
    lines += ["\n## Attributes and methods\n", *members(ATTRIBUTES)]
    lines += ["\n## Keywords and fields of options\n"]
    lines.append(
        "A function takes the fields of its options as keywords, by their old names too.\n"
    )
    lines += [*keywords()]
    lines += ["\n## Members of enumerations\n", *members(MEMBERS)]
    lines += ["\n## Modules\n", *modules()]
    lines += ["\n## Commands\n"]
    lines.append(", ".join(renamed(old, new) for old, new in COMMANDS.items()))
    lines += ["\n## Options of commands\n"]
    lines.append("Options have the new names of their keywords. In addition:\n")
    lines += [*options()]
    old_keys = ", ".join(renamed(old, new) for old, new in MACHINE_KEYS.items())
    lines += ["\n## Machine files and files of measurements\n", f"Keys: {old_keys}."]
    lines.append(
        f"\n## JSON\n\n{keys}. Every result has `status`, `advice`, `diagnostics` and `provenance`."
    )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    MIGRATION_PAGE.write_text(text(), encoding="utf-8")
