"""Multirotors with PX4: rates and thrust by MAVLink, from a computer on board.

Never tried on hardware yet: on the emulator (``robo-rl emulate px4``) alone.
"""

from __future__ import annotations

from robo_rl.contract import Contract
from robo_rl.deploy.robot.drivers.driver import DriverError, Settings
from robo_rl.deploy.robot.drivers.figures_file import read_figures
from robo_rl.deploy.robot.drivers.mavlink.robot_file import VehicleFile


def make(contract: Contract, settings: Settings) -> object:
    """The driver of a vehicle. DriverError where the contract is another robot's, or pymavlink is missing."""
    if settings.calibration:
        raise DriverError("PX4 takes no --calibration: it is calibrated by QGroundControl")
    file = read_figures(settings.file, VehicleFile)
    from robo_rl.deploy.robot.drivers.mavlink.link import open_port
    from robo_rl.deploy.robot.drivers.mavlink.mapping import within_hardware
    from robo_rl.deploy.robot.drivers.mavlink.px4 import Px4

    within_hardware(contract)  # before the port is opened
    return Px4(open_port(settings.port), contract, file)
