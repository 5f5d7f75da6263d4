"""An emulated Go2 in virtual time, its driver and keeper, and the zoo's policy that walks."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from controllers.gate_codes import Request, State
from deploy.drivers.driver import ForLoop
from deploy.drivers.go2 import JOINTS
from deploy.drivers.unitree.dog import Dog
from deploy.drivers.unitree.keeping import PERIOD, Keeper
from deploy.emulators.go2 import Go2
from deploy.emulators.go2_wire import Go2Wire
from deploy.loop import Loop, Step
from deploy.runtime import Policy

AHEAD = {
    "linear_velocity_command": np.array([0.5, 0.0], np.float32), "yaw_rate_command": np.array([0.0], np.float32)
}  # fmt: skip
PATIENCE = 60.0  # s of real time for a period of virtual time: the computer may be busy
RUN_IN = 10  # steps


class VirtualLink:
    """The keeper and the robot in this process. Time goes on when the program sleeps or waits."""

    def __init__(self, world: World, damp: bool) -> None:
        self.world, self.keeper = world, Keeper("the keeper before this one ended" if damp else "")
        self.messages: list[tuple[bytes, bytes]] = []
        self.open, self.alive = True, True
        world.links.append(self)

    def send(self, kind: bytes, data: bytes = b"") -> None:
        if not self.alive:
            raise OSError("the keeper ended")
        now = self.world.now()
        if kind == b"E":
            self.keeper.enable(now, data)
        elif kind == b"C":
            self.keeper.command(now, data)
        elif kind == b"Q":
            self.keeper.quiet()
        elif kind == b"R":
            code, parameter = json.loads(data)
            self.messages.append((b"A", json.dumps([code, *self.world.robot.request(code, parameter)]).encode()))

    def receive(self, timeout: float = 0.0) -> list[tuple[bytes, bytes]]:
        if not self.alive:
            raise OSError("the keeper ended")
        if timeout:
            self.world.sleep(timeout)
        found, self.messages = self.messages, []
        return found

    def close(self) -> None:
        self.open = False
        self.keeper.program_ended(self.world.now())


class World:
    """A clock for which a computer is never too slow, and all that moves with it."""

    def __init__(self) -> None:
        self.nanoseconds, self.left = 1_000_000_000, 0.0
        self.links: list[VirtualLink] = []
        self.robot = Go2()
        self.wire = Go2Wire(self.robot, foreign=self.overhear)

    def overhear(self, data: bytes) -> None:
        self.robot.receive(data)
        for link in self.links:
            link.keeper.other_command(self.now())

    def monotonic_ns(self) -> int:
        return self.nanoseconds

    def now(self) -> float:
        return self.nanoseconds / 1e9

    def sleep(self, seconds: float) -> None:
        self.left += seconds
        while self.left >= PERIOD:
            self.left -= PERIOD
            self.nanoseconds += round(1e9 * PERIOD)
            self.tick()

    def tick(self) -> None:
        told = self.wire.advance(PERIOD)
        for link in self.links:
            if not link.alive or link.keeper.done(self.now()):
                continue
            for data in told:
                if link.keeper.state(self.now(), data):
                    link.messages.append((b"S", int(1e6 * self.now()).to_bytes(8, "little") + data))
            if (sent := link.keeper.publish(self.now())) is not None:
                self.wire.command(sent)
            link.messages = [m for m in link.messages if m[0] != b"K"] + [(b"K", link.keeper.status.encode())]


class Session:
    """A run of the loop with the driver on the emulated robot."""

    def __init__(self, policy: Any = None) -> None:
        self.world = World()
        self.robot = self.world.robot
        self.policy = policy or Policy.load("zoo:go2-flat", 50)
        self.driver = Dog(
            "Unitree Go2", lambda damp: VirtualLink(self.world, damp), self.policy.contract, JOINTS, self.world.now
        )
        self.steps: list[Step] = []
        self.problems: list[str] = []
        self.stiff: list[bool] = []

    def run(self, fault: str, at: float, seconds: float, action: Any = None) -> int:
        """With ``fault`` from ``at`` s after the policy took over on; ``seconds`` after it, all ends."""
        self.driver.connect()
        self.at, since = 10**9, 0

        def note(step: Step) -> None:
            nonlocal since
            self.steps.append(step)
            self.stiff.append(self.robot.stiff)
            self.problems += [p for p in self.driver.health().problems if p not in self.problems]
            if step.number == RUN_IN:
                loop.request(Request.ARM)
            elif step.output.state == State.READY and loop.reserve.arrived:
                loop.request(Request.ACTIVATE)
            since += step.output.state == State.ACTIVE
            if self.at == 10**9 and since >= at / 0.02:
                self.at = step.number
                self.world.wire.begin(fault)
                if action:
                    action(self)
            if step.number >= self.at + round(seconds / 0.02):
                loop.end()  # the second time it does not wait for the legs

        loop = Loop(self.policy, ForLoop(self.driver, self.policy.contract, AHEAD), note, self.world, PATIENCE)
        return loop.run(60.0)
