"""An environment through a policy's eyes is the policy graph's own view of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.loading import load_task


@pytest.fixture(params=["quadrotor-hover", "quadrotor-track"])
def task_name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_flying_by_actions_is_flying_by_the_policy_graph(task_name: str) -> None:
    """Same seed, same network: once through observations and actions, once through signals and commands."""
    task = load_task(task_name)
    torch.manual_seed(0)
    policy = PolicyGraph(task, (16,)).requires_grad_(False)
    policy.network[-1].weight.mul_(100.0)
    observed, env = LearningEnv(VecEnv(task, 12, seed=1)), VecEnv(task, 12, seed=1)
    state, signals = policy.initial_state(12), env.signals()
    ended = 0
    observation = observed.observation()
    for _ in range(150):
        transition = observed.step(policy.network(observation))
        observation = transition.observation
        commands, state = policy(signals, state)
        step = env.step(commands)
        signals = step.signals
        state[step.ids] = policy.initial_state(len(step.ids))
        ended += len(step.ids)
        np.testing.assert_array_equal(transition.ids, step.ids)
        np.testing.assert_allclose(transition.reward, step.reward, rtol=1e-3, atol=1e-3)
        np.testing.assert_array_equal(transition.failed, step.failed)
        expected = task.observe(signals, policy.unpack(state))
        np.testing.assert_allclose(observation, expected, atol=1e-3)
        np.testing.assert_allclose(transition.privileged, env.privileged(), atol=1e-3)
        assert transition.final_observation.shape == (len(step.ids), task.observation_size)
    assert ended > 5


def test_reset_begins_all_episodes_with_a_fresh_memory() -> None:
    env = LearningEnv(VecEnv(load_task("quadrotor-hover"), 4, seed=0))
    for _ in range(5):
        env.step(torch.ones(4, 4))
    assert env.memory["command_history"].abs().max() > 0.1
    observation = env.reset()
    np.testing.assert_array_equal(env.memory["command_history"], 0.0)
    np.testing.assert_array_equal(env.env.episode.step, 0.0)
    np.testing.assert_array_equal(observation, env.observation())


def test_loaded_into_a_new_environment_it_goes_on_to_the_bit(task_name: str) -> None:
    torch.manual_seed(0)
    actions = 0.5 * torch.randn(40, 6, 4)
    first = LearningEnv(VecEnv(load_task(task_name), 6, seed=1))
    for action in actions[:20]:
        first.step(action)
    saved = {name: value.clone() for name, value in first.save().items()}
    second = LearningEnv(VecEnv(load_task(task_name), 6, seed=99))
    second.load(saved)
    np.testing.assert_array_equal(second.observation(), first.observation())
    for action in actions[20:]:
        for mine, theirs in zip(second.step(action), first.step(action), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_what_a_step_gives_away_is_not_written_by_later_steps(task_name: str) -> None:
    env = LearningEnv(VecEnv(load_task(task_name), 6, seed=1))
    torch.manual_seed(0)
    given, copies = [], []
    for _ in range(60):
        step = env.step(torch.randn(6, 4))
        mine = [step.observation, step.privileged, step.reward, step.failed, *env.signals.values()]
        given.append(mine)
        copies.append([value.clone() for value in mine])
    for mine, copy in zip(given, copies, strict=True):
        for value, kept in zip(mine, copy, strict=True):
            np.testing.assert_array_equal(value, kept)


def test_a_robots_future_is_the_same_in_a_batch_whose_rows_lie_apart(task_name: str) -> None:
    """256 robots lie in rows with gaps between them (``robo_rl.sim.accelerate.fuse.structure.spacing``), 100 robots
    in rows without."""
    torch.manual_seed(0)
    actions = 0.5 * torch.randn(80, 256, 4)
    many, few = (LearningEnv(VecEnv(load_task(task_name), n, seed=1)) for n in (256, 100))
    ended = 0
    for action in actions:
        mine, theirs = many.step(action), few.step(action[:100])
        np.testing.assert_array_equal(mine.observation[:100], theirs.observation)
        np.testing.assert_array_equal(mine.privileged[:100], theirs.privileged)
        np.testing.assert_array_equal(mine.reward[:100], theirs.reward)
        ended += len(theirs.ids)
    assert ended > 20


def test_a_state_that_is_not_finite_ends_its_episode_and_leaves_the_last_finite_observation() -> None:
    env = LearningEnv(VecEnv(load_task("quadrotor-hover"), 6, seed=1))
    before = env.step(torch.zeros(6, 4)).observation
    env.env.plant.current.position[2] = float("nan")
    step = env.step(torch.zeros(6, 4))
    assert env.env.diverged == 1
    assert (step.ids.tolist(), step.reward[2].item(), bool(step.failed[2])) == ([2], 0.0, True)
    assert torch.isfinite(step.observation).all()
    np.testing.assert_array_equal(step.final_observation[0, :3], before[2, :3])
