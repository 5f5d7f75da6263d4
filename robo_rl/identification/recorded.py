"""What system identification needs of a recorded session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from robo_rl.deploy.robot.logs.reader import Log

SIGNALS = ("orientation", "angular_velocity", "joint_position", "joint_velocity")
OPERATOR = "linear_velocity_command"
TARGET = "joint_position_target"
JITTER = 0.2
"""Of a control period, by which steps may be early or late."""
FLOORS = (0.02, 0.02, 0.001, 0.1)
"""Noise of sensors whose contract tells none, as ``Record.noise``: estimates."""


class IdentificationError(ValueError):
    """The record can't be used. The message says what is missing."""


@dataclass(frozen=True)
class Record:
    """What was measured and sent, one row per control step, steps one period apart. Units and frames as signals."""

    name: str
    """For messages: the file."""
    period: float
    """s."""
    orientation: np.ndarray
    """(T, 4) quaternion x, y, z, w."""
    angular_velocity: np.ndarray
    """(T, 3)."""
    joint_position: np.ndarray
    """(T, J)."""
    joint_velocity: np.ndarray
    """(T, J)."""
    target: np.ndarray
    """(T, J) rad, sent right after the measurement of the same row."""
    velocity: np.ndarray
    """(T, 2) m/s, commanded, in the heading frame: a first guess of the true one."""
    age: float = 0.0
    """s, mean age of the measurements when the target was sent."""
    noise: tuple[float, float, float, float] = FLOORS
    """Standard deviations of attitude (rad), body rates (rad/s), joint angles (rad) and speeds (rad/s)."""

    def __len__(self) -> int:
        return len(self.target)


@dataclass(frozen=True)
class Part:
    """A part of a session in which no step is missing."""

    signals: dict[str, np.ndarray]
    """(T, elements) by name."""
    sent: np.ndarray
    """(T, elements) of all commands."""
    age: float
    """s, mean age of the signals that were asked for when commands were sent."""
    noise: dict[str, float]
    """Standard deviation of each signal, 0 where the contract tells none."""


def longest_part(log: Log, needed: tuple[str, ...], expected: str) -> Part:
    """The longest part of a session without a gap; IdentificationError if it has not what is needed."""
    contract = log.contract
    have = {channel.name for channel in (*contract.signals, *contract.commands)}
    missing = [name for name in needed if name not in have]
    if missing:
        raise IdentificationError(f"{log.path}: it has no {missing}; expected {expected}")
    times = np.array([step.time for step in log.steps]) * 1e-6
    begin, end = _longest(times, contract.control_period)
    steps = log.steps[begin:end]
    if not steps:
        raise IdentificationError(f"{log.path}: it has no control steps; expected {expected}, of at least 10 s")
    flat = np.stack([step.signals for step in steps]).astype(float)
    cuts = np.cumsum([signal.size for signal in contract.signals])[:-1]
    signals = dict(zip([signal.name for signal in contract.signals], np.split(flat, cuts, 1), strict=True))
    stamps = np.array([[step.stamps[i] for i, s in enumerate(contract.signals) if s.name in needed] for step in steps])
    return Part(
        signals,
        np.stack([step.sent for step in steps]).astype(float),
        float(np.mean(times[begin:end, None] - stamps * 1e-6)),
        {s.name: s.spread(s.noise)[0] if s.noise is not None else 0.0 for s in contract.signals},
    )


def walk(log: Log) -> Record:
    """The longest part of a session in which no step is missing; IdentificationError if it has not what is needed."""
    part = longest_part(log, (*SIGNALS, TARGET), "a walk under joint position targets")
    told = (2 * part.noise["orientation"], *(part.noise[name] for name in SIGNALS[1:]))
    return Record(  # an angle is twice its quaternion's part
        name=str(log.path),
        period=log.contract.control_period,
        **{name: part.signals[name] for name in SIGNALS},
        target=part.sent,
        velocity=part.signals.get(OPERATOR, np.zeros((len(part.sent), 2))),
        age=part.age,
        noise=tuple(one or floor for one, floor in zip(told, FLOORS, strict=True)),  # type: ignore[arg-type]
    )


def _longest(times: np.ndarray, period: float) -> tuple[int, int]:
    """First and last step (exclusive) of the longest part whose steps are one period apart."""
    gaps = np.flatnonzero(np.abs(np.diff(times) / period - 1) > JITTER)
    edges = np.concatenate([[0], gaps + 1, [len(times)]])
    longest = int(np.argmax(np.diff(edges)))
    return int(edges[longest]), int(edges[longest + 1])
