"""Code on pages runs, page by page as a reader meets it, and prints what the page shows (`support/page_code.py`)."""

from __future__ import annotations

from pathlib import Path

import page_code
import pytest
from page_code import PAGES, Reader, blocks, is_output, literals, name_of, reader_s_folder

from conftest import ROOT

__all__ = ["reader_s_folder"]

BLOCKS = {
    name_of(page): tuple(blocks(page.read_text(encoding="utf-8"), name_of(page))) for page in PAGES
}
#: Tutorials are run as pages and as notebooks by `test_tutorials.py`.
WITH_CODE = [
    page
    for page in PAGES
    if page.parent.name != "tutorials" and any(block.is_code for block in BLOCKS[name_of(page)])
]
WITH_SLOW_CODE = [
    page for page in WITH_CODE if any(block.mark == "nightly" for block in BLOCKS[name_of(page)])
]
#: Blocks that no test of this file can run: the reason that the page gives, and the pages.
NOT_RUN = {
    "installs packages": ("README.md", "docs/dependencies.md", "docs/gpu.md", "docs/index.md"),
    "needs a GPU": ("docs/gpu.md",),
    # tests/export and tests of the other packages run this code with PyTorch and, by night, LinuxCNC
    "needs PyTorch": ("docs/how-to/pytorch.md",),
    "needs LinuxCNC": ("docs/linuxcnc.md",),
    "needs a cluster": ("docs/outgrowing-one-core.md",),
    # the nightly tests of the papers compare the results of `tauloop paper reproduce`
    "minutes": (
        "docs/identification/excitation.md",
        "docs/reproductions.md",
        "docs/speed.md",
        *(
            f"docs/reproductions/{name}.md"
            for name in ("calibration", "nuwar", "rcid", "spidermill", "two-runs")
        ),
    ),
    "your data": (
        "docs/calibration.md",
        "docs/estimators.md",
        "docs/exporting.md",
        "docs/identification/drive-stiffness.md",
        "docs/identification/link-parameters.md",
        "docs/many-logs.md",
        "docs/measured/calibration.md",
        "docs/tracking.md",
    ),
}


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_the_code_of_a_page_runs(page: Path, reader_s_folder: Path) -> None:
    Reader(page).read()


@pytest.mark.nightly
@pytest.mark.parametrize("page", WITH_SLOW_CODE, ids=name_of)
def test_slow_code_of_a_page_runs(page: Path, reader_s_folder: Path) -> None:
    Reader(page, nightly=True).read()


def test_blocks_that_are_not_run_are_few_and_say_why() -> None:
    left_out = [
        (block.reason, block.page)
        for page in BLOCKS.values()
        for block in page
        if block.mark == "not run"
    ]
    assert set(left_out) == {(reason, page) for reason, pages in NOT_RUN.items() for page in pages}
    assert len(left_out) <= 30
    assert all(block.reason for page in BLOCKS.values() for block in page if block.mark)


def test_the_example_of_the_readme_is_short() -> None:
    (example,) = [block for block in BLOCKS["README.md"] if block.language == "python"]
    assert len(example.body.splitlines()) <= 22


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "how-to").glob("*.md")), ids=name_of)
def test_a_recipe_is_short_and_says_where_it_fails(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 40
    assert page.name == "index.md" or ("**Check**" in text and "**Where it fails:**" in text)


def test_every_block_is_of_a_language_that_is_known() -> None:
    """A command in a block of text, or code in a block without a language, would never run."""
    known = {
        "python",
        "console",
        "bash",
        "text",
        "yaml",
        "toml",
        "json",
        "c",
        "xml",
        "matlab",
        "modelica",
        "csv",
    }
    assert [b.place for page in BLOCKS.values() for b in page if b.language not in known] == []
    texts = (b for page in BLOCKS.values() for b in page if b.language == "text")
    assert [
        b.place
        for b in texts
        if any(line.startswith(("$ ", "tauloop ")) for line in b.body.splitlines())
    ] == []


PAGE = """
```yaml title="data/a.yaml"
a: 2
```
```console
$ cat data/a.yaml
a: 2
$ grep b data/a.yaml   # no such line: exit code 1
```
<!-- not run: it would end badly -->
```python
raise SystemExit
```
```python
a = 1 + 1
a, 0.5  # (2, 0.5)
print("speed", a / 3, "m/s")
```
prints
```text
speed 0.66666666666666668 m/s
```
"""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("", ""),
        ("# (2, 0.5)", "# (3, 0.5)"),
        ("668 m/s", "668 mm/s"),
        ("0.6666", "0.6676"),
        ("a: 2\n$", "a: 3\n$"),
        ("exit code 1", ""),
    ],
)
def test_a_page_is_read_as_its_reader_would(right: str, wrong: str, reader_s_folder: Path) -> None:
    page = page_code.Reader(ROOT / "page.md")
    page.blocks = list(blocks(PAGE.replace(right, wrong)))
    if right == wrong:
        page.read()
        return
    with pytest.raises(AssertionError, match="page:"):
        page.read()


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a  1.25 m", "a 1.26 m\n", True),
        ("a 1.25 m", "a 1.28 m", False),
        ("3 freedoms", "4 freedoms", False),
        ("residual 2.3e-15 m", "residual 8.1e-16 m", True),
        ("first\n...\nlast", "first\nmiddle\nlast", True),
        ("first\n...", "first\nmiddle\nlast", True),
        ("...\nlast", "first\nlast\nlast", True),
        ("first\n...\nlast", "first\nlast\nmore", False),
        ("", "more", False),
    ],
)
def test_outputs_are_compared_up_to_roundings(shown: str, printed: str, same: bool) -> None:
    assert is_output(shown, printed) is same


def test_comments_that_are_values_are_read() -> None:
    assert literals("x = 1  # (3,)\nx  # 2\nx, 1  # N m\n") == {2: ("x", 2)}
