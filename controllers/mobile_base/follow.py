"""A dynamic window and MPPI that follow a planned path, of which they know the next points. Numpy or torch.

Nav2's local planners cut the planned path off at the edge of their costmap, and go for what is left of it: so do these,
with the points that the signal ``path_points`` (n, k, 2) m has, in the robot's frame. Where its last two points are the
same, the path ends there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from robo_rl.controllers import path
from robo_rl.controllers.mobile_base import DynamicWindow
from robo_rl.controllers.mobile_base.mppi import COLLISION, RESOLUTION, PathIntegral

PATH, GOAL = 32.0, 24.0
"""Scales of Nav2's critics PathDist and GoalDist of DWB."""
ALIGN, OCCUPIED, STRIDE = 14.0, 0.05, 4
"""Weight of Nav2's critic PathAlign of MPPI; the part of the path that may be occupied (max_path_occupancy_ratio); and
which points of a plan it looks at (trajectory_point_step)."""
SAME = 1e-3  # m
UNKNOWN = 1e3  # m, the distance to a goal that is farther than the points


class PathWindow(DynamicWindow):
    """A dynamic window whose arcs should end near the path, and near the point of it that is ``carrot`` points on."""

    carrot = -1

    def _aim(self, signals: Mapping[str, Any]) -> tuple[Any, Any]:
        point = signals["path_points"][:, self.carrot]
        return point[:, :1], point[:, 1:]

    def _off_path(self, signals: Mapping[str, Any]) -> Any:
        points = signals["path_points"]
        xp = array_namespace(points)
        known = xp.concat([0 * points[:, :1], points], axis=1)
        ends = xp.asarray(self.arcs[..., -1].T)[None] + 0 * points[:, :1]
        return PATH / GOAL * path.distance(known, ends)


class PathIntegralOnPath(PathIntegral):
    """MPPI with the path that was planned, and Nav2's critic PathAlign."""

    def _aims(self, signals: Mapping[str, Any]) -> Any:
        """(n, k + 1, 2) m: the path from the robot on."""
        points = signals["path_points"]
        return array_namespace(points).concat([0 * points[:, :1], points], axis=1)

    def _cost(self, plans: Any, costs: Any, goal: Any) -> Any:
        xp = array_namespace(plans)
        known, end = goal[None], goal[-1]
        apart, begin = path.lengths(known)
        length = float(begin[0, -1] + apart[0, -1])
        at = np.arange(0.0, max(length, RESOLUTION), RESOLUTION, dtype=np.float32)
        sampled = path.points(known, (apart, begin), xp.asarray(at)[None])[0]
        free = self._looked_up(costs, sampled[:, 0], sampled[:, 1]) < COLLISION
        later = [k for k in range(len(at)) if at[k] >= min(self.ahead, length) and bool(free[k])]
        target = sampled[later[0]] if later else end
        ended = float(apart[0, -1]) < SAME
        distance = float(xp.sqrt(xp.sum(end * end))) if ended else UNKNOWN
        x, y, angle = self._places(plans)
        total = self._rated(plans, (x, y, angle), costs, end, distance, target)
        reached = free[: max(1, round(self.ahead / RESOLUTION))]
        if 1.0 - float(xp.sum(xp.astype(reached, xp.float32))) / reached.shape[0] <= OCCUPIED:
            places = xp.stack([x[:, ::STRIDE], y[:, ::STRIDE]], axis=-1)
            off = path.distance(known, xp.reshape(places, (1, -1, 2)))
            total = total + ALIGN * xp.mean(xp.reshape(off, places.shape[:-1]), axis=-1)
        return total
