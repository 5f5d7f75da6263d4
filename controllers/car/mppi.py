"""A car under model predictive path integral control, by its lidar and the speed of its wheels. Numpy or torch.

After Williams, Drews, Goldfain, Rehg, Theodorou 2016 (Aggressive driving with model predictive path integral control),
with what is known here in place of a map: plans are accelerations, along and across, within the circle that the grip
allows, of a kinematic single track; walls are the points that the scan has, and points between neighbours of them that
are near each other. A plan is worth the metres that it drives before it touches something.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from robo_rl.contract import Robot, Scan
from robo_rl.controllers.car import GRAVITY
from robo_rl.controllers.mppi import Sampling, draws, improved, shifted

STEP = 0.1  # s of a plan's step, as F1TENTH's controllers of this kind have it
SAMPLING = Sampling(256, 12, (2.0, 1.0), 0.3, 0.02)  # m/s² across (to the left) and along
COLLISION = 30.0  # metres that a contact costs
NEAR, CLOSE = 0.7, 100.0  # m of clearance below which a place costs, and how many metres it costs at none
WALL = 2.0  # m between neighbours of a scan that are taken for one wall
SEEN = 2.2  # rad to either side of the beams that are used
LEAST = 0.5  # m/s
GRIP = 0.5
"""Part of the friction in the robot's facts that is used: 0.4 to 0.6 are the fastest safe ones of benchmarks/racing.py.

These figures are choices, of some that were tried on tracks 2 m wide.
"""


class PathIntegral:
    """It knows neither the track nor its line."""

    name = "mppi"

    def __init__(
        self, robot: Robot, scan: Scan, beams: int, top: float, period: float, gain: float, forward: float = 0.0,
        grip: float = GRIP,
    ) -> None:  # fmt: skip
        """``top`` (m/s) is the greatest speed; ``gain`` (1/s): acceleration per error of the speed, of the motor.

        ``period`` (s) of control; ``forward`` (m): the lidar, before the centre of mass; ``grip``: the part of the
        friction that is used.
        """
        facts = robot.facts
        self.limit, self.top = float(facts["steering_limit"]), top
        self.base = float(facts["front_axle"]) + float(facts["rear_axle"])
        self.acceleration = float(facts["acceleration"])
        self.grip = grip * float(facts["friction"]) * GRAVITY
        length, width = (float(x) for x in facts["body"][:2])
        self.radius = math.hypot(0.25 * length, 0.5 * width)  # m of two circles that cover the car
        self.circles = tuple(0.5 * self.base + part * length for part in (-0.25, 0.25))  # m before the rear axle
        angles = scan.angle_min + scan.angle_increment * np.arange(beams, dtype=np.float32)
        self.used = np.flatnonzero(np.abs(angles) <= SEEN)
        way = angles[self.used]
        self.ways = np.stack([np.cos(way), np.sin(way)], -1)
        self.lidar = np.array([forward + float(facts["rear_axle"]), 0.0], np.float32)
        self.reach, self.period, self.gain = scan.range_max, period, gain
        self.noise = draws(SAMPLING)

    def first_state(self, n: int) -> np.ndarray:
        """The plan: accelerations across and along in turn, (n, 2 steps) m/s²."""
        return np.zeros((n, 2 * SAMPLING.steps), np.float32)

    def __call__(self, signals: Mapping[str, Any], state: Any) -> tuple[dict[str, Any], Any]:
        """Steering angle (n, 1) rad and speed (n, 1) m/s. Cars one after another: their plans are large."""
        xp = array_namespace(state)
        noise, speed = xp.asarray(self.noise), signals["wheel_speed"]
        plans = []
        for k in range(state.shape[0]):
            walls = self._walls(signals["scan"][k])

            def cost(given: Any, walls: Any = walls, k: int = k) -> Any:
                return self._cost(given[0], walls, speed[k])[None]

            plans.append(improved(xp.reshape(state[k : k + 1], (1, -1, 2)), noise, cost, SAMPLING))
        plan = xp.concat(plans, axis=0)
        across, along = self._allowed(plan)
        steering = xp.atan(self.base * self._curvature(across[:, :1], speed))
        wanted = xp.clip(speed + along[:, :1] / self.gain, LEAST, self.top)
        part = self.period / STEP
        later = xp.reshape((1 - part) * plan + part * shifted(plan), state.shape)
        return {"steering_angle": steering, "speed": wanted}, later

    def _allowed(self, plans: Any) -> tuple[Any, Any]:
        """Accelerations (…, steps) m/s² across and along, of plans (…, steps, 2): within the grip and the motor's."""
        xp = array_namespace(plans)
        size = xp.sqrt(xp.sum(xp.square(plans), axis=-1))
        part = xp.clip(self.grip / xp.clip(size, 1e-6, None), None, 1.0)
        return part * plans[..., 0], xp.clip(part * plans[..., 1], -self.acceleration, self.acceleration)

    def _curvature(self, across: Any, speed: Any) -> Any:
        """1/m, that the steering allows."""
        xp = array_namespace(across)
        most = math.tan(self.limit) / self.base
        return xp.clip(across / xp.square(xp.clip(speed, LEAST, None)), -most, most)

    def _walls(self, scan: Any) -> Any:
        """(points, 2) m from the rear axle, of a scan (beams,) m."""
        xp = array_namespace(scan)
        used = xp.asarray(self.used)
        ranges = xp.take(scan, used)
        points = ranges[:, None] * xp.asarray(self.ways) + xp.asarray(self.lidar)
        far = xp.where(ranges < self.reach - 1e-3, 0 * ranges, 0 * ranges + 1e3)
        between = 0.5 * (points[1:] + points[:-1])
        apart = xp.sqrt(xp.sum(xp.square(points[1:] - points[:-1]), axis=-1))
        off = xp.where(apart < WALL, 0 * apart, 0 * apart + 1e3)
        return xp.concat([points + far[:, None], between + off[:, None]], axis=0)

    def _cost(self, plans: Any, walls: Any, speed: Any) -> Any:
        """(samples,) of plans (samples, steps, 2), in metres."""
        xp = array_namespace(plans)
        across, along = self._allowed(plans)
        speeds = xp.clip(speed + xp.cumulative_sum(STEP * along, axis=-1), 0.0, self.top)
        turn = speeds * self._curvature(across, speeds)  # rad/s
        angle = xp.cumulative_sum(STEP * turn, axis=-1)
        middle = angle - 0.5 * STEP * turn
        x = xp.cumulative_sum(STEP * speeds * xp.cos(middle), axis=-1)
        y = xp.cumulative_sum(STEP * speeds * xp.sin(middle), axis=-1)
        ahead = xp.stack([xp.cos(angle), xp.sin(angle)], axis=-1)
        rear = xp.stack([x, y], axis=-1)
        free = self._free(walls, xp.stack([rear + part * ahead for part in self.circles], axis=0))
        hit = xp.where(free <= 0.0, 1.0 + 0 * free, 0 * free)
        after = xp.clip(xp.cumulative_sum(hit, axis=-1), 0.0, 1.0)  # 1 from the first contact on
        gained = xp.sum(STEP * speeds * (1 - after), axis=-1)
        near = xp.square(xp.clip(1 - free / NEAR, 0.0, 1.0))
        near = xp.mean(xp.maximum(near, after), axis=-1)  # also: how early a contact is
        return COLLISION * after[:, -1] + CLOSE * near - gained

    def _free(self, walls: Any, places: Any) -> Any:
        """(samples, steps) m: the least clearance of the car's circles at places (circles, samples, steps, 2) m."""
        xp = array_namespace(places)
        ones = xp.ones_like(places[..., :1])
        squares = xp.sum(xp.square(walls), axis=-1, keepdims=True)
        # |p − w|² less |p|² as one product of matrices
        apart = xp.min(xp.concat([places, ones], axis=-1) @ xp.concat([-2 * walls, squares], axis=-1).T, axis=-1)
        apart = xp.min(apart + xp.sum(xp.square(places), axis=-1), axis=0)
        return xp.sqrt(xp.clip(apart, 0.0, None)) - self.radius
