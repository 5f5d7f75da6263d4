"""What a Franka arm and its hand tell, as plain values: what the driver sees of libfranka's states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

IDLE, MOVE, REFLEX, USER_STOPPED = "Idle", "Move", "Reflex", "UserStopped"
"""Of libfranka's robot modes, those that matter here."""
MODES = {
    USER_STOPPED: "its external activation device (user stop) is pressed; release it",
    "Guiding": "somebody guides it by hand",
    "Other": "it is not ready to be controlled; unlock its joints and activate FCI in Desk",
    "AutomaticErrorRecovery": "it recovers from an error",
}


@dataclass(frozen=True)
class ArmState:
    """Of the arm."""

    tick: int
    """ms, of the robot's own clock."""
    came: float
    """s, of the driver's clock, when it was seen."""
    q: np.ndarray
    """(7,) rad."""
    dq: np.ndarray
    """(7,) rad/s."""
    position: np.ndarray
    """(3,) m, of the end effector in the base frame (O_T_EE)."""
    orientation: np.ndarray
    """(4,) x, y, z, w."""
    tool_position: np.ndarray
    """(3,) m, of the end effector in the flange's frame (F_T_EE)."""
    tool_orientation: np.ndarray
    """(4,) x, y, z, w."""
    mode: str
    errors: tuple[str, ...]
    """libfranka's names."""
    success: float
    """Part of the last 100 commands that arrived in time; 0 without a motion."""


@dataclass(frozen=True)
class HandState:
    """Of the hand."""

    came: float
    """s, of the driver's clock, when it was seen."""
    width: float
    """m, between its fingers."""
    widest: float
    """m; 0 before its homing."""
    grasped: bool
