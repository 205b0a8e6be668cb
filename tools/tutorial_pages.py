"""``python tools/tutorial_pages.py``: write the tutorials' notebooks; ``--run`` renews outputs and pictures too.

A tutorial is written once, as docs/tutorials/NAME.md: commands in blocks of ``bash``, code in
blocks of ``python``, and after each block that prints something a block of ``text`` with what it
prints. A line ``...`` in it stands for lines that are left out. Jupytext makes the notebook from
the page: blocks become cells, outputs are left out, and a picture that earlier commands have
written is shown by a cell of its own. nbclient runs the notebook in an empty folder; the page must
show what its cells print.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import jupytext
import nbclient
import nbformat
import PIL.Image

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "tutorials"
#: The pages, in the order in which they are read.
TUTORIALS = ("machine", "identify", "calibrate", "move", "controller")
#: A block of code, and its output.
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.M | re.S)
PICTURE = re.compile(r"^!\[[^]]*\]\(([\w-]+\.png)\)(?:\{[^}]*\})?$", re.M)
LINK = re.compile(r"(?<!!)\[([^]]+)\]\((?![a-z]+:)[^)]+\)")
COLOR = re.compile(r"\x1b\[[\d;]*m")
#: Cells are Python; those of commands begin with %%bash.
NOTEBOOK_HEADER = "---\njupyter:\n  kernelspec: {name: python3, display_name: Python 3, language: python}\n---\n\n"


class Block(NamedTuple):
    """A block of code of a page."""

    language: str
    code: str
    prints: str


def page(name: str) -> str:
    """Return the text of a page."""
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def blocks(text: str) -> list[Block]:
    """Return all blocks of code, in their order."""
    return [Block(*block.groups(default="")) for block in BLOCK.finditer(text)]


def pictures(text: str) -> list[str]:
    """Return the files of the pictures that a page shows."""
    return PICTURE.findall(text)


def notebook(name: str) -> nbformat.NotebookNode:
    """Return the notebook of a page, without outputs."""
    text = BLOCK.sub(lambda block: f"```{block[1]}\n{block[2]}```\n", page(name))
    text = PICTURE.sub(
        lambda picture: (
            f'```python\nfrom IPython.display import Image\n\nImage("{picture[1]}")\n```'
        ),
        text,
    )
    made = jupytext.reads(NOTEBOOK_HEADER + LINK.sub(r"\1", text), fmt="md")
    made.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
    }
    for number, cell in enumerate(made.cells):
        cell["id"] = f"{name}-{number}"
        cell.metadata = {}
    nbformat.validate(made)
    return made


def written(name: str) -> str:
    """Return the text of a notebook's file."""
    return nbformat.writes(notebook(name)) + "\n"


def run(name: str, folder: Path) -> list[str]:
    """Return what the blocks of a page print on a terminal of 80 columns; the files that they write are kept."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    made = notebook(name)
    client = nbclient.NotebookClient(
        made, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute(env=os.environ | {"PATH": path, "COLUMNS": "80", "MPLBACKEND": "Agg"})
    ours = {f'Image("{picture}")' for picture in pictures(page(name))}
    cells = [
        cell
        for cell in made.cells
        if cell.cell_type == "code" and cell.source.splitlines()[-1] not in ours
    ]
    return [_printed(cell) for cell in cells]


def _printed(cell: nbformat.NotebookNode) -> str:
    """Return what a cell prints and the value of its last line, without the colors that kernels ask for."""
    texts = [
        part.get("text") or part.get("data", {}).get("text/plain", "") for part in cell.outputs
    ]
    return "".join(f"{line.rstrip()}\n" for line in COLOR.sub("", "".join(texts)).splitlines())


def renew(name: str) -> None:
    """Run a page and renew its outputs and pictures; an output with `...` is kept, and only tested."""
    with tempfile.TemporaryDirectory() as folder:
        prints = iter(run(name, Path(folder)))

        def replaced(block: re.Match[str]) -> str:
            printed, head = next(prints), f"```{block[1]}\n{block[2]}```\n"
            if block[3] and "\n...\n" in f"\n{block[3]}":
                return block[0]
            return head + (f"\n```text\n{printed}```\n" if printed.strip() else "")

        (FOLDER / f"{name}.md").write_text(BLOCK.sub(replaced, page(name)), encoding="utf-8")
        for picture in pictures(page(name)):
            drawn = PIL.Image.open(Path(folder) / picture).convert("RGB")
            drawn.quantize(200).save(FOLDER / picture, optimize=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="*", help="these alone")
    parser.add_argument(
        "--run", action="store_true", help="run the pages and renew their outputs and pictures"
    )
    asked = parser.parse_args()
    for stem in asked.pages or TUTORIALS:
        if asked.run:
            renew(stem)
        (FOLDER / f"{stem}.ipynb").write_text(written(stem), encoding="utf-8")
