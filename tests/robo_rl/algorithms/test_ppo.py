"""PPO: rsl_rl's algorithm on our environments and our policy graph."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from rsl_rl.modules.distribution import GaussianDistribution
from rsl_rl.runners import OnPolicyRunner
from rsl_rl.storage import RolloutStorage

from robo_rl.algorithms.config import PpoConfig
from robo_rl.algorithms.ppo import Learner, RslRlEnv, seen
from robo_rl.evaluation import Conditions, GraphPolicy, rollout
from robo_rl.learning_env import LearningEnv
from robo_rl.policy import PolicyGraph
from sim.env import VecEnv
from sim.ranges import Range
from sim.tasks import Task
from sim.tasks.loading import load_task

SMALL = PpoConfig(updates=4, environments=16, horizon=8, hidden=(16,), critic_hidden=(16,), mini_batches=2)


def new_learner(config: PpoConfig = SMALL, task: Task | None = None) -> Learner:
    torch.manual_seed(0)
    task = task or load_task("quadrotor-hover")
    policy = PolicyGraph(task, config.hidden, config.activation, config.normalize, config.recurrent)
    return Learner(task, policy, config, seed=0)


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
@pytest.mark.parametrize("recurrent", [0, 32])
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
    last = learner.ppo.critic.mlp[-1]
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
        difference = (learner._bootstrapped(step) - step.reward).numpy()
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


def test_returns_of_a_constant_critic_follow_the_closed_form() -> None:
    """λ = 1, V = 7 everywhere: a return is the discounted rewards up to the end plus what comes after."""
    config = PpoConfig(**{**vars(SMALL), "lam": 1.0, "normalize": False})
    learner = new_learner(config)
    let_critic_say(learner, 7.0)
    base = learner.env.env
    base.episode.step[3] = base.episode_steps - 3  # its episode ends with the third step
    rewards, failed = [], []
    with torch.inference_mode():
        groups = seen(learner.env.observation(), learner.env.privileged())
        for _ in range(config.horizon):
            step = learner.env.step(learner.ppo.act(groups))
            groups = seen(step.observation, step.privileged)
            learner.ppo.process_env_step(groups, learner._bootstrapped(step), step.failed | step.timeout, {})
            rewards.append(step.reward.clone())
            failed.append(step.failed.clone())
        learner.ppo.compute_returns(groups)
    assert not torch.stack(failed).any()
    powers = config.gamma ** np.arange(config.horizon + 1)
    earned = torch.stack(rewards).double().numpy()
    for robot in (0, 3):
        steps = 3 if robot == 3 else config.horizon
        expected = (powers[:steps] * earned[:steps, robot]).sum() + powers[steps] * 7.0
        assert float(learner.ppo.storage.returns[0, robot, 0]) == pytest.approx(expected, rel=1e-5)


def test_the_wanted_divergence_falls_over_the_updates_in_which_the_policy_settles() -> None:
    learner = new_learner(PpoConfig(**{**vars(SMALL), "updates": 20, "anneal": 0.5, "desired_kl": 0.02}))
    wanted = []
    for _ in range(learner.total):
        learner.update()
        wanted.append(learner.ppo.desired_kl / 0.02)
    np.testing.assert_allclose(wanted, [1.0] * 11 + [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])


def test_rsl_rl_s_own_runner_trains_on_the_environment(tmp_path: Path) -> None:
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
    env = RslRlEnv(VecEnv(load_task("quadrotor-hover"), 4, seed=0))
    base = env.observed.env
    base.episode.step[1] = base.episode_steps - 1
    base.plant.current.position[2] = torch.tensor([0.0, 0.0, 2.0])
    _, _, done, extras = env.step(torch.zeros(4, 4))
    assert done.tolist() == [False, True, True, False]
    assert extras["time_outs"].tolist() == [False, True, False, False]
    assert env.episode_length_buf.tolist() == [1, 0, 0, 1]


def test_an_update_is_rsl_rl_s_own() -> None:
    learner = new_learner(PpoConfig(**{**vars(SMALL), "entropy": 0.01}))
    learner.collect()
    peer = copy.deepcopy(learner.ppo)
    peer.storage.__class__, peer.actor.distribution.__class__ = RolloutStorage, GaussianDistribution
    losses = []
    for ppo in (learner.ppo, peer):
        torch.manual_seed(1)
        losses.append(ppo.update())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert learner.ppo.learning_rate == peer.learning_rate != SMALL.learning_rate
    for model, other in ((learner.ppo.actor, peer.actor), (learner.ppo.critic, peer.critic)):
        for name, value in other.state_dict().items():
            np.testing.assert_allclose(model.state_dict()[name], value, rtol=1e-4, atol=2e-6, err_msg=name)


def test_the_exported_policy_computes_what_the_trained_actor_does() -> None:
    learner = new_learner()
    for _ in range(3):
        metrics = learner.update()
    assert set(metrics) >= {"reward", "deviation", "learning_rate", "loss/value", "loss/surrogate"}
    assert all(np.isfinite(value) for value in metrics.values())
    policy, env = learner.policy, learner.env
    normalizer = learner.ppo.actor.obs_normalizer
    assert normalizer.count == 3 * SMALL.horizon * SMALL.environments
    np.testing.assert_array_equal(policy.normalizer.mean, normalizer._mean[0])
    np.testing.assert_array_equal(policy.normalizer.deviation, normalizer._std[0] + normalizer.eps)
    learner.ppo.eval_mode()
    with torch.no_grad():
        groups = seen(env.observation(), env.privileged())
        expected = env.task.command(learner.ppo.actor(groups))["rotor_speed"]
        commands, _ = policy(env.signals, policy.pack(env.memory))
    np.testing.assert_allclose(commands["rotor_speed"], expected, rtol=1e-5)


def test_a_recurrent_actor_and_its_policy_remember_the_same() -> None:
    learner = new_learner(PpoConfig(**{**vars(SMALL), "recurrent": 12}))
    metrics = [learner.update() for _ in range(3)]
    assert all(np.isfinite(value) for row in metrics for value in row.values())
    policy, env, actor = learner.policy, learner.env, learner.ppo.actor
    state = policy.pack({**env.memory, "recurrent": actor.get_hidden_state()[0]})
    env.env.episode.step[3] = env.env.episode_steps - 5  # one of the episodes ends on the way
    with torch.inference_mode():
        for _ in range(10):
            groups = seen(env.observation(), env.privileged())
            commands, state = policy(env.signals, state)
            action = actor(groups)
            expected = env.task.command(action, env.memory)["rotor_speed"]
            np.testing.assert_allclose(commands["rotor_speed"], expected, rtol=1e-5)
            step = env.step(action)
            actor.reset(step.failed | step.timeout)
            state[step.ids] = policy.initial_state(len(step.ids))
    assert env.env.episode.step[3] < 10


def test_a_robot_that_diverges_ends_its_episode_and_spoils_no_update() -> None:
    learner = new_learner(task=load_task("go2-flat"))
    base = learner.env.env
    base.plant.param("mass")[3] = float("nan")
    metrics = learner.update()
    assert base.diverged == 1
    assert all(np.isfinite(value) for value in metrics.values())
    assert all(parameter.isfinite().all() for parameter in learner.ppo.critic.parameters())
    assert all(parameter.isfinite().all() for parameter in learner.policy.parameters())
    assert all(value.isfinite().all() for value in base.plant.truth().values())


def test_without_normalisation_the_graph_holds_no_normalizer() -> None:
    learner = new_learner(PpoConfig(**{**vars(SMALL), "normalize": False}))
    learner.update()
    assert all(name.startswith("network.") for name in learner.policy.state_dict())


@pytest.mark.parametrize(("name", "recurrent"), [("quadrotor-hover", 0), ("quadrotor-hover", 6), ("go2-flat", 0)])
def test_saved_and_loaded_into_a_new_learner_training_goes_on_to_the_bit(name: str, recurrent: int) -> None:
    config = PpoConfig(**{**vars(SMALL), "recurrent": recurrent})
    first = new_learner(config, load_task(name))
    first.update()
    tensors, numbers = first.save()
    policy = {name: value.clone() for name, value in first.policy.state_dict().items()}
    tensors = {name: value.clone() for name, value in tensors.items()}
    random = torch.get_rng_state()
    expected = [first.update() for _ in range(2)]

    second = new_learner(config, load_task(name))
    second.policy.load_state_dict(policy)
    second.load(tensors, numbers)
    torch.set_rng_state(random)
    assert [second.update() for _ in range(2)] == expected
    for mine, theirs in zip(second.policy.state_dict().values(), first.policy.state_dict().values(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert second.environment_steps == 3 * SMALL.horizon * SMALL.environments
