"""The tutorials: their pages are what the code on them prints, their notebooks are made from the pages and run."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from extras import extra
from page_code import is_output
from tutorial_pages import FOLDER, TUTORIALS, blocks, notebook, page, pictures, run, written
from walk import disagreeing, readme_commands, tutorial_commands

from conftest import ROOT

#: The page that is run by day; the others take longer.
QUICK = "controller"
#: What a page needs beside the core.
NEEDS = {
    "machine": ("mujoco", "pinocchio"),
    "identify": ("plotly", "viser"),
    "move": ("plotly", "viser"),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == QUICK else pytest.mark.nightly, id=name)
        for name in TUTORIALS
    ],
)
def test_a_page_prints_what_it_says_and_its_notebook_runs(name: str, tmp_path: Path) -> None:
    """In an empty folder, from the first block to the last; the pictures that the page shows are written on the way."""
    for module in NEEDS.get(name, ()):
        extra(module)
    if name == "controller" and not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    text = page(name)
    wanted, prints = blocks(text), run(name, tmp_path)
    assert len(prints) == len(wanted)
    for block, printed in zip(wanted, prints, strict=True):
        assert is_output(block.prints, printed), f"{block.code}\n{printed}"
    for picture in pictures(text):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_notebook_is_that_of_its_page(name: str) -> None:
    """`python tools/tutorial_pages.py` writes it; it has no outputs, and its blocks in their order."""
    assert (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8") == written(name)
    cells = [cell for cell in notebook(name).cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in cells)
    codes = [
        cell.source.removeprefix("%%bash\n").strip()
        for cell in cells
        if "IPython.display" not in cell.source
    ]
    assert codes == [block.code.strip() for block in blocks(page(name))]
    assert f"({name}.ipynb)" in page(name)


@pytest.mark.parametrize("name", TUTORIALS)
def test_pictures_of_a_page_are_there_and_made_by_its_own_code(name: str) -> None:
    code = "".join(block.code for block in blocks(page(name)))
    for picture in pictures(page(name)):
        assert (FOLDER / picture).is_file()
        assert picture in code
    assert len(re.findall(r"!\[", page(name))) == len(pictures(page(name)))


@pytest.mark.parametrize("name", TUTORIALS)
def test_lines_fit_a_terminal(name: str) -> None:
    for block in blocks(page(name)):
        lines = (block.prints + block.code * (block.language == "bash")).splitlines()
        assert [line for line in lines if len(line) > 80] == []


def test_tutorials_stand_right_behind_the_first_page() -> None:
    order = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert order[: 1 + len(TUTORIALS)] == [
        "index.md",
        *(f"tutorials/{name}.md" for name in TUTORIALS),
    ]
    assert {path.stem for path in FOLDER.glob("*.md")} == set(TUTORIALS)


def test_the_walk_takes_its_commands_from_the_readme_and_the_first_tutorial() -> None:
    """`make walk` runs them in an empty environment."""
    readme = readme_commands((ROOT / "README.md").read_text(encoding="utf-8"))
    assert [command for command in readme if command.startswith("pip install")] == [
        "pip install '.[all]'"
    ]
    assert readme[-1] == "tauloop check my_robot.yaml"
    tutorial = tutorial_commands(page("machine"))
    assert tutorial[0].startswith("tauloop new picker")
    assert tutorial[-1] == "tauloop verify picker.yaml"
    rows = "m over 9 random states\ninverse dynamics  MuJoCo  trees  1e-15  agrees\n"
    assert disagreeing(rows) == []
    assert len(disagreeing(rows.replace("agrees", "DISAGREES at state 1, q"))) == 1
    assert disagreeing("") == ["nothing is compared"]
