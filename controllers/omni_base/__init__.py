"""Classical control of an omnidirectional base: a dynamic window of arcs in all directions. Numpy or torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from robo_rl.controllers.mobile_base import DynamicWindow

DIRECTIONS = 16
SPEEDS = (0.3, 1.0)  # × what the wheels can do
TURNS = (-0.5, 0.0, 0.5)  # × the greatest turn rate
BACKWARDS = 0.5  # × the greatest speed


class OmniWindow(DynamicWindow):
    """As ``DynamicWindow``, with arcs to all sides, as DWB has them for robots whose min_vel_y is not 0."""

    def _velocities(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Forward and lateral speed together are at most the greatest: more the rims of mecanum wheels can't do."""
        angle = 2 * np.pi / DIRECTIONS * np.arange(DIRECTIONS)
        x, y = np.cos(angle), np.sin(angle)
        most = np.minimum(1 / (np.abs(x) + np.abs(y)), BACKWARDS / np.clip(-x, 1e-6, None))
        speed, turn, way = (a.ravel() for a in np.meshgrid(SPEEDS, TURNS, np.arange(DIRECTIONS), indexing="ij"))
        fast = self.top * speed * most[way]
        return fast * x[way], fast * y[way], self.turn * turn

    def _commands(self, forward: Any, left: Any, turn: Any) -> dict[str, Any]:
        return {"forward_speed": forward, "lateral_speed": left, "turn_rate": turn}
