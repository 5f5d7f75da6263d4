"""Pushing: where episodes begin, which arms can do it, and that a block is moved and never grasped."""

from __future__ import annotations

import pytest
import torch

from robo_rl.controllers.skills.pushing import line
from robo_rl.sim.env import VecEnv
from robo_rl.sim.robots.arm import load_arm
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.tasks.arm.push import Push
from robo_rl.sim.tasks.arm.starts import APART

N = 24


@pytest.fixture(scope="module")
def task() -> Push:
    return Push()


def test_a_hand_can_get_behind_every_block_and_every_place(task: Push) -> None:
    env = VecEnv(task, 64, seed=5, evaluation=True)
    truth = env.truth(torch.arange(64))
    block, goal = truth["block_position"], truth["block_position_setpoint"]
    assert float((block - goal).norm(dim=1).min()) > APART - 1e-3
    for place in (block, goal):
        for k in range(2):
            assert float(place[:, k].min()) > task.space.lower[k] + task.sizes.gap - 1e-3
            assert float(place[:, k].max()) < task.space.upper[k] - task.sizes.gap + 1e-3


def test_an_arm_whose_workspace_is_too_narrow_is_refused() -> None:
    with pytest.raises(CardError, match=r"so101.*0\.09 m x 0\.20 m; expected at least"):
        Push(load_arm("so101"))


def test_the_line_to_the_place_is_seen_the_same_however_all_is_turned(task: Push) -> None:
    tool, block, goal = torch.rand(3, 8, 3).unbind(0)
    angle = torch.linspace(0.0, 6.0, 8)
    cosine, sine = torch.cos(angle), torch.sin(angle)

    def turned(p: torch.Tensor) -> torch.Tensor:
        return torch.stack([cosine * p[:, 0] - sine * p[:, 1], sine * p[:, 0] + cosine * p[:, 1], p[:, 2]], -1)

    seen = line(tool.unbind(-1), block.unbind(-1), goal.unbind(-1))
    again = line(turned(tool).unbind(-1), turned(block).unbind(-1), turned(goal).unbind(-1))
    for a, b in zip(seen[2:], again[2:], strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


def test_the_script_pushes_blocks_to_their_places_on_the_ground_and_only_success_is_rewarded(task: Push) -> None:
    env, script = VecEnv(task, N, seed=2, evaluation=True), task.controller()
    state, signals, done = torch.from_numpy(script.first_state(N)), env.signals(), torch.zeros(N)
    for _ in range(200):
        commands, state = script(signals, state)
        step = env.step(commands)
        assert float(step.reward[~step.succeeded].amax()) <= 0.0
        done, signals = torch.maximum(done, step.succeeded.float()), step.signals
        state[step.ids] = torch.from_numpy(script.first_state(len(step.ids)))
        truth = env.truth(torch.arange(N))
        assert float(truth["block_position"][:, 2].max()) < task.height + 0.01  # m: it is not lifted
    assert float(done.mean()) > 0.9
