"""Arming and taking over without a person's further word, once everything is there."""

from __future__ import annotations

from typing import Protocol

from robo_rl.controllers.gate.codes import Event, Reason, Request, State, explain
from robo_rl.controllers.gate.reserve import Reserve
from robo_rl.controllers.gate.safety import Inputs, Output

FIRST_STEPS = 25
"""Steps before the robot may be armed: the first calls of everything are slow."""
AWAITED = (Reason.OPERATOR_LOST, Reason.CLOCK, Reason.SIGNAL_MISSING, Reason.SIGNAL_STALE)
"""What is wrong before all signals have come, and goes by itself."""


class Stepped(Protocol):
    """What it sees of a step."""

    @property
    def number(self) -> int: ...

    @property
    def output(self) -> Output: ...

    @property
    def inputs(self) -> Inputs: ...

    @property
    def refused(self) -> str: ...


class AutomaticStart:
    """One ARM when all signals are there, however late they come; ACTIVATE when the robot is in its start pose.

    What the gate or the driver refuses, or stops, is a person's then.
    """

    def __init__(self) -> None:
        self.waiting = ""
        """What has to come first, where that has changed in this step."""
        self._lacking = ""
        self._asked = self._over = False

    def end(self) -> None:
        """A person has stopped the robot: ask for nothing more."""
        self._over = True

    def request(self, step: Stepped, reserve: Reserve, anew: bool = False) -> Request:
        """What to ask after a step. ``anew``: a robot that was disarmed is armed again, for its next episode."""
        self.waiting, output = "", step.output
        self._over |= bool(step.refused) or bool(output.events & Event.FAULTED)
        self._over |= bool(output.events & Event.REFUSED) and output.state == State.IDLE
        if step.number < FIRST_STEPS or self._over:
            return Request.NONE
        if output.state == State.READY:
            self._asked = True
            return Request.ACTIVATE if reserve.arrived else Request.NONE
        if output.state != State.IDLE or (self._asked and not (anew and output.events & Event.DISARMED)):
            return Request.NONE
        problem = reserve.obstacle(step.inputs)
        lacking = explain(reserve.config, problem) if problem.reason in AWAITED else ""
        self.waiting, self._lacking = (lacking if lacking != self._lacking else ""), lacking
        self._asked = not lacking
        return Request.NONE if lacking else Request.ARM
