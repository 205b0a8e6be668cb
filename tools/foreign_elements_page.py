"""``python tools/foreign_elements_page.py``: write docs/foreign-elements.md from the table of elements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tauloop.formats.xml.foreign_elements import (
    ANY_PARENT,
    DRAKE_APPEARANCE,
    ELEMENT_ROWS,
    PLUGIN_FORCE_WORDS,
    PLUGIN_TIE_WORDS,
    TIE_WORDS,
    ElementRow,
    Treatment,
)

ELEMENTS_PAGE = Path(__file__).parents[1] / "docs" / "foreign-elements.md"
TITLES = {"urdf": "URDF", "sdf": "SDF", "mjcf": "MJCF"}
HEADINGS = {
    Treatment.READ: "Read",
    Treatment.HARMLESS: "Harmless",
    Treatment.REFUSED: "Rejected",
}
#: Words in the meaning of a harmless row with which the page states the meaning. Other harmless
#: rows are only listed by parent.
STATED_WORDS = ("read", "reported", "looked for", "drawn", "listed")
#: The name under which the page refers to `DRAKE_APPEARANCE`.
DRAKE_LINK = "[Drake's properties](#drake-properties)"


def cells(names: Iterable[str]) -> str:
    """Return tags as code."""
    return ", ".join(f"`{name}`" for name in names)


def head() -> str:
    """Return the introduction."""
    return f"""# Elements of URDF, SDF and MJCF

What Tauloop does with each element of an imported file:

- **Read**: it changes the machine.
- **Harmless**: it is outside Tauloop's model (contact, sensors, control, drawing), and is counted in the import notes.
- **Rejected**: ignoring it would change the machine.

`tauloop check` reports elements that are not listed as doubtful (exit code 1), or rejects them (2) if their
name contains {cells(TIE_WORDS)}.

A plugin is rejected if its name or its library contains {cells(PLUGIN_TIE_WORDS)}. Forces of plugins with
{cells(PLUGIN_FORCE_WORDS)} in their names are [left out](importing.md#forces-that-are-left-out).

<a id="drake-properties"></a>Drake's properties for drawing and contact, harmless in links, models and robots, are
{cells(DRAKE_APPEARANCE.split())}."""


def tags_of(row: ElementRow) -> str:
    """Return the tags of a row; those of Drake's properties by their common name."""
    looks = DRAKE_APPEARANCE.split()
    if set(looks) <= set(row.tags):
        others = [tag for tag in row.tags if tag not in looks]
        return f"{cells(others)}, {DRAKE_LINK}"
    return cells(row.tags)


def meaning_of(row: ElementRow) -> str:
    """Return the meaning of a row for the page; "" for a harmless row that is only listed."""
    is_stated = any(word in row.meaning for word in STATED_WORDS)
    return row.meaning if is_stated or row.treatment is not Treatment.HARMLESS else ""


def without_effect(file_format: str) -> Iterator[str]:
    """Yield a line for each parent with the harmless elements that are only listed."""
    tags: dict[str, list[str]] = {}
    for row in ELEMENT_ROWS:
        is_harmless = row.file_format == file_format and row.treatment is Treatment.HARMLESS
        if is_harmless and not meaning_of(row):
            tags.setdefault(row.parent, []).append(tags_of(row))
    for parent, texts in tags.items():
        place = "" if parent == ANY_PARENT else f" in `{parent}`"
        yield f"- {', '.join(dict.fromkeys(', '.join(texts).split(', ')))}{place}"


def lines() -> Iterator[str]:
    """Yield the lines of the lists; rows that differ only in the parent are combined."""
    for file_format, title in TITLES.items():
        yield f"\n## {title}"
        for treatment, heading in HEADINGS.items():
            parents: dict[tuple[str, str], list[str]] = {}
            for row in ELEMENT_ROWS:
                is_of_list = row.file_format == file_format and row.treatment is treatment
                if is_of_list and meaning_of(row):
                    parents.setdefault((tags_of(row), row.meaning), []).append(row.parent)
            yield f"\n**{heading}**\n"
            for (tags, meaning), names in parents.items():
                place = "" if ANY_PARENT in names else f" in {cells(names)}"
                yield f"- {tags}{place}: {meaning}"
            if treatment is Treatment.HARMLESS:
                yield from without_effect(file_format)


def text() -> str:
    """Return the page."""
    return "\n".join([head(), *lines()]) + "\n"


if __name__ == "__main__":
    ELEMENTS_PAGE.write_text(text(), encoding="utf-8")
