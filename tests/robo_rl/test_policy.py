"""The policy graph: raw signals and state in, commands within limits and the next state out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from robo_rl.contract import Network, Provenance
from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.loading import load_task
from robo_rl.sim.tasks.multirotor.quadrotor import QuadrotorHover

PROVENANCE = Provenance("apg", 0, 0, "")
NETWORK = Network((64, 64), "tanh", False)


@pytest.fixture(params=["quadrotor-hover", "quadrotor-track"])
def task(request: pytest.FixtureRequest) -> Task:
    return load_task(request.param)


def random_policy(task: Task, normalize: bool = False) -> PolicyGraph:
    """A policy whose actions are far from zero."""
    torch.manual_seed(1)
    policy = PolicyGraph(task, (16, 16), normalize=normalize).requires_grad_(False)
    policy.network[-1].weight.mul_(300.0)
    return policy


def some_signals(task: Task, n: int) -> dict[str, torch.Tensor]:
    return VecEnv(task, n, seed=5, evaluation=True).signals()


def test_pack_and_unpack_are_inverse(task: Task) -> None:
    policy = PolicyGraph(task)
    size = task.spec.contract(PROVENANCE, NETWORK).state_size
    state = torch.randn(7, size)
    memory = policy.unpack(state)
    assert [(name, tuple(part.shape)) for name, part in memory.items()] == [
        (block.name, (7, *block.shape)) for block in task.spec.memory
    ]
    np.testing.assert_array_equal(policy.pack(memory), state)


def test_state_is_laid_out_as_the_contract_says(task: Task) -> None:
    contract = task.spec.contract(PROVENANCE, NETWORK)
    state = torch.arange(contract.state_size, dtype=torch.float32)[None]
    memory = PolicyGraph(task).unpack(state)
    start = 0
    for block in contract.state:
        expected = np.arange(start, start + block.size, dtype=np.float32).reshape(block.shape)
        np.testing.assert_array_equal(memory[block.name][0], expected)
        start += block.size
    assert start == contract.state_size


def test_initial_state_is_the_contract_s(task: Task) -> None:
    contract = task.spec.contract(PROVENANCE, NETWORK)
    np.testing.assert_array_equal(PolicyGraph(task).initial_state(3), np.tile(contract.initial_state, (3, 1)))


def test_state_is_the_task_s_memory_over_many_steps(task: Task) -> None:
    policy, env = random_policy(task), VecEnv(task, 6, seed=2, evaluation=True)
    state, memory = policy.initial_state(6), task.first_memory(6)
    signals = env.signals()
    for _ in range(30):
        action = policy.network(task.observe(signals, memory))
        expected = task.command(action)
        commands, state = policy(signals, state)
        memory = task.remember(memory, signals, commands)
        for name, value in policy.unpack(state).items():
            np.testing.assert_array_equal(value, memory[name])
        np.testing.assert_array_equal(commands["rotor_speed"], expected["rotor_speed"])
        signals = env.step(commands).signals
    assert state.abs().max() > 0.1


def test_the_newest_command_comes_first_in_the_history(task: Task) -> None:
    policy = random_policy(task)
    signals = some_signals(task, 2)
    first, state = policy(signals, policy.initial_state(2))
    second, state = policy(signals, state)
    history = policy.unpack(state)["command_history"]
    card = task.spec.robot
    for age, commands in enumerate((second, first)):
        scaled = 2 * commands["rotor_speed"] / card.rotor_speed_max - 1
        offset = 2 * card.hover_speed / card.rotor_speed_max - 1
        np.testing.assert_allclose(history[:, age], scaled - offset, atol=1e-6)
    np.testing.assert_array_equal(history[:, 2:], 0.0)


@pytest.mark.parametrize("factor", [1e3, 1e30, -1e30])
def test_commands_keep_their_limits_whatever_the_weights(task: Task, factor: float) -> None:
    policy = random_policy(task)
    policy.network[-1].weight.mul_(factor)
    commands, _ = policy(some_signals(task, 64), policy.initial_state(64))
    (command,) = task.spec.commands
    speed = commands["rotor_speed"].numpy()
    assert (speed >= np.float32(command.lower)).all()
    assert (speed <= np.float32(command.upper)).all()
    assert speed.min() == np.float32(command.lower[0])
    assert speed.max() == np.float32(command.upper[0])


class Reckless(QuadrotorHover):
    """A task whose own scaling forgets the limits."""

    def command(self, action: Any, memory: Any = None) -> dict[str, Any]:
        return {"rotor_speed": 1e6 * action}


def test_the_graph_limits_commands_even_where_the_task_forgets_to() -> None:
    policy = random_policy(Reckless())
    commands, state = policy(some_signals(Reckless(), 64), policy.initial_state(64))
    speed = commands["rotor_speed"]
    assert (float(speed.min()), float(speed.max())) == (0.0, float(np.float32(Reckless().top)))
    assert policy.unpack(state)["command_history"].abs().max() < 2.01, "memory holds what was sent, not what was wanted"


def test_robots_in_a_batch_don_t_influence_each_other(task: Task) -> None:
    policy = random_policy(task)
    signals = some_signals(task, 8)
    state = 0.1 * torch.randn(8, policy.initial_state(1).shape[1])
    commands, following = policy(signals, state)
    broken = {name: value.clone() for name, value in signals.items()}
    for value in broken.values():
        value[3] = float("nan")
    others = torch.arange(8) != 3
    again, again_following = policy(broken, state)
    np.testing.assert_array_equal(again["rotor_speed"][others], commands["rotor_speed"][others])
    np.testing.assert_array_equal(again_following[others], following[others])
    for i in range(8):
        alone, alone_following = policy({name: value[i : i + 1] for name, value in signals.items()}, state[i : i + 1])
        np.testing.assert_allclose(alone["rotor_speed"][0], commands["rotor_speed"][i], rtol=1e-5)
        np.testing.assert_allclose(alone_following[0], following[i], atol=1e-5)


def test_the_normalizer_stands_between_observation_and_network(task: Task) -> None:
    policy = random_policy(task, normalize=True)
    policy.normalizer.mean.uniform_(-1, 1)
    policy.normalizer.deviation.uniform_(0.5, 2)
    signals, state = some_signals(task, 5), policy.initial_state(5)
    observed = task.observe(signals, policy.unpack(state))
    normal = (observed - policy.normalizer.mean) / policy.normalizer.deviation
    expected = task.command(policy.network(normal))["rotor_speed"]
    np.testing.assert_array_equal(policy(signals, state)[0]["rotor_speed"], expected)
    plain = task.command(policy.network(observed))["rotor_speed"]
    assert not torch.equal(plain, expected)


def test_limits_are_facts_of_the_task_and_not_parameters_of_the_policy(task: Task) -> None:
    names = set(PolicyGraph(task, (8,), normalize=True).state_dict())
    assert names == {
        "network.0.weight",
        "network.0.bias",
        "network.2.weight",
        "network.2.bias",
        "normalizer.mean",
        "normalizer.deviation",
    }
