"""The process that talks to a policy server: the robot's own never sees a byte of it, and waits for nothing here.

It is started by ``robo_rl.deploy.robot.plans.source``, with the agreement on the first line of its standard input. Then
it gets requests there (number, time, ages, signals) and writes frames of a fixed form to its standard output: that the
server agrees, a plan, or why there is none. One request is under way at a time. Whatever is wrong with an answer, and
an answer that does not come in time, ends the connection, so that nothing late is taken for something new.
"""

from __future__ import annotations

import contextlib
import json
import logging
import ssl
import struct
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage, PayloadTooBig, WebSocketException
from websockets.sync.client import ClientConnection, connect

from robo_rl.deploy.robot.plans.msgpack import MessageError, pack, unpack
from robo_rl.deploy.robot.plans.terms import SENTENCE, PlanError, Terms
from robo_rl.files.sandbox import limit

MEMORY = 150 << 20
"""Bytes that it may take for what a server sends."""
YEARS = 1e9
"""s of processor time: it works as long as the robot does."""
OPENING = 5.0
"""s for connection, TLS, WebSocket and metadata."""
PAUSE = 0.2
"""s between two attempts."""
OLD = 16
"""Answers to earlier requests that are skipped while one is awaited."""
READY, PLAN, BROKEN, LOST, REFUSED = b"R", b"P", b"B", b"L", b"X"
"""Frames: the server agrees; a plan; a message is against the agreement; the connection is gone; it does not agree."""
HEAD = struct.Struct("<cIq")
"""Of a frame: its kind, bytes that follow, and of a plan its start (µs)."""
REQUEST = struct.Struct("<Iq")
"""Of a request: number and time (µs). The ages of the signals, s, and their values follow, all float32."""


class LostError(Exception):
    """There is no connection any more. The message says why."""


@dataclass(frozen=True)
class Where:
    """The server."""

    url: str
    authority: str
    """A file of the certificates that sign the server's, in place of the system's; ""."""
    patience: float
    """s that an answer may take."""


def main() -> None:
    """Until standard input ends."""
    logging.disable()
    requests, frames = sys.stdin.buffer, sys.stdout.buffer
    told = json.loads(requests.readline())
    where, terms = Where(**told["where"]), Terms.from_json(json.dumps(told["terms"]))
    limit(MEMORY, YEARS)
    with contextlib.suppress(BrokenPipeError, EOFError):
        while True:
            try:
                session(where, terms, requests, frames)
            except LostError as error:
                tell(frames, LOST, str(error))
            except (PlanError, MessageError) as error:
                tell(frames, BROKEN, str(error))
            time.sleep(PAUSE)


def tell(frames: Any, kind: bytes, text: str = "") -> None:
    """Write a frame with a sentence."""
    data = text.encode("ascii", "replace")[:SENTENCE]
    frames.write(HEAD.pack(kind, len(data), 0) + data)
    frames.flush()


def session(where: Where, terms: Terms, requests: Any, frames: Any) -> None:
    """One connection, until it ends by an error."""
    try:
        context = ssl.create_default_context(cafile=where.authority or None) if where.url.startswith("wss:") else None
        link = connect(
            where.url, ssl=context, proxy=None, compression=None, max_size=terms.most_bytes, max_queue=2,
            open_timeout=OPENING, ping_interval=None, close_timeout=0.1, user_agent_header="robo-rl",
        )  # fmt: skip
    except (OSError, WebSocketException, EOFError, ValueError, RuntimeError, MemoryError) as error:
        raise LostError(f"{where.url}: {opened(error)}") from None
    with closing(link):
        rows, needs = agreed(link, terms, frames)
        tell(frames, READY)
        while True:
            request, number = asked(requests, terms, needs)
            with lost_told():
                link.send(pack(request))
            plan = answered(link, terms, rows, number, where.patience)
            data = struct.pack("<I", plan.number) + plan.rows.tobytes()
            frames.write(HEAD.pack(PLAN, len(data), plan.start) + data)
            frames.flush()


def opened(error: Exception) -> str:
    """Why there is no connection."""
    if isinstance(error, InvalidMessage | InvalidHandshake):
        return (
            f"it is no WebSocket server ({ascii(str(error))[:80]}); LeRobot's asynchronous server speaks gRPC with "
            "pickles, which run code when they are read, and is refused"
        )
    return f"no connection ({type(error).__name__}: {ascii(str(error))[:120]})"


@contextlib.contextmanager
def closing(link: ClientConnection) -> Any:
    """At the end, let go of the connection without waiting for the other side."""
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            link.socket.close()


@contextlib.contextmanager
def lost_told() -> Any:
    """What websockets raises, as a sentence."""
    try:
        yield
    except TimeoutError:
        raise
    except PayloadTooBig as error:
        raise PlanError(f"the server's message is larger than a plan can be: {ascii(str(error))[:80]}") from None
    except ConnectionClosed as error:
        if error.sent is not None and error.sent.code == 1009:
            raise PlanError(
                f"the server's message is larger than a plan can be: {ascii(error.sent.reason)[:80]}"
            ) from None
        raise LostError(f"the server has closed the connection ({ascii(str(error))[:80]})") from None
    except (OSError, WebSocketException, EOFError) as error:
        raise LostError(f"the connection is lost ({type(error).__name__}: {ascii(str(error))[:80]})") from None


def received(link: ClientConnection, until: float, what: str) -> Any:
    """The value of the server's next message."""
    try:
        with lost_told():
            data = link.recv(timeout=max(0.0, until - time.monotonic()))
    except TimeoutError:
        raise LostError(f"{what} did not come in time") from None
    if isinstance(data, str):
        raise PlanError(f"the server sent a text, as openpi's does with its errors: {data[-120:]!a}")
    return unpack(data)


def agreed(link: ClientConnection, terms: Terms, frames: Any) -> tuple[int, tuple[str, ...]]:
    """What the server's metadata says; a server that does not agree is not asked anything."""
    try:
        return terms.agreed(received(link, time.monotonic() + OPENING, "the server's metadata"))
    except (PlanError, MessageError) as error:
        tell(frames, REFUSED, str(error))
        raise


def asked(requests: Any, terms: Terms, needs: tuple[str, ...]) -> tuple[dict[str, Any], int]:
    """The robot's next request, as the server gets it, and its number."""
    sizes = [int(np.prod(shape)) for _, shape in terms.signals]
    size = REQUEST.size + 4 * (len(sizes) + sum(sizes))
    data = requests.read(size)
    if len(data) < size:
        raise EOFError
    number, now = REQUEST.unpack_from(data)
    flat = np.frombuffer(data, np.float32, offset=REQUEST.size)
    ages, values = flat[: len(sizes)], np.split(flat[len(sizes) :], np.cumsum(sizes)[:-1])
    signals: Mapping[str, Any] = {
        name: value.reshape(shape)
        for (name, shape), value, age in zip(terms.signals, values, ages, strict=True)
        if name in needs and np.isfinite(age)
    }
    told = {name: float(age) for (name, _), age in zip(terms.signals, ages, strict=True) if name in signals}
    return {"id": number, "time": 1e-6 * now, "signals": signals, "ages": told}, number


def answered(link: ClientConnection, terms: Terms, rows: int, number: int, patience: float) -> Any:
    """The plan that answers the request ``number``; answers to earlier ones are skipped."""
    until = time.monotonic() + patience
    for _ in range(OLD):
        plan = terms.plan(received(link, until, f"the answer to request {number}"), rows)
        if plan.number == number:
            return plan
        if plan.number > number:
            raise PlanError(f"the answer's id is {plan.number}; the last request was {number}")
    raise PlanError(f"{OLD} answers in a row were to earlier requests than {number}")


if __name__ == "__main__":
    main()
