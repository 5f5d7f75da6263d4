"""What a controller of Universal Robots tells of itself: fields, and the meaning of their numbers (RTDE Guide)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robo_rl.deploy.robot.drivers.rtde import messages as m
from robo_rl.deploy.robot.drivers.rtde.program import TAKEN

OUTPUTS = (
    "timestamp", "actual_q", "actual_qd", "actual_TCP_pose", "robot_mode", "safety_mode", "runtime_state",
    "robot_status_bits", "target_speed_fraction", f"output_int_register_{TAKEN}",
)  # fmt: skip
RUNNING, NORMAL = 7, 1
STOPPED, PLAYING, PAUSED = 1, 2, 4
ROBOT_MODES = {
    -1: "no controller", 0: "disconnected", 1: "confirm safety", 2: "booting", 3: "power off", 4: "power on", 5: "idle",
    6: "backdrive", 7: "running", 8: "updating firmware",
}  # fmt: skip
SAFETY_MODES = {
    1: "normal", 2: "reduced", 3: "protective stop", 4: "recovery", 5: "safeguard stop", 6: "system emergency stop",
    7: "robot emergency stop", 8: "violation", 9: "fault", 10: "validate joint id", 11: "undefined",
}  # fmt: skip
RUNTIME = {0: "stopping", 1: "stopped", 2: "playing", 3: "pausing", 4: "paused", 5: "resuming"}
TEACH = 1 << 2
"""Of robot_status_bits: the teach button, or freedrive, is pressed."""
FULL = 0.999
"""target_speed_fraction of a speed slider at 100 %."""
JOINTS = 6


@dataclass(frozen=True)
class State:
    """One package. rad, rad/s, m; ``seconds`` is the controller's clock."""

    seconds: float
    q: np.ndarray
    qd: np.ndarray
    tool: np.ndarray
    """(3,) m, of the active tool centre point in the frame "base"."""
    robot_mode: int
    safety_mode: int
    runtime: int
    taught: bool
    speed: float
    """Part of full speed that the slider is set to."""
    taken: int
    """Number of the newest command that our program has taken."""

    @staticmethod
    def of(values: m.Values) -> State:
        """ValueError where a number is none."""
        numbers = (*values["timestamp"], *values["actual_q"], *values["actual_qd"], *values["actual_TCP_pose"])
        if not all(map(math.isfinite, numbers)):
            raise ValueError("a state has numbers that are not finite")
        mode, safety, runtime, bits, taken = (
            int(values[name][0])
            for name in ("robot_mode", "safety_mode", "runtime_state", "robot_status_bits", OUTPUTS[-1])
        )
        if mode not in ROBOT_MODES or safety not in SAFETY_MODES or runtime not in RUNTIME:
            raise ValueError(f"a state has modes that do not exist: {mode}, {safety} and {runtime}")
        return State(
            values["timestamp"][0], np.array(values["actual_q"]), np.array(values["actual_qd"]),
            np.array(values["actual_TCP_pose"][:3]), mode, safety, runtime, bool(bits & TEACH),
            values["target_speed_fraction"][0], taken,
        )  # fmt: skip

    def wrong(self) -> list[str]:
        """Why it may not be commanded, in sentences."""
        found = []
        if self.safety_mode != NORMAL:
            found.append(f"the robot's safety mode is '{SAFETY_MODES[self.safety_mode]}'; expected 'normal'")
        if self.robot_mode != RUNNING:
            found.append(f"the robot's mode is '{ROBOT_MODES[self.robot_mode]}'; expected 'running'")
        if self.taught:
            found.append("somebody guides the arm by hand (freedrive)")
        if not self.speed >= FULL:
            found.append(f"the speed slider is at {100 * self.speed:.0f} %; set it to 100 %")
        return found

    @property
    def doing(self) -> str:
        """What its program does, in a word."""
        return RUNTIME[self.runtime]
