"""What PX4's ODOMETRY tells, in our frames."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robo_rl.deploy.robot.drivers.mavlink import frames
from robo_rl.deploy.robot.drivers.mavlink.link import mavlink

WORLD, BODY = mavlink.MAV_FRAME_LOCAL_NED, mavlink.MAV_FRAME_BODY_FRD
"""Velocities are in the body up to PX4 1.13, and in the world from 1.14 on (PX4-Autopilot, streams/ODOMETRY.hpp)."""


def estimate(message: Any) -> dict[str, np.ndarray]:
    """Position (3,) m, orientation (4,) x, y, z, w, linear velocity (3,) m/s in the world, and angular velocity (3,)
    rad/s in the body. ValueError for other frames, and for what is no number.
    """
    frame, child = message.frame_id, message.child_frame_id
    if frame != WORLD or child not in (WORLD, BODY):
        raise ValueError(
            f"PX4 sends odometry in the frames {frame} and {child}; expected {WORLD} (MAV_FRAME_LOCAL_NED), with "
            f"velocities in {WORLD} or {BODY} (MAV_FRAME_BODY_FRD): does its estimator know where north is?"
        )
    speed = (message.vx, message.vy, message.vz)
    rates = (message.rollspeed, message.pitchspeed, message.yawspeed)
    place, turned = (message.x, message.y, message.z), frames.orientation(message.q)
    norm = float(np.linalg.norm(turned))
    if not all(map(math.isfinite, (*place, *speed, *rates, norm))) or not 0.95 < norm < 1.05:
        raise ValueError("PX4 sends odometry that is no number; does its estimator know where it is?")
    turned /= norm
    return {
        "position": frames.world(place),
        "orientation": turned,
        "linear_velocity": frames.world(speed) if child == WORLD else frames.rotate(turned, frames.body(speed)),
        "angular_velocity": frames.body(rates),
    }
