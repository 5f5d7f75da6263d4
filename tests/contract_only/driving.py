"""A car among others on roads with lanes and lights of its own, by the facts of a contract.

A road goes one way, in gentle bends. Others keep to their lanes and their distance by the intelligent driver model
(Treiber, Hennecke, Helbing 2000), and stop at red lights; nobody crosses the road.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.contract_only.interface import Arrays, Draws, Policy, Sensors
from tests.contract_only.racing import STEP, Car
from tests.contract_only.seeing import Lidar, closed

LENGTH, APART, BEGIN, ROUTE, ONE_LANE = 400.0, 0.5, 60.0, 300.0, 45.0
"""m: of a road and between points of its edge; where a route begins, how long it is, and how much of its end lies in
one lane."""
MOST = 24
"""Vehicles on a road at the greatest density."""
SEEN, COUNT, BEHIND = 80.0, 8, 1.5
"""m, vehicles, and the factor on the way to those behind: the nearest that are told (``facts.references``)."""
GREEN, RED = 12.0, 10.0
"""s"""
NO_LIGHT = 100.0


class Road:
    """The right edge, lanes to the left of it, and lights."""

    def __init__(self, draw: Draws, i: int, wide: float, yellow: float | None) -> None:
        random, bends = draw.random, float(draw("road.bends")[i])
        self.wide, self.lanes = wide, int(draw("road.lanes")[i])
        self.along = np.arange(0.0, LENGTH + 100.0, APART)
        waves = zip((150.0, 260.0), random.uniform(0.0, 6.28, 2), strict=True)
        self.heading = sum(bends * 0.2 * np.sin(2 * np.pi * self.along / far + phase) for far, phase in waves)
        steps = APART * np.stack([np.cos(self.heading), np.sin(self.heading)], 1)
        self.edge = np.concatenate([[[0.0, 0.0]], np.cumsum(steps, 0)[:-1]])
        self.stops = np.sort(random.uniform(BEGIN + 60.0, BEGIN + ROUTE - 80.0, int(draw("road.crossings")[i])))
        self.stops = self.stops[:0] if yellow is None else self.stops
        self.red_from, self.cycle = GREEN + (yellow or 0.0), GREEN + (yellow or 0.0) + RED
        self.clocks = random.uniform(0.0, self.cycle, len(self.stops))

    def place(self, s: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(k, 2) m and (k,) rad of places (k,) m along the edge and to the left of it."""
        heading = np.interp(s, self.along, self.heading)
        x = np.stack([np.interp(s, self.along, self.edge[:, axis]) for axis in (0, 1)], 1)
        return x + y[:, None] * np.stack([-np.sin(heading), np.cos(heading)], 1), heading

    def find(self, x: np.ndarray, near: float) -> tuple[float, float, float]:
        """m along the edge, m to the left of it, and its heading (rad), of a place (2,) m."""
        low = max(0, int((near - 10.0) / APART))
        k = low + int(np.linalg.norm(self.edge[low : low + 60] - x, axis=1).argmin())
        away, heading = x - self.edge[k], self.heading[k]
        ahead = away @ [np.cos(heading), np.sin(heading)]
        return float(self.along[k] + ahead), float(away @ [-np.sin(heading), np.cos(heading)]), float(heading)

    def light(self, s: float, time: float) -> tuple[float, float, float]:
        """m to the next stop line, and whether its light is red, and yellow."""
        ahead = np.flatnonzero(self.stops > s)
        if not len(ahead):
            return NO_LIGHT, 0.0, 0.0
        now = (time + self.clocks[ahead[0]]) % self.cycle
        red, yellow = now >= self.red_from, GREEN <= now < self.red_from
        return min(NO_LIGHT, self.stops[ahead[0]] - s), float(red), float(yellow)


class Traffic:
    """Other vehicles: s, lane and speed of each."""

    def __init__(self, draw: Draws, i: int, road: Road, size: tuple[float, float]) -> None:
        random, count = draw.random, round(float(draw("traffic.density")[i]) * MOST)
        self.road, (self.long, self.wide) = road, size
        self.lane = np.arange(count) % road.lanes
        each = -(-count // road.lanes)
        self.s = (np.arange(count) // road.lanes + random.uniform(0.0, 0.5, count)) * LENGTH / each
        self.s[np.abs(self.s - BEGIN) < 20.0] += 40.0
        self.desired = float(draw("traffic.speed")[i]) * random.uniform(0.7, 1.0, count)
        self.speed = 0.6 * self.desired

    def step(self, dt: float, s: float, lane: int, speed: float, front: float, time: float) -> None:
        """Of ``dt`` s, behind or before the car that is not theirs."""
        places, speeds = np.append(self.s, s), np.append(self.speed, speed)
        lanes = np.append(self.lane, lane)
        ahead = places[None] - self.s[:, None]
        ahead = np.where((lanes[None] == self.lane[:, None]) & (ahead > 1e-9), ahead, np.inf)
        first = ahead.argmin(1)
        gap, leader = ahead.min(1) - self.long, speeds[first]
        for k, place in enumerate(self.s):
            far, red, yellow = self.road.light(place + 0.5 * self.long, time)
            stops = red or (yellow and self.speed[k] ** 2 / 6.0 < far)
            if stops and far < gap[k]:
                gap[k], leader[k] = far, 0.0
        wanted = 2.0 + self.speed * 1.2 + self.speed * (self.speed - leader) / (2.0 * np.sqrt(1.5 * 2.0))
        gap = np.maximum(gap, 0.1)
        push = 1.5 * (1.0 - (self.speed / self.desired) ** 4 - (np.maximum(wanted, 0.0) / gap) ** 2)
        self.speed = np.maximum(0.0, self.speed + dt * np.maximum(push, -8.0))
        self.s = (self.s + dt * self.speed) % LENGTH


def corners(x: np.ndarray, heading: float, size: tuple[float, float]) -> np.ndarray:
    """(4, 2) m of a rectangle about ``x`` (2,)."""
    c, s = np.cos(heading), np.sin(heading)
    ends = 0.5 * np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]]) * size
    return x + ends @ [[c, s], [-s, c]]


def overlap(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two rectangles (4, 2) do: no side of either parts them."""
    for shape in (one, other):
        for side in (shape[1] - shape[0], shape[2] - shape[1]):
            a, b = one @ side, other @ side
            if a.max() < b.min() or b.max() < a.min():
                return False
    return True


class Drive:
    """One car on its road."""

    def __init__(self, policy: Policy, draw: Draws, i: int) -> None:
        facts = policy.facts
        self.names = {s["name"] for s in policy.contract["signals"]}
        self.road = Road(draw, i, facts["lane_width_m"], facts.get("yellow_s"))
        self.traffic = Traffic(draw, i, self.road, tuple(facts["neighbour_size_m"]))
        self.size, (self.middle, _) = tuple(policy.robot["facts"]["body"][:2]), facts["middle_of_body"]
        self.lidar = Lidar(policy.contract) if "scan" in self.names else None
        self.front = 0.5 * self.size[0] + self.middle
        self.reach = np.array(facts["along_path_m"]["route"])
        self.car, self.time, self.goal = Car(policy, draw, i), 0.0, int(draw.random.integers(self.road.lanes))
        lane = int(draw.random.integers(self.road.lanes))
        across = (lane + 0.5) * self.road.wide + float(draw("initial.offset")[i])
        place, heading = self.road.place(np.array([BEGIN]), np.array([across]))
        (self.car.x, self.car.y), self.car.heading = place[0], float(heading[0] + draw("initial.turn")[i])
        self.car.u = float(draw("initial.speed")[i])
        self.s, self.y, self.heading = self.road.find(place[0], BEGIN)
        self.fault, self.there = "", False
        self.style = {
            f"{name}_setpoint": float(draw(f"style.{name}", otherwise=np.nan)[i])
            for name in ("time_gap", "speed", "advantage")
        }

    @property
    def stays(self) -> bool:
        """Whether no lane is the route's."""
        return "lane_count" not in self.names

    @property
    def lane(self) -> int:
        return int(np.clip(self.y // self.road.wide, 0, self.road.lanes - 1))

    def truth(self) -> Arrays:
        """(k,) each."""
        car, road, lane = self.car, self.road, self.lane
        middle = (lane + 0.5) * road.wide
        points, _ = road.place(self.s + self.reach, np.full(len(self.reach), middle))
        told: dict[str, Any] = {
            "wheel_speed": [car.scale * car.u], "yaw_rate": [car.r], "lane_offset": [self.y - middle],
            "lane_heading": [(car.heading - self.heading + np.pi) % (2 * np.pi) - np.pi],
            "route": self.seen(points - [car.x, car.y]),
        }  # fmt: skip
        left, right = road.lanes - 1 - lane, lane
        if self.stays:
            told["lanes_beside"] = [left, right]
        else:
            told["lane_count"] = [left, right, self.goal - lane]
            told["route_left"] = [BEGIN + ROUTE - ONE_LANE - self.s]
            distance, *state = road.light(self.s + self.front, self.time)
            told |= {"light_distance": [distance], "light_state": state}
        told |= {"scan": self.scan()} if self.lidar else self.neighbours()
        return {name: np.array(value, float) for name, value in told.items()}

    def scan(self) -> np.ndarray:
        """(beams,) m to other vehicles."""
        car, others = self.car, self.traffic
        places, headings = self.road.place(others.s, (others.lane + 0.5) * self.road.wide)
        size = (others.long, others.wide)
        sides = [closed(corners(*where, size)) for where in zip(places, headings, strict=True)]
        return self.lidar.ranges(np.array([car.x, car.y, car.heading]), np.concatenate(sides))

    def seen(self, away: np.ndarray) -> np.ndarray:
        """Vectors (k, 2) of the world in the car's frame."""
        c, s = np.cos(self.car.heading), np.sin(self.car.heading)
        return away @ [[c, -s], [s, c]]

    def neighbours(self) -> Arrays:
        """The nearest first; zeros where there is none."""
        car, others = self.car, self.traffic
        places, headings = self.road.place(others.s, (others.lane + 0.5) * self.road.wide)
        away = self.seen(places - [car.x, car.y])
        far = np.linalg.norm(away, axis=1)
        order = np.argsort(np.where(away[:, 0] < 0.0, BEHIND * far, far))
        order = order[far[order] < SEEN][:COUNT]
        speeds = others.speed[:, None] * np.stack([np.cos(headings), np.sin(headings)], 1)
        found = {"position": np.zeros((COUNT, 2)), "velocity": np.zeros((COUNT, 2)), "heading": np.zeros(COUNT),
                 "valid": np.zeros(COUNT)}  # fmt: skip
        k = len(order)
        found["position"][:k], found["velocity"][:k] = away[order], self.seen(speeds)[order] - [car.u, car.v]
        turned = headings[order] - car.heading
        found["heading"][:k], found["valid"][:k] = (turned + np.pi) % (2 * np.pi) - np.pi, 1.0
        return {f"neighbour_{name}": value for name, value in found.items()}

    def step(self, steering: float, speed: float, period: float) -> None:
        """A control period."""
        car, road, before = self.car, self.road, self.s + self.front
        for _ in range(round(period / STEP)):
            car.step(steering, speed)
        self.time += period
        self.traffic.step(period, self.s, self.lane, car.u, self.front, self.time)
        self.s, self.y, self.heading = road.find(np.array([car.x, car.y]), self.s)
        distance, red, _ = road.light(before, self.time)
        outline = corners(self.at(self.middle), car.heading, self.size)
        places, headings = road.place(self.traffic.s, (self.traffic.lane + 0.5) * road.wide)
        near = np.flatnonzero(np.linalg.norm(places - [car.x, car.y], axis=1) < 10.0)
        size = (self.traffic.long, self.traffic.wide)
        if any(overlap(outline, corners(places[k], headings[k], size)) for k in near):
            self.fault = "contact"
        elif not 0.0 < self.y < road.lanes * road.wide:
            self.fault = "off the road"
        elif red and self.s + self.front > before + distance:
            self.fault = "red light"
        elif not self.stays and self.s > BEGIN + ROUTE - ONE_LANE and self.lane != self.goal:
            self.fault = "misses the route"
        self.there = self.s >= BEGIN + ROUTE

    def at(self, ahead: float) -> np.ndarray:
        """(2,) m of what is so far ahead of the centre of mass."""
        car = self.car
        return np.array([car.x + ahead * np.cos(car.heading), car.y + ahead * np.sin(car.heading)])


def success(file: Path, n: int, seed: int = 0) -> float:
    """The part of n routes that are driven to their end without a fault."""
    policy = Policy(file, n)
    draw = Draws(policy, seed)
    drives, sensors = [Drive(policy, draw, i) for i in range(n)], Sensors(policy, draw, policy.period)
    style = {name: np.array([[drive.style[name]] for drive in drives]) for name in drives[0].style}
    for _ in range(round(policy.facts["episode"] / policy.period)):
        truth = [drive.truth() for drive in drives]
        for name in sensors.signals:
            sensors.note(name, np.stack([one[name] for one in truth]))
        commands = policy({**sensors.read(), **style})
        for i, drive in enumerate(drives):
            if not drive.there and not drive.fault:
                drive.step(float(commands["steering_angle"][i, 0]), float(commands["speed"][i, 0]), policy.period)
        if all(drive.there or drive.fault for drive in drives):
            break
    return float(np.mean([drive.there and not drive.fault for drive in drives] & ~policy.refused))
