"""What is common to everything that runs a robot by its session: the steps, requests, and the way out.

    class Loop(Supervisor): …            brings a clock, samples and a way to the actuators
    supervisor.request(Request.STOP)     from any thread
    supervisor.leave()                   stop the robot as its contract says, and go on no more
    supervisor.left.wait()               the stop has come to its end, or has had its time

While the policy hangs, a watchdog makes the steps: the gate goes on without a command, answers requests, and stops the
robot. An error in a step ends in a stop as well, and steps of the gate alone go on. A stop on the way out is waited for
as long as the slowest move takes; who asks for the end a second time does not wait. What is left before its stop has
come to its end gets the last resort: off what can be off, the rest as it was commanded last.
"""

from __future__ import annotations

import contextlib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from robo_rl.controllers.gate.codes import Request, Source, State
from robo_rl.controllers.gate.config import NEVER, SLOW_TIME
from robo_rl.deploy.robot.enabling import ENDING
from robo_rl.deploy.robot.session import Decision, Proposal, Samples, Session
from robo_rl.deploy.robot.watchdog import Watchdog

AWAKENING = Request.ARM | Request.ACTIVATE | Request.RESET
"""Requests after which a robot may move; they are not heard any more on the way out."""
UNHEARD = 1.0
"""s after which a second request to end is obeyed, though no step has heard the first one."""
HANGING = 0.5
"""s that the last resort waits for a call of the robot that is at work."""


class SignalSafeEvent(threading.Event):
    """An event that a handler of signals may set or clear: the thread that it interrupts may be in the middle of that,
    such as in the handler of an earlier signal, and would wait for itself with the lock of a plain event."""

    def __init__(self) -> None:
        super().__init__()
        self._cond = threading.Condition(threading.RLock())


class Supervisor(ABC):
    """See the module's text. The abstract methods are called by the thread that makes the step."""

    def __init__(self, session: Session, period: float, clock: Any = time) -> None:
        """``period``: what counts as a control period for the watchdog, in s of real time. ``clock`` does what ``time``
        does: the time that a stop may take passes by it.
        """
        self.session, self.clock = session, clock
        self.watchdog = Watchdog(period, self._step_without_policy, hung=self._hung)
        self.error: BaseException | None = None
        """The first one of a step."""
        self.left = SignalSafeEvent()
        """On the way out: whether nothing needs to be sent any more."""
        self._samples: Samples = {}
        self._operator = NEVER
        self._requests, self._answered = Request.NONE, threading.Condition()
        self._robot = threading.RLock()
        """Held while the robot is read or written."""
        self._sent = False
        """Whether the gate's answer in this step is."""
        self._source = Source.SILENT
        """What was sent last is made of."""
        self._closed = self._ending = self._parted = False
        self._latest = float("inf")
        """s of the clock at which a stop on the way out has had its time."""
        self._asked = float("inf")
        """s of real time of the first request to end."""

    # --- what the robot's side brings -------------------------------------------------------------------------------

    @abstractmethod
    def _wait(self) -> int | None:
        """Until a step is due: its time (µs); None: look again whether there is to be one."""

    @abstractmethod
    def _at_once(self) -> int:
        """The time (µs) of a step that is made now."""

    @abstractmethod
    def _read(self, now: int) -> tuple[Samples, int]:
        """The newest signals, and the time (µs) of the operator's last set-point."""

    @abstractmethod
    def _write(self, command: np.ndarray | None, source: Source) -> None:
        """Send a command (M,); None: nothing is to be sent."""

    def _write_last(self, command: np.ndarray, source: Source) -> None:
        """The last resort, for a robot that is left before its stop has come to its end."""
        self._write(command, source)

    @abstractmethod
    def _note(self, decision: Decision, answered: bool, requests: Request) -> None:
        """After its command was sent. ``answered``: whether the policy did; ``requests``: what the step heard."""

    @abstractmethod
    def _failed(self, error: BaseException) -> None:
        """An error of a step: ask for a stop."""

    def _hung(self) -> None:  # noqa: B027  most robots have nothing beside their hanging call
        """A stop was asked for while a call of the robot hangs, from another thread: what can be done beside it."""

    @property
    def _intact(self) -> bool:
        """Whether the bundle's file is still what was verified."""
        return True

    # --- from outside -----------------------------------------------------------------------------------------------

    def ask(self, request: Request) -> None:
        """Ask the gate, in the next step, which does not wait for a policy that is late where that ends something."""
        with self._answered:
            self._requests |= request
        if request & ENDING:
            self.watchdog.hurry()

    def end(self) -> None:
        """Leave in the next step; a second time, do not wait for the end of the stop."""
        if self._closed or time.monotonic() > self._asked + UNHEARD:
            self.left.set()
        self._asked = min(self._asked, time.monotonic())
        self._ending = True
        self.ask(Request.DISARM)

    def leave(self, request: Request = Request.DISARM) -> None:
        """Stop the robot for good: nothing wakes it any more, and what is being enabled ends as it was before."""
        if not self._closed:
            self._closed = True
            if self.session.enabling is not None:
                self.session.enabling.close()
            self._begin_stop(request)

    def _begin_stop(self, request: Request) -> None:
        """``left`` is set when the stop has come to its end, or has had its time."""
        self._latest = self._seconds() + SLOW_TIME
        self.ask(request)

    def resume(self) -> None:
        """Go on after a stop that was not for good."""
        self._latest = float("inf")
        self.left.clear()

    @property
    def leaving(self) -> bool:
        """Whether the robot is on the way out."""
        return self._latest < float("inf")

    # --- the steps --------------------------------------------------------------------------------------------------

    def _step(self, now: int) -> None:
        self._take_samples(now)
        self.watchdog.begin()
        proposal = self.session.propose(now, self._samples)
        if self.watchdog.end():
            self._decide(now, proposal)

    def _step_without_policy(self) -> None:
        """A step of the gate alone. What can't even do that sends what is left to send."""
        self._sent = False
        try:
            now = self._at_once()
            with contextlib.suppress(Exception):  # then the signals grow old
                self._take_samples(now)
            self._decide(now, None)
        except Exception as error:
            self._failed(error)
            if not self._sent:
                self._last_resort(self._write)
            self._see_whether_left()

    def _take_samples(self, now: int) -> None:
        with self._robot:
            self._samples, self._operator = self._read(now)

    def _decide(self, now: int, proposal: Proposal | None) -> None:
        if self._ending:
            self.leave()
        with self._answered:
            requests, self._requests = self._requests, Request.NONE
        if self._closed:
            requests &= ~AWAKENING
        session = self.session
        decision = session.decide(now, self._samples, proposal, requests, self._operator, self._intact)
        with self._robot:
            if not self._parted:
                self._write(decision.send, decision.output.source)
        self._sent, self._source = True, decision.output.source
        self.watchdog.answered()
        session.finish_step()
        try:
            self._note(decision, proposal is not None, requests)
        finally:
            self._see_whether_left()

    # --- the way out ------------------------------------------------------------------------------------------------

    @property
    def _at_rest(self) -> bool:
        return self.session.gate.state in (State.IDLE, State.FAULT) and self.session.reserve.at_rest

    def _see_whether_left(self) -> bool:
        """Whether the stop has come to its end, or has had its time."""
        over = self.leaving and (self._at_rest or self._seconds() > self._latest)
        if over:
            self.left.set()
        return over

    def _last_resort(self, write: Callable[[np.ndarray, Source], None]) -> None:
        """What to send where not even the gate can be asked; nothing while a call of the robot hangs."""
        if not self._robot.acquire(timeout=HANGING):
            return
        try:
            command = self.session.last_resort
            if command is not None and not self._parted:
                with contextlib.suppress(Exception):
                    write(command, self.session.gate.reaction)
        finally:
            self._robot.release()

    def _part(self) -> None:
        """Send no more; before that, the last resort to a robot whose stop has not come to its end, unless it is what
        was sent last: damping has no end.
        """
        gate, left = self.session.gate, self.session.last_resort
        told = left is not None and self._source == gate.reaction and np.array_equal(left, gate.command)
        if not self._at_rest and not told:
            self._last_resort(self._write_last)
        self._parted = True

    def _seconds(self) -> float:
        return self.clock.monotonic_ns() / 1e9
