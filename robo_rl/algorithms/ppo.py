"""Proximal policy optimisation: rsl_rl's, on our environments and our policy graph.

The actor that rsl_rl trains is the policy graph's own network, and its running normaliser is copied into the
graph after every update, so what is exported is what was trained. One thing differs from rsl_rl's runner: an
episode that ends because its time is over is bootstrapped with the value of its true final state, not of the
state before the last step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import rsl_rl.env
import torch
from rsl_rl.algorithms import PPO
from rsl_rl.models import MLPModel, RNNModel
from tensordict import TensorDict
from torch import Tensor

from robo_rl import processes
from robo_rl.algorithms.config import PpoConfig
from robo_rl.algorithms.fast_ppo import Gaussian, Normalization, Storage, use_fast_elu
from robo_rl.checkpoint import optimizer_from, optimizer_tensors
from robo_rl.learning_env import LearningEnv, Observation, groups, rows
from robo_rl.networks import VECTOR, Encoders, Normalizer
from robo_rl.policy import PolicyGraph
from sim.env import VecEnv
from sim.tasks import Task


class RslRlEnv(rsl_rl.env.VecEnv):
    """Any task as rsl_rl's environment, for its runners; groups "privileged" and the task's own, or "policy"."""

    def __init__(self, env: VecEnv) -> None:
        self.observed = LearningEnv(env)
        self.num_envs, self.num_actions = env.n, env.task.action_size
        self.max_episode_length = env.task.spec.episode_steps
        self.episode_length_buf = torch.zeros(env.n, dtype=torch.long, device=env.device)
        self.device, self.cfg = env.device, {"task": env.task.spec.name}

    def get_observations(self) -> TensorDict:
        return seen(self.observed.observation(), self.observed.privileged())

    def step(self, actions: Tensor) -> tuple[TensorDict, Tensor, Tensor, dict]:
        step = self.observed.step(actions)
        self.episode_length_buf = torch.where(step.done, 0, self.episode_length_buf + 1)
        return seen(step.observation, step.privileged), step.reward, step.done, {"time_outs": step.timeout}


def seen(observation: Observation, privileged: Tensor) -> TensorDict:
    """What rsl_rl calls groups of observations."""
    return TensorDict({**groups(observation), "privileged": privileged}, batch_size=[len(privileged)])


class _Seeing(MLPModel):
    """An actor that sees what the policy graph sees: the normalised vector, and what encoders make of the rest."""

    encoders: Encoders

    def get_latent(self, obs: TensorDict, masks: Any = None, hidden_state: Any = None) -> Tensor:
        vector = super().get_latent(obs, masks, hidden_state)
        return torch.cat([vector, self.encoders(obs)], -1) if self.encoders else vector


class _Remembering(RNNModel, _Seeing):
    """The same in front of a recurrent network."""


class Learner:
    """Trains a policy, one update at a time, alone or together with its likes in other processes."""

    def __init__(self, task: Task, policy: PolicyGraph, config: PpoConfig, seed: int, device: str = "cpu") -> None:
        self.config, self.policy, self.device = config, policy.to(device), device
        self.seed = processes.own_seed(seed)
        environments = processes.share(config.environments)
        self.env = LearningEnv(VecEnv(task, environments, self.seed, device))
        robots = self.env.n
        first = seen(self.env.observation(), self.env.privileged())
        sides = {"actor": [VECTOR], "critic": ["privileged"]}
        deviation = {"class_name": Gaussian, "init_std": config.initial_deviation}
        activation, normalize = config.activation, config.normalize
        shape = (first, sides, "actor", task.action_size, config.hidden, activation, normalize, deviation)
        actor = _Remembering(*shape, "gru", config.recurrent) if config.recurrent else _Seeing(*shape)
        actor.mlp, actor.encoders = policy.network, policy.encoders  # rsl_rl trains the graph's own networks
        if policy.recurrence is not None:
            actor.rnn.rnn = policy.recurrence
        critic = MLPModel(first, sides, "critic", 1, config.critic_hidden, activation, normalize)
        for model in (actor, critic):
            if normalize:
                model.obs_normalizer = Normalization(model.obs_dim)
            if torch.device(device).type == "cpu":
                use_fast_elu(model.mlp)
        storage = Storage("rl", robots, config.horizon, first, [task.action_size], device)
        self.ppo = PPO(
            actor,
            critic,
            storage,
            num_learning_epochs=config.epochs,
            num_mini_batches=config.mini_batches,
            clip_param=config.clip,
            gamma=config.gamma,
            lam=config.lam,
            entropy_coef=config.entropy,
            learning_rate=config.learning_rate,
            max_grad_norm=config.gradient_norm,
            desired_kl=config.desired_kl,
            device=device,
            multi_gpu_cfg=processes.settings(),
        )
        for group in self.ppo.optimizer.param_groups:
            group["fused"] = True  # one pass over all weights instead of a dozen
        self.ppo.train_mode()
        self.total, self.done = round(config.updates * task.update_scale), 0
        self.survived: dict[str, float] = {}
        """Part of the episodes that ended in the last update in which any did: "alive", once there was one."""

    @property
    def environment_steps(self) -> int:
        """Control steps simulated so far, over all environments of all processes."""
        return self.done * self.config.horizon * self.config.environments * self.env.env.team

    def update(self) -> dict[str, float]:
        """Collect a horizon, learn from it; returns metrics."""
        collected = self.collect()
        self.ppo.desired_kl = self.config.desired_kl * self._annealing()
        losses = self.ppo.update()
        self._copy_normalizer()
        self.done += 1
        return {
            **collected,
            "deviation": float(self.ppo.actor.output_std.detach().mean()),
            "learning_rate": self.ppo.learning_rate,
            **{f"loss/{name}": value for name, value in losses.items()},
            **{f"level/{name}": level for name, level in self.env.env.levels.mean().items()},
        }

    def _annealing(self) -> float:
        """1, and from where the policy should anneal on down to 0.1 at the last update."""
        annealing = self.config.anneal * self.total
        return max(0.1, min(1.0, (self.total - self.done) / annealing)) if annealing else 1.0

    @torch.inference_mode()
    def collect(self) -> dict[str, float]:
        """Act for a horizon and store what came of it; returns the mean reward and ``survived``."""
        rewards, failed, ended = [], [], 0
        now = seen(self.env.observation(), self.env.privileged())
        for _ in range(self.config.horizon):
            step = self.env.step(self.ppo.act(now))
            now = seen(step.observation, step.privileged)
            self.ppo.process_env_step(now, self._bootstrapped(step), step.done, {})
            rewards.append(step.reward.mean())  # numbers when all are there: a GPU need not wait for each
            failed.append(step.failed.sum())
            ended += len(step.ids)
        self.ppo.compute_returns(now)
        if ended:
            self.survived = {"alive": 1 - float(torch.stack(failed).sum()) / ended}
        return {"reward": float(torch.stack(rewards).mean()), **self.survived}

    def _bootstrapped(self, step: Any) -> Tensor:
        """Rewards, with what a timed-out episode would still have earned by the value of its final state."""
        reward = step.reward.clone()
        late = step.timeout[step.ids]
        if late.any():
            final = seen(rows(step.final_observation, late), step.final_privileged[late])
            reward[step.ids[late]] += self.config.gamma * self.ppo.critic(final)[:, 0]
        return reward

    def _copy_normalizer(self) -> None:
        source, target = self.ppo.actor.obs_normalizer, self.policy.normalizer
        if isinstance(target, Normalizer):
            target.mean.copy_(source.mean)
            target.deviation.copy_(source.std + source.eps)

    def save(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All that the rest of the training depends on: tensors and numbers."""
        tensors = optimizer_tensors(self.ppo.optimizer)
        for name, model in (("actor", self.ppo.actor), ("critic", self.ppo.critic)):
            tensors |= {f"{name}/{key}": value for key, value in model.state_dict().items()}
        tensors |= {f"env/{name}": value for name, value in self.env.save().items()}
        hidden = self.ppo.actor.get_hidden_state()
        if hidden is not None:
            tensors["hidden"] = hidden
        return tensors, {"done": self.done, "learning_rate": self.ppo.learning_rate, "survived": self.survived}

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Go on from ``save``: on a CPU, bit by bit as if there had been no break.

        Robots of other processes than the first, whose state is not saved, begin new episodes, at the first's levels.
        """
        self.done, self.survived = numbers["done"], numbers.get("survived", {})
        for name, model in (("actor", self.ppo.actor), ("critic", self.ppo.critic)):
            prefix = f"{name}/"
            model.load_state_dict({k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)})
        optimizer_from(tensors, self.ppo.optimizer)
        self.ppo.learning_rate = numbers["learning_rate"]
        for group in self.ppo.optimizer.param_groups:
            group["lr"] = self.ppo.learning_rate
        if processes.rank() > 0:
            self.env.env.seed(self.seed + self.done)  # not the first draws again
            self.env.begin_at(tensors["env/env/levels"])
            return
        self.env.load({k.removeprefix("env/"): v for k, v in tensors.items() if k.startswith("env/")})
        self.ppo.actor.reset(hidden_state=tensors["hidden"].to(self.device, copy=True) if "hidden" in tensors else None)
