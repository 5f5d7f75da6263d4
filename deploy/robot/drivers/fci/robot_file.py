"""What differs between two Franka arms: a file of the user's.

torque_threshold = 20.0   # N m, of a joint, at which the robot takes something for a collision and stops
force_threshold = 30.0    # N, of the tool, likewise (N m of its torques, likewise)
hand_speed = 0.1          # m/s, at which the hand's width changes
hand_force = 30.0         # N, of a grasp
posture_stiffness = 5.0   # N m/rad, by which joints are held where they are while the tool does not mind
"""

from __future__ import annotations

from dataclasses import dataclass

from robo_rl.deploy.robot.drivers.figures_file import require_figures

BOUNDS = (
    ("torque_threshold", 5.0, 100.0), ("force_threshold", 5.0, 100.0), ("hand_speed", 0.01, 0.2),
    ("hand_force", 1.0, 70.0), ("posture_stiffness", 0.0, 20.0),
)  # fmt: skip


@dataclass(frozen=True)
class FrankaFile:
    """See the module's text."""

    torque_threshold: float = 20.0
    force_threshold: float = 30.0
    hand_speed: float = 0.1
    hand_force: float = 30.0
    posture_stiffness: float = 5.0

    def __post_init__(self) -> None:
        require_figures(self, BOUNDS)
