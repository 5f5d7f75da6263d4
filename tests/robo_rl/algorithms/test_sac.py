"""Soft actor-critic: its critics, its batches, what it keeps, and that a break changes nothing."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from robo_rl.contract import Base, Network
from robo_rl.learn.config import SacConfig
from robo_rl.learn.experience.demonstrations import Transitions
from robo_rl.learn.explorer import LEAST_LOG_DEVIATION
from robo_rl.learn.factory import graph_of
from robo_rl.learn.replay_buffer import ReplayBuffer
from robo_rl.learn.sac import Critics, Learner
from robo_rl.policy import PolicyGraph
from robo_rl.sim.tasks.arm.insert import Insert

SMALL = SacConfig(
    updates=4, steps=3, environments=4, gradient_steps=2, batch=8, first=8, hidden=(8,), critic_hidden=(8, 8)
)


def transitions(count: int, reward: float = 0.0, seen: int = Insert.observation_size, acted: int = 3) -> Transitions:
    ended = torch.ones(count)
    return Transitions(
        torch.randn(count, seen),
        torch.rand(count, acted),
        torch.full((count,), reward),
        ended,
        torch.randn(count, seen),
    )


def learner(folder: Path | None = None, config: SacConfig = SMALL, base: Base | None = None) -> Learner:
    torch.manual_seed(0)
    policy = graph_of(Insert(), Network(config.hidden, config.activation, False, base=base))
    return Learner(policy.task, policy, config, 0, folder=folder)


def test_an_ensemble_of_critics_is_so_many_networks_with_layer_normalisation() -> None:
    critics = Critics(3, 5, (16, 8))
    for bias in critics.biases:
        nn.init.normal_(bias)
    seen, action = torch.randn(7, 3), torch.randn(7, 2)
    found = critics(seen, action)
    for member in range(3):
        layers: list[nn.Module] = []
        for weight, bias in zip(critics.weights, critics.biases, strict=True):
            linear = nn.Linear(*weight.shape[1:])
            linear.load_state_dict({"weight": weight[member].mT, "bias": bias[member, 0]})
            layers += [linear, nn.LayerNorm(weight.shape[2]), nn.ReLU()]
        own = nn.Sequential(*layers[:-2])
        torch.testing.assert_close(found[member], own(torch.cat([seen, action], 1))[:, 0], atol=1e-5, rtol=1e-5)


def test_the_oldest_transitions_are_replaced_and_all_are_in_the_file(tmp_path: Path) -> None:
    buffer = ReplayBuffer(10, 4, 2, tmp_path)
    for k in range(4):
        buffer.add(transitions(4, float(k), 4, 2))
    rewards = buffer.at(torch.arange(len(buffer))).reward
    assert rewards.tolist() == [2.0, 2.0, 3.0, 3.0, 3.0, 3.0, 1.0, 1.0, 2.0, 2.0]
    again = ReplayBuffer(10, 4, 2, tmp_path)
    again.written = buffer.written
    for mine, theirs in zip(buffer.at(torch.arange(10)), again.at(torch.arange(10)), strict=True):
        assert torch.equal(mine, theirs)


def test_half_of_a_batch_is_demonstrated() -> None:
    trained = learner()
    trained.replay.add(transitions(20, 0.0))
    assert float(trained.batch().reward.sum()) == 0.0
    trained.demonstrations = transitions(5, 1.0)
    assert float(trained.batch().reward.sum()) == SMALL.batch / 2


def test_critics_learn_what_is_earned_at_once_where_episodes_end() -> None:
    trained = learner(config=SacConfig(hidden=(8,), critic_hidden=(32,), learning_rate=3e-3, environments=4))
    batch = transitions(64, 2.0)
    for _ in range(300):
        trained._learn_values(batch)
    expected = trained.critics(batch.observation, batch.action)
    torch.testing.assert_close(expected, torch.full_like(expected, 2.0), atol=0.2, rtol=0.0)


def test_the_policy_goes_where_critics_expect_most_and_stays_within_actions() -> None:
    trained = learner(config=SacConfig(hidden=(16,), critic_hidden=(32, 32), learning_rate=3e-3, environments=4))
    wanted = torch.tensor([0.5, -0.5, 1.5])  # the third beyond what tasks take

    def batch() -> Transitions:
        seen, action = torch.randn(256, Insert.observation_size), 2.0 * torch.rand(256, 3) - 1.0
        return Transitions(seen, action, -(action - wanted).square().sum(1), torch.ones(256), seen)

    for _ in range(800):
        trained._learn_values(batch())
    for _ in range(300):
        trained._learn_actions(new := batch())
    mean = trained.policy.network(new.observation).detach().mean(0)
    assert abs(float(mean[0]) - 0.5) < 0.25
    assert abs(float(mean[1]) + 0.5) < 0.25
    assert 0.7 < float(mean[2]) < 2.0


@pytest.mark.parametrize("log_deviation", [3.0, -8.0])
def test_a_deviation_beyond_its_limits_comes_back(log_deviation: float) -> None:
    """Where it is cut it has no gradient: by the entropy and the critics alone it would stay there."""
    trained = learner(config=dataclasses.replace(SMALL, learning_rate=0.01, deviation_price=1.0))
    last = [layer for layer in trained.act.spread.modules() if isinstance(layer, nn.Linear)][-1]
    with torch.no_grad():
        last.bias.fill_(log_deviation - float(trained.act.spread.start))
    observation = torch.randn(64, Insert.observation_size)
    assert bool((trained.act(observation)[3] > 1.0).all())
    for _ in range(1000):
        trained._learn_actions(SimpleNamespace(observation=observation))
    found = trained.act.spread.wanted(observation).detach()
    assert bool((found > LEAST_LOG_DEVIATION - 0.3).all())
    assert bool((found < trained.act.spread.most + 0.3).all())


def test_less_randomness_is_wanted_in_the_last_rounds() -> None:
    config = dataclasses.replace(SMALL, updates=6, anneal=0.3333, target_entropy=-0.5, final_entropy=-2.0)
    trained, wanted = learner(config=config), []
    for trained.done in range(6):
        wanted.append(trained.wanted_entropy)
    assert wanted == [-0.5] * 4 + [-2.0] * 2
    assert learner().wanted_entropy == SMALL.target_entropy


def test_the_policy_stays_while_critics_warm_up_and_then_near_where_it_began_for_a_while() -> None:
    config = dataclasses.replace(SMALL, updates=9, warm_up=1, anchor=3.0, anchor_part=0.5, gradient_steps=4)
    trained = learner(config=config)
    assert trained.anchor is not None
    left = [round(trained.anchor.left(done, trained.total), 6) for done in range(9)]
    assert left == [1.0, 1.0, 0.75, 0.5, 0.25, 0.0, 0.0, 0.0, 0.0]
    trained.done = 0
    first = {name: value.clone() for name, value in trained.act.state_dict().items()}
    critics = trained.critics.weights[0].detach().clone()
    trained.update()
    assert all(torch.equal(value, first[name]) for name, value in trained.act.state_dict().items())
    assert not torch.equal(trained.critics.weights[0], critics)
    trained.update()
    assert not all(torch.equal(value, first[name]) for name, value in trained.act.state_dict().items())


def test_an_anchor_costs_the_square_of_the_way_from_where_the_policy_began() -> None:
    trained = learner(config=dataclasses.replace(SMALL, anchor=3.0))
    assert trained.anchor is not None
    features = torch.randn(20, Insert.observation_size)
    mean = trained.policy.network(features)
    assert float(trained.anchor.cost(features, mean, 1.0).detach().abs().max()) == 0.0
    cost = trained.anchor.cost(features, mean + torch.tensor([0.1, 0.0, -0.2]), 0.5).detach()
    torch.testing.assert_close(cost, torch.full_like(cost, 0.5 * 3.0 * 0.05))


@pytest.mark.parametrize("base", [None, Base("network", 0.2, (8,)), Base("script", 0.2)])
def test_a_training_that_was_killed_goes_on_bit_by_bit(tmp_path: Path, base: Base | None) -> None:
    config = dataclasses.replace(SMALL, anchor=0.0 if base else 1.0, warm_up=1)
    whole = learner(tmp_path, config, base)
    for _ in range(2):
        whole.update()
    tensors, numbers = whole.save()
    kept = {name: value.detach().clone() for name, value in tensors.items()}
    policy = {name: value.clone() for name, value in whole.policy.state_dict().items()}
    random = torch.get_rng_state()
    whole.update()  # whose transitions are in the file, and of which no checkpoint knows
    resumed = learner(tmp_path, config, base)
    resumed.policy.load_state_dict(policy)
    resumed.load(kept, numbers)
    torch.set_rng_state(random)
    resumed.update()
    for name, value in whole.policy.state_dict().items():
        assert torch.equal(value, resumed.policy.state_dict()[name]), name
    for name, value in whole.save()[0].items():
        assert torch.equal(value, resumed.save()[0][name]), name


def test_a_task_with_images_or_another_device_is_refused() -> None:
    task = Insert()
    with pytest.raises(ValueError, match="sac takes observations that are a vector, on the cpu"):
        Learner(task, PolicyGraph(task, (8,)), SMALL, 0, "cuda")
