"""What differs between two arms of Universal Robots: a file of the user's.

speed = 1.0           # part of the joints' greatest speeds; begin with 0.2 on an arm that is new to you
gain = 300.0          # of servoj: 100 to 2000
deceleration = 8.0    # rad/s^2 with which the arm is stopped
"""

from __future__ import annotations

from dataclasses import dataclass

from robo_rl.deploy.robot.drivers.figures_file import require_figures
from robo_rl.deploy.robot.drivers.rtde.program import GAIN

BOUNDS = (("speed", 0.05, 1.0), ("gain", *GAIN), ("deceleration", 2.0, 20.0))


@dataclass(frozen=True)
class UrFile:
    """See the module's text."""

    speed: float = 1.0
    gain: float = 300.0
    deceleration: float = 8.0

    def __post_init__(self) -> None:
        require_figures(self, BOUNDS)
