"""What may be wrong with a plan server, each with its name, for tests and for ``robo-rl emulate plan-server``."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from robo_rl.deploy.robot.plans.msgpack import pack

if TYPE_CHECKING:
    from websockets.sync.server import ServerConnection

    from robo_rl.deploy.emulate.plans.serve import PlanServer

STALL = 60.0
"""s."""
How = Callable[["PlanServer", "ServerConnection", "dict[str, Any]"], None]
"""By the server, on a connection, in place of sending a right answer."""


@dataclass(frozen=True)
class Fault:
    """What is wrong, and how."""

    text: str
    how: How = lambda server, link, answer: link.send(pack(answer))
    borne: bool = False
    """Whether the robot goes on, as plans that can be followed still come."""


def changed(**parts: Any) -> How:
    """Other values under these keys; a function is called with the right one."""

    def how(server: PlanServer, link: ServerConnection, answer: dict[str, Any]) -> None:
        link.send(pack({**answer, **{k: v(answer[k]) if callable(v) else v for k, v in parts.items()}}))

    return how


def sent(data: Callable[[bytes], bytes | str]) -> How:
    """Other bytes in place of the message."""
    return lambda server, link, answer: link.send(data(pack(answer)))


def raw(make: Callable[[bytes], list[bytes]], pause: float = 0.0, closes: bool = False) -> How:
    """Bytes past the protocol, part by part."""

    def how(server: PlanServer, link: ServerConnection, answer: dict[str, Any]) -> None:
        for part in make(pack(answer)):
            link.socket.sendall(part)
            time.sleep(pause)
        if closes:
            link.socket.shutdown(socket.SHUT_RDWR)

    return how


def frame(size: int, code: int = 0x82) -> bytes:
    """The head of a WebSocket frame (RFC 6455, 5.2) of so many bytes."""
    return bytes([code, 127]) + size.to_bytes(8, "big")


def flood(data: bytes) -> list[bytes]:
    """A billion bytes, a MB at a time."""
    return [frame(10**9), *[bytes(1 << 20)] * 1000]


def _repeated(server: PlanServer, link: ServerConnection, answer: dict[str, Any]) -> None:
    link.send(pack(server.before or answer))
    link.send(pack(answer))


def _replayed(server: PlanServer, link: ServerConnection, answer: dict[str, Any]) -> None:
    link.send(pack({**(server.before or answer), "id": answer["id"]}))


def _only_old(server: PlanServer, link: ServerConnection, answer: dict[str, Any]) -> None:
    for _ in range(20):
        link.send(pack({**answer, "id": max(0, answer["id"] - 1)}))


def _stalled(server: PlanServer, link: ServerConnection, answer: dict[str, Any]) -> None:
    time.sleep(STALL)


def _with(index: tuple[int, ...], value: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(rows: np.ndarray) -> np.ndarray:
        rows = rows.copy()
        rows[index] = value
        return rows

    return change


def _jumping(server: PlanServer, link: ServerConnection, answer: dict[str, Any]) -> None:
    rows, low, high = answer["actions"].copy(), server.terms.lower, server.terms.upper
    rows[1::2], rows[::2] = np.array(low, np.float32), np.array(high, np.float32)
    link.send(pack({**answer, "actions": rows}))


def _far(server: PlanServer, link: ServerConnection, answer: dict[str, Any]) -> None:
    middle = 0.5 * (np.array(server.terms.lower) + np.array(server.terms.upper))
    ends = np.where(answer["actions"][0] < middle, server.terms.upper, server.terms.lower)
    link.send(pack({**answer, "actions": np.tile(ends.astype(np.float32), (len(answer["actions"]), 1))}))


PICKLE = (
    b"\x80\x04\x95\x1f\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94"
    b"\x8c\x04true\x94\x85\x94R\x94."
)
"""What would run the command "true" if it were unpickled."""
OBJECTS = {b"__ndarray__": True, b"data": PICKLE, b"dtype": "|O", b"shape": [1]}

FAULTS: dict[str, Fault] = {
    "": Fault("nothing"),
    "stall": Fault("answers stop", _stalled),
    "nan": Fault("a target is not a number", changed(actions=_with((3, 0), np.nan))),
    "infinite": Fault("a target is infinite", changed(actions=_with((-1, -1), np.inf))),
    "beyond": Fault("a target is beyond its limits", changed(actions=_with((5, 1), 9.0))),
    "wrong shape": Fault("a command is missing", changed(actions=lambda rows: rows[:, 1:])),
    "short": Fault("there are fewer rows than agreed", changed(actions=lambda rows: rows[:-1])),
    "integers": Fault("the targets are whole numbers", changed(actions=lambda rows: rows.astype(np.int32))),
    "jump": Fault("targets jump from row to row", _jumping),
    "far": Fault("a plan begins far from where the robot is", _far),
    "replayed": Fault("the last plan comes again, with the new number", _replayed),
    "repeated": Fault("the last answer comes again before each", _repeated, borne=True),
    "reordered": Fault("only answers to earlier requests come", _only_old),
    "wrong id": Fault("an answer has a number that was not asked", changed(id=lambda number: number + 7)),
    "wrong dt": Fault("rows are a hundredth as far apart", changed(dt=lambda dt: 0.01 * dt)),
    "infinite t0": Fault("the plan begins never", changed(t0=float("inf"))),
    "future t0": Fault("the plan begins in a minute", changed(t0=lambda start: start + 60.0)),
    "old t0": Fault("the plan began a minute ago", changed(t0=lambda start: start - 60.0)),
    "names permuted": Fault("the columns have another order", changed(names=lambda names: names[::-1])),
    "degrees": Fault("the units are others", changed(units=lambda units: ["deg" for _ in units])),
    "other frame": Fault("the frames are others", changed(frames=lambda frames: ["world" for _ in frames])),
    "missing": Fault("the answer has no actions", changed(actions=None)),
    "text frame": Fault("a traceback comes as text, as openpi sends it", sent(lambda data: "Traceback: out of memory")),
    "noise": Fault("random bytes come", sent(lambda data: random.Random(0).randbytes(len(data)))),
    "cut": Fault("half of the message comes", sent(lambda data: data[: len(data) // 2])),
    "doubled": Fault("more follows the message", sent(lambda data: data + data)),
    "nested": Fault("lists inside each other, 60,000 deep", sent(lambda data: b"\x91" * 60000 + b"\xc0")),
    "claimed": Fault("a list that says it has 4e9 values", sent(lambda data: b"\xdd\xff\xff\xff\xff" + data)),
    "huge array": Fault("an array that says it has 2e9 numbers", changed(
        actions={b"__ndarray__": True, b"data": b"", b"dtype": "<f4", b"shape": [1 << 30, 2]})),
    "pickle": Fault("a pickle comes that would run a command", sent(lambda data: PICKLE)),
    "objects": Fault("an array of pickled objects comes", changed(actions=OBJECTS)),
    "1e9 bytes": Fault("a message of a billion bytes comes", raw(flood)),
    "endless parts": Fault("a message never ends, part by part", raw(
        lambda data: [frame(1 << 12, 0x02) + bytes(1 << 12), *[frame(1 << 12, 0x00) + bytes(1 << 12)] * 250000])),
    "slow bytes": Fault("a byte comes each tenth of a second", raw(
        lambda data: [frame(len(data)), *[data[k : k + 1] for k in range(600)]], pause=0.1)),
    "compressed": Fault("a compressed frame comes, which was not agreed", raw(
        lambda data: [frame(len(data), 0xC2) + data])),
    "no frame": Fault("bytes come that are no WebSocket frame", raw(lambda data: [b"\xff" * 64])),
    "closes": Fault("it closes in the middle of a message", raw(
        lambda data: [frame(len(data)) + data[:50]], closes=True)),
    "vanishes": Fault("it closes the connection", raw(lambda data: [], closes=True)),
    "other contract": Fault("from now on it is a server for another robot"),
    "other rate": Fault("from now on its rows are 0.5 s apart"),
    "wider": Fault("from now on its plans may go beyond the limits"),
    "no metadata": Fault("from now on it says nothing of its plans, as openpi's does"),
    "needs more": Fault("from now on it wants an image that the robot does not have"),
}  # fmt: skip
"""By name."""


def _said(**parts: Any) -> Callable[[dict[str, Any]], bytes]:
    return lambda told: pack({"plan": {**told["plan"], **{k: v(told["plan"][k]) for k, v in parts.items()}}})


METADATA: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "other contract": _said(names=lambda names: [f"leg/{k}" for k in range(12)]),
    "other rate": _said(dt=lambda dt: 0.5),
    "wider": _said(upper=lambda upper: [10.0 * x for x in upper]),
    "no metadata": lambda told: pack({"action_horizon": 50}),
    "needs more": _said(signals=lambda names: [*names, "wrist_image"]),
}
"""What is said first, by the faults of that."""
