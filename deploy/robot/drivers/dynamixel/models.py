"""Models of the X series by their number, and what they can do, from their data sheets (ROBOTIS e-manual).

Position control sets the voltage's duty to P/128 times the error in steps, of 885: so the stiffness (N m/rad) is

    P / 128 · 4096 / (2 pi) / 885 · stall torque

at the voltage of the stall torque, and in proportion to the voltage. The damping at D = 0 is the motor's own: stall
torque over no-load speed. What D adds is in no data sheet, and has to be identified.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from robo_rl.deploy.robot.drivers.bus_servos.calibration import TURN
from robo_rl.deploy.robot.drivers.dynamixel.registers import FULL_PWM


class Model(NamedTuple):
    """One model, at the voltage for which it is made."""

    name: str
    voltage: float
    stall: float
    """N m"""
    turns: float
    """Turns per minute without load."""
    current: float | None
    """A for a unit of PRESENT_CURRENT; None: it tells a load of 0.1 %."""

    @property
    def speed(self) -> float:
        """rad/s without load."""
        return self.turns * math.tau / 60

    @property
    def stiffness(self) -> float:
        """N m/rad for a unit of the register P."""
        return TURN / math.tau / 128 / FULL_PWM * self.stall

    @property
    def damping(self) -> float:
        """N m s/rad, of the motor."""
        return self.stall / self.speed


MODELS = {
    1020: Model("XM430-W350", 12.0, 4.1, 46, 2.69e-3),
    1030: Model("XM430-W210", 12.0, 3.0, 77, 2.69e-3),
    1060: Model("XL430-W250", 11.1, 1.4, 57, None),
    1070: Model("XC430-W150", 12.0, 1.6, 106, None),
    1080: Model("XC430-W240", 12.0, 1.9, 70, None),
    1090: Model("2XL430-W250", 11.1, 1.4, 57, None),
    1120: Model("XM540-W270", 12.0, 10.6, 30, 2.69e-3),
    1130: Model("XM540-W150", 12.0, 7.3, 53, 2.69e-3),
    1190: Model("XL330-M077", 5.0, 0.215, 383, 1e-3),
    1200: Model("XL330-M288", 5.0, 0.52, 103, 1e-3),
    1210: Model("XC330-T181", 11.1, 0.76, 104, 1e-3),
    1220: Model("XC330-T288", 11.1, 0.92, 65, 1e-3),
}
"""By MODEL_NUMBER. Torques and speeds are those at the recommended voltage."""
