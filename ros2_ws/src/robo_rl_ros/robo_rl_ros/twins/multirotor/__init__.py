"""The simulated multirotor: with a ground plane, and an operator that commands take-off and a goal."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from robo_rl.ros.twins.hand import hand
from robo_rl.ros.twins.twin import Twin
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.multirotor import MultirotorPlant
from robo_rl.sim.robots.multirotor import MultirotorCard
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.multirotor.quadrotor import FIGURE_EIGHT

CLIMB = 0.5
"""m/s: how fast the operator's set-point rises at take-off."""
REST = 2.0
"""s between the end of the climb and the beginning of the goal."""


class FlyingTwin(Twin):
    """One multirotor at a task."""

    settings = ("height",)
    held = False

    def __init__(
        self,
        task: Task,
        seed: int = 0,
        delay: float = 0.01,
        noise: float = 1.0,
        miswired: Sequence[str] = (),
        height: float = 1.0,
    ) -> None:
        """``height`` (m) is the one to fly at; the rest as in ``Twin``."""
        self.height = height
        super().__init__(task, seed, delay, noise, miswired)

    def _make_plant(self) -> MultirotorPlant:
        card = self.spec.robot
        assert isinstance(card, MultirotorCard)
        kind = type(self.task.make_plant(1, "cpu"))
        assert issubclass(kind, MultirotorPlant)
        return kind(card, 1, self.period, ground=True)

    def _draw(self, seed: int) -> tuple[Tensor, dict[str, Tensor]]:
        fixed = {name: value for name, value in FIGURE_EIGHT.items() if name in self.spec.ranges}
        return VecEnv(self.task, 1, seed, fixed=fixed).draws.goal.clone(), {}

    def _place(self) -> None:
        """On the ground where the goal begins, motors off."""
        self.plant.reset(torch.tensor([0]))
        self.plant.current.rotor_speed[:] = 0.0
        self.plant.current.position[:] = self._reference(0.0)["position_setpoint"]
        self.plant.current.position[:, 2] = 0.0

    def _reference(self, time: float) -> dict[str, Tensor]:
        return self.task.reference(torch.tensor([time]), self.goal)

    def setpoints(self) -> dict[str, Tensor]:
        """To climb from the ground, wait, and follow the task's goal."""
        climb = self.height / CLIMB
        flown = self.time - self.commanded_since if self.commanded_since >= 0 else 0.0
        wanted = {name: value.clone() for name, value in self._reference(max(0.0, flown - climb - REST)).items()}
        if flown < climb + REST:
            for name in wanted:
                if name.endswith("velocity_setpoint"):
                    wanted[name][:] = 0.0
        if "position_setpoint" in wanted:
            wanted["position_setpoint"][:, 2] += min(self.height, CLIMB * flown)
        return wanted

    def _be_handled(self) -> None:
        position, orientation, velocity, rates = hand(self.hands())
        state = self.plant.current
        state.position[0], state.orientation[0] = torch.from_numpy(position), torch.from_numpy(orientation)
        state.linear_velocity[0], state.angular_velocity[0] = torch.from_numpy(velocity), torch.from_numpy(rates)


TWIN = FlyingTwin
