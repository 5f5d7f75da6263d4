"""Feetech's packets and files against vectors of the maker's manual and of LeRobot, and whatever else may come."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_rl.deploy.emulate.servos import Servo, ServoBus
from robo_rl.deploy.robot.drivers.bus_servos import calibration, robot_file
from robo_rl.deploy.robot.drivers.bus_servos.calibration import FEETECH_OFFSET
from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.feetech import packets, registers
from robo_rl.deploy.robot.drivers.feetech.packets import Packet, Parser
from robo_rl.deploy.robot.drivers.so101 import JOINTS

sys.path.append(str(Path(__file__).parents[2]))
from strange import changed

LEROBOT = {
    "shoulder_pan": {"id": 1, "drive_mode": 0, "homing_offset": -1470, "range_min": 758, "range_max": 3292},
    "gripper": {"id": 6, "drive_mode": 1, "homing_offset": 1407, "range_min": 2031, "range_max": 3476},
}


def test_packets_are_those_of_the_makers_manual() -> None:
    """Magnetic Encoding Serial Servo Protocol Manual, 1.3: PING of 1, READ of position, SYNC WRITE, SYNC READ."""
    assert packets.ping(1) == bytes.fromhex("FFFF010201FB")
    assert packets.read(1, 0x38, 2) == bytes.fromhex("FFFF0104023802BE")
    one = bytes.fromhex("00080000E803")
    assert packets.sync_write({1: one, 2: one, 3: one, 4: one}, 0x2A) == bytes.fromhex(
        "FFFFFE20832A0601" + "00080000E803" + "0200080000E803" + "0300080000E803" + "0400080000E803" + "58"
    )
    assert packets.sync_read([1, 2], 0x38, 8) == bytes.fromhex("FFFFFE06823808010236")
    assert Parser().feed(bytes.fromhex("FFFF0104001805DD")) == [Packet(1, 0, b"\x18\x05")]


@given(st.lists(st.tuples(st.integers(0, 253), st.integers(0, 255), st.binary(max_size=250)), max_size=4), st.data())
def test_packets_are_found_however_the_bytes_come(rows: list[tuple[int, int, bytes]], data: st.DataObject) -> None:
    sent = [Packet(*row) for row in rows]
    stream, parser, found = b"".join(packet.encode() for packet in sent), Parser(), []
    while stream:
        count = data.draw(st.integers(1, len(stream)))
        found += parser.feed(stream[:count])
        stream = stream[count:]
    assert found == sent
    assert parser.damaged == parser.skipped == 0


@given(st.binary(max_size=400))
def test_any_bytes_give_whole_packets_or_none(noise: bytes) -> None:
    parser = Parser()
    for packet in parser.feed(noise):
        assert packet.encode() in noise
    parser.clear()
    assert parser.feed(packets.ping(3)) == [Packet(3, 1, b"")]


@given(st.binary(max_size=300))
def test_servos_survive_any_bytes(noise: bytes) -> None:
    bus = ServoBus([Servo(1), Servo(2)])
    bus.feed(noise)
    bus.feed(b"\0" * 300)
    for servo in bus.servos.values():
        assert len(servo.registers) == len(servo.eeprom) == 86


@given(st.integers(-(1 << 15) + 1, (1 << 15) - 1))
def test_a_signed_number_survives(value: int) -> None:
    assert registers.GOAL_POSITION.decode(registers.GOAL_POSITION.encode(value)) == value


def test_a_negative_position_has_its_sign_in_the_highest_bit() -> None:
    assert registers.PRESENT_POSITION.encode(-5) == b"\x05\x80"
    assert registers.OFFSET.encode(-1470) == (1470 | 1 << 11).to_bytes(2, "little")
    with pytest.raises(ValueError, match="does not fit"):
        registers.OFFSET.encode(2048)


def test_what_is_written_to_a_locked_eeprom_is_lost_with_the_power() -> None:
    servo = Servo(1)
    servo.write(registers.P.address, b"\x10")
    servo.power_cycle()
    assert servo.get(registers.P) == 32
    servo.write(registers.LOCK.address, b"\0")
    servo.write(registers.P.address, b"\x10")
    servo.power_cycle()
    assert servo.get(registers.P) == 16


def test_lerobots_calibration_survives_reading_and_writing(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(LEROBOT, indent=4))
    found = calibration.read_calibration(tmp_path / "a.json", FEETECH_OFFSET)
    calibration.write_calibration(tmp_path / "b.json", found)
    assert json.loads((tmp_path / "b.json").read_text()) == LEROBOT
    assert found["shoulder_pan"].middle == 2025.0


@given(changed(LEROBOT))
def test_a_strange_calibration_is_read_or_refused_in_a_sentence(data: object) -> None:
    try:
        text = json.dumps(data).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError):
        return
    try:
        found = calibration.parse(text, FEETECH_OFFSET)
    except (ValueError, RecursionError):
        return
    for joint in found.values():
        assert 0 <= joint.range_min < joint.range_max <= 4095


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@given(st.binary(max_size=200) | st.sampled_from([b"[" * 100_000, b'{"a": ' * 20_000, b"x = [" * 10_000]))
def test_any_bytes_are_refused_in_a_sentence_or_say_nothing(folder: Path, data: bytes) -> None:
    """What hypothesis finds by chance is no calibration; a robot file may be empty."""
    file = folder / "file"
    file.write_bytes(data)
    with pytest.raises(DriverError, match="expected LeRobot's calibration") as refusal:
        calibration.read_calibration(file, FEETECH_OFFSET)
    assert str(file) in str(refusal.value)
    assert len(str(refusal.value)) < 1000
    found, told = None, ""
    try:
        found = robot_file.read_robot_file(str(file), JOINTS)
    except DriverError as error:
        told = str(error)
    assert found == robot_file.RobotFile() or (str(file) in told and len(told) < 1000)


STRANGE_TOML = ["1", "-1", "0", "nan", "inf", "true", '"x"', "[]", "{}", "1e400", "0.05", "99999999999999999999"]


@given(st.sampled_from(STRANGE_TOML), st.sampled_from(STRANGE_TOML), st.sampled_from(STRANGE_TOML))
def test_a_strange_robot_file_is_read_or_refused(sign: str, zero: str, limit: str) -> None:
    text = f"torque_limit = {limit}\n[joints.gripper]\nsign = {sign}\nzero = {zero}\n"
    try:
        found = robot_file.parse(text.encode(), JOINTS)
    except ValueError:
        return
    assert found.joints["gripper"].sign in (1, -1)
    assert 0.05 <= found.torque_limit <= 1.0


def test_a_calibration_of_before_lerobot_0_3_is_told_by_its_age(tmp_path: Path) -> None:
    (tmp_path / "main_follower.json").write_text(
        '{"homing_offset": [2048, -1024], "drive_mode": [0, 1], "start_pos": [1, 2], "end_pos": [3, 4], '
        '"calib_mode": ["DEGREE", "LINEAR"], "motor_names": ["shoulder_pan", "gripper"]}'
    )
    with pytest.raises(DriverError, match=r"of LeRobot before release 0\.3; calibrate the arm again"):
        calibration.read_calibration(tmp_path / "main_follower.json", FEETECH_OFFSET)


def test_files_that_are_missing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DriverError, match="there is no such file; expected LeRobot's calibration"):
        calibration.read_calibration(tmp_path / "none.json", FEETECH_OFFSET)
    with pytest.raises(DriverError, match="there is no such file"):
        robot_file.read_robot_file(str(tmp_path / "none.toml"), JOINTS)
