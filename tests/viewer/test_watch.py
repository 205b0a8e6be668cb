"""The editing loop: a saved file shows at once, a wrong one says where and keeps the last good picture."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from extras import extra

import tauloop as tl
from tauloop.formats import machine_path
from tauloop.viewer import Viewer
from tauloop.viewer.panel.watch import WATCH_INTERVAL


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(machine_path("five_bar").read_text(encoding="utf-8"), encoding="utf-8")
    return path


@pytest.fixture
def viewer(file: Path) -> Iterator[Viewer]:
    extra("viser")
    shown = tl.view(tl.load(file)).viewer(port=0)
    shown.watch([file], lambda: tl.view(tl.load(file)))
    yield shown
    shown.stop()


def save(viewer: Viewer, file: Path, old: str, new: str) -> None:
    """Save a change, and let the viewer look as often as it needs."""
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    for _ in range(3):
        time.sleep(1.1 * WATCH_INTERVAL)
        viewer.advance(WATCH_INTERVAL)


def test_a_save_redraws_where_the_machine_stands_and_a_mistake_keeps_the_picture(
    viewer: Viewer, file: Path
) -> None:
    q = viewer.model.platform.follow([0.03, 0.4]).q
    viewer.show(q)
    before = viewer.geometry.tool[0]
    save(viewer, file, "link_length: 0.35 m", "link_length: 0.36 m")
    assert viewer.model.mechanism.parameters["link_length"].value == pytest.approx(0.36)
    assert viewer.geometry.tool[0] == pytest.approx(before)  # at the position where it stood
    assert np.linalg.norm(np.diff(viewer.geometry.points("link_2")[0], axis=0)) == pytest.approx(
        0.36
    )
    assert not viewer.warning.visible
    good = viewer.model
    save(viewer, file, "link_length: 0.36 m", "link_length: 0.36 mm mm")
    line = 1 + file.read_text(encoding="utf-8")[
        : file.read_text(encoding="utf-8").index("mm mm")
    ].count("\n")
    assert viewer.model is good
    assert viewer.warning.visible
    assert f"(line {line})" in viewer.warning.content
    viewer.show(good.assembly.q)  # it can still be moved
    assert viewer.warning.visible
    save(viewer, file, "0.36 mm mm", "0.37 m")
    assert not viewer.warning.visible
    assert viewer.model.mechanism.parameters["link_length"].value == pytest.approx(0.37)


def test_a_file_that_goes_away_for_a_moment_is_no_end(viewer: Viewer, file: Path) -> None:
    """As editors save that write another file and rename it."""
    text = file.read_text(encoding="utf-8")
    file.unlink()
    for _ in range(3):
        time.sleep(1.1 * WATCH_INTERVAL)
        viewer.advance(WATCH_INTERVAL)
    assert viewer.warning.visible
    file.write_text(text, encoding="utf-8")
    save(viewer, file, "link_length: 0.35 m", "link_length: 0.36 m")
    assert not viewer.warning.visible
