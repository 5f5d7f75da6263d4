"""MAVLink 2 on a port, by pymavlink: what comes is whole, from this autopilot, and of the messages that are known."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from typing import Any

from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.serial_port import MOST, Port, SerialPort, drain

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
LOCAL = 14540
"""Port of ours from which an address is sent to."""
DATAGRAM = 2048
"""Bytes; PX4's buffer has 1,000 (mavlink_main.h). A longer one is cut, and damaged."""

MALFORMED = (mavlink.MAVError, ValueError, IndexError, TypeError)
"""What pymavlink raises for bytes that are no message."""


class Udp:
    """A port of UDP with one peer: the address that is given, or the first that sends an autopilot's heartbeat.

    Whatever others send is dropped, by the system itself once the peer is known: they can neither be taken for the
    vehicle, nor get what is meant for it, nor fill the port.
    """

    def __init__(self, port: int, host: str = "", local: int = 0) -> None:
        """``host``: to send to, from our port ``local`` (0: any); "": the port is ours, and somebody sends to it.

        OSError where that can't be.
        """
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.strangers = 0
        """Datagrams of others than the peer."""
        try:
            self._socket.bind(("0.0.0.0", local if host else port))
            self._peer: tuple[str, int] | None = (socket.gethostbyname(host), port) if host else None
            if self._peer is not None:
                self._socket.connect(self._peer)
        except (OSError, OverflowError):
            self._socket.close()
            raise
        self._socket.setblocking(False)

    @property
    def number(self) -> int:
        """Of our end."""
        return int(self._socket.getsockname()[1])

    def write(self, data: bytes) -> None:
        """See ``Port``. Nothing is sent while there is no peer; one that is not there yet is no error."""
        if self._peer is not None:
            with contextlib.suppress(BlockingIOError, ConnectionRefusedError):
                self._socket.send(data)

    def read(self, timeout: float) -> bytes:
        """See ``Port``."""
        end = time.monotonic() + timeout
        for _ in range(MOST):
            ready, _, _ = select.select([self._socket], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                break
            with contextlib.suppress(BlockingIOError, ConnectionRefusedError):
                data, sender = self._socket.recvfrom(DATAGRAM)
                if self._peer is None and from_autopilot(data):
                    self._peer = sender
                    self._socket.connect(sender)
                if sender == self._peer:
                    return data
                self.strangers += 1
        return b""

    def close(self) -> None:
        """See ``Port``."""
        self._socket.close()


def from_autopilot(data: bytes) -> bool:
    """Whether there is a heartbeat of the vehicle's autopilot in a datagram."""
    codec = mavlink.MAVLink(None)
    codec.robust_parsing = True
    try:
        told = codec.parse_buffer(data) or []
    except MALFORMED:
        return False
    return any(
        one.get_type() == "HEARTBEAT"
        and (one.get_srcSystem(), one.get_srcComponent()) == (OURS, AUTOPILOT)
        and one.autopilot != mavlink.MAV_AUTOPILOT_INVALID
        for one in told
    )


def open_port(name: str) -> Port:
    """ "udp:14540" listens, "udp:HOST:14580" sends to a vehicle from our port 14540, "udp:HOST:14581:14541" from the
    port 14541, "/dev/ttyAMA0" or "/dev/ttyAMA0:460800" is a serial line.

    PX4 keeps the first address that it hears from until it is started anew (mavlink_receiver.cpp, _src_addr): a session
    from another port would not be answered. DriverError where that is no port, or can't be opened.
    """
    kind, *rest = (name or PORT).split(":")
    try:
        if kind == "udp":
            if len(rest) == 1:
                return Udp(int(rest[0]))
            host, port, *local = rest
            (ours,) = map(int, local or [str(LOCAL)])
            return Udp(int(port), host, ours)
        return SerialPort(kind, int(rest[0]) if rest else BAUD)
    except (ValueError, OverflowError):
        raise DriverError(
            f"port {name[:60]!r} is none of an autopilot; expected udp:PORT, udp:HOST:PORT[:LOCAL], or DEVICE[:BAUD]"
        ) from None
    except OSError as error:
        raise DriverError(f"port {name[:60]!r}: {error.strerror or error}") from None


class Link:
    """Messages to and from one vehicle."""

    def __init__(self, port: Port, source: int = COMPUTER, system: int = OURS) -> None:
        """``source``: component that we are; ``system`` the vehicle's, and ours."""
        self.port, self.damaged, self.foreign = port, 0, 0
        self.unknown = 0
        """Messages of a dialect that is not spoken here: they are whole, but nothing else is known of them."""
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
        for data in drain(self.port, timeout):
            try:
                told = self._codec.parse_buffer(data) or []
            except MALFORMED:
                self.damaged += 1
                self._codec = self._new(self._source)
                continue
            for message in told:
                if message.get_type() == "BAD_DATA":
                    self.damaged += 1
                elif message.get_type().startswith("UNKNOWN"):
                    self.unknown += 1
                elif (message.get_srcSystem(), message.get_srcComponent()) == (self.system, component):
                    found.append(message)
                else:
                    self.foreign += 1
        return found


def now() -> float:
    """s of the monotonic clock."""
    return time.monotonic()
