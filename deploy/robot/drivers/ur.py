"""Arms of Universal Robots' e-Series (UR5e), by RTDE and a program of ours that runs on the robot.

Never tried on hardware yet: on the emulator (``robo-rl emulate ur``) alone.
"""

from __future__ import annotations

from robo_rl.contract import Contract
from robo_rl.deploy.robot.drivers.driver import DriverError, Settings
from robo_rl.deploy.robot.drivers.figures_file import read_figures
from robo_rl.deploy.robot.drivers.rtde.arm import UrArm
from robo_rl.deploy.robot.drivers.rtde.link import Network
from robo_rl.deploy.robot.drivers.rtde.robot_file import UrFile


def make(contract: Contract, settings: Settings) -> UrArm:
    """The driver of an arm. DriverError where the contract is another robot's."""
    if settings.calibration:
        raise DriverError("an arm of Universal Robots takes no --calibration: it is calibrated by its maker")
    if not settings.port:
        raise DriverError("give the robot's address with --port (PolyScope: Settings, System, Network)")
    return UrArm(Network(settings.port), contract, read_figures(settings.file, UrFile))
