"""Roads with lanes, crossings and lights, one of its own for each of many environments, and the traffic on them.

A road goes one way. It has 1 to 4 lanes, bends that are drawn (two sines of the heading), and up to two crossings with
a road of two lanes at a right angle; traffic keeps to the right. Lights are green, yellow (3 s) and red by turns, with
2 s of red for all. Whatever leaves a road at its end comes in again at its beginning, and so do the roads across.

Vehicles keep to lanes: they follow by the intelligent driver model, slow down for bends (2.5 m/s² across), stop at
lights, keep crossings clear, and change lanes by MOBIL where no crossing is near;
``robo_rl.controllers.car.traffic`` has both
models, and tests compare. They see the car that is not theirs as one of them. Positions are s (m along the right edge
of the road) and y (m to the left of it). Native code (``kernel.cpp``), compiled as ``robo_rl.sim.accelerate.fuse``
compiles.
"""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse import empty_block
from robo_rl.sim.accelerate.fuse.native import build

WIDE = 3.5
"""m, the width of a lane."""
KNOTS, APART = 201, 2.0
"""Points of a road's edge, and m between them: 400 m."""
CROSSINGS = 2
NEAREST = 8
"""Neighbours that are seen."""
REACH = (4.0, 8.0, 14.0, 20.0, 28.0, 36.0, 48.0, 60.0)
"""m along the lane, of the points of the route."""
FAR = 100.0
"""m: where there is no light or leader ahead."""
VEHICLE = (4.5, 1.8)
"""m, length and width of a vehicle."""
FIELDS = ("s", "y", "speed", "lane", "road", "desired_speed", "headway", "acceleration", "braking", "wait")
"""Of a vehicle. ``s`` is along its own road, from the middle of the crossing on roads across; ``road`` is 0, 1 to 4 of
lanes across, or -1 where there is no vehicle; ``wait`` (s) until it looks at other lanes."""
FACTS = ("lanes", "begin", "end", "goal", "crossings", "first")
"""Of a road: lanes, begin and end of the route (m), its last and first lane, number of crossings; then, for each
crossing, its station (m), the offset of its lights' clock (s), and how long they are green along and across (s)."""
FEW = 128
"""Environments that are not worth a second thread."""


@dataclass(frozen=True)
class Located:
    """What is around n cars, live views (n, …)."""

    station: Tensor
    """m along the road."""
    moved: Tensor
    """m along the road in the last period."""
    across: Tensor
    """m to the left of the road's right edge."""
    edge: Tensor
    """m from the car's sides to the nearest edge of the road; less than nothing beyond it."""
    completion: Tensor
    """Part of the route, 0 to 1."""
    route_left: Tensor
    """m to where only the route's own lane leads to its end, which is 60 m farther."""
    lane_offset: Tensor
    """m to the left of the middle of the lane."""
    lane_heading: Tensor
    """rad, from the lane's direction."""
    lane_count: Tensor
    """(n, 3): lanes to the left, lanes to the right, and from its lane to the route's last, to the left positive."""
    route: Tensor
    """(n, 8, 2) m: points of the lane's middle, ``REACH`` ahead, in the car's frame."""
    light_distance: Tensor
    """m from the front to the next stop line."""
    light_state: Tensor
    """(n, 2): 1 where the light there is red, and where it is yellow."""
    light_change: Tensor
    """s until it changes to green, or from green to red."""
    light_place: Tensor
    """(n, 2) m in the world, beside the road; 0 where there is none."""
    neighbour_position: Tensor
    """(n, 8, 2) m in the car's frame, the nearest first; those behind count as half as far again."""
    neighbour_velocity: Tensor
    """(n, 8, 2) m/s, less the car's own, in its frame."""
    neighbour_heading: Tensor
    """(n, 8) rad from the car's."""
    neighbour_valid: Tensor
    """(n, 8): 1 where there is a neighbour within 80 m."""
    gap: Tensor
    """m to the vehicle ahead on the road, between bumpers."""
    leader_speed: Tensor
    """m/s."""
    time_to_collision: Tensor
    """s, at constant velocities, until it touches a vehicle that is not straight behind it; at most 10."""
    collision: Tensor
    """1 where the car touches a vehicle."""
    red_run: Tensor
    """1 where it has just passed a red light."""
    bend: Tensor
    """1/m, the curvature of the road."""


SHAPES = {
    "lane_count": (3,), "route": (len(REACH), 2), "light_state": (2,), "light_place": (2,),
    "neighbour_position": (NEAREST, 2), "neighbour_velocity": (NEAREST, 2), "neighbour_heading": (NEAREST,),
    "neighbour_valid": (NEAREST,),
}  # fmt: skip


class Body(ctypes.Structure):
    """A car's rectangle: its middle, m ahead of the centre of mass, length and width."""

    _fields_ = [(name, ctypes.c_float) for name in ("middle", "length", "width")]


class Start(NamedTuple):
    """Where routes begin, (m,) each."""

    x: Tensor
    y: Tensor
    heading: Tensor
    station: Tensor


class Lanes:
    """The roads of n environments, each with up to so many vehicles."""

    def __init__(self, n: int, body: Body, vehicles: int) -> None:
        """``body``: of the car that is not simulated here."""
        self.n, self.vehicles, self._body = n, vehicles, body
        self._code = _library(vehicles)
        self.line = torch.zeros(n, KNOTS, 3)
        """x, y (m) and heading (rad) of the right edge."""
        self.road = torch.zeros(n, len(FACTS) + 4 * CROSSINGS)
        """``FACTS``."""
        self.traffic = torch.zeros(n, len(FIELDS), vehicles)
        """``FIELDS`` of all vehicles."""
        self.marks = torch.zeros(n, 5, KNOTS, 3)
        """m: edges and lines between lanes, from the right; for pictures."""
        self.clock, self.station = torch.zeros(2, n).unbind(0)
        """s since the episode began; m along the road."""
        self.block, parts = empty_block(n, [SHAPES.get(name, (1,)) for name in Located.__dataclass_fields__])
        self.located = Located(*parts)

    def make(self, ids: Tensor, seed: Tensor, lanes: Tensor, bends: Tensor, crossings: Tensor) -> None:
        """New roads for ``ids`` (m,): ``seed`` (m, 2) any numbers, ``bends`` (m,) from 0 (straight) to 1."""
        ids, seed = ids.contiguous(), seed.contiguous()
        shape = torch.stack([lanes, bends, crossings], 1)
        parts = (ids, seed, shape, self.line, self.road, self.marks)
        self._code.make(len(ids), *map(_at, parts))

    def fill(self, ids: Tensor, seed: Tensor, density: Tensor, speed: Tensor) -> None:
        """New traffic for ``ids`` (m,): a part of the vehicles, which want 0.7 to 1 of a speed (m/s)."""
        ids, seed, density, speed = (x.contiguous() for x in (ids, seed, density, speed))
        self._code.fill(len(ids), *map(_at, (ids, seed, density, speed, self.road, self.traffic)))
        self.clock[ids] = 0.0

    def start(self, ids: Tensor) -> Start:
        """The middle of the first lane where the routes of ``ids`` begin."""
        road = self.road[ids]
        station, across = road[:, 1], (road[:, 5] + 0.5) * WIDE
        x, y, heading = self.line[ids, (station / APART).long()].unbind(1)
        return Start(x - torch.sin(heading) * across, y + torch.cos(heading) * across, heading, station)

    def advance(self, car: Tensor, period: float) -> None:
        """One period of all vehicles; rows of ``car`` (8, n): x, y (m), heading (rad), velocity in its frame (m/s)."""
        state = (self.line, self.road, self.traffic, self.clock, self.station)
        threads = self._threads(self.n)
        self._code.advance(self.n, *map(_at, (car, *state)), ctypes.byref(self._body), period, threads)

    def measure(self, car: Tensor, ids: Tensor | None = None) -> None:
        """Write ``located``, of all or of ``ids`` (m,), and move stations on."""
        m = self.n if ids is None else len(ids)
        ids = None if ids is None else ids.contiguous()
        state = (car, self.line, self.road, self.traffic, self.clock, self.station)
        self._code.measure(
            self.n, m, None if ids is None else _at(ids), *map(_at, state), ctypes.byref(self._body), _at(self.block),
            self._threads(m),
        )  # fmt: skip

    def poses(self, ids: Tensor) -> np.ndarray:
        """(m, vehicles, 3): x, y (m) and heading (rad); NaN where there is no vehicle."""
        out, ids = torch.zeros(len(ids), self.vehicles, 3), ids.contiguous()
        self._code.poses(len(ids), *map(_at, (ids, self.line, self.road, self.traffic, out)))
        return out.numpy()

    @staticmethod
    def _threads(m: int) -> int:
        return max(1, min(torch.get_num_threads(), m // FEW))


def _at(tensor: Tensor) -> Any:
    return ctypes.c_void_p(tensor.data_ptr())


@functools.cache
def _library(vehicles: int) -> Any:
    code = Path(__file__).with_name("kernel.cpp").read_text()
    sizes = {
        "VEHICLES": vehicles, "KNOTS": KNOTS, "NEAREST": NEAREST, "ROUTE": len(REACH), "CROSSINGS": CROSSINGS,
    }  # fmt: skip
    library = build(
        code, *(f"-D{name}={value}" for name, value in sizes.items()), "-O3", "-ffinite-math-only", "-fno-signed-zeros"
    )
    pointer, whole, number = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
    library.make.argtypes = [whole, *[pointer] * 6]
    library.fill.argtypes = [whole, *[pointer] * 6]
    library.advance.argtypes = [whole, *[pointer] * 7, number, ctypes.c_int]
    library.measure.argtypes = [whole, whole, *[pointer] * 9, ctypes.c_int]
    library.poses.argtypes = [whole, *[pointer] * 5]
    return library
