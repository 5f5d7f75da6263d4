"""The map of diff-follow: native code against torch, where it lies against the room, what people leave, ways."""

from __future__ import annotations

import pytest
import torch
from map_cells import filled_near, places
from torch import Tensor

from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.mobile_base import seen_map
from robo_rl.sim.tasks.mobile_base.follow import DiffFollow
from robo_rl.sim.tasks.mobile_base.local_map import MOVED, OFF
from robo_rl.sim.tasks.mobile_base.seen_map import ACROSS, ALONG, KEPT, SOLID, Frame

Memory = dict[str, Tensor]


def driven(task: DiffFollow, env: VecEnv, steps: int, turn: float) -> tuple[Memory, Tensor]:
    """What robots remember that drive in arcs until they touch something, and where they are."""
    memory = task.first_memory(env.n)
    arc = {"forward_speed": torch.full((env.n, 1), 0.2), "turn_rate": torch.linspace(-turn, turn, env.n)[:, None]}
    for _ in range(steps):
        ended = env.step(arc).ids
        for name, value in task.first_memory(1).items():
            memory[name][ended] = value
        memory = task.remember(memory, env.signals(), arc)
    return memory, env.signals()["position"].clone()


def test_native_code_gives_what_torch_gives_while_the_map_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    task = DiffFollow()
    env, moves = VecEnv(task, 8, seed=5), 0
    commands = {"forward_speed": torch.zeros(8, 1), "turn_rate": torch.zeros(8, 1)}
    memory, _ = driven(task, env, 4, 0.2)
    for _ in range(30):
        env.step({**commands, "forward_speed": torch.full((8, 1), 0.2)})
        signals = env.signals()
        found, seen = task.remember(memory, signals, commands), task.observe(signals, memory)
        with monkeypatch.context() as patch:
            patch.setattr(seen_map, "native", lambda tensor: False)
            expected = task.remember(memory, signals, commands)
            torch.testing.assert_close(seen, task.observe(signals, memory), rtol=0.0, atol=2e-6)
        for name, value in found.items():
            torch.testing.assert_close(value, expected[name], rtol=0.0, atol=1e-6)
        moves += int(((found["map_frame"] - memory["map_frame"])[:, 1:3].abs().amax(1) > 0.1).sum())
        memory = found
    assert moves > 3


def test_a_map_that_has_moved_shows_what_is_filled_where_it_is() -> None:
    """Within a cell of it."""
    task = DiffFollow()
    fixed = {"speed_scale": 1.0, "turn_scale": 1.0, "people/speed": 0.0, "initial/heading": 1.6}
    env = VecEnv(task, 16, seed=2, fixed=fixed)
    memory, place = driven(task, env, 60, 0.1)
    cell = task.map.cell
    frame = Frame(*memory["map_frame"][:, 1:].split(1, -1))
    row, column = frame.cells(place[:, :1], place[:, 1:], cell)
    assert float((row - 0.5 * (ALONG - 1)).abs().max()) <= MOVED + 0.2
    assert float((column - 0.5 * (ACROSS - 1)).abs().max()) <= MOVED + 0.2
    assert float((place - env.plant.rooms.start).norm(dim=-1).max()) > 1.5 * MOVED * cell
    where = places(memory, cell)
    there, inside = filled_near(env.plant.rooms, where)
    people = env.plant.people
    near = where[:, :, :, None] - people[:, None, None]
    inside &= (near.norm(dim=-1) > env.plant.person + 2 * cell).all(-1)
    occupied = (memory["occupied"] > SOLID[1]) & inside
    assert occupied.sum() > 300
    assert float(there[occupied].mean()) > 0.97


def standing(task: DiffFollow, ranges: list[Tensor], told: Tensor) -> Memory:
    """What a robot remembers that stands at 0, looks along x, sees ``ranges`` (beams,) m, and is ``told`` (8, 2) m."""
    signals = {signal.name: torch.zeros(1, *signal.dimensions) for signal in task.spec.signals}
    commands = {command.name: torch.zeros(1, 1) for command in task.spec.commands}
    signals["orientation"][:, 3] = 1.0
    signals["path_points"] = told[None]
    memory = task.first_memory(1)
    for k, scan in enumerate(ranges):
        signals["scan"] = scan[None] + 1e-4 * (k // 2 % 2)
        memory = task.remember(memory, signals, commands)
    return memory


def wall(task: DiffFollow, low: float, high: float, far: float) -> Tensor:
    """(beams,) m, of a wall across at x = ``far``, from y = ``low`` to ``high`` m."""
    angles = task.scan.angle_min + task.scan.angle_increment * torch.arange(60)
    way = (far - task.card.lidar_position[0]) / torch.cos(angles).clamp(min=1e-3)
    met = (way * torch.sin(angles) >= low) & (way * torch.sin(angles) <= high) & (torch.cos(angles) > 0.1)
    return torch.where(met, way.clamp(max=task.scan.range_max), torch.full_like(way, task.scan.range_max))


STRAIGHT = torch.stack([torch.tensor((0.15, 0.3, 0.45, 0.6, 0.8, 1.0, 1.3, 1.6)), torch.zeros(8)], -1)


def test_people_who_walk_away_leave_nothing_and_walls_stay() -> None:
    task = DiffFollow()
    person, behind = wall(task, -0.2, 0.2, 0.8), wall(task, -3.0, 3.0, 1.4)
    both = torch.minimum(person, behind)
    ahead = slice(ALONG // 2 + 2, ALONG // 2 + 7)
    begun = standing(task, [both] * 10, STRAIGHT)["occupied"][0, ahead, ACROSS // 2 - 2 : ACROSS // 2 + 2]
    later = standing(task, [both] * 10 + [behind] * 20, STRAIGHT)["occupied"][0]
    assert float(begun.max()) > SOLID[1]
    assert float(later[ahead, ACROSS // 2 - 2 : ACROSS // 2 + 2].max()) < SOLID[0]
    assert float(later[ALONG // 2 + 7 : ALONG // 2 + 11, ACROSS // 2].max()) > SOLID[1]


def test_the_cost_to_go_is_the_length_of_the_path_where_it_is_free_and_leads_round_what_is_in_its_way() -> None:
    task = DiffFollow()
    nothing = torch.full((60,), task.scan.range_max)
    here, ahead = torch.zeros(1, 2), torch.tensor([[0.0, 0.0, 0.0, 1.0]])
    left, gains = task.map.seen(standing(task, [nothing] * 30, STRAIGHT), here, ahead)
    assert float(left) == pytest.approx(1.6 / task.map.cell, abs=0.6)
    assert float(gains[0, 0]) == pytest.approx(1.0, abs=0.1)
    assert float(gains[0, 4]) < 0.0  # to the left, off the path
    blocked = standing(task, [wall(task, -2.5, 0.4, 0.8)] * 40, STRAIGHT)
    further, gains = task.map.seen(blocked, here, ahead)
    assert float(left) + 1.0 < float(further) < (1.0 + OFF) * (2 * 1.1 + 0.5) / task.map.cell
    assert int(gains[0, 16:].argmax()) in (1, 2, 3, 4)  # ahead and to the left, where the wall ends
    assert float(blocked["value"].min()) >= -2 * seen_map.AWAY / KEPT - 1e-6
