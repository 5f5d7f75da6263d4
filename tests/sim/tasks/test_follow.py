"""What diff-follow tells, commands and restores."""

from __future__ import annotations

import pytest
import torch

from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.mobile_base.follow import BEAMS, BRAKED, PERIOD, TURNED, DiffFollow


@torch.no_grad()
def test_a_limit_of_zero_brings_any_policy_to_rest_at_the_commands_rates() -> None:
    """Whatever the network wants: here, numbers at random."""
    torch.manual_seed(0)
    task = DiffFollow()
    env, policy = VecEnv(task, 16, seed=1), PolicyGraph(task, (8,))
    for weights in policy.network.parameters():
        weights.normal_(std=2.0)
    state, speeds, turns = policy.initial_state(16), [], []
    for k in range(40):
        signals = dict(env.signals())
        signals["speed_limit"] = torch.full((16, 1), 0.22 if k < 25 else 0.0)
        commands, state = policy(signals, state)
        speeds.append(commands["forward_speed"])
        turns.append(commands["turn_rate"])
        env.step(commands)
    assert float(torch.stack(speeds)[5:25].abs().max()) > 0.1
    for found, most in ((speeds, BRAKED * task.top), (turns, TURNED * task.turn)):
        assert float(torch.stack(found).diff(dim=0).abs().max()) <= most * PERIOD * (1 + 1e-4)
        assert (found[-1] == 0.0).all()


@torch.no_grad()
def test_whoever_wants_to_drive_straight_on_comes_to_rest_before_what_is_ahead() -> None:
    """Walls, and people who stand."""
    fixed = {"people/speed": 0.0, "speed_limit": 1.0, "people/begin": 0.3}
    env, policy = VecEnv(DiffFollow(), 48, seed=4, fixed=fixed), PolicyGraph(DiffFollow(), (8,))
    *_, last = policy.network.parameters()
    for weights in policy.network.parameters():
        weights.zero_()
    last[0] = 6.0  # full speed
    state, failed = policy.initial_state(48), 0
    for _ in range(200):
        commands, state = policy(env.signals(), state)
        step = env.step(commands)
        failed += int(step.failed.sum())
    moved = (env.plant.truth()["place"] - env.plant.rooms.start).norm(dim=-1)
    assert failed == 0
    assert float(moved.mean()) > 0.5
    assert float(env.plant.truth()["wheel_speed"].abs().median()) < 0.01


def test_the_way_that_is_free_is_that_to_a_wall_less_the_radius_and_the_margin() -> None:
    task = DiffFollow()
    angles = task.scan.angle_min + task.scan.angle_increment * torch.arange(BEAMS)
    wall = (0.5 - task.card.lidar_position[0]) / torch.cos(angles).clamp(min=1e-3)
    memory = task.first_memory(1)
    here, straight = torch.tensor([[0.0, 0.0, 1.0, 0.0]]), torch.zeros(1, 1)
    memory["scans"][0, :2] = wall.clamp(max=3.5)
    memory["scan_poses"][0, :2] = torch.tensor([0.1, 0.0, 1.0, 0.0])  # the robot is 10 cm behind where it was
    assert not task.clearance.free_ways(memory, here, straight, 0.01).any()  # the third scan has not come
    memory["scans"][0, 2] = 3.5
    free = task.clearance.free_ways(memory, here, straight, 0.01)
    assert float(free[0, 0]) == pytest.approx(0.6 - task.card.radius - 0.01, abs=3e-3)
    assert float(free[0, 1]) > 3.0


@pytest.mark.parametrize("place", [(0.0, 0.0), (-5.0, 0.0), (5.0, 0.0), (-6.0, 8.0)])
@pytest.mark.parametrize("come", [0, 1, 2])
def test_no_way_is_free_until_all_scans_have_come_wherever_the_odometry_begins(
    come: int, place: tuple[float, float]
) -> None:
    """As of a node that is begun again while the robot's odometry goes on."""
    task = DiffFollow()
    memory, here = task.first_memory(1), torch.tensor([[*place, 1.0, 0.0]])
    memory["scans"][0, :come], memory["scan_poses"][0, :come] = 3.5, here
    assert not task.clearance.free_ways(memory, here, torch.zeros(1, 1), 0.01).any()


def test_the_points_told_are_those_of_the_plan_ahead_and_a_state_goes_on_bit_by_bit() -> None:
    env = VecEnv(DiffFollow(), 8, 0, fixed={"localization/place": 0.0, "localization/heading": 0.0})
    given = {"forward_speed": torch.full((8, 1), 0.15), "turn_rate": torch.full((8, 1), 0.3)}
    for _ in range(12):
        env.step(given)
    truth = env.plant.truth()
    heading, place = truth["heading"], truth["place"]
    for e in range(8):
        x, y = env.signals()["path_points"][e].unbind(-1)
        c, s = torch.cos(heading[e]), torch.sin(heading[e])
        world = torch.stack([place[e, 0] + c * x - s * y, place[e, 1] + s * x + c * y], -1)
        plan = env.plant.rooms.planned[e]
        part = torch.linspace(0.0, 1.0, 50)[:, None, None]
        on = (plan[:-1] + part * (plan[1:] - plan[:-1])).flatten(0, 1)
        assert float(torch.cdist(world, on).amin(1).max()) < 3e-3
    ids = torch.arange(8)
    saved = {name: value.clone() for name, value in env.plant.save().items()}
    state = env.state(ids)

    def driven() -> torch.Tensor:
        for _ in range(10):
            step = env.step(given)
        return torch.cat(
            [step.signals["scan"], step.signals["path_points"].flatten(1), step.reward[:, None]], 1
        ).clone()

    first = driven()
    env.plant.load(saved)
    env.set_state(ids, state)
    assert torch.equal(driven(), first)
