"""Tracks and what is measured on them, against plain geometry in numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from robo_rl.sim.scenes.tracks import INSIDE, KNOTS, POINTS, Body, Lidar, Tracks

N, BEAMS, ANGLE, HIGH = 24, 90, 4.7, 10.0
BODY = Body(0.02, 0.58, 0.31)
AHEAD = (1.0, 3.0)


def made(n: int, beams: int = BEAMS, first: float = -0.5 * ANGLE, angle: float = ANGLE) -> tuple[Tracks, Tensors]:
    random = torch.Generator().manual_seed(4)

    def draw(low: float, high: float, *shape: int) -> torch.Tensor:
        return low + (high - low) * torch.rand(n, *shape, generator=random)

    tracks = Tracks(n, Lidar(beams, first, angle / (beams - 1), 0.06, HIGH), BODY, AHEAD)
    width = draw(1.4, 2.6)
    tracks.make(torch.arange(n), draw(0, 1, 2 * KNOTS), draw(8, 14), width, draw(-1, 1))
    station = draw(0, 1) * tracks.length
    place, way = tracks.point(torch.arange(n), station)
    side, turn = draw(-0.5, 0.5) * (width - 0.9), draw(-0.6, 0.6)
    normal = torch.stack([-torch.sin(way), torch.cos(way)], -1)
    pose = torch.cat([place + side[:, None] * normal, (way + turn)[:, None]], 1).mT.contiguous()
    return tracks, {"width": width, "station": station, "side": side, "turn": turn, "pose": pose}


Tensors = dict[str, torch.Tensor]


def segments(tracks: Tracks, e: int) -> tuple[np.ndarray, np.ndarray]:
    """Beginnings and ends (2 P, 2) of all segments of the walls."""
    walls = [part[e, :, :2].double().numpy() for part in (tracks.left, tracks.right)]
    return np.concatenate(walls), np.concatenate([np.roll(wall, -1, 0) for wall in walls])


def cast(origin: np.ndarray, angle: float, a: np.ndarray, b: np.ndarray) -> float:
    """The least distance at which a ray meets a segment, by solving for every one."""
    d, e, w = np.array([math.cos(angle), math.sin(angle)]), b - a, a - origin
    with np.errstate(divide="ignore", invalid="ignore"):
        per = d[0] * e[:, 1] - d[1] * e[:, 0]
        t = (w[:, 0] * e[:, 1] - w[:, 1] * e[:, 0]) / per
        u = (w[:, 0] * d[1] - w[:, 1] * d[0]) / per
    met = t[(t > 0) & (u >= 0) & (u <= 1)]
    return min(float(met.min()) if len(met) else HIGH, HIGH)


@pytest.mark.parametrize(("first", "angle"), [(-2.35, 4.7), (0.0, 6.2), (-3.0, 6.2)])
def test_ranges_are_those_of_rays_and_segments(first: float, angle: float) -> None:
    tracks, drawn = made(N, first=first, angle=angle)
    forward, yaw = torch.full((N,), 0.1), torch.full((N,), 0.02)
    tracks.measure(drawn["pose"], drawn["station"], forward, yaw)
    wrong = 0
    for e in range(N):
        x, y, heading = drawn["pose"][:, e].double().tolist()
        origin = np.array([x + 0.1 * math.cos(heading), y + 0.1 * math.sin(heading)])
        beams = first + angle / (BEAMS - 1) * np.arange(BEAMS)
        expected = [cast(origin, heading + 0.02 + beam, *segments(tracks, e)) for beam in beams]
        wrong += int((np.abs(tracks.ranges[e].numpy() - expected) > 2e-3).sum())
    assert wrong <= N * BEAMS // 1000  # a beam that passes within 1e-6 rad of an edge may meet either side


def test_the_clearance_is_the_distance_between_rectangle_and_walls() -> None:
    tracks, drawn = made(200)
    tracks.measure(drawn["pose"], drawn["station"], torch.zeros(200), torch.zeros(200))
    edge = np.linspace(-0.5, 0.5, 59)
    outline = np.concatenate([np.stack([edge, np.full(59, s)], 1) for s in (-0.5, 0.5)])
    outline = np.concatenate([outline, outline[:, ::-1]]) * [BODY.length, BODY.width] + [BODY.middle, 0]
    touching = 0
    for e in range(200):
        x, y, heading = drawn["pose"][:, e].double().tolist()
        turn = np.array([[math.cos(heading), -math.sin(heading)], [math.sin(heading), math.cos(heading)]])
        points = outline @ turn.T + [x, y]
        a, b = segments(tracks, e)
        w = b - a
        t = np.clip(((points[:, None] - a) * w).sum(-1) / (w * w).sum(-1), 0, 1)
        least = np.linalg.norm(points[:, None] - a - t[..., None] * w, axis=-1).min()
        found = float(tracks.located.clearance[e])
        touching += found == 0
        assert found <= least + 1e-4
        assert found >= least - 0.006 or (found == 0 and least < 0.02)
    assert touching < 100


def test_a_car_is_located_where_it_was_put() -> None:
    tracks, drawn = made(N)
    tracks.measure(drawn["pose"], drawn["station"] - 0.3, torch.zeros(N), torch.zeros(N))
    located = tracks.located
    straight = (located.direction[:, 0] - drawn["turn"]).abs() < 0.12  # the chain of segments bends at its points
    assert straight.all()
    assert float((located.offset[:, 0] - drawn["side"]).abs().max()) < 0.02
    moved = torch.remainder(located.moved[:, 0] - 0.3 + 1, 60) - 1
    assert float(moved.abs().max()) < 0.15
    point, _ = tracks.point(torch.arange(N), drawn["station"] + AHEAD[0])
    x, y, heading = drawn["pose"]
    ahead = tracks.located.ahead
    found = torch.stack([
        x + torch.cos(heading) * ahead[:, 0] - torch.sin(heading) * ahead[:, 1],
        y + torch.sin(heading) * ahead[:, 0] + torch.cos(heading) * ahead[:, 1],
    ], -1)  # fmt: skip
    assert float((found - point).norm(dim=1).max()) < 0.15


def test_progress_over_a_lap_is_the_length_of_the_track() -> None:
    tracks, _ = made(4)
    ids, station, total = torch.arange(4), torch.zeros(4), torch.zeros(4)
    for k in range(1, 401):
        place, way = tracks.point(ids, torch.remainder(tracks.length * k / 400, tracks.length))
        tracks.measure(torch.cat([place, way[:, None]], 1).mT.contiguous(), station, station * 0, station * 0)
        total, station = total + tracks.located.moved[:, 0], tracks.located.station[:, 0].clone()
    torch.testing.assert_close(total, tracks.length, rtol=1e-3, atol=1e-2)


def test_bends_are_wide_enough_and_parts_do_not_meet() -> None:
    n = 100
    tracks, drawn = made(n)
    centre = tracks.centre[:, :, :2].double()
    before, after = centre.roll(3, 1), centre.roll(-3, 1)
    u, v, w = centre - before, after - centre, after - before
    area = (u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]).abs()
    radius = u.norm(dim=-1) * v.norm(dim=-1) * w.norm(dim=-1) / (2 * area).clamp(min=1e-9)
    assert float((radius.amin(1) - 0.5 * drawn["width"] - INSIDE).min()) > -0.02
    for e in range(n):
        apart = torch.cdist(tracks.left[e, :, :2], tracks.right[e, :, :2])
        assert float(apart.min()) > 0.93 * float(drawn["width"][e])
    turned = ((after - centre)[..., 1] * (centre - before)[..., 0] - u[..., 1] * v[..., 0]).sum(1) > 0
    assert 0.3 < float(turned.double().mean()) < 0.7
    assert tracks.centre.shape == (n, POINTS, 3)


def test_the_same_draw_makes_the_same_track_whatever_the_others_are() -> None:
    tracks, _ = made(6)
    kept = tracks.left.clone()
    again: Any = made(6)[0]
    assert torch.equal(kept, again.left)
    ids = torch.tensor([4, 2])
    shape = torch.rand(2, 2 * KNOTS, generator=torch.Generator().manual_seed(0))
    tracks.make(ids, shape, torch.full((2,), 9.0), torch.full((2,), 2.0), torch.ones(2))
    others = torch.tensor([0, 1, 3, 5])
    assert torch.equal(tracks.left[others], kept[others])
    assert not torch.equal(tracks.left[ids], kept[ids])
