"""Who the viewer serves: real requests to a real server, by Python's http.client and the client of `websockets`."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from extras import extra

from tauloop import Model, load
from tauloop.common.errors import EngineError
from tauloop.viewer import Viewer
from tauloop.viewer.guard import Guard, start_guarded

viser = extra("viser")

#: What a client sends to have its connection made a websocket (RFC 6455, section 4.1).
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": f"viser-v{viser.__version__}",
}


@pytest.fixture(scope="module")
def viewer() -> Iterator[Viewer]:
    shown = Viewer(Model(load("five_bar")), port=0)
    yield shown
    shown.stop()


def ask(
    port: int, path: str, headers: list[tuple[str, str]], address: str = "127.0.0.1"
) -> tuple[int, str, str]:
    """Status, body (of refusals) and Referrer-Policy of the answer to a GET with these headers, `Host` among them."""
    connection = http.client.HTTPConnection(address, port, timeout=10)
    try:
        connection.putrequest("GET", path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers:
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read().decode() if answer.status == 403 else ""
        return answer.status, body, answer.headers.get("Referrer-Policy", "")
    finally:
        connection.close()


def both(
    port: int, path: str, headers: list[tuple[str, str]], address: str = "127.0.0.1"
) -> tuple[int, int]:
    """Status of the page and of the websocket."""
    page = ask(port, path, headers, address)
    return page[0], ask(port, path, [*headers, *UPGRADE.items()], address)[0]


def path_of(viewer: Viewer) -> str:
    return urlsplit(viewer.url).path


def test_the_printed_address_is_served_and_the_token_is_not_handed_on(viewer: Viewer) -> None:
    here = f"127.0.0.1:{viewer.port}"
    for host in (here, f"localhost:{viewer.port}", f"LocalHost:{viewer.port}"):
        assert both(viewer.port, path_of(viewer), [("Host", host)]) == (200, 101)
        assert both(
            viewer.port, path_of(viewer), [("Host", host), ("Origin", f"http://{host}")]
        ) == (200, 101)
    assert ask(viewer.port, path_of(viewer), [("Host", here)])[2] == "no-referrer"
    for path in (
        path_of(viewer).rstrip("/"),
        f"{path_of(viewer)}?websocket=ws://{here}{path_of(viewer)}",
    ):
        assert both(viewer.port, path, [("Host", here)]) == (200, 101)  # as viser's page asks
    assert both(viewer.port, f"{path_of(viewer)}../_viser.py", [("Host", here)])[0] == 404


def test_a_missing_or_wrong_token_is_refused_with_a_sentence(viewer: Viewer) -> None:
    token = path_of(viewer).strip("/")
    assert len(token) >= 22  # 128 bits in base 64
    wrong = Guard(host="127.0.0.1").token
    names = (
        wrong,
        token[:-1],
        f"{token}x",
        f"?token={token}",
        f"/{token}",
        f"{wrong}/{token}",
        f"%2e/{token}",
        "index.html",
    )
    for path in ("/", *(f"/{name}" for name in names), f"/{token.swapcase()}/"):
        assert both(viewer.port, path, [("Host", f"127.0.0.1:{viewer.port}")]) == (403, 403), path
    text = ask(viewer.port, "/", [("Host", f"127.0.0.1:{viewer.port}")])[1]
    assert (
        text == "Refused: the token is missing or wrong. Open the whole address that was printed.\n"
    )
    assert token not in text


def test_bytes_that_are_no_text_in_the_path_are_refused_as_well(viewer: Viewer) -> None:
    with socket.create_connection(("127.0.0.1", viewer.port), timeout=10) as raw:
        raw.sendall(b"GET /\xff\xfe/ HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % viewer.port)
        assert raw.recv(100).startswith(b"HTTP/1.1 403 ")


def test_what_is_no_request_is_dropped_without_a_traceback(
    viewer: Viewer, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_connection(("127.0.0.1", viewer.port), timeout=10) as raw:
        raw.sendall(b"\x16\x03\x01\x00\n\n")  # a page asked for by https
        assert raw.recv(100) == b""
    assert both(viewer.port, path_of(viewer), [("Host", f"127.0.0.1:{viewer.port}")]) == (200, 101)
    assert not caplog.records


def test_a_foreign_host_is_refused_even_with_the_token(viewer: Viewer) -> None:
    here, path = f"127.0.0.1:{viewer.port}", path_of(viewer)
    names = (
        "evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.2",
        "localhost.",
        socket.gethostname(),
    )
    for host in (
        *(f"{name}:{viewer.port}" for name in names),
        "localhost",
        "127.0.0.1",
        f"127.0.0.1:{viewer.port + 1}",
        "",
    ):
        assert both(viewer.port, path, [("Host", host), ("Origin", f"http://{host}")]) == (
            403,
            403,
        ), host
    assert both(viewer.port, path, []) == (403, 403)
    assert both(viewer.port, path, [("Host", here), ("Host", "evil.example")]) == (403, 403)
    assert (
        "Host of this request is not the address"
        in ask(viewer.port, path, [("Host", "evil.example")])[1]
    )


def test_a_foreign_origin_is_refused_even_with_the_token(viewer: Viewer) -> None:
    here, path = f"127.0.0.1:{viewer.port}", path_of(viewer)
    others = (
        f"https://{here}",
        f"http://{here}.evil.example",
        f"http://127.0.0.1:{viewer.port + 1}",
        here,
    )
    foreign = (
        "https://evil.example",
        "null",
        "",
        "file://",
        f"http://localhost:{viewer.port}",
        *others,
    )
    for origin in foreign:
        assert both(viewer.port, path, [("Host", here), ("Origin", origin)]) == (403, 403), origin
    mixed = [("Host", here), ("Origin", f"http://{here}"), ("Origin", "https://evil.example")]
    assert both(viewer.port, path, mixed) == (403, 403)
    assert (
        "this request comes from another page"
        in ask(viewer.port, path, [("Host", here), ("Origin", "null")])[1]
    )


def test_a_websocket_with_the_token_gets_the_scene_and_others_nothing(viewer: Viewer) -> None:
    client = extra("websockets.sync.client")
    refused = extra("websockets.exceptions").InvalidStatus
    subprotocols, bare = [UPGRADE["Sec-WebSocket-Protocol"]], f"ws://127.0.0.1:{viewer.port}"
    whole = bare + path_of(viewer).rstrip("/")  # as viser's page makes it from its own address
    with client.connect(
        whole, origin=f"http://127.0.0.1:{viewer.port}", subprotocols=subprotocols
    ) as open_one:
        assert len(open_one.recv(timeout=10)) > 100
    for address, origin in (
        (bare, None),
        (f"{bare}/", f"http://127.0.0.1:{viewer.port}"),
        (whole, "https://e.example"),
    ):
        with pytest.raises(refused) as status:
            client.connect(address, origin=origin, subprotocols=subprotocols)
        assert status.value.response.status_code == 403


def test_a_server_for_all_addresses_is_reached_by_address_or_name_of_the_computer() -> None:
    shown = Viewer(Model(load("five_bar")), host="0.0.0.0", port=0)
    try:
        for host in ("0.0.0.0", "127.0.0.1", "localhost", socket.gethostname()):
            assert both(shown.port, path_of(shown), [("Host", f"{host}:{shown.port}")]) == (
                200,
                101,
            ), host
        for host in ("evil.example", "10.255.255.254"):
            assert both(shown.port, path_of(shown), [("Host", f"{host}:{shown.port}")]) == (
                403,
                403,
            ), host
    finally:
        shown.stop()


def test_addresses_of_version_six_stand_in_brackets() -> None:
    guard = Guard(host="::1")
    assert guard.url(8080) == f"http://[::1]:8080/{guard.token}/"
    assert (
        guard.refusal(f"/{guard.token}/", ["[::1]:8080"], ["http://[::1]:8080"], "::1", 8080)
        is None
    )
    assert guard.refusal(f"/{guard.token}/", ["::1:8080"], [], "::1", 8080) is not None


def test_browsers_leave_out_the_usual_port() -> None:
    guard = Guard(host="127.0.0.1")
    assert (
        guard.refusal(f"/{guard.token}/", ["127.0.0.1"], ["http://127.0.0.1"], "127.0.0.1", 80)
        is None
    )
    assert guard.refusal(f"/{guard.token}/", ["127.0.0.1"], [], "127.0.0.1", 8080) is not None


def test_every_viewer_has_its_own_token_and_other_servers_are_left_alone(viewer: Viewer) -> None:
    other = Viewer(Model(load("five_bar")), port=0)
    try:
        assert path_of(other) != path_of(viewer)
        assert both(other.port, path_of(viewer), [("Host", f"127.0.0.1:{other.port}")]) == (
            403,
            403,
        )
    finally:
        other.stop()
    serve = extra("websockets.asyncio.server").serve
    assert isinstance(serve, type)  # the original class is back


def test_a_server_that_does_not_ask_the_guard_is_stopped() -> None:
    # before it could be guarded
    started = viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
    port = started.get_port()
    assert both(port, "/", [("Host", "evil.example")]) == (200, 101)  # what the guard is for
    with pytest.raises(EngineError, match="does not let Tauloop check"):
        start_guarded(Guard(host="127.0.0.1"), lambda: started)
    with pytest.raises(ConnectionRefusedError):
        both(port, "/", [("Host", "evil.example")])
