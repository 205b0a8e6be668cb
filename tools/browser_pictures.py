"""``python tools/browser_pictures.py``: take the pictures of the viewer and of reports in a browser.

It needs Chromium or Chrome, and the extras `view` and `report`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import tauloop as tl
from tauloop.viewer import Playback, Viewer

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "support")]
from browser import Page, browser, executable  # noqa: E402
from viewer_pages import mouse, opened, pause  # noqa: E402

OUT = ROOT / "docs" / "browser"
#: Size of the pictures, pixels.
WIDTH, HEIGHT = 1280, 760
#: Time until a page is drawn without a graphics card, s.
DRAWING_TIME = 6.0


def resize(page: Page, width: int = WIDTH, height: int = HEIGHT) -> None:
    """Set the size of the page."""
    page.ask(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=height,
        deviceScaleFactor=1,
        mobile=False,
    )


def save(page: Page, name: str) -> None:
    """Save what the page shows."""
    time.sleep(DRAWING_TIME)
    (OUT / f"{name}.png").write_bytes(page.picture())


def circle(model: tl.Model) -> Playback:
    """Return the tool of a delta on a circle of 15 cm in half a second."""
    time_ = np.linspace(0.0, 0.5, 201)
    angle = 4.0 * np.pi * time_
    places = np.stack([0.15 * np.cos(angle), 0.15 * np.sin(angle), np.full_like(angle, -0.5)], 1)
    rates = np.gradient(places, time_, axis=0)
    q = model.platform.track(places).q
    return Playback(
        time=time_, q=q, source="circle", rates=(rates, np.gradient(rates, time_, axis=0))
    )


def viewer_pictures(page: Page) -> None:
    """Take the pictures of the viewer."""
    delta = tl.Model(tl.load("delta"))
    views = {
        "viewer": tl.view(delta).viewer(port=0),
        "viewer-inside": tl.view(ROOT / "tests/cases/tienkung_ankle.xml").viewer(port=0),
        "viewer-several": tl.view(delta, next_to=("linear_delta", "hexapod")).viewer(port=0),
        "viewer-plots": Viewer(delta, port=0, playback=circle(delta)),
    }
    for name, viewer in views.items():
        resize(page)
        opened(viewer, page)
        assert viewer.display is not None
        if name == "viewer-inside":
            for layer in ("body frames", "joint axes", "mass centers", "inertia ellipsoids"):
                viewer.display.boxes[layer].value = True
        if name == "viewer-plots":
            viewer.clock.slider.value = 0.12
            pause(page, 2.0)
            box = "document.querySelectorAll('.u-over')[1].getBoundingClientRect()"
            left, top = page.run(f"(b => [b.left + 80, b.top + 40])({box})")
            mouse(page, "mouseMoved", (left, top))
        save(page, name)
        page.open("about:blank")
        viewer.stop()


def report_pictures(page: Page, folder: Path) -> None:
    """Take the first screens of a report and of a demo."""
    planned = tl.plan_stroke(
        "delta", shape="spline", via=["x=0.1", "y=0.1,z=-0.4"], end={"x": -0.15}
    )
    pages = {
        "report": tl.write_report(planned, folder / "report.html").path,
        "demo": tl.demo("delta", folder / "demo.html").path,
    }
    for name, path in pages.items():
        resize(page, height=1000)
        page.open(path.as_uri())
        save(page, name)


def main() -> None:
    """Take all pictures."""
    path = executable()
    assert path is not None, "needs Chromium or Chrome, and none is installed"
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser(path, Path(folder)) as page:
        viewer_pictures(page)
        report_pictures(page, Path(folder))


if __name__ == "__main__":
    main()
