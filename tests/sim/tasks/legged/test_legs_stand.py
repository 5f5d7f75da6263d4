"""Standing under pushes: gains, slow averages, the capture point, and which pushes training and evaluation have."""

from __future__ import annotations

import math

import pytest
import torch

from robo_rl.contract import Network, PositionLaw, Provenance
from robo_rl.sim.env import VecEnv
from robo_rl.sim.robots.legged import load_legged
from robo_rl.sim.tasks.legged.legs_stand import LegsStand

MADE, NETWORK = Provenance("ppo", 0, 0, "0" * 64), Network((8,), "tanh", False)
PUSH = "push/speed"


@pytest.fixture(scope="module")
def task() -> LegsStand:
    return LegsStand()


def test_the_policy_of_a_robot_has_the_gains_of_its_hold_or_those_of_its_gait_where_it_has_no_others(
    task: LegsStand,
) -> None:
    (command,) = task.spec.contract(MADE, NETWORK).commands
    assert isinstance(command.law, PositionLaw)
    assert command.law.stiffness == (350.0, 200.0, 200.0, 300.0, 300.0, 150.0) * 2
    soft = load_legged("go2")
    assert LegsStand(soft).card.joints == soft.joints


@pytest.mark.parametrize("yaw", [0.0, 2.0])
def test_the_capture_point_of_a_pendulum_is_as_far_ahead_as_it_coasts(task: LegsStand, yaw: float) -> None:
    """x'' = ω² x, from x at the speed v, comes to rest at the foot where x = -v / ω."""
    c, s, speed = math.cos(yaw), math.sin(yaw), 0.5
    feet = [(x, y) for x, y, _ in task.limbs.feet]
    truth = {
        "position": torch.tensor([[1.0, 2.0, task.height]]),
        "orientation": torch.tensor([[0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2)]]),
        "linear_velocity": torch.tensor([[speed * c, speed * s, 0.0]]),
        "foot_position": torch.tensor([[n for x, y in feet for n in (1 + c * x - s * y, 2 + s * x + c * y, 0.0)]]),
    }
    coasted = speed / math.sqrt(9.81 / task.height)
    torch.testing.assert_close(task.uncaptured(truth), torch.tensor([[coasted, 0.0]]), atol=1e-6, rtol=1e-6)


def test_slow_averages_come_to_what_is_measured_within_some_tenths_of_a_second(task: LegsStand) -> None:
    signals = {s.name: torch.full((1, s.size), 0.1) for s in task.spec.signals}
    signals["orientation"] = torch.tensor([[0.0, 0.0, 0.0, 1.0]])
    memory = task.first_memory(1)
    seen = []
    for _ in range(40):
        seen.append(task.observe(signals, memory)[:, -15:])
        _, memory = task.act(torch.zeros(1, 12), signals, memory)
    assert seen[0][0, :12].abs().min() > 0.4  # 5 x 0.1 rad and more, from the stance
    assert seen[-1].abs().max() < 1e-3


def test_training_draws_pushes_of_many_strengths_and_evaluations_the_tasks(task: LegsStand) -> None:
    training = VecEnv(task, 64).drawn[PUSH]
    assert 0.0 <= training.min() < 0.1 < 0.5 < training.max() <= 0.6
    torch.testing.assert_close(VecEnv(task, 8, evaluation=True).drawn[PUSH], torch.full((8, 4), 0.5))
