"""A dynamic window for a long robot that moves in all directions: it follows a planned path. Numpy or torch.

As ``DynamicWindow`` (Fox, Burgard, Thrun 1997, with critics like those of Nav2's DWB), but the robot is several circles
along its body, as a footprint is in Nav2, so that turning in a narrow place is judged, too. It gives velocities as a
Twist has them: for whatever walks or drives by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from robo_rl.contract import Scan
from robo_rl.controllers import path

FORWARD = (-0.25, 0.0, 0.15, 0.3, 0.5)  # m/s
LEFT = (-0.25, -0.1, 0.0, 0.1, 0.25)  # m/s
TURNS = (-0.8, -0.4, -0.15, 0.0, 0.15, 0.4, 0.8)  # rad/s
SHOWN = 1.2  # s of every arc that is judged
POINTS = 4
"""Places on an arc where its distance to obstacles is taken."""
MARGIN, LATE = 0.01, 0.1
"""m kept between robot and obstacles, and as much more as the nose moves in so many s: legs are late."""
SLOW, SLACK = 0.2, 0.005
"""m/s of the nose up to which an arc may keep less, if it comes at most so much (m) nearer than the robot is."""
AGE = 0.06  # s, of a scan on average: half of its period, and latency
NEAR = 0.1  # m, clearance below which an arc costs
ALONG, OFF, TURNED, CLOSE = 1.0, 1.0, 0.2, 1.5
"""Costs of a m to the last point, of a m off the path, of a rad to the point's direction, of a m nearer than NEAR."""
FAR = 1e3  # m


class FootprintWindow:
    """Every few steps the best of some arcs at constant velocity; held in between.

    Arcs that come too near to something are left out, but for slow ones that come no nearer than the robot is; where
    none is left, the one that keeps the greatest distance is taken.
    """

    name = "footprint-window"
    commands = ("linear_velocity_command", "yaw_rate_command")

    def __init__(self, scan: Scan, beams: int, circles: tuple[tuple[float, ...], float], every: int) -> None:
        """``circles``: places along the body (m, forward of the lidar) and radius (m); a choice ``every`` so many
        steps."""
        along, self.radius = circles
        self.every, self.reach = every, scan.range_max
        self.angles = scan.angle_min + scan.angle_increment * np.arange(beams, dtype=np.float32)
        v, u, w = (x.ravel() for x in np.meshgrid(FORWARD, LEFT, TURNS, indexing="ij"))
        time = SHOWN * np.arange(1, POINTS + 1) / POINTS
        angle = w[:, None] * time
        slow = np.where(np.abs(w) < 1e-6, 1e-6, w)[:, None]
        ahead, aside = np.sin(slow * time), 1 - np.cos(slow * time)
        v_, u_ = v[:, None] / slow, u[:, None] / slow
        x, y = v_ * ahead - u_ * aside, v_ * aside + u_ * ahead
        body = np.array(along)
        swept = [x[..., None] + np.cos(angle)[..., None] * body, y[..., None] + np.sin(angle)[..., None] * body]
        self.tried = np.stack([v, u, w], -1).astype(np.float32)
        """(arcs, 3) m/s, m/s, rad/s."""
        self.rest = int(np.argmin(np.abs(self.tried).sum(1)))
        """The arc on which it stands still."""
        fast = np.hypot(v, u) + np.abs(w) * max(along)
        self.slow = fast <= SLOW
        self.margin = (MARGIN + LATE * fast).astype(np.float32)
        self.ends = np.stack([x[:, -1], y[:, -1]], -1).astype(np.float32)
        self.turned = angle[:, -1].astype(np.float32)
        self.swept = np.stack(swept, -1).astype(np.float32).reshape(-1, 2)
        """(arcs × places × circles, 2) m."""

    def first_state(self, n: int) -> np.ndarray:
        """(n, 4): the velocity that is held, and steps until the next choice."""
        return np.zeros((n, 4), np.float32)

    def __call__(self, signals: Mapping[str, Any], state: Any) -> tuple[dict[str, Any], Any]:
        """Velocities forward and to the left (n, 2) m/s and turn rates (n, 1) rad/s, of a ``scan`` (n, beams) m and
        ``path_points`` (n, k, 2) m in the robot's frame."""
        xp = array_namespace(state)
        held, waits = state[:, :3], state[:, 3:]
        if bool(xp.any(waits < 0.5)):
            chosen = self._choice(self._met(signals["scan"], held), signals["path_points"])
            held = xp.where(waits < 0.5, chosen, held)
        waits = xp.where(waits < 0.5, 0 * waits + (self.every - 1), waits - 1)
        told = {"linear_velocity_command": held[:, :2], "yaw_rate_command": held[:, 2:]}
        return told, xp.concat([held, waits], axis=-1)

    def _choice(self, met: Any, points: Any) -> Any:
        """(n, 3) m/s, m/s, rad/s: the best arcs."""
        xp = array_namespace(met)
        free = self._free(met)
        tried, ends, turned = (xp.asarray(part) for part in (self.tried, self.ends, self.turned))
        last = points[:, -1:]
        way = last - ends[None]
        left = xp.sqrt(xp.sum(way * way, axis=-1))
        bearing = xp.atan2(way[..., 1], way[..., 0]) - turned[None]
        bearing = xp.abs(xp.atan2(xp.sin(bearing), xp.cos(bearing)))
        off = path.distance(xp.concat([0 * points[:, :1], points], axis=1), ends[None] + 0 * last)
        near = xp.clip(NEAR - free, 0.0, None)
        cost = ALONG * left + OFF * off + TURNED * bearing * xp.clip(left, 0.0, 1.0) + CLOSE * near
        here = xp.clip(free[:, self.rest : self.rest + 1] - SLACK, 0.0, None)
        margin, slow = xp.asarray(self.margin)[None], xp.asarray(self.slow)[None]
        least = xp.where(slow, xp.minimum(here, margin), margin)
        cost = xp.where(free > least, cost, FAR - free)
        return tried[xp.argmin(cost, axis=-1)]

    def _met(self, scan: Any, held: Any) -> Any:
        """(n, beams, 2) m: where obstacles are now, if the robot has moved as ``held`` (n, 3) since the ``scan``."""
        xp = array_namespace(scan)
        angles = xp.asarray(self.angles)
        seen = xp.where(scan < self.reach - 1e-3, scan, 0 * scan + FAR)
        x, y = seen * xp.cos(angles) - AGE * held[:, :1], seen * xp.sin(angles) - AGE * held[:, 1:2]
        cosine, sine = xp.cos(AGE * held[:, 2:]), xp.sin(AGE * held[:, 2:])
        return xp.stack([cosine * x + sine * y, cosine * y - sine * x], axis=-1)

    def _free(self, met: Any) -> Any:
        """(n, arcs) m: the least distance of the robot to what was ``met`` (n, beams, 2) m, on every arc."""
        xp = array_namespace(met)
        swept = xp.asarray(self.swept)
        square = xp.sum(swept * swept, axis=-1)[None, :, None] + xp.sum(met * met, axis=-1)[:, None]
        square = xp.min(square - 2.0 * (swept[None] @ xp.matrix_transpose(met)), axis=-1)
        apart = xp.sqrt(xp.clip(square, 0.0, None)) - self.radius
        return xp.min(xp.reshape(apart, (met.shape[0], len(self.tried), -1)), axis=-1)
