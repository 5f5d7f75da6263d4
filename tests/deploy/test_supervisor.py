"""The way out, and errors beside the gate's answer, of everything that runs a robot."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest

from robo_rl.controllers.gate.codes import Request, Source, State
from robo_rl.deploy.robot import supervisor
from robo_rl.deploy.robot.drivers.driver import ForLoop, Health, Silence
from robo_rl.deploy.robot.loop import Loop, Step
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.zoo import located
from tests.deploy.test_loop import FLOWN, PATIENCE, Robot, VirtualTime, take_off


@pytest.fixture
def steps() -> list[Step]:
    return []


def walking(steps: list[Step], name: str = "go2-flat", rate: int = 50) -> tuple[Loop, Robot]:
    """A loop whose ``note`` has the policy take over."""
    policy = Policy.load(located(f"zoo:{name}"), rate)
    robot = Robot(policy)
    loop = Loop(policy, robot, clock=VirtualTime(), patience=PATIENCE)
    loop.note = take_off(loop, steps, 10**9)
    return loop, robot


def flown(steps: list[Step]) -> bool:
    return sum(step.output.source == Source.POLICY for step in steps) >= FLOWN


def test_nothing_wakes_a_robot_on_the_way_out(steps: list[Step]) -> None:
    loop, _ = walking(steps)
    note = loop.note

    def watched(step: Step) -> None:
        note(step)
        if flown(steps):
            loop.end() if not loop.leaving else loop.request(Request.RESET | Request.ARM | Request.ACTIVATE)

    loop.note = watched
    loop.run(60.0)
    last = max(k for k, step in enumerate(steps) if step.output.source == Source.POLICY)
    assert {step.output.state for step in steps[last + 1 :]} == {State.IDLE}


def test_who_asks_for_the_end_twice_leaves_the_robot_with_the_last_resort(
    steps: list[Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "UNHEARD", -1.0)
    loop, robot = walking(steps)
    note, sources, write = loop.note, list[Source](), robot.write

    def watched(step: Step) -> None:
        note(step)
        if flown(steps):
            loop.end()
            loop.end()

    def writing(commands: Any, source: Source) -> None:
        sources.append(source)
        write(commands, source)

    loop.note, robot.write = watched, writing  # type: ignore[method-assign]
    loop.run(60.0)
    assert steps[-1].output.source == Source.POLICY
    assert len(sources) == len(steps) + 1
    assert sources[-1] == Source.STOP
    np.testing.assert_array_equal(robot.written[-1], robot.written[-2])


class Driver(Robot):
    """As ``deploy.robot.drivers.driver.Driver`` says, with commands of a mode."""

    guard = ""
    silence = Silence.GOES_ON

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.measured = tuple(self.places)

    def enable(self) -> None:
        pass

    disable = enable

    def health(self) -> Health:
        return Health((), {})


@pytest.mark.parametrize(("silence", "more"), [(Silence.GOES_ON, 1), (Silence.STOPS, 0), (Silence.HOLDS, 0)])
def test_a_driver_whose_robot_stops_by_itself_is_left_to_do_so(
    silence: Silence, more: int, steps: list[Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "UNHEARD", -1.0)
    policy = Policy.load(located("zoo:go2-flat"), 50)
    driver = Driver(policy)
    driver.silence = silence
    given = ForLoop(driver, policy.contract, {})  # type: ignore[arg-type]
    loop = Loop(policy, given, clock=VirtualTime(), patience=PATIENCE)
    note = take_off(loop, steps, 10**9)

    def watched(step: Step) -> None:
        note(step)
        if flown(steps):
            loop.end()
            loop.end()

    loop.note = watched
    loop.run(60.0)
    armed = [step for step in steps if step.output.source != Source.SILENT]
    assert len(driver.written) == len(armed) + more


def test_who_only_watches_and_fails_again_and_again_does_not_cut_the_gate_s_landing(steps: list[Step]) -> None:
    """The gate's answer has been sent already: the last resort, motors off, is for what can't be asked any more."""
    loop, robot = walking(steps, "quadrotor-hover", 100)
    note, sources, write = loop.note, list[Source](), robot.write

    def watched(step: Step) -> None:
        note(step)
        if flown(steps):
            raise OSError("the disk is full")

    def writing(commands: Any, source: Source) -> None:
        sources.append(source)
        write(commands, source)

    loop.note, robot.write = watched, writing  # type: ignore[method-assign]
    with pytest.raises(OSError, match="the disk is full"):
        loop.run(60.0)
    assert len(sources) == len(steps)


def test_a_signal_in_the_middle_of_an_event_that_its_handler_sets_does_not_wait_for_itself() -> None:
    """Ctrl-C comes twice from a terminal and a launch file: the second may interrupt the handler of the first."""
    event = supervisor.SignalSafeEvent()
    notify, asked = event._cond.notify_all, []

    def interrupted() -> None:
        if not asked:
            asked.append(True)
            signal.raise_signal(signal.SIGUSR1)
        notify()

    event._cond.notify_all = interrupted  # type: ignore[method-assign]
    before = signal.signal(signal.SIGUSR1, lambda *_: event.set())
    try:
        event.set()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert asked
    assert event.wait(0.0)
