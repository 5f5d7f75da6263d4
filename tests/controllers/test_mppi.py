"""Path integral control against its closed forms, and a base under it in scenes whose answer is known."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from robo_rl.controllers.mobile_base.mppi import PathIntegral
from robo_rl.controllers.mppi import Sampling, draws, improved, shifted, smoothing
from robo_rl.sim.tasks.mobile_base.navigate import BEAMS, PERIOD, DiffNav
from tests.controllers.test_mobile_base import signals


def test_under_a_linear_cost_the_plan_moves_by_the_variance_times_the_slope_over_the_temperature() -> None:
    # E[u exp(−a·u / T)] / E[exp(−a·u / T)] of a normal u with mean m and variance v is m − v a / T
    sampling = Sampling(200_000, 2, (0.3, 0.5), 0.4, 0.0)
    slope = np.float32([[0.3, -0.2], [0.0, 0.4]])
    plan = np.float32([[0.1, 0.2], [-0.3, 0.0]])
    found = improved(plan[None], draws(sampling), lambda plans: np.sum(slope * plans, axis=(2, 3)), sampling)[0]
    wanted = plan - np.square(np.float32([0.3, 0.5])) * slope / 0.4
    assert found == pytest.approx(wanted, abs=5e-3)


def test_the_filter_is_that_of_savitzky_and_golay() -> None:
    from scipy.signal import savgol_filter  # takes seconds

    plan = np.random.default_rng(1).normal(size=(28, 2))
    wanted = savgol_filter(plan, 9, 2, axis=0, mode="nearest")
    assert smoothing(28) @ plan == pytest.approx(wanted, abs=1e-6)


def test_a_plan_moves_up_by_one_step_and_holds_its_end() -> None:
    assert shifted(np.float32([[[1, 2], [3, 4], [5, 6]]])).tolist() == [[[3, 4], [5, 6], [5, 6]]]


@pytest.fixture
def driver() -> PathIntegral:
    task = DiffNav()
    return PathIntegral(task.card.facts(), task.scan, BEAMS, (-0.11, -1.5), (0.22, 1.5), PERIOD, samples=500)


def driven(driver: PathIntegral, given: dict[str, np.ndarray], steps: int = 8) -> tuple[float, float]:
    state = driver.first_state(1)
    for _ in range(steps):
        commands, state = driver(given, state)
    return float(commands["forward_speed"][0, 0]), float(commands["turn_rate"][0, 0])


def test_in_the_open_it_drives_to_the_goal_in_any_frame_of_the_odometry(driver) -> None:
    for heading in (0.0, 1.0, -2.5):
        speed, turn = driven(driver, signals((2 * math.cos(heading), 2 * math.sin(heading)), heading))
        assert speed > 0.15
        assert abs(turn) < 0.15
    assert driven(driver, signals((0.0, 2.0)))[1] > 0.3
    assert driven(driver, signals((0.0, -2.0)))[1] < -0.3


def test_it_does_not_drive_into_a_wall_before_it(driver) -> None:
    given = signals((2.0, 0.0))
    angles = driver.angles
    ahead = np.abs(angles) < 1.2
    given["scan"][0, ahead] = (0.16 - driver.forward) / np.cos(angles[ahead])  # 5.5 cm before the robot's front
    assert driven(driver, given)[0] < 0.03


def test_numpy_and_torch_agree(driver) -> None:
    given = signals((1.0, 2.0), 0.4)
    given["scan"] = np.random.default_rng(0).uniform(0.3, 3.5, (1, BEAMS)).astype(np.float32)
    state = driver.first_state(1)
    commands, later = driver(given, state)
    other, after = driver({name: torch.from_numpy(value) for name, value in given.items()}, torch.from_numpy(state))
    for name in commands:
        assert other[name].numpy() == pytest.approx(commands[name], abs=1e-4)
    assert after.numpy() == pytest.approx(later, abs=1e-4)


def test_a_robot_four_times_as_large_does_the_same_in_a_world_four_times_as_large(driver) -> None:
    task = DiffNav()
    robot, scan = task.card.facts(), task.scan
    large = PathIntegral(
        dataclasses.replace(robot, facts={**robot.facts, "radius": 4 * robot.facts["radius"]}),
        dataclasses.replace(scan, range_max=4 * scan.range_max), BEAMS, (-0.44, -1.5), (0.88, 1.5), PERIOD, samples=500,
    )  # fmt: skip
    near = signals((1.0, 0.5), 0.3)
    near["scan"][:, 10:25] = 0.6
    far = {
        name: value * (4 if name in ("scan", "position", "position_setpoint") else 1) for name, value in near.items()
    }
    speed, turn = driven(driver, near)
    assert driven(large, far) == (4 * speed, turn)
