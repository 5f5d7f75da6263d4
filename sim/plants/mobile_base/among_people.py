"""Mobile bases that follow a planned path, in rooms with obstacles and people that the plan does not know.

The path is planned on a map of the room; then obstacles are put on it, and people walk about. What a robot is told of
the path are the points AHEAD of where it is, in its own frame, by a localization that is a little wrong.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from robo_rl.contract import Scan
from robo_rl.controllers import path
from robo_rl.sim.accelerate.fuse import empty_block
from robo_rl.sim.plants.mobile_base.in_room import NAMES, BaseInRoom
from robo_rl.sim.robots.mobile_base import MobileBaseCard
from robo_rl.sim.scenes.rooms import POINTS
from robo_rl.sim.scenes.rooms.people import People, nearest, walk

COUNT = 3
"""People in a room."""
WIDE = 1.2
"""Radius of a person, × the robot's."""
WINDOW = 28
"""Points of a path that are looked at: 3 m, for a robot of TurtleBot3's size."""
FIGURES = {
    "room_blocks": 0.0, "people_begin": [0.5] * COUNT, "people_heading": [0.0] * COUNT, "people_speed": [0.2] * COUNT,
    "pose_error": [0.0, 0.0, 0.0],
}  # fmt: skip
"""Parameters besides those in rooms: obstacles on the path, where on it people begin (part of its length), their
heading (rad) and speed (m/s); error of the localization, in the robot's frame (m, m, rad)."""
Parameters = cast(Any, namedtuple("Parameters", (*NAMES, *FIGURES)))


class AmongPeopleState(NamedTuple):
    """That of a base in a room; where people are, and how far the robot had come along its path, (n, …) each."""

    position: Tensor
    heading: Tensor
    speed: Tensor
    turn_rate: Tensor
    odometer: Tensor
    left: Tensor
    people: Tensor
    """(n, m, 2) m."""
    turns: Tensor
    """(n, m, 2): heading (rad), how long they have waited (s)."""
    before: Tensor
    """(n, 1) m along the path, a period ago."""


class BaseAmongPeople(BaseInRoom):
    """n bases, each in a room of its own with people and a path."""

    figures = FIGURES
    parameters_type = Parameters
    state_type = AmongPeopleState

    def __init__(self, card: MobileBaseCard, n: int, period: float, scan: Scan, beams: int) -> None:
        """See ``BaseInRoom``."""
        self.wide, self.person = card.radius / path.SIZE, WIDE * card.radius
        shapes = [(COUNT, 2), (COUNT, 2), (len(path.AHEAD), 2), (1,), (1,)]
        _, (self.people, self.turns, self.ahead, self.progress, self.before) = empty_block(n, shapes)
        """Of people x and y (m), then heading (rad) and how long they have waited (s); points ahead (m); where along
        the path (m) the robot is, and where it was a period ago."""
        self._lengths = torch.zeros(2, n, POINTS - 1).unbind(0)
        self.ahead_at = self.wide * torch.tensor(path.AHEAD)
        self._angles = scan.angle_min + scan.angle_increment * torch.arange(beams)
        super().__init__(card, n, period, scan, beams)

    def refresh(self, ids: Tensor) -> None:
        """Make the rooms of ``ids`` (m,), plan their paths, and put people on these."""
        super().refresh(ids)
        self.rooms.clutter(ids, self.param("room_seed")[ids], self.param("room_blocks")[ids])
        planned = self.rooms.planned[ids]
        measured = path.lengths(planned)
        for mine, given in zip(self._lengths, measured, strict=True):
            mine[ids] = given
        begin = self.param("people_begin")[ids] * measured[0].sum(-1, keepdim=True)
        heading = self.param("people_heading")[ids]
        self.people[ids] = path.points(planned, measured, begin)
        self.turns[ids] = torch.stack([heading, 0.0 * heading], -1)
        self.before[ids] = 0.0

    def _measure(self, ids: Tensor | None = None) -> None:
        super()._measure(ids)
        some = slice(None) if ids is None else ids
        pose = torch.cat([self.current.position, self.current.heading], 1)[some]
        self._measure_people(some, pose)
        self._measure_path(some, pose)

    def _measure_people(self, some: Any, pose: Tensor) -> None:
        """What the lidar sees of people, and the distance to them."""
        place = self.people[some]
        apart = (place - pose[:, None, :2]).norm(dim=-1) - self.person - self.card.radius
        clearance = torch.minimum(self.rooms.located.clearance[some, 0], apart.amin(1).clamp(min=0.0))
        self.rooms.located.clearance[some, 0] = clearance
        ahead = torch.stack([torch.cos(pose[:, 2]), torch.sin(pose[:, 2])], -1)
        origin = pose[:, :2] + self.parameters.lidar_forward[some, None] * ahead
        turns = pose[:, 2:] + self.parameters.lidar_yaw[some, None] + self._angles
        met = nearest(place, self.person, origin, torch.stack([torch.cos(turns), torch.sin(turns)], -1))
        low = self.card.lidar_range[0]
        self.rooms.ranges[some] = torch.minimum(self.rooms.ranges[some], met.clamp(min=low))

    def _measure_path(self, some: Any, pose: Tensor) -> None:
        """Where on the path the robot is, and the points ahead of that in its frame."""
        planned, measured = self._near(some)
        at = path.progress(planned, measured, pose[:, :2], self.before[some, 0], self.wide)[:, None]
        self.progress[some] = at
        found = path.points(planned, measured, at + self.ahead_at)
        error = self.parameters.pose_error[some]
        seen = path.in_frame(found, pose[:, :2], pose[:, 2])
        self.ahead[some] = path.in_frame(seen, error[:, :2], error[:, 2])

    def _near(self, some: Any) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The part of the paths about the robots, WINDOW points of each, and its ``lengths``."""
        apart, begin = self._lengths[0][some], self._lengths[1][some]
        behind = self.before[some] - self.wide * path.SEARCHED[0]
        first = ((begin <= behind).sum(-1, keepdim=True) - 1).clamp(min=0)
        index = (first + torch.arange(WINDOW)).clamp(max=POINTS - 1)
        segment = index[:, :-1].clamp(max=POINTS - 2)
        planned = self.rooms.planned[some].gather(1, index[..., None].expand(-1, -1, 2))
        apart = torch.where(index[:, :-1] < POINTS - 1, apart.gather(1, segment), torch.zeros(()))
        return planned, (apart, begin.gather(1, segment))

    def step(self, commands: Mapping[str, Tensor]) -> None:
        """See ``BaseInRoom``; people walk first, and see where the robot was."""
        people = People(self.people, self.turns[..., 0], self.turns[..., 1])
        speed, cells = self.parameters.people_speed, self.rooms.cells
        robot, reach = self.current.position, self.card.radius
        later = walk(people, speed, self.person, cells, self.rooms.cell, robot, reach, self.period)
        self.people.copy_(later.place)
        self.turns.copy_(torch.stack([later.heading, later.waited], -1))
        self.before.copy_(self.progress)
        super().step(commands)

    def truth(self) -> dict[str, Tensor]:
        """Every quantity by name, live views (n, …): see ``BaseInRoom``. ``plan`` is drawn, ``path_points`` told."""
        low = torch.zeros_like(self.rooms.planned[..., :1])
        return {
            **super().truth(),
            "path_points": self.ahead,
            "people": self.people,
            "plan": torch.cat([self.rooms.planned, low], -1),
        }

    def state(self, ids: Tensor) -> Any:
        """A copy of the state of the robots ``ids`` (m,)."""
        own = {"people": self.people[ids], "turns": self.turns[ids], "before": self.before[ids]}
        return self.state_type(**super().state(ids)._asdict(), **own)

    def set_state(self, ids: Tensor, state: Any) -> None:
        """Put the robots ``ids`` (m,) into a state; without people, these stay where they are."""
        if isinstance(state, AmongPeopleState):
            self.people[ids], self.turns[ids], self.before[ids] = state.people, state.turns, state.before
        super().set_state(ids, state)
