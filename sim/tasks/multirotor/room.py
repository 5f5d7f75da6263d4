"""The room of swarms as it is drawn, and what robots in it know of each other: messages that are late, or lost."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from robo_rl.contract import Signal
from robo_rl.sim.plants.multirotor.swarm import NOWHERE
from robo_rl.sim.ranges import PROBABILITY, Range
from robo_rl.sim.tasks.multirotor.quadrotor import XYZ

TEAM = 8
ROOM = (4.0, 4.0, 2.0)  # m
CELL, COLUMN = 0.5, 0.15  # m: the side of a cell of the floor, and the radius of the column that may stand in it
SIDE = 8  # cells along each wall
LARGEST = 0.1  # m, from a robot's middle to the tips of its propellers
MOST_COLUMNS = 13  # 20 % of the cells
SECONDS, GRACE = 8.0, 1.5  # s: of an episode, and after which a hit counts
ARRIVED = 0.5  # m, from the goal at the end
MESSAGES, LATE, LOST, STALE = 0.05, (0.05, 0.2), 0.2, 0.6
"""s between radio messages, s of their latency, the part that is lost, and s after which one tells nothing any more."""
SEEN = 4  # nearest columns
COLUMNS = slice(7, 7 + 2 * MOST_COLUMNS)  # in a goal: x and y of each, m


def drawn_rooms(drawn: Mapping[str, Tensor]) -> Tensor:
    """(m, 33): goal and start (x, y, z each, m), 1 after a hit, and x and y of all columns.

    The cells are shuffled by the scores that a team's robots draw: the first are those of columns, the next those
    where robots start, the next those of goals. Half of the teams swap: each goes where the next one starts.
    """
    columns, (start, free) = drawn_cells(drawn, 2)
    swaps = drawn["goal/swap"][::TEAM] < 0.5
    goal = torch.where(swaps[:, None, None], start.roll(-1, 1), free)
    return laid_out(goal, start, columns)


def drawn_cells(drawn: Mapping[str, Tensor], times: int) -> tuple[Tensor, list[Tensor]]:
    """Columns (teams, 13, 2) m, and ``times`` places of each robot (teams, 8, 3) m, all in cells of their own."""
    order = drawn["goal/cells"].reshape(-1, SIDE * SIDE).argsort(-1)
    middle = torch.stack([order // SIDE, order % SIDE], -1) * CELL + 0.5 * CELL - 0.5 * SIDE * CELL
    columns, *cells = middle[:, : MOST_COLUMNS + times * TEAM].split([MOST_COLUMNS, *[TEAM] * times], 1)
    heights = drawn["goal/heights"].reshape(-1, TEAM, times).split(1, -1)
    places = [torch.cat([cell, height], -1) for cell, height in zip(cells, heights, strict=True)]
    return counted(columns, drawn["columns"][::TEAM] * SIDE * SIDE), places


def counted(columns: Tensor, count: Tensor) -> Tensor:
    """(teams, 13, 2) m: the first ``count`` (teams,) of columns, at most all; the others are nowhere."""
    there = torch.arange(MOST_COLUMNS, device=count.device) < count.round()[:, None]
    return torch.where(there[:, :, None], columns, NOWHERE)


def laid_out(goal: Tensor, start: Tensor, columns: Tensor, *more: Tensor) -> Tensor:
    """(teams · 8, 33 + …): goal and start (teams, 8, 3) m, 0 for no hit so far, the columns, and ``more``."""
    known = columns.flatten(1)[:, None].expand(-1, TEAM, -1)
    return torch.cat([goal, start, torch.zeros_like(goal[:, :, :1]), known, *more], -1).flatten(0, 1)


def messages() -> tuple[Signal, ...]:
    """What the others' radios say, and how long ago that was."""
    found = []
    for k in range(1, TEAM):
        name = f"peer{k}"
        found += [
            Signal(name, XYZ, "m", "world", -100.0, 100.0, noise=0.01, delay=LATE, shape=(2, 3), period=MESSAGES),
            Signal(f"{name}_age", ("age",), "s", "robot", (0.0,), (10.0,), source="runtime", age_of=name),
        ]
    return tuple(found)


def column_signal() -> Signal:
    """The nearest columns, from a map."""
    return Signal(
        "column_position", ("x", "y"), "m", "world", -100.0, 100.0, noise=0.01, delay=LATE, shape=(SEEN, 2),
        period=MESSAGES,
    )  # fmt: skip


def room_ranges() -> dict[str, Range]:
    """Those of the room and of the radio, and those of quadrotor-rates that are others here."""
    links = [f"peer{k}" for k in range(1, TEAM)]
    return {
        "goal/cells": Range.fixed(0.0, 1.0, count=SIDE * SIDE // TEAM),
        "goal/heights": Range.fixed(0.5, 1.5, count=2, unit="m"),
        "goal/swap": Range.fixed(0.0, 1.0),
        "columns": Range.fixed(0.1, 0.1, unit="× cells", limits=(0.0, MOST_COLUMNS / SIDE**2)),
        "downwash": Range.fixed(0.5, 3.0, unit="×"),
        **{f"delay/{name}": Range.fixed(*LATE, unit="s") for name in (*links, "column_position")},
        **{f"dropout/{name}": Range.fixed(LOST, LOST, limits=PROBABILITY) for name in links},
        "mass": Range.fixed(0.95, 1.05, unit="×"),  # all of one kind, with thrust that is compensated for the battery's
        "thrust": Range.fixed(0.9, 1.1, unit="×"),
        "wind": Range.fixed(-0.3, 0.3, count=3, unit="m/s"),
        "initial/tilt": Range.fixed(0.0, math.pi / 36, unit="rad"),
        "initial/yaw": Range.fixed(-0.2, 0.2, unit="rad"),
        "initial/position": Range.fixed(-0.05, 0.05, count=3, unit="m"),
        "initial/linear_velocity": Range.fixed(-0.1, 0.1, count=3, unit="m/s"),
        "initial/angular_velocity": Range.fixed(-0.2, 0.2, count=3, unit="rad/s"),
    }
