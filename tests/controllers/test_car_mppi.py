"""A car under path integral control in scenes whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from robo_rl.controllers.car.mppi import SAMPLING, PathIntegral
from robo_rl.evaluate.evaluation import Conditions, rollout
from robo_rl.policies.loading import load
from robo_rl.sim.tasks.car.race import CarRace
from tests.controllers.test_car import ANGLES, corridor


@pytest.fixture
def driver() -> PathIntegral:
    return CarRace().path_integral()


def driven(driver: PathIntegral, scan: np.ndarray, speed: float = 2.0, steps: int = 20) -> tuple[float, float]:
    """Steering angle (rad) and speed (m/s) after it has seen the same so many times."""
    state, given = driver.first_state(1), {"scan": scan[None], "wheel_speed": np.float32([[speed]])}
    for _ in range(steps):
        commands, state = driver(given, state)
    return float(commands["steering_angle"][0, 0]), float(commands["speed"][0, 0])


def test_along_a_corridor_it_goes_straight_and_faster(driver) -> None:
    steering, speed = driven(driver, corridor(0.0, 0.0))
    assert abs(steering) < 0.1
    assert speed > 2.3


def test_it_turns_along_a_corridor_that_it_is_not_in_line_with(driver) -> None:
    assert driven(driver, corridor(0.0, 0.5))[0] < -0.1
    assert driven(driver, corridor(0.0, -0.5))[0] > 0.1


def test_it_brakes_before_a_wall(driver) -> None:
    wall = np.where(np.abs(ANGLES) < 1.2, 1.6 / np.maximum(np.cos(ANGLES), 0.3), corridor(0.0, 0.0))
    closed = np.minimum(wall, corridor(0.0, 0.0)).astype(np.float32)
    assert driven(driver, closed, speed=4.0)[1] < 3.5
    assert driven(driver, corridor(0.0, 0.0), speed=4.0)[1] > 4.0


def test_a_plan_at_a_constant_acceleration_across_is_a_circle(driver) -> None:
    """At 3 m/s and 3 m/s² across, the radius is 3 m: walls on that circle cost, one beside it does not."""
    plan = np.zeros((1, SAMPLING.steps, 2), np.float32)
    plan[..., 0] = 3.0
    turn = 0.1 * SAMPLING.steps * 1.0  # rad, at v / r = 1 rad/s
    end = 3.0 * np.float32([[np.sin(turn), 1 - np.cos(turn)]])
    speed = np.float32([3.0])
    far = driver._cost(plan, end + 50, speed)[0]
    assert far == pytest.approx(-3.0 * 0.1 * SAMPLING.steps, abs=1e-4)  # the metres that it drives
    assert driver._cost(plan, end, speed)[0] > far + 10
    assert driver._cost(plan, end * np.float32([[1.0, -1.0]]), speed)[0] == pytest.approx(far, abs=1e-4)


def test_accelerations_stay_within_the_circle_of_grip(driver) -> None:
    plans = np.random.default_rng(0).normal(0.0, 10.0, (5, 7, 2)).astype(np.float32)
    across, along = driver._allowed(plans)
    assert np.hypot(across, along).max() <= driver.grip * (1 + 1e-6)
    small = 0.01 * plans
    assert np.stack(driver._allowed(small), -1) == pytest.approx(small, abs=1e-6)


def test_numpy_and_torch_agree(driver) -> None:
    given = {"scan": corridor(0.2, 0.1)[None], "wheel_speed": np.float32([[3.0]])}
    state = driver.first_state(1)
    commands, later = driver(given, state)
    other, after = driver({name: torch.from_numpy(value) for name, value in given.items()}, torch.from_numpy(state))
    for name in commands:
        assert other[name].numpy() == pytest.approx(commands[name], abs=1e-3)
    assert after.numpy() == pytest.approx(later, abs=1e-2)


def test_it_drives_a_car_on_a_track_by_its_name() -> None:
    loaded = load("mppi", "car-race")
    fixed = {"track/width": 2.4, "track/kind": 0.0}
    found = rollout(loaded.task, loaded.policy, Conditions(episodes=2, seconds=3.0, fixed=fixed))
    assert found.summary()["contact_free_speed_mean_m_s"] > 1.5
