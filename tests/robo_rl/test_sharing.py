"""A policy at an address is opened after its digest was confirmed, and only then."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.server
import io
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from robo_rl.cli import main as command
from robo_rl.commands.looking.play import main
from robo_rl.policies import sharing
from robo_rl.policies.sharing import fetched
from robo_rl.zoo import located

BUNDLE = located("zoo:quadrotor-hover")
DIGEST = hashlib.sha256(BUNDLE.read_bytes()).hexdigest()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An address with three files, and a cache of its own."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "hover.onnx").write_bytes(BUNDLE.read_bytes())
    (folder / "page.html").write_text("no policy")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def server_that_is_none(request: pytest.FixtureRequest) -> Iterator[str]:
    """It sends bytes, and says no more."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        with contextlib.suppress(OSError):
            connection, _ = listener.accept()
            connection.recv(1000)
            while request.param is None:  # a byte every now and then, until nobody listens
                connection.sendall(b"H")
                time.sleep(0.02)
            connection.sendall(request.param)
            connection.close()

    threading.Thread(target=answer, daemon=True).start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/hover.onnx"
    listener.close()


@pytest.mark.parametrize(
    "server_that_is_none",
    [
        b"", b"\x1b[31mSSH-2.0\r\n", b"\x1b]0;title\x07" * 99 + b"\r\n\r\n", b"\0" * 200_000,
        b"HTTP/1.1 404 \x1b[31mred\r\n\r\n", b"HTTP/1.1 99999 x\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 500,
        b"HTTP/1.1 302 x\r\nLocation: file:///etc/passwd\r\n\r\n",
        b"HTTP/1.1 302 x\r\nLocation: ftp://127.0.0.1/hover.onnx\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nno more",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz",
    ],
    indirect=True,
)  # fmt: skip
def test_a_server_that_is_none_is_told_in_a_sentence(
    server_that_is_none: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command(["play", server_that_is_none, "--digest", DIGEST])
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert "it can't be read: " in said
    assert "\x1b" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize("server_that_is_none", [None], indirect=True)
def test_a_server_that_trickles_is_given_up(server_that_is_none: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "PATIENCE", 1.0)
    with pytest.raises(ValueError, match="no whole answer within 1 s"):
        fetched(server_that_is_none, DIGEST)


class Terminal(io.StringIO):
    """Somebody types."""

    def isatty(self) -> bool:
        return True


def test_with_its_digest_it_is_the_file_at_the_address(site: str) -> None:
    assert fetched(f"{site}/hover.onnx", DIGEST).read_bytes() == BUNDLE.read_bytes()


def test_the_digest_is_shown_before_it_is_confirmed(
    site: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert fetched(f"{site}/hover.onnx", None).name == "hover.onnx"
    told = capsys.readouterr()
    assert DIGEST in told.out + told.err
    monkeypatch.setattr("sys.stdin", Terminal("\n"))
    with pytest.raises(ValueError, match="not confirmed"):
        fetched(f"{site}/hover.onnx", None)


@pytest.mark.parametrize(
    ("path", "digest", "sentence"),
    [
        ("hover.onnx", "0" * 64, f"its SHA-256 is {DIGEST}; expected 0000"),
        ("hover.onnx", "abc", "--digest is 'abc'; expected 64 digits"),
        ("hover.onnx", None, f"nobody is here to confirm its digest; to run it: --digest {DIGEST}"),
        ("nothing.onnx", DIGEST, "it can't be read: "),
        ("page.html", DIGEST, "expected …/NAME.onnx"),
        ("..%2Fhidden%2F.onnx", DIGEST, "expected …/NAME.onnx"),
        ("", DIGEST, "expected …/NAME.onnx"),
    ],
)
def test_what_is_not_the_wanted_file_is_refused(
    site: str, path: str, digest: str | None, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(ValueError, match=r"^") as refused:
        fetched(f"{site}/{path}", digest)
    assert sentence in str(refused.value)


def test_more_than_any_bundle_has_is_not_read(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "MOST", 1000)
    with pytest.raises(ValueError, match="larger than"):
        fetched(f"{site}/hover.onnx", DIGEST)


def test_play_opens_an_address(site: str, tmp_path: Path) -> None:
    picture = tmp_path / "hover.png"
    assert main(f"{site}/hover.onnx", digest=DIGEST, picture=picture, seconds=0.5, episodes=1) == 0
    assert picture.stat().st_size > 1000
