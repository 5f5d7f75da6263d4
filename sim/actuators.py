"""The control law of drives in joints, for engines that don't have it themselves.

Pure functions of arrays (numpy or torch). MuJoCo computes the same by its ``dcmotor``.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Motors(NamedTuple):
    """Figures of J drives, (J,) or (n, J) each. Of slides, m stands for rad and N for N m."""

    stiffness: Any
    """N m/rad."""
    damping: Any
    """N m s/rad."""
    effort: Any
    """N m, the greatest torque in either direction; infinite for none."""
    velocity: Any
    """rad/s, at which no torque is left; infinite where speed costs none."""
    resistance: Any
    """Ω, of a motor with a constant of 1 N m/A that ``velocity`` volts drive: the torque at standstill is V/Ω."""


class Targets(NamedTuple):
    """What J drives are told, (J,) or (n, J) each: 0 what a drive's law has none of."""

    position: Any
    """rad."""
    velocity: Any
    """rad/s."""
    torque: Any
    """N m."""


def torque(motors: Motors, targets: Targets, position: Any, velocity: Any) -> Any:
    """N m: k (q_d − q) + d (q̇_d − q̇) + τ_d, within the effort and what full voltage gives at this speed."""
    wanted = motors.stiffness * (targets.position - position) + motors.damping * (targets.velocity - velocity)
    least = (-motors.velocity - velocity) / motors.resistance
    most = (motors.velocity - velocity) / motors.resistance
    return (wanted + targets.torque).clip(least, most).clip(-motors.effort, motors.effort)
