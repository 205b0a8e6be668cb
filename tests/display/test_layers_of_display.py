"""Tables and plots are data: what builds them knows no library that prints or draws."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import tauloop.report as old
from rich.table import Table as RichTable

import tauloop
from tauloop import display

FOLDER = Path(tauloop.__path__[0]) / "display"
DATA = sorted(path for name in ("tables", "plots") for path in (FOLDER / name).rglob("*.py"))
RENDERING = ("rich", "matplotlib", "plotly", "tauloop.display.renderers", "tauloop.viewer")


def imported(path: Path) -> set[str]:
    """Modules that a file imports, in functions and for types too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module))
    return names


def test_what_builds_tables_and_plots_renders_nothing() -> None:
    assert len(DATA) > 40
    wrong = {
        path.name: sorted(name for name in imported(path) if name.startswith(RENDERING))
        for path in DATA
    }
    assert {name: modules for name, modules in wrong.items() if modules} == {}


def test_a_folder_has_about_a_dozen_modules() -> None:
    folders = {path.parent for path in FOLDER.rglob("*.py")}
    assert max(len([*folder.glob("*.py")]) for folder in folders) <= 13


@pytest.mark.parametrize(("name", "new"), [("Words", "Paragraph"), ("Rows", "Table")])
def test_old_names_of_pieces_work_with_a_warning(name: str, new: str) -> None:
    for package in (display, old):
        with pytest.warns(DeprecationWarning, match=f"use tauloop.display.{new}"):
            assert getattr(package, name) is getattr(display, new)


class OldPart(display.ReportPart):
    """A part as packages could bring it before version 0.2."""

    name, takes = "old", "Inspection"

    def tables(self, _: object) -> tuple[RichTable, str]:
        return RichTable("a"), "text"


def test_a_table_of_rich_in_a_part_is_left_out_of_pages_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match=r"use tauloop\.display\.Table"):
        pieces = [*OldPart().pieces(None)]
    assert pieces == [display.Paragraph(text="text")]
