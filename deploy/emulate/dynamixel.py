"""An arm of Dynamixel servos on their bus: the geometry and joints of the SO-101's card, moved by six XM430-W210.

A Koch has the same joints under the same names and IDs, with weaker servos; no card of it is included. The XM430-W210
has the torque and speed that the card says. Its stiffness is that of its data sheet; what D adds to the damping is in
none, and is made up here so that D_GAIN gives the card's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robo_rl.deploy.emulate.servos.arm import TICK as TICK
from robo_rl.deploy.emulate.servos.arm import Drive, EmulatedArm
from robo_rl.deploy.emulate.servos.dynamixel_bus import Servo, ServoBus
from robo_rl.deploy.robot.drivers.bus_servos.calibration import JointCalibration
from robo_rl.deploy.robot.drivers.bus_servos.robot_file import JointMounting, RobotFile
from robo_rl.deploy.robot.drivers.dynamixel import registers as r
from robo_rl.deploy.robot.drivers.dynamixel.models import MODELS
from robo_rl.sim.robots.arm import ArmCard

MODEL = 1030
D_GAIN = 400
OFFSETS = (1470, -812, 33, 250, -1999, -640)
"""Steps: how the horns of this arm were mounted; any numbers."""


class Arm(EmulatedArm):
    """The arm as its servos move it."""

    def __init__(self, card: ArmCard | None = None) -> None:
        super().__init__(card, OFFSETS, _calibrated_servo)
        self._damping = float(self._nominal.damping.flatten()[0])
        self.file = RobotFile(
            {joint.name: JointMounting(damping=self._damping, d_gain=D_GAIN) for joint in self.joints},
            bus_watchdog=True,
        )
        """Its robot file: what was identified on it, and that its firmware is new enough."""
        self.bus = ServoBus(self.servos)
        self.tell_all(self.bus.servos)

    def advance(self, seconds: float, servos: Mapping[int, Any] | None = None) -> None:
        """Move on by whole ticks; the servos' clocks and watchdogs by all of it."""
        while seconds > 0.0:
            super().advance(min(seconds, TICK), servos)
            self.bus.advance(min(seconds, TICK))
            seconds -= TICK

    def drive(self, servo: Servo) -> Drive:
        """As the registers have it."""
        model = MODELS[MODEL]
        stiffness = model.stiffness * servo.get(r.P) * 0.1 * servo.get(r.PRESENT_VOLTAGE) / model.voltage
        damping = model.damping + (self._damping - model.damping) * servo.get(r.D) / D_GAIN
        powered = servo.alive and servo.get(r.TORQUE_ENABLE) == 1
        part = abs(servo.get(r.GOAL_PWM)) / r.FULL_PWM
        return Drive(servo.get(r.GOAL_POSITION), stiffness if powered else 0.0, damping, max(part, 0.01))

    def tell(self, servo: Servo, one: JointCalibration, steps: float, rate: float) -> None:
        """What the encoder finds, with the offset: it may have been calibrated anew since."""
        servo.measure(steps + (servo.get(r.HOMING_OFFSET) - one.homing_offset), rate)


def _calibrated_servo(one: JointCalibration) -> Servo:
    """As LeRobot leaves it: calibrated, in extended position mode, torque off."""
    servo = Servo(one.id, MODEL, one.homing_offset)
    for register, value in (
        (r.LOWER_LIMIT, one.range_min), (r.UPPER_LIMIT, one.range_max), (r.RETURN_DELAY, 0),
        (r.OPERATING_MODE, r.CURRENT_POSITION if one.id == len(OFFSETS) else r.EXTENDED_POSITION),
    ):  # fmt: skip
        servo.set(register, value)
    servo.eeprom = bytes(servo.registers)
    return servo
