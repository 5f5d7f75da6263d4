"""Rooms and what is measured in them, against plain geometry and scipy's shortest ways."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import dijkstra

from robo_rl.sim.scenes.rooms import COLUMNS, ROWS, STRIP, Rooms, ends
from robo_rl.sim.scenes.tracks import Lidar

N, BEAMS, CELL, RADIUS, HIGH = 16, 48, 0.15, 0.1, 3.5


def made(fill: float = 0.3, seed: int = 4) -> Rooms:
    random = torch.Generator().manual_seed(seed)
    rooms = Rooms(N, Lidar(BEAMS, -math.pi, 2 * math.pi / BEAMS, 0.05, HIGH), RADIUS, CELL)
    parts = ends(torch.rand(N, generator=random), torch.rand(N, generator=random), CELL)
    rooms.make(torch.arange(N), torch.rand(N, 2, generator=random), torch.full((N,), fill), *parts)
    return rooms


def placed(rooms: Rooms) -> torch.Tensor:
    """(3, n): somewhere in a free cell, in any direction."""
    random = np.random.default_rng(1)
    rows = []
    for cells in rooms.cells.numpy():
        r, c = random.permutation(np.argwhere(cells == 0))[0]
        rows.append([(c + random.uniform(0.05, 0.95)) * CELL, (r + random.uniform(0.05, 0.95)) * CELL])
    heading = random.uniform(-np.pi, np.pi, N)
    return torch.tensor(np.column_stack([rows, heading]).T, dtype=torch.float32).contiguous()


def squares(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corners (k, 2) m of filled cells."""
    low = CELL * np.argwhere(cells)[:, ::-1].astype(float)
    return low, low + CELL


def test_ranges_are_those_of_rays_and_squares() -> None:
    """The slab method of Kay and Kajiya 1986, for every filled cell."""
    rooms = made()
    pose = placed(rooms)
    forward, yaw = torch.full((N,), 0.02), torch.full((N,), 0.1)
    rooms.measure(pose, forward, yaw)
    for e in range(N):
        low, high = squares(rooms.cells[e].numpy())
        x, y, heading = pose[:, e].double().numpy()
        origin = np.array([x + 0.02 * math.cos(heading), y + 0.02 * math.sin(heading)])
        for i in range(BEAMS):
            turn = heading + 0.1 - math.pi + 2 * math.pi / BEAMS * i
            way = np.array([math.cos(turn), math.sin(turn)])
            with np.errstate(divide="ignore"):
                a, b = (low - origin) / way, (high - origin) / way
            enter, leave = np.minimum(a, b).max(1), np.maximum(a, b).min(1)
            met = enter[(enter <= leave + 1e-9) & (leave > 0)]
            expected = np.clip(met.min(), 0.05, HIGH)
            if abs(float(rooms.ranges[e, i]) - expected) > 2e-4:  # a ray through a corner may pass on either side
                grazed = np.abs(enter - leave).min()
                assert grazed < 1e-3, (e, i)


def test_clearance_is_the_distance_of_a_disc_to_the_nearest_square() -> None:
    rooms = made()
    pose = placed(rooms)
    rooms.measure(pose, torch.zeros(N), torch.zeros(N))
    for e in range(N):
        low, high = squares(rooms.cells[e].numpy())
        apart = np.maximum(np.maximum(low - pose[:2, e].numpy(), pose[:2, e].numpy() - high), 0.0)
        expected = max(float(np.hypot(*apart.T).min()) - RADIUS, 0.0)
        found = float(rooms.located.clearance[e, 0])
        assert found == pytest.approx(min(expected, 3 * CELL - RADIUS), abs=1e-5)


def weights(cells: np.ndarray) -> np.ndarray:
    """Of the corners of cells: 0 where one of its four cells is filled, 3 where one of the twelve about those is."""
    padded = np.pad(cells, 2, constant_values=1)
    shape = (ROWS + 1, COLUMNS + 1)
    four, sixteen = np.zeros(shape, int), np.zeros(shape, int)
    for r in range(4):
        for c in range(4):
            part = padded[r : r + ROWS + 1, c : c + COLUMNS + 1]
            sixteen += part
            four += part if r in (1, 2) and c in (1, 2) else 0
    return np.where(four > 0, 0, np.where(sixteen > 0, 3, 1))


def test_ways_are_the_shortest_along_corners_without_a_filled_cell_and_narrow_places_count_three_times() -> None:
    """Against Dijkstra's algorithm in scipy."""
    rooms = made()
    steps = [(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if (r, c) != (0, 0)]
    for e in range(4):
        weight = weights(rooms.cells[e].numpy())
        begins, ends_, lengths = [], [], []
        for r, c in np.argwhere(weight):
            for dr, dc in steps:
                if weight[r + dr, c + dc] and weight[r, c + dc] and weight[r + dr, c]:
                    begins.append(r * (COLUMNS + 1) + c)
                    ends_.append((r + dr) * (COLUMNS + 1) + c + dc)
                    lengths.append(CELL * weight[r, c] * math.hypot(dr, dc))
        graph = coo_matrix((lengths, (ends_, begins)), shape=(weight.size,) * 2).tocsr()
        x, y = np.floor(rooms.goal[e].numpy() / CELL + 0.5).astype(int)
        expected = dijkstra(graph, indices=y * (COLUMNS + 1) + x).reshape(weight.shape)
        found = rooms.way[e].numpy()
        np.testing.assert_allclose(found[np.isfinite(expected)], expected[np.isfinite(expected)], atol=1e-3)
        assert (found[~np.isfinite(expected)] > 1e5).all()


def test_a_robot_that_touches_nothing_sees_the_place_from_which_its_way_is_measured() -> None:
    """The way is never that from the other side of a wall: the straight line to where it begins is free."""
    rooms = made(0.35)
    checked = 0
    for shift in np.random.default_rng(2).uniform(-0.05, 0.05, (20, 2, N)):
        pose = placed(rooms)
        pose[:2] += torch.tensor(shift, dtype=torch.float32)
        rooms.measure(pose, torch.zeros(N), torch.zeros(N))
        for e in (rooms.located.clearance[:, 0] > 0).nonzero()[:, 0].tolist():
            place, ways = pose[:2, e].numpy() / CELL, rooms.way[e].numpy()
            apart = np.hypot(np.arange(COLUMNS + 1) - place[0], (np.arange(ROWS + 1) - place[1])[:, None])
            total = np.where(apart <= 1.6, ways + CELL * apart, 1e6)
            r, c = np.unravel_index(total.argmin(), total.shape)
            if total[r, c] > 1e5:
                continue
            assert float(rooms.located.path[e]) == pytest.approx(total[r, c], abs=1e-3)
            line = place + np.linspace(0, 1, 50)[:, None] * (np.array([c, r]) - place) * 0.999
            assert (rooms.cells[e].numpy()[line[:, 1].astype(int), line[:, 0].astype(int)] == 0).all()
            checked += 1
    assert checked > 100


def test_a_robot_that_follows_the_way_keeps_its_distance_from_all_obstacles() -> None:
    """A third of a cell and more, in every room: each can be crossed."""
    rooms = made(0.35)
    way = rooms.way.numpy()
    place = np.floor(rooms.start.numpy() / CELL + 0.5).astype(int)
    left = np.array([way[e, y, x] for e, (x, y) in enumerate(place)])
    while left.max() > 0:
        lower = place.copy()
        for e, (x, y) in enumerate(place):
            about = way[e, y - 1 : y + 2, x - 1 : x + 2].copy()
            for dy, dx in ((-1, -1), (-1, 1), (1, -1), (1, 1)):  # a step across needs both corners beside it
                if max(way[e, y + dy, x], way[e, y, x + dx]) > 1e5:
                    about[1 + dy, 1 + dx] = 1e6
            dy, dx = np.unravel_index(about.argmin(), about.shape)
            lower[e] += (dx - 1, dy - 1)
        for part in (0.25, 0.5, 0.75, 1.0):
            middle = CELL * ((1 - part) * place + part * lower)
            pose = torch.tensor(np.column_stack([middle, np.zeros(N)]).T, dtype=torch.float32).contiguous()
            rooms.measure(pose, torch.zeros(N), torch.zeros(N))
            assert float(rooms.located.clearance.min()) >= CELL - RADIUS - 1e-5
        now = np.array([way[e, y, x] for e, (x, y) in enumerate(lower)])
        assert (now[left > 0] < left[left > 0]).all()
        place, left = lower, now


@pytest.mark.parametrize("fill", [0.0, 0.3, 0.5, 1.0])
def test_every_room_has_a_way_from_its_start_to_its_goal(fill: float) -> None:
    rooms = made(fill)
    start = torch.cat([rooms.start, torch.zeros(N, 1)], 1).mT.contiguous()
    rooms.measure(start, torch.zeros(N), torch.zeros(N))
    length = rooms.located.path[:, 0]
    assert (length < 100).all()
    assert (length >= (rooms.goal - rooms.start).norm(dim=1) - CELL).all()  # it ends at a corner of the goal's cell
    assert (rooms.located.clearance > 0).all()
    assert (rooms.cells[:, [0, -1]] == 1).all()
    assert (rooms.cells[:, 1:STRIP, 1:-1] == 0).all()


def test_fuller_rooms_have_more_obstacles_and_a_draw_decides_the_room() -> None:
    few, many, again, other = made(0.15), made(0.35), made(0.35), made(0.35, seed=5)
    assert many.cells.sum() > few.cells.sum()
    assert torch.equal(many.cells, again.cells)
    assert not torch.equal(many.cells, other.cells)
    assert len({cells.numpy().tobytes() for cells in many.cells}) == N


def test_some_environments_alone_are_measured_and_made() -> None:
    rooms = made()
    pose, zero = placed(rooms), torch.zeros(N)
    rooms.measure(pose, zero, zero)
    before, cells = rooms.ranges.clone(), rooms.cells.clone()
    ids = torch.tensor([3, 7])
    seed = torch.rand(2, 2, generator=torch.Generator().manual_seed(9))
    rooms.make(ids, seed, torch.full((2,), 0.2), *ends(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 0.5]), CELL))
    rooms.measure(pose, zero, zero, ids)
    others = torch.tensor([e for e in range(N) if e not in ids])
    assert torch.equal(rooms.ranges[others], before[others])
    assert torch.equal(rooms.cells[others], cells[others])
    assert not torch.equal(rooms.cells[ids], cells[ids])


def test_lines_are_all_the_edges_between_what_is_filled_and_what_is_not() -> None:
    rooms = made()
    for cells, lines in zip(rooms.cells.numpy() > 0, rooms.outline.numpy(), strict=True):
        begins, ends_, breaks = lines.reshape(-1, 3, 3).transpose(1, 0, 2)
        there = np.isfinite(begins).all(1)
        assert np.isnan(breaks).all()
        assert np.isfinite(ends_[there]).all()
        found = np.zeros((2, ROWS + 1, COLUMNS + 1), bool)  # edges along x, and along y, by where they begin
        for (x, y, _), (to_x, to_y, _) in zip(begins[there] / CELL, ends_[there] / CELL, strict=True):
            assert (x == to_x) != (y == to_y)
            along = int(y != to_y)
            at = [round(float(v)) for v in (x, y, to_x, to_y)]
            found[along, at[1] : at[3] + 1 - along, at[0] : at[2] + along] = True
        assert (found[0, 1:ROWS, :COLUMNS] == (cells[1:] != cells[:-1])).all()
        assert (found[1, :ROWS, 1:COLUMNS] == (cells[:, 1:] != cells[:, :-1])).all()
        assert found.sum() == (cells[1:] != cells[:-1]).sum() + (cells[:, 1:] != cells[:, :-1]).sum()
