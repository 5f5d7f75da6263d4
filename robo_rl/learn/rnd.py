"""Random network distillation: a reward for what was seldom seen, where the task's own rewards are rare.

The target, a network with random weights, maps states to features, and the predictor learns to give the same (Burda et
al. 2018, Exploration by Random Network Distillation). Where robots have seldom been its error is still large: that is
the novelty of a state. Novelty is divided by the running deviation of its discounted sums, and states are normalised by
their running statistics and clipped, as there. Other than there, one critic expects both rewards, as in Schwarke et
al. 2023 (Curiosity-Driven Learning of Joint Locomotion and Manipulation Tasks), and the weight of novelty falls to zero
over the second half of a training, so that what remains at the end is the task. States are what the critic sees.

Shapes: T steps, n robots, p numbers of a state, k features.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from robo_rl.learn.adam import Adam
from robo_rl.learn.distributed import processes
from robo_rl.learn.extension import Extension
from robo_rl.learn.finite import gradient_norm, stepped
from robo_rl.learn.moments import RunningNormalizer, moments
from robo_rl.learn.runs.checkpoint import optimizer_from, optimizer_tensors, part

FEATURES = 32
WIDTH = 128
CLIPPED = 5.0
"""Normalised states lie within this: Burda et al. 2018, section 2.4."""
GAMMA = 0.99
"""Discount per step in the sums whose deviation novelty is divided by: Burda et al. 2018, table 5."""
LEARNING_RATE = 1e-4
"""Adam's: Burda et al. 2018, table 5."""
BATCHES = 4
"""Steps of the optimiser per update."""


class Novelty(nn.Module, Extension):
    """How new states (…, p) are, to robots that learn from horizons of them."""

    name = "novelty"

    def __init__(self, inputs: int, weight: float) -> None:
        """``weight`` of novelty in the reward, at first."""
        super().__init__()
        self.weight = weight
        self.target, self.predictor = _network(inputs), _network(inputs)
        self.target.requires_grad_(False)
        self.states, self.sums = RunningNormalizer(inputs), RunningNormalizer(1)
        self.optimizer = Adam(self.predictor.parameters(), LEARNING_RATE, fused=True)

    def weight_at(self, part: float) -> float:
        """The weight of novelty when such a part of the training is over."""
        return self.weight * min(1.0, 2.0 * (1.0 - part))

    def error(self, states: Tensor) -> Tensor:
        """(…) mean squared error of the predictor at states (…, p)."""
        x = self.states(states).clamp(-CLIPPED, CLIPPED)
        return (self.predictor(x) - self.target(x)).square().mean(-1)

    @torch.no_grad()
    def reward(self, states: Tensor) -> Tensor:
        """(T, n) the novelty of states (T, n, p), over the deviation of its sums; takes them into account."""
        self.states.update(moments(states.flatten(0, 1))[0])
        found = self.error(states)
        later, sums = torch.zeros_like(found[0]), torch.empty_like(found)
        for t, new in enumerate(found):  # forwards in time, as Burda et al. do
            later = sums[t] = new + GAMMA * later
        self.sums.update(moments(sums.reshape(-1, 1))[0])
        return found / self.sums.variance.sqrt().clamp(min=1e-8)

    def add_reward(self, reward: Tensor, states: Tensor, progress: float) -> dict[str, float]:
        """Add to every reward the novelty of the state in which it was earned; returns its mean."""
        found = self.reward(states)
        reward.add_(found, alpha=self.weight_at(progress))
        return {"novelty": float(found.mean())}

    def learn(self, states: Tensor) -> None:
        """Train the predictor on states (T, n, p)."""
        rows = states.flatten(0, 1)
        for ids in torch.randperm(len(rows), device=rows.device).chunk(BATCHES):
            self.optimizer.zero_grad()
            loss = self.error(rows[ids]).mean()
            loss.backward()
            parameters = list(self.predictor.parameters())
            processes.average_gradients(parameters, loss.detach())
            stepped(self.optimizer, gradient_norm(parameters))

    def save(self) -> dict[str, Tensor]:
        """All that changes, for a checkpoint."""
        return {**self.state_dict(), **{f"adam/{k}": v for k, v in optimizer_tensors(self.optimizer).items()}}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from ``save``."""
        self.load_state_dict({name: value for name, value in tensors.items() if not name.startswith("adam/")})
        optimizer_from(part(tensors, "adam/"), self.optimizer)


def _network(inputs: int) -> Any:
    layers = [nn.Linear(inputs, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, FEATURES)]
    for layer in layers[::2]:
        nn.init.orthogonal_(layer.weight, 2.0**0.5)  # type: ignore[arg-type]
        nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return nn.Sequential(*layers)
