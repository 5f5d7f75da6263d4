"""The dynamic window in scenes whose answer is known."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from robo_rl.controllers.mobile_base import MARGIN, POINTS, SHOWN, DynamicWindow
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.mobile_base import CARD
from robo_rl.sim.tasks.mobile_base.navigate import BEAMS, DiffNav
from robo_rl.sim.tasks.omni_base.navigate import OmniNav

CARD_ = load_robot("turtlebot3", CARD)


def signals(goal: tuple[float, float], heading: float = 0.0) -> dict[str, np.ndarray]:
    return {
        "scan": np.full((1, BEAMS), 3.5, np.float32),
        "position": np.zeros((1, 2), np.float32),
        "orientation": np.float32([[0, 0, math.sin(heading / 2), math.cos(heading / 2)]]),
        "position_setpoint": np.float32([goal]),
    }


@pytest.fixture
def driver() -> DynamicWindow:
    return DiffNav().controller()


def told(driver: DynamicWindow, given: dict[str, np.ndarray]) -> tuple[float, float]:
    commands, _ = driver(given, driver.first_state(1))
    return float(commands["forward_speed"][0, 0]), float(commands["turn_rate"][0, 0])


def test_in_the_open_it_drives_to_the_goal_at_full_speed_in_any_frame_of_the_odometry(driver) -> None:
    for heading in (0.0, 1.0, -2.5, 3.1):
        ahead = (2 * math.cos(heading), 2 * math.sin(heading))
        speed, turn = told(driver, signals(ahead, heading))
        assert speed == pytest.approx(CARD_.speed_max)
        assert turn == pytest.approx(0.0, abs=1e-6)
    assert told(driver, signals((0.0, 1.0)))[1] > 0.5
    assert told(driver, signals((0.0, -1.0)))[1] < -0.5


def test_it_goes_around_what_stands_in_its_way(driver) -> None:
    for side in (1.0, -1.0):
        given = signals((3.0, 0.0))
        angles = side * driver.angles
        given["scan"][0, (angles > -0.05) & (angles < 0.6)] = 0.35
        speed, turn = told(driver, given)
        assert side * turn < 0
        assert speed > 0


def test_where_every_arc_touches_something_it_turns_in_place_to_the_freer_side(driver) -> None:
    given = signals((3.0, 0.0))
    given["scan"][:] = 0.15
    given["scan"][0, driver.angles > 0] = 0.2
    speed, turn = told(driver, given)
    assert speed == 0.0
    assert turn > 0


def test_an_arc_that_it_takes_keeps_its_distance_from_what_the_lidar_sees(driver) -> None:
    random = np.random.default_rng(0)
    taken = 0
    for _ in range(50):
        given = signals(tuple(random.uniform(-3, 3, 2)))
        given["scan"] = random.uniform(0.2, 2.0, (1, BEAMS)).astype(np.float32)
        speed, turn = told(driver, given)
        angle = driver.angles
        points = given["scan"][0] * np.array([np.cos(angle), np.sin(angle)]) + [[driver.forward], [0.0]]
        for time in np.linspace(0, SHOWN, POINTS + 1)[1:] if speed else []:
            heading = turn * time
            radius = speed / turn if turn else math.inf
            place = [radius * math.sin(heading), radius * (1 - math.cos(heading))] if turn else [speed * time, 0.0]
            assert np.hypot(*(points - np.array(place)[:, None])).min() > CARD_.radius + MARGIN - 1e-4
        taken += speed > 0
    assert taken > 5


def test_an_omnidirectional_base_goes_straight_to_a_goal_on_either_side_and_around_what_stands_there() -> None:
    driver = OmniNav().controller()
    for bearing in (-np.pi / 2, 0.0, np.pi / 2):
        given = signals((3 * math.cos(bearing), 3 * math.sin(bearing)))
        commands, _ = driver(given, driver.first_state(1))
        ahead, left = (float(commands[name][0, 0]) for name in ("forward_speed", "lateral_speed"))
        assert abs(math.remainder(math.atan2(left, ahead) - bearing, 2 * math.pi)) < 0.01
        assert abs(ahead) + abs(left) <= driver.top + 1e-6
    given = signals((0.0, 3.0))
    given["scan"][0, abs(driver.angles - np.pi / 2) < 0.5] = 0.6
    commands, _ = driver(given, driver.first_state(1))
    way = math.atan2(*(float(commands[name][0, 0]) for name in ("lateral_speed", "forward_speed")))
    assert abs(way - np.pi / 2) > 0.3


def test_numpy_and_torch_agree(driver) -> None:
    random = np.random.default_rng(0)
    given = signals((1.0, 2.0), 0.4)
    given["scan"] = random.uniform(0.12, 3.5, (1, BEAMS)).astype(np.float32)
    speed, turn = told(driver, given)
    commands, _ = driver({name: torch.from_numpy(value) for name, value in given.items()}, torch.zeros(1, 0))
    assert float(commands["forward_speed"]) == pytest.approx(speed)
    assert float(commands["turn_rate"]) == pytest.approx(turn)


def test_a_larger_robot_in_a_larger_scene_drives_the_same_way(driver) -> None:
    """All lengths, speeds and accelerations 5 times as large: similar arcs."""
    k, random = 5.0, np.random.default_rng(0)
    large = dataclasses.replace(
        CARD_, radius=k * CARD_.radius, speed_max=k * CARD_.speed_max, acceleration=k * CARD_.acceleration,
        lidar_position=(k * CARD_.lidar_position[0], 1.0), lidar_range=(k * 0.12, k * 3.5),
    )  # fmt: skip
    other = DiffNav(large).controller()
    n = 200
    given = {name: np.repeat(value, n, 0) for name, value in signals((3.0, 0.5)).items()}
    given["scan"][:] = random.uniform(0.15, 3.5, (n, BEAMS)) ** 0.5
    similar = {**given, **{name: np.float32(k) * given[name] for name in ("scan", "position", "position_setpoint")}}
    here, there = (d(s, d.first_state(n))[0] for d, s in ((driver, given), (other, similar)))
    assert len(np.unique(here["turn_rate"])) > 3
    same = np.isclose(there["turn_rate"], here["turn_rate"], atol=1e-5)
    same &= np.isclose(there["forward_speed"], k * here["forward_speed"], rtol=1e-5)
    assert same.mean() > 0.98  # the rest is decided by rounding


def test_a_heavy_robot_takes_no_arc_on_which_it_could_not_stop() -> None:
    heavy = dataclasses.replace(CARD_, speed_max=1.5, acceleration=0.5)
    given = signals((6.0, 0.0))
    given["scan"][:] = 0.8
    speed, _ = told(DiffNav(heavy).controller(), given)
    assert 0 < speed**2 / (2 * 0.5) < 0.8
