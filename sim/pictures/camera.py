"""Where a camera must be to see robots move, computed from their poses alone.

Robots on a ground that go far are followed, each by a camera of its own, from beside and behind; from farther away and
above where lines show their surroundings, such as walls or lanes. All others are seen by a camera that stands still:
side by side where they would be in the same place. Of a robot that stands and moves objects it sees these and the hand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np

from robo_rl.controllers.rotation import yaw_angle
from robo_rl.sim.drawing import GOALS, Line, Motion, Sphere, corners, has_ground, has_terrain, moving, size_of
from robo_rl.sim.pictures.stage import FIELD_OF_VIEW

AZIMUTH, ELEVATION = 120.0, -20.0
"""Degrees, as MuJoCo has them, of a camera that stands still."""
BESIDE = 55.0
"""Degrees between the way of a robot and the direction of the camera that follows it: it sees what is ahead."""
FAR = 2.0
"""Sizes of a robot that it goes at least to be followed."""
AWAY = 1.1
"""Of the distance from which a robot is just seen as a whole: how far away the camera is that follows it."""
FARTHER, ABOVE = 5.0, -38.0
"""Times that distance, and the elevation (degrees), where lines show what is around."""
BEHIND, LOWER = 20.0, -32.0
"""As BESIDE and ABOVE, where a robot in its surroundings has a goal: that is seen ahead of it."""
TOWARDS, SEEN = 0.33, 1.5
"""Of a camera's distance: how far ahead of a robot it looks to a goal, at most, and how far away goals may then be."""
MOST_FARTHER = 2.0
"""Times the distance where there is no goal."""
ENOUGH = 200
"""Moments of a motion by which a camera that stands still is set up."""
CATCHING_UP = 5.0
"""1/s: part of the way to the robot that the camera goes in a time."""
JUMP = 3.0
"""Sizes of a robot between two moments: it began again."""
SMALLEST = 0.06
"""Of a picture's height: robots of which more than one is shown."""
APART = 4.0
"""Sizes of a robot between two that are side by side, at least."""


@dataclass(frozen=True)
class Scene:
    """How the robots of a motion are shown."""

    size: float
    """m, of one robot."""
    follow: bool
    """Whether each has a camera that follows it."""
    offsets: np.ndarray | None
    """(n, 3) m that put robots side by side; None where they have one world."""
    heading: np.ndarray
    """(n,) degrees, in which they go or begin."""
    floor: float | None
    """Height (m) of a floor under robots that have none."""
    surrounded: bool
    """Whether lines show what is around the robots."""
    sought: bool = False
    """Whether the robots are on their way to a goal in these surroundings."""

    @property
    def elevation(self) -> float:
        """Degrees, of a camera that follows."""
        return LOWER if self.sought else ABOVE if self.surrounded else ELEVATION

    @property
    def azimuth(self) -> np.ndarray:
        """(n,) degrees, of cameras that follow."""
        return self.heading + (BEHIND if self.sought else BESIDE)


def arrange(motion: Motion) -> Scene:
    """How to show a motion."""
    size = size_of(motion.model, motion.poses[0, 0])
    ground = has_ground(motion.model)
    way = motion.poses[:, :, 0, :3]
    travel = np.linalg.norm(np.ptp(way[..., :2], axis=0), axis=-1)
    follow = ground and bool(travel.max() > FAR * size)
    offsets = None
    if not follow and motion.robots > 1 and not has_terrain(motion.model, size):
        offsets = spread(way, size, motion.team)
    around = surrounded(motion)
    goals = goals_of(motion) if around and follow else None
    heading = headings(motion) if goals is None else _directions(goals[0] - way[0])
    return Scene(size, follow, offsets, heading, None if ground else _floor(motion, size), around, goals is not None)


def _floor(motion: Motion, size: float) -> float:
    """m: where lines begin that show what is around robots, or else below the robots."""
    lines = [marker.points[..., 2].ravel() for marker in motion.markers if isinstance(marker, Line)]
    heights = np.concatenate([np.zeros(0), *lines])
    return float(np.nanmin(heights) if np.isfinite(heights).any() else motion.poses[:, :, 0, 2].min() - 2.0 * size)


def goals_of(motion: Motion) -> np.ndarray | None:
    """(steps, n, 3) m: where the robots are to go; None where no marker says so of all of them at all times."""
    for marker in motion.markers:
        if isinstance(marker, Sphere) and marker.name in GOALS and np.isfinite(marker.position).all():
            return np.asarray(marker.position)
    return None


def _directions(way: np.ndarray) -> np.ndarray:
    """(n,) degrees, of level parts of vectors (n, 3)."""
    return np.degrees(np.arctan2(way[:, 1], way[:, 0]))


def surrounded(motion: Motion) -> bool:
    """Whether lines show what is around the robots."""
    return any(isinstance(marker, Line) for marker in motion.markers)


def headings(motion: Motion) -> np.ndarray:
    """(n,) degrees: of the straight way from begin to end, or of the first body's x axis where there is hardly any."""
    first, last = motion.poses[0, :, 0], motion.poses[-1, :, 0]
    way = last[:, :2] - first[:, :2]
    turned = yaw_angle(tuple(last[:, 3:].T))
    gone = np.linalg.norm(way, axis=-1) > FAR * size_of(motion.model, motion.poses[0, 0])
    return np.degrees(np.where(gone, np.arctan2(way[:, 1], way[:, 0]), turned))


def spread(way: np.ndarray, size: float, team: int = 1) -> np.ndarray:
    """Offsets (n, 3) m that put robots of a ``size`` (m) side by side in rows, where their ways (steps, n, 3) end.

    Robots of a ``team`` stay together: teams are put side by side.
    """
    n = way.shape[1]
    if team > 1:
        teams = way.reshape(len(way), n // team, team, 3)
        wide = float(np.ptp(teams[..., :2], axis=(0, 2)).max())
        return np.repeat(spread(teams.mean(2), max(size, wide / 2)), team, axis=0)
    columns = math.ceil(math.sqrt(n))
    rows = math.ceil(n / columns)
    rest = way[-max(1, len(way) // 2) :, :, :2]
    reach = np.quantile(np.abs(rest - np.median(rest, (0, 1))).max(1), 0.5, axis=0)
    row, column = np.arange(n) // columns, np.arange(n) % columns
    step_x, step_y = 2 * reach + APART * size
    x, y = (row - (rows - 1) / 2) * step_x, (column - (columns - 1) / 2) * step_y
    return np.stack([x, y, 0.0 * x], -1)


def objects_of(model: mujoco.MjModel) -> np.ndarray:
    """Numbers of the bodies that a robot whose base stands can move, such as cubes; none of other robots."""
    free = model.jnt_bodyid[model.jnt_type == mujoco.mjtJoint.mjJNT_FREE]
    return free if 1 not in free else free[:0]


def bodies_shown(motion: Motion) -> np.ndarray:
    """Numbers of the bodies that should be seen: all, or where there are objects, these and the robot's hand.

    That is the bodies at the ends of its limbs, such as fingers, and those that carry them.
    """
    model, bodies, objects = motion.model, np.arange(1, motion.model.nbody), objects_of(motion.model)
    if not len(objects):
        return bodies
    ends = bodies[~np.isin(bodies, model.body_parentid) & ~np.isin(bodies, objects)]
    return np.unique(np.concatenate([objects, ends, model.body_parentid[ends]]))


def points_of(motion: Motion, scene: Scene) -> np.ndarray:
    """(k, 3) m: all that should be seen, by the robots' shapes and the balls that are where they go."""
    offsets = np.zeros((motion.robots, 3)) if scene.offsets is None else scene.offsets
    every = max(1, len(motion) // ENOUGH)
    shown = np.isin(motion.model.geom_bodyid[moving(motion.model)].repeat(8), bodies_shown(motion))
    parts = [(corners(motion.model, motion.poses[::every])[:, :, shown] + offsets[:, None]).reshape(-1, 3)]
    parts += [(m.position + offsets).reshape(-1, 3) for m in motion.markers if isinstance(m, Sphere)]
    points = np.concatenate(parts)
    return points[np.isfinite(points).all(1)]


def frame(
    points: np.ndarray, around: float, size: tuple[int, int], azimuth: float, elevation: float
) -> tuple[np.ndarray, float]:
    """Where a camera must look, and from which distance (m), to see all of ``points`` (k, 3) and ``around`` (m) them.

    Angles are MuJoCo's, in degrees: azimuth 90 looks along world y, elevation below 0 looks down.
    """
    turn, lift = math.radians(azimuth), math.radians(elevation)
    ahead = np.array([math.cos(lift) * math.cos(turn), math.cos(lift) * math.sin(turn), math.sin(lift)])
    right = np.array([math.sin(turn), -math.cos(turn), 0.0])
    axes = np.stack([right, np.cross(right, ahead), ahead])
    there = points @ axes.T  # to the right, up, ahead
    middle = 0.5 * (there.min(0) + there.max(0))
    side, up, depth = (there - middle).T
    slope = math.tan(math.radians(FIELD_OF_VIEW / 2))
    needed = np.maximum((np.abs(side) + around) / (slope * size[0] / size[1]), (np.abs(up) + around) / slope) - depth
    return middle @ axes, float(needed.max())


def whole(motion: Motion, scene: Scene, size: tuple[int, int]) -> tuple[np.ndarray, float, float, float]:
    """Place, distance (m), azimuth and elevation (degrees) of a camera that stands still and sees everything."""
    azimuth = AZIMUTH if scene.floor is not None or motion.robots > 1 else scene.heading[0] + BESIDE
    elevation = ABOVE if scene.surrounded else ELEVATION
    at, distance = frame(points_of(motion, scene), 0.15 * scene.size, size, azimuth, elevation)
    return at, distance, azimuth, elevation


def distance_of(motion: Motion, size: tuple[int, int]) -> float:
    """m, from which a camera that follows sees a robot, and what is around, in a picture of ``size`` (pixels)."""
    narrow = math.tan(math.radians(FIELD_OF_VIEW / 2)) * min(1.0, size[0] / size[1])
    around = surrounded(motion)
    distance = (AWAY * FARTHER if around else AWAY) * size_of(motion.model, motion.poses[0, 0]) / narrow
    goals = goals_of(motion) if around else None
    if goals is None:
        return distance
    away = float(np.linalg.norm(goals[0] - motion.poses[0, :, 0, :3], axis=-1).max())
    return min(max(distance, away / SEEN), MOST_FARTHER * distance)


def as_many_as_seen(motion: Motion, size: tuple[int, int]) -> Motion:
    """All robots of a motion, or the first one, or its team, where all, or the objects that they move, would be too
    small in one picture of ``size`` (pixels)."""
    scene = arrange(motion)
    _, distance, _, _ = whole(motion, scene, size)
    part = scene.size / (distance * math.tan(math.radians(FIELD_OF_VIEW / 2)))
    large = not scene.follow and part > SMALLEST and not len(objects_of(motion.model))
    return motion if large else motion.part(robots=slice(0, motion.team))


def middles_of(motion: Motion) -> np.ndarray:
    """(steps, n, 3) m, between the outermost shapes of each robot."""
    places = corners(motion.model, motion.poses)
    return 0.5 * (places.min(2) + places.max(2))


def followed(motion: Motion, scene: Scene, distance: float) -> np.ndarray:
    """(steps, n, 3) m: what cameras look at that follow robots without haste, and jump when these begin again.

    ``distance`` (m): that of the cameras.
    """
    middles, size = middles_of(motion), scene.size
    if scene.sought and (goals := goals_of(motion)) is not None:
        way = goals - middles
        away = np.linalg.norm(way, axis=-1, keepdims=True)
        middles = middles + way * np.minimum(0.5, TOWARDS * distance / np.maximum(away, size))
    part = min(1.0, CATCHING_UP * motion.period)
    at = middles.copy()
    for k in range(1, len(at)):
        away = middles[k] - at[k - 1]
        far = np.linalg.norm(away, axis=-1, keepdims=True) > JUMP * size
        at[k] = np.where(far, middles[k], at[k - 1] + part * away)
    return at
