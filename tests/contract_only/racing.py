"""A car of its own on tracks of its own: two axles, tyres by the magic formula, walls along a curve that closes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.contract_only.interface import Draws, Policy, Sensors
from tests.contract_only.seeing import Lidar, closed, distance

STEP, GRAVITY, POINTS = 0.0025, 9.80665, 160
APART, AHEAD = 4.0, 2.0
"""m between way-points, and from the car to the next at least (``facts.references``)."""
SIZE = 13.0
"""m, of tracks whose size no range tells."""


class Track:
    """A closed way of so many m, or of more where it is wide, and walls on both of its sides."""

    def __init__(self, random: np.random.Generator, size: float, width: float) -> None:
        size = max(size, 3.5 * width)  # else the walls on the inside of bends would cross
        angle = np.linspace(0.0, 2 * np.pi, POINTS, endpoint=False)
        far = sum(
            a * np.cos(k * angle + p) for k, a, p in zip((2, 3), (0.18, 0.08), random.uniform(0, 6.28, 2), strict=True)
        )
        self.middle = 0.5 * size * (1.0 + far)[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
        way = np.roll(self.middle, -1, 0) - np.roll(self.middle, 1, 0)
        self.way = way / np.linalg.norm(way, axis=1, keepdims=True)
        left = 0.5 * width * np.stack([-self.way[:, 1], self.way[:, 0]], 1)
        self.walls = np.concatenate([closed(self.middle + left), closed(self.middle - left)])

        far = np.linalg.norm(np.roll(self.middle, -1, 0) - self.middle, axis=1)
        self.along = np.concatenate([[0.0], np.cumsum(far)])
        """m to each point of the middle, and all the way round."""

    def waypoint(self, at: int) -> np.ndarray:
        """(2,) m: the next of points about ``APART`` m apart that is ``AHEAD`` m ahead of a point of the middle."""
        whole = self.along[-1]
        apart = whole / round(whole / APART)
        s = apart * np.ceil((self.along[at] + AHEAD) / apart) % whole
        closed = np.concatenate([self.middle, self.middle[:1]])
        return np.array([np.interp(s, self.along, closed[:, axis]) for axis in (0, 1)])

    def nearest(self, place: np.ndarray) -> int:
        return int(np.linalg.norm(self.middle - place, axis=1).argmin())


class Car:
    """One, with what was drawn for it."""

    def __init__(self, policy: Policy, draw: Draws, i: int) -> None:
        own, car = policy.robot["facts"], policy.facts["car"]

        def times(name: str) -> float:
            return float(draw(name, otherwise=1.0)[i])

        self.front, self.rear, self.own = own["front_axle"], own["rear_axle"], own
        self.grip, self.mass = own["friction"] * times("friction"), own["mass"] * times("mass")
        self.inertia, self.car, self.shape = car["inertia"] * times("inertia"), car, car["tyre_shape"]
        self.most = own["acceleration"] * times("acceleration")
        self.motor, self.servo = car["motor_time"] * times("motor_time"), car["steering_time"] * times("steering_time")
        stiff = times("stiffness")
        self.stiff = car["front_stiffness"] * stiff, car["rear_stiffness"] * stiff
        self.gain, self.trim = times("steering_gain"), float(draw("steering_offset")[i])
        self.scale = times("speed_scale")
        self.x = self.y = self.heading = self.u = self.v = self.r = self.steering = self.drive = 0.0

    def step(self, steering: float, speed: float) -> None:
        """2.5 ms."""
        car, limit = self.car, self.own["steering_limit"]
        wanted = np.clip(self.gain * steering + self.trim, -limit, limit)
        rate = self.own["steering_rate"]
        self.steering += STEP * float(np.clip((wanted - self.steering) / self.servo, -rate, rate))
        most = self.most * min(1.0, car["power_speed"] / max(abs(self.u), 1e-3))
        asked = float(np.clip(car["speed_gain"] * (speed - self.scale * self.u), -self.most, most))
        self.drive += STEP * (asked - self.drive) / self.motor
        base, calm = self.front + self.rear, max(abs(self.u), 0.5)
        loads = self.mass * GRAVITY * self.rear / base, self.mass * GRAVITY * self.front / base
        slips = (
            self.steering - np.arctan2(self.v + self.front * self.r, calm),
            -np.arctan2(self.v - self.rear * self.r, calm),
        )
        push, across = 0.5 * self.mass * self.drive, []
        for load, slip, stiff in zip(loads, slips, self.stiff, strict=True):
            left = np.sqrt(max((self.grip * load) ** 2 - push**2, 0.01 * (self.grip * load) ** 2))
            across.append(left * np.sin(self.shape * np.arctan(stiff * slip)))
        cosine, sine = np.cos(self.steering), np.sin(self.steering)
        drag = car["drag"] * self.u * abs(self.u) + car["rolling"] * self.mass * GRAVITY * np.tanh(10 * self.u)
        ax = (push * (1 + cosine) - across[0] * sine - drag) / self.mass + self.v * self.r
        ay = (across[0] * cosine + across[1] + push * sine) / self.mass - self.u * self.r
        turn = (self.front * (across[0] * cosine + push * sine) - self.rear * across[1]) / self.inertia
        self.u, self.v, self.r = self.u + STEP * ax, self.v + STEP * ay, self.r + STEP * turn
        c, s = np.cos(self.heading), np.sin(self.heading)
        self.x += STEP * (c * self.u - s * self.v)
        self.y += STEP * (s * self.u + c * self.v)
        self.heading += STEP * self.r

    def outline(self, middle: float) -> np.ndarray:
        """(8, 2) m: corners of the body and the middles of its sides."""
        long, wide, _ = self.own["body"]
        ends = np.array([[1, 1], [1, 0], [1, -1], [0, -1], [-1, -1], [-1, 0], [-1, 1], [0, 1]]) * [long / 2, wide / 2]
        ends[:, 0] += middle
        c, s = np.cos(self.heading), np.sin(self.heading)
        return ends @ np.array([[c, s], [-s, c]]) + [self.x, self.y]


def success(file: Path, n: int, seed: int = 0) -> float:
    """The part of n cars that go round once, without a contact."""
    policy = Policy(file, n)
    draw = Draws(policy, seed)
    random, lidar, sensors = draw.random, Lidar(policy.contract), Sensors(policy, draw, STEP)
    cars = [Car(policy, draw, i) for i in range(n)]
    sizes, widths = draw("track.size", otherwise=SIZE), draw("track.width", otherwise=2.0)
    tracks = [Track(random, size, width) for size, width in zip(sizes, widths, strict=True)]
    begun, (offset, turn, speed) = np.zeros(n, int), (draw(f"initial.{name}") for name in ("offset", "turn", "speed"))
    for i, (car, track) in enumerate(zip(cars, tracks, strict=True)):
        begun[i] = random.integers(POINTS)
        way = track.way[begun[i]]
        car.x, car.y = track.middle[begun[i]] + offset[i] * widths[i] * np.array([-way[1], way[0]])
        car.heading, car.u = float(np.arctan2(way[1], way[0])) + turn[i], speed[i]
    middle, _ = policy.facts["middle_of_body"]
    good, there, last, gone = np.ones(n, bool), np.zeros(n, bool), begun.copy(), np.zeros(n, int)
    per = round(policy.period / STEP)
    seen, points = np.zeros((n, len(lidar.angles))), np.zeros((n, 2))
    for _ in range(round(policy.facts["episode"] / policy.period)):
        for i in np.flatnonzero(good & ~there):
            car = cars[i]
            seen[i] = lidar.ranges(np.array([car.x, car.y, car.heading]), tracks[i].walls)
            c, s = np.cos(car.heading), np.sin(car.heading)
            points[i] = (tracks[i].waypoint(last[i]) - [car.x, car.y]) @ [[c, -s], [s, c]]
        motion = np.array([[car.scale * car.u, car.r] for car in cars])
        for _ in range(per):  # the scan is held for a period: it is as late as a scan may be
            sensors.note("scan", seen)
            sensors.note("wheel_speed", motion[:, :1])
            sensors.note("yaw_rate", motion[:, 1:])
            if "waypoint_position" in sensors.signals:
                sensors.note("waypoint_position", points)
        commands = policy(sensors.read())
        for i in np.flatnonzero(good & ~there):
            car = cars[i]
            for _ in range(per):
                car.step(float(commands["steering_angle"][i, 0]), float(commands["speed"][i, 0]))
            at = tracks[i].nearest(np.array([car.x, car.y]))
            gone[i] += (at - last[i] + POINTS // 2) % POINTS - POINTS // 2
            last[i], there[i] = at, abs(gone[i]) >= POINTS
            good[i] = distance(car.outline(middle), tracks[i].walls) > 1e-2 and not policy.refused[i]
        if (there | ~good).all():
            break
    return float((good & there).mean())
