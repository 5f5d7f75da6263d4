"""RoboRacer (F1TENTH) cars: a VESC on USB for motor, servo and IMU, and a Hokuyo UST-10LX on the network.

Never tried on hardware yet: on the emulator (``robo-rl emulate f1tenth``) alone.
"""

from __future__ import annotations

from robo_rl.contract import Contract
from robo_rl.deploy.robot.drivers.deadman import DeadmanProcess
from robo_rl.deploy.robot.drivers.driver import DriverError, Settings
from robo_rl.deploy.robot.drivers.hokuyo.lidar import Lidar, TcpPort
from robo_rl.deploy.robot.drivers.serial_port import SerialPort
from robo_rl.deploy.robot.drivers.vesc.car import Car, brake_orders, within_hardware
from robo_rl.deploy.robot.drivers.vesc.robot_file import read_robot_file

PORT, BAUD = "/dev/ttyACM0", 115200
"""USB takes any rate."""


def make(contract: Contract, settings: Settings) -> Car:
    """The driver of a car. DriverError where the contract is another robot's, or beyond the hardware."""
    if settings.calibration:
        raise DriverError("a car takes no --calibration: its figures are in --robot-file, as in its vesc.yaml")
    file = read_robot_file(settings.file)
    within_hardware(contract, file)  # before the port is touched
    port = SerialPort(settings.port or PORT, BAUD)
    return Car(
        port, contract, file, lambda: DeadmanProcess(port.number, brake_orders(file)),
        lambda scan, count: Lidar(TcpPort(file.lidar), scan, count),
    )  # fmt: skip
