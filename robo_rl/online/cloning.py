"""What learns while a robot runs: behaviour cloning of demonstrations and of what an operator does who takes over.

Interventions are demonstrations where the policy needs them: at states that it comes to by itself (after Kelly et al.
2019, HG-DAgger: Interactive Imitation Learning with Human Experts).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from robo_rl.learn import bc
from robo_rl.learn.adam import Adam
from robo_rl.learn.config import BcConfig
from robo_rl.learn.experience.demonstrations import Transitions
from robo_rl.learn.finite import gradient_norm, stepped
from robo_rl.learn.runs.checkpoint import optimizer_from, optimizer_tensors, part
from robo_rl.online.interventions import InterventionPolicy
from robo_rl.policy import PolicyGraph
from robo_rl.sim.tasks import Task

SLOWER = 0.3
"""Of the step size, while a robot runs: the running mean of the weights does the rest."""


class Cloning:
    """Behaviour cloning of demonstrations and interventions."""

    def __init__(self, task: Task, policy: PolicyGraph, config: BcConfig, seed: int, folder: Path) -> None:
        """``folder`` is the run's, in which the demonstrations are."""
        if config.flow:
            raise ValueError(f"--bc.flow is {config.flow}; expected 0: flow policies are cloned by 'robo-rl train'")
        self.policy, self.config = policy, config
        self._first = bc.Learner(task, policy, config, seed, folder=folder)
        self.observation, self.action = self._first.observation, self._first.action
        self.optimizer = Adam(policy.network.parameters(), SLOWER * config.learning_rate)
        self.first = 0
        """Control steps before anything is learnt."""
        self.skipped = 0
        """Mini-batches whose gradient was not finite."""

    def graph(self, policy: PolicyGraph) -> InterventionPolicy:
        """What the robot runs, of a policy of the same shape."""
        return InterventionPolicy(policy)

    def pretrain(self, told: Callable[[int, int], None] = lambda done, total: None) -> None:
        """As ``robo-rl train --algorithm bc``."""
        while self._first.done < self._first.total:
            self._first.update()
            told(self._first.done, self._first.total)

    def add(self, transitions: Transitions, led: Tensor) -> None:
        """What the operator did is learnt from, what the policy did is not."""
        if bool(led.any()):
            new = transitions.rows(led)
            self.observation = torch.cat([self.observation, new.observation])
            self.action = torch.cat([self.action, new.action])

    def learn(self) -> dict[str, float]:
        """A mini-batch; ``error``: root mean square of the difference in actions."""
        loss = bc.loss(self.policy, self.observation, self.action, self.config)
        self.optimizer.zero_grad()
        loss.backward()
        self.skipped += not stepped(self.optimizer, gradient_norm(self.policy.network.parameters()))
        return {"error": float(loss.detach()) ** 0.5, "skipped": float(self.skipped)}

    def save(self) -> dict[str, Tensor]:
        """What goes on after a break."""
        policy = {f"policy/{name}": value for name, value in self.policy.state_dict().items()}
        return {**policy, **optimizer_tensors(self.optimizer)}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from ``save``."""
        self.policy.load_state_dict(part(tensors, "policy/"))
        optimizer_from({k: value for k, value in tensors.items() if k.startswith("optimizer/")}, self.optimizer)
