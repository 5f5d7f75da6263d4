"""Who may talk to viser's server and what it takes from a browser, over real connections."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import viser
import websockets.asyncio.client as client
import websockets.asyncio.server as library
from hypothesis import given
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed, InvalidStatus

from robo_rl.viewer import guard
from robo_rl.viewer.access import Access

TOKEN = "a-token-of-the-tests-0123456789"
PROTOCOL = f"viser-v{viser.__version__}"


@pytest.fixture
def server() -> Iterator[viser.ViserServer]:
    found = guard.start(Access(), 0, "test")
    yield found
    found.stop()


@pytest.fixture
def shared() -> Iterator[viser.ViserServer]:
    """One that other computers can reach."""
    found = guard.start(Access("0.0.0.0", TOKEN), 0, "test")
    yield found
    found.stop()


def get(server: viser.ViserServer, path: str = "/", **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.get_port(), timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()


def connected(server: viser.ViserServer, **options: Any) -> client.connect:
    address = f"ws://127.0.0.1:{server.get_port()}"
    return client.connect(address, subprotocols=[PROTOCOL], max_size=None, **options)  # type: ignore[list-item]


async def refusal(server: viser.ViserServer, **options: Any) -> int | None:
    """The status with which a handshake is refused; None if it is not."""
    try:
        async with connected(server, **options):
            return None
    except InvalidStatus as error:
        return error.response.status_code


def send(server: viser.ViserServer, *messages: bytes | str, patience: float = 0.0) -> int | None:
    """Send messages to a server; the code with which it closes within so many s, or None if it takes another one."""

    async def talk() -> int | None:
        async with connected(server) as connection:
            await connection.recv()
            try:
                for message in messages:
                    await connection.send(message)
                pong = await connection.ping()
                await asyncio.wait_for(pong, 60)
                if patience:
                    await asyncio.wait_for(connection.wait_closed(), patience)
                    return connection.close_code
            except ConnectionClosed:
                return connection.close_code
            return None

    return asyncio.run(talk())


def update(handle: Any, **updates: Any) -> bytes:
    return msgspec.msgpack.encode({"type": "GuiUpdateMessage", "uuid": handle._impl.uuid, "updates": updates})


def test_the_page_is_served_with_a_policy_that_lets_it_fetch_nothing_elsewhere(server):
    status, headers, page = get(server, Accept_Encoding="identity")
    assert status == 200
    assert b"<title>" in page
    policy = dict(part.strip().partition(" ")[::2] for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["connect-src"] == "'self' data: blob:"
    assert policy["frame-ancestors"] == "'none'"
    assert not [source for source in policy.values() if "http" in source or "*" in source]


def test_it_listens_where_it_should_and_nowhere_else(server):
    port = server.get_port()
    with socket.create_connection(("127.0.0.1", port), timeout=60):
        pass
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {"127.0.0.1"}
    for address in others | {"127.0.0.2"}:
        with pytest.raises(OSError, match=r"refused|unreachable"):
            socket.create_connection((address, port), timeout=5).close()


def test_a_port_that_is_taken_is_not_replaced_by_another(server):
    with pytest.raises(OSError, match="in use"):
        guard.start(Access(), server.get_port(), "test")


def test_the_websocket_library_is_as_it_was_afterwards(server):
    assert library.serve.__module__ == "websockets.asyncio.server"
    assert isinstance(library.serve, type)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "1.2.3.4"])
def test_a_name_that_was_made_to_point_here_is_refused(server, host):
    assert get(server, Host=host)[0] == 403
    assert asyncio.run(refusal(server, additional_headers={})) is None

    async def ask() -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.get_port())
        request = f"GET / HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        request += "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        writer.write(f"{request}Sec-WebSocket-Protocol: {PROTOCOL}\r\n\r\n".encode())
        line = await asyncio.wait_for(reader.readline(), 60)
        writer.close()
        return line.decode()

    assert "403" in asyncio.run(ask())


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"])
def test_pages_of_other_sites_can_not_connect(server, origin):
    assert asyncio.run(refusal(server, origin=origin)) == 403
    assert asyncio.run(refusal(server, origin=f"http://127.0.0.1:{server.get_port()}")) is None


def test_without_the_token_nothing_is_shown_and_nobody_connects(shared):
    for headers in ({}, {"Authorization": f"Bearer {TOKEN}x"}, {"Cookie": f"robo_rl_1={TOKEN}"}):
        status, _, page = get(shared, **headers)
        assert status == 401
        assert len(page) < 2000
        assert asyncio.run(refusal(shared, additional_headers=headers)) == 401


def test_the_printed_address_gives_a_cookie_that_opens_the_page_and_the_connection(shared):
    status, headers, _ = get(shared, f"/?token={TOKEN}")
    assert (status, headers["Location"]) == (303, "/")
    assert {"HttpOnly", "SameSite=Strict"} <= set(headers["Set-Cookie"].split("; "))
    cookie = headers["Set-Cookie"].split(";")[0]
    assert get(shared, Cookie=cookie)[0] == 200
    assert asyncio.run(refusal(shared, additional_headers={"Cookie": cookie})) is None


def test_only_so_many_browsers_are_let_in(server):
    async def crowd() -> tuple[int, int | None]:
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(guard.MOST_CLIENTS):
                await (await stack.enter_async_context(connected(server))).recv()
            return len(server._websock_server._live_connections), await refusal(server)

    assert asyncio.run(crowd()) == (guard.MOST_CLIENTS, 503)


def test_a_browser_that_sends_too_much_is_put_out_and_others_are_not(server, monkeypatch):
    monkeypatch.setattr(guard, "MESSAGES", 1.0)  # per second: on a busy computer a flood takes some seconds
    message = msgspec.msgpack.encode({"type": "GuiUpdateMessage", "uuid": "x", "updates": {"value": 1}})
    assert send(server, *[message] * (2 * int(guard.AT_ONCE)), patience=60) in (
        1008,
        1006,
    )  # or cut
    assert send(server, message) is None


def test_a_long_message_closes_the_connection(server):
    assert send(server, b"x" * (guard.LONGEST_MESSAGE + 1)) == 1009


def test_controls_take_values_and_nothing_else(server):
    """viser sets whatever attribute of a control a message names; here only its value can be."""
    handle = server.gui.add_slider("mass", 0.0, 1.0, 0.1, 0.5)
    before = dict(vars(handle._impl))
    for updates in (
        {"update_cb": [1]}, {"removed": True}, {"value": 0.7, "is_button": True}, {"value": [1.0]},
        {"value": float("nan")}, {"value": 1e300}, {"value": {"a": 1}}, {"value": "x" * 10_000}, {},
    ):  # fmt: skip
        assert send(server, update(handle, **updates)) is None
        assert vars(handle._impl) == before
    assert send(server, update(handle, value=0.7)) is None
    loop = server.get_event_loop()
    while handle.value == 0.5:  # until the server's own loop has come to it
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(timeout=60)
    assert handle.value == 0.7


@pytest.mark.parametrize(
    "message",
    [
        {"type": "ShareUrlRequest"},
        {"type": "FileTransferStartUpload", "source_component_uuid": "x", "transfer_uuid": "y"},
        {"type": "RunJavascriptMessage", "source": "alert(1)"},
        {"type": "Message"},
        {"type": 7},
        {},
        [],
        None,
    ],
)
def test_messages_of_other_kinds_are_dropped(message):
    assert not guard.is_harmless(msgspec.msgpack.encode(message))


CLICK = {
    "type": "ScenePointerMessage", "event_type": "click", "ray_origin": [1.0, 2.0, 3], "modifier": None,
    "ray_direction": [0.0, 0.6, -0.8], "screen_pos": [[0.5, 0.25]],
}  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [
        {"event_type": "rect-select"},
        {"ray_origin": None},
        {"ray_origin": [1.0, 2.0]},
        {"ray_direction": [0.0, float("nan"), -1.0]},
        {"ray_direction": [0.0, 1e300, -1.0]},
        {"ray_direction": ["x", 0.0, -1.0]},
        {"screen_pos": []},
        {"screen_pos": [[0.1, 0.2]] * 2},
        {"screen_pos": [[0.1, True]]},
        {"modifier": {"a": 1}},
    ],
)
def test_a_click_is_taken_with_a_ray_of_numbers_and_nothing_else(changed):
    assert guard.is_harmless(msgspec.msgpack.encode(CLICK))
    assert not guard.is_harmless(msgspec.msgpack.encode({**CLICK, **changed}))


def test_sharing_over_the_internet_can_not_be_asked_for(server):
    assert send(server, msgspec.msgpack.encode({"type": "ShareUrlRequest"}), "text", b"\xc1", b"") is None
    assert server._share_tunnel is None


@given(st.binary(max_size=300))
def test_no_bytes_break_the_filter(raw):
    assert guard.is_harmless(raw) in (False, True)


def test_the_bucket_lets_through_its_rate_in_the_long_run():
    bucket = guard.Bucket(rate=10.0, most=20.0)
    start = bucket.seen
    let = sum(bucket.takes(start + 0.01 * k) for k in range(1000))
    assert 100 <= let <= 121


def test_garbage_does_not_end_the_server(server):
    requests = (b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"POST / HTTP/1.1\r\n\r\n")
    for garbage in (b"\x16\x03\x01\x02\x00\x01\x00", b"", *requests):
        with socket.create_connection(("127.0.0.1", server.get_port()), timeout=60) as raw:
            raw.sendall(garbage)
    assert get(server, "/../../etc/passwd")[0] == 404
    assert get(server, "/secrets")[0] == 404
    assert get(server)[0] == 200
