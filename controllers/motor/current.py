"""Classical current control of synchronous machines: field-oriented PI, and deadbeat with prediction and observer.

Both command the voltage of the next period, d and q, within the circle that the measured bus voltage allows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from robo_rl.contract import Robot
from robo_rl.controllers.motor.model import Pair, PmsmModel

OBSERVER = 0.1
"""Of the voltage that a prediction was off by, what the disturbance observer takes on in a period."""


def in_circle(vector: Pair, bus: Any, xp: Any) -> Pair:
    """V: a voltage, shortened to what space vector modulation can give of the bus voltage (n,)."""
    length = xp.sqrt(vector[0] * vector[0] + vector[1] * vector[1] + 1e-9)
    scale = xp.clip(bus * (1.0 / math.sqrt(3.0)) / length, max=1.0)
    return vector[0] * scale, vector[1] * scale


class _CurrentController:
    """What both have: signals in, a voltage out."""

    state_size: int

    def __init__(self, robot: Robot, control_period: float) -> None:
        self.model = PmsmModel.of(robot, control_period)

    def first_state(self, n: int) -> np.ndarray:
        """State before the first step, (n, state_size)."""
        return np.zeros((n, self.state_size), np.float32)

    def __call__(self, signals: Mapping[str, Any], state: Any) -> tuple[dict[str, Any], Any]:
        """``voltage`` (n, 2) V: d, q."""
        xp = array_namespace(state)
        parts = tuple(state[:, i] for i in range(self.state_size))
        omega = self.model.pole_pairs * signals["rotor_speed"][:, 0]
        current, goal = ((signals[name][:, 0], signals[name][:, 1]) for name in ("current", "current_setpoint"))
        voltage, kept = self._voltage(current, goal, omega, signals["bus_voltage"][:, 0], parts, xp)
        return {"voltage": xp.stack(voltage, axis=-1)}, xp.stack(kept, axis=-1)

    def _voltage(self, current: Pair, goal: Pair, omega: Any, bus: Any, state: tuple, xp: Any) -> tuple[Pair, tuple]:
        raise NotImplementedError


class FieldOriented(_CurrentController):
    """PI in d and q with decoupling, its gains by the magnitude optimum for a delay of 1.5 periods.

    Kp = L / (2 T), Ki = Kp R / L with T = 1.5 τ (Schröder 2015, Elektrische Antriebe, Regelung von Antriebssystemen,
    3.1: the pole of R and L is cancelled). The integral takes what was applied, so that it does not wind up.
    """

    name = "pi"
    state_size = 2

    def _voltage(self, current: Pair, goal: Pair, omega: Any, bus: Any, state: tuple, xp: Any) -> tuple[Pair, tuple]:
        m = self.model
        error = (goal[0] - current[0], goal[1] - current[1])
        gains = tuple(inductance / (3.0 * m.period) for inductance in (m.inductance_d, m.inductance_q))
        rotation = m.drop(current, omega)
        rotation = (rotation[0] - m.resistance * current[0], rotation[1] - m.resistance * current[1])
        wanted = tuple(k * e + x + r for k, e, x, r in zip(gains, error, state, rotation, strict=True))
        given = in_circle(wanted, bus, xp)
        applied = tuple(e + (u - w) / k for e, u, w, k in zip(error, given, wanted, gains, strict=True))
        share = m.resistance / 3.0  # Ki τ, in both axes
        return given, tuple(x + share * e for x, e in zip(state, applied, strict=True))


class Deadbeat(_CurrentController):
    """The voltage that reaches the set-point two periods on, by a model whose error an observer learns as a voltage.

    The current a period on is predicted from the voltage that is being applied. Where the last prediction was off, the
    voltage that explains it is taken on by ``OBSERVER``.
    """

    state_size = 6
    """The voltage that is being applied, the current that was predicted for now, the disturbance: d, q each."""

    def __init__(self, robot: Robot, control_period: float, trust: float = 1.0, observer: float = OBSERVER) -> None:
        """``trust``: how much of what the measured current is off by a prediction begins with; less filters noise."""
        super().__init__(robot, control_period)
        self.trust, self.observer = trust, observer
        self.name = "deadbeat" if trust == 1.0 else "deadbeat-filtered"

    def _voltage(self, current: Pair, goal: Pair, omega: Any, bus: Any, state: tuple, xp: Any) -> tuple[Pair, tuple]:
        ahead, disturbance = observed(self.model, current, omega, state, self.trust, self.observer)
        wanted = self.model.deadbeat(ahead, goal, omega)
        given = in_circle((wanted[0] - disturbance[0], wanted[1] - disturbance[1]), bus, xp)
        return given, (*given, *ahead, *disturbance)


FILTERED = (0.35, 0.05)
"""Trust and observer with the least error in ``pmsm-current``, of 1, 0.7, 0.5, 0.35, 0.25 and 0.05, 0.1, 0.2."""


def observed(
    model: PmsmModel, current: Pair, omega: Any, state: tuple, trust: float = 1.0, observer: float = OBSERVER
) -> tuple[Pair, Pair]:
    """A: the current a period on; V: the disturbance. ``state`` and the rest are those of ``Deadbeat``."""
    last, predicted, disturbance = state[0:2], state[2:4], state[4:6]
    off = (current[0] - predicted[0], current[1] - predicted[1])
    why = model.needed(off, omega)
    found = tuple(d + observer * x for d, x in zip(disturbance, why, strict=True))
    acting = (last[0] + found[0], last[1] + found[1])
    if trust != 1.0:
        current = (predicted[0] + trust * off[0], predicted[1] + trust * off[1])
    return model.predict(current, acting, omega), found
