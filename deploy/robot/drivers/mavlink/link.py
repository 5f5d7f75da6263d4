"""MAVLink 2 on a port, by pymavlink: what comes is whole, from this autopilot, and of the messages that are known."""

from __future__ import annotations

import socket
import time
from typing import Any

from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.serial_port import Port, SerialPort

try:
    from pymavlink.dialects.v20 import common as mavlink
except ImportError:  # pragma: no cover
    raise DriverError("pymavlink is missing: pip install 'robo-rl[px4]'") from None

PORT = "udp:14540"
"""Where PX4 sends to a computer on board (docs.px4.io, MAVLink, default UDP ports)."""
BAUD = 921600
"""PX4's rate of TELEM2, where a computer on board is connected."""
OURS, COMPUTER, AUTOPILOT = 1, 191, 1
"""System of the vehicle; MAV_COMP_ID_ONBOARD_COMPUTER, and MAV_COMP_ID_AUTOPILOT1."""
DATAGRAM = 65535


class Udp:
    """A port of UDP: it answers to whom it heard last from, or sends to an address."""

    def __init__(self, port: int, host: str = "") -> None:
        """``host``: to send to; "": the port is ours, and somebody sends to it. OSError where that can't be."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._other: tuple[str, int] | None = (host, port) if host else None
        if not host:
            self._socket.bind(("0.0.0.0", port))

    @property
    def number(self) -> int:
        """Of our end."""
        return int(self._socket.getsockname()[1])

    def write(self, data: bytes) -> None:
        """See ``Port``."""
        if self._other is not None:
            self._socket.sendto(data, self._other)

    def read(self, timeout: float) -> bytes:
        """See ``Port``."""
        self._socket.settimeout(timeout or None)
        self._socket.setblocking(timeout > 0)
        if timeout > 0:
            self._socket.settimeout(timeout)
        try:
            data, self._other = self._socket.recvfrom(DATAGRAM)
        except (TimeoutError, BlockingIOError, ConnectionRefusedError):
            return b""
        return data

    def close(self) -> None:
        """See ``Port``."""
        self._socket.close()


def open_port(name: str) -> Port:
    """ "udp:14540" listens, "udp:HOST:14550" sends, "/dev/ttyAMA0" or "/dev/ttyAMA0:57600" is a serial line.

    DriverError where that is none, or can't be opened.
    """
    kind, *rest = (name or PORT).split(":")
    try:
        if kind == "udp":
            host, port = rest if len(rest) == 2 else ("", *rest)
            return Udp(int(port), host)
        return SerialPort(kind, int(rest[0]) if rest else BAUD)
    except ValueError:
        raise DriverError(
            f"port {name[:60]!r} is none of an autopilot; expected udp:PORT, udp:HOST:PORT, or DEVICE[:BAUD]"
        ) from None
    except OSError as error:
        raise DriverError(f"port {name[:60]!r}: {error.strerror or error}") from None


class Link:
    """Messages to and from one vehicle."""

    def __init__(self, port: Port, source: int = COMPUTER, system: int = OURS) -> None:
        """``source``: component that we are; ``system`` the vehicle's, and ours."""
        self.port, self.damaged, self.foreign = port, 0, 0
        self.system = system
        self._codec = self._new(source)
        self._source = source

    def _new(self, source: int) -> Any:
        codec = mavlink.MAVLink(None, srcSystem=self.system, srcComponent=source)
        codec.robust_parsing = True
        return codec

    def send(self, message: Any) -> None:
        """OSError where the other end is gone."""
        self.port.write(self.pack(message))

    def pack(self, message: Any) -> bytes:
        """The bytes of a message, numbered."""
        data = bytes(message.pack(self._codec))
        self._codec.seq = (self._codec.seq + 1) % 256
        return data

    def read(self, timeout: float, component: int = AUTOPILOT) -> list[Any]:
        """Whole messages of that component of the vehicle; waits for the first bytes. OSError where it is gone."""
        found: list[Any] = []
        while data := self.port.read(timeout):
            timeout = 0.0
            try:
                told = self._codec.parse_buffer(data) or []
            except (mavlink.MAVError, ValueError, IndexError, TypeError):  # of a dialect that nobody speaks here
                self.damaged += 1
                self._codec = self._new(self._source)
                continue
            for message in told:
                if message.get_type() == "BAD_DATA" or message.get_type().startswith("UNKNOWN"):
                    self.damaged += 1
                elif (message.get_srcSystem(), message.get_srcComponent()) == (self.system, component):
                    found.append(message)
                else:
                    self.foreign += 1
        return found


def now() -> float:
    """s of the monotonic clock."""
    return time.monotonic()
