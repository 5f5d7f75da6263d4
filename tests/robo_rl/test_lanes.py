"""A car in traffic goes the way of every other robot: export, checks, firmware, pictures, ROS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.evaluate.evaluation import Conditions, ControllerPolicy, rollout
from robo_rl.report.car import lines
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.car.lanes import CarLanes
from robo_rl.zoo import located

Robo = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def bundle_file() -> Path:
    return located("zoo:car-lanes")


def test_its_policy_does_not_see_the_order_of_neighbours(bundle_file: Path) -> None:
    contract = Bundle.read(bundle_file).contract
    assert [encoder.kind for encoder in contract.network.encoders] == ["attention"]
    random, order = np.random.default_rng(0), np.array([3, 0, 7, 5, 1, 2, 6, 4])
    signals = {
        signal.name: random.uniform(*(0.05 * x for x in signal.bounds)).reshape(signal.dimensions).astype(np.float32)
        for signal in contract.signals
    }
    turned = {name: value[order] if name.startswith("neighbour") else value for name, value in signals.items()}
    first, second = (Policy.load(bundle_file, rate_hz=10).step(given) for given in (signals, turned))
    for name, value in first.items():
        np.testing.assert_allclose(second[name], value, atol=1e-6)


@pytest.mark.release  # an export of such a graph takes half a minute
def test_what_is_trained_and_exported_is_verified(
    trained: Callable[..., Path], exported: Callable[[Path], Path], robo: Robo
) -> None:
    run = trained("car-lanes", "--ppo.updates", "2", "--ppo.environments", "32", "--ppo.horizon", "8")
    assert robo("verify", exported(run), "--episodes", 10, "--min-success", 0)["passed"]


def test_firmware_drives_as_on_the_computer(bundle_file: Path, tmp_path: Path, robo: Robo) -> None:
    made = robo("firmware", bundle_file, "--target", "host", "--out", tmp_path / "c", "--run")
    assert made["passed"]


def test_it_is_drawn_with_its_road_and_the_traffic(bundle_file: Path, tmp_path: Path, robo: Robo) -> None:
    picture = tmp_path / "car.png"
    robo("play", bundle_file, "--picture", picture, "--seconds", 1)
    assert picture.stat().st_size > 5_000


def test_a_report_has_a_map_of_each_route_with_the_line_that_was_driven() -> None:
    task = CarLanes()
    episodes = rollout(task, ControllerPolicy(task), Conditions(6, 0, 2.0, recorded=6))
    *maps, bar = lines(episodes, task.spec.control_period).axes
    assert (len(maps), bar.get_ylabel()) == (6, "speed, m/s")
    for axes in maps:
        right, left = (line.get_xydata() for line in axes.lines[:2])
        width = np.linalg.norm(right - left, axis=1)
        np.testing.assert_allclose(width, 3.5 * round(float(width[0]) / 3.5), atol=1e-3)
        (way,) = axes.collections
        driven = np.array([segment[0] for segment in way.get_segments()])
        away = np.linalg.norm(driven[:, None] - np.concatenate([left, right]), axis=-1).min(1)
        assert 0.5 < float(away.min()) <= float(away.max()) < 7.5


def test_signals_are_within_the_contracts_limits_to_the_end_of_a_route() -> None:
    """A gate on a car brakes at what is beyond them."""
    task, n = CarLanes(), 2
    env, driver = VecEnv(task, n, seed=4, evaluation=True), ControllerPolicy(task)
    state, running, least = driver.initial_state(n), torch.ones(n, dtype=torch.bool), torch.full((n,), 500.0)
    for _ in range(env.episode_steps):
        signals = env.signals()
        for signal in task.spec.signals:
            low, high = (torch.tensor(bound, dtype=torch.float32).flatten() for bound in signal.bounds)
            told = signals[signal.name][running].flatten(1)
            assert ((told >= low) & (told <= high)).all(), signal.name
        least = torch.where(running, torch.minimum(least, signals["route_left"][:, 0]), least)
        commands, state = driver(signals, state)
        step = env.step(commands)
        running &= ~(step.failed | step.succeeded | step.timeout)
        if not running.any():
            break
    assert float(least.min()) < -55.0  # lanes part 60 m before the end


def test_the_simulated_robot_drives_among_others() -> None:
    twins = pytest.importorskip("robo_rl.ros.twins", reason="it comes with the repository")
    twin = twins.make_twin("car-lanes")
    begun = twin.truth()["position"].copy()
    for _ in range(20):
        twin.step({"steering_angle": np.array([0.0], np.float32), "speed": np.array([3.0], np.float32)})
        assert twin.measure()["neighbour_position"].shape == (8, 2)
    assert np.linalg.norm(twin.truth()["position"] - begun) > 2.0
