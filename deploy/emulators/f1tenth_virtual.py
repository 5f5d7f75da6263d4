"""A RoboRacer car, its lines and the process that brakes it in one process and in virtual time."""

from __future__ import annotations

from deploy.drivers.deadman import PATIENCE
from deploy.drivers.vesc.car import brake_orders
from deploy.emulators.f1tenth import TICK, Racer
from deploy.emulators.f1tenth_wire import CarWire


class World:
    """A clock, as ``time`` is one, and all that moves with it."""

    def __init__(self, seed: int = 0, width: float = 2.0) -> None:
        """See ``Racer``."""
        self.nanoseconds, self.left = 1_000_000_000, 0.0
        self.racer = Racer(seed=seed, width=width)
        self.wire = CarWire(self.racer)
        self.vesc, self.lidar, self.deadman = VescLine(self), LidarLine(self), VirtualDeadman(self)

    def monotonic_ns(self) -> int:
        """As ``time.monotonic_ns``."""
        return self.nanoseconds

    def now(self) -> float:
        """s"""
        return self.nanoseconds / 1e9

    def sleep(self, seconds: float) -> None:
        """Let time go on, by whole ticks of the car."""
        self.left += seconds
        while self.left >= TICK:
            self.left -= TICK
            self.nanoseconds += round(1e9 * TICK)
            self.lidar.came += b"".join(self.wire.advance(TICK))
            self.deadman.tick()


class VescLine:
    """A port to the emulated VESC, without a terminal in between. Time goes on while the program waits for it."""

    def __init__(self, world: World) -> None:
        self.world, self.came = world, b""

    def write(self, data: bytes) -> None:
        """See ``Port``."""
        self.came += self.world.wire.exchange(data)

    def read(self, timeout: float) -> bytes:
        """See ``Port``."""
        if timeout and not self.came:
            self.world.sleep(timeout)
        found, self.came = self.came, b""
        return found

    def close(self) -> None:
        """See ``Port``."""
        pass


class LidarLine:
    """A connection to the emulated lidar. Time goes on while the program waits for it."""

    def __init__(self, world: World) -> None:
        self.world, self.came = world, b""

    def write(self, data: bytes) -> None:
        """See ``Port``."""
        for line in data.decode().splitlines():
            self.came += self.world.wire.ask_lidar(line)

    def read(self, timeout: float) -> bytes:
        """See ``Port``."""
        if not self.world.wire.lidar_open:
            raise OSError(104, "Connection reset by peer")
        if timeout and not self.came:
            self.world.sleep(timeout)
        found, self.came = self.came, b""
        return found

    def close(self) -> None:
        """See ``Port``."""
        pass


class VirtualDeadman:
    """What ``deploy.drivers.deadman`` does, in this world's time."""

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
