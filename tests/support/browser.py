"""A real browser without a screen, driven over its debugging protocol by the client of `websockets`."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from extras import extra

#: Names under which Chromium and its likes are installed.
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome", "headless_shell")
#: Name of a foreign page that leads to this computer: what an attacker's name server would answer.
FOREIGN = "evil.example"
#: Software that draws in three dimensions, for computers without a screen.
FLAGS = (
    *(
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-unsafe-swiftshader",
        "--use-angle=swiftshader",
    ),
    *(
        "--no-first-run",
        "--disable-extensions",
        "--disable-background-networking",
        "--remote-debugging-port=0",
    ),
    *("--window-size=1000,700", f"--host-resolver-rules=MAP {FOREIGN} 127.0.0.1"),
)
#: Longest time for a browser on a busy computer to start, or a page to do what is waited for, s.
LONG = 180.0


def executable() -> str | None:
    """The first browser on the path, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@dataclass(kw_only=True)
class Page:
    """A page that is open; what has happened in it since `open` is in `events`."""

    socket: Any
    session: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0

    def ask(self, method: str, **parameters: object) -> dict[str, Any]:
        """The answer to a request of the protocol."""
        self.count += 1
        request = {"id": self.count, "method": method, "params": parameters}
        self.socket.send(
            json.dumps(request | ({"sessionId": self.session} if self.session else {}))
        )
        while True:
            message = json.loads(self.socket.recv(timeout=LONG))
            if message.get("id") == self.count:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    def open(self, address: str) -> None:
        """Go to an address, and wait until the page says that it is loaded."""
        self.events.clear()
        self.ask("Page.navigate", url=address)
        self.wait(lambda: self.happened("Page.loadEventFired"), f"{address} is loaded")

    def run(self, code: str) -> Any:
        """The value of a piece of JavaScript, or of its promise."""
        done = self.ask("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def happened(self, method: str) -> list[dict[str, Any]]:
        """What the browser has told of one kind."""
        return [event["params"] for event in self.events if event.get("method") == method]

    def text(self) -> str:
        """The text of the page; empty before its body exists."""
        return str(self.run("document.body ? document.body.innerText : ''"))

    def wait(self, is_so: Any, what: str) -> None:
        """Until something is so."""
        end = time.monotonic() + LONG
        while not is_so():
            assert time.monotonic() < end, f"waited in vain until {what}: {self.errors()}"
            self.run("0")
            time.sleep(0.05)

    def errors(self) -> list[str]:
        """Errors of the console and exceptions of the page's code."""
        logged = [
            entry["entry"]["text"]
            for entry in self.happened("Log.entryAdded")
            if entry["entry"]["level"] == "error"
        ]
        text = [
            str(call["args"])
            for call in self.happened("Runtime.consoleAPICalled")
            if call["type"] == "error"
        ]
        return (
            logged
            + text
            + [
                str(thrown["exceptionDetails"])
                for thrown in self.happened("Runtime.exceptionThrown")
            ]
        )

    def picture(self) -> bytes:
        """What the page shows, as PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])


@contextmanager
def browser(path: str, folder: Path) -> Iterator[Page]:
    """A browser with an empty page; its profile lies in a folder."""
    command = [path, *FLAGS, f"--user-data-dir={folder}", "about:blank"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            with attached(folder, process) as page:
                yield page
        finally:
            process.kill()


@contextmanager
def attached(folder: Path, process: subprocess.Popen[Any]) -> Iterator[Page]:
    """The first page of a browser whose profile lies in a folder, and that a process starts."""
    connect = extra("websockets.sync.client").connect
    port = folder / "DevToolsActivePort"
    end = time.monotonic() + LONG
    while not (port.exists() and port.read_text().count("\n")):
        assert process.poll() is None, f"{process.args} ended with {process.returncode}"
        assert time.monotonic() < end, f"{process.args} does not start"
        time.sleep(0.05)
    number, place = port.read_text().splitlines()[:2]
    with connect(f"ws://127.0.0.1:{number}{place}", max_size=None) as socket:
        page = Page(socket=socket)
        target = next(
            t for t in page.ask("Target.getTargets")["targetInfos"] if t["type"] == "page"
        )
        page.session = page.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)[
            "sessionId"
        ]
        for part in ("Page", "Runtime", "Log"):
            page.ask(f"{part}.enable")
        yield page
