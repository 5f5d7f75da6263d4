"""An emulated SO-101 in virtual time, its driver, and a policy that waves it about."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from robo_rl.contract import Contract, Network, Provenance
from robo_rl.controllers.gate.codes import Request, State
from robo_rl.deploy.emulate.servos.arm_virtual import ArmTime, Line
from robo_rl.deploy.emulate.servos.feetech_wire import Wire
from robo_rl.deploy.emulate.so101 import Arm
from robo_rl.deploy.robot.drivers.bus_servos.robot_file import RobotFile
from robo_rl.deploy.robot.drivers.driver import ForLoop
from robo_rl.deploy.robot.drivers.feetech.arm import FeetechArm
from robo_rl.deploy.robot.drivers.feetech.bus import Bus
from robo_rl.deploy.robot.drivers.so101 import JOINTS
from robo_rl.deploy.robot.loop import Loop, Step
from robo_rl.sim.robots.arm import load_arm
from robo_rl.sim.tasks.arm.reach import Reach

GOAL = {"tool_position_setpoint": np.array([0.2, 0.0, 0.05], np.float32)}
PATIENCE = 60.0  # s of real time for a period of virtual time: the computer may be busy
RUN_IN = 10  # steps


def contract(robot: str = "so101") -> Contract:
    return Reach(load_arm(robot)).spec.contract(Provenance("none", 0, 0, "0" * 64), Network((8,), "elu", False))


class Waving:
    """A policy: every joint goes to and fro by up to 0.12 rad, from where it was when it took over."""

    def __init__(self, of: Contract) -> None:
        self.contract = of
        self.reset()

    def reset(self) -> None:
        self.steps, self.state = 0, self.contract.initial_state[None]
        self.home: dict[str, np.ndarray] = {}

    def step(self, signals: Mapping[str, Any], ages: Any = None) -> dict[str, np.ndarray]:
        self.steps += 1
        found = {}
        for command in self.contract.commands:
            source = command.name.removesuffix("_target")
            home = self.home.setdefault(source, np.array(signals[source]))
            target = home + 0.12 * math.sin(math.tau * self.steps / 100)
            found[command.name] = np.clip(target, command.lower, command.upper).astype(np.float32)
        return found


class Session:
    """A run of the loop with the driver on the emulated arm, and what the arm did."""

    def __init__(self, of: Contract | None = None) -> None:
        self.told_at = -1
        """The step after which the driver found something wrong."""
        self.contract = of or contract()
        self.arm, self.wire = self.emulate()
        self.clock = ArmTime(self.arm)
        self.driver = self.drive()
        self.steps: list[Step] = []
        self.poses: list[np.ndarray] = []
        self.problems: list[str] = []

    def emulate(self) -> tuple[Any, Any]:
        """The arm, and the line to it."""
        arm = Arm()
        return arm, Wire(arm.bus)

    def drive(self) -> Any:
        """The arm's driver."""
        bus = Bus(Line(self.wire), self.clock.now)
        return FeetechArm(bus, self.contract, self.arm.calibration, RobotFile(), JOINTS, self.clock.now)

    def run(self, fault: str, at: int, seconds: float, policy: Any = None) -> int:
        """With ``fault`` from step ``at`` on."""
        self.driver.connect()

        def note(step: Step) -> None:
            self.steps.append(step)
            self.poses.append(self.arm.position)
            self.problems += [p for p in self.driver.health().problems if p not in self.problems]
            if self.problems and self.told_at < 0:
                self.told_at = step.number
            if step.number == RUN_IN:
                loop.request(Request.ARM)
            elif step.output.state == State.READY and loop.reserve.arrived:
                loop.request(Request.ACTIVATE)
            if step.number == at:
                self.wire.begin(fault)

        loop = Loop(
            policy or Waving(self.contract), ForLoop(self.driver, self.contract, GOAL), note, self.clock, PATIENCE
        )
        return loop.run(seconds)
