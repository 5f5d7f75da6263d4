"""Geometric tracking control for a vehicle that takes body rates and a thrust: the autopilot does the rest.

As ``GeometricController`` down to the attitude's error, which becomes the rates that turn it back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from robo_rl.controllers.multirotor.facts import Multirotor
from robo_rl.controllers.multirotor.geometric import Gains, GeometricController

LAG = 0.03
"""s, beside the periods of waiting, in which the body rates answer; the best of a search over randomized flights."""


class RatesController(GeometricController):
    """``(signals, state) -> (commands, state)``; the state (n, 6) is the last part of ``GeometricController``'s."""

    def __init__(self, robot: Multirotor, control_period: float, most: tuple[float, float, float, float]) -> None:
        """``most``: greatest rates about x, y, z (rad/s), and the greatest thrust per mass (m/s²)."""
        super().__init__(robot, control_period, Gains.for_response(LAG + 1.5 * control_period))
        self.most, self.state_size = most, 6

    def first_state(self, n: int) -> np.ndarray:
        """State before the first step."""
        return np.zeros((n, 6), np.float32)

    def __call__(self, signals: Mapping[str, Any], state: Any) -> tuple[dict[str, Any], Any]:
        """``body_rate`` (n, 3) rad/s and ``thrust`` (n, 1) m/s², within their limits."""
        xp = array_namespace(state)
        g, *limits = self.gains, *self.most
        force, kept = self._follow(signals, state, xp)
        thrust, error = self._tilt(signals, force, xp)
        stiff = [g.attitude / g.rate * soft for soft in (1.0, 1.0, g.yaw**0.5)]
        rates = [xp.clip(-k * e, -most, most) for k, e, most in zip(stiff, error, limits, strict=False)]
        commands = {
            "body_rate": xp.stack(rates, axis=-1),
            "thrust": xp.clip(thrust, 0.0, limits[3])[:, None],
        }
        return commands, xp.concat(kept, axis=-1)
