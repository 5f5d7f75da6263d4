"""What the driver of Dynamixel servos refuses: contracts beyond the hardware, arms that are not what they should be."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_rl.contract import Contract
from robo_rl.deploy.robot.drivers import make
from robo_rl.deploy.robot.drivers.bus_servos import calibration, robot_file
from robo_rl.deploy.robot.drivers.bus_servos.calibration import DYNAMIXEL_OFFSET, FEETECH_OFFSET, JointCalibration
from robo_rl.deploy.robot.drivers.bus_servos.joints import joints_of
from robo_rl.deploy.robot.drivers.bus_servos.robot_file import DYNAMIXEL, JointMounting, RobotFile
from robo_rl.deploy.robot.drivers.driver import DriverError, Settings
from robo_rl.deploy.robot.drivers.dynamixel import registers as r
from robo_rl.deploy.robot.drivers.dynamixel.mapping import Gains, gains, strong_enough
from robo_rl.deploy.robot.drivers.dynamixel.models import MODELS

sys.path.append(str(Path(__file__).parent))
from emulated_arm import contract
from emulated_dynamixel import Session


@pytest.fixture(scope="module")
def arm() -> Contract:
    return contract()


def changed(of: Contract, **fields: object) -> Contract:
    command = dataclasses.replace(of.commands[0], **fields)  # type: ignore[arg-type]
    return dataclasses.replace(of, commands=(command, *of.commands[1:]))


def stiffer(of: Contract, part: float) -> Contract:
    law: Any = of.commands[0].law
    return changed(of, law=dataclasses.replace(law, stiffness=tuple(part * k for k in law.stiffness)))


def test_a_contract_beyond_the_bus_or_the_calibration_is_refused_before_the_port_is_opened(arm: Contract) -> None:
    wide = tuple(1.3 * x for x in arm.commands[0].upper)
    with pytest.raises(DriverError, match=r"shoulder_pan: the policy commands -1\.92 to 2\.50 rad, and this arm is"):
        Session(changed(arm, upper=wide))
    with pytest.raises(DriverError, match=r"runs at 250 Hz; 6 servos on one bus can be read and commanded at 101 Hz"):
        Session(dataclasses.replace(arm, control_period=0.004))


def test_a_changed_card_changes_the_servos_gains_and_what_is_refused(arm: Contract) -> None:
    for part in (1.0, 2.0):
        session = Session(stiffer(arm, part))
        session.driver.connect()
        wanted = round(part * 17.8 / MODELS[1030].stiffness)
        assert [servo.get(r.P) for servo in session.arm.servos[:5]] == [wanted] * 5
    session = Session(stiffer(arm, 20.0))
    with pytest.raises(
        DriverError, match=r"trained with 356 N m/rad .*; this XM430-W210 at 12.0 V can have up to 283 N"
    ):
        session.driver.connect()
    law: Any = arm.commands[0].law
    session = Session(changed(arm, law=dataclasses.replace(law, damping=(0.3,) * 5)))
    with pytest.raises(DriverError, match=r"and 0\.3 N m s/rad; .* and 0\.6 N m s/rad; train with these"):
        session.driver.connect()
    robot = dataclasses.replace(
        arm.robot, actuators=tuple(dataclasses.replace(a, effort=4.0) for a in arm.robot.actuators)
    )
    session = Session(dataclasses.replace(arm, robot=robot))
    with pytest.raises(DriverError, match=r"robot has a torque of 4 N m; this XM430-W210 at 12\.0 V has 3 N m"):
        session.driver.connect()


def test_gains_of_a_data_sheet_go_with_the_voltage_and_those_of_the_robot_file_do_not(arm: Contract) -> None:
    session, model = Session(arm), MODELS[1200]
    (joint, *_) = joints_of(arm, session.arm.calibration, RobotFile(), [j.name for j in session.arm.joints], False)
    soft = dataclasses.replace(joint, stiffness=2.0, damping=model.damping)
    at_5, at_6 = (gains(soft, model, volts, JointMounting()).p for volts in (5.0, 6.0))
    assert at_5 / at_6 == pytest.approx(1.2, rel=0.01)
    found = JointMounting(stiffness=0.004, damping=soft.damping, d_gain=30)
    assert gains(soft, model, 6.0, found) == gains(soft, model, 5.0, found) == Gains(500, 30)
    with pytest.raises(DriverError, match=r"a torque of 2\.94 N m; this XL330-M288 at 5\.0 V has 0\.52 N m"):
        strong_enough(joint, arm.robot.actuators[0], model, 5.0)


def test_another_arm_is_refused_before_anything_is_written(arm: Contract) -> None:
    for register, value, sentence in (
        (r.HOMING_OFFSET, 5, r"servo 1 \(shoulder_pan\) has the homing_offset 5, the calibration file says 1470"),
        (r.LOWER_LIMIT, 5, r"servo 1 \(shoulder_pan\) has the range_min 5, the calibration file says 796"),
        (r.MODEL_NUMBER, 30, r"servo 1 \(shoulder_pan\) is model 30; expected one of XM430-W350, XM430-W210"),
        (r.DRIVE_MODE, 1, r"servo 1 \(shoulder_pan\) has the drive mode 1; expected 0 as in the calibration file"),
        (r.DRIVE_MODE, 8, r"has the drive mode 8; expected 0"),
        (r.OPERATING_MODE, 1, r"is in the operating mode 1 \(velocity\); expected position \(3\) or extended"),
        (r.OPERATING_MODE, 3, r"ignores its homing offset of 1470 in the operating mode 3; expected extended"),
        (r.SHADOW_ID, 2, r"is the shadow of servo 2, which is a joint of its own"),
        (r.SHUTDOWN, 48, r"does not let go at overheating; write 52 to its register 63"),
        (r.HARDWARE_ERROR, 32, r"servo 1 \(shoulder_pan\) reports overload; remove the cause, switch it off and on"),
    ):
        session = Session(arm)
        session.arm.servos[0].set(register, value)
        before = [bytes(servo.registers) for servo in session.arm.servos]
        with pytest.raises(DriverError, match=sentence):
            session.driver.connect()
        assert [bytes(servo.registers) for servo in session.arm.servos] == before
    session = Session(arm)
    session.arm.servos[4].alive = False
    with pytest.raises(DriverError, match=r"servo 5 \(wrist_roll\) does not answer"):
        session.driver.connect()


def test_a_gripper_that_lerobot_left_in_its_mode_is_set_only_without_torque(arm: Contract) -> None:
    session = Session(arm)
    gripper = session.arm.servos[5]
    assert gripper.get(r.OPERATING_MODE) == r.CURRENT_POSITION
    session.driver.connect()
    assert gripper.get(r.OPERATING_MODE) == r.EXTENDED_POSITION
    session = Session(arm)
    session.arm.servos[5].set(r.TORQUE_ENABLE, 1)
    with pytest.raises(DriverError, match=r"servo 6 \(gripper\) is in the operating mode 5 \(current-based position\)"):
        session.driver.connect()


def test_a_servo_that_takes_no_torque_is_named_and_nothing_stays_enabled(arm: Contract) -> None:
    session = Session(arm)
    session.driver.connect()
    session.arm.servos[3].set(r.HARDWARE_ERROR, 32)
    with pytest.raises(DriverError, match=r"\['wrist_flex'\] take no torque"):
        session.driver.enable()
    assert {servo.get(r.TORQUE_ENABLE) for servo in session.arm.servos} == {0}
    assert {servo.get(r.BUS_WATCHDOG) for servo in session.arm.servos} == {0}


def test_a_bus_on_which_somebody_speaks_is_refused(arm: Contract) -> None:
    session = Session(arm)
    session.driver.bus.port.answers = b"\xff\xff\xfd\x00\x01\x03\x00\x01\x19\x4e"
    with pytest.raises(DriverError, match="somebody else speaks on this bus"):
        session.driver.connect()


def test_an_arm_outside_of_its_calibrated_range_is_not_armed(arm: Contract) -> None:
    session = Session(arm)
    session.driver.connect()
    session.driver.joints = tuple(
        dataclasses.replace(j, calibration=dataclasses.replace(j.calibration, range_min=2500))
        for j in session.driver.joints
    )
    with pytest.raises(DriverError, match="outside of their calibrated range; move them inside"):
        session.driver.enable()
    assert {servo.get(r.TORQUE_ENABLE) for servo in session.arm.servos} == {0}


def test_the_robot_tells_its_servos_their_firmware_and_its_watchdog(arm: Contract) -> None:
    for told, sentence in (
        (True, "0.10 s"),
        (None, "older firmware moves when it trips"),
        (False, "by the robot file"),
    ):
        identity = Session(arm, bus_watchdog=told).driver.connect()
        assert identity.details["servos"].startswith("1:XM430-W210 2:XM430-W210")
        assert identity.details["firmware"] == "50 50 50 50 50 50"
        assert sentence in identity.details["bus watchdog"]


def test_a_servo_whose_direction_is_reversed_by_itself_is_not_reversed_again(arm: Contract) -> None:
    """LeRobot's DynamixelMotorsBus has apply_drive_mode = False: the servo does it."""
    session = Session(arm)
    reversed_one = {n: dataclasses.replace(c, drive_mode=1) for n, c in session.arm.calibration.items()}
    names = [joint.name for joint in session.arm.joints]
    for here, sign in ((False, 1), (True, -1)):
        assert {j.sign for j in joints_of(arm, reversed_one, RobotFile(), names, here)} == {sign}


def test_health_tells_voltage_temperature_and_current(arm: Contract) -> None:
    session = Session(arm)
    session.run("", 10**9, 0.5)
    session.arm.servos[0].set(r.PRESENT_CURRENT, -100)
    session.driver.read(1)
    figures = session.driver.health().figures
    assert figures["voltage/shoulder_pan V"] == pytest.approx(12.0)
    assert figures["temperature/elbow_flex degC"] == 30.0
    assert figures["current/shoulder_pan A"] == pytest.approx(-0.269)


def test_lerobots_koch_calibration_has_offsets_that_no_feetech_servo_has(tmp_path: Path) -> None:
    koch = {"shoulder_pan": {"id": 1, "drive_mode": 0, "homing_offset": -3072, "range_min": 0, "range_max": 4095}}
    (tmp_path / "koch.json").write_text(json.dumps(koch))
    found = calibration.read_calibration(tmp_path / "koch.json", DYNAMIXEL_OFFSET)
    assert found == {"shoulder_pan": JointCalibration(1, 0, -3072, 0, 4095)}
    with pytest.raises(DriverError, match="homing_offset is -3072; expected an integer from -2047 to 2047"):
        calibration.read_calibration(tmp_path / "koch.json", FEETECH_OFFSET)


def test_a_robot_file_survives_reading_and_writing_and_strange_ones_are_refused(tmp_path: Path) -> None:
    path, names = tmp_path / "arm.toml", ["a", "b"]
    file = RobotFile({"a": JointMounting(-1, 0.1, 0.017, 0.6, 400), "b": JointMounting()}, 0.5, True)
    robot_file.write_robot_file(path, file)
    assert robot_file.read_robot_file(str(path), names, DYNAMIXEL) == file
    for line, sentence in (
        ("bus_watchdog = 1", "bus_watchdog is 1; expected true or false"),
        ("[joints.a]\nd_gain = -1", "joints.a.d_gain is -1; expected an integer from 0 to 16383"),
        ("[joints.a]\nstiffness = 0", "joints.a.stiffness is 0; expected a number from 1e-06 to 100"),
        ("[joints.c]\nsign = 1", "expected tables named as a, b"),
        ("watchdog = true", "are unknown; expected bus_watchdog, joints, torque_limit"),
    ):
        path.write_text(line)
        with pytest.raises(DriverError, match=sentence):
            robot_file.read_robot_file(str(path), names, DYNAMIXEL)
    path.write_text("bus_watchdog = true")
    with pytest.raises(DriverError, match="are unknown; expected joints, torque_limit"):
        robot_file.read_robot_file(str(path), names)


def test_the_driver_is_found_by_its_name_and_wants_a_calibration(arm: Contract, tmp_path: Path) -> None:
    with pytest.raises(DriverError, match=r"koch_follower/ID\.json"):
        make("dynamixel", arm, Settings())
    calibration.write_calibration(tmp_path / "arm.json", Session(arm).arm.calibration)
    with pytest.raises(DriverError, match="there is no such port"):
        make("dynamixel", arm, Settings(str(tmp_path / "none"), "", str(tmp_path / "arm.json")))


def test_angles_survive_the_servos_steps(arm: Contract) -> None:
    for joint in Session(arm).driver.joints:
        for angle in np.linspace(-0.1, 0.1, 7):
            assert abs(joint.angle(joint.steps(joint.zero + angle)) - joint.zero - angle) <= np.pi / 4096 + 1e-9
