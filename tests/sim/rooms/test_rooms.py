"""Rooms and what is measured in them, against plain geometry and scipy's shortest ways."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import dijkstra

from sim.rooms import COLUMNS, ROWS, STRIP, Rooms, ends
from sim.tracks import Lidar

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


def test_ways_are_the_shortest_through_cells_with_free_neighbours() -> None:
    """Against Dijkstra's algorithm in scipy."""
    rooms = made()
    steps = [(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if (r, c) != (0, 0)]
    for e in range(4):
        filled = np.pad(rooms.cells[e].numpy(), 1, constant_values=1).astype(bool)
        beside = sum(np.roll(filled, step, (0, 1)) for step in steps)[1:-1, 1:-1]
        free = ~filled[1:-1, 1:-1] & (beside == 0)
        rows, columns, lengths = [], [], []
        for r, c in np.argwhere(free):
            for dr, dc in steps:
                if free[r + dr, c + dc]:
                    rows.append(r * COLUMNS + c)
                    columns.append((r + dr) * COLUMNS + c + dc)
                    lengths.append(CELL * math.hypot(dr, dc))
        graph = coo_matrix((lengths, (rows, columns)), shape=(ROWS * COLUMNS,) * 2).tocsr()
        x, y = rooms.goal[e].numpy() / CELL
        expected = dijkstra(graph, indices=int(y) * COLUMNS + int(x)).reshape(ROWS, COLUMNS)
        found = rooms.way[e].numpy()
        known = free & np.isfinite(expected)
        np.testing.assert_allclose(found[known], expected[known], atol=1e-3)
        assert (found[free & ~np.isfinite(expected)] > 1e5).all()


@pytest.mark.parametrize("fill", [0.0, 0.3, 0.5, 1.0])
def test_every_room_has_a_way_from_its_start_to_its_goal(fill: float) -> None:
    rooms = made(fill)
    start = torch.cat([rooms.start, torch.zeros(N, 1)], 1).mT.contiguous()
    rooms.measure(start, torch.zeros(N), torch.zeros(N))
    length = rooms.located.path[:, 0]
    assert (length < 100).all()
    assert (length >= (rooms.goal - rooms.start).norm(dim=1) - CELL).all()  # it ends in the middle of the goal's cell
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
