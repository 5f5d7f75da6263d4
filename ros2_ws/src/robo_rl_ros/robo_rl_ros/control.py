"""The control thread: waits for its time, steps the runner, hands the command on. Nothing of ROS here.

A thread of its own on a monotonic clock, so that no executor, timer or service can delay a step. Whatever goes
wrong in it ends in the safe command, again and again, until the process ends.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from controllers.gate_codes import Event, Reason, Request, State
from robo_rl_ros.runner import Decision, PolicyRunner
from robo_rl_ros.scheduler import StepScheduler
from robo_rl_ros.signal_buffer import SignalBuffer

ANSWER_TIME, ANSWER_TIME_SIMULATED = 1.0, 10.0
"""s of real time that a request waits for the step that decides on it; simulated time may run slowly."""
DANGEROUS = Request.ARM | Request.ACTIVATE | Request.RESET
"""Requests that must not be carried out any more when the one who asked was told that they were not."""
STANDSTILL = 0.5
"""s of real time without any message after which simulated time counts as standing still."""
AWAITED = (Reason.OPERATOR_LOST, Reason.CLOCK, Reason.SIGNAL_MISSING, Reason.SIGNAL_STALE)
"""What is wrong before all messages have come, and goes by itself."""
GRACE, GRACE_AGAIN = 0.5, 0.05
"""s of real time that a step of simulated time waits for the signals that belong to it; where the last step waited in
vain, the shorter one."""


def monotonic_us() -> int:
    """µs of the monotonic clock, which no one can set."""
    return time.monotonic_ns() // 1000


class Control:
    """Steps a runner on a signal buffer. ``send`` is called with every command (M,) that the mode allows."""

    def __init__(
        self,
        runner: PolicyRunner,
        buffer: SignalBuffer,
        send: Callable[[np.ndarray], None],
        note: Callable[[Decision], None],
        clock: Callable[[], int] = monotonic_us,
        ticking: bool = True,
        constants: Mapping[str, np.ndarray] | None = None,
        perishable: Sequence[str] = (),
        lasting: float = 0.5,
    ) -> None:
        """``note`` sees every decision after its command was sent. ``ticking``: the clock runs by itself; else it

        is moved by messages, as simulated time is. ``constants`` stand in for signals that nobody sends. The signals
        ``perishable``, velocities that an operator wants, are zero when older than ``lasting`` s: who is silent wants
        nothing.
        """
        self.runner, self.buffer, self.send, self.note = runner, buffer, send, note
        self.clock, self.ticking, self.constants = clock, ticking, dict(constants or {})
        self._perishable = {name: np.zeros(runner.contract.signal(name).size, np.float32) for name in perishable}
        self._lasting = round(1e6 * lasting)
        self.scheduler = StepScheduler(runner.config.period)
        self.enabled = False
        """Whether commands may leave at all: the node is active."""
        self.intact = True
        self.broken = ""
        """The error that ended the control loop; "" while it runs."""
        self.cause = ""
        """Why this program itself asked for a stop; "" if it did not."""
        self._decision: Decision | None = None
        """That of the last step."""
        self._last = -1
        """µs, the time of the last step."""
        self._in_step = True
        self._requests = Request.NONE
        self._answer: Decision | None = None
        self._answer_time = ANSWER_TIME if ticking else ANSWER_TIME_SIMULATED
        self._heard = Request.NONE
        """What the step of ``_answer`` was asked."""
        self._answered = threading.Condition()
        self._running = True
        self._thread = threading.Thread(target=self._run, name="control", daemon=True)

    def start(self) -> None:
        """Begin to step."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; its last act is the safe command."""
        self._running = False
        with self.buffer.changed:
            self.buffer.changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def halt(self, cause: str) -> None:
        """Stop for a reason that the gate has no eyes for, such as a recorder that can't write."""
        self.cause = self.cause or cause
        with self._answered:
            self._requests |= Request.STOP

    def request(self, request: Request) -> Decision | None:
        """Ask the gate; the decision of the step that heard it, or None if none came in time.

        What nobody heard in time is taken back, unless it makes the robot safer.
        """
        with self._answered:
            self._heard = Request.NONE
            self._requests |= request
            if self._answered.wait_for(lambda: request in self._heard, timeout=self._answer_time):
                return self._answer
            self._requests &= ~(request & DANGEROUS)
            return None

    def lacking(self) -> str:
        """What of signals, set-points and clock is not there yet, so that arming has to wait; "" if nothing."""
        absent, decision = self.buffer.absent(), self._decision
        if absent:
            topics = (f"{topic} (for {', '.join(map(repr, names))})" for topic, names in absent.items())
            return "; ".join([f"nothing has come on {', '.join(topics)}", *self.buffer.complaints()])
        if decision is None:
            return "the control loop has not begun to step" + ("" if self.ticking else "; does /clock come?")
        problem = self.runner.obstacle(decision.inputs)
        return "; ".join([self.runner.explain(problem), *self.buffer.complaints()]) if problem.reason in AWAITED else ""

    def _run(self) -> None:
        try:
            while self._running:
                if (now := self._wait()) is not None:
                    self._step(now)
            self._send_safe()
        except Exception:  # whatever it is, the robot must not be left with its last command
            self.broken = traceback.format_exc(limit=3)
            while self._running:
                self._send_safe()
                time.sleep(self.runner.contract.control_period)

    def _wait(self) -> int | None:
        """The time of the step that is due; None if something changed before that."""
        with self.buffer.changed:
            now = self.clock()
            if now < self._last:  # a clock that was set back: the gate must see it, now and not when it is due
                self.scheduler = StepScheduler(self.runner.config.period)
            due = self.scheduler.due(self.buffer.fresh or not self.ticking)
            if now < due:
                heard = self.buffer.changed.wait((due - now) * 1e-6 if self.ticking else STANDSTILL)
                if heard or self.ticking or not self._requests & ~DANGEROUS:
                    return None  # else simulated time has ended, which must not keep anybody from stopping the robot
            elif not self.ticking:  # simulated time stands still while the signals of its tick are on their way
                grace = GRACE if self._in_step else GRACE_AGAIN
                self._in_step = self.buffer.changed.wait_for(self._is_in_step, timeout=grace)
                now = self.clock()
            self._samples, self._operator = self.buffer.take()
            return now

    def _is_in_step(self) -> bool:
        """Whether all signals are there, and the clock that belongs to them."""
        newest = max((stamp for _, stamp in self.buffer.samples.values()), default=0)
        return self.buffer.fresh and newest <= self.clock()

    def _step(self, now: int) -> None:
        self.scheduler.stepped(now)
        self._last = now
        with self._answered:
            requests, self._requests = self._requests, Request.NONE
        samples = {**{name: (value, now) for name, value in self.constants.items()}, **self._samples}
        for name, nothing in self._perishable.items():
            if name in samples and now - samples[name][1] > self._lasting:
                samples[name] = nothing, now
        decision = self.runner.step(now, samples, requests, self._operator, self.intact)
        if decision.send is not None and self.enabled:
            self.send(decision.send)
        self.runner.finish_step()
        if decision.output.events & Event.WAS_RESET:
            self.cause = ""
        elif decision.doubt and decision.output.state == State.FAULT:
            self.cause = self.cause or decision.doubt
        if requests:
            with self._answered:
                self._answer, self._heard = decision, requests
                self._answered.notify_all()
        self._decision = decision
        self.note(decision)

    def _send_safe(self) -> None:
        if self.enabled and self.runner.publishes:
            self.send(self.runner.safe)

    def verdict(self, decision: Decision | None, wanted: State) -> tuple[bool, str]:
        """Whether a request led to the state ``wanted``, and a sentence."""
        if decision is None:
            return False, f"the control loop did not answer within {self._answer_time:g} s" + (
                "" if self.ticking else " of real time; does /clock come?"
            )
        output = decision.output
        if output.events & Event.REFUSED or output.state != wanted:
            why = decision.doubt or self.explain(decision)
            return False, f"refused, the gate is {output.state.name}: {why}"
        return True, f"the gate is {output.state.name}"

    def explain(self, decision: Decision) -> str:
        """The decision's problem as a sentence, with what else is known about its cause."""
        parts = [self.runner.explain(decision.output.problem)]
        if decision.output.problem.reason:
            parts += [self.cause] if self.cause else []
            parts += self.buffer.complaints()
        return "; ".join(parts)
