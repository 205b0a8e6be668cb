"""Films of motions: a page that plays by itself in a real browser, a GIF of as many pictures, and what is refused."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from browser import Page, browser, executable
from extras import extra
from PIL import Image

import tauloop as tl
from tauloop.viewer import save_animation

#: A name that would end the script, were it pasted into it.
HOSTILE = "</script><script>document.body.innerHTML = 'gone'</script>"
#: The time that a page shows: where the thumb of viser's slider stands.
SHOWN_TIME = "document.querySelector('[role=slider]')?.ariaValueNow"
#: A pixel is coloured where its parts differ by so much (of 1); so many are a machine.
COLORED, PIXELS = 0.15, 300


@pytest.fixture(scope="module")
def swing() -> tuple[tl.Model, np.ndarray, np.ndarray]:
    """A five-bar on a circle of 2 cm within half a second."""
    model = tl.Model(tl.load("five_bar"))
    start, angle = model.platform_position(model.assembly.q), np.linspace(0, 2 * np.pi, 41)
    circle = start + 0.02 * np.stack([np.sin(angle), np.cos(angle) - 1.0], axis=1)
    return model, model.platform.track(circle).q, 0.5 * angle / angle[-1]


@pytest.mark.skipif(executable() is None, reason="needs Chromium or Chrome, and none is installed")
def test_a_page_plays_in_a_browser_and_asks_for_nothing(swing, tmp_path: Path) -> None:
    extra("viser")
    seen: list[tuple[int, int]] = []
    path = save_animation(
        *swing, tmp_path / "film.html", title=HOSTILE, progress=lambda *at: seen.append(at)
    )
    assert (len(seen), seen[-1][0]) == (101, seen[-1][1])
    with browser(executable(), tmp_path / "profile") as page:
        page.ask("Network.enable")
        page.open(path.as_uri())
        heading = f"{HOSTILE}: 0.5 s, 8 times slower"
        assert page.run("document.querySelector('h1').innerText") == heading
        assert page.run("document.title") == heading
        assert "A recording: drag to rotate it." in page.text()
        page.wait(lambda: float(page.run(SHOWN_TIME) or 0.0) > 0.5, "it plays")
        page.wait(lambda: colored(page) > PIXELS, "the machine is drawn")
        # and no longer pale
        assert page.run("getComputedStyle(document.querySelector('canvas')).opacity") == "1"
        assert (
            page.run("document.querySelector('.mantine-Notification-root')?.offsetParent ?? null")
            is None
        )
        asked = [event["request"]["url"] for event in page.happened("Network.requestWillBeSent")]
        assert [address for address in asked if not address.startswith(("data:", "blob:"))] == [
            path.as_uri()
        ]
        assert page.errors() == []


def colored(page: Page) -> int:
    """Coloured pixels between the heading and the clock."""
    picture = matplotlib.image.imread(io.BytesIO(page.picture()), format="png")[160:-80, :, :3]
    return int((np.ptp(picture, axis=2) > COLORED).sum())


def test_a_gif_has_the_pictures_of_four_seconds(swing, tmp_path: Path) -> None:
    extra("trimesh")
    seen: list[tuple[int, int]] = []
    path = save_animation(
        *swing, tmp_path / "film.gif", title="$x_1", progress=lambda *at: seen.append(at)
    )
    assert len(seen) == 101  # a picture each, after the beginning
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]
    with Image.open(path) as film:
        assert film.n_frames > 30  # those that are alike are one
        assert sum(
            film.seek(k) or film.info["duration"] for k in range(film.n_frames)
        ) == pytest.approx(4000, rel=0.05)


@pytest.mark.parametrize(
    ("name", "time", "words"),
    [
        ("film.avi", None, "unknown file extension"),
        ("film.html", np.zeros(41), "increasing"),
        ("film.html", np.arange(3.0), "41"),
    ],
)
def test_what_cannot_be_a_film_is_refused(
    swing, name: str, time, words: str, tmp_path: Path
) -> None:
    with pytest.raises(tl.InputError, match=words):
        save_animation(swing[0], swing[1], swing[2] if time is None else time, tmp_path / name)


@pytest.mark.nightly
def test_an_mp4_plays_for_four_seconds_and_moves(swing, tmp_path: Path) -> None:
    """Read back by ffmpeg, not by what wrote it: 100 pictures, those of a quarter and of three quarters apart."""
    program = extra("imageio_ffmpeg").get_ffmpeg_exe()
    path = save_animation(*swing, tmp_path / "film.mp4", title="swing")
    words = [program, "-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    read = subprocess.run(words, capture_output=True, check=True)
    assert b"Duration: 00:00:04.00" in read.stderr
    pictures = np.frombuffer(read.stdout, dtype=np.uint8).reshape(100, 432, 448, 3) / 255.0
    colored = [int((np.ptp(picture, axis=2) > COLORED).sum()) for picture in pictures]
    assert min(colored) > PIXELS
    moved = np.abs(pictures[25] - pictures[75]).max(axis=2) > COLORED
    still = np.abs(pictures[0] - pictures[-1]).max(axis=2) > COLORED
    assert moved.sum() > 3 * still.sum() + PIXELS  # a circle ends where it began


def test_an_mp4_without_ffmpeg_is_refused_with_another_way(
    swing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_: None)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(tl.InputError, match=r"ffmpeg.*\n.*tauloop\[film\]"):
        save_animation(*swing, tmp_path / "film.mp4")


def test_a_pose_is_no_film(tmp_path: Path) -> None:
    with pytest.raises(tl.InputError, match="an animation needs a motion"):
        tl.view(tl.load("five_bar")).save_animation(tmp_path / "film.html")
