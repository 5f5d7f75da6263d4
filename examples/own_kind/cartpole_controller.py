"""The classical controller of a cart with a pole: a linear quadratic regulator about upright."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy.linalg import expm, solve_discrete_are

from robo_rl.contract import Robot

GRAVITY = 9.81  # m/s²
COST = np.diag([20.0, 1.0, 40.0, 1.0])  # of x, v, θ, θ̇; per 1, 1, 1, 1
EFFORT = 0.05  # per N²


class Regulator:
    """``(signals, state) -> (commands, state)`` like a policy; it has no memory."""

    def __init__(self, robot: Robot, control_period: float) -> None:
        facts, (motor,) = robot.facts, robot.actuators
        self.limit = motor.upper
        self.gain = _gain(facts, control_period)

    def first_state(self, n: int) -> np.ndarray:
        """State before the first step, (n, 0)."""
        return np.zeros((n, 0), np.float32)

    def __call__(self, signals: Mapping[str, Any], state: Any) -> tuple[dict[str, Any], Any]:
        """The force (n, 1) N within its limits."""
        xp = array_namespace(state)
        parts = (signals["cart_position"] - signals["cart_position_setpoint"], signals["cart_velocity"])
        parts = (*parts, signals["pole_angle"], signals["pole_rate"])
        force = sum(float(-k) * part for k, part in zip(self.gain, parts, strict=True))
        return {"cart_force": xp.clip(force, -self.limit, self.limit)}, state


def _gain(facts: Mapping[str, float], period: float) -> np.ndarray:
    """(4,) of x, v, θ, θ̇: of the equations of ``cartpole_plant``, linear about upright, held over a period."""
    cart, pole, length, friction = (facts[name] for name in ("cart_mass", "pole_mass", "pole_length", "friction"))
    lever, inertia, mass = pole * length, 4 / 3 * pole * length**2, cart + pole
    determinant = mass * inertia - lever**2
    a, b = np.zeros((4, 4)), np.zeros((4, 1))
    a[0, 1] = a[2, 3] = 1.0
    a[1, 1:3] = -inertia * friction / determinant, -(lever**2) * GRAVITY / determinant
    a[3, 1:3] = lever * friction / determinant, mass * lever * GRAVITY / determinant
    b[1, 0], b[3, 0] = inertia / determinant, -lever / determinant
    held = expm(np.block([[a, b], [np.zeros((1, 5))]]) * period)
    a, b = held[:4, :4], held[:4, 4:]
    cost = solve_discrete_are(a, b, COST, np.array([[EFFORT]]))
    return np.linalg.solve(EFFORT + b.T @ cost @ b, b.T @ cost @ a)[0]
