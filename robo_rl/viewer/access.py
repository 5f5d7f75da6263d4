"""Access control of served pages: the same rules for every page and server.

A page is for this machine. On an address that others can reach it asks for a token, for everything: the page's address
has it once, then the browser keeps it as a cookie that no other site's page can use. A second token may be given to
those who only view. Requests that name another host, or come from another site's page, are refused, so that no other
site can reach it through the user's browser (DNS rebinding included). Nothing here is encrypted: across a network that
others use, take an SSH tunnel.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
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


class Role(StrEnum):
    """What somebody who is let in may do."""

    OPERATE = "operate"
    VIEW = "view"
    """See everything, and stop the robot: whoever sees it may stop it."""


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
    """Lets people operate. Needed wherever others can reach the address."""
    view_token: str = ""
    """Lets people watch; "": nobody only watches."""

    def __post_init__(self) -> None:
        try:
            private = ipaddress.IPv4Address(self.address).is_loopback
        except ipaddress.AddressValueError:
            raise ValueError(f"address is '{self.address}'; expected an IPv4 address such as {ADDRESS}") from None
        for name in ("token", "view_token"):
            token = getattr(self, name)
            if token and not re.fullmatch(rf"[\w-]{{{SHORTEST_TOKEN},}}", token, re.ASCII):
                expected = f"{SHORTEST_TOKEN} or more letters and digits"
                raise ValueError(f"{name} has {len(token)} characters; expected {expected}")
        if self.view_token and self.view_token == self.token:
            raise ValueError("view_token is the token of those who may operate; expected another")
        if self.view_token and not self.token:
            raise ValueError("view_token is given without a token: all may operate; expected both")
        if not private and not self.token:
            raise ValueError(f"address is {self.address}, which others can reach; expected a token with it")

    @property
    def private(self) -> bool:
        """Whether this machine alone can reach it."""
        return ipaddress.IPv4Address(self.address).is_loopback

    def url(self, port: int, role: Role = Role.OPERATE) -> str:
        """Where the page is, with the token of a role."""
        name = socket.gethostname() if self.address == "0.0.0.0" else self.address
        token = self.token if role is Role.OPERATE else self.view_token
        return f"http://{name}:{port}/" + (f"?token={token}" if token else "")

    def role(self, headers: Mapping[str, str], port: int) -> Role | None:
        """What one who sends these ``headers`` may do; None if they hold no token."""
        if not self.token:
            return Role.OPERATE
        held = [self._role_of(token) for token in (_cookie(headers, port), _bearer(headers))]
        return Role.OPERATE if Role.OPERATE in held else next((role for role in held if role), None)

    def refusal(self, target: str, headers: Mapping[str, str], port: int) -> Refusal | None:
        """What to answer to a request for ``target`` (path and query) with these ``headers``; None if it is let in."""
        host, origin = headers.get("Host") or "", headers.get("Origin")
        if not self.is_own_name(host) or origin not in (None, f"http://{host}"):
            return Refusal(HTTPStatus.FORBIDDEN, b"another host's page\n", {"Content-Type": "text/plain"})
        if self.role(headers, port) is not None:
            return None
        address = urlsplit(target)
        given = parse_qs(address.query).get("token", [""])[0]
        if address.path == "/" and self._role_of(given) is not None:
            cookie = f"{_cookie_name(port)}={given}; HttpOnly; SameSite=Strict; Path=/"
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

    def _role_of(self, given: str) -> Role | None:
        """Of one who gives this token, in a time that does not tell how much of it is right."""
        held = {Role.OPERATE: self.token, Role.VIEW: self.view_token}
        right = [hmac.compare_digest(given.encode(errors="replace"), token.encode()) for token in held.values()]
        return next((role for role, same in zip(held, right, strict=True) if same and given), None)


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
