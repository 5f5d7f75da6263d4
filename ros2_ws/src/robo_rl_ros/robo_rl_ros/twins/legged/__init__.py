"""The simulated legged robot: MuJoCo, with the position control at the rate of its motors.

One that falls with the gains of its policy has gains of a stance in its card. It hangs, its soles on the ground, until
the gate says that a policy commands, and has the stance's gains as long, and whenever the gate holds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from robo_rl.contract.robots import hold_gains
from robo_rl.controllers.gate.codes import Source
from robo_rl.deploy.robot.drivers.driver import MODES, Mode
from robo_rl.ros.twins.hand import hand
from robo_rl.ros.twins.twin import Twin
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.stance import StanceGains
from robo_rl.sim.robots.legged import LeggedCard
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.legged.on_legs import OnLegs

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
        held = hold_gains(card.facts())
        self.stance = held and StanceGains(held, task.spec.control_period)
        super().__init__(task, seed, delay, noise, miswired)

    def _make_plant(self) -> Any:
        """The task's own, in which all shapes touch the ground: without commands its legs fold and it lies."""
        if not isinstance(self.task, OnLegs) or self.task.contacts != "points":
            return super()._make_plant()
        return self.task.simulate(MujocoPlant, 1, physics=dataclasses.replace(self.task.physics, contacts="all"))

    def set_source(self, source: Source) -> None:
        self.mode = Mode.HOLD if source is Source.START else MODES.get(source, Mode.HOLD)
        self.hangs &= self.hung or self.mode is not Mode.POLICY

    def passive(self) -> dict[str, Tensor]:
        return {c.name: self.stand for c in self.spec.commands} if self._stands() else super().passive()

    def _stands(self) -> bool:
        """Whether it holds its stance by itself."""
        return self.stance is not None and self.mode is Mode.HOLD

    def _draw(self, seed: int) -> tuple[Tensor, dict[str, Tensor]]:
        return torch.zeros(1, self.task.goal_size), {}  # the operator's own: see ``setpoints``

    @property
    def _height(self) -> float:
        """m, of the base where it hangs."""
        return HANG if self.hung else self.plant.height

    def _place(self) -> None:
        self.mode, self.hangs = Mode.HOLD, self.hung or self.stance is not None
        if self.stance:
            self.stance.restart()
        self._put([0.0, 0.0, self._height], [0.0, 0.0, 0.0, 1.0], [0.0] * 3, [0.0] * 3, self.stand, 0.0 * self.stand)

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
        if self.stance:
            self.stance.move(self.plant, self.mode)
        self.plant.step(commands)
        if self.hangs:
            truth = self.plant.truth()
            still = [0.0] * 3
            joints, speeds = truth["joint_position"], truth["joint_velocity"]
            self._put([0.0, 0.0, self._height], [0.0, 0.0, 0.0, 1.0], still, still, joints, speeds)

    def _be_handled(self) -> None:
        truth = self.plant.truth()
        self._put(*hand(self.hands()), truth["joint_position"], truth["joint_velocity"])


TWIN = WalkingTwin
