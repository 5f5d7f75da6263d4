"""Classical controllers of cars."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from robo_rl.contract import Provenance, Scan
from robo_rl.controllers import fallback
from robo_rl.controllers.car import FollowTheGap, PurePursuit
from robo_rl.policy import PolicyGraph
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.car import CarCard
from robo_rl.sim.tasks.car.race import CarRace

SCAN = Scan(-2.3562, 4.7124 / 63, 0.06, 10.0)
ANGLES = SCAN.angle_min + SCAN.angle_increment * np.arange(64)


def corridor(offset: float, turn: float, half: float = 1.0) -> np.ndarray:
    """(64,) m of a straight corridor that is closed 10 m ahead, for a car beside its middle and turned."""
    way = ANGLES + turn
    with np.errstate(divide="ignore"):
        sides = np.where(np.sin(way) > 0, half - offset, half + offset) / np.abs(np.sin(way))
    return np.clip(sides, 0.06, 10.0).astype(np.float32)


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
def test_follow_the_gap_turns_along_a_corridor(library: object) -> None:
    driver = FollowTheGap(load_robot("f1tenth").facts(), SCAN, 64, 8.0)
    scans = np.stack([corridor(0.0, 0.0), corridor(0.0, 0.4), corridor(0.0, -0.4)])
    commands, _ = driver({"scan": library(scans)}, library(driver.first_state(3)))  # type: ignore[operator]
    ahead, right, left = (float(x) for x in commands["steering_angle"][:, 0])
    assert abs(ahead) < 0.05
    assert right < -0.05
    assert left > 0.05


def test_follow_the_gap_slows_down_before_a_wall() -> None:
    driver = FollowTheGap(load_robot("f1tenth").facts(), SCAN, 64, 8.0)
    speeds = []
    for distance in (8.0, 3.0, 1.0):
        scan = np.minimum(corridor(0.0, 0.0), distance / np.maximum(np.cos(ANGLES), 1e-3).astype(np.float32))
        scan = np.where(np.abs(ANGLES) < 1.5, scan, corridor(0.0, 0.0)).astype(np.float32)
        speeds.append(float(driver({"scan": scan[None]}, driver.first_state(1))[0]["speed"][0, 0]))
    assert speeds[0] > speeds[1] > speeds[2]


def test_pure_pursuit_of_a_circle_steers_as_ackermann_does() -> None:
    """tan δ = L / R of the rear axle."""
    robot, radius = load_robot("f1tenth").facts(), 2.0
    distances = np.linspace(0.2, 3.0, 12).astype(np.float32)
    driver = PurePursuit(robot, distances, 8.0)
    turn = distances / radius
    rear = float(robot.facts["rear_axle"])
    path = np.stack([radius * np.sin(turn) - rear, radius * (1 - np.cos(turn))], -1)[None].astype(np.float32)
    given = {"path": path, "wheel_speed": np.array([[2.0]], np.float32)}
    commands, _ = driver(given, driver.first_state(1))
    base = float(robot.facts["front_axle"]) + rear
    assert float(commands["steering_angle"][0, 0]) == pytest.approx(np.arctan(base / radius), rel=0.06)
    assert float(commands["speed"][0, 0]) == pytest.approx(np.sqrt(0.6 * 1.0489 * 9.81 * radius), rel=0.1)


def test_after_a_fault_the_car_steers_along_the_gap_and_brakes_to_a_stop() -> None:
    task = CarRace()
    contract = PolicyGraph(task).contract(Provenance("none", 0, 0, "0" * 64))
    driver = fallback(contract)
    assert driver is not None
    driver.follow(np.array([0.0, 6.0], np.float32))
    signals = {"scan": corridor(0.3, 0.3)}
    speeds = []
    for k in range(200):
        command = driver.land(signals, 0.025 * k)
        if command is None:
            break
        assert command[0] < 0  # back to the middle
        speeds.append(float(command[1]))
    assert command is None
    assert all(a >= b for a, b in pairwise(speeds))
    assert len(speeds) * 0.025 == pytest.approx(6.0 / (0.5 * task.card.acceleration), abs=0.05)


def test_follow_the_gap_steers_a_larger_car_in_a_wider_corridor_alike() -> None:
    """All lengths 4 times as large: the same angles, and speeds of the same acceleration across."""
    k, small = 4.0, load_robot("f1tenth")
    assert isinstance(small, CarCard)
    large = dataclasses.replace(
        small, front_axle=k * small.front_axle, rear_axle=k * small.rear_axle,
        body=tuple(k * x for x in small.body),
    )  # fmt: skip
    scans = np.stack([corridor(0.2 * math.sin(i), 0.5 * math.cos(3 * i)) for i in range(40)])
    commands = []
    for card, factor, top in ((small, 1.0, 20.0), (large, k, 40.0)):
        driver = FollowTheGap(card.facts(), dataclasses.replace(SCAN, range_max=10.0 * factor), 64, top)
        commands.append(driver({"scan": np.float32(factor) * scans}, driver.first_state(40))[0])
    assert commands[1]["steering_angle"] == pytest.approx(commands[0]["steering_angle"], abs=1e-4)
    assert commands[1]["speed"] == pytest.approx(math.sqrt(k) * commands[0]["speed"], rel=0.02)
