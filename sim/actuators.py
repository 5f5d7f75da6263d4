"""The control law of position-controlled motors, for engines that don't have it themselves.

Pure functions of arrays (numpy or torch). MuJoCo computes the same by its ``dcmotor``.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Motors(NamedTuple):
    """Figures of J motors, (J,) or (n, J) each."""

    stiffness: Any
    """N m/rad."""
    damping: Any
    """N m s/rad."""
    effort: Any
    """N m, the greatest torque in either direction."""
    velocity: Any
    """rad/s, at which no torque is left."""
    resistance: Any
    """Ω, of a motor with a constant of 1 N m/A that ``velocity`` volts drive: the torque at standstill is V/Ω."""


def torque(motors: Motors, target: Any, position: Any, velocity: Any) -> Any:
    """N m: k (target − q) − d q̇, within the effort and what full voltage gives at this speed."""
    wanted = motors.stiffness * (target - position) - motors.damping * velocity
    least = (-motors.velocity - velocity) / motors.resistance
    most = (motors.velocity - velocity) / motors.resistance
    return wanted.clip(least, most).clip(-motors.effort, motors.effort)
