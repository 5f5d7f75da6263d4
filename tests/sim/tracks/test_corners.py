"""Lanes with sharp corners, against plain geometry in numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.car.on_track import CarOnTrack, tightest
from robo_rl.sim.scenes.tracks import INNER, SHARPEST
from robo_rl.sim.tasks.car.race import CarRace

N = 64


@pytest.fixture(scope="module")
def plant() -> CarOnTrack:
    """Half polygons, half rectangles, of all sizes, 1.4 to 4.5 m wide."""
    plant = VecEnv(CarRace(), N, seed=11).plant
    plant.param("track_kind")[:] = 1 + torch.arange(N) / N
    plant.param("track_width")[:] = 1.4 + 3.1 * torch.rand(N, generator=torch.Generator().manual_seed(2))
    plant.refresh(torch.arange(N))
    return plant


def turns(centre: np.ndarray) -> np.ndarray:
    """(p,) rad by which a closed chain (p, 2) turns at its points."""
    way = np.roll(centre, -1, 0) - centre
    before = np.roll(way, 1, 0)
    return np.arctan2(before[:, 0] * way[:, 1] - before[:, 1] * way[:, 0], (before * way).sum(1))


def meets(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Whether the segments of closed chains (p, 2) and (q, 2) cross, (p, q)."""

    def side(start: np.ndarray, end: np.ndarray, point: np.ndarray) -> np.ndarray:
        way = (end - start)[:, None]
        off = point[None] - start[:, None]
        return np.sign(way[..., 0] * off[..., 1] - way[..., 1] * off[..., 0])

    ends = np.roll(a, -1, 0), np.roll(b, -1, 0)
    apart = side(a, ends[0], b) * side(a, ends[0], ends[1]) < 0
    return apart & (side(b, ends[1], a) * side(b, ends[1], ends[0]) < 0).T


def test_walls_do_not_cross_and_a_lane_is_as_wide_as_was_drawn(plant: CarOnTrack) -> None:
    for e in range(N):
        left, right, centre = (
            getattr(plant.tracks, name)[e, :, :2].double().numpy() for name in ("left", "right", "centre")
        )
        for wall, other in ((left, left), (left, right), (right, right), (left, centre), (right, centre)):
            assert not meets(wall, other).any(), e
        width, step = float(plant.param("track_width")[e]), float(plant.tracks.length[e]) / len(centre)
        least = np.linalg.norm(left[:, None] - right, axis=-1).min()
        assert least > width - 0.3 * step  # chains of segments cut corners
        assert sum(turns(centre)) == pytest.approx(np.copysign(2 * np.pi, float(plant.param("track_direction")[e])))


def test_corners_are_as_sharp_as_contracts_tell(plant: CarOnTrack) -> None:
    """What turns by more than 75° within a length of the lane's width, up to 120°; bends to both sides."""
    facts = CarRace().spec.facts["track"]["corners"]
    least = tightest(plant.card)
    assert facts["curvature_max_per_m"] == pytest.approx(1 / least, rel=1e-3)
    assert facts["turn_max_rad"] == SHARPEST
    assert facts["inner_radius_min_m"] == pytest.approx(INNER * least / (0.5 + INNER), abs=1e-4)
    sharp, back = 0, 0
    for e in range(N):
        centre, width = plant.tracks.centre[e, :, :2].double().numpy(), float(plant.param("track_width")[e])
        turn, step = turns(centre) * float(plant.param("track_direction")[e].sign()), plant.tracks.length[e] / 192
        assert np.abs(turn).max() <= 1.03 * step / least
        span = max(1, int(1.4 * width / step))
        within = np.convolve(np.concatenate([turn, turn[:span]]), np.ones(span), "valid")
        sharp += within.max() > np.radians(75)
        back += turn.min() < -0.02
    assert sharp > 0.8 * N
    assert back > 0.2 * N


def test_a_lane_is_the_same_whatever_the_others_are(plant: CarOnTrack) -> None:
    walls = plant.tracks.left.clone()
    plant.refresh(torch.tensor([3, 50]))
    assert torch.equal(plant.tracks.left, walls)


def test_a_car_that_cuts_a_sharp_corner_is_followed(plant: CarOnTrack) -> None:
    """Along the inner wall 0.2 m lead round a corner at once; progress over a lap is the length of the centre line."""
    length, tracks = plant.tracks.length, plant.tracks
    inner = torch.where((plant.param("track_direction") > 0)[:, None, None], tracks.left, tracks.right)[..., :2]
    centre = tracks.centre[..., :2]
    place = centre + 0.49 * plant.param("track_width")[:, None, None] * torch.nn.functional.normalize(
        inner - centre, dim=-1
    )
    along = (place.roll(-1, 1) - place).norm(dim=-1).cumsum(1)
    station, total, steps = torch.zeros(N), torch.zeros(N), int(along[:, -1].max() / 0.2)
    for k in range(1, steps + 1):
        at = torch.searchsorted(along, along[:, -1:] * k / steps)[:, 0] % place.shape[1]
        pose = torch.cat([place[torch.arange(N), at], torch.zeros(N, 1)], 1).mT.contiguous()
        tracks.measure(pose, station, 0 * station, 0 * station)
        total, station = total + tracks.located.moved[:, 0], tracks.located.station[:, 0].clone()
        offset = tracks.located.offset.abs()[:, 0] - 0.5 * plant.param("track_width")
        assert float(offset.max()) < 0
    assert float((total / length - 1).abs().max()) < 0.03


def test_a_car_that_is_turned_round_fails_at_the_price_of_a_contact() -> None:
    """Wide lanes are turned round in, and the way back must not be cheaper than a wall."""
    task = CarRace()
    plant = task.make_plant(3)
    plant.put(torch.arange(3), torch.full((3,), 0.3), torch.zeros(3), torch.tensor([0.0, 1.2, 2.8]), torch.ones(3))
    truth, none = plant.truth(), {name: torch.zeros(3, 1) for name in ("steering_angle", "speed")}
    turned = [False, False, True]
    assert task.failures(truth)["drives backwards"].tolist() == turned
    assert task.reward(truth, none, none)["contact"].tolist() == [float(is_turned) for is_turned in turned]
