"""``python tools/rerun_picture.py``: show a stroke of the delta in Rerun's web viewer, and keep a picture of it.

It needs the extra `rerun` and Chromium. The viewer listens on this computer and ends with the script.
"""

from __future__ import annotations

import base64
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import PIL.Image
from browser import browser, executable

import tauloop as tl

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "rerun.png"
WEB_PORT, DATA_PORT = 19090, 19876
#: Times for the viewer to start and to draw by software, s.
START_TIME, DRAWING_TIME = 5.0, 25.0
#: Window, and the height of its part that the picture shows, pixels.
WIDE, HIGH, SHOWN = 1280, 760, 600


def show(recording: Path) -> bytes:
    """Return a picture (PNG) of the web viewer with a recording."""
    ports = ["--web-viewer-port", str(WEB_PORT), "--port", str(DATA_PORT)]
    command = [str(Path(sys.executable).parent / "rerun"), str(recording), "--serve-web", *ports]
    # `rerun` starts another program, which a signal to it alone would leave on its port
    server = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        time.sleep(START_TIME)
        program = executable()
        if program is None:
            sys.exit("needs Chromium")
        with browser(program, recording.parent) as page:
            size = {"width": WIDE, "height": HIGH, "deviceScaleFactor": 1, "mobile": False}
            page.ask("Emulation.setDeviceMetricsOverride", **size)
            source = f"rerun%2Bhttp%3A%2F%2F127.0.0.1%3A{DATA_PORT}%2Fproxy"
            page.open(f"http://127.0.0.1:{WEB_PORT}/?url={source}")
            time.sleep(DRAWING_TIME)
            picture = page.ask("Page.captureScreenshot", format="png")
            return base64.b64decode(picture["data"])
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        via = [{"x": 0.1}, {"y": 0.1, "z": -0.4}]
        stroke = tl.plan_stroke("delta", shape="spline", via=via, end={"x": -0.15})
        motion, recording = Path(folder) / "stroke.csv", Path(folder) / "stroke.rrd"
        tl.logs.write_log(motion, stroke.log())
        tl.run_stream("delta", recording, motion=motion)
        image = PIL.Image.open(io.BytesIO(show(recording))).convert("RGB")
        image.crop((0, 0, WIDE, SHOWN)).quantize(96).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
