"""A Hokuyo on the network, such as RoboRacer cars have: its newest scan, by the beams of a contract."""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from robo_rl.contract import Scan
from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.hokuyo.scip import (
    ALREADY,
    CLOCK,
    NOTHING,
    OK,
    SCANNING,
    Answer,
    Distances,
    Layout,
    Parser,
    command,
    read_layout,
    read_scan,
    scan_command,
)
from robo_rl.deploy.robot.drivers.serial_port import Port, drain
from robo_rl.deploy.robot.drivers.ticks import Ticks
from robo_rl.deploy.robot.scans import ScanError, ranges_of

ADDRESS, PORT = "192.168.0.10", 10940
"""As it comes (Hokuyo, UST-10LX specification)."""
CONNECTING, ANSWERING = 3.0, 1.0
"""s for the network, and for an answer."""
AT_ONCE = 16384
"""Bytes, five scans: one comes every 25 ms."""


class TcpPort:
    """A connection, as a ``serial_port.Port``."""

    def __init__(self, address: str) -> None:
        """``HOST`` or ``HOST:PORT``. DriverError where nothing answers."""
        host, _, port = address.partition(":")
        if not host or not (port or "1").isascii() or not (port or "1").isdigit() or int(port or 1) > 65535:
            raise DriverError(f"{address[:60]!r} is no lidar's address; expected one such as {ADDRESS}:{PORT}")
        self.name = f"{host}:{port or PORT}"
        try:
            self._socket = socket.create_connection((host, int(port or PORT)), CONNECTING)
        except OSError as error:
            raise DriverError(
                f"no lidar answers at {self.name} ({error.strerror or error}); give this computer an address beside "
                "it, such as 192.168.0.15"
            ) from None
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def write(self, data: bytes) -> None:
        """See ``Port``."""
        self._socket.sendall(data)

    def read(self, timeout: float) -> bytes:
        """See ``Port``."""
        ready, _, _ = select.select([self._socket], [], [], max(0.0, timeout))
        if not ready:
            return b""
        if not (data := self._socket.recv(AT_ONCE)):
            raise OSError(errno.ECONNRESET, f"{self.name}: it closed the connection")
        return data

    def close(self) -> None:
        """See ``Port``."""
        with contextlib.suppress(OSError):
            self._socket.close()


class Lines(Protocol):
    """What a scan is, as ``robo_rl.deploy.robot.scans`` reads a LaserScan."""

    angle_min: float
    angle_increment: float
    range_min: float
    range_max: float
    ranges: np.ndarray


@dataclass(frozen=True)
class Beams:
    """See ``Lines``. rad and m; infinite where nothing is within range, NaN where nothing is known."""

    angle_min: float
    angle_increment: float
    range_min: float
    range_max: float
    ranges: np.ndarray


class Lidar:
    """See the module's text."""

    def __init__(self, port: Port, wanted: Scan, count: int, clock: Callable[[], float] = time.monotonic) -> None:
        """``wanted``: the contract's scan, of so many beams."""
        self.port, self._wanted, self._count, self._now = port, wanted, count, clock
        self._parser, self._ticks = Parser(), Ticks(CLOCK)
        self._layout: Layout | None = None
        self.newest: tuple[np.ndarray, int] | None = None
        """(count,) m, and when it was measured, µs."""
        self.scans = self.refused = 0
        self.problem = ""

    def connect(self) -> str:
        """Start it; its model. DriverError where it is not to be had, or does not see what the contract needs."""
        self._ask("QT")  # whoever used it before may have left it sending
        answer = self._ask("PP")
        try:
            self._layout = layout = read_layout(answer)
            ranges_of(self._beams(Distances(0, layout.first, self._far(layout))), self._wanted, self._count)
        except ScanError as error:
            raise DriverError(f"the lidar {self._layout.model if self._layout else ''}: {error}") from None
        except ValueError as error:
            raise DriverError(f"the lidar's answer is none of SCIP 2: {error}") from None
        if (status := self._ask("BM").status) not in (OK, ALREADY):
            raise DriverError(f"the lidar does not switch its laser on: status {status}")
        self._ask(scan_command(layout.first, layout.last))
        end = self._now() + ANSWERING
        while self.newest is None:
            if self._now() > end:
                raise DriverError(f"the lidar sends no scans{f': {self.problem}' if self.problem else ''}")
            self._take(0.02)
        return layout.model

    def poll(self) -> None:
        """Take what has come. While something is wrong, ``newest`` gets no newer, and ``problem`` tells."""
        self.problem = ""
        try:
            self._take(0.0)
        except OSError as error:
            self.problem = f"the lidar is gone ({error.strerror or error})"

    def close(self) -> None:
        """It stops sending."""
        with contextlib.suppress(OSError):
            self.port.write(command("QT"))
        self.port.close()

    def _ask(self, text: str) -> Answer:
        self.port.write(command(text))
        end = self._now() + ANSWERING
        try:
            while self._now() < end:
                for answer in self._parser.feed(self.port.read(0.02)):
                    if answer.command == text:
                        return answer
        except OSError as error:
            raise DriverError(f"the lidar is gone ({error.strerror or error})") from None
        raise DriverError(f"the lidar does not answer {text[:2]}; is it one that speaks SCIP 2?")

    def _take(self, timeout: float) -> None:
        newest = None
        for data in drain(self.port, timeout):
            for answer in self._parser.feed(data):
                if answer.status == SCANNING:
                    newest = self._read(answer) or newest
                elif answer.command.startswith("MD") and answer.status != OK:
                    self.problem = f"the lidar stopped: status {answer.status}"
        if newest is not None:
            try:
                ranges = ranges_of(self._beams(newest), self._wanted, self._count)
                self.newest = (ranges.astype(np.float32), round(1e6 * self._ticks.sent(self._now())))
            except ScanError as error:
                self.problem, self.refused = f"the scan: {error}", self.refused + 1

    def _read(self, answer: Answer) -> Distances | None:
        try:
            found = read_scan(answer)
        except ValueError:
            self.refused += 1
            return None
        self.scans += 1
        return found if self._ticks.new(found.tick) else None

    def _beams(self, distances: Distances) -> Beams:
        layout = self._layout
        assert layout is not None
        step = 2 * np.pi / layout.steps
        ranges = 1e-3 * distances.millimetres
        ranges[distances.millimetres >= min(layout.farthest, NOTHING)] = np.inf
        ranges[distances.millimetres < layout.nearest] = np.nan
        return Beams((distances.first - layout.front) * step, step, 0.0, 0.0, ranges)

    @staticmethod
    def _far(layout: Layout) -> np.ndarray:
        return np.full(layout.last - layout.first + 1, NOTHING)
