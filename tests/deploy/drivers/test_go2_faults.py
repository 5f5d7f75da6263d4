"""Whatever happens to a Go2 that walks, its legs end damped; what is normal on a network is borne."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from robo_rl.controllers.gate.codes import Source, State
from robo_rl.deploy.emulate.go2.virtual import VirtualLink
from robo_rl.deploy.emulate.go2.wire import FAULTS
from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.go2 import JOINTS
from robo_rl.deploy.robot.drivers.unitree.dog import CHECK, Dog
from robo_rl.deploy.robot.drivers.unitree.keeping import DAMPING, Phase
from tests.suite import representatives

sys.path.append(str(Path(__file__).parent))
from emulated_go2 import Session

AT, SECONDS = 0.6, 1.0  # s: of walking before the fault, and after it
DEAF = "commands lost"
"""Nothing that is sent can help then."""
SLOW = ("mode back", "brown-out")
"""What the driver finds when it asks for the mode the next time, once a second."""


def assert_ends_damped(session: Session, within: float) -> None:
    """No stiffness is left, from ``within`` s after the fault on; the robot lies still at the end."""
    states = [step.output.state for step in session.steps]
    first = states.index(State.FAULT)
    assert session.at < first <= session.at + round(within / 0.02)
    assert Source.POLICY not in [step.output.source for step in session.steps[first:]]
    assert not any(session.stiff[first + 2 :])
    assert_lies(session)


def assert_lies(session: Session, after: float = 2.0) -> None:
    """So many s later."""
    session.world.sleep(after)
    assert not session.robot.stiff
    assert np.abs(session.robot.truth["joint_velocity"]).max() < 0.2
    assert session.robot.truth["position"][2] < 0.15


BORNE = [name for name, one in FAULTS.items() if one.borne]


@pytest.mark.parametrize("fault", representatives(BORNE, BORNE[::3]))
def test_what_is_normal_on_a_network_is_borne(fault: str) -> None:
    session = Session()
    session.run(fault, AT, SECONDS)
    during = session.steps[session.at : session.at + round(SECONDS / 0.02) - 1]
    assert {step.output.state for step in during} == {State.ACTIVE}
    assert {step.output.source for step in during} == {Source.POLICY}
    assert not session.problems
    if fault == "some commands damaged":
        assert session.robot.refused > 0


THEIRS = "another commander"
"""The robot stands as somebody else wants."""


def test_somebody_else_who_goes_on_commanding_has_the_robot_and_it_is_damped_when_he_is_silent() -> None:
    session = Session()
    session.run(THEIRS, AT, SECONDS)
    states = [step.output.state for step in session.steps]
    assert session.at < states.index(State.FAULT) <= session.at + round(0.12 / 0.02)
    assert any("somebody else commands the robot" in problem for problem in session.problems)
    keeper = session.world.links[-1].keeper
    assert keeper.phase == Phase.YIELD
    sent = keeper.sent
    session.world.sleep(2.0)
    assert keeper.sent == sent, "stiffness and damping don't take turns"
    assert session.robot.stiff
    session.world.wire.begin("")
    session.world.sleep(1.2)
    assert keeper.phase == Phase.DAMP
    assert not session.robot.stiff


@pytest.mark.parametrize("rate", representatives([5.0, 30.0, 500.0], [30.0]))
def test_somebody_else_is_noticed_within_a_second_whatever_his_rate(rate: float) -> None:
    session = Session()
    session.world.wire.rate = rate
    session.run(THEIRS, AT, 1.5)
    states = [step.output.state for step in session.steps]
    assert session.at < states.index(State.FAULT) <= session.at + round(1.1 / 0.02)
    assert any("somebody else commands the robot" in problem for problem in session.problems)


def test_our_own_keeper_that_still_damps_is_nobody_else() -> None:
    session = Session()

    def die(of: Session) -> None:
        of.world.links[-1].close()
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        session.run("", AT, SECONDS, die)
    session.world.sleep(3.0)
    again = Dog("Unitree Go2", lambda damp: VirtualLink(session.world, damp), session.policy.contract, JOINTS,
                session.world.now)  # fmt: skip
    again.connect()
    assert not session.robot.stiff
    assert (session.robot.command.kd == DAMPING).all(), "it is damped until it is enabled"
    again.read(session.world.monotonic_ns() // 1000)
    again.enable()
    session.world.sleep(0.02)
    assert session.robot.stiff


@pytest.mark.parametrize("rate", representatives([0.994, 1.006], [1.006]))
def test_a_clock_that_is_not_ours_ages_nothing_and_is_told(rate: float) -> None:
    session = Session()
    session.robot.broken.rate = rate
    session.run("", 5.0, 0.5)
    assert not session.problems
    assert session.driver.health().figures["clock's rate"] == pytest.approx(rate, abs=1e-3)


@pytest.mark.parametrize("charge", [0, 9])
def test_an_empty_battery_is_refused(charge: int) -> None:
    session = Session()
    session.robot.broken.charge = charge
    session.driver.connect()
    session.driver.read(session.world.monotonic_ns() // 1000)
    with pytest.raises(DriverError, match=f"the battery has {charge} %; expected 10 %"):
        session.driver.enable()


ENDING = [name for name, one in FAULTS.items() if not one.borne and name not in (DEAF, THEIRS)]


@pytest.mark.parametrize("fault", representatives(ENDING, ENDING[::3]))
def test_the_legs_are_damped(fault: str) -> None:
    session, slow = Session(), fault in SLOW
    session.run(fault, AT, 1.5 if slow else SECONDS)
    assert_ends_damped(session, 1.2 if slow else 0.12)
    assert session.problems or fault in ("states late", "clock frozen", "imu frozen")


def test_a_robot_that_gets_no_commands_is_noticed_and_damped_when_it_gets_them_again() -> None:
    session = Session()
    session.run(DEAF, AT, SECONDS)
    states = [step.output.state for step in session.steps]
    assert states.index(State.FAULT) <= session.at + round(0.4 / 0.02)
    assert any("torques are those of an old command" in problem for problem in session.problems)
    assert session.robot.stiff
    session.world.wire.begin("")
    session.world.sleep(0.02)
    assert not session.robot.stiff
    assert_lies(session, 4.0)


ANSWERS = [(3102, ""), (0, ""), (0, "[" * 5000), (0, '{"form": "0"}')]


@pytest.mark.parametrize("answer", representatives(ANSWERS, ANSWERS[::2]))
def test_a_question_for_the_mode_that_fails_does_not_stop_a_robot_that_walks(answer: tuple[int, str]) -> None:
    session = Session()
    told = session.robot.request

    def fail(of: Session) -> None:
        of.robot.request = lambda code, parameter: answer if code == CHECK else told(code, parameter)

    session.run("", AT, 2.5, fail)
    assert {step.output.state for step in session.steps[session.at : -1]} == {State.ACTIVE}
    assert not session.problems
    assert session.driver.health().figures["questions for the mode that failed"] >= 2


def test_a_program_that_is_killed_leaves_legs_that_are_damped() -> None:
    session = Session()
    stop = RuntimeError("killed")

    def die(of: Session) -> None:
        of.world.links[-1].close()
        raise stop

    with pytest.raises(RuntimeError, match="killed"):
        session.run("", AT, SECONDS, die)
    link = session.world.links[-1]
    session.world.sleep(0.01)
    assert not session.robot.stiff
    session.world.sleep(5.0)
    assert not link.keeper.done(session.world.now())
    session.world.sleep(6.0)
    assert link.keeper.done(session.world.now())
    assert link.keeper.reason == "the program ended"
    assert np.abs(session.robot.truth["joint_velocity"]).max() < 0.2


def test_a_program_that_hangs_loses_the_robot() -> None:
    session = Session()
    session.run("", AT, SECONDS, lambda of: of.world.sleep(0.3))
    assert_ends_damped(session, 0.12)
    assert "the program sent no command for 100 ms" in session.problems


def test_a_keeper_that_is_killed_is_replaced_by_one_that_damps() -> None:
    session = Session()

    def kill(of: Session) -> None:
        of.world.links[-1].alive = False

    session.run("", AT, SECONDS, kill)
    assert_ends_damped(session, 0.12)
    assert len(session.world.links) == 2
    assert any("another one damps the legs" in problem for problem in session.problems)


def test_the_robot_rises_from_its_belly_without_a_jump() -> None:
    session = Session()
    rates: list[float] = []
    heights: list[float] = []

    def look(of: Session) -> None:
        heights.append(float(of.robot.truth["position"][2]))

    note = session.driver.write

    def write(*args: object) -> None:
        rates.append(float(np.abs(session.robot.truth["joint_velocity"]).max()))
        note(*args)  # type: ignore[arg-type]

    session.driver.write = write  # type: ignore[method-assign]
    session.run("", 0.02, 0.1, look)
    assert max(rates[:100]) < 4.0  # rad/s
    assert heights[0] > 0.2
