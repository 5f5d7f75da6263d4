"""The maze: what is drawn is what stands, and only its end is rewarded."""

from __future__ import annotations

import contextlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from robo_rl.sim.env import VecEnv
from robo_rl.sim.scenes.rooms import COLUMNS, ROWS, drawn
from robo_rl.sim.tasks.mobile_base.lidar_base import REACHED
from robo_rl.sim.tasks.mobile_base.maze import MAZE, AgvMaze


def test_a_maze_stands_as_it_is_drawn_with_walls_about_it() -> None:
    cells = drawn(MAZE)
    lines = MAZE.strip().split("\n")
    assert cells.shape == (ROWS, COLUMNS)
    assert bool(cells[0].all() and cells[-1].all() and cells[:, 0].all() and cells[:, -1].all())
    for row in range(1, ROWS - 1):
        assert "".join(".#"[int(c)] for c in cells[row, 1:-1]) == lines[ROWS - 2 - row]


@given(st.text(alphabet="#.x \n", max_size=900))
def test_a_drawing_of_another_size_or_with_other_letters_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="maze: "):
        drawn(text)


def test_the_shortest_way_goes_round_the_wall() -> None:
    """From the start at the left through the gap at the right, which begins 16 cells from the left wall."""
    env = VecEnv(AgvMaze(), 4, seed=0)
    rooms = env.plant.rooms
    assert rooms.cells[0].equal(drawn(MAZE))
    path, gap = env.plant.truth()["path"][:, 0], torch.tensor([17 * rooms.cell, 22 * rooms.cell])
    round_it = (gap - rooms.start).norm(dim=1) + (rooms.goal - gap).norm(dim=1)
    assert (path > round_it).all()
    assert (path < 1.3 * round_it).all()


def test_only_the_end_is_rewarded() -> None:
    task = AgvMaze()
    env = VecEnv(task, 8, seed=0)
    for _ in range(10):
        step = env.step({"forward_speed": torch.full((8, 1), 0.1), "turn_rate": torch.zeros(8, 1)})
        assert (step.reward == 0.0).all()
    every = torch.arange(8)
    state = env.plant.state(every)
    near = env.plant.rooms.goal - torch.tensor([0.0, REACHED + 0.005])
    env.plant.set_state(every, state._replace(position=near, heading=torch.full((8, 1), 1.5708)))
    arrived = torch.zeros(8, dtype=torch.bool)
    for _ in range(5):
        step = env.step({"forward_speed": torch.full((8, 1), 0.2), "turn_rate": torch.zeros(8, 1)})
        assert torch.equal(step.reward, torch.where(step.succeeded, task.weights["arrival"], 0.0))
        arrived |= step.succeeded
    assert arrived.all()


def test_another_maze_is_another_text() -> None:
    class Empty(AgvMaze):
        maze = "\n".join(["." * (COLUMNS - 2)] * (ROWS - 2))

    rooms = VecEnv(Empty(), 2, seed=0).plant.rooms
    assert int(rooms.cells[0, 1:-1, 1:-1].sum()) == 0


@pytest.mark.parametrize("gap", [0, 1, 2])
def test_a_maze_without_a_way_for_the_robot_is_refused(gap: int) -> None:
    """A robot is 1.33 letters wide."""

    class Other(AgvMaze):
        maze = MAZE.replace("......################", 10 * "#" + gap * "." + (12 - gap) * "#")

    with pytest.raises(ValueError, match="maze: the robot has no way") if gap < 2 else contextlib.nullcontext():
        Other()
