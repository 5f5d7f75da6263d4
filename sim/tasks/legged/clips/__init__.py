"""Clips: motions of a whole robot by time, as a task follows them.

A clip has the pose of the base and the angles of all joints at every control step. ``generated`` makes clips, ``files``
reads them, ``checks`` refuses those that the robot can't do, ``spline`` is how policies evaluate them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

import numpy as np

PERIOD = 0.02  # s, between frames: the control period of the tasks on legs
LONGEST = 3000
"""Frames: 60 s."""


class ClipError(ValueError):
    """A clip can't be read, or can't be followed. The message says why."""


@dataclass(frozen=True, eq=False)
class Clip:
    """A motion at T frames, PERIOD apart, of a robot with J joints."""

    name: str
    joints: tuple[str, ...]
    """(J,) in the order of the card."""
    position: np.ndarray
    """(T, 3) m, of the base, world: z up, level ground at 0."""
    orientation: np.ndarray
    """(T, 4) quaternion x, y, z, w of the base, to world."""
    angles: np.ndarray
    """(T, J) rad."""
    source: str
    """Where it comes from."""

    def __len__(self) -> int:
        return len(self.position)

    @property
    def duration(self) -> float:
        """s, from the first frame to the last."""
        return PERIOD * (len(self) - 1)

    @property
    def digest(self) -> str:
        """SHA-256 over the names of the joints, in a line of JSON, and the frames as little-endian float32: base,
        quaternion, angles of one frame after the other, to 1e-4 (m, 1, rad)."""
        frames = np.concatenate([self.position, self.orientation, self.angles], 1)
        head = json.dumps(list(self.joints)) + "\n"
        return hashlib.sha256(head.encode() + (np.round(frames, 4) + 0.0).astype("<f4").tobytes()).hexdigest()


def signed_alike(quaternions: np.ndarray) -> np.ndarray:
    """(T, 4) of length 1, each with the sign that is nearer to the one before: q and -q are the same rotation."""
    unit = quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)
    turns = np.where((unit[1:] * unit[:-1]).sum(1) < 0, -1.0, 1.0)
    return unit * np.concatenate([[1.0], np.cumprod(turns)])[:, None]


def resampled(
    times: np.ndarray, position: np.ndarray, orientation: np.ndarray, angles: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Frames at ``times`` (T,) s, which rise from 0, taken at multiples of PERIOD: by cubic splines through all frames,
    of quaternions (T, 4) by their numbers, made unit again."""
    from scipy.interpolate import CubicSpline

    wanted = PERIOD * np.arange(int(times[-1] / PERIOD + 1e-6) + 1)
    packed = np.concatenate([position, signed_alike(orientation), angles], 1)
    found = CubicSpline(times, packed)(np.minimum(wanted, times[-1]))
    return found[:, :3], signed_alike(found[:, 3:7]), found[:, 7:]
