"""The plain loop: a policy, its gate and a robot's driver, at the contract's rate, in one process without ROS.

    loop = Loop(Policy.load("policy.onnx", 100), driver)
    loop.request(Request.ARM)
    loop.run()                     until SIGINT, SIGTERM, an error, or ``seconds`` have passed

Every command that the driver gets is the gate's. Whatever ends the loop, the robot is stopped as its contract says,
from where it is, before ``run`` returns; a second signal does not wait for that. While a policy hangs, a watchdog
makes the steps. What the loop can't survive is a driver that hangs, or the end of its process: robots need a
dead-man's switch.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from robo_rl.controllers.gate.codes import UNANSWERED, Event, Reason, Request, Source, State, explain
from robo_rl.controllers.gate.config import NEVER, SLOW_TIME
from robo_rl.controllers.gate.safety import Inputs, Output
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.drivers.driver import ForLoop
from robo_rl.deploy.robot.intact import Watch
from robo_rl.deploy.robot.logs.logfile import StepRecord
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.deploy.robot.session import Decision, Proposal, Session
from robo_rl.deploy.robot.watchdog import Watchdog

Samples = Mapping[str, tuple[np.ndarray, int]]
"""By name of the signal: its newest value, in the contract's order and unit, and when it was measured (µs)."""

AWAKENING = Request.ARM | Request.ACTIVATE | Request.RESET
"""Requests that are not heard any more while the loop ends."""
LOOK = 10
"""Tenths of a second between two looks at the bundle's file."""
UNHEARD = 1.0
"""s after which a second request to end is obeyed, though no step has heard the first one."""
TURN = 5e-4
"""s after which a thread that only computes lets another one have its turn."""


class Driver(Protocol):
    """What speaks a robot's own protocol. None of its methods may take long: nothing watches over them."""

    def read(self, now: int) -> Samples:
        """The newest signals, with stamps of the clock that ``now`` (µs) is of. What has never come is left out."""

    def write(self, commands: Mapping[str, np.ndarray] | None, source: Source) -> None:
        """Send commands, (k,) by name, and what they are made of; None: the actuators are disabled, the robot was not
        armed since power-up.
        """


@dataclass(frozen=True)
class Step:
    """What one step came to."""

    time: int
    output: Output
    sentence: str
    """What is wrong; "" if nothing is."""
    number: int
    """Steps before it."""
    inputs: Inputs
    memory: np.ndarray
    """(S,) the policy's, before it."""
    decision: Decision
    mode: str = "live"
    """Of ``robo_rl.deploy.robot.session.MODES``."""
    took: int = 0
    """µs from its beginning until its command was sent."""

    @property
    def refused(self) -> str:
        """Why an ARM did not enable the actuators, in the step in which that is known."""
        return self.decision.refused

    def record(self) -> StepRecord:
        """As the recorder takes it."""
        return self.decision.record(self.mode, self.sentence)


class Loop:
    """See the module's text."""

    def __init__(
        self,
        policy: Policy,
        driver: Driver,
        note: Callable[[Step], None] = lambda step: None,
        clock: Any = time,
        patience: float | None = None,
        successor: Callable[[], Policy | None] = lambda: None,
        mode: str = "live",
        blend_time: float = 5.0,
    ) -> None:
        """``note`` sees every step after its command was sent, and may ask for something.

        ``successor`` is asked between two steps for a policy of the same contract that is to go on, with the memory of
        the one before; None: there is no new one.

        ``clock`` does what ``time`` does; where it is another, ``patience`` is what counts as a control period for the
        watchdog, in s of real time. ``mode`` and ``blend_time`` as for ``robo_rl.deploy.robot.session.Session``.
        """
        self.session = Session(policy, mode, blend_time)
        self.session.successor = successor
        self.reserve = self.session.reserve
        self.driver, self.note, self.clock = driver, note, clock
        self.enabling = self.session.enabling = driver.enabling if isinstance(driver, ForLoop) else None
        if self.enabling is not None:
            self.enabling.background = clock is time
        self.watchdog = Watchdog(patience or policy.contract.control_period, self._step_without_policy)
        self.error: BaseException | None = None
        """What ended the loop, if it was an error."""
        self._requests, self._lock = Request.NONE, threading.Lock()
        self._samples: Samples = {}
        self._steps, self._before, self._faulted = 0, -1, False
        self._end = self._latest = float("inf")
        """s of the clock: when to stop the robot, and when to leave it, however far the stop is."""
        self._asked_to_end = float("inf")
        """s of real time."""
        self._ended = threading.Event()
        self._enabling_hangs = False
        self._damage = ""
        """What is wrong with the bundle's file."""
        self._file: Watch | None = None
        self._watched: Bundle | None = None
        self._look_at_the_file()

    @property
    def policy(self) -> Policy:
        """The one that is at work."""
        return self.session.policies.policy

    @property
    def samples(self) -> Samples:
        """The signals of the newest step."""
        return self._samples

    # --- from outside -----------------------------------------------------------------------------------------------

    def request(self, request: Request) -> None:
        """Ask the gate, in the next step. The loop itself asks for a stop when it ends."""
        with self._lock:
            self._requests |= request
        if request & (Request.STOP | Request.HALT | Request.DISARM):
            self.watchdog.hurry()

    def end(self) -> None:
        """Stop the robot, and let ``run`` return when that is done; a second time, let it return at once. What is being
        enabled ends disabled.
        """
        if self._latest < float("inf") or time.monotonic() > self._asked_to_end + UNHEARD:
            self._ended.set()
        self._asked_to_end = min(self._asked_to_end, time.monotonic())
        self._end = -float("inf")
        self.request(Request.DISARM)

    def run(self, seconds: float = float("inf")) -> int:
        """Step until the end; 0, or 1 if it ended in a fault. Raises what the driver or ``note`` raised."""
        self._end = self._now() + seconds
        thread = threading.Thread(target=self._run, name="loop", daemon=True)
        interval = sys.getswitchinterval()
        sys.setswitchinterval(TURN)
        with self._signals():
            thread.start()
            self.watchdog.start()
            looks = 0
            while not self._ended.wait(0.1):
                looks += 1
                if looks % LOOK == 0:
                    self._look_at_the_file()
            sys.setswitchinterval(interval)
            self.watchdog.stop()
            thread.join(timeout=1.0)
            self._enabling_hangs = self.enabling is not None and not self.enabling.leave()
        if self.error is not None:
            raise self.error
        return 1 if self._faulted else 0

    def _look_at_the_file(self) -> None:
        """Whether it is still what was verified; a successor has one of its own."""
        bundle = getattr(self.policy, "bundle", None)
        if bundle is None:
            return
        if self._file is None or self._watched is not bundle:
            self._file, self._watched = Watch(bundle), bundle
        self._damage = "" if self._file.look() else self._file.complaint

    @property
    def stuck(self) -> bool:
        """Whether policy or driver still hold a thread: such a process can only be ended by ``os._exit``."""
        return self.watchdog.waited > 0 or self._enabling_hangs

    # --- the steps --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        period = self.policy.contract.control_period
        due = self._now()
        try:
            while not self._ended.is_set():
                self._step()
                due = due + period if self._now() < due + period else self._now()  # what was missed stays missed
                self.clock.sleep(max(0.0, due - self._now()))
        except BaseException as error:
            self.error = error
            self._close()
            while not self._ended.is_set():
                self._step_without_policy()
                self.clock.sleep(period)

    def _step(self) -> None:
        now = self._microseconds()
        self._samples = self.driver.read(now)
        self.watchdog.begin()
        proposal = self.session.propose(now, self._samples)
        if self.watchdog.end():
            self._decide(now, proposal, self.session.complaint)

    def _step_without_policy(self) -> None:
        """A step of the gate alone. What can't even do that sends what is left to send."""
        now = self._microseconds()
        try:
            with contextlib.suppress(Exception):  # then the signals grow old
                self._samples = self.driver.read(now)
            self._decide(now, None, f"the policy has not answered for {1e3 * self.watchdog.waited:.0f} ms")
        except Exception as error:
            self.error = self.error or error
            self._close()
            with contextlib.suppress(Exception):
                left = self.session.last_resort
                commands = None if left is None else self.reserve.config.commands_by_name(left)
                self.driver.write(commands, self.reserve.gate.reaction)
            self._leave_in_time()

    def _decide(self, now: int, proposal: Proposal | None, complaint: str) -> None:
        if self._now() >= self._end:
            self._close(Request.DISARM)
        with self._lock:
            requests, self._requests = self._requests, Request.NONE
        if self._latest < float("inf"):
            requests &= ~AWAKENING
        session, config, damage = self.session, self.reserve.config, self._damage
        decision = session.decide(now, self._samples, proposal, requests, self._operator(now), not damage)
        output = decision.output
        self.driver.write(None if decision.send is None else config.commands_by_name(decision.send), output.source)
        took = self._microseconds() - now
        session.finish_step()
        if output.events & Event.FAULTED and self._latest == float("inf"):
            self._faulted = True
        parts = [explain(config, output.problem)] if output.problem.reason else []
        parts += [damage] if output.problem.reason == Reason.BUNDLE and damage else []
        parts += [self._late(now)] if output.problem.reason == Reason.OVERRUN else []
        parts += [decision.doubt] if decision.doubt else []
        parts += [complaint] if complaint and output.problem.reason in UNANSWERED else []
        self._steps, self._before = self._steps + 1, now
        told = "; ".join(parts)
        self.note(
            Step(now, output, told, self._steps - 1, decision.inputs, decision.state, decision, session.mode, took)
        )
        if self._latest < float("inf") and output.state in (State.IDLE, State.FAULT) and self.reserve.at_rest:
            self._ended.set()
        self._leave_in_time()

    def _late(self, now: int) -> str:
        period = 1e3 * self.policy.contract.control_period
        after = "" if self._before < 0 else f", {(now - self._before) / 1e3:.0f} ms after the one before it"
        return (
            f"step {self._steps} began at {now / 1e6:.3f} s{after}, where the period is {period:g} ms: the computer "
            "was busy; run the loop on a core of its own (taskset) at a real-time priority (chrt -f 50)"
        )

    def _close(self, request: Request = Request.HALT) -> None:
        """Stop the robot, and end the loop when that is done."""
        if self._latest == float("inf"):
            self._latest = self._now() + SLOW_TIME
            if self.enabling is not None:
                self.enabling.close()
            self.request(request)

    def _leave_in_time(self) -> None:
        if self._now() > self._latest:
            self._ended.set()

    def _operator(self, now: int) -> int:
        """The time of the operator's last set-point; without set-points, that of the program."""
        names = [s.name for s in self.policy.contract.signals if s.source == "operator"]
        return max((self._samples[name][1] for name in names if name in self._samples), default=NEVER if names else now)

    def _now(self) -> float:
        return self.clock.monotonic_ns() / 1e9

    def _microseconds(self) -> int:
        return self.clock.monotonic_ns() // 1000

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM stop the robot; a second one ends the loop at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        numbers = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, lambda *_: self.end()) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)
