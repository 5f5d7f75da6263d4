"""The samples that PPO learns from: a horizon of all robots, and mini-batches of it.

Shapes: T steps of a horizon, n robots, m robots of a mini-batch, k actions, p privileged numbers, w units of a
recurrent network.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from robo_rl.learn.config import PpoConfig
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.learn.experience.transitions import groups


class Samples(NamedTuple):
    """The samples of a horizon, (T, n, …): buffers that are reused. A mini-batch has some of them, (T, m, …)."""

    observation: dict[str, Tensor]
    """(T, n, …) by group."""
    privileged: Tensor
    """(T, n, p) that the critic sees."""
    mean: Tensor
    """(T, n, k) of the actions that the policy could have taken."""
    action: Tensor
    """(T, n, k) that it took."""
    log_probability: Tensor
    """(T, n) of the action, when it was taken."""
    value: Tensor
    """(T, n) that the critic expected."""
    reward: Tensor
    """(T, n), with the value of what a timed-out episode would still have earned."""
    done: Tensor
    """(T, n) whether the episode ended with this step."""
    decided: Tensor
    """(T, n) whether the policy's action began to be taken, and not what was left of a chunk."""
    advantage: Tensor
    """(T, n) how much better than expected it turned out."""
    returns: Tensor
    """(T, n) that the critic should have expected."""
    hidden: Tensor
    """(1, n, w) of a recurrent network before the first step; w is 0 if there is none."""

    def in_one_row(self) -> Samples:
        """(1, T · n, …): as if all of them were of one step."""
        observation = {name: value.flatten(0, 1)[None] for name, value in self.observation.items()}
        flat = Samples(observation, *(value.flatten(0, 1)[None] for value in self[1:]))
        return flat._replace(hidden=self.hidden.new_zeros(1, flat.done.shape[1], 0))

    def decisions(self) -> Samples:
        """(1, m, …) of the samples in a row, those in which the policy decided."""
        return self.columns(self.decided[0].nonzero()[:, 0])

    def first(self, steps: int) -> Samples:
        """(steps, n, …) of the first steps."""
        observation = {name: value[:steps] for name, value in self.observation.items()}
        return Samples(observation, *(value[:steps] for value in self[1:]))._replace(hidden=self.hidden)

    def columns(self, ids: Tensor) -> Samples:
        """(T, m, …) of some of the robots."""
        observation = {name: value.index_select(1, ids) for name, value in self.observation.items()}
        return Samples(observation, *(value.index_select(1, ids) for value in self[1:]))


def empty_samples(env: LearningEnv, config: PpoConfig, device: str) -> Samples:
    """Room for a horizon."""
    steps, n, actions = config.horizon, env.n, env.task.action_size

    def space(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.zeros(*shape, dtype=dtype, device=device)

    return Samples(
        observation={name: space(steps, *x.shape) for name, x in groups(env.observation()).items()},
        privileged=space(steps, *env.privileged().shape),
        mean=space(steps, n, actions),
        action=space(steps, n, actions),
        log_probability=space(steps, n),
        value=space(steps, n),
        reward=space(steps, n),
        done=space(steps, n, dtype=torch.bool),
        decided=space(steps, n, dtype=torch.bool),
        advantage=space(steps, n),
        returns=space(steps, n),
        hidden=space(1, n, config.recurrent),
    )
