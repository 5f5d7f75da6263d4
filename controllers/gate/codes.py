"""The gate's codes: states, requests, events and reasons, and what they mean.

They are part of logs, messages and test vectors, so a code never changes its meaning. ``deploy/build/c/gate.h`` has
the same, and docs/safety.md has them in tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from robo_rl.controllers.gate.config import GateConfig


class State(IntEnum):
    """Where the gate is."""

    IDLE = 0
    READY = 1
    ACTIVE = 2
    FAULT = 3


class Source(IntEnum):
    """What the command that is sent is made of."""

    SAFE = 0
    START = 1
    POLICY = 2
    HOLD = 3
    DAMP = 4
    """A slow move to the safe command, in logs of the first releases; the same is part of STOP now."""
    FALLBACK = 5
    SILENT = 6
    """Nothing is sent: the robot was not armed since power-up."""
    STOP = 7
    """Each command according to its ``stop``; SAFE where all are "off"."""


REACTIONS = {"stop": Source.STOP, "hold": Source.HOLD, "controller": Source.FALLBACK}
"""How a contract's ``Safety.on_fault`` answers faults."""


class Stop(IntEnum):
    """What one actuator does when it is stopped: ``Command.stop``."""

    OFF = 0
    RAMP = 1
    HOLD = 2
    DAMP = 3


class Reason(IntEnum):
    """Why the gate is in fault, or refuses a request."""

    NONE = 0
    OPERATOR_STOP = 1
    BUNDLE = 2
    CLOCK = 3
    OVERRUN = 4
    TOO_FAST = 5
    OPERATOR_LOST = 6
    SIGNAL_MISSING = 7
    SIGNAL_STALE = 8
    SIGNAL_NOT_FINITE = 9
    SIGNAL_RANGE = 10
    SIGNAL_NORM = 11
    TILT = 12
    SIGNAL_FROZEN = 13
    COMMAND_MISSING = 14
    COMMAND_STALE = 15
    COMMAND_NOT_FINITE = 16
    COMMAND_RANGE = 17
    COMMAND_RATE = 18
    NOT_READY = 19
    ENVELOPE = 20
    HALTED = 21
    COLLISION = 22


UNANSWERED = (Reason.OVERRUN, Reason.COMMAND_MISSING, Reason.COMMAND_STALE)
"""Why the gate is in fault after a policy that did not answer, or not in time."""


class Request(IntFlag):
    """What is asked of the gate, for one step. Of several at once, the first in the order of ``URGENCY`` counts."""

    NONE = 0
    ARM = 1
    ACTIVATE = 2
    DISARM = 4
    STOP = 8
    RESET = 16
    HALT = 32
    """A stop requested by the program around the gate and not by a person: a silent link, a failed recorder."""


URGENCY = (Request.STOP, Request.HALT, Request.DISARM, Request.RESET, Request.ARM, Request.ACTIVATE)


class Event(IntFlag):
    """What happened in one step."""

    NONE = 0
    ARMED = 1
    ACTIVATED = 2
    DISARMED = 4
    FAULTED = 8
    WAS_RESET = 16
    REFUSED = 32
    RATE_LIMITED = 64
    FALLBACK_LOST = 128


@dataclass(frozen=True)
class Problem:
    """A reason, and the signal or command and its element that gave it; -1: none in particular."""

    reason: Reason = Reason.NONE
    channel: int = -1
    element: int = -1


NO_PROBLEM = Problem()


def explain(config: GateConfig, problem: Problem) -> str:
    """The problem as one sentence."""
    about_signal = Reason.SIGNAL_MISSING <= problem.reason <= Reason.SIGNAL_FROZEN or problem.reason == Reason.CLOCK
    about_signal |= problem.reason in (Reason.ENVELOPE, Reason.COLLISION)
    what, channels = ("signal", config.signals) if about_signal else ("command", config.commands)
    if problem.channel < 0:
        return MEANING[problem.reason]
    channel = channels[problem.channel]
    element = f", element '{channel.elements[problem.element]}'" if problem.element >= 0 else ""
    return f"{what} '{channel.name}'{element}: {MEANING[problem.reason]}"


MEANING = {
    Reason.NONE: "nothing is wrong",
    Reason.OPERATOR_STOP: "the operator asked to stop",
    Reason.BUNDLE: "the bundle is no longer the one that was verified",
    Reason.CLOCK: "a time lies in the future, or time ran backwards",
    Reason.OVERRUN: "the control steps are too far behind their schedule",
    Reason.TOO_FAST: "the control steps come faster than the contract's rate",
    Reason.OPERATOR_LOST: "no heartbeat from the operator",
    Reason.SIGNAL_MISSING: "it never arrived",
    Reason.SIGNAL_STALE: "it is too old",
    Reason.SIGNAL_NOT_FINITE: "it is not a finite number",
    Reason.SIGNAL_RANGE: "it is outside the contract's range",
    Reason.SIGNAL_NORM: "its norm is not 1",
    Reason.TILT: "the robot is tilted beyond the contract's limit",
    Reason.SIGNAL_FROZEN: "it repeats bit for bit under new stamps",
    Reason.COMMAND_MISSING: "the policy gave no command",
    Reason.COMMAND_STALE: "the policy's command is too old",
    Reason.COMMAND_NOT_FINITE: "the policy's command is not a finite number",
    Reason.COMMAND_RANGE: "the policy's command is outside the contract's range",
    Reason.COMMAND_RATE: "the rate limit has cut the policy's command for too long",
    Reason.NOT_READY: "the gate is not armed, or the start pose is not reached",
    Reason.ENVELOPE: "it is outside the contract's envelope, where the robot may be",
    Reason.HALTED: "the program around the gate stopped the robot",
    Reason.COLLISION: "what it sees in the way is nearer than the contract's time to collision",
}
