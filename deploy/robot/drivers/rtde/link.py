"""A controller's two ports: RTDE on 30004, and on 30002 (the secondary interface) the program that it shall run."""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.rtde import messages as m
from robo_rl.deploy.robot.drivers.serial_port import Port

PROGRAMS = 30002
CONNECTING, ANSWERING = 3.0, 1.0
"""s for the network, and for an answer."""
AT_ONCE = 65536


class Tcp:
    """A connection, as a ``serial_port.Port``."""

    def __init__(self, host: str, port: int) -> None:
        """DriverError where nothing answers."""
        self.name = f"{host}:{port}"
        try:
            self._socket = socket.create_connection((host, port), CONNECTING)
        except OSError as error:
            raise DriverError(
                f"no robot answers at {self.name} ({error.strerror or error}); is it switched on, and its address in "
                "this network?"
            ) from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)

    def write(self, data: bytes) -> None:
        """See ``Port``."""
        if self._socket.send(data) != len(data):  # a robot that takes nothing any more
            raise OSError(errno.ENOBUFS, f"{self.name}: it takes no more bytes")

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
    """How a controller is reached."""

    def exchange(self) -> Port:
        """Opens RTDE. DriverError where it does not answer."""

    def programs(self) -> Port:
        """Opens the interface that takes programs. DriverError where it does not answer."""


class Network:
    """``Lines`` to an address."""

    def __init__(self, host: str) -> None:
        self.host = host

    def exchange(self) -> Port:
        """See ``Lines``."""
        return Tcp(self.host, m.PORT)

    def programs(self) -> Port:
        """See ``Lines``."""
        return Tcp(self.host, PROGRAMS)


class Exchange:
    """RTDE, set up: states in, registers out."""

    def __init__(self, port: Port, clock: Callable[[], float] = time.monotonic) -> None:
        self.port, self._now = port, clock
        self._packages = m.Packages()
        self._waiting: list[tuple[bytes, bytes]] = []
        self._outputs: m.Recipe | None = None
        self._inputs: m.Recipe | None = None
        self.texts: list[str] = []
        """What the controller said of late."""

    def set_up(self, outputs: Sequence[str], rate: float, inputs: Sequence[str]) -> str:
        """Agree on the protocol and the fields; the controller's version. DriverError where it does not."""
        if self._ask(m.PROTOCOL, struct.pack(">H", m.VERSION)) != b"\1":
            raise DriverError("the controller does not speak version 2 of RTDE; update its PolyScope to 5.4 or later")
        version = self._ask(m.CONTROLLER)
        if len(version) != 16:
            raise DriverError(f"the controller's version has {len(version)} bytes; expected 16")
        major, minor, bugfix, build = struct.unpack(">4I", version)
        if major < 5:
            raise DriverError(f"the controller has the version {major}.{minor}; expected an e-Series, 5 or later")
        self._outputs = self._recipe(m.OUTPUTS, struct.pack(">d", rate), outputs)
        self._inputs = self._recipe(m.INPUTS, b"", inputs)
        if self._ask(m.START) != b"\1":
            raise DriverError("the controller does not start RTDE")
        return f"{major}.{minor}.{bugfix}.{build}"

    def send(self, values: m.Values) -> None:
        """Registers. OSError where the line is gone."""
        assert self._inputs is not None
        self.port.write(m.package(m.DATA, self._inputs.encode(values)))

    def states(self, timeout: float) -> list[m.Values]:
        """All that have come; waits for the first bytes. OSError where the line is gone, ValueError where what comes
        is no RTDE of ours, or it was paused.
        """
        found = []
        self._waiting += self._packages.feed(self.port.read(timeout))
        came, self._waiting = self._waiting, []
        for kind, payload in came:
            if kind == m.DATA and self._outputs is not None:
                found.append(self._outputs.decode(payload))
            elif kind == m.TEXT:
                self.texts = (
                    [*self.texts[-4:], payload[1 : 1 + payload[0]].decode("ascii", "replace")] if payload else []
                )
            elif kind == m.PAUSE:
                raise ValueError("RTDE was paused")
            else:
                raise ValueError(f"a package of the type {kind!r} came, that was not asked for")
        return found

    def _recipe(self, kind: bytes, before: bytes, names: Sequence[str]) -> m.Recipe:
        answer = self._ask(kind, before + ",".join(names).encode())
        types = answer[1:].decode("ascii", "replace").split(",")
        for name, found in zip(names, types, strict=False):
            if found == m.TAKEN:
                raise DriverError(f"another program writes {name} by RTDE; end it first")
            if found == m.MISSING:
                raise DriverError(f"the controller does not know the field {name}; update its PolyScope")
        try:
            return m.Recipe(answer[0] if answer else 0, names, types)
        except ValueError as error:
            raise DriverError(f"the controller's answer is none of RTDE: {error}") from None

    def _ask(self, kind: bytes, payload: bytes = b"") -> bytes:
        end = self._now() + ANSWERING
        try:
            self.port.write(m.package(kind, payload))
            while self._now() < end:
                came = self._packages.feed(self.port.read(0.02))
                for at, (answered, answer) in enumerate(came):
                    if answered == kind:
                        self._waiting += came[at + 1 :]
                        return answer
        except (OSError, ValueError) as error:
            raise DriverError(f"RTDE: {getattr(error, 'strerror', None) or error}") from None
        raise DriverError(f"the controller does not answer by RTDE within {ANSWERING:g} s")
