"""Drivers against time: what each of them, and a driver of your own, must hold. ``robo-rl driver check`` runs it.

    for outcome in check(lambda: Bench(driver, policy, setpoints)):
        print(outcome.name, outcome.sentence or "passed")

Every check has a fresh bench: a driver on a robot, or better on an emulator, that can be connected. The plain loop runs
it, and between the two stands ``Watched``, which delays, refuses and loses what time may delay, refuse and lose, and
notes every call. The robot moves to its start pose and may follow its policy for a moment: suspend it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robo_rl.controllers.gate.codes import Event, Request, State
from robo_rl.deploy.robot.automatic import FIRST_STEPS, AutomaticStart
from robo_rl.deploy.robot.drivers.driver import Driver, DriverError, ForLoop, Mode, Samples
from robo_rl.deploy.robot.enabling import Power
from robo_rl.deploy.robot.loop import Loop, Step

PAUSES = (0.05, 0.5, 5.0)
"""s for which robot or computer stand still."""
LATE = 1.0
"""s after which the first sample comes."""
SLOW = 2.0
"""s that ``enable`` takes longer: a UR5e starts a program in seconds, a Franka recovers in one."""
LONGEST = 30.0
"""s, of the robot's clock, until the policy is at work."""
SETTLED = 1.0
"""s in which a robot that must not come on is watched."""
CAUSE = "a joint is outside of its range; move it inside, then arm"


@dataclass
class Bench:
    """A driver, not yet connected, and what it is run with."""

    driver: Driver
    policy: Any
    """A policy with the contract of the robot."""
    setpoints: Mapping[str, np.ndarray] = field(default_factory=dict)
    clock: Any = time
    """What ``time`` is, where the robot is emulated in a time of its own."""
    patience: float | None = None
    """As for ``robo_rl.deploy.robot.loop.Loop``."""
    moves: Callable[[], bool] | None = None
    """Whether the robot is in motion, where somebody beside the driver knows."""


@dataclass(frozen=True)
class Outcome:
    """What one check came to."""

    name: str
    sentence: str
    """What is wrong; "" where the driver passed."""


class Failed(Exception):
    """A check's sentence."""


class Watched:
    """A driver, delayed, refused and robbed by a check; it knows whether it is used as its protocol says."""

    def __init__(self, driver: Driver) -> None:
        self.inner = driver
        self.silence, self.guard, self.measured = driver.silence, driver.guard, driver.measured
        self.modes = getattr(driver, "modes", {})
        self.health = driver.health
        self.wait: Callable[[], None] = lambda: None
        """Before ``enable``."""
        self.refusal = ""
        self.lost = False
        """Whether no sample comes: it was never told, or stays as it was."""
        self.on = False
        self.calls: list[str] = []
        self.written: list[Mode] = []
        self._samples: Samples = {}
        self._lock = threading.Lock()

    def connect(self) -> Any:
        """As the driver's."""
        with self._alone("connect"):
            return self.inner.connect()

    def read(self, now: int) -> Samples:
        """As the driver's, or what was told before it was lost."""
        with self._alone("read"):
            samples = self.inner.read(now)
        if not self.lost:
            self._samples = dict(samples)
        return self._samples

    def enable(self) -> None:
        """Late, or refused."""
        with self._alone("enable"):
            self.wait()
            if self.refusal:
                raise DriverError(self.refusal)
            self.inner.enable()
            self.on = True

    def write(self, commands: Mapping[str, np.ndarray], mode: Mode) -> None:
        """As the driver's."""
        with self._alone("write"):
            if not self.on:
                raise Failed("write was called before enable had succeeded")
            self.written.append(mode)
            self.inner.write(commands, mode)

    def disable(self) -> None:
        """As the driver's."""
        with self._alone("disable"):
            self.on = False
            self.inner.disable()

    def close(self) -> None:
        """As the driver's."""
        self.calls.append("close")
        self.inner.close()

    @contextlib.contextmanager
    def _alone(self, what: str) -> Iterator[None]:
        self.calls.append(what)
        if not self._lock.acquire(blocking=False):
            raise Failed(f"{what} was called while another method was at work")
        try:
            yield
        finally:
            self._lock.release()


class Run:
    """A loop on a bench. ``act`` sees every step after ``--arm`` has."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.driver = bench, Watched(bench.driver)
        self.given = ForLoop(self.driver, bench.policy.contract, dict(bench.setpoints))
        self.steps: list[Step] = []
        self.automatic: AutomaticStart | None = AutomaticStart()
        self.act: Callable[[Step], None] = lambda step: None
        self.loop = Loop(bench.policy, self.given, self._note, bench.clock, bench.patience)

    def run(self, seconds: float) -> None:
        """Connect, run and close."""
        self.driver.connect()
        try:
            self.loop.run(seconds)
        finally:
            self.driver.close()
        require(not self.loop.stuck, "a call of the driver did not come to its end")

    def seconds(self, count: float) -> int:
        """Steps in so many s."""
        return round(count / self.bench.policy.contract.control_period)

    def _note(self, step: Step) -> None:
        self.steps.append(step)
        if self.automatic is not None:
            self.loop.request(self.automatic.request(step, self.loop.reserve))
        self.act(step)

    @property
    def enabled(self) -> int:
        """How often ``enable`` was called."""
        return self.driver.calls.count("enable")

    def first(self, state: State) -> int | None:
        """The number of the first step in a state."""
        return next((step.number for step in self.steps if step.output.state == state), None)

    def told(self) -> str:
        """What the loop and the driver said, for a check's sentence."""
        said = [step.sentence for step in self.steps if step.sentence]
        return "; ".join([*said[-1:], *self.bench.driver.health().problems][:3])


def require(true: object, sentence: str) -> None:
    """Failed with the sentence, unless it holds."""
    if not true:
        raise Failed(sentence)


def check(bench: Callable[[], Bench], names: Sequence[str] = ()) -> Iterator[Outcome]:
    """Every check of ``CHECKS``, or those named. ``bench()`` gives a fresh one."""
    for name, one in CHECKS.items():
        if names and name not in names:
            continue
        sentence = ""
        try:
            one(bench)
        except Failed as error:
            sentence = str(error)
        except Exception as error:
            sentence = f"it raised {error!r}"
        yield Outcome(name, sentence)


# --- the checks -----------------------------------------------------------------------------------------------------


def _works(bench: Callable[[], Bench]) -> None:
    run = Run(bench())
    run.act = lambda step: run.loop.end() if step.output.state in (State.ACTIVE, State.FAULT) else None
    run.run(LONGEST)
    require(run.first(State.ACTIVE) is not None, f"the policy did not take over: {run.told()}")
    require(run.enabled == 1, f"enable was called {run.enabled} times for one ARM")


def _slow(bench: Callable[[], Bench]) -> None:
    run = Run(bench())
    run.driver.wait = lambda: run.bench.clock.sleep(SLOW)
    run.act = lambda step: run.loop.end() if step.output.state in (State.ACTIVE, State.FAULT) else None
    run.run(LONGEST)
    require(run.first(State.ACTIVE) is not None, f"an enable of {SLOW:g} s more did not succeed: {run.told()}")
    require(run.first(State.FAULT) is None, f"it ended in a fault: {run.told()}")


def _refused(bench: Callable[[], Bench]) -> None:
    run = Run(bench())
    run.driver.refusal = CAUSE
    refused: list[int] = []

    def act(step: Step) -> None:
        if step.refused:
            refused.append(step.number)
            run.driver.refusal = ""  # a person has removed the cause
        if refused and step.number == refused[0] + run.seconds(SETTLED):
            require(run.given.enabling.power is Power.DISABLED, "the actuators came on when the cause had gone")
            run.loop.request(Request.ARM)
        if step.output.state in (State.READY, State.FAULT):
            run.loop.end()

    run.act = act
    run.run(LONGEST)
    require(refused and CAUSE in run.steps[refused[0]].sentence, "the refusal was not told")
    require(run.first(State.FAULT) is None, f"it ended in a fault: {run.told()}")
    require(run.first(State.READY) is not None, f"it could not be armed afterwards: {run.told()}")
    require(run.enabled == 2, f"enable was called {run.enabled} times for two ARMs")


def _late(bench: Callable[[], Bench]) -> None:
    run = Run(bench())
    run.driver.lost = True

    def act(step: Step) -> None:
        run.driver.lost = step.number < FIRST_STEPS + run.seconds(LATE)
        if step.output.state in (State.ACTIVE, State.FAULT):
            run.loop.end()

    run.act = act
    run.run(LONGEST)
    require(run.first(State.ACTIVE) is not None, f"its first sample was late, and it was not armed: {run.told()}")
    require(run.enabled == 1, f"enable was called {run.enabled} times for one ARM")


def _paused(seconds: float, whose: str) -> Callable[[Callable[[], Bench]], None]:
    def pause(bench: Callable[[], Bench]) -> None:
        run = Run(bench())
        at: list[int] = []

        def act(step: Step) -> None:
            if step.output.state == State.ACTIVE and not at:
                at.append(step.number)
                if whose == "computer":
                    run.bench.clock.sleep(seconds)
            if not at:
                return
            since = step.number - at[0]
            run.driver.lost = whose == "robot" and since < run.seconds(seconds)
            if since == run.seconds(seconds + SETTLED):
                run.loop.end()

        run.act = act
        run.run(LONGEST + seconds)
        require(at, f"the policy did not take over: {run.told()}")
        require(run.enabled == 1, "the actuators were enabled again after the pause")
        after = [step for step in run.steps if step.number > at[0]]
        stopped = any(step.output.events & Event.FAULTED for step in after)
        timeout = run.bench.policy.contract.safety.signal_timeout + 2 * run.bench.policy.contract.control_period
        require(stopped or seconds <= timeout, f"a pause of {seconds:g} s did not stop the robot")
        require(stopped or State.FAULT not in [s.output.state for s in after], run.told())

    return pause


def _ended(phase: str, times: int) -> Callable[[Callable[[], Bench]], None]:
    def end(bench: Callable[[], Bench]) -> None:
        run = Run(bench())
        asked: list[int] = []

        def ask() -> None:
            if not asked:
                asked.append(len(run.steps))
                for _ in range(times):
                    run.loop.end()

        def act(step: Step) -> None:
            if (phase == "idle" and step.number == FIRST_STEPS - 5) or step.output.state.name == phase.upper():
                ask()
            if times > 1 and asked and len(run.steps) > asked[0]:
                run.loop.end()

        run.act = act
        if phase == "enabling":
            run.driver.wait = ask
        run.run(LONGEST)
        require(asked, f"it never was {phase}: {run.told()}")
        require(run.enabled <= 1, f"enable was called {run.enabled} times for one ARM")
        if phase in ("idle", "enabling"):
            require(run.given.enabling.power is Power.DISABLED, "the actuators stayed on")
            require(not run.driver.written, "commands were sent")

    return end


def _died(bench: Callable[[], Bench]) -> None:
    one = bench()
    run = Run(one)

    def act(step: Step) -> None:
        if step.output.state in (State.ACTIVE, State.FAULT):
            raise KeyboardInterrupt  # nothing of the program goes on

    class Dead(Loop):
        def _step_without_policy(self) -> None:
            self.left.set()

        def _part(self) -> None:
            pass

    run.act = act
    run.loop = Dead(one.policy, run.given, run._note, one.clock, one.patience)
    run.driver.connect()
    with contextlib.suppress(KeyboardInterrupt):
        run.loop.run(LONGEST)
    one.clock.sleep(5.0)
    require(one.moves is None or not one.moves(), "without its program the robot is still in motion after 5 s")
    one.driver.close()


def _closed(bench: Callable[[], Bench]) -> None:
    new = bench().driver
    new.close()
    new.close()
    run = Run(bench())
    run.act = lambda step: run.loop.end() if step.output.state in (State.READY, State.FAULT) else None
    run.run(LONGEST)
    run.driver.close()
    run.bench.driver.health()


CHECKS: dict[str, Callable[[Callable[[], Bench]], None]] = {
    "it is enabled once, and follows": _works,
    "an enable that takes seconds": _slow,
    "a refused enable, whose cause is removed": _refused,
    "a first sample that is late": _late,
    **{f"a pause of {1e3 * s:g} ms of the {who}": _paused(s, who) for who in ("robot", "computer") for s in PAUSES},
    **{
        f"{'a second' if times > 1 else 'one'} Ctrl-C while {phase}": _ended(phase, times)
        for phase in ("idle", "enabling", "ready", "active")
        for times in (1, 2)
    },
    "a program that dies without close": _died,
    "close twice, and before connect": _closed,
}
