"""A task's script as a controller.

A task has a script where it has ``script(signals, memory)``: the actions (n, action_size) that it takes, of what a
policy sees too, measured signals and its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.sim.tasks import Task


class Scripted:
    """The script in the place of a network: ``(signals, state) -> (commands, state)``, on tensors."""

    def __init__(self, task: Task, act: Callable[[Mapping[str, Tensor], Mapping[str, Tensor]], Tensor]) -> None:
        """``act`` gives actions (n, action_size) for signals and memory."""
        self.task, self.act, self.blocks = task, act, task.spec.memory
        self.sizes = [block.size for block in self.blocks]

    def first_state(self, n: int) -> Any:
        """(n, k), the task's memory."""
        return torch.cat([torch.tensor([block.initial]) for block in self.blocks], 1).repeat(n, 1).numpy()

    def __call__(self, signals: Mapping[str, Tensor], state: Any) -> tuple[dict[str, Any], Any]:
        """What the policy commands with a network that gives the script's actions."""
        parts = zip(self.blocks, torch.split(state, self.sizes, 1), strict=True)
        memory = {block.name: part for block, part in parts}
        commands, memory = self.task.act(self.act(signals, memory), signals, memory)
        return commands, torch.cat([memory[block.name] for block in self.blocks], 1)
