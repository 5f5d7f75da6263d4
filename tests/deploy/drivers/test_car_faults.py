"""Whatever happens to a car that races, it is braked; what is normal on its lines is borne."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from robo_rl.controllers.gate.codes import Source, State
from robo_rl.deploy.emulate.f1tenth.wire import FAULTS
from tests.suite import representatives

sys.path.append(str(Path(__file__).parent))
from emulated_car import Session

AT, SECONDS = 1.0, 4.0  # s: of racing before the fault, and after it
SLOW = {"commands lost": 1.2, "wheels blocked": 2.0, "another commander": 2.0}
"""s until it shows: a VESC's own time-out, and a speed that does not come."""
STANDING, RESTARTED = 1.3, 1.9
"""s from the fault's end until the car stands; also of a VESC that takes half a second to start anew."""
STRAIGHT = 1
"""Seed of a track with room ahead of a car that can't steer or brake for so long."""


def stopped(session: Session, within: float) -> int:
    """The step in which the gate stopped the car; nothing of the policy came after it."""
    states = [step.output.state for step in session.steps]
    first = states.index(State.FAULT)
    assert session.at < first <= session.at + round(within / 0.025)
    assert Source.POLICY not in [step.output.source for step in session.steps[first:]]
    return first


BORNE = [name for name, one in FAULTS.items() if one.borne]


@pytest.mark.parametrize("fault", representatives(BORNE, BORNE[::3]))
def test_what_is_normal_on_a_line_is_borne(fault: str) -> None:
    session = Session()
    session.run(fault, AT, 8.0)
    during = session.steps[session.at : session.at + round(8.0 / 0.025) - 1]
    assert {step.output.state for step in during} == {State.ACTIVE}
    assert not session.problems
    assert not session.racer.touches
    assert min(session.speeds[session.at :]) > 1.0


ENDING = [name for name, one in FAULTS.items() if not one.borne and not one.helpless]


@pytest.mark.parametrize("fault", representatives(ENDING, ENDING[::3]))
def test_the_car_is_braked(fault: str) -> None:
    session = Session(seed=STRAIGHT if fault == "brown-out" else 0)
    session.run(fault, AT, SECONDS)
    assert session.speeds[session.at] > 4.0
    first = stopped(session, SLOW.get(fault, 0.15))
    within = RESTARTED if fault == "brown-out" else (first - session.at) * 0.025 + STANDING
    assert max(session.speeds[session.at + round(within / 0.025) :]) < 0.1
    assert session.racer.drive[0] == "brake"
    assert not session.racer.touches


@pytest.mark.parametrize("fault", [name for name, one in FAULTS.items() if one.helpless])
def test_where_no_command_reaches_the_motor_the_gate_stops_and_says_why(fault: str) -> None:
    session = Session()
    session.run(fault, AT, SECONDS)
    stopped(session, SLOW.get(fault, 0.15))
    assert session.problems
    if fault != "another commander":
        assert session.racer.timed_out or session.racer.broken.fault or session.racer.broken.killed  # it coasts


def test_a_program_that_is_killed_leaves_a_car_that_is_braked() -> None:
    session = Session()

    def die(of: Session) -> None:
        of.driver.close()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session.run("", AT, SECONDS, die)
    session.world.sleep(0.1)
    assert session.racer.drive[0] == "brake"
    session.world.sleep(STANDING)
    assert session.racer.speed < 0.1


def test_a_program_that_hangs_loses_the_car() -> None:
    session = Session()
    session.run("", AT, SECONDS, lambda of: of.world.sleep(0.3))
    stopped(session, 0.15)
    assert any("the program sent nothing for 100 ms" in problem for problem in session.problems)
    assert session.racer.speed < 0.1


def test_laps_through_the_wire_are_without_contact() -> None:
    for seed in range(3):
        session = Session(seed=seed)
        session.run("", 14.0, 0.025)
        assert session.racer.laps >= 1
        assert not session.racer.touches
