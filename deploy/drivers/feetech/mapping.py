"""From a servo's steps to the model's angles, and what a contract may ask of such a servo."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deploy.drivers.driver import DriverError
from deploy.drivers.feetech import registers as r
from deploy.drivers.feetech.calibration import JointCalibration
from deploy.drivers.feetech.robot_file import JointMounting, RobotFile
from robo_rl.contract import Contract

STEP = math.tau / r.TURN  # rad
STIFFNESS = 17.8 / 16
"""N m/rad for each unit of the register P: SO-ARM100, Simulation/SO101/joints_properties.xml, identified at P = 16."""
DAMPING, D_GAIN = 0.6, 32
"""N m s/rad in the same identification, at D = 32 (LeRobot's configuration)."""
SAME = 0.05
"""Relative difference of gains that counts as none: P is a whole number of about 16."""
BEYOND = 0.1
"""rad by which a contract's range may exceed the calibrated one: the stops are found by hand."""
BYTES_PER_CYCLE = 40
"""Of one servo: its answer of 30 bytes, its part of the question and of the goals; 10 bits each at 1 Mbit/s."""
OVERHEAD = 0.003  # s: two turns of a USB adapter of 1 ms, and the rest
BUSY = 0.8  # part of a control period that the bus may be busy


@dataclass(frozen=True)
class Joint:
    """One servo of an arm."""

    name: str
    calibration: JointCalibration
    sign: int
    zero: float
    """rad, the model's angle in the middle between the stops."""
    p: int
    """The register P."""

    @property
    def id(self) -> int:
        """On the bus."""
        return self.calibration.id

    @property
    def lowest(self) -> int:
        """Steps, of a goal."""
        return self.calibration.range_min

    @property
    def highest(self) -> int:
        """Steps, of a goal."""
        return self.calibration.range_max

    def angle(self, steps: float) -> float:
        """rad, the model's."""
        return self.zero + self.sign * STEP * (steps - self.calibration.middle)

    def rate(self, steps: float) -> float:
        """rad/s, of steps per second."""
        return self.sign * STEP * steps

    def steps(self, angle: float) -> int:
        """The goal of an angle (rad), within the calibrated range."""
        goal = round(self.calibration.middle + self.sign * (angle - self.zero) / STEP)
        return min(max(goal, self.lowest), self.highest)

    def setup(self) -> list[tuple[r.Register, int]]:
        """What the registers must be before the arm moves."""
        return [
            (r.RETURN_DELAY, 0), (r.OPERATING_MODE, 0), (r.P, self.p), (r.I, 0), (r.D, D_GAIN),
            (r.LOWER_LIMIT, self.lowest), (r.UPPER_LIMIT, self.highest), (r.ACCELERATION, 254),
        ]  # fmt: skip


def joints_of(
    contract: Contract, calibration: Mapping[str, JointCalibration], file: RobotFile, names: Sequence[str]
) -> tuple[Joint, ...]:
    """The arm's joints, in the order of ``names``. DriverError where contract, calibration and names don't agree."""
    commanded = {e: (c, i) for c in contract.commands for i, e in enumerate(c.elements)}
    if set(commanded) != set(names):
        raise DriverError(f"the policy commands {sorted(commanded)}; this arm has the joints {list(names)}")
    if not set(names) <= set(calibration):
        raise DriverError(f"the calibration has {list(calibration)}; expected {list(names)}")
    actuators = {a.name: a for a in contract.robot.actuators}
    joints = []
    for name in names:
        command, i = commanded[name]
        law = command.law
        if command.unit != "rad" or law is None or law.kind != "position":
            raise DriverError(f"'{command.name}' is in {command.unit}; these servos take positions in rad, with gains")
        mounting = file.joints.get(name, JointMounting())
        limits = actuators.get(name)
        low, high = (limits.lower, limits.upper) if limits else (command.lower[i], command.upper[i])
        zero = 0.5 * (low + high) if mounting.zero is None else mounting.zero
        sign = mounting.sign * (-1 if calibration[name].drive_mode else 1)
        joints.append(Joint(name, calibration[name], sign, zero, _p(name, law.stiffness[i], law.damping[i])))
    return tuple(joints)


def _p(name: str, stiffness: float, damping: float) -> int:
    """The register P for a stiffness (N m/rad). DriverError where the servo can't have these gains."""
    p = round(stiffness / STIFFNESS)
    if not 1 <= p <= 254 or abs(p * STIFFNESS / stiffness - 1) > SAME or abs(damping / DAMPING - 1) > SAME:
        raise DriverError(
            f"{name}: the policy was trained with {stiffness:g} N m/rad and {damping:g} N m s/rad; this servo can have "
            f"a multiple of {STIFFNESS:.3g} N m/rad within 5 %, and {DAMPING:g} N m s/rad"
        )
    return p


def within_hardware(contract: Contract, joints: Sequence[Joint]) -> None:
    """DriverError where a contract asks for more than the servos and their bus can do."""
    by_name = {joint.name: joint for joint in joints}
    for command in contract.commands:
        for i, name in enumerate(command.elements):
            joint = by_name[name]
            ends = sorted((joint.angle(joint.lowest), joint.angle(joint.highest)))
            if command.lower[i] < ends[0] - BEYOND or command.upper[i] > ends[1] + BEYOND:
                raise DriverError(
                    f"{name}: the policy commands {command.lower[i]:.2f} to {command.upper[i]:.2f} rad, and this arm "
                    f"is calibrated from {ends[0]:.2f} to {ends[1]:.2f} rad; calibrate it again over its whole range"
                )
    cycle = OVERHEAD + len(joints) * BYTES_PER_CYCLE * 1e-5
    if cycle > BUSY * contract.control_period:
        raise DriverError(
            f"the policy runs at {1 / contract.control_period:g} Hz; {len(joints)} servos on one bus can be read and "
            f"commanded at {BUSY / cycle:.0f} Hz"
        )
