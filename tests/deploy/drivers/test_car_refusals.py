"""What the driver of a car refuses: contracts beyond the hardware, and cars that are not what they should be."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest

from robo_rl.contract import Contract
from robo_rl.deploy.emulate import f1tenth
from robo_rl.deploy.emulate.f1tenth import FILE
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.drivers import make
from robo_rl.deploy.robot.drivers.driver import DriverError, Mode, Settings
from robo_rl.deploy.robot.drivers.hokuyo.lidar import TcpPort
from robo_rl.deploy.robot.drivers.vesc import messages as m
from robo_rl.deploy.robot.drivers.vesc.car import within_hardware
from robo_rl.deploy.robot.drivers.vesc.robot_file import CarFile

sys.path.append(str(Path(__file__).parent))
from emulated_car import Session


@pytest.fixture(scope="module")
def race() -> Contract:
    return Bundle.read("zoo:car-race").contract


def changed(of: Contract, name: str, **fields: object) -> Contract:
    commands = [dataclasses.replace(c, **fields) if c.name == name else c for c in of.commands]  # type: ignore[arg-type]
    return dataclasses.replace(of, commands=tuple(commands))


def test_a_contract_beyond_the_hardware_is_refused(race: Contract) -> None:
    within_hardware(race, FILE)
    shipped = CarFile()
    with pytest.raises(DriverError, match=r"steers from -0\.419 to 0\.419 rad, and this car's servo reaches -0\.263"):
        within_hardware(race, shipped)
    narrow = changed(race, "steering_angle", lower=(-0.26,), upper=(0.26,))
    with pytest.raises(DriverError, match=r"drives up to 8 m/s, and speed_max of the robot file is 5\.04 m/s"):
        within_hardware(narrow, shipped)
    within_hardware(changed(narrow, "speed", upper=(5.0,)), shipped)
    with pytest.raises(DriverError, match=r"runs at 100 Hz; the lidar scans at 40 Hz"):
        within_hardware(dataclasses.replace(race, control_period=0.01), FILE)
    with pytest.raises(DriverError, match="this car takes steering_angle in rad and speed in m/s"):
        within_hardware(Bundle.read("zoo:go2-flat").contract, FILE)


def test_a_car_that_is_not_what_it_should_be_is_refused() -> None:
    session = Session()
    session.world.wire.begin("no answers")
    with pytest.raises(DriverError, match="no VESC answers on this port"):
        session.driver.connect()
    session = Session()
    session.racer.broken.fault = 5
    with pytest.raises(DriverError, match="the VESC reports too hot transistors"):
        session.driver.connect()
    session = Session(file=dataclasses.replace(FILE, imu_sign=-1))
    session.world.sleep(0.1)
    with pytest.raises(DriverError, match=r"feels -(1\.\d|0\.9)\d g upwards; .* upside down"):
        session.driver.connect()


def test_old_firmware_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    told = m.encode_firmware(m.Firmware(3, 38, "410"))
    monkeypatch.setattr(m, "encode_firmware", lambda firmware: told)
    with pytest.raises(DriverError, match=r"firmware is 3\.38; expected 5\.00 or newer"):
        session.driver.connect()


def test_a_lidar_that_sees_less_than_the_contract_needs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    narrow = dataclasses.replace(f1tenth.LAYOUT, first=180, last=900)  # a quarter to each side
    monkeypatch.setattr(f1tenth, "LAYOUT", narrow)
    with pytest.raises(DriverError, match=r"no beam at -?\d+\.\d degrees"):
        session.driver.connect()


def test_a_car_that_rolls_is_not_enabled() -> None:
    session = Session()
    session.driver.connect()
    session.racer.order("erpm", 1.0 * FILE.speed_to_erpm_gain)
    session.world.sleep(0.5)
    session.driver.read(session.world.monotonic_ns() // 1000)
    with pytest.raises(DriverError, match=r"the car moves, at [01]\.\d m/s"):
        session.driver.enable()


def test_nothing_is_opened_for_a_contract_that_does_not_fit(race: Contract, tmp_path: Path) -> None:
    with pytest.raises(DriverError, match="this car's servo reaches"):
        make("f1tenth", race, Settings(str(tmp_path / "none")))
    with pytest.raises(DriverError, match="takes no --calibration"):
        make("f1tenth", race, Settings(calibration="x.json"))


@pytest.mark.parametrize("address", ["", ":10940", "127.0.0.1:x", "127.0.0.1:99999", "127.0.0.1:１"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(DriverError, match="is no lidar's address"):
        TcpPort(address)


def test_signs_are_those_of_the_contract() -> None:
    """Positive steering is to the left, and so is a positive yaw rate; speed is forward."""
    session = Session()
    session.driver.connect()
    session.driver.read(session.world.monotonic_ns() // 1000)
    session.driver.enable()
    for _ in range(20):
        commands = {"steering_angle": np.array([0.3]), "speed": np.array([1.5])}
        session.driver.write(commands, Mode.POLICY)
        session.world.sleep(0.025)
        found = session.driver.read(session.world.monotonic_ns() // 1000)
    assert found["wheel_speed"][0][0] > 1.0
    assert found["yaw_rate"][0][0] > 0.5
    assert session.racer.truth["yaw_rate"][0] > 0.5
    scan, truth = found["scan"][0], session.racer.truth["scan"]
    assert np.median(np.abs(scan - np.clip(truth[np.linspace(0, 1080, 64).round().astype(int)], 0.06, 10.0))) < 0.1
