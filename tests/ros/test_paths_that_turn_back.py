"""Paths there and back, with spurs, and past themselves: progress along them never decreases, and they are driven."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl.controllers.path import AHEAD
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.ros.path_following import FollowedPath, Pose, Rules, inversions
from robo_rl.zoo import located

Corners = Sequence[tuple[float, float]]
THERE_AND_BACK = ((0, 0), (2, 0), (0, 0))
SPUR = ((0, 0), (1.5, 0), (1.5, 0.8), (1.5, 0), (3, 0))
NARROW = ((0, 0), (2, 0), (2, 0.05), (0, 0.05))
ROWS = ((0, 0), (2, 0), (2, 0.15), (0, 0.15), (0, 0.3), (2, 0.3))


def line(corners: Corners, step: float = 0.05) -> np.ndarray:
    parts = [
        np.linspace(a, b, max(2, round(math.dist(a, b) / step)), endpoint=False) for a, b in itertools.pairwise(corners)
    ]
    return np.concatenate([*parts, np.array([corners[-1]], float)])


def followed(points: np.ndarray) -> FollowedPath:
    return FollowedPath(points, Pose(0.0, 0.0, 0.0), np.array(AHEAD), 1.0, Rules())


@pytest.mark.parametrize(
    ("corners", "turns"),
    [
        (THERE_AND_BACK, [(2, 0)]),
        (SPUR, [(1.5, 0.8)]),
        (((0, 0), (1, 0), (0, 0), (1, 0)), [(1, 0), (0, 0)]),
        (((0, 0), (2, 0), (2, 0.3), (0, 0.3)), []),  # rows of a mower
        (((0, 0), (1, 0), (1, 1)), []),
    ],
)
@pytest.mark.parametrize("repeated", [1, 3])
def test_a_path_turns_back_where_it_comes_the_way_it_went(corners: Corners, turns: Corners, repeated: int) -> None:
    points = np.repeat(line(corners), repeated, axis=0)
    jittered = points + np.random.default_rng(0).normal(0.0, 1e-3, points.shape)
    for given in (points, jittered):
        found = given[inversions(given, AHEAD[1])]
        assert len(found) == len(turns)
        np.testing.assert_allclose(found, np.reshape(turns, (len(turns), 2)), atol=0.03)


def test_two_corners_close_together_are_one_turn() -> None:
    assert len(inversions(line(NARROW), AHEAD[1])) == 1


@pytest.mark.parametrize("corners", [THERE_AND_BACK, SPUR, NARROW, ((0, 0), (0.6, 0), (0, 0))])
def test_progress_of_a_robot_that_drives_along_the_path_with_noise_only_grows(corners: Corners) -> None:
    points, random = line(corners, 0.02), np.random.default_rng(0)
    path = followed(points)
    seen = [path.update(Pose(*(place + random.normal(0.0, 0.01, 2)), 0.0)) for place in points]
    left = np.array([one.left for one in seen])
    assert (np.diff(left) <= 1e-9).all()
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    assert np.abs(path.length - along - left).max() < 0.45  # at a turn, and before it, by the inversion's tolerance
    assert seen[-1].arrived
    assert not any(one.arrived for one in seen[: len(seen) // 2])


def test_a_robot_that_is_pushed_back_does_not_lose_its_progress() -> None:
    path = followed(line(((0, 0), (3, 0))))
    for x in np.arange(0.0, 2.0, 0.1):
        reached = path.update(Pose(x, 0.0, 0.0)).left
    assert path.update(Pose(1.2, 0.0, 0.0)).left == reached


@pytest.mark.parametrize("corners", [THERE_AND_BACK, SPUR, ROWS])
def test_the_zoos_policy_drives_there_and_back(corners: Corners) -> None:
    """In an empty room, with the path's own code; the base is a unicycle."""
    policy = Policy.load(located("zoo:diff-follow"), rate_hz=10)
    dt, path, random = policy.contract.control_period, followed(line(corners)), np.random.default_rng(0)
    x = y = h = v = w = 0.0
    for _ in range(round(60 / dt)):
        seen = path.update(Pose(x, y, h))
        if seen.arrived:
            break
        signals = {
            "scan": 3.5 - np.abs(random.normal(0, 0.005, 60)), "position": [x, y],
            "orientation": [0, 0, math.sin(h / 2), math.cos(h / 2)], "wheel_speed": [v],
            "yaw_rate": [w + random.normal(0, 0.002)], "path_points": seen.ahead, "speed_limit": [0.22],
        }  # fmt: skip
        shaped = {s.name: np.reshape(np.float32(signals[s.name]), s.dimensions) for s in policy.contract.signals}
        told = policy.step(shaped)
        v, w = float(told["forward_speed"][0]), float(told["turn_rate"][0])
        h += w * dt
        x, y = x + v * dt * math.cos(h), y + v * dt * math.sin(h)
    assert seen.arrived, (x, y, seen.left)
