"""What a picture of multirotors shows: vehicles made from a robot card, set-points, trails, and the floor.

MuJoCo only draws here; nothing is simulated. Vehicles are mocap bodies that are put where a recording says.
The card gives all sizes: body, arms, and rotor discs of the propellers' radius. Front rotors are orange.
"""

from __future__ import annotations

import ctypes
import importlib
import itertools
import math
import os
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import mujoco
import numpy as np

from sim.robots.multirotor import MultirotorCard

LIBRARIES = {"egl": "libEGL.so.1", "osmesa": "libOSMesa.so.8"}
MOST_GEOMS = 20_000
LINE_PIXELS = 2.5
UPRIGHT = np.eye(3)

FRONT, REAR, TRAIL, TARGET = (0.90, 0.45, 0.0), (0.33, 0.38, 0.46), (0.0, 0.55, 0.85), (0.0, 0.62, 0.45)
SHADOW = (0.1, 0.12, 0.15, 0.3)

HEADER = """
<mujoco>
  <visual>
    <global offwidth="{width}" offheight="{height}" fovy="32"/>
    <quality offsamples="4" numslices="14" numstacks="6"/>
    <headlight ambient=".42 .42 .42" diffuse=".22 .22 .22" specular="0 0 0"/>
    <map znear=".02" zfar="12"/>
  </visual>
  <statistic extent="{extent}" center="0 0 0"/>
  <asset>
    <texture type="skybox" builtin="gradient" rgb1=".56 .70 .84" rgb2=".93 .95 .97" width="128" height="512"/>
    <texture name="checker" type="2d" builtin="checker" rgb1=".84 .86 .88" rgb2=".78 .81 .84" width="256" height="256"/>
    <material name="floor" texture="checker" texrepeat="2 2" texuniform="true" specular="0" reflectance="0"/>
    <material name="body" rgba=".13 .15 .18 1" specular=".6" shininess=".6"/>
    <material name="arm" rgba=".28 .31 .36 1" specular=".4" shininess=".5"/>
    <material name="nose" rgba="{front} 1" specular=".3"/>
  </asset>
  <worldbody>
    <light directional="true" dir="-.35 .3 -1" diffuse=".62 .62 .6" specular=".3 .3 .3" castshadow="false"/>
    <geom type="plane" size="0 0 .1" pos="0 0 {floor}" material="floor"/>
"""


class RenderingError(ValueError):
    """Pictures can't be drawn here. The message says what to install."""


def model_text(card: MultirotorCard, vehicles: int, size: tuple[int, int], floor: float, extent: float) -> str:
    """The MJCF of ``vehicles`` vehicles over a floor at height ``floor`` (m).

    Pictures have ``size`` (width, height) in pixels; what is farther away than 12 ``extent`` (m) is haze.
    """
    header = HEADER.format(width=size[0], height=size[1], front=_text(FRONT), floor=floor, extent=extent)
    return header + "".join(_vehicle(card, i) for i in range(vehicles)) + "  </worldbody>\n</mujoco>\n"


def _vehicle(card: MultirotorCard, index: int) -> str:
    """One vehicle: a plate with a nose, and per rotor an arm, a motor, a translucent disc and two blades."""
    height, thick = 0.25 * card.body_size[2], 0.045 * card.arm
    plate = 0.32 * card.arm
    lines = [
        f'    <body name="vehicle{index}" mocap="true">',
        f'      <geom type="box" size="{1.2 * plate:.5f} {plate:.5f} {height:.5f}" material="body"/>',
        f'      <geom type="box" size="{0.25 * plate:.5f} {0.5 * plate:.5f} {0.7 * height:.5f}" '
        f'pos="{1.3 * plate:.5f} 0 0" material="nose"/>',
    ]
    for rotor in card.rotors:
        x, y, z = rotor.position
        hub = z + 1.6 * height
        colour = _text(FRONT if x > 0.3 * card.arm else REAR)
        radius = card.propeller_radius
        lines += [
            f'      <geom type="capsule" fromto="0 0 0 {x} {y} {z}" size="{thick:.5f}" material="arm"/>',
            f'      <geom type="cylinder" fromto="{x} {y} {z - height:.5f} {x} {y} {hub:.5f}" '
            f'size="{1.7 * thick:.5f}" material="arm"/>',
            f'      <geom type="cylinder" fromto="{x} {y} {hub:.5f} {x} {y} {hub + 0.02 * radius:.5f}" '
            f'size="{radius:.5f}" rgba="{colour} .38"/>',
            f'      <body pos="{x} {y} {hub + 0.03 * radius:.5f}"><joint axis="0 0 1"/>'
            f'<geom type="box" mass="1" size="{0.96 * radius:.5f} {0.09 * radius:.5f} {0.02 * radius:.5f}" '
            f'rgba="{colour} 1"/></body>',
        ]
    return "\n".join([*lines, "    </body>\n"])


def _text(numbers: Sequence[float]) -> str:
    return " ".join(f"{x:g}" for x in numbers)


class Canvas:
    """A model that can be drawn. Holds a graphics context until it is closed.

    with Canvas(model, size=(640, 480)) as canvas:
        canvas.look(at, distance, azimuth, elevation)
        canvas.begin(); canvas.line(start, end, colour)
        pixels = canvas.finish()
    """

    def __init__(self, model: mujoco.MjModel, size: tuple[int, int]) -> None:
        """``size``: width and height in pixels."""
        self.model, self.size = model, size
        self.data = mujoco.MjData(self.model)
        self.camera = mujoco.MjvCamera()
        self._context = open_context(size)
        self._context.make_current()
        self._scene = mujoco.MjvScene(self.model, MOST_GEOMS)
        self._target = mujoco.MjrContext(self.model, mujoco.mjtFontScale.mjFONTSCALE_100)
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
        mujoco.mjv_updateScene(self.model, self.data, mujoco.MjvOption(), None, self.camera, everything, self._scene)

    def finish(self) -> np.ndarray:
        """Pixels (height, width, 3), uint8."""
        pixels = np.empty((self.size[1], self.size[0], 3), np.uint8)
        whole = mujoco.MjrRect(0, 0, *self.size)
        self._context.make_current()  # there may be several canvases
        mujoco.mjr_render(whole, self._scene, self._target)
        mujoco.mjr_readPixels(pixels, None, whole, self._target)
        return pixels[::-1]

    def geom(
        self, kind: Any, size: Sequence[float], place: np.ndarray, colour: Sequence[float], frame: np.ndarray = UPRIGHT
    ) -> Any:
        """One more geom in the scene."""
        geom = self._scene.geoms[self._scene.ngeom]
        self._scene.ngeom += 1
        mujoco.mjv_initGeom(
            geom, kind, np.array(size), place.astype(float), frame.ravel(), np.array(colour, np.float32)
        )
        return geom

    def connect(self, kind: Any, width: float, start: np.ndarray, end: np.ndarray, colour: Sequence[float]) -> None:
        """One more geom, from a place to another: a line (width in pixels), an arrow or a capsule (in m)."""
        geom = self.geom(kind, (0.0, 0.0, 0.0), start, colour)
        mujoco.mjv_connector(geom, kind, width, start.astype(float), end.astype(float))

    def line(self, start: np.ndarray, end: np.ndarray, colour: Sequence[float]) -> None:
        self.connect(mujoco.mjtGeom.mjGEOM_LINE, LINE_PIXELS, start, end, colour)


class Scene(Canvas):
    """Multirotors that can be placed and drawn.

    with Scene(card, vehicles=4, size=(640, 480), floor=-1.0, extent=1.0) as scene:
        scene.place(positions, orientations, blade_angles)
        pixels = scene.draw(trails, targets)
    """

    def __init__(self, card: MultirotorCard, vehicles: int, size: tuple[int, int], floor: float, extent: float) -> None:
        super().__init__(mujoco.MjModel.from_xml_string(model_text(card, vehicles, size, floor, extent)), size)
        self.card, self.floor = card, floor
        self._spin = np.array([1.0 if rotor.spin == "ccw" else -1.0 for rotor in card.rotors])

    def place(self, position: np.ndarray, orientation: np.ndarray, angle: np.ndarray) -> None:
        """Put vehicles at (n, 3) m with quaternions (n, 4) x, y, z, w and blade angles (n, R) rad."""
        self.data.mocap_pos[:] = position
        self.data.mocap_quat[:] = orientation[:, (3, 0, 1, 2)]
        self.data.qpos[:] = np.mod(self._spin * angle, 2 * math.pi).ravel()
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_camlight(self.model, self.data)

    def draw(self, trails: Sequence[np.ndarray], paths: Sequence[np.ndarray], targets: np.ndarray) -> np.ndarray:
        """Pixels (height, width, 3), uint8.

        ``trails`` are points (k, 3), oldest first, and fade; ``paths`` (k, 3) do not; ``targets`` (n, 3) are spheres.
        """
        self.begin()
        self._cast_shadows()
        for points in trails:
            for k in range(len(points) - 1):
                self.line(points[k], points[k + 1], (*TRAIL, 0.1 + 0.85 * (k + 1) / len(points)))
        for points in paths:
            for start, end in itertools.pairwise(points):
                self.line(start, end, (*TARGET, 0.45))
        for target in targets:
            self.geom(mujoco.mjtGeom.mjGEOM_SPHERE, (0.3 * self.card.arm,) * 3, target, (*TARGET, 0.5))
        return self.finish()

    def _cast_shadows(self) -> None:
        """Shadows of the rotor discs on the floor, from light that falls straight down: discs become ellipses."""
        radius = self.card.propeller_radius
        hubs = np.array([rotor.position for rotor in self.card.rotors])
        for i in range(self.model.nmocap):
            flat = np.empty(9)
            mujoco.mju_quat2Mat(flat, self.data.mocap_quat[i])
            rotation = flat.reshape(3, 3)
            x, y, z = rotation[:, 2]
            along = math.atan2(y, x)
            frame = np.array([[math.cos(along), -math.sin(along), 0], [math.sin(along), math.cos(along), 0], [0, 0, 1]])
            for hub in self.data.mocap_pos[i] + hubs @ rotation.T:
                place = np.array([hub[0], hub[1], self.floor + 1e-3])
                self.geom(mujoco.mjtGeom.mjGEOM_ELLIPSOID, (radius * abs(z) + 1e-4, radius, 1e-4), place, SHADOW, frame)


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
