"""PPO: what its parts compute, and what it learns."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch.distributions import Normal, kl_divergence

from robo_rl.contract import Base, Network
from robo_rl.evaluate.evaluation import Conditions, GraphPolicy, rollout
from robo_rl.learn.config import PpoConfig
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.learn.factory import graph_of
from robo_rl.learn.moments import moments
from robo_rl.learn.ppo import (
    Learner,
    adapted,
    advantages,
    divergence,
    entropy_of,
    log_probability,
    mean_action,
    normalized,
    surrogate_loss,
    value_loss,
)
from robo_rl.sim.env import VecEnv
from robo_rl.sim.ranges import Range
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.loading import load_task
from tests.suite import representatives

SMALL = PpoConfig(updates=4, environments=16, horizon=8, hidden=(16,), critic_hidden=(16,), mini_batches=2)


def new_learner(config: PpoConfig = SMALL, task: Task | None = None, base: Base | None = None) -> Learner:
    torch.manual_seed(0)
    task = task or load_task("quadrotor-hover")
    shape = Network(config.hidden, config.activation, config.normalize, config.recurrent, task.encoders, base)
    return Learner(task, graph_of(task, shape), config, seed=0)


def gentle_task() -> Task:
    """Hovering, with flights that begin almost upright and at rest."""
    task = load_task("quadrotor-hover")
    gentle = {
        "initial/tilt": Range.fixed(0.0, 0.3),
        "initial/position": Range.fixed(-0.05, 0.05, count=3),
        "initial/linear_velocity": Range.fixed(-0.1, 0.1, count=3),
        "initial/angular_velocity": Range.fixed(-0.1, 0.1, count=3),
    }
    task.spec = dataclasses.replace(task.spec, ranges={**task.spec.ranges, **gentle}, rules=())
    return task


@pytest.mark.slow
@pytest.mark.parametrize("recurrent", representatives([0, 32], [0]))
def test_ppo_learns_to_stay_in_the_air_longer(recurrent: int) -> None:
    config = PpoConfig(
        updates=72, environments=512, horizon=16, learning_rate=1e-3, desired_kl=0.02, epochs=4, mini_batches=4,
        gamma=0.98, lam=0.95, entropy=0.0, initial_deviation=0.3, recurrent=recurrent,
    )  # fmt: skip
    learner = new_learner(config, gentle_task())
    task, policy = learner.policy.task, learner.policy
    before = rollout(task, GraphPolicy(policy), Conditions(episodes=400)).duration
    for _ in range(learner.total):
        learner.update()
    after = rollout(task, GraphPolicy(policy), Conditions(episodes=400)).duration
    gain = after - before  # the same 400 flights
    assert gain.mean() > 6 * gain.std() / np.sqrt(len(gain))
    assert after.mean() > 1.2 * before.mean()


def let_critic_say(learner: Learner, value: float) -> None:
    """Make the critic value every state alike."""
    last = learner.critic.network[-1]
    with torch.no_grad():
        last.weight.zero_()
        last.bias.fill_(value)


def test_a_timeout_is_bootstrapped_with_the_discounted_value_and_a_failure_is_not() -> None:
    learner = new_learner()
    let_critic_say(learner, 7.0)
    env, base = learner.env, learner.env.env
    base.episode.step[3] = base.episode_steps - 1  # its last step
    base.plant.current.position[5] = torch.tensor([0.0, 0.0, 2.0])  # beyond the metre at which a flight fails
    step = env.step(torch.zeros(16, 4))
    assert step.timeout.nonzero().flatten().tolist() == [3]
    assert step.failed.nonzero().flatten().tolist() == [5]
    with torch.no_grad():
        difference = (learner.bootstrapped(step) - step.reward).numpy()
    expected = np.zeros(16)
    expected[3] = SMALL.gamma * 7.0
    np.testing.assert_allclose(difference, expected, atol=1e-6)


def test_the_final_observation_is_the_old_episode_s_and_the_next_one_the_new_s() -> None:
    torch.manual_seed(0)
    task = load_task("quadrotor-hover")
    short = LearningEnv(VecEnv(task, 6, seed=4, fixed={"noise": 0.0}))  # noise is another at another step
    long = LearningEnv(VecEnv(task, 6, seed=4, fixed={"noise": 0.0}, episode_length=50.0))
    short.env.episode.step[2] = short.env.episode_steps - 3
    for k in range(3):
        action = 0.3 * torch.randn(6, 4)
        ended, going_on = short.step(action), long.step(action)
        assert ended.timeout.any() == (k == 2)
    assert ended.ids.tolist() == [2]
    # the twin whose time is not over shows what the observation would have been without the reset
    np.testing.assert_allclose(ended.final_observation[0], going_on.observation[2], atol=1e-6)
    np.testing.assert_allclose(ended.final_privileged[0], going_on.privileged[2], atol=1e-6)
    np.testing.assert_array_equal(short.memory["command_history"][2], 0.0)
    assert not torch.allclose(ended.observation[2], going_on.observation[2], atol=1e-3)


def test_advantages_are_the_discounted_sums_of_surprises_up_to_the_end_of_the_episode() -> None:
    random, gamma, lam = np.random.default_rng(0), 0.9, 0.8
    reward, value, done = random.normal(size=(12, 5)), random.normal(size=(13, 5)), random.random((12, 5)) < 0.2
    expected = np.zeros((12, 5))
    for t in range(12):
        for robot in range(5):
            for k in range(t, 12):
                going_on = 0.0 if done[k, robot] else 1.0
                surprise = reward[k, robot] + gamma * going_on * value[k + 1, robot] - value[k, robot]
                expected[t, robot] += (gamma * lam) ** (k - t) * surprise
                if done[k, robot]:
                    break
    found = advantages(*(torch.tensor(x) for x in (reward, value[:-1], value[-1], done)), gamma, lam)
    np.testing.assert_allclose(found, expected, atol=2e-6)


def test_returns_of_a_constant_critic_follow_the_closed_form() -> None:
    """λ = 1, V = 7 everywhere: a return is the discounted rewards up to the end plus what comes after."""
    config = PpoConfig(**{**vars(SMALL), "lam": 1.0, "normalize": False})
    learner = new_learner(config)
    let_critic_say(learner, 7.0)
    base = learner.env.env
    base.episode.step[3] = base.episode_steps - 3  # its episode ends with the third step
    learner.collect()
    samples = learner.samples
    assert samples.done.nonzero().tolist() == [[2, 3]]
    powers = config.gamma ** np.arange(config.horizon + 1)
    earned = samples.reward.double().numpy()
    for robot in (0, 3):
        steps = 3 if robot == 3 else config.horizon
        expected = (powers[:steps] * earned[:steps, robot]).sum()  # of robot 3 with the value of its final state
        expected += 0.0 if robot == 3 else powers[steps] * 7.0
        assert float(samples.returns[0, robot]) == pytest.approx(expected, rel=1e-5)


def test_probability_entropy_and_divergence_are_those_of_normal_distributions() -> None:
    generator = torch.Generator().manual_seed(0)
    action, old_mean, mean = torch.randn(3, 7, 6, 4, generator=generator)
    old, deviation = 0.1 + torch.rand(2, 4, generator=generator)
    normal, before = Normal(mean, deviation), Normal(old_mean, old)
    torch.testing.assert_close(log_probability(action, mean, deviation), normal.log_prob(action).sum(-1))
    torch.testing.assert_close(entropy_of(deviation), normal.entropy().sum(-1)[0, 0])
    torch.testing.assert_close(divergence(old_mean, old, mean, deviation), kl_divergence(before, normal).sum(-1).mean())


def test_nothing_is_gained_beyond_the_clip() -> None:
    for advantage, ratios in ((2.0, (1.2, 1.3, 5.0)), (-2.0, (0.8, 0.5, 0.01))):
        found = [surrogate_loss(torch.tensor([r]), torch.tensor([advantage]), 0.2) for r in ratios]
        assert [float(x) for x in found] == pytest.approx([float(found[0])] * 3)
    worse = [surrogate_loss(torch.tensor([r]), torch.tensor([-2.0]), 0.2) for r in (1.0, 1.2, 3.0)]
    assert [float(x) for x in worse] == pytest.approx([2.0, 2.4, 6.0])
    # a critic that said 1 where 3 was earned: up to 1.5 it is better, and farther no better
    said = [value_loss(torch.tensor([v]), torch.tensor([1.0]), torch.tensor([3.0]), 0.5) for v in (1.2, 1.5, 2.0, 5.0)]
    assert [float(x) for x in said] == pytest.approx([1.8**2, 1.5**2, 1.5**2, 4.0])


def test_the_step_size_follows_the_divergence_between_its_bounds() -> None:
    assert adapted(1e-3, 0.021, 0.01) == pytest.approx(1e-3 / 1.5)
    assert adapted(1e-3, 0.0049, 0.01) == pytest.approx(1.5e-3)
    assert [adapted(1e-3, kl, 0.01) for kl in (0.006, 0.019, 0.0, float("nan"))] == [1e-3] * 4
    assert (adapted(1.2e-5, 1.0, 0.01), adapted(9e-3, 1e-4, 0.01)) == (1e-5, 1e-2)


def test_normalised_advantages_have_mean_0_and_deviation_1() -> None:
    drawn = 3.0 + 5.0 * torch.randn(20, 30, generator=torch.Generator().manual_seed(0))
    x = normalized(drawn, *moments(drawn.flatten()))
    assert float(x.mean()) == pytest.approx(0.0, abs=1e-6)
    assert float(x.std()) == pytest.approx(1.0, rel=1e-6)


def test_the_wanted_divergence_falls_over_the_updates_in_which_the_policy_settles() -> None:
    learner = new_learner(PpoConfig(**{**vars(SMALL), "updates": 20, "anneal": 0.5, "desired_kl": 0.02}))
    wanted = []
    for _ in range(learner.total):
        wanted.append(learner.desired_kl / 0.02)
        learner.update()
    np.testing.assert_allclose(wanted, [1.0] * 11 + [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])


def test_the_exported_policy_computes_what_the_trained_actor_does() -> None:
    learner = new_learner()
    for _ in range(3):
        metrics = learner.update()
    assert set(metrics) >= {"reward", "deviation", "learning_rate", "loss/value", "loss/surrogate"}
    assert all(np.isfinite(value) for value in metrics.values())
    policy, env = learner.policy, learner.env
    assert learner.normalizer.count == 3 * SMALL.horizon * SMALL.environments
    np.testing.assert_array_equal(policy.normalizer.mean, learner.normalizer.mean)
    np.testing.assert_array_equal(policy.normalizer.deviation, learner.normalizer.deviation)
    with torch.no_grad():
        action, _ = mean_action(policy, {"policy": env.observation()[None]}, learner.hidden)
        expected = env.task.command(action[0], env.memory)["rotor_speed"]
        commands, _ = policy(env.signals, policy.pack(env.memory))
    np.testing.assert_allclose(commands["rotor_speed"], expected, rtol=1e-5)


def test_a_recurrent_actor_and_its_policy_remember_the_same() -> None:
    learner = new_learner(PpoConfig(**{**vars(SMALL), "recurrent": 12}))
    metrics = [learner.update() for _ in range(3)]
    assert all(np.isfinite(value) for row in metrics for value in row.values())
    policy, env, hidden = learner.policy, learner.env, learner.hidden
    state = policy.pack({**env.memory, "recurrent": hidden[0]})
    env.env.episode.step[3] = env.env.episode_steps - 5  # one of the episodes ends on the way
    seen, done, actions, first = [], [], [], hidden
    with torch.inference_mode():
        for _ in range(10):
            seen.append(env.observation().clone())
            commands, state = policy(env.signals, state)
            action, hidden = mean_action(policy, {"policy": seen[-1][None]}, hidden)
            expected = env.task.command(action[0], env.memory)["rotor_speed"]
            np.testing.assert_allclose(commands["rotor_speed"], expected, rtol=1e-5)
            step = env.step(action[0])
            hidden[:, step.ids] = 0.0
            state[step.ids] = policy.initial_state(len(step.ids))
            actions.append(action[0])
            done.append(step.done)
        whole, last = mean_action(policy, {"policy": torch.stack(seen)}, first, torch.stack(done))
    assert env.env.episode.step[3] < 10
    torch.testing.assert_close(whole, torch.stack(actions))
    torch.testing.assert_close(last, hidden)


def test_a_robot_that_diverges_ends_its_episode_and_spoils_no_update() -> None:
    learner = new_learner(task=load_task("go2-flat"))
    base = learner.env.env
    base.plant.param("mass")[3] = float("nan")
    metrics = learner.update()
    assert base.diverged == 1
    assert all(np.isfinite(value) for value in metrics.values())
    assert all(parameter.isfinite().all() for parameter in learner.critic.parameters())
    assert all(parameter.isfinite().all() for parameter in learner.policy.parameters())
    assert all(value.isfinite().all() for value in base.plant.truth().values())


def test_without_normalisation_the_graph_holds_no_normalizer() -> None:
    learner = new_learner(PpoConfig(**{**vars(SMALL), "normalize": False}))
    learner.update()
    assert all(name.startswith("network.") for name in learner.policy.state_dict())


@pytest.mark.parametrize(
    ("name", "recurrent", "base"),
    [
        ("quadrotor-hover", 0, None),
        ("quadrotor-hover", 6, None),
        ("go2-flat", 0, None),
        ("quadrotor-hover", 0, Base("network", 0.2, (8,))),
    ],
)
def test_saved_and_loaded_into_a_new_learner_training_goes_on_to_the_bit(
    name: str, recurrent: int, base: Base | None
) -> None:
    config = PpoConfig(**{**vars(SMALL), "recurrent": recurrent})
    first = new_learner(config, load_task(name), base)
    first.update()
    tensors, numbers = first.save()
    policy = {name: value.clone() for name, value in first.policy.state_dict().items()}
    tensors = {name: value.clone() for name, value in tensors.items()}
    random = torch.get_rng_state()
    expected = [first.update() for _ in range(2)]

    second = new_learner(config, load_task(name), base)
    second.policy.load_state_dict(policy)
    second.load(tensors, numbers)
    torch.set_rng_state(random)
    assert [second.update() for _ in range(2)] == expected
    for mine, theirs in zip(second.policy.state_dict().values(), first.policy.state_dict().values(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert second.environment_steps == 3 * SMALL.horizon * SMALL.environments
