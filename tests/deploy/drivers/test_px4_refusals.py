"""What the driver of PX4 refuses: contracts of other commands, and vehicles that are not ready."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("pymavlink", reason="pymavlink is missing: pip install 'robo-rl[px4]'")

from robo_rl.controllers.gate.codes import State
from robo_rl.deploy.emulate.px4 import DEFAULTS, Vehicle
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.drivers import make
from robo_rl.deploy.robot.drivers.driver import DriverError, Mode, Settings
from robo_rl.deploy.robot.drivers.mavlink.link import mavlink
from robo_rl.deploy.robot.drivers.mavlink.mapping import within_hardware
from robo_rl.deploy.robot.drivers.mavlink.px4 import ORDERS
from robo_rl.deploy.robot.drivers.mavlink.robot_file import VehicleFile

sys.path.append(str(Path(__file__).parent))
from emulated_px4 import Session


def test_a_contract_that_px4_does_not_take_is_refused() -> None:
    contract = Bundle.read("zoo:quadrotor-rates").contract
    within_hardware(contract)
    with pytest.raises(
        DriverError, match=r"the policy commands \['rotor_speed in rad/s'\]; PX4 takes body_rate in rad/s"
    ):
        make("px4", Bundle.read("zoo:quadrotor-hover").contract, Settings())
    with pytest.raises(DriverError, match="runs at 200 Hz; PX4 takes set-points at up to 100 Hz"):
        within_hardware(dataclasses.replace(contract, control_period=0.005))
    with pytest.raises(DriverError, match="calibrated by QGroundControl"):
        make("px4", contract, Settings(calibration="x.json"))


def refused(session: Session, why: str) -> None:
    with pytest.raises(DriverError, match=why):
        session.driver.connect()


def test_a_vehicle_that_is_not_what_it_should_be_is_refused() -> None:
    session = Session()
    session.world.wire.begin("nothing heard")
    refused(session, "no autopilot is heard on this port")
    session = Session()
    session.vehicle._arm()
    refused(session, "the vehicle is armed; land and disarm it first")
    session = Session()
    session.vehicle.parameters = dict(DEFAULTS)
    refused(session, r"COM_OF_LOSS_T is 1 s; expected at most 0\.3.*last rates.*--repair")
    session = Session()
    session.vehicle.parameters["COM_OF_LOSS_T"] = (0.0, mavlink.MAV_PARAM_TYPE_REAL32)
    refused(session, "COM_OF_LOSS_T is 0 s")
    session = Session()
    session.vehicle.parameters["COM_OBL_RC_ACT"] = (6, mavlink.MAV_PARAM_TYPE_INT32)
    refused(session, r"COM_OBL_RC_ACT is 6: .* switch off its motors")
    session = Session()
    del session.vehicle.parameters["MPC_THR_HOVER"]
    refused(session, "PX4 does not tell its parameter MPC_THR_HOVER")
    session = Session()
    session.vehicle.broken.estimate = "lost"
    refused(session, "PX4 sends odometry that is no number")


def test_the_robot_file_s_hover_thrust_counts_before_the_autopilot_s() -> None:
    session = Session(file=VehicleFile(hover_thrust=0.55))
    identity = session.driver.connect()
    assert identity.details["hover thrust"] == "0.55"
    assert identity.details["firmware"] == "1.16.0"
    assert Session(file=VehicleFile()).driver.connect().details["hover thrust"] == "0.60"


def test_nothing_is_armed_in_the_air_with_an_empty_battery_or_by_an_autopilot_that_refuses() -> None:
    session = Session()
    session.driver.connect()
    session.driver._landed = 2
    with pytest.raises(DriverError, match="not sure that the vehicle is on the ground"):
        session.driver.enable()
    session = Session(vehicle=Vehicle())
    session.vehicle.broken.battery = 10
    session.driver.connect()
    session.driver.read(round(1e6 * session.world.now()))
    with pytest.raises(DriverError, match="the battery has 10 %"):
        session.driver.enable()


@pytest.mark.parametrize(
    ("battery", "version", "why"),
    [
        (87, (1, 12), "PX4 refuses to fly by set-points .*Offboard is currently not possible"),
        (
            87,
            (1, 16),
            "PX4 refuses to be armed .*Resolve system health failures first; .*no set-points for OFFBOARD come",
        ),
        (None, (1, 16), "PX4 does not answer for 3 s"),
    ],
)
def test_where_px4_does_not_let_itself_be_armed_the_gate_stays_idle_and_says_why(
    battery: int | None, version: tuple[int, int], why: str
) -> None:
    session = Session(vehicle=Vehicle(version=version))
    vehicle, answer = session.vehicle, session.vehicle._command
    vehicle.take = lambda rates, thrust: None  # set-points don't reach it  # type: ignore[method-assign]
    if battery is None:
        vehicle._command = lambda message: [] if message.command in ORDERS else answer(message)  # type: ignore
    session.longest = 8.0
    session.run("", 20.0, 1.0)
    assert not vehicle.armed
    assert {step.output.state for step in session.steps} == {State.IDLE}
    assert any(re.search(why, step.sentence) for step in session.steps)


def test_who_takes_the_vehicle_keeps_it() -> None:
    session = Session()
    session.run("pilot", 6.0, 3.0)
    sent = session.vehicle._last
    session.driver.write({}, Mode.SAFE)
    session.driver.disable()
    assert session.vehicle._last == sent
    assert session.vehicle.armed
