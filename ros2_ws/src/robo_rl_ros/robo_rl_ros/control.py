"""The control thread: waits for its time, makes a step of the session, sends the command. Nothing of ROS here.

A thread of its own on a monotonic clock, so that no executor, timer or service can delay a step. What goes wrong in it
ends in a stop, again and again, until the process ends.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from robo_rl.controllers.gate.codes import UNANSWERED, Event, Problem, Reason, Request, Source, State
from robo_rl.controllers.gate.config import SLOW_TIME
from robo_rl.deploy.robot.automatic import AWAITED
from robo_rl.deploy.robot.drivers.driver import ForLoop
from robo_rl.deploy.robot.session import Decision, Proposal, Samples, Session
from robo_rl.deploy.robot.supervisor import AWAKENING, Supervisor
from robo_rl.ros.scheduler import StepScheduler
from robo_rl.ros.signal_buffer import SignalBuffer

ANSWER_TIME, ANSWER_TIME_SIMULATED = 1.0, 10.0
"""s of real time that a request waits for the step that decides on it; simulated time may run slowly."""
LOOK = 0.05
"""s between two looks at what else there is to do, while a request waits for its answer."""
STANDSTILL = 0.5
"""s of real time without any message after which simulated time counts as standing still."""
GRACE, GRACE_AGAIN = 0.5, 0.05
"""s of real time that a step of simulated time waits for the signals that belong to it; where the last step waited in
vain, the shorter one."""
HOW_TO_BE_HEARD = (
    "; set-points and ~/heartbeat tell that the operator is there, one of them at least every {:g} s: start "
    "'robo-rl ros teleop' or 'robo-rl ros panel'"
)
PATIENCE = 1.0
"""s of real time that count as a control period for the watchdog where time is simulated."""


def monotonic_us() -> int:
    """µs of the monotonic clock, which no one can set."""
    return time.monotonic_ns() // 1000


class Control(Supervisor):
    """Steps a session on a signal buffer. ``send`` is called with every command (M,) that the mode allows."""

    def __init__(
        self,
        runner: Session,
        buffer: SignalBuffer,
        send: Callable[[np.ndarray], None],
        note: Callable[[Decision], None],
        clock: Callable[[], int] = monotonic_us,
        ticking: bool = True,
        constants: Mapping[str, np.ndarray] | None = None,
        perishable: Sequence[str] = (),
        lasting: float = 0.5,
        robot: ForLoop | None = None,
        background: bool = False,
    ) -> None:
        """``note`` sees every decision after its command was sent. ``ticking``: the clock runs by itself; else it

        is moved by messages, as simulated time is. ``constants`` replace signals without messages. The signals
        ``perishable``, velocities that an operator wants, are zero when older than ``lasting`` s: who is silent wants
        nothing. ``robot``: a driver that measures signals, and gets commands, itself; ``background``: its actuators
        are enabled in a thread, not within a step.
        """
        super().__init__(runner, runner.contract.control_period if ticking else PATIENCE)
        self.runner, self.buffer, self.send, self.note = runner, buffer, send, note
        self.now, self.ticking, self.constants = clock, ticking, dict(constants or {})
        self._perishable = {name: np.zeros(runner.contract.signal(name).size, np.float32) for name in perishable}
        self._lasting = round(1e6 * lasting)
        self.robot = robot
        if robot is not None:
            robot.enabling.background = background
            runner.enabling = robot.enabling
        self.measured: Samples = {}
        """What the driver measured last."""
        self.scheduler = StepScheduler(runner.config.period)
        self.enabled = False
        """Whether commands may leave at all: the node is active."""
        self.intact = True
        self.broken = ""
        """The error that ended the control loop; "" while it runs."""
        self.cause = ""
        """Why this program itself requested a stop; "" if it did not."""
        self._decision: Decision | None = None
        """That of the last step."""
        self._taken: Samples = {}
        """From the buffer, for the step that is due."""
        self._last = -1
        """µs, the time of the last step."""
        self._in_step = True
        self._answers: dict[Request, Decision] = {}
        """By request, the step that heard it last."""
        self._arming = False
        """Whether a request to arm waits until the actuators are enabled."""
        self._answer_time = ANSWER_TIME if ticking else ANSWER_TIME_SIMULATED
        self._running = True
        self._thread = threading.Thread(target=self._run, name="control", daemon=True)

    def start(self) -> None:
        """Begin to step."""
        self._thread.start()
        self.watchdog.start()

    def stop(self) -> bool:
        """End the threads; False if policy or driver hold their own for ever. What is being enabled ends disabled."""
        self._running = False
        with self.buffer.changed:
            self.buffer.changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout=0.5 if self.watchdog.waited else 5.0)
        self.watchdog.stop()
        left = self.robot is None or self.robot.enabling.leave()
        return left and not self._thread.is_alive()

    def enable(self) -> None:
        """Commands may leave."""
        with self._answered:  # a step that ends just now must not take it back
            self.resume()
            self.enabled = True

    def retire(self, wait: bool = False) -> None:
        """Disarm; commands leave until the stop has come to its end, or for as long as the slowest move takes. ``wait``
        for that, and leave the robot for good.
        """
        if not self.enabled:
            return
        if wait:
            self.leave()
        else:
            self._begin_stop(Request.DISARM)
        heard = self.request(Request.DISARM)
        if wait and heard is not None:
            self.left.wait(SLOW_TIME + 1.0)
        if wait:
            self._part()
        elif heard is None:
            self._last_resort(self._write)
        if wait or heard is None:
            self.enabled = False

    def halt(self, cause: str) -> None:
        """Stop for a reason that the gate has no eyes for, such as a recorder that can't write."""
        self.cause = self.cause or cause
        super().ask(Request.HALT)

    def request(self, request: Request, meanwhile: Callable[[], None] = lambda: None) -> Decision | None:
        """Ask the gate; the decision of the step that heard it, or None if none came in time.

        A request that was not processed in time is withdrawn, unless it makes the robot safer. While actuators are
        being enabled the answer takes as long as they do, and ``meanwhile`` is called again and again.
        """
        self.ask(request)
        end = time.monotonic() + self._answer_time
        while time.monotonic() < end:
            with self._answered:
                if self._answered.wait_for(lambda: request in self._answers, timeout=LOOK):
                    return self._answers[request]
                arming = self._arming and request & Request.ARM
            if arming:
                end = time.monotonic() + self._answer_time
                meanwhile()
        with self._answered:
            self._requests &= ~(request & AWAKENING)
            return self._answers.get(request)

    def ask(self, request: Request) -> None:
        """Ask the gate, without waiting for its answer."""
        with self._answered:
            self._answers.pop(request, None)
        super().ask(request)

    def lacking(self) -> str:
        """What of signals, set-points and clock is not there yet, so that arming has to wait; "" if nothing."""
        absent, decision = self.buffer.absent(), self._decision
        if absent:
            topics = (f"{topic} (for {', '.join(map(repr, names))})" for topic, names in absent.items())
            return "; ".join([f"no message on {', '.join(topics)}", *self.buffer.complaints()])
        if decision is None:
            return "the control loop has not begun to step" + ("" if self.ticking else "; does /clock come?")
        problem = self.runner.reserve.obstacle(decision.inputs)
        return "; ".join([self._explained(problem), *self.buffer.complaints()]) if problem.reason in AWAITED else ""

    def _run(self) -> None:
        try:
            while self._running:
                if (now := self._wait()) is not None:
                    self._step(now)
        except BaseException as error:  # whatever it is, the robot must not be left with its last command
            self._failed(error)
            while self._running:
                self._step_without_policy()
                time.sleep(self.runner.contract.control_period)

    def _wait(self) -> int | None:
        """The time of the step that is due; None if something changed before that."""
        with self.buffer.changed:
            now = self.now()
            if now < self._last:  # a clock that was set back: the gate must see it, before it is set forward again
                self.scheduler = StepScheduler(self.runner.config.period)
                self._taken, self._operator = self.buffer.take()
                return now
            fresh = None if self.robot is not None else self.buffer.fresh or not self.ticking
            due = self.scheduler.due(fresh)
            if now < due:
                heard = self.buffer.changed.wait((due - now) * 1e-6 if self.ticking else STANDSTILL)
                if heard or self.ticking or not self._requests & ~AWAKENING:
                    return None  # else simulated time has ended, which must not prevent a stop of the robot
            elif not self.ticking:  # simulated time stands still while the signals of its tick are on their way
                grace = GRACE if self._in_step else GRACE_AGAIN
                self._in_step = self.buffer.changed.wait_for(self._is_in_step, timeout=grace)
                now = self.now()
            self._taken, self._operator = self.buffer.take()
            return now

    def _is_in_step(self) -> bool:
        """Whether all signals are there, and the clock that belongs to them."""
        newest = max((stamp for _, stamp in self.buffer.samples.values()), default=0)
        return self.buffer.fresh and newest <= self.now()

    def _at_once(self) -> int:
        now = self.now()
        with self.buffer.changed:
            self._taken, self._operator = self.buffer.take()
        return now

    def _read(self, now: int) -> tuple[Samples, int]:
        self.scheduler.stepped(now)
        return self._with_constants(now, self._taken), self._operator

    def _with_constants(self, now: int, taken: Samples) -> Samples:
        if self.robot is not None:
            self.measured = self.robot.read(now)
        samples = {**{name: (value, now) for name, value in self.constants.items()}, **taken, **self.measured}
        for name, nothing in self._perishable.items():
            if name in samples and abs(now - samples[name][1]) > self._lasting:  # a clock may be set back
                samples[name] = nothing, now
        return samples

    def _decide(self, now: int, proposal: Proposal | None) -> None:
        self._last = now
        super()._decide(now, proposal)

    @property
    def _intact(self) -> bool:
        return self.intact

    def _note(self, decision: Decision, answered: bool, requests: Request) -> None:
        if decision.output.events & Event.ARMED:
            self.scheduler.begin(decision.time)
        if decision.output.events & Event.WAS_RESET:
            self.cause = ""
        elif decision.doubt and decision.output.state == State.FAULT:
            self.cause = self.cause or decision.doubt
        if not answered and decision.output.events & Event.FAULTED and decision.output.problem.reason in UNANSWERED:
            self.cause = self.cause or f"the policy had not answered after {1e3 * self.watchdog.waited:.0f} ms"
        self._answer(requests, decision)
        self._decision = decision
        self.note(decision)

    def _failed(self, error: BaseException) -> None:
        self.error = self.error or error
        self.broken = "".join(traceback.format_exception(error, limit=3))
        self.halt("the control loop broke")

    def _answer(self, requests: Request, decision: Decision) -> None:
        """Tell those who wait that the gate has heard their requests; ARM, once it is decided."""
        with self._answered:
            requests |= Request.ARM if self._arming else Request.NONE
            self._arming = self.robot is not None and not self.robot.enabling.settled
            heard = requests & ~Request.ARM if self._arming else requests
            self._answers |= {request: decision for request in Request if request & heard}
            self._answered.notify_all()

    def _see_whether_left(self) -> bool:
        """Who has left, or is retired, sends no more."""
        with self._answered:
            over = super()._see_whether_left()
            self.enabled = self.enabled and not over
        return over

    def _write(self, command: np.ndarray | None, source: Source) -> None:
        """To ``send`` while the node is active; to the driver, where there is one, as long as it is enabled, since a
        stop of some robots has no end.
        """
        if command is None:
            return
        if self.robot is not None:
            self.robot.write(self.runner.config.commands_by_name(command), source)
        if self.enabled:
            self.send(command)

    def _write_last(self, command: np.ndarray, source: Source) -> None:
        if self.robot is None or self.robot.goes_on:
            self._write(command, source)

    @property
    def stuck(self) -> str:
        """That the policy has not answered for too long; "" if it has."""
        waited = self.watchdog.waited
        return f"the policy has not answered for {waited:.1f} s" if waited else ""

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
        parts = [self._explained(decision.output.problem)]
        if decision.output.problem.reason:
            parts += [self.cause] if self.cause else []
            unanswered = decision.output.problem.reason in UNANSWERED and not self.cause
            parts += [self.runner.complaint] if unanswered and self.runner.complaint else []
            parts += self.buffer.complaints()
            parts += self.robot.driver.health().problems if self.robot is not None else ()
        return "; ".join(parts)

    def _explained(self, problem: Problem) -> str:
        lost, limit = problem.reason == Reason.OPERATOR_LOST, self.runner.contract.safety.operator_timeout
        return self.runner.explain(problem) + (HOW_TO_BE_HEARD.format(limit) if lost else "")
