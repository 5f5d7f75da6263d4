"""What the driver of the Crazyflie refuses: contracts beyond its motors, other vehicles, and one that is not ready."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

pytest.importorskip("cflib", reason="cflib is missing: pip install 'robo-rl[crazyflie]'")

from robo_rl.deploy.emulate.crazyflie.supervisor import State
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.drivers import make
from robo_rl.deploy.robot.drivers.crtp.crazyflie import within_hardware
from robo_rl.deploy.robot.drivers.crtp.robot_file import CrazyflieFile
from robo_rl.deploy.robot.drivers.driver import DriverError, Settings

sys.path.append(str(Path(__file__).parent))
from emulated_crazyflie import Session


def test_a_contract_that_its_motors_can_t_follow_is_refused() -> None:
    contract = Bundle.read("zoo:quadrotor-rates-crazyflie").contract
    within_hardware(contract, CrazyflieFile())
    with pytest.raises(DriverError, match=r"commands \['rotor_speed in rad/s'\]; a Crazyflie takes body_rate"):
        make("crazyflie", Bundle.read("zoo:quadrotor-hover").contract, Settings())
    with pytest.raises(DriverError, match=r"thrust goes up to 14.\d+ m/s\^2; .* of 2064.0 g"):
        make("crazyflie", Bundle.read("zoo:quadrotor-rates").contract, Settings())
    with pytest.raises(DriverError, match="runs at 200 Hz; a Crazyflie tells its state at up to 100 Hz"):
        within_hardware(dataclasses.replace(contract, control_period=0.005), CrazyflieFile())
    with pytest.raises(DriverError, match="takes no --calibration"):
        make("crazyflie", contract, Settings(calibration="x.json"))


def test_a_changed_card_or_robot_file_changes_what_is_allowed() -> None:
    contract = Bundle.read("zoo:quadrotor-rates-crazyflie").contract
    heavy = dataclasses.replace(contract.robot, facts={**contract.robot.facts, "mass": 0.032})
    with pytest.raises(DriverError, match=r"a Crazyflie of 32.0 g 13.73 at the most"):
        within_hardware(dataclasses.replace(contract, robot=heavy), CrazyflieFile())
    within_hardware(dataclasses.replace(contract, robot=heavy), CrazyflieFile(thrust_max=0.18))
    with pytest.raises(DriverError, match=r"a Crazyflie of 33\.0 g"):
        within_hardware(contract, CrazyflieFile(mass=0.033))


def lacking(session: Session) -> None:
    session.world.wire.firmware.logged.pop("stateEstimateZ.quat")


def parameter(name: str, value: float):
    def change(session: Session) -> None:
        parameters = session.world.wire.firmware.parameters
        parameters[name] = (parameters[name][0], value, True)

    return change


def part(**values):
    def change(session: Session) -> None:
        for name, value in values.items():
            of = next(
                x for x in (session.world.wire.firmware, session.vehicle.broken, session.vehicle.supervisor)
                if hasattr(x, name)
            )  # fmt: skip
            setattr(of, name, value)

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (part(board="Crazyflie 2.1 Brushless"), "it is a 'Crazyflie 2.1 Brushless'; expected a 'Crazyflie 2.1'"),
        (part(protocol=8), "speaks CRTP version 8; expected 12 or newer"),
        (lacking, "no log variable stateEstimateZ.quat"),
        (parameter("stabilizer.controller", 2), r"stabilizer.controller is 2.0; expected 1, the PID"),
        (parameter("stabilizer.estimator", 1), r"stabilizer.estimator is 1.0; expected 2, the Kalman"),
        (part(mute=True), r"sends no log packets of \['state'\]"),
        (part(fused=False), "its estimator is sure of its velocity to 2.00 m/s"),
        (part(state=State.LOCKED), "it is locked: switch it off and on"),
        (part(crashed=True, state=State.CRASHED), "it has crashed"),
    ],
)
def test_a_vehicle_that_is_not_what_it_should_be_is_refused(change, why: str) -> None:
    session = Session()
    change(session)
    with pytest.raises(DriverError, match=why):
        session.driver.connect()
    session.driver.close()


def test_a_vehicle_that_does_not_answer_is_refused() -> None:
    session = Session(patience=0.3)
    session.world.wire.firmware.silent = True
    with pytest.raises(DriverError, match=r"no Crazyflie at virtual://\d+: it does not answer"):
        session.driver.connect()
    session.driver.close()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (part(voltage=3.4), r"the battery has 3.40 V; charge it, below 3.6 V"),
        (part(refuses=True, armed=False, state=State.NOT_PASSED), "refuses to be armed"),
        (part(state=State.FLYING), "it flies, or the high-level commander has it"),
        (part(fused=False), "its estimator is sure of its velocity to 2.00 m/s"),
    ],
)
def test_nothing_is_enabled_where_it_would_not_be_safe(change, why: str) -> None:
    session = Session()
    session.driver.connect()
    change(session)
    if "flies" in why:
        session.vehicle.supervisor._thrust = session.vehicle.time
    session.world.sleep(0.4)
    with pytest.raises(DriverError, match=why):
        session.driver.enable()
    assert session.vehicle.off
    session.driver.close()


def test_a_vehicle_that_has_to_be_armed_is_armed_and_disarmed_at_the_end() -> None:
    session = Session()
    session.vehicle.supervisor.auto = False
    session.driver.connect()
    assert not session.vehicle.supervisor.armed
    session.driver.enable()
    assert session.vehicle.supervisor.armed
    assert session.vehicle.off
    session.driver.close()
    session.world.sleep(0.1)
    assert not session.vehicle.supervisor.armed


def test_identity_has_what_the_vehicle_tells() -> None:
    session = Session(file=CrazyflieFile(mass=0.0265))
    identity = session.driver.connect()
    assert identity.robot == "Crazyflie 2.1"
    assert identity.details["revision"].startswith("2a18fc29")
    assert identity.details["decks"] == "bcLighthouse4"
    assert identity.details["mass"] == "26.5 g"
    session.driver.close()
