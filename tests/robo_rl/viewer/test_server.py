"""Who may look at a served page and act on it, over real connections."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from robo_rl.viewer.access import Access, Role
from robo_rl.viewer.server import PATIENCE, Frame, Viewer

TOKEN = "a-token-of-the-tests-0123456789"
VIEW_TOKEN = "another-token-for-those-who-watch"


class Counting:
    """A page without a robot: one can add to a sum, and whoever sees it can set it to zero."""

    def __init__(self, folder: Path) -> None:
        self.page, self.sum = folder / "page.html", 0
        self.page.write_text("<!doctype html><title>the page</title>")

    def scene(self) -> dict[str, Any]:
        return {"sum": self.sum}

    def next_frame(self, after: int, timeout: float) -> Frame:
        return Frame(after + 1, self.scene())

    def act(self, request: Any, role: Role) -> str:
        if role is not Role.OPERATE and request != "zero":
            raise PermissionError("viewers may set it to zero")
        self.sum = 0 if request == "zero" else self.sum + request["add"]
        return f"the sum is {self.sum}"


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Viewer]:
    """A page that other computers can reach."""
    with Viewer(Counting(tmp_path), 0, Access("0.0.0.0", TOKEN, VIEW_TOKEN)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join(timeout=60)


def ask(server: Viewer, path: str, body: str | None = None, **headers: str) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    with contextlib.closing(connection):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET" if body is None else "POST", path, body, named)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()


PATHS = [("/", None), ("/scene", None), ("/stream?frames=1", None), ("/act", '{"add": 1}')]
STRANGERS: list[dict[str, str]] = [
    {},
    {"Authorization": "Bearer "},
    {"Authorization": f"Bearer {TOKEN[:-1]}"},
    {"Authorization": f"Basic {TOKEN}"},
    {"Authorization": f"Bearer {TOKEN}x"},
    {"Authorization": f"Bearer {VIEW_TOKEN[:-1]}"},
    {"Authorization": f"Bearer {TOKEN}{VIEW_TOKEN}"},
    {"Cookie": f"robo_rl_1={TOKEN}"},
    {"Cookie": "robo_rl=\xff; ="},
]


@pytest.mark.parametrize("headers", STRANGERS, ids=str)
@pytest.mark.parametrize(("path", "body"), PATHS)
def test_without_the_token_nothing_is_shown_or_done(guarded: Viewer, path: str, body: str | None, headers):
    status, _, text = ask(guarded, path, body, **headers)
    assert status == 401
    assert "sum" not in text
    assert "the page" not in text
    assert guarded.source.sum == 0


def test_the_printed_address_gives_the_browser_a_cookie_that_opens_everything(guarded: Viewer):
    assert guarded.url.endswith(f"/?token={TOKEN}")
    status, headers, _ = ask(guarded, f"/?token={TOKEN}")
    assert (status, headers["Location"]) == (303, "/")
    assert {"HttpOnly", "SameSite=Strict"} <= set(headers["Set-Cookie"].split("; "))
    cookie = headers["Set-Cookie"].split(";")[0]
    assert "the page" in ask(guarded, "/", Cookie=cookie)[2]
    assert ask(guarded, "/act", '{"add": 2}', Cookie=cookie)[2] == "the sum is 2\n"
    assert json.loads(ask(guarded, "/scene", Cookie=cookie)[2]) == {"sum": 2, "role": "operate"}
    assert ask(guarded, "/act", '{"add": 3}', Authorization=f"Bearer {TOKEN}")[0] == 200


def test_who_has_the_token_for_viewing_sees_everything_and_does_only_what_viewers_may(guarded: Viewer):
    guarded.source.sum = 5
    cookie = ask(guarded, f"/?token={VIEW_TOKEN}")[1]["Set-Cookie"].split(";")[0]
    for held in ({"Cookie": cookie}, {"Authorization": f"Bearer {VIEW_TOKEN}"}):
        assert "the page" in ask(guarded, "/", **held)[2]
        assert json.loads(ask(guarded, "/scene", **held)[2]) == {"sum": 5, "role": "view"}
        assert '"sum": 5' in ask(guarded, "/stream?frames=1", **held)[2]
        assert ask(guarded, "/act", '{"add": 1}', **held)[::2] == (403, "viewers may set it to zero\n")
    assert guarded.source.sum == 5
    assert ask(guarded, "/act", '"zero"', Cookie=cookie)[0] == 200
    assert guarded.source.sum == 0
    # who has both may do what the greater one allows
    assert ask(guarded, "/act", '{"add": 1}', Cookie=cookie, Authorization=f"Bearer {TOKEN}")[0] == 200


@pytest.mark.parametrize("path", [f"/act?token={TOKEN}", f"/scene?token={TOKEN}", f"/scene?token={VIEW_TOKEN}"])
def test_the_token_in_an_address_opens_nothing_but_the_page(guarded: Viewer, path: str):
    assert ask(guarded, path)[0] == 401


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "1.2.3.4.5", ""])
def test_a_name_that_was_made_to_point_here_is_refused_even_with_the_token(guarded: Viewer, host: str):
    assert ask(guarded, "/act", '{"add": 1}', Host=host, Authorization=f"Bearer {TOKEN}")[0] == 403
    assert guarded.source.sum == 0


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"])
def test_pages_of_other_sites_are_refused_even_with_the_token(guarded: Viewer, origin: str):
    assert ask(guarded, "/act", '{"add": 1}', Origin=origin, Authorization=f"Bearer {TOKEN}")[0] == 403
    assert guarded.source.sum == 0


def test_the_computers_own_names_are_accepted(guarded: Viewer):
    for host in ("localhost", "127.0.0.1", "192.168.7.7", socket.gethostname(), f"{socket.gethostname()}.local"):
        assert ask(guarded, "/scene", Host=f"{host}:{guarded.port}", Authorization=f"Bearer {TOKEN}")[0] == 200


@pytest.mark.parametrize(
    ("address", "token", "view_token", "said"),
    [
        ("0.0.0.0", "", "", "expected a token"),
        ("192.168.1.2", "", "", "expected a token"),
        ("0.0.0.0", "short", "", "expected 16 or more"),
        ("0.0.0.0", "sixteen chars; HttpOnly", "", "letters and digits"),
        ("0.0.0.0", TOKEN, "short", "view_token has 5 characters"),
        ("0.0.0.0", TOKEN, TOKEN, "expected another"),
        ("127.0.0.1", "", VIEW_TOKEN, "expected both"),
        ("somewhere", TOKEN, "", "expected an IPv4 address"),
    ],
)
def test_a_page_that_anybody_could_act_on_is_not_served(address: str, token: str, view_token: str, said: str):
    with pytest.raises(ValueError, match=said):
        Access(address, token, view_token)


def test_other_pages_can_not_put_it_into_a_frame(guarded: Viewer):
    headers = ask(guarded, "/", Authorization=f"Bearer {TOKEN}")[1]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


@pytest.mark.slow
def test_silent_connections_hold_nobody_up(guarded: Viewer):
    """A request that never ends is given up, and others are served meanwhile."""
    with contextlib.ExitStack() as stack:
        for _ in range(50):
            raw = stack.enter_context(socket.create_connection(("127.0.0.1", guarded.port), timeout=6 * PATIENCE))
            raw.sendall(b"POST /act HTTP/1.1\r\nContent-Length: 99\r\n")
        assert ask(guarded, "/scene", Authorization=f"Bearer {TOKEN}")[0] == 200
        assert raw.recv(1) == b""
