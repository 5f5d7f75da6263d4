"""Policies that somebody shares: a file at an address, which is opened after its digest was shown.

A bundle is data. What it could harm is a robot, so who plays one that came over the network confirms its SHA-256, as
``sha256sum`` prints it and its author tells it. A task's source in a bundle is only run when that is asked for.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from robo_rl.console import say
from robo_rl.files.escaping import printable, terminal

MOST = 64 << 20
"""Bytes of a file. Bundles have some 10 to 1000 kB."""
PATIENCE = 30.0
"""s that it may take in all."""
HANDLERS = (
    urllib.request.ProxyHandler, urllib.request.UnknownHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler,
    urllib.request.HTTPDefaultErrorHandler, urllib.request.HTTPRedirectHandler, urllib.request.HTTPErrorProcessor,
)  # fmt: skip
"""HTTP alone, wherever a server sends us on to: no files, no FTP."""


def is_address(target: str) -> bool:
    """Whether a target is an address and not a file."""
    return target.startswith(("https://", "http://"))


def fetched(address: str, digest: str | None, as_json: bool = False) -> Path:
    """The file at an address, in the cache, after its SHA-256 was compared with ``digest`` or confirmed.

    ValueError if it can't be had, is too large, or is another file, and without a digest if nobody confirms it.
    """
    if digest is not None and not re.fullmatch("[0-9a-f]{64}", digest):
        raise ValueError(f"--digest is '{digest}'; expected 64 digits from 0 to f, as 'sha256sum FILE' prints them")
    name = Path(urllib.parse.unquote(urllib.parse.urlsplit(address).path)).name
    if not re.fullmatch(r"[\w-][\w.-]*\.onnx", name, re.ASCII):
        raise ValueError(f"{address}: it does not end with the name of a bundle; expected …/NAME.onnx")
    data = _read(address)
    found = hashlib.sha256(data).hexdigest()
    say(f"{name}: {len(data):,} bytes, SHA-256 {found}", as_json)
    if digest is None:
        _confirm(address, found)
    elif found != digest:
        raise ValueError(f"{address}: its SHA-256 is {found}; expected {digest}")
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "robo-rl" / "shared" / found
    root.mkdir(parents=True, exist_ok=True)
    path = root / name
    partial = root / f".{os.getpid()}"
    partial.write_bytes(data)
    partial.replace(path)
    return path


def _read(address: str) -> bytes:
    """What is there, in ``PATIENCE`` as a whole, however steadily it trickles in."""
    shown = printable(address)[:200]
    found: list[bytes | Exception] = []
    reader = threading.Thread(target=lambda: found.append(_answer(address)), daemon=True)
    reader.start()
    reader.join(PATIENCE)
    if not found:
        raise ValueError(f"{shown}: it can't be read: no whole answer within {PATIENCE:g} s")
    (data,) = found
    if isinstance(data, Exception):
        reason = data.reason if isinstance(data, urllib.error.URLError) else data
        raise ValueError(f"{shown}: it can't be read: {printable(str(reason))[:200] or type(reason).__name__}")
    if len(data) > MOST:
        raise ValueError(f"{shown}: it is larger than {MOST >> 20} MiB, which no bundle is")
    return data


def _answer(address: str) -> bytes | Exception:
    """What a server sends, or what went wrong: it may be no web server at all."""
    opener = urllib.request.OpenerDirector()
    for handler in HANDLERS:
        opener.add_handler(handler())
    try:
        with opener.open(address, timeout=PATIENCE) as answer:
            data: bytes = answer.read(MOST + 1)
            if answer.length and len(data) <= MOST:
                return ValueError(f"it was cut off after {len(data)} bytes")
            return data
    except Exception as error:  # of urllib and http.client, whose errors share no type below Exception
        return error


def _confirm(address: str, found: str) -> None:
    if not sys.stdin.isatty():
        raise ValueError(f"{address}: nobody is here to confirm its digest; to run it: --digest {found}")
    print(terminal("Is this the digest that its author tells? [y/N] "), end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ValueError(f"{address}: not confirmed")
