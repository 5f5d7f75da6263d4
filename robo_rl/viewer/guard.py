"""viser's server on one address, behind ``access`` and with bounds on what a browser may send.

viser itself accepts all connections, on any free port, without authentication, and messages of 50 MB. Here it
gets a socket that is bound before, every request is checked first (websocket handshakes as well as the page), and
connections drop messages of kinds that our pages don't use (uploads, sharing over the internet), count the others, and
are closed when there are too many. What a message may set is nothing but the value of a control, and only a number,
a truth value or a short text; the page puts numbers into the control's limits. A click brings a ray, of numbers.
"""

from __future__ import annotations

import contextlib
import functools
import math
import socket
import threading
import time
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import msgspec
import rich
import viser
import websockets.asyncio.server as library
from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from robo_rl.viewer.access import Access
from robo_rl.viewer.places import Places

MOST_CLIENTS, MOST_WAITING = 8, 64
"""Browsers, and connections whose request has not come."""
PATIENCE = 5.0
"""s for a request to arrive."""
LONGEST_MESSAGE = 1 << 17  # bytes
MESSAGES, AT_ONCE = 240.0, 480.0
"""1/s in the long run, and at once: dragging the mouse sends one per frame of the browser."""
LONGEST_TEXT = 200  # characters
LARGEST = 1e9
TAKEN = ("ViewerCameraMessage", "GuiUpdateMessage", "GetRenderResponseMessage", "ScenePointerMessage")
"""viser's messages that our pages need."""
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob: data:; worker-src blob: data:; "
    "style-src 'unsafe-inline'; connect-src 'self' data: blob:; img-src data: blob:; font-src data:; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
COMMON = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Bucket:
    """Lets through so many a second in the long run, and at most so many at once."""

    def __init__(self, rate: float, most: float) -> None:
        self.rate, self.most = rate, most
        self.left, self.seen = most, time.monotonic()

    def takes(self, now: float) -> bool:
        """Whether one more is let through at a time (s)."""
        self.left = min(self.most, self.left + self.rate * (now - self.seen))
        self.seen = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class Connection(ServerConnection):
    """A browser's connection that passes on what a page may send, and closes when it is too much.

    Until its request has come it takes a place among those that wait, where the newest always finds room.
    """

    def __init__(self, waiting: Places, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.waiting, self.bucket = waiting, Bucket(MESSAGES, AT_ONCE)

    def connection_made(self, transport: Any) -> None:
        self.waiting.enter(self, transport.abort)
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.waiting.leave(self)
        super().connection_lost(exc)

    async def recv(self, decode: bool | None = None) -> Any:
        while True:
            raw = await super().recv(decode)
            if not self.bucket.takes(time.monotonic()):
                await self.close(1008, "too many messages")
            elif isinstance(raw, bytes) and is_harmless(raw):
                return raw


def is_harmless(raw: bytes) -> bool:
    """Whether a message is of a kind that pages need, and sets nothing but the value of a control, or is a click."""
    try:
        message = msgspec.msgpack.decode(raw)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return False
    if not isinstance(message, dict) or message.get("type") not in TAKEN:
        return False
    if message["type"] == "ScenePointerMessage":
        return _is_click(message)
    if message["type"] != "GuiUpdateMessage":
        return True
    updates = message.get("updates")
    return isinstance(updates, dict) and set(updates) == {"value"} and _is_plain(updates["value"])


def _is_click(message: dict[str, Any]) -> bool:
    """Whether it has a ray and a place in the picture, of numbers."""
    places = message.get("screen_pos")
    if message.get("event_type") != "click" or not isinstance(places, list) or len(places) != 1:
        return False
    vectors = ((message.get("ray_origin"), 3), (message.get("ray_direction"), 3), (places[0], 2))
    return message.get("modifier") is None and all(
        isinstance(vector, list)
        and len(vector) == count
        and all(not isinstance(x, bool | str) and _is_plain(x) for x in vector)
        for vector, count in vectors
    )


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_TEXT
    return isinstance(value, bool | int | float) and abs(value) <= LARGEST and math.isfinite(value)


def start(access: Access, port: int, label: str) -> viser.ViserServer:
    """A server of viser's on the address and port (0: any free one) that ``access`` says. OSError if it is taken."""
    listener = socket.create_server((access.address, port), backlog=256)
    bound = listener.getsockname()[1]

    waiting = Places(MOST_WAITING)

    def checked(ask: Any) -> Any:
        """Of viser's answers to requests: ours first."""

        def process(connection: ServerConnection, request: Request) -> Response | None:
            waiting.leave(connection)
            refused = access.refusal(request.path, request.headers, bound)
            if refused is not None:
                return _response(refused.status, refused.body, dict(refused.headers))
            upgrading = request.headers.get("Upgrade", "").lower() == "websocket"
            if upgrading and len(connection.server.connections) >= MOST_CLIENTS:
                return _response(HTTPStatus.SERVICE_UNAVAILABLE, b"too many browsers look at this page\n", {})
            answer = ask(connection, request)
            if answer is not None:
                answer.headers.update(COMMON)
            return answer

        return process

    with _served_by(listener, checked, waiting):
        rich.get_console().quiet = True  # viser prints where it listens, wherever our results go
        server = viser.ViserServer(host=access.address, port=bound, label=label, verbose=False)
    if server.get_port() != bound:
        server.stop()
        raise RuntimeError("viser's server did not take the guarded socket; expected viser 1.1")
    return server


_starting = threading.Lock()


@contextlib.contextmanager
def _served_by(listener: socket.socket, checked: Any, waiting: Places) -> Iterator[None]:
    """Within, what is served by the websockets library is served on ``listener``, with requests ``checked``.

    viser offers no other way to see requests before it does. A test asks it as a stranger would.
    """
    original = library.serve

    def serve(handler: Any, host: str, port: int, *, process_request: Any, **options: Any) -> Any:
        made = functools.partial(Connection, waiting)
        options |= {"max_size": LONGEST_MESSAGE, "create_connection": made, "sock": listener, "open_timeout": PATIENCE}
        return original(handler, process_request=checked(process_request), **options)

    with _starting:
        library.serve = serve  # type: ignore[assignment, misc]
        try:
            yield
        finally:
            library.serve = original  # type: ignore[misc]


def _response(status: HTTPStatus, body: bytes, headers: dict[str, str]) -> Response:
    found = Headers({**COMMON, **headers, "Content-Length": str(len(body))})
    return Response(status.value, status.phrase, found, body)
