"""What system identification needs of a recorded session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from robo_rl.deploy.robot.logs.logfile import StepRecord, spans
from robo_rl.learn.experience.recorded_values import faults, wrong_stamps

if TYPE_CHECKING:
    from robo_rl.deploy.robot.logs.reader import Log
    from robo_rl.sim.tasks import Task

SIGNALS = ("orientation", "angular_velocity", "joint_position", "joint_velocity")
OPERATOR = "linear_velocity_command"
TARGET = "joint_position_target"
JITTER = 0.2
"""Of a control period, by which steps may be early or late."""
MOVING = 5.0
"""s in which no sensor of a robot that moves gives one value all the time."""
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


def require_fit(log: Log, task: Task) -> None:
    """IdentificationError unless what the task knows too is measured and commanded in its order, unit and frame."""
    for kind in ("signals", "commands"):
        known = {channel.name: channel for channel in getattr(task.spec, kind)}
        for channel in getattr(log.contract, kind):
            ours = known.get(channel.name, channel)
            for what in ("elements", "dimensions", "unit", "frame"):
                found, wanted = getattr(channel, what), getattr(ours, what)
                if found != wanted:
                    raise IdentificationError(
                        f"{log.path}: {kind}: '{channel.name}': {what} is {found!r}; expected {wanted!r}, as "
                        f"'{task.name}' with {task.spec.robot.name} has it"
                    )


def require_measured(log: Log, steps: Sequence[StepRecord], needed: Iterable[str]) -> np.ndarray:
    """(T, N) s, stamps of the N ``needed`` signals in some steps of a log.

    IdentificationError where a value of them, or what was sent, is none that a robot gives, or stamps are.
    """
    contract, where = log.contract, spans(log.contract)
    signals, sent = (np.stack([getattr(step, name) for step in steps]) for name in ("signals", "sent"))
    values = {name: signals[:, where[name]] for name in needed}
    for fault in faults(contract.signals, {**values, "sent": sent}):
        raise IdentificationError(f"{log.path}: step {steps[fault.first].number}: {fault.sentence}")
    index = [i for name in values for i, signal in enumerate(contract.signals) if signal.name == name]
    stamps = np.array([[step.stamps[i] for i in index] for step in steps]) * 1e-6
    if wrong := wrong_stamps(np.array([step.time for step in steps]) * 1e-6, stamps):
        raise IdentificationError(f"{log.path}: step {steps[wrong[0]].number}: {wrong[1]}")
    for name, value in values.items():
        if len(steps) * contract.control_period >= MOVING and (value == value[0]).all():
            raise IdentificationError(
                f"{log.path}: '{name}' is the same in all {len(steps)} steps from step {steps[0].number} on; expected "
                "what a working sensor of a moving robot measures"
            )
    return stamps


def longest_part(log: Log, needed: tuple[str, ...], expected: str) -> Part:
    """The longest part of a session without a gap in which the robot was commanded.

    IdentificationError if it has not what is needed.
    """
    contract = log.contract
    have = {channel.name for channel in (*contract.signals, *contract.commands)}
    missing = [name for name in needed if name not in have]
    if missing:
        raise IdentificationError(f"{log.path}: it has no {missing}; expected {expected}")
    times = np.array([step.time for step in log.steps]) * 1e-6
    commanded = np.array([step.commanded for step in log.steps], bool)
    begin, end = _longest(times, commanded, contract.control_period)
    steps = log.steps[begin:end]
    if not steps:
        raise IdentificationError(
            f"{log.path}: it has no control steps under an ACTIVE gate that sent its commands; expected {expected}, of "
            "at least 10 s, in mode 'blend' or 'live'"
        )
    flat = np.stack([step.signals for step in steps]).astype(float)
    used = [signal.name for signal in contract.signals if signal.name in (*needed, OPERATOR)]
    stamps = require_measured(log, steps, [name for name in used if name in needed])
    return Part(
        {name: flat[:, where] for name, where in spans(contract).items() if name in used},
        np.stack([step.sent for step in steps]).astype(float),
        float(np.mean(times[begin:end, None] - stamps)),
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


def _longest(times: np.ndarray, commanded: np.ndarray, period: float) -> tuple[int, int]:
    """First and last step (exclusive) of the longest part whose steps are one period apart, all of them ``commanded``.

    Both (T,).
    """
    gaps = (np.abs(np.diff(times) / period - 1) > JITTER) | np.diff(commanded)
    edges = np.concatenate([[0], np.flatnonzero(gaps) + 1, [len(times)]])
    lengths = np.diff(edges) * np.append(commanded, False)[edges[:-1]]
    longest = int(np.argmax(lengths))
    return int(edges[longest]), int(edges[longest] + lengths[longest])
