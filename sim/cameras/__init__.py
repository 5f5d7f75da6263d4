"""Depth images of a camera on a robot, by casting one ray per pixel at boxes, capsules, cylinders and planes.

A pixel is the depth (m) along the optical axis, as in a depth camera's own images, not the distance along its ray. The
optical frame is REP 103's: z ahead, x to the right, y down. What is farther than the camera's reach is at it; what is
nearer than it can tell is 0, which stands for a depth that is not known. Noise and other holes are in
``robo_rl.sim.large_signals``. Native code (``kernel.cpp``), compiled as ``robo_rl.sim.accelerate.fuse`` compiles;
shapes that no pixel can see
are left out.
"""

from __future__ import annotations

import ctypes
import functools
import math
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse.native import build
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.mechanism import DepthCamera

FEW = 16
"""Images that are not worth a second thread."""
GEOM = mujoco.mjtGeom
KINDS = {
    GEOM.mjGEOM_BOX: 0, GEOM.mjGEOM_CAPSULE: 1, GEOM.mjGEOM_SPHERE: 1, GEOM.mjGEOM_CYLINDER: 2, GEOM.mjGEOM_PLANE: 3,
}  # fmt: skip
"""By the kernel's numbers."""


class _Shape(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int32), ("body", ctypes.c_int32), ("own", ctypes.c_int32), ("place", ctypes.c_float * 3),
        ("turn", ctypes.c_float * 9), ("size", ctypes.c_float * 3),
    ]  # fmt: skip


class _Camera(ctypes.Structure):
    _fields_ = [
        ("body", ctypes.c_int32), ("pixels", ctypes.c_int32), ("place", ctypes.c_float * 3),
        ("turn", ctypes.c_float * 9), ("nearest", ctypes.c_float), ("longest", ctypes.c_float),
        ("slope", ctypes.c_float),
    ]  # fmt: skip


def rays(shape: tuple[int, int], fov: float) -> np.ndarray:
    """(2, rows, columns): x and y of each pixel's ray at z = 1 in the optical frame; ``fov`` (rad) is horizontal."""
    rows, columns = shape
    pitch = 2.0 * math.tan(0.5 * fov) / columns  # of square pixels
    y, x = np.meshgrid((np.arange(rows) - 0.5 * (rows - 1)) * pitch, (np.arange(columns) - 0.5 * (columns - 1)) * pitch,
                       indexing="ij")  # fmt: skip
    return np.stack([x, y])


class View:
    """What a camera sees of a model's shapes, in n environments whose bodies are somewhere."""

    def __init__(self, camera: DepthCamera, model: mujoco.MjModel, own: dict[int, int], n: int) -> None:
        """``model`` has all shapes that are to be seen; ``own`` numbers bodies whose size differs between environments.

        Raises CardError for shapes that have no formula here.
        """
        self.camera, self.n, self._own = camera, n, own
        self.image = torch.zeros(n, *camera.shape)
        """(n, rows, columns) m."""
        shapes = [_shape(model, i, own) for i in range(model.ngeom)]
        self._shapes = (_Shape * len(shapes))(*shapes)
        self._rays = torch.from_numpy(rays(camera.shape, camera.fov)).float().contiguous()
        body, place, turn = _on_body(model, camera)
        slope = float(self._rays.square().sum(0).max().sqrt())
        pixels = math.prod(camera.shape)
        self._camera = _Camera(body, pixels, tuple(place), tuple(turn.ravel()), camera.nearest, camera.longest, slope)

    def render(
        self, place: np.ndarray, turn: np.ndarray, sizes: Tensor | None, mount: Tensor | None,
        ids: Tensor | None = None,
    ) -> None:  # fmt: skip
        """Write ``image`` of the environments ``ids`` (m,), or of all.

        ``place`` (n, bodies, 3) m and ``turn`` (n, bodies, 9) are bodies in the world, ``sizes`` (n, objects, 3) m of
        those in ``own``, ``mount`` (n, 6) m, rad the error of the camera's pose in its own frame, all float64.
        """
        m = self.n if ids is None else len(ids)
        ids = None if ids is None else ids.contiguous()
        threads = max(1, min(torch.get_num_threads(), m // FEW))
        sizes = None if sizes is None else sizes.contiguous()
        _library().render(
            m, _at(ids), place.ctypes.data, turn.ctypes.data, place.shape[1], self._shapes, len(self._shapes),
            _at(sizes), 0 if sizes is None else sizes.shape[1], ctypes.byref(self._camera), _at(self._rays),
            _at(mount), _at(self.image), threads,
        )  # fmt: skip


def _shape(model: mujoco.MjModel, i: int, own: dict[int, int]) -> _Shape:
    kind, body = GEOM(model.geom_type[i]), int(model.geom_bodyid[i])
    if kind not in KINDS:
        name = model.geom(i).name or f"number {i}"
        raise CardError(f"shape '{name}' is a {kind.name[7:].lower()}; expected boxes, spheres, capsules, cylinders "
                        "and planes where a camera looks at them")  # fmt: skip
    turn, size = np.zeros(9), model.geom_size[i].copy()
    mujoco.mju_quat2Mat(turn, model.geom_quat[i])
    if kind == GEOM.mjGEOM_SPHERE:
        size[1] = 0.0
    return _Shape(KINDS[kind], body, own.get(body, -1), tuple(model.geom_pos[i]), tuple(turn), tuple(size))


def _on_body(model: mujoco.MjModel, camera: DepthCamera) -> tuple[int, np.ndarray, np.ndarray]:
    """The body that a camera is on, and its optical frame there: place (3,) m and turn (3, 3)."""
    sites = [model.site(i).name for i in range(model.nsite)]
    turn = np.zeros(9)
    if camera.at in sites:
        site = model.site(camera.at)
        body, place = int(site.bodyid[0]), site.pos.copy()
        mujoco.mju_quat2Mat(turn, site.quat)
    else:
        body, place, turn = model.body(camera.at).id, np.zeros(3), np.eye(3).ravel()
    x, y, z, w = camera.orientation
    own = np.zeros(9)
    mujoco.mju_quat2Mat(own, np.array([w, x, y, z]))
    there = turn.reshape(3, 3)
    return body, place + there @ np.array(camera.position), there @ own.reshape(3, 3)


def _at(tensor: Tensor | None) -> Any:
    return None if tensor is None else ctypes.c_void_p(tensor.data_ptr())


@functools.cache
def _library() -> Any:
    library = build(Path(__file__).with_name("kernel.cpp").read_text(), "-O3")
    pointer, whole = ctypes.c_void_p, ctypes.c_int64
    library.render.argtypes = [
        whole, pointer, pointer, pointer, whole, pointer, whole, pointer, whole, pointer, pointer, pointer, pointer,
        ctypes.c_int,
    ]  # fmt: skip
    library.render.restype = None
    return library
