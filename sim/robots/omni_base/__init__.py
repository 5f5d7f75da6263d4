"""Cards of omnidirectional mobile bases: figures of mecanum or omni wheels, motors, shape and lidar."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from robo_rl.contract import Actuator, Robot
from robo_rl.sim.robots.mobile_base import SHARED, BaseCard, Wheel
from robo_rl.sim.robots.omni_wheels import WHEELS, require_all_ways, speeds_of_wheels, wheels_of

UNITS = {
    **SHARED, **WHEELS, "yaw_inertia": "kg*m^2", "grip": "1", "roller_friction": "1", "slip_speed": "m/s",
}  # fmt: skip


@dataclass(frozen=True)
class OmniBaseCard(BaseCard):
    """Figures of a round base that drives in all directions, in SI units; x forward, y to the left."""

    kind: ClassVar[str] = "omni_base"

    wheel_x: tuple[float, ...]
    wheel_y: tuple[float, ...]
    wheel_heading: tuple[float, ...]
    """Which way each wheel rolls, from x towards y."""
    roller_angle: tuple[float, ...]
    """Of the axles of the rollers that touch the ground, from that way towards its left: ± π/4 for mecanum wheels, 0
    for omni wheels."""
    yaw_inertia: float
    grip: float
    """Friction along the rollers' axles, which drives: a force over the weight that the wheel carries."""
    roller_friction: float
    """Friction across them, where rollers roll."""
    slip_speed: float
    """Speed over the ground at which friction has 71 % of its greatest force."""

    @property
    def gyration(self) -> float:
        """m, radius of gyration about the vertical."""
        return math.sqrt(self.yaw_inertia / self.mass)

    @property
    def wheels(self) -> tuple[Wheel, ...]:
        places = zip(self.wheel_x, self.wheel_y, self.wheel_heading, strict=True)
        return tuple(Wheel(f"wheel_{k}", *place) for k, place in enumerate(places, 1))

    @property
    def yaw_moment(self) -> float:
        return self.yaw_inertia

    @property
    def wheel_width(self) -> float:
        return self.wheel_radius

    @property
    def speeds_of_wheels(self) -> np.ndarray:
        """(wheels, 3), as of ``speeds_of_wheels``."""
        return speeds_of_wheels(self)

    def facts(self) -> Robot:
        """What a contract tells about this robot."""
        top, turn = self.speed_max, self.turn_rate_max
        actuators = (
            Actuator("vx", "velocity", "m/s", -top, top, safe=0.0),
            Actuator("vy", "velocity", "m/s", -top, top, safe=0.0),
            Actuator("wz", "velocity", "rad/s", -turn, turn, safe=0.0),
        )
        told = ("mass", "radius", "wheel_radius", "speed_max", "turn_rate_max", "acceleration", "turn_acceleration")
        own: dict[str, Any] = {name: getattr(self, name) for name in told}
        own |= {name: list(getattr(self, name)) for name in WHEELS}
        return Robot(self.name, self.kind, actuators, own)

    @classmethod
    def read(cls, card: dict[str, Any], name: str, path: Path) -> Self:
        """The card in the parsed TOML ``card`` of the file ``path``."""
        count = wheels_of(card, str(path))
        found = cls.of(card, UNITS, dict.fromkeys(WHEELS, count), tuple(WHEELS), name, path)
        require_all_ways(found, found.radius, str(path))
        return found


CARD = OmniBaseCard
