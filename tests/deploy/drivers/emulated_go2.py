"""An emulated Go2 in virtual time, its driver and keeper, and the zoo's policy that walks."""

from __future__ import annotations

from typing import Any

import numpy as np
from emulated import EmulatedSession

from robo_rl.deploy.emulate.go2.virtual import VirtualLink, World
from robo_rl.deploy.robot.drivers.go2 import JOINTS
from robo_rl.deploy.robot.drivers.unitree.dog import Dog
from robo_rl.deploy.robot.runtime import Policy

AHEAD = {
    "linear_velocity_command": np.array([0.5, 0.0], np.float32), "yaw_rate_command": np.array([0.0], np.float32)
}  # fmt: skip


class Session(EmulatedSession):
    """A run of the loop with the driver on the emulated robot."""

    told = AHEAD
    longest = 60.0

    def __init__(self, policy: Any = None) -> None:
        super().__init__()
        self.world = World()
        self.robot = self.world.robot
        self.policy = policy or Policy.load("zoo:go2-flat", 50)
        self.driver = Dog(
            "Unitree Go2", lambda damp: VirtualLink(self.world, damp), self.policy.contract, JOINTS, self.world.now
        )
        self.stiff: list[bool] = []

    def watch(self) -> None:
        self.stiff.append(self.robot.stiff)
