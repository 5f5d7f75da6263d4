"""Stacking: what lies where at first, what counts as stacked, and that the place follows the support."""

from __future__ import annotations

import pytest
import torch

from robo_rl.sim.env import VecEnv
from robo_rl.sim.robots.arm import load_arm
from robo_rl.sim.tasks.arm.stack import Stack
from robo_rl.sim.tasks.arm.starts import APART

N = 64


@pytest.fixture(scope="module", params=["panda", "so101"])
def task(request: pytest.FixtureRequest) -> Stack:
    return Stack(load_arm(request.param))


def test_both_cubes_lie_on_the_ground_apart_and_nothing_touches_anything(task: Stack) -> None:
    env = VecEnv(task, N, seed=5, evaluation=True)
    truth = env.truth(torch.arange(N))
    cube, support = truth["cube_position"], truth["support_position"]
    assert float((cube - support)[:, :2].norm(dim=1).min()) > APART - 1e-3
    for place, size in ((cube, "cube_size"), (support, "support_size")):
        torch.testing.assert_close(place[:, 2], env.drawn[size] * task.half, atol=5e-4, rtol=0.0)
    assert float(truth["pad_force"].max()) == 0.0


def test_a_cube_counts_as_stacked_only_on_top_at_rest_and_released(task: Stack) -> None:
    half = task.half
    support, top = torch.tensor([[0.2, 0.1, half]]), torch.tensor([[0.2, 0.1, 3 * half]])

    def truth(**changes: torch.Tensor) -> dict[str, torch.Tensor]:
        usual = {
            "cube_position": top,
            "support_position": support,
            "cube_linear_velocity": torch.zeros(1, 3),
            "pad_force": torch.zeros(1, 2),
            "lifted": torch.ones(1, 1),
            "lain": torch.full((1, 1), 10.0),
        }
        return usual | changes

    assert bool(task.succeeded(truth()))
    others = {
        "beside it": {"cube_position": support + torch.tensor([[2 * half, 0.0, 0.0]])},
        "about to fall": {"cube_position": top + torch.tensor([[1.1 * half, 0.0, 0.0]])},
        "above it": {"cube_position": top + torch.tensor([[0.0, 0.0, 0.01]])},
        "still held": {"pad_force": torch.tensor([[1.0, 1.0]])},
        "moving": {"cube_linear_velocity": torch.tensor([[0.1, 0.0, 0.0]])},
        "not for long": {"lain": torch.zeros(1, 1)},
        "pushed from below": {"support_position": support + torch.tensor([[0.0, 2 * half, 0.0]])},
    }
    for why, changes in others.items():
        assert not bool(task.succeeded(truth(**changes))), why


def test_what_the_script_aims_at_follows_a_support_that_is_moved(task: Stack) -> None:
    env = VecEnv(task, 4, seed=1, evaluation=True)
    memory, signals = task.first_memory(4), env.signals()
    moved = {**signals, "support_position": signals["support_position"] + torch.tensor([0.0, 0.03, 0.0])}
    for seen in (signals, moved):
        for _ in range(60):
            memory = {**memory, **task.remember(memory, seen, task.command(torch.zeros(4, 4), memory))}
        torch.testing.assert_close(memory["support"], seen["support_position"], atol=1e-4, rtol=0.0)
