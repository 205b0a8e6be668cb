"""A viewer and its page in a browser: where points of the scene are on the screen, drags, and keys."""

from __future__ import annotations

import io
import time
from typing import Any

import matplotlib.image
import numpy as np
from browser import Page
from scipy.spatial.transform import Rotation

from tauloop.viewer import Viewer


def opened(viewer: Viewer, page: Page) -> None:
    """Open a viewer's page, until its panel is there and its camera has been told to Python."""
    page.open(viewer.url)
    page.wait(
        lambda: page.run("document.querySelector('canvas') && document.body.innerText.length > 20"),
        "a panel",
    )
    page.wait(lambda: camera(viewer) is not None, "the camera is known")
    page.run(
        "document.querySelectorAll('.mantine-Notification-closeButton').forEach(button => button.click())"
    )


def camera(viewer: Viewer) -> Any:
    """The camera of the page that was opened last; None before it has been told."""
    clients = viewer.server.get_clients()
    if not clients:
        return None
    seen = clients[max(clients)].camera
    return seen if seen._state.update_timestamp else None


def on_screen(viewer: Viewer, page: Page, point: np.ndarray) -> tuple[float, float]:
    """Pixel of a point (3,) of the scene: a pinhole camera that looks along z, x to the right and y down."""
    seen, box = (
        camera(viewer),
        page.run(
            "(b => [b.left, b.top, b.width, b.height])(document.querySelector('canvas').getBoundingClientRect())"
        ),
    )
    x, y, z = (
        Rotation.from_quat(seen.wxyz, scalar_first=True)
        .inv()
        .apply(np.asarray(point) - seen.position)
    )
    scale = 0.5 * box[3] / np.tan(0.5 * seen.fov)
    return box[0] + 0.5 * box[2] + scale * x / z, box[1] + 0.5 * box[3] + scale * y / z


def drag(page: Page, start: tuple[float, float], end: tuple[float, float], steps: int = 12) -> None:
    """Press at a pixel, move to another, and let go."""
    mouse(page, "mouseMoved", start)
    pause(page)
    mouse(page, "mouseMoved", (start[0] + 1, start[1]))
    pause(page)
    mouse(page, "mousePressed", start)
    for k in range(1, steps + 1):
        mouse(
            page,
            "mouseMoved",
            (
                start[0] + (end[0] - start[0]) * k / steps,
                start[1] + (end[1] - start[1]) * k / steps,
            ),
        )
        pause(page, 0.1)
    pause(page)
    mouse(page, "mouseReleased", end)
    pause(page)


def mouse(page: Page, kind: str, at: tuple[float, float]) -> None:
    """One event of the mouse."""
    is_held = 0 if kind == "mouseReleased" else 1
    page.ask(
        "Input.dispatchMouseEvent",
        type=kind,
        x=at[0],
        y=at[1],
        button="left",
        buttons=is_held,
        clickCount=1,
    )


def press(page: Page, key: str, times: int = 1) -> None:
    """Press a key, such as ArrowRight, several times."""
    codes = {
        "ArrowLeft": 37,
        "ArrowUp": 38,
        "ArrowRight": 39,
        "ArrowDown": 40,
        "Tab": 9,
        " ": 32,
        "Enter": 13,
    }
    for _ in range(times):
        for kind in ("rawKeyDown", "keyUp"):
            page.ask(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=codes[key],
            )
            pause(page, 0.05)


def pause(page: Page, seconds: float = 0.4) -> None:
    """Let the page and the server work."""
    page.run("0")
    time.sleep(seconds)


def pixels(page: Page) -> np.ndarray:
    """What the page shows (height, width, 3), 0 to 1."""
    return np.asarray(matplotlib.image.imread(io.BytesIO(page.picture()), format="png")[..., :3])
