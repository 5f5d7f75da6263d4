"""An emulated arm of Dynamixel servos in virtual time, its driver, and a policy that waves it about."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

from robo_rl.contract import Contract
from robo_rl.deploy.emulate.dynamixel import Arm
from robo_rl.deploy.emulate.servos.arm_virtual import Line
from robo_rl.deploy.emulate.servos.dynamixel_wire import DynamixelWire
from robo_rl.deploy.robot.drivers.dynamixel.arm import DynamixelArm
from robo_rl.deploy.robot.drivers.dynamixel.bus import Bus

sys.path.append(str(Path(__file__).parent))
import emulated_arm


class Session(emulated_arm.Session):
    """A run of the loop with the driver on the emulated arm, and what the arm did."""

    def __init__(self, of: Contract | None = None, bus_watchdog: bool | None = True) -> None:
        self.bus_watchdog = bus_watchdog
        super().__init__(of)

    def emulate(self) -> tuple[Any, Any]:
        arm = Arm()
        return arm, DynamixelWire(arm.bus)

    def drive(self) -> Any:
        bus = Bus(Line(self.wire), self.clock.now)
        file = dataclasses.replace(self.arm.file, bus_watchdog=self.bus_watchdog)
        return DynamixelArm(bus, self.contract, self.arm.calibration, file, self.clock.now)
