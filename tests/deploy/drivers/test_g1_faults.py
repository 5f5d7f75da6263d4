"""Whatever happens to a G1 whose legs move, they end damped; another hardware or a mode of its own is refused."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest

from robo_rl.contract.robots import hold_gains
from robo_rl.controllers.gate.codes import Source, State
from robo_rl.deploy.emulate.g1.wire import FAULTS, LOCKED
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.drivers import make
from robo_rl.deploy.robot.drivers.driver import DriverError, Mode, Settings
from robo_rl.deploy.robot.drivers.g1 import HELD, JOINTS
from robo_rl.deploy.robot.drivers.unitree.keeping import Phase
from robo_rl.deploy.robot.drivers.unitree.mapping import mapping
from robo_rl.sim.robots.legged import load_legged
from tests.suite import representatives

sys.path.append(str(Path(__file__).parent))
from emulated_g1 import Session, contract

AT, SECONDS = 0.4, 0.6  # s: of the policy before the fault, and after it
SLOW = ("mode back", "brown-out")
"""What the driver finds when it asks for the mode the next time, once a second; a restart is heard at once."""
THEIRS, DEAF = "another commander", "commands lost"
OWN = ["motor error", "waist locked", "motor lost", "remote's stop"]
ENDING = [name for name, one in FAULTS.items() if not one.borne and name not in (DEAF, THEIRS)]


@pytest.mark.parametrize(
    "fault", representatives([n for n, one in FAULTS.items() if one.borne], ["some states damaged"])
)
def test_what_is_normal_on_a_network_is_borne(fault: str) -> None:
    session = Session()
    session.run(fault, AT, SECONDS)
    during = session.steps[session.at : session.at + round(SECONDS / 0.02) - 1]
    assert {(step.output.state, step.output.source) for step in during} == {(State.ACTIVE, Source.POLICY)}
    assert not session.problems


@pytest.mark.parametrize("fault", representatives(ENDING, OWN))
def test_the_legs_are_damped(fault: str) -> None:
    session, slow = Session(), fault in SLOW
    session.run(fault, AT, 1.5 if slow else SECONDS)
    states = [step.output.state for step in session.steps]
    first = states.index(State.FAULT)
    assert session.at < first <= session.at + round((1.2 if slow else 0.12) / 0.02)
    assert Source.POLICY not in [step.output.source for step in session.steps[first:]]
    assert not any(session.stiff[first + 2 :])
    assert session.problems or fault in ("states late", "clock frozen", "imu frozen")


@pytest.mark.release
def test_somebody_else_who_goes_on_commanding_has_the_robot() -> None:
    session = Session()
    session.run(THEIRS, AT, 1.0)
    assert any("somebody else commands the robot" in problem for problem in session.problems)
    assert session.world.links[-1].keeper.phase == Phase.YIELD


@pytest.mark.release
def test_a_robot_that_gets_no_commands_is_noticed_and_damped_when_it_gets_them_again() -> None:
    session = Session()
    session.run(DEAF, AT, 1.0)
    assert any("torques are those of an old command" in problem for problem in session.problems)
    session.world.wire.begin("")
    session.world.sleep(0.02)
    assert not session.robot.stiff


def test_a_program_that_is_killed_leaves_legs_that_are_damped_with_the_hardwares_number() -> None:
    session = Session()

    def die(of: Session) -> None:
        of.world.links[-1].close()
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        session.run("", AT, SECONDS, die)
    session.world.sleep(0.1)
    assert not session.robot.stiff
    assert session.robot.command.kd.tolist() == [3.0] * 29
    assert session.robot.refused == 0, "a robot drops commands without its mode_machine"


def test_it_is_held_stiffly_until_the_policy_takes_over_and_waist_and_arms_go_to_zero_slowly() -> None:
    session, seen = Session(), []
    watch = session.watch

    def look() -> None:
        watch()
        command = session.robot.command
        seen.append((session.steps[-1].output.source, command.kp.copy(), command.q[12:].copy()))

    session.watch = look  # type: ignore[method-assign]
    session.run("", 1.0, 1.0)
    law, hold = session.policy.contract.commands[0].law, hold_gains(load_legged("g1").facts())
    assert hold is not None
    held = max((kp[0] for source, kp, _ in seen if source is not Source.POLICY))
    assert law.stiffness[0] < held <= hold.stiffness[0]
    np.testing.assert_allclose(seen[-1][1][:12], law.stiffness)
    np.testing.assert_allclose(seen[-1][1][12:], [one.stiffness for one in HELD.values()])
    targets = np.array([q for *_, q in seen if q.any()])
    assert np.abs(np.diff(targets, axis=0)).max() < 0.3 / 2.0 * 0.02 * 2
    np.testing.assert_allclose(session.robot._joints()[0][12:], 0.0, atol=0.02)


def test_the_joints_are_those_of_the_card_and_of_the_makers_numbering() -> None:
    card = load_legged("g1")
    assert [joint.name for joint in JOINTS[:12]] == list(card.joint_names)
    for ours, theirs in zip(JOINTS, card.joints, strict=False):
        assert (ours.lower, ours.upper, ours.effort) == (theirs.lower, theirs.upper, theirs.effort)
    assert len(JOINTS) == 29
    assert [JOINTS[i].name for i in (12, 15, 18, 22, 28)] == [
        "waist_yaw_joint", "left_shoulder_pitch_joint", "left_elbow_joint", "right_shoulder_pitch_joint",
        "right_wrist_yaw_joint",
    ]  # fmt: skip
    found = mapping(contract(), JOINTS, HELD, 400.0)
    assert set(found.measured) == {"orientation", "angular_velocity", "joint_position", "joint_velocity"}


def refused(session: Session, sentence: str, **of: int) -> None:
    with pytest.raises(DriverError, match=sentence):
        session.drive(**of).connect()


def test_another_hardware_and_a_mode_of_its_own_are_refused() -> None:
    session = Session()
    session.robot.machine = LOCKED
    refused(session, "tells mode_machine 6; the policy was trained for 5")
    session = Session()
    refused(session, "tells mode_machine 5; the policy was trained for 15", machine=15)
    session.robot.mode = "ai"
    refused(session, "the robot's mode 'ai' commands it; hang it up, press L2 and R2")
    assert session.robot.mode == "ai", "it is not released: the robot would fall"
    with pytest.raises(DriverError, match="takes neither --calibration nor --robot-file"):
        make("g1", contract(), Settings(file="my.toml"))
    with pytest.raises(DriverError, match=r"'go2' commands .*; this robot has the joints left_hip_pitch_joint"):
        make("g1", Bundle.read("zoo:go2-flat").contract, Settings())


def test_a_policy_of_another_hardware_says_so_in_its_contract() -> None:
    of = contract()
    other = dataclasses.replace(of.robot, facts={**of.robot.facts, "hardware": {"mode_machine": 15}})
    assert make("g1", dataclasses.replace(of, robot=other), Settings("lo")).machine == 15  # type: ignore[attr-defined]


def test_stops_are_damped() -> None:
    """A policy's stop is not held: legs that run are let go."""
    session = Session()
    session.run("", AT, SECONDS)
    session.driver.write({"joint_position_target": np.zeros(12)}, Mode.DAMP)
    session.world.sleep(0.02)
    assert not session.robot.stiff
