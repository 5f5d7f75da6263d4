"""Classical control of a mobile base: a dynamic window of arcs, judged by the goal and by a scan. Numpy or torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from robo_rl.contract import Robot, Scan
from robo_rl.controllers.path import SIZE

SPEEDS = 3
TURNS = 11
"""How many speeds and turn rates are tried."""
SHOWN = 1.7
"""s of every arc that is judged: sim_time of Nav2's default parameters of DWB."""
POINTS = 6
"""Places on an arc where its distance to obstacles is taken."""
MARGIN, NEAR = 0.03, 0.15
"""m kept between robot and obstacles, and of clearance beyond which more is worth nothing; of a robot of SIZE."""


class DynamicWindow:
    """Fox, Burgard, Thrun 1997 (The dynamic window approach to collision avoidance), with critics like Nav2's DWB.

    Of arcs at constant speed and turn rate, those that touch something are left out; of the others the one whose end is
    nearest to the goal is taken, with a preference for the direction to the goal, for clearance and for speed. Where
    none is left, the robot turns towards the side that is freer.
    """

    name = "dynamic-window"

    def __init__(self, robot: Robot, scan: Scan, beams: int, limits: tuple[float, float], forward: float = 0.0) -> None:
        """``limits``: the greatest speed (m/s) and turn rate (rad/s). ``forward`` (m): where the lidar is."""
        high, turn = limits
        self.radius, self.forward, self.turn, self.top = float(robot.facts["radius"]), forward, turn, high
        self.angles = scan.angle_min + scan.angle_increment * np.arange(beams, dtype=np.float32)
        self.reach = scan.range_max
        v, u, w = self._velocities()
        time = SHOWN * np.arange(1, POINTS + 1) / POINTS
        angle = w[:, None] * time
        slow = np.where(np.abs(w) < 1e-6, 1e-6, w)[:, None]
        ahead, aside = np.sin(slow * time), 1 - np.cos(slow * time)
        v_, u_ = v[:, None] / slow, u[:, None] / slow
        self.arcs = np.stack([v_ * ahead - u_ * aside, v_ * aside + u_ * ahead]).astype(np.float32)
        """(2, arcs, points) m."""
        self.ends, self.tried = angle[:, -1].astype(np.float32), np.stack([v, u, w]).astype(np.float32)
        self.haste = (np.hypot(v, u) / high).astype(np.float32)
        self.scale = self.radius / SIZE
        stopping = np.square(np.hypot(v, u)) / (2 * float(robot.facts["acceleration"]))
        self.kept = np.maximum(MARGIN * self.scale, stopping).astype(np.float32)
        """(arcs,) m: clearance that an arc must have, so that the robot can also stop."""

    def _velocities(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(arcs,) each: speeds forward and to the left (m/s) and turn rates (rad/s) that are tried."""
        speeds, turns = np.linspace(0.2 * self.top, self.top, SPEEDS), np.linspace(-self.turn, self.turn, TURNS)
        v, w = (x.ravel() for x in np.meshgrid(speeds, turns, indexing="ij"))
        return v, 0.0 * v, w

    def first_state(self, n: int) -> np.ndarray:
        """It has none: (n, 0)."""
        return np.zeros((n, 0), np.float32)

    def __call__(self, signals: Mapping[str, Any], state: Any) -> tuple[dict[str, Any], Any]:
        """Speed (n, 1) m/s and turn rate (n, 1) rad/s."""
        xp = array_namespace(state)
        given = (self.angles, self.arcs, self.ends, self.haste, self.kept)
        angles, arcs, ends, haste, kept = (xp.asarray(x) for x in given)
        scan = signals["scan"]
        gx, gy = self._aim(signals)
        px, py = scan * xp.cos(angles) + self.forward, scan * xp.sin(angles)
        across = (arcs[0][None, :, :, None] - px[:, None, None, :]) ** 2
        across = across + (arcs[1][None, :, :, None] - py[:, None, None, :]) ** 2
        seen = xp.where(scan < self.reach - 1e-3, xp.zeros_like(scan), xp.full_like(scan, 1e6))
        apart = xp.sqrt(xp.min(xp.min(across + seen[:, None, None, :], axis=-1), axis=-1))  # (n, arcs)
        free = apart - self.radius
        ex, ey = gx - arcs[0][None, :, -1], gy - arcs[1][None, :, -1]
        left = xp.sqrt(ex * ex + ey * ey)
        bearing = xp.abs(xp.atan2(ey, ex) - ends[None])
        bearing = xp.minimum(bearing, xp.abs(bearing - 2 * np.pi))
        near = xp.clip(free, 0.0, NEAR * self.scale)
        turned, fast = 0.1 * self.scale, 0.2 * self.scale
        cost = left + turned * bearing - 1.0 * near - fast * haste[None] + self._off_path(signals)
        cost = xp.where(free > kept[None], cost, xp.full_like(cost, 1e6))
        best = xp.argmin(cost, axis=-1)
        blocked = xp.min(cost, axis=-1, keepdims=True) > 1e5
        side = xp.sign(xp.sum(xp.where(angles > 0, scan, -scan), axis=-1, keepdims=True) + 1e-6)
        v, u, w = (x[best][:, None] for x in xp.asarray(self.tried))
        still = xp.zeros_like(gx)
        found = (xp.where(blocked, still, v), xp.where(blocked, still, u), xp.where(blocked, 0.6 * self.turn * side, w))
        return self._commands(*found), state

    def _commands(self, forward: Any, left: Any, turn: Any) -> dict[str, Any]:
        """What is commanded, (n, 1) m/s, m/s and rad/s."""
        return {"forward_speed": forward, "turn_rate": turn}

    def _aim(self, signals: Mapping[str, Any]) -> tuple[Any, Any]:
        """(n, 1) m each: where the goal is, in the robot's frame."""
        orientation = signals["orientation"]
        z, w = orientation[:, 2:3], orientation[:, 3:4]
        cosine, sine = 1 - 2 * z * z, 2 * z * w
        dx, dy = (signals["position_setpoint"] - signals["position"])[:, :, None].swapaxes(0, 1)
        return cosine * dx + sine * dy, cosine * dy - sine * dx

    def _off_path(self, signals: Mapping[str, Any]) -> Any:
        """What arcs (n, arcs) cost that leave a path; there is none."""
        return 0.0
