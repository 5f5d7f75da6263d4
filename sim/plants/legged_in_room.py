"""Legged robots in rooms of their own, with a lidar and a planned path: a plant and ``robo_rl.sim.scenes.rooms``
together.

Everything else is the plant's own. Walls have no physics: they are seen, and a robot that touches one has a clearance
of 0. It is as large as CIRCLES along its body, which together cover its length and width.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor

from robo_rl.contract import Scan
from robo_rl.controllers import path
from robo_rl.controllers.rotation import heading
from robo_rl.sim.accelerate.fuse import empty_block
from robo_rl.sim.plants import Articulated
from robo_rl.sim.plants.around import Around
from robo_rl.sim.plants.articulated import ArticulatedState
from robo_rl.sim.scenes.rooms import COLUMNS, POINTS, ROWS, Rooms
from robo_rl.sim.scenes.tracks import Lidar

OWN = ("room", "progress")
"""What a state has besides the plant's: seed (2), fill, start (2) and goal (2) of ``Rooms.make``; ``progress``."""
State = cast(Any, namedtuple("State", (*ArticulatedState._fields, *OWN)))
CIRCLES = 4
LOOKED = 2
"""Cells to every side of a circle's in which it looks for what is filled: farther things are not told apart."""


def circles(length: float, width: float) -> tuple[tuple[float, ...], float]:
    """Places along a body (m, forward) and radius (m) of CIRCLES that cover a rectangle of such sides (m)."""
    half = length / CIRCLES / 2
    return tuple((2 * k + 1 - CIRCLES) * half for k in range(CIRCLES)), math.hypot(half, width / 2)


def clearance(cells: Tensor, places: Tensor, cell: float) -> Tensor:
    """(n, k) m from ``places`` (n, k, 2) m to the nearest filled square of rooms' ``cells`` (n, ROWS, COLUMNS).

    At most LOOKED cells.
    """
    x, y = (places / cell).unbind(-1)
    window = torch.arange(-LOOKED, LOOKED + 1)
    column = x.floor().long()[..., None, None] + window
    row = y.floor().long()[..., None, None] + window[:, None]
    outside = (column < 0) | (column >= COLUMNS) | (row < 0) | (row >= ROWS)
    index = row.clamp(0, ROWS - 1) * COLUMNS + column.clamp(0, COLUMNS - 1)
    filled = cells.flatten(1).gather(1, index.flatten(1)).view_as(index).bool() | outside
    off_x = ((x[..., None, None] - column - 0.5).abs() - 0.5).clamp(min=0.0)
    off_y = ((y[..., None, None] - row - 0.5).abs() - 0.5).clamp(min=0.0)
    apart = torch.where(filled, torch.hypot(off_x, off_y), torch.full((), float(LOOKED)))
    return cell * apart.flatten(2).amin(-1)


class LeggedInRoom(Around):
    """A plant with a free base, each robot in a room of its own; begin an episode with ``enter``, then ``place``."""

    def __init__(
        self,
        plant: Articulated,
        cell: float,
        size: tuple[float, float],
        scan: Scan,
        beams: int,
        ahead: tuple[float, ...],
    ) -> None:
        """``cell`` (m) of the rooms; ``size``: the robot's length and width (m); ``scan`` with so many ``beams`` is a
        planar lidar's at the base, which is level whatever the base does; ``ahead`` (m) along the path are the points
        that are told."""
        n = plant.n
        super().__init__(plant)
        self._ahead = torch.tensor(ahead)
        along, self.radius = circles(*size)
        self._along = torch.tensor(along)
        lidar = Lidar(beams, scan.angle_min, scan.angle_increment, scan.range_min, scan.range_max)
        self.rooms = Rooms(n, lidar, self.radius, cell)
        self.room, self.progress = torch.zeros(n, 7), torch.zeros(n, 2)
        """See OWN; m along the path: where the robot is, and where it was a period ago."""
        self._lengths = (torch.zeros(n, POINTS - 1), torch.zeros(n, POINTS - 1))
        self._pose, (self._place, self._heading) = empty_block(n, [(2,), (1,)])
        _, parts = empty_block(n, [(1,), (1,), (1,), (2,), (len(ahead), 2)])
        self._clearance, self._gained, self._left, self._to_goal, self._points = parts
        self._still = torch.zeros(n)
        middle = torch.tensor([COLUMNS / 2, 2.5, COLUMNS / 2, ROWS - 2.5]) * cell
        every = torch.arange(n)
        self.enter(every, torch.cat([torch.zeros(n, 3), middle.expand(n, -1)], 1))
        self.look(every)

    def enter(self, ids: Tensor, room: Tensor) -> None:
        """Make the rooms of ``ids`` (m,), of which ``room`` (m, 7) has seed, fill, start and goal, and plan paths.

        What the robots measure there follows when they are placed.
        """
        self.room[ids] = room
        seed, fill, start, goal = room.split([2, 1, 2, 2], 1)
        self.rooms.make(ids, seed, fill[:, 0], start, goal)
        self.rooms.clutter(ids, seed, torch.zeros(len(ids)))
        for mine, given in zip(self._lengths, path.lengths(self.rooms.planned[ids]), strict=True):
            mine[ids] = given
        self.progress[ids] = 0.0

    def look(self, ids: Tensor) -> None:
        """Measure where the robots ``ids`` (m,) are; nothing was gained."""
        self.progress[ids, 1] = self.progress[ids, 0]
        self._measure()
        self.progress[ids, 1] = self.progress[ids, 0]
        self._gained[ids] = 0.0

    def _measure(self) -> None:
        truth, rooms = self.inner.truth(), self.rooms
        cosine, sine = heading(truth["orientation"].unbind(-1))
        turn = torch.atan2(sine, cosine)
        self._place.copy_(truth["position"][:, :2])
        self._heading[:, 0] = turn
        rooms.measure(self._pose, self._still, self._still)
        along = torch.stack([cosine, sine], -1)[:, None] * self._along[:, None]
        self._clearance[:, 0] = clearance(rooms.cells, self._place[:, None] + along, rooms.cell).amin(1) - self.radius
        at = path.progress(rooms.planned, self._lengths, self._place, self.progress[:, 1])
        self.progress[:, 0] = at
        points = path.points(rooms.planned, self._lengths, at[:, None] + self._ahead)
        self._points.copy_(path.in_frame(points, self._place, turn))
        self._gained[:, 0] = at - self.progress[:, 1]
        self._left[:, 0] = self._lengths[0].sum(1) - at
        torch.sub(rooms.goal, self._place, out=self._to_goal)

    def truth(self) -> dict[str, Tensor]:
        """Every physical quantity by name, live views (n, …)."""
        low = torch.zeros_like(self.rooms.planned[..., :1])
        return {
            **super().truth(),
            "scan": self.rooms.ranges,
            "path_points": self._points,
            "clearance": self._clearance,
            "gained": self._gained,
            "left": self._left,
            "to_goal": self._to_goal,
            "obstacles": self.rooms.outline,
            "plan": torch.cat([self.rooms.planned, low], -1),
        }

    def step(self, commands: Mapping[str, Tensor]) -> None:
        """As the inner plant's."""
        super().step(commands)
        self.progress[:, 1] = self.progress[:, 0]
        self._measure()

    def state(self, ids: Tensor) -> Any:
        """Copies of the states of the robots ``ids`` (m,), with their rooms."""
        return State(*super().state(ids), self.room[ids], self.progress[ids])

    def set_state(self, ids: Tensor, state: Any) -> None:
        """Go on, in the robots ``ids`` (m,), from states that ``state`` gave."""
        others = (self.room[ids] != state.room).any(1)
        if others.any():
            self.enter(ids[others], state.room[others])
        self.inner.set_state(ids, ArticulatedState(*state[: -len(OWN)]))
        self.progress[ids] = state.progress
        self._measure()

    def save(self) -> dict[str, Tensor]:
        """All that changes, for a checkpoint."""
        own = {f"own/{name}": getattr(self, name).clone() for name in OWN}
        return {**super().save(), **own}

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Continue from ``save``, bit by bit."""
        super().load({name: value for name, value in saved.items() if not name.startswith("own/")})
        self.enter(torch.arange(self.n), saved["own/room"])
        self.progress.copy_(saved["own/progress"])
        self._measure()
