"""The simulated legged robot: MuJoCo, with the position control at the rate of its motors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from robo_rl.ros.twins.hand import hand
from robo_rl.ros.twins.twin import Twin
from robo_rl.sim.robots.legged import LeggedCard
from robo_rl.sim.tasks import Task

REST = 2.0
"""s for which the robot stands before the operator commands a velocity."""
COURSE = {"linear_velocity_command": (0.5, 0.0), "yaw_rate_command": (0.0,)}
"""The operator's command then: straight on, m/s and rad/s."""
HANG = 0.7
"""m: height of the base when the robot hangs, its feet in the air."""


class WalkingTwin(Twin):
    """One legged robot at a task."""

    settings = ("hung",)
    held = False

    def __init__(
        self,
        task: Task,
        seed: int = 0,
        delay: float = 0.01,
        noise: float = 1.0,
        miswired: Sequence[str] = (),
        hung: bool = False,
    ) -> None:
        """``hung``: its base hangs in the air and does not move; the rest as in ``Twin``."""
        self.hung = hung
        card = task.spec.robot
        assert isinstance(card, LeggedCard)
        self.stand = torch.tensor([[joint.stand for joint in card.joints]])
        super().__init__(task, seed, delay, noise, miswired)

    def _draw(self, seed: int) -> tuple[Tensor, dict[str, Tensor]]:
        return torch.zeros(1, self.task.goal_size), {}  # the operator's own: see ``setpoints``

    def _place(self) -> None:
        height = HANG if self.hung else self.plant.height
        self._put([0.0, 0.0, height], [0.0, 0.0, 0.0, 1.0], [0.0] * 3, [0.0] * 3, self.stand, 0.0 * self.stand)

    def _put(self, position: Any, orientation: Any, velocity: Any, rates: Any, joints: Tensor, speeds: Tensor) -> None:
        base = (
            torch.tensor(np.array([part]), dtype=torch.float32) for part in (position, orientation, velocity, rates)
        )
        self.plant.place(torch.tensor([0]), *base, joints.clone(), speeds.clone())

    def setpoints(self) -> dict[str, Tensor]:
        """To stand, and then to walk straight on."""
        going = self.commanded_since >= 0 and self.time - self.commanded_since > REST
        wanted = {s.name: s.size for s in self.spec.signals if s.source == "operator"}
        return {
            name: torch.tensor([COURSE.get(name, (0.0,) * size) if going else (0.0,) * size])
            for name, size in wanted.items()
        }

    def _move(self, commands: Mapping[str, Tensor]) -> None:
        self.plant.step(commands)
        if self.hung:
            truth = self.plant.truth()
            still = [0.0] * 3
            joints, speeds = truth["joint_position"], truth["joint_velocity"]
            self._put([0.0, 0.0, HANG], [0.0, 0.0, 0.0, 1.0], still, still, joints, speeds)

    def _be_handled(self) -> None:
        truth = self.plant.truth()
        self._put(*hand(self.hands()), truth["joint_position"], truth["joint_velocity"])


TWIN = WalkingTwin
