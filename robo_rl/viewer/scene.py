"""What the live page shows in three dimensions: robots, their ground, markers, and a camera that goes along.

All of it hangs below one frame, ``/world``, which is moved so that the robot that is followed stays where the camera
looks: so only the user moves the camera. Shapes of a kind are instances of one mesh, whatever body and robot
they belong to, so that a frame is a few messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
import viser

from robo_rl.sim.drawing import GOALS, Line, Marker, Sphere, has_ground, has_terrain, is_plane, rotated, seen, size_of
from robo_rl.sim.pictures.camera import ABOVE, AZIMUTH, ELEVATION, spread
from robo_rl.viewer.live import FRAMES_PER_SECOND, Frame
from robo_rl.viewer.markers import SHOWN, Shown
from robo_rl.viewer.shapes import FACETED, Instance, instances, mesh_of, turned

FALLBACK = 0.5  # m, of a robot that can't be drawn
FARTHEST = 40.0
"""Sizes of a robot: a goal beyond is not seen together with it."""
ROOM = 2.0
"""Sizes of a robot: lines that reach farther show what is around it, others what belongs to it."""
SURROUNDED = 4.6
"""Sizes of a robot that are seen about it where lines show what is around."""
NEAR = 2.4  # sizes of what is seen: the distance of the first camera
CATCHING_UP = 6.0  # 1/s, of the frame that follows a robot
PLANE, LINES, SECTIONS = (236, 239, 243), (205, 212, 220), (160, 170, 182)


class Scene:
    """Robots of one model, n times."""

    def __init__(
        self, server: viser.ViserServer, model: mujoco.MjModel | None, first: Frame, ways: np.ndarray | None = None,
        team: int = 1,
    ) -> None:  # fmt: skip
        """``model`` is the plant's drawing; ``first``: the robots as they begin.

        ``ways`` (steps, n, 3) m: where they go, as far as that should keep them apart. ``team``: so many share a world.
        """
        self.server, self.model, self.n = server, model, len(first.counters.begun)
        poses = first.poses
        self.size = FALLBACK if model is None or poses is None else size_of(model, poses[0])
        self.offsets = np.zeros((self.n, 3))
        self.terrain = model is not None and has_terrain(model, self.size)
        if self.n > 1 and not self.terrain:
            apart = max(self.size, reach_of_lines(first))
            self.offsets = spread(np.zeros((1, self.n, 3)) if ways is None else ways, apart, team)
        self.root = server.scene.add_frame("/world", show_axes=False)
        alone = self.n == 1 and first.poses is not None
        self.followed: int | None = 0 if alone or (model is not None and has_ground(model)) else None
        self._middle = np.zeros(3)
        self._groups: list[tuple[Any, list[Instance], np.ndarray]] = []
        self._markers: dict[str, Shown] = {}
        self.hidden: set[str] = set()
        """Names of markers that are not shown."""
        self.joints: int | None = None
        """The robot whose joint axes are shown."""
        self._axes: Any = None
        server.scene.configure_default_lights(cast_shadow=True)
        server.scene.configure_environment_map(hdri=None)
        server.scene.add_light_ambient("/ambient", color=(255, 255, 255), intensity=0.5)
        if model is not None:
            self._add_bodies(model)
        self._add_floor(first, 12.0 * self._look(first))
        self.update(first)

    def _add_bodies(self, model: mujoco.MjModel) -> None:
        """Handles for all shapes: those of the world once, or once per robot, and those of bodies per robot."""
        groups: dict[tuple[str, bool, bool], list[Instance]] = {}
        for instance in instances(model):
            groups.setdefault((instance.mesh, instance.body > 0, instance.color[3] < 1), []).append(instance)
        for number, ((name, moves, glassy), members) in enumerate(groups.items()):
            copies = self.offsets if moves or not self.terrain else np.zeros((1, 3))
            vertices, faces = mesh_of(model, name)
            count = len(copies) * len(members)
            colors = np.array([member.color for member in members])
            handle = self.server.scene.add_batched_meshes_simple(
                f"/world/shapes/{number}",
                vertices,
                faces,
                batched_wxyzs=np.tile([1.0, 0.0, 0.0, 0.0], (count, 1)),
                batched_positions=np.zeros((count, 3)),
                batched_scales=np.tile([member.scale for member in members], (len(copies), 1)),
                batched_colors=np.tile((255 * colors[:, :3]).astype(np.uint8), (len(copies), 1)),
                batched_opacities=np.tile(colors[:, 3], len(copies)) if glassy else None,
                flat_shading=name in FACETED,
                lod="off",
                cast_shadow=moves and not glassy,
            )
            if moves:
                self._groups.append((handle, members, np.array([member.body for member in members]) - 1))
            else:
                still = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
                self._place(handle, members, np.tile(still, (len(copies), len(members), 1)), copies)

    def _place(self, handle: Any, members: list[Instance], bodies: np.ndarray, offsets: np.ndarray) -> None:
        """Put instances on bodies with poses (robots, members, 7)."""
        local = np.array([member.position for member in members])
        turn = np.array([member.orientation for member in members])
        places = bodies[..., :3] + rotated(bodies[..., 3:], np.broadcast_to(local, bodies[..., :3].shape))
        places = places + offsets[:, None]
        turns = turned(bodies[..., 3:], np.broadcast_to(turn, bodies[..., 3:].shape))
        handle.batched_positions = places.reshape(-1, 3).astype(np.float32)
        handle.batched_wxyzs = turns.reshape(-1, 4)[:, [3, 0, 1, 2]].astype(np.float32)

    def _add_floor(self, first: Frame, reach: float) -> None:
        """A grid on the model's plane, or below robots that have no ground; it fades at ``reach`` (m)."""
        height = None
        if self.model is not None and first.poses is not None:
            planes = [shape for shape in seen(self.model) if is_plane(self.model, shape)]
            if planes:
                height = float(self.model.geom_pos[planes[0], 2])
            elif not has_ground(self.model):
                heights = (m.points[..., 2].ravel() for m in first.markers if isinstance(m, Line))
                lines = np.concatenate([np.zeros(0), *heights])
                below = float(first.poses[..., 2].min()) - 4.0 * self.size
                height = float(np.nanmin(lines)) if np.isfinite(lines).any() else below
        elif self.model is None:
            height = 0.0
        if height is None:
            return
        cell = 10.0 ** np.floor(np.log10(5.0 * self.size))
        self.server.scene.add_grid(
            "/world/floor",
            infinite_grid=True,
            position=(0.0, 0.0, height - 1e-3),
            cell_size=cell,
            cell_color=LINES,
            cell_thickness=0.8,
            section_size=5 * cell,
            section_color=SECTIONS,
            section_thickness=1.0,
            fade_distance=reach,
            plane_color=PLANE,
            plane_opacity=1.0,
            shadow_opacity=0.35,
        )

    def floor_point(self, origin: Sequence[float], direction: Sequence[float], robot: int) -> list[float] | None:
        """x, y (m) in a robot's world of the point of the ground at which a ray in the scene ends; None if it does not.

        The ground is the plane at height 0, which robots that drive are on.
        """
        start = np.array(origin) - np.array(self.root.position) - self.offsets[robot]
        down = np.array(direction, float)
        if start[2] <= 0 or down[2] >= -1e-3 * np.linalg.norm(down):
            return None
        point = start - start[2] / down[2] * down
        return [float(point[0]), float(point[1])]

    def _look(self, first: Frame) -> float:
        """The first camera: on the followed robot, or on all of them; returns its distance (m)."""
        where = self._where(first)
        following = self.followed is not None
        if self.followed is not None and (goal := self._goal(first, self.followed)) is not None:
            return self._point_at(where[self.followed], goal, first)
        middle = where[self.followed] if self.followed is not None else where.mean(0)
        around = self.size if following else self.size + float(np.abs(where - where.mean(0)).max())
        self._middle = middle if following else np.zeros(3)
        return self._place_camera(np.zeros(3) if following else middle, around, first)

    def _goal(self, first: Frame, robot: int) -> np.ndarray | None:
        """(3,) m: the marker of the place that a robot is to go to, if it is beside it and not too far to be seen."""
        for marker in first.markers:
            if isinstance(marker, Sphere) and marker.name in GOALS:
                place = np.asarray(marker.position)[robot] + self.offsets[robot]
                away = float(np.linalg.norm(place - self._where(first)[robot]))
                if np.isfinite(place).all() and 0.5 * self.size < away < FARTHEST * self.size:
                    return place
        return None

    def _point_at(self, robot: np.ndarray, goal: np.ndarray, first: Frame) -> float:
        """Both are seen, the robot with all its bodies: an arm is far larger than its first one."""
        self._middle = robot
        points = np.stack([robot, goal])
        if first.poses is not None and self.followed is not None:
            points = np.concatenate([points, first.poses[self.followed, :, :3] + self.offsets[self.followed]])
        low, high = points.min(0), points.max(0)
        around = 0.5 * self.size + 0.5 * float(np.linalg.norm(high - low))
        return self._place_camera(0.5 * (low + high) - robot, around, first)

    def _place_camera(self, at: np.ndarray, around: float, first: Frame) -> float:
        """Look at a point of the scene from where what is within ``around`` (m) of it is seen; the distance (m).

        Where lines show what is around a robot (walls, lanes, a track) more of it is seen, from above.
        """
        surrounded = reach_of_lines(first) > ROOM * self.size
        around = max(around, SURROUNDED * self.size) if surrounded else around
        turn, lift = np.radians(AZIMUTH), np.radians(ABOVE if surrounded else ELEVATION - 6.0)
        ahead = np.array([np.cos(lift) * np.cos(turn), np.cos(lift) * np.sin(turn), np.sin(lift)])
        camera = self.server.initial_camera
        camera.look_at = tuple(at)
        camera.position = tuple(at - NEAR * around * ahead)
        camera.near, camera.far = 0.02 * self.size, 400.0 * max(self.size, 0.2)
        return NEAR * around

    def _where(self, frame: Frame) -> np.ndarray:
        """(n, 3) m: where robots are, by their first bodies, or else by their first markers."""
        if frame.poses is not None:
            return frame.poses[:, 0, :3] + self.offsets
        placed = [m.position for m in frame.markers if not isinstance(m, Line)]
        return (placed[0] if placed else np.zeros((self.n, 3))) + self.offsets

    def update(self, frame: Frame) -> None:
        """Show a frame."""
        with self.server.atomic():
            if frame.poses is not None and np.isfinite(frame.poses).all():
                for handle, members, body in self._groups:
                    self._place(handle, members, frame.poses[:, body], self.offsets)
            self._show_markers(frame)
            self._show_joints(frame)
            self._follow(frame)

    def _follow(self, frame: Frame) -> None:
        """Move the world so that the followed robot stays in its middle."""
        if self.followed is None:
            return
        wanted = self._where(frame)[self.followed]
        if not np.isfinite(wanted).all():
            return
        away = wanted - self._middle
        near = np.linalg.norm(away) < 6.0 * self.size
        self._middle = self._middle + min(1.0, CATCHING_UP / FRAMES_PER_SECOND) * away if near else wanted
        self.root.position = -self._middle

    def _show_markers(self, frame: Frame) -> None:
        """Markers of a name are one handle."""
        named: dict[str, list[Marker]] = {}
        for marker in frame.markers:
            named.setdefault(marker.name, []).append(marker)
        for name, markers in named.items():
            if name not in self._markers:
                self._markers[name] = SHOWN[type(markers[0])](self.server, f"/world/markers/{len(self._markers)}")
            self._markers[name].show(markers, self.offsets, frame.counters.begun, name not in self.hidden)

    def _show_joints(self, frame: Frame) -> None:
        """Lines along the axes of one robot's joints."""
        if self.model is None or frame.poses is None or not self.model.njnt:
            return
        if self._axes is None:
            none = np.zeros((1, 2, 3))
            self._axes = self.server.scene.add_line_segments(
                "/world/joints", none, (220, 30, 120), thickness=3.0, thickness_units="screen", visible=False
            )
        self._axes.visible = self.joints is not None
        if self.joints is not None:
            self._axes.points = joint_axes(self.model, frame.poses[self.joints], 0.35 * self.size) + self.offsets[
                self.joints
            ].astype(np.float32)


def reach_of_lines(frame: Frame) -> float:
    """m: how far the lines about a robot (walls, a track) reach from their middle."""
    reach = 0.0
    for marker in frame.markers:
        if isinstance(marker, Line):
            points = np.asarray(marker.points)[..., :2].reshape(len(marker.points), -1, 2)
            for of_one in points:
                whole = of_one[np.isfinite(of_one).all(-1)]
                if len(whole):
                    reach = max(reach, 0.5 * float(np.ptp(whole, axis=0).max()))
    return reach


def joint_axes(model: mujoco.MjModel, poses: np.ndarray, length: float) -> np.ndarray:
    """(joints, 2, 3) m: ends of lines of a ``length`` along the axes of a robot's joints, for ``poses`` (bodies, 7)."""
    kinds = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
    joints = [j for j in range(model.njnt) if int(model.jnt_type[j]) in kinds]
    body = poses[model.jnt_bodyid[joints] - 1]
    place = body[:, :3] + rotated(body[:, 3:], model.jnt_pos[joints])
    axis = rotated(body[:, 3:], model.jnt_axis[joints])
    return np.stack([place - 0.5 * length * axis, place + 0.5 * length * axis], 1).astype(np.float32)
