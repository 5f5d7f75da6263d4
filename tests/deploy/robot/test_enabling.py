"""Actuators come on as the answer to ARM alone: once for each, however long it takes, and never by themselves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from robo_rl.controllers.gate.codes import Event, Reason, Request, Source, State
from robo_rl.deploy.robot.drivers.driver import DriverError, ForLoop, Health, Identity, Mode, Silence
from robo_rl.deploy.robot.enabling import Power
from robo_rl.deploy.robot.loop import Loop, Step
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.zoo import located

SETPOINTS = {"linear_velocity_command": np.zeros(2, np.float32), "yaw_rate_command": np.zeros(1, np.float32)}
OUTSIDE = "a joint is outside of its range; move it inside, then arm"


class Robot:
    """A driver of a Go2 that stands still, and all that it was asked."""

    silence, guard = Silence.STOPS, ""

    def __init__(self, contract: Any, takes: float = 0.0) -> None:
        self.contract, self.takes = contract, takes
        self.measured = tuple(s.name for s in contract.signals if s.source == "sensor")
        self.noise = np.random.default_rng(0)
        self.refusal = self.lost = ""
        self.on = False
        self.asked: list[str] = []
        self.at_work = 0
        self.released = threading.Event()

    def connect(self) -> Identity:
        return Identity("statue")

    def read(self, now: int) -> dict[str, tuple[np.ndarray, int]]:
        self._alone("read")
        start = list(self.contract.commands[0].start)
        found = {}
        for s in self.contract.signals:
            if s.source == "sensor":
                at_rest = (
                    [0, 0, 0, 1] if s.kind == "quaternion" else start if s.name == "joint_position" else [0] * s.size
                )
                value = (np.array(at_rest, float) + 1e-3 * self.noise.normal(size=s.size)).astype(np.float32)
                found[s.name] = value, now
        return {} if self.lost else found

    def enable(self) -> None:
        self._alone("enable")
        self.at_work += 1
        self.released.wait(self.takes)
        self.at_work -= 1
        if self.refusal:
            raise DriverError(self.refusal)
        self.on = True

    def write(self, commands: Mapping[str, np.ndarray], mode: Mode) -> None:
        self._alone("write")
        assert self.on, "nothing is written to actuators that are off"

    def disable(self) -> None:
        self._alone("disable")
        self.on = False

    def health(self) -> Health:
        return Health((), {})

    def close(self) -> None: ...

    def _alone(self, what: str) -> None:
        assert not self.at_work, f"{what} while enable is at work"
        self.asked.append(what)


class SteadyTime:
    """A clock that runs, four times as fast as the computer's, only while the loop sleeps: who is kept from running
    for a while misses nothing."""

    def __init__(self) -> None:
        self.nanoseconds = 1_000_000_000

    def monotonic_ns(self) -> int:
        return self.nanoseconds

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds / 4)
        self.nanoseconds += round(1e9 * seconds)


class Session:
    """The plain loop at 50 Hz, for which a computer that is busy meanwhile is no fault."""

    def __init__(self, takes: float = 0.0) -> None:
        self.policy = Policy.load(located("zoo:go2-flat"), 50)
        self.robot = Robot(self.policy.contract, takes)
        self.given = ForLoop(self.robot, self.policy.contract, SETPOINTS)
        self.steps: list[Step] = []
        self.loop = Loop(self.policy, self.given, self.steps.append, clock=SteadyTime(), patience=5.0)
        self.given.enabling.background = True  # as by the computer's clock
        self.code: list[int] = []
        self.thread = threading.Thread(target=lambda: self.code.append(self.loop.run(60.0)))

    def until(self, come: Callable[[], Any], seconds: float = 30.0) -> None:
        end = time.monotonic() + seconds
        while not come():
            assert time.monotonic() < end, "it did not come"
            time.sleep(0.005)

    def pass_steps(self, count: int) -> None:
        now = len(self.steps)
        self.until(lambda: len(self.steps) >= now + count)

    def ask(self, request: Request) -> None:
        self.loop.request(request)
        self.pass_steps(3)

    @property
    def state(self) -> State:
        return self.loop.reserve.gate.state

    @property
    def power(self) -> Power:
        return self.given.enabling.power


@pytest.fixture
def session() -> Iterator[Callable[..., Session]]:
    made: list[Session] = []

    def make(takes: float = 0.0) -> Session:
        made.append(Session(takes))
        made[-1].thread.start()
        made[-1].pass_steps(5)
        return made[-1]

    yield make
    for one in made:
        one.robot.released.set()
        one.loop.end()
        one.thread.join(30.0)


def test_a_refused_enable_leaves_the_robot_disabled_and_the_gate_idle_with_the_reason(session: Any) -> None:
    one = session()
    one.robot.refusal = OUTSIDE
    one.ask(Request.ARM)
    one.until(lambda: any(OUTSIDE in step.sentence for step in one.steps))
    one.robot.refusal = ""  # a person moves the joint, as told
    one.pass_steps(20)
    assert one.state == State.IDLE
    assert one.power is Power.DISABLED
    assert one.robot.asked.count("enable") == 1
    one.ask(Request.ARM)
    one.until(lambda: one.state == State.READY)
    assert one.robot.asked.count("enable") == 2


def test_no_fault_reset_or_signal_that_comes_back_ever_enables(session: Any) -> None:
    one = session()
    one.ask(Request.STOP)
    assert one.state == State.FAULT
    one.ask(Request.ARM)
    one.ask(Request.ACTIVATE)
    one.robot.lost = "the cable"
    one.pass_steps(20)
    one.ask(Request.RESET)
    one.ask(Request.ARM)
    assert any(step.output.problem.reason == Reason.SIGNAL_MISSING for step in one.steps)
    one.robot.lost = ""
    one.pass_steps(20)
    assert "enable" not in one.robot.asked
    one.ask(Request.ARM)
    one.until(lambda: one.state == State.READY)
    assert one.robot.asked.count("enable") == 1


def test_an_enable_of_seconds_succeeds_and_the_schedule_begins_anew(session: Any) -> None:
    one = session(2.5)
    before = len(one.steps)
    one.loop.request(Request.ARM)
    one.until(lambda: one.power is Power.ENABLING)
    one.until(lambda: one.state == State.READY)
    assert len(one.steps) > before + 50, "the gate is stepped meanwhile"
    one.until(lambda: one.loop.reserve.arrived)
    one.ask(Request.ACTIVATE)
    assert one.state == State.ACTIVE
    assert not any(step.output.events & Event.FAULTED for step in one.steps)
    assert one.robot.asked.count("enable") == 1


@pytest.mark.parametrize("request_", [Request.STOP, Request.HALT, Request.DISARM])
def test_whatever_stops_while_the_actuators_are_being_enabled_ends_disabled(session: Any, request_: Request) -> None:
    one = session(30.0)
    one.loop.request(Request.ARM)
    one.until(lambda: one.robot.at_work)
    one.ask(request_)
    one.robot.released.set()
    one.until(lambda: one.power is Power.DISABLED)
    one.pass_steps(10)
    assert one.state == (State.IDLE if request_ is Request.DISARM else State.FAULT)
    assert not one.robot.on
    assert "write" not in one.robot.asked
    assert one.robot.asked.count("enable") == 1


@pytest.mark.parametrize("times", [1, 2])
def test_an_end_while_the_actuators_are_being_enabled_leaves_them_disabled(session: Any, times: int) -> None:
    one = session(30.0)
    one.loop.request(Request.ARM)
    one.until(lambda: one.robot.at_work)
    for _ in range(times):
        one.loop.end()
    threading.Timer(0.5, one.robot.released.set).start()
    one.thread.join(30.0)
    assert one.code == [0]
    assert not one.loop.stuck
    assert not one.robot.on
    assert "write" not in one.robot.asked


def test_a_driver_that_never_comes_to_an_end_is_told_as_stuck(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robo_rl.deploy.robot.enabling.LEAVING", 0.3)
    one = session(30.0)
    one.loop.request(Request.ARM)
    one.until(lambda: one.robot.at_work)
    one.loop.end()
    one.thread.join(20.0)
    assert one.code
    assert one.loop.stuck


def test_a_gate_that_refuses_after_the_actuators_came_on_disables_them(session: Any) -> None:
    one = session(0.5)
    one.loop.request(Request.ARM)
    one.until(lambda: one.robot.at_work)
    one.robot.lost = "the cable"
    one.until(lambda: one.robot.asked[-5:].count("disable") or "disable" in one.robot.asked)
    one.until(lambda: one.power is Power.DISABLED)
    assert one.state == State.IDLE
    assert not one.robot.on
    assert any(step.output.events & Event.REFUSED and "linear" not in step.sentence for step in one.steps)


@pytest.mark.parametrize(
    "error", [OSError("the cable came out"), ValueError("the cable came out")], ids=lambda e: type(e).__name__
)
def test_an_error_that_is_no_refusal_disables(session: Any, error: Exception) -> None:
    """A library raises ValueError as well: only a DriverError says that nothing was enabled."""
    one = session()

    def broken() -> None:
        one.robot.on = True
        raise error

    one.robot.enable = broken
    one.loop.request(Request.ARM)
    one.until(lambda: any("the cable came out" in step.sentence for step in one.steps))
    one.pass_steps(5)
    assert one.state == State.IDLE
    assert one.power is Power.DISABLED
    assert not one.robot.on


def test_a_robot_held_by_its_stop_stays_held_where_a_second_arm_is_refused(session: Any) -> None:
    one = session()
    one.ask(Request.ARM)
    one.until(lambda: one.state == State.READY)
    one.ask(Request.DISARM)
    one.robot.refusal = OUTSIDE
    one.ask(Request.ARM)
    one.until(lambda: any(OUTSIDE in step.sentence for step in one.steps))
    written = one.robot.asked.count("write")
    one.pass_steps(5)
    assert one.power is Power.ENABLED
    assert one.robot.asked.count("write") > written, "its stop goes on"
    assert "disable" not in one.robot.asked


def test_a_planned_end_is_no_fault() -> None:
    policy = Policy.load(located("zoo:go2-flat"), 50)
    robot, steps = Robot(policy.contract), []
    given = ForLoop(robot, policy.contract, SETPOINTS)
    loop = Loop(policy, given, steps.append, clock=SteadyTime(), patience=5.0)
    given.enabling.background = True
    loop.request(Request.ARM)
    assert loop.run(1.0) == 0
    assert {step.output.state for step in steps} <= {State.IDLE, State.READY}
    assert steps[-1].output.source in (Source.STOP, Source.SAFE)
