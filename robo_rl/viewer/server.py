"""A small web server for one page: one stream of frames, one way to act. For this machine, unless a token guards it.

GET /         the page
GET /scene    what seldom changes, JSON; "role" is what the reader may do
GET /stream   server-sent events, one JSON object per frame; with ?frames=N it ends after N of them
POST /act     one action, JSON; 200 with a sentence, 204, 400 or (where the reader may not) 403 with a sentence

Who is let in is in ``access``.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

from robo_rl.viewer.access import Access, Role

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
PATIENCE = 10.0  # s for a request to arrive, or for a frame to be taken


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

    def __init__(self, source: Source, port: int, access: Access) -> None:
        self.access, self.source = access, source
        super().__init__((access.address, port), Handler)

    @property
    def port(self) -> int:
        return self.server_address[1]

    @property
    def url(self) -> str:
        """Where the page is for those who may operate, token included."""
        return self.access.url(self.port)

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that goes away is no error."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Viewer
    timeout = PATIENCE

    def do_GET(self) -> None:
        if not self._is_welcome():
            return
        if self.path.split("?")[0] == "/":
            self._send(self.server.source.page.read_bytes(), "text/html; charset=utf-8")
        elif self.path == "/scene":
            scene = {**self.server.source.scene(), "role": self._role()}
            self._send(json.dumps(scene).encode(), "application/json")
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
        if not length.isdecimal() or int(length) > LONGEST_REQUEST:
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
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        number = 0
        for _ in counts:
            while (frame := self.server.source.next_frame(number, timeout=1.0)) is None:
                self.wfile.write(b": still here\n\n")
            number = frame.number
            self.wfile.write(b"data: " + json.dumps(frame.content).encode() + b"\n\n")

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
