"""A robot behind its gate, for a program that commands it step by step: teleoperation, or another library's policy.

    driver.connect()
    with Gated(driver, own_contract(contract, driver)) as robot:
        robot.arm()                  actuators hold where they are
        robot.signals()              the newest measurements
        robot.send({"joint_position_target": target})     what was sent in fact: within limits and speed

However the program ends, the robot is stopped and its port is closed: at the end of the block, by an exception, by
Ctrl-C, SIGTERM or SIGHUP, or at the end of the interpreter without ``close``. Where the process is killed, the robot
does what its driver's ``silence`` and ``guard`` say.

The plain loop runs at the contract's rate in a thread, with the newest target in the policy's place. So gate, watchdog
and driver do what they do for a policy; what the gate finds ends the session, and every call says why. While the
program sends nothing, the last target holds.
"""

from __future__ import annotations

import atexit
import dataclasses
import math
import signal
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from robo_rl.contract import Contract
from robo_rl.controllers.gate.codes import Event, Request, State
from robo_rl.controllers.gate.config import NEVER
from robo_rl.deploy.robot.automatic import FIRST_STEPS
from robo_rl.deploy.robot.drivers.driver import Driver, ForLoop
from robo_rl.deploy.robot.enabling import LEAVING
from robo_rl.deploy.robot.loop import Loop, Step

PATIENCE = 5.0
"""s for what takes a few steps: arming, or the next command."""


class GateError(RuntimeError):
    """The gate has stopped the robot, or does not let it go. The message says why."""


def own_contract(contract: Contract, driver: Driver) -> Contract:
    """What a contract says of the robot alone: the signals that its driver measures, its commands, gains and times.

    A policy's own start pose, memory and envelope are left out, and what stops, holds.
    """
    signals = tuple(s for s in contract.signals if s.source == "sensor" and s.name in driver.measured)
    commands = tuple(
        dataclasses.replace(command, start=None, stop="hold", safe="hold") for command in contract.commands
    )
    safety = dataclasses.replace(
        contract.safety, envelope=(), collision=None, operator_timeout=None, on_fault="stop", tilt_limit=None
    )
    return dataclasses.replace(contract, signals=signals, commands=commands, state=(), safety=safety)


class Target:
    """In a policy's place: towards what was asked for last, from where the robot is, no faster than ``speed``."""

    def __init__(self, contract: Contract, speed: float) -> None:
        self.contract = contract
        self.wanted: dict[str, np.ndarray] = {}
        """(k,) by name of the command."""
        self.number = self.used = 0
        """Of the newest target, and of the one that the last step had."""
        self._change = {
            c.name: np.minimum(speed, c.rate or math.inf) * contract.control_period for c in contract.commands
        }
        self._last: dict[str, np.ndarray] = {}

    def reset(self) -> None:
        """It begins where the robot is."""
        self._last = {}

    def step(self, signals: Mapping[str, np.ndarray], ages: Any = None) -> dict[str, np.ndarray]:
        """The commands, by name."""
        self.used, wanted = self.number, self.wanted
        last = self._last or self.here(signals)
        self._last = {
            name: np.clip(wanted.get(name, value), value - self._change[name], value + self._change[name])
            for name, value in last.items()
        }
        return {name: value.astype(np.float32) for name, value in self._last.items()}

    def here(self, signals: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The commands that keep the robot where it is."""
        by_element = {
            (s.unit, element): signals[s.name][i]
            for s in self.contract.signals if s.name in signals
            for i, element in enumerate(s.elements)
        }  # fmt: skip
        return {
            c.name: np.clip([by_element[c.unit, element] for element in c.elements], c.lower, c.upper)
            for c in self.contract.commands
        }


class Gated:
    """See the module's text."""

    def __init__(
        self, driver: Driver, contract: Contract, speed: float = math.inf, clock: Any = time,
        patience: float | None = None,
    ) -> None:  # fmt: skip
        """``contract``: from ``own_contract``; ``speed``: the commands' unit per second, at which they change at most.
        ``clock`` and ``patience`` as for ``robo_rl.deploy.robot.loop.Loop``.
        """
        self.driver, self.contract = driver, contract
        self.target = Target(contract, speed)
        self._loop = Loop(self.target, ForLoop(driver, contract, {}), self._note, clock, patience)  # type: ignore[arg-type]
        self._thread = threading.Thread(target=self._run, name="gated robot", daemon=True)
        self._step: Step | None = None
        self._taken: tuple[int, Step | None] = 0, None
        """The number of a target, and the first step that sent what it asked for."""
        self._stepped = threading.Condition()
        self._why = self._refused = ""
        self._closed = False
        self._before: dict[int, Any] = {}
        """Handlers of signals that were there before."""

    def __enter__(self) -> Gated:
        """Run the loop."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the robot, whatever has happened."""
        self.close()

    def start(self) -> None:
        """Run the loop; nothing moves yet. The driver is connected already."""
        atexit.register(self.close)
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is signal.SIG_DFL:  # it would end the process without a word
                    self._before[number] = signal.signal(number, _leave)
        self._thread.start()
        self._wait(lambda step: step.number >= FIRST_STEPS, "the loop does not run")

    def arm(self) -> None:
        """Enable the actuators where they are, however long that takes. GateError, with the reason, where gate or
        driver don't.
        """
        self._refused = ""
        self._loop.request(Request.ARM)
        self._wait(
            lambda step: self._refused or (step.output.state != State.IDLE and self._loop.reserve.arrived),
            "it can't be armed",
        )
        if self._refused:
            raise GateError(f"it can't be armed: {self._refused}")

    def signals(self) -> dict[str, np.ndarray]:
        """The newest measurements, by name. GateError once the robot was stopped."""
        step = self._wait(lambda step: min(step.inputs.stamps) > NEVER, "not all signals have come")
        values, start, found = step.inputs.signals, 0, {}
        for one in self.contract.signals:
            found[one.name] = values[start : start + one.size].copy()
            start += one.size
        return found

    def send(self, commands: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Follow these targets (k,) by name; those left out keep their last. What was sent in the next step.

        ValueError for what is no target, GateError once the robot was stopped.
        """
        sizes = {c.name: len(c.elements) for c in self.contract.commands}
        for name, value in commands.items():
            if name not in sizes or np.shape(value) != (sizes[name],) or not np.isfinite(value).all():
                raise ValueError(f"the target {name}: {value}; expected finite numbers of {sizes}, by name")
        self.target.wanted = self.target.wanted | {
            c.name: np.clip(commands[c.name], c.lower, c.upper) for c in self.contract.commands if c.name in commands
        }
        self.target.number = number = self.target.number + 1
        if self._wait(lambda step: True, "").output.state == State.READY:
            self._loop.request(Request.ACTIVATE)
        self._wait(lambda step: self._taken[0] >= number, "the target is not taken")
        taken = self._taken[1]
        assert taken is not None
        return self._loop.reserve.config.commands_by_name(taken.output.command)

    @property
    def running(self) -> bool:
        """Whether the loop is."""
        return self._thread.is_alive()

    def close(self, release: bool = False) -> None:
        """Stop the robot where it is, and close its port. ``release``: make it passive; an arm falls."""
        if self._closed:
            return
        self._closed = True
        self._loop.end()
        if self._thread.is_alive():
            self._thread.join(timeout=2 * PATIENCE + LEAVING)
        try:
            if release:
                self.driver.disable()
        finally:
            self.driver.close()
            atexit.unregister(self.close)
            if threading.current_thread() is threading.main_thread():
                for number, handler in self._before.items():
                    signal.signal(number, handler)

    # ----------------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._loop.run()
        except Exception as error:  # the driver's: whoever waits is told
            with self._stepped:
                self._why = self._why or str(error)
                self._stepped.notify_all()

    def _note(self, step: Step) -> None:
        with self._stepped:
            self._step = step
            if step.output.state == State.ACTIVE and self.target.used > self._taken[0]:
                self._taken = self.target.used, step
            refused = step.refused or (step.output.events & Event.REFUSED and step.output.state == State.IDLE)
            if refused and not self._refused:
                self._refused = "; ".join(filter(None, (step.sentence, *self.driver.health().problems)))
            if step.output.state == State.FAULT and not self._why:
                self._why = "; ".join(filter(None, (step.sentence, *self.driver.health().problems)))
            self._stepped.notify_all()

    def _wait(self, until: Any, otherwise: str) -> Step:
        """For a step of which ``until`` holds."""
        with self._stepped:
            enabling = self._loop.enabling
            done: Any = False
            while not done:
                done = self._stepped.wait_for(
                    lambda: self._why or (self._step is not None and until(self._step)), timeout=PATIENCE
                )
                if enabling is None or enabling.settled:
                    break
            if self._why:
                raise GateError(f"the robot was stopped: {self._why}")
            if not done or self._step is None:
                sentence = self._step.sentence if self._step else ""
                raise GateError("; ".join(filter(None, (otherwise, sentence, *self.driver.health().problems))))
            return self._step


def _leave(number: int, frame: Any) -> NoReturn:
    """A signal that would end the process at once ends it as an exception does."""
    sys.exit(128 + number)
