"""How a policy's signals and commands compare with training and with the robot's controller, while it only watches."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from robo_rl.controllers.gate.config import GateConfig


class Envelope:
    """The signals compared with the ranges of training, and the commands with the controller's."""

    def __init__(self, config: GateConfig, signals: tuple) -> None:
        self.config = config
        self.bounds = {s.name: (s.seen_low, s.seen_high) for s in signals if s.seen_low is not None}
        self.steps = 0
        self.outside = {s.name: np.zeros(s.dimensions, int) for s in signals if s.name in self.bounds}
        self.squares, self.compared = np.zeros(len(config.safe)), 0

    def note(self, values: Mapping[str, np.ndarray], own: np.ndarray | None, other: np.ndarray | None) -> None:
        """Count one step."""
        self.steps += 1
        for name, (low, high) in self.bounds.items():
            if name in values:
                self.outside[name] += ~((values[name] >= low) & (values[name] <= high))
        if own is not None and other is not None:
            span = self.config.command_upper - self.config.command_lower
            self.squares += ((own - other) / span) ** 2
            self.compared += 1

    def summary(self) -> dict[str, float]:
        """Part of steps outside, per signal (its worst element), and root mean square difference of commands."""
        found = {f"outside/{name}": float(n.max()) / max(1, self.steps) for name, n in self.outside.items()}
        if self.compared:
            found["command_difference"] = float(np.sqrt(self.squares.max() / self.compared))
        return found
