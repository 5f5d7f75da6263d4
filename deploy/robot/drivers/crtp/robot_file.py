"""What differs between two Crazyflies: a file of the user's.

mass = 0.0                      # kg, weighed with decks and battery; 0: the policy's
thrust_max = 0.12               # N of a rotor at full scale: 0.12, with the thrust upgrade kit 0.18
voltage_start = 3.6             # V of the resting battery below which it does not take off
voltage_min = 3.1               # V in flight below which it lands
velocity_deviation_max = 0.3    # m/s, of the estimator's own standard deviation
position_deviation_max = 1.0    # m
watchdog = true                 # silence stops the motors after a second, and locks it until it is switched off and on
"""

from __future__ import annotations

from dataclasses import dataclass

from robo_rl.deploy.robot.drivers.figures_file import require_figures

BOUNDS = (
    ("mass", 0.0, 0.1), ("thrust_max", 0.05, 0.3), ("voltage_start", 0.0, 4.2), ("voltage_min", 0.0, 4.2),
    ("velocity_deviation_max", 0.001, 10.0), ("position_deviation_max", 0.001, 100.0),
)  # fmt: skip


@dataclass(frozen=True)
class CrazyflieFile:
    """See the module's text. ``thrust_max``: platform_defaults_cf2.h, THRUST_MAX of crazyflie-firmware."""

    mass: float = 0.0
    thrust_max: float = 0.12
    voltage_start: float = 3.6
    voltage_min: float = 3.1
    velocity_deviation_max: float = 0.3
    position_deviation_max: float = 1.0
    watchdog: bool = True

    def __post_init__(self) -> None:
        require_figures(self, BOUNDS)
        if type(self.watchdog) is not bool:
            raise ValueError(f"watchdog is {str(self.watchdog)[:40]}; expected true or false")
