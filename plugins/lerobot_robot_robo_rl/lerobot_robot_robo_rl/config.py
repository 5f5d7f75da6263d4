"""What LeRobot's commands are told of the arm: ``--robot.port=…``, ``--robot.speed=…``."""

from __future__ import annotations

from dataclasses import dataclass, field

from lerobot.cameras import CameraConfig
from lerobot.robots import RobotConfig


@RobotConfig.register_subclass("robo_rl_so101")
@dataclass
class RoboRlSo101Config(RobotConfig):
    """An SO-101 or SO-100. The calibration is the one that LeRobot has for ``id`` and its own follower arms."""

    port: str
    policy: str = "zoo:arm-place-so101"
    """A bundle whose contract says what the arm may do: joint limits, gains, control rate."""
    robot_file: str = ""
    """What differs between two arms (*.toml), as for ``robo-rl run``."""
    speed: float = 3.0
    """rad/s at which targets change, at most: an arm that is far from the first one goes there at this speed."""
    disable_torque_on_disconnect: bool = False
    """True: the arm falls at the end, as LeRobot's own do; False: it holds."""
    cameras: dict[str, CameraConfig] = field(default_factory=dict)
