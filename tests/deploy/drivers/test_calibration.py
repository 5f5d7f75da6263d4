"""Calibrations that don't fit the arm are refused, and the emulated SO-101 is calibrated as LeRobot does it."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest

from robo_rl.deploy.emulate.so101 import Arm
from robo_rl.deploy.robot.drivers.bus_servos.calibration import TURN, JointCalibration
from robo_rl.deploy.robot.drivers.bus_servos.joints import joints_of
from robo_rl.deploy.robot.drivers.bus_servos.robot_file import JointMounting, RobotFile
from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.feetech import registers as r
from robo_rl.deploy.robot.drivers.feetech.packets import write
from robo_rl.deploy.robot.drivers.so101 import JOINTS

sys.path.append(str(Path(__file__).parent))
import emulated_arm

CONTRACT = emulated_arm.contract()


def calibrated(name: str, low: int, high: int, file: RobotFile | None = None) -> None:
    """The emulated arm's calibration, with another range of one joint."""
    whole = Arm().calibration
    whole[name] = dataclasses.replace(whole[name], range_min=low, range_max=high)
    joints_of(CONTRACT, whole, file or RobotFile(), JOINTS, reversed_here=True)


@pytest.mark.parametrize(
    ("name", "low", "high", "why"),
    [
        ("shoulder_lift", 0, 4095, "passed from 4095 to 0"), ("elbow_flex", 3, 4090, "passed from 4095 to 0"),
        ("shoulder_pan", 300, 3800, "passed from 4095 to 0"), ("gripper", 0, 4095, "passed from 4095 to 0"),
        ("wrist_flex", 2040, 2050, "over its whole range"), ("shoulder_pan", 2047, 3299, "over its whole range"),
        ("shoulder_lift", 909, 2500, "over its whole range"), ("wrist_roll", 2000, 2100, "over its whole range"),
        ("gripper", 1421, 1800, "over its whole range"),
    ],
)  # fmt: skip
def test_a_range_across_the_seam_collapsed_or_half_swept_is_refused(name: str, low: int, high: int, why: str) -> None:
    with pytest.raises(DriverError, match=rf"{name} is calibrated over .*{why}"):
        calibrated(name, low, high)


def test_a_full_turn_of_the_wrist_and_ranges_that_were_found_by_hand_are_taken() -> None:
    calibrated("wrist_roll", 0, TURN - 1)
    for name, one in Arm().calibration.items():
        for off in (-60, 60):  # 5 degrees
            calibrated(name, one.range_min - off, one.range_max)
            calibrated(name, one.range_min, one.range_max + off)


def test_a_part_of_the_range_is_enough_where_the_robot_file_says_the_zero() -> None:
    file = RobotFile({"shoulder_pan": JointMounting(zero=0.3)})
    calibrated("shoulder_pan", 1200, 3299, file)
    with pytest.raises(DriverError, match="passed from 4095 to 0"):
        calibrated("shoulder_pan", 0, 4095, file)


def swept(arm: Arm, offset_of: dict[int, int]) -> dict[str, JointCalibration]:
    """As lerobot-calibrate: offset 0, half a turn where the joint is, then the least and greatest of what is read."""
    found = {}
    for joint, one in zip(arm.joints, arm.calibration.values(), strict=True):
        servo = arm.bus.servos[one.id]
        middle = 0.5 * (one.range_min + one.range_max)
        arm.bus.feed(write(one.id, r.LOCK.address, r.LOCK.encode(0)))
        arm.bus.feed(write(one.id, r.OFFSET.address, r.OFFSET.encode(0)))
        arm.tell(servo, one, middle + offset_of.get(one.id, 0), 0.0)
        offset = servo.get(r.PRESENT_POSITION) - 2047
        arm.bus.feed(write(one.id, r.OFFSET.address, r.OFFSET.encode(offset)))
        assert servo.get(r.PRESENT_POSITION) == 2047, "it follows at once"
        positions = []
        for steps in np.linspace(one.range_min, one.range_max, 400):
            arm.tell(servo, one, steps, 0.0)
            positions.append(servo.get(r.PRESENT_POSITION))
        found[joint.name] = JointCalibration(one.id, 0, offset, min(positions), max(positions))
    return found


def test_lerobots_calibration_of_the_emulated_arm_comes_out_right() -> None:
    arm = Arm()
    found = swept(arm, {})
    for name, one in arm.calibration.items():
        assert abs(found[name].range_min - one.range_min) <= 1
        assert abs(found[name].range_max - one.range_max) <= 1
        assert abs((found[name].homing_offset - one.homing_offset + TURN // 2) % TURN - TURN // 2) <= 1
    joints_of(CONTRACT, found, RobotFile(), JOINTS, reversed_here=True)


def test_a_calibration_that_begins_far_from_the_middle_crosses_the_seam_and_is_refused() -> None:
    arm = Arm()
    found = swept(arm, {2: 1000})  # the shoulder 88 degrees off when its middle was to be found
    assert found["shoulder_lift"].range_max - found["shoulder_lift"].range_min > 4000
    with pytest.raises(DriverError, match=r"shoulder_lift is calibrated over .*passed from 4095 to 0"):
        joints_of(CONTRACT, found, RobotFile(), JOINTS, reversed_here=True)


def test_a_servo_turns_to_its_goal_without_passing_the_seam() -> None:
    arm = Arm()
    servo, one = arm.bus.servos[1], arm.calibration["shoulder_pan"]
    arm.tell(servo, one, 10.0, 0.0)
    arm.bus.feed(write(1, r.LOWER_LIMIT.address, r.LOWER_LIMIT.encode(0)))
    arm.bus.feed(write(1, r.UPPER_LIMIT.address, r.UPPER_LIMIT.encode(4095)))
    arm.bus.feed(write(1, r.GOAL_POSITION.address, r.GOAL_POSITION.encode(4090)))
    assert servo.goal - servo.encoder == 4080
