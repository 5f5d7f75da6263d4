"""The joint test: each joint is moved a little, and the reported motion is compared with the commanded one.

It works on recorded samples, so it needs neither ROS nor a robot. It finds joints that are swapped, reversed, not
moving, with another gear ratio, or with another zero. One mistake it can't find: a joint whose commands and reports
are both reversed; for that, watch which way the joint turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robo_rl.contract import Command, Contract, Signal
from robo_rl.deploy.robot.doctor import Finding

AMPLITUDE = 0.08
"""rad, of the motion: a few degrees, which is visible and safe for a linkage."""
DEAD = 0.3
"""Part of the commanded motion below which a joint does not move."""
SCALE = (0.6, 1.4)
"""Parts of the commanded motion that a position control may reach."""
ZERO = 0.15
"""rad between a pose that is commanded and the one that is reported; gravity takes some of that."""
POSE = 0.25
"""rad by which a person may miss the start pose."""


class JointTestError(ValueError):
    """The joints must not, or can't, be moved. The message says why."""


@dataclass(frozen=True)
class Motion:
    """What was commanded and what was reported when the joints had come to rest, rad, in the command's order."""

    rest: np.ndarray
    """(J,) before any command."""
    held: np.ndarray
    """(J,) while ``rest`` was commanded."""
    commanded: np.ndarray
    """(J, 2): the two places at which joint j was held, less where it began."""
    reported: np.ndarray
    """(J, 2, J): all joints then."""


def find_joints(contract: Contract) -> tuple[Command, Signal]:
    """The command that moves joints by position, and the signal that reports them."""
    for command in contract.commands:
        for signal in contract.signals:
            if command.unit == signal.unit == "rad" and signal.elements == command.elements:
                return command, signal
    raise JointTestError(
        f"no command is a joint position that a signal measures: {[c.name for c in contract.commands]}"
    )


def places(command: Command, rest: np.ndarray, joint: int) -> tuple[float, float]:
    """Two places to hold a joint at, rad from where it began: to both sides, or away from a stop that is too near."""
    room = command.upper[joint] - rest[joint], rest[joint] - command.lower[joint]
    if min(room) < AMPLITUDE:
        return (AMPLITUDE if room[0] > room[1] else -AMPLITUDE), 0.0
    return AMPLITUDE, -AMPLITUDE


def examine_joints(command: Command, motion: Motion) -> list[Finding]:
    """One finding or more per joint."""
    names, findings = command.elements, []
    gains = [_gains(motion.commanded[j], motion.reported[j]) for j in range(len(names))]
    for j, name in enumerate(names):
        wrong = _judge_motion(names, j, gains[j])
        swapped = any("reported as" in sentence for sentence in wrong)
        wrong += _judge_pose(command, j, motion, swapped)
        if wrong:
            findings += [Finding(False, name, sentence) for sentence in wrong]
        else:
            findings.append(Finding(True, name, f"moves by {gains[j][j]:.0%} of the command, in the right direction"))
    return findings


def _gains(commanded: np.ndarray, reported: np.ndarray) -> np.ndarray:
    """(J,) how far each joint came between two places, in parts of what was commanded between them."""
    return (reported[0] - reported[1]) / (commanded[0] - commanded[1])


def _judge_motion(names: Sequence[str], j: int, gains: np.ndarray) -> list[str]:
    moved = int(np.argmax(np.abs(gains)))
    if abs(gains[moved]) < DEAD:
        return [f"commanded to move by {AMPLITUDE:g} rad; no reported joint moved"]
    if moved != j:
        way = "" if gains[moved] > 0 else ", in the opposite direction"
        return [f"its command moves the joint that is reported as '{names[moved]}'{way}"]
    wrong = []
    if gains[j] < 0:
        wrong.append("it turns in the opposite direction")
    if not SCALE[0] <= abs(gains[j]) <= SCALE[1]:
        wrong.append(f"it moves {abs(gains[j]):.2f} times as far as commanded: another gear or unit, or a weak motor")
    also = [name for i, name in enumerate(names) if i != j and abs(gains[i]) > 0.5]
    if also:
        wrong.append(f"{also} move with it")
    return wrong


def _judge_pose(command: Command, j: int, motion: Motion, swapped: bool) -> list[str]:
    rest = float(motion.rest[j])
    if not command.lower[j] <= rest <= command.upper[j]:
        return [f"it is reported at {rest:.2f} rad, beyond its stops {command.lower[j]:.2f} to {command.upper[j]:.2f}"]
    off = float(motion.held[j]) - rest
    if abs(off) > ZERO and not swapped:
        return [f"commanded to {rest:.2f} rad it is reported at {rest + off:.2f}: its zero is off by about {off:+.2f}"]
    start = rest if command.start is None else command.start[j]
    if abs(rest - start) > POSE and not swapped:
        return [f"it is at {rest:.2f} rad; in the start pose it is at {start:.2f}. Is the robot in that pose?"]
    return []
