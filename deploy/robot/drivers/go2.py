"""Unitree Go2 EDU by DDS: joint targets with gains at 500 Hz, IMU and joints back.

Never tried on hardware yet: on the emulator (``robo-rl emulate go2``) alone. The port is the network interface to the
robot, which has the address 192.168.123.161.
"""

from __future__ import annotations

from robo_rl.contract import Contract
from robo_rl.deploy.robot.drivers.driver import DriverError, Settings
from robo_rl.deploy.robot.drivers.unitree.dds import config
from robo_rl.deploy.robot.drivers.unitree.dog import Dog
from robo_rl.deploy.robot.drivers.unitree.link import KeeperProcess
from robo_rl.deploy.robot.drivers.unitree.mapping import JointLimits

PORT = "eth0"
HIP, FRONT, REAR, CALF = (
    (-1.0472, 1.0472, 23.7), (-1.5708, 3.4907, 23.7), (-0.5236, 4.5379, 23.7), (-2.7227, -0.83776, 35.55),
)  # fmt: skip
"""rad, rad, N m: unitree_ros, go2_description.urdf."""
JOINTS = tuple(
    JointLimits(f"{leg}_{part}_joint", *limits)
    for leg in ("FR", "FL", "RR", "RL")
    for part, limits in (("hip", HIP), ("thigh", FRONT if leg[0] == "F" else REAR), ("calf", CALF))
)
"""In the order of the robot's motors."""


def make(contract: Contract, settings: Settings) -> Dog:
    """The driver of a Go2. DriverError where the contract is another robot's, or beyond the hardware."""
    if settings.calibration or settings.file:
        raise DriverError("a Go2 takes neither --calibration nor --robot-file: its joints' zeros are in its motors")
    port = settings.port or PORT
    config(port)
    return Dog("Unitree Go2", lambda damp: KeeperProcess(port, damp, len(JOINTS)), contract, JOINTS)
