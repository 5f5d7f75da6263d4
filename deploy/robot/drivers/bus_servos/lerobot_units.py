"""LeRobot's units of a calibrated servo, as its own follower arms have them: degrees from the middle between the stops,
and for a gripper 0 to 100 of its range (lerobot/motors/motors_bus.py, MotorNormMode).

A degree of LeRobot is one of 4095 steps in a turn, of which the servo has 4096.
"""

from __future__ import annotations

from robo_rl.deploy.robot.drivers.bus_servos.calibration import TURN
from robo_rl.deploy.robot.drivers.bus_servos.joints import STEP, Joint

DEGREES = 360 / (TURN - 1)
"""For a step."""


def to_lerobot(joint: Joint, angle: float, in_percent: bool) -> float:
    """Of the model's angle (rad); ``in_percent``: 0 to 100 of the range, within it."""
    from_middle = joint.sign * (angle - joint.zero) / STEP
    if not in_percent:
        return from_middle * DEGREES
    calibration = joint.calibration
    part = (from_middle + calibration.middle - calibration.range_min) / (calibration.range_max - calibration.range_min)
    percent = 100.0 * min(1.0, max(0.0, part))
    return 100.0 - percent if calibration.drive_mode else percent


def from_lerobot(joint: Joint, value: float, in_percent: bool) -> float:
    """The model's angle (rad) of LeRobot's value."""
    if not in_percent:
        return joint.angle(joint.calibration.middle + value / DEGREES)
    calibration = joint.calibration
    percent = 100.0 - value if calibration.drive_mode else value
    part = min(1.0, max(0.0, percent / 100.0))
    return joint.angle(calibration.range_min + part * (calibration.range_max - calibration.range_min))
