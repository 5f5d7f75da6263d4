"""The recorded motion of an arm whose joints are told where to go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from robo_rl.identification.recorded import TARGET, IdentificationError, longest_part
from robo_rl.sim.robots.arm import ArmCard

if TYPE_CHECKING:
    from robo_rl.deploy.robot.logs.reader import Log

SIGNALS = ("joint_position", "joint_velocity")
FLOORS = (0.001, 0.1)
"""Noise of sensors whose contract tells none, as ``Motion.noise``: estimates."""


@dataclass(frozen=True)
class Motion:
    """What was measured and sent, one row per control step, steps one period apart. Units and frames as signals."""

    name: str
    """For messages: the file."""
    period: float
    """s."""
    joint_position: np.ndarray
    """(T, J)."""
    joint_velocity: np.ndarray
    """(T, J)."""
    target: np.ndarray
    """(T, J) rad, or (T, J + 1) with the gripper's, sent right after the measurement of the same row."""
    age: float = 0.0
    """s, mean age of the measurements when the target was sent."""
    noise: tuple[float, float] = FLOORS
    """Standard deviations of joint angles (rad) and speeds (rad/s)."""

    def __len__(self) -> int:
        return len(self.target)


def motion(log: Log, card: ArmCard) -> Motion:
    """The longest part of a session in which no step is missing; IdentificationError if it has not what is needed."""
    part = longest_part(log, (*SIGNALS, TARGET), "the motion of an arm under joint position targets")
    period, told = log.contract.control_period, [part.noise[name] for name in SIGNALS]
    if not 0.0 <= part.age <= period:
        raise IdentificationError(
            f"{log.path}: measurements are {1000 * part.age:.3g} ms old on average; expected 0 to "
            f"{1000 * period:g} ms, a control period"
        )
    return Motion(
        name=str(log.path),
        period=period,
        joint_position=part.signals["joint_position"],
        joint_velocity=part.signals["joint_velocity"],
        target=part.sent[:, : len(card.joints) + (card.fingers is not None)],
        age=part.age,
        noise=(told[0] or FLOORS[0], told[1] or FLOORS[1]),
    )
