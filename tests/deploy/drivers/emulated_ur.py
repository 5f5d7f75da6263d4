"""An emulated UR5e in virtual time, its driver, and a policy that moves it."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from emulated import EmulatedSession

from robo_rl.contract import Contract, Network, Provenance
from robo_rl.deploy.emulate.ur import Arm
from robo_rl.deploy.emulate.ur.virtual import World
from robo_rl.deploy.robot.drivers.rtde.arm import UrArm
from robo_rl.deploy.robot.drivers.rtde.robot_file import UrFile
from robo_rl.sim.robots.arm import ArmCard, load_arm
from robo_rl.sim.tasks.arm.reach import Reach


def contract(card: ArmCard) -> Contract:
    """Of arm-reach on a card's arm."""
    return Reach(card).spec.contract(Provenance("none", 0, 0, "0" * 64), Network((8,), "elu", False))


@functools.cache
def usual() -> Contract:
    """Of a UR5e."""
    return contract(load_arm("ur5e"))


class Waving:
    """A policy: every joint goes to and fro by up to 0.2 rad, from where it was when it took over."""

    def __init__(self, of: Contract) -> None:
        self.contract = of
        self.reset()

    def reset(self) -> None:
        self.steps, self.state = 0, self.contract.initial_state[None]
        self.home: np.ndarray | None = None

    def step(self, signals: Mapping[str, Any], ages: Any = None) -> dict[str, np.ndarray]:
        if self.home is None:
            self.home = np.array(signals["joint_position"])
        self.steps += 1
        target = self.home + 0.2 * math.sin(math.tau * self.steps / 100)
        return {"joint_position_target": target.astype(np.float32)}


class Session(EmulatedSession):
    """A run of the loop with the driver on the emulated arm."""

    longest = 6.0

    def __init__(self, policy: Any = None, arm: Arm | None = None, file: UrFile | None = None) -> None:
        super().__init__()
        self.policy = policy or Waving(usual())
        self.world = World(arm)
        self.arm = self.world.arm
        self.told = {"tool_position_setpoint": np.array([0.45, 0.0, 0.2], np.float32)}
        self.driver = UrArm(self.world, self.policy.contract, file or UrFile(), self.world.now)
        self.places: list[np.ndarray] = []

    def watch(self) -> None:
        self.places.append(self.arm.joints.copy())
