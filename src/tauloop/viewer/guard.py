"""Access control of the viewer: a token in the path, and only requests from its own page."""

from __future__ import annotations

import contextlib
import gzip
import html
import http
import importlib
import io
import ipaddress
import logging
import secrets
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any

from tauloop.common.errors import EngineError
from tauloop.common.optional import optional_module
from tauloop.common.records import dataclass

#: Bytes of a token: 128 bits cannot be guessed.
TOKEN_BYTES = 16
#: The module of viser whose websocket handler identifies servers of viser.
SERVER_MODULE = "viser.infra._infra"
#: Title of viser's pages, which the machine's name replaces.
VISER_TITLE = b"<title>Viser</title>"
#: Additions to viser's pages:
#: - Keys in a control of the panel do not move viser's camera, which listens to all keys.
#: - On a narrow screen, the panel covers only the lower part of the scene.
#: - Viser's note on computers without a graphics card, which covers the machine, is hidden.
#: - Numbers next to sliders have room for six digits, and legends of plots for the curves' names.
PAGE_ADDITIONS = b"""<script>document.body.addEventListener('keydown', event => {
if (event.target.closest('[role=slider], [role=tab], button, summary')) event.stopPropagation(); });</script>
<style>#webgl-software-rendering { display: none; }
[role=slider] { cursor: pointer; }
.mantine-NumberInput-input { font-size: 0.72em !important; padding-inline: 0.25em !important; }
.u-legend { font-size: 0.72em; line-height: 1.3; text-align: left; }
.u-legend .unnamed { display: none; }
.u-legend .u-series > * { padding: 0 0.25em; }
.u-legend .u-marker { width: 0.8em; height: 0.8em; }
@media (max-width: 36em) {
[style*="position: fixed"][style*="max-height: 60%"] { width: 100% !important; max-height: 45% !important; }
[style*="position: fixed"][style*="max-height: 60%"] [style="width: 20em;"] { width: 100% !important; }
:has(> [style*="position: fixed"][style*="max-height: 60%"]) > [style*="flex-grow: 1"] {
height: 55% !important; } }</style>"""
#: Held while a guarded server starts, so that one guard does not replace another.
_STARTING = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Conditions for serving a request.

    The token is in the path and not in a cookie, because browsers send cookies of 127.0.0.1 to
    every port of this computer. Viser's page derives the address of its websocket from its own
    path.

    Attributes:
        host: name or address that the server listens on.
        title: function that returns the title of the page; None for viser's title.
        token: first part of every path.
    """

    host: str
    title: Callable[[], str] | None = None
    token: str = field(default_factory=lambda: secrets.token_urlsafe(TOKEN_BYTES), repr=False)

    def url(self, port: int) -> str:
        """Return the address for the browser."""
        return f"http://{_bracketed(self.host)}:{port}/{self.token}/"

    def refusal(
        self, path: str, hosts: Sequence[str], origins: Sequence[str], address: str, port: int
    ) -> str | None:
        """Return the reason for rejecting a request, as a sentence; None if it is accepted.

        A page of another site whose name resolves to this computer (DNS rebinding) sends that name
        in `Host`; any other page of the browser sends its own name in `Origin`.

        Args:
            path: path of the request, with its query.
            hosts: `Host` headers of the request.
            origins: `Origin` headers of the request; browsers send one for every websocket.
            address: local address of the connection.
            port: local port of the connection.
        """
        if len(hosts) != 1 or hosts[0].lower() not in self._valid_hosts(address, port):
            return (
                "Refused: the Host of this request is not the address of this server. "
                "Open the address that was printed."
            )
        if len(origins) > 1 or any(
            origin.lower() != f"http://{hosts[0].lower()}" for origin in origins
        ):
            return (
                "Refused: this request comes from another page. Open the address that was printed."
            )
        path_token = path.partition("?")[0].removeprefix("/").partition("/")[0]
        if not secrets.compare_digest(
            path_token.encode("utf-8", "surrogateescape"), self.token.encode()
        ):
            return (
                "Refused: the token is missing or wrong. Open the whole address that was printed."
            )
        return None

    def without_token(self, path: str) -> str:
        """Return the path of an accepted request without the token."""
        return path.removeprefix(f"/{self.token}") or "/"

    def _valid_hosts(self, address: str, port: int) -> set[str]:
        """Return the valid values of `Host`: address and names of this computer, with the port."""
        names = {self.host, address}
        if _has_address_property(address, "is_loopback"):
            names.add("localhost")
        if _has_address_property(self.host, "is_unspecified"):
            names.add(socket.gethostname())
        hosts = {_bracketed(name).lower() for name in names}
        with_port = {f"{host}:{port}" for host in hosts}
        return with_port | hosts if port == 80 else with_port


def start_guarded(guard: Guard, start: Callable[[], Any]) -> Any:
    """Start a viser server that checks pages and websockets with a guard.

    viser passes its own function to `websockets.asyncio.server.serve`, and users cannot pass
    another one. Therefore `serve` is replaced while the server starts. Servers of other packages
    still use the original function.

    Args:
        guard: guard of the server's pages and websockets.
        start: function that creates the `viser.ViserServer`.

    Returns:
        The server.

    Raises:
        EngineError: the server does not use the guard; it is stopped.
    """
    module: Any = importlib.import_module("websockets.asyncio.server")
    guarded = []

    def serve(handler: Any, *args: Any, **options: Any) -> Any:
        if (
            getattr(handler, "__module__", None) == SERVER_MODULE
            and options.get("process_request") is not None
        ):
            options["process_request"] = _guarded_request_handler(guard, options["process_request"])
            options["logger"] = logging.getLogger("websockets.server.tauloop")
            options["logger"].addFilter(_is_reported)
            guarded.append(handler)
        return original(handler, *args, **options)

    with _STARTING:
        original, module.serve = module.serve, serve
        try:
            server = start()
        finally:
            module.serve = original
    if not guarded:
        server.stop()
        version = getattr(importlib.import_module("viser"), "__version__", "unknown")
        raise EngineError.of(
            "viser",
            f"version {version} does not let Tauloop check the requests to its server",
            "pip install 'viser==1.1.1'; a picture (--out FILE.png) needs no server",
        )
    return server


def _guarded_request_handler(
    guard: Guard, answer: Callable[[Any, Any], Any]
) -> Callable[[Any, Any], Any]:
    """Return a `process_request` that rejects requests with 403 or returns viser's answer.

    Args:
        guard: the guard.
        answer: the `process_request` of viser.
    """

    def process_request(connection: Any, request: Any) -> Any:
        headers = request.headers
        address, port = connection.local_address[:2]
        refusal = guard.refusal(
            request.path, headers.get_all("Host"), headers.get_all("Origin"), address, port
        )
        if refusal is not None:
            return connection.respond(http.HTTPStatus.FORBIDDEN, f"{refusal}\n")
        response = answer(connection, replace(request, path=guard.without_token(request.path)))
        if response is None:
            return None
        response.headers["Referrer-Policy"] = "no-referrer"  # the token stays here
        if "html" not in response.headers.get("Content-Type", ""):
            return response
        title = "" if guard.title is None else guard.title()
        return _with_additions(response, title)

    return process_request


def _with_additions(response: Any, title: str) -> Any:
    """Return a page with `PAGE_ADDITIONS`, and with a title unless `title` is empty."""
    is_compressed = response.headers.get("Content-Encoding") == "gzip"
    text = gzip.decompress(response.body) if is_compressed else response.body
    if title:
        text = text.replace(VISER_TITLE, f"<title>{html.escape(title)}</title>".encode(), 1)
    before, end, after = text.rpartition(b"</body>")
    body = before + PAGE_ADDITIONS + end + after
    body = gzip.compress(body, 1) if is_compressed else body
    del response.headers["Content-Length"]
    response.headers["Content-Length"] = str(len(body))
    return replace(response, body=body)


def _is_reported(record: logging.LogRecord) -> bool:
    """Return whether to report a log record; failed handshakes of other programs are not errors."""
    return record.getMessage() != "opening handshake failed"


def _bracketed(host: str) -> str:
    """Return a host for a URL, with an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def _has_address_property(host: str, name: str) -> bool:
    """Return a property of an IP address, such as "is_loopback"; False for a host name."""
    try:
        return bool(getattr(ipaddress.ip_address(host), name))
    except ValueError:
        return False


def viser_module() -> Any:
    """Return the viser package.

    Raises:
        EngineError: viser is not installed.
    """
    note = "a picture (--out FILE.png) needs no extra package"
    return optional_module("viser", "viser", "view", note=note)


@contextlib.contextmanager
def silent() -> Any:
    """Return a context without output of viser, such as its banner; only the command prints."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
