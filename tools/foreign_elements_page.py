"""``python tools/foreign_elements_page.py``: write docs/foreign-elements.md from the table of elements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tauloop.formats.xml.foreign_elements import (
    ANY_PARENT,
    ELEMENT_ROWS,
    PLUGIN_FORCE_WORDS,
    PLUGIN_TIE_WORDS,
    TIE_WORDS,
    Treatment,
)

PAGE = Path(__file__).parents[1] / "docs" / "foreign-elements.md"
TITLES = {"urdf": "URDF", "sdf": "SDF", "mjcf": "MJCF"}
HEADINGS = {
    Treatment.READ: "Read",
    Treatment.HARMLESS: "Harmless: counted in the notes, without effect on the motion",
    Treatment.REFUSED: "Refused by name",
}
HEAD = f"""# Elements of URDF, SDF and MJCF

Written by `tools/foreign_elements_page.py` from the table of
`tauloop.formats.xml.foreign_elements`, which the readers use.

Every element of a file that Tauloop imports is in one of three lists: it is read, it is harmless, or it is refused by
name, for the machine would be another one without it. An element that is in none of the lists is a problem that
`tauloop check` reports (exit code 1). It is refused where its name contains a word for a tie: {", ".join(TIE_WORDS)}.

A plugin is refused where its name or its library contains {", ".join(PLUGIN_TIE_WORDS)}. Where it contains
{", ".join(PLUGIN_FORCE_WORDS)}, its forces are [left out](importing.md#forces-that-are-left-out).
"""


def cells(names: tuple[str, ...]) -> str:
    """Return tags as code."""
    return ", ".join(f"`{name}`" for name in names)


def lines() -> Iterator[str]:
    """Yield the lines of the tables."""
    for file_format, title in TITLES.items():
        yield f"\n## {title}"
        for treatment, heading in HEADINGS.items():
            rows = [
                row
                for row in ELEMENT_ROWS
                if row.file_format == file_format and row.treatment is treatment
            ]
            yield f"\n**{heading}**\n"
            yield "| elements | in | meaning |"
            yield "| --- | --- | --- |"
            for row in rows:
                parent = "any" if row.parent == ANY_PARENT else f"`{row.parent}`"
                yield f"| {cells(row.tags)} | {parent} | {row.meaning} |"


def text() -> str:
    """Return the page."""
    return "\n".join([HEAD.rstrip("\n"), *lines()]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
