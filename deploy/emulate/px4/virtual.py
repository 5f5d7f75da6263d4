"""A vehicle with PX4 and its line in one process, in virtual time."""

from __future__ import annotations

from robo_rl.deploy.emulate.px4 import TICK, Vehicle
from robo_rl.deploy.emulate.px4.wire import PilotWire
from robo_rl.deploy.emulate.virtual_time import VirtualTime


class World(VirtualTime):
    """All that moves with the vehicle; itself the port to it."""

    period = TICK

    def __init__(self, vehicle: Vehicle | None = None) -> None:
        super().__init__()
        self.vehicle = vehicle or Vehicle()
        self.wire = PilotWire(self.vehicle)
        self._came: list[bytes] = []

    def tick(self) -> None:
        """One tick of the vehicle."""
        self._came += self.wire.advance()

    def write(self, data: bytes) -> None:
        """See ``Port``."""
        self._came += self.wire.send(data)

    def read(self, timeout: float) -> bytes:
        """See ``Port``. Time goes on while the program waits."""
        if self.wire.fault == "unplugged":
            raise OSError(5, "Input/output error")
        if timeout and not self._came:
            self.sleep(timeout)
        found, self._came = b"".join(self._came), []
        return found

    def close(self) -> None:
        """See ``Port``."""
