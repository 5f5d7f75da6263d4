"""Films and strips of recorded walks of robots on legs.

A recording is what ``robo_rl.evaluation.fly`` keeps: ``position`` (steps, n, 3) m, ``orientation`` (steps, n, 4)
quaternion x, y, z, w, ``joint_position`` (steps, n, J) rad, ``linear_velocity`` (steps, n, 3) m/s in the world, and
where there is one ``linear_velocity_command`` (steps, n, 2) m/s in the heading frame, one row per control period. Every
robot has a picture of its own, whose camera follows it, on rough ground from behind. Arrows: green the commanded
velocity, blue the true one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import mujoco
import numpy as np
import torch
from PIL import Image

from sim.pictures.film import captioned, require_film, write_film
from sim.pictures.scene import FRONT, TARGET, TRAIL, Canvas
from sim.pictures.walk import Poser
from sim.robots.legged import LeggedCard
from sim.solids import Solids, add_solids
from sim.terrain import Ground, add_ground

Recording = Mapping[str, np.ndarray]

AZIMUTH, ELEVATION, DISTANCE = 130.0, -18.0, 1.55  # degrees, degrees, m
BEHIND = 55.0  # degrees, between the robot's heading and the camera's on rough ground: it sees the risers ahead
CATCHING_UP = 0.15  # of the way to the robot that the camera goes in each frame
JUMP = 0.5  # m between two frames: the robot fell and began again
FALL = 0.4  # s
IN_SIGHT = 5.0  # m of rough ground around the robots
HAIR = 2e-4  # m
ARROW = 0.5  # m of an arrow per m/s
TINTS = {"trunk": (0.2, 0.23, 0.28), "head": (0.15, 0.17, 0.2), "calf": (0.3, 0.33, 0.38), "foot": FRONT}
SURROUNDINGS = """
<mujoco>
  <visual>
    <global offwidth="{width}" offheight="{height}" fovy="38"/>
    <quality offsamples="4" shadowsize="2048"/>
    <headlight ambient=".4 .4 .4" diffuse=".25 .25 .25" specular="0 0 0"/>
    <map znear=".02" zfar="40" shadowclip="5"/>
  </visual>
  <statistic extent="1" center="0 0 0"/>
  <asset>
    <texture type="skybox" builtin="gradient" rgb1=".56 .70 .84" rgb2=".93 .95 .97" width="128" height="512"/>
    <texture name="checker" type="2d" builtin="checker" rgb1=".84 .86 .88" rgb2=".74 .77 .80" width="256" height="256"/>
    <material name="floor" texture="checker" texrepeat="2 2" texuniform="true" specular="0" reflectance="0"/>
    <material name="stone" rgba=".80 .82 .84 1" specular="0" reflectance="0"/>
  </asset>
</mujoco>
"""


def film(
    file: Path, card: LeggedCard, recording: Recording, period: float, caption: str = "",
    size: tuple[int, int] = (640, 480), fps: int = 30, progress: Callable[[int], None] = lambda done: None,
    ground: Ground | None = None,
) -> int:  # fmt: skip
    """Write an .mp4 or .gif of a recording in real time; returns the number of frames. As ``film.film``."""
    require_film(file, size, fps)
    count = int(len(recording["position"]) * period * fps)
    write_film(file, _frames(card, recording, period, caption, size, fps, count, progress, ground), size, fps)
    return count


def strip(
    file: Path, card: LeggedCard, recording: Recording, period: float, instants: int = 6, seconds: float = 1.0,
    size: tuple[int, int] = (300, 300), ground: Ground | None = None,
) -> None:  # fmt: skip
    """Write a .png of the first robot at ``instants`` moments side by side; ``size`` of each.

    A walk is shown on its way for ``seconds``; what has no commanded velocity, like getting up, until its end.
    """
    last = len(recording["position"]) - 1
    begin, end = min(round(FALL / period), last), last
    if "linear_velocity_command" in recording:
        begin = (last + 1) // 2
        end = min(begin + round(seconds / period), last)
    steps = np.linspace(begin, end, instants)
    azimuth = _azimuth(recording, begin, 0, ground)
    with Stage(card, size, recording["position"][begin, :1], ground) as stage:
        pictures = []
        for k in steps.round().astype(int):
            stage.place(recording, k, 0)
            pictures.append(stage.picture(stage.middle, azimuth))
    Image.fromarray(np.concatenate(pictures, 1)).save(file)


class Stage(Canvas):
    """One robot on a floor, or on the part of a ``ground`` that is around the ``places`` (n, 3) m."""

    def __init__(
        self, card: LeggedCard, size: tuple[int, int], places: np.ndarray | None = None, ground: Ground | None = None
    ) -> None:
        surroundings = mujoco.MjSpec.from_string(SURROUNDINGS.format(width=size[0], height=size[1]))
        self.ground = ground
        if ground is None:
            add_ground(surroundings, None)[0].material = "floor"
        else:
            way = np.zeros((1, 2)) if places is None else places[:, :2]
            for shape in add_solids(surroundings, _in_sight(ground.solids, way)):
                shape.material = "stone"  # a pattern would not fit together where solids overlap
        surroundings.worldbody.add_frame().attach_body(_painted(card), "robot ", "")
        super().__init__(surroundings.compile(), size)
        self.poser, self.middle = Poser(card), np.zeros(3)

    def place(self, recording: Recording, step: int, robot: int) -> None:
        """Put the robot where it was at a step of a recording."""
        names = ("position", "orientation", "joint_position", "linear_velocity")
        place, turn, joints, self._velocity = (recording[name][step, robot] for name in names)
        wanted = recording["linear_velocity_command"][step, robot] if "linear_velocity_command" in recording else (0, 0)
        self.poser.put(place, turn, joints)
        self.data.qpos[:] = self.poser.data.qpos
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        mujoco.mj_camlight(self.model, self.data)
        self.middle = np.array([place[0], place[1], 0.22 + self._below(place)])
        cosine, sine = math.cos(_yaw(turn)), math.sin(_yaw(turn))
        self._wanted = np.array([cosine * wanted[0] - sine * wanted[1], sine * wanted[0] + cosine * wanted[1], 0.0])

    def _below(self, place: np.ndarray) -> float:
        """Height (m) of the ground at a place (3,) m."""
        return float(self.ground.height(*torch.from_numpy(place[:2]).unbind())) if self.ground else 0.0

    def picture(self, at: np.ndarray, azimuth: float = AZIMUTH) -> np.ndarray:
        """Pixels (height, width, 3), uint8, seen by a camera that looks ``at`` (3,) m."""
        self.look(at, DISTANCE, azimuth, ELEVATION)
        self.begin()
        above = self.middle + np.array([0.0, 0.0, 0.28])
        level = self._velocity * [1.0, 1.0, 0.0]
        for velocity, colour, width in ((self._wanted, TARGET, 0.012), (level, TRAIL, 0.008)):
            if np.linalg.norm(velocity) > 0.05:
                arrow = mujoco.mjtGeom.mjGEOM_ARROW
                self.connect(arrow, width, above, above + ARROW * velocity.astype(float), (*colour, 0.9))
        return self.finish()


def _yaw(turn: np.ndarray) -> float:
    """rad, of a quaternion (4,) x, y, z, w."""
    x, y, z, w = turn
    return math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def _in_sight(solids: Solids, way: np.ndarray) -> Solids:
    """Those around a way (n, 2) m, cut off out of sight. Tops that would be drawn twice are a hair apart."""
    middle, reach = way.mean(0), IN_SIGHT + float(np.ptp(way, axis=0).max())
    boxes, wedges = solids.near(middle, reach)
    boxes = boxes.copy()
    boxes[:, :, :2] = boxes[:, :, :2].clip(middle - reach, middle + reach)
    boxes[:, 1, 2] -= HAIR * (np.arange(len(boxes)) % 8)
    return Solids(boxes, wedges)


def _azimuth(recording: Recording, step: int, robot: int, ground: Ground | None) -> float:
    """Degrees, of the camera: on rough ground beside and behind the robot, as it heads at a step."""
    return AZIMUTH if ground is None else math.degrees(_yaw(recording["orientation"][step, robot])) + BEHIND


def _painted(card: LeggedCard) -> mujoco.MjsBody:
    """The robot's base with all below it, in colours, and a light that follows it."""
    spec = mujoco.MjSpec.from_file(str(card.model))
    for shape in spec.geoms:
        tint = next((tint for name, tint in TINTS.items() if name in shape.name), (0.5, 0.54, 0.6))
        shape.rgba = [*tint, 1.0]
    body = spec.body(card.base)
    if not body.joints:
        body.add_freejoint()
    light = body.add_light(name="sun", mode=mujoco.mjtCamLight.mjCAMLIGHT_TRACKCOM, pos=[0.6, -0.5, 2.0])
    light.dir, light.castshadow, light.diffuse = [-0.3, 0.25, -1.0], True, [0.6, 0.6, 0.58]
    light.type = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
    return body


def _frames(
    card: LeggedCard, recording: Recording, period: float, caption: str, size: tuple[int, int], fps: int, count: int,
    progress: Callable[[int], None], ground: Ground | None,
) -> Iterator[np.ndarray]:  # fmt: skip
    """Pixels (height, width, 3) of every frame: the robots' pictures, tiled."""
    robots = recording["position"].shape[1]
    columns = math.ceil(math.sqrt(robots))
    rows = math.ceil(robots / columns)
    tile = (size[0] // columns, size[1] // rows)
    cameras = recording["position"][0, :, :].astype(float) - [0, 0, 0.1]
    azimuths = [_azimuth(recording, 0, i, ground) for i in range(robots)]
    ways = recording["position"].swapaxes(0, 1)
    with ExitStack() as stack:
        # on rough ground each robot has what is around its own way: together they would have all that lies between them
        stages = [stack.enter_context(Stage(card, tile, way, ground)) for way in (ways if ground else ways[:1])]
        for k in range(count):
            now = min(round(k / (fps * period)), len(recording["position"]) - 1)
            whole = np.full((size[1], size[0], 3), 255, np.uint8)
            for i in range(robots):
                stage = stages[i % len(stages)]
                stage.place(recording, now, i)
                away = stage.middle - cameras[i]
                cameras[i] += away if np.linalg.norm(away) > JUMP else CATCHING_UP * away
                row, column = divmod(i, columns)
                top, left = row * tile[1], column * tile[0]
                whole[top : top + tile[1], left : left + tile[0]] = stage.picture(cameras[i], azimuths[i])
            yield captioned(whole, f"{caption}   t = {now * period:.2f} s".strip())
            progress(k + 1)
