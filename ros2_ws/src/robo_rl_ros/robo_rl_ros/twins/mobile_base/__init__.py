"""The simulated mobile base: it stays where it has touched something, until it is set back; its pose is base_link's."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from robo_rl.ros.twins.twin import Twin


class MobileBaseTwin(Twin):
    """One mobile base at a task."""

    moving: tuple[str, ...] = ("speed", "turn_rate")
    """What is 0 of its state where it stays."""

    def _move(self, commands: Mapping[str, Tensor]) -> None:
        if bool(self.task.failed(self._truth()).any()):
            ids = torch.tensor([0])
            state = self.plant.state(ids)
            still = {name: torch.zeros_like(getattr(state, name)) for name in self.moving}
            self.plant.set_state(ids, state._replace(**still))
        else:
            self.plant.step(dict(commands))

    def truth(self) -> dict[str, np.ndarray]:
        """With the true pose of base_link, the middle of the axle, in the world; m, xyzw, m/s, rad/s."""
        found = super().truth()
        (x, y), (heading,), (rate,) = (found[name].astype(float) for name in ("place", "heading", "yaw_rate"))
        ahead, left = self._velocity(found)
        cosine, sine = np.cos(heading), np.sin(heading)
        return {
            **found,
            "position": np.array([x, y, 0.0]),
            "orientation": np.array([0.0, 0.0, np.sin(0.5 * heading), np.cos(0.5 * heading)]),
            "linear_velocity": np.array([cosine * ahead - sine * left, sine * ahead + cosine * left, 0.0]),
            "angular_velocity": np.array([0.0, 0.0, rate]),
        }

    def _velocity(self, truth: Mapping[str, np.ndarray]) -> tuple[float, float]:
        """m/s, forward and to the left."""
        return float(truth["wheel_speed"][0]), 0.0


TWIN = MobileBaseTwin
