"""Cars on closed tracks of their own, with a lidar: ``robo_rl.sim.plants.car`` and ``robo_rl.sim.scenes.tracks``
together."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from robo_rl.contract import Scan
from robo_rl.sim.accelerate.fuse import empty_block
from robo_rl.sim.plants.car import CarParameters, CarPlant, CarState
from robo_rl.sim.plants.saving import Saved, live
from robo_rl.sim.robots.car import CarCard
from robo_rl.sim.scenes.tracks import KNOTS, Body, Lidar, Tracks

if TYPE_CHECKING:
    from robo_rl.sim.scenes.tracks.courses import Course

DRAWN = ("track_shape", "track_size", "track_width", "track_direction")
"""What ``Tracks.make`` takes, and ``Tracks.make_corners`` behind the kind."""
CHOSEN = ("track_choice", "track_direction")
"""What ``Tracks.lay`` takes."""
OWN = ("lidar_forward", "lidar_yaw", *DRAWN, "track_choice", "track_kind")
"""Parameters besides the car's: how the lidar is mounted (m, rad), and those of tracks. A track of a kind below 1 has
bends, another one corners."""
TURNING = 1.2
"""The least radius of a centre line with corners, in turning circles of the car."""
NAMES = (*CarParameters._fields, *OWN)
Parameters = cast(Any, namedtuple("Parameters", NAMES))


def tightest(card: CarCard) -> float:
    """m, the least radius of a centre line with corners."""
    return TURNING * card.wheelbase / math.tan(card.steering_limit)


class OnTrackState(NamedTuple):
    """The car's, and where it is on its track, (n, k) each."""

    position: Tensor
    heading: Tensor
    velocity: Tensor
    yaw_rate: Tensor
    steering: Tensor
    drive: Tensor
    station: Tensor
    """m along the track, from 0 to its length."""
    progress: Tensor
    """m since the car was placed, less than nothing if it went backwards."""


class CarOnTrack(Saved):
    """n cars, each on a track of its own, stepped in place at one control rate."""

    dynamics = None

    def __init__(
        self, card: CarCard, n: int, period: float, scan: Scan, beams: int, ahead: Sequence[float] = (),
        courses: Sequence[Course] = (),
    ) -> None:  # fmt: skip
        """``period`` (s) of control; ``scan`` with so many ``beams`` is the lidar's.

        ``ahead`` (m): distances along the centre line of the points that ``truth`` has as "ahead". ``courses``: the
        tracks, where they are not drawn.
        """
        self.card, self.n, self.period, self.device = card, n, period, torch.device("cpu")
        self.car = CarPlant(card, n, period)
        lidar = Lidar(beams, scan.angle_min, scan.angle_increment, scan.range_min, scan.range_max)
        middle = 0.5 * (card.front_axle - card.rear_axle)
        self.tracks = Tracks(n, lidar, Body(middle, *card.body[:2]), ahead, courses)
        self._known = bool(courses)
        figures = (card.lidar_position[0], 0.0, [0.5] * (2 * KNOTS), 10.0, 2.0, 1.0, 0.0, 0.0)
        own = [torch.tensor([x], dtype=torch.float32) for x in figures]
        self.nominal = Parameters(*self.car.nominal, *own)
        self.parameters = Parameters(*self.car.parameters, *live(n, own))
        _, (self.station, self.progress) = empty_block(n, [(1,), (1,)])
        _, (self._wheel_speed, self._length) = empty_block(n, [(1,), (1,)])
        every = torch.arange(n)
        self.refresh(every)
        self.put(every, *torch.zeros(4, n).unbind(0))

    def refresh(self, ids: Tensor) -> None:
        """Make the tracks of ``ids`` (m,) by their parameters."""
        if self._known:
            self.tracks.lay(ids, *(self.param(name)[ids] for name in CHOSEN))
        else:
            kind = self.param("track_kind")[ids]
            bent, cornered = ids[kind < 1], ids[kind >= 1]
            if len(bent):
                self.tracks.make(bent, *(self.param(name)[bent] for name in DRAWN))
            if len(cornered):
                drawn = (self.param(name)[cornered] for name in ("track_kind", *DRAWN))
                self.tracks.make_corners(cornered, tightest(self.card), *drawn)
        self._length[ids, 0] = self.tracks.length[ids]

    def put(self, ids: Tensor, part: Tensor, offset: Tensor, turn: Tensor, speed: Tensor) -> None:
        """Put the cars ``ids`` (m,) on their tracks.

        At a ``part`` (m,) of the way round, ``offset`` (m,) m to the left of the centre line, turned by ``turn`` (m,)
        rad from it, at ``speed`` (m,) m/s.
        """
        station = part * self.tracks.length[ids]
        place, way = self.tracks.point(ids, station)
        left = torch.stack([-torch.sin(way), torch.cos(way)], -1)
        zero = torch.zeros(len(ids), 1)
        heading = torch.remainder(way + turn + torch.pi, 2 * torch.pi) - torch.pi
        velocity = torch.stack([speed, torch.zeros_like(speed)], -1)
        car = CarState(place + offset[:, None] * left, heading[:, None], velocity, zero, zero, zero)
        self.set_state(ids, OnTrackState(*car, station[:, None], zero))

    def truth(self) -> dict[str, Tensor]:
        """Every quantity by name, live views (n, …). Walls and centre line are points (n, P, 3) m in the world."""
        tracks = self.tracks
        return {
            **self.car.truth(),
            "wheel_speed": self._wheel_speed,
            **{name: value for name, value in vars(tracks.located).items() if value.shape[1]},
            "progress": self.progress,
            "track_length": self._length,
            "scan": tracks.ranges,
            "left_wall": tracks.left,
            "right_wall": tracks.right,
        }

    def _measure(self, ids: Tensor | None = None) -> None:
        forward, yaw = self.parameters.lidar_forward, self.parameters.lidar_yaw
        self.tracks.measure(self.car.pose, self.station, forward, yaw, ids)
        self._wheel_speed[:, 0] = self.car.current.velocity[:, 0] * self.parameters.speed_scale

    def step(self, commands: Mapping[str, Tensor]) -> None:
        """One control period under ``steering_angle`` (n, 1) rad and ``speed`` (n, 1) m/s, held constant."""
        self.car.step(commands)
        self._measure()
        self.progress += self.tracks.located.moved
        self.station.copy_(self.tracks.located.station)

    def state(self, ids: Tensor) -> OnTrackState:
        """A copy of the state of the cars ``ids`` (m,)."""
        return OnTrackState(*self.car.state(ids), self.station[ids], self.progress[ids])

    def set_state(self, ids: Tensor, state: OnTrackState) -> None:
        """Put the cars ``ids`` (m,) into a state."""
        self.car.set_state(ids, CarState(*state[:-2]))
        self.station[ids], self.progress[ids] = state.station, state.progress
        if len(ids):
            self._measure(ids)

    def push(self, ids: Tensor, velocity: Tensor) -> None:
        """Change the cars' velocity by what of ``velocity`` (3,) m/s, world, is along the ground."""
        self.car.push(ids, velocity)

    def drawing(self) -> Any:
        """A MuJoCo model of how a car looks; its track is drawn by the task's markers."""
        return self.car.drawing()

    def poses(self, ids: Tensor) -> np.ndarray:
        """(m, bodies, 7) m and quaternion x, y, z, w: of the bodies of ``drawing``."""
        return self.car.poses(ids)
