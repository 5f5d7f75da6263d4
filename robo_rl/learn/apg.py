"""Analytic policy gradient: back-propagation through time, through simulation and policy.

The plant is differentiable, so the gradient of what a policy will earn over the next steps needs no sampling
and no value function: roll n environments out for a horizon, and go back along the same path with the chain
rule. Environments carry on where they were at the end of a horizon; those that failed or timed out begin
again. (Truncated back-propagation as in Xu et al. 2022, Accelerated Policy Learning with Parallel
Differentiable Simulation, here without its terminal value: with a horizon of about twice the slowest time
constant it is not needed.)
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from robo_rl.learn.adam import Adam
from robo_rl.learn.adversary import Adversary, undrawn
from robo_rl.learn.config import ApgConfig
from robo_rl.learn.experience.collision_replay import CollisionReplay
from robo_rl.learn.extension import Extension
from robo_rl.learn.finite import MOST_DIVERGED, stepped
from robo_rl.learn.gradient_rollout import GradientRollout
from robo_rl.learn.runs.checkpoint import optimizer_from, optimizer_tensors, part
from robo_rl.learn.schedule import set_cosine_rate
from robo_rl.learn.team_rollout import TeamRollout
from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks import Task


class Learner:
    """Trains a policy, one update at a time."""

    def __init__(self, task: Task, policy: PolicyGraph, config: ApgConfig, seed: int, device: str = "cpu") -> None:
        alone = task.spec.team == 1
        if policy.encoders and alone:
            raise ValueError(f"task '{task.name}' has encoders of scans or images; train it with ppo")
        self.config, self.policy = config, policy.to(device)
        chosen = undrawn(task, config.adversary, config.environments)
        self.env = VecEnv(task, config.environments, seed, device, fixed=chosen)
        adversary = [Adversary(self.env, config.adversary, config.rationality)] if chosen else []
        self.extensions: list[Extension] = [*adversary]
        self.replay = CollisionReplay(config.replay, seed) if config.replay else None
        if self.replay and alone:
            raise ValueError(f"replay is {config.replay}, but '{task.name}' is not for teams; expected 0")
        self.tape: GradientRollout | TeamRollout = (
            GradientRollout(self.env, policy.network, config.horizon)
            if alone
            else TeamRollout(self.env, self.policy, config.horizon, self.replay)
        )
        self.tape.start()
        self.optimizer = Adam(policy.parameters(), betas=config.betas, fused=True)
        self.total = round(config.updates * task.update_scale)
        self.done = 0
        self.collect_seconds, self.diverged, self.skipped = 0.0, 0, 0

    @property
    def environments(self) -> VecEnv:
        """Whose episodes metrics tell of."""
        return self.env

    @property
    def environment_steps(self) -> int:
        """Control steps simulated so far, over all environments."""
        return self.done * self.config.horizon * self.env.n

    def begin_at(self, levels: Tensor) -> None:
        """Reset all environments, at the levels (m, ranges) of other environments, taken in turn."""
        self.env.levels.level.copy_(levels[torch.arange(self.env.n) % len(levels)])
        self.tape.start()

    @torch.no_grad()
    def update(self) -> dict[str, float]:
        """Roll out, go back, step; returns metrics."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # the matrices are small: a second thread takes longer to wake than it saves
        metrics = self._update()
        torch.set_num_threads(threads)
        return metrics

    def _update(self) -> dict[str, float]:
        set_cosine_rate(self.optimizer, self.config.learning_rate, self.done, self.total)
        for extension in self.extensions:
            extension.plan(self.done, self.total)
        begun = time.perf_counter()
        reward = float(self.tape.forward())
        self.collect_seconds += time.perf_counter() - begun
        self.tape.backward()
        norm = nn.utils.clip_grad_norm_(self.policy.parameters(), self.config.gradient_norm)
        alive, before = self.tape.alive, self.env.diverged
        earned, ended = self.tape.carry_on()
        lost = self.env.diverged - before
        self.diverged += lost
        self.skipped += lost >= MOST_DIVERGED * self.env.n or not stepped(self.optimizer, norm)
        self.done += 1
        metrics = {"reward": reward, "alive": alive, "gradient_norm": float(norm)}
        metrics |= {f"level/{name}": level for name, level in self.env.levels.mean().items()}
        for extension in self.extensions:
            extension.hear(earned, ended)
            metrics |= extension.metrics()
        return metrics

    def save(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All that the rest of the training depends on: tensors and numbers."""
        tensors = optimizer_tensors(self.optimizer) | {f"env/{name}": value for name, value in self.env.save().items()}
        tensors["tape"] = self.tape.first_block
        for extension in self.extensions:
            tensors |= {f"{extension.name}/{name}": value for name, value in extension.save().items()}
        if self.replay:
            tensors |= {f"replay/{name}": value for name, value in self.replay.save().items()}
        return tensors, {"done": self.done}

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Go on from ``save``: on a CPU, bit by bit as if there had been no break."""
        self.done = numbers["done"]
        self.env.load({k.removeprefix("env/"): v for k, v in tensors.items() if k.startswith("env/")})
        self.tape.first_block.copy_(tensors["tape"])
        optimizer_from(tensors, self.optimizer)
        if self.replay:
            self.replay.load(part(tensors, "replay/"))
        for extension in self.extensions:
            extension.load(part(tensors, f"{extension.name}/"))
