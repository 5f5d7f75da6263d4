"""What can be seen of robots: a MuJoCo model, the poses of its bodies, and markers. Nothing is drawn here.

A plant gives ``drawing()``, one model of one robot with its ground and objects, and ``poses(ids)``, where the bodies of
that model are. A task adds ``markers(truth)``: set-points, velocities, contacts. Pictures (``robo_rl.sim.pictures``)
and the
live page (``robo_rl.viewer``) show any robot by these three, and ask for nothing else.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch

from robo_rl.sim.models import read_model

Color = tuple[float, float, float, float]
"""Red, green, blue and opacity, 0 to 1."""

ORANGE: Color = (0.90, 0.45, 0.0, 1.0)
BLUE: Color = (0.0, 0.55, 0.85, 0.9)
GREEN: Color = (0.0, 0.62, 0.45, 0.8)
DARK: Color = (0.17, 0.20, 0.24, 1.0)
GREY: Color = (0.50, 0.54, 0.60, 1.0)
SLATE: Color = (0.30, 0.33, 0.38, 1.0)
STONE: Color = (0.80, 0.82, 0.84, 1.0)

PERSON: Color = (0.62, 0.28, 0.55, 1.0)
"""Of people and others that a robot must not touch."""

UNPAINTED = (0.5, 0.5, 0.5, 1.0)
"""MuJoCo's colour of shapes that have none."""
HIDDEN = 3
"""The first of MuJoCo's groups of shapes that viewers don't show."""
GOALS = ("goal", "set-point", "place", "hole", "next way-point")
"""Names of the markers that say where a robot is to go."""
TERRAIN = 20.0
"""How many times as large as a robot the shapes of the world are where they are ground that robots have in common."""


@dataclass(frozen=True)
class Sphere:
    """A ball per robot. As in all markers, positions are (n, 3) m in the world, and rows with NaN are not shown.

    ``name`` says what a marker is; viewers list the names, and hide markers by them.
    """

    name: str
    position: Any
    radius: float
    color: Color = GREEN


@dataclass(frozen=True)
class Arrow:
    """From ``position`` along ``vector`` (n, 3) m; ``width`` (m) of its shaft."""

    name: str
    position: Any
    vector: Any
    width: float
    color: Color = BLUE


@dataclass(frozen=True)
class Trail:
    """The way of a point in the last ``seconds``; None: in the whole episode, in films also ahead of time."""

    name: str
    position: Any
    seconds: float | None = 0.8
    color: Color = BLUE


@dataclass(frozen=True)
class Line:
    """Straight lines through ``points`` (n, k, 3) m."""

    name: str
    points: Any
    color: Color = GREEN


def raised(points: torch.Tensor, height: torch.Tensor) -> torch.Tensor:
    """``points`` (n, k, 3) m of lines on the floor, which it half hides, lifted by ``height`` (n, 1) m."""
    return torch.cat([points[..., :2], points[..., 2:] + height[..., None]], -1)


@dataclass(frozen=True)
class Frame:
    """Axes of ``size`` (m) with x red, y green, z blue; ``orientation`` (n, 4) is a quaternion x, y, z, w."""

    name: str
    position: Any
    orientation: Any
    size: float


@dataclass(frozen=True)
class Text:
    """A line of text per robot."""

    name: str
    position: Any
    text: Sequence[str]


Marker = Sphere | Arrow | Trail | Line | Frame | Text
ARRAYS = ("position", "vector", "points", "orientation")
"""Fields of markers that are tensors or arrays with robots first."""


@dataclass(frozen=True)
class Motion:
    """What was to be seen of n robots, one row per ``period`` (s)."""

    model: mujoco.MjModel
    """The plant's drawing."""
    poses: np.ndarray
    """(steps, n, bodies, 7) m and quaternion x, y, z, w, of every body of the model but the world."""
    markers: tuple[Marker, ...]
    """With arrays (steps, n, …)."""
    period: float
    team: int = 1
    """So many robots, one after the other, share a world."""

    @property
    def robots(self) -> int:
        return self.poses.shape[1]

    def __len__(self) -> int:
        return len(self.poses)

    def moment(self, step: int) -> list[Marker]:
        """The markers of one step, with arrays (n, …)."""
        return [mapped(marker, lambda value: value[step]) for marker in self.markers]

    def part(self, steps: slice = slice(None), robots: slice = slice(None)) -> Motion:
        """Some steps of some robots."""
        cut = tuple(mapped(marker, lambda value: value[steps, robots]) for marker in self.markers)
        return replace(self, poses=self.poses[steps, robots], markers=cut)


def mapped(marker: Marker, change: Any) -> Marker:
    """The marker with its arrays, and its texts as an array, changed."""
    found = {name: change(as_array(getattr(marker, name))) for name in ARRAYS if hasattr(marker, name)}
    if isinstance(marker, Text):
        found["text"] = change(np.asarray(marker.text, object))
    return replace(marker, **found)


def as_array(value: Any) -> np.ndarray:
    """Numbers of a tensor on any device, or of an array."""
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)


def can_draw(plant: Any) -> bool:
    """Whether the plant has ``drawing`` and ``poses``."""
    return callable(getattr(plant, "drawing", None)) and callable(getattr(plant, "poses", None))


def require_drawing(plant: Any) -> None:
    """Refuse a plant that can't be drawn, and say what it lacks."""
    missing = [name for name in ("drawing", "poses") if not callable(getattr(plant, name, None))]
    if missing:
        raise ValueError(
            f"{type(plant).__name__} has no {' and no '.join(f'{name}()' for name in missing)}, so its robots can't be "
            "drawn; docs/own-task.md says what they return"
        )


def record(task: Any, model: mujoco.MjModel, poses: np.ndarray, truth: Mapping[str, np.ndarray]) -> Motion:
    """The motion of robots at a task; ``truth`` has (steps, n, k) by name."""
    steps, n = poses.shape[:2]
    flat = {name: torch.from_numpy(np.ascontiguousarray(value)).flatten(0, 1) for name, value in truth.items()}
    markers = (mapped(m, lambda value: value.reshape(steps, n, *value.shape[1:])) for m in task.markers(flat))
    return Motion(model, poses, tuple(markers), task.spec.control_period, task.spec.team)


class Poser:
    """From joint coordinates to poses, for plants whose drawing has the joints that the plant has."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self.model, self._data = model, mujoco.MjData(model)

    def poses(self, coordinates: Any) -> np.ndarray:
        """(m, bodies, 7) for m rows of MuJoCo's qpos."""
        rows = as_array(coordinates)
        found = np.empty((len(rows), self.model.nbody - 1, 7))
        for row, poses in zip(rows, found, strict=True):
            self._data.qpos[:] = row
            mujoco.mj_kinematics(self.model, self._data)
            poses[:, :3] = self._data.xpos[1:]
            poses[:, 3:] = self._data.xquat[1:][:, (1, 2, 3, 0)]
        return found


def read_shapes(path: Path) -> mujoco.MjSpec:
    """A robot's model, MJCF or URDF, with the shapes that are there to be seen, which MuJoCo drops from a URDF."""
    spec = read_model(path, seen=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of texture coordinates
            spec.copy().compile()
    except ValueError:  # meshes that are elsewhere, or of a format that MuJoCo can't read: all else is drawn
        spec = read_model(path)
        for shape in [shape for shape in spec.geoms if shape.type == mujoco.mjtGeom.mjGEOM_MESH]:
            spec.delete(shape)
        for mesh in list(spec.meshes):
            spec.delete(mesh)
    return spec


def drawn(spec: mujoco.MjSpec, accents: Sequence[str] = ()) -> mujoco.MjModel:
    """The model of ``spec`` as it should be seen.

    Shapes without a colour that collide are hidden where their body has others to be seen. Of what is left, shapes
    without a colour get one: the ``accents``, by name, are orange, the base is dark, and the ends of limbs are darker
    than the links before them.
    """
    spec.compiler.discardvisual = False
    for shape in spec.geoms:
        if _painted(shape):
            continue
        mine = [other for other in shape.parent.geoms if other.group < HIDDEN]
        only_seen = [other for other in mine if not other.contype and not other.conaffinity]
        if only_seen and len(only_seen) < len(mine) and shape not in only_seen:
            shape.group = HIDDEN
    for shape in spec.geoms:
        if _painted(shape):
            continue
        shape.rgba = _color(shape, spec, accents)
    return spec.compile()


def _painted(shape: Any) -> bool:
    return bool(shape.material) or tuple(np.round(shape.rgba, 6)) != UNPAINTED


def _color(shape: Any, spec: mujoco.MjSpec, accents: Sequence[str]) -> Color:
    body = shape.parent
    if body.name == spec.worldbody.name:
        return STONE
    if shape.name in accents:
        return ORANGE
    if body.parent.name == spec.worldbody.name:
        return DARK
    return GREY if body.bodies else SLATE


def seen(model: mujoco.MjModel) -> np.ndarray:
    """Numbers of the shapes that are shown: opaque or translucent, in MuJoCo's groups 0 to 2."""
    color = np.where(model.geom_matid[:, None] >= 0, _of_materials(model), model.geom_rgba)
    return np.flatnonzero((model.geom_group < HIDDEN) & (color[:, 3] > 0))


def _of_materials(model: mujoco.MjModel) -> np.ndarray:
    return model.mat_rgba[model.geom_matid] if model.nmat else model.geom_rgba


def is_plane(model: mujoco.MjModel, shape: int) -> bool:
    """Whether the shape of that number is a plane, which has no end."""
    return int(model.geom_type[shape]) == int(mujoco.mjtGeom.mjGEOM_PLANE)


def moving(model: mujoco.MjModel) -> np.ndarray:
    """Numbers of the shapes that are shown and belong to the robot's bodies, and to objects.

    Mocap bodies are neither: they are what moves around a robot, such as other cars, and cameras don't follow them.
    """
    shapes = seen(model)
    bodies = model.geom_bodyid[shapes]
    return shapes[(bodies > 0) & (model.body_mocapid[bodies] < 0)]


def centers(model: mujoco.MjModel, poses: np.ndarray) -> np.ndarray:
    """(…, shapes, 3) m: the middles of ``moving`` shapes of robots whose bodies have ``poses`` (…, bodies, 7)."""
    shapes = moving(model)
    return _placed(poses, model.geom_bodyid[shapes], model.geom_pos[shapes])


def corners(model: mujoco.MjModel, poses: np.ndarray) -> np.ndarray:
    """(…, 8 shapes, 3) m: of the boxes around ``moving`` shapes of robots with ``poses`` (…, bodies, 7)."""
    shapes = moving(model)
    signs = np.stack(np.meshgrid(*[(-1.0, 1.0)] * 3), -1).reshape(1, 8, 3)
    box = model.geom_aabb[shapes]
    corner = box[:, None, :3] + signs * box[:, None, 3:]
    turn = model.geom_quat[shapes][:, [1, 2, 3, 0]].repeat(8, 0)
    local = model.geom_pos[shapes].repeat(8, 0) + rotated(turn, corner.reshape(-1, 3))
    return _placed(poses, model.geom_bodyid[shapes].repeat(8), local)


def _placed(poses: np.ndarray, bodies: np.ndarray, local: np.ndarray) -> np.ndarray:
    """Points (…, P, 3) of the world that are at ``local`` (P, 3) in the frames of ``bodies`` (P,)."""
    body = poses[..., bodies - 1, :]
    return body[..., :3] + rotated(body[..., 3:], local)


def rotated(orientation: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Vectors (…, 3) turned by quaternions (…, 4) x, y, z, w."""
    axis, twice = orientation[..., :3], 2 * np.cross(orientation[..., :3], vector)
    return vector + orientation[..., 3:] * twice + np.cross(axis, twice)


def size_of(model: mujoco.MjModel, poses: np.ndarray) -> float:
    """How far (m) the shapes of a robot reach from the middle of all, in ``poses`` (bodies, 7)."""
    points = corners(model, poses)
    if not len(points):
        return 0.5
    return float(np.linalg.norm(points - 0.5 * (points.min(0) + points.max(0)), axis=-1).max())


def has_ground(model: mujoco.MjModel) -> bool:
    """Whether the world has anything to stand on."""
    return bool((model.geom_bodyid[seen(model)] == 0).any())


def has_terrain(model: mujoco.MjModel, size: float) -> bool:
    """Whether the world's shapes are much larger than a robot of a ``size`` (m): then robots share them."""
    world = [shape for shape in seen(model) if not model.geom_bodyid[shape] and not is_plane(model, shape)]
    if not world:
        return False
    low = (model.geom_pos[world] - model.geom_rbound[world, None]).min(0)
    high = (model.geom_pos[world] + model.geom_rbound[world, None]).max(0)
    return bool((high - low)[:2].max() > TERRAIN * size)
