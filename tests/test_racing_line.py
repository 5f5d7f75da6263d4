"""Racing lines of the benchmark of cars, against circles and by what they promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.car.race import CarRace

ROOT = Path(__file__).parents[1]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import racing_line

    return racing_line


def circle(radius: float, points: int) -> np.ndarray:
    angle = 2 * np.pi * np.arange(points) / points
    return radius * np.column_stack([np.cos(angle), np.sin(angle)])


def test_points_ahead_on_a_circle_are_at_their_distances_along_it(lines) -> None:
    distances = torch.tensor([0.0, 0.5, 2.0, 5.0])
    ring = lines.Lines(torch.tensor(circle(3.0, 720), dtype=torch.float32)[None], distances)
    angle = 5.9  # the points ahead go past the end of the list
    place = torch.tensor([[3 * np.cos(angle), 3 * np.sin(angle)]], dtype=torch.float32)
    found = ring.ahead(place, torch.tensor([[angle + np.pi / 2]], dtype=torch.float32))[0]
    turned = distances / 3
    expected = torch.stack([3 * turned.sin(), 3 * (1 - turned.cos())], -1)
    assert torch.allclose(found, expected, atol=0.02)


def test_the_line_of_least_squared_curvature_in_a_ring_is_its_outer_circle(lines) -> None:
    # of circles of radius R the integral of the squared curvature is 2 π / R
    line = lines.racing_line(circle(3.0, 60), 0.5)
    assert np.linalg.norm(line, axis=1) == pytest.approx(3.5, abs=0.02)
    assert lines.curvature(line) == pytest.approx(1 / 3.5, abs=0.01)


def test_a_racing_line_stays_within_its_bounds_and_bends_less_than_the_centre_line(lines) -> None:
    env = VecEnv(CarRace(), 4, seed=3, fixed={"track/width": 2.0, "track/kind": 0.0})
    for points in env.plant.tracks.centre[..., :2].double().numpy():
        centre = points[:: lines.EVERY]
        line = lines.racing_line(centre, 0.5)
        assert (np.linalg.norm(line - centre, axis=1) <= 0.5 + 1e-9).all()
        squares = [np.square(lines.curvature(x)).mean() for x in (line, centre)]
        assert squares[0] < 0.7 * squares[1]
