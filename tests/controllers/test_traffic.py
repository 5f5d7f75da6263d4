"""The models of traffic, beside what is known of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from robo_rl.controllers.car.traffic import (
    EMERGENCY,
    Idm,
    LaneDriver,
    Mobil,
    equilibrium_gap,
    idm_acceleration,
    mobil_agrees,
)
from robo_rl.sim.robots import load_robot

TREIBER = Idm(acceleration=0.73, braking=1.67, headway=1.6, standstill=2.0)
"""Treiber, Hennecke, Helbing 2000, table 1."""


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
def test_vehicles_at_the_equilibrium_gap_keep_their_speed(library: Callable[..., object]) -> None:
    speed = library(np.linspace(0.0, 30.0, 31))
    gap = equilibrium_gap(speed, 33.0, Idm())
    found = idm_acceleration(speed, gap, speed, 33.0, Idm())
    assert float(abs(found).max()) < 1e-12


def approach(idm: Idm, speed: float, gap: float, desired: float) -> tuple[float, float]:
    """The least gap (m) and the hardest braking (m/s²) towards a standing obstacle."""
    least, hardest = gap, 0.0
    for _ in range(6000):
        acceleration = float(idm_acceleration(np.float64(speed), np.float64(gap), 0.0, desired, idm))
        after = max(speed + 0.01 * acceleration, 0.0)
        gap -= 0.005 * (speed + after)
        speed, least, hardest = after, min(least, gap), max(hardest, -acceleration)
    return least, hardest


def test_a_standing_obstacle_is_approached_with_comfortable_braking() -> None:
    """The model's braking strategy: from afar, about b, whatever the speed; it ends at the standstill gap."""
    for speed in (15.0, 30.0):
        least, hardest = approach(TREIBER, speed, 400.0, speed + 1)
        assert least == pytest.approx(TREIBER.standstill, abs=0.3)
        assert TREIBER.braking * 0.8 < hardest < TREIBER.braking * 1.3


def test_no_vehicle_brakes_harder_than_it_can() -> None:
    assert float(idm_acceleration(np.float64(30.0), np.float64(0.5), 0.0, 30.0, Idm())) == -EMERGENCY


def stable(idm: Idm, speed: float, desired: float) -> bool:
    """Wilson and Ward 2011 (Car-following models: fifty years of linear stability analysis), from derivatives."""
    gap, h = equilibrium_gap(np.float64(speed), desired, idm), 1e-5

    def f(s: float, v: float, leader: float) -> float:
        return float(idm_acceleration(np.float64(v), np.float64(s), leader, desired, idm))

    by_gap = (f(gap + h, speed, speed) - f(gap - h, speed, speed)) / (2 * h)
    by_closing = (f(gap, speed, speed + h) - f(gap, speed, speed - h)) / (2 * h)  # of the gap's rate
    by_speed = (f(gap, speed + h, speed + h) - f(gap, speed - h, speed - h)) / (2 * h)
    return 0.5 - by_closing / by_speed - by_gap / by_speed**2 > 0.0


def amplification(idm: Idm, speed: float, desired: float) -> float:
    """How a platoon of 12 passes a slow small wave of its first vehicle's speed on: last over first."""
    n, dt, wave = 12, 0.02, 0.1
    gap = float(equilibrium_gap(np.float64(speed), desired, idm))
    place, v = -(gap + 5.0) * np.arange(n), np.full(n, speed)
    swing = []
    for k in range(int(400 / dt)):
        gaps = place[:-1] - place[1:] - 5.0
        after = v.copy()
        after[1:] += dt * idm_acceleration(v[1:], gaps, v[:-1], desired, idm)
        after[0] = speed + 0.05 * np.sin(wave * (k + 1) * dt)
        place += 0.5 * dt * (v + after)
        v = after
        if k * dt > 200:
            swing.append(v - speed)
    return float(np.ptp([s[-1] for s in swing]) / np.ptp([s[0] for s in swing]))


@pytest.mark.parametrize(("acceleration", "expected"), [(0.3, False), (2.5, True)])
def test_waves_in_a_platoon_grow_where_the_linear_criterion_says_so(acceleration: float, expected: bool) -> None:
    idm = Idm(acceleration=acceleration)
    assert stable(idm, 8.0, 15.0) is expected
    assert (amplification(idm, 8.0, 15.0) < 1.0) is expected


def test_a_change_of_lanes_must_be_safe_and_worth_more_than_it_costs_others() -> None:
    mobil = Mobil(politeness=0.5, safe_braking=4.0, threshold=0.2)
    own, behind, others = (np.array(x) for x in ([1.0, 1.0, 1.0, 0.1], [0.0, -4.1, -1.0, 0.0], [0.0, 0.0, -1.7, 0.0]))
    assert mobil_agrees(own, behind, others, mobil).tolist() == [True, False, False, False]


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
def test_the_driver_stops_at_a_red_light_and_turns_to_the_middle_of_its_lane(library: Callable[..., object]) -> None:
    driver = LaneDriver(load_robot("bmw320i").facts(), 1.5, 13.9, 0.1)
    reach = np.array([4.0, 8, 14, 20, 28, 36, 48, 60])
    route = np.stack([np.stack([reach, 0 * reach - offset], -1) for offset in (0.0, 0.0, 0.6)])
    signals = {
        "wheel_speed": [[8.0], [8.0], [8.0]], "lane_offset": [[0.0], [0.0], [0.6]], "lane_heading": [[0.0]] * 3,
        "lane_count": [[1.0, 1.0, 0.0]] * 3, "route_left": [[200.0]] * 3, "light_distance": [[15.0], [100.0], [100.0]],
        "light_state": [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]], "route": route,
        "neighbour_position": np.zeros((3, 8, 2)), "neighbour_velocity": np.zeros((3, 8, 2)),
        "neighbour_heading": np.zeros((3, 8)), "neighbour_valid": np.zeros((3, 8)),
    }  # fmt: skip
    given = {name: library(np.asarray(value, np.float32)) for name, value in signals.items()}
    commands, _ = driver(given, library(driver.first_state(3)))  # type: ignore[arg-type]
    red, free, left = (float(x) for x in commands["speed"][:, 0])
    assert red < 8.0 < free == left
    steering = [float(x) for x in commands["steering_angle"][:, 0]]
    assert steering[0] == pytest.approx(0.0, abs=1e-6)
    assert steering[2] < -0.01
