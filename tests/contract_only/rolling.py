"""A base on two wheels of its own, in rooms of its own: walls, and posts that stand far enough from each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.contract_only.interface import Draws, Policy, Sensors
from tests.contract_only.seeing import Lidar, closed, distance

STEP, WIDE, LONG = 0.01, 3.8, 5.3
"""s; m, of a room."""


def post(place: np.ndarray, radius: float) -> np.ndarray:
    """(8, 2, 2): the sides of a post."""
    angle = np.arange(8) * np.pi / 4
    return closed(place + radius * np.stack([np.cos(angle), np.sin(angle)], 1))


def room(random: np.random.Generator, free: np.ndarray, posts: int, apart: float) -> np.ndarray:
    """(k, 2, 2): outer walls, and posts ``apart`` (m) from each other, the walls and the places ``free`` (f, 2)."""
    found: list[np.ndarray] = []
    for _ in range(40 * posts):
        place, radius = random.uniform([0.3, 0.9], [WIDE - 0.3, LONG - 0.9]), random.uniform(0.08, 0.2)
        taken = [*free, *(at for at, _ in found)]
        reach = [0.0] * len(free) + [r for _, r in found]
        if all(np.linalg.norm(place - at) > radius + r + apart for at, r in zip(taken, reach, strict=True)):
            found.append((place, radius))
        if len(found) == posts:
            break
    outer = closed(np.array([[0.0, 0.0], [WIDE, 0.0], [WIDE, LONG], [0.0, LONG]]))
    return np.concatenate([outer, *(post(place, radius) for place, radius in found)])


class Bases:
    """n of them, each with what was drawn for it."""

    def __init__(self, policy: Policy, draw: Draws) -> None:
        base = policy.facts["base"]
        self.most = base["acceleration"] * draw("acceleration", otherwise=1.0)
        self.turning = base["turn_acceleration"] * draw("acceleration", otherwise=1.0)
        self.lag = base["motor_time"] * draw("motor_time", otherwise=1.0)
        self.scale, self.turned = draw("speed_scale", otherwise=1.0), draw("turn_scale", otherwise=1.0)
        n = policy.n
        self.pose, self.odometry = np.zeros((n, 3)), np.zeros((n, 3))
        self.speed, self.rate = np.zeros(n), np.zeros(n)

    def step(self, forward: np.ndarray, turn: np.ndarray, moving: np.ndarray) -> None:
        """10 ms. Wheels turn as commanded; the robot moves by a little more or less."""
        self.speed += STEP * np.clip((forward - self.speed) / self.lag, -self.most, self.most)
        self.rate += STEP * np.clip((turn - self.rate) / self.lag, -self.turning, self.turning)
        for pose, scale, turned in ((self.odometry, 1.0, 1.0), (self.pose, self.scale, self.turned)):
            middle = pose[:, 2] + 0.5 * STEP * turned * self.rate
            way = STEP * moving * scale * self.speed
            pose += np.stack([way * np.cos(middle), way * np.sin(middle), STEP * moving * turned * self.rate], 1)


def success(file: Path, n: int, seed: int = 0, posts: int = 9) -> float:
    """The part of n bases that reach their goal without a contact."""
    policy = Policy(file, n)
    draw = Draws(policy, seed)
    random, lidar, bases = draw.random, Lidar(policy.contract), Bases(policy, draw)
    following = any(signal["name"] == "path_points" for signal in policy.contract["signals"])
    sensors, radius = Sensors(policy, draw, STEP), policy.facts["base"]["body"]["radius"]
    begin = np.stack([0.5 + (WIDE - 1.0) * draw("initial.across"), np.full(n, 0.4)], 1)
    goal = np.stack([0.5 + (WIDE - 1.0) * draw("goal.across"), np.full(n, LONG - 0.4)], 1)
    bases.pose[:, :2], bases.pose[:, 2] = begin, draw("initial.heading")
    bases.odometry[:] = bases.pose
    part = np.linspace(0.0, 1.0, 60)[:, None]
    paths = [a + part * (b - a) + [0.15, 0.0] * np.sin(2 * np.pi * part) for a, b in zip(begin, goal, strict=True)]
    walls = [room(random, p if following else p[[0, -1]], posts, 0.35 if following else 0.5) for p in paths]
    limit, last = 0.22 * draw("speed_limit", otherwise=1.0), np.zeros(n, int)
    good, there, per = np.ones(n, bool), np.zeros(n, bool), round(policy.period / STEP)
    scan_period = next(s["period"] for s in policy.contract["signals"] if s["name"] == "scan") or policy.period
    every, seen = round(scan_period / policy.period), np.zeros((n, len(lidar.angles)))
    tilt = draw("lidar.yaw")
    for k in range(round(policy.facts["episode"] / policy.period)):
        if k % every == 0:
            for i in np.flatnonzero(good & ~there):
                seen[i] = lidar.ranges(bases.pose[i] + [0.0, 0.0, tilt[i]], walls[i])
            seen += 0.0
            told = seen + np.array(sensors.signals["scan"]["noise"]) * random.standard_normal(seen.shape)
        for _ in range(per):
            sensors.note("yaw_rate", bases.rate[:, None])
        half = 0.5 * bases.odometry[:, 2]
        signals = {
            **sensors.read(), "scan": np.maximum(told, 0.0), "position": bases.odometry[:, :2],
            "orientation": np.stack([0 * half, 0 * half, np.sin(half), np.cos(half)], 1),
            "wheel_speed": bases.speed[:, None], "position_setpoint": goal, "speed_limit": limit[:, None],
        }  # fmt: skip
        if following:
            signals["path_points"] = np.stack([_ahead(policy, paths[i], bases.pose[i], last, i) for i in range(n)])
        commands = policy(signals)
        for _ in range(per):
            bases.step(commands["forward_speed"][:, 0], commands["turn_rate"][:, 0], good & ~there)
        there |= np.linalg.norm(bases.pose[:, :2] - goal, axis=1) < policy.facts["success"]["goal_within_m"]
        for i in np.flatnonzero(good & ~there):
            good[i] = distance(bases.pose[i : i + 1, :2], walls[i]) > radius
        if (there | ~good).all():
            break
    return float((good & there & ~policy.refused).mean())


def _ahead(policy: Policy, path: np.ndarray, pose: np.ndarray, last: np.ndarray, i: int) -> np.ndarray:
    """(points, 2) m of the path, in the robot's frame."""
    begin = last[i]
    near = np.linalg.norm(path[begin : begin + 12] - pose[:2], axis=1)
    last[i] = begin + int(near.argmin())
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
    at = along[last[i]] + np.array(policy.facts["along_path_m"]["path_points"])
    points = np.stack([np.interp(at, along, path[:, axis]) for axis in range(2)], 1) - pose[:2]
    c, s = np.cos(pose[2]), np.sin(pose[2])
    return points @ np.array([[c, -s], [s, c]])
