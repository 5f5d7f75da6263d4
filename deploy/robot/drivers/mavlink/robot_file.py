"""What differs between two vehicles with PX4: a file of the user's.

hover_thrust = 0.0     # part of full thrust at which it hovers; 0: the autopilot's MPC_THR_HOVER
battery_min = 0.2      # part of the charge below which it does not fly
"""

from __future__ import annotations

from dataclasses import dataclass

from robo_rl.deploy.robot.drivers.figures_file import require_figures

BOUNDS = (("hover_thrust", 0.0, 0.9), ("battery_min", 0.0, 0.9))


@dataclass(frozen=True)
class VehicleFile:
    """See the module's text."""

    hover_thrust: float = 0.0
    battery_min: float = 0.2

    def __post_init__(self) -> None:
        require_figures(self, BOUNDS)
