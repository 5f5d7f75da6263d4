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
import dataclasses
import functools
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
from robo_rl.controllers.gate.reserve import Reserve
from robo_rl.controllers.gate.safety import Inputs, Output
from robo_rl.deploy.robot.drivers.driver import ForLoop
from robo_rl.deploy.robot.logs.logfile import StepRecord
from robo_rl.deploy.robot.runtime import Policy, SignalError
from robo_rl.deploy.robot.watchdog import Watchdog

Samples = Mapping[str, tuple[np.ndarray, int]]
"""By name of the signal: its newest value, in the contract's order and unit, and when it was measured (µs)."""

AWAKENING = Request.ARM | Request.ACTIVATE | Request.RESET
"""Requests that are not heard any more while the loop ends."""
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
    refused: str = ""
    """Why the driver refused to be enabled, in the step in which that is known."""
    took: int = 0
    """µs from its beginning until its command was sent."""

    def record(self) -> StepRecord:
        """As the recorder takes it."""
        given, now = self.inputs, time.time_ns()
        return StepRecord.of(given, self.output, self.memory, given.command, now, self.time, sentence=self.sentence)


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
    ) -> None:
        """``note`` sees every step after its command was sent, and may ask for something.

        ``successor`` is asked between two steps for a policy of the same contract that is to go on, with the memory of
        the one before; None: there is no new one.

        ``clock`` does what ``time`` does; where it is another, ``patience`` is what counts as a control period for the
        watchdog, in s of real time.
        """
        self.policy, self.driver, self.note, self.clock = policy, driver, note, clock
        self.successor = successor
        self.reserve = Reserve(policy.contract)
        self.enabling = driver.enabling if isinstance(driver, ForLoop) else None
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
            while not self._ended.wait(0.1):
                pass
            sys.setswitchinterval(interval)
            self.watchdog.stop()
            thread.join(timeout=1.0)
            self._enabling_hangs = self.enabling is not None and not self.enabling.leave()
        if self.error is not None:
            raise self.error
        return 1 if self._faulted else 0

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
        if (successor := self.successor()) is not None:
            successor.continue_from(self.policy)
            self.policy = successor
        now = self._microseconds()
        self._samples = self.driver.read(now)
        if self.reserve.gate.state != State.ACTIVE:
            self.policy.reset()  # it takes over without a past
        self.watchdog.begin()
        proposed, complaint, memory = None, "", self._memory()
        try:
            values = {name: value for name, (value, _) in self._samples.items()}
            ages = self.reserve.ages(self._samples, now)
            proposed = self.reserve.config.flat_command(self.policy.step(values, ages=ages))
        except SignalError as error:
            complaint = str(error)
        except Exception as error:  # whatever it is, a policy that fails is one without a command
            complaint = f"the policy failed: {error!r}"
        if self.watchdog.end():
            self._decide(now, proposed, complaint, memory)

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
                left = self.reserve.last_resort
                self.driver.write(
                    None if left is None else self.reserve.config.commands_by_name(left), self.reserve.gate.reaction
                )
            self._leave_in_time()

    def _decide(self, now: int, proposed: np.ndarray | None, complaint: str, memory: np.ndarray | None = None) -> None:
        if self._now() >= self._end:
            self._close(Request.DISARM)
        memory = self._memory() if memory is None else memory
        config, samples = self.reserve.config, self._samples
        with self._lock:
            requests, self._requests = self._requests, Request.NONE
        if self._latest < float("inf"):
            requests &= ~AWAKENING
        values, stamps = self.reserve.flat_signals(samples, now)
        given = Inputs(
            time=now,
            signals=values,
            stamps=stamps,
            command=proposed,
            command_stamp=now,
            operator_stamp=self._operator(now),
            bundle_intact=True,  # Policy.load has seen to it
        )
        if self.enabling is not None:
            requests = self.enabling.filter(
                requests, self.reserve.gate.state, functools.partial(self.reserve.obstacle, given)
            )
        by_name = {name: value for name, (value, _) in samples.items()}
        given = dataclasses.replace(given, requests=requests)
        given, output = self.reserve.step(given, by_name)
        if self.enabling is not None:
            self.enabling.decided(requests, output.state)
        silent = output.source == Source.SILENT
        self.driver.write(None if silent else config.commands_by_name(output.command), output.source)
        took = self._microseconds() - now
        self.reserve.finish(output, by_name)
        if output.events & Event.FAULTED and self._latest == float("inf"):
            self._faulted = True
        parts = [explain(config, output.problem)] if output.problem.reason else []
        parts += [self._late(now)] if output.problem.reason == Reason.OVERRUN else []
        refused = self.enabling.refusal if self.enabling is not None else ""
        parts += [f"the driver refused: {refused}"] if refused else []
        parts += [complaint] if complaint and output.problem.reason in UNANSWERED else []
        self._steps, self._before = self._steps + 1, now
        self.note(Step(now, output, "; ".join(parts), self._steps - 1, given, memory, refused, took))
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

    def _memory(self) -> np.ndarray:
        state = getattr(self.policy, "state", None)
        return self.policy.contract.initial_state if state is None else state[0]

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
