"""One picture of several moments: side by side, or, of robots that need no ground, all in one scene from left to right.

Shown is what changes: from the beginning until the robot is at rest, or a second of a motion that goes on, from its
middle.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from sim.drawing import BLUE, Motion, centers, corners, size_of
from sim.pictures.camera import BESIDE, ELEVATION, JUMP, arrange, distance_of, frame, headings, middles_of
from sim.pictures.film import picture, since_start
from sim.pictures.stage import Stage

WHILE = 1.0  # s, of a motion that goes on
PANELS, PANEL = 6, (300, 300)
STROBES, STROBE = 9, (1200, 600)
MOST_STROBED = 2
"""Robots in one scene."""
STROBE_ELEVATION = -24.0
DONE = 0.85
"""Of all of a motion's way: robots that come to rest have gone it by the last moment."""
REST = 0.4  # s, that is shown after it
GOES_ON = 0.7
"""Of the time: robots that are not done by then do not come to rest."""
PITCH = 2.6
"""Sizes of a robot between two moments in one scene."""
LANE = 5.0
"""Sizes of a robot between two robots in one scene."""


@dataclass(frozen=True)
class Shown:
    """What is in a strip."""

    moments: int
    robots: int
    begin: float
    """s, of the first moment."""
    end: float


def strip(file: Path, motion: Motion, scale: float = 1.0) -> Shown:
    """Write a .png of a motion's moments; ``scale``: of the usual number of pixels."""
    if file.suffix != ".png":
        raise ValueError(f"picture file is '{file}'; expected a name that ends in .png")
    one = motion.part(robots=slice(0, 1))
    in_panels = arrange(one).floor is None
    width, height = PANEL if in_panels else STROBE
    size = (round(scale * width), round(scale * height))
    shown = one if in_panels else motion.part(robots=slice(0, MOST_STROBED))
    first, last = span(shown)
    steps = np.linspace(first, last, PANELS if in_panels else STROBES).round().astype(int)
    Image.fromarray((_panels if in_panels else _strobe)(shown, steps, size)).save(file)
    return Shown(len(steps), shown.robots, first * motion.period, last * motion.period)


def span(motion: Motion) -> tuple[int, int]:
    """First and last step of what changes."""
    last = len(motion) - 1
    places = centers(motion.model, motion.poses)
    steps = np.linalg.norm(np.diff(places, axis=0), axis=-1).max(2)  # m, of the fastest shapes
    begins_again = steps > JUMP * size_of(motion.model, motion.poses[0, 0])
    gone = np.where(begins_again, 0.0, steps).sum(1).cumsum()
    end = 1 + int(np.searchsorted(gone, DONE * gone[-1])) if last else 0
    if end > GOES_ON * last:
        half = round(0.5 * WHILE / motion.period)
        return max(0, last // 2 - half), min(last, last // 2 + half)
    return 0, min(end + round(REST / motion.period), last)


def _panels(motion: Motion, steps: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Pictures of one robot side by side, by a camera that stays with it."""
    scene, azimuth = arrange(motion), headings(motion.part(slice(steps[0], steps[-1] + 1)))[0] + BESIDE
    middles, distance = middles_of(motion), distance_of(motion.part(slice(steps[-1], None)), size)
    pictures = []
    with Stage(motion.model, 1, size, distance / 3) as stage:
        for k in steps:
            stage.look(middles[k, 0], distance, azimuth, ELEVATION)
            pictures.append(picture(stage, motion, k, scene.size))
    return np.concatenate(pictures, 1)


def _strobe(motion: Motion, steps: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Robots at several moments in one scene.

    Heights and attitudes are true; the way to the right is added, and what there is of level ways is left out.
    """
    single, robots = arrange(motion).size, motion.robots
    since = (np.arange(len(motion)) - steps[0]) / max(steps[-1] - steps[0], 1)
    way = PITCH * single * (STROBES - 1) * (since - 0.5)
    lanes = LANE * single * (np.arange(robots) - (robots - 1) / 2)
    level = np.stack(np.broadcast_arrays(way[:, None], lanes), -1)  # (steps, robots, 2)
    shift = np.concatenate([level - motion.poses[:, :, 0, :2], np.zeros((len(motion), robots, 1))], -1)
    places = motion.poses.copy()
    places[..., :3] += shift[:, :, None]
    points = corners(motion.model, places[steps]).reshape(-1, 3)
    at, distance = frame(points, 0.15 * single, size, 90.0, STROBE_ELEVATION)
    floor = float(points[:, 2].min()) - 1.5 * single
    with Stage(motion.model, STROBES * robots, size, distance / 3, floor=floor) as stage:
        stage.look(at, distance, 90.0, STROBE_ELEVATION)
        stage.place(places[steps].reshape(STROBES * robots, *places.shape[2:]))
        stage.begin()
        for robot in range(robots):
            points = since_start(places[steps[0] : steps[-1] + 1 : 2, robot, 0, :3], single)
            stage.trail(points, BLUE, fading=True)
        return stage.finish()
