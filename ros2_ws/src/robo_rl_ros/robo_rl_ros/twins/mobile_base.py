"""The simulated mobile base: it stays where it has touched something, until it is set back; its pose is base_link's."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from robo_rl_ros.twins.twin import Twin


class MobileBaseTwin(Twin):
    """One mobile base at a task."""

    def _move(self, commands: Mapping[str, Tensor]) -> None:
        if bool(self.task.failed(self._truth()).any()):
            ids, zero = torch.tensor([0]), torch.zeros(1, 1)
            self.plant.set_state(ids, self.plant.state(ids)._replace(speed=zero, turn_rate=zero))
        else:
            self.plant.step(dict(commands))

    def truth(self) -> dict[str, np.ndarray]:
        """With the true pose of base_link, the middle of the axle, in the world; m, xyzw, m/s, rad/s."""
        found = super().truth()
        (x, y), (heading,), (speed,), (rate,) = (
            found[name].astype(float) for name in ("place", "heading", "wheel_speed", "yaw_rate")
        )
        return {
            **found,
            "position": np.array([x, y, 0.0]),
            "orientation": np.array([0.0, 0.0, np.sin(0.5 * heading), np.cos(0.5 * heading)]),
            "linear_velocity": np.array([np.cos(heading) * speed, np.sin(heading) * speed, 0.0]),
            "angular_velocity": np.array([0.0, 0.0, rate]),
        }


TWIN = MobileBaseTwin
