"""A small web server for one page: one stream of frames, one way to act. For this machine, unless a token guards it.

GET /         the page
GET /scene    what seldom changes, JSON; "role" is what the reader may do
GET /stream   server-sent events, one JSON object per frame; with ?frames=N it ends after N of them
POST /act     one action, JSON; 200 with a sentence, 204, 400 or (where the reader may not) 403 with a sentence

Who is let in is in ``access``.
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import json
import re
import socket
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

from robo_rl.viewer.access import Access, Role
from robo_rl.viewer.once import Once
from robo_rl.viewer.places import Places

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
COMMON = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
LONGEST_REQUEST = 4096  # bytes
PATIENCE = 5.0
"""s for a whole request to arrive, and for an answer or a frame to be taken."""
MOST_CONNECTIONS, MOST_STREAMS = 64, 16
"""At once: of requests that come or are answered, and of streams of frames."""


@dataclass(frozen=True)
class Frame:
    """One moment for the page; ``number`` counts frames."""

    number: int
    content: dict[str, Any]


class Source(Protocol):
    """What a page shows and what can be done on it. All methods may be called from any thread."""

    page: Path
    """The HTML file."""

    def scene(self) -> dict[str, Any]:
        """What seldom changes."""

    def next_frame(self, after: int, timeout: float) -> Frame | None:
        """The newest frame, once its number is above ``after``; None if that takes more than ``timeout`` s."""

    def act(self, request: Any, role: Role) -> str | None:
        """One action, as JSON gave it; a sentence, or nothing to say.

        ValueError if it is refused, PermissionError if that is because of the role.
        """


class Viewer(ThreadingHTTPServer):
    """Serves one source. Port 0 means any free one."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256
    """Connections that wait to be accepted: with fewer, a flood of them makes others wait for a second."""

    def __init__(self, source: Source, port: int, access: Access) -> None:
        self.access, self.source = access, source
        self._event = -1, b""
        self._composing = threading.Lock()
        self.scenes = {role: Once(functools.partial(self._scene, role)) for role in Role}
        self.places, self.streams = Places(MOST_CONNECTIONS), Places(MOST_STREAMS)
        super().__init__((access.address, port), Handler)

    @property
    def port(self) -> int:
        return self.server_address[1]

    @property
    def url(self) -> str:
        """Where the page is for those who may operate, token included."""
        return self.access.url(self.port)

    def event(self, frame: Frame) -> bytes:
        """A frame as all streams send it, put together once."""
        with self._composing:
            if self._event[0] != frame.number:
                self._event = frame.number, b"data: " + json.dumps(frame.content).encode() + b"\n\n"
            return self._event[1]

    def _scene(self, role: Role) -> bytes:
        return json.dumps({**self.source.scene(), "role": role}).encode()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Hand a new connection to a thread."""
        self.places.enter(request, lambda: _end(request))
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """A connection has ended."""
        self.places.leave(request)
        self.streams.leave(request)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that goes away is no error."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def _end(connection: socket.socket) -> None:
    """What waits for it, in its thread, goes on with an error."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Timely(io.RawIOBase):
    """What comes on a connection until a time. TimeoutError afterwards, however steadily bytes trickle in."""

    def __init__(self, connection: socket.socket, until: float) -> None:
        self._connection, self._until = connection, until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request did not arrive in time")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Viewer

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BufferedReader(_Timely(self.connection, time.monotonic() + PATIENCE))

    def send_response(self, code: int, message: str | None = None) -> None:
        """Begin an answer, every part of which must be taken in time."""
        self.connection.settimeout(PATIENCE)
        super().send_response(code, message)

    def do_GET(self) -> None:
        if not self._is_welcome():
            return
        if self.path.split("?")[0] == "/":
            self._send(self.server.source.page.read_bytes(), "text/html; charset=utf-8")
        elif self.path == "/scene":
            self._send(self.server.scenes[self._role()](), "application/json")
        elif self.path == "/stream":
            self._stream(itertools.count())
        elif counted := re.fullmatch(r"/stream\?frames=(\d{1,6})", self.path):
            self._stream(range(int(counted[1])))
        else:
            self.send_error(HTTPStatus.NOT_FOUND, "there are /, /scene, /stream and /act")

    def do_POST(self) -> None:
        if not self._is_welcome():
            return
        if self.path != "/act":
            self.send_error(HTTPStatus.NOT_FOUND, "POST goes to /act")
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > 9 or int(length) > LONGEST_REQUEST:
            self.send_error(HTTPStatus.BAD_REQUEST, f"expected a Content-Length up to {LONGEST_REQUEST}")
            return
        try:
            said = self.server.source.act(json.loads(self.rfile.read(int(length))), self._role())
        except PermissionError as error:
            self._send(f"{error}\n".encode(), "text/plain; charset=utf-8", HTTPStatus.FORBIDDEN)
            return
        except (ValueError, RecursionError) as error:  # JSON's errors are ValueErrors too
            self._send(f"{error}\n".encode(), "text/plain; charset=utf-8", HTTPStatus.BAD_REQUEST)
            return
        if said is not None:
            self._send(f"{said}\n".encode(), "text/plain; charset=utf-8")
            return
        self.send_response(HTTPStatus.NO_CONTENT)
        self.end_headers()

    def _is_welcome(self) -> bool:
        """Whether the request is let in; answers it if not."""
        found = self.server.access.refusal(self.path, dict(self.headers), self.server.port)
        if found is None:
            return True
        self.send_response(found.status)
        for name, value in {**COMMON, **found.headers, "Content-Length": str(len(found.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(found.body)
        return False

    def _role(self) -> Role:
        """Of one who was let in."""
        return self.server.access.role(dict(self.headers), self.server.port) or Role.VIEW

    def _stream(self, counts: Iterable[int]) -> None:
        """Frames until the browser goes away; a slow browser misses frames."""
        if not self.server.streams.enter_if_free(self.connection):
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, f"there are {MOST_STREAMS} streams; close other pages")
            return
        self.server.places.leave(self.connection)
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        number = 0
        for _ in counts:
            while (frame := self.server.source.next_frame(number, timeout=1.0)) is None:
                self.wfile.write(b": still here\n\n")
            number = frame.number
            self.wfile.write(self.server.event(frame))

    def _send(self, content: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in COMMON.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not news."""
