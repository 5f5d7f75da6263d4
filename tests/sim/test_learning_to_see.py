"""PPO with encoders: what only a scan tells is learnt from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from robo_rl.contract import Encoder, Signal
from robo_rl.evaluate.evaluation import Conditions, GraphPolicy, rollout
from robo_rl.learn.config import PpoConfig
from robo_rl.learn.ppo import Learner, mean_action
from robo_rl.policy import PolicyGraph

PLACES = torch.linspace(-1.5, 1.5, 520)  # m, of the beams across the rail


def scan_task(rail: Any, rail_with_scan: Any) -> Any:
    """A cart on wheels that roll as fast as they are told, and whose place is known from a scan alone."""

    class Wheels(rail_with_scan):
        def truth(self) -> dict[str, Tensor]:
            near = torch.exp(-(((self.current.position - PLACES) / 0.3) ** 2))
            return {**self.current._asdict(), "scan": near}

        def step(self, commands: Mapping[str, Tensor]) -> None:
            self.current.position.add_(self.period * commands["force"])

    class Seeing(rail):
        name = "seeing"
        plant_class = Wheels
        encoders = (Encoder("scan", (26,), "convolution", (4,), 8),)
        observation_size = 1
        observation_shapes = {"policy": (1,), "scan": (26,)}  # type: ignore[assignment]

        def observe(self, signals: Any, memory: Any) -> Any:
            return {"policy": 0.0 * memory["last"], "scan": signals["scan"][:, ::20]}

    scan = Signal("scan", (), "m", "body", 0.0, 2.0, shape=(520,))
    return Seeing(period=0.05, seconds=1.0, others=(scan,))


def new_learner(task: Any, recurrent: int = 0) -> Learner:
    config = PpoConfig(
        environments=128, horizon=20, initial_deviation=1.0, hidden=(16,), critic_hidden=(32,), activation="elu",
        recurrent=recurrent,
    )  # fmt: skip
    torch.manual_seed(0)
    return Learner(task, PolicyGraph(task, config.hidden, config.activation, True, recurrent), config, seed=0)


def test_a_cart_that_sees_its_place_in_a_scan_alone_learns_to_go_to_the_middle(rail: Any, rail_with_scan: Any) -> None:
    task = scan_task(rail, rail_with_scan)
    learner = new_learner(task)
    for _ in range(40):
        learner.update()
    errors = [
        rollout(task, GraphPolicy(policy), Conditions(episodes=200)).errors["distance"].mean()
        for policy in (learner.policy, new_learner(task).policy)
    ]
    assert errors[0] < 0.1
    assert errors[1] > 0.4


@pytest.mark.parametrize("recurrent", [0, 6])
def test_encoders_are_trained_and_the_graph_with_them_is_the_actor(
    rail: Any, rail_with_scan: Any, recurrent: int
) -> None:
    learner = new_learner(scan_task(rail, rail_with_scan), recurrent)
    policy, env = learner.policy, learner.env
    before = {name: value.clone() for name, value in policy.encoders.state_dict().items()}
    learner.update()
    assert before
    for name, value in policy.encoders.state_dict().items():
        assert value.isfinite().all()
        assert not torch.equal(value, before[name]), name
    memory = {**env.memory, "recurrent": learner.hidden[0]}
    with torch.no_grad():
        seen = {name: value[None] for name, value in env.observation().items()}
        action, hidden = mean_action(policy, seen, learner.hidden)
        commands, state = policy(env.signals, policy.pack(memory))
    np.testing.assert_allclose(commands["force"], env.task.command(action[0], env.memory)["force"], atol=1e-6)
    if recurrent:
        np.testing.assert_allclose(policy.unpack(state)["recurrent"], hidden[0], atol=1e-6)


def test_a_training_that_sees_goes_on_to_the_bit(rail: Any, rail_with_scan: Any) -> None:
    task = scan_task(rail, rail_with_scan)
    first, second = new_learner(task, 6), new_learner(task, 6)
    first.update()
    tensors, numbers = first.save()
    tensors = {name: value.clone() for name, value in tensors.items()}
    second.policy.load_state_dict(first.policy.state_dict())
    second.load(tensors, numbers)
    random = torch.get_rng_state()
    expected = first.update()
    torch.set_rng_state(random)
    assert second.update() == expected
    for name, value in first.policy.state_dict().items():
        assert torch.equal(value, second.policy.state_dict()[name]), name
