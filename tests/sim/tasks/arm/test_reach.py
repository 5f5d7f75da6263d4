"""Reaching: what the script, a proportional action, gets, on an arm with and one without an impedance."""

from __future__ import annotations

import pytest
import torch

from sim.env import VecEnv
from sim.robots.arm import load_arm
from sim.tasks.arm.reach import NEAR, Reach

N = 32


@pytest.mark.parametrize("name", ["panda", "so101", "ur5e"])
def test_the_script_brings_every_tool_near_its_set_point(name: str) -> None:
    task = Reach(load_arm(name))
    env = VecEnv(task, N, seed=2, evaluation=True, fixed={"noise": 0.0, "command_delay": 0.0})
    signals, memory, best = env.signals(), task.first_memory(N), torch.full((N,), 1.0)
    won, commands = torch.zeros(N, dtype=torch.bool), task.command(torch.zeros(N, 3), memory)
    for _ in range(150):
        memory = task.remember(memory, signals, commands)
        commands = task.command(task.script(signals, memory), memory)
        best = torch.minimum(best, task.errors(env.truth(torch.arange(N)))["tool_position_error"])
        step = env.step(commands)
        signals, won = step.signals, won | step.succeeded
    assert float((best < 2 * NEAR).float().mean()) > 0.9
    assert float(won.float().mean()) > 0.5


def test_set_points_are_in_the_workspace() -> None:
    task = Reach()
    env = VecEnv(task, N, seed=2)
    goal = env.truth(torch.arange(N))["tool_position_setpoint"]
    assert bool((goal >= torch.tensor(task.space.lower)).all())
    assert bool((goal <= torch.tensor(task.space.upper)).all())
