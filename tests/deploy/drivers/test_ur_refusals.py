"""What an arm of Universal Robots is not driven for, each in a sentence, before it moves."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_rl.deploy.emulate.ur import Arm
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.drivers.driver import DriverError, Settings
from robo_rl.deploy.robot.drivers.figures_file import parse_figures
from robo_rl.deploy.robot.drivers.rtde.mapping import Names
from robo_rl.deploy.robot.drivers.rtde.robot_file import UrFile
from robo_rl.deploy.robot.drivers.rtde.states import STOPPED
from robo_rl.deploy.robot.drivers.ur import make
from robo_rl.sim.robots.arm import load_arm

sys.path.append(str(Path(__file__).parent))
from emulated_ur import Session, contract, usual

REACH = usual()


def changed(**fields: Any) -> Any:
    return dataclasses.replace(REACH, commands=(dataclasses.replace(REACH.commands[0], **fields),))


def law(**fields: Any) -> Any:
    return changed(law=dataclasses.replace(REACH.commands[0].law, **fields))


def slower(speed: float | None) -> Any:
    actuators = tuple(dataclasses.replace(a, speed=speed) for a in REACH.robot.actuators)
    return dataclasses.replace(REACH, robot=dataclasses.replace(REACH.robot, actuators=actuators))


@pytest.mark.parametrize(
    ("contract", "sentence"),
    [
        (Bundle.read("zoo:arm-reach").contract, "an arm of Universal Robots takes joint_position_target in rad alone"),
        (contract(load_arm("so101")), "'gripper_position_target in rad']; an arm of Universal Robots takes"),
        (changed(upper=(7.0,) * 6), "a joint turns by 6.2832 rad to either side"),
        (dataclasses.replace(REACH, control_period=0.002), "runs at 500 Hz; this driver commands at up to 125 Hz"),
        (dataclasses.replace(REACH, control_period=0.05), "the arm would stop between two commands below 33 Hz"),
        (changed(law=None), "has no law of position"),
        (law(damping=(200.0, 200.0, 200.0, 50.0, 50.0, 100.0)), "servoj has one lookahead_time for all"),
        (law(damping=(20.0, 20.0, 20.0, 5.0, 5.0, 5.0)), "follow by 0.010 s; servoj's lookahead_time is 0.03 to 0.2 s"),
        (slower(None), "expected one above 0 and up to 6.2832 for each joint"),
        (slower(7.0), "expected one above 0 and up to 6.2832 for each joint"),
    ],
)
def test_a_contract_beyond_the_hardware_is_refused(contract: Any, sentence: str) -> None:
    with pytest.raises(DriverError, match=re.escape(sentence)):
        Names(contract, UrFile())


def test_a_changed_card_changes_what_the_driver_allows() -> None:
    card = load_arm("ur5e")
    joints = tuple(dataclasses.replace(j, velocity=1.0, lower=-4.5, damping=0.05 * j.stiffness) for j in card.joints)
    names = Names(contract(dataclasses.replace(card, joints=joints)), UrFile())
    assert np.allclose(names.reach, 0.05), "rad: 1 rad/s for the lag of 0.05 s"
    assert np.allclose(names.following.lowest, -4.5)
    assert names.following.lookahead == pytest.approx(0.05)
    assert "lookahead_time=0.0500" in names.following.text()
    assert names.limited(np.full(6, -5.0), np.full(6, -4.49)) == pytest.approx([-4.5] * 6)
    assert np.allclose(Names(slower(2.0), UrFile(speed=0.5)).reach, 0.1)


@pytest.mark.parametrize("text", ["gain = 50.0", "speed = 1.5", "deceleration = '8'", "stiffness = 1.0"])
def test_a_robot_file_that_is_wrong_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_figures(text.encode(), UrFile)


def test_settings_that_lack_something_or_reach_nobody_are_refused() -> None:
    with pytest.raises(DriverError, match="give the robot's address with --port"):
        make(REACH, Settings())
    with pytest.raises(DriverError, match="takes no --calibration"):
        make(REACH, Settings("127.77.7.7", calibration="x.json"))
    with pytest.raises(DriverError, match=r"no robot answers at 127\.77\.7\.7:30004"):
        make(REACH, Settings("127.77.7.7")).connect()


def test_another_robots_kinematics_or_tool_are_refused() -> None:
    session = Session()
    session.arm.tcp = np.array([0.0, 0.0, 0.05])
    with pytest.raises(DriverError, match=r"0\.050 m from where .* it is another robot, or its active TCP is not"):
        session.driver.connect()


def test_who_writes_the_same_registers_is_noticed() -> None:
    session, other = Session(), Session()
    other.driver._lines = session.world
    other.driver.connect()
    with pytest.raises(DriverError, match="another program writes input_double_register_24 by RTDE; end it first"):
        session.driver.connect()
    other.driver.close()
    session.driver.connect()


def local(arm: Arm) -> None:
    arm.remote = False


def slider(arm: Arm) -> None:
    arm.speed = 0.3


def busy(arm: Arm) -> None:
    arm.runtime = 2


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (Arm.stop_protectively, "safety mode is 'protective stop'"),
        (Arm.stop_in_emergency, "the robot's mode is 'power off'"),
        (slider, "the speed slider is at 30 %; set it to 100 %"),
        (busy, r"a program is on the robot that is not ended \(playing\)"),
        (local, "does not run our program; is it in remote control"),
    ],
)
def test_an_arm_that_is_not_ready_is_not_enabled(change: Callable[[Arm], None], sentence: str) -> None:
    session = Session()
    session.driver.connect()
    change(session.arm)
    session.world.sleep(0.1)
    with pytest.raises(DriverError, match=sentence):
        session.driver.enable()
    assert session.arm.program is None


def test_an_arm_outside_of_the_policys_limits_is_not_enabled() -> None:
    session = Session()
    session.driver.connect()
    low = list(session.driver.names.following.lowest)
    session.driver.names.following = dataclasses.replace(
        session.driver.names.following, lowest=(low[0], -1.5, *low[2:])
    )
    with pytest.raises(DriverError, match="outside of the policy's limits; move them inside"):
        session.driver.enable()


def test_an_arm_that_moves_while_the_program_starts_is_not_enabled() -> None:
    session = Session()
    session.driver.connect()
    run = session.world.wire.arm.run

    def slipping(text: str) -> str:
        session.arm.broken.encoders = 0.03
        return run(text)

    session.world.wire.arm.run = slipping  # type: ignore[method-assign]
    with pytest.raises(DriverError, match="the arm moved while the program started"):
        session.driver.enable()
    session.world.sleep(0.1)
    assert session.arm.runtime == STOPPED


def test_another_text_than_the_drivers_program_is_not_run() -> None:
    arm = Arm()
    text = Names(REACH, UrFile()).following.text()
    for wrong in (
        text.replace("stopj(8.0000)", "stopj(0.1000)", 1),
        text + " ",
        "def x():\n  movej([0,0,0,0,0,0])\nend\n",
    ):
        assert "runs no program but the one" in arm.run(wrong)
        assert arm.program is None
    assert arm.run(text) == ""
