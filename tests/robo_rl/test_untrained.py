"""Policies that were not trained do what their names say."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from robo_rl.evaluate.evaluation import Conditions, rollout
from robo_rl.evaluate.untrained import RandomPolicy, ZeroPolicy
from robo_rl.learn.experience.learning_env import ACTION_SCALE
from robo_rl.policies.loading import load
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.loading import load_task


def test_a_quadrotor_at_rest_hovers_under_zero_actions() -> None:
    task = load_task("quadrotor-hover")
    calm = {name: 0.0 for name in task.spec.ranges if name.startswith(("initial/", "wind"))}
    env, policy = VecEnv(task, 3, evaluation=True, fixed=calm), ZeroPolicy(task)
    commands, _ = policy(env.signals(), policy.initial_state(3))
    np.testing.assert_allclose(commands["rotor_speed"], task.spec.robot.hover_speed, rtol=1e-5)


@pytest.mark.parametrize("task_name", ["go2-flat", "arm-reach", "quadrotor-track"])
@pytest.mark.parametrize("target", ["zero", "random"])
def test_any_task_runs_with_them(task_name: str, target: str) -> None:
    loaded = load(target, task_name)
    found = rollout(loaded.task, loaded.policy, Conditions(episodes=3, seconds=1.1))
    assert found.summary()["episodes"] == 3


def test_random_actions_fill_the_range_of_gymnasium_and_are_the_same_in_every_run() -> None:
    task = load_task("quadrotor-hover")
    drawn = RandomPolicy(task).action(5000)
    assert drawn.abs().max() <= ACTION_SCALE
    np.testing.assert_allclose(drawn.mean(0), 0.0, atol=0.05 * ACTION_SCALE)
    np.testing.assert_allclose(drawn.std(0), ACTION_SCALE / 3**0.5, rtol=0.05)
    assert torch.equal(drawn, RandomPolicy(task).action(5000))


@pytest.mark.parametrize("target", ["zero", "random"])
def test_without_a_task_they_are_refused(target: str) -> None:
    with pytest.raises(ValueError, match="expected --task with its name"):
        load(target)
