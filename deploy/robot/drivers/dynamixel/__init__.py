"""Arms of Dynamixel servos of the X series (Koch v1.1, ViperX, WidowX, OpenManipulator), protocol 2.0 at 1 Mbit/s.

Never tried on hardware yet: on the emulator (``robo-rl emulate dynamixel``) and against the maker's library alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from robo_rl.contract import Contract
from robo_rl.deploy.robot.drivers.driver import DriverError, Settings

if TYPE_CHECKING:
    from robo_rl.deploy.robot.drivers.dynamixel.arm import DynamixelArm

PORT, BAUD = "/dev/ttyUSB0", 1_000_000


def make(contract: Contract, settings: Settings) -> DynamixelArm:
    """The driver of an arm, whose joints are those of the contract. DriverError where that can't be its contract."""
    from robo_rl.deploy.robot.drivers.bus_servos.calibration import DYNAMIXEL_OFFSET, read_calibration
    from robo_rl.deploy.robot.drivers.bus_servos.robot_file import DYNAMIXEL, read_robot_file
    from robo_rl.deploy.robot.drivers.dynamixel.arm import DynamixelArm, joints_for
    from robo_rl.deploy.robot.drivers.dynamixel.bus import Bus
    from robo_rl.deploy.robot.drivers.serial_port import SerialPort

    if not settings.calibration:
        raise DriverError(
            "give LeRobot's calibration of this arm with --calibration, such as "
            "~/.cache/huggingface/lerobot/calibration/robots/koch_follower/ID.json"
        )
    calibration = read_calibration(settings.calibration, DYNAMIXEL_OFFSET)
    names = [element for command in contract.commands for element in command.elements]
    file = read_robot_file(settings.file, names, DYNAMIXEL)
    joints_for(contract, calibration, file)  # before the port is touched
    port = SerialPort(settings.port or PORT, BAUD)
    try:
        return DynamixelArm(Bus(port), contract, calibration, file)
    except DriverError:
        port.close()
        raise
