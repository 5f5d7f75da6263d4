"""Shapes of a MuJoCo model as meshes that viser draws many times: scaled boxes, balls and cylinders, and meshes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import trimesh

from robo_rl.sim.drawing import seen

UNIT = {
    "box": trimesh.creation.box(extents=(2.0, 2.0, 2.0)),
    "ball": trimesh.creation.icosphere(subdivisions=2),
    "cylinder": trimesh.creation.cylinder(radius=1.0, height=2.0, sections=24),
}
FACETED = ("box",)
"""Meshes whose faces are flat."""
EDGE = 0.7  # rad, between faces of a mesh that are seen to meet in an edge


@dataclass(frozen=True)
class Instance:
    """One mesh, placed on a body."""

    mesh: str
    """A name of ``UNIT``, or of a mesh or height field of the model: "mesh 3"."""
    body: int
    position: np.ndarray
    """(3,) m, in the body's frame."""
    orientation: np.ndarray
    """(4,) x, y, z, w."""
    scale: np.ndarray
    """(3,)."""
    color: tuple[float, float, float, float]


def instances(model: mujoco.MjModel) -> Iterator[Instance]:
    """Of every shape that is shown, but planes."""
    kinds = mujoco.mjtGeom
    for shape in seen(model):
        kind, size = kinds(int(model.geom_type[shape])), model.geom_size[shape]
        body, place = int(model.geom_bodyid[shape]), model.geom_pos[shape]
        turn, color = model.geom_quat[shape][[1, 2, 3, 0]], color_of(model, shape)
        number = int(model.geom_dataid[shape])
        whole = {
            kinds.mjGEOM_BOX: ("box", size),
            kinds.mjGEOM_SPHERE: ("ball", size[[0, 0, 0]]),
            kinds.mjGEOM_ELLIPSOID: ("ball", size),
            kinds.mjGEOM_CYLINDER: ("cylinder", size[[0, 0, 1]]),
            kinds.mjGEOM_CAPSULE: ("cylinder", size[[0, 0, 1]]),
            kinds.mjGEOM_MESH: (f"mesh {number}", np.ones(3)),
            kinds.mjGEOM_HFIELD: (f"field {number}", np.ones(3)),
        }.get(kind)
        if whole is None:
            continue
        yield Instance(whole[0], body, place, turn, whole[1], color)
        if kind == kinds.mjGEOM_CAPSULE:
            along = np.empty(3)
            mujoco.mju_rotVecQuat(along, np.array([0.0, 0.0, size[1]]), model.geom_quat[shape])
            for end in (place - along, place + along):
                yield Instance("ball", body, end, turn, size[[0, 0, 0]], color)


def mesh_of(model: mujoco.MjModel, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (V, 3) m and faces (F, 3) of a mesh by its name; edges that should be seen are cut."""
    what, _, number = name.partition(" ")
    if what == "mesh":
        found = _mesh(model, int(number))
    elif what == "field":
        found = _field(model, int(number))
    else:
        found = UNIT[name]
    if name not in FACETED:
        found = trimesh.graph.smooth_shade(found, angle=EDGE)
    return np.asarray(found.vertices, np.float32), np.asarray(found.faces, np.uint32)


def color_of(model: mujoco.MjModel, shape: int) -> tuple[float, float, float, float]:
    """Of a shape: its material's, which may be the mean of a texture, or its own."""
    material = int(model.geom_matid[shape])
    if material < 0:
        return tuple(model.geom_rgba[shape].tolist())
    red, green, blue, opacity = model.mat_rgba[material].tolist()
    for role in (mujoco.mjtTextureRole.mjTEXROLE_RGB, mujoco.mjtTextureRole.mjTEXROLE_RGBA):
        texture = int(model.mat_texid[material, int(role)])
        if texture >= 0:
            channels = int(model.tex_nchannel[texture])
            size = model.tex_width[texture] * model.tex_height[texture] * channels
            first = model.tex_adr[texture]
            mean = model.tex_data[first : first + size].reshape(-1, channels).mean(0)[:3] / 255.0
            if channels >= 3:
                red, green, blue = (mean * (red, green, blue)).tolist()
    return red, green, blue, opacity


def _mesh(model: mujoco.MjModel, number: int) -> Any:
    vertices, count = model.mesh_vertadr[number], model.mesh_vertnum[number]
    faces, total = model.mesh_faceadr[number], model.mesh_facenum[number]
    return trimesh.Trimesh(
        model.mesh_vert[vertices : vertices + count], model.mesh_face[faces : faces + total], process=False
    )


def _field(model: mujoco.MjModel, number: int) -> Any:
    """The upper side of a height field."""
    rows, columns, first = model.hfield_nrow[number], model.hfield_ncol[number], model.hfield_adr[number]
    reach_x, reach_y, height, _ = model.hfield_size[number]
    x, y = np.meshgrid(np.linspace(-reach_x, reach_x, columns), np.linspace(-reach_y, reach_y, rows))
    z = height * model.hfield_data[first : first + rows * columns]
    corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    right, ahead = corner + 1, corner + columns
    faces = np.concatenate([np.stack([corner, right, ahead + 1], 1), np.stack([corner, ahead + 1, ahead], 1)])
    return trimesh.Trimesh(np.stack([x.ravel(), y.ravel(), z], 1), faces, process=False)


def turned(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Products (…, 4) of quaternions x, y, z, w."""
    axis, other, w, v = first[..., :3], second[..., :3], first[..., 3:], second[..., 3:]
    vector = w * other + v * axis + np.cross(axis, other)
    return np.concatenate([vector, w * v - (axis * other).sum(-1, keepdims=True)], -1)
