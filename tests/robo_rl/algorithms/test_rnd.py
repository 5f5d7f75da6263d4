"""Random network distillation: what is new is told from what is known."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from robo_rl.learn.config import PpoConfig
from robo_rl.learn.ppo import Learner
from robo_rl.learn.rnd import GAMMA, Novelty
from robo_rl.policy import PolicyGraph
from robo_rl.sim.tasks.loading import load_task

SMALL = PpoConfig(updates=4, environments=16, horizon=8, hidden=(16,), critic_hidden=(16,), mini_batches=2, rnd=0.5)


def new_learner(config: PpoConfig = SMALL) -> Learner:
    torch.manual_seed(0)
    task = load_task("agv-maze")
    return Learner(task, PolicyGraph(task, config.hidden, config.activation, config.normalize), config, seed=0)


def test_a_place_is_less_new_after_it_was_seen_than_one_that_was_not() -> None:
    torch.manual_seed(0)
    novelty = Novelty(2, 1.0)
    known = torch.rand(16, 8, 2) - 2.0  # a square
    other = torch.rand(16, 8, 2) + 1.0  # and one beside it
    both = torch.cat([known, other])
    novelty.reward(both)  # both are in the running statistics
    before = [float(novelty.error(x).detach().mean()) for x in (known, other)]
    for _ in range(100):
        novelty.learn(known)
    after = [float(novelty.error(x).detach().mean()) for x in (known, other)]
    assert after[0] / before[0] < 0.5 * after[1] / before[1]


def test_novelty_is_divided_by_the_deviation_of_its_discounted_sums() -> None:
    torch.manual_seed(0)
    novelty = Novelty(3, 1.0)
    states = torch.randn(20, 5, 3)
    reward = novelty.reward(states).double().numpy()
    error = novelty.error(states).detach().double().numpy()
    sums = np.array([sum(GAMMA ** (t - k) * error[k] for k in range(t + 1)) for t in range(20)])
    np.testing.assert_allclose(reward, error / sums.std(), rtol=1e-4)


def test_the_target_stays_and_the_predictor_learns() -> None:
    torch.manual_seed(0)
    novelty = Novelty(3, 1.0)
    target = [value.clone() for value in novelty.target.parameters()]
    predictor = [value.clone() for value in novelty.predictor.parameters()]
    novelty.learn(torch.randn(4, 8, 3))
    assert all(torch.equal(a, b) for a, b in zip(target, novelty.target.parameters(), strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(predictor, novelty.predictor.parameters(), strict=True))


def test_novelty_counts_fully_in_the_first_half_and_not_at_all_at_the_end() -> None:
    novelty = Novelty(3, 0.5)
    assert [novelty.weight_at(part) for part in (0.0, 0.5, 0.75, 1.0)] == [0.5, 0.5, 0.25, 0.0]


def test_where_the_task_rewards_nothing_novelty_is_all_that_is_earned() -> None:
    learner = new_learner()
    metrics = learner.collect()
    assert metrics["reward"] == 0.0
    assert metrics["novelty"] > 0.0
    found = learner.samples.reward[~learner.samples.done]
    assert (found > 0.0).all()


def test_without_it_nothing_is_computed_of_it() -> None:
    learner = new_learner(dataclasses.replace(SMALL, rnd=0.0))
    assert "novelty" not in learner.update()
    assert not any(name.startswith("novelty/") for name in learner.save()[0])


def test_saved_and_loaded_into_a_new_learner_training_goes_on_to_the_bit() -> None:
    first = new_learner()
    first.update()
    tensors, numbers = first.save()
    policy = {name: value.clone() for name, value in first.policy.state_dict().items()}
    tensors = {name: value.clone() for name, value in tensors.items()}
    random = torch.get_rng_state()
    expected = [first.update() for _ in range(2)]
    second = new_learner()
    second.policy.load_state_dict(policy)
    second.load(tensors, numbers)
    torch.set_rng_state(random)
    assert [second.update() for _ in range(2)] == expected


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_a_weight_is_finite_and_not_negative(weight: float) -> None:
    with pytest.raises(ValueError, match="rnd is"):
        PpoConfig(rnd=weight)
