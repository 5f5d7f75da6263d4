"""Mecanum and omni wheels on cards: what they drive, and whether they drive a robot in all directions."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from robo_rl.sim.robots.figures import require
from robo_rl.sim.robots.mobile_base import Wheel

WHEELS = {"wheel_x": "m", "wheel_y": "m", "wheel_heading": "rad", "roller_angle": "rad"}
"""The figures that are one number per wheel."""
LEAST, MOST = 3, 8
"""Wheels."""
STEEP = 1.4
"""rad, below which the angle of rollers must be: those across a wheel's way would not drive at all."""
WEAK = 0.05
"""Of the greatest singular value of the wheels' speeds over the robot's, the least: else some way is not driven."""


class OnRollers(Protocol):
    """What has mecanum or omni wheels: a base, or the drive of an arm on one; in SI units.

    One number per wheel: where it is, which way it rolls, from x towards y, and the angle of the axles of the rollers
    that touch the ground, from that way towards its left: ± π/4 for mecanum wheels, 0 for omni wheels. ``grip`` is the
    friction along those axles, ``roller_friction`` that across them, ``slip_speed`` the speed over the ground at which
    friction has 71 % of its greatest force, ``gyration`` the whole robot's radius about the vertical.
    """

    @property
    def wheel_x(self) -> tuple[float, ...]: ...
    @property
    def wheel_y(self) -> tuple[float, ...]: ...
    @property
    def wheel_heading(self) -> tuple[float, ...]: ...
    @property
    def roller_angle(self) -> tuple[float, ...]: ...
    @property
    def wheels(self) -> tuple[Wheel, ...]: ...
    @property
    def speed_max(self) -> float: ...
    @property
    def acceleration(self) -> float: ...
    @property
    def turn_acceleration(self) -> float: ...
    @property
    def motor_time(self) -> float: ...
    @property
    def grip(self) -> float: ...
    @property
    def roller_friction(self) -> float: ...
    @property
    def slip_speed(self) -> float: ...
    @property
    def gyration(self) -> float: ...


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
