"""Whatever happens to a bus of Dynamixel servos, the arm ends at rest, near where it was; what is normal is borne."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_rl.controllers.gate.codes import Source, State
from robo_rl.deploy.emulate.servos.dynamixel_wire import FAULTS
from robo_rl.deploy.robot.drivers.driver import Mode, Silence
from robo_rl.deploy.robot.drivers.dynamixel import registers as r
from tests.suite import representatives

sys.path.append(str(Path(__file__).parent))
from emulated_dynamixel import Session

AT, SECONDS = 60, 4.0
LIMP = {"restart of one": [1], "overload": [1], "hot": [1], "dead servo": [1], "restart of all": range(6)} | {
    "switched off": range(6)
}
"""Joints that have no torque any more: gravity moves them, whatever is sent."""
NEAR = 0.2  # rad: a motion that was under way, and where it was sent last


BORNE = [name for name, one in FAULTS.items() if one.borne]


@pytest.mark.parametrize("fault", representatives(BORNE, BORNE[::3]))
def test_what_is_normal_on_a_bus_is_borne(fault: str) -> None:
    session = Session()
    session.run(fault, AT, 2.5)
    during = session.steps[AT : round(2.5 / 0.02) - 1]
    assert {step.output.state for step in during} == {State.ACTIVE}
    assert {step.output.source for step in during} == {Source.POLICY}


ENDING = [name for name, one in FAULTS.items() if not one.borne]


@pytest.mark.parametrize("fault", representatives(ENDING, ENDING[::3]))
def test_the_arm_is_stopped_where_it_is(fault: str) -> None:
    session = Session()
    session.run(fault, AT, SECONDS)
    assert session.steps[AT].output.source == Source.POLICY
    first = [step.output.state for step in session.steps].index(State.FAULT)
    assert first <= AT + 9  # 0.18 s
    assert session.problems
    assert Source.POLICY not in [step.output.source for step in session.steps[first:]]
    firm = [i for i in range(5) if i not in LIMP.get(fault, [])]
    after = np.array(session.poses[first:])
    assert np.abs(after - session.poses[AT])[:, firm].max(initial=0.0) <= NEAR
    assert np.abs(session.arm.velocity[firm]).max(initial=0.0) <= 0.05


def silent(session: Session, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Poses of an arm that was moving when nothing is sent any more: at that time, and at the end."""
    session.run("", 10**9, 1.5)
    far = {c.name: np.array(c.upper) * 0.5 for c in session.contract.commands}
    session.driver.write(far, Mode.HOLD)
    session.clock.sleep(0.06)
    then = session.arm.position
    session.clock.sleep(seconds)
    return then, session.arm.position


def test_in_silence_an_arm_with_a_bus_watchdog_stops_where_it_is_and_holds() -> None:
    session = Session()
    then, end = silent(session, 3.0)
    assert {servo.get(r.BUS_WATCHDOG) for servo in session.arm.servos} == {r.TRIPPED}
    assert {servo.get(r.TORQUE_ENABLE) for servo in session.arm.servos} == {1}
    assert np.abs(end - then)[:5].max() <= NEAR
    assert np.abs(session.arm.velocity).max() <= 0.05


def test_a_tripped_watchdog_takes_no_goals_until_the_arm_is_enabled_again() -> None:
    session = Session()
    silent(session, 1.0)
    goals = [servo.get(r.GOAL_POSITION) for servo in session.arm.servos]
    session.driver.write({c.name: np.array(c.upper) * 0.2 for c in session.contract.commands}, Mode.HOLD)
    assert [servo.get(r.GOAL_POSITION) for servo in session.arm.servos] == goals
    for now in (1, 2):
        session.driver.read(now)
    assert any("its bus watchdog tripped" in problem for problem in session.driver.health().problems)
    session.driver.connect()
    assert session.arm.servos[0].get(r.BUS_WATCHDOG) == r.TRIPPED
    before = session.arm.position
    session.driver.enable()
    session.clock.sleep(0.04)
    assert np.abs(session.arm.position - before).max() <= 0.05
    assert {servo.get(r.BUS_WATCHDOG) for servo in session.arm.servos} == {session.driver.watchdog}
    assert session.driver.read(3)
    session.driver.read(4)
    assert not session.driver.health().problems


def row(session: Session, command: Any) -> list[tuple[int, Any]]:
    """The joints of a command."""
    joints = {joint.name: joint for joint in session.driver.joints}
    return [(i, joints[name]) for i, name in enumerate(command.elements)]


def test_firmware_whose_watchdog_moves_the_arm_is_not_given_one_unless_told() -> None:
    """ROBOTIS-GIT/DynamixelSDK, issue 584: with a homing offset, in extended position mode."""
    for told, moves_on in ((True, True), (None, False)):
        session = Session(bus_watchdog=told)
        for servo in session.arm.servos:
            servo.moves_when_tripped = True
        silent(session, 2.0)
        goals = {servo.get(r.ID): servo.get(r.GOAL_POSITION) for servo in session.arm.servos}
        last = {j.id: j.steps(0.5 * c.upper[i]) for c in session.contract.commands for i, j in row(session, c)}
        assert (goals != last) == moves_on
        assert (np.abs(session.arm.position[0]) > 1.9) == moves_on  # it is at a stop
        assert session.driver.silence == (Silence.STAYS if told else Silence.HOLDS)


def test_the_arm_does_not_jump_when_it_is_armed_and_torque_rises_within_a_second() -> None:
    session = Session()
    session.run("", 10**9, 2.0)
    armed = next(i for i, step in enumerate(session.steps) if step.output.state in (State.READY, State.ACTIVE))
    assert np.abs(np.array(session.poses[armed + 1]) - session.poses[armed - 1]).max() <= 0.15  # it hung freely
    assert session.arm.servos[0].get(r.GOAL_PWM) == r.FULL_PWM


def test_a_servo_that_was_switched_on_in_another_turn_is_where_it_was() -> None:
    """In extended position mode a servo counts from the turn in which it was switched on."""
    session = Session()
    servo = session.arm.servos[0]
    beside = session.arm.tell
    session.arm.tell = lambda one, of, steps, rate: beside(one, of, steps - 4096 * (one is servo), rate)
    drive = session.arm.drive
    session.arm.drive = lambda one: drive(one)._replace(goal=drive(one).goal + 4096 * (one is servo))
    session.arm.tell_all(session.arm.bus.servos)
    home = session.arm.position[0]
    session.run("", 10**9, 2.0)
    assert session.steps[90].output.source == Source.POLICY
    assert np.abs(np.array(session.poses)[:, 0] - home).max() < 0.2
    assert servo.get(r.PRESENT_POSITION) < 0
