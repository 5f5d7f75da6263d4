"""Everything of a task that runs on the robots' device stays there: shown on torch's device "meta".

Tensors there have shapes and types but no numbers, and as on a GPU an operation that meets another device raises.
"""

from __future__ import annotations

import pytest
import torch
from torch.utils._pytree import tree_leaves

from robo_rl.sim.episode import Draws, EpisodeState, transition
from robo_rl.sim.ranges import Range
from robo_rl.sim.sensors import Sensors
from robo_rl.sim.tasks.loading import load_task

N, DEVICE = 5, torch.device("meta")


def zeros(*shape: int) -> torch.Tensor:
    return torch.zeros(N, *shape, device=DEVICE)


def elsewhere(value: torch.Tensor) -> torch.Tensor:
    return torch.empty(N, *value.shape[1:], device=DEVICE)


@pytest.mark.parametrize("name", ["go2-flat", "quadrotor-hover", "quadrotor-track"])
def test_a_task_keeps_to_its_device(name: str) -> None:
    plant = load_task(name).make_plant(N, "cpu")
    truth, parameters = plant.truth(), plant.parameters
    with torch.device(DEVICE):
        task = load_task(name)
    late = {"delay": Range.fixed(0.0, 0.01), "noise": Range.fixed(0.0, 1.0)}
    sensors = Sensors(task.spec.signals, task.spec.control_period, late, device=DEVICE)
    states = {key: elsewhere(value) for key, value in truth.items()}
    memory = task.first_memory(N, DEVICE)
    commands = task.command(zeros(task.action_size), memory)
    time, goal = zeros(), zeros(task.goal_size)
    start = sensors.start({**states, **task.reference(time, goal)})
    draws = Draws(goal, zeros(1), zeros(), (), ())
    chance = sensors.chance(zeros(4), time)
    outcome = transition(task, sensors, states, commands, EpisodeState(time, start, commands), draws, chance)
    full = {**states, **task.reference(time, goal)}
    drawn = type(parameters)(*(elsewhere(value) for value in parameters))
    results = (
        outcome, commands, task.disturb(time, goal), task.privileged(full, drawn), task.errors(full),
        task.observe(outcome.signals, memory), task.remember(memory, outcome.signals, commands),
    )  # fmt: skip
    found = [leaf.device for leaf in tree_leaves(results) if isinstance(leaf, torch.Tensor)]
    assert len(found) > 15
    assert set(found) == {DEVICE}


def test_constants_that_stayed_on_the_cpu_are_refused_there() -> None:
    task = load_task("go2-flat")
    with pytest.raises(RuntimeError, match="expected device meta"):
        task.command(torch.zeros(N, 12, device=DEVICE), task.first_memory(N, DEVICE))
