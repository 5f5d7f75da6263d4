"""Rooms full of obstacles, one of its own for each of many environments, and what a robot in them measures.

After Perille et al. 2020 (Benchmarking metric ground navigation, the BARN dataset): square cells between the start and
the goal are filled at random and smoothed by a cellular automaton of two to four rounds (five filled neighbours of
eight fill a cell, one or none clears it). A room without a way from start to goal is drawn again, with fewer filled
cells; a way keeps a cell's distance from whatever is filled. All is made of one draw, so that every episode can have a
room that was never seen before.

Distances of a lidar's beams to the squares are exact, and so is the clearance of a round robot. Native code
(``kernel.cpp``), compiled as ``robo_rl.sim.accelerate.fuse`` compiles.
"""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse import empty_block
from robo_rl.sim.accelerate.fuse.native import build
from robo_rl.sim.scenes.tracks import Lidar

COLUMNS, ROWS = 24, 34
"""Cells to the sides and along the room, walls included."""
STRIP = 4
"""Rows at either end that are free: for start and goal."""
POINTS = 192
"""Of a planned path; the last one is repeated."""
LONGER = 1.3
"""× the shortest way, at most, because of obstacles that are not on the map."""
FEW = 128
"""Environments that are not worth a second thread."""


@dataclass(frozen=True)
class Located:
    """Where n robots are in their rooms, live views."""

    clearance: Tensor
    """(n, 1) m between robot and obstacles, 0 when they touch; at most three cells."""
    path: Tensor
    """(n, 1) m, the length of the shortest way to the goal; narrow passages count three times."""
    ahead: Tensor
    """(n, 2) m: x, y in the robot's frame of a point of that way, three cells ahead."""


def ends(start: Tensor, goal: Tensor, cell: float) -> tuple[Tensor, Tensor]:
    """Places (m, 2) m of start and goal, each at a part (m,) of the room's free width, in rooms of such cells."""
    places = []
    for part, row in ((start, 2.5), (goal, ROWS - 2.5)):
        across = cell * (2.0 + (COLUMNS - 4) * part)
        places.append(torch.stack([across, torch.full_like(across, cell * row)], -1))
    return places[0], places[1]


def drawn(text: str) -> Tensor:
    """(ROWS, COLUMNS) cells of a room drawn in text: one line a row, the last of them the first row, # what is filled.

    Whatever is drawn lies inside the walls, which are not: ROWS − 2 lines of COLUMNS − 2 letters. ValueError else.
    """
    lines = text.strip("\n").split("\n")
    wrong = [k for k, line in enumerate(lines, 1) if len(line) != COLUMNS - 2 or set(line) - set("#.")]
    if len(lines) != ROWS - 2 or wrong:
        where = f"line {wrong[0]} is {lines[wrong[0] - 1]!r}" if wrong else f"there are {len(lines)} lines"
        expected = f"{ROWS - 2} lines of {COLUMNS - 2} letters, # for walls and . for none"
        raise ValueError(f"maze: {where}; expected {expected}")
    inside = torch.tensor([[letter == "#" for letter in line] for line in reversed(lines)], dtype=torch.uint8)
    cells = torch.ones(ROWS, COLUMNS, dtype=torch.uint8)
    cells[1:-1, 1:-1] = inside
    return cells


class Rooms:
    """The rooms of n environments. x is across, y from start to goal, from a corner."""

    def __init__(self, n: int, lidar: Lidar, radius: float, cell: float) -> None:
        """``radius`` (m) of the robot; ``cell`` (m) is the side of one."""
        self.n, self.radius, self.cell, self._lidar = n, radius, cell, lidar
        self.cells = torch.zeros(n, ROWS, COLUMNS, dtype=torch.uint8)
        """1 where it is filled; 2 where that is not on the map, 3 where a person filled it
        (``robo_rl.sim.scenes.rooms.edits``)."""
        self.way = torch.zeros(n, ROWS + 1, COLUMNS + 1)
        """m to the goal from the corners of cells, along corners that are a cell or more from what is filled, three
        times where it is less than two; 1e6 and more where there is none."""
        self.start, self.goal = torch.zeros(2, n, 2).unbind(0)
        """(n, 2) m."""
        self.planned = torch.zeros(n, POINTS, 2)
        """m, x and y of the paths that ``clutter`` plans."""
        self.outline = torch.zeros(n, ROWS * COLUMNS, 3)
        """(n, cells, 3) m: lines round all that is filled, each as its two ends and NaN; for pictures."""
        self.block, parts = empty_block(n, [(1,), (1,), (2,)])
        self.located = Located(*parts)
        self._ranges, (self.ranges,) = empty_block(n, [(lidar.beams,)])
        """(n, beams) m."""

    def make(self, ids: Tensor, seed: Tensor, fill: Tensor, start: Tensor, goal: Tensor) -> None:
        """New rooms of the environments ``ids`` (m,): ``seed`` (m, 2) any numbers, ``fill`` (m,) part of the cells.

        ``start`` and ``goal`` (m, 2) m are on the lines that ``ends`` gives.
        """
        ids, seed, fill = ids.contiguous(), seed.contiguous(), fill.contiguous()
        self.start[ids], self.goal[ids] = start, goal
        parts = (self.start, self.goal, self.cells, self.way, self.outline)
        _library().make(len(ids), *map(_at, (ids, seed, fill, *parts)), self.cell)

    def clutter(self, ids: Tensor, seed: Tensor, blocks: Tensor) -> None:
        """Plan a path through the rooms of ``ids`` (m,), as they are now, then put obstacles on it.

        The path is the shortest way, smoothed: ``planned``. Of ``blocks`` (m,) obstacles, each one or two cells a side,
        those stay that leave a way of at most LONGER times its length. ``way`` is from then on that round all of them.
        """
        ids, seed, blocks = ids.contiguous(), seed.contiguous(), blocks.contiguous()
        parts = (self.start, self.goal, self.cells, self.way, self.planned, self.outline)
        _library().clutter(len(ids), *map(_at, (ids, seed, blocks, *parts)), self.cell)

    def put(self, ids: Tensor, cells: Tensor, start: Tensor, goal: Tensor) -> None:
        """Rooms whose cells (ROWS, COLUMNS) are given, for the environments ``ids``; see ``drawn``."""
        self.start[ids], self.goal[ids], self.cells[ids] = start, goal, cells.to(torch.uint8)
        self.finish(ids)

    def finish(self, ids: Tensor) -> None:
        """Ways and pictures of the environments ``ids`` (m,), of whose rooms cells or goals were changed."""
        ids = ids.contiguous()
        parts = (ids, self.cells, self.goal, self.way, self.outline)
        _library().finish(len(ids), *map(_at, parts), self.cell)

    def measure(self, pose: Tensor, forward: Tensor, yaw: Tensor, ids: Tensor | None = None) -> None:
        """Write ``located`` and ``ranges``, of all environments or of ``ids`` (m,).

        ``pose`` (3, n): x, y (m) and heading (rad). ``forward`` (n,) m and ``yaw`` (n,) rad: how the lidar is mounted.
        """
        m = self.n if ids is None else len(ids)
        ids = None if ids is None else ids.contiguous()
        threads = max(1, min(torch.get_num_threads(), m // FEW))
        _library().measure(
            self.n, m, None if ids is None else _at(ids), *map(_at, (pose, forward, yaw, self.cells, self.way)),
            ctypes.byref(self._lidar), self.cell, self.radius, _at(self.block), _at(self._ranges), threads,
        )  # fmt: skip


def _at(tensor: Tensor) -> Any:
    return ctypes.c_void_p(tensor.data_ptr())


@functools.cache
def _library() -> Any:
    code = Path(__file__).with_name("kernel.cpp").read_text()
    sizes = {"COLUMNS": COLUMNS, "ROWS": ROWS, "STRIP": STRIP, "POINTS": POINTS, "LONGER": f"{LONGER}f"}
    library = build(code, *(f"-D{name}={value}" for name, value in sizes.items()), "-O3", "-ffinite-math-only")
    pointer, whole, number = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
    library.make.argtypes = [whole, *[pointer] * 8, number]
    library.measure.argtypes = [whole, whole, *[pointer] * 7, number, number, pointer, pointer, ctypes.c_int]
    library.clutter.argtypes = [whole, *[pointer] * 9, number]
    library.finish.argtypes = [whole, *[pointer] * 5, number]
    library.clutter.restype = library.finish.restype = library.make.restype = library.measure.restype = None
    return library
