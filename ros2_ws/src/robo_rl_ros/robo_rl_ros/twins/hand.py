"""What a person's hands do with a robot, for the doctor's test of its sensors."""

from __future__ import annotations

import numpy as np


def hand(time: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Position (m), orientation (x, y, z, w), velocity (m/s) and body rates (rad/s) of a robot moved by a person.

    Angles and places are sines of different periods; rates and velocities are their derivatives.
    """
    from scipy.spatial.transform import Rotation  # takes half a second to load, which few twins need

    here, soon = _held(time), _held(time + 1e-3)
    turned = Rotation.from_quat(here[1]).inv() * Rotation.from_quat(soon[1])
    return *here, (soon[0] - here[0]) / 1e-3, turned.as_rotvec() / 1e-3


def _held(time: float) -> tuple[np.ndarray, np.ndarray]:
    from scipy.spatial.transform import Rotation

    periods = np.array([1.3, 1.7, 2.1])  # s
    wave = np.sin(2 * np.pi * time / periods)
    return np.array([0, 0, 0.5]) + 0.2 * wave, Rotation.from_euler("xyz", 0.4 * wave).as_quat()
