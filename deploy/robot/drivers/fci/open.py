"""A Franka arm and its hand behind an address."""

from __future__ import annotations

from robo_rl.contract import Contract
from robo_rl.deploy.robot.drivers.fci.arm import FrankaArm
from robo_rl.deploy.robot.drivers.fci.hand import Hand
from robo_rl.deploy.robot.drivers.fci.library import open_hand, open_robot
from robo_rl.deploy.robot.drivers.fci.motion import ArmMotion
from robo_rl.deploy.robot.drivers.fci.robot_file import FrankaFile


def open_arm(address: str, contract: Contract, file: FrankaFile) -> FrankaArm:
    """Their driver. DriverError where one of the two does not answer."""
    robot = open_robot(address)
    gripper = open_hand(address)
    return FrankaArm(
        ArmMotion(robot), Hand(gripper, file.hand_speed, file.hand_force), contract, file, robot.model_urdf
    )
