"""A RoboRacer car, its lines and the process that brakes it in one process and in virtual time."""

from __future__ import annotations

from collections.abc import Callable

from robo_rl.deploy.emulate.f1tenth import TICK, Racer
from robo_rl.deploy.emulate.f1tenth.wire import CarWire
from robo_rl.deploy.emulate.virtual_time import VirtualTime
from robo_rl.deploy.robot.drivers.deadman import PATIENCE
from robo_rl.deploy.robot.drivers.vesc.car import brake_orders


class World(VirtualTime):
    """All that moves with the car."""

    period = TICK

    def __init__(self, seed: int = 0, width: float = 2.0) -> None:
        """See ``Racer``."""
        super().__init__()
        self.racer = Racer(seed=seed, width=width)
        self.wire = CarWire(self.racer)
        self.vesc, self.lidar, self.deadman = Line(self, self.wire.exchange), LidarLine(self), VirtualDeadman(self)

    def tick(self) -> None:
        """One tick of the car."""
        self.lidar.came += b"".join(self.wire.advance(TICK))
        self.deadman.tick()


class Line:
    """A port to an emulated device, without a terminal in between. Time goes on while the program waits for it."""

    def __init__(self, world: World, answer: Callable[[bytes], bytes]) -> None:
        self.world, self.answer, self.came = world, answer, b""

    def write(self, data: bytes) -> None:
        """See ``Port``."""
        self.came += self.answer(data)

    def read(self, timeout: float) -> bytes:
        """See ``Port``."""
        if timeout and not self.came:
            self.world.sleep(timeout)
        found, self.came = self.came, b""
        return found

    def close(self) -> None:
        """See ``Port``."""
        pass


class LidarLine(Line):
    """A connection to the emulated lidar."""

    def __init__(self, world: World) -> None:
        super().__init__(world, lambda data: b"".join(map(world.wire.ask_lidar, data.decode().splitlines())))

    def read(self, timeout: float) -> bytes:
        """See ``Port``."""
        if not self.world.wire.lidar_open:
            raise OSError(104, "Connection reset by peer")
        return super().read(timeout)


class VirtualDeadman:
    """What ``robo_rl.deploy.robot.drivers.deadman`` does, in this world's time."""

    def __init__(self, world: World) -> None:
        self.world, self.fired, self.beaten = world, False, float("inf")

    def beat(self) -> None:
        """See ``Deadman``."""
        self.beaten = self.world.now()

    def leave(self) -> None:
        """See ``Deadman``."""
        self.beaten = float("inf")

    def close(self) -> None:
        """See ``Deadman``."""
        self.fired = self.fired or self.beaten < float("inf")

    def tick(self) -> None:
        """A tick of time."""
        self.fired = self.fired or self.world.now() - self.beaten > PATIENCE
        if self.fired:
            for order in brake_orders(self.world.racer.file):
                self.world.racer.receive(order)
