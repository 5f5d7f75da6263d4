"""A small web server for one page: one stream of frames, one way to act. For this machine, unless a token guards it.

GET /         the page
GET /scene    what seldom changes, JSON
GET /stream   server-sent events, one JSON object per frame; with ?frames=N it ends after N of them
POST /act     one action, JSON; 200 with a sentence, 204, or 400 with a sentence

It listens on 127.0.0.1. On another address it asks for a token, for everything: the page's address has it once, then
the browser keeps it as a cookie that no other site's page can use. Requests that name another host, or come from
another site's page, are refused, so that no page elsewhere can reach it through the person's browser. Nothing here is
encrypted: across a network that others use, take an SSH tunnel.
"""

from __future__ import annotations

import hmac
import ipaddress
import itertools
import json
import re
import socket
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

ADDRESS = "127.0.0.1"
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
LONGEST_REQUEST = 4096  # bytes
PATIENCE = 10.0  # s for a request to arrive, or for a frame to be taken
SHORTEST_TOKEN = 16  # characters
ASK = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>robo-rl</title><style>:root { color-scheme:
light dark } body { font: 16px system-ui, sans-serif; margin: 20vh auto; width: 24em }</style><form action="/">
<p>The token was printed where this page was started.</p><input name="token" type="password" aria-label="token"
autofocus> <button>go on</button></form></html>"""


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

    def act(self, request: Any) -> str | None:
        """One action, as JSON gave it; a sentence, or nothing to say. ValueError if it is refused."""


class Viewer(ThreadingHTTPServer):
    """Serves one source. Port 0 means any free one."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, source: Source, port: int = 0, address: str = ADDRESS, token: str = "") -> None:
        """``token``: who wants to look or act must know it; needed wherever others can reach the address."""
        try:
            self.private = ipaddress.IPv4Address(address).is_loopback
        except ipaddress.AddressValueError:
            raise ValueError(f"address is '{address}'; expected an IPv4 address such as {ADDRESS}") from None
        if token and not re.fullmatch(rf"[\w-]{{{SHORTEST_TOKEN},}}", token, re.ASCII):
            raise ValueError(f"token has {len(token)} characters; expected {SHORTEST_TOKEN} or more letters and digits")
        if not self.private and not token:
            raise ValueError(f"address is {address}, which others can reach; expected a token with it")
        self.source, self.token, self.address = source, token, address
        super().__init__((address, port), Handler)

    @property
    def port(self) -> int:
        return self.server_address[1]

    @property
    def url(self) -> str:
        """Where the page is, token included."""
        name = socket.gethostname() if self.address == "0.0.0.0" else self.address
        return f"http://{name}:{self.port}/" + (f"?token={self.token}" if self.token else "")

    def is_own_name(self, host: str) -> bool:
        """Whether a request's Host can be this server.

        A page of another site that had its name point here (DNS rebinding) still sends that name. An address in
        figures can't be had that way.
        """
        name = host.rpartition(":")[0] or host
        if self.private:
            return name in (ADDRESS, self.address, "localhost")
        own = socket.gethostname().lower()
        return name.lower() in ("localhost", own, f"{own}.local") or bool(re.fullmatch(r"\d+(\.\d+){3}", name))

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
            self._send(json.dumps(self.server.source.scene()).encode(), "application/json")
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
            said = self.server.source.act(json.loads(self.rfile.read(int(length))))
        except (ValueError, RecursionError) as error:  # JSON's errors are ValueErrors too
            self._send(f"{error}\n".encode(), "text/plain; charset=utf-8", HTTPStatus.BAD_REQUEST)
            return
        if said is not None:
            self._send(f"{said}\n".encode(), "text/plain; charset=utf-8")
            return
        self.send_response(HTTPStatus.NO_CONTENT)
        self.end_headers()

    def _is_welcome(self) -> bool:
        """Whether the request is for this server, from its own page, and has the token; answers it if not."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if not self.server.is_own_name(host) or origin not in (None, f"http://{host}"):
            self.send_error(HTTPStatus.FORBIDDEN, "this page is elsewhere")
            return False
        token = self.server.token
        if not token or self._is_token(self._cookie()) or self._is_token(self._bearer()):
            return True
        address = urlsplit(self.path)
        if address.path == "/" and self._is_token(parse_qs(address.query).get("token", [""])[0]):
            self.send_response(HTTPStatus.SEE_OTHER)
            self.send_header("Location", "/")
            self.send_header("Set-Cookie", f"{self._cookie_name()}={token}; HttpOnly; SameSite=Strict; Path=/")
            self.send_header("Referrer-Policy", "no-referrer")
            self.end_headers()
            return False
        self._send(ASK, "text/html; charset=utf-8", HTTPStatus.UNAUTHORIZED)
        return False

    def _is_token(self, given: str) -> bool:
        """In a time that does not tell how much of it is right."""
        return hmac.compare_digest(given.encode(errors="replace"), self.server.token.encode())

    def _cookie_name(self) -> str:
        return f"robo_rl_{self.server.port}"  # cookies are shared by all ports of a host

    def _cookie(self) -> str:
        try:
            found = SimpleCookie(self.headers.get("Cookie", "")).get(self._cookie_name())
        except CookieError:
            return ""
        return found.value if found else ""

    def _bearer(self) -> str:
        scheme, _, given = self.headers.get("Authorization", "").partition(" ")
        return given if scheme == "Bearer" else ""

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
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not news."""
