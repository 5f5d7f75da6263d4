"""Cards of omnidirectional mobile bases: figures of mecanum or omni wheels, motors, shape and lidar."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from robo_rl.contract import Actuator, Robot
from robo_rl.sim.robots.figures import require
from robo_rl.sim.robots.mobile_base import SHARED, BaseCard, Wheel

WHEELS = {"wheel_x": "m", "wheel_y": "m", "wheel_heading": "rad", "roller_angle": "rad"}
"""The figures that are one number per wheel."""
UNITS = {
    **SHARED, **WHEELS, "yaw_inertia": "kg*m^2", "grip": "1", "roller_friction": "1", "slip_speed": "m/s",
}  # fmt: skip
LEAST, MOST = 3, 8
"""Wheels."""
STEEP = 1.4
"""rad, below which the angle of rollers must be: those across a wheel's way would not drive at all."""
WEAK = 0.05
"""Of the greatest singular value of the wheels' speeds over the robot's, the least: else some way is not driven."""


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


class OnRollers(Protocol):
    """What has mecanum or omni wheels: a base, or the drive of an arm on one. One number per wheel, see there."""

    @property
    def wheel_x(self) -> tuple[float, ...]: ...
    @property
    def wheel_y(self) -> tuple[float, ...]: ...
    @property
    def wheel_heading(self) -> tuple[float, ...]: ...
    @property
    def roller_angle(self) -> tuple[float, ...]: ...


def wheels_of(card: dict[str, Any], where: str, prefix: str = "") -> int:
    """How many there are. CardError for too few, or too many."""
    first = card.get("wheel_x")
    given = first.get("value") if isinstance(first, dict) else None
    good = isinstance(given, list) and LEAST <= len(given) <= MOST
    require(good, where, f"{prefix}wheel_x.value", given, f"a list of {LEAST} to {MOST} numbers, one for each wheel")
    assert isinstance(given, list)
    return len(given)


def speeds_of_wheels(base: OnRollers) -> np.ndarray:
    """(wheels, 3): speeds of the rims (m/s) of wheels that don't slip, for 1 m/s forward, 1 m/s left and 1 rad/s.

    A wheel drives along the axles of its rollers: there the ground goes by as fast as the rim does, across them
    the rollers roll.
    """
    x, y, heading, roller = (np.array(getattr(base, name)) for name in WHEELS)
    ax, ay = np.cos(heading + roller), np.sin(heading + roller)
    return np.stack([ax, ay, x * ay - y * ax], -1) / np.cos(roller)[:, None]


def require_all_ways(base: OnRollers, radius: float, where: str, prefix: str = "") -> None:
    """CardError where wheels don't drive a robot of a ``radius`` (m) forward, to the side and round."""
    angles = list(base.roller_angle)
    require(max(map(abs, angles)) < STEEP, where, f"{prefix}roller_angle.value", angles, f"angles below {STEEP} rad")
    driven = np.linalg.svd(speeds_of_wheels(base) / [1.0, 1.0, radius], compute_uv=False)
    expected = "angles with which the wheels drive the robot forward, to the side and round"
    require(driven[-1] > WEAK * driven[0], where, f"{prefix}roller_angle.value", angles, expected)


CARD = OmniBaseCard
