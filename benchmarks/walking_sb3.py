"""Learning to walk by stable-baselines3, on the same robots, rewards and cores as `benchmarks/walking.py`.

Robots, observations, ranges and rewards are those of go2-flat; only the learner differs. That PPO gets the
same networks, batches and hyperparameters where it has them, its own normaliser (VecNormalize) and ten minutes. What it
has learnt then goes into our policy graph and walks the same held-out walks. The step size is the one thing to choose:

    python benchmarks/walking_sb3.py --learning-rate 3e-4
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import torch
import tyro
from results import write
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecNormalize
from stable_baselines3.common.vec_env.base_vec_env import VecEnv as SharedEnv

from robo_rl.evaluate.evaluation import Conditions, GraphPolicy, rollout
from robo_rl.learn.config import PpoConfig
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.loading import load_task

TASK = "go2-flat"
WALKS = 1000
FARTHEST = 10.0  # actions beyond it are cut by stable-baselines3; nothing that learns to walk comes near


class Robots(SharedEnv):
    """Our robots, as stable-baselines3 wants them."""

    def __init__(self, observed: LearningEnv) -> None:
        self.observed, task = observed, observed.task
        seen = gymnasium.spaces.Box(-np.inf, np.inf, (task.observation_size,))
        super().__init__(observed.n, seen, gymnasium.spaces.Box(-FARTHEST, FARTHEST, (task.action_size,)))

    def reset(self) -> np.ndarray:
        return self.observed.reset().numpy().copy()

    def step_async(self, actions: np.ndarray) -> None:
        self.step = self.observed.step(torch.from_numpy(actions))

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        step, infos = self.step, [{} for _ in range(self.num_envs)]
        for k, i in enumerate(step.ids.tolist()):
            late = bool(step.timeout[i])
            infos[i] = {"terminal_observation": step.final_observation[k].numpy(), "TimeLimit.truncated": late}
        done = (step.failed | step.timeout).numpy()
        return step.observation.numpy().copy(), step.reward.numpy().copy(), done, infos

    # The rest of the interface is for wrappers that this benchmark has none of.

    def close(self) -> None: ...

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None: ...

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        return []

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


class Until(BaseCallback):
    """Ends a training after some seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.end = time.perf_counter() + seconds

    def _on_step(self) -> bool:
        return time.perf_counter() < self.end


def main(learning_rate: float = 3e-4, seconds: float = 600.0, seed: int = 0) -> None:
    """Train, then walk.

    Args:
        learning_rate: Adam's step size.
        seconds: Of training.
        seed: Of all random draws.
    """
    task = load_task(TASK)
    config = PpoConfig(**task.settings["ppo"])
    robots = VecNormalize(
        Robots(LearningEnv(VecEnv(task, config.environments, seed))),
        norm_reward=False, clip_obs=np.inf, gamma=config.gamma,
    )  # fmt: skip
    layers = {"pi": list(config.hidden), "vf": list(config.critic_hidden)}
    learner = PPO(
        "MlpPolicy", robots, learning_rate, config.horizon, config.horizon * config.environments // config.mini_batches,
        config.epochs, config.gamma, config.lam, config.clip, ent_coef=config.entropy, vf_coef=1.0,
        max_grad_norm=config.gradient_norm, seed=seed, device="cpu",
        policy_kwargs={
            "net_arch": layers, "activation_fn": torch.nn.ELU, "log_std_init": float(np.log(config.initial_deviation))
        },
    )  # fmt: skip
    begun = time.perf_counter()
    learner.learn(10**9, Until(seconds))
    took = time.perf_counter() - begun
    walks = rollout(task, GraphPolicy(graph_of(learner, robots, config)), Conditions(episodes=WALKS)).summary()
    row = {"learning_rate": learning_rate, "seed": seed, "train_seconds": took, "steps": learner.num_timesteps, **walks}
    print(
        f"{learner.num_timesteps:,} control steps in {took:.0f} s; falls {1 - walks['success']:.1%} "
        f"({1 - walks['success_high']:.1%} to {1 - walks['success_low']:.1%}), "
        f"{walks['linear_velocity_error_mean_m_s']:.3f} m/s, {walks['yaw_rate_error_mean_rad_s']:.3f} rad/s"
    )
    write("walking_sb3", row)


def graph_of(learner: PPO, robots: VecNormalize, config: PpoConfig) -> PolicyGraph:
    """What was learnt, as a policy graph."""
    policy = PolicyGraph(load_task(TASK), tuple(config.hidden), config.activation, normalize=True)
    actor = learner.policy
    copied(policy.network, [*actor.mlp_extractor.policy_net, actor.action_net])
    seen = robots.obs_rms
    policy.normalizer.mean.copy_(torch.from_numpy(seen.mean))
    policy.normalizer.deviation.copy_(torch.from_numpy(np.sqrt(seen.var + robots.epsilon)))
    return policy.requires_grad_(False)


def copied(network: torch.nn.Sequential, layers: Sequence[torch.nn.Module]) -> None:
    """Put the weights of ``layers`` into ``network``, which has the same."""
    for mine, theirs in zip(network, layers, strict=True):
        mine.load_state_dict(theirs.state_dict())


if __name__ == "__main__":
    tyro.cli(main)
