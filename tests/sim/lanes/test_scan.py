"""Scans of vehicles: true ranges, and the gaps that are found in them."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import torch

from robo_rl.sim.accelerate.fuse.program import Program
from robo_rl.sim.accelerate.fuse.structure import flatten
from robo_rl.sim.env import VecEnv
from robo_rl.sim.scenes.lanes import REACH, VEHICLE, WIDE
from robo_rl.sim.scenes.lanes.around import middle_at
from robo_rl.sim.scenes.lanes.beams import CLEAR, middle_of
from robo_rl.sim.scenes.lanes.scan import scan
from robo_rl.sim.scenes.tracks import Lidar
from robo_rl.sim.tasks.car.traffic_lidar import CarTrafficLidar


def test_ranges_are_those_of_mujocos_rays() -> None:
    random = np.random.default_rng(0)
    lidar, beams, count = Lidar(120, -3.1, 6.2 / 119, 1.0, 60.0), 120, 8
    place = np.array([3.0, -2.0, 2.5])
    angle, away = random.uniform(-np.pi, np.pi, count), random.uniform(4.0, 70.0, count)
    boxes = np.stack(
        [place[0] + away * np.cos(angle), place[1] + away * np.sin(angle), random.uniform(-4, 4, count)], -1
    )
    spec = mujoco.MjSpec()
    for x, y, turn in boxes:
        body = spec.worldbody.add_body(pos=[x, y, 0.0], quat=[np.cos(turn / 2), 0.0, 0.0, np.sin(turn / 2)])
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[VEHICLE[0] / 2, VEHICLE[1] / 2, 1.0])
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    expected, hit = [], np.zeros(1, np.int32)
    for k in range(beams):
        ray = place[2] + lidar.first + k * lidar.step
        found = mujoco.mj_ray(model, data, [*place[:2], 0.0], [np.cos(ray), np.sin(ray), 0.0], None, 1, -1, hit, None)
        expected.append(np.clip(found, 1.0, 60.0) if found >= 0 else 60.0)
    nobody = np.full((1, 3), np.nan)
    given = np.concatenate([boxes, nobody])[None]
    ranges = scan(lidar, torch.tensor(place[None], dtype=torch.float32), given)[0]
    assert int((ranges < 60.0).sum()) > 10
    np.testing.assert_allclose(ranges, expected, atol=1e-3)


def test_gaps_of_a_scan_are_those_of_the_vehicles_in_the_lanes() -> None:
    """Against where the vehicles are, on bent roads: the nearest of each lane that nobody hides."""
    task, n = CarTrafficLidar(), 48
    env = VecEnv(task, n, seed=3, fixed={"noise": 0.0, "delay": 0.0, "initial/speed": 6.0, "initial/turn": 0.0})
    for _ in range(8):
        aim = env.signals()["route"][:, 2, 1:] / 14.0**2 * 2 * task.base
        env.step({"steering_angle": aim, "speed": torch.full((n, 1), 6.0)})
    truth, found = env.truth(), task.find_gaps(env.signals())
    straight = truth["lane_offset"][:, 0].abs() < 0.3
    near = straight & (truth["gap"][:, 0] < 35.0)
    assert int(near.sum()) > 12
    error = (found[:, 2] - truth["gap"][:, 0])[near]
    assert float(error.abs().median()) < 0.3
    assert float(error.abs().max()) < 2.5  # the true one is along the bent road
    position = truth["neighbour_position"]
    beside = (position[..., 0].abs() < 2.0) & (truth["neighbour_valid"] > 0.5)
    for lane, column in ((-1.0, 0), (1.0, 4)):
        there = (beside & ((position[..., 1] - lane * WIDE).abs() < 0.5)).any(1) & straight
        assert bool((found[there, column] < 1.0).all() and (found[there, column + 1] < 1.0).all())
    assert bool((found[:, :6] <= CLEAR).all())


def test_the_middle_of_a_lane_follows_roads_and_rounds_little_where_points_are_of_no_road() -> None:
    generator = torch.Generator().manual_seed(0)
    n = 256
    signals = {
        "route": torch.tensor(REACH)[:, None] * torch.tensor([1.0, 0.0]) + torch.randn(n, 8, 2, generator=generator),
        "lane_offset": torch.randn(n, 1, generator=generator),
        "lane_heading": 0.2 * torch.randn(n, 1, generator=generator),
    }
    signals["route"][:, :, 0] = torch.tensor(REACH)
    x = 120.0 * torch.rand(n, 180, generator=generator) - 60.0
    torch.testing.assert_close(middle_of(signals, x), middle_at(signals, x)[0], atol=1e-4, rtol=0.0)
    signals["route"] = 200.0 * torch.rand(n, 8, 2, generator=generator) - 100.0
    exact = middle_of({name: value.double() for name, value in signals.items()}, x.double())
    assert float((middle_of(signals, x) - exact).abs().max()) < 1e-3


def test_what_the_student_sees_can_be_compiled() -> None:
    task = CarTrafficLidar()
    env = VecEnv(task, 2, seed=0)
    tensors: list[torch.Tensor] = []
    structure = flatten((env.signals(), task.first_memory(2, env.device)), tensors)
    program = Program.trace(task.observe, structure, tensors, 2)
    assert sum(len(nodes) for nodes in program.outputs) == sum(
        math.prod(shape) for shape in task.observation_shapes.values()
    )
