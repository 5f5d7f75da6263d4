"""Any task as an environment of rsl_rl, for training with rsl_rl's runners. ``robo-rl train`` does not use it."""

from __future__ import annotations

import rsl_rl.env
import torch
from tensordict import TensorDict
from torch import Tensor

from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.learn.experience.transitions import Observation, groups
from robo_rl.sim.env import VecEnv


class RslRlEnv(rsl_rl.env.VecEnv):
    """Groups of observations: "privileged", and the task's own, or "policy" if it has one vector alone."""

    def __init__(self, env: VecEnv) -> None:
        self.observed = LearningEnv(env)
        self.num_envs, self.num_actions = env.n, env.task.action_size
        self.max_episode_length = env.task.spec.episode_steps
        self.episode_length_buf = torch.zeros(env.n, dtype=torch.long, device=env.device)
        self.device, self.cfg = env.device, {"task": env.task.spec.name}

    def get_observations(self) -> TensorDict:
        return _seen(self.observed.observation(), self.observed.privileged())

    def step(self, actions: Tensor) -> tuple[TensorDict, Tensor, Tensor, dict]:
        step = self.observed.step(actions)
        self.episode_length_buf = torch.where(step.done, 0, self.episode_length_buf + 1)
        return _seen(step.observation, step.privileged), step.reward, step.done, {"time_outs": step.timeout}


def _seen(observation: Observation, privileged: Tensor) -> TensorDict:
    return TensorDict({**groups(observation), "privileged": privileged}, batch_size=[len(privileged)])
