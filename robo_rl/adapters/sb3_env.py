"""Any task as an environment of stable-baselines3 (pip install stable-baselines3), and what it has learnt as a module.

env = Sb3Env("quadrotor-hover", 64)
model = PPO("MlpPolicy", env).learn(1_000_000)
robo_rl.adapters.modules.export(actor(model), env, "policy.onnx")
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv as SharedEnv
from torch import Tensor, nn

from robo_rl.adapters.wrappers import Clipped, WrapperError, normalization, unwrap
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.loading import load_task

FARTHEST = 10.0
"""Of an action, in the task's units: stable-baselines3 wants bounds, and cuts there."""


class Sb3Env(SharedEnv):
    """n robots at a task, all in one batch. Tasks whose observation has several groups are not for it."""

    render_mode = None

    def __init__(self, task: str, n: int, robot: str | None = None, seed: int = 0) -> None:
        self.observed = LearningEnv(VecEnv(load_task(task, robot), n, seed))
        known = self.observed.task
        if known.encoders:
            raise ValueError(f"task '{known.name}' observes the groups {list(known.observation_shapes)}; expected one")
        seen = gymnasium.spaces.Box(-np.inf, np.inf, (known.observation_size,))
        super().__init__(self.observed.n, seen, gymnasium.spaces.Box(-FARTHEST, FARTHEST, (known.action_size,)))
        self._actions = torch.zeros(self.num_envs, known.action_size)

    def reset(self) -> NDArray[Any]:
        observation = self.observed.reset()
        assert isinstance(observation, Tensor)
        return np.array(observation.numpy(), order="C")

    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = torch.from_numpy(np.asarray(actions, np.float32))

    def step_wait(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], list[dict[str, Any]]]:
        step = self.observed.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        assert isinstance(step.observation, Tensor)
        assert isinstance(step.final_observation, Tensor)
        for k, i in enumerate(step.ids.tolist()):
            late = bool(step.timeout[i])
            infos[i] = {"terminal_observation": step.final_observation[k].numpy(), "TimeLimit.truncated": late}
        return np.array(step.observation.numpy(), order="C"), step.reward.numpy().copy(), step.done.numpy(), infos

    # What wrappers may ask for.

    def close(self) -> None:
        """Nothing has to be closed."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise AttributeError(f"'{attr_name}' can't be set: all robots are one batch")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        raise AttributeError(f"'{method_name}' can't be called: all robots are one batch")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False for _ in self._get_indices(indices)]


class Actor(nn.Sequential):
    """The layers of a policy of stable-baselines3, from observations to actions."""

    trained_in: tuple[str, ...] | None = None
    """Wrappers of the environment that it was trained in; None where a file doesn't tell."""


def actor(model: OnPolicyAlgorithm) -> Actor:
    """The deterministic policy of PPO or A2C, with the normalisation of its environment, if it has one.

    A model that was loaded from a file has no environment: give ``robo_rl.export`` one that is wrapped as in training.
    """
    policy: Any = model.policy
    if policy.squash_output or policy.share_features_extractor is False:
        raise ValueError("the policy squashes its output or has two feature extractors; expected neither")
    layers = [policy.pi_features_extractor, policy.mlp_extractor.policy_net, policy.action_net]
    statistics = model.get_vec_normalize_env()
    if statistics is not None and statistics.norm_obs:
        layers.insert(0, normalization(statistics))
    bounds: Any = model.action_space
    made = Actor(*layers, Clipped(bounds.low, bounds.high))
    made.trained_in = _wrappers_of(model.get_env())
    return made


def _wrappers_of(env: Any) -> tuple[str, ...] | None:
    if env is None:
        return None
    try:
        return unwrap(env).names
    except WrapperError:
        raise
    except ValueError:  # an environment of others
        return ()
