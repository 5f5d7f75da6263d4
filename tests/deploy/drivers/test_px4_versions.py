"""What PX4 does otherwise from version to version, and otherwise than one would like: taken from its sources."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pymavlink", reason="pymavlink is missing: pip install 'robo-rl[px4]'")

from robo_rl.commands.running.emulate import _px4, main
from robo_rl.deploy.emulate.px4 import DEFAULTS, Vehicle
from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.mavlink.link import mavlink
from robo_rl.deploy.robot.drivers.mavlink.modes import HOLD, LAND, OFFBOARD, POSITION, RETURN
from robo_rl.deploy.robot.drivers.mavlink.odometry import estimate

sys.path.append(str(Path(__file__).parent))
from emulated_px4 import Session

WHOLE = mavlink.MAV_PARAM_TYPE_INT32
VERSIONS = ((1, 12), (1, 14), (1, 17))


def odometry(frame: int = 1, child: int = 1, velocity: tuple[float, ...] = (1.0, 2.0, 3.0)) -> mavlink.MAVLink_message:
    """Of a vehicle whose nose points east, level, at north 4, east 5, down -6 m."""
    quaternion = [np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]
    return mavlink.MAVLink_odometry_message(
        1, frame, child, 4.0, 5.0, -6.0, quaternion, *velocity, 0.1, 0.2, 0.3, [np.nan] * 21, [np.nan] * 21, 0, 1, 100
    )


def test_velocities_are_those_of_the_world_whether_they_are_sent_in_it_or_in_the_body() -> None:
    world = estimate(odometry(child=mavlink.MAV_FRAME_LOCAL_NED))
    # the nose points east: 1 m/s north is to the left, 2 m/s east ahead
    body = estimate(odometry(child=mavlink.MAV_FRAME_BODY_FRD, velocity=(2.0, -1.0, 3.0)))
    for found in (world, body):
        np.testing.assert_allclose(found["linear_velocity"], [2.0, 1.0, -3.0], atol=1e-6)
        np.testing.assert_allclose(found["position"], [5.0, 4.0, 6.0], atol=1e-6)
        np.testing.assert_allclose(found["orientation"], [0.0, 0.0, 0.0, 1.0], atol=1e-6)
        np.testing.assert_allclose(found["angular_velocity"], [0.1, -0.2, -0.3], atol=1e-6)


@pytest.mark.parametrize(("frame", "child"), [(20, 12), (1, 20), (1, 8), (12, 1)])
def test_odometry_in_other_frames_is_refused_by_name(frame: int, child: int) -> None:
    with pytest.raises(ValueError, match=rf"in the frames {frame} and {child}; expected 1 \(MAV_FRAME_LOCAL_NED\)"):
        estimate(odometry(frame, child))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_vehicle_of_any_version_is_flown_and_its_state_is_the_true_one(version: tuple[int, int]) -> None:
    session = Session(vehicle=Vehicle(version=version))
    session.run("", 4.0, 1.0)
    assert not session.problems
    truth = session.vehicle.truth
    given = session.driver._samples
    np.testing.assert_allclose(given["linear_velocity"][0], truth["linear_velocity"], atol=0.4)
    np.testing.assert_allclose(given["position"][0], truth["position"], atol=0.2)
    assert abs(session.places[session.at][2] - 2.0) < 0.3


@pytest.mark.parametrize(
    ("version", "action", "remote", "first", "then"),
    [
        ((1, 12), 0, False, RETURN, RETURN), ((1, 12), 0, True, POSITION, POSITION), ((1, 12), 4, False, LAND, LAND),
        ((1, 16), 0, False, HOLD, RETURN), ((1, 16), 0, True, HOLD, POSITION), ((1, 16), 4, False, HOLD, LAND),
        ((1, 16), 5, False, HOLD, HOLD), ((1, 16), 3, True, HOLD, RETURN),
    ],
)  # fmt: skip
def test_without_set_points_px4_does_what_its_parameter_says(
    version: tuple[int, int], action: int, remote: bool, first: object, then: object
) -> None:
    vehicle = Vehicle(version=version, remote=remote)
    vehicle.parameters["COM_OBL_RC_ACT"] = (action, WHOLE)
    vehicle.take(np.zeros(3), 0.5)
    assert vehicle.enter(OFFBOARD)
    assert vehicle._arm()
    for _ in range(100):
        vehicle.advance()
    assert vehicle.mode == first
    for _ in range(1000):
        vehicle.advance()
    assert vehicle.mode == then


@pytest.mark.parametrize("version", VERSIONS)
def test_offboard_without_set_points_is_refused_where_px4_refuses_it(version: tuple[int, int]) -> None:
    vehicle = Vehicle(version=version)
    new = version >= (1, 14)
    assert vehicle.enter(OFFBOARD) == new, "while disarmed"
    assert vehicle._arm() != new, "OFFBOARD can't run, so nothing is armed in it"
    vehicle.enter(POSITION)
    assert vehicle._arm()
    assert not vehicle.enter(OFFBOARD), "while armed"


@pytest.mark.parametrize(("version", "failsafe", "because"), [
    ((1, 16), 0, "Failsafe activated: return; a failsafe was activated"),
    ((1, 16), 2, "RETURN (a failsafe was activated)"),
    ((1, 12), 0, "RETURN (Failsafe activated: return)"),
    ((1, 12), 2, "ground stations alone why"),
])  # fmt: skip
def test_reasons_are_asked_for_as_a_ground_station_unless_a_failsafe_waits_for_one(
    version: tuple[int, int], failsafe: int, because: str
) -> None:
    """STATUSTEXT is sent to who hears a ground station's heartbeat (streams/STATUSTEXT.hpp), events to everybody."""
    session = Session(vehicle=Vehicle(version=version))
    session.vehicle.parameters["NAV_DLL_ACT"] = (failsafe, WHOLE)
    session.run("failsafe", 3.0, 2.0)
    assert any(because in problem for problem in session.problems), session.problems


def test_the_failsafe_as_px4_comes_is_refused_and_set_on_request() -> None:
    session = Session(vehicle=Vehicle())
    session.vehicle.parameters = dict(DEFAULTS)
    with pytest.raises(DriverError, match="COM_OF_LOSS_T is 1 s"):
        session.driver.connect()
    session = Session(vehicle=Vehicle())
    session.vehicle.parameters = {**DEFAULTS, "COM_OBL_RC_ACT": (7, WHOLE)}
    assert session.driver.repair() == ["COM_OF_LOSS_T was 1, and is 0.2", "COM_OBL_RC_ACT was 7, and is 4"]
    assert session.vehicle.parameters["COM_OF_LOSS_T"][0] == pytest.approx(0.2)
    assert session.vehicle.parameters["COM_OBL_RC_ACT"][0] == 4
    assert session.driver.repair() == []
    assert session.driver.connect().details["without set-points"] == "after 0.2 s it lands"


@pytest.mark.parametrize(("baud", "accepted"), [(57600, False), (115200, False), (921600, True)])
def test_a_line_that_is_too_slow_is_refused_before_anything_is_armed(baud: int, accepted: bool) -> None:
    session = Session(vehicle=Vehicle(line=0.5 * baud / 10))  # PX4 takes half of a line (mavlink_main.cpp, _datarate)
    if accepted:
        session.driver.connect()
        return
    with pytest.raises(DriverError, match=r"odometry \d+ times a second, the policy needs 50.*921600"):
        session.driver.connect()
    assert not session.vehicle.armed


def test_a_clock_that_is_slow_is_told_and_ages_nothing() -> None:
    session = Session(vehicle=Vehicle(clock=0.99))
    session.run("", 10.0, 1.0)
    assert not session.problems
    assert session.driver.health().figures["clock's rate"] == pytest.approx(0.99, abs=1e-3)
    stamps = [step.time - min(step.inputs.stamps) for step in session.steps[-100:]]
    assert max(stamps) < 40_000  # µs; 100,000 and more without


def test_a_second_session_in_one_boot_flies_again_from_the_mode_that_the_first_left() -> None:
    first = Session(vehicle=Vehicle())
    first.run("", 3.0, 1.0)
    first.driver.close()
    first.world.sleep(8.0)
    vehicle = first.vehicle
    assert not vehicle.armed
    vehicle.mode = OFFBOARD  # as PX4 keeps it where a vehicle is disarmed on the ground
    second = Session(vehicle=vehicle)
    second.run("", 3.0, 1.0)
    assert not second.problems
    assert second.places[second.at][2] > 1.0


def test_on_the_ground_the_vehicle_is_left_disarmed_and_not_in_offboard() -> None:
    session = Session(vehicle=Vehicle())
    session.driver.connect()
    session.driver.enable()
    assert session.vehicle.mode == OFFBOARD
    session.driver.disable()
    assert (session.vehicle.armed, session.vehicle.mode) == (False, HOLD)


def test_the_emulated_version_is_chosen_on_the_command_line() -> None:
    for firmware in ("1.11", "1.18", "main", ""):
        with pytest.raises(ValueError, match=r"--firmware is .*; expected one of 1\.12"):
            main("px4", firmware=firmware)
    _, made = _px4("1.12", True)
    assert made().vehicle.version == (1, 12)
    assert made().vehicle.parameters == DEFAULTS
    _, made = _px4("1.17", False)
    assert made().vehicle.parameters["COM_OF_LOSS_T"][0] == 0.2
