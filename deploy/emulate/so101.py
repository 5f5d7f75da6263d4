"""An SO-101 on its bus: the card's arm in MuJoCo behind six Feetech servos."""

from __future__ import annotations

from robo_rl.deploy.emulate.servos import Servo, ServoBus
from robo_rl.deploy.emulate.servos.arm import TICK as TICK
from robo_rl.deploy.emulate.servos.arm import Drive, EmulatedArm
from robo_rl.deploy.robot.drivers.bus_servos.calibration import TURN, JointCalibration
from robo_rl.deploy.robot.drivers.feetech import registers as r
from robo_rl.deploy.robot.drivers.feetech.mapping import D_GAIN, DAMPING, STIFFNESS
from robo_rl.sim.robots.arm import ArmCard

P = 16
"""As LeRobot sets it."""
OFFSETS = (-1470, 812, 33, -250, 1999, 640)
"""Steps: how the horns of this arm were mounted; any numbers."""


class Arm(EmulatedArm):
    """The arm as its servos move it."""

    def __init__(self, card: ArmCard | None = None) -> None:
        super().__init__(card, OFFSETS, _calibrated_servo)
        self._offsets = {one.id: one.homing_offset for one in self.calibration.values()}
        self.bus = ServoBus(self.servos)
        self.tell_all(self.bus.servos)

    def drive(self, servo: Servo) -> Drive:
        """As the registers have it."""
        goal = servo.goal - self._offsets[servo.get(r.ID)]
        powered = servo.alive and servo.get(r.TORQUE_ENABLE) == 1
        limit = min(servo.get(r.TORQUE_LIMIT), servo.get(r.MAX_TORQUE)) / 1000
        return Drive(goal, STIFFNESS * servo.get(r.P) if powered else 0.0, DAMPING, max(limit, 0.01))

    def tell(self, servo: Servo, one: JointCalibration, steps: float, rate: float) -> None:
        """What the encoder finds; the servo takes its offset off, which may be another one since."""
        servo.measure(steps + one.homing_offset, rate)


def _calibrated_servo(one: JointCalibration) -> Servo:
    """As LeRobot leaves it: calibrated, with its gains, torque off."""
    servo = Servo(one.id, one.homing_offset)
    for register, value in (
        (r.LOWER_LIMIT, one.range_min), (r.UPPER_LIMIT, one.range_max), (r.P, P), (r.D, D_GAIN),
        (r.RETURN_DELAY, 0), (r.GOAL_POSITION, TURN // 2),
    ):  # fmt: skip
        servo.set(register, value)
    servo.eeprom[:] = servo.registers
    return servo
