"""SO-101 (and SO-100) of The Robot Studio: six STS3215 on one bus at 1 Mbit/s, calibrated by LeRobot.

Never tried on hardware yet: on the emulator (``robo-rl emulate so101``) and against the maker's library alone.
"""

from __future__ import annotations

from robo_rl.contract import Contract
from robo_rl.deploy.robot.drivers.bus_servos.calibration import FEETECH_OFFSET, read_calibration
from robo_rl.deploy.robot.drivers.bus_servos.joints import joints_of
from robo_rl.deploy.robot.drivers.bus_servos.robot_file import read_robot_file
from robo_rl.deploy.robot.drivers.driver import DriverError, Settings
from robo_rl.deploy.robot.drivers.feetech.arm import FeetechArm
from robo_rl.deploy.robot.drivers.feetech.bus import Bus
from robo_rl.deploy.robot.drivers.feetech.mapping import within_hardware
from robo_rl.deploy.robot.drivers.serial_port import SerialPort

JOINTS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")
"""With the IDs 1 to 6, as LeRobot sets them."""
PORT, BAUD = "/dev/ttyACM0", 1_000_000


def make(contract: Contract, settings: Settings) -> FeetechArm:
    """The driver of an arm. DriverError where the contract is another robot's, or beyond the hardware."""
    if not settings.calibration:
        raise DriverError(
            "give LeRobot's calibration of this arm with --calibration: "
            "~/.cache/huggingface/lerobot/calibration/robots/so_follower/ID.json"
        )
    calibration = read_calibration(settings.calibration, FEETECH_OFFSET)
    for number, name in enumerate(JOINTS, start=1):
        if name in calibration and calibration[name].id != number:
            raise DriverError(
                f"{settings.calibration}: {name} has the ID {calibration[name].id}; LeRobot's SO-101 has {number}. Is "
                "it of another arm, or are two exchanged? Set IDs with lerobot-setup-motors, then calibrate again"
            )
    file = read_robot_file(settings.file, JOINTS)
    joints = joints_of(contract, calibration, file, JOINTS, reversed_here=True)
    within_hardware(contract, joints)  # before the port is touched
    port = SerialPort(settings.port or PORT, BAUD)
    try:
        return FeetechArm(Bus(port), contract, calibration, file, JOINTS)
    except DriverError:
        port.close()
        raise
