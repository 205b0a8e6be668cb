"""Pictures of the pages that explain are drawn by one command, and none lies there that it does not draw."""

from __future__ import annotations

from pathlib import Path

import explanation_pictures
import pytest

from conftest import ROOT


def test_every_picture_is_drawn_and_shown() -> None:
    drawn = {f"{name}.png" for name in explanation_pictures.DRAWINGS}
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md"))
    assert {path.name for path in explanation_pictures.PICTURES.glob("*.png")} >= drawn
    assert [name for name in sorted(drawn) if f"pictures/{name}" not in pages] == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", explanation_pictures.DRAWINGS)
def test_the_command_draws(name: str, tmp_path: Path) -> None:
    explanation_pictures.draw([name], tmp_path)
    assert (tmp_path / f"{name}.png").stat().st_size > 20_000
