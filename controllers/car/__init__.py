"""Classical controllers of cars: follow the gap by a scan, and pure pursuit of a path. Numpy or torch alike.

``FollowTheGap`` needs the lidar alone: a baseline for learnt policies, and, slowly, what the gate lets drive where a
policy may not. ``PurePursuit`` needs to be told the path.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from robo_rl.contract import Contract, Robot, Scan
from robo_rl.contract.gravity import GRAVITY

KIND = "car"
SLOWLY = 2.0  # m/s, of a car that no policy drives: a choice, about a walker's hurry
GRIP = 0.6
"""Part of the friction in the robot's facts that is used: half of a car's range of grip is below it."""
WIDTH = 0.31
"""m, of the car (F1TENTH) for which the lengths of ``FollowTheGap`` are meant; others scale them by theirs."""
MARGIN = 0.12  # m, kept beside the car
FIELD = math.radians(100.0)  # to either side, within which a way is looked for


class FollowTheGap:
    """Drive to where the scan is free the farthest, with obstacles widened by half of the car.

    After Sezer and Gokasan 2012 (A novel obstacle avoidance algorithm: follow the gap method), with the widening of
    Otterness 2019 (The disparity extender). Speed: what the brakes and the grip of the bend allow.
    """

    name = "follow-the-gap"

    def __init__(self, robot: Robot, scan: Scan, beams: int, top: float) -> None:
        """``top`` (m/s): the greatest speed that may be commanded."""
        facts = robot.facts
        self.limit, self.top = float(facts["steering_limit"]), top
        self.base = float(facts["front_axle"]) + float(facts["rear_axle"])
        self.scale = float(facts["body"][1]) / WIDTH
        self.half = 0.5 * float(facts["body"][1]) + MARGIN * self.scale
        self.grip = GRIP * float(facts["friction"]) * GRAVITY
        self.angles = scan.angle_min + scan.angle_increment * np.arange(beams, dtype=np.float32)
        self.apart = np.abs(self.angles[:, None] - self.angles[None])
        self.front = np.abs(self.angles) <= FIELD

    def first_state(self, n: int) -> np.ndarray:
        """State before the first step, (n, 1): the last steering angle."""
        return np.zeros((n, 1), np.float32)

    def __call__(self, signals: Mapping[str, Any], state: Any) -> tuple[dict[str, Any], Any]:
        """Steering angle (n, 1) rad and speed (n, 1) m/s."""
        xp = array_namespace(state)
        angles, apart, front = (xp.asarray(x) for x in (self.angles, self.apart, self.front))
        scan = xp.clip(signals["scan"], 0.05, 100.0)
        widened = xp.asin(xp.clip(self.half / scan, 0.0, 1.0))  # rad that a point covers
        hidden = apart[None] <= widened[:, None, :]
        free = xp.min(xp.where(hidden, scan[:, None, :], 100.0), axis=-1)  # (n, beams)
        score = xp.where(front, free, -1.0)
        best = xp.max(score, axis=-1, keepdims=True)
        weight = xp.where(score >= 0.9 * best, xp.ones_like(score), 0.0)
        aim = xp.sum(weight * angles, axis=-1, keepdims=True) / xp.sum(weight, axis=-1, keepdims=True)
        reach = xp.clip(0.5 * best, 0.6 * self.scale, 2.5 * self.scale)
        steering = xp.clip(xp.atan(2 * self.base * xp.sin(aim) / reach), -self.limit, self.limit)
        ahead = xp.min(xp.where(xp.abs(angles) < 0.2, free, 100.0), axis=-1, keepdims=True)
        bend = xp.abs(xp.tan(steering)) / self.base + 1e-3
        brake = xp.sqrt(2 * 0.5 * self.grip * xp.clip(ahead - 0.5 * self.scale, 0.05, 100.0))
        speed = xp.minimum(xp.sqrt(self.grip / bend), brake)
        return {"steering_angle": steering, "speed": xp.clip(speed, 0.5, self.top)}, steering


class PurePursuit:
    """Coulter 1992 (Implementation of the pure pursuit path tracking algorithm), with speed by the bends ahead.

    The path is given as points in the car's frame, at distances along it that grow: "path" (n, k, 2) m. The point that
    is aimed at lies about 0.6 m + 0.09 s times the speed ahead.
    """

    name = "pure-pursuit"

    def __init__(self, robot: Robot, distances: Any, top: float, grip: float = GRIP) -> None:
        """``distances`` (k,) m of the points along the path; ``grip``: the part of the friction that is used."""
        facts = robot.facts
        self.limit, self.top, self.rear = float(facts["steering_limit"]), top, float(facts["rear_axle"])
        self.base = float(facts["front_axle"]) + self.rear
        self.grip = grip * float(facts["friction"]) * GRAVITY
        self.distances = np.asarray(distances, np.float32)

    def first_state(self, n: int) -> np.ndarray:
        """It has none: (n, 0)."""
        return np.zeros((n, 0), np.float32)

    def __call__(self, signals: Mapping[str, Any], state: Any) -> tuple[dict[str, Any], Any]:
        """Steering angle (n, 1) rad and speed (n, 1) m/s, by "path" and "wheel_speed" (n, 1) m/s."""
        xp = array_namespace(state)
        path, distances = signals["path"], xp.asarray(self.distances)
        wanted = 0.6 + 0.09 * xp.abs(signals["wheel_speed"])
        near = xp.clip(1 - xp.abs(distances[None] - wanted) / 0.5, 0.0, 1.0) + 1e-6
        x, y = path[..., 0] + self.rear, path[..., 1]
        arcs = 2 * y / (x * x + y * y)  # 1/m, of circles from the rear axle through the points
        arc = xp.sum(near * arcs, axis=1, keepdims=True) / xp.sum(near, axis=1, keepdims=True)
        steering = xp.clip(xp.atan(self.base * arc), -self.limit, self.limit)
        a, b, c = path[:, :-2], path[:, 1:-1], path[:, 2:]
        u, v, w = b - a, c - b, c - a
        area = xp.abs(u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0])
        sides = xp.sqrt(xp.sum(u * u, axis=-1) * xp.sum(v * v, axis=-1) * xp.sum(w * w, axis=-1))
        bend = 2 * area / xp.clip(sides, 1e-6, None) + 1e-3  # 1/m of the circle through three points
        here = xp.clip(distances[1:-1][None] - 0.5, 0.0, None)
        allowed = xp.sqrt(self.grip / bend + 2 * 0.6 * self.grip * here)
        return {"steering_angle": steering, "speed": xp.clip(xp.min(allowed, axis=-1)[:, None], 0.5, self.top)}, state


class BrakeInTheGap:
    """``controllers.Fallback`` of a car with a lidar: it follows the gap slowly, and after a fault it brakes there."""

    needed = ("scan",)

    def __init__(self, contract: Contract) -> None:
        scan = next(signal for signal in contract.signals if signal.name == "scan")
        steering, speed = contract.commands
        assert isinstance(scan.layout, Scan)
        self.driver = FollowTheGap(contract.robot, scan.layout, scan.size, min(SLOWLY, speed.upper[0]))
        self.limits = (steering.lower + speed.lower, steering.upper + speed.upper)
        self.acceleration = 0.5 * float(contract.robot.facts["acceleration"])
        self.rest()

    @staticmethod
    def suits(contract: Contract) -> bool:
        """Whether it can act on these signals and commands."""
        scans = [signal for signal in contract.signals if signal.name == "scan" and isinstance(signal.layout, Scan)]
        names = [command.name for command in contract.commands]
        return contract.robot.kind == KIND and len(scans) == 1 and names == ["steering_angle", "speed"]

    def rest(self) -> None:
        """The car stands."""
        self.sent = np.zeros(2, np.float32)
        self.braking_from: float | None = None

    def arm(self, signals: Mapping[str, np.ndarray]) -> None:
        """There is nothing to note."""

    def propose(self, signals: Mapping[str, np.ndarray]) -> np.ndarray:
        """Steering angle and speed (2,) that follow the gap."""
        with np.errstate(all="ignore"):  # what comes of bad signals is not finite, and the gate refuses it
            state = self.driver.first_state(1)
            commands, _ = self.driver({"scan": np.asarray(signals["scan"], np.float32)[None]}, state)
            found = np.array([commands["steering_angle"][0, 0], commands["speed"][0, 0]], np.float32)
            return np.clip(found, *(np.array(limit, np.float32) for limit in self.limits))

    def land(self, signals: Mapping[str, np.ndarray], time: float) -> np.ndarray | None:
        """The command that brakes along the gap; None once the car stands."""
        if self.braking_from is None:
            self.braking_from, self._since = float(self.sent[1]), time
        speed = self.braking_from - self.acceleration * (time - self._since)
        if not speed > 0:
            return None
        found = self.propose(signals)
        found[1] = min(float(found[1]), speed)
        return found

    def follow(self, sent: np.ndarray) -> None:
        """Note what was sent."""
        if np.isfinite(sent).all():
            self.sent = np.array(sent, np.float32)


FALLBACK = BrakeInTheGap
