"""Collision avoidance of several multirotors in one room, each by what it knows of the others: ORCA and Voronoi cells.

Both ask for the velocity, or the place, nearest to the wanted one that keeps to half-spaces: one for each other robot,
each near column and each wall.

- ``OrcaController``: van den Berg, Guy, Lin and Manocha 2011, Reciprocal n-body Collision Avoidance. Velocities that
  collide within a horizon are left by the shortest change, half of which each of two robots takes, and all of it
  towards what stands. In space for robots, in the plane for columns.
- ``VoronoiController``: Zhou, Wang, Bandyopadhyay and Schwager 2017, Fast, On-line Collision Avoidance for Dynamic
  Vehicles Using Buffered Voronoi Cells. Each robot stays in the half of the way to each other one that is its own, less
  its radius. One that is stuck goes to its right, as there.

Both lead velocities to body rates and a thrust by ``RatesController``'s attitude law. What is known of the others is
old: it is taken to have gone on at its velocity, and a buffer is added to all radii.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from robo_rl.contract.gravity import GRAVITY
from robo_rl.controllers.multirotor.facts import Multirotor
from robo_rl.controllers.multirotor.rates import RatesController
from robo_rl.controllers.rotation import body_z

SWEEPS = 12
"""Over all half-spaces. Hildreth's method comes to the nearest point in the limit; here a constraint is off by
millimetres per second after so many."""
OFFSET, OBSERVE = 2.0, 1.5
"""m/s², the most that the observer of what is steady finds, and 1/s, its poles."""


@dataclass(frozen=True)
class Surroundings:
    """What does not move, and how large all is."""

    lower: tuple[float, float, float]
    """m, where the room begins along x, y and z."""
    upper: tuple[float, float, float]
    """m, where it ends."""
    radius: float
    """m, of a robot."""
    column_radius: float
    """m."""
    stale: float
    """s: an older message tells nothing."""


@dataclass(frozen=True)
class Pace:
    """How fast robots fly, and how far apart."""

    fast: float = 1.2
    """m/s, on the way."""
    pull: float = 1.2
    """1/s, of the velocity towards a near goal."""
    follow: float = 3.5
    """1/s, at which velocities are followed."""
    buffer: float = 0.1
    """m, beside the radii, between robots."""
    column_buffer: float = 0.08
    """m, beside the radii, to what stands."""
    horizon: float = 1.5
    """s, of collisions to come."""


class AvoidingController(RatesController):
    """Follows a velocity that avoids others. The state (n, 6) is the velocity as it is expected, m/s, and the steady
    acceleration beside what is commanded, m/s²: of a wrong mass, a push, wind."""

    def __init__(
        self, robot: Multirotor, control_period: float, most: tuple[float, float, float, float], around: Surroundings,
        pace: Pace | None = None,
    ) -> None:  # fmt: skip
        super().__init__(robot, control_period, most)
        self.around, self.pace, self.state_size = around, pace or Pace(), 6

    def first_state(self, n: int) -> np.ndarray:
        return np.zeros((n, 6), np.float32)

    def __call__(self, signals: Mapping[str, Any], state: Any) -> tuple[dict[str, Any], Any]:
        """``body_rate`` (n, 3) rad/s and ``thrust`` (n, 1) m/s², within their limits."""
        xp = array_namespace(state)
        speed, g = signals["linear_velocity"], self.gains
        wanted = xp.clip(self.pace.follow * (self.velocity(signals, xp) - speed), -6.0, 6.0)
        expected, drift = state[:, :3], state[:, 3:]
        x, y, z = (wanted[:, i] for i in range(3))
        force = (x - drift[:, 0], y - drift[:, 1], xp.clip(z, -4.0, 4.0) - drift[:, 2] + GRAVITY)
        thrust, error = self._tilt(signals, self._possible(force, xp), xp)
        stiff = [g.attitude / g.rate * soft for soft in (1.0, 1.0, g.yaw**0.5)]
        rates = [xp.clip(-k * e, -most, most) for k, e, most in zip(stiff, error, self.most, strict=False)]
        thrust = xp.clip(thrust, 0.3 * GRAVITY, self.most[3])
        up = body_z(tuple(signals["orientation"][:, i] for i in range(4)))
        given = xp.stack([thrust * up[0], thrust * up[1], thrust * up[2] - GRAVITY], axis=-1)
        off = speed - expected
        expected = expected + self.period * (given + drift + 2 * OBSERVE * off)
        drift = xp.clip(drift + self.period * OBSERVE**2 * off, -OFFSET, OFFSET)
        commands = {"body_rate": xp.stack(rates, axis=-1), "thrust": thrust[:, None]}
        return commands, xp.concat([expected, drift], axis=-1)

    def velocity(self, signals: Mapping[str, Any], xp: Any) -> Any:
        """(n, 3) m/s that avoids all."""
        raise NotImplementedError

    def towards(self, way: Any, xp: Any) -> Any:
        """(n, 3) m/s along a way (n, 3) m."""
        length = _length(way, xp)
        return way * xp.clip(self.pace.fast / length, None, self.pace.pull)

    def peers(self, signals: Mapping[str, Any], xp: Any) -> list[tuple[Any, Any, Any]]:
        """Of each of the others: where it is from here (n, 3) m, its velocity (n, 3) m/s, and whether that is known."""
        found = []
        for name in (name for name in signals if name.startswith("peer") and not name.endswith("_age")):
            track, age = signals[name], signals[f"{name}_age"]
            velocity = track[:, 1] - track[:, 0]
            found.append((track[:, 0] + velocity * age - signals["position"], velocity, age < self.around.stale))
        return found

    def columns(self, signals: Mapping[str, Any]) -> list[Any]:
        """(n, 2) m, from here to the axes of the nearest."""
        place = signals["position"][:, :2]
        return [signals["column_position"][:, k] - place for k in range(signals["column_position"].shape[1])]

    def walls(self, signals: Mapping[str, Any], xp: Any) -> list[tuple[Any, Any]]:
        """Half-spaces of places (n, 3) from here: their normals (1, 3), and where they begin (n, 1)."""
        found, place, radius = [], signals["position"], self.around.radius + 0.5 * self.pace.column_buffer
        for axis, (low, high) in enumerate(zip(self.around.lower, self.around.upper, strict=True)):
            for side, gap in ((1.0, place[:, axis] - low - radius), (-1.0, high - radius - place[:, axis])):
                normal = xp.asarray([[side if k == axis else 0.0 for k in range(3)]], dtype=place.dtype)
                found.append((normal, -xp.clip(gap, 0.0, None)[:, None]))
        return found


class OrcaController(AvoidingController):
    """Reciprocal avoidance of collisions within a horizon."""

    name = "orca"

    def velocity(self, signals: Mapping[str, Any], xp: Any) -> Any:
        a, p, now = self.around, self.pace, signals["linear_velocity"]
        limits = [(normal, begin / 0.4) for normal, begin in self.walls(signals, xp)]
        for apart, velocity, known in self.peers(signals, xp):
            normal, change = _way_out(apart, now - velocity, 2 * a.radius + p.buffer, p.horizon, self.period, xp)
            least = _dot(normal, now + 0.5 * change, xp)
            limits.append((normal, xp.where(known, least, -100.0 * xp.ones_like(least))))
        for apart in self.columns(signals):
            size = a.radius + a.column_radius + p.column_buffer
            normal, change = _way_out(apart, now[:, :2], size, p.horizon, self.period, xp)
            least = _dot(normal, now[:, :2] + change, xp)
            limits.append((_flat(normal, xp), least))
        wanted = self.towards(signals["position_setpoint"] - signals["position"], xp)
        found = nearest_within(wanted, limits, xp)
        return found * xp.clip(1.5 * p.fast / _length(found, xp), None, 1.0)


class VoronoiController(AvoidingController):
    """Each robot stays in its own buffered Voronoi cell."""

    name = "voronoi"

    def velocity(self, signals: Mapping[str, Any], xp: Any) -> Any:
        a, p = self.around, self.pace
        limits = self.walls(signals, xp)
        for apart, _, known in self.peers(signals, xp):
            length = _length(apart, xp)
            room = 0.5 * length - a.radius - 0.5 * p.buffer
            limits.append((-apart / length, xp.where(known, -room, -100.0 * xp.ones_like(room))))
        for apart in self.columns(signals):
            length = _length(apart, xp)
            room = length - a.radius - a.column_radius - p.column_buffer
            limits.append((_flat(-apart / length, xp), -room))
        way = signals["position_setpoint"] - signals["position"]
        place = nearest_within(way, limits, xp)
        right = xp.stack([way[:, 1], -way[:, 0], 0.0 * way[:, 2]], axis=-1)
        around = nearest_within(right / _length(right, xp), limits, xp)
        stuck = (_length(place, xp) < 0.1) & (_length(way, xp) > 0.25)
        return self.towards(xp.where(stuck, around, place), xp)


def nearest_within(point: Any, limits: Sequence[tuple[Any, Any]], xp: Any) -> Any:
    """(n, k): the point nearest to ``point`` (n, k) where normal · x is at least what is told, for each of the limits:
    a unit normal (n, k) and that number (n, 1). By Hildreth's method; a compromise where there is no such point."""
    held = [xp.zeros_like(point[:, :1]) for _ in limits]
    for _ in range(SWEEPS):
        for k, (normal, least) in enumerate(limits):
            push = xp.clip(least - _dot(normal, point, xp), None, 5.0)
            push = xp.where(push > -held[k], push, -held[k])
            held[k] = held[k] + push
            point = point + push * normal
    return point


def _way_out(apart: Any, velocity: Any, radius: float, horizon: float, period: float, xp: Any) -> tuple[Any, Any]:
    """(n, k) each: the unit normal of the velocity obstacle where it is nearest to a relative ``velocity``, and the
    change of it that leads there. Of something ``apart`` (n, k) m, of a ``radius`` (m) together with the robot."""
    square = _dot(apart, apart, xp)
    inside = square < radius**2
    time = xp.where(inside, xp.full_like(square, 4 * period), xp.full_like(square, horizon))
    centre = velocity - apart / time
    size = _length(centre, xp)
    along = _dot(centre, apart, xp)
    cap = inside | ((along < 0) & (along**2 > radius**2 * size**2))
    b = _dot(apart, velocity, xp)
    rest = _dot(velocity, velocity, xp) - (square * _dot(velocity, velocity, xp) - b**2) / xp.clip(
        square - radius**2, 1e-6, None
    )
    t = (b + xp.sqrt(xp.clip(b**2 - square * rest, 0.0, None))) / xp.clip(square, 1e-9, None)
    side = velocity - t * apart
    far = _length(side, xp)
    normal = xp.where(cap, centre / size, side / far)
    return normal, xp.where(cap, radius / time - size, radius * t - far) * normal


def _dot(a: Any, b: Any, xp: Any) -> Any:
    return xp.sum(a * b, axis=-1, keepdims=True)


def _length(v: Any, xp: Any) -> Any:
    return xp.sqrt(_dot(v, v, xp) + 1e-12)


def _flat(v: Any, xp: Any) -> Any:
    return xp.concat([v, 0.0 * v[:, :1]], axis=-1)
