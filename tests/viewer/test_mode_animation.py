"""Modes in motion: bodies move as rigid bodies, rods bend, and pages and films show it."""

from __future__ import annotations

import base64
import io
import json
import shutil
import subprocess
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from browser import browser, executable
from extras import extra

import tauloop as tl
from tauloop.elasticity.vibrations.mode_shapes import ModeShapes
from tauloop.formats import machine_path
from tauloop.viewer import Viewer
from tauloop.viewer.mode_animation import AMPLITUDE, FULL_SCALE, mode_mesh, save_modes

extra("trimesh")
EXAMPLES = Path(__file__).parents[2] / "examples" / "elastic"
#: Rounding of sums of shapes.
ROUNDING = 1e-9
#: A cubic between 24 nodes, read on straight lines, differs from a sine by (π / 24)² / 8.
STRAIGHT_PIECES = 3e-3


@pytest.fixture(scope="module")
def gantry() -> tl.Vibration:
    return tl.vibration(EXAMPLES / "gantry_tau.yaml", count=12)


def ends_of(result: tl.Vibration, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return both ends of a rod at the first pose."""
    elements = {item.name: item for item in result.modal.assembled.structure.elements}
    start, end = (item.point.reshape(-1, 3)[0] for item in elements[name].attachments[:2])
    return start, end


def test_points_of_a_body_move_by_its_twist(gantry: tl.Vibration) -> None:
    shapes = ModeShapes(gantry.modal)
    twist = gantry.body_shapes[0, :, gantry.bodies.index("plate")]
    origin = gantry.modal.assembled.origin("plate").reshape(-1, 3)[0]
    arm = np.array([0.3, -0.2, 0.1])
    moved = shapes.displacement("plate", (origin + arm)[None])[0]
    assert moved.T == pytest.approx(twist[:, :3] + np.cross(twist[:, 3:], arm), rel=ROUNDING)
    assert not shapes.displacement("base", np.ones((3, 3))).any()


def test_rods_end_at_their_bodies_and_bend_between_them(gantry: tl.Vibration) -> None:
    shapes = ModeShapes(gantry.modal)
    start, end = ends_of(gantry, "pair1.link")
    at_rod = shapes.displacement("pair1.link", np.stack([start, end]))
    at_cart = shapes.displacement("track2.cart", start[None])
    at_plate = shapes.displacement("plate", end[None])
    assert at_rod == pytest.approx(np.concatenate([at_cart, at_plate]), rel=1e-6, abs=1e-9)
    # Between its ends, it is a line and a sine: sin(π/4) / sin(π/2) of the part that bends.
    share = np.array([0.25, 0.5])[:, None, None]
    line = (1.0 - share) * at_cart + share * at_plate
    middle = shapes.displacement("pair1.link", start + share[:, :, 0] * (end - start)) - line
    mode = int(np.argmax(np.linalg.norm(middle[1], axis=0)))
    ratio = np.linalg.norm(middle[0, :, mode]) / np.linalg.norm(middle[1, :, mode])
    assert ratio == pytest.approx(np.sqrt(0.5), rel=STRAIGHT_PIECES)
    assert np.abs(middle[:, :, mode] @ (end - start)).max() < 1e-2 * np.abs(middle).max()


def test_the_parts_of_a_telescopic_rod_move_with_their_ends() -> None:
    text = machine_path("hexapod").read_text(encoding="utf-8")
    elastic = text.replace("motor: {on: strut", "motor: {stiffness: 10 N/um, on: strut")
    result = tl.vibration(tl.loads(elastic), count=6)
    shapes = ModeShapes(result.modal)
    rod = result.model.mechanism.rods[0].name
    start, end = ends_of(result, rod)
    platform = result.model.mechanism.platform.body
    at_end = shapes.displacement(f"{rod}.upper", end[None])
    assert at_end == pytest.approx(shapes.displacement(platform, end[None]), rel=1e-6, abs=1e-9)
    assert not shapes.displacement(f"{rod}.lower", start[None]).any()


def decoded(path: Path) -> dict[str, object]:
    text = path.read_text(encoding="utf-8")
    start = text.index('type="application/json">') + len('type="application/json">')
    result: dict[str, object] = json.loads(text[start : text.index("</script>", start)])
    return result


def test_a_page_has_all_modes_and_nothing_from_outside(
    gantry: tl.Vibration, tmp_path: Path
) -> None:
    path = save_modes(gantry, tmp_path / "modes.html", mode=2)
    text = path.read_text(encoding="utf-8")
    assert "http" not in text.replace("http-equiv", "")
    data = decoded(path)
    titles = data["titles"]
    assert isinstance(titles, list)
    assert titles[0] == f"mode 1: {gantry.frequency[0, 0]:.4g} Hz"
    assert len(titles) == 12
    assert data["mode"] == 1
    mesh = mode_mesh(gantry)
    rows = data["real"]
    assert isinstance(rows, list)
    moved = np.frombuffer(base64.b64decode(rows[1]), "<i2").reshape(-1, 3)
    assert moved / FULL_SCALE == pytest.approx(mesh.displacement[:, :, 1], abs=1.0 / FULL_SCALE)
    assert np.linalg.norm(mesh.displacement, axis=1).max(axis=0) == pytest.approx(np.ones(12))
    assert data["scale"] == pytest.approx(AMPLITUDE * mesh.size / FULL_SCALE)
    assert data["imaginary"] == []


STUB = """
const fs = require("fs");
const text = fs.readFileSync(process.argv[2], "utf8");
const data = text.split('type="application/json">')[1].split("</script>")[0];
const script = text.split("<script>")[1].split("</script>")[0];
let points = [];
const noop = () => {};
const context = { clearRect: () => { points = []; }, beginPath: noop, closePath: noop, fill: noop,
  stroke: noop, moveTo: (x, y) => points.push([x, y]), lineTo: (x, y) => points.push([x, y]) };
const elements = {
  data: { textContent: data },
  scene: { clientWidth: 600, clientHeight: 400, width: 0, height: 0,
    getContext: () => context, addEventListener: noop },
  mode: { append: noop, value: 0 }, amplitude: { value: "1" }, speed: { value: "1" },
};
global.document = { getElementById: (id) => elements[id], createElement: () => ({}) };
global.window = { devicePixelRatio: 1 };
global.atob = (text) => Buffer.from(text, "base64").toString("latin1");
let next;
global.requestAnimationFrame = (called) => { next = called; };
(0, eval)("(function(){" + script + "})()");
const frames = [];
for (const time of [0, 100, 200]) { next(time); frames.push(points); }
elements.amplitude.value = "0";
next(300);
frames.push(points);
console.log(JSON.stringify(frames));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is absent")
def test_the_script_of_a_page_draws_the_machine_in_motion(tmp_path: Path) -> None:
    result = tl.vibration(EXAMPLES / "four_bar.yaml", count=2)
    page, stub = save_modes(result, tmp_path / "modes.html"), tmp_path / "stub.js"
    stub.write_text(STUB, encoding="utf-8")
    words = ["node", str(stub), str(page)]
    output = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    first, second, _, at_rest = (np.array(points) for points in json.loads(output))
    size = np.ptp(at_rest, axis=0)
    assert 0.3 * 400 < size.max() < 600
    assert np.ptp(first, axis=0) != pytest.approx(np.ptp(second, axis=0), rel=1e-3)
    inside = (at_rest >= 0.0) & (at_rest <= [600, 400])
    assert inside.all()


@pytest.mark.skipif(executable() is None, reason="needs Chromium or Chrome, and none is installed")
def test_a_page_moves_in_a_browser(tmp_path: Path) -> None:
    result = tl.vibration(EXAMPLES / "four_bar.yaml", count=2)
    path = save_modes(result, tmp_path / "modes.html")

    def colored() -> int:
        picture = matplotlib.image.imread(io.BytesIO(page.picture()), format="png")[80:, :, :3]
        return int((np.ptp(picture, axis=2) > 0.15).sum())

    with browser(executable(), tmp_path / "profile") as page:
        page.open(path.as_uri())
        page.wait(lambda: colored() > 300, "the machine is drawn")
        first = page.picture()
        page.wait(lambda: page.picture() != first, "it moves")
        assert page.run("document.querySelectorAll('option').length") == 2
        assert page.errors() == []


def test_position_loops_have_waves_in_a_page(tmp_path: Path) -> None:
    text = (EXAMPLES / "gantry_tau.yaml").read_text(encoding="utf-8")
    driven = text.replace("force: 2500 N,", "force: 2500 N, inertia: 30 kg,")
    result = tl.vibration(
        tl.loads(driven), motor_state="servo", bandwidth="20 Hz", count=4, damping=0.02
    )
    data = decoded(save_modes(result, tmp_path / "modes.html"))
    imaginary = data["imaginary"]
    assert isinstance(imaginary, list)
    assert len(imaginary) == 4
    titles = data["titles"]
    assert isinstance(titles, list)
    assert "damping ratio" in titles[0]


def test_a_film_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tauloop.viewer.mode_animation.PERIOD_FRAMES", 4)
    from PIL import Image

    result = tl.vibration(EXAMPLES / "four_bar.yaml", count=2)
    path = save_modes(result, tmp_path / "modes.gif", mode=2)
    with Image.open(path) as film:
        assert film.n_frames == 4
        film.seek(0)
        first = np.asarray(film.convert("L"), dtype=float)
        film.seek(2)
        opposite = np.asarray(film.convert("L"), dtype=float)
    assert np.abs(first - opposite).max() > 50.0
    with pytest.raises(tl.InputError, match="give 1 to 2"):
        save_modes(result, tmp_path / "modes.gif", mode=3)
    with pytest.raises(tl.InputError, match="unknown file extension"):
        save_modes(result, tmp_path / "modes.avi")


def test_the_viewer_moves_in_the_chosen_mode() -> None:
    extra("viser")
    model = tl.Model(tl.load(EXAMPLES / "four_bar.yaml"))
    viewer = Viewer(model, port=0)
    try:
        panel = viewer.vibration
        assert panel is not None
        panel.calculate()
        assert panel.mode == 0
        assert panel.choice.options[1].startswith("mode 1: 19.31 Hz")
        panel.choice.value = panel.choice.options[2]
        panel.show(panel.choice.value)
        viewer.advance(0.25 / 0.7)  # a quarter of a period: the machine is at its mean
        mesh = panel.mesh
        assert mesh is not None
        at_mean = [node.vertices.copy() for node, _ in panel.nodes]
        viewer.advance(0.25 / 0.7)
        for (node, chosen), mean in zip(panel.nodes, at_mean, strict=True):
            assert mean == pytest.approx(mesh.vertices[chosen], abs=1e-6)
            expected = (
                mesh.vertices[chosen] - AMPLITUDE * mesh.size * mesh.displacement[chosen, :, 1]
            )
            assert node.vertices == pytest.approx(expected.real, abs=1e-6)
        viewer.show(model.assembly.q)
        assert panel.mode is None
        assert not panel.nodes
    finally:
        viewer.stop()
    rigid = Viewer(tl.Model(tl.load("five_bar")), port=0)
    try:
        assert rigid.vibration is None
    finally:
        rigid.stop()
