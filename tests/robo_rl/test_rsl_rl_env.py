"""Our tasks for those who train with rsl_rl, whose import takes seconds: it is left to the tests."""

from __future__ import annotations

from pathlib import Path

import torch

from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.loading import load_task


def test_rsl_rl_s_own_runner_trains_on_the_environment(tmp_path: Path) -> None:
    from rsl_rl.runners import OnPolicyRunner

    from robo_rl.adapters.rsl_rl_env import RslRlEnv

    env = RslRlEnv(VecEnv(load_task("quadrotor-hover"), 16, seed=0))
    model = {"class_name": "MLPModel", "hidden_dims": [16], "activation": "elu", "obs_normalization": True}
    config = {
        "num_steps_per_env": 8,
        "save_interval": 10,
        "obs_groups": {"actor": ["policy"], "critic": ["privileged"]},
        "algorithm": {"class_name": "PPO", "num_learning_epochs": 1, "num_mini_batches": 2},
        "actor": {**model, "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 0.5}},
        "critic": model,
    }
    torch.manual_seed(0)
    runner = OnPolicyRunner(env, config, log_dir=str(tmp_path), device="cpu")
    before = [parameter.clone() for parameter in runner.alg.actor.parameters()]
    runner.learn(num_learning_iterations=2, init_at_random_ep_len=True)
    after = list(runner.alg.actor.parameters())
    assert all(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert all(parameter.isfinite().all() for parameter in after)
    groups = env.get_observations()
    assert groups["policy"].shape == (16, env.observed.task.observation_size)
    assert runner.get_inference_policy()(groups).shape == (16, 4)


def test_rsl_rl_s_environment_tells_time_outs_from_failures() -> None:
    from robo_rl.adapters.rsl_rl_env import RslRlEnv

    env = RslRlEnv(VecEnv(load_task("quadrotor-hover"), 4, seed=0))
    base = env.observed.env
    base.episode.step[1] = base.episode_steps - 1
    base.plant.current.position[2] = torch.tensor([0.0, 0.0, 2.0])
    _, _, done, extras = env.step(torch.zeros(4, 4))
    assert done.tolist() == [False, True, True, False]
    assert extras["time_outs"].tolist() == [False, True, False, False]
    assert env.episode_length_buf.tolist() == [1, 0, 0, 1]
