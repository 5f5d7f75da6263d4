"""Whatever happens to a UR5e, its arm comes to rest and stays where it is; what is normal on its line is tolerated."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from robo_rl.controllers.gate.codes import Source, State
from robo_rl.deploy.emulate.ur import TICK
from robo_rl.deploy.emulate.ur.wire import FAULTS
from robo_rl.deploy.robot.drivers.driver import DriverError, Mode
from robo_rl.deploy.robot.drivers.rtde.robot_file import UrFile
from robo_rl.deploy.robot.drivers.rtde.states import PLAYING, STOPPED

sys.path.append(str(Path(__file__).parent))
from emulated_ur import Session

AT, SECONDS = 0.4, 0.6  # s: in motion before the fault, and after it
PERIOD = 0.02
SLOW = {"another program": 13}
"""Steps until it shows; 10 for all others."""
NAMED = {
    "silent": "nothing new", "late": "nothing new", "clock frozen": "nothing new", "paused exchange": "was paused",
    "unplugged": "connection is gone", "commands garbled": "connection is gone", "foreign": "recipe 07",
    "encoder jumped": "than it can have gone", "commands lost": "program is stopped", "speed slider": "is at 50 %",
    "commands damaged": "program is stopped", "protective stop": "'protective stop'", "freedrive": "by hand",
    "emergency stop": "'robot emergency stop'", "safeguard stop": "'safeguard stop'", "reduced mode": "'reduced'",
    "program stopped": "program is stopped", "program paused": "program is paused", "restarted": "started anew",
    "another program": "takes no commands", "noise": "not RTDE", "damaged": "not RTDE", "cut": "not RTDE",
}  # fmt: skip
"""Words of the sentence that tells it."""


@pytest.mark.parametrize("fault", [name for name, one in FAULTS.items() if one.borne])
def test_what_is_normal_on_a_line_is_tolerated_and_the_arm_rests_at_the_end(fault: str) -> None:
    session = Session()
    session.run(fault, AT, SECONDS)
    during = session.steps[session.at : session.at + round(SECONDS / PERIOD) - 1]
    assert {step.output.state for step in during} == {State.ACTIVE}
    assert not session.problems
    places = np.array(session.places[session.at :])
    assert np.abs(places - places[0]).max() > 0.1, "rad: it moves on"
    session.driver.close()
    assert session.arm.runtime == STOPPED
    session.world.sleep(0.3)
    session.watch()
    session.world.sleep(PERIOD)
    assert np.abs(session.arm.joints - session.places[-1]).max() < 1e-3


@pytest.mark.parametrize("fault", [name for name, one in FAULTS.items() if not one.borne])
def test_the_gate_stops_and_the_arm_rests_where_it_was(fault: str) -> None:
    session = Session()
    session.run(fault, AT, SECONDS)
    states = [step.output.state for step in session.steps]
    first = states.index(State.FAULT)
    assert session.at < first <= session.at + SLOW.get(fault, 10)
    assert Source.POLICY not in [step.output.source for step in session.steps[first:]]
    assert NAMED[fault] in session.problems[0]
    if fault == "another program":
        assert session.arm.runtime == PLAYING, "it is not ours to stop"
        return
    assert np.abs(session.places[-1] - session.places[-2]).max() < 1e-3
    assert np.abs(session.places[-1] - session.places[session.at]).max() < 0.06, "rad, at up to 0.4 rad/s"
    assert session.arm.runtime != PLAYING


def test_nothing_is_sent_after_a_fault_until_it_is_enabled_again_once_a_person_has_seen_to_it() -> None:
    session = Session()
    driver, arm, world = session.driver, session.arm, session.world
    driver.connect()
    driver.enable()
    arm.stop_protectively()
    world.sleep(0.05)
    driver.read(0)
    given = dict(arm.inputs)
    driver.write({"joint_position_target": arm.joints + 0.1}, Mode.POLICY)
    world.sleep(0.05)
    assert arm.inputs == given
    with pytest.raises(DriverError, match=r"'protective stop'.*a program is on the robot that is not ended \(paused\)"):
        driver.enable()
    arm.safety_mode = 1
    arm.end()
    world.sleep(0.05)
    driver.enable()
    world.sleep(0.01)
    driver.read(0)
    assert not driver.health().problems
    assert arm.runtime == PLAYING


def test_a_program_that_hangs_leaves_an_arm_that_stops_by_itself() -> None:
    session = Session()
    arm, world = session.arm, session.world
    session.driver.connect()
    session.driver.enable()
    goal = {"joint_position_target": arm.joints + 0.05}
    for _ in range(5):
        session.driver.write(goal, Mode.POLICY)
        world.sleep(PERIOD)
        session.driver.read(0)
    world.sleep(0.1 + 0.1 + 2 * TICK)
    assert arm.runtime == STOPPED
    rest = arm.joints.copy()
    world.sleep(1.0)
    assert np.abs(arm.joints - rest).max() < 2e-3


def test_damping_ends_the_program() -> None:
    session = Session()
    session.driver.connect()
    session.driver.enable()
    session.driver.write({"joint_position_target": session.arm.joints}, Mode.DAMP)
    session.world.sleep(0.1)
    assert session.arm.runtime == STOPPED
    session.driver.read(0)
    assert "it was damped" in session.driver.health().problems[0]


@pytest.mark.parametrize("speed", [1.0, 0.25])
def test_no_target_asks_for_more_than_the_joints_speed(speed: float) -> None:
    session = Session(file=UrFile(speed=speed))
    arm, driver = session.arm, session.driver
    driver.connect()
    driver.enable()
    fastest = 0.0
    goal = {"joint_position_target": arm.joints + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 3.0])}
    for _ in range(40):
        driver.write(goal, Mode.POLICY)
        session.world.sleep(PERIOD)
        driver.read(0)
        fastest = max(fastest, float(np.abs(arm.rates).max()))
    assert 0.8 * speed * np.pi < fastest < 1.02 * speed * np.pi
    assert not driver.health().problems
    assert driver.health().figures["targets shortened"] > 10


def test_the_robots_own_program_does_not_follow_a_target_out_of_bounds() -> None:
    session = Session()
    driver, arm = session.driver, session.arm
    driver.connect()
    driver.enable()
    for far in (np.full(6, 0.6), np.full(6, np.nan)):
        driver._send(arm.joints + far)
        session.world.sleep(0.2)
        assert arm.runtime == STOPPED
        assert np.abs(arm.rates).max() < 1e-3
        driver.enable()
