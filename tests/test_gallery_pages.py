"""The gallery's pages say what the machine files say, and every machine has a picture of itself."""

from __future__ import annotations

from pathlib import Path

import gallery_pages
import numpy as np
import PIL.Image
import pytest
from extras import extra

import tauloop as tl
from conftest import ROOT

#: Mean difference of a picture from the one that is kept, of 255: compression to 96 colours leaves
#: about 1.
ALIKE = 3.0
MACHINES = tl.shipped_machines()


def test_the_pages_are_what_the_command_writes() -> None:
    kept = {
        path.name: path.read_text(encoding="utf-8") for path in gallery_pages.GALLERY.glob("*.md")
    }
    assert kept == gallery_pages.texts(), "write them anew: python tools/gallery_pages.py"


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == "delta" else pytest.mark.nightly) for n in MACHINES]
)
def test_the_picture_is_of_the_machine(name: str) -> None:
    extra("trimesh")
    with PIL.Image.open(gallery_pages.GALLERY / f"{name}.png") as kept:
        shown = np.asarray(kept.convert("RGB"), dtype=float)
    drawn = gallery_pages.stage(name).picture(0, gallery_pages.WIDE, gallery_pages.HIGH)
    assert np.abs(shown - drawn).mean() < ALIKE, (
        f"draw it anew: python tools/gallery_pages.py --pictures {name}"
    )
    assert (drawn < 200).any(axis=2).mean() > 0.01  # something is there


def test_a_pixel_shows_what_is_nearest() -> None:
    """The Delta's plate hides nothing of the base above it, and its arms are blue, its motors orange."""
    extra("trimesh")
    drawn = gallery_pages.stage("delta").picture(0, 120, 96).astype(int)
    red, green, blue = drawn[..., 0], drawn[..., 1], drawn[..., 2]
    assert ((blue > red + 60) & (blue > green + 20)).sum() > 50
    assert ((red > blue + 80) & (green > blue + 40)).sum() > 20


def test_the_readme_s_picture_is_small_and_moves() -> None:
    path = ROOT / "docs" / "moving.gif"
    assert path.stat().st_size < 1_000_000
    with PIL.Image.open(path) as film:
        assert getattr(film, "n_frames", 1) == gallery_pages.FRAMES


@pytest.mark.nightly
def test_a_film_is_kept_until_its_machine_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra("viser")
    films, kept = tmp_path / "films", tmp_path / "kept"
    films.mkdir()
    kept.mkdir()
    monkeypatch.setattr(gallery_pages, "FILMS", films)
    monkeypatch.setattr(gallery_pages, "CACHED_FILMS", kept)
    gallery_pages.film("bennett")
    (first,) = kept.iterdir()
    written = first.stat().st_mtime_ns
    gallery_pages.film("bennett")
    assert [path.stat().st_mtime_ns for path in kept.iterdir()] == [written]
    assert (films / "bennett.html").read_bytes() == first.read_bytes()
    assert 500_000 < first.stat().st_size < 2_000_000
