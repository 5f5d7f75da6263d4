"""A map of what a lidar has seen, and the way to the goal on it, as a part of a policy's memory.

An occupancy grid whose cells are as wide as those of rooms, 1.5 times the robot's radius. It lies along the line from
where the robot began to its goal, with the middle of that line as its own, and knows only what scans have hit: unseen
places are free. Beside it is the cost to go, the length of the shortest way to the goal from every cell (value
iteration, Bellman 1957): a few sweeps per control step, so that it is never finished and follows what is seen.

All is matrix products, minima and sums, which every runtime has, and continuous in its inputs: a point counts for the
four cells about it by bilinear weights.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from robo_rl.contract import Scan, StateBlock
from robo_rl.sim.accelerate.fuse.native import build

ALONG, ACROSS = 40, 36
"""Cells along the line from start to goal, and across it."""
SWEEPS = 2
"""Of the cost to go per control step."""
WALL = 15.0
"""Times its length that a way costs through what is occupied."""
SOLID = (0.25, 0.5)
"""Occupancy from which on a way costs more, and from which on it costs the most."""
CLEAR = 0.6
"""Times the cost of a way beside what is occupied, added to it."""
FORGOTTEN = 100.0
"""s over which what was seen loses its weight."""
SHARP = 1.5  # rad/s: of a robot that turns so fast, a scan counts for nothing
DEEP = 0.3
"""Cells behind what was hit, where it is noted: obstacles are thick, and gaps stay open."""
GAIN = 1.5
"""Weight of a hit."""
LATE = 0.05  # s, how old a scan is when it comes, on average
DENSE = 1.0  # m, the range from which on a hit has its full weight: nearer hits are several in a cell
AWAY = 40.0
"""Cells, the greatest cost to go."""
KEPT = 1024.0
"""Cells that a value of 1 in memory is: a power of two, so that nothing is rounded."""
AROUND = (16, (1.5, 4.0))
"""Directions and distances (cells) in which the policy sees the cost to go."""


class Frame(NamedTuple):
    """Where the grid lies, (n, 1) each: its middle (m) and its direction, in the world."""

    x: Any
    y: Any
    cosine: Any
    sine: Any

    def cells(self, x: Any, y: Any, cell: float, further: tuple[Any, Any] = (0.0, 0.0)) -> tuple[Any, Any]:
        """Cells along and across, of places (n, k) m that are so much ``further`` in the world than x, y (n, 1)."""
        dx, dy = (x - self.x) + further[0], (y - self.y) + further[1]
        along, across = self.cosine * dx + self.sine * dy, self.cosine * dy - self.sine * dx
        return along / cell + 0.5 * (ALONG - 1), across / cell + 0.5 * (ACROSS - 1)


class SeenMap:
    """What is kept of n robots, and what is made of it."""

    cleared: tuple[float, ...] = ()
    """Places on every beam (cells from the lidar) that are free if the beam passes them."""

    def __init__(self, cell: float, scan: Scan, beams: int, forward: float, period: float) -> None:
        """``cell`` (m); a ``scan`` of so many beams, by a lidar so far ``forward`` (m); the control ``period`` (s)."""
        self.cell, self.reach, self.forward = cell, scan.range_max, forward
        self.kept = math.exp(-period / FORGOTTEN)
        angles = scan.angle_min + scan.angle_increment * torch.arange(beams)
        self.directions = torch.stack([torch.cos(angles), torch.sin(angles)])  # (2, beams)
        count, distances = AROUND
        turns = 2 * math.pi / count * torch.arange(count)
        self.ring = torch.cat([r * torch.stack([torch.cos(turns), torch.sin(turns)], -1) for r in distances])
        self.distances = torch.tensor(distances).repeat_interleave(count)
        edge = torch.ones(ALONG, ACROSS)
        edge[1:-1, 1:-1] = 0.0
        self.edge = 1.0 + 2.0 * AWAY * edge.flatten()
        self.along, self.across = torch.arange(float(ALONG)), torch.arange(float(ACROSS))

    @functools.cached_property
    def memory(self) -> tuple[StateBlock, ...]:
        """Blocks: where the grid lies, what is occupied, and cells to go."""
        size = ALONG * ACROSS
        return (
            StateBlock("map_frame", (5,), (0.0,) * 5),
            StateBlock("occupied", (ALONG, ACROSS), (0.0,) * size),
            StateBlock("value", (ALONG, ACROSS), (0.0,) * size),
        )

    def frame(self, here: Any, goal: Any, kept: Any) -> Frame:
        """Of a grid from ``here`` to ``goal`` (n, 2) m, if there was none: ``kept`` (n, 5) is 0 at first."""
        way = goal - here
        length = torch.sqrt(way.square().sum(-1, keepdim=True) + 1e-4)
        new = torch.cat([0.5 * (here + goal), way / length], -1)
        x, y, cosine, sine = torch.where(kept[:, :1] > 0.5, kept[:, 1:], new).split(1, -1)
        return Frame(x, y, cosine, sine)

    def _weights(self, along: Any, across: Any) -> tuple[Any, Any]:
        """(n, k, ALONG) and (n, k, ACROSS): bilinear weights of points."""
        rows = torch.clamp(1.0 - torch.abs(along[..., None] - self.along), min=0.0)
        columns = torch.clamp(1.0 - torch.abs(across[..., None] - self.across), min=0.0)
        return rows, columns

    def remember(
        self, memory: Any, here: Any, goal: Any, scan: Any, pose: Any, changed: Any, turning: Any
    ) -> dict[str, Any]:
        """The blocks after a step, with robots ``here``, ``goal`` (n, 2) m, that turn at ``turning`` (n, 1) rad/s.

        ``scan`` (n, beams) m came in the ``pose`` (n, 4): x, y (m), z and w of its quaternion. Every second beam counts
        in the step in which it has ``changed`` (n, 1), the others in later ones.
        """
        if native(here):
            return self._remember(memory, here, goal, scan, pose, changed, turning)
        frame = self.frame(here, goal, memory["map_frame"])
        seen, _ = self._beams(frame, scan, pose, changed, turning)
        rows, columns = self._weights(*frame.cells(here[:, :1], here[:, 1:], self.cell))
        occupied = torch.maximum(self.kept * memory["occupied"], seen) * (1.0 - rows.mT @ columns)
        straight, end = self._ends(frame, goal)
        value = torch.where(memory["map_frame"][:, :1, None] > 0.5, KEPT * memory["value"], -straight)
        return {
            "map_frame": torch.cat([0.0 * memory["map_frame"][:, :1] + 1.0, *frame], -1),
            "occupied": occupied,
            "value": self._after_sweeps(value, occupied, self.edge, end),
        }

    def _beams(self, frame: Frame, scan: Any, pose: Any, changed: Any, turning: Any) -> tuple[Any, Any]:
        """(n, ALONG, ACROSS) between 0 and 1: what every second beam has hit; and what it has passed, if that is asked
        for by ``cleared``."""
        z, w = pose[:, 2:3], pose[:, 3:4]
        scan = torch.where(changed, scan[:, ::2], scan[:, 1::2])
        cosines, sines = (torch.where(changed, x[::2], x[1::2]) for x in self.directions)
        late = LATE * turning
        cosine, sine = 1.0 - 2.0 * z * z, 2.0 * z * w
        cosine, sine = cosine + late * sine, sine - late * cosine
        slow = torch.clamp(1.0 - torch.abs(turning) / SHARP, min=0.0)

        def weights(far: Any, cosines: Any, sines: Any) -> tuple[Any, Any]:
            x, y = far * cosines + self.forward, far * sines
            further = cosine * x - sine * y, sine * x + cosine * y
            return self._weights(*frame.cells(pose[:, :1], pose[:, 1:2], self.cell, further))

        rows, columns = weights(scan + DEEP * self.cell, cosines, sines)
        hit = GAIN * slow * torch.clamp(20.0 * (self.reach - scan) - 1.0, 0.0, 1.0) * torch.clamp(scan / DENSE, max=1.0)
        seen = torch.clamp((rows * hit[..., None]).mT @ columns, max=1.0)
        if not self.cleared:
            return seen, None
        free = []
        for far in self.cleared:
            rows, columns = weights(far * self.cell, cosines, sines)
            passed = slow * torch.clamp(scan / self.cell - (far + 1.0), 0.0, 1.0)
            free.append((rows * passed[..., None], columns))
        rows, columns = (torch.cat(part, 1) for part in zip(*free, strict=True))
        return seen, torch.clamp(rows.mT @ columns, max=1.0)

    def _ends(self, frame: Frame, goal: Any) -> tuple[Any, Any]:
        """(n, ALONG, ACROSS) cells to the ``goal`` (n, 2) m, straight; and the values at least, that are above only
        within a cell of it."""
        aim = frame.cells(goal[:, :1], goal[:, 1:], self.cell)
        row = torch.clamp(aim[0], 0.0, ALONG - 1.0)[..., None] - self.along[:, None]
        column = torch.clamp(aim[1], 0.0, ACROSS - 1.0)[..., None] - self.across
        straight = torch.sqrt(row.square() + column.square())
        return straight, -straight - AWAY * torch.clamp(straight - 1.0, min=0.0)

    def _after_sweeps(self, value: Any, occupied: Any, base: Any, end: Any) -> Any:
        """Values in memory, some sweeps after ``value`` (n, ALONG, ACROSS) cells. A step costs ``base`` (…, cells), and
        more where it is ``occupied``."""
        solid = torch.clamp((occupied - SOLID[0]) / (SOLID[1] - SOLID[0]), 0.0, 1.0).flatten(1)
        beside = highest_beside(solid)
        cost = CLEAR * beside + WALL * solid + base
        across = math.sqrt(2.0) * cost + WALL * beside
        value, end = value.flatten(1), end.flatten(1)
        for _ in range(SWEEPS):
            value = torch.maximum(_swept(value, cost, across), end)
        return (value / KEPT).unflatten(1, (ALONG, ACROSS))

    def _remember(self, memory: Any, *given: Tensor) -> dict[str, Any]:
        """As ``remember``, in native code."""
        n, beams = given[2].shape
        before = [memory[block.name].contiguous() for block in self.memory]
        after = [torch.empty_like(part) for part in before]
        here, goal, scan, pose, changed, turning = (part.contiguous() for part in given)
        read = (*before, here, goal, scan, pose, changed, turning, self.directions, self.edge)
        figures = self.cell, self.reach, self.forward, self.kept, DEEP * self.cell
        _library().remember(n, beams, *map(address, read), *figures, *map(address, after))
        return {block.name: part for block, part in zip(self.memory, after, strict=True)}

    def _higher(self, value: Any, base: Any, row: Any, column: Any) -> Any:
        """(n, k): by how much values in memory (n, ALONG, ACROSS) at cells along and across (n, k) are above ``base``
        (n, 1), in cells."""
        if native(row):
            value, base, row, column = (part.contiguous() for part in (value, base, row, column))
            found = torch.empty_like(row)
            _library().higher(*row.shape, *map(address, (value, base, row, column, found)))
            return found
        rows, columns = self._weights(row, column)
        return ((rows @ (KEPT * value - base[..., None])) * columns).sum(-1)

    def seen(self, memory: Any, here: Any, orientation: Any) -> tuple[Any, Any]:
        """(n, 1) cells to go from ``here`` (n, 2) m, and (n, directions · distances) what is gained by going there.

        The latter is over the distance, so that it is 1 on the straight way.
        """
        z, w = orientation[:, 2:3], orientation[:, 3:4]
        cosine, sine = 1.0 - 2.0 * z * z, 2.0 * z * w
        known, *frame = memory["map_frame"].split(1, -1)
        frame = Frame(*frame)
        row, column = frame.cells(here[:, :1], here[:, 1:], self.cell)
        ahead = frame.cosine * cosine + frame.sine * sine
        side = frame.cosine * sine - frame.sine * cosine
        row = torch.cat([row, row + ahead * self.ring[:, 0] - side * self.ring[:, 1]], -1)
        column = torch.cat([column, column + side * self.ring[:, 0] + ahead * self.ring[:, 1]], -1)
        row, column = torch.clamp(row, 0.0, ALONG - 1.0), torch.clamp(column, 0.0, ACROSS - 1.0)
        here_value = self._higher(memory["value"], 0.0 * known, row[:, :1], column[:, :1])
        # differences of large numbers, which runtimes round differently, are small numbers' first
        higher = known * self._higher(memory["value"], here_value, row, column)
        gained = (higher[:, 1:] - higher[:, :1]) / self.distances
        return -known * here_value, torch.clamp(gained, -3.0, 1.5)


def highest_beside(cells: Any) -> Any:
    """(n, cells): the highest of the four beside each."""
    wide = torch.nn.functional.pad(cells, (ACROSS + 1, ACROSS + 1))
    return torch.maximum(
        torch.maximum(wide[:, ACROSS : -ACROSS - 2], wide[:, ACROSS + 2 : -ACROSS]),
        torch.maximum(wide[:, 1 : -2 * ACROSS - 1], wide[:, 2 * ACROSS + 1 : -1]),
    )


def _swept(value: Any, straight: Any, across: Any) -> Any:
    """Values (n, cells) one sweep later, at what steps cost to the sides and across."""
    wide = torch.nn.functional.pad(value, (ACROSS + 1, ACROSS + 1), value=-2.0 * AWAY)
    beside = torch.maximum(wide[:, :-2], wide[:, 2:])
    best = torch.maximum(wide[:, 1 : -2 * ACROSS - 1], wide[:, 2 * ACROSS + 1 : -1])
    best = torch.maximum(best, beside[:, ACROSS:-ACROSS])
    corner = torch.maximum(beside[:, : -2 * ACROSS], beside[:, 2 * ACROSS :])
    return torch.clamp(torch.maximum(best - straight, corner - across), min=-2.0 * AWAY)


def native(tensor: Any) -> bool:
    """Whether native code computes on it. A graph that is exported has the formulas in torch."""
    return not torch.compiler.is_compiling() and tensor.device.type == "cpu" and not tensor.requires_grad


def address(tensor: Tensor) -> Any:
    """Of a tensor's numbers, for native code."""
    return ctypes.c_void_p(tensor.data_ptr())


def figures() -> list[str]:
    """Options for the compiler: the constants of this file that native code has, too."""
    constants = {
        "ALONG": ALONG, "ACROSS": ACROSS, "SWEEPS": SWEEPS, "WALL": WALL, "SOFT": SOLID[0], "HARD": SOLID[1],
        "CLEAR": CLEAR, "SHARP": SHARP, "GAIN": GAIN, "LATE": LATE, "DENSE": DENSE, "AWAY": AWAY,
        "KEPT": KEPT,
    }  # fmt: skip
    return defined(constants)


def defined(constants: Mapping[str, float]) -> list[str]:
    """Options for the compiler."""
    return [f"-D{name}={value}{'f' * isinstance(value, float)}" for name, value in constants.items()]


@functools.cache
def _library() -> Any:
    code = Path(__file__).with_name("seen_map.cpp").read_text()
    library = build(code, *figures(), "-O3", "-ffinite-math-only")
    pointer, whole, number = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
    library.remember.argtypes = [whole, whole, *[pointer] * 11, *[number] * 5, *[pointer] * 3]
    library.higher.argtypes = [whole, whole, *[pointer] * 5]
    library.remember.restype = library.higher.restype = None
    return library
