"""What plants of motors have in common."""

from __future__ import annotations

import functools
from typing import Any

from robo_rl.sim.drawing import Poser
from robo_rl.sim.plants.motor.drawing import draw_motor
from robo_rl.sim.plants.saving import ClosedForm


class MotorPlant(ClosedForm):
    """n motors."""

    def drawing(self) -> Any:
        """A housing, and a shaft that turns."""
        return self._poser.model

    @functools.cached_property
    def _poser(self) -> Poser:
        return Poser(draw_motor())
