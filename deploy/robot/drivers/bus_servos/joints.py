"""From a servo's steps to the model's angles, and what a contract may ask of servos on a bus, whoever made them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from robo_rl.contract import Contract
from robo_rl.deploy.robot.drivers.bus_servos.calibration import TURN, JointCalibration
from robo_rl.deploy.robot.drivers.bus_servos.robot_file import JointMounting, RobotFile
from robo_rl.deploy.robot.drivers.driver import DriverError

STEP = math.tau / TURN  # rad
SAME = 0.05
"""Relative difference of gains that counts as none."""
BEYOND = 0.1
"""rad by which a contract's range may exceed the calibrated one: the stops are found by hand."""
NARROWER, WIDER = 0.2, 0.35
"""rad by which the calibrated travel of a joint may be less and more than the model's. The files that LeRobot's users
publish are within 0.1 rad of it; a joint that was not moved from stop to stop, or whose encoder passed from 4095 to 0
meanwhile, is off by more, and its middle, which is taken for the model's, by half of that."""
FULL_TURNS = ("wrist_roll",)
"""Joints of which LeRobot writes a full turn, 0 to 4095, whatever their travel (so_follower.py)."""
BUSY = 0.8  # part of a control period that the bus may be busy


@dataclass(frozen=True)
class Joint:
    """One servo of an arm."""

    name: str
    calibration: JointCalibration
    sign: int
    zero: float
    """rad, the model's angle in the middle between the stops."""
    stiffness: float
    damping: float
    """N m/rad and N m s/rad, what the contract wants."""

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

    def steps(self, angle: float) -> int:
        """The goal of an angle (rad), within the calibrated range."""
        goal = round(self.calibration.middle + self.sign * (angle - self.zero) / STEP)
        return min(max(goal, self.lowest), self.highest)


def joints_of(
    contract: Contract, calibration: Mapping[str, JointCalibration], file: RobotFile, names: Sequence[str],
    reversed_here: bool, full_turns: Collection[str] = FULL_TURNS,
) -> tuple[Joint, ...]:  # fmt: skip
    """The arm's joints, in the order of ``names``. DriverError where contract, calibration and names don't agree.

    ``reversed_here``: a calibration's ``drive_mode`` turns the sign here, and not in the servo; ``full_turns``: joints
    whose stops are not in the calibration.
    """
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
        whole = name in full_turns and calibration[name].half_range > math.pi - STEP
        if not whole:
            _same_travel(name, calibration[name], high - low, mounting.zero is None)
        zero = 0.5 * (low + high) if mounting.zero is None else mounting.zero
        sign = mounting.sign * (-1 if reversed_here and calibration[name].drive_mode else 1)
        joints.append(Joint(name, calibration[name], sign, zero, law.stiffness[i], law.damping[i]))
    return tuple(joints)


def _same_travel(name: str, calibration: JointCalibration, travel: float, by_middle: bool) -> None:
    """DriverError where a joint was calibrated over much more or less than the model's ``travel`` (rad).

    ``by_middle``: its middle is taken for the model's; one that is less is harmless where the robot file says its zero.
    """
    found = 2 * calibration.half_range
    what = (
        f"{name} is calibrated over {found:.2f} rad (steps {calibration.range_min} to {calibration.range_max}), "
        f"and the model's goes over {travel:.2f} rad"
    )
    if found > travel + WIDER:
        raise DriverError(
            f"{what}: the encoder passed from {TURN - 1} to 0 while it was moved; mount its horn so that it does not, "
            "or begin with the joint in its middle, and calibrate it again"
        )
    if by_middle and found < travel - NARROWER:
        raise DriverError(f"{what}: calibrate it again over its whole range, from stop to stop")


def within_range(contract: Contract, joints: Sequence[Joint]) -> None:
    """DriverError where a contract commands angles beyond the calibrated ones."""
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


def within_rate(contract: Contract, servos: int, cycle: float) -> None:
    """DriverError where a contract is faster than a bus, which needs ``cycle`` s to read and command its servos."""
    if cycle > BUSY * contract.control_period:
        raise DriverError(
            f"the policy runs at {1 / contract.control_period:g} Hz; {servos} servos on one bus can be read and "
            f"commanded at {BUSY / cycle:.0f} Hz"
        )
