"""Gains of a stance: motors that are stiff while a robot stands, and have the policy's gains while that commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robo_rl.contract.robots import HoldGains
from robo_rl.deploy.robot.drivers.driver import Mode

BLEND = 0.5  # s, from one set of gains to the other


class StanceGains:
    """The gains of one simulated robot's motors: at first those of its stance."""

    def __init__(self, held: HoldGains, period: float) -> None:
        """``held`` are those of the stance; ``period`` (s) is the time between two commands."""
        self.held, self.step, self.stiff = held, period / BLEND, 1.0

    def restart(self) -> None:
        """The stance's at once."""
        self.stiff = 1.0

    def move(self, plant: Any, mode: Mode, scale: Mapping[str, float] | None = None) -> None:
        """Set the gains of a plant's only robot, one period nearer to those that a mode asks for.

        A mode other than HOLD and POLICY has the policy's at once. ``scale`` is a factor for each of them by name.
        """
        change = {Mode.HOLD: self.step, Mode.POLICY: -self.step}.get(mode, -1.0)
        self.stiff = min(1.0, max(0.0, self.stiff + change))
        for name, held in self.held._asdict().items():
            own = getattr(plant.nominal, name)[0]
            gains = own + self.stiff * (own.new_tensor(held) - own)
            plant.param(name)[0] = gains * (scale[name] if scale else 1.0)
