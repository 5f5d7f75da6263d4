"""Soft actor-critic with demonstrations, to be read from top to bottom.

All robots act at random about what the policy would do, and every transition is kept (``collect``). After each of
their steps, critics learn from transitions of the past what an action will earn, and the policy learns to do what they
expect most of, as randomly as a wanted entropy asks for (``learn``). With demonstrations, half of every batch comes
from these, so that a rare success is in every batch from the first step on. With a robot's log, a part of every batch
comes from it, and with a dynamics ratio simulated transitions count as far as the robot makes them
(``robo_rl.learn.hybrid``). What trains is the policy graph that will be exported.

After Haarnoja et al. 2018 (Soft Actor-Critic Algorithms and Applications) and Ball et al. 2023 (Efficient Online
Reinforcement Learning with Offline Data, RLPD), from whom the layer normalisation of the critics, the symmetric
batches, the ensemble and the actor's mean over it are. Unlike theirs, the policy is a normal distribution that is not
squashed: tasks cut actions at ±1, so the critics see cut actions, and means beyond ±1 are pulled back.

Shapes: n robots, b transitions, k numbers observed, a of an action, e critics.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from robo_rl.learn.actors import Actors
from robo_rl.learn.adam import Adam
from robo_rl.learn.anchor import Anchor
from robo_rl.learn.collectors import Collected, Collector, Simulated
from robo_rl.learn.config import SacConfig
from robo_rl.learn.experience import robot_log
from robo_rl.learn.experience.demonstrations import Transitions, kept
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.learn.experience.reset_states import starts
from robo_rl.learn.explorer import Explorer
from robo_rl.learn.finite import MOST_DIVERGED, gradient_norm, stepped, usable
from robo_rl.learn.hybrid import DynamicsRatio
from robo_rl.learn.replay_buffer import ReplayBuffer
from robo_rl.learn.runs.checkpoint import optimizer_from, optimizer_tensors, part
from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks import Task

BEYOND = 1.0
"""Weight of squared means beyond ±1."""
MOST_KEPT = 1_000_000
"""Transitions in the file."""


class Critics(nn.Module):
    """An ensemble that expects (e, b) of observations (b, k) and actions (b, a), one product for all of a layer."""

    def __init__(self, count: int, inputs: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        sizes = [inputs, *hidden, 1]
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for size, width in pairwise(sizes):
            bound = size**-0.5
            self.weights.append(nn.Parameter(torch.empty(count, size, width).uniform_(-bound, bound)))
            self.biases.append(nn.Parameter(torch.zeros(count, 1, width)))

    def forward(self, observation: Tensor, action: Tensor) -> Tensor:
        x = torch.cat([observation, action], -1).expand(len(self.weights[0]), -1, -1)
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias, x, weight)
            if layer < len(self.weights) - 1:
                x = functional.relu(functional.layer_norm(x, x.shape[-1:]))
        return x.squeeze(-1)


def norm_of_gradient(module: nn.Module) -> float:
    """Of the last mini-batch; 0 before the first."""
    gradients = [parameter.grad for parameter in module.parameters() if parameter.grad is not None]
    return float(nn.utils.get_total_norm(gradients)) if gradients else 0.0


class Learner:
    """Trains a policy, one round at a time."""

    def __init__(
        self, task: Task, policy: PolicyGraph, config: SacConfig, seed: int, device: str = "cpu",
        folder: Path | None = None, live: bool = False,
    ) -> None:  # fmt: skip
        """``folder`` is the run's, in which demonstrations are and transitions are kept. ``live``: others have the
        robot, and keep what it does.
        """
        if policy.encoders or device != "cpu":
            raise ValueError(f"task '{task.name}' on '{device}': sac takes observations that are a vector, on the cpu")
        self.config, self.policy = config, policy
        seen, acted = task.observation_size, task.action_size
        self.env = None if config.actors or live else LearningEnv(VecEnv(task, config.environments, seed))
        """None where others have the robots."""
        if self.env is not None:
            starts(folder, config.reset_states, config.reset_weights, self.env)
        self.act = Explorer(policy, config)
        self.critics = Critics(config.critics, seen + acted, config.critic_hidden)
        self.slow = Critics(config.critics, seen + acted, config.critic_hidden).requires_grad_(False)
        self.slow.load_state_dict(self.critics.state_dict())
        self.anchor = Anchor(policy, config) if config.anchor else None
        self.log_temperature = nn.Parameter(torch.tensor(config.initial_temperature).log())
        rate = config.learning_rate
        self.actor_optimizer = Adam(self.act.parameters(), rate, fused=True)
        self.critic_optimizer = Adam(self.critics.parameters(), rate, fused=True)
        self.temperature_optimizer = Adam([self.log_temperature], rate)
        self.total, self.done = round(config.updates * task.update_scale), 0
        steps = self.total * config.steps * config.environments
        self.replay = ReplayBuffer(MOST_KEPT if live else min(steps, MOST_KEPT), seen, acted, None if live else folder)
        self.demonstrations = kept(folder, config.demonstrations, task)
        self.robot = robot_log.kept(folder, config.robot_log, task)
        """What a robot did, by its log."""
        self.ratio = DynamicsRatio(self.robot, config) if self.robot is not None and config.dynamics_ratio else None
        self.success = 0.0
        """Part of the episodes that ended in the last round in which any did."""
        self.entropy = 0.0
        """Of the policy, at the last mini-batch that it learnt from."""
        self.collect_seconds, self.diverged, self.skipped = 0.0, 0, 0
        self.learnt, self.levels = 0, dict[str, float]()
        """Times that was learnt, and the mean levels of ranges."""
        self.collector: Collector | None = Actors(config, folder, seed, self.act.weights) if config.actors else None
        """None where others have the robots."""
        if self.env is not None:
            self.collector = Simulated(self.act, self.env)

    @property
    def environments(self) -> VecEnv | None:
        """Whose episodes metrics tell of."""
        return None if self.env is None else self.env.env

    @property
    def environment_steps(self) -> int:
        """Control steps simulated so far, over all environments."""
        return self.done * self.config.steps * self.config.environments

    @property
    def wanted_entropy(self) -> float:
        """Per action, now."""
        last = self.done >= round((1.0 - self.config.anneal) * self.total) and self.config.anneal > 0.0
        return self.config.final_entropy if last else self.config.target_entropy

    def update(self) -> dict[str, float]:
        """Collect and learn, by turns; returns metrics."""
        earned, won, ended, losses, before = 0.0, 0, 0, torch.zeros(2), self.learnt
        for _ in range(self.config.steps):
            found = self.collect()
            earned, won, ended = earned + found.reward, won + found.succeeded, ended + found.ended
            if found.diverged >= MOST_DIVERGED * self.config.environments:
                self.skipped += self.config.gradient_steps
            elif self.replay.written >= self.config.first:
                losses += self.learn()
                self.learnt += 1
        self.done += 1
        if ended:
            self.success = won / ended
        critic, actor = (losses / max(1, self.learnt - before)).tolist()
        assert self.collector is not None
        collected = self.collector.metrics()
        if self.done == self.total:
            self.collector.close()
        return {
            "success": self.success,
            "reward": earned / self.config.steps,
            "loss/critic": critic,
            "loss/actor": actor,
            "temperature": float(self.log_temperature.detach().exp()),
            "entropy": self.entropy,
            "gradient_norm": norm_of_gradient(self.act),
            "gradient_norm_critic": norm_of_gradient(self.critics),
            **({"dynamics_ratio": self.ratio.weight, "loss/ratio": self.ratio.loss} if self.ratio else {}),
            **collected,
            **{f"level/{name}": level for name, level in self.levels.items()},
        }

    # --- what is learnt from -----------------------------------------------------------------------------------------

    def collect(self) -> Collected:
        """One step of all robots, whose transitions are kept."""
        assert self.collector is not None
        found = self.collector.collect(self.learnt)
        for transitions in found.transitions:
            self.replay.add(transitions.rows(usable(transitions)))
        self.collect_seconds += found.seconds
        self.diverged += found.diverged
        self.levels = found.levels
        return found

    @property
    def recorded(self) -> Transitions | None:
        """What a part of every batch is from, if anything is: the robot's log, or demonstrations."""
        return self.demonstrations if self.robot is None else self.robot

    @property
    def recorded_count(self) -> int:
        """How many of a batch, the first ones, are recorded."""
        if self.recorded is None:
            return 0
        return self.config.batch // 2 if self.robot is None else round(self.config.log_part * self.config.batch)

    def batch(self) -> Transitions:
        """Transitions of the past, the first of them recorded where there are demonstrations or a robot's log."""
        count, first, recorded = self.config.batch, self.recorded_count, self.recorded
        if recorded is None:
            return self.replay.sample(count)
        shown = recorded.rows(torch.randint(len(recorded.reward), (first,)))
        own = self.replay.sample(count - first)
        return Transitions(*(torch.cat(parts) for parts in zip(shown, own, strict=True)))

    # --- learning ----------------------------------------------------------------------------------------------------

    def learn(self) -> Tensor:
        """Steps of the critics and of the actor; returns their mean losses (2,)."""
        critic, actor, acted = torch.zeros(()), torch.zeros(()), 0
        for k in range(self.config.gradient_steps):
            acts = k % self.config.actor_every == 0 and self.done >= self.config.warm_up
            losses = self.mini_batch(acts)
            critic, actor, acted = critic + losses[0], actor + losses[1], acted + acts
        return torch.stack([critic / self.config.gradient_steps, actor / max(1, acted)])

    def mini_batch(self, acts: bool) -> Tensor:
        """One step of the critics and, if the policy ``acts`` on them by now, of the actor; their losses (2,)."""
        batch = self.batch()
        critic = self._learn_values(batch)
        return torch.stack([critic, self._learn_actions(batch) if acts else torch.zeros(())])

    def _learn_values(self, batch: Transitions) -> Tensor:
        """One step of the critics towards what was earned and what they expect after it."""
        config = self.config
        with torch.no_grad():
            action, _, entropy, _ = self.act(batch.next_observation)
            two = torch.randperm(config.critics)[:2]
            expected = self.slow(batch.next_observation, action)[two].amin(0)
            if config.entropy_backup:
                expected = expected + self.log_temperature.exp() * entropy
            target = batch.reward + config.gamma * (1.0 - batch.ended) * expected
        errors = (self.critics(batch.observation, batch.action) - target).square()
        if self.ratio is not None:
            errors = errors * self._believed(batch)
        loss = errors.mean(1).sum()
        self.critic_optimizer.zero_grad()
        loss.backward()
        self.skipped += not stepped(self.critic_optimizer, gradient_norm(self.critics.parameters()))
        with torch.no_grad():
            torch._foreach_lerp_(list(self.slow.parameters()), list(self.critics.parameters()), config.target_rate)
        return loss.detach()

    def _believed(self, batch: Transitions) -> Tensor:
        """(b,) weights of a batch: 1 for what the robot did, the dynamics ratio for the simulated, after a step of it.

        The batch is of ``batch``.
        """
        assert self.ratio is not None
        first = self.recorded_count
        robot, simulated = batch.rows(slice(None, first)), batch.rows(slice(first, None))
        self.skipped += not self.ratio.learn(robot, simulated)
        return torch.cat([torch.ones(first), self.ratio.weights(simulated)])

    def _learn_actions(self, batch: Transitions) -> Tensor:
        """One step of the policy towards what the critics expect most of, and of the temperature."""
        observation = batch.observation
        action, mean, entropy, beyond = self.act(observation)
        temperature = self.log_temperature.detach().exp()
        self.critics.requires_grad_(False)
        expected = self.critics(observation, action).mean(0)
        self.critics.requires_grad_(True)
        loss = (BEYOND * beyond - temperature * entropy - expected).mean()
        if self.anchor and (left := self.anchor.left(self.done, self.total)):
            loss = loss + self.anchor.cost(self.policy.features(observation), mean, left).mean()
        if self.config.imitation and (first := self.recorded_count):
            away = (action[:first] - batch.action[:first]).square().sum(-1)
            loss = loss + self.config.imitation * away.mean()
        self.actor_optimizer.zero_grad()
        loss.backward()
        if not stepped(self.actor_optimizer, gradient_norm(self.act.parameters())):
            self.skipped += 1
            return loss.detach()
        wanted = self.wanted_entropy * action.shape[-1]
        self.entropy = float(entropy.detach().mean())
        surplus = self.log_temperature.exp() * (entropy.detach().mean() - wanted)
        self.temperature_optimizer.zero_grad()
        surplus.backward()
        self.temperature_optimizer.step()
        return loss.detach()

    # --- saving and restoring ----------------------------------------------------------------------------------------

    def _parts(self) -> dict[str, nn.Module]:
        optional = {"anchor": self.anchor, "ratio": self.ratio}
        known = {name: module for name, module in optional.items() if module is not None}
        return {"spread": self.act.spread, "critics": self.critics, "slow": self.slow, **known}

    def _optimizers(self) -> dict[str, torch.optim.Optimizer]:
        ratio = {} if self.ratio is None else {"classifiers": self.ratio.optimizer}
        return {
            "actor": self.actor_optimizer, "critic": self.critic_optimizer, "temperature": self.temperature_optimizer,
            **ratio,
        }  # fmt: skip

    def save(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All that the rest of the training depends on, besides the policy and the transitions in their file."""
        self.replay.flush()
        tensors: dict[str, Tensor] = {"log_temperature": self.log_temperature}
        for name, module in self._parts().items():
            tensors |= {f"{name}/{key}": value for key, value in module.state_dict().items()}
        for name, optimizer in self._optimizers().items():
            tensors |= {f"{name}/{key}": value for key, value in optimizer_tensors(optimizer).items()}
        if self.env is not None:
            tensors |= {f"env/{name}": value for name, value in self.env.save().items()}
        return tensors, {"done": self.done, "written": self.replay.written, "success": self.success}

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Go on from ``save``, bit by bit as if there had been no break, as long as all transitions have been kept."""
        self.done, self.replay.written, self.success = numbers["done"], numbers["written"], numbers["success"]
        with torch.no_grad():
            self.log_temperature.copy_(tensors["log_temperature"])
        for name, module in self._parts().items():
            module.load_state_dict(part(tensors, f"{name}/"))
        for name, optimizer in self._optimizers().items():
            optimizer_from(part(tensors, f"{name}/"), optimizer)
        if self.env is not None:
            self.env.load(part(tensors, "env/"))
