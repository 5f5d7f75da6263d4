"""An emulated Franka in virtual time, with the real franky on the other end of real sockets: it moves on when the
program waits, tick by tick, and each tick waits for the command that libfranka's thread sends for the state before.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from robo_rl.deploy.emulate.franka import TICK, Station
from robo_rl.deploy.emulate.franka.wire import FrankaWire
from robo_rl.deploy.emulate.virtual_time import VirtualTime

PATIENT = 20.0
"""s of real time, for what a thread of another library does at once on a computer with time."""
SOON = 0.2
"""s of real time, after which a state is taken to be lost on purpose."""


Result = TypeVar("Result")


class World(VirtualTime):
    """A station and a clock."""

    period = TICK

    def __init__(self, station: Station) -> None:
        super().__init__()
        self.station, self.wire = station, FrankaWire(station)
        self.driver: Any = None
        """Whose threads have to have seen what was sent, before time is told to have gone on."""

    def tick(self) -> None:
        """One tick of the robot."""
        self.wire.advance(PATIENT)

    def sleep(self, seconds: float) -> None:
        """Let time go on, and the threads of the driver see what came of it."""
        before = self._seen()
        super().sleep(seconds)
        if self.driver is None or self.driver.motion.failure or self.driver.hand.failure or seconds < TICK:
            return
        end = time.monotonic() + (PATIENT if self.wire.sent and not self.wire.fault else SOON)
        newest = self.station.server.number if self.wire.sent else before[0] + 1
        states = self._seen()[1] + 1  # one may be on its way since long ago
        while time.monotonic() < end:
            seen = self._seen()
            waits = [seen[0] < newest, seen[1] <= states]
            waits[1] &= self.station.server.hand.every == 1
            if not any(waits):
                return
            time.sleep(5e-4)
            self._send_again(*waits)

    def _send_again(self, arm: bool, hand: bool) -> None:
        """libfranka throws away what came before it was asked: a state comes again, without time going on."""
        if arm and not self.station.server.moving and self.wire.sent:
            self.station.send()
        elif hand:
            self.station.server.hand.send_state()

    def during(self, call: Callable[[], Result]) -> Result:
        """What ``call`` returns or raises; time goes on while it waits for the robot."""
        found: list[Any] = []

        def work() -> None:
            try:
                found.append(call())
            except Exception as error:
                found.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        while thread.is_alive():
            self.nanoseconds += round(1e9 * TICK)
            self.tick()
            thread.join(timeout=TICK / 4)
        if isinstance(found[0], Exception):
            raise found[0]
        result: Result = found[0]
        return result

    def _seen(self) -> tuple[int, int]:
        if self.driver is None:
            return -1, -1
        newest = self.driver.motion.newest
        return (newest.tick if newest else -1), self.driver.hand.seen
