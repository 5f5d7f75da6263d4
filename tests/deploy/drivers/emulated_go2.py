"""An emulated Go2 in virtual time, its driver and keeper, and the zoo's policy that walks."""

from __future__ import annotations

from typing import Any

import numpy as np

from controllers.gate_codes import Request, State
from deploy.drivers.driver import ForLoop
from deploy.drivers.go2 import JOINTS
from deploy.drivers.unitree.dog import Dog
from deploy.emulators.go2_virtual import VirtualLink, World
from deploy.loop import Loop, Step
from deploy.runtime import Policy

AHEAD = {
    "linear_velocity_command": np.array([0.5, 0.0], np.float32), "yaw_rate_command": np.array([0.0], np.float32)
}  # fmt: skip
PATIENCE = 60.0  # s of real time for a period of virtual time: the computer may be busy
RUN_IN = 10  # steps


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
