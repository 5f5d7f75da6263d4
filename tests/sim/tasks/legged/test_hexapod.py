"""The same tasks on six legs of three joints: tripods, and a stride that carries the robot without any training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.legged.legs_walk import LegsWalk
from robo_rl.sim.tasks.loading import load_task

CARD = Path(__file__).parents[4] / "examples" / "own_hexapod" / "card.toml"


@pytest.fixture(scope="module")
def task() -> LegsWalk:
    task = load_task("g1-walk", str(CARD))
    assert isinstance(task, LegsWalk)
    return task


def test_its_legs_swing_as_two_tripods(task: LegsWalk) -> None:
    tripods = dict(zip(task.card.feet, task.stride.sets, strict=True))
    first = {"front_left_foot", "middle_right_foot", "rear_left_foot"}
    assert {foot for foot, side in tripods.items() if side > 0} == first
    assert [len(leg) for leg in task.limbs.legs] == [3] * 6
    assert task.observation_size == 11 + 3 * 18


def test_its_feet_rest_on_the_ground_by_their_radius(task: LegsWalk) -> None:
    assert task.foot_rest == pytest.approx(0.012, abs=1e-6)
    env = VecEnv(task, 4, evaluation=True)
    assert float(env.truth()["foot_position"][:, 2::3].min()) == pytest.approx(0.012, abs=5e-3)


@pytest.mark.parametrize("wanted", [(0.2, 0.0, 0.0), (0.0, 0.07, 0.0), (0.0, 0.0, 0.4)])
def test_the_stride_alone_walks_about_as_commanded(task: LegsWalk, wanted: tuple[float, float, float]) -> None:
    """On four feet or more the plan stands by itself: zero actions, drawn robots, no pushes."""
    given = dict(zip(("command/x", "command/y", "command/yaw"), wanted, strict=True))
    env = VecEnv(task, 8, evaluation=True, fixed={**given, "command/rest": 1.0, "push/speed": 0.0})
    memory, found = task.first_memory(8), []
    for step in range(200):
        commands, memory = task.act(torch.zeros(8, 18), env.signals(), memory)
        assert not env.step(commands).failed.any()
        if step >= 40:
            found.append(torch.stack(task._velocities(env.truth()), -1))
    mean = torch.stack(found).mean((0, 1)).numpy()
    np.testing.assert_allclose(mean, wanted, atol=0.15 * max(wanted) + 0.01)
