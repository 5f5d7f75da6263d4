"""Classical speed control of motors, PI by the symmetric optimum: of those whose drive keeps a current, and, by their
duty, of those with six-step commutation."""

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
    """A s/rad; of a motor with six-step commutation s/rad, its command being a duty."""
    integral_time: float
    """s."""
    limit: float
    """A; of a duty 1."""

    @classmethod
    def of(cls, robot: Robot, period: float, current_time: float, limit: float) -> SymmetricOptimum:
        """For a contract's robot: the current's time constant, computing and half of the holding are delays.

        By its duty, a shaft that back-EMF damps counts as one without: its own time constant is longer than 4 T."""
        facts, delay = robot.facts, current_time + 1.5 * period
        if facts["machine"] == "pmsm":
            factor = 1.5 * facts["pole_pairs"] * facts["flux"]
        elif facts["machine"] == "dc":
            factor = facts["torque_constant"]
        else:
            factor = facts["torque_constant"] * facts["supply_voltage"] / facts["resistance"]
        return cls(period, float(facts["inertia"]) / (2.0 * factor * delay), 4.0 * delay, limit)

    def filtered(self, filtered: Any, setpoint: Any) -> Any:
        """rad/s: the filtered set-point, a period later."""
        return filtered + (self.period / (self.period + self.integral_time)) * (setpoint - filtered)

    def proposed(self, filtered: Any, speed: Any, integral: Any) -> Any:
        """A, or a duty, without limit."""
        return self.gain * (filtered - speed) + integral

    def integrated(self, integral: Any, filtered: Any, speed: Any, proposed: Any, given: Any) -> Any:
        """A, or a duty: the integral a period later, of what was ``given``, so that it does not wind up."""
        error = self.gain * (filtered - speed) + (given - proposed)
        return integral + (self.period / self.integral_time) * error


class SpeedPI:
    """``(signals, state) -> (commands, state)``; the state (n, 2) is the integral (A) and the filtered set-point."""

    name = "pi"
    command = "current_target"

    def __init__(self, optimum: SymmetricOptimum) -> None:
        self.optimum = optimum

    def first_state(self, n: int) -> np.ndarray:
        """State before the first step."""
        return np.zeros((n, 2), np.float32)

    def __call__(self, signals: Mapping[str, Any], state: Any) -> tuple[dict[str, Any], Any]:
        """The ``command`` (n, 1), within its limit."""
        xp, best = array_namespace(state), self.optimum
        speed, setpoint = (signals[name][:, 0] for name in ("rotor_speed", "rotor_speed_setpoint"))
        filtered = best.filtered(state[:, 1], setpoint)
        proposed = best.proposed(filtered, speed, state[:, 0])
        given = self.limited(proposed, signals, xp)
        integral = best.integrated(state[:, 0], filtered, speed, proposed, given)
        return {self.command: given[:, None]}, xp.stack([integral, filtered], axis=-1)

    def limited(self, proposed: Any, signals: Mapping[str, Any], xp: Any) -> Any:
        """(n,) what is commanded of what PI control proposes (n,)."""
        return xp.clip(proposed, -self.optimum.limit, self.optimum.limit)


class DutyWindow(NamedTuple):
    """Duties with which at most ``current`` flows in a motor that turns steadily: u duty = k ω ± R i."""

    current: float
    """A."""
    resistance: float
    """ohm, phase to phase."""
    back_emf: float
    """V s/rad, phase to phase."""
    least_voltage: float
    """V of the bus, below which a measured one is not believed."""

    @classmethod
    def of(cls, robot: Robot, current: float) -> DutyWindow:
        """Of a contract's robot, for so many A."""
        facts = robot.facts
        return cls(current, facts["resistance"], facts["torque_constant"], 0.25 * facts["supply_voltage"])

    def within(self, duty: Any, speed: Any, bus: Any, xp: Any) -> Any:
        """The ``duty``, within the window of a speed (rad/s) and a bus voltage (V), of one shape each."""
        per, back = 1.0 / xp.clip(bus, self.least_voltage, None), self.back_emf * speed
        drop = self.resistance * self.current
        return xp.clip(xp.clip(duty, (back - drop) * per, (back + drop) * per), -1.0, 1.0)


class DutyPI(SpeedPI):
    """The same by the ``duty`` of a motor with six-step commutation, within a window that limits its current."""

    command = "duty"

    def __init__(self, optimum: SymmetricOptimum, window: DutyWindow) -> None:
        super().__init__(optimum)
        self.window = window

    def limited(self, proposed: Any, signals: Mapping[str, Any], xp: Any) -> Any:
        return self.window.within(proposed, signals["rotor_speed"][:, 0], signals["bus_voltage"][:, 0], xp)
