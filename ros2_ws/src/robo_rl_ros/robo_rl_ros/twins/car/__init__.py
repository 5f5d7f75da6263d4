"""The simulated car: it stays where it has touched a wall, until it is set back; its pose is that of base_link."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from robo_rl.ros.twins.twin import Twin
from robo_rl.sim.robots.car import CarCard


class CarTwin(Twin):
    """One car at a task."""

    def _move(self, commands: Mapping[str, Tensor]) -> None:
        if bool(self.task.failed(self._truth()).any()):
            ids = torch.tensor([0])
            state = self.plant.state(ids)
            still = {name: torch.zeros_like(getattr(state, name)) for name in ("velocity", "yaw_rate", "drive")}
            self.plant.set_state(ids, state._replace(**still))
        else:
            self.plant.step(dict(commands))

    def truth(self) -> dict[str, np.ndarray]:
        """With the pose of base_link, which is below the middle of the rear axle, in the world; m, xyzw, m/s, rad/s."""
        found = super().truth()
        card = self.spec.robot
        assert isinstance(card, CarCard)
        (x, y), (heading,), (rate,), (ahead, left) = (
            found[name].astype(float) for name in ("position", "heading", "yaw_rate", "velocity")
        )
        c, s, left = np.cos(heading), np.sin(heading), left - rate * card.rear_axle
        return {
            **found,
            "position": np.array([x - c * card.rear_axle, y - s * card.rear_axle, 0.0]),
            "orientation": np.array([0.0, 0.0, np.sin(0.5 * heading), np.cos(0.5 * heading)]),
            "linear_velocity": np.array([c * ahead - s * left, s * ahead + c * left, 0.0]),
            "angular_velocity": np.array([0.0, 0.0, rate]),
        }


TWIN = CarTwin
