"""What the driver of a Go2 refuses: contracts beyond the robot, and robots that are not ready to be commanded."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from robo_rl.contract import Contract
from robo_rl.deploy.emulate.go2 import Go2
from robo_rl.deploy.emulate.go2.wire import FAULTS
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.drivers import make
from robo_rl.deploy.robot.drivers.driver import DriverError, Mode, Settings
from robo_rl.deploy.robot.drivers.go2 import JOINTS
from robo_rl.deploy.robot.drivers.unitree.keeping import Keeper, Phase, damping
from robo_rl.deploy.robot.drivers.unitree.mapping import mapping
from robo_rl.deploy.robot.drivers.unitree.messages import decode_command
from robo_rl.sim.robots.legged import load_legged

sys.path.append(str(Path(__file__).parent))
from emulated_go2 import Session


@pytest.fixture(scope="module")
def flat() -> Contract:
    return Bundle.read("zoo:go2-flat").contract


def changed(of: Contract, **fields: object) -> Contract:
    command = dataclasses.replace(of.commands[0], **fields)  # type: ignore[arg-type]
    return dataclasses.replace(of, commands=(command,))


def test_the_joints_are_those_of_the_card_in_its_order(flat: Contract) -> None:
    card = load_legged("go2")
    assert [joint.name for joint in JOINTS] == list(card.joint_names)
    for ours, theirs in zip(JOINTS, card.joints, strict=True):
        assert (ours.lower, ours.upper, ours.effort) == (theirs.lower, theirs.upper, theirs.effort)
    found = mapping(flat, JOINTS)
    assert set(found.measured) == {"orientation", "angular_velocity", "joint_position", "joint_velocity"}
    assert found.commands["joint_position_target"].tolist() == list(range(12))
    assert found.kp.tolist() == [35.0] * 12
    assert found.kd.tolist() == [0.5] * 12


def test_a_robot_with_its_motors_in_another_order_is_told_by_names(flat: Contract) -> None:
    law = flat.commands[0].law
    assert law is not None
    stiff = dataclasses.replace(law, stiffness=tuple(range(1, 13)))
    found = mapping(changed(flat, law=stiff), JOINTS[::-1])
    assert found.commands["joint_position_target"].tolist() == list(range(12))[::-1]
    assert found.positions["joint_position"].tolist() == list(range(12))[::-1]
    assert found.kp.tolist() == list(range(12, 0, -1))


def test_a_contract_beyond_the_hardware_is_refused(flat: Contract) -> None:
    command, law = flat.commands[0], flat.commands[0].law
    assert law is not None
    with pytest.raises(DriverError, match=r"FR_hip_joint: the policy commands -1\.047 to 1\.152 rad; the joint goes"):
        mapping(changed(flat, upper=tuple(1.1 * x for x in command.upper)), JOINTS)
    with pytest.raises(DriverError, match=r"trained with 120 N m/rad and 0\.5 N m s/rad; this driver allows up to 100"):
        mapping(changed(flat, law=dataclasses.replace(law, stiffness=(120.0,) * 12)), JOINTS)
    with pytest.raises(DriverError, match=r"runs at 1000 Hz; the robot tells 500"):
        mapping(dataclasses.replace(flat, control_period=0.001), JOINTS)
    stronger = tuple(dataclasses.replace(a, effort=1.2 * (a.effort or 0)) for a in flat.robot.actuators)
    with pytest.raises(DriverError, match=r"FR_hip_joint: the policy was trained with 28\.44 N m; the motor has 23\.7"):
        mapping(dataclasses.replace(flat, robot=dataclasses.replace(flat.robot, actuators=stronger)), JOINTS)
    with pytest.raises(DriverError, match=r"'panda' commands .*; this robot has the joints"):
        make("go2", Bundle.read("zoo:arm-reach").contract, Settings())
    with pytest.raises(DriverError, match="takes neither --calibration nor --robot-file"):
        make("go2", flat, Settings(file="my.toml"))


def refused(session: Session, sentence: str) -> None:
    with pytest.raises(DriverError, match=sentence):
        session.driver.connect()
    assert all(link.keeper.phase == Phase.QUIET for link in session.world.links)


def test_a_robot_that_stands_in_its_own_mode_is_not_released() -> None:
    session = Session()
    stand = np.array([0.0, 0.9, -1.8] * 4)
    session.robot._own = lambda: dataclasses.replace(session.robot.command, q=stand)  # type: ignore[method-assign]
    session.world.sleep(1.0)
    refused(session, "stands in its mode 'normal' and would fall when that is released; let it lie down")
    assert session.robot.mode == "normal"


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda code, parameter: (0, '{"form": "0", "name": "ai"}'), "does not release its mode 'ai'"),
        (lambda code, parameter: (0, '{"form": "0"}'), 'answered 0 \'{"form": "0"}\' to CheckMode; expected a name'),
        (lambda code, parameter: (3203, ""), "answered 3203 '' to CheckMode"),
        (lambda code, parameter: (0, "[" * 5000), "to CheckMode; expected a name"),
    ],
)
def test_a_motion_switcher_that_does_not_release_ends_the_session(answer: Callable[..., object], sentence: str) -> None:
    session = Session()
    session.robot.request = answer  # type: ignore[method-assign, assignment]
    refused(session, sentence)


def test_a_robot_that_says_nothing_or_that_another_commands_is_refused() -> None:
    silent = Session()
    silent.world.wire.fault = "no states"
    refused(silent, "no Unitree Go2 tells its state on rt/lowstate: is it switched on")
    busy = Session()
    busy.world.wire.fault = "another commander"
    refused(busy, "somebody else commands the robot on rt/lowcmd")


def test_a_robot_that_is_hot_or_whose_remote_says_stop_is_not_enabled() -> None:
    hot = Session()
    hot.driver.connect()
    FAULTS["motor hot"].at_once(hot.robot)
    hot.world.sleep(0.02)
    hot.driver.read(hot.world.monotonic_ns() // 1000)
    with pytest.raises(DriverError, match="FR_thigh_joint has 95 °C"):
        hot.driver.enable()
    stopped = Session()
    stopped.driver.connect()
    FAULTS["remote's stop"].at_once(stopped.robot)
    stopped.world.sleep(0.02)
    stopped.driver.read(stopped.world.monotonic_ns() // 1000)
    stopped.driver.enable()
    stopped.world.sleep(0.02)
    assert stopped.world.links[-1].keeper.phase == Phase.QUIET
    stopped.driver.read(stopped.world.monotonic_ns() // 1000)
    assert any("L2 and B are pressed" in problem for problem in stopped.driver.health().problems)


def test_stiffness_rises_within_a_second_and_damping_has_none() -> None:
    session = Session()
    session.driver.connect()
    session.driver.read(session.world.monotonic_ns() // 1000)
    session.driver.enable()
    held = {"joint_position_target": np.array([0.0, 1.2, -2.6] * 4)}
    found = []
    for _ in range(60):
        session.driver.write(held, Mode.POLICY)
        session.world.sleep(0.02)
        found.append(session.robot.command.kp[0])
    assert 0.29 * 35 < found[0] < 0.33 * 35
    assert found == sorted(found)
    assert found[-1] == 35.0
    session.driver.write(held, Mode.DAMP)
    session.world.sleep(0.02)
    assert not session.robot.stiff
    assert session.robot.command.kd.tolist() == [3.0] * 12


def test_at_the_end_the_robot_has_its_own_mode_again() -> None:
    session = Session()
    session.driver.connect()
    assert session.robot.mode == ""
    session.driver.read(session.world.monotonic_ns() // 1000)
    session.driver.enable()
    session.world.sleep(0.02)
    session.driver.disable()
    assert session.robot.mode == "normal"
    assert session.world.links[-1].keeper.publish(session.world.now()) is None


def test_a_keeper_that_damps_follows_only_after_it_is_enabled_again() -> None:
    keeper, command, robot = Keeper(), damping(np.ones(12)), Go2()
    keeper.command(0.0, command)
    assert keeper.publish(0.0) is None
    assert keeper.state(0.1, robot.advance(0.002)[0])
    keeper.enable(0.1, command)
    assert keeper.publish(0.1) == command
    keeper.damp("the program asked for it")
    keeper.command(0.12, command)
    sent = keeper.publish(0.12)
    assert sent is not None
    assert decode_command(sent).q[2] < -2.5  # where it is
    keeper.enable(0.15, command)
    assert keeper.publish(0.15) == command
