"""What the servos' registers must be for a joint, and what a contract may ask of them."""

from __future__ import annotations

from collections.abc import Sequence

from robo_rl.contract import Contract
from robo_rl.deploy.robot.drivers.bus_servos.joints import SAME, Joint, within_range, within_rate
from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.feetech import registers as r

STIFFNESS = 17.8 / 16
"""N m/rad for each unit of the register P: SO-ARM100, Simulation/SO101/joints_properties.xml, identified at P = 16."""
DAMPING, D_GAIN = 0.6, 32
"""N m s/rad in the same identification, at D = 32 (LeRobot's configuration)."""
BYTES_PER_CYCLE = 40
"""Of one servo: its answer of 30 bytes, its part of the question and of the goals; 10 bits each at 1 Mbit/s."""
OVERHEAD = 0.003  # s: two turns of a USB adapter of 1 ms, and the rest


def setup(joint: Joint) -> list[tuple[r.Register, int]]:
    """What the registers must be before the arm moves."""
    return [
        (r.RETURN_DELAY, 0), (r.OPERATING_MODE, 0), (r.P, p_gain(joint)), (r.I, 0), (r.D, D_GAIN),
        (r.LOWER_LIMIT, joint.lowest), (r.UPPER_LIMIT, joint.highest), (r.ACCELERATION, 254),
    ]  # fmt: skip


def p_gain(joint: Joint) -> int:
    """The register P for a joint's stiffness, a whole number of about 16. DriverError where the servo can't have it."""
    p = round(joint.stiffness / STIFFNESS)
    if not 1 <= p <= 254 or abs(p * STIFFNESS / joint.stiffness - 1) > SAME or abs(joint.damping / DAMPING - 1) > SAME:
        raise DriverError(
            f"{joint.name}: the policy was trained with {joint.stiffness:g} N m/rad and {joint.damping:g} N m s/rad; "
            f"this servo can have a multiple of {STIFFNESS:.3g} N m/rad within 5 %, and {DAMPING:g} N m s/rad"
        )
    return p


def within_hardware(contract: Contract, joints: Sequence[Joint]) -> None:
    """DriverError where a contract asks for more than the servos and their bus can do."""
    for joint in joints:
        p_gain(joint)
    within_range(contract, joints)
    within_rate(contract, len(joints), OVERHEAD + len(joints) * BYTES_PER_CYCLE * 1e-5)
