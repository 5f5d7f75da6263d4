"""What keeps a policy near the one that it began with while its critics are young.

A policy that was cloned is better than critics that know nothing. If it follows them from the first step, it is lost
before they have learnt what it can do. So at first critics alone learn, from what the policy does (``warm_up`` of
``SacConfig``). Then the policy learns too, and pays for the square of the way from where it began; the price falls to
nothing along a line. After Fujimoto and Gu 2021 (TD3+BC), who pay for the way from the data, and Beeson and Montana
2022, who let the price fall.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from robo_rl.learn.config import SacConfig
from robo_rl.policy import PolicyGraph


class Anchor(nn.Module):
    """A frozen copy of a policy's network."""

    def __init__(self, policy: PolicyGraph, config: SacConfig) -> None:
        super().__init__()
        self.price, self.warm_up, self.part = config.anchor, config.warm_up, config.anchor_part
        self.place(policy)

    def place(self, policy: PolicyGraph) -> None:
        """From now on it is this policy that the other one is kept near."""
        self.network = copy.deepcopy(policy.network).requires_grad_(False)

    def left(self, done: int, total: int) -> float:
        """Part of the price after ``done`` rounds: all during the warm-up, none after ``anchor_part`` of the others."""
        over = (done - self.warm_up) / max(1.0, self.part * (total - self.warm_up))
        return min(1.0, max(0.0, 1.0 - over))

    def cost(self, features: Tensor, mean: Tensor, left: float) -> Tensor:
        """(n,) of mean actions (n, a) for features (n, k), when a part ``left`` of the price is left."""
        with torch.no_grad():
            first = self.network(features)
        return left * self.price * (mean - first).square().sum(-1)
