"""The analytic policy gradient: it learns to fly, and the same seed gives the same policy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from robo_rl.evaluate.evaluation import Conditions, GraphPolicy, rollout
from robo_rl.learn.apg import Learner
from robo_rl.learn.config import ApgConfig
from robo_rl.learn.runs.folder import Run
from robo_rl.policy import PolicyGraph
from robo_rl.sim.tasks.loading import load_task

SMALL = ApgConfig(updates=6, environments=16, horizon=8, hidden=(16,))


def new_learner(config: ApgConfig = SMALL, seed: int = 0) -> Learner:
    torch.manual_seed(seed)
    task = load_task("quadrotor-hover")
    return Learner(task, PolicyGraph(task, config.hidden, config.activation), config, seed)


def weights(learner: Learner) -> np.ndarray:
    return torch.cat([value.flatten() for value in learner.policy.state_dict().values()]).numpy().copy()


def test_training_with_defaults_flies_at_least_95_percent_of_500_held_out_flights(trained_run: Path) -> None:
    policy, provenance = Run.open(trained_run).policy()
    flights = rollout(policy.task, GraphPolicy(policy), Conditions(episodes=500, seed=3)).summary()
    assert flights["success"] >= 0.95
    assert flights["position_error_mean_m"] < 0.2
    assert provenance.environment_steps < 3_000_000


def test_the_same_seed_gives_the_same_policy_to_the_bit_and_another_seed_another() -> None:
    first, second, other = new_learner(), new_learner(), new_learner(seed=1)
    for learner in (first, second, other):
        for _ in range(SMALL.updates):
            learner.update()
    np.testing.assert_array_equal(weights(first), weights(second))
    assert not np.array_equal(weights(first), weights(other))


def test_saved_and_loaded_into_a_new_learner_training_goes_on_to_the_bit() -> None:
    first = new_learner()
    for _ in range(3):
        first.update()
    tensors, numbers = first.save()
    tensors = {name: value.clone() for name, value in tensors.items()}
    policy = {name: value.clone() for name, value in first.policy.state_dict().items()}
    expected = [first.update() for _ in range(3)]

    second = new_learner()
    with torch.no_grad():
        for name, value in second.policy.state_dict().items():
            value.copy_(policy[name])  # in place, as the tape holds on to the parameters
    second.load(tensors, numbers)
    assert [second.update() for _ in range(3)] == expected
    np.testing.assert_array_equal(weights(second), weights(first))
    assert second.environment_steps == 6 * SMALL.horizon * SMALL.environments


def test_the_learning_rate_falls_along_half_a_cosine() -> None:
    learner = new_learner()
    rates = []
    for _ in range(learner.total):
        learner.update()
        rates.append(learner.optimizer.param_groups[0]["lr"])
    expected = SMALL.learning_rate * (1 + np.cos(np.pi * np.arange(6) / 6)) / 2
    np.testing.assert_allclose(rates, expected, rtol=1e-6)


def test_a_gradient_that_is_not_finite_is_not_taken() -> None:
    learner = new_learner()
    learner.update()
    before = weights(learner)
    learner.tape.moments[0].world.state.linear_velocity[5] = float("nan")
    metrics = learner.update()
    assert not np.isfinite(metrics["gradient_norm"])
    np.testing.assert_array_equal(weights(learner), before)
    after = learner.update()
    assert np.isfinite(after["gradient_norm"])
    assert not np.array_equal(weights(learner), before)


def test_gradients_are_cut_to_the_chosen_norm() -> None:
    learner = new_learner(ApgConfig(**{**vars(SMALL), "gradient_norm": 0.01}))
    metrics = learner.update()
    gradient = torch.cat([parameter.grad.flatten() for parameter in learner.policy.network.parameters()])
    assert metrics["gradient_norm"] > 0.02
    assert float(gradient.norm()) == pytest.approx(0.01, rel=1e-3)


def test_a_track_task_gets_more_updates() -> None:
    task = load_task("quadrotor-track")
    learner = Learner(task, PolicyGraph(task, SMALL.hidden), SMALL, seed=0)
    assert learner.total == round(SMALL.updates * task.update_scale) > SMALL.updates
    assert np.isfinite(learner.update()["reward"])
