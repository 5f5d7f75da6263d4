"""Between PX4's frames and ours: north, east, down and forward, right, down; east, north, up and forward, left, up.

REP-103 has ours; MAVLink's MAV_FRAME_LOCAL_NED and MAV_FRAME_BODY_FRD theirs. Each function is its own inverse, or has
it beside it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

HALF = math.sqrt(0.5)


def world(vector: ArrayLike) -> np.ndarray:
    """(3,) from north, east, down to east, north, up, and back."""
    x, y, z = np.asarray(vector)
    return np.array([y, x, -z])


def body(vector: ArrayLike) -> np.ndarray:
    """(3,) from forward, right, down to forward, left, up, and back."""
    x, y, z = np.asarray(vector)
    return np.array([x, -y, -z])


def orientation(quaternion: ArrayLike) -> np.ndarray:
    """x, y, z, w of our body in our world, for w, x, y, z of theirs in theirs."""
    w, x, y, z = np.asarray(quaternion)
    return HALF * np.array([x + y, x - y, w - z, w + z])


def told(quaternion: ArrayLike) -> np.ndarray:
    """w, x, y, z of theirs, for x, y, z, w of ours."""
    x, y, z, w = np.asarray(quaternion)
    return HALF * np.array([w + z, x + y, x - y, w - z])


def rotate(quaternion: ArrayLike, vector: ArrayLike) -> np.ndarray:
    """(3,) in the world, of a vector in the body that a quaternion x, y, z, w turns."""
    vector, q = np.asarray(vector, float), np.asarray(quaternion, float)
    axis, w = q[:3], q[3]
    twice = 2 * np.cross(axis, vector)
    return vector + w * twice + np.cross(axis, twice)
