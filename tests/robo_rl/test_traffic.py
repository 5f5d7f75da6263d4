"""Driving in a style: what it asks for is rewarded, driven by IDM and MOBIL, and taught to a policy with a lidar."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
import torch

from robo_rl.controllers.car.traffic import Idm, idm_acceleration
from robo_rl.evaluate.evaluation import Conditions, ControllerPolicy, rollout
from robo_rl.learn.config import DistillConfig
from robo_rl.learn.distill import distill
from robo_rl.policy import PolicyGraph
from robo_rl.sim.scenes.lanes import REACH
from robo_rl.sim.tasks.car.traffic import BOLD, MISSED, STYLE, TIMID, CarTraffic
from robo_rl.sim.tasks.car.traffic_lidar import CarTrafficLidar


def test_the_style_weighs_gaps_speeds_and_lanes_in_which_idm_accelerates_more() -> None:
    task, n = CarTraffic(), 4
    truth = {name: value[:1].repeat(n, *[1] * (value.ndim - 1)) for name, value in task.make_plant(1).truth().items()}
    truth["gained"][:] = 0.01
    truth["velocity"] = torch.tensor([[8.0, 0.0]]).repeat(n, 1)
    truth["edge"], truth["time_to_collision"] = torch.full((n, 1), 3.0), torch.full((n, 1), 9.0)
    truth["gap"] = torch.tensor([[100.0], [2.0 + 1.2 * 8.0], [2.0 + 1.2 * 8.0], [100.0]])
    truth["time_gap_setpoint"] = torch.tensor([[2.4], [1.2], [2.4], [2.4]])
    truth["speed_setpoint"] = torch.tensor([[8.0], [8.0], [8.0], [12.0]])
    truth["advantage_setpoint"] = torch.full((n, 1), 0.2)
    truth["neighbour_valid"] = torch.zeros(n, 8)
    part = (2.0 + 1.2 * 8.0) / (2.0 + 2.4 * 8.0)  # of the gap that is asked for
    expected = torch.tensor([1.0, 1.0, part, 0.5 + 0.5 * 8.0 / 12.0])
    torch.testing.assert_close(task.reward(truth, {}, {})["route"], 0.01 * expected)

    truth["gap"][:], truth["lanes_beside"] = 100.0, torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    truth["speed_setpoint"], truth["time_gap_setpoint"] = torch.full((n, 1), 8.0), torch.full((n, 1), 1.5)
    truth["route"] = torch.tensor([[reach, 0.0] for reach in REACH]).repeat(n, 1, 1)
    truth["lane_offset"], truth["lane_heading"] = torch.zeros(n, 1), torch.zeros(n, 1)
    truth["neighbour_valid"][:, 0] = 1.0
    truth["neighbour_position"] = torch.zeros(n, 8, 2)
    truth["neighbour_position"][:, 0, 0] = 12.0 + task.front + 2.25  # ahead in the lane, as fast as the car
    truth["neighbour_velocity"] = torch.zeros(n, 8, 2)
    before = idm_acceleration(np.array(8.0), np.array(12.0), np.array(8.0), 8.0, Idm())
    after = idm_acceleration(np.array(8.0), np.array(100.0), np.array(8.0), 8.0, Idm())
    truth["advantage_setpoint"] = torch.tensor([[0.2], [0.2], [float(after - before) - 0.5], [8.0]])
    missed = torch.tensor([1.0, 1.0, 0.5, 0.0])  # m/s² more than is asked for, where the way is clear
    torch.testing.assert_close(task.reward(truth, {}, {})["route"], 0.01 * (1.0 - MISSED * missed))


def test_idm_and_mobil_keep_larger_gaps_and_lanes_in_a_timid_style() -> None:
    task, bold = CarTraffic(), torch.arange(96) % 2 > 0
    style = {
        f"style/{name.removesuffix('_setpoint')}": torch.where(bold, last, first)
        for name, first, last in zip(STYLE, TIMID, BOLD, strict=True)
    }
    episodes = rollout(task, ControllerPolicy(task), Conditions(96, 4, fixed=style))
    gap, changes = episodes.errors["time_gap"], episodes.errors["lane_changes"]
    assert float(gap[~bold].mean()) > float(gap[bold].mean()) + 0.5
    assert float(changes[~bold].mean()) + 1.0 < float(changes[bold].mean())


@pytest.mark.release  # with every change a student of the quadrotor: test_distill.py
def test_a_student_with_a_lidar_learns_from_one_that_is_told_of_neighbours() -> None:
    torch.manual_seed(0)
    teacher = PolicyGraph(CarTraffic(), (16,), "elu").requires_grad_(False).eval()
    teacher.network[-1].weight.mul_(30.0)
    student = PolicyGraph(CarTrafficLidar(), (32,), "elu")
    config = DistillConfig((32,), "elu", updates=60, environments=8, mixed=4, learning_rate=3e-3, teacher_part=0.5)
    untaught = distill(teacher, copy.deepcopy(student), dataclasses.replace(config, learning_rate=1e-12))
    taught = distill(teacher, student, config)
    assert sum(taught.losses[-15:]) < 0.6 * sum(untaught.losses[-15:])
