"""Whatever happens to a Franka, its arm comes to rest and stays where it is; what is normal on its line is tolerated.

franky (libfranka's client) and franky-sim (the robot's side) are both their authors' own; the errors are added here.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("franky", reason="franky is missing: pip install 'robo-rl[franka]'")
pytest.importorskip("franky_sim", reason="franky_sim is missing: pip install 'robo-rl[franka-sim]'")

from robo_rl.controllers.gate.codes import Source, State
from robo_rl.deploy.emulate.franka.wire import FAULTS
from robo_rl.deploy.robot.drivers.driver import Mode

sys.path.append(str(Path(__file__).parent))
from emulated_franka import Session, ended

pytestmark = pytest.mark.release  # the library's threads keep real time: two of them fail at times on a busy computer

AT, SECONDS = 0.3, 0.6  # s: in motion before the fault, and after it
PERIOD = 0.02
ALIKE = (
    "states doubled", "cartesian position limits violation", "guiding", "preempted", "joint reflex",
    "joint velocity violation", "joint position limits violation", "controller torque discontinuity",
    "self collision avoidance violation", "power limit violation", "emergency",
)  # fmt: skip
"""Faults that differ in a name from one that is always tested."""
NAMED = {
    "user stop": "user stop", "guiding": "by hand", "emergency": "not ready", "preempted": "preempted",
    "commands lost": "communication_constraints_violation", "silent": "Timeout", "hand silent": "hand is silent",
    "cut": "Timeout", "tool": "end effector was changed",
}  # fmt: skip
"""A word of the sentence that tells it."""


def rows(borne: bool) -> list[object]:
    names = [name for name, one in FAULTS.items() if one.borne is borne]
    return [pytest.param(name, marks=pytest.mark.slow if name in ALIKE else ()) for name in names]


@pytest.mark.parametrize("fault", rows(borne=True))
def test_what_is_normal_on_a_line_is_tolerated(fault: str) -> None:
    with ended(Session()) as session:
        session.run(fault, AT, SECONDS)
    during = session.steps[session.at : session.at + round(SECONDS / PERIOD) - 1]
    assert {step.output.state for step in during} == {State.ACTIVE}
    assert not session.problems
    assert np.abs(session.angles[-1] - session.angles[-2]).max() < 0.002


@pytest.mark.parametrize("fault", rows(borne=False))
def test_the_gate_stops_and_the_arm_rests_where_it_was(fault: str) -> None:
    with ended(Session()) as session:
        session.run(fault, AT, SECONDS)
    states = [step.output.state for step in session.steps]
    first = states.index(State.FAULT)
    assert session.at < first <= session.at + 6, "0.12 s"
    assert Source.POLICY not in [step.output.source for step in session.steps[first:]]
    assert np.abs(session.angles[-1] - session.angles[-2]).max() < 1e-3
    assert np.linalg.norm(session.places[-1] - session.places[session.at]) < 0.08, "m, at up to 0.3 m/s"
    assert NAMED.get(fault, fault.replace(" ", "_")) in session.problems[0]


def test_nothing_is_sent_after_a_reflex_until_it_is_enabled_again_which_recovers_the_robot() -> None:
    with ended(Session()) as session:
        session.driver.connect()
        session.driver.enable()
        session.world.sleep(0.1)
        session.station.server.trip("cartesian_reflex")
        session.world.sleep(0.1)
        session.driver.read(0)
        assert "cartesian_reflex" in session.driver.health().problems[0]
        sent = session.station.server.commands
        place = {"tool_position_target": session.station.tool, "gripper_position_target": np.array([0.04])}
        session.driver.write(place, Mode.POLICY)
        session.world.sleep(0.1)
        assert session.station.server.commands == sent
        session.driver.enable()
        session.world.sleep(0.1)
        session.driver.read(0)
        assert not session.driver.health().problems
        assert session.station.server.moving


def test_a_program_that_hangs_is_noticed_and_the_arm_is_stopped() -> None:
    with ended(Session()) as session:
        session.driver.connect()
        session.driver.enable()
        for _ in range(40):
            session.world.sleep(0.02)
        assert not session.station.server.moving
        session.driver.read(0)
        assert "no reference for 0.25 s" in session.driver.health().problems[0]


def test_damping_ends_in_rest() -> None:
    with ended(Session()) as session:
        session.driver.connect()
        session.driver.enable()
        goal = {"tool_position_target": np.array([0.45, 0.1, 0.2]), "gripper_position_target": np.array([0.04])}
        for mode in (*[Mode.POLICY] * 10, *[Mode.DAMP] * 30):
            session.driver.write(goal, mode)
            session.world.sleep(0.02)
            session.watch()
        assert not session.station.server.moving
        assert np.abs(session.angles[-1] - session.angles[-2]).max() < 1e-3


def test_the_hand_grasps_what_is_there_holds_it_and_opens_again_with_one_command_each() -> None:
    with ended(Session()) as session:
        session.driver.connect()
        hand, world = session.driver.hand, session.world
        for opening in (0.04, 0.04, 0.0, 0.001, 0.0, 0.04, 0.0395):
            hand.want(opening)
            until = world.now() + 1.6
            while world.now() < until and (hand.newest is None or abs(hand.newest.width - 2 * opening) > 0.005):
                world.sleep(0.02)
        world.sleep(0.3)
        assert hand.commands == 2
        assert hand.newest is not None
        assert abs(hand.newest.width - 0.08) < 0.005
        session.station.server.hand.refuses = True
        hand.want(0.02)
        for _ in range(80):
            world.sleep(0.02)
        assert hand.refused == 1
        assert not hand.failure
