"""The plain loop: a policy, its gate and a robot's driver, at the contract's rate, in one process without ROS.

    loop = Loop(Policy.load("policy.onnx", 100), driver)
    loop.request(Request.ARM)
    loop.run()                     until SIGINT, SIGTERM, an error, or ``seconds`` have passed

Every command that the driver gets is the gate's. Whatever ends the loop, the robot is stopped as its contract says,
from where it is, before ``run`` returns; a second signal does not wait for that. What the loop can't survive is a
driver that hangs, or the end of its process: robots need a dead-man's switch, which a stop while the driver hangs sets
off at once where the driver has one (``abandon``).
"""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from robo_rl.controllers.gate.codes import UNANSWERED, Event, Reason, Request, Source, explain
from robo_rl.controllers.gate.config import NEVER
from robo_rl.controllers.gate.safety import Inputs, Output
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.drivers.driver import ForLoop
from robo_rl.deploy.robot.intact import Watch
from robo_rl.deploy.robot.logs.logfile import StepRecord
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.deploy.robot.session import Decision, Proposal, Samples, Session
from robo_rl.deploy.robot.supervisor import Supervisor

LOOK = 10
"""Tenths of a second between two looks at the bundle's file."""
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

    # abandon(), which it need not have: as of ``robo_rl.deploy.robot.drivers.driver``


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
    began: int = 0
    """µs of real time, whatever clock ``time`` is of."""
    took: int = 0
    """µs of real time from its beginning until its command was sent."""

    @property
    def refused(self) -> str:
        """Why an ARM did not enable the actuators, in the step in which that is known."""
        return self.decision.refused

    def record(self) -> StepRecord:
        """As the recorder takes it."""
        return self.decision.record(self.mode, self.sentence)


class Loop(Supervisor):
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
        super().__init__(Session(policy, mode, blend_time), patience or policy.contract.control_period, clock)
        self.session.successor = successor
        self.reserve = self.session.reserve
        self.driver, self.note = driver, note
        self.enabling = self.session.enabling = driver.enabling if isinstance(driver, ForLoop) else None
        if self.enabling is not None:
            self.enabling.background = clock is time
        self._steps, self._before, self._faulted = 0, -1, False
        self._due, self._planned_end = 0.0, float("inf")
        """s of the clock: when the last step was due, and when to stop the robot."""
        self._began = self._took = 0
        """µs of real time: when this step began, and how long its command took."""
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
        self.ask(request)

    def run(self, seconds: float = float("inf")) -> int:
        """Step until the end; 0, or 1 if it ended in a fault. Raises what the driver or ``note`` raised."""
        self._planned_end = self._seconds() + seconds
        thread = threading.Thread(target=self._run, name="loop", daemon=True)
        interval = sys.getswitchinterval()
        sys.setswitchinterval(TURN)
        with self._signals():
            thread.start()
            self.watchdog.start()
            looks = 0
            while not self.left.wait(0.1):
                looks += 1
                if looks % LOOK == 0:
                    self._look_at_the_file()
            sys.setswitchinterval(interval)
            self.watchdog.stop()
            thread.join(timeout=1.0)
            self._part()
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
        self._due = self._seconds() - period
        try:
            while not self.left.is_set():
                now = self._wait()
                if not self.left.is_set():
                    self._step(now)
        except BaseException as error:
            self._failed(error)
            while not self.left.is_set():
                self._step_without_policy()
                self.clock.sleep(period)

    def _wait(self) -> int:
        self._due += self.policy.contract.control_period
        self._due = max(self._due, self._seconds())  # what was missed stays missed
        self.clock.sleep(max(0.0, self._due - self._seconds()))
        self._began = time.monotonic_ns() // 1000
        return self._at_once()

    def _at_once(self) -> int:
        return self.clock.monotonic_ns() // 1000

    def _read(self, now: int) -> tuple[Samples, int]:
        """With the time of the operator's last set-point; without set-points, that of the program."""
        samples = self.driver.read(now)
        names = [s.name for s in self.policy.contract.signals if s.source == "operator"]
        given = [samples[name][1] for name in names if name in samples]
        return samples, max(given, default=NEVER if names else now)

    def _decide(self, now: int, proposal: Proposal | None) -> None:
        if self._seconds() >= self._planned_end:
            self.leave()
        super()._decide(now, proposal)

    @property
    def _intact(self) -> bool:
        return not self._damage

    def _write(self, command: np.ndarray | None, source: Source) -> None:
        self.driver.write(None if command is None else self.session.config.commands_by_name(command), source)
        self._took = time.monotonic_ns() // 1000 - self._began

    def _write_last(self, command: np.ndarray, source: Source) -> None:
        if not isinstance(self.driver, ForLoop) or self.driver.goes_on:
            self._write(command, source)

    def _hung(self) -> None:
        getattr(self.driver, "abandon", lambda: None)()

    def _failed(self, error: BaseException) -> None:
        self.error = self.error or error
        self.leave(Request.HALT)

    def _note(self, decision: Decision, answered: bool, requests: Request) -> None:
        now, output, config, damage = decision.time, decision.output, self.session.config, self._damage
        waited = f"the policy has not answered for {1e3 * self.watchdog.waited:.0f} ms"
        complaint = self.session.complaint if answered else waited
        if output.events & Event.ARMED:  # the gate counts its periods from here
            self._due = max(self._due, now * 1e-6)
        if output.events & Event.FAULTED and not self.leaving:
            self._faulted = True
        parts = [explain(config, output.problem)] if output.problem.reason else []
        parts += [damage] if output.problem.reason == Reason.BUNDLE and damage else []
        parts += [self._late(now)] if output.problem.reason == Reason.OVERRUN else []
        parts += [decision.doubt] if decision.doubt else []
        parts += [complaint] if complaint and output.problem.reason in UNANSWERED else []
        self._steps, self._before = self._steps + 1, now
        told, mode = "; ".join(parts), self.session.mode
        step = Step(now, output, told, self._steps - 1, decision.inputs, decision.state, decision, mode)
        self.note(dataclasses.replace(step, began=self._began, took=self._took))

    def _late(self, now: int) -> str:
        period = 1e3 * self.policy.contract.control_period
        after = "" if self._before < 0 else f", {(now - self._before) / 1e3:.0f} ms after the one before it"
        return (
            f"step {self._steps} began at {now / 1e6:.3f} s{after}, where the period is {period:g} ms: the computer "
            "was busy; run the loop on a core of its own (taskset) at a real-time priority (chrt -f 50)"
        )

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
