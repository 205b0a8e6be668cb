"""The film of the dual-motor axis: what its pictures show, and that the one on the page is of the shipped plant."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from conftest import ROOT
from tauloop.compiler.c.calling.compiler import find_compiler
from tauloop.drives import load_drive, read_drive
from tauloop_papers.dual_motor.film import (
    LATER_PICTURES,
    STEP_DURATION,
    STEP_PICTURES,
    Story,
    digest,
    picture,
    save_film,
    story,
)
from tauloop_papers.dual_motor.settings import SETTINGS

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")

SHOWN = ROOT / "docs" / "drives" / "dual-motor.gif"
#: Bytes of the film on the page, at most.
SMALL = 400_000
#: Levels of 255 by which pictures of the step differ in the mean on another processor or with other
#: fonts.
LEVELS = 4.0


@pytest.fixture(scope="module")
def film() -> Story:
    return story()


def test_the_film_on_the_page_is_of_the_shipped_plant() -> None:
    line = load_drive(SETTINGS.line)
    with PIL.Image.open(SHOWN) as shown:
        assert shown.info["comment"].decode() == digest(line)
        assert getattr(shown, "n_frames", 1) == STEP_PICTURES + LATER_PICTURES
    assert SHOWN.stat().st_size < SMALL
    text = (SHOWN.parent / "dual-motor-plant.md").read_text(encoding="utf-8")
    assert f"({SHOWN.name})" in text


def test_another_plant_has_another_digest() -> None:
    text = (files("tauloop.drives") / "lines" / f"{SETTINGS.line}.yaml").read_text(encoding="utf-8")
    other = read_drive(text.replace("gap: 0.0005 m", "gap: 0.0004 m"))
    assert digest(other) != digest(read_drive(text))


def test_pictures_show_contacts_and_play(film: Story) -> None:
    """Two motors at rest push against each other; one motor is in its play at some time, and at no flank then."""
    words = [text.get_text() for axes in picture(film, film.times[-1]).axes for text in axes.texts]
    master, slave = (
        next(word for word in words if word.startswith(name)) for name in ("master", "slave")
    )
    assert "pushes the cart: +" in master
    assert "pushes the cart: -" in slave
    alone = film.records["one"]
    late = alone.time > STEP_DURATION
    free = alone.time[late][alone.signal("rack1.force")[late] == 0.0]
    words = [text.get_text() for axes in picture(film, float(free[0])).axes for text in axes.texts]
    assert "motor in the play: 0 N" in words


@pytest.mark.nightly
def test_the_command_draws_the_film_of_the_page(film: Story, tmp_path: Path) -> None:
    """Pictures of the step are the same; a hunting motor slips at other times on another processor."""
    save_film(tmp_path / "film.gif", film)
    with PIL.Image.open(tmp_path / "film.gif") as made, PIL.Image.open(SHOWN) as kept:
        for k in range(0, STEP_PICTURES, 4):
            made.seek(k)
            kept.seek(k)
            pixels = [np.asarray(image.convert("RGB"), dtype=float) for image in (made, kept)]
            assert np.abs(pixels[0] - pixels[1]).mean() < LEVELS
