"""What a Franka is not driven for, each in a sentence, before it moves."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("franky", reason="franky is missing: pip install 'robo-rl[franka]'")
pytest.importorskip("franky_sim", reason="franky_sim is missing: pip install 'robo-rl[franka-sim]'")

from robo_rl.deploy.emulate.franka import Station
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.drivers.driver import DriverError, Settings
from robo_rl.deploy.robot.drivers.fci.library import open_hand, open_robot
from robo_rl.deploy.robot.drivers.fci.mapping import Names
from robo_rl.deploy.robot.drivers.fci.robot_file import FrankaFile
from robo_rl.deploy.robot.drivers.figures_file import parse_figures
from robo_rl.deploy.robot.drivers.franka import make

sys.path.append(str(Path(__file__).parent))
from emulated_franka import Session, ended

pytestmark = pytest.mark.release  # the library's threads keep real time: two of them fail at times on a busy computer

REACH = Bundle.read("zoo:arm-reach").contract
READY = (0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785)
"""rad: Franka's own, above where the policy works."""
AWAY = (1.571, *READY[1:6], READY[6] + 1.571)
"""rad: the same beside the robot, the tool turned as it has to be."""
TILTED = (0.0, 0.1289, 0.0, -2.3953, 0.0, 2.8, 0.7853981634)
"""rad: the tool does not point down."""


def changed(name: str, **fields: Any) -> Any:
    """The contract with another command of that name."""
    commands = [dataclasses.replace(c, **fields) if c.name == name else c for c in REACH.commands]
    return dataclasses.replace(REACH, commands=tuple(commands))


def law(**fields: Any) -> Any:
    command = next(c for c in REACH.commands if c.name == "tool_position_target")
    return changed(command.name, law=dataclasses.replace(command.law, **fields))


@pytest.mark.parametrize(
    ("contract", "sentence"),
    [
        (law(stiffness=(4000.0,) * 3 + (50.0,) * 3), "the law's stiffness is 4000 N/m; a Franka takes at most 3000"),
        (law(clip=(0.05,) * 3 + (0.1,) * 3), "the law pushes with up to 50 N; force_threshold, 30"),
        (changed("gripper_position_target", upper=(0.06,)), "a finger of the Franka hand moves from 0 to 0.04 m"),
        (
            Bundle.read("zoo:arm-place-so101").contract,
            "a Franka takes tool_position_target and gripper_position_target",
        ),
        (dataclasses.replace(REACH, control_period=0.0005), "runs at 2000 Hz; a Franka is commanded at 1000 Hz"),
    ],
)
def test_a_contract_beyond_the_hardware_is_refused(contract: Any, sentence: str) -> None:
    with pytest.raises(DriverError, match=re.escape(sentence)):
        Names(contract, FrankaFile())


def test_a_robot_file_that_allows_more_force_allows_the_policy_more() -> None:
    pushing = law(clip=(0.05,) * 3 + (0.1,) * 3)
    assert Names(pushing, FrankaFile(force_threshold=60.0))
    with pytest.raises(DriverError, match="force_threshold, 40"):
        Names(pushing, FrankaFile(force_threshold=40.0))


@pytest.mark.parametrize("text", ["hand_force = 200.0", "torque_threshold = '20'", "speed = 1.0"])
def test_a_robot_file_that_is_wrong_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_figures(text.encode(), FrankaFile)


def test_an_address_without_a_robot_is_named() -> None:
    with pytest.raises(DriverError, match=r"127\.77\.7\.7: .*is FCI active in Desk"):
        make(REACH, Settings("127.77.7.7"))
    with pytest.raises(DriverError, match="no Franka hand answers"):
        open_hand("127.77.7.7")
    with pytest.raises(DriverError, match="Connection to FCI refused"):
        open_robot("127.77.7.7")


def test_another_tool_is_refused() -> None:
    with ended(Session()) as session:
        tool = np.eye(4)
        tool[2, 3] = 0.15
        session.station.server.tool = tuple(tool.flatten(order="F"))
        session.world.sleep(0.02)
        with pytest.raises(
            DriverError, match=r"F_T_EE\); the policy's tool 'panda_hand_tcp' is at \[0.0, 0.0, 0.103\]"
        ):
            session.driver.connect()


def test_another_robots_kinematics_are_refused() -> None:
    with ended(Session()) as session:
        session.station.server.shifted = 0.01
        session.world.sleep(0.02)
        with pytest.raises(DriverError, match="they are not the same robot"):
            session.driver.connect()


@pytest.mark.parametrize(
    ("start", "sentence"),
    [(AWAY, "out of where the policy may have it"), (TILTED, "guide it within 0.1 rad of that")],
)
def test_an_arm_that_is_elsewhere_is_not_enabled(start: tuple[float, ...], sentence: str) -> None:
    with ended(Session(station=Station(start=start))) as session:
        session.driver.connect()
        with pytest.raises(DriverError, match=sentence):
            session.driver.enable()
        assert not session.station.server.moving


def test_an_arm_in_its_makers_pose_is_enabled_where_it_is() -> None:
    with ended(Session(station=Station(start=READY))) as session:
        session.driver.connect()
        session.driver.enable()
        session.world.sleep(0.3)
        assert session.station.server.moving
        np.testing.assert_allclose(session.station.angles, READY, atol=0.02)


@pytest.mark.parametrize(("mode", "sentence"), [("kUserStopped", "user stop"), ("kGuiding", "guides it by hand")])
def test_an_arm_that_a_person_has_is_not_enabled(mode: str, sentence: str) -> None:
    from franky_sim.franka_robot_protocol import RobotMode

    with ended(Session()) as session:
        session.driver.connect()
        session.station.server.mode = RobotMode[mode]
        session.world.sleep(0.02)
        with pytest.raises(DriverError, match=sentence):
            session.driver.enable()


def test_a_hand_that_tells_its_width_too_seldom_is_refused_with_its_rate() -> None:
    with ended(Session()) as session:
        session.station.server.hand.every = 150
        with pytest.raises(DriverError, match=r"the hand tells its width every .* ms; the policy wants signals"):
            session.driver.connect()
