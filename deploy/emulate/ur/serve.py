"""An emulated UR5e in real time, at an address of this computer: RTDE on 30004, programs on 30002."""

from __future__ import annotations

import contextlib
import socket
import sys
import time
from collections.abc import Callable

from robo_rl.deploy.emulate.ur import TICK
from robo_rl.deploy.emulate.ur.rtde import Controller
from robo_rl.deploy.emulate.ur.wire import UrWire
from robo_rl.deploy.robot.drivers.rtde import messages as m
from robo_rl.deploy.robot.drivers.rtde.link import AT_ONCE, PROGRAMS
from robo_rl.files.ports import opening

LONGEST = 0.1
"""s that it moves on at once: after a pause of this computer it does not jump."""
PROGRAM = 1 << 16
"""Bytes of a program, at most."""


def serve(
    wire: UrWire, host: str, announce: Callable[[], None], each: Callable[[float], None], seconds: float = float("inf")
) -> None:
    """For some seconds. ``announce()`` is called once it listens, ``each(s)`` with the time since then. ValueError
    where one of the ports is taken.
    """
    with contextlib.ExitStack() as open_ones:
        exchanges, programs = (_listen(host, port, open_ones) for port in (m.PORT, PROGRAMS))
        exchanges.setblocking(False)
        programs.setblocking(False)
        announce()
        lines: dict[socket.socket, Controller] = {}
        texts: dict[socket.socket, bytes] = {}
        begun = last = time.monotonic()
        left = 0.0
        try:
            while (now := time.monotonic()) - begun < seconds:
                each(now - begun)
                if (line := _accepted(exchanges)) is not None:
                    lines[line] = wire.open()
                if (line := _accepted(programs)) is not None:
                    texts[line] = b""
                _take_programs(wire, texts)
                for line in list(lines):
                    _exchange(wire, lines, line)
                left += min(now - last, LONGEST)
                last = now
                while left >= TICK:
                    left -= TICK
                    wire.advance()
                    for line in list(lines):
                        _tell(wire, lines, line)
                time.sleep(max(0.0, now + TICK - left - time.monotonic()))
        finally:
            for line in (*lines, *texts):
                line.close()


def _listen(host: str, port: int, open_ones: contextlib.ExitStack) -> socket.socket:
    with opening(port, "give the emulated robot another address: --address 127.0.0.2"):
        return open_ones.enter_context(socket.create_server((host, port)))


def _accepted(listening: socket.socket) -> socket.socket | None:
    try:
        line, _ = listening.accept()
    except BlockingIOError:
        return None
    line.setblocking(False)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return line


def _exchange(wire: UrWire, lines: dict[socket.socket, Controller], line: socket.socket) -> None:
    """Answer what has come."""
    try:
        if not (data := line.recv(AT_ONCE)):
            raise ConnectionResetError
        if answer := wire.send(lines[line], data):
            line.send(answer)
    except BlockingIOError:
        pass
    except (OSError, ValueError):
        _leave(lines, line)


def _tell(wire: UrWire, lines: dict[socket.socket, Controller], line: socket.socket) -> None:
    """The state of this tick; who does not read is left."""
    try:
        if wire.fault == "unplugged":
            raise ConnectionResetError
        told = wire.tell(lines[line])
        if told and line.send(told) != len(told):
            raise BlockingIOError
    except OSError:
        _leave(lines, line)


def _leave(lines: dict[socket.socket, Controller], line: socket.socket) -> None:
    lines.pop(line).close()
    line.close()


def _take_programs(wire: UrWire, texts: dict[socket.socket, bytes]) -> None:
    for line in list(texts):
        with contextlib.suppress(BlockingIOError):
            try:
                data = line.recv(AT_ONCE)
            except ConnectionError:
                data = b""
            texts[line] = (texts[line] + data)[:PROGRAM]
            if texts[line].endswith(b"\nend\n"):
                if why := wire.run(texts[line].decode("ascii", "replace")):
                    print(why, file=sys.stderr, flush=True)
                texts[line] = b""
            if not data:
                line.close()
                del texts[line]
