"""How seldom a policy may decide: it is asked at every k-th control step, and its last commands are held in between.

In the steps in between the policy is not called at all, so its memory stays as it was, as on a robot whose computer is
too slow. A policy with chunks (``robo_rl.policy.chunk``) needs an inference more seldom than it is asked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from robo_rl.evaluate.evaluation import Conditions, rollout
from robo_rl.sim.tasks import Task


class HeldPolicy:
    """A policy that is asked at every ``every``-th step of an episode."""

    def __init__(self, policy: Any, every: int, task: Task) -> None:
        self.policy, self.every, self.commands = policy, every, task.spec.commands
        self.sizes = [command.size for command in self.commands]

    def initial_state(self, n: int) -> Tensor:
        """(n, 1 + elements + k): steps until the policy is asked, the held commands, the policy's state."""
        return torch.cat([torch.zeros(n, 1 + sum(self.sizes)), self.policy.initial_state(n)], 1)

    def __call__(self, signals: Mapping[str, Tensor], state: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        left, held, memory = state.split([1, sum(self.sizes), state.shape[1] - 1 - sum(self.sizes)], 1)
        due = left < 0.5
        if due.any():
            given, after = self.policy(signals, memory)
            now = torch.cat([given[command.name] for command in self.commands], 1)
            held, memory = torch.where(due, now, held), torch.where(due, after, memory)
        names = [command.name for command in self.commands]
        left = torch.where(due, float(self.every), left) - 1.0
        return dict(zip(names, held.split(self.sizes, 1), strict=True)), torch.cat([left, held, memory], 1)


def require_every(every: Sequence[int], task: Task) -> None:
    """ValueError for numbers of control steps that can't be."""
    steps = task.spec.episode_steps
    for count in every:
        if not 1 <= count <= steps:
            raise ValueError(f"--every is {count}; expected 1 to {steps}, the control steps of an episode")


def decision_rates(task: Task, policy: Any, every: Sequence[int], conditions: Conditions) -> list[dict[str, float]]:
    """For each number of control steps, what ``conditions`` come to; "inferences" per episode of full length."""
    network = getattr(policy, "network", None)
    actions = network.actions if network is not None else 1
    steps = round((conditions.seconds or task.spec.episode_length) / task.spec.control_period)
    rows = []
    for count in every:
        done = rollout(task, HeldPolicy(policy, count, task), conditions, f"every {count}").summary()
        asked = math.ceil(steps / count)
        rows.append({"every": count, "inferences": math.ceil(asked / actions), **done})
    return rows
