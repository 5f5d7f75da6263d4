"""Access control of served pages: the same rules for every page and server.

A page is for this machine. On an address that others can reach it asks for a token, for everything: the page's address
has it once, then the browser keeps it as a cookie that no other site's page can use. Requests that name another host,
or come from another site's page, are refused, so that no other site can reach it through the user's browser
(DNS rebinding included). Nothing here is encrypted: across a network that others use, take an SSH tunnel.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

ADDRESS = "127.0.0.1"
SHORTEST_TOKEN = 16  # characters
ASK = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>robo-rl</title><style>:root { color-scheme:
light dark } body { font: 16px system-ui, sans-serif; margin: 20vh auto; width: 24em }</style><form action="/">
<p>The token was printed where this page was started.</p><input name="token" type="password" aria-label="token"
autofocus> <button>go on</button></form></html>"""
KIND_OF_PAGE = "text/html; charset=utf-8"


@dataclass(frozen=True)
class Refusal:
    """The answer to a request that is not let in."""

    status: HTTPStatus
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Access:
    """Where a page is served, and what one must know to see it."""

    address: str = ADDRESS
    """IPv4."""
    token: str = ""
    """Needed wherever others can reach the address."""

    def __post_init__(self) -> None:
        try:
            private = ipaddress.IPv4Address(self.address).is_loopback
        except ipaddress.AddressValueError:
            raise ValueError(f"address is '{self.address}'; expected an IPv4 address such as {ADDRESS}") from None
        token = self.token
        if token and not re.fullmatch(rf"[\w-]{{{SHORTEST_TOKEN},}}", token, re.ASCII):
            raise ValueError(f"token has {len(token)} characters; expected {SHORTEST_TOKEN} or more letters and digits")
        if not private and not token:
            raise ValueError(f"address is {self.address}, which others can reach; expected a token with it")

    @property
    def private(self) -> bool:
        """Whether this machine alone can reach it."""
        return ipaddress.IPv4Address(self.address).is_loopback

    def url(self, port: int) -> str:
        """Where the page is, token included."""
        name = socket.gethostname() if self.address == "0.0.0.0" else self.address
        return f"http://{name}:{port}/" + (f"?token={self.token}" if self.token else "")

    def refusal(self, target: str, headers: Mapping[str, str], port: int) -> Refusal | None:
        """What to answer to a request for ``target`` (path and query) with these ``headers``; None if it is let in."""
        host, origin = headers.get("Host") or "", headers.get("Origin")
        if not self.is_own_name(host) or origin not in (None, f"http://{host}"):
            return Refusal(HTTPStatus.FORBIDDEN, b"another host's page\n", {"Content-Type": "text/plain"})
        if not self.token or self._is_token(_cookie(headers, port)) or self._is_token(_bearer(headers)):
            return None
        address = urlsplit(target)
        if address.path == "/" and self._is_token(parse_qs(address.query).get("token", [""])[0]):
            cookie = f"{_cookie_name(port)}={self.token}; HttpOnly; SameSite=Strict; Path=/"
            sent = {"Location": "/", "Set-Cookie": cookie, "Referrer-Policy": "no-referrer"}
            return Refusal(HTTPStatus.SEE_OTHER, b"", sent)
        return Refusal(HTTPStatus.UNAUTHORIZED, ASK, {"Content-Type": KIND_OF_PAGE})

    def is_own_name(self, host: str) -> bool:
        """Whether a request's Host can be this server.

        A page of another site that had its name point here still sends that name. An address in figures can't be had
        that way.
        """
        name = host.rpartition(":")[0] or host
        if self.private:
            return name in (ADDRESS, self.address, "localhost")
        own = socket.gethostname().lower()
        return name.lower() in ("localhost", own, f"{own}.local") or bool(re.fullmatch(r"\d+(\.\d+){3}", name))

    def _is_token(self, given: str) -> bool:
        """In a time that does not tell how much of it is right."""
        return hmac.compare_digest(given.encode(errors="replace"), self.token.encode())


def _cookie_name(port: int) -> str:
    return f"robo_rl_{port}"  # cookies are shared by all ports of a host


def _cookie(headers: Mapping[str, str], port: int) -> str:
    try:
        found = SimpleCookie(headers.get("Cookie") or "").get(_cookie_name(port))
    except CookieError:
        return ""
    return found.value if found else ""


def _bearer(headers: Mapping[str, str]) -> str:
    scheme, _, given = (headers.get("Authorization") or "").partition(" ")
    return given if scheme == "Bearer" else ""
