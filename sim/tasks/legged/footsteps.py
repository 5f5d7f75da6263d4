"""Footsteps, and how the centre of mass moves over them: the linear inverted pendulum, in closed form.

The centre of mass c stays at one height z above the ground and is pushed away from the point p where the ground
carries the robot: c'' = w² (c - p), w = sqrt(g / z) (Kajita et al. 2001). Of its two modes the divergent component of
motion x = c + c'/w runs away from p, and c follows x (Takenaka et al. 2009; Englsberger et al. 2015). So x is planned
backwards from the last footstep, and c forwards from anywhere.
"""

from __future__ import annotations

import numpy as np

GRAVITY = 9.81  # m/s²


def divergence_rate(height: float) -> float:
    """1/s, of a pendulum whose mass is ``height`` (m) above the ground."""
    return float(np.sqrt(GRAVITY / height))


def divergent_at_steps(supports: np.ndarray, rate: float, duration: float) -> np.ndarray:
    """(k, 2) m, the divergent component as each of k steps of ``duration`` (s) begins, at rest over the last support.

    ``supports`` (k, 2) m: where the ground carries the robot during each step. x_i = p_i + e^(-wT) (x_{i+1} - p_i).
    """
    found = np.empty_like(supports)
    after = supports[-1]
    for i in reversed(range(len(supports))):
        after = found[i] = supports[i] + np.exp(-rate * duration) * (after - supports[i])
    return found


def centre_of_mass(
    supports: np.ndarray, divergent: np.ndarray, rate: float, duration: float, times: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Place and velocity (k, t, 2) m, m/s, of the centre of mass at ``times`` (t,) s into each of the k steps.

    It begins at rest with the divergent component of the first step. ``divergent`` is of ``divergent_at_steps``.
    """
    start = divergent[0]
    places, speeds = [], []
    grows, decays = np.exp(rate * times)[:, None], np.exp(-rate * times)[:, None]
    for support, ahead in zip(supports, divergent, strict=True):
        unstable = 0.5 * (ahead - support)
        stable = start - support - unstable
        places.append(support + unstable * grows + stable * decays)
        speeds.append(rate * (unstable * grows - stable * decays))
        start = support + unstable * np.exp(rate * duration) + stable * np.exp(-rate * duration)
    return np.stack(places), np.stack(speeds)
