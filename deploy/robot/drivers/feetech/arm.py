"""An arm of Feetech servos as a driver: every cycle is one read and one write.

In a cycle the servos are asked for all from TORQUE_ENABLE to PRESENT_TEMPERATURE. A servo holds its last goal when
nobody speaks to it: silence ends a motion, and does not let the arm fall.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from robo_rl.contract import Contract
from robo_rl.deploy.robot.drivers.bus_servos.arm import ServoArm, named
from robo_rl.deploy.robot.drivers.bus_servos.bus import Answer
from robo_rl.deploy.robot.drivers.bus_servos.calibration import JointCalibration
from robo_rl.deploy.robot.drivers.bus_servos.joints import STEP, Joint, joints_of
from robo_rl.deploy.robot.drivers.bus_servos.robot_file import RobotFile
from robo_rl.deploy.robot.drivers.driver import DriverError, Identity, Silence
from robo_rl.deploy.robot.drivers.feetech import registers as r
from robo_rl.deploy.robot.drivers.feetech.bus import Bus
from robo_rl.deploy.robot.drivers.feetech.mapping import setup, within_hardware
from robo_rl.deploy.robot.drivers.feetech.packets import ERRORS


class FeetechArm(ServoArm):
    """See the module's text, and ``robo_rl.deploy.robot.drivers.driver.Driver``."""

    silence = Silence.HOLDS
    cycle = (r.TORQUE_ENABLE.address, r.PRESENT_TEMPERATURE.address + 1 - r.TORQUE_ENABLE.address)

    def __init__(
        self, bus: Bus, contract: Contract, calibration: Mapping[str, JointCalibration], file: RobotFile,
        names: Sequence[str], now: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """``names``: joints of the arm, as in the contract. DriverError where the contract is beyond the hardware."""
        joints = joints_of(contract, calibration, file, names, reversed_here=True)
        within_hardware(contract, joints)
        super().__init__(bus, contract, joints, file.torque_limit, now)

    def identify(self) -> Identity:
        """Find all servos, compare their model and calibration, and set what they must be set to."""
        firmware = []
        for joint in self.joints:
            errors = self.bus.ping(joint.id)
            if errors is None:
                raise DriverError(
                    f"servo {joint.id} ({joint.name}) does not answer; check its cable, the power supply and its ID"
                )
            if errors:
                raise DriverError(
                    f"servo {joint.id} ({joint.name}) reports {named(errors, ERRORS)}; switch it off and on"
                )
            model = self.bus.read(joint.id, r.MODEL_NUMBER)
            if model != r.MODEL:
                raise DriverError(f"servo {joint.id} ({joint.name}) is model {model}; expected an STS3215, {r.MODEL}")
            offset = self.bus.read(joint.id, r.OFFSET)
            if offset != joint.calibration.homing_offset:
                raise DriverError(
                    f"servo {joint.id} ({joint.name}) has the offset {offset}, the calibration file says "
                    f"{joint.calibration.homing_offset}: the file is another arm's, or older; run lerobot-calibrate"
                )
            minor, major = divmod(self.bus.read(joint.id, r.FIRMWARE), 256)
            firmware.append(f"{major}.{minor}")
            for register, value in setup(joint):
                if self.bus.read(joint.id, register) != value:
                    self.bus.write(joint.id, register, value)
        return Identity("feetech", {"servos": " ".join(map(str, self._ids)), "firmware": " ".join(firmware)})

    def torque(self, on: bool) -> None:
        """Of all servos at once."""
        at = r.TORQUE_ENABLE
        self.bus.sync_write({id: at.encode(int(on)) for id in self._ids}, at.address)

    def send(self, goals: Mapping[int, int], part: float) -> None:
        """Goals and the torque limit, of all servos at once."""
        rest = r.GOAL_TIME.encode(0) + r.GOAL_SPEED.encode(0) + r.TORQUE_LIMIT.encode(round(1000 * part))
        self.bus.sync_write(
            {id: r.GOAL_POSITION.encode(goal) + rest for id, goal in goals.items()}, r.GOAL_POSITION.address
        )

    def steps_of(self, joint: Joint, data: bytes) -> int:
        """The position in what was read, steps."""
        return self._taken(data, r.PRESENT_POSITION)

    def measure(self, joint: Joint, data: bytes) -> tuple[float, float]:
        """The position and speed in what was read, rad and rad/s of the model."""
        position = joint.angle(self.dithered(self._taken(data, r.PRESENT_POSITION)))
        return position, joint.sign * STEP * self.dithered(self._taken(data, r.PRESENT_SPEED))

    def wrong(self, joint: Joint, answer: Answer) -> list[str]:
        """Error bits, torque that is off, and goals that are not ours."""
        found, data = [], answer.parameters
        self._figures[f"voltage/{joint.name} V"] = 0.1 * self._taken(data, r.PRESENT_VOLTAGE)
        self._figures[f"temperature/{joint.name} degC"] = float(self._taken(data, r.PRESENT_TEMPERATURE))
        self._figures[f"load/{joint.name} %"] = 0.1 * self._taken(data, r.PRESENT_LOAD)
        if answer.code:
            found.append(f"servo {joint.id} ({joint.name}) reports {named(answer.code, ERRORS)}")
        if self._enabled_at is None:
            return found
        if self._taken(data, r.TORQUE_ENABLE) != 1:
            found.append(f"servo {joint.id} ({joint.name}) lost its torque: its power failed, or it was switched off")
        return found + self.foreign_goal(joint, self._taken(data, r.GOAL_POSITION))

    def _taken(self, data: bytes, register: r.Register) -> int:
        return register.decode(data, self.cycle[0])
