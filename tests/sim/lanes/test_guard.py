"""What a guard promises: a car stops behind whoever brakes and before lights, and stays in its lane."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from robo_rl.sim.scenes.lanes import NEAREST, REACH, WIDE
from robo_rl.sim.scenes.lanes.guard import (
    ASIDE,
    BEFORE,
    BRAKING,
    EASY,
    REACTION,
    SHIFT,
    STANDSTILL,
    YELLOW,
    Guard,
    safe_speed,
)
from robo_rl.sim.tasks.car.lanes import LIMIT, CarLanes

GUARD: Guard = CarLanes().guard
FREE = torch.zeros(1, 1)
Signals = dict[str, Tensor]


def on_a_straight_road(speed: float = 10.0, offset: float = 0.0) -> Signals:
    """In the middle of three lanes, alone, without a light."""
    return {
        "wheel_speed": torch.tensor([[speed]]),
        "lane_offset": torch.tensor([[offset]]),
        "lane_heading": torch.zeros(1, 1),
        "route": torch.tensor([[[reach, -offset] for reach in REACH]]),
        "light_distance": torch.full((1, 1), 100.0),
        "light_state": torch.zeros(1, 2),
        "neighbour_position": torch.zeros(1, NEAREST, 2),
        "neighbour_velocity": torch.zeros(1, NEAREST, 2),
        "neighbour_heading": torch.zeros(1, NEAREST),
        "neighbour_valid": torch.zeros(1, NEAREST),
    }


def with_neighbour(signals: Signals, x: float, y: float, faster: float = 0.0, left: float = 0.0) -> Signals:
    signals["neighbour_valid"][:, 0] = 1.0
    signals["neighbour_position"][:, 0] = torch.tensor([x, y])
    signals["neighbour_velocity"][:, 0] = torch.tensor([faster, left])
    return signals


def test_at_the_safe_speed_a_car_stops_behind_a_leader_that_brakes_as_hard() -> None:
    gaps, leaders = np.meshgrid(np.linspace(0.0, 60.0, 25), np.linspace(0.0, 14.0, 15))
    speeds = safe_speed(torch.from_numpy(gaps), torch.from_numpy(leaders), BRAKING).numpy()
    own = speeds * REACTION + speeds**2 / (2 * BRAKING)  # m, until it stands
    np.testing.assert_allclose(gaps + leaders**2 / (2 * BRAKING) - own, 0.0, atol=1e-9)


@pytest.mark.parametrize("speed", [1.0, 4.0, 8.0, LIMIT])
@pytest.mark.parametrize("yellow", [0.0, 1.0, 2.0, 2.9])
def test_a_yellow_light_is_passed_in_time_or_it_can_be_stopped_at(speed: float, yellow: float) -> None:
    for distance in np.linspace(0.1, 60.0, 200):
        signals = on_a_straight_road(speed)
        signals["light_distance"][:], signals["light_state"][:, 1] = float(distance), 1.0
        bounds = GUARD.bounds(signals, torch.tensor([[yellow]]))
        if float(bounds.stop) < 0.5:
            assert distance / speed < YELLOW - yellow
            assert float(bounds.speed) == GUARD.top
        elif yellow == 0.0:
            assert speed**2 / (2 * distance) < 1.5 * EASY


def test_before_a_red_light_the_speed_falls_to_nothing() -> None:
    signals, bounds = on_a_straight_road(), []
    signals["light_state"][:, 0] = 1.0
    for distance in np.linspace(BEFORE, 60.0, 100):
        signals["light_distance"][:] = float(distance)
        bounds.append(float(GUARD.bounds(signals, FREE).speed))
    assert bounds[0] == pytest.approx(0.0, abs=1e-5)
    assert (np.diff(bounds) >= 0).all()
    signals["light_distance"][:] = -0.5  # the line is behind the front
    assert float(GUARD.bounds(signals, FREE).speed) == GUARD.top


@pytest.mark.parametrize(
    ("x", "faster", "taken"),
    [
        (0.0, 0.0, True),
        (30.0, 0.0, False),
        (-30.0, 0.0, False),
        (12.0, -8.0, True),
        (-12.0, 8.0, True),
        (12.0, 8.0, False),
    ],
)
def test_a_lane_is_taken_by_who_is_beside_or_closes_in(x: float, faster: float, taken: bool) -> None:
    bounds = GUARD.bounds(with_neighbour(on_a_straight_road(), x, WIDE, faster), FREE)
    assert bounds.taken.tolist() == [[float(taken), 0.0]]
    least, most = bounds.steering[0].tolist()
    x_ahead = 4.0 + 0.7 * 10.0
    far = x_ahead + GUARD.rear
    allowed = ASIDE if taken else SHIFT
    assert most == pytest.approx(2 * GUARD.base * allowed / (far**2 + allowed**2), rel=1e-4)
    assert least == pytest.approx(-2 * GUARD.base * SHIFT / (far**2 + SHIFT**2), rel=1e-4)


def test_who_comes_over_from_two_lanes_away_takes_the_lane_between() -> None:
    there, comes = (
        GUARD.bounds(with_neighbour(on_a_straight_road(), 0.0, 2 * WIDE, 0.0, v), FREE) for v in (0.0, -1.6)
    )
    assert (there.taken.tolist(), comes.taken.tolist()) == ([[0.0, 0.0]], [[1.0, 0.0]])


def test_the_speed_is_safe_behind_who_is_in_the_way_now_or_in_a_second() -> None:
    gap = 20.0
    x = gap + GUARD.front + 2.25
    safe = float(safe_speed(torch.tensor(gap - STANDSTILL), torch.tensor(4.0), BRAKING))
    for y, left, bound in ((0.0, 0.0, safe), (WIDE, 0.0, GUARD.top), (WIDE, -1.8, safe)):
        found = GUARD.bounds(with_neighbour(on_a_straight_road(), x, y, -6.0, left), FREE)
        assert float(found.speed) == pytest.approx(bound, rel=1e-4)


@pytest.mark.parametrize("taken", [True, False])
def test_full_steering_stays_in_the_lane_beside_a_vehicle_and_else_crosses_slowly(taken: bool) -> None:
    task, n = CarLanes(), 64
    plant, generator = task.make_plant(n), torch.Generator().manual_seed(0)
    every, one = torch.arange(n), torch.ones(n)
    plant.param("road_seed")[:] = torch.rand(n, 2, generator=generator)
    plant.param("road_lanes")[:], plant.param("road_bends")[:], plant.param("road_crossings")[:] = 4.0, 1.0, 0.0
    plant.refresh(every)
    plant.put(every, torch.rand(n, 2, generator=generator), 0.0 * one, 10.0 * one, 0.0 * one, 0.0 * one, 9.0 * one)
    inner = plant.lanes.road[:, 5] < 3  # there is a lane to the left
    begun = plant.truth()["across"][:, 0].clone()
    across, crossed = [], torch.zeros(n, dtype=torch.bool)
    for _ in range(80):
        truth = dict(plant.truth())
        truth["neighbour_valid"] = torch.zeros(n, NEAREST)
        truth["neighbour_valid"][:, 0] = float(taken)
        truth["neighbour_velocity"] = torch.zeros(n, NEAREST, 2)
        truth["neighbour_heading"] = torch.zeros(n, NEAREST)
        truth["neighbour_position"] = torch.zeros(n, NEAREST, 2)
        truth["neighbour_position"][:, 0, 1] = WIDE - truth["lane_offset"][:, 0]  # beside, in the lane to the left
        bounds = GUARD.bounds(truth, torch.zeros(n, 1))
        plant.step({"steering_angle": bounds.steering[:, 1:], "speed": torch.full((n, 1), 9.0)})
        across.append(plant.truth()["across"][:, 0] - begun)
        crossed |= across[-1] > 0.5 * WIDE
        if bool(crossed[inner].all()):
            break
    way = torch.stack(across)[:, inner]
    if taken:
        assert float(way.max()) < 2.0 * ASIDE
    else:
        assert bool(crossed[inner].all())
        assert 0.8 < float((way[1:] - way[:-1]).max()) / 0.1 < 2.0  # m/s; traffic has 1.2


def test_the_bounds_are_part_of_the_policy() -> None:
    task = CarLanes()
    memory = task.first_memory(1)
    memory |= {"speed": torch.tensor([[10.0]]), "speed_bound": torch.tensor([[3.0]])}
    memory["steering_bounds"] = torch.tensor([[-0.02, 0.01]])
    for ask, steering in ((5.0, 0.01), (-5.0, -0.02)):
        commands = task.command(torch.tensor([[ask, 5.0]]), memory)
        assert float(commands["steering_angle"]) == pytest.approx(steering)
        assert float(commands["speed"]) == pytest.approx(3.0)
    assert math.isclose(float(task.first_memory(1)["speed_bound"]), task.top)
