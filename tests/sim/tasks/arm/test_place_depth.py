"""Placing by a depth image: what is seen and what is not told, where the hand looks first, and heights in the image."""

from __future__ import annotations

import pytest
import torch

from robo_rl.sim.env import VecEnv
from robo_rl.sim.robots.arm import load_arm
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.tasks.arm.place import Place
from robo_rl.sim.tasks.arm.place_depth import NAME, PlaceDepth

N = 16


@pytest.fixture(scope="module")
def task() -> PlaceDepth:
    return PlaceDepth()


@pytest.fixture(scope="module")
def env(task: PlaceDepth) -> VecEnv:
    """With what a teacher is told, no error of the camera's pose, and nothing wrong in its images."""
    nothing = {f"{name}/{NAME}": 0.0 for name in ("grain", "holes", "edge_holes", "dropout")}
    exact = {"camera/place": 0.0, "camera/turn": 0.0, "noise": 0.0}
    return VecEnv(task.beside(Place()), N, seed=3, evaluation=True, fixed={**nothing, **exact})


def test_nobody_tells_where_the_cube_is(task: PlaceDepth) -> None:
    assert [signal.name for signal in task.spec.signals if "cube" in signal.name] == ["cube_position_setpoint"]
    both = task.beside(Place())
    assert {"cube_position", "cube_age", NAME} <= {signal.name for signal in both.spec.signals}
    assert len(task.spec.signals) == len(both.spec.signals) - 2


def test_the_network_sees_heights_above_the_ground(task: PlaceDepth, env: VecEnv) -> None:
    """Of what is neither hand nor cube 0, of a cube's upper side its edge; with a hand that is turned as at home."""
    env.seed(3)
    signals, truth = env.reset(), env.truth()
    seen = task.observe(signals, task.first_memory(N))["wrist"]
    height = 0.04 * seen[:, 0]
    free = height[:, 0:24]  # above the hand in the image
    assert float(free.median().abs()) < 2e-3
    edge = 2.0 * truth["cube_position"][:, 2]
    visible = free.flatten(1).gt(0.025).sum(1) > 12
    assert int(visible.sum()) >= 4
    tops = free.flatten(1).quantile(0.999, dim=1)
    assert float((tops - edge)[visible].abs().max()) < 6e-3


def test_the_hand_first_goes_to_where_its_camera_sees_all_of_the_workspace_and_remembers_it(
    task: PlaceDepth, env: VecEnv
) -> None:
    env.seed(4)
    signals, memory = env.reset(), task.first_memory(N)
    before = torch.zeros(N, 1)
    for _ in range(90):
        commands = task.command(torch.zeros(N, task.action_size), memory)
        memory = task.remember(memory, signals, commands)
        assert bool((memory["looked"] >= before - 1e-6).all())
        before = memory["looked"]
        if bool((before == 1.0).all()):
            break
        signals = env.step(commands).signals
    assert float(before.min()) == 1.0
    assert not bool(((before > 0.0) & (before < 1.0)).any())


def test_who_sees_the_cube_where_it_is_places_it(task: PlaceDepth, env: VecEnv) -> None:
    env.seed(5)
    signals, memory, succeeded = env.reset(), task.first_memory(N), torch.zeros(N, dtype=torch.bool)
    for _ in range(299):
        wanted = task.imitated({}, signals, memory)
        commands = task.command(wanted, memory)
        memory = task.remember(memory, signals, commands)
        step = env.step(commands)
        signals, succeeded = step.signals, succeeded | step.succeeded
        for name, first in task.first_memory(len(step.ids)).items():
            memory[name][step.ids] = first
    assert int(succeeded.sum()) >= N - 1


def test_an_arm_without_a_camera_is_refused() -> None:
    with pytest.raises(CardError, match=r"robot 'so101' has no \[camera\], or its tool's turn is not kept"):
        PlaceDepth(load_arm("so101"))
