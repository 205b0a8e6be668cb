"""The viewer in use in a real browser: every part is seen, buttons do what they say, a saved file shows, it plays."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from browser import Page, browser, executable
from extras import extra
from machine_texts import shipped_text
from PIL import Image
from viewer_pages import opened, pause

import tauloop as tl
from tauloop.mechanism.solids.solid import ROLE_COLORS
from tauloop.viewer import Layers, Playback, Viewer
from tauloop.viewer.film import FRAME_RATE, MIN_FILM_DURATION
from tauloop.viewer.pictures import PICTURE_WIDTH

extra("viser")
pytestmark = [
    pytest.mark.skipif(
        executable() is None, reason="needs Chromium or Chrome, and none is installed"
    ),
    # software that draws in three dimensions takes all of a core while the page is open
    pytest.mark.nightly,
]
#: A part is seen where so many pixels of 400 by 300 change by so much (of 255) when it is taken
#: away.
SEEN, CHANGED = 8, 12
#: Longest wait for what is asked of a page, s.
LONG = 120.0


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(executable(), tmp_path_factory.mktemp("profile")) as shown:
        shown.ask("Network.enable")
        yield shown


@pytest.fixture
def show(page: Page) -> Iterator[Callable[..., Viewer]]:
    """Opens a viewer in the page; at the end the page has logged no error and asked nobody else."""
    viewers: list[Viewer] = []

    def start(model: tl.Model, **options: object) -> Viewer:
        viewers.append(Viewer(model, port=0, **options))
        opened(viewers[-1], page)
        return viewers[-1]

    yield start
    assert page.errors() == []
    asked = [event["request"]["url"] for event in page.happened("Network.requestWillBeSent")]
    here = f"http://127.0.0.1:{viewers[-1].port}/"
    assert [address for address in asked if not address.startswith(("data:", "blob:", here))] == []
    page.open("about:blank")
    for viewer in viewers:
        viewer.stop()


def until(page: Page, is_so: Callable[[], object], what: str) -> None:
    """Wait, on a busy computer for long."""
    end = time.monotonic() + LONG
    while not is_so():
        assert time.monotonic() < end, f"waited in vain until {what}: {page.text()}"
        pause(page, 0.2)


def click(page: Page, words: str) -> None:
    """Click the button, box or heading with these words."""
    find = f"[...document.querySelectorAll('button, label, div')].filter(e => e.innerText?.trim() === {words!r}).at(-1)"
    until(page, lambda: page.run(f"Boolean({find})"), f"there is {words}")
    page.run(f"{find}.click()")
    pause(page)


@pytest.mark.parametrize("name", ["delta", "five_bar", "hexapod", "gantry_tau_3dof", "cable_robot"])
def test_every_rod_motor_and_platform_is_seen_at_three_poses(page: Page, show, name: str) -> None:
    model = tl.Model(tl.load(name))
    viewer = show(model)
    viewer.server.scene.configure_default_lights(cast_shadow=False)  # a shadow is no part
    viewer.gizmo.node.visible = False
    client = viewer.server.get_clients()[max(viewer.server.get_clients())]
    wanted = {ROLE_COLORS[role][1:] for role in ("rod", "cable", "motor", "platform")}
    nodes = [node for path, node in scene_nodes(viewer) if path.rpartition("/")[2] in wanted]
    assert len(nodes) >= 2
    for q in (model.assembly.q, *model.assembly.states[:2]):
        viewer.show(q)
        whole = client.get_render(300, 400, transport_format="png", timeout=LONG).astype(int)
        for node in nodes:
            node.visible = False
            without = client.get_render(300, 400, transport_format="png", timeout=LONG).astype(int)
            node.visible = True
            assert (np.abs(whole - without).max(axis=2) > CHANGED).sum() >= SEEN, node.name


def scene_nodes(viewer: Viewer) -> list[tuple[str, object]]:
    """Meshes of the machine by their paths."""
    return [(node.name, node) for node in viewer.scene._mesh_nodes.values()]


def loop(model: tl.Model) -> Playback:
    """The tool of a five-bar on a circle of 3 cm, in two seconds."""
    start, time_ = model.platform_position(model.assembly.q), np.linspace(0.0, 2.0, 201)
    places = start + 0.03 * np.stack([np.sin(np.pi * time_), np.cos(np.pi * time_) - 1.0], axis=1)
    rates = (
        np.gradient(places, time_, axis=0),
        np.gradient(np.gradient(places, time_, axis=0), time_, axis=0),
    )
    return Playback(time=time_, q=model.platform.track(places).q, rates=rates)


def test_it_plays_and_plots_follow(page: Page, show) -> None:
    model = tl.Model(tl.load("five_bar"))
    playback = loop(model)
    viewer = show(model, playback=playback, layers=Layers(forces=True, measured=playback))
    threading.Thread(target=viewer.run, daemon=True).start()
    until(
        page,
        lambda: page.run("document.querySelectorAll('.uplot').length") == 3,
        "three plots are drawn",
    )
    box = f"document.getElementById({viewer.clock.play._impl.uuid!r})"
    page.run(f"{box}.click()")
    until(page, lambda: viewer.clock.slider.value > 0.3, "it plays")
    page.run(f"{box}.click()")
    until(page, lambda: not viewer.clock.play.value, "it stands")
    pause(page, 1.0)
    shown = "Object.values(window.__viserTestpoints.uplots).map(p => { const d = p.chart.data, n = d.at(-1);"
    shown += " return d[0][n.indexOf(Math.max(...n))]; })"
    until(
        page,
        lambda: page.run(shown) == pytest.approx([viewer.clock.slider.value] * 3, abs=0.02),
        "cursors are at the time shown",
    )


def test_buttons_save_a_picture_and_films(page: Page, show, tmp_path: Path) -> None:
    """What the browser has downloaded: a picture of the machine, a page that plays, and as many pictures as it says."""
    model = tl.Model(tl.load("five_bar"))
    page.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    show(model, playback=loop(model))
    click(page, "Save")
    saved = {"picture (PNG)": "five_bar.png", "HTML": "five_bar.html", "GIF": "five_bar.gif"}
    for button, name in saved.items():
        click(page, button)
        until(page, (tmp_path / name).exists, f"{name} is saved")
    pixels = matplotlib.image.imread(tmp_path / "five_bar.png")[..., :3]
    assert pixels.shape[1] == PICTURE_WIDTH
    assert (np.ptp(pixels, axis=2) > 0.15).sum() > 1000  # the ground is white and grey
    with Image.open(tmp_path / "five_bar.gif") as film:
        assert film.n_frames == round(MIN_FILM_DURATION * FRAME_RATE)
    # tests/viewer/test_films.py plays it
    assert "five_bar" in (tmp_path / "five_bar.html").read_text(encoding="utf-8")


def test_modes_come_as_buttons_and_a_click_shows_one(page: Page, show) -> None:
    model = tl.Model(tl.load("five_bar"))
    viewer = show(model)
    click(page, "Modes")
    click(page, "assembly modes")
    until(page, lambda: viewer.modes.buttons is not None, "modes are looked for")
    before = viewer.q
    click(page, viewer.modes._labels()[1])
    until(page, lambda: np.abs(viewer.q - before).max() > 0.1, "the other mode is shown")
    assert np.abs(model.assembly.loops.residuals(viewer.q[None])[0]).max() < 1e-9
    assert model.actuator_position(viewer.q[None]) == pytest.approx(
        model.actuator_position(before[None])
    )


def test_a_mistake_in_a_watched_file_is_said_in_the_page(page: Page, show, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    text = shipped_text("five_bar")
    file.write_text(text, encoding="utf-8")
    viewer = show(tl.Model(tl.load(file)))
    viewer.watch([file], lambda: tl.view(tl.load(file)))
    threading.Thread(target=viewer.run, daemon=True).start()
    pause(page, 1.0)
    seen = np.array(viewer.server.get_clients()[max(viewer.server.get_clients())].camera.position)
    line = 1 + text[: text.index("link_length: 0.35 m")].count("\n")
    file.write_text(
        text.replace("link_length: 0.35 m", "link_length: 0.35 mm mm"), encoding="utf-8"
    )
    until(
        page,
        lambda: f"(line {line})" in page.text(),
        "the line of the mistake is shown",
    )
    assert viewer.model.mechanism.parameters["link_length"].value == pytest.approx(0.35)
    file.write_text(text.replace("link_length: 0.35 m", "link_length: 0.37 m"), encoding="utf-8")
    until(
        page,
        lambda: viewer.model.mechanism.parameters["link_length"].value == 0.37,
        "the new machine is shown",
    )
    until(
        page,
        lambda: "file is wrong" not in page.text(),
        "the mistake is gone",
    )
    until(page, lambda: "platform.x" in page.text(), "sliders are there again")
    pause(page, 1.0)
    client = viewer.server.get_clients()[max(viewer.server.get_clients())]
    # seen from the same side; the view fits the longer link
    assert np.array(client.camera.position) == pytest.approx(seen, abs=0.02)
