"""Classical speed control of motors whose drive keeps a current: PI by the symmetric optimum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from robo_rl.contract import Robot


class SymmetricOptimum(NamedTuple):
    """Gains for a shaft behind a delay that adds up to ``delay``: Kp = J / (2 k T), Ti = 4 T, set-points filtered by
    4 T (Kessler 1958; Schröder 2015, Elektrische Antriebe, Regelung von Antriebssystemen, 3.2)."""

    period: float
    gain: float
    """A s/rad."""
    integral_time: float
    """s."""
    limit: float
    """A."""

    @classmethod
    def of(cls, robot: Robot, period: float, current_time: float, limit: float) -> SymmetricOptimum:
        """For a contract's robot: the current loop's time constant, computing and half of the holding are delays."""
        facts, delay = robot.facts, current_time + 1.5 * period
        factor = facts["torque_constant"] if facts["machine"] == "dc" else 1.5 * facts["pole_pairs"] * facts["flux"]
        return cls(period, float(facts["inertia"]) / (2.0 * factor * delay), 4.0 * delay, limit)

    def filtered(self, filtered: Any, setpoint: Any) -> Any:
        """rad/s: the filtered set-point, a period later."""
        return filtered + (self.period / (self.period + self.integral_time)) * (setpoint - filtered)

    def proposed(self, filtered: Any, speed: Any, integral: Any) -> Any:
        """A, without limit."""
        return self.gain * (filtered - speed) + integral

    def integrated(self, integral: Any, filtered: Any, speed: Any, proposed: Any, given: Any) -> Any:
        """A: the integral a period later, of what was ``given``, so that it does not wind up."""
        error = self.gain * (filtered - speed) + (given - proposed)
        return integral + (self.period / self.integral_time) * error


class SpeedPI:
    """``(signals, state) -> (commands, state)``; the state (n, 2) is the integral (A) and the filtered set-point."""

    name = "pi"

    def __init__(self, optimum: SymmetricOptimum) -> None:
        self.optimum = optimum

    def first_state(self, n: int) -> np.ndarray:
        """State before the first step."""
        return np.zeros((n, 2), np.float32)

    def __call__(self, signals: Mapping[str, Any], state: Any) -> tuple[dict[str, Any], Any]:
        """``current_target`` (n, 1) A, within its limit."""
        xp, best = array_namespace(state), self.optimum
        speed, setpoint = (signals[name][:, 0] for name in ("rotor_speed", "rotor_speed_setpoint"))
        filtered = best.filtered(state[:, 1], setpoint)
        proposed = best.proposed(filtered, speed, state[:, 0])
        given = xp.clip(proposed, -best.limit, best.limit)
        integral = best.integrated(state[:, 0], filtered, speed, proposed, given)
        return {"current_target": given[:, None]}, xp.stack([integral, filtered], axis=-1)
