"""Collision avoidance of several multirotors in one room, each by what it knows of the others: ORCA and Voronoi cells.

Both ask for the velocity, or the place, nearest to the wanted one that keeps to half-spaces, one for each other robot
and each near column, and to a box of walls.

- ``OrcaController``: van den Berg, Guy, Lin and Manocha 2011, Reciprocal n-body Collision Avoidance. A velocity that
  would lead to a collision within the horizon is changed by the least that avoids it; of two robots each makes half of
  that change, and beside a column a robot makes all of it. In space for robots, in the plane for columns.
- ``VoronoiController``: Zhou, Wang, Bandyopadhyay and Schwager 2017, Fast, On-line Collision Avoidance for Dynamic
  Vehicles Using Buffered Voronoi Cells. Each robot stays in the half of the way to each other one that is its own, less
  its radius. One that is stuck goes to its right, as there.

Both lead velocities to body rates and a thrust by ``RatesController``'s attitude law. What is known of the others is
old: it is taken to have gone on at its velocity, and a buffer is added to all radii.
"""

from __future__ import annotations

from collections.abc import Mapping
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
SOON = 0.08
"""s, within which those that are too near already are to be apart."""
OFFSET, OBSERVE = 2.0, 1.5
"""m/s², the most that the observer of what is steady finds, and 1/s, its poles."""
TURN = 3.5
"""1/s, of the tilt's error: with 4.2 vehicles of slow motors swing, with the rates of ``TRIM`` some of them fall."""
TRIM, TRIMMED = 0.5, 1.0
"""1/s, how fast the rates about x and y are found that turn nothing, and rad/s, the most of them: rotors that differ
turn a vehicle whose rate loop has no integral, and one that leans to the side flies beside its way."""


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
    """Follows a velocity that avoids others. The state (n, 8) is the velocity as it is expected, m/s, the steady
    acceleration beside what is commanded, m/s² (of a wrong mass, a push, wind), and the rates that turn nothing."""

    def __init__(
        self, robot: Multirotor, control_period: float, most: tuple[float, float, float, float], around: Surroundings,
        pace: Pace | None = None,
    ) -> None:  # fmt: skip
        super().__init__(robot, control_period, most)
        self.around, self.pace, self.state_size = around, pace or Pace(), 8

    def first_state(self, n: int) -> np.ndarray:
        return np.zeros((n, 8), np.float32)

    def __call__(self, signals: Mapping[str, Any], state: Any) -> tuple[dict[str, Any], Any]:
        """``body_rate`` (n, 3) rad/s and ``thrust`` (n, 1) m/s², within their limits."""
        xp = array_namespace(state)
        speed, g = signals["linear_velocity"], self.gains
        wanted = xp.clip(self.pace.follow * (self.velocity(signals, xp) - speed), -6.0, 6.0)
        expected, drift, trim = state[:, :3], state[:, 3:6], state[:, 6:]
        x, y, z = (wanted[:, i] for i in range(3))
        force = (x - drift[:, 0], y - drift[:, 1], xp.clip(z, -4.0, 4.0) - drift[:, 2] + GRAVITY)
        thrust, error = self._tilt(signals, self._possible(force, xp), xp)
        stiff = (TURN, TURN, g.attitude / g.rate * g.yaw**0.5)
        turning = xp.stack([-k * e for k, e in zip(stiff, error, strict=True)], axis=-1)
        late = turning[:, :2] - signals["angular_velocity"][:, :2]
        trim = xp.clip(trim + self.period * TRIM * late, -TRIMMED, TRIMMED)
        rates = [turning[:, 0] + trim[:, 0], turning[:, 1] + trim[:, 1], turning[:, 2]]
        rates = [xp.clip(rate, -most, most) for rate, most in zip(rates, self.most, strict=False)]
        thrust = xp.clip(thrust, 0.3 * GRAVITY, self.most[3])
        up = body_z(tuple(signals["orientation"][:, i] for i in range(4)))
        given = xp.stack([thrust * up[0], thrust * up[1], thrust * up[2] - GRAVITY], axis=-1)
        off = speed - expected
        expected = expected + self.period * (given + drift + 2 * OBSERVE * off)
        drift = xp.clip(drift + self.period * OBSERVE**2 * off, -OFFSET, OFFSET)
        commands = {"body_rate": xp.stack(rates, axis=-1), "thrust": thrust[:, None]}
        return commands, xp.concat([expected, drift, trim], axis=-1)

    def velocity(self, signals: Mapping[str, Any], xp: Any) -> Any:
        """(n, 3) m/s that avoids all."""
        raise NotImplementedError

    def towards(self, way: Any, xp: Any) -> Any:
        """(n, 3) m/s along a way (n, 3) m."""
        length = _length(way, xp)
        return way * xp.clip(self.pace.fast / length, None, self.pace.pull)

    def obstacles(self, signals: Mapping[str, Any], xp: Any) -> tuple[Any, Any, Any]:
        """Where others and columns are from here (n, K, 3) m, how fast they are (n, K, 3) m/s, and whether that is
        known (n, K, 1). Columns are as high as the robot is, and rise with it."""
        here, speed, found = signals["position"], signals["linear_velocity"], []
        for name in (name for name in signals if name.startswith("peer") and not name.endswith("_age")):
            track, age = signals[name], signals[f"{name}_age"]
            velocity = track[:, 1] - track[:, 0]
            found.append((track[:, 0] + velocity * age - here, velocity, age < self.around.stale))
        zero = 0.0 * here[:, :1]
        for k in range(signals["column_position"].shape[1]):
            apart = xp.concat([signals["column_position"][:, k] - here[:, :2], zero], axis=-1)
            found.append((apart, xp.concat([zero, zero, speed[:, 2:]], axis=-1), zero < 1.0))
        apart, velocity, known = zip(*found, strict=True)
        return xp.stack(apart, axis=1), xp.stack(velocity, axis=1), xp.stack(known, axis=1)

    def sizes(self, signals: Mapping[str, Any], like: Any, xp: Any) -> tuple[Any, Any]:
        """Of each obstacle (1, K, 1): the distance to keep, m, and 0 for one that stands, 1 for one that flies."""
        a, p, columns = self.around, self.pace, signals["column_position"].shape[1]
        peers = like.shape[1] - columns
        flies = [1.0] * peers + [0.0] * columns
        size = [2 * a.radius + p.buffer] * peers + [a.radius + a.column_radius + p.column_buffer] * columns
        return tuple(xp.asarray(values, dtype=like.dtype)[None, :, None] for values in (size, flies))

    def box(self, signals: Mapping[str, Any], xp: Any) -> tuple[Any, Any]:
        """(n, 3) m each, from here: the least and the greatest place within the walls."""
        margin, place = self.around.radius + self.pace.column_buffer, signals["position"]
        lower, upper = (xp.asarray([end], dtype=place.dtype) for end in (self.around.lower, self.around.upper))
        return lower + margin - place, upper - margin - place


class OrcaController(AvoidingController):
    """Reciprocal avoidance of collisions within a horizon."""

    name = "orca"

    def velocity(self, signals: Mapping[str, Any], xp: Any) -> Any:
        p, found = self.pace, self.obstacles(signals, xp)
        size, flies = self.sizes(signals, found[0], xp)
        walls = tuple(p.pull * end for end in self.box(signals, xp))
        wanted = self.towards(signals["position_setpoint"] - signals["position"], xp)
        return reciprocal(wanted, signals["linear_velocity"], found, size, flies, p.horizon, walls, xp)


class VoronoiController(AvoidingController):
    """Each robot stays in its own buffered Voronoi cell."""

    name = "voronoi"

    def velocity(self, signals: Mapping[str, Any], xp: Any) -> Any:
        apart, _, known = self.obstacles(signals, xp)
        size, flies = self.sizes(signals, apart, xp)
        length = _length(apart, xp)
        room = xp.where(known, (1.0 - 0.5 * flies) * (length - size), 100.0)
        cell = (-apart / length, -room, *self.box(signals, xp))
        way = signals["position_setpoint"] - signals["position"]
        place = nearest_within(way, *cell, xp)
        right = xp.stack([way[:, 1], -way[:, 0], 0.0 * way[:, 2]], axis=-1)
        around = nearest_within(right / _length(right, xp), *cell, xp)
        stuck = (_length(place, xp) < 0.1) & (_length(way, xp) > 0.25)
        return self.towards(xp.where(stuck, around, place), xp)


def reciprocal(
    wanted: Any, now: Any, obstacles: tuple[Any, Any, Any], size: Any, flies: Any, horizon: Any, walls: tuple[Any, Any],
    xp: Any, sweeps: int = SWEEPS,
) -> Any:  # fmt: skip
    """(n, 3) m/s: of the velocities that collide with none of the ``obstacles`` within a ``horizon`` (s), the nearest
    to the ``wanted`` one, for a robot that flies ``now`` (n, 3) m/s. ``walls`` are the least and the greatest velocity.

    Works on arrays, and on tensors of a graph.
    """
    apart, velocity, known = obstacles
    normal, change = _way_out(apart, now[:, None] - velocity, size, horizon, xp)
    least = xp.where(known, _dot(normal, now[:, None] + (1.0 - 0.5 * flies) * change, xp), -100.0)
    return nearest_within(wanted, normal, least, *walls, xp, sweeps)


def nearest_within(point: Any, normal: Any, least: Any, lower: Any, upper: Any, xp: Any, sweeps: int = SWEEPS) -> Any:
    """(n, 3): the x nearest to ``point`` (n, 3) with ``normal`` · x >= ``least`` and ``lower`` <= x <= ``upper``.

    ``normal`` (n, K, 3) has length 1, ``least`` is (n, K, 1), the bounds are (n, 3). By Hildreth's method for the
    half-spaces and Dykstra's for the box; a compromise where no x fulfils all.
    """
    count = normal.shape[1]
    normals, leasts = [normal[:, k] for k in range(count)], [least[:, k] for k in range(count)]
    held, beyond = [0.0 * leasts[0]] * count, 0.0 * point
    for _ in range(sweeps):
        for k in range(count):
            pushed = xp.clip(held[k] + leasts[k] - _dot(normals[k], point, xp), 0.0, 5.0)
            point = point + (pushed - held[k]) * normals[k]
            held[k] = pushed
        free = point + beyond
        point = xp.where(free < lower, lower, xp.where(free > upper, upper, free))
        beyond = free - point
    return point


def _way_out(apart: Any, velocity: Any, radius: Any, horizon: Any, xp: Any) -> tuple[Any, Any]:
    """(n, K, 3) each: the unit normal of the velocity obstacle where it is nearest to a relative ``velocity``, and the
    change of it that leads there. Of something ``apart`` (n, K, 3) m, of a ``radius`` (m) together with the robot."""
    square = _dot(apart, apart, xp)
    inside = square < radius * radius
    time = xp.where(inside, SOON + 0.0 * square, horizon + 0.0 * square)
    centre = velocity - apart / time
    size = _length(centre, xp)
    along = _dot(centre, apart, xp)
    cap = inside | ((along < 0.0) & (along * along > radius * radius * size * size))
    across = radius * _length(_cross(apart, velocity, xp), xp) / xp.sqrt(xp.clip(square - radius * radius, 1e-4, None))
    t = (_dot(apart, velocity, xp) + across) / xp.clip(square, 1e-6, None)
    side = velocity - t * apart
    far = _length(side, xp)
    normal = xp.where(cap, centre / size, side / far)
    return normal, xp.where(cap, radius / time - size, radius * t - far) * normal


def _dot(a: Any, b: Any, xp: Any) -> Any:
    return xp.sum(a * b, axis=-1, keepdims=True)


def _cross(a: Any, b: Any, xp: Any) -> Any:
    """Its length is exact to the last digits where a and b are almost parallel: |a|² |b|² - (a · b)² is not."""
    x, y, z = (a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in ((1, 2), (2, 0), (0, 1)))
    return xp.stack([x, y, z], axis=-1)


def _length(v: Any, xp: Any) -> Any:
    """Not 0 where v is: what is added is more than the 1e-8 that onnxscript takes for 0, and removes."""
    return xp.sqrt(_dot(v, v, xp) + 1e-7)
