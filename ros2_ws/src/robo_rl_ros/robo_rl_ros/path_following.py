"""A path that a planner gave, followed: what the policy is told of it, and how it ends. Knows no ROS.

The rules are those of Nav2: the codes of ``nav2_msgs/action/FollowPath`` (Jazzy), SimpleGoalChecker without a heading,
and SimpleProgressChecker, with their default parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from robo_rl.controllers import path as geometry


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
    """A path (P, 2) m that was checked, and how far along it the robot is."""

    def __init__(self, points: np.ndarray, pose: Pose, ahead: np.ndarray, scale: float, rules: Rules) -> None:
        """``ahead`` (k,) m along the path are the points that the policy wants; ``scale``: see
        ``robo_rl.controllers.path``.

        PathError where the path is none, is not finite, jumps, or is not where the robot is.
        """
        check(points, rules)
        self.rules, self.ahead, self.scale = rules, np.asarray(ahead, float), scale
        self._path = np.concatenate([points, points[-1:]])[None].astype(float)  # of two points at least
        self._measured = geometry.lengths(self._path)
        place = np.array([[pose.x, pose.y]])
        apart = np.hypot(*(self._path[0] - place[0]).T)
        nearest = float(geometry.distance(self._path, place[:, None])[0, 0])
        if nearest > rules.begin:
            raise PathError(Code.INVALID_PATH, f"the path is {nearest:.2f} m away; expected at most {rules.begin} m")
        at = np.concatenate([self._measured[1][0], [self.length]])
        self._at = np.array([float(at[_first_passage(apart, rules.tolerance)])])

    @property
    def length(self) -> float:
        """m."""
        apart, begin = self._measured
        return float(begin[0, -1] + apart[0, -1])

    def update(self, pose: Pose) -> Progress:
        """The robot is at ``pose``."""
        place = np.array([[pose.x, pose.y]])
        self._at = geometry.progress(self._path, self._measured, place, self._at, self.scale)
        found = geometry.points(self._path, self._measured, self._at[:, None] + self.ahead)
        seen = geometry.in_frame(found, place, np.array([pose.heading]))
        left = self.length - float(self._at[0])
        near = math.hypot(*(self._path[0, -1] - place[0])) <= self.rules.tolerance
        return Progress(seen[0].astype(np.float32), left, near and left <= self.rules.rest)


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
    """Whether the robot gets on: it is stuck who stays within a circle for too long. A new path changes nothing."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._from: tuple[float, float, float] | None = None

    def stuck(self, pose: Pose, now: float) -> bool:
        """At ``now`` (s)."""
        if self._from is None or math.hypot(pose.x - self._from[0], pose.y - self._from[1]) > self.rules.movement:
            self._from = (pose.x, pose.y, now)
        return now - self._from[2] > self.rules.allowance
