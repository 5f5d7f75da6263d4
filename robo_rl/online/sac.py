"""What learns while a robot runs: soft actor-critic of all that happens, with demonstrations and an operator's help.

There are two buffers. All that the robot did, whoever had it, goes to one; the demonstrations, and what an operator did
who took over, go to the other as well. Half of every batch is drawn from each (after Luo et al. 2024, HIL-SERL, and
Ball et al. 2023, RLPD). Rewarded is success alone. The policy begins as a clone of the demonstrations, so that a robot
has something to do; with ``warm_up`` only critics learn at first. A round of ``SacConfig`` is so many mini-batches as
it has control steps times steps of the critics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from robo_rl.learn import bc, sac
from robo_rl.learn.config import BcConfig, SacConfig
from robo_rl.learn.experience.demonstrations import DemonstrationError, Transitions
from robo_rl.learn.runs.checkpoint import part
from robo_rl.online.exploration import ExploringPolicy
from robo_rl.policy import PolicyGraph
from robo_rl.sim.tasks import Task


def refuse(config: SacConfig) -> None:
    """ValueError for hyperparameters of simulated robots."""
    for name in ("actors", "reset_states", "robot_log", "dynamics_ratio", "base"):
        if value := getattr(config, name):
            raise ValueError(f"{name} is {value!r}; expected none for sac on a robot")


class Reinforcement:
    """Soft actor-critic without robots of its own."""

    def __init__(self, task: Task, policy: PolicyGraph, config: SacConfig, seed: int, folder: Path) -> None:
        """``folder`` is the run's, in which the demonstrations are."""
        refuse(config)
        self.policy, self.config, self._seed, self._folder = policy, config, seed, folder
        self.learner = sac.Learner(task, policy, config, seed, folder=folder, live=True)
        shown = self.learner.demonstrations
        if shown is None:
            raise DemonstrationError("sac on a robot begins with demonstrations; expected --demonstrations FILE")
        self.learner.demonstrations = shown._replace(reward=shown.ended)  # all of them succeeded
        with torch.no_grad():  # an exporter would leave out zeros, and later weights would have no place
            list(self.learner.act.spread.parameters())[-1].uniform_(-1e-3, 1e-3)
        self.first = config.first
        """Control steps before anything is learnt."""
        self.learnt = 0
        """Mini-batches."""

    def graph(self, policy: PolicyGraph) -> ExploringPolicy:
        """What the robot runs, of a policy of the same shape."""
        return ExploringPolicy(policy, self.learner.act.spread)

    def pretrain(self, told: Callable[[int, int], None] = lambda done, total: None) -> None:
        """Clone the demonstrations, as ``robo-rl train --algorithm bc`` does."""
        config = self.config
        shape = BcConfig(hidden=config.hidden, activation=config.activation, demonstrations=config.demonstrations)
        cloning = bc.Learner(self.policy.task, self.policy, shape, self._seed, folder=self._folder)
        while cloning.done < cloning.total:
            cloning.update()
            told(cloning.done, cloning.total)
        if self.learner.anchor is not None:
            self.learner.anchor.place(self.policy)

    def add(self, transitions: Transitions, led: Tensor) -> None:
        """All of them were met; what the operator did is a demonstration, too."""
        met = transitions._replace(action=transitions.action.clamp(-1.0, 1.0))  # as tasks cut them
        self.learner.replay.add(met)
        if bool(led.any()):
            assert self.learner.demonstrations is not None
            both = zip(self.learner.demonstrations, met.rows(led), strict=True)
            self.learner.demonstrations = Transitions(*(torch.cat(parts) for parts in both))

    def learn(self) -> dict[str, float]:
        """A mini-batch of the critics and, at every ``actor_every``, of the policy."""
        round_of = self.config.steps * self.config.gradient_steps
        self.learner.done = self.learnt // round_of
        acts = self.learnt % self.config.actor_every == 0 and self.learner.done >= self.config.warm_up
        critic, actor = self.learner.mini_batch(acts).tolist()
        self.learnt += 1
        told = {"loss/critic": critic, "temperature": float(self.learner.log_temperature.detach().exp())}
        told["skipped"] = float(self.learner.skipped)
        return {**told, **({"loss/actor": actor} if acts else {})}

    def save(self) -> dict[str, Tensor]:
        """What goes on after a break, but for the transitions: robots' files have them."""
        policy = {f"policy/{name}": value for name, value in self.policy.state_dict().items()}
        return {**policy, "learnt": torch.tensor(self.learnt), **self.learner.save()[0]}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from ``save``."""
        self.policy.load_state_dict(part(tensors, "policy/"))
        self.learnt = int(tensors["learnt"])
        self.learner.load(tensors, {"done": 0, "written": self.learner.replay.written, "success": 0.0})
