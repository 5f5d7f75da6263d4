"""Arms of Franka Robotics (Panda, FR3) with the Franka hand, through franky.

Never tried on hardware yet: on franky's simulator (``robo-rl emulate franka``) alone.
"""

from __future__ import annotations

from robo_rl.contract import Contract
from robo_rl.deploy.robot.drivers.driver import DriverError, Settings
from robo_rl.deploy.robot.drivers.fci.mapping import Names
from robo_rl.deploy.robot.drivers.fci.robot_file import FrankaFile
from robo_rl.deploy.robot.drivers.figures_file import read_figures

ADDRESS = "172.16.0.2"
"""As Franka's documentation sets it up."""


def make(contract: Contract, settings: Settings) -> object:
    """The driver of an arm. DriverError where the contract is another robot's, or franky is missing."""
    if settings.calibration:
        raise DriverError("a Franka takes no --calibration: it is calibrated by its maker")
    file = read_figures(settings.file, FrankaFile)
    Names(contract, file)  # before the robot is touched
    from robo_rl.deploy.robot.drivers.fci.open import open_arm

    return open_arm(settings.port or ADDRESS, contract, file)
