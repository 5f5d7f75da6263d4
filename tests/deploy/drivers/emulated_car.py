"""An emulated RoboRacer car in virtual time, its driver, and the zoo's policy that races."""

from __future__ import annotations

from typing import Any

from emulated import EmulatedSession

from robo_rl.deploy.emulate.f1tenth import FILE
from robo_rl.deploy.emulate.f1tenth.virtual import World
from robo_rl.deploy.robot.drivers.hokuyo.lidar import Lidar
from robo_rl.deploy.robot.drivers.vesc.car import Car
from robo_rl.deploy.robot.drivers.vesc.robot_file import CarFile
from robo_rl.deploy.robot.runtime import Policy


class Session(EmulatedSession):
    """A run of the loop with the driver on the emulated car."""

    told: dict[str, Any] = {}
    longest = 120.0

    def __init__(self, policy: Any = None, seed: int = 0, file: CarFile = FILE) -> None:
        super().__init__()
        self.world = World(seed)
        self.racer = self.world.racer
        self.policy = policy or Policy.load("zoo:car-race", 40)
        self.driver = Car(
            self.world.vesc, self.policy.contract, file, lambda: self.world.deadman,
            lambda scan, count: Lidar(self.world.lidar, scan, count, self.world.now), self.world.now,
        )  # fmt: skip
        self.speeds: list[float] = []

    def watch(self) -> None:
        self.speeds.append(self.racer.speed)
