"""A policy that acts at random about what it would do: a normal distribution, cut at ±1.

Shapes: b observations, k numbers of each, a of an action.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from robo_rl.learn.config import SacConfig
from robo_rl.policy import PolicyGraph
from robo_rl.policy.networks import MLP
from robo_rl.sim.tasks import Task

LEAST_LOG_DEVIATION = -5.0
"""Least logarithm of the policy's standard deviation."""
ENTROPY_OF_ONE = 1.4189385332046727
"""0.5 (1 + log 2π), of a normal distribution with deviation 1."""


class Spread(MLP):
    """The logarithm of a policy's standard deviation (b, a), at observations (b, k)."""

    def __init__(self, task: Task, config: SacConfig) -> None:
        super().__init__(task.observation_size, config.hidden, task.action_size, config.activation)
        self.start, self.most = torch.tensor(config.initial_deviation).log(), math.log(config.greatest_deviation)

    def wanted(self, observation: Tensor) -> Tensor:
        """What the network gives."""
        return self.start + super().forward(observation)

    def cut(self, wanted: Tensor) -> Tensor:
        """Within its limits."""
        return wanted.clamp(LEAST_LOG_DEVIATION, self.most)

    def forward(self, observation: Tensor) -> Tensor:
        """See the class."""
        return self.cut(self.wanted(observation))


class Explorer(nn.Module):
    """The policy, and how randomly it acts."""

    def __init__(self, policy: PolicyGraph, config: SacConfig) -> None:
        super().__init__()
        self.policy = policy
        self.spread = Spread(policy.task, config)
        self.price = config.deviation_price

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Actions (b, a) cut at ±1, their means before that, and the policy's entropy (b,) there.

        The last, (b,), are squares of what is beyond limits, of means and, at ``deviation_price``, of deviations.
        """
        mean = self.policy.network(self.policy.features(observation))
        wanted = self.spread.wanted(observation)
        log_deviation = self.spread.cut(wanted)
        action = mean + log_deviation.exp() * torch.randn_like(mean)
        beyond = (mean.abs() - 1.0).clamp(min=0.0).square() + self.price * (wanted - log_deviation).square()
        return action.clamp(-1.0, 1.0), mean, (log_deviation + ENTROPY_OF_ONE).sum(-1), beyond.sum(-1)

    def weights(self) -> dict[str, np.ndarray]:
        """Copies of the policy's and of its deviation's."""
        return {name: value.numpy(force=True).copy() for name, value in self.state_dict().items()}
