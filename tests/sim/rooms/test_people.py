"""People in rooms, and what a lidar sees of them; obstacles that are not on the map."""

from __future__ import annotations

import math

import numpy as np
import torch

from robo_rl.sim.env import VecEnv
from robo_rl.sim.scenes.rooms import LONGER
from robo_rl.sim.scenes.rooms.people import GAP, People, nearest, walk
from robo_rl.sim.tasks.mobile_base.follow import DiffFollow


def test_a_ray_ends_where_a_circle_begins() -> None:
    """Against the roots of the quadratic equation."""
    random = np.random.default_rng(1)
    place, origin = random.uniform(-2, 2, (5, 3, 2)), random.uniform(-2, 2, (5, 2))
    turns = random.uniform(-np.pi, np.pi, (5, 40))
    ways = np.stack([np.cos(turns), np.sin(turns)], -1)
    found = nearest(*(torch.tensor(x) for x in (place,)), 0.4, torch.tensor(origin), torch.tensor(ways))
    for e in range(5):
        for b in range(40):
            expected = [np.inf]
            for centre in place[e]:
                off = origin[e] - centre
                roots = np.roots([1.0, 2 * off @ ways[e, b], off @ off - 0.16])
                if np.isreal(roots).all() and max(roots.real) > 0:
                    expected.append(max(min(roots.real), 0.0))
            if np.hypot(*(place[e] - origin[e]).T).min() > 0.4:
                np.testing.assert_allclose(found[e, b], min(expected), atol=1e-9)


def test_people_touch_no_wall_and_do_not_walk_into_a_robot_that_stands_still() -> None:
    task = DiffFollow()
    env = VecEnv(task, 16, seed=5, fixed={"people/speed": 1.0, "room/blocks": 3.0})
    plant, rooms = env.plant, env.plant.rooms
    walked = torch.zeros(16, 3)
    for k in range(150):
        before = plant.people.clone()
        people = People(plant.people, plant.turns[..., 0], plant.turns[..., 1])
        robot = rooms.start + torch.tensor([0.0, 0.3])
        speed = torch.full((16, 3), 0.22)
        later = walk(people, speed, plant.person, rooms.cells, rooms.cell, robot, task.card.radius, 0.1)
        plant.people.copy_(later.place)
        plant.turns.copy_(torch.stack([later.heading, later.waited], -1))
        walked += (plant.people - before).norm(dim=-1)
        if k == 0:
            continue
        apart = (robot[:, None] - plant.people).norm(dim=-1) - plant.person - task.card.radius
        moved = (plant.people - before).norm(dim=-1) > 0.0
        ahead = ((robot[:, None] - plant.people) * (plant.people - before)).sum(-1) > 0.0
        assert (apart[moved & ahead] >= GAP - 1e-6).all()
        rim = torch.stack([torch.cos(later.heading), torch.sin(later.heading)], -1) * plant.person
        index = ((plant.people + rim)[moved] / rooms.cell).long()
        rows = torch.arange(16)[:, None].expand(16, 3)[moved]
        assert (rooms.cells[rows, index[:, 1], index[:, 0]] == 0).float().mean() > 0.95  # but who just turned
    assert walked.mean() > 1.0
    assert not torch.isnan(plant.people).any()


def test_obstacles_that_the_map_lacks_lie_on_the_path_and_leave_a_way() -> None:
    """The way round them is at most LONGER times that on the map, which the path's length shows."""
    env = VecEnv(DiffFollow(), 64, seed=2, fixed={"room/blocks": 4.0})
    rooms = env.plant.rooms
    added = (rooms.cells == 2).flatten(1).sum(1)
    assert 1.0 < float(added.float().mean()) < 10.0
    way = env.plant.truth()["path"][:, 0]
    assert float(way.max()) < 100.0
    clear = VecEnv(DiffFollow(), 64, seed=2, fixed={"room/blocks": 0.0})
    assert (clear.plant.rooms.cells < 2).all()
    assert torch.equal(clear.plant.rooms.planned, rooms.planned)  # the plan does not know them
    assert (way <= LONGER * clear.plant.truth()["path"][:, 0] + 2 * rooms.cell).all()
    ends = rooms.planned[:, -1]
    assert torch.equal(ends, rooms.goal)
    x, y = (rooms.planned / rooms.cell).long().unbind(-1)
    met = rooms.cells.gather(1, y[..., None].expand(-1, -1, rooms.cells.shape[2])).gather(2, x[..., None])[..., 0] == 2
    assert met.any(1).float().mean() > 0.5  # where a block was not in the way, it was beside it
    assert math.isfinite(float(env.signals()["path_points"].sum()))
