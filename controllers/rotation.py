"""Rotations written out in components.

Every function takes and returns tuples of numbers or arrays of any kind (numpy, torch, symbols of
``robo_rl.sim.accelerate.fuse``), so one robot and a batch of thousands use the same lines. Quaternions are x, y, z,
w and turn
body coordinates into world coordinates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Vector = tuple[Any, ...]
Quaternion = tuple[Any, ...]
Matrix = tuple[Vector, Vector, Vector]


def dot(a: Vector, b: Vector) -> Any:
    """a · b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Vector, b: Vector) -> Vector:
    """a × b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def add(a: Vector, b: Vector, scale: Any = 1.0) -> Vector:
    """a + scale b."""
    return a[0] + scale * b[0], a[1] + scale * b[1], a[2] + scale * b[2]


def multiply(a: Quaternion, b: Quaternion) -> Quaternion:
    """The quaternion product a b: the rotation b, followed by a."""
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return (
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    )


def small_rotation(angle: Vector) -> Quaternion:
    """The quaternion of a rotation vector (rad), by series: sin to the 7th, cos to the 8th power.

    Its error is below 1e-7 for angles up to 1 rad. Smooth at zero, unlike axis and angle.
    """
    square = 0.25 * dot(angle, angle)
    sine = 0.5 * (1 - square * (1 / 6 - square * (1 / 120 - square / 5040)))
    cosine = 1 - square * (1 / 2 - square * (1 / 24 - square * (1 / 720 - square / 40320)))
    return angle[0] * sine, angle[1] * sine, angle[2] * sine, cosine


def nearly_normalized(q: Quaternion) -> Quaternion:
    """One Newton step towards unit norm: exact to second order in the deviation, no square root."""
    x, y, z, w = q
    scale = 1.5 - 0.5 * (x * x + y * y + z * z + w * w)
    return x * scale, y * scale, z * scale, w * scale


def body_z(q: Quaternion) -> Vector:
    """The body's z axis in world coordinates."""
    x, y, z, w = q
    return 2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)


def matrix(q: Quaternion) -> Matrix:
    """The rotation matrix, by rows: world = matrix · body."""
    x, y, z, w = q
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
    )


def heading(q: Quaternion) -> tuple[Any, Any]:
    """Cosine and sine of the yaw angle: the turn about world z that remains when the tilt is taken out.

    Well defined up to a tilt of 180 degrees, unlike the yaw of Euler angles.
    """
    _, _, z, w = q
    scale = 1 / (w * w + z * z + 1e-6)
    return (w * w - z * z) * scale, 2 * w * z * scale


def yaw_angle(q: Quaternion) -> Any:
    """Yaw (rad) of roll, pitch and yaw, which turn about x, then y, then z of the world: of numpy arrays or numbers."""
    x, y, z, w = q
    return np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def turn_back(v: Vector, cosine: Any, sine: Any) -> Vector:
    """World vector ``v`` in a frame that is turned about world z by the angle of that cosine and sine."""
    return cosine * v[0] + sine * v[1], cosine * v[1] - sine * v[0], v[2]
