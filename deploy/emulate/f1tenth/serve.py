"""An emulated RoboRacer car in real time: its VESC behind a pseudo-terminal, its lidar at a port of this computer."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable

from robo_rl.deploy.emulate.f1tenth import TICK
from robo_rl.deploy.emulate.f1tenth.wire import CarWire
from robo_rl.deploy.emulate.pty import serve as serve_terminal

LINE = 256
"""Bytes of a command that is not ended, after which it is forgotten."""


class LidarServer:
    """The lidar's side of its connection, one at a time; nothing waits."""

    def __init__(self, wire: CarWire) -> None:
        self.wire, self._heard, self._unsent = wire, b"", b""
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.setblocking(False)
        self._one: socket.socket | None = None

    @property
    def address(self) -> str:
        """HOST:PORT"""
        host, port = self._listening.getsockname()
        return f"{host}:{port}"

    def exchange(self, scans: list[bytes]) -> None:
        """Answer what has come, and send scans."""
        if self._one is None:
            with contextlib.suppress(BlockingIOError):
                self._one, _ = self._listening.accept()
                self._one.setblocking(False)
                self._one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._heard = self._unsent = b""
            return
        if not self.wire.lidar_open:
            self._leave()
            return
        answers: list[bytes] = []
        try:
            data = self._one.recv(4096)
            if not data:
                self._leave()
                return
            *lines, self._heard = (self._heard + data).split(b"\n")
            self._heard = self._heard[-LINE:]
            answers = [self.wire.ask_lidar(line.decode("ascii", "replace")) for line in lines]
        except BlockingIOError:
            pass
        except OSError:
            self._leave()
            return
        kept = self._unsent + b"".join(answers)
        waiting = kept + (b"" if self._unsent else b"".join(scans))  # without room a scan is left out, but none is cut
        try:
            self._unsent = waiting[self._one.send(waiting) :] if waiting else b""
        except BlockingIOError:
            self._unsent = kept
        except OSError:
            self._leave()

    def close(self) -> None:
        """No more."""
        self._leave()
        self._listening.close()

    def _leave(self) -> None:
        if self._one is not None:
            self._one.close()
            self._one = None
            self.wire.ask_lidar("QT")


def serve(
    wire: CarWire, announce: Callable[[str, str], None], each: Callable[[float], None], seconds: float = float("inf")
) -> None:
    """For some seconds; ``announce(terminal, lidar's address)``; ``each(s)`` is called with the time since then."""
    lidar, begun = LidarServer(wire), time.monotonic()

    def advance(step: float) -> None:
        each(time.monotonic() - begun)
        lidar.exchange(wire.advance(step))

    try:
        serve_terminal(lambda port: announce(port, lidar.address), wire.exchange, advance, TICK, seconds)
    finally:
        lidar.close()
