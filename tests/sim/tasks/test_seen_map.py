"""The map of diff-nav: native code against torch, ways against Dijkstra's, what is occupied against the room."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from map_cells import filled_near, places
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import dijkstra
from torch import Tensor

from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.mobile_base import seen_map
from robo_rl.sim.tasks.mobile_base.navigate import BEAMS, DiffNav
from robo_rl.sim.tasks.mobile_base.seen_map import ACROSS, ALONG, CLEAR, KEPT, WALL, Frame

Memory = dict[str, Tensor]


def driven(task: DiffNav, env: VecEnv, steps: int) -> tuple[Memory, dict[str, Tensor]]:
    """What robots remember that drive in wide arcs until they touch something, and their last signals."""
    memory = task.first_memory(env.n)
    arc = {"forward_speed": torch.full((env.n, 1), 0.1), "turn_rate": torch.linspace(-0.4, 0.4, env.n)[:, None]}
    for _ in range(steps):
        signals = env.signals()
        memory = task.remember(memory, signals, arc)
        ended = env.step(arc).ids
        for name, value in task.first_memory(1).items():
            memory[name][ended] = value
    return task.remember(memory, env.signals(), arc), env.signals()


def test_native_code_gives_what_torch_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    task = DiffNav()
    env = VecEnv(task, 16, seed=5)
    memory, signals = driven(task, env, 12)
    commands = {"forward_speed": torch.zeros(16, 1), "turn_rate": torch.zeros(16, 1)}
    native = task.remember(memory, signals, commands), task.observe(signals, memory)
    first = task.remember(task.first_memory(16), signals, commands)
    monkeypatch.setattr(seen_map, "native", lambda tensor: False)
    torch.testing.assert_close(native[1], task.observe(signals, memory), rtol=0.0, atol=2e-6)
    for name, value in task.remember(memory, signals, commands).items():
        torch.testing.assert_close(native[0][name], value, rtol=0.0, atol=1e-6)
    for name, value in task.remember(task.first_memory(16), signals, commands).items():
        torch.testing.assert_close(first[name], value, rtol=0.0, atol=1e-5)


def test_values_become_the_lengths_of_the_shortest_ways_round_a_wall() -> None:
    """Dijkstra's, on the same cells: a step costs by the cell in which it begins."""
    task = DiffNav()
    wall = torch.zeros(1, ALONG, ACROSS)
    wall[:, 20, 4:30] = 1.0
    middle = torch.tensor([[0.0, 0.0]])
    goal, scan = torch.tensor([[1.5, 0.0]]), torch.full((1, BEAMS), task.scan.range_max)
    here = torch.tensor([[-1.5, 0.0]])
    memory = {
        "map_frame": torch.tensor([[1.0, *middle[0], 1.0, 0.0]]), "occupied": wall,
        "value": torch.zeros(1, ALONG, ACROSS),
    }  # fmt: skip
    pose = torch.tensor([[-1.5, 0.0, 0.0, 1.0]])
    for _ in range(80):
        memory["occupied"] = wall
        memory = task.map.remember(memory, here, goal, scan, pose, torch.tensor([[True]]), torch.zeros(1, 1))
    cost = np.ones((ALONG, ACROSS))
    solid = wall[0].numpy() > 0.5
    padded = np.pad(solid, 1)
    beside = padded[:-2, 1:-1] | padded[2:, 1:-1] | padded[1:-1, :-2] | padded[1:-1, 2:]
    cost += CLEAR * beside + WALL * solid
    inside = [(i, j) for i in range(1, ALONG - 1) for j in range(1, ACROSS - 1)]
    number = {cell: k for k, cell in enumerate(inside)}
    ways = [
        (number[i, j], number[i + a, j + b], cost[i, j] * math.hypot(a, b) + WALL * beside[i, j] * abs(a * b))
        for i, j in inside for a in (-1, 0, 1) for b in (-1, 0, 1)
        if (a or b) and (i + a, j + b) in number
    ]  # fmt: skip
    begin, end, length = zip(*ways, strict=True)
    count = len(inside)
    row, column = (
        float(x) for x in Frame(*memory["map_frame"][:, 1:].split(1, -1)).cells(*goal.split(1, -1), task.map.cell)
    )
    near = [
        (k, math.hypot(i - row, j - column)) for (i, j), k in number.items() if math.hypot(i - row, j - column) <= 1.0
    ]
    begin, end, length = [*begin, *(k for k, _ in near)], [*end, *[count] * len(near)], [*length, *(d for _, d in near)]
    graph = coo_matrix((length, (end, begin)), shape=(count + 1, count + 1)).tocsr()
    expected = dijkstra(graph, indices=count)[:count]
    found = [-KEPT * float(memory["value"][0, i, j]) for i, j in inside]
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert expected.max() > 35.0


def test_what_is_occupied_stands_where_the_room_is_filled() -> None:
    """Within a cell; and where robots have driven nothing is occupied."""
    task = DiffNav()
    env = VecEnv(task, 24, seed=2, fixed={"speed_scale": 1.0, "turn_scale": 1.0})
    memory, signals = driven(task, env, 30)
    there, inside = filled_near(env.plant.rooms, places(memory, task.map.cell))
    occupied = (memory["occupied"] > 0.5) & inside
    assert occupied.sum() > 500
    assert float(there[occupied].mean()) > 0.97
    ahead, _ = task.map.seen(memory, signals["position"], signals["orientation"])
    straight = (signals["position_setpoint"] - signals["position"]).norm(dim=-1, keepdim=True) / task.map.cell
    assert (ahead > straight - 1.0).all()


@pytest.mark.parametrize("scan", [0.0, 0.12, 3.5, 3.7])
def test_ranges_at_their_limits_and_a_goal_under_the_robot_leave_numbers_finite(scan: float) -> None:
    """A lidar that is covered, one that sees nothing, and goals at the start and far outside of the map."""
    task = DiffNav()
    signals = {signal.name: torch.zeros(3, signal.size) for signal in task.spec.signals}
    commands = {command.name: torch.zeros(3, command.size) for command in task.spec.commands}
    signals["orientation"][:, 3] = 1.0
    signals["position_setpoint"][:] = torch.tensor([[0.0, 0.0], [2.0, 1.0], [100.0, -100.0]])
    memory = task.first_memory(3)
    for step in range(20):
        signals["scan"] = torch.full((3, BEAMS), scan + 1e-3 * (step % 2))
        seen = task.observe(signals, memory)
        memory = task.remember(memory, signals, commands)
        assert seen.isfinite().all()
        assert all(block.isfinite().all() for block in memory.values())
