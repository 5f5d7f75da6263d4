"""One picture of several moments: side by side, or, of robots that need no ground, all in one scene from left to right.

Shown is what changes: from the beginning until the robot is at rest, or a second of a motion that goes on, from its
middle; of one with a goal, all until it is there. Where lines show what is around a robot, such as walls or lanes, or
the way of its set-point is known, it is its whole way: from above, or side by side where others move, too. Robots of a
team are shown together.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from robo_rl.sim.drawing import BLUE, Motion, Trail, centers, corners, size_of
from robo_rl.sim.pictures.camera import (
    BESIDE,
    FAR,
    JUMP,
    arrange,
    distance_of,
    frame,
    goals_of,
    headings,
    middles_of,
    points_of,
    surrounded,
)
from robo_rl.sim.pictures.film import picture, since_start
from robo_rl.sim.pictures.stage import Stage

WHILE = 1.0  # s, of a motion that goes on
PANELS, PANEL = 6, (300, 300)
STROBES, STROBE = 9, (1200, 600)
STEP = 1.1
"""Sizes of a robot between two moments that are seen apart where its whole way is shown."""
MOST_STROBED = 2
"""Robots in one scene."""
STROBE_ELEVATION = -24.0
FROM_ABOVE, AROUND = -65.0, 3.0
"""Degrees of elevation, and sizes of the robot around its way, where there are surroundings."""
DONE = 0.85
"""Of all of a motion's way: robots that come to rest have gone it by the last moment."""
OTHERS = 3.0
"""Sizes of the robot by which bodies come nearer or go away that are no parts of it."""
WAY = 0.999
"""Of all of its way, by which a robot in its surroundings is said to be at its end."""
MOST_OF_TRAIL = 500
"""Points."""
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
    in_place: bool = False
    """Whether robots are where they were; else time runs to the right."""


def strip(file: Path, motion: Motion, scale: float = 1.0) -> Shown:
    """Write a .png of a motion's moments; ``scale``: of the usual number of pixels."""
    if file.suffix != ".png":
        raise ValueError(f"picture file is '{file}'; expected a name that ends in .png")
    one = motion.part(robots=slice(0, motion.team))
    if (surrounded(one) and not _others_move(one)) or (_path(one) and arrange(one).floor is not None):
        size = (round(scale * STROBE[0]), round(scale * STROBE[1]))
        steps = _apart(one, first_end(one))
        Image.fromarray(_on_its_way(one, steps, size)).save(file)
        return Shown(len(steps), one.robots, 0.0, steps[-1] * motion.period, in_place=True)
    in_panels = arrange(one).floor is None
    width, height = PANEL if in_panels else STROBE
    size = (round(scale * width), round(scale * height))
    shown = one if in_panels else motion.part(robots=slice(0, MOST_STROBED))
    first, last = span(shown)
    if surrounded(one) or (first > 0 and goals_of(one) is not None):
        first, last = 0, first_end(shown)
    steps = np.linspace(first, last, PANELS if in_panels else STROBES).round().astype(int)
    Image.fromarray((_panels if in_panels else _strobe)(shown, steps, size)).save(file)
    return Shown(len(steps), shown.robots, first * motion.period, last * motion.period)


def _path(motion: Motion) -> bool:
    """Whether the way of a set-point is known that goes far."""
    size = size_of(motion.model, motion.poses[0, 0])
    ways = [m.position for m in motion.markers if isinstance(m, Trail) and m.seconds is None]
    return any(float(np.ptp(way, axis=0).max()) > FAR * size for way in ways)


def span(motion: Motion) -> tuple[int, int]:
    """First and last step of what changes."""
    last = len(motion) - 1
    steps, begins_again = _steps(motion)
    gone = np.where(begins_again, 0.0, steps).sum(1).cumsum()
    end = 1 + int(np.searchsorted(gone, DONE * gone[-1])) if last else 0
    if end > GOES_ON * last:
        half = round(0.5 * WHILE / motion.period)
        return max(0, last // 2 - half), min(last, last // 2 + half)
    return 0, min(end + round(REST / motion.period), last)


def first_end(motion: Motion) -> int:
    """The last step before the robot begins again, or has gone all of its way."""
    steps, begins_again = _steps(motion)
    until = int(np.argmax(begins_again.any(1))) if begins_again.any() else len(motion) - 1
    gone = np.concatenate([[0.0], steps[:until].max(1).cumsum()])
    return int(np.searchsorted(gone, WAY * gone[-1]))


def _others_move(motion: Motion) -> bool:
    """Whether bodies come near that are no parts of the robot, such as cars."""
    away = np.linalg.norm(motion.poses[..., :3] - motion.poses[..., :1, :3], axis=-1)
    return bool(np.ptp(away, axis=0).max() > OTHERS * size_of(motion.model, motion.poses[0, 0]))


def _steps(motion: Motion) -> tuple[np.ndarray, np.ndarray]:
    """(steps − 1, n) m that the fastest shapes go, and whether the robot begins again."""
    places = centers(motion.model, motion.poses)
    steps = np.linalg.norm(np.diff(places, axis=0), axis=-1).max(2)
    return steps, steps > JUMP * size_of(motion.model, motion.poses[0, 0])


def _apart(motion: Motion, last: int) -> np.ndarray:
    """Steps until the ``last`` in which a robot is seen at several places: fewer where it does not go far."""
    way = np.linalg.norm(np.diff(motion.poses[: last + 1, :, 0, :3], axis=0), axis=-1).sum(0).max()
    places = int(way / (STEP * size_of(motion.model, motion.poses[0, 0]))) + 1
    return np.linspace(0, last, min(max(places, 2), STROBES)).round().astype(int)


def _on_its_way(motion: Motion, steps: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """One robot, or one team, at several moments where they are, the first one's way to the right.

    From above where there are surroundings.
    """
    seen = motion.part(slice(0, steps[-1] + 1))
    scene, azimuth = arrange(motion), headings(seen)[0] + 90.0
    elevation = FROM_ABOVE if scene.surrounded else STROBE_ELEVATION
    points = corners(motion.model, motion.poses[steps]).reshape(-1, 3)
    at, distance = frame(points, AROUND * scene.size, size, azimuth, elevation)
    every = max(1, len(seen) // MOST_OF_TRAIL)
    with Stage(motion.model, len(steps) * motion.robots, size, distance / 3, floor=scene.floor) as stage:
        stage.look(at, distance, azimuth, elevation)
        stage.place(motion.poses[steps].reshape(-1, *motion.poses.shape[2:]))
        stage.begin()
        for robot in range(motion.robots):
            for marker, still in zip(seen.markers, seen.moment(int(steps[-1])), strict=True):
                stage.mark(still, robot)
                if isinstance(marker, Trail):
                    stage.trail(marker.position[::every, robot], marker.color)
        return stage.finish()


def _panels(motion: Motion, steps: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Pictures of one robot side by side, by a camera that stays with it."""
    scene, azimuth = arrange(motion), headings(motion.part(slice(steps[0], steps[-1] + 1)))[0] + BESIDE
    middles, distance = middles_of(motion)[steps, 0], distance_of(motion.part(slice(steps[-1], None)), size)
    if not scene.surrounded:  # with all that belongs to it, and where it is to go
        seen = [points_of(motion.part(slice(k, k + 1)), scene) for k in steps]
        whole = [frame(points, 0.1 * scene.size, size, azimuth, scene.elevation) for points in seen]
        middles, distance = np.array([at for at, _ in whole]), max(distance, *(away for _, away in whole))
    pictures = []
    with Stage(motion.model, 1, size, distance / 3) as stage:
        for k, middle in zip(steps, middles, strict=True):
            stage.look(middle, distance, azimuth, scene.elevation)
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
