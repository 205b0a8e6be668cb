"""Functions of the viewer in a real browser, on a screen and on a telephone: every one is used and seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from browser import Page, browser, executable
from extras import extra
from viewer_labels import boxes, covered_motor_points, overlaps
from viewer_pages import camera, on_screen, opened, pause

import tauloop as tl
from tauloop.equations.ports import ACTUATORS, PLATFORM
from tauloop.viewer import Layers, Playback, Viewer

extra("viser")
pytestmark = [
    pytest.mark.skipif(
        executable() is None, reason="needs Chromium or Chrome, and none is installed"
    ),
    # software that draws in three dimensions takes all of a core while the page is open
    pytest.mark.nightly,
]
#: Sizes of pages: a screen and a telephone, pixels.
SIZES = [(1280, 800), (400, 800)]
#: A layer is seen where this number of pixels of 400 by 300 changes by this amount (of 255).
SEEN, CHANGED = 40, 12
#: Longest wait of a page for a picture, s.
LONG = 120.0


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(executable(), tmp_path_factory.mktemp("profile")) as shown:
        yield shown


@pytest.fixture(params=SIZES, ids=["1280", "400"])
def show(window: Page, request: pytest.FixtureRequest) -> Iterator[Callable[..., Viewer]]:
    """Open a viewer in the page; at the end the page has logged no error."""
    width, height = request.param
    viewers: list[Viewer] = []

    def start(model: tl.Model, **options: object) -> Viewer:
        viewers.append(Viewer(model, port=0, **options))
        window.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        opened(viewers[-1], window)
        pause(window, 3.0)
        return viewers[-1]

    yield start
    assert window.errors() == []
    window.open("about:blank")
    for viewer in viewers:
        viewer.stop()


def model(name: str) -> tl.Model:
    return tl.Model(tl.load(name))


def key(page: Page, letter: str) -> None:
    """Press a key while the scene has the focus."""
    page.run("document.activeElement?.blur()")
    code = {"text": letter, "key": letter, "code": f"Key{letter.upper()}"}
    if letter == " ":
        code = {"text": " ", "key": " ", "code": "Space"}
    page.ask("Input.dispatchKeyEvent", type="keyDown", **code)
    page.ask("Input.dispatchKeyEvent", type="keyUp", **{**code, "text": ""})
    pause(page, 0.8)


def click(page: Page, words: str) -> None:
    """Click the last element with these words."""
    elements = "[...document.querySelectorAll('button, label, div, legend')]"
    find = f"{elements}.filter(e => e.innerText?.trim() === {words!r}).at(-1)"
    page.wait(lambda: page.run(f"Boolean({find})"), f"there is {words}")
    page.run(f"{find}.click()")
    pause(page, 0.8)


def picture(viewer: Viewer) -> np.ndarray:
    clients = viewer.server.get_clients()
    client = clients[max(clients)]
    return client.get_render(300, 400, transport_format="png", timeout=LONG).astype(int)


def test_the_title_is_the_machine_s(show, window: Page) -> None:
    show(model("hexapod"))
    assert window.run("document.title") == "hexapod"
    assert "hexapod" in window.text()


@pytest.mark.parametrize("name", ["delta", "hexapod", "gantry_tau_6link", "cable_robot"])
def test_machine_and_labels_are_in_the_picture_and_labels_are_free(
    show, window: Page, name: str
) -> None:
    viewer = show(model(name))
    seen = camera(viewer)
    labels = viewer.scene.labels
    width, height = labels.camera.size
    assert width / height == pytest.approx(seen.aspect, rel=0.02)
    assert labels.camera.eye == pytest.approx(seen.position, abs=1e-6)
    places = labels.camera.pixels(viewer.scene.points)
    assert (np.abs(places).max(axis=0) <= 0.5 * np.array([width, height])).all()
    assert covered_motor_points(viewer) == 0
    assert overlaps(labels) == 0
    for x, y, half_width, half_height in boxes(labels):
        assert abs(x) + half_width <= 0.5 * width + 2.0
        assert abs(y) + half_height <= 0.5 * height + 2.0
    page_place = on_screen(viewer, window, viewer.geometry.tool[0])
    own_place = labels.camera.pixels(viewer.geometry.tool)[0]
    left, top, across, down = window.run(
        "(b => [b.left, b.top, b.width, b.height])(document.querySelector('canvas').getBoundingClientRect())"
    )
    in_picture = [page_place[0] - left - 0.5 * across, top + 0.5 * down - page_place[1]]
    assert own_place * down / height == pytest.approx(in_picture, abs=1.0)


def test_buttons_and_keys_go_home_to_the_start_and_fit_the_view(show, window: Page) -> None:
    machine = model("delta")
    start = machine.platform.follow([0.1, 0.0, -0.5]).q
    viewer = show(machine, q=start)
    viewer.move(PLATFORM, 1, 0.05)
    click(window, "home pose")
    assert viewer.q == pytest.approx(machine.assembly.q)
    click(window, "start")
    assert viewer.q == pytest.approx(start)
    key(window, "h")
    assert viewer.q == pytest.approx(machine.assembly.q)
    key(window, "r")
    assert viewer.q == pytest.approx(start)
    fitted = np.array(camera(viewer).position)
    camera(viewer).position = 0.5 * (fitted + np.array(camera(viewer).look_at))
    pause(window, 1.5)
    assert np.abs(np.array(camera(viewer).position) - fitted).max() > 0.05
    click(window, "fit view")
    assert np.array(camera(viewer).position) == pytest.approx(fitted, abs=1e-3)
    camera(viewer).position = 1.4 * fitted
    pause(window, 1.0)
    key(window, "f")
    assert np.array(camera(viewer).position) == pytest.approx(fitted, abs=1e-3)


def test_every_layer_is_shown_and_hidden_by_its_box_and_its_key(show, window: Page) -> None:
    viewer = show(model("delta"))
    click(window, "Show")
    keys = {
        "labels": "l",
        "tool axes": "t",
        "body frames": "b",
        "joint axes": "j",
        "mass centers": "m",
        "inertia ellipsoids": "i",
        "floor": "g",
    }
    assert set(keys) == set(viewer.display.boxes)
    viewer.gizmo.node.visible = False
    for name, letter in keys.items():
        box = viewer.display.boxes[name]
        first, before = box.value, picture(viewer)
        window.run(f"document.getElementById({box._impl.uuid!r}).click()")
        pause(window, 0.8)
        assert box.value is not first, name
        after = picture(viewer)
        assert (np.abs(after - before).max(axis=2) > CHANGED).sum() >= SEEN, name
        key(window, letter)
        assert box.value is first, name


def test_help_lists_the_keys(show, window: Page) -> None:
    show(model("five_bar"))
    click(window, "Keys and mouse")
    text = window.text()
    for words in ("home pose", "fit view", "show or hide inertia ellipsoids", "zoom"):
        assert words in text


def test_a_position_has_one_slider(show, window: Page) -> None:
    viewer = show(model("four_bar"))  # its motor is on the platform's coordinate
    assert list(viewer.sliders) == [PLATFORM]
    assert window.run("document.querySelectorAll('[role=slider]').length") == 1
    assert "Actuators" not in window.text()


def test_numbers_of_sliders_are_not_cut(show, window: Page) -> None:
    viewer = show(model("hexapod"))
    cut = """[...document.querySelectorAll('input[inputmode=decimal], .mantine-NumberInput-input')]
        .filter(e => e.offsetWidth > 0 && e.scrollWidth > e.clientWidth).map(e => e.value)"""
    assert window.run(cut) == []
    assert viewer.sliders[ACTUATORS][0].value == pytest.approx(0.4216, abs=1e-4)


def test_plots_have_a_legend_that_shows_the_values_under_the_pointer(show, window: Page) -> None:
    machine = model("five_bar")
    start, time = machine.platform_position(machine.assembly.q), np.linspace(0.0, 2.0, 201)
    places = start + 0.03 * np.stack([np.sin(np.pi * time), np.cos(np.pi * time) - 1.0], axis=1)
    rates = np.gradient(places, time, axis=0)
    playback = Playback(
        time=time,
        q=machine.platform.track(places).q,
        rates=(rates, np.gradient(rates, time, axis=0)),
    )
    viewer = show(machine, playback=playback)
    legend = "[...document.querySelectorAll('.u-legend')].map(e => e.innerText)"
    window.wait(lambda: len(window.run(legend)) == 3, "three plots have a legend")
    shown = """[...document.querySelectorAll('.u-legend')].map(l => [...l.querySelectorAll('.u-series')]
        .filter(e => e.offsetWidth > 0).map(e => e.querySelector('.u-label').innerText))"""
    names = window.run(shown)
    assert names[0] == ["time [s]", "motor_1", "motor_2"]
    assert names[1] == ["time [s]", "motor_1", "motor_2", "limit"]
    window.run("document.querySelector('.u-over').scrollIntoView({block: 'center'})")
    pause(window, 0.5)
    left, top = window.run(
        "(b => [b.left + b.width / 2, b.top + b.height / 2])(document.querySelector('.u-over').getBoundingClientRect())"
    )
    window.ask("Input.dispatchMouseEvent", type="mouseMoved", x=left, y=top)
    pause(window, 0.8)
    values = window.run(
        "[...document.querySelectorAll('.u-legend')[0].querySelectorAll('.u-value')].map(e => Number(e.innerText))"
    )
    moment = values[0]
    assert moment == pytest.approx(1.0, abs=0.1)
    sample = playback.sample(moment)
    motors = np.degrees(machine.actuator_position(playback.q[sample][None])[0])
    assert values[1:3] == pytest.approx(motors, abs=0.5)
    key(window, " ")
    assert viewer.clock.play.value
    key(window, " ")
    assert not viewer.clock.play.value


def test_bodies_of_an_imported_machine_have_their_own_colors(show, tmp_path, request) -> None:
    folder = request.config.rootpath / "tests" / "cases"
    viewer = show(tl.Model(tl.load(folder / "tienkung_ankle.xml")))
    colors = {
        body: color for body, color in viewer.scene._mesh_nodes if body in ("shin", "left_crank")
    }
    assert len(set(colors.values())) == 2
    image = picture(viewer)[..., :3]
    is_colored = np.ptp(image, axis=2) > 40
    hues = {tuple(pixel) for pixel in (image[is_colored] // 48).tolist()}
    assert len(hues) >= 4


def test_machines_are_side_by_side_with_their_own_sliders(show, window: Page) -> None:
    viewer = show(model("delta"), layers=Layers(next_to=(model("hexapod"),)))
    (hexapod,) = viewer.neighbors
    picture_half = 0.5 * np.array(viewer.scene.labels.camera.size)
    for machine, offset in ((viewer.scene, np.zeros(3)), (hexapod._scene, hexapod.offset)):
        places = viewer.scene.labels.camera.pixels(machine.points + offset)
        assert (np.abs(places).max(axis=0) <= picture_half).all()
    assert covered_motor_points(viewer) == 0
    click(window, "2: hexapod")
    slider = hexapod.sliders.sliders[PLATFORM][2]
    window.wait(
        lambda: window.run(f"Boolean(document.getElementById({slider._impl.uuid!r}))"),
        "its sliders are shown",
    )
    before = hexapod.q.copy()
    slider.value = 0.37
    pause(window, 0.5)
    assert hexapod.model.platform_position(hexapod.q[None])[0, 2] == pytest.approx(0.37)
    assert np.abs(hexapod.q - before).max() > 0.01
