"""Whether commands have an effect: what was told to move, and did not. Nothing of ROS here.

A controller that ignores its commands says so in its own log at best: a trajectory that ends in the past, a message of
another type, joints of another name. The robot then stands still while its policy believes to move it.
"""

from __future__ import annotations

import math

import numpy as np

from robo_rl.contract import Command, Contract, ContractError, Signal
from robo_rl.controllers.gate.config import GateConfig

TIME = 1.0
"""s of commands without effect after which that is told: controllers begin to move within some control periods."""
TOLD = 0.05
"""Part of a command's span by which it has to change, or a velocity has to differ from zero, to show anything."""
STILL = 0.1
"""Part of what was told: less than this is no effect."""
FAR = 0.25
"""Part of a command's span: a joint that has never moved, and is told to be so far away, has no load that holds it."""
TWIST = {"vx": "x", "vy": "y", "vz": "z", "wx": "x", "wy": "y", "wz": "z", "drive": "x"}
"""Elements of velocities that are commanded, and of those that odometry and IMU measure."""
VELOCITIES = ("m/s", "rad/s")
GRIPPER = "gripper"
"""The frame of a gripper's commands."""


class EffectMonitor:
    """The commands of the last second beside what was measured of them."""

    def __init__(self, contract: Contract, config: GateConfig) -> None:
        offsets = {watch.name: watch.offset for watch in config.signals}
        self.labels: list[tuple[str, str]] = []
        """Of each element that is measured: its name and unit."""
        commands, measured, grips = [], [], []
        for span in config.commands:
            command = contract.command(span.name)
            for i, found in enumerate(_feedback(contract, command)):
                if found is not None:
                    self.labels.append((command.elements[i], command.unit))
                    grips.append(command.frame == GRIPPER)
                    commands.append(span.offset + i)
                    measured.append(offsets[found[0]] + found[1])
        self._commands, self._measured = np.array(commands, int), np.array(measured, int)
        span = np.subtract(config.command_upper, config.command_lower)
        self._least = TOLD * np.asarray(span, float)[self._commands]
        self.steps = max(2, math.ceil(TIME / contract.control_period))
        self._grips, self._followed = np.array(grips, bool), np.zeros(len(grips), bool)
        self._told = np.zeros((2, self.steps, len(commands)))
        self._count = 0

    def note(self, sent: np.ndarray | None, signals: np.ndarray) -> None:
        """A step: the command (M,) that was sent, None if none was, on signals (N,)."""
        if sent is None or not len(self.labels):
            self._count = 0
            self._followed[:] = False
            return
        row = self._count % self.steps
        self._told[0, row], self._told[1, row] = sent[self._commands], signals[self._measured]
        self._count += 1

    def complaints(self) -> list[str]:
        """One sentence for each element that was told to move within ``TIME`` and has not. Call it once in that time.

        What was told in the newest half of it may not have arrived yet. Something in a gripper stops it: only one that
        has never followed is told. One place that is told all the time counts where the joint has never moved at all.
        """
        if self._count < self.steps:
            return []
        told, found = np.roll(self._told, -(self._count % self.steps), axis=1)
        moved, followed = np.ptp(told[: self.steps // 2], axis=0), np.ptp(found, axis=0)
        is_velocity = np.array([unit in VELOCITIES for _, unit in self.labels])
        moved = np.where(is_velocity, np.abs(told).min(0), moved)
        followed = np.where(is_velocity, np.abs(found).max(0), followed)
        asked, still = moved > self._least, followed < STILL * moved
        self._followed |= (asked & ~still) | (followed > self._least)
        away = ~is_velocity & (np.abs(told - found).min(0) > FAR / TOLD * self._least)
        never = away & ~self._followed & (followed < STILL * self._least)
        asked, still = asked | never, still | never
        dead = np.flatnonzero(asked & still & ~(self._grips & self._followed))
        return [
            f"sent {self.steps} commands in {TIME:g} s: '{name}' was told {told[:, i].min():.3g} to "
            f"{told[:, i].max():.3g} {unit} and has not moved from {found[-1, i]:.3g} {unit}. Does the robot's "
            "controller accept them? See its log"
            for i in dead.tolist()
            for name, unit in [self.labels[i]]
        ]


def _feedback(contract: Contract, command: Command) -> list[tuple[str, int] | None]:
    """For each element of a command the sensor signal and its index there that measure it; None where none does."""
    try:
        return list(contract.feedback(command))
    except ContractError:
        pass
    sensed = [s for s in contract.signals if s.source == "sensor" and s.shape is None and s.unit == command.unit]
    return [_velocity(sensed, command, element) for element in command.elements]


def _velocity(sensed: list[Signal], command: Command, element: str) -> tuple[str, int] | None:
    axis = TWIST.get(element, element)
    same = (command.frame, "body", "base")
    found = [(s.name, s.elements.index(axis)) for s in sensed if axis in s.elements and s.frame in same]
    return found[0] if len(found) == 1 and command.unit in VELOCITIES else None
