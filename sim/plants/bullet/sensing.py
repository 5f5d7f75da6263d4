"""What is sensed of a robot in Bullet: poses and velocities of bodies, contact points and frames, loads, rays."""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from robo_rl.sim.plants.rays import bundle
from robo_rl.sim.plants.sensing import W_LAST, frames
from robo_rl.sim.robots.mechanism import Mechanism

THROUGH = 1e-4
"""m behind a hit of a ray on the body that it starts from, from where it goes on."""

FAR = 1000.0
"""m, to which rays without a limit are followed."""

Place = tuple[int, np.ndarray, np.ndarray]
"""A link, and position and turn of something in its frame."""

Motion = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Position (m), rotation matrix, linear (m/s) and angular velocity (rad/s)."""


class WorldSensors:
    """All that is sensed of the body ``robot`` (a number of Bullet's), whose links are known by name."""

    def __init__(
        self, bullet: Any, robot: int, model: mujoco.MjModel, mechanism: Mechanism, links: dict[str, int]
    ) -> None:
        self.bullet, self.robot, self.model, self.mechanism, self.links = bullet, robot, model, mechanism, links
        information = bullet.getDynamicsInfo(robot, -1)
        self.inertial = np.array(information[3]), Rotation.from_quat(information[4])
        """The frame in which Bullet gives the pose of the robot, in that of its first link."""
        self._points = [self._place(point) for point in mechanism.points]
        self._frames = [self._place(frame.at) for frame in frames(mechanism)]
        self._origins = [self._place(rays.at) for rays in mechanism.rays]
        self._bundles = [bundle(rays) for rays in mechanism.rays]

    def _place(self, name: str) -> Place:
        """Link, position in it and turn of a site, body or shape."""
        model = self.model
        for kind in ("site", "body", "geom"):
            number = mujoco.mj_name2id(model, getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), name)
            if number < 0:
                continue
            if kind == "body":
                return self._link_of(number), np.zeros(3), np.eye(3)
            body = int(getattr(model, f"{kind}_bodyid")[number])
            turn = Rotation.from_quat(getattr(model, f"{kind}_quat")[number][W_LAST]).as_matrix()
            return self._link_of(body), getattr(model, f"{kind}_pos")[number].copy(), turn
        raise KeyError(name)

    def _link_of(self, body: int) -> int:
        return self.links[self.model.body(body).name or f"body{body}"]

    def body(self, body: int, inertial: tuple[np.ndarray, Rotation]) -> tuple[np.ndarray, ...]:
        """Position, orientation (x, y, z, w), linear (world) and angular velocity (own frame) of a free body."""
        center, inner = inertial
        middle, quaternion = self.bullet.getBasePositionAndOrientation(body)
        linear, spin = (np.array(part) for part in self.bullet.getBaseVelocity(body))
        turn = Rotation.from_quat(quaternion) * inner.inv()
        arm = turn.apply(center)
        return np.array(middle) - arm, turn.as_quat(), linear - np.cross(spin, arm), turn.inv().apply(spin)

    def _link(self, link: int) -> Motion:
        """Position and turn of a link's frame in the world, and the velocities of its origin, world."""
        if link < 0:
            if self.mechanism.fixed:
                return np.zeros(3), np.eye(3), np.zeros(3), np.zeros(3)
            place, turn, linear, spin = self.body(self.robot, self.inertial)
            matrix = Rotation.from_quat(turn).as_matrix()
            return place, matrix, linear, matrix @ spin
        found = self.bullet.getLinkState(self.robot, link, computeLinkVelocity=1, computeForwardKinematics=1)
        center, origin, quaternion, linear, spin = (np.array(found[i]) for i in (0, 4, 5, 6, 7))
        return origin, Rotation.from_quat(quaternion).as_matrix(), linear + np.cross(spin, origin - center), spin

    def _at(self, place: Place) -> Motion:
        """Position, turn and velocities of a place on a link, world."""
        link, offset, inner = place
        origin, turn, linear, spin = self._link(link)
        arm = turn @ offset
        return origin + arm, turn @ inner, linear + np.cross(spin, arm), spin

    def reference(self, body: str | None) -> Motion:
        """Of a body's frame, or of the world's."""
        if body is None:
            return np.zeros(3), np.eye(3), np.zeros(3), np.zeros(3)
        return self._link(self.links[body])

    def frame(self, k: int) -> Motion:
        """Position, turn and velocities of a frame, in the frame that it is relative to."""
        place, turn, linear, spin = self._at(self._frames[k])
        origin, base, moved, turned = self.reference(frames(self.mechanism)[k].relative_to)
        away = place - origin
        return (
            base.T @ away,
            base.T @ turn,
            base.T @ (linear - moved - np.cross(turned, away)),
            base.T @ (spin - turned),
        )

    def contacts(self) -> list[np.ndarray]:
        """Positions, velocities and loads of contact points, group by group."""
        found = [self._at(place) for place in self._points]
        loads = np.zeros(len(found))
        for link in {place[0] for place in self._points}:
            own = [k for k, place in enumerate(self._points) if place[0] == link]
            for contact in self.bullet.getContactPoints(bodyA=self.robot, linkIndexA=link):
                if contact[2] != self.robot:
                    away = [np.linalg.norm(found[k][0] - np.array(contact[5])) for k in own]
                    loads[own[int(np.argmin(away))]] += contact[9]
        parts, start = [], 0
        for contact in self.mechanism.contacts:
            own_points = slice(start, start + len(contact.at))
            parts += [np.concatenate([point[i] for point in found[own_points]]) for i in (0, 2)]
            parts.append(loads[own_points])
            start = own_points.stop
        return parts

    def ranges(self, k: int) -> np.ndarray:
        """(rays,) m of one bundle."""
        rays, (origins, directions) = self.mechanism.rays[k], self._bundles[k]
        place = self._origins[k]
        position, turn, _, _ = self._at(place)
        longest = np.full(len(directions), rays.longest if math.isfinite(rays.longest) else FAR)
        starts, ways = position + origins @ turn.T, directions @ turn.T
        gone, found = np.zeros(len(ways)), np.full(len(ways), math.nan)
        left = np.arange(len(ways))
        while len(left):
            begins, ends = starts[left] + gone[left, None] * ways[left], starts[left] + longest[left, None] * ways[left]
            hits = self.bullet.rayTestBatch(begins.tolist(), ends.tolist())
            again = []
            for ray, hit in zip(left, hits, strict=True):
                distance = gone[ray] + hit[2] * (longest[ray] - gone[ray])
                if hit[0] < 0:
                    found[ray] = rays.miss
                elif hit[0] == self.robot and hit[1] == place[0] and distance + THROUGH < longest[ray]:
                    gone[ray] = distance + THROUGH
                    again.append(ray)
                else:
                    found[ray] = distance
            left = np.array(again, int)
        return found
