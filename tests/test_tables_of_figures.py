"""Every table of figures on a page is compared with what comes out now, or the list says what it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from page_tables import DOCS, PageTable, agree, lacking, numbers, page_tables, same, unit

ROOT = Path(__file__).parents[1]
#: Pages that programs make whole.
MADE = ("api/", "commands/", "gallery/", "tutorials/", "command-line.md")
#: A table with fewer cells of figures holds words.
FEW = 2
PAGES = [path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*.md"))]
TABLES = [
    table
    for page in PAGES
    if not page.startswith(MADE)
    for table in page_tables(page)
    if table.figures >= FEW
]


def entries() -> dict[tuple[str, str], str]:
    """By page and beginning of the heads: what stands behind the colon."""
    lines = (ROOT / "tests" / "tables_of_figures.txt").read_text(encoding="utf-8").splitlines()
    parts = [
        re.fullmatch(r"(\S+) \| (.*?) : (.*)", line)
        for line in lines
        if line and not line.startswith("#")
    ]
    return {(part[1], part[2]): part[3] for part in parts if part is not None}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table.page} {table.head[:30]}")
def test_every_table_of_figures_is_in_the_list_once(table: PageTable) -> None:
    kinds = [
        kind
        for (page, head), kind in entries().items()
        if page == table.page and table.head.startswith(head)
    ]
    assert len(kinds) == 1, (
        f"name it in tests/tables_of_figures.txt: {table.page} | {table.head[:40]}"
    )


def test_the_list_names_tables_tests_and_programs_that_are_there() -> None:
    text = {
        path.name: path.read_text(encoding="utf-8")
        for folder in ("tests", "papers/tests")
        for path in (ROOT / folder).rglob("test_*.py")
    }
    for (page, head), kind in entries().items():
        assert any(table.page == page and table.head.startswith(head) for table in TABLES), (
            page,
            head,
        )
        word, _, names = kind.partition(" by ")
        assert word in ("compared", "bounded", "measured", "words"), kind
        for name in filter(None, names.split(", ")):
            file, _, test = name.partition("::")
            if word == "measured":
                assert (ROOT / file).is_file(), name
            else:
                assert f"def {test or 'test_'}" in text[file], name


def test_numbers_of_pages() -> None:
    assert numbers("20 000 of 3-DOF, −1.5e-3 and (0.5, 72 461)") == [
        "20000",
        "1.5e-3",
        "0.5",
        "72461",
    ]
    assert [unit(number) for number in ("20", "0.50", "1.5e-3", "1300")] == pytest.approx(
        [1.0, 0.01, 1e-4, 100]
    )
    assert same("1.5e-3", 1.54e-3)
    assert not same("1.5e-3", 1.56e-3)
    assert agree("2.7, 1.8 N", "2.72, 1.80; 19.84")
    assert not agree("79.4 µm", "79.6")
    assert agree("3.80 to 0.522 %", "3.82 -> 0.512", 0.05)
    assert not agree("none", "1")
    assert lacking("of 3.80 and 7", "7.04, 3.79, 3.8049") == []
    assert lacking("of 3.80 and 8", "7.04, 3.79, 3.81") == ["3.80", "8"]
