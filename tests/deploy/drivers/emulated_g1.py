"""An emulated G1 in virtual time, its driver and keeper, and a policy that moves its legs as it hangs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from emulated import EmulatedSession

from robo_rl.contract import Contract, Network, Provenance
from robo_rl.deploy.emulate.g1 import G1
from robo_rl.deploy.emulate.g1.wire import G1Wire
from robo_rl.deploy.emulate.go2.virtual import VirtualLink, World
from robo_rl.deploy.robot.drivers.g1 import HELD, JOINTS, MACHINE
from robo_rl.deploy.robot.drivers.unitree.humanoid import Humanoid
from robo_rl.sim.tasks.legged.legs_walk import LegsWalk

AHEAD = {
    "linear_velocity_command": np.array([0.4, 0.0], np.float32), "yaw_rate_command": np.array([0.0], np.float32)
}  # fmt: skip


def contract() -> Contract:
    return LegsWalk().spec.contract(Provenance("none", 0, 0, "0" * 64), Network((8,), "elu", False))


class Marching:
    """A policy: hips and knees go to and fro about the pose in which the robot stands."""

    def __init__(self, of: Contract) -> None:
        self.contract, self.home = of, np.array(of.commands[0].start)
        self.reset()

    def reset(self) -> None:
        self.steps, self.state = 0, self.contract.initial_state[None]

    def step(self, signals: Mapping[str, Any], ages: Any = None) -> dict[str, np.ndarray]:
        self.steps += 1
        swing = 0.15 * math.sin(math.tau * self.steps / 40)
        target = self.home + swing * np.array([-1, 0, 0, 1, 0, 0] * 2)
        return {self.contract.commands[0].name: target.astype(np.float32)}


class Session(EmulatedSession):
    """A run of the loop with the driver on the emulated robot; ``rope``: it hangs for good."""

    told = AHEAD
    longest = 60.0

    def __init__(self, policy: Any = None, rope: bool = True) -> None:
        super().__init__()
        self.world = World(of=G1Wire, robot=G1)
        self.robot: Any = self.world.robot
        self.robot.rope = rope
        self.policy = policy or Marching(contract())
        self.driver = self.drive()
        self.stiff: list[bool] = []

    def drive(self, machine: int = MACHINE) -> Humanoid:
        def connect(damp: bool) -> VirtualLink:
            return VirtualLink(self.world, damp)

        return Humanoid("Unitree G1", connect, self.policy.contract, JOINTS, HELD, machine, clock=self.world.now)

    def ready(self) -> bool:
        return bool(self.robot.rope or not self.robot.hung)

    def watch(self) -> None:
        self.stiff.append(self.robot.stiff)
