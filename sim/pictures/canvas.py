"""A MuJoCo model that can be drawn without a display, and what can be added to its picture."""

from __future__ import annotations

import ctypes
import importlib
import os
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import mujoco
import numpy as np

LIBRARIES = {"egl": "libEGL.so.1", "osmesa": "libOSMesa.so.8"}
MOST_GEOMS = 20_000
UPRIGHT = np.eye(3)
FLAT, NOWHERE = UPRIGHT.ravel(), np.zeros(3)


class RenderingError(ValueError):
    """Pictures can't be drawn here. The message says what to install."""


class Canvas:
    """A model that can be drawn. Holds a graphics context until it is closed.

    with Canvas(model, size=(640, 480)) as canvas:
        canvas.look(at, distance, azimuth, elevation)
        canvas.begin(); canvas.connect(kind, width, start, end, colour)
        pixels = canvas.finish()
    """

    def __init__(self, model: mujoco.MjModel, size: tuple[int, int]) -> None:
        """``size``: width and height in pixels, at most the model's off-screen buffer."""
        self.stage, self.size = model, size
        self.data = mujoco.MjData(model)
        mujoco.mj_forward(model, self.data)
        self.camera = mujoco.MjvCamera()
        self._context = open_context(size)
        self._context.make_current()
        self._scene = mujoco.MjvScene(model, MOST_GEOMS)
        self._target = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._target)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._context.make_current()
        self._target.free()
        self._context.free()

    def look(self, at: np.ndarray, distance: float, azimuth: float, elevation: float) -> None:
        """Point the camera at a place from a distance (m), with azimuth and elevation in degrees."""
        self.camera.lookat[:] = at
        self.camera.distance, self.camera.azimuth, self.camera.elevation = distance, azimuth, elevation

    def begin(self) -> None:
        """A picture of ``data`` as it is now, to which more can be added."""
        everything = int(mujoco.mjtCatBit.mjCAT_ALL)
        mujoco.mjv_updateScene(self.stage, self.data, mujoco.MjvOption(), None, self.camera, everything, self._scene)

    def finish(self) -> np.ndarray:
        """Pixels (height, width, 3), uint8."""
        pixels = np.empty((self.size[1], self.size[0], 3), np.uint8)
        whole = mujoco.MjrRect(0, 0, *self.size)
        self._context.make_current()  # there may be several canvases
        mujoco.mjr_render(whole, self._scene, self._target)
        mujoco.mjr_readPixels(pixels, None, whole, self._target)
        return pixels[::-1]

    def shape(
        self, kind: Any, size: Sequence[float], place: np.ndarray, color: Sequence[float], frame: np.ndarray = UPRIGHT
    ) -> Any:
        """One more shape in the picture."""
        geom = self._scene.geoms[self._scene.ngeom]
        self._scene.ngeom += 1
        mujoco.mjv_initGeom(
            geom, kind, np.array(size, float), place.astype(float), frame.ravel(), np.array(color, np.float32)
        )
        return geom

    def connect(
        self, kind: Any, width: float, start: np.ndarray, end: np.ndarray, color: Sequence[float] | np.ndarray
    ) -> None:
        """One more shape, from a place to another: a line (width in pixels), an arrow or a capsule (in m)."""
        geom = self._scene.geoms[self._scene.ngeom]
        self._scene.ngeom += 1
        start, end = np.asarray(start, float), np.asarray(end, float)
        mujoco.mjv_initGeom(geom, kind, NOWHERE, start, FLAT, np.asarray(color, np.float32))
        mujoco.mjv_connector(geom, kind, width, start, end)

    def write(self, text: str, place: np.ndarray) -> None:
        """A text at a place."""
        self.shape(mujoco.mjtGeom.mjGEOM_LABEL, (0.1, 0.1, 0.1), place, (0.1, 0.1, 0.1, 1.0)).label = text[:99]


def open_context(size: tuple[int, int]) -> Any:
    """An OpenGL context that needs no display, by EGL, or by OSMesa where there is no EGL.

    MUJOCO_GL=egl or osmesa, if set, decides. MuJoCo's own choice is not used, because it falls on a window system
    and is made when mujoco is first imported.
    """
    asked = os.environ.get("MUJOCO_GL", "").lower()
    backend = asked if asked in LIBRARIES else next((b for b in LIBRARIES if _has_library(b)), "egl")
    try:
        context = importlib.import_module(f"mujoco.{backend}").GLContext
        return context(*size)
    except Exception as error:  # PyOpenGL's and MuJoCo's errors share no type below Exception
        raise RenderingError(
            f"pictures can't be drawn by {backend} here ({type(error).__name__}: {error}). On Debian and Ubuntu: "
            "apt-get install libegl1 libgl1-mesa-dri   (or libosmesa6, and set MUJOCO_GL=osmesa)"
        ) from None


def _has_library(backend: str) -> bool:
    try:
        ctypes.CDLL(LIBRARIES[backend])
    except OSError:
        return False
    return True
