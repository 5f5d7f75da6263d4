"""Drive to a goal across a room that was never seen before, as ``diff-nav``, on a base that drives in all directions.

The policy commands a lateral speed besides, so what a Twist has on the ground: x, y and z. The base slips, to the side
more than forward, and its odometry does not know it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Command
from robo_rl.controllers.omni_base import OmniWindow
from robo_rl.sim.plants.mobile_base.in_room import BaseInRoom
from robo_rl.sim.plants.omni_base.in_room import OmniInRoom
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots.omni_base import OmniBaseCard
from robo_rl.sim.tasks import Tensors
from robo_rl.sim.tasks.mobile_base.navigate import BEAMS, PERIOD, RoomNav

SLIPPERY = ("grip", "roller_friction", "slip_speed")


class OmniNav(RoomNav):
    """For a base with mecanum or omni wheels."""

    name = "omni-nav"
    summary = "drive to a goal across an unseen room in all directions, by lidar and odometry"
    card_type = OmniBaseCard
    robot = "rosbot_xl"
    card: OmniBaseCard
    speed_axes = ("x", "y")
    perturbed = (*RoomNav.perturbed, *SLIPPERY)
    observation_size = RoomNav.observation_size + 2
    action_size = 3
    weights = {**RoomNav.weights, "sliding": -0.005}

    def commands(self) -> tuple[Command, ...]:
        top = (self.top,)
        lateral = Command("lateral_speed", ("vy",), "m/s", "body", (-self.top,), top, safe=(0.0,))
        return (*super().commands(), lateral)

    def ranges(self) -> dict[str, Range]:
        slippery = {"grip": (0.5, 1.0), "roller_friction": (0.25, 1.5), "slip_speed": (0.25, 2.0)}
        return {**super().ranges(), **{name: Range.fixed(*ends, unit="×") for name, ends in slippery.items()}}

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> OmniInRoom:
        self.refuse_device(device)
        return OmniInRoom(self.card, n, PERIOD, self.scan, BEAMS)

    def controller(self) -> OmniWindow:
        limits, forward = (self.top, self.turn), self.card.lidar_position[0]
        return OmniWindow(self.card.facts(), self.scan, BEAMS, limits, forward)

    def randomize(self, plant: BaseInRoom, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        super().randomize(plant, ids, drawn)
        for name in SLIPPERY:
            plant.param(name)[ids] = getattr(plant.nominal, name) * drawn[name]

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        return {**super().command(action, memory), "lateral_speed": self.top * torch.tanh(action[:, 2:3])}

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        change = (commands["lateral_speed"] - previous["lateral_speed"]) / self.top
        return {**super().reward(truth, commands, previous), "sliding": change.square()[:, 0]}
