"""Several multirotors in one room: the air below them, what happens when they touch, and that rooms are apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from robo_rl.sim.plants.multirotor.swarm import RESTITUTION, MultirotorSwarm, others
from robo_rl.sim.robots.multirotor import GRAVITY, load_multirotor

ROOM, COLUMN = (4.0, 4.0, 2.0), 0.15
HOVER = {"body_rate": torch.zeros(4, 3), "thrust": torch.full((4, 1), GRAVITY)}


@pytest.fixture
def plant() -> MultirotorSwarm:
    """Two rooms of two robots, far apart in each, and a column that is nowhere."""
    made = MultirotorSwarm(load_multirotor("crazyflie"), 4, 0.02, 2, ROOM, 1, COLUMN)
    made.current.position[:] = torch.tensor([[-1.0, 0.0, 1.0], [1.0, 0.0, 1.0]]).repeat(2, 1)
    return made


def test_each_looks_at_the_others_of_its_team_alone() -> None:
    assert others(4).tolist() == [[1, 2, 3], [2, 3, 0], [3, 0, 1], [0, 1, 2]]


def test_a_robot_below_another_is_blown_down_as_a_round_jet_says(plant: MultirotorSwarm) -> None:
    card, depth, off = plant.card, 0.8, 0.05
    plant.current.position[0] = torch.tensor([0.0, 0.0, 1.0 + depth])
    plant.current.position[1] = torch.tensor([off, 0.0, 1.0])
    plant.param("downwash")[:] = 1.0
    wind = plant.air(plant.current, plant.parameters).numpy()
    plant.step(HOVER)
    weight = card.mass * 9.80665
    half = card.arm + 0.094 * depth
    speed = 5.8 * math.sqrt(4 * weight / (math.pi * 1.225)) / depth * math.exp(-math.log(2) * (off / half) ** 2)
    np.testing.assert_allclose(wind[1], [0.0, 0.0, -speed], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(wind[[0, 2, 3]], 0.0, atol=1e-4)  # who is above, and the other room
    sinks = plant.current.linear_velocity[:, 2]
    drag = 4 * card.hover_speed * card.rotor_drag[1] * speed / card.mass
    assert float(sinks[1] - sinks[3]) == pytest.approx(-drag * 0.02, rel=0.03)


def test_the_jet_is_nowhere_faster_than_momentum_theory_s(plant: MultirotorSwarm) -> None:
    plant.current.position[0] = torch.tensor([0.0, 0.0, 1.2])
    plant.current.position[1] = torch.tensor([0.0, 0.0, 1.0])
    wind = plant.air(plant.current, plant.parameters)
    area = 4 * math.pi * plant.card.propeller_radius**2
    most = 2 * math.sqrt(plant.card.mass * 9.80665 / (2 * 1.225 * area))
    assert float(-wind[1, 2]) == pytest.approx(most, rel=1e-3)


def test_two_that_meet_exchange_momentum_and_lose_speed(plant: MultirotorSwarm) -> None:
    now = plant.current
    now.position[:2] = torch.tensor([[0.0, 0.0, 1.0], [0.1, 0.05, 1.0]])
    now.linear_velocity[:2] = torch.tensor([[0.5, 0.0, 0.0], [-0.3, 0.1, 0.0]])
    free = plant.advance(now, HOVER["body_rate"], HOVER["thrust"], plant.parameters)
    plant.step(HOVER)
    before, after = free.linear_velocity[:2], now.linear_velocity[:2]
    torch.testing.assert_close(after.sum(0), before.sum(0), atol=1e-4, rtol=0.0)
    apart = now.position[1] - now.position[0]
    way = apart / apart.norm()
    assert float((after[1] - after[0]) @ way) == pytest.approx(-RESTITUTION * float((before[1] - before[0]) @ way))
    torch.testing.assert_close(now.linear_velocity[2:], free.linear_velocity[2:])


def test_columns_and_walls_throw_back_what_comes_and_nothing_that_goes(plant: MultirotorSwarm) -> None:
    now, reach = plant.current, plant.reach
    plant.param("columns")[:2] = torch.tensor([[-1.0, 0.2]])
    now.linear_velocity[0] = torch.tensor([0.0, 1.0, 0.2])  # to the column, which is 0.2 m away
    now.position[1], now.linear_velocity[1] = torch.tensor([2.0 - reach, 0.0, 1.0]), torch.tensor([1.0, 0.5, 0.0])
    now.position[2], now.linear_velocity[2] = torch.tensor([0.0, 0.0, reach / 2]), torch.tensor([0.0, 0.0, 1.0])
    plant.step(HOVER)
    speed = now.linear_velocity
    assert float(speed[0, 1]) == pytest.approx(-RESTITUTION, abs=0.02)
    assert float(speed[0, 2]) == pytest.approx(0.2, abs=0.02)
    assert float(speed[1, 0]) == pytest.approx(-RESTITUTION, abs=0.02)
    assert float(speed[1, 1]) == pytest.approx(0.5, abs=0.02)
    assert float(speed[2, 2]) == pytest.approx(1.0, abs=0.02)


def test_a_state_goes_on_in_another_place_as_it_did(plant: MultirotorSwarm) -> None:
    plant.current.position[1] = torch.tensor([-0.9, 0.0, 0.8])
    plant.param("downwash")[:] = 2.0
    there = torch.tensor([2, 3])
    plant.set_state(there, plant.state(torch.tensor([0, 1])))
    for _ in range(20):
        plant.step(HOVER)
    assert torch.equal(plant.current.position[:2], plant.current.position[2:])
