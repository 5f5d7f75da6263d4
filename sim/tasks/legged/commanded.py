"""Following commanded velocities on flat ground: what tasks have in common that do so, on any number of legs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.sim.plants import Articulated
from robo_rl.sim.tasks import Measure, Tensors
from robo_rl.sim.tasks.legged.on_legs import OnLegs, with_commands
from robo_rl.sim.tasks.legged.ranges import PUSHES, SEGMENT, SEGMENTS


class Commanded(OnLegs):
    """An operator commands velocities, which change every 5 s; the robot begins near its stand and is pushed."""

    measures = (Measure("yaw_rate_error", "rad/s", "mean"), Measure("linear_velocity_error", "m/s", "mean"))
    goal_size = 3 * SEGMENTS + 1 + 3 * PUSHES
    pushed = 3 * SEGMENTS + 1
    stand: Tensor
    """(1, J) rad."""
    lower: Tensor
    upper: Tensor

    def facts(self) -> dict[str, Any]:
        return with_commands(super().facts())

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        *commands, offset = goal[:, : 3 * SEGMENTS + 1].unbind(-1)
        progress = time + offset
        wanted = commands[:3]
        for k in range(1, SEGMENTS):
            later = progress >= SEGMENT * k
            wanted = [torch.where(later, commands[3 * k + i], wanted[i]) for i in range(3)]
        return {"linear_velocity_command": torch.stack(wanted[:2], -1), "yaw_rate_command": torch.stack(wanted[2:], -1)}

    def place(self, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        yaw = 0.5 * drawn["initial/yaw"]
        zero, start = torch.zeros_like(yaw), self.start(drawn)
        joints = torch.clamp(self.stand + drawn["initial/joint_position"], self.lower, self.upper)
        plant.place(
            ids,
            position=torch.cat([start[:, :2], start[:, 2:] + plant.height + 0.02], -1),
            orientation=torch.stack([zero, zero, torch.sin(yaw), torch.cos(yaw)], -1),
            linear_velocity=drawn["initial/linear_velocity"],
            angular_velocity=drawn["initial/angular_velocity"],
            joint_position=joints,
            joint_velocity=torch.zeros_like(joints),
        )

    def start(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m, 3) m, the places on the ground where robots begin."""
        return torch.zeros(len(drawn["noise"]), 3, device=drawn["noise"].device)

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m, goal_size): commanded velocities of each segment, s into the first; of pushes s, N, N."""
        moving = (drawn["command/stand"] >= 0.1).float()  # every tenth command is to stand
        wanted = torch.stack([drawn[f"command/{name}"] * moving for name in ("x", "y", "yaw")], -1)
        pushes = torch.stack([drawn["push/time"], drawn["push/x"], drawn["push/y"]], -1)
        return torch.cat([wanted.flatten(1), drawn["command/offset"][:, None], pushes.flatten(1)], -1)

    def commanded(self, signals: Tensors) -> Any:
        """(n, 3) m/s, m/s, rad/s: the commanded velocity."""
        return torch.cat([signals["linear_velocity_command"], signals["yaw_rate_command"]], -1)
