"""Behaviour cloning: the policy graph learns to do what demonstrations did, where they were.

The mean square of the difference in actions, on observations with a little noise, so that what lies beside the
demonstrations is learnt too (Pomerleau 1989, ALVINN, is the first of its kind). A flow policy
(``robo_rl.policy.flow``) learns
the velocity that leads to what was done. Nothing is simulated; how good the policy is at the task, its evaluation
tells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from robo_rl.learn.adam import Adam
from robo_rl.learn.config import BcConfig
from robo_rl.learn.experience.demonstrations import DemonstrationError, kept_file, tensors_of
from robo_rl.learn.finite import gradient_norm, stepped
from robo_rl.learn.runs.checkpoint import optimizer_from, optimizer_tensors
from robo_rl.learn.schedule import set_cosine_rate
from robo_rl.policy import PolicyGraph
from robo_rl.policy.flow import FlowGraph, chunks
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks import Task


def loss(policy: PolicyGraph, observation: Tensor, action: Tensor, config: BcConfig) -> Tensor:
    """(), of a mini-batch of what was shown, with noise.

    Observations are (s, o), actions (s, a), or (s, k, a) of a flow policy that plans k.
    """
    ids = torch.randint(len(action), (config.batch,))
    shown = observation[ids]
    seen = policy.features(shown + config.noise * torch.randn_like(shown))
    if isinstance(policy, FlowGraph):
        return policy.loss(seen, action[ids])
    return (policy.network(seen) - action[ids]).square().mean()


class Learner:
    """Trains a policy, one round at a time, on the CPU."""

    def __init__(
        self, task: Task, policy: PolicyGraph, config: BcConfig, seed: int, device: str = "cpu",
        folder: Path | None = None,
    ) -> None:  # fmt: skip
        """``folder`` is the run's, in which the demonstrations are."""
        if not config.demonstrations:
            raise DemonstrationError("bc learns from demonstrations alone; expected --demonstrations FILE")
        if device != "cpu":
            raise ValueError(f"device is '{device}'; expected cpu: bc is there alone")
        shown = tensors_of(kept_file(folder, config.demonstrations), task)
        self.config, self.policy, self.observation = config, policy, shown["observation"]
        self.action = shown["action"]
        """(s, a), or (s, k, a) of a flow policy that plans k."""
        if isinstance(policy, FlowGraph):
            self.action = chunks(shown["action"], shown["episode"], config.chunk)
        self.optimizer = Adam(policy.network.parameters(), config.learning_rate)
        self.total, self.done = round(config.updates * task.update_scale), 0

        self.diverged, self.skipped = 0, 0

    collect_seconds = 0.0

    @property
    def environments(self) -> VecEnv | None:
        """None are simulated."""
        return None

    @property
    def environment_steps(self) -> int:
        """Control steps simulated: none."""
        return 0

    def update(self) -> dict[str, float]:
        """A round of mini-batches; ``error``: root mean square of the difference in actions, or a flow's velocities."""
        config, squares = self.config, 0.0
        set_cosine_rate(self.optimizer, config.learning_rate, self.done, self.total)
        for _ in range(config.steps):
            found = loss(self.policy, self.observation, self.action, config)
            self.optimizer.zero_grad()
            found.backward()
            self.skipped += not stepped(self.optimizer, gradient_norm(self.policy.network.parameters()))
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
