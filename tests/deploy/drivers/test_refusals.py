"""What the driver of an arm refuses: contracts beyond the hardware, and arms that are not what they should be."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest

from robo_rl.contract import Contract
from robo_rl.controllers.gate.codes import State
from robo_rl.deploy.robot.drivers import ROBOTS, make
from robo_rl.deploy.robot.drivers.bus_servos.calibration import write_calibration
from robo_rl.deploy.robot.drivers.bus_servos.joints import joints_of
from robo_rl.deploy.robot.drivers.bus_servos.robot_file import JointMounting, RobotFile
from robo_rl.deploy.robot.drivers.driver import DriverError, ForLoop, Settings
from robo_rl.deploy.robot.drivers.feetech import registers as r
from robo_rl.deploy.robot.drivers.feetech.mapping import p_gain, within_hardware
from robo_rl.deploy.robot.drivers.so101 import JOINTS

sys.path.append(str(Path(__file__).parent))
from emulated_arm import Session, contract


@pytest.fixture(scope="module")
def so101() -> Contract:
    return contract()


def judged(of: Contract, session: Session, file: RobotFile | None = None) -> None:
    within_hardware(of, joints_of(of, session.arm.calibration, file or RobotFile(), JOINTS, True))


def changed(of: Contract, **fields: object) -> Contract:
    command = dataclasses.replace(of.commands[0], **fields)  # type: ignore[arg-type]
    return dataclasses.replace(of, commands=(command, *of.commands[1:]))


def test_a_contract_beyond_the_hardware_is_refused(so101: Contract) -> None:
    session, command = Session(so101), so101.commands[0]
    judged(so101, session)
    law = dataclasses.replace(command.law, stiffness=tuple(1.5 / 16 * k for k in command.law.stiffness))  # type: ignore
    with pytest.raises(DriverError, match=r"trained with 1\.66\d* N m/rad and 0\.6 N m s/rad; this servo can have"):
        judged(changed(so101, law=law), session)
    wide = tuple(1.3 * x for x in command.upper)
    with pytest.raises(DriverError, match=r"shoulder_pan: the policy commands -1\.92 to 2\.50 rad, and this arm is"):
        judged(changed(so101, upper=wide), session)
    with pytest.raises(DriverError, match=r"runs at 250 Hz; 6 servos on one bus can be read and commanded at 148 Hz"):
        judged(dataclasses.replace(so101, control_period=0.004), session)
    with pytest.raises(DriverError, match=r"the policy commands .*; this arm has the joints"):
        joints_of(contract("panda"), session.arm.calibration, RobotFile(), JOINTS, True)


def test_a_changed_card_changes_the_servos_gains(so101: Contract) -> None:
    session, law = Session(so101), so101.commands[0].law
    stiffer = dataclasses.replace(law, stiffness=tuple(2 * k for k in law.stiffness))  # type: ignore
    for of, p in ((so101, 16), (changed(so101, law=stiffer), 32)):
        found = joints_of(of, session.arm.calibration, RobotFile(), JOINTS, True)
        assert {p_gain(joint) for joint in found if joint.name != "gripper"} == {p}


def test_signals_that_nothing_measures_are_refused(so101: Contract) -> None:
    with pytest.raises(DriverError, match=r"nothing gives the signals \['tool_position_setpoint'\]"):
        ForLoop(Session(so101).driver, so101, {})


@pytest.mark.parametrize("sign", [1, -1])
def test_angles_survive_the_servos_steps(so101: Contract, sign: int) -> None:
    file = RobotFile({name: JointMounting(sign, 0.01) for name in JOINTS})
    for joint in joints_of(so101, Session(so101).arm.calibration, file, JOINTS, True):
        for angle in np.linspace(-0.1, 0.1, 7):
            assert abs(joint.angle(joint.steps(angle)) - angle) <= np.pi / 4096 + 1e-9
        assert np.sign(joint.steps(0.11) - joint.steps(0.0)) == sign


def test_another_arm_is_refused_before_anything_is_written(so101: Contract) -> None:
    for register, value, sentence in (
        (r.OFFSET, 5, r"servo 1 \(shoulder_pan\) has the offset 5, the calibration file says -1470"),
        (r.MODEL_NUMBER, 1284, r"servo 1 \(shoulder_pan\) is model 1284; expected an STS3215"),
    ):
        session = Session(so101)
        session.arm.servos[0].set(register, value)
        session.arm.servos[0].set(r.P, 99)
        with pytest.raises(DriverError, match=sentence):
            session.driver.connect()
        assert session.arm.servos[0].get(r.P) == 99
    session = Session(so101)
    session.arm.servos[4].alive = False
    with pytest.raises(DriverError, match=r"servo 5 \(wrist_roll\) does not answer"):
        session.driver.connect()
    session = Session(so101)
    session.arm.servos[4].errors = 32
    with pytest.raises(DriverError, match=r"servo 5 \(wrist_roll\) reports overload; switch it off and on"):
        session.driver.connect()


def test_a_bus_on_which_somebody_speaks_is_refused(so101: Contract) -> None:
    session = Session(so101)
    session.driver.bus.port.answers = b"\xff\xff\x01\x02\x01\xfb"  # type: ignore[attr-defined]
    with pytest.raises(DriverError, match="somebody else speaks on this bus"):
        session.driver.connect()


def test_an_arm_outside_of_its_calibrated_range_is_not_armed(so101: Contract) -> None:
    session = Session(so101)
    session.driver.joints = tuple(
        dataclasses.replace(j, calibration=dataclasses.replace(j.calibration, range_min=2500))
        for j in session.driver.joints
    )
    with pytest.raises(DriverError, match="outside of their calibrated range; move them inside"):
        session.driver.enable()
    assert all(servo.get(r.TORQUE_ENABLE) == 0 for servo in session.arm.servos)


def test_torque_rises_within_a_second(so101: Contract) -> None:
    session = Session(so101)
    session.run("", 10**9, 2.5)
    active = [step for step in session.steps if step.output.state == State.ACTIVE]
    assert active
    assert session.arm.servos[0].get(r.TORQUE_LIMIT) == 1000
    assert session.arm.servos[0].get(r.TORQUE_ENABLE) == 1


def test_drivers_are_found_by_name_and_in_files(so101: Contract, tmp_path: Path) -> None:
    with pytest.raises(DriverError, match=f"no driver is called 'none'; expected {', '.join(ROBOTS)}, or a file"):
        make("none", so101, Settings())
    with pytest.raises(DriverError, match="give LeRobot's calibration of this arm with --calibration"):
        make("so101", so101, Settings())
    servos = Session(so101).arm.calibration
    lift, flex = servos["shoulder_lift"], servos["elbow_flex"]
    servos |= {"shoulder_lift": dataclasses.replace(lift, id=3), "elbow_flex": dataclasses.replace(flex, id=2)}
    write_calibration(tmp_path / "exchanged.json", servos)
    with pytest.raises(DriverError, match="shoulder_lift has the ID 3; LeRobot's SO-101 has 2"):
        make("so101", so101, Settings(calibration=str(tmp_path / "exchanged.json")))
    (tmp_path / "mine.py").write_text("def make(contract, settings):\n    return (contract.task, settings.port)\n")
    assert make(str(tmp_path / "mine.py"), so101, Settings("COM3")) == ("arm-reach", "COM3")
