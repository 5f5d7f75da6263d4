"""Roads with traffic: vehicles follow the models of ``robo_rl.controllers.car.traffic``, keep the rules, and are
measured truly."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from robo_rl.controllers.car.traffic import Idm, Mobil, equilibrium_gap, idm_acceleration, mobil_agrees
from robo_rl.sim.scenes.lanes import FIELDS, KNOTS, WIDE, Body, Lanes

F = {name: k for k, name in enumerate(FIELDS)}
LENGTH = 4.5  # m
ROUND = 400.0  # m, of the road, whose end is its beginning
KEPT = Idm(1.5, 2.0, 1.4, 2.0)


def lanes(n: int, vehicles: int = 31, bends: float = 0.0, crossings: float = 0.0, count: float = 3.0) -> Lanes:
    """Roads without a vehicle on them."""
    made, every = Lanes(n, Body(0.0, 4.5, 1.6), vehicles), torch.arange(n)
    generator = torch.Generator().manual_seed(0)
    part = torch.full((n,), 1.0)
    made.make(every, torch.rand(n, 2, generator=generator), count * part, bends * part, crossings * part)
    made.fill(every, torch.rand(n, 2, generator=generator), 0.0 * part, 12.0 * part)
    made.station[:] = 60.0
    return made


def far_car(made: Lanes) -> Tensor:
    """(8, n): cars that stand 40 m to the right of the roads."""
    x, y, heading = made.line[:, 30].unbind(1)
    car = torch.zeros(8, made.n)
    car[:3] = torch.stack([x + 40 * torch.sin(heading), y - 40 * torch.cos(heading), heading])
    return car


def put(made: Lanes, k: int, s: Tensor | float, lane: int, speed: Tensor | float, desired: float = 14.0) -> None:
    """Let vehicle k be in a lane, with the parameters KEPT; it does not look at other lanes."""
    values = {
        "s": s, "y": (lane + 0.5) * WIDE, "speed": speed, "lane": lane, "road": 0, "desired_speed": desired,
        "headway": KEPT.headway, "acceleration": KEPT.acceleration, "braking": KEPT.braking, "wait": 1e6,
    }  # fmt: skip
    for name, value in values.items():
        made.traffic[:, F[name], k] = value  # type: ignore[call-overload]


def test_a_vehicle_follows_by_the_intelligent_driver_model() -> None:
    n, generator = 200, torch.Generator().manual_seed(1)
    made = lanes(n, 2)
    gap, speed, leader = (torch.rand(n, generator=generator) * x + 0.5 for x in (80.0, 13.0, 13.0))
    put(made, 0, 100.0, 1, speed)
    put(made, 1, 100.0 + LENGTH + gap, 1, leader)
    made.advance(far_car(made), 0.1)
    expected = idm_acceleration(speed.double(), gap.double(), leader.double(), 14.0, KEPT)
    after = torch.clamp(speed.double() + 0.1 * expected, min=0.0)
    torch.testing.assert_close(made.traffic[:, F["speed"], 0].double(), after, atol=1e-4, rtol=1e-4)


def test_a_full_lane_comes_to_the_equilibrium_of_the_model() -> None:
    """Twenty vehicles on a closed lane of 400 m: the analytic speed at a gap of 15.5 m."""
    made = lanes(1, 20, count=2.0)
    for k in range(20):
        put(made, k, 20.0 * k + (3.0 if k % 3 == 0 else 0.0), 0, 5.0)
    car = far_car(made)
    for _ in range(3000):
        made.advance(car, 0.1)
    speed = made.traffic[0, F["speed"]].numpy()
    assert float(np.ptp(speed)) < 0.05
    assert equilibrium_gap(float(speed.mean()), 14.0, KEPT) == pytest.approx(ROUND / 20 - LENGTH, abs=0.1)


def test_vehicles_change_lanes_where_mobil_agrees() -> None:
    """Behind a slower vehicle, with one behind in the only other lane."""
    n, generator = 300, torch.Generator().manual_seed(2)
    made, mobil = lanes(n, 3, count=2.0), Mobil()
    gap, behind, speed, leader, follower = (
        low + (high - low) * torch.rand(n, generator=generator)
        for low, high in ((5.0, 40.0), (2.5, 30.0), (6.0, 13.0), (2.0, 12.0), (4.0, 13.0))
    )
    put(made, 0, 100.0, 0, speed)
    put(made, 1, 100.0 + LENGTH + gap, 0, leader)
    put(made, 2, 100.0 - LENGTH - behind, 1, follower)
    made.traffic[:, F["wait"], 0] = 0.0
    made.advance(far_car(made), 0.01)

    def accelerates(v: Tensor, space: Tensor | float, ahead: Tensor) -> Tensor:
        return idm_acceleration(v.double(), torch.as_tensor(space).double(), ahead.double(), 14.0, KEPT)

    now, then = accelerates(speed, gap, leader), accelerates(speed, 100.0, speed)
    after, before = accelerates(follower, behind, speed), accelerates(follower, 100.0, follower)
    incentive = then - now + mobil.politeness * (after - before)
    clear = (abs(incentive - mobil.threshold) > 0.01) & (abs(after + mobil.safe_braking) > 0.01)
    expected = mobil_agrees(then - now, after, after - before, mobil)
    changed = made.traffic[:, F["lane"], 0] == 1
    assert 30 < int(changed.sum()) < 270
    assert torch.equal(changed[clear], expected[clear])


def overlaps(poses: np.ndarray) -> int:
    """Pairs of vehicles whose rectangles overlap by more than 5 cm (separating axes)."""
    x, y, heading = np.moveaxis(poses, -1, 0)
    dx, dy = x[:, None] - x[:, :, None], y[:, None] - y[:, :, None]
    c, s = np.cos(heading)[:, :, None], np.sin(heading)[:, :, None]
    turn = (
        np.abs(np.cos(heading[:, None] - heading[:, :, None])),
        np.abs(np.sin(heading[:, None] - heading[:, :, None])),
    )
    along, across = np.abs(dx * c + dy * s), np.abs(dy * c - dx * s)
    apart = (along > 2.2 + 2.25 * turn[0] + 0.9 * turn[1]) | (across > 0.85 + 0.9 * turn[0] + 2.25 * turn[1])
    apart |= apart.transpose(0, 2, 1) | np.isnan(along)
    return int((~apart).sum() - apart.shape[0] * apart.shape[1] + np.isnan(x).sum()) // 2


def test_vehicles_never_touch_and_never_pass_a_red_light() -> None:
    n = 48
    made, every, generator = lanes(n, 31), torch.arange(n), torch.Generator().manual_seed(3)

    def drawn(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(n, generator=generator)

    made.make(every, torch.rand(n, 2, generator=generator), drawn(2, 4.99), drawn(0, 1), drawn(1, 2.99))
    made.fill(every, torch.rand(n, 2, generator=generator), drawn(0.6, 1.0), drawn(8, 14))
    car, passed = far_car(made), 0
    count, at, offset, green, red = made.road[:, 4], made.road[:, 6:8], *made.road[:, 8:].split(2, 1)
    for k in range(600):
        before, clock = made.traffic.clone(), made.clock.clone()
        made.advance(car, 0.1)
        front, after = before[:, F["s"]] + LENGTH / 2, made.traffic[:, F["s"]] + LENGTH / 2
        for j in range(2):
            line = (at[:, j] - 6.5)[:, None]
            phase = (clock + offset[:, j]) % (green[:, j] + red[:, j] + 10.0)
            forbidden = ((phase > green[:, j] + 3.0) & (count > j))[:, None]
            over = (before[:, F["road"]] == 0) & (front < line) & (after >= line)
            passed += int((over & forbidden).sum())
        if k % 10 == 0:
            assert overlaps(made.poses(every)) == 0
    assert passed == 0
    moving = made.traffic[:, F["speed"]][made.traffic[:, F["road"]] == 0]
    assert float(moving.mean()) > 3.0


def test_a_car_is_found_where_it_is_on_a_bent_road() -> None:
    n, generator = 400, torch.Generator().manual_seed(4)
    made = lanes(n, 1, bends=1.0)
    s, y, turn = (
        low + (high - low) * torch.rand(n, generator=generator) for low, high in ((60, 340), (0, 10), (-1, 1))
    )
    made.traffic[:, F["s"], 0], made.traffic[:, F["y"], 0], made.traffic[:, F["road"], 0] = s, y, 0.0
    place = torch.from_numpy(made.poses(torch.arange(n))[:, 0])
    car = torch.zeros(8, n)
    car[:3] = place.T
    car[2] += turn
    made.station[:] = s + 3.0
    made.measure(car)
    found = made.located
    assert float((found.station[:, 0] - s).abs().max()) < 0.01
    assert float((found.across[:, 0] - y).abs().max()) < 0.01
    torch.testing.assert_close(found.lane_heading[:, 0], turn, atol=1e-3, rtol=0.0)
    assert bool((found.collision[:, 0] == 1).all())


def test_the_route_follows_the_lane_and_neighbours_are_the_nearest() -> None:
    n = 64
    made, every, generator = lanes(n, 31, bends=1.0), torch.arange(n), torch.Generator().manual_seed(5)
    made.fill(every, torch.rand(n, 2, generator=generator), torch.ones(n), torch.full((n,), 10.0))
    start = made.start(every)
    car = torch.zeros(8, n)
    car[:3] = torch.stack([start.x, start.y, start.heading])
    car[3] = 6.0
    made.station[:] = start.station
    made.measure(car)
    found, others = made.located, made.poses(every)
    c, s = torch.cos(start.heading).numpy()[:, None], torch.sin(start.heading).numpy()[:, None]
    dx, dy = others[..., 0] - start.x.numpy()[:, None], others[..., 1] - start.y.numpy()[:, None]
    x, y = dx * c + dy * s, dy * c - dx * s
    order = np.argsort(np.where(np.isnan(x), np.inf, np.hypot(x, y) * np.where(x < 0, 1.5, 1.0)), axis=1)[:, :8]
    expected = np.stack([np.take_along_axis(v, order, 1) for v in (x, y)], -1)
    valid = found.neighbour_valid.numpy() > 0.5
    np.testing.assert_allclose(found.neighbour_position.numpy()[valid], expected[valid], atol=2e-3)
    assert valid.sum() > 6 * n
    speeds = np.take_along_axis(made.traffic[:, F["speed"]].numpy(), order, 1)
    size = np.hypot(found.neighbour_velocity.numpy()[..., 0] + 6.0, found.neighbour_velocity.numpy()[..., 1])
    np.testing.assert_allclose(size[valid], speeds[valid], atol=2e-3)
    line = made.line.numpy()
    across = (made.road[:, 5].numpy() + 0.5) * WIDE
    for e in range(n):
        edge = line[e, :, :2] + across[e] * np.stack([-np.sin(line[e, :, 2]), np.cos(line[e, :, 2])], -1)
        there = found.route[e].numpy() @ np.array([[c[e, 0], s[e, 0]], [-s[e, 0], c[e, 0]]])
        there += np.array([start.x[e], start.y[e]])
        nearest = np.linalg.norm(there[:, None] - edge[None, : KNOTS - 1], axis=-1).min(1)
        assert float(nearest.max()) < 1.1  # half of what lies between knots, a little stretched


def test_traffic_stops_behind_a_car_that_stands_in_its_lane() -> None:
    made = lanes(8, 1)
    put(made, 0, 60.0, 0, torch.linspace(4.0, 13.0, 8))
    car = torch.zeros(8, 8)
    x, y, heading = made.line[:, 60].unbind(1)
    car[:3] = torch.stack([x - torch.sin(heading) * 1.75, y + torch.cos(heading) * 1.75, heading])
    made.station[:] = 120.0
    for _ in range(300):
        made.advance(car, 0.1)
        made.measure(car)
        assert float(made.located.collision.max()) == 0.0
    assert float(made.traffic[:, F["speed"], 0].max()) < 0.2
    left = 120.0 - LENGTH - made.traffic[:, F["s"], 0]
    assert 1.0 < float(left.min()) <= float(left.max()) < 3.0


def test_the_time_to_collision_is_that_of_rectangles_at_constant_velocities() -> None:
    """Against small steps of time and corners within the other rectangle; whoever is straight behind does not count."""
    n, generator = 400, torch.Generator().manual_seed(4)
    made = lanes(n, 1, count=4.0)
    draw = lambda low, high: low + (high - low) * torch.rand(n, generator=generator)  # noqa: E731
    put(made, 0, 110.0 + draw(-25.0, 25.0), 1, draw(0.0, 14.0))
    place, turn, speed = made.line[:, 55, :2].clone(), draw(-0.3, 0.3), draw(0.0, 14.0)
    car = torch.zeros(8, n)
    y = draw(1.0, 9.0)
    car[0], car[1], car[2], car[3] = place[:, 0], place[:, 1] + y, turn, speed
    made.station[:] = 110.0
    made.measure(car)
    other = torch.from_numpy(made.poses(torch.arange(n)))[:, 0]
    apart, left = other[:, :2] - car[:2].mT, turn
    c, s = torch.cos(left), torch.sin(left)
    x, across = apart[:, 0] * c + apart[:, 1] * s, apart[:, 1] * c - apart[:, 0] * s
    their = made.traffic[:, F["speed"], 0]
    vx, vy = their * c - speed, -their * s
    expected = torch.full((n,), 10.0)
    for k in range(1000, -1, -1):
        t = 0.01 * k
        half = (0.5 * (4.5 + LENGTH * c + 1.8 * s.abs()), 0.5 * (1.6 + LENGTH * s.abs() + 1.8 * c))
        overlap = ((x + vx * t).abs() < half[0]) & ((across + vy * t).abs() < half[1])
        expected[overlap] = t
    behind = (x <= 0) & (across.abs() <= 0.5 * (1.8 + 1.6))
    expected[behind] = 10.0
    found = made.located.time_to_collision[:, 0]
    assert 40 < int((expected < 10.0).sum()) < n - 40
    assert float((found - expected).abs().max()) < 0.02
