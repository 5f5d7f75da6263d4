"""A Franka arm and its hand behind an address."""

from __future__ import annotations

from deploy.drivers.fci.arm import FrankaArm
from deploy.drivers.fci.hand import Hand
from deploy.drivers.fci.library import open_hand, open_robot
from deploy.drivers.fci.motion import ArmMotion
from deploy.drivers.fci.robot_file import FrankaFile
from robo_rl.contract import Contract


def open_arm(address: str, contract: Contract, file: FrankaFile) -> FrankaArm:
    """Their driver. DriverError where one of the two does not answer."""
    robot = open_robot(address)
    gripper = open_hand(address)
    return FrankaArm(
        ArmMotion(robot), Hand(gripper, file.hand_speed, file.hand_force), contract, file, robot.model_urdf
    )
