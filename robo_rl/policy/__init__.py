"""The policy graph: raw signals and memory in, commands and memory out.

One module holds everything between sensors and actuators: what is observed of the signals, the normaliser, the
memory, the network, the scaling and the limits of the commands. It is what trains, what is exported and what is
verified; there is no second implementation of any part of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from robo_rl.contract import Contract, Encoder, Network, Provenance, StateBlock
from robo_rl.policy.networks import GRU, MLP, Encoders, Normalizer, vector_of
from robo_rl.sim.tasks import Task

RECURRENT = "recurrent"
"""The block of memory in which a recurrent network keeps its hidden state."""


def recurrent_width(memory: Sequence[StateBlock]) -> int:
    """The width of the recurrent network that keeps its hidden state in a policy's memory; 0 if there is none."""
    return sum(block.size for block in memory if block.name == RECURRENT)


class NoNetwork(nn.Sequential):
    """In the place of the network of a task whose actions have no numbers: its ``act`` does everything."""

    def forward(self, seen: Tensor) -> Tensor:
        return seen[:, :0]


class PolicyGraph(nn.Module):
    """``(signals, state) -> (commands, state)`` for a batch of robots.

    What a task observes is one vector (n, observation_size), or groups by name: the vector is the group "policy", and
    every other one goes through its encoder, whose features stand beside the normalised vector.

    Memory is one explicit tensor ``state`` (n, state_size): the task's blocks in order, each flattened, and last the
    hidden state of a recurrent network, if there is one between normaliser and hidden layers.
    """

    rebuildable = True
    """Whether the contract tells enough of the network to build it again."""

    def __init__(
        self,
        task: Task,
        hidden: tuple[int, ...] = (64, 64),
        activation: str = "tanh",
        normalize: bool = False,
        recurrent: int = 0,
        encoders: Sequence[Encoder] | None = None,
    ) -> None:
        """``encoders``: others than the task's."""
        super().__init__()
        self.task, self.memory = task, task.spec.memory
        encoders = task.encoders if encoders is None else tuple(encoders)
        self.shape = Network(tuple(hidden), activation, normalize, recurrent, encoders)
        self.encoders = Encoders(encoders, activation)
        size = task.observation_size + self.encoders.size
        self.normalizer = Normalizer(task.observation_size) if normalize else nn.Identity()
        self.recurrence: GRU | None = None
        if recurrent:
            self.memory = (*self.memory, StateBlock(RECURRENT, (recurrent,), (0.0,) * recurrent))
            self.recurrence = GRU(size, recurrent)
        self.network = MLP(recurrent or size, hidden, task.action_size, activation) if task.action_size else NoNetwork()
        for command in task.spec.commands:
            limits = torch.tensor([command.lower, command.upper])
            self.register_buffer(f"{command.name}_limits", limits, persistent=False)

    def contract(self, provenance: Provenance) -> Contract:
        """What a runtime must know: the task's contract with all of the policy's memory."""
        return self.task.spec.contract(provenance, self.shape, self.memory)

    def initial_state(self, n: int) -> Tensor:
        """The state of n policies before their first step."""
        memory = self.task.first_memory(n)
        if self.recurrence is not None:
            memory[RECURRENT] = torch.zeros(n, self.recurrence.hidden_size)
        return self.pack(memory) if memory else torch.zeros(n, 0)

    def unpack(self, state: Tensor) -> dict[str, Tensor]:
        """The memory's blocks, (n, *shape) each, from the state (n, state_size)."""
        if not self.memory:
            return {}
        parts = torch.split(state, [math.prod(block.shape) for block in self.memory], 1)
        return {block.name: part.unflatten(1, block.shape) for block, part in zip(self.memory, parts, strict=True)}

    def pack(self, memory: Mapping[str, Tensor]) -> Tensor:
        """The state (n, state_size) of a memory that has blocks."""
        return torch.cat([memory[block.name].flatten(1) for block in self.memory], 1)

    def features(self, observation: Tensor | Mapping[str, Tensor]) -> Tensor:
        """(n, k) what the network sees of an observation: the normalised vector, and the features of all groups."""
        seen = self.normalizer(vector_of(observation))
        return torch.cat([seen, self.encoders(observation)], 1) if self.encoders else seen

    def forward(self, signals: Mapping[str, Tensor], state: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Commands within their limits, (n, k) by name, and the next state."""
        memory = self.unpack(state)
        seen, kept = self.features(self.task.observe(signals, memory)), {}
        if self.recurrence is not None:
            seen = kept[RECURRENT] = self.recurrence.step(seen, memory[RECURRENT])
        action = self.network(seen)
        commands, remembered = self.task.act(action, signals, memory, self._limit)
        kept |= remembered
        return commands, self.pack(kept) if self.memory else state

    def _limit(self, name: str, value: Tensor) -> Tensor:
        lower, upper = self.get_buffer(f"{name}_limits").unbind(0)
        return torch.minimum(torch.maximum(value, lower), upper)
