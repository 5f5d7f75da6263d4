"""An emulated UR5e and the lines to it in one process, in virtual time."""

from __future__ import annotations

from robo_rl.deploy.emulate.ur import TICK, Arm
from robo_rl.deploy.emulate.ur.wire import UrWire
from robo_rl.deploy.emulate.virtual_time import VirtualTime
from robo_rl.deploy.robot.drivers.serial_port import Port


class World(VirtualTime):
    """All that moves with the arm; itself ``Lines`` to it."""

    period = TICK

    def __init__(self, arm: Arm | None = None) -> None:
        super().__init__()
        self.arm = arm or Arm()
        self.wire = UrWire(self.arm)
        self.said: list[str] = []
        """Why programs were not run."""
        self._ports: list[Rtde] = []

    def tick(self) -> None:
        """One tick of the arm."""
        self.wire.advance()
        for port in self._ports:
            port.tick()

    def exchange(self) -> Port:
        """See ``Lines``."""
        port = Rtde(self)
        self._ports.append(port)
        return port

    def programs(self) -> Port:
        """See ``Lines``."""
        return Programs(self)


class Rtde:
    """One connection; time goes on while its program waits."""

    def __init__(self, world: World) -> None:
        self.world, self.controller = world, world.wire.open()
        self._came, self._closed = b"", False

    def tick(self) -> None:
        """What the controller sends in this tick."""
        if not self._closed:
            self._came += self.world.wire.tell(self.controller)

    def write(self, data: bytes) -> None:
        """See ``Port``."""
        self._check()
        try:
            self._came += self.world.wire.send(self.controller, data)
        except ValueError:
            self._closed = True
            self.controller.close()

    def read(self, timeout: float) -> bytes:
        """See ``Port``."""
        if timeout and not self._came:
            self.world.sleep(timeout)
        found, self._came = self._came, b""
        if not found:
            self._check()
        return found

    def close(self) -> None:
        """See ``Port``."""
        self._closed = True
        self.controller.close()

    def _check(self) -> None:
        if self._closed or self.world.wire.fault == "unplugged":
            raise OSError(104, "Connection reset by peer")


class Programs:
    """Where programs are sent to."""

    def __init__(self, world: World) -> None:
        self.world = world

    def write(self, data: bytes) -> None:
        """See ``Port``."""
        if why := self.world.wire.run(data.decode("ascii")):
            self.world.said.append(why)

    def read(self, timeout: float) -> bytes:
        """See ``Port``."""
        return b""

    def close(self) -> None:
        """See ``Port``."""
