"""Crazyflie 2.1 off board: body rates and thrust by CRTP, over a Crazyradio, USB or UDP, by Bitcraze's cflib.

Never tried on hardware yet: on the emulator (``robo-rl emulate crazyflie``) alone.
"""

from __future__ import annotations

from robo_rl.contract import Contract
from robo_rl.deploy.robot.drivers.crtp.robot_file import CrazyflieFile
from robo_rl.deploy.robot.drivers.driver import DriverError, Settings
from robo_rl.deploy.robot.drivers.figures_file import read_figures

URI = "udp://127.0.0.1:19850"
"""Where cflib expects a simulated Crazyflie. One in the air is radio://0/80/2M/E7E7E7E7E7 or so."""


def make(contract: Contract, settings: Settings) -> object:
    """The driver of a Crazyflie. DriverError where the contract is another robot's, or cflib is missing."""
    if settings.calibration:
        raise DriverError("a Crazyflie takes no --calibration: its deck and base stations are set up by cfclient")
    file = read_figures(settings.file, CrazyflieFile)
    from robo_rl.deploy.robot.drivers.crtp.crazyflie import Crazyflie, within_hardware
    from robo_rl.deploy.robot.drivers.crtp.session import Session

    within_hardware(contract, file)  # before the link is opened
    return Crazyflie(Session(settings.port or URI), contract, file)
