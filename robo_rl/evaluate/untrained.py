"""Policies that were not trained, to look at a task with: ``robo-rl play zero --task go2-flat``."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from robo_rl.learn.experience.learning_env import ACTION_SCALE
from robo_rl.sim.tasks import Task


class ZeroPolicy:
    """A network that gives 0 for every action: quadrotors hover, legged robots trot on the spot."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def initial_state(self, n: int) -> Tensor:
        """(n, all numbers of the task's memory)."""
        return self._packed(self.task.first_memory(n), n)

    def action(self, n: int) -> Tensor:
        """(n, action_size), in the task's units."""
        return torch.zeros(n, self.task.action_size)

    def __call__(self, signals: Mapping[str, Tensor], state: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        n, blocks = len(state), self.task.spec.memory
        parts = state.split([math.prod(block.shape) for block in blocks], 1) if blocks else []
        memory = {block.name: part.unflatten(1, block.shape) for block, part in zip(blocks, parts, strict=True)}
        commands, memory = self.task.act(self.action(n), signals, memory)
        return commands, self._packed(memory, n)

    def _packed(self, memory: Mapping[str, Tensor], n: int) -> Tensor:
        return torch.cat([torch.zeros(n, 0), *(memory[block.name].flatten(1) for block in self.task.spec.memory)], 1)


class RandomPolicy(ZeroPolicy):
    """Every action at random, from -1 to 1 in gymnasium's units, at every control step."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._generator = torch.Generator().manual_seed(0)

    def action(self, n: int) -> Tensor:
        return ACTION_SCALE * (2.0 * torch.rand(n, self.task.action_size, generator=self._generator) - 1.0)
