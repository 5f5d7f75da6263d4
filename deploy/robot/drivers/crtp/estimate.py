"""The Crazyflie's compressed state estimate (log group stateEstimateZ), and quaternions in 32 bits.

The firmware's world and body are ours (x forward, y left, z up), with two exceptions: Euler pitch, and with it every
pitch rate that it logs or takes, is positive where the nose goes up (stabilizer.c: ``ratePitch = -gyro.y``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

FIELDS = ("x", "y", "z", "vx", "vy", "vz", "quat", "rateRoll", "ratePitch", "rateYaw")
"""Of stateEstimateZ: mm, mm/s, a compressed quaternion, mrad/s; 22 bytes."""
BITS = 9
LARGEST = (1 << BITS) - 1
HALF = math.sqrt(0.5)
"""The most that the second largest element of a unit quaternion may be."""


def compress(quaternion: Sequence[float] | np.ndarray) -> int:
    """The 32 bits of quatcompress.h: the index of the largest element, and sign and 9 bits of the other three."""
    largest = max(range(4), key=lambda i: abs(quaternion[i]))
    negative = quaternion[largest] < 0
    told = largest
    for i, element in enumerate(quaternion):
        if i != largest:
            size = int(LARGEST * abs(element) / HALF + 0.5)
            told = told << BITS + 1 | ((element < 0) ^ negative) << BITS | min(size, LARGEST)
    return told


def decompress(told: int) -> np.ndarray:
    """x, y, z, w of ``compress``'s 32 bits. ValueError where they are no unit quaternion."""
    largest, rest = told >> 30, [0.0, 0.0, 0.0]
    for i in (2, 1, 0):
        size = HALF * (told & LARGEST) / LARGEST
        rest[i] = -size if told >> BITS & 1 else size
        told >>= BITS + 1
    squares = sum(element * element for element in rest)
    if squares > 0.76:  # of a unit quaternion at most 3/4, and what rounding adds
        raise ValueError(f"the squares of three elements are {squares:.2f}; expected at most 0.75")
    rest.insert(largest, math.sqrt(1.0 - squares))
    found = np.array(rest)
    return found / np.linalg.norm(found)


def signals(told: Mapping[str, float]) -> dict[str, np.ndarray]:
    """Position (m), orientation, linear velocity (m/s, world), angular velocity (rad/s, body), of a block's fields.
    ValueError where the quaternion is none.
    """
    value = {name: told[f"stateEstimateZ.{name}"] for name in FIELDS}
    rates = (value["rateRoll"], -value["ratePitch"], value["rateYaw"])
    return {
        "position": np.array([value[n] for n in ("x", "y", "z")]) / 1000,
        "orientation": decompress(int(value["quat"])),
        "linear_velocity": np.array([value[n] for n in ("vx", "vy", "vz")]) / 1000,
        "angular_velocity": np.array(rates) / 1000,
    }
