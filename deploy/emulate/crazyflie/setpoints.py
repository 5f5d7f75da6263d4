"""Set-points that a Crazyflie takes: by the generic commander, one after the other, and by the high-level one, plans.

After crtp_commander_generic.c, crtp_commander_high_level.c and position_controller_pid.c (crazyflie-firmware 2a18fc29).
A plan goes along a straight line at constant speed, where the firmware has a polynomial; the yaw of positions is not
followed.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace

import numpy as np

from robo_rl.deploy.emulate.crazyflie.pid import Wanted, angles_of

STOP, POSITION, VELOCITY, HEIGHT, HOVER, MANUAL = 0, 7, 8, 9, 10, 11
HALT, TAKE_OFF, LAND, GO_TO = 3, 7, 8, 12
GAIN, FASTEST = 2.0, 1.0
"""1/s and m/s: PID_POS_X_KP, PID_POS_Z_KP, and PID_POS_VEL_X_MAX, _Z_MAX of platform_defaults_cf2.h."""
Place = tuple[float | None, float | None, float | None]


def decode(body: bytes) -> Wanted | None:
    """A packet of the generic commander; None for one that is not emulated, or holds no numbers."""
    kind, rest = body[0], body[1:]
    if kind == STOP:
        return Wanted()
    if kind == MANUAL:
        roll, pitch, yaw, thrust, rates = struct.unpack("<fffHB", rest)
        found = Wanted(float(thrust), (roll, pitch, yaw), level=not rates)
        return found if np.isfinite(found.turn).all() else None
    if kind not in (POSITION, VELOCITY, HEIGHT, HOVER) or len(rest) != 16:
        return None
    a, b, c, d = numbers = struct.unpack("<ffff", rest)
    if not np.isfinite(numbers).all():
        return None
    return {
        POSITION: Wanted(place=(a, b, c), velocity=(0.0, 0.0, 0.0)),
        VELOCITY: Wanted(turn=(0.0, 0.0, d), velocity=(a, b, c)),
        HEIGHT: Wanted(turn=(a, b, c), level=True, place=(None, None, d)),
        HOVER: Wanted(turn=(0.0, 0.0, c), velocity=(a, b, 0.0), ahead=True, place=(None, None, d)),
    }[kind]


def towards(wanted: Wanted, position: np.ndarray, orientation: np.ndarray) -> Wanted:
    """With the velocity (m/s, world) by which it comes to its place; ``position`` in m, ``orientation`` x, y, z, w."""
    velocity = list(wanted.velocity or (0.0, 0.0, 0.0))
    if wanted.ahead:
        yaw = math.radians(angles_of(orientation)[2])
        ahead, left, _ = velocity
        velocity[:2] = (
            math.cos(yaw) * ahead - math.sin(yaw) * left,
            math.sin(yaw) * ahead + math.cos(yaw) * left,
        )
    for axis, goal in enumerate(wanted.place or ()):
        if goal is not None:
            velocity[axis] += min(max(GAIN * (goal - float(position[axis])), -FASTEST), FASTEST)
    if wanted.velocity is None:
        return wanted if wanted.place is None else replace(wanted, climb=velocity[2])
    return replace(wanted, velocity=(velocity[0], velocity[1], velocity[2]))


@dataclass(frozen=True)
class Plan:
    """Of the high-level commander: a way, and whether its motors stop at the end."""

    begun: float
    duration: float
    """s"""
    start: np.ndarray
    goal: np.ndarray
    """(3,) m"""
    lands: bool = False

    @classmethod
    def of(cls, body: bytes, now: float, position: np.ndarray) -> Plan | None:
        """A packet's; None for a halt, and for what is not emulated."""
        command = body[0]
        if command in (TAKE_OFF, LAND):
            _, height, _, _, duration = struct.unpack("<Bff?f", body[1:])
            goal = np.array([position[0], position[1], height])
        elif command == GO_TO:
            _, relative, _, x, y, z, _, duration = struct.unpack("<BBBfffff", body[1:])
            goal = np.array([x, y, z]) + (position if relative else 0.0)
        else:
            return None
        if not np.isfinite([*goal, duration]).all():
            return None
        return cls(now, max(duration, 0.1), np.array(position), goal, command == LAND)

    def wanted(self, now: float) -> Wanted:
        """The set-point of now."""
        part = min(1.0, (now - self.begun) / self.duration)
        if part >= 1.0 and self.lands:
            return Wanted()
        x, y, z = self.start + part * (self.goal - self.start)
        return Wanted(place=(float(x), float(y), float(z)), velocity=(0.0, 0.0, 0.0))
