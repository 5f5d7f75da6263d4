"""Flow policies: they plan several actions at once, one of the ways in which it was done, not the mean of all ways.

A network gives a velocity for a chunk of actions and a time from 0 to 1. What is shown is reached from noise by going
along it; a few Euler steps of that are in the graph. So where demonstrations go left or right of something, the policy
does one of the two, where a clone by mean squares goes into it. The chunk is in the policy's memory, and is executed
before the next is planned (Zhao et al. 2023, action chunks).

Noise comes from the memory too: a counter for each number of a chunk, of a linear congruential generator in integers
that float32 holds exactly. So a policy does the same again, in torch, onnxruntime and C.

After Lipman et al. 2023 (Flow Matching for Generative Modeling) and Liu et al. 2023 (Rectified Flow), with uniform
noise over the range of actions in the place of a normal distribution.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import torch
from torch import Tensor

from robo_rl.contract import Flow, StateBlock
from robo_rl.policy import PolicyGraph
from robo_rl.policy.networks import MLP
from robo_rl.sim.tasks import Task

CHUNK, LEFT, NOISE = "flow_chunk", "flow_left", "flow_noise"
"""Blocks of memory: the actions that are planned, the next one first; how many of them are left; the counters."""
MODULUS, FACTOR, ADDEND = 4096.0, 1229.0, 1.0
"""Of the generator. All counters below the modulus come up (Hull and Dobell 1962), and no product passes 2^24."""


class FlowGraph(PolicyGraph):
    """A policy graph whose network is the velocity of a flow."""

    def __init__(self, task: Task, hidden: tuple[int, ...], activation: str, flow: Flow) -> None:
        super().__init__(task, hidden, activation, encoders=())
        self.shape = dataclasses.replace(self.shape, flow=flow)
        self.steps, self.plan = flow.steps, (flow.chunk, task.action_size)
        size = math.prod(self.plan)
        first = torch.randint(int(MODULUS), (size,), generator=torch.Generator().manual_seed(0))
        self.memory = (
            *self.memory,
            StateBlock(CHUNK, self.plan, (0.0,) * size),
            StateBlock(LEFT, (1,), (0.0,)),
            StateBlock(NOISE, (size,), tuple(first.tolist())),
        )
        self.network = MLP(task.observation_size + size + 1, hidden, size, activation)

    def initial_state(self, n: int) -> Tensor:
        return torch.tensor([x for block in self.memory for x in block.initial]).repeat(n, 1)

    def velocity(self, features: Tensor, chunk: Tensor, time: Tensor) -> Tensor:
        """(n, k·a) of chunks (n, k·a) at times (n, 1)."""
        return self.network(torch.cat([features, chunk, time], 1))

    def planned(self, features: Tensor, noise: Tensor) -> Tensor:
        """Chunks (n, k·a) from noise (n, k·a), −1 to 1."""
        chunk = noise
        for step in range(self.steps):
            time = 0.0 * chunk[:, :1] + step / self.steps
            chunk = chunk + self.velocity(features, chunk, time) / self.steps
        return chunk

    def loss(self, features: Tensor, chunk: Tensor) -> Tensor:
        """(), mean square of the velocity's error on straight ways from noise to chunks (n, k, a) that were shown."""
        shown = chunk.flatten(1)
        noise, time = 2.0 * torch.rand_like(shown) - 1.0, torch.rand(len(shown), 1)
        found = self.velocity(features, (1.0 - time) * noise + time * shown, time)
        return (found - (shown - noise)).square().mean()

    def forward(self, signals: Mapping[str, Tensor], state: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        memory = self.unpack(state)
        seen = self.features(self.task.observe(signals, memory))
        fresh = self.planned(seen, uniform(memory[NOISE])).unflatten(1, self.plan)
        over = memory[LEFT] < 0.5
        chunk = torch.where(over[:, :, None], fresh, memory[CHUNK])
        commands, remembered = self.task.act(chunk[:, 0], signals, memory, self._limit)
        kept = {
            **remembered,
            CHUNK: torch.cat([chunk[:, 1:], chunk[:, -1:]], 1),
            LEFT: torch.where(over, 0.0 * memory[LEFT] + float(self.plan[0]), memory[LEFT]) - 1.0,
            NOISE: torch.where(over, following(memory[NOISE]), memory[NOISE]),
        }
        return commands, self.pack(kept)


def following(counter: Tensor) -> Tensor:
    """The generator's next counters."""
    value = FACTOR * counter + ADDEND
    return value - MODULUS * torch.floor(value / MODULUS)


def uniform(counter: Tensor) -> Tensor:
    """Numbers between −1 and 1, without both."""
    return (2.0 * counter + 1.0) / MODULUS - 1.0


def chunks(action: Tensor, episode: Tensor, length: int) -> Tensor:
    """(s, length, a): the actions (s, a) from each step on. After the end of its episode (s,) the last one stays."""
    count = len(action)
    last = torch.searchsorted(episode, episode, right=True) - 1
    ahead = torch.arange(count)[:, None] + torch.arange(length)
    return action[torch.minimum(ahead, last[:, None])]
