"""The adversary: its response to what was earned, what environments draw under it, and that a break changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from robo_rl.learn import adversary as module
from robo_rl.learn import apg, ppo
from robo_rl.learn.adversary import Adversary, response, undrawn
from robo_rl.learn.config import ApgConfig, PpoConfig
from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.loading import load_task

GRID = torch.cartesian_prod(torch.linspace(0, 1, 11), torch.linspace(0, 1, 11))
RANGES = ("mass", "delay")


def test_without_rationality_every_context_is_as_likely() -> None:
    torch.testing.assert_close(response(GRID, GRID[:, 0], GRID, 0.0), torch.full((121,), 1 / 121))


@pytest.mark.parametrize("score", [torch.ones(0), torch.ones(1), torch.ones(50), torch.full((50,), torch.nan)])
def test_where_nothing_tells_contexts_apart_every_one_is_as_likely(score: torch.Tensor) -> None:
    torch.testing.assert_close(response(torch.rand(len(score), 2), score, GRID, 9.0), torch.full((121,), 1 / 121))


def test_the_log_of_the_odds_is_proportional_to_the_rationality() -> None:
    torch.manual_seed(0)
    score = GRID[:, 0] - 2 * GRID[:, 1] + 0.1 * torch.randn(121)
    mild, sharp = response(GRID, score, GRID, 1.0).log(), response(GRID, score, GRID, 2.5).log()
    torch.testing.assert_close(sharp - sharp[0], 2.5 * (mild - mild[0]), rtol=1e-4, atol=1e-4)


def test_a_rational_adversary_draws_where_least_was_earned() -> None:
    distance = (GRID - torch.tensor([0.8, 0.3])).norm(dim=1)
    likely = response(GRID, distance, GRID, 50.0)
    assert float((likely @ GRID - torch.tensor([0.8, 0.3])).norm()) < 0.05
    torch.testing.assert_close(response(GRID, 5 + 100 * distance, GRID, 50.0), likely, rtol=1e-3, atol=1e-5)


def played(rationality: float, rounds: int = 40) -> Adversary:
    """A game in which robots earn less the heavier they are."""
    torch.manual_seed(0)
    env = VecEnv(load_task("quadrotor-hover"), 64, fixed=undrawn(load_task("quadrotor-hover"), RANGES, 64))
    adversary = Adversary(env, RANGES, (rationality, rationality))
    everybody = torch.arange(64)
    for k in range(rounds):
        adversary.plan(k, rounds)
        earned = -env.drawn["mass"].clone()
        env.reset(everybody)
        adversary.hear(earned, everybody)
    return adversary


def test_environments_draw_what_makes_robots_earn_least() -> None:
    adversary = played(6.0)
    mass = adversary.env.drawn["mass"]
    low, high = adversary.env.task.spec.ranges["mass"].end
    assert float(mass.mean()) > low + 0.8 * (high - low)
    assert float(mass.max()) <= high
    assert 0.3 < float(adversary.now[:, 1].mean()) < 0.7  # the delay changed nothing


def test_at_no_rationality_environments_draw_uniformly() -> None:
    contexts = played(0.0).contexts.numpy()
    for column in contexts.T:
        assert kstest(column, "uniform").pvalue > 0.001


def learner(algorithm: str) -> Any:
    torch.manual_seed(0)
    task = load_task("quadrotor-hover")
    if algorithm == "apg":
        config = ApgConfig(updates=40, environments=16, horizon=64, hidden=(16,), adversary=RANGES)
        return apg.Learner(task, PolicyGraph(task, config.hidden, config.activation), config, 0)
    small = {"environments": 16, "horizon": 64, "hidden": (16,), "critic_hidden": (16,), "mini_batches": 1, "epochs": 1}
    other = PpoConfig(updates=40, adversary=RANGES, **small)  # type: ignore[arg-type]
    return ppo.Learner(task, PolicyGraph(task, other.hidden, other.activation, other.normalize), other, 0)


@pytest.mark.parametrize("algorithm", ["apg", "ppo"])
def test_saved_and_loaded_the_game_goes_on_to_the_bit(algorithm: str) -> None:
    first, second = learner(algorithm), learner(algorithm)
    for _ in range(13):
        first.update()
    assert first.extensions[0].heard > 0
    tensors, numbers = first.save()
    tensors = {name: value.clone() for name, value in tensors.items()}
    policy, generator = {k: v.clone() for k, v in first.policy.state_dict().items()}, torch.get_rng_state()
    expected = [first.update() for _ in range(6)]
    with torch.no_grad():
        for name, value in second.policy.state_dict().items():
            value.copy_(policy[name])
    second.load(tensors, numbers)
    torch.set_rng_state(generator)
    found = [second.update() for _ in range(6)]
    assert found == expected
    assert 0.0 < found[-1]["rationality"] < 2.0
    np.testing.assert_array_equal(second.extensions[0].now, first.extensions[0].now)


def test_a_training_without_an_adversary_draws_no_other_numbers() -> None:
    task = load_task("quadrotor-hover")
    assert module.undrawn(task, (), 4) == {}
    plain = apg.Learner(task, PolicyGraph(task, (8,)), ApgConfig(environments=4, horizon=4, hidden=(8,)), 0)
    assert plain.extensions == []
    assert not any(name.startswith("adversary") for name in plain.save()[0])


@pytest.mark.parametrize(("name", "why"), [("payload", "no such range"), ("wind", "of three numbers")])
def test_ranges_that_can_not_be_chosen_are_refused(name: str, why: str) -> None:
    with pytest.raises(ValueError, match=rf"adversary has \['{name}'\]; expected some of \['initial/tilt', .*'mass'"):
        undrawn(load_task("quadrotor-hover"), ("mass", name), 4)
