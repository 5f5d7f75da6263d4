"""What the servos' registers must be for a joint, and what a contract may ask of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from robo_rl.contract import Contract
from robo_rl.contract.robots import Actuator
from robo_rl.deploy.robot.drivers.bus_servos.joints import SAME, Joint, within_range, within_rate
from robo_rl.deploy.robot.drivers.bus_servos.robot_file import MOST_GAIN, JointMounting
from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.dynamixel import registers as r
from robo_rl.deploy.robot.drivers.dynamixel.models import Model

BYTES_PER_CYCLE = 66
"""Of one servo: two answers of 42 and 12 bytes, its parts of questions and of goals; 10 bits each at 1 Mbit/s."""
OVERHEAD = 0.004  # s: three turns of a USB adapter of 1 ms, and the rest
STRONGER = 1.02
"""Part by which a contract's torque and speed may exceed the data sheet's: they are rounded."""
WATCHDOG = 5, 0.1
"""Control periods and s, of which the longer is the servos' patience."""


@dataclass(frozen=True)
class Gains:
    """Registers P and D."""

    p: int
    d: int


def gains(joint: Joint, model: Model, voltage: float, mounting: JointMounting) -> Gains:
    """For a joint's stiffness and damping, by a servo of this model at this voltage (V). DriverError if it can't.

    What the robot file says was identified on the robot, at its voltage.
    """
    each = mounting.stiffness if mounting.stiffness is not None else model.stiffness * voltage / model.voltage
    own = mounting.damping if mounting.damping is not None else model.damping
    p = round(joint.stiffness / each)
    same_damping = abs(joint.damping - own) <= SAME * max(joint.damping, own)
    if not 1 <= p <= MOST_GAIN or abs(p * each / joint.stiffness - 1) > SAME or not same_damping:
        raise DriverError(
            f"{joint.name}: the policy was trained with {joint.stiffness:g} N m/rad and {joint.damping:g} N m s/rad; "
            f"this {model.name} at {voltage:.1f} V can have up to {MOST_GAIN * each:.3g} N m/rad, and {own:.3g} N m "
            "s/rad; train with these, or say in the robot file what was identified (stiffness, damping, d_gain)"
        )
    return Gains(p, mounting.d_gain)


def strong_enough(joint: Joint, actuator: Actuator | None, model: Model, voltage: float) -> None:
    """DriverError where the contract's robot is stronger or faster than this servo."""
    part = voltage / model.voltage
    for quantity, wanted, can, unit in (
        ("torque", actuator.effort if actuator else None, model.stall * part, "N m"),
        ("speed", actuator.speed if actuator else None, model.speed * part, "rad/s"),
    ):
        if wanted is not None and wanted > STRONGER * can:
            raise DriverError(
                f"{joint.name}: the policy's robot has a {quantity} of {wanted:.3g} {unit}; this {model.name} at "
                f"{voltage:.1f} V has {can:.3g} {unit}; train with a card that says so"
            )


def setup(joint: Joint, found: Gains) -> list[tuple[r.Register, int]]:
    """What registers without a memory must be before the arm moves."""
    return [
        (r.P, found.p), (r.I, 0), (r.D, found.d), (r.FEED_FORWARD_1, 0), (r.FEED_FORWARD_2, 0),
        (r.PROFILE_ACCELERATION, 0), (r.PROFILE_VELOCITY, 0),
    ]  # fmt: skip


def calibrated(joint: Joint) -> Mapping[str, tuple[r.Register, int]]:
    """What the servo's memory must be by the calibration file, by LeRobot's names."""
    one = joint.calibration
    return {
        "homing_offset": (r.HOMING_OFFSET, one.homing_offset), "range_min": (r.LOWER_LIMIT, one.range_min),
        "range_max": (r.UPPER_LIMIT, one.range_max),
    }  # fmt: skip


def within_bus(contract: Contract, joints: Sequence[Joint]) -> None:
    """DriverError where a contract asks for more than the calibrated ranges and the bus allow."""
    within_range(contract, joints)
    within_rate(contract, len(joints), OVERHEAD + len(joints) * BYTES_PER_CYCLE * 1e-5)


def patience(contract: Contract) -> int:
    """Of the bus watchdog, in its units."""
    periods, least = WATCHDOG
    return min(127, math.ceil(max(periods * contract.control_period, least) / r.WATCHDOG_UNIT - 1e-9))
