"""An emulated RoboRacer car in virtual time, its driver, and the zoo's policy that races."""

from __future__ import annotations

from typing import Any

from controllers.gate_codes import Request, State
from deploy.drivers.deadman import PATIENCE as SILENT
from deploy.drivers.driver import ForLoop
from deploy.drivers.hokuyo.lidar import Lidar
from deploy.drivers.vesc.car import Car, brake_orders
from deploy.drivers.vesc.robot_file import CarFile
from deploy.emulators.f1tenth import FILE, TICK, Racer
from deploy.emulators.f1tenth_wire import CarWire
from deploy.loop import Loop, Step
from deploy.runtime import Policy

PATIENCE = 60.0  # s of real time for a period of virtual time: the computer may be busy
RUN_IN = 10  # steps


class World:
    """A clock, as ``time`` is one, and all that moves with it."""

    def __init__(self, seed: int = 0) -> None:
        self.nanoseconds, self.left = 1_000_000_000, 0.0
        self.racer = Racer(seed=seed)
        self.wire = CarWire(self.racer)
        self.vesc, self.lidar, self.deadman = VescLine(self), LidarLine(self), VirtualDeadman(self)

    def monotonic_ns(self) -> int:
        return self.nanoseconds

    def now(self) -> float:
        return self.nanoseconds / 1e9

    def sleep(self, seconds: float) -> None:
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
        self.came += self.world.wire.exchange(data)

    def read(self, timeout: float) -> bytes:
        if timeout and not self.came:
            self.world.sleep(timeout)
        found, self.came = self.came, b""
        return found

    def close(self) -> None:
        pass


class LidarLine:
    """A connection to the emulated lidar. Time goes on while the program waits for it."""

    def __init__(self, world: World) -> None:
        self.world, self.came = world, b""

    def write(self, data: bytes) -> None:
        for line in data.decode().splitlines():
            self.came += self.world.wire.ask_lidar(line)

    def read(self, timeout: float) -> bytes:
        if not self.world.wire.lidar_open:
            raise OSError(104, "Connection reset by peer")
        if timeout and not self.came:
            self.world.sleep(timeout)
        found, self.came = self.came, b""
        return found

    def close(self) -> None:
        pass


class VirtualDeadman:
    """What ``deploy.drivers.deadman`` does, in this world's time."""

    def __init__(self, world: World) -> None:
        self.world, self.fired, self.beaten = world, False, float("inf")

    def beat(self) -> None:
        self.beaten = self.world.now()

    def leave(self) -> None:
        self.beaten = float("inf")

    def close(self) -> None:
        self.fired = self.fired or self.beaten < float("inf")

    def tick(self) -> None:
        self.fired = self.fired or self.world.now() - self.beaten > SILENT
        if self.fired:
            for order in brake_orders(self.world.racer.file):
                self.world.racer.receive(order)


class Session:
    """A run of the loop with the driver on the emulated car."""

    def __init__(self, policy: Any = None, seed: int = 0, file: CarFile = FILE) -> None:
        self.world = World(seed)
        self.racer = self.world.racer
        self.policy = policy or Policy.load("zoo:car-race", 40)
        self.driver = Car(
            self.world.vesc, self.policy.contract, file, lambda: self.world.deadman,
            lambda scan, count: Lidar(self.world.lidar, scan, count, self.world.now), self.world.now,
        )  # fmt: skip
        self.steps: list[Step] = []
        self.problems: list[str] = []
        self.speeds: list[float] = []

    def run(self, fault: str, at: float, seconds: float, action: Any = None) -> int:
        """With ``fault`` from ``at`` s after the policy took over on; ``seconds`` after it, all ends."""
        self.driver.connect()
        self.at, since = 10**9, 0

        def note(step: Step) -> None:
            nonlocal since
            self.steps.append(step)
            self.speeds.append(self.racer.speed)
            self.problems += [p for p in self.driver.health().problems if p not in self.problems]
            if step.number == RUN_IN:
                loop.request(Request.ARM)
            elif step.output.state == State.READY and loop.reserve.arrived:
                loop.request(Request.ACTIVATE)
            since += step.output.state == State.ACTIVE
            if self.at == 10**9 and since >= at / 0.025:
                self.at = step.number
                self.world.wire.begin(fault)
                if action:
                    action(self)
            if step.number >= self.at + round(seconds / 0.025):
                loop.end()

        loop = Loop(self.policy, ForLoop(self.driver, self.policy.contract, {}), note, self.world, PATIENCE)
        return loop.run(120.0)
