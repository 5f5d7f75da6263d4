"""The tape's rollout and gradient, against the same rollout written plainly and autograd in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from robo_rl.learn.gradient_rollout import GradientRollout
from robo_rl.policy.networks import MLP
from robo_rl.sim.env import VecEnv
from robo_rl.sim.episode import transition
from robo_rl.sim.sensors import Chance
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.loading import load_task

HORIZON, N = 12, 10
DOOMED = [2, 7]
"""Robots that start so near to the limit, and so fast, that they fail within the horizon."""


def double(value: Any) -> Any:
    """All tensors in ``value`` as independent copies in double precision."""
    if isinstance(value, dict):
        return {name: double(item) for name, item in value.items()}
    if isinstance(value, list):
        return [double(item) for item in value]
    if isinstance(value, tuple):
        parts = [double(item) for item in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value.detach().double().clone()


def cut(value: Any, rows: slice) -> Any:
    """Some rows of all tensors in ``value``."""
    if isinstance(value, dict):
        return {name: cut(item, rows) for name, item in value.items()}
    if isinstance(value, tuple):
        parts = [cut(item, rows) for item in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value[rows]


def new_tape(task: Task, levels: float = 1.0) -> tuple[VecEnv, MLP, GradientRollout]:
    torch.manual_seed(0)
    env = VecEnv(task, N, seed=3)
    env.levels.level.fill_(levels)
    env.reset()
    network = MLP(task.observation_size, (16, 16), task.action_size)
    with torch.no_grad():
        network[-1].weight.mul_(50.0)
    tape = GradientRollout(env, network, HORIZON)
    tape.start()
    world = tape.moments[0].world
    setpoint = task.reference(world.episode.step * 0.01, env.draws.goal)["position_setpoint"]
    for i, robot in enumerate(DOOMED):
        world.state.position[robot] = setpoint[robot] + torch.tensor([0.0, 0.98, 0.0])
        world.state.linear_velocity[robot] = torch.tensor([0.0, 0.5 + i, 0.0])
    return env, network, tape


class Plain:
    """The rollout as the equations say it: one robot after the other until it fails or the horizon ends."""

    def __init__(self, env: VecEnv, network: MLP, start: Any, chance: list[Chance]) -> None:
        task, self.rewards, self.lengths = env.task, [], []
        self.network = MLP(task.observation_size, (16, 16), task.action_size).double()
        self.network.load_state_dict(network.state_dict())
        parameters = double(env.plant.parameters)
        for robot in range(env.n):
            rows = slice(robot, robot + 1)
            own = type(parameters)(*(value[rows] if len(value) == env.n else value for value in parameters))
            draws = double(cut(env.draws, rows))
            state = type(start.state)(*(value[rows] for value in start.state))
            episode = cut(start.episode, rows)
            memory = {name: value[rows] for name, value in start.memory.items()}
            signals = {name: value[rows] for name, value in start.signals.items()}
            total, length = torch.zeros((), dtype=torch.float64), 0
            for t in range(HORIZON):
                commands = task.command(self.network(task.observe(signals, memory)))
                memory = task.remember(memory, signals, commands)
                state = env.plant.dynamics(state, commands, own)
                moment = cut(chance[t], rows)
                outcome = transition(task, env.sensors, state._asdict(), commands, episode, draws, moment)
                episode, signals = outcome.episode, outcome.signals
                total, length = total + outcome.reward[0], length + 1
                if outcome.failed[0]:
                    break
            self.rewards.append(total)
            self.lengths.append(length)

    def gradient(self) -> tuple[float, list[Tensor]]:
        reward = torch.stack(self.rewards).sum() / (len(self.rewards) * HORIZON)
        (-reward).backward()
        return float(reward.detach()), [parameter.grad for parameter in self.network.parameters()]


@pytest.mark.parametrize("name", ["quadrotor-hover", "quadrotor-track"])
def test_gradient_equals_autograd_through_the_plain_rollout(name: str) -> None:
    env, network, tape = new_tape(load_task(name))
    start = double(tape.moments[0].world)
    reward = tape.forward()
    tape.backward()
    plain = Plain(env, network, start, double(tape.chance))
    assert [robot for robot in range(N) if plain.lengths[robot] < HORIZON] == DOOMED
    expected, gradients = plain.gradient()
    assert float(reward) == pytest.approx(expected, rel=1e-5)
    for mine, other in zip(network.parameters(), gradients, strict=True):
        error = (mine.grad.double() - other).norm() / other.norm()
        assert error < 1e-4


def test_reward_per_robot_ends_with_its_failure() -> None:
    env, network, tape = new_tape(load_task("quadrotor-hover"))
    start = double(tape.moments[0].world)
    tape.forward()
    plain = Plain(env, network, start, double(tape.chance))
    earned = torch.stack([moment.terms for moment in tape.moments[1:]]).sum((0, 2))
    np.testing.assert_allclose(earned, torch.stack(plain.rewards).detach(), rtol=1e-4, atol=1e-4)
    for robot in DOOMED:
        last = plain.lengths[robot]
        assert tape.moments[last - 1].world.alive[robot] == 1
        for moment in tape.moments[last:]:
            assert moment.world.alive[robot] == 0
            np.testing.assert_array_equal(
                moment.world.state.position[robot], tape.moments[last].world.state.position[robot]
            )
        for moment in tape.moments[last + 1 :]:
            np.testing.assert_array_equal(moment.terms[robot], 0.0)


def test_episodes_that_failed_begin_again_and_all_others_go_on() -> None:
    env, _, tape = new_tape(load_task("quadrotor-hover"))
    tape.forward()
    last = double(tape.moments[-1].world)
    tape.carry_on()
    first = tape.moments[0].world
    others = [robot for robot in range(N) if robot not in DOOMED]
    np.testing.assert_array_equal(first.alive, 1.0)
    np.testing.assert_array_equal(first.episode.step[DOOMED], 0.0)
    np.testing.assert_array_equal(first.memory["command_history"][DOOMED], 0.0)
    assert (first.state.position[DOOMED].norm(dim=-1) < 0.2 * 3**0.5 + 1e-6).all()
    for before, now in zip(last.state, first.state, strict=True):
        np.testing.assert_array_equal(before[others].float(), now[others])
    for name, value in last.memory.items():
        np.testing.assert_array_equal(value[others].float(), first.memory[name][others])
    np.testing.assert_array_equal(first.episode.step[others], HORIZON)
    for mine, theirs in zip(env.plant.current, first.state, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    expected = env.task.observe(first.signals, first.memory)
    np.testing.assert_allclose(tape.moments[0].observation, expected, atol=1e-6)


def test_episodes_whose_time_is_over_begin_again() -> None:
    env, _, tape = new_tape(load_task("quadrotor-hover"))
    tape.moments[0].world.episode.step[4] = env.episode_steps - (HORIZON - 1)
    tape.forward()
    tape.carry_on()
    assert tape.moments[0].world.episode.step[4] == 0
    assert tape.moments[0].world.episode.step[5] > 0


def test_a_diverged_robot_begins_again_with_the_next_horizon() -> None:
    env, network, tape = new_tape(load_task("quadrotor-hover"))
    tape.moments[0].world.state.linear_velocity[5] = float("nan")
    tape.forward()
    assert tape.moments[-1].world.alive[5] == 0
    tape.carry_on()
    assert tape.moments[0].world.alive[5] == 1
    assert all(value.isfinite().all() for value in tape.moments[0].world.state)
    assert env.levels.level.isfinite().all()
    assert tape.forward().isfinite()
    tape.backward()
    assert all(parameter.grad.isfinite().all() for parameter in network.parameters())
