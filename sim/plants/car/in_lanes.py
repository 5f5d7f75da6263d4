"""Cars in traffic: ``robo_rl.sim.plants.car`` and ``robo_rl.sim.scenes.lanes`` together."""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import mujoco
import numpy as np
import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse import empty_block
from robo_rl.sim.drawing import GREY, Poser
from robo_rl.sim.plants.car import CarParameters, CarPlant, CarState
from robo_rl.sim.plants.car.drawing import car_spec, joints
from robo_rl.sim.plants.saving import Saved, live
from robo_rl.sim.robots.car import CarCard
from robo_rl.sim.scenes.lanes import VEHICLE, Body, Lanes
from robo_rl.sim.scenes.lanes.scan import scan
from robo_rl.sim.scenes.tracks import Lidar

DRAWN = ("road_seed", "road_lanes", "road_bends", "road_crossings")
"""What ``Lanes.make`` takes."""
NAMES = (*CarParameters._fields, *DRAWN)
Parameters = cast(Any, namedtuple("Parameters", NAMES))
SETTLED = 0.75  # m from the middle of a lane, within which a car has changed to it
TALL = 1.45  # m, of vehicles in pictures
NOWHERE = (0.0, 0.0, -50.0, 0.0, 0.0, 0.0, 1.0)  # the pose of vehicles that there are not, under the ground


class InLanesState(NamedTuple):
    """The car's and its traffic's, (n, k) each."""

    position: Tensor
    heading: Tensor
    velocity: Tensor
    yaw_rate: Tensor
    steering: Tensor
    drive: Tensor
    station: Tensor
    """m along the road."""
    clock: Tensor
    """s, of the lights."""
    progress: Tensor
    """The greatest part of the route that it has completed."""
    astray: Tensor
    """s for which it has been more than 0.5 m from the middle of a lane."""
    settled: Tensor
    """The lane, counted from the right, in whose middle metre and a half it has been last."""
    changes: Tensor
    """How often that has become another one."""
    traffic: Tensor
    """(n, fields, vehicles): see ``robo_rl.sim.scenes.lanes.FIELDS``."""


class CarInLanes(Saved):
    """n cars, each on a road of its own with traffic, stepped in place at one control rate."""

    dynamics = None

    def __init__(self, card: CarCard, n: int, period: float, vehicles: int, lidar: Lidar | None = None) -> None:
        """``period`` (s) of control; so many other ``vehicles`` at most in each environment.

        With a ``lidar``, ``truth`` has a "scan" (n, beams) m of the vehicles around.
        """
        self.card, self.n, self.period, self.device = card, n, period, torch.device("cpu")
        self.car = CarPlant(card, n, period)
        middle = 0.5 * (card.front_axle - card.rear_axle)
        self.lanes = Lanes(n, Body(middle, *card.body[:2]), vehicles)
        own = [torch.tensor([x]) for x in ([0.5, 0.5], 3.0, 0.5, 1.0)]
        self.nominal = Parameters(*self.car.nominal, *own)
        self.parameters = Parameters(*self.car.parameters, *live(n, own))
        self.lidar = lidar
        _, (self.scan,) = empty_block(n, [(lidar.beams if lidar else 1,)])
        _, parts = empty_block(n, [(1,)] * 7)
        self.progress, self.astray, self.gained, self.jerk, self.settled, self.changes, self.changed = parts
        every, half = torch.arange(n), torch.full((n,), 0.5)
        self.refresh(every)
        self.put(every, torch.full((n, 2), 0.5), half, 10.0 * half, 0.0 * half, 0.0 * half, 0.0 * half)

    def refresh(self, ids: Tensor) -> None:
        """Make the roads of ``ids`` (m,) by their parameters."""
        self.lanes.make(ids, *(self.param(name)[ids] for name in DRAWN))

    def put(
        self, ids: Tensor, seed: Tensor, density: Tensor, desired: Tensor, offset: Tensor, turn: Tensor, speed: Tensor
    ) -> None:
        """Put the cars ``ids`` (m,) where their routes begin, in new traffic.

        ``seed`` (m, 2), ``density`` and ``desired`` speed (m,) are what ``Lanes.fill`` takes. The car is ``offset``
        (m,) m to the left of the lane's middle, turned by ``turn`` (m,) rad from it, at ``speed`` (m,) m/s.
        """
        self.lanes.fill(ids, seed, density, desired)
        x, y, way, station = self.lanes.start(ids)
        zero = torch.zeros(len(ids), 1)
        place = torch.stack([x - torch.sin(way) * offset, y + torch.cos(way) * offset], -1)
        velocity = torch.stack([speed, torch.zeros_like(speed)], -1)
        car = CarState(place, (way + turn)[:, None], velocity, zero, zero, zero)
        lane, traffic = self.lanes.road[ids, 5:6], self.lanes.traffic[ids]
        self.set_state(ids, InLanesState(*car, station[:, None], zero, zero, zero, lane, zero, traffic))

    def truth(self) -> dict[str, Tensor]:
        """Every quantity by name, live views (n, …). ``marks`` are points (n, 5, P, 3) m in the world."""
        return {
            **self.car.truth(),
            **vars(self.lanes.located),
            "wheel_speed": self.car.current.velocity[:, :1],
            "progress": self.progress,
            "gained": self.gained,
            "astray": self.astray,
            "jerk": self.jerk,
            "lanes_beside": self.lanes.located.lane_count[:, :2],
            "changes": self.changes,
            "changed": self.changed,
            "marks": self.lanes.marks,
            **({"scan": self.scan} if self.lidar else {}),
        }

    def step(self, commands: Mapping[str, Tensor]) -> None:
        """One control period under ``steering_angle`` (n, 1) rad and ``speed`` (n, 1) m/s, held constant."""
        self.jerk.copy_(self.car.current.drive)
        self.car.step(commands)
        self.jerk.sub_(self.car.current.drive).mul_(-1.0 / self.period)
        self.lanes.advance(self.car.block, self.period)
        self.lanes.measure(self.car.block)
        self._look(torch.arange(self.n))
        located = self.lanes.located
        torch.sub(located.completion, self.progress, out=self.gained)
        self.gained.clamp_(min=0.0)
        self.progress += self.gained
        self.astray.add_(self.period).mul_(located.lane_offset.abs() > 0.5)
        lane = located.lane_count[:, 1:2]
        self.changed[:] = (located.lane_offset.abs() < SETTLED) & (lane != self.settled)
        self.changes += self.changed
        torch.where(self.changed > 0.5, lane, self.settled, out=self.settled)

    def state(self, ids: Tensor) -> InLanesState:
        """A copy of the state of the cars ``ids`` (m,)."""
        lanes = self.lanes
        own = (self.progress[ids], self.astray[ids], self.settled[ids], self.changes[ids])
        place = (lanes.station[ids, None], lanes.clock[ids, None])
        return InLanesState(*self.car.state(ids), *place, *own, lanes.traffic[ids])

    def set_state(self, ids: Tensor, state: InLanesState) -> None:
        """Put the cars ``ids`` (m,) into a state."""
        self.car.set_state(ids, CarState(*state[: len(CarState._fields)]))
        lanes = self.lanes
        lanes.station[ids], lanes.clock[ids] = state.station[:, 0], state.clock[:, 0]
        lanes.traffic[ids] = state.traffic
        self.progress[ids], self.astray[ids] = state.progress, state.astray
        self.settled[ids], self.changes[ids] = state.settled, state.changes
        self.gained[ids], self.jerk[ids], self.changed[ids] = 0.0, 0.0, 0.0
        if len(ids):
            lanes.measure(self.car.block, ids)
            self._look(ids)

    def _look(self, ids: Tensor) -> None:
        """Write the scans of the cars ``ids`` (m,)."""
        if self.lidar:
            car, forward = self.car.current, self.card.lidar_position[0]
            heading = car.heading[ids]
            place = car.position[ids] + forward * torch.cat([torch.cos(heading), torch.sin(heading)], -1)
            self.scan[ids] = scan(self.lidar, torch.cat([place, heading], -1), self.lanes.poses(ids))

    def push(self, ids: Tensor, velocity: Tensor) -> None:
        """Change the cars' velocity by what of ``velocity`` (3,) m/s, world, is along the ground."""
        self.car.push(ids, velocity)

    def drawing(self) -> Any:
        """A MuJoCo model of the car and of all vehicles; the road is drawn by the task's markers."""
        return self._poser.model

    def poses(self, ids: Tensor) -> np.ndarray:
        """(m, bodies, 7) m and quaternion x, y, z, w: of the bodies of ``drawing``."""
        state = self.car.current
        own = joints(torch.cat([state.position[ids], state.heading[ids], state.steering[ids]], 1).numpy())
        found, others = self._poser.poses(own), self.lanes.poses(ids)
        places = found[:, -self.lanes.vehicles :]
        places[:] = 0.0
        places[..., :2], half = others[..., :2], 0.5 * others[..., 2]
        places[..., 5], places[..., 6] = np.sin(half), np.cos(half)
        places[np.isnan(others[..., 0])] = NOWHERE
        return found

    @functools.cached_property
    def _poser(self) -> Poser:
        spec = car_spec(self.card)
        length, width = VEHICLE
        for k in range(self.lanes.vehicles):
            body = spec.worldbody.add_body(name=f"vehicle {k + 1}", mocap=True)
            box = {"type": mujoco.mjtGeom.mjGEOM_BOX, "rgba": GREY}
            body.add_geom(size=[0.5 * length, 0.5 * width, 0.27 * TALL], pos=[0, 0, 0.32 * TALL], **box)
            body.add_geom(size=[0.26 * length, 0.42 * width, 0.22 * TALL], pos=[-0.2, 0, 0.78 * TALL], **box)
        return Poser(spec.compile())
