"""Closed tracks between two walls, one of its own for each of many environments, and what a car measures on them.

A track is drawn: the control points of a closed cubic B-spline lie around a circle at random distances and angles, and
are drawn nearer to it until all bends are wide enough and no part meets another. Walls are half of the track's width
beside its centre line. All is made of one draw, so that every episode can have a track that was never seen before.

Distances of a lidar's beams are exact: walls are chains of segments, each of which is met by the beams between its two
ends (a depth buffer of one dimension, of the segments that face the car), so that the effort grows with the beams that
are seen, not with beams times segments. The clearance is the exact distance between the car's rectangle and the walls.

Lanes with sharp corners, as corridors have, are drawn beside these (``Tracks.make_corners``): polygons and sheared
rectangles with cut corners and bays, whose corners of up to 120° have an inner wall that turns almost on the spot.

Tracks that exist (``robo_rl.sim.scenes.tracks.courses``) are measured in the same way.

Native code (``kernel.cpp``, ``corners.cpp``), compiled as ``robo_rl.sim.accelerate.fuse`` compiles.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse import empty_block
from robo_rl.sim.accelerate.fuse.native import build

if TYPE_CHECKING:
    from robo_rl.sim.scenes.tracks.courses import Course

POINTS = 192
"""Of the centre line and of each wall of tracks that are drawn."""
KNOTS = 11
"""Control points of the centre line."""
INSIDE = 0.5
"""m, the least radius of the inner wall in a bend."""
SHARPEST = 2.1
"""rad, by which a corner turns at most: 120°."""
INNER, ROUNDEST = 0.02, 0.3
"""Least and greatest radius of the inner wall of corners, in widths of the lane."""
FEW = 128
"""Environments that are not worth a second thread."""


class Lidar(ctypes.Structure):
    """A planar lidar: beam i looks at ``first`` + i ``step`` (rad), and measures from ``low`` to ``high`` (m)."""

    _fields_ = [
        ("beams", ctypes.c_int),
        ("first", ctypes.c_float),
        ("step", ctypes.c_float),
        ("low", ctypes.c_float),
        ("high", ctypes.c_float),
    ]


class Body(ctypes.Structure):
    """A car's rectangle: where its middle is, forward of the reference point, its length and width (m)."""

    _fields_ = [("middle", ctypes.c_float), ("length", ctypes.c_float), ("width", ctypes.c_float)]


@dataclass(frozen=True)
class Located:
    """Where n cars are on their tracks, live views."""

    moved: Tensor
    """(n, 1) m along the track since the last time."""
    station: Tensor
    """(n, 1) m along the track, from 0 to its length."""
    offset: Tensor
    """(n, 1) m from the centre line, to the left."""
    direction: Tensor
    """(n, 1) rad, heading relative to the centre line."""
    clearance: Tensor
    """(n, 1) m between car and walls, 0 when they touch; at most 10."""
    ahead: Tensor
    """(n, 2 A) m: x, y in the car's frame of points of the centre line, at given distances along it."""


class Tracks:
    """The tracks of n environments: drawn (``make``), or some of ``courses`` (``lay``)."""

    def __init__(
        self, n: int, lidar: Lidar, body: Body, ahead: Sequence[float] = (), courses: Sequence[Course] = ()
    ) -> None:
        """``ahead`` (A) m: how far along the centre line the points are that are measured."""
        self.n, self._lidar, self._body = n, lidar, body
        self.points = POINTS
        if courses:
            from robo_rl.sim.scenes.tracks.courses import points_of

            self.points = points_of(courses)
            self._courses = [_laid(course, self.points) for course in courses]
            self._backwards = [_laid(course.backwards(), self.points) for course in courses]
        self.centre, self.left, self.right = self._lines = torch.zeros(3, n, self.points, 3)
        """(n, points, 3) m each, z = 0."""
        _, (self.length, self._width) = empty_block(n, [(), ()])
        """(n,) m."""
        self._ahead = torch.tensor(ahead, dtype=torch.float32)
        self.block, parts = empty_block(n, [(1,)] * 5 + [(2 * len(ahead),)])
        self.located = Located(*parts)
        self._ranges, (self.ranges,) = empty_block(n, [(lidar.beams,)])
        """(n, beams) m."""

    def lay(self, ids: Tensor, choice: Tensor, direction: Tensor) -> None:
        """Courses for the environments ``ids`` (m,).

        ``choice`` (m,), 0 to 1, chooses evenly; ``direction`` (m,): negative for against the order of the points.
        """
        which = (choice * len(self._courses)).long().clamp(max=len(self._courses) - 1)
        for k in range(len(self._courses)):
            for laid, chosen in ((self._courses[k], direction >= 0), (self._backwards[k], direction < 0)):
                some = ids[chosen & (which == k)]
                self._lines[:, some] = laid.lines[:, None]
                self.length[some], self._width[some] = laid.length, laid.width

    def make(self, ids: Tensor, shape: Tensor, size: Tensor, width: Tensor, direction: Tensor) -> None:
        """New tracks of the environments ``ids`` (m,).

        ``shape`` (m, 2 KNOTS) 0 to 1; ``size`` (m,) m, the greatest distance of a control point from the middle;
        ``width`` (m,) m; ``direction`` (m,): negative for clockwise.
        """
        given = [part.contiguous() for part in (shape, size, width, direction)]
        self._width[ids] = width
        ids = ids.contiguous()
        _library(POINTS).make(
            len(ids), _at(ids), KNOTS, *map(_at, given), INSIDE, _at(self.centre), _at(self.left), _at(self.right),
            _at(self.length),
        )  # fmt: skip

    def make_corners(
        self, ids: Tensor, radius: float, kind: Tensor, shape: Tensor, size: Tensor, width: Tensor, direction: Tensor
    ) -> None:
        """New lanes with sharp corners of the environments ``ids`` (m,).

        ``radius`` (m): the least one of the centre line. ``kind`` (m,): below 1.5 a polygon of 3 to 8 corners around a
        middle, else a rectangle with what is cut out of it. The rest as ``make``. A lane is at most 7 sizes long.
        """
        given = [part.contiguous() for part in (kind, shape, size, width, direction)]
        ids = ids.contiguous()
        _library_of_corners().make_corners(
            len(ids), _at(ids), *map(_at, given), radius, _at(self.centre), _at(self.left), _at(self.right),
            _at(self.length), _at(self._width),
        )  # fmt: skip

    def measure(self, pose: Tensor, station: Tensor, forward: Tensor, yaw: Tensor, ids: Tensor | None = None) -> None:
        """Write ``located`` and ``ranges``, of all environments or of ``ids`` (m,).

        ``pose`` (3, n): x, y (m) and heading (rad) of the cars. ``station`` (n,) m along the track of the last time: a
        car is looked for near it. ``forward`` (n,) m and ``yaw`` (n,) rad: how the lidar is mounted.
        """
        m = self.n if ids is None else len(ids)
        ids = None if ids is None else ids.contiguous()
        threads = max(1, min(torch.get_num_threads(), m // FEW))
        _library(self.points).measure(
            self.n, m, None if ids is None else _at(ids), *map(_at, (pose, station, forward, yaw, self._width)),
            *map(_at, (self.centre, self.left, self.right, self.length)), ctypes.byref(self._lidar),
            ctypes.byref(self._body), _at(self._ahead), len(self._ahead), _at(self.block), _at(self._ranges), threads,
        )  # fmt: skip

    def point(self, ids: Tensor, station: Tensor) -> tuple[Tensor, Tensor]:
        """Points (m, 2) m of the centre line, ``station`` (m,) m along the tracks ``ids``; its directions (m,) rad."""
        place = station / self.length[ids] * self.points
        before = place.long() % self.points
        a, b = self.centre[ids, before, :2], self.centre[ids, (before + 1) % self.points, :2]
        way = b - a
        return a + (place - place.floor())[:, None] * way, torch.atan2(way[:, 1], way[:, 0])

    def width(self, ids: Tensor, station: Tensor) -> Tensor:
        """(m,) m: twice the distance from the centre line to the nearer wall, ``station`` (m,) m along the tracks."""
        at = (station / self.length[ids] * self.points).long() % self.points
        centre = self.centre[ids, at]
        walls = [torch.linalg.vector_norm(wall[ids, at] - centre, dim=-1) for wall in (self.left, self.right)]
        return 2 * torch.minimum(*walls)


@dataclass(frozen=True)
class _Laid:
    """A course as ``Tracks`` has it."""

    lines: Tensor
    """(3, points, 3) m: centre, left, right."""
    length: float
    width: float
    """m: beyond half of it from the centre line there is no track."""


def _laid(course: Course, points: int) -> _Laid:
    flat = np.stack(course.at(points))
    lines = torch.as_tensor(np.pad(flat, ((0, 0), (0, 0), (0, 1))), dtype=torch.float32)
    widest = float(torch.linalg.vector_norm(lines[1:] - lines[0], dim=-1).max())
    return _Laid(lines, course.length, 2 * widest)


def _at(tensor: Tensor) -> Any:
    return ctypes.c_void_p(tensor.data_ptr())


@functools.cache
def _library(points: int) -> Any:
    code = Path(__file__).with_name("kernel.cpp").read_text()
    library = build(code, f"-DPOINTS={points}", "-O3", "-ffinite-math-only")
    pointer, whole, number = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
    library.make.argtypes = [whole, pointer, ctypes.c_int, *[pointer] * 4, number, *[pointer] * 4]
    library.measure.argtypes = [whole, whole, *[pointer] * 13, ctypes.c_int, pointer, pointer, ctypes.c_int]
    library.make.restype = library.measure.restype = None
    return library


@functools.cache
def _library_of_corners() -> Any:
    code = Path(__file__).with_name("corners.cpp").read_text()
    sizes = {"POINTS": POINTS, "SHARPEST": f"{SHARPEST}f", "INNER": f"{INNER}f", "ROUNDEST": f"{ROUNDEST}f"}
    library = build(code, *(f"-D{name}={value}" for name, value in sizes.items()), "-O3", "-ffinite-math-only")
    pointer = ctypes.c_void_p
    library.make_corners.argtypes = [ctypes.c_int64, *[pointer] * 6, ctypes.c_float, *[pointer] * 5]
    library.make_corners.restype = None
    return library
