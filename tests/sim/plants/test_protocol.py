"""Every plant of the tasks here keeps the protocol of plants: robots go back to a state, and repeat what followed."""

from __future__ import annotations

import pytest
import torch

from robo_rl.sim.env import VecEnv
from robo_rl.sim.env_state import named
from robo_rl.sim.plants import Plant
from robo_rl.sim.tasks.loading import load_task

TASKS = (
    "quadrotor-hover", "quadrotor-rates", "car-race", "car-lanes", "car-practice", "diff-nav", "diff-follow",
    "agv-maze", "omni-nav", "go2-flat", "go2-rough", "tunnel-walk", "arm-reach", "mobile-place",
)  # fmt: skip


@pytest.mark.parametrize("name", TASKS)
def test_robots_go_back_to_their_states_and_repeat_what_followed(name: str) -> None:
    task = load_task(name)
    plant = VecEnv(task, 3, seed=1).plant
    assert isinstance(plant, Plant)
    assert plant.n == 3
    limits = {command.name: torch.tensor([command.lower, command.upper]) for command in task.spec.commands}
    commands = {name: low.lerp(high, 0.55).repeat(3, 1) for name, (low, high) in limits.items()}
    every = torch.arange(3)
    plant.step(commands)
    state = plant.state(every)
    plant.step(commands)
    after = named(plant.state(every))
    plant.set_state(every, state)
    plant.step(commands)
    for part, value in named(plant.state(every)).items():
        assert torch.equal(value, after[part]), part
