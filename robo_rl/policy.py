"""The policy graph: raw signals and memory in, commands and memory out.

One module holds everything between sensors and actuators: what is observed of the signals, the normaliser, the
memory, the network, the scaling and the limits of the commands. It is what trains, what is exported and what is
verified; there is no second implementation of any part of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from robo_rl.networks import MLP, Normalizer
from sim.tasks import Task


class PolicyGraph(nn.Module):
    """``(signals, state) -> (commands, state)`` for a batch of robots.

    Memory is one explicit tensor ``state`` (n, state_size): the task's blocks in order, each flattened.
    """

    def __init__(
        self, task: Task, hidden: tuple[int, ...] = (64, 64), activation: str = "tanh", normalize: bool = False
    ) -> None:
        super().__init__()
        self.task = task
        self.normalizer = Normalizer(task.observation_size) if normalize else nn.Identity()
        self.network = MLP(task.observation_size, hidden, task.action_size, activation)
        for command in task.spec.commands:
            limits = torch.tensor([command.lower, command.upper])
            self.register_buffer(f"{command.name}_limits", limits, persistent=False)

    def initial_state(self, n: int) -> Tensor:
        """The state of n policies before their first step."""
        return self.pack(self.task.first_memory(n))

    def unpack(self, state: Tensor) -> dict[str, Tensor]:
        """The memory's blocks, (n, *shape) each, from the state (n, state_size)."""
        blocks = self.task.spec.memory
        parts = torch.split(state, [math.prod(block.shape) for block in blocks], 1)
        return {block.name: part.unflatten(1, block.shape) for block, part in zip(blocks, parts, strict=True)}

    def pack(self, memory: Mapping[str, Tensor]) -> Tensor:
        """The state (n, state_size) of a memory."""
        return torch.cat([memory[block.name].flatten(1) for block in self.task.spec.memory], 1)

    def forward(self, signals: Mapping[str, Tensor], state: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Commands within their limits, (n, k) by name, and the next state."""
        memory = self.unpack(state)
        action = self.network(self.normalizer(self.task.observe(signals, memory)))
        commands = {name: self._limit(name, value) for name, value in self.task.command(action, memory).items()}
        return commands, self.pack(self.task.remember(memory, signals, commands))

    def _limit(self, name: str, value: Tensor) -> Tensor:
        lower, upper = self.get_buffer(f"{name}_limits").unbind(0)
        return torch.minimum(torch.maximum(value, lower), upper)
