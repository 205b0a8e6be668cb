"""A hand in a real browser: the gizmo drags the machine through its loops, keys move sliders and not the camera."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from browser import Page, browser, executable
from extras import extra
from viewer_pages import camera, drag, on_screen, opened, pause, press

import tauloop as tl
from tauloop.equations.ports import PLATFORM
from tauloop.viewer import Viewer

extra("viser")
pytestmark = [
    pytest.mark.skipif(
        executable() is None, reason="needs Chromium or Chrome, and none is installed"
    ),
    # software that draws in three dimensions takes all of a core while the page is open
    pytest.mark.nightly,
]
#: Loops that are closed, m.
CLOSED = 1e-9
#: Where an arrow of the gizmo is taken hold of, as a share of its length.
GRIP = 0.9


@pytest.fixture(scope="module")
def viewer() -> Iterator[Viewer]:
    shown = Viewer(tl.Model(tl.load("five_bar")), port=0)
    yield shown
    shown.stop()


@pytest.fixture(scope="module")
def window(viewer: Viewer, tmp_path_factory) -> Iterator[Page]:
    with browser(executable(), tmp_path_factory.mktemp("profile")) as shown:
        opened(viewer, shown)
        pause(shown, 2.0)
        yield shown


@pytest.fixture
def page(viewer: Viewer, window: Page) -> Iterator[Page]:
    viewer.show(viewer.model.assembly.q)
    pause(window)
    yield window
    assert window.errors() == []


def tool(viewer: Viewer) -> np.ndarray:
    return viewer.geometry.tool[0]


def open_by(viewer: Viewer) -> float:
    return float(np.abs(viewer.model.assembly.loops.residuals(viewer.q[None])[0]).max())


def grip(viewer: Viewer, page: Page) -> tuple[float, float]:
    """Pixel of the tip of the arrow along x."""
    return on_screen(
        viewer, page, viewer.gizmo.node.position + GRIP * viewer.gizmo.node.scale * np.eye(3)[0]
    )


def test_a_drag_moves_the_closed_loop_stops_at_the_border_and_comes_back(
    viewer: Viewer, page: Page
) -> None:
    seen = camera(viewer)  # from farther away, so that the border is in the picture
    seen.position = seen.look_at + 1.8 * (seen.position - seen.look_at)
    pause(page, 1.0)
    start, here = tool(viewer), grip(viewer, page)
    drag(page, here, (here[0] + 50, here[1]))
    moved = tool(viewer) - start
    assert moved[0] > 0.02
    assert abs(moved[1]) < 1e-6  # the arrow along x moves along x alone
    assert open_by(viewer) < CLOSED
    here = grip(viewer, page)
    drag(page, here, (here[0] + 250, here[1]))
    border = tool(viewer)
    with pytest.raises(tl.PoseError):
        viewer.model.platform.follow(border[:2] + np.array([0.02, 0.0]), start=viewer.q)
    assert border[0] > start[0] + moved[0]
    assert open_by(viewer) < CLOSED
    assert "out of reach" in viewer.message.content
    assert np.allclose(viewer.gizmo.node.position, border)  # let go, it stands at the tool again
    pause(page, 1.0)
    here = grip(viewer, page)
    drag(page, here, (here[0] - 100, here[1]))
    assert tool(viewer)[0] < border[0] - 0.05
    assert open_by(viewer) < CLOSED
    assert "out of reach" not in viewer.message.content


def test_arrow_keys_on_a_slider_move_the_machine_and_not_the_camera(
    viewer: Viewer, page: Page
) -> None:
    before, seen = tool(viewer), np.array(camera(viewer).position)
    page.run("document.querySelector('[role=slider]').focus()")
    press(page, "ArrowRight", 20)
    pause(page, 1.0)
    assert tool(viewer)[0] - before[0] == pytest.approx(
        20 * viewer.sliders[PLATFORM][0].step, abs=1e-6
    )
    assert np.array(camera(viewer).position) == pytest.approx(seen, abs=1e-9)
    page.run("document.activeElement.blur()")
    press(page, "ArrowRight", 3)
    pause(page, 1.0)
    # with the scene in focus they do turn it
    assert np.abs(np.array(camera(viewer).position) - seen).max() > 1e-3


def test_tab_passes_through_the_panel_and_keys_work_all_its_controls(
    viewer: Viewer, page: Page
) -> None:
    """Sliders with their numbers, in the order of the panel; enter sets a number, the space bar a box.

    Headings of folders take no focus: viser's own page leaves them to the mouse.
    """
    page.run("document.querySelector('[role=slider]').focus()")
    passed: list[str] = []
    while len(passed) < 40 and "BODY" not in passed:
        passed.append(
            page.run(
                "document.activeElement.getAttribute('role') ?? document.activeElement.tagName"
            )
        )
        press(page, "Tab")
    assert passed == ["slider", "INPUT"] * sum(map(len, viewer.sliders.values())) + ["BODY"]
    page.run("document.querySelector('[role=slider]').focus()")
    press(page, "Tab")  # to its number
    page.run("document.activeElement.select()")
    page.ask("Input.insertText", text="0.03")
    press(page, "Enter")
    pause(page, 1.0)
    assert tool(viewer)[0] == pytest.approx(0.03, abs=1e-6)
    assert open_by(viewer) < CLOSED
    page.run(
        "[...document.querySelectorAll('*')].filter(e => e.innerText?.trim() === 'Forces').at(-1).click()"
    )
    pause(page, 1.0)
    page.run(f"document.getElementById({viewer.forces.box._impl.uuid!r}).focus()")
    press(page, " ")
    pause(page, 1.0)
    assert viewer.forces.box.value
    press(page, " ")
    pause(page, 1.0)
    assert not viewer.forces.box.value


@pytest.mark.parametrize("size", [(1300, 800), (800, 600), (390, 780)])
def test_the_panel_never_covers_the_machine(
    viewer: Viewer, page: Page, size: tuple[int, int]
) -> None:
    page.ask(
        "Emulation.setDeviceMetricsOverride",
        width=size[0],
        height=size[1],
        deviceScaleFactor=1,
        mobile=False,
    )
    opened(viewer, page)
    pause(page, 2.0)
    start, eye = viewer.server.initial_camera, camera(viewer)
    way, first = eye.position - eye.look_at, np.array(start.position) - start.look_at
    # the side that shows it
    assert way / np.linalg.norm(way) == pytest.approx(first / np.linalg.norm(first), abs=1e-3)
    geometry = viewer.geometry
    places = np.concatenate([geometry.points(body.name)[0] for body in geometry.shape.bodies])
    across = np.ptp([on_screen(viewer, page, place)[0] for place in places])
    assert across > 0.25 * size[0]
    for place in places:
        x, y = on_screen(viewer, page, place)
        assert 0 <= x <= size[0]
        assert 0 <= y <= size[1]
        assert page.run(
            f"document.elementFromPoint({x}, {y}).closest('canvas, [data-engine]') !== null"
        ), (x, y)
    slider = "document.querySelector('[role=slider]')"
    page.run(f"{slider}.scrollIntoView()")
    left, top = page.run(
        f"(b => [b.left + b.width / 2, b.top + b.height / 2])({slider}.getBoundingClientRect())"
    )
    before = tool(viewer)[0]
    drag(page, (left, top), (left + 20, top))
    assert tool(viewer)[0] > before + 1e-3
    assert open_by(viewer) < CLOSED
