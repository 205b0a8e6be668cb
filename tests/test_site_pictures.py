"""Every picture of the site is drawn by `make pictures`, and is shown on a page."""

from __future__ import annotations

import shlex
from pathlib import Path

import PIL.Image
import pytest
import site_pictures
from extras import extra
from site_pictures import DOCS, KINDS, pictures

from conftest import ROOT

ENDINGS = (".png", ".gif", ".jpg", ".jpeg", ".svg", ".webp")


def test_every_picture_is_drawn_by_the_command() -> None:
    drawn = [path for kind in KINDS for path in pictures(kind)]
    assert sorted(drawn) == sorted(path for path in DOCS.rglob("*") if path.suffix in ENDINGS)
    for kind in KINDS.values():
        words = [word for command in kind.commands for word in shlex.split(command)]
        assert all(Path(word).is_file() for word in words if word.endswith(".py"))


def test_every_picture_is_shown_and_can_be_opened() -> None:
    pages = (ROOT / "README.md", *DOCS.rglob("*.md"))
    shown = " ".join(page.read_text(encoding="utf-8") for page in pages)
    for path in (path for kind in KINDS for path in pictures(kind)):
        assert f"{path.name})" in shown, path
        with PIL.Image.open(path) as image:
            image.verify()


@pytest.mark.nightly
def test_the_drawing_by_lines_is_drawn_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra("trimesh")
    kind = KINDS["viewing"]
    moved = kind._replace(
        commands=tuple(command.replace(f"{DOCS}", f"{tmp_path}") for command in kind.commands)
    )
    monkeypatch.setitem(site_pictures.KINDS, "viewing", moved)
    site_pictures.draw("viewing")
    with (
        PIL.Image.open(tmp_path / "viewing.png") as made,
        PIL.Image.open(DOCS / "viewing.png") as kept,
    ):
        assert made.size == kept.size
