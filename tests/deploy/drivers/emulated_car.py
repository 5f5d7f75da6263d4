"""An emulated RoboRacer car in virtual time, its driver, and the zoo's policy that races."""

from __future__ import annotations

from typing import Any

from controllers.gate_codes import Request, State
from deploy.drivers.driver import ForLoop
from deploy.drivers.hokuyo.lidar import Lidar
from deploy.drivers.vesc.car import Car
from deploy.drivers.vesc.robot_file import CarFile
from deploy.emulators.f1tenth import FILE
from deploy.emulators.f1tenth_virtual import World
from deploy.loop import Loop, Step
from deploy.runtime import Policy

PATIENCE = 60.0  # s of real time for a period of virtual time: the computer may be busy
RUN_IN = 10  # steps


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
