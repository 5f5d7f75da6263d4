"""A path that a planner gave, followed: what the policy is told of it, and how it ends. Knows no ROS.

The rules are those of Nav2: the codes of ``nav2_msgs/action/FollowPath`` (Jazzy), SimpleGoalChecker without a heading,
and SimpleProgressChecker, with their default parameters.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from robo_rl.controllers import path as geometry
from robo_rl.controllers.path import AHEAD

INVERSION = math.radians(120)
"""By how much a path turns where it goes back, within the second of the lengths ahead on both sides: between rows that
are nearer than that the policy turns too wide."""
LEAST = 0.25
"""Part of that reach which the robot at least comes and goes: less is jitter at an end of the path."""
DETOUR = 6.0
"""Times the allowance for movement that the robot may drive without getting on along its path."""
SAME = 1e-3
"""m to the end of a piece of a path, which is at its end."""


class Code(IntEnum):
    """Errors of ``nav2_msgs/action/FollowPath`` in Jazzy."""

    NONE = 0
    UNKNOWN = 100
    INVALID_CONTROLLER = 101
    TF_ERROR = 102
    INVALID_PATH = 103
    PATIENCE_EXCEEDED = 104
    FAILED_TO_MAKE_PROGRESS = 105
    NO_VALID_CONTROL = 106
    CONTROLLER_TIMED_OUT = 107


class PathError(ValueError):
    """Why a path is not followed, or not any more; the code is Nav2's."""

    def __init__(self, code: Code, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class Pose(NamedTuple):
    """Where the robot is, in the frame of a path."""

    x: float
    """m."""
    y: float
    """m."""
    heading: float
    """rad."""

    def within(self, frame: Pose) -> Pose:
        """In the frame in which ``frame`` is where this pose's own frame is."""
        cosine, sine = math.cos(frame.heading), math.sin(frame.heading)
        x, y = frame.x + cosine * self.x - sine * self.y, frame.y + sine * self.x + cosine * self.y
        return Pose(x, y, self.heading + frame.heading)


@dataclass(frozen=True)
class Rules:
    """When a path is too strange, and when it has ended."""

    tolerance: float = 0.25
    """m to the last point: xy_goal_tolerance."""
    rest: float = 1.0
    """m of the path that may be left where the last point is so near: a path may pass by its end before."""
    inversion: float = 0.2
    """m to a point where the path turns back: inversion_xy_tolerance of Nav2's MPPI controller."""
    movement: float = 0.5
    """m: required_movement_radius."""
    allowance: float = 10.0
    """s: movement_time_allowance."""
    begin: float = 1.0
    """m from the robot to the nearest point of the path, at most."""
    step: float = 2.0
    """m between two points of the path, at most."""
    points: int = 20_000
    """Of a path, at most."""


class Progress(NamedTuple):
    """What is known of the robot on its path."""

    ahead: np.ndarray
    """(k, 2) float32 m: the points ahead, in the robot's frame."""
    left: float
    """m along the path to its end."""
    arrived: bool


class FollowedPath:
    """A path (P, 2) m that was checked, and how far along it the robot is. Progress never decreases.

    Where the path turns back on itself, only the piece up to there is followed until the robot is at its end, as with
    ``enforce_path_inversion`` of Nav2's MPPI controller: beyond, the way there and the way back are the same places.
    """

    def __init__(self, points: np.ndarray, pose: Pose, ahead: np.ndarray, scale: float, rules: Rules) -> None:
        """``ahead`` (k,) m along the path are the points that the policy wants; ``scale``: see
        ``robo_rl.controllers.path``.

        PathError where the path is none, is not finite, jumps, or is not where the robot is.
        """
        check(points, rules)
        self.points, self.rules, self.ahead, self.scale = points, rules, np.asarray(ahead, float), scale
        place = np.array([[pose.x, pose.y]])
        nearest = float(geometry.distance(_whole(points), place[:, None])[0, 0])
        if nearest > rules.begin:
            raise PathError(Code.INVALID_PATH, f"the path is {nearest:.2f} m away; expected at most {rules.begin} m")
        ends = [0, *inversions(points, scale * AHEAD[1]), len(points) - 1]
        self._pieces = [_whole(points[begin : end + 1]) for begin, end in itertools.pairwise(ends)]
        self._measured = [geometry.lengths(piece) for piece in self._pieces]
        self._lengths = [float(begin[0, -1] + apart[0, -1]) for apart, begin in self._measured]
        along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
        joined = _first_passage(np.hypot(*(points - place[0]).T), rules.tolerance)
        self._number = int(np.searchsorted(ends[1:-1], joined))
        self._at = np.array([along[joined] - along[ends[self._number]]])
        self._farthest = float(along[np.argmax(np.hypot(*(points - points[-1]).T))])

    @property
    def length(self) -> float:
        """m."""
        return sum(self._lengths)

    def update(self, pose: Pose) -> Progress:
        """The robot is at ``pose``."""
        place = np.array([[pose.x, pose.y]])
        while self._advance(place) and self._number < len(self._pieces) - 1:
            self._number, self._at = self._number + 1, np.zeros(1)
        path, measured = self._pieces[self._number], self._measured[self._number]
        found = geometry.points(path, measured, self._at[:, None] + self.ahead)
        seen = geometry.in_frame(found, place, np.array([pose.heading]))
        passed = sum(self._lengths[: self._number]) + float(self._at[0])
        left = self.length - passed
        near = math.hypot(*(self.points[-1] - place[0])) <= self.rules.tolerance
        arrived = near and left <= self.rules.rest and passed >= self._farthest - SAME
        return Progress(seen[0].astype(np.float32), left, arrived)

    def _advance(self, place: np.ndarray) -> bool:
        """Go on along the piece. Whether ``place`` (1, 2) is at its end: near to it, or beside it or beyond."""
        path, measured = self._pieces[self._number], self._measured[self._number]
        self._at = geometry.progress(path, measured, place, self._at, self.scale, back=0.0)
        left = self._lengths[self._number] - float(self._at[0])
        near = math.hypot(*(path[0, -1] - place[0])) <= self.rules.inversion
        return left <= SAME or (near and left <= self.rules.rest)


def _whole(points: np.ndarray) -> np.ndarray:
    """(1, P + 1, 2): a path of at least two points."""
    return np.concatenate([points, points[-1:]])[None].astype(float)


def inversions(points: np.ndarray, reach: float) -> list[int]:
    """The points of a path (P, 2) m at which it turns back: by more than ``INVERSION`` from ``reach`` m before to
    ``reach`` m behind, so that two corners close together are one and jitter is none.
    """
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    came = points - _at(points, along, along - reach)
    goes = _at(points, along, along + reach) - points
    along_both, sizes = (came * goes).sum(-1), np.hypot(*np.stack([came, goes]).transpose(2, 0, 1))
    turns = (along_both < math.cos(INVERSION) * sizes.prod(0)) & (sizes.min(0) > LEAST * reach)
    found: list[int] = []
    for i in np.flatnonzero(turns).tolist():
        if not found or along[i] - along[found[-1]] > reach:
            found.append(i)
        elif along_both[i] < along_both[found[-1]]:
            found[-1] = i
    return found


def _at(points: np.ndarray, along: np.ndarray, s: np.ndarray) -> np.ndarray:
    """The points (P, 2) at lengths ``s`` (P,) m along a path."""
    return np.stack([np.interp(s, along, points[:, i]) for i in range(2)], -1)


def _first_passage(apart: np.ndarray, tolerance: float) -> int:
    """The point that is nearest where a path first passes by, of distances ``apart`` (P,) m of its points.

    Later passages may be nearer by ``tolerance`` (m): a path that ends where it begins is to be driven, and so are all
    rows of one that mows.
    """
    near = apart <= apart.min() + tolerance
    first = int(np.argmax(near))
    end = first + int(np.argmin(np.append(near[first:], False)))
    return first + int(np.argmin(apart[first:end]))


def check(points: np.ndarray, rules: Rules) -> None:
    """PathError unless these are points (P, 2) m of a path."""
    if not len(points):
        raise PathError(Code.INVALID_PATH, "the path has no points")
    if len(points) > rules.points:
        raise PathError(Code.INVALID_PATH, f"the path has {len(points)} points; expected at most {rules.points}")
    bad = np.flatnonzero(~np.isfinite(points).all(-1))
    if len(bad):
        raise PathError(Code.INVALID_PATH, f"point {bad[0]} of the path is {points[bad[0]]}; expected finite numbers")
    steps = np.hypot(*np.diff(points, axis=0).T)
    far = np.flatnonzero(steps > rules.step)
    if len(far):
        told = f"points {far[0]} and {far[0] + 1} of the path are {steps[far[0]]:.2f} m apart"
        raise PathError(Code.INVALID_PATH, f"{told}; expected at most {rules.step} m")


class Movement:
    """Whether the robot gets on. It is stuck who stays within a circle for too long, a new path or not.

    Who gets on along a path meanwhile, which may go to and fro within the circle, is not; and who drives about for
    longer, but not along the path, is.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._from: tuple[float, float, float] | None = None
        self._left: tuple[float, float] | None = None
        """m of the path when the robot got on along it last, and when (s)."""

    def replanned(self) -> None:
        """There is another path."""
        self._left = None

    def stuck(self, pose: Pose, now: float, left: float = math.inf) -> bool:
        """At ``now`` (s), with ``left`` m of the path; infinite: not known."""
        if self._from is None or math.hypot(pose.x - self._from[0], pose.y - self._from[1]) > self.rules.movement:
            self._from = (pose.x, pose.y, now)
        if self._left is None or left < self._left[0] - self.rules.movement:
            self._from = (pose.x, pose.y, now) if self._left is not None else self._from
            self._left = (left, now)
        astray = now - self._left[1] > DETOUR * self.rules.allowance
        return now - self._from[2] > self.rules.allowance or (math.isfinite(left) and astray)
