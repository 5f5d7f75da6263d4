"""Gymnasium's tasks in our batch, against gymnasium itself."""

from __future__ import annotations

import gymnasium
import mujoco
import numpy as np
import pytest

from robo_rl.evaluate.standard_envs import DEFINITIONS, STEPS, StandardEnv

pytest.importorskip("imageio", reason="gymnasium's MuJoCo tasks need it: pip install 'gymnasium[mujoco]'")

NAMES = list(DEFINITIONS)


def start_at(reference: gymnasium.Env, start: np.ndarray) -> np.ndarray:
    """gymnasium's first observation when an episode begins in this state (nq + nv,)."""
    mujoco.mj_resetData(reference.model, reference.data)
    reference.set_state(*np.split(start, [reference.model.nq]))
    return reference._get_obs()


@pytest.mark.parametrize("name", NAMES)
def test_observations_rewards_and_ends_are_gymnasium_s_over_hundreds_of_steps(name: str) -> None:
    reference = gymnasium.make(name).unwrapped
    ours = StandardEnv(name, 4, seed=1, threads=2)
    generator = np.random.default_rng(2)
    np.testing.assert_array_equal(start_at(reference, ours.start[2]), ours.observation[2])
    ends = 0
    for _ in range(400):
        actions = generator.uniform(-1.2, 1.2, (4, ours.model.nu))  # beyond the limits too
        step = ours.step(actions)
        observation, reward, terminated, _, _ = reference.step(actions[2])
        assert step.reward[2] == pytest.approx(reward, rel=1e-12, abs=1e-12)
        assert step.terminated[2] == terminated
        if terminated:
            ends += 1
            np.testing.assert_array_equal(step.final_observation[step.ids == 2][0], observation)
            observation = start_at(reference, ours.start[2])
        np.testing.assert_array_equal(step.observation[2], observation)
    assert ends > 0 or name == "HalfCheetah-v5"


def test_start_states_are_spread_as_gymnasium_s() -> None:
    env = StandardEnv("HalfCheetah-v5", 5000, seed=0)
    reference = gymnasium.make("HalfCheetah-v5")
    theirs = np.stack([reference.reset(seed=i)[0] for i in range(300)])
    positions, velocities = env.start[:, :9], env.start[:, 9:]
    assert positions.min() > -0.1
    assert positions.max() < 0.1
    np.testing.assert_allclose(positions.std(0), 0.1 / np.sqrt(3), rtol=0.05)
    np.testing.assert_allclose(velocities.std(0), 0.1, rtol=0.05)
    np.testing.assert_allclose(env.observation.std(0), theirs.std(0), rtol=0.2)


def test_episodes_end_after_a_thousand_steps_and_begin_again_elsewhere() -> None:
    env = StandardEnv("HalfCheetah-v5", 2)
    env._age[:] = STEPS - 2
    still = np.zeros((2, 6))
    assert not env.step(still).truncated.any()
    first = env.start.copy()
    step = env.step(still)
    assert step.truncated.all()
    assert not step.terminated.any()
    np.testing.assert_array_equal(step.ids, [0, 1])
    assert not np.array_equal(env.start, first)
    assert not np.array_equal(step.observation, step.final_observation)
    assert not env.step(still).truncated.any()


def test_results_do_not_depend_on_threads() -> None:
    envs = [StandardEnv("Ant-v5", 7, seed=5, threads=threads) for threads in (1, 3)]
    generator = np.random.default_rng(0)
    for _ in range(60):
        actions = generator.uniform(-1, 1, (7, 8))
        one, three = (env.step(actions) for env in envs)
        np.testing.assert_array_equal(one.observation, three.observation)
        np.testing.assert_array_equal(one.reward, three.reward)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="'Hopper-v5' is not known"):
        StandardEnv("Hopper-v5", 1)
