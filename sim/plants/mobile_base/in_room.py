"""Mobile bases in rooms of their own, with a lidar: ``robo_rl.sim.plants.mobile_base`` and
``robo_rl.sim.scenes.rooms`` together."""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from robo_rl.contract import Scan
from robo_rl.sim.accelerate.fuse import Fused, empty_block, fuse
from robo_rl.sim.drawing import Poser
from robo_rl.sim.plants.mobile_base import BaseParameters, BaseState, advance, nominal_parameters
from robo_rl.sim.plants.mobile_base.drawing import draw_base
from robo_rl.sim.plants.saving import Saved, live
from robo_rl.sim.robots.mobile_base import MobileBaseCard
from robo_rl.sim.scenes.rooms import Rooms, edits, ends
from robo_rl.sim.scenes.tracks import Lidar

OWN = ("lidar_forward", "lidar_yaw", "room_seed", "room_fill", "room_start", "room_goal")
"""Parameters besides the base's: how the lidar is mounted (m, rad), and what ``Rooms.make`` takes."""
NAMES = (*BaseParameters._fields, *OWN)
Parameters = cast(Any, namedtuple("Parameters", NAMES))
CELL = 1.5
"""Radii of the robot that a cell of a room is wide: a way is three cells wide, 2.25 times the robot."""


class InRoomState(NamedTuple):
    """The base's, and how far it had to go, (n, k) each."""

    position: Tensor
    heading: Tensor
    speed: Tensor
    turn_rate: Tensor
    odometer: Tensor
    left: Tensor
    """m, the length of the shortest way to the goal a period ago."""


class BaseInRoom(Saved):
    """n bases, each in a room of its own, stepped in place at one control rate."""

    dynamics = None

    parameters_type: Any = Parameters
    figures: Mapping[str, Any] = MappingProxyType({})
    """Nominal values of what ``parameters_type`` has besides NAMES."""
    state_type: Any = InRoomState
    room_state: Any = InRoomState
    """That of a base in a room, of which ``state_type`` may have more."""
    base_state: Any = BaseState
    """With position and heading first, and an odometer."""
    base_parameters: Any = BaseParameters
    commanded: tuple[str, ...] = ("forward_speed", "turn_rate")
    times = 1
    """How often ``_bound`` is run in a period."""

    def __init__(self, card: Any, n: int, period: float, scan: Scan, beams: int) -> None:
        """``card`` is a base's of this plant's kind; ``period`` (s) of control; ``scan`` with so many ``beams`` is the
        lidar's."""
        self.card, self.n, self.period, self.device = card, n, period, torch.device("cpu")
        lidar = Lidar(beams, scan.angle_min, scan.angle_increment, scan.range_min, scan.range_max)
        self.rooms = Rooms(n, lidar, card.radius, CELL * card.radius)
        half = torch.tensor([0.5])
        figures = (card.lidar_position[0], 0.0, [0.5, 0.5], 0.0)
        own = [*(torch.tensor([x], dtype=torch.float32) for x in figures)]
        own += [*ends(half, half, self.rooms.cell), *(torch.tensor([x]) for x in self.figures.values())]
        self.nominal = self.parameters_type(*self._nominal(), *own)
        self.parameters = self.parameters_type(*live(n, self.nominal))
        self._block, state = empty_block(n, self._shapes())
        self.current = self.base_state(*state)
        """Live."""
        _, (self.left, self.gained) = empty_block(n, [(1,), (1,)])
        _, self._commands = empty_block(n, [(1,)] * len(self.commanded))
        _, (self._orientation, self._to_goal) = empty_block(n, [(4,), (2,)])
        self._run = self._bound(self.base_parameters(*self.parameters[: len(self.base_parameters._fields)]))
        every = torch.arange(n)
        self.refresh(every)
        self.put(every, torch.zeros(n))

    def _nominal(self) -> Any:
        """The card's figures, (1,) each."""
        return nominal_parameters(self.card)

    def _shapes(self) -> list[tuple[int, ...]]:
        """Of the parts of ``base_state``."""
        return [(2,), (1,), (1,), (1,), (3,)]

    def _bound(self, parameters: Any) -> Callable[[], None]:
        """What moves the bases by their commands."""
        return _fused_advance(self.period).bind(self.current, *self._commands, parameters, out=self.current)

    def refresh(self, ids: Tensor) -> None:
        """Make the rooms of ``ids`` (m,) by their parameters."""
        self.rooms.make(ids, *(self.param(name)[ids] for name in OWN[2:]))

    def put(self, ids: Tensor, heading: Tensor) -> None:
        """Put the robots ``ids`` (m,) at the start of their rooms, at rest, with a ``heading`` (m,) rad."""
        for part in self.current:
            part[ids] = 0.0
        self.current.position[ids], self.current.heading[ids] = self.rooms.start[ids], heading[:, None]
        self.current.odometer[ids] = torch.cat([self.rooms.start[ids], heading[:, None]], 1)
        self.gained[ids] = 0.0
        if len(ids):
            self._measure(ids)
        self.left[ids] = self.rooms.located.path[ids]

    def truth(self) -> dict[str, Tensor]:
        """Every quantity by name, live views (n, …). ``place`` is the true one, ``position`` that of the odometry."""
        state, located = self.current, self.rooms.located
        return {
            "place": state.position,
            "heading": state.heading,
            "wheel_speed": state.speed,
            "yaw_rate": state.turn_rate,
            "position": state.odometer[:, :2],
            "orientation": self._orientation,
            "clearance": located.clearance,
            "path": located.path,
            "ahead": located.ahead,
            "gained": self.gained,
            "to_goal": self._to_goal,
            "scan": self.rooms.ranges,
            "obstacles": self.rooms.outline,
        }

    def _measure(self, ids: Tensor | None = None) -> None:
        self.rooms.measure(self._block[:3], self.parameters.lidar_forward, self.parameters.lidar_yaw, ids)
        half = 0.5 * self.current.odometer[:, 2]
        self._orientation[:, 2], self._orientation[:, 3] = torch.sin(half), torch.cos(half)
        torch.sub(self.rooms.goal, self.current.position, out=self._to_goal)

    def step(self, commands: Mapping[str, Tensor]) -> None:
        """One control period under what is ``commanded``, (n, 1) m/s and rad/s, held constant."""
        for name, buffer in zip(self.commanded, self._commands, strict=True):
            buffer.copy_(commands[name])
        for _ in range(self.times):
            self._run()
        self._measure()
        torch.sub(self.left, self.rooms.located.path, out=self.gained)
        self.left.copy_(self.rooms.located.path)

    def state(self, ids: Tensor) -> Any:
        """A copy of the state of the robots ``ids`` (m,)."""
        return self.room_state(*(part[ids] for part in (*self.current, self.left)))

    def set_state(self, ids: Tensor, state: Any) -> None:
        """Put the robots ``ids`` (m,) into a state."""
        for mine, given in zip(self.current, state, strict=False):  # those of a base come first
            mine[ids] = given
        self.left[ids] = state.left
        self.gained[ids] = 0.0
        if len(ids):
            self._measure(ids)

    def place_goal(self, robot: int, place: edits.Place) -> None:
        """Another goal (m); ValueError where it can't be, or where no way leads to it."""
        edits.cell_at(self.rooms, robot, place, "goal")
        before, ids = self.rooms.goal[robot].clone(), torch.tensor([robot])
        self._lead(ids, torch.tensor(place))
        if self.rooms.located.path[robot].item() > edits.NO_WAY:
            self._lead(ids, before)
            raise ValueError(f"goal ({place[0]:.2f}, {place[1]:.2f}) m: no way leads there; expected a place in reach")

    def _lead(self, ids: Tensor, goal: Tensor) -> None:
        self.rooms.goal[ids] = goal
        self._rooms_changed(ids)

    def drop_obstacle(self, robot: int, place: edits.Place) -> None:
        """A box of one cell in a robot's room (m); ValueError where it can't be."""
        x, y = (self.current.position[robot, k].item() for k in range(2))
        edits.drop(self.rooms, robot, place, (x, y))
        self._rooms_changed(torch.tensor([robot]))

    def clear_obstacles(self) -> None:
        """Take away all that were dropped."""
        edits.clear(self.rooms)
        self._rooms_changed(torch.arange(self.n))

    def _rooms_changed(self, ids: Tensor) -> None:
        """Measure again; nothing was gained by what a person changed."""
        self.rooms.finish(ids)
        self._measure(ids)
        self.left[ids] = self.rooms.located.path[ids]

    def drawing(self) -> Any:
        """A MuJoCo model of how a robot looks; its room is drawn by the task's markers."""
        return self._poser.model

    def poses(self, ids: Tensor) -> np.ndarray:
        """(m, bodies, 7) m and quaternion x, y, z, w: of the bodies of ``drawing``."""
        return self._poser.poses(torch.cat([self.current.position[ids], self.current.heading[ids]], 1).numpy())

    @functools.cached_property
    def _poser(self) -> Poser:
        return Poser(draw_base(self.card))


@functools.cache
def _fused_advance(period: float) -> Fused:
    """Shared by all plants of a process, so each program is traced once."""

    def base_step(state: BaseState, speed: Tensor, turn: Tensor, parameters: BaseParameters) -> BaseState:
        return advance(state, speed, turn, parameters, period)

    return fuse(base_step)


class BaseInMaze(BaseInRoom):
    """n bases in one room that is given: all in the same."""

    def __init__(self, card: MobileBaseCard, n: int, period: float, scan: Scan, beams: int, cells: Tensor) -> None:
        """``cells`` (ROWS, COLUMNS) uint8 are those of ``robo_rl.sim.scenes.rooms.drawn``."""
        self.cells = cells
        super().__init__(card, n, period, scan, beams)

    def refresh(self, ids: Tensor) -> None:
        """Begin at the starts of ``ids`` (m,), and go to their goals."""
        self.rooms.put(ids, self.cells, self.param("room_start")[ids], self.param("room_goal")[ids])
