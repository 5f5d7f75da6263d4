"""A map of what a lidar sees about a robot, and the way along a planned path on it, as a part of a policy's memory.

The grid of ``seen_map`` goes with the robot: its middle is moved by MOVED cells when the robot is farther from it. The
cost to go is that to the last point of the path that is told. Cells off the path cost more, so the way leads along it
where it is free, and round what is in its way. Beams clear what they pass, so people leave no walls behind.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse.native import build
from robo_rl.sim.tasks.mobile_base import seen_map
from robo_rl.sim.tasks.mobile_base.seen_map import ACROSS, ALONG, AWAY, DEEP, KEPT, Frame, SeenMap, address

MOVED = 4
"""Cells from the grid's middle, beyond which it is moved by so many."""
CLEARED, BETWEEN = 6, 1.5
"""Places on every beam, so many cells apart, that are free if the beam passes them."""
CLEARING = 0.3
"""Part of the occupancy that a beam takes away with each control step."""
OFF = 0.25
"""Times its length that a way off the path costs, added to it."""
MARKED = 2.0
"""Weight of a point of the path in the cells about it, which are on the path from a weight of 1 on."""


class LocalMap(SeenMap):
    """What is kept of n robots that follow paths, and what is made of it."""

    cleared = tuple(BETWEEN * k for k in range(1, CLEARED + 1))

    def _moved(self, grid: Any, rows: Any, columns: Any, out: float) -> Any:
        """A grid (n, ALONG, ACROSS) whose middle has moved by MOVED cells, where ``rows`` and ``columns`` (n, 1, 1) are
        1 or -1; ``out`` stands in what was outside."""
        wide = torch.nn.functional.pad(grid, (0, 0, MOVED, MOVED), value=out)
        grid = torch.where(rows > 0.5, wide[:, 2 * MOVED :], torch.where(rows < -0.5, wide[:, : -2 * MOVED], grid))
        wide = torch.nn.functional.pad(grid, (MOVED, MOVED), value=out)
        before, after = wide[:, :, : -2 * MOVED], wide[:, :, 2 * MOVED :]
        return torch.where(columns > 0.5, after, torch.where(columns < -0.5, before, grid))

    def follow(
        self, memory: Any, here: Any, heading: Any, told: Any, scan: Any, pose: Any, changed: Any, turning: Any
    ) -> dict[str, Any]:
        """The blocks after a step, with robots ``here`` (n, 2) m with a ``heading`` (n, 2): cosine and sine.

        ``told`` (n, points, 2) m are the next points of the path, in the world; the rest as for ``remember``.
        """
        if seen_map.native(here):
            return self._follow(memory, here, heading, told, scan, pose, changed, turning)
        kept = memory["map_frame"]
        frame = Frame(*torch.where(kept[:, :1] > 0.5, kept[:, 1:], torch.cat([here, heading], -1)).split(1, -1))
        frame, rows, columns = self._middle(frame, here)
        occupied = self._moved(memory["occupied"], rows[..., None], columns[..., None], 0.0)
        hits, free = self._beams(frame, scan, pose, changed, turning)
        occupied = torch.maximum(self.kept * (1.0 - CLEARING * free) * occupied, hits)
        row, column = self._weights(*frame.cells(here[:, :1], here[:, 1:], self.cell))
        occupied = occupied * (1.0 - row.mT @ column)
        x, y = (torch.cat([here[:, k : k + 1], told[..., k]], -1) for k in range(2))
        x, y = (torch.cat([way, 0.5 * (way[:, :-1] + way[:, 1:])], -1) for way in (x, y))
        row, column = self._weights(*frame.cells(x, y, self.cell))
        mark = torch.clamp(MARKED * (row.mT @ column), max=1.0).flatten(1)
        near = torch.maximum(seen_map.highest_beside(mark), mark)
        straight, end = self._ends(frame, told[:, -1])
        value = KEPT * self._moved(memory["value"], rows[..., None], columns[..., None], -2.0 * AWAY / KEPT)
        value = torch.where(kept[:, :1, None] > 0.5, value, -straight)
        return {
            "map_frame": torch.cat([0.0 * kept[:, :1] + 1.0, *frame], -1),
            "occupied": occupied,
            "value": self._after_sweeps(value, occupied, self.edge + OFF * (1.0 - near), end),
        }

    def _middle(self, frame: Frame, here: Any) -> tuple[Frame, Any, Any]:
        """Where the grid lies now, and in which directions (n, 1) along and across it was moved: 1, 0 or -1."""
        along, across = frame.cells(here[:, :1], here[:, 1:], self.cell)
        off = along - 0.5 * (ALONG - 1), across - 0.5 * (ACROSS - 1)
        zero = 0.0 * off[0]
        rows, columns = (torch.where(x > MOVED, zero + 1.0, torch.where(x < -MOVED, zero - 1.0, zero)) for x in off)
        step = MOVED * self.cell
        x = frame.x + step * (rows * frame.cosine - columns * frame.sine)
        y = frame.y + step * (rows * frame.sine + columns * frame.cosine)
        return Frame(x, y, frame.cosine, frame.sine), rows, columns

    def _follow(self, memory: Any, *given: Tensor) -> dict[str, Any]:
        """As ``follow``, in native code."""
        (n, beams), points = given[3].shape, given[2].shape[1]
        before = [memory[block.name].contiguous() for block in self.memory]
        after = [torch.empty_like(part) for part in before]
        read = (*before, *(part.contiguous() for part in given), self.directions, self.edge)
        figures = self.cell, self.reach, self.forward, self.kept, DEEP * self.cell
        _library().remember_local(n, beams, points, *map(address, read), *figures, *map(address, after))
        return {block.name: part for block, part in zip(self.memory, after, strict=True)}


@functools.cache
def _library() -> Any:
    code = "".join(Path(__file__).with_name(name).read_text() for name in ("seen_map.cpp", "local_map.cpp"))
    own = {"MOVED": MOVED, "CLEARED": CLEARED, "BETWEEN": BETWEEN, "CLEARING": CLEARING, "OFF": OFF, "MARKED": MARKED}
    library = build(code, *seen_map.figures(), *seen_map.defined(own), "-O3", "-ffinite-math-only")
    pointer, whole, number = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
    library.remember_local.argtypes = [whole] * 3 + [pointer] * 12 + [number] * 5 + [pointer] * 3
    library.remember_local.restype = None
    return library
