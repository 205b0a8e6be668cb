"""The viewer in a real browser: its page is drawn and moves, and other pages get nothing. Chromium is the oracle."""

from __future__ import annotations

import http.server
import io
import json
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import matplotlib.image
import numpy as np
import pytest
from browser import FOREIGN, Page, browser, executable
from extras import extra

from tauloop import Model, load
from tauloop.viewer import Viewer

extra("viser")
pytestmark = pytest.mark.skipif(
    executable() is None, reason="needs Chromium or Chrome, and none is installed"
)

#: Tries a connection as a page of another address would; says what came of it.
SOCKET = """new Promise(done => {
    const socket = new WebSocket(%s, %s);
    socket.onopen = () => done("open"); socket.onerror = () => done("refused");
})"""


#: A pixel is coloured where its parts differ by so much (of 1); and so many of them are a machine.
COLORED, PIXELS = 0.15, 300


@pytest.fixture(scope="module")
def viewer() -> Iterator[Viewer]:
    shown = Viewer(Model(load("five_bar")), port=0)
    yield shown
    shown.stop()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(executable(), tmp_path_factory.mktemp("profile")) as opened:
        yield opened


# software that draws in three dimensions takes all of a core while the page is open
@pytest.mark.nightly
def test_the_printed_address_shows_the_machine(viewer: Viewer, page: Page, tmp_path) -> None:
    page.open(viewer.url)
    page.wait(
        lambda: "platform.x" in page.text(),
        "the sliders come over the websocket",
    )
    page.wait(lambda: drawn(page) > PIXELS, "the machine is drawn")
    assert page.errors() == []
    (tmp_path / "page.png").write_bytes(page.picture())  # for whoever wants to look
    page.open("about:blank")


def drawn(page: Page) -> int:
    """Pixels that are coloured where only the scene is, left of the sliders: its ground is white and grey."""
    picture = matplotlib.image.imread(io.BytesIO(page.picture()), format="png")
    scene = picture[picture.shape[0] // 3 :, : picture.shape[1] // 2, :3]
    return int((np.ptp(scene, axis=2) > COLORED).sum())


@pytest.mark.parametrize("kind", ["no token", "wrong token", "foreign host"])
def test_other_addresses_show_a_refusal_and_no_machine(
    viewer: Viewer, page: Page, kind: str
) -> None:
    here, path = f"http://127.0.0.1:{viewer.port}", urlsplit(viewer.url).path
    wrong = {
        "no token": here,
        "wrong token": f"{here}{path[:-2]}/",
        "foreign host": here.replace("127.0.0.1", FOREIGN) + path,
    }
    page.open(wrong[kind])
    assert page.text().startswith("Refused: ")


def test_another_page_gets_nothing_although_it_knows_the_token(viewer: Viewer, page: Page) -> None:
    """A page of another port of the same computer, and one whose name leads here (rebinding)."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Empty)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    viser = extra("viser")
    try:
        for host in ("127.0.0.1", FOREIGN):
            page.open(f"http://{host}:{server.server_port}/")
            for name in ("127.0.0.1", "localhost", FOREIGN):
                whole = viewer.url.replace("http:", "ws:").replace("127.0.0.1", name)
                assert (
                    page.run(
                        SOCKET % (json.dumps(whole), json.dumps(f"viser-v{viser.__version__}"))
                    )
                    == "refused"
                )
            read = page.run(
                f"fetch({json.dumps(viewer.url)}).then(answer => answer.text()).catch(() => 'refused')"
            )
            assert read == "refused"
    finally:
        server.shutdown()
        server.server_close()


class Empty(http.server.BaseHTTPRequestHandler):
    """A page with nothing in it."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>another page</title>")

    def log_message(self, *_: object) -> None:
        """Say nothing."""
