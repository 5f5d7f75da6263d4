"""What a record moves: whether it can tell anything at all, and which parameters it can't."""

from __future__ import annotations

import numpy as np
from scipy.signal import savgol_filter

from robo_rl.identification.following import Recorded
from robo_rl.sim.robots.mechanism import Mechanism

NEAR = 0.9
"""Of what a motor can give at its speed, beyond which its strength shows."""
SHARE = 0.005
"""Of all steps and joints, that must be so near to the limit for the strength to be told. A walk by the shipped policy
has at most 0.0006, and there it came out between 0.6 and 2 for true values from 0.85 to 1."""


def joint_speed(record: Recorded) -> np.ndarray:
    """(T, J) rad/s, of the measured angles: the sensors of speed are noisier."""
    return savgol_filter(record.joint_position, 5, 2, deriv=1, delta=record.period, axis=0)


def unexcited(mechanism: Mechanism, record: Recorded) -> dict[str, str]:
    """Parameters that the record can't tell because nothing of it depends on them, and why."""
    joints = mechanism.joints[: record.joint_position.shape[1]]  # the last one may be a gripper
    effort, fastest, stiffness, damping = (
        np.array([getattr(joint, name) for joint in joints]) for name in ("effort", "velocity", "stiffness", "damping")
    )
    speed = joint_speed(record)
    asked = np.abs(stiffness * (record.target[:, : len(joints)] - record.joint_position) - damping * speed)
    share = float((asked > NEAR * effort * (1 - np.abs(speed) / fastest)).mean())
    if share >= SHARE:
        return {}
    return {"strength": f"motors were near their limits in {share:.2%} of the time; expected {SHARE:.1%}"}
