"""A mobile base under model predictive path integral control, with the parameters and critics of Nav2. Numpy or torch.

Parameters are those of nav2_bringup's nav2_params.yaml (MPPIController, 2026), critics those of nav2_mppi_controller
that need no planned path: Constraint, Cost, Goal, PathFollow, PathAngle and PreferForward. There is no map to plan a
path on, so the path is the straight line to the goal; PathAlign, which Nav2 leaves out where a path is blocked, is not
there, nor is GoalAngle (a goal has no direction).

Nav2's lengths are for robots of TurtleBot3's size: lengths and speeds are divided by the robot's own (``SIZE``) before
anything else, so a robot that is k times as large and as fast in a world k times as large does the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from robo_rl.contract import Robot, Scan
from robo_rl.controllers.mppi import Sampling, draws, improved, shifted, smoothing
from robo_rl.controllers.path import SIZE

TIME = 2.8
"""s of a plan: 56 steps of 0.05 s. A step here is one control period."""
SAMPLES = 2000
DEVIATION = (0.2, 0.4)  # m/s, rad/s
TEMPERATURE, GAMMA = 0.3, 0.015
RESOLUTION = 0.05  # m
INFLATION, SCALING = 0.7, 3.0  # m, 1/m: costs fall as 252 exp(−3 d) up to 0.7 m from what is closer than the radius
COST, COLLISION, NEAR_GOAL = 3.81 / 254, 1e6, 0.5
EVERY = 2  # points of a plan whose costs are looked up
GOAL, CONSIDERED = 5.0, 1.4  # Goal's weight; within this distance (m) it takes the place of PathFollow
FOLLOW, OFFSET = 5.0, 5  # points of the path beyond the furthest one that a plan reaches
ANGLE, OBLIQUE, ANGLE_NEAR = (
    2.0,
    1.0,
    0.5,
)  # above this angle (rad) to the path, and farther than this (m) from the goal
FORWARD = 5.0
CONSTRAINT = 4.0


class PathIntegral:
    """Nav2's default controller, on a scan in place of a costmap and odometry in place of a map."""

    name = "mppi"

    def __init__(
        self,
        robot: Robot,
        scan: Scan,
        beams: int,
        lower: tuple[float, float],
        upper: tuple[float, float],
        period: float,
        forward: float = 0.0,
        samples: int = SAMPLES,
    ) -> None:
        """``lower``, ``upper``: limits of speed (m/s) and turn rate (rad/s); ``forward`` (m): where the lidar is."""
        self.scale = float(robot.facts["radius"]) / SIZE
        self.forward, self.period = forward / self.scale, period
        self.angles = scan.angle_min + scan.angle_increment * np.arange(beams, dtype=np.float32)
        self.reach = scan.range_max / self.scale
        self.sampling = Sampling(samples, max(2, round(TIME / period)), DEVIATION, TEMPERATURE, GAMMA)
        lower, upper = (lower[0] / self.scale, lower[1]), (upper[0] / self.scale, upper[1])
        self.limits = (np.asarray(lower, np.float32), np.asarray(upper, np.float32))
        self.noise, self.filter = draws(self.sampling), smoothing(self.sampling.steps)
        self.ahead = upper[0] * TIME + OFFSET * RESOLUTION
        self.half = math.ceil((upper[0] * TIME + 0.1) / RESOLUTION) + 1
        places = RESOLUTION * np.arange(-self.half, self.half + 1, dtype=np.float32)
        self.places = np.stack(np.meshgrid(places, places, indexing="ij"), -1).reshape(-1, 2)  # m, in the robot's frame

    def first_state(self, n: int) -> np.ndarray:
        """The plan: (n, 2 steps), speeds and turn rates in turn."""
        return np.zeros((n, 2 * self.sampling.steps), np.float32)

    def __call__(self, signals: Mapping[str, Any], state: Any) -> tuple[dict[str, Any], Any]:
        """Speed (n, 1) m/s and turn rate (n, 1) rad/s. Robots one after another: their plans are large."""
        xp = array_namespace(state)
        goals = self._aims(signals)
        noise, smooth, angles = (xp.asarray(x) for x in (self.noise, self.filter, self.angles))
        lower, upper = (xp.asarray(x) for x in self.limits)
        plans = []
        for k in range(state.shape[0]):
            scan, goal = signals["scan"][k] / self.scale, goals[k] / self.scale
            costs = self._costmap(scan, angles)

            def cost(given: Any, costs: Any = costs, goal: Any = goal) -> Any:
                return self._cost(given[0], costs, goal)[None]

            plans.append(improved(xp.reshape(state[k : k + 1], (1, -1, 2)), noise, cost, self.sampling))
        found = xp.clip(smooth @ xp.concat(plans, axis=0), lower, upper)
        later = xp.reshape(shifted(found), state.shape)
        return {"forward_speed": self.scale * found[:, 0, :1], "turn_rate": found[:, 0, 1:]}, later

    def _aims(self, signals: Mapping[str, Any]) -> Any:
        """(n, 2) m: where the goals are, in the robots' frames."""
        xp = array_namespace(signals["orientation"])
        z, w = (signals["orientation"][:, k] for k in (2, 3))
        cosine, sine = 1 - 2 * z * z, 2 * z * w
        way = signals["position_setpoint"] - signals["position"]
        return xp.stack([cosine * way[:, 0] + sine * way[:, 1], cosine * way[:, 1] - sine * way[:, 0]], axis=-1)

    def _costmap(self, scan: Any, angles: Any) -> Any:
        """(cells,) costs by the distance to what a scan (beams,) m sees: COLLISION where the robot would touch it."""
        xp = array_namespace(scan)
        points = xp.stack([scan * xp.cos(angles) + self.forward, scan * xp.sin(angles)], axis=-1)
        points = points + xp.where(scan < self.reach - 1e-3, 0 * scan, 0 * scan + 1e3)[:, None]
        cells = xp.asarray(self.places)
        apart = xp.sum(xp.square(cells), axis=-1)[:, None] + xp.sum(xp.square(points), axis=-1) - 2 * cells @ points.T
        free = xp.sqrt(xp.clip(xp.min(apart, axis=-1), 0.0, None)) - SIZE
        inflated = xp.where(free < INFLATION - SIZE, 252 * xp.exp(-SCALING * free), 0 * free)
        return xp.where(free <= 0, 0 * free + COLLISION, inflated)

    def _cost(self, plans: Any, costs: Any, goal: Any) -> Any:
        """(samples,) of plans (samples, steps, 2), by a costmap and the goal (2,) m in the robot's frame."""
        xp = array_namespace(plans)
        distance = float(xp.sqrt(xp.sum(goal * goal)))
        return self._rated(plans, self._places(plans), costs, goal, distance, self._target(costs, goal, distance))

    def _places(self, plans: Any) -> tuple[Any, Any, Any]:
        """x, y (m) and angle (rad) after every step of plans (samples, steps, 2), (samples, steps) each."""
        xp = array_namespace(plans)
        lower, upper = (float(limit[1]) for limit in self.limits)
        speed, turn = plans[..., 0], xp.clip(plans[..., 1], lower, upper)
        angle = xp.cumulative_sum(self.period * turn, axis=-1)
        middle = angle - 0.5 * self.period * turn
        x = xp.cumulative_sum(self.period * speed * xp.cos(middle), axis=-1)
        y = xp.cumulative_sum(self.period * speed * xp.sin(middle), axis=-1)
        return x, y, angle

    def _rated(
        self, plans: Any, places: tuple[Any, Any, Any], costs: Any, goal: Any, distance: float, target: Any
    ) -> Any:
        """(samples,) by the critics; the goal (2,) m is so far (m) away, ``target`` (2,) m is a point of the path."""
        xp = array_namespace(plans)
        lower, upper = (float(limit[0]) for limit in self.limits)
        speed, (x, y, angle) = plans[..., 0], places
        beyond = xp.clip(speed - upper, 0.0, None) + xp.clip(lower - speed, 0.0, None)
        at = self._looked_up(costs, x[:, EVERY - 1 :: EVERY], y[:, EVERY - 1 :: EVERY])
        touching = xp.max(at, axis=-1) >= COLLISION
        if distance <= NEAR_GOAL:
            at = 0 * at
        total = COST * xp.where(touching, 0 * speed[:, 0] + COLLISION, xp.mean(at, axis=-1))
        total = total + CONSTRAINT * self.period * xp.sum(beyond, axis=-1)
        if distance <= CONSIDERED:
            total = total + GOAL * xp.mean(xp.sqrt((x - goal[0]) ** 2 + (y - goal[1]) ** 2), axis=-1)
        dx, dy = target[0] - x[:, -1], target[1] - y[:, -1]
        if distance > CONSIDERED:
            total = total + FOLLOW * xp.sqrt(dx * dx + dy * dy)
        if distance > ANGLE_NEAR:
            if abs(math.atan2(float(target[1]), float(target[0]))) > OBLIQUE:
                off = xp.atan2(dy, dx) - angle[:, -1]
                total = total + ANGLE * xp.abs(xp.atan2(xp.sin(off), xp.cos(off)))
            total = total + FORWARD * self.period * xp.sum(xp.clip(-speed, 0.0, None), axis=-1)
        return total

    def _looked_up(self, costs: Any, x: Any, y: Any) -> Any:
        """Costs at places (m); beyond the map's edge those of the edge."""
        xp = array_namespace(x)
        side = 2 * self.half + 1
        column = xp.clip(xp.round(x / RESOLUTION) + self.half, 0, side - 1)
        row = xp.clip(xp.round(y / RESOLUTION) + self.half, 0, side - 1)
        index = xp.astype(column * side + row, xp.int64)
        return xp.reshape(xp.take(costs, xp.reshape(index, (-1,))), index.shape)

    def _target(self, costs: Any, goal: Any, distance: float) -> Any:
        """(2,) m: the first free point of the straight path from OFFSET points beyond what a plan reaches."""
        xp = array_namespace(goal)
        direction = goal / max(distance, 1e-6)
        for place in np.arange(min(self.ahead, distance), distance, RESOLUTION):
            x, y = float(place) * direction[:1], float(place) * direction[1:]
            outside = max(abs(float(x[0])), abs(float(y[0]))) > self.half * RESOLUTION
            if outside or float(self._looked_up(costs, x, y)[0]) < COLLISION:
                return float(place) * direction
        return goal + 0 * xp.sum(goal)
