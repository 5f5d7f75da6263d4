"""The viewer's web server: one page, one stream of frames, one way to act. For this machine alone.

GET /         the page
GET /scene    what does not change, JSON
GET /stream   server-sent events, one JSON object per frame; with ?frames=N it ends after N of them
POST /act     one action, JSON (see ``Live.act``); 204, or 400 with a sentence

It listens on 127.0.0.1. Requests that name another host, or come from another site's page, are refused, so that
no page elsewhere can reach it through the person's browser.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Iterable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from robo_rl.viewer.live import Live

ADDRESS = "127.0.0.1"
PAGE = Path(__file__).with_name("page.html")
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:"
LONGEST_REQUEST = 4096  # bytes
PATIENCE = 10.0  # s for a request to arrive, or for a frame to be taken


class Viewer(ThreadingHTTPServer):
    """Serves one ``Live``. Port 0 means any free one."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, live: Live, port: int = 0) -> None:
        self.live = live
        super().__init__((ADDRESS, port), Handler)

    @property
    def port(self) -> int:
        return self.server_address[1]

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.port}/"

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that goes away is no error."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Viewer
    timeout = PATIENCE

    def do_GET(self) -> None:
        if not self._from_here():
            return
        if self.path.split("?")[0] == "/":
            self._send(PAGE.read_bytes(), "text/html; charset=utf-8")
        elif self.path == "/scene":
            self._send(json.dumps(self.server.live.scene()).encode(), "application/json")
        elif self.path == "/stream":
            self._stream(itertools.count())
        elif counted := re.fullmatch(r"/stream\?frames=(\d{1,6})", self.path):
            self._stream(range(int(counted[1])))
        else:
            self.send_error(HTTPStatus.NOT_FOUND, "there are /, /scene, /stream and /act")

    def do_POST(self) -> None:
        if not self._from_here():
            return
        if self.path != "/act":
            self.send_error(HTTPStatus.NOT_FOUND, "POST goes to /act")
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LONGEST_REQUEST:
            self.send_error(HTTPStatus.BAD_REQUEST, f"expected a Content-Length up to {LONGEST_REQUEST}")
            return
        try:
            self.server.live.act(json.loads(self.rfile.read(int(length))))
        except (ValueError, RecursionError) as error:  # JSON's errors are ValueErrors too
            self._send(f"{error}\n".encode(), "text/plain; charset=utf-8", HTTPStatus.BAD_REQUEST)
            return
        self.send_response(HTTPStatus.NO_CONTENT)
        self.end_headers()

    def _from_here(self) -> bool:
        """Whether the request is for this server and from its own page; answers it if not."""
        hosts = {f"{name}:{self.server.port}" for name in (ADDRESS, "localhost")}
        origin = self.headers.get("Origin")
        if self.headers.get("Host") in hosts and (origin is None or origin in {f"http://{host}" for host in hosts}):
            return True
        self.send_error(HTTPStatus.FORBIDDEN, f"this page is at {self.server.url}")
        return False

    def _stream(self, counts: Iterable[int]) -> None:
        """Frames until the browser goes away; a slow browser misses frames."""
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        number = 0
        for _ in counts:
            while (frame := self.server.live.next_frame(number, timeout=1.0)) is None:
                self.wfile.write(b": still here\n\n")
            number = frame.number
            self.wfile.write(b"data: " + json.dumps(frame.content).encode() + b"\n\n")

    def _send(self, content: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not news."""
