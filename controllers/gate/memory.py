"""What one step of the gate is given and answers, and what the gate remembers between steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robo_rl.controllers.gate.codes import NO_PROBLEM, Event, Problem, Request, Source, State
from robo_rl.controllers.gate.config import NEVER, GateConfig


@dataclass(frozen=True)
class Inputs:
    """What one step is given. Times in µs of one monotonic clock; a negative stamp means that there is nothing."""

    time: int
    signals: np.ndarray
    """(N,) float32, in the contract's order."""
    stamps: Sequence[int]
    """When each signal was measured."""
    command: np.ndarray | None = None
    """(M,) float32, what the policy proposes."""
    command_stamp: int = NEVER
    fallback: np.ndarray | None = None
    """(M,) float32, what the classical controller proposes; None when it has landed or gives up."""
    operator_stamp: int = NEVER
    """Time of the operator's last heartbeat."""
    bundle_intact: bool = False
    """The bundle's digest is still the one that was verified."""
    requests: Request = Request.NONE


@dataclass(frozen=True)
class Gate:
    """What the gate remembers between steps."""

    command: np.ndarray
    """(M,) float32, what was last sent."""
    reference: np.ndarray
    """(M,) float32, where the gate's own move is; the command follows it at the rate limit."""
    values: np.ndarray
    """(N,) float32, the newest value of each signal."""
    stamps: tuple[int, ...]
    """µs, of those values."""
    changed: tuple[int, ...]
    """µs, the stamp with which each value was new."""
    state: State = State.IDLE
    problem: Problem = NO_PROBLEM
    reaction: Source = Source.SILENT
    """What is sent in idle and in fault; SILENT until the first arming."""
    time: int = NEVER
    late: int = 0
    """µs by which the steps are behind their schedule; negative: ahead."""
    limited_since: int = NEVER
    """µs, since when the rate limit cuts every command."""


@dataclass(frozen=True)
class Output:
    """What one step answers. ``problem`` is the latched fault, or why a request was refused."""

    command: np.ndarray
    """(M,) float32; with the source SILENT it must not be sent, and tells what would hold the actuators."""
    source: Source
    state: State
    problem: Problem
    events: Event


def initial(config: GateConfig) -> Gate:
    """The gate at power-up: idle."""
    nothing = (NEVER,) * len(config.signals)
    return Gate(config.safe.copy(), config.safe.copy(), np.zeros_like(config.signal_lower), nothing, nothing)
