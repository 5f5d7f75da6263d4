"""tunnel-walk: what a robot in a room measures, when it has failed, and the planner above a walking policy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from robo_rl.controllers.rotation import heading
from robo_rl.policies.loading import load
from robo_rl.policy.led import LedPolicy
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.legged_in_room import circles, clearance
from robo_rl.sim.scenes.rooms import COLUMNS, ROWS, Rooms
from robo_rl.sim.scenes.tracks import Lidar
from robo_rl.sim.tasks.legged.tunnel import BEAMS, BODY, REACHED, TunnelWalk
from robo_rl.sim.tasks.legged.walk import FlatWalk

QUIET = {"noise": 0.0, "delay": 0.0}


def stand(env: VecEnv) -> dict[str, torch.Tensor]:
    return {"joint_position_target": env.task.stand.expand(env.n, -1)}


def turned(place: list[float], yaw: float) -> dict[str, torch.Tensor]:
    half = 0.5 * yaw
    return {
        "position": torch.tensor([[*place, 0.3]]),
        "orientation": torch.tensor([[0.0, 0.0, math.sin(half), math.cos(half)]]),
    }


def test_the_circles_cover_the_body_and_not_much_more() -> None:
    along, radius = circles(*BODY)
    x, y = np.meshgrid(np.linspace(-BODY[0] / 2, BODY[0] / 2, 61), np.linspace(-BODY[1] / 2, BODY[1] / 2, 41))
    nearest = np.min([np.hypot(x - place, y) for place in along], axis=0)
    assert nearest.max() <= radius + 1e-9
    assert max(along) + radius < BODY[0] / 2 + 0.1
    assert radius < BODY[1] / 2 + 0.03


def test_the_clearance_of_a_place_is_that_of_the_rooms_kernel() -> None:
    """Which tells it for one round robot, in C++."""
    rooms = Rooms(1, Lidar(4, 0.0, 1.5, 0.05, 5.0), 0.0, 0.22)
    ids = torch.tensor([0])
    middle = 0.22 * torch.tensor([[COLUMNS / 2, 2.5], [COLUMNS / 2, ROWS - 2.5]])
    rooms.make(ids, torch.tensor([[0.3, 0.7]]), torch.tensor([0.35]), middle[:1], middle[1:])
    places = 0.22 * torch.rand(300, 2, generator=torch.Generator().manual_seed(0)) * torch.tensor([COLUMNS, ROWS])
    found = clearance(rooms.cells, places[None], rooms.cell)[0]
    for place, apart in zip(places, found, strict=True):
        rooms.measure(torch.cat([place, torch.zeros(1)])[:, None].contiguous(), torch.zeros(1), torch.zeros(1))
        assert float(apart) == pytest.approx(min(float(rooms.located.clearance), 0.44), abs=1e-5)


def test_the_scan_is_the_rooms_at_the_pose_of_the_base_and_a_state_goes_on_bit_by_bit() -> None:
    task = TunnelWalk()
    env = VecEnv(task, 2, 3, fixed=QUIET)
    for _ in range(6):
        env.step(stand(env))
    truth, rooms = env.plant.truth(), env.plant.rooms
    lidar = Lidar(BEAMS, task.scan.angle_min, task.scan.angle_increment, task.scan.range_min, task.scan.range_max)
    own = Rooms(2, lidar, 0.1, task.cell)
    ids, parts = torch.arange(2), env.plant.room.split([2, 1, 2, 2], 1)
    own.make(ids, parts[0], parts[1][:, 0], parts[2], parts[3])
    cosine, sine = heading(truth["orientation"].unbind(-1))
    pose = torch.stack([truth["position"][:, 0], truth["position"][:, 1], torch.atan2(sine, cosine)])
    own.measure(pose.contiguous(), torch.zeros(2), torch.zeros(2))
    assert torch.equal(own.cells, rooms.cells)
    torch.testing.assert_close(truth["scan"], own.ranges, rtol=0.0, atol=1e-4)

    saved = {name: value.clone() for name, value in env.plant.save().items()}
    state = env.state(ids)

    def walked() -> torch.Tensor:
        for _ in range(4):
            step = env.step(stand(env))
        return torch.cat([step.signals["scan"], step.signals["path_points"].flatten(1), step.reward[:, None]], 1)

    first = walked()
    env.plant.load(saved)
    env.set_state(ids, state)
    assert torch.equal(walked(), first)
    other = VecEnv(task, 2, 4, fixed=QUIET)
    other.set_state(ids, state)  # in other rooms
    assert torch.equal(other.plant.rooms.cells, own.cells)


def test_a_long_robot_fails_where_it_stands_across_and_not_where_it_stands_along() -> None:
    """Beside the wall at x = one cell, whose distance is less than the half of its length."""
    env = VecEnv(TunnelWalk(), 1, 0, fixed={**QUIET, "room/fill": 0.0})
    cell = env.plant.rooms.cell
    for yaw, fails in ((math.pi / 2, False), (0.0, True), (math.pi, True)):
        env.plant.place(torch.tensor([0]), **turned([cell + 0.3, 6.0 * cell], yaw))
        assert bool(env.task.failed({**env.plant.truth(), **env.task.reference(env.time, None)})) == fails
    env.plant.place(torch.tensor([0]), **turned([cell + 0.3, 6.0 * cell], 0.0))
    assert bool(env.step(stand(env)).failed)


def test_the_planner_commands_what_the_walking_policy_was_trained_with_and_stops_before_a_wall() -> None:
    planner, ranges = TunnelWalk().planner(), FlatWalk().spec.ranges
    for k, axis in enumerate(("x", "y", "yaw")):
        assert np.abs(planner.tried[:, k]).max() <= ranges[f"command/{axis}"].end[1]
    points = torch.tensor([0.2, 0.4, 0.6, 0.8, 1.0])[:, None] * torch.tensor([1.0, 0.0])
    far = torch.full((1, BEAMS), 5.0)
    near = torch.where(torch.cos(torch.from_numpy(planner.angles)) > 0.1, 0.5, 5.0)[None]
    for scan, moves in ((far, True), (near, False)):
        told, state = planner({"scan": scan, "path_points": points[None]}, torch.zeros(1, 4))
        assert (float(told["linear_velocity_command"][0, 0]) > 0.4) == moves
        again, _ = planner({"scan": near, "path_points": points[None]}, state)
        assert torch.equal(again["linear_velocity_command"], told["linear_velocity_command"])  # held


def test_a_walking_policy_that_is_led_arrives_in_empty_rooms() -> None:
    task = TunnelWalk()
    policy = load("zoo:go2-flat", task).policy
    assert isinstance(policy, LedPolicy)
    env = VecEnv(task, 2, seed=5, fixed={"room/fill": 0.0})
    state, signals, arrived = policy.initial_state(2), env.signals(), torch.zeros(2, dtype=torch.bool)
    for _ in range(1250):
        commands, state = policy(signals, state)
        before = env.plant.truth()["to_goal"].norm(dim=-1).clone()
        step = env.step(commands)
        signals = step.signals
        assert not step.failed[~arrived].any()
        assert (before[step.succeeded & ~arrived] < REACHED + 0.05).all()
        arrived |= step.succeeded
        if arrived.all():
            break
    assert arrived.all()


def test_a_policy_that_the_planner_can_not_lead_is_refused() -> None:
    with pytest.raises(ValueError, match="reads the signal"):
        load("zoo:car-race", TunnelWalk())
