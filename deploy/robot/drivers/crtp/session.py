"""A link to a Crazyflie by cflib, whose callbacks come from threads of its own: they store what came, and when."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from robo_rl.deploy.robot.drivers.crtp.estimate import FIELDS
from robo_rl.deploy.robot.drivers.driver import DriverError

try:
    import cflib.crtp
    from cflib.crazyflie import Crazyflie as Connection
    from cflib.crazyflie.log import LogConfig
    from cflib.crtp.crtpstack import CRTPPacket, CRTPPort
except ImportError:  # pragma: no cover
    raise DriverError("cflib is missing: pip install 'robo-rl[crazyflie]'") from None

STATE, ECHO, TRUST = "state", "echo", "trust"
BLOCKS = {
    STATE: (10, tuple(f"stateEstimateZ.{name}" for name in FIELDS)),
    ECHO: (20, ("controller.rollRate", "controller.pitchRate", "stabilizer.thrust", "supervisor.info", "pm.vbat")),
    TRUST: (100, tuple(f"kalman.var{name}" for name in ("X", "Y", "Z", "PX", "PY", "PZ"))),
}
"""Log blocks: ms between two packets, and their variables; of each at most 26 bytes."""
MOST = 64
"""Packets of a block that wait to be read."""
CONNECTING, ASKING = 30.0, 3.0
"""s for tables and parameters over the air, some 600 of them, and for an answer."""
SENDING = 0.004
"""s for a packet to leave: a radio takes one in 1 or 2 ms; cflib itself would wait for 2 s."""
VERSION_CHANNEL, FIRMWARE, DEVICE = 1, 1, 2
"""platformservice.c"""
NEEDED = 12
"""CRTP_PROTOCOL_VERSION that has the supervisor's port, of the firmware of 2026."""


@dataclass
class Came:
    """A log packet: when it came (s), the vehicle's clock (ms, 24 bits), values by name."""

    at: float
    tick: int
    values: Mapping[str, float]


@dataclass
class Session:
    """See the module's text."""

    uri: str
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    """s of the vehicle's time."""
    patience: float = CONNECTING
    """s of real time until a connection is given up."""
    gone: str = ""
    """Why there is no link any more."""
    skipped: int = 0
    """Packets that the radio did not take in time."""
    _lock: Any = field(default_factory=threading.Lock)
    _came: dict[str, list[Came]] = field(default_factory=lambda: {name: [] for name in BLOCKS})
    _told: dict[int, str] = field(default_factory=dict)

    # --- in cflib's threads -----------------------------------------------------------------------------------------

    def _note(self, name: str, tick: int, values: Mapping[str, float]) -> None:
        with self._lock:
            self._came[name] = [*self._came[name][1 - MOST :], Came(self.clock(), tick, dict(values))]

    def _lost(self, uri: str, why: str = "") -> None:
        with self._lock:
            self.gone = self.gone or (str(why).splitlines() or ["it was closed"])[0][:100]

    def _version(self, packet: Any) -> None:
        if packet.channel == VERSION_CHANNEL and len(packet.data) > 1:
            with self._lock:
                self._told[packet.data[0]] = bytes(packet.data[1:]).split(b"\0")[0].decode("ascii", "replace")

    # --- from the driver's thread -----------------------------------------------------------------------------------

    def open(self) -> None:
        """Connect, and download the tables and all parameters. DriverError where that does not come about."""
        logging.getLogger("cflib").setLevel(logging.CRITICAL)  # what is wrong is told by DriverError
        if not cflib.crtp.CLASSES:
            cflib.crtp.init_drivers()
        full = threading.Event()
        self.link = Connection()
        self.link.connection_failed.add_callback(self._lost)
        self.link.connection_failed.add_callback(lambda uri, why: full.set())
        self.link.connection_lost.add_callback(self._lost)
        self.link.fully_connected.add_callback(lambda uri: full.set())
        self.link.add_port_callback(CRTPPort.PLATFORM, self._version)
        self.link.open_link(self.uri)
        come = full.wait(self.patience)
        if self.gone or not come:
            why = self.gone or f"it does not answer for {self.patience:g} s"
            raise DriverError(f"no Crazyflie at {self.uri}: {why}; is it on, and are address and channel right?")
        self.link.link_statistics.stop()  # its pings would take the radio's time
        if (version := self.link.platform.get_protocol_version()) < NEEDED:
            raise DriverError(f"its firmware speaks CRTP version {version}; expected {NEEDED} or newer: update it")

    def identity(self) -> tuple[str, str]:
        """The type of its board, and its firmware's version."""
        for command in (DEVICE, FIRMWARE):
            packet = CRTPPacket()
            packet.set_header(CRTPPort.PLATFORM, VERSION_CHANNEL)
            packet.data = (command,)
            self.link.send_packet(packet, expected_reply=(command,))
        self._await(lambda: {DEVICE, FIRMWARE} <= set(self._told), "does not tell its type and version")
        return self._told[DEVICE], self._told[FIRMWARE]

    def parameter(self, name: str) -> float | None:
        """As it was when the link was opened; None: it has none of that name."""
        group, own = name.split(".")
        value = self.link.param.values.get(group, {}).get(own)
        return None if value is None else float(value)

    def begin(self) -> None:
        """Ask for the log blocks. DriverError where the vehicle lacks a variable."""
        for name, (period, variables) in BLOCKS.items():
            block = LogConfig(name, period)
            for variable in variables:
                if self.link.log.toc.get_element_by_complete_name(variable) is None:
                    raise DriverError(f"its firmware has no log variable {variable}: is it Bitcraze's, and new?")
                block.add_variable(variable)
            block.data_received_cb.add_callback(lambda tick, values, block: self._note(block.name, tick, values))
            self.link.log.add_config(block)
            block.start()
            self._await(lambda block=block: block.started, f"does not begin to log '{name}'")  # type: ignore[misc]

    def _await(self, come: Callable[[], bool], what: str) -> None:
        """In real time: answers don't wait for the vehicle's."""
        end = time.monotonic() + ASKING
        while not come():
            if time.monotonic() > end or self.gone:
                raise DriverError(f"the Crazyflie {what}")
            time.sleep(0.001)

    def take(self, name: str) -> list[Came]:
        """Packets of a block since the last time."""
        with self._lock:
            found, self._came[name] = self._came[name], []
        return found

    def send(self, how: Callable[..., None], *values: Any) -> None:
        """By one of cflib's commands. A radio that has not sent the last packet is not waited for long."""
        link = self.link.link
        if self.gone or link is None:
            return
        waiting, end = getattr(link, "out_queue", None), time.monotonic() + SENDING
        while waiting is not None and waiting.full():
            if time.monotonic() > end:
                self.skipped += 1
                return
            time.sleep(SENDING / 10)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            how(*values)

    def close(self) -> None:
        """Leave the vehicle as it is."""
        if getattr(self, "link", None) is None:
            return
        connection = self.link
        connection.link_statistics.stop()
        driver, connection.link = connection.link, None  # close_link would send a set-point
        with contextlib.suppress(Exception):
            if driver is not None:
                driver.close()
        connection.close_link()
