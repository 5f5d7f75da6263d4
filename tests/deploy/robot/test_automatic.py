"""``--arm``: one ARM when everything is there, however late; a refusal or a stop is a person's matter."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from robo_rl.controllers.gate.codes import Event, Request, State
from robo_rl.deploy.robot.automatic import AutomaticStart
from robo_rl.deploy.robot.drivers.driver import ForLoop
from robo_rl.deploy.robot.loop import Loop, Step
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.zoo import located

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parent))
from test_enabling import OUTSIDE, SETPOINTS, Robot
from test_loop import PATIENCE, VirtualTime


class Session:
    """``robo-rl run --arm`` in virtual time; ``act`` sees each step first."""

    def __init__(self, act: Any, anew: bool = False) -> None:
        policy = Policy.load(located("zoo:go2-flat"), 50)
        self.robot, self.steps, self.waits = Robot(policy.contract), list[Step](), list[str]()
        self.automatic = AutomaticStart()

        def note(step: Step) -> None:
            self.steps.append(step)
            act(self, step)
            self.loop.request(self.automatic.request(step, self.loop.reserve, anew))
            self.waits += [self.automatic.waiting] if self.automatic.waiting else []

        given = ForLoop(self.robot, policy.contract, SETPOINTS)
        self.loop = Loop(policy, given, note, clock=VirtualTime(), patience=PATIENCE)

    @property
    def states(self) -> list[State]:
        return [step.output.state for step in self.steps]


@pytest.mark.parametrize("late", [0, 30, 50, 1000])  # steps of 20 ms
def test_the_robot_is_armed_once_when_its_last_sensor_has_come(late: int) -> None:
    def act(one: Session, step: Step) -> None:
        one.robot.lost = "the lidar starts" if step.number < late else ""

    one = Session(act)
    one.robot.lost = "the lidar starts" if late else ""
    assert one.loop.run((late + 200) * 0.02) == 0
    assert State.ACTIVE in one.states
    assert one.robot.asked.count("enable") == 1
    assert State.FAULT not in one.states
    assert bool(one.waits) == (late > 25)


def test_a_refusal_of_the_driver_is_told_and_not_tried_again_when_its_cause_has_gone() -> None:
    def act(one: Session, step: Step) -> None:
        one.robot.refusal = OUTSIDE if step.number < 60 else ""

    one = Session(act)
    one.robot.refusal = OUTSIDE
    one.loop.run(4.0)
    assert set(one.states) == {State.IDLE}
    assert sum(OUTSIDE in step.refused for step in one.steps) == 1
    assert one.robot.asked.count("enable") == 1


@pytest.mark.parametrize("request_", [Request.STOP, Request.DISARM])
def test_a_robot_that_a_person_stopped_is_not_armed_again(request_: Request) -> None:
    def act(one: Session, step: Step) -> None:
        if step.number == 80:
            one.loop.request(request_)
        if step.number == 90:
            one.loop.request(Request.RESET)

    one = Session(act)
    one.loop.run(4.0)
    assert State.READY in one.states or State.ACTIVE in one.states
    assert set(one.states[100:]) == {State.IDLE}


def test_a_robot_that_learns_is_armed_for_each_episode_and_not_after_a_fault() -> None:
    def act(one: Session, step: Step) -> None:
        if step.number in (150, 300):
            one.loop.request(Request.DISARM)
        if step.number == 450:
            one.loop.request(Request.STOP)
        if step.number == 460:
            one.loop.request(Request.RESET)

    one = Session(act, anew=True)
    one.loop.run(12.0)
    assert sum(bool(step.output.events & Event.ARMED) for step in one.steps) == 3
    assert set(one.states[470:]) == {State.IDLE}
