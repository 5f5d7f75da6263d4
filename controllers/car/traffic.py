"""Following and changing lanes as road traffic does, and a driver that does both by what car-lanes measures.

Numpy or torch alike. ``idm_acceleration``: the intelligent driver model (Treiber, Hennecke, Helbing 2000, Congested
traffic states in empirical observations and microscopic simulations). ``mobil_agrees``: minimizing overall braking
induced by lane changes (Kesting, Treiber, Helbing 2007, General lane-changing model MOBIL for car-following models),
from where the default figures are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from robo_rl.contract import Robot

EMERGENCY = 8.0  # m/s², that no vehicle brakes harder
LANE = 3.5  # m
LENGTH, ABREAST = 4.5, 2.0  # m: of other vehicles; across, within which one is in the way
LATERAL = 2.5  # m/s² in bends
NEAR = 150.0  # m before the end of the route, from where on the route's lane matters more than others


@dataclass(frozen=True)
class Idm:
    """Parameters of the intelligent driver model, but for the desired speed."""

    acceleration: float = 1.4
    """m/s²."""
    braking: float = 2.0
    """m/s², comfortable."""
    headway: Any = 1.5
    """s; also one for each car, (n,)."""
    standstill: float = 2.0
    """m, between standing vehicles."""


@dataclass(frozen=True)
class Mobil:
    """Parameters of MOBIL. Its authors let the politeness vary from 0 to 1."""

    politeness: float = 0.2
    safe_braking: float = 4.0
    """m/s², that a change may ask of the vehicle behind it."""
    threshold: Any = 0.2
    """m/s², the least advantage, also one for each car, (n,); 0.1 in the paper."""


def idm_acceleration(speed: Any, gap: Any, leader_speed: Any, desired_speed: Any, idm: Idm) -> Any:
    """m/s², for speeds (m/s) and the gap (m) between bumpers; no less than full braking."""
    xp = array_namespace(gap)
    part = speed / desired_speed
    approach = speed * (speed - leader_speed) / (2 * (idm.acceleration * idm.braking) ** 0.5)
    close = idm.standstill + xp.clip(speed * idm.headway + approach, 0.0, None)
    ratio = close / xp.clip(gap, 0.1, None)
    return xp.clip(idm.acceleration * (1 - part**4 - ratio**2), -EMERGENCY, None)


def equilibrium_gap(speed: Any, desired_speed: Any, idm: Idm) -> Any:
    """m, of vehicles that follow each other at one constant speed (m/s)."""
    return (idm.standstill + speed * idm.headway) / (1 - (speed / desired_speed) ** 4) ** 0.5


def mobil_agrees(own_gain: Any, behind_after: Any, others_gain: Any, mobil: Mobil) -> Any:
    """Whether to change lanes.

    ``own_gain`` and ``others_gain`` (m/s²): accelerations after a change less those before, its own and the sum of the
    vehicles' behind it in both lanes; ``behind_after``: of the vehicle behind it in the new lane.
    """
    return (behind_after >= -mobil.safe_braking) & (own_gain + mobil.politeness * others_gain > mobil.threshold)


class LaneDriver:
    """IDM and MOBIL by measured neighbours, stops at lights, and pursuit of the lane's middle."""

    name = "idm"

    def __init__(
        self, robot: Robot, speed_gain: float, limit: float, period: float, idm: Idm | None = None,
        mobil: Mobil | None = None,
    ) -> None:  # fmt: skip
        """``speed_gain`` (1/s) of the car's speed controller; ``limit`` (m/s): the speed limit; ``period`` (s)."""
        facts = robot.facts
        self.base, self.rear = float(facts["front_axle"]) + float(facts["rear_axle"]), float(facts["rear_axle"])
        self.steering_limit, self.half = float(facts["steering_limit"]), 0.5 * float(facts["body"][0])
        self.gain, self.limit, self.period = speed_gain, limit, period
        self.idm, self.mobil = idm or Idm(), mobil or Mobil()

    def first_state(self, n: int) -> np.ndarray:
        """(n, 2): the lane that it drives to, counted from the right (-1: that where it is), and s until it looks."""
        return np.tile(np.array([-1.0, 0.0], np.float32), (n, 1))

    def __call__(self, signals: Mapping[str, Any], state: Any) -> tuple[dict[str, Any], Any]:
        """Steering angle (n, 1) rad and speed (n, 1) m/s."""
        xp = array_namespace(state)
        speed = xp.clip(signals["wheel_speed"][:, 0], 0.0, None)
        left, right, goal = (xp.round(signals["lane_count"][:, k]) for k in range(3))
        remaining, light = signals["route_left"][:, 0], signals["light_distance"][:, 0]
        aim = xp.where((state[:, 0] < 0) | (state[:, 0] > left + right), right, state[:, 0])
        around = _Around(signals, speed, self.half)
        bend = _bend(xp, signals["route"])
        desired = xp.clip(xp.sqrt(LATERAL / (bend + 1e-4)), 3.0, self.limit)
        # --- which lane
        own = self._behind_leader(around, 0.0 * speed, speed, desired)
        best, chosen = 0.0 * speed, aim
        settled = (aim == right) & (xp.abs(signals["lane_offset"][:, 0]) < 0.5) & (state[:, 1] <= 0.0)
        wanted = xp.sign(goal) * xp.clip(2.5 * (1 - remaining / (NEAR + 50 * xp.abs(goal))), 0.0, None)
        for side, room in ((1.0, left), (-1.0, right)):
            lane = 0.0 * speed + side
            after = self._behind_leader(around, lane, speed, desired)
            front, behind = around.ahead(lane), around.behind(lane)
            follow = idm_acceleration(behind[1], behind[0], speed, self.limit, self.idm)
            before = idm_acceleration(behind[1], behind[0] + front[0] + LENGTH, front[1], self.limit, self.idm)
            lost = xp.where(behind[0] < around.none, follow - before, 0.0 * speed)
            keep = (remaining < NEAR) & (xp.sign(goal) != side)
            bias = side * wanted
            agreed = mobil_agrees(after - own + bias, follow, lost, self.mobil)
            agreed = agreed & settled & (room > 0.5) & ~keep & (front[0] > 2.0) & (behind[0] > 2.0)
            agreed = agreed & ((light > 25.0) | (bias > 1.0))
            gain = after - own + bias
            better = agreed & (gain > best)
            best, chosen = xp.where(better, gain, best), xp.where(better, right + side, chosen)
        wait = xp.where(chosen != aim, 0.0 * speed + 1.0, xp.clip(state[:, 1] - self.period, 0.0, None))
        # --- how fast
        shift = chosen - right
        acceleration = xp.minimum(own, self._behind_leader(around, shift, speed, desired))
        stop = (signals["light_state"][:, 0] > 0.5) | (
            (signals["light_state"][:, 1] > 0.5) & (speed * speed < 6.0 * light)
        )
        far = 0.0 * speed + 200.0
        held = xp.where(stop & (light > -1.0), light + 1.0, far)
        pending = xp.abs(goal - shift)  # lanes, for which room is kept before the end
        room = xp.clip(remaining - 20.0 * pending, 0.5, None)
        held = xp.minimum(held, xp.where(pending > 0.5, room, far))
        halted = idm_acceleration(speed, held, 0.0 * speed, desired, self.idm)
        acceleration = xp.where(held < far, xp.minimum(acceleration, halted), acceleration)
        target = xp.clip(speed + acceleration / self.gain, 0.0, self.limit)
        # --- where to
        offset = signals["lane_offset"][:, 0]
        error = offset + xp.clip(LANE * shift - offset, -1.6, 1.6)
        route, reach = signals["route"], 4.0 + 0.7 * speed
        near = xp.clip(1 - xp.abs(route[..., 0] - reach[:, None]) / 6.0, 0.0, None) + 1e-6
        x, y = route[..., 0] + self.rear, route[..., 1] + error[:, None]
        arcs = 2 * y / (x * x + y * y)
        arc = xp.sum(near * arcs, axis=1) / xp.sum(near, axis=1)
        steering = xp.clip(xp.atan(self.base * arc), -self.steering_limit, self.steering_limit)
        return {"steering_angle": steering[:, None], "speed": target[:, None]}, xp.stack([chosen, wait], axis=1)

    def _behind_leader(self, around: _Around, lane: Any, speed: Any, desired: Any) -> Any:
        gap, leader = around.ahead(lane)
        return idm_acceleration(speed, gap, leader, desired, self.idm)


class StyledDriver(LaneDriver):
    """``LaneDriver`` by what car-traffic measures, whose style the operator sets: IDM's time gap and desired speed, and
    MOBIL's threshold."""

    def __call__(self, signals: Mapping[str, Any], state: Any) -> tuple[dict[str, Any], Any]:
        """Steering angle (n, 1) rad and speed (n, 1) m/s."""
        xp = array_namespace(state)
        headway, speed, least = (signals[f"{name}_setpoint"][:, 0] for name in ("time_gap", "speed", "advantage"))
        styled = LaneDriver.__new__(LaneDriver)
        styled.__dict__.update(self.__dict__)
        styled.limit, styled.idm = speed, replace(self.idm, headway=headway)
        styled.mobil = replace(self.mobil, threshold=least)
        none = 0.0 * signals["lane_offset"]
        lanes = xp.concat([signals["lanes_beside"], none], axis=1)
        free = {"lane_count": lanes, "route_left": none + 1e3, "light_distance": none + 100.0}
        return styled({**signals, **free, "light_state": xp.concat([none, none], axis=1)}, state)


class _Around:
    """Neighbours by lanes."""

    none = 100.0  # m, where there is nobody

    def __init__(self, signals: Mapping[str, Any], speed: Any, half: float) -> None:
        xp = self.xp = array_namespace(speed)
        place, velocity = signals["neighbour_position"], signals["neighbour_velocity"]
        self.x, self.speed, self.half = place[..., 0], speed, half
        self.valid, crossing = signals["neighbour_valid"] > 0.5, xp.abs(signals["neighbour_heading"]) > 0.8
        self.along = xp.clip(velocity[..., 0] + speed[:, None], 0.0, None)
        self.across = place[..., 1] - lane_middle(xp, signals, self.x)  # m from the middle of the lane
        self.reach = xp.where(crossing, 3.3 + 0.0 * self.x, ABREAST + 0.0 * self.x)
        self.length = xp.where(crossing, 0.9 + 0.0 * self.x, 0.5 * LENGTH + 0.0 * self.x)

    def ahead(self, lane: Any) -> tuple[Any, Any]:
        """Gap (n,) m and speed (n,) m/s of the vehicle ahead in a lane (n,), counted to the left from its own."""
        return self._nearest(lane, self.x, self.x > 0.0)

    def behind(self, lane: Any) -> tuple[Any, Any]:
        """The same of that behind."""
        return self._nearest(lane, -self.x, self.x <= 0.0)

    def _nearest(self, lane: Any, distance: Any, which: Any) -> tuple[Any, Any]:
        xp = self.xp
        there = which & self.valid & (xp.abs(self.across - LANE * lane[:, None]) < self.reach)
        gap = xp.where(there, distance - self.length - self.half, self.none + 0.0 * distance)
        nearest = xp.min(gap, axis=1)
        among = there & (gap <= nearest[:, None])
        count = xp.sum(xp.where(among, 1.0 + 0.0 * gap, 0.0 * gap), axis=1)
        speed = xp.sum(xp.where(among, self.along, 0.0 * gap), axis=1) / xp.clip(count, 1.0, None)
        return nearest, xp.where(count > 0.5, speed, self.speed)


def lane_middle(xp: Any, signals: Mapping[str, Any], x: Any) -> Any:
    """(n, k) m: y of the middle of the lane at places x (n, k) m ahead, in the car's frame."""
    route = signals["route"]
    begin = -signals["lane_offset"]
    found = begin - x * xp.tan(xp.clip(signals["lane_heading"], -1.0, 1.0))  # behind, and up to the first point
    for k in range(route.shape[1]):
        ahead, side = route[:, k : k + 1, 0], route[:, k : k + 1, 1]
        if k == 0:
            last_x, last_y = 0.0 * ahead, begin
        part = (x - last_x) / xp.clip(ahead - last_x, 0.5, None)
        found = xp.where(x > last_x, last_y + part * (side - last_y), found)
        last_x, last_y = ahead, side
    return found


def _bend(xp: Any, route: Any) -> Any:
    """(n,) 1/m: the greatest curvature of circles through three points of the next 48 m."""
    a, b, c = route[:, 1:5], route[:, 2:6], route[:, 3:7]
    u, v, w = b - a, c - b, c - a
    area = xp.abs(u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0])
    sides = xp.sqrt(xp.sum(u * u, axis=-1) * xp.sum(v * v, axis=-1) * xp.sum(w * w, axis=-1))
    return xp.max(2 * area / xp.clip(sides, 1e-6, None), axis=-1)
