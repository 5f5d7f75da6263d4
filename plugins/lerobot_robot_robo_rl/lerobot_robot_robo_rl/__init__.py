"""Robots of robo-rl for LeRobot, which finds this package by its name: ``--robot.type=robo_rl_so101``."""

from lerobot_robot_robo_rl.config import RoboRlSo101Config
from lerobot_robot_robo_rl.so101 import RoboRlSo101

__all__ = ["RoboRlSo101", "RoboRlSo101Config"]
