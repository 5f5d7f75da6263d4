"""STOP is answered however many connections somebody opens, and however slowly something comes on them."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import viser
import websockets.asyncio.client as client

from robo_rl.viewer import guard, server
from robo_rl.viewer.access import Access, Role
from robo_rl.viewer.once import Once
from robo_rl.viewer.places import Places
from robo_rl.viewer.server import MOST_CONNECTIONS, MOST_STREAMS, Frame, Viewer

LONGEST = 60.0
"""s for an answer to STOP on a busy computer. On one that is not it takes some milliseconds."""
FOR_EVER = 600.0
"""s for which servers are patient here: no flood is over before the answer to STOP."""
Flood = Callable[[int, contextlib.ExitStack], None]


class Robot:
    """A page on which STOP is the only action."""

    def __init__(self, folder: Path) -> None:
        self.page, self.stops = folder / "page.html", 0
        self.page.write_text("a page")

    def scene(self) -> dict[str, Any]:
        return {"large": "x" * (2 << 20)}

    def next_frame(self, after: int, timeout: float) -> Frame | None:
        time.sleep(0.05)
        return Frame(after + 1, {"large": "x" * (1 << 20)})

    def act(self, request: Any, role: Role) -> str:
        self.stops += 1
        return "stopped"


@pytest.fixture
def robot(tmp_path: Path) -> Robot:
    return Robot(tmp_path)


@pytest.fixture
def page(robot: Robot, monkeypatch: pytest.MonkeyPatch) -> Iterator[Viewer]:
    monkeypatch.setattr(server, "PATIENCE", FOR_EVER)
    with Viewer(robot, 0, Access()) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield found
        found.shutdown()


def opened(port: int, stack: contextlib.ExitStack) -> socket.socket:
    return stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30.0))


def request(path: str, method: str = "GET") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode()


def idle(count: int) -> Flood:
    def flood(port: int, stack: contextlib.ExitStack) -> None:
        for _ in range(count):
            opened(port, stack)

    return flood


def half(count: int) -> Flood:
    """Requests whose body never comes."""

    def flood(port: int, stack: contextlib.ExitStack) -> None:
        for _ in range(count):
            opened(port, stack).sendall(request("/act", "POST") + b"Content-Length: 99\r\n\r\n")

    return flood


def unread(path: str, count: int) -> Flood:
    """Answers that nobody takes."""

    def flood(port: int, stack: contextlib.ExitStack) -> None:
        for _ in range(count):
            opened(port, stack).sendall(request(path) + b"\r\n")

    return flood


def trickling(count: int) -> Flood:
    """A byte every now and then, for ever."""

    def flood(port: int, stack: contextlib.ExitStack) -> None:
        sockets, ended = [opened(port, stack) for _ in range(count)], threading.Event()

        def trickle() -> None:
            while not ended.wait(0.05):
                for one in sockets:
                    with contextlib.suppress(OSError):
                        one.send(b"G")

        thread = threading.Thread(target=trickle, daemon=True)
        thread.start()
        stack.callback(thread.join)
        stack.callback(ended.set)

    return flood


def again_and_again(port: int, stack: contextlib.ExitStack) -> None:
    """New ones all the time."""
    ended = threading.Event()

    def connect() -> None:
        while not ended.wait(0.001):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0) as one:
                one.send(b"GET")

    threads = [threading.Thread(target=connect, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
        stack.callback(thread.join)
    stack.callback(ended.set)


FLOODS: dict[str, Flood] = {
    "48 idle connections": idle(48), "300 idle connections": idle(300), "half requests": half(100),
    "bytes that trickle": trickling(80), "answers that nobody takes": unread("/scene", 100),
    "streams that nobody takes": unread("/stream", 60), "new ones all the time": again_and_again,
}  # fmt: skip


def stop(port: int) -> tuple[int, float]:
    """The status of the answer, and how long it took (s)."""
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST)
    with contextlib.closing(connection):
        connection.request("POST", "/act", '{"do": "stop", "page": "p"}')
        return connection.getresponse().status, time.monotonic() - began


@pytest.mark.parametrize("flood", FLOODS)
def test_stop_is_answered_under_every_flood(flood: str, page: Viewer, robot: Robot) -> None:
    with contextlib.ExitStack() as stack:
        FLOODS[flood](page.port, stack)
        took = [stop(page.port) for _ in range(5)]
    assert [status for status, _ in took] == [200] * 5
    assert robot.stops == 5
    print(f"{flood}: {1000 * max(seconds for _, seconds in took):.0f} ms")


def test_so_many_threads_and_no_more(page: Viewer) -> None:
    before = threading.active_count()
    with contextlib.ExitStack() as stack:
        idle(3 * MOST_CONNECTIONS)(page.port, stack)
        unread("/stream", 3 * MOST_STREAMS)(page.port, stack)
        assert stop(page.port)[0] == 200
        until = time.monotonic() + 20.0
        while threading.active_count() - before > MOST_CONNECTIONS + MOST_STREAMS and time.monotonic() < until:
            time.sleep(0.05)
        assert threading.active_count() - before <= MOST_CONNECTIONS + MOST_STREAMS


def test_a_request_that_trickles_in_is_given_up(page: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time, but not the whole."""
    monkeypatch.setattr(server, "PATIENCE", 0.5)
    with contextlib.ExitStack() as stack:
        one = opened(page.port, stack)
        began = time.monotonic()
        with contextlib.suppress(OSError):
            while time.monotonic() - began < 30.0:
                one.send(b"G")
                time.sleep(0.05)
        assert time.monotonic() - began < 30.0


def test_one_stream_too_many_is_told(page: Viewer) -> None:
    with contextlib.ExitStack() as stack:
        unread("/stream", MOST_STREAMS)(page.port, stack)
        until = time.monotonic() + 20.0
        while len(page.streams) < MOST_STREAMS and time.monotonic() < until:
            time.sleep(0.01)
        connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=LONGEST)
        connection.request("GET", "/stream")
        assert connection.getresponse().status == 503


def test_the_newest_always_finds_a_place() -> None:
    closed: list[int] = []
    places = Places(3)
    for k in range(5):
        places.enter(k, lambda k=k: closed.append(k))  # type: ignore[misc]
    assert closed == [0, 1]
    places.leave(3)
    places.enter(5, lambda: None)
    assert closed == [0, 1]
    assert not places.enter_if_free(6)


# --- viser's server -------------------------------------------------------------------------------------------


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[viser.ViserServer]:
    monkeypatch.setattr(guard, "PATIENCE", FOR_EVER)
    found = guard.start(Access(), 0, "test")
    yield found
    found.stop()


@pytest.mark.parametrize(
    "flood", ["48 idle connections", "300 idle connections", "half requests", "bytes that trickle"]
)
def test_viser_s_page_is_shown_under_a_flood(flood: str, shown: viser.ViserServer) -> None:
    port = shown.get_port()

    async def look() -> None:
        async with client.connect(
            f"ws://127.0.0.1:{port}", subprotocols=[f"viser-v{viser.__version__}"], max_size=None, open_timeout=LONGEST
        ):
            return

    with contextlib.ExitStack() as stack:
        FLOODS[flood](port, stack)
        asyncio.run(look())
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200


# --- large answers --------------------------------------------------------------------------------------------


def test_an_answer_is_put_together_once_for_all_who_wait_and_is_never_older_than_the_question() -> None:
    state, made, asking, at_work, goes_on = [0], list[int](), list[int](), threading.Event(), threading.Event()

    def make() -> bytes:
        found = state[0]
        made.append(found)
        at_work.set()
        assert goes_on.wait(30.0)
        return str(found).encode()

    once, answers = Once(make), list[bytes]()

    def ask() -> None:
        asking.append(1)
        answers.append(once())

    first = threading.Thread(target=ask)
    first.start()
    assert at_work.wait(30.0)
    state[0] = 1
    others = [threading.Thread(target=ask) for _ in range(20)]
    for thread in others:
        thread.start()
    while len(asking) <= len(others):
        time.sleep(0.01)
    time.sleep(0.2)  # they wait
    goes_on.set()
    for thread in (first, *others):
        thread.join(30.0)
    assert answers == [b"0"] + [b"1"] * 20
    assert len(made) <= 4  # one more for each thread that a busy computer started late


def test_stop_does_not_wait_while_forty_ask_for_what_takes_long_to_put_together(page: Viewer, robot: Robot) -> None:
    goes_on, made, scene = threading.Event(), list[int](), robot.scene

    def slow() -> dict[str, Any]:
        made.append(1)
        assert goes_on.wait(60.0)
        return scene()

    robot.scene = slow  # type: ignore[method-assign]
    with contextlib.ExitStack() as stack:
        unread("/scene", 40)(page.port, stack)
        assert stop(page.port)[0] == 200
        assert len(made) <= 1
        goes_on.set()
        assert stop(page.port)[0] == 200
    assert robot.stops == 2
