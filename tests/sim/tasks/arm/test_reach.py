"""Reaching: what the script, a proportional action, gets, on an arm with and one without an impedance."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from robo_rl.sim.env import VecEnv
from robo_rl.sim.robots.arm import load_arm
from robo_rl.sim.tasks.arm.reach import NEAR, Reach
from robo_rl.sim.tasks.loading import load_task

N = 32
OWN = Path(__file__).parents[4] / "examples" / "own_arm" / "card.toml"


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


@pytest.mark.parametrize("robot", ["ur5e", "own_arm"])
def test_commands_in_single_precision_are_those_in_double_wherever_the_joints_are(robot: str) -> None:
    """Far from the box and near singular poses too: ``robo-rl verify`` searches all of the ranges."""
    task = load_task("arm-reach", robot if robot == "ur5e" else str(OWN))
    random = torch.Generator().manual_seed(0)
    low, high = task.hand.stops
    joints = low + (high - low) * torch.rand((50_000, low.shape[1]), generator=random)
    action = 2.0 * torch.rand((len(joints), 4), generator=random) - 1.0
    found = [
        task.hand.command(action.to(kind), {"joints": joints.to(kind), "load": torch.zeros_like(joints, dtype=kind)})
        for kind in (torch.float32, torch.float64)
    ]
    single, double = (commands["joint_position_target"].double() for commands in found)
    assert float(((single - double).abs() / (high - low)).max()) < 2e-5
