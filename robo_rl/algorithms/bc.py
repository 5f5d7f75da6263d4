"""Behaviour cloning: the policy graph learns to do what demonstrations did, where they were.

The mean square of the difference in actions, on observations with a little noise, so that what lies beside the
demonstrations is learnt too (Pomerleau 1989, ALVINN, is the first of its kind). It simulates nothing; how good the
policy is at the task, its evaluation tells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from robo_rl.algorithms.config import BcConfig
from robo_rl.checkpoint import optimizer_from, optimizer_tensors
from robo_rl.demonstrations import DemonstrationError, Transitions, kept
from robo_rl.policy import PolicyGraph
from sim.tasks import Task


def loss(policy: PolicyGraph, shown: Transitions, config: BcConfig) -> Tensor:
    """The mean square of the difference in actions, on a mini-batch with noise."""
    batch = shown.rows(torch.randint(len(shown.reward), (config.batch,)))
    seen = batch.observation + config.noise * torch.randn_like(batch.observation)
    return (policy.network(policy.features(seen)) - batch.action).square().mean()


class Learner:
    """Trains a policy, one round at a time, on the CPU."""

    def __init__(
        self, task: Task, policy: PolicyGraph, config: BcConfig, seed: int, device: str = "cpu",
        folder: Path | None = None,
    ) -> None:  # fmt: skip
        """``folder`` is the run's, in which the demonstrations are."""
        found = kept(folder, config.demonstrations, task)
        if found is None:
            raise DemonstrationError("bc learns from demonstrations alone; expected --demonstrations FILE")
        if device != "cpu":
            raise ValueError(f"device is '{device}'; expected cpu: bc is there alone")
        self.config, self.policy, self.shown = config, policy, found
        self.optimizer = torch.optim.Adam(policy.network.parameters(), config.learning_rate)
        self.total, self.done = round(config.updates * task.update_scale), 0

    collect_seconds = 0.0

    @property
    def environment_steps(self) -> int:
        """Control steps simulated: none."""
        return 0

    def update(self) -> dict[str, float]:
        """A round of mini-batches; ``error``: root mean square of the difference in actions."""
        config, squares = self.config, 0.0
        for group in self.optimizer.param_groups:
            group["lr"] = 0.5 * config.learning_rate * (1.0 + math.cos(math.pi * self.done / self.total))
        for _ in range(config.steps):
            found = loss(self.policy, self.shown, config)
            self.optimizer.zero_grad()
            found.backward()
            self.optimizer.step()
            squares += float(found.detach())
        self.done += 1
        return {"error": math.sqrt(squares / config.steps)}

    def save(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """What the rest of the training depends on, besides the policy."""
        return optimizer_tensors(self.optimizer), {"done": self.done}

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Go on from ``save``, bit by bit as if there had been no break."""
        self.done = numbers["done"]
        optimizer_from(tensors, self.optimizer)
