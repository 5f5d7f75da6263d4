"""A Crazyflie and its radio in one process, in virtual time, with the real cflib on the other side.

cflib connects by its own threads, in real time. From then on time goes on in ticks, and what comes is given to cflib's
callbacks in the program's thread, in which it can't be overtaken.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import cflib.crtp
from cflib.crtp.crtpdriver import CRTPDriver
from cflib.crtp.crtpstack import CRTPPacket
from cflib.crtp.exceptions import WrongUriType

from robo_rl.deploy.emulate.crazyflie import TICK, Vehicle
from robo_rl.deploy.emulate.crazyflie.crtp import Firmware
from robo_rl.deploy.emulate.crazyflie.wire import RadioWire
from robo_rl.deploy.emulate.virtual_time import VirtualTime
from robo_rl.deploy.robot.drivers.crtp.session import Session

SCHEME = "virtual://"
PATIENT = 60.0
"""s of real time for cflib's threads: the computer may be busy."""
_worlds: dict[str, World] = {}


class World(VirtualTime):
    """All that moves with the vehicle."""

    period = TICK

    def __init__(self, vehicle: Vehicle | None = None, firmware: Firmware | None = None) -> None:
        super().__init__()
        self.wire = RadioWire(firmware or Firmware(vehicle or Vehicle()))
        self.vehicle = self.wire.vehicle
        self.lock: Any = threading.RLock()
        self.uri = f"{SCHEME}{id(self)}"

    def session(self, patience: float = PATIENT) -> Session:
        """A link to it."""
        if Line not in cflib.crtp.CLASSES:
            cflib.crtp.CLASSES.insert(0, Line)
        _worlds[self.uri] = self
        self.link = Session(self.uri, self.now, self.sleep, patience)
        return self.link

    def tick(self) -> None:
        """One tick of the vehicle, and what cflib does with what came of it: as its thread for packets."""
        with self.lock:
            came = self.wire.advance()
        if not self.link.gone:
            for data in filter(None, came):
                self._handle(CRTPPacket(data[0], list(data[1:])))

    def _handle(self, packet: Any) -> None:
        connection = self.link.link
        connection.packet_received.call(packet)
        for entry in list(connection.incoming.cb):
            if entry.port == packet.port & entry.port_mask and entry.channel == packet.channel & entry.channel_mask:
                with contextlib.suppress(Exception):  # cflib logs them
                    entry.callback(packet)


class Line(CRTPDriver):
    """cflib's driver of such a link: what is sent is answered at once."""

    def connect(self, uri: str, statistics: Any, failed: Any) -> None:
        """See ``CRTPDriver``."""
        if not uri.startswith(SCHEME):
            raise WrongUriType("not of a virtual world")
        self.world, self.failed, self.needs_resending = _worlds.pop(uri), failed, False
        self.packets: list[bytes] = []
        self.closed, self.change = False, threading.Condition()

    def send_packet(self, packet: Any) -> None:
        """See ``CRTPDriver``."""
        try:
            with self.world.lock:
                answers = self.world.wire.send(bytes([packet.header, *packet.data]))
        except OSError as error:
            self.failed(f"the radio is gone: {error}")
            return
        with self.change:
            self.packets += answers
            self.change.notify_all()

    def receive_packet(self, wait: float = 0) -> Any:
        """See ``CRTPDriver``."""
        with self.change:
            self.change.wait_for(lambda: self.packets or self.closed, wait if wait >= 0 else None)
            if not self.packets:
                return None
            data = self.packets.pop(0)
        return CRTPPacket(data[0], list(data[1:])) if data else None

    def close(self) -> None:
        """See ``CRTPDriver``."""
        with self.change:
            self.closed = True
            self.change.notify_all()
