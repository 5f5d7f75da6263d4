"""Bytes of a VESC and of a Hokuyo: vectors of the makers' code, a peer's library, and whatever else may come."""

from __future__ import annotations

import contextlib
import math
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_rl.deploy.emulate.f1tenth import FILE, LAYOUT, Racer
from robo_rl.deploy.emulate.f1tenth.serve import LidarServer
from robo_rl.deploy.emulate.f1tenth.wire import CarWire
from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.hokuyo import scip
from robo_rl.deploy.robot.drivers.vesc import messages as m
from robo_rl.deploy.robot.drivers.vesc import packets, robot_file

DISTANCES = st.lists(st.integers(0, (1 << 18) - 1), min_size=1, max_size=200)


def test_packets_are_those_of_the_makers_code() -> None:
    """vedderb/bldc, comm/packet.c: GET_VALUES, SET_RPM 1000, SET_SERVO_POS 0.53."""
    assert packets.encode(b"\4") == bytes.fromhex("020104408403")
    assert packets.encode(m.set_rpm(1000)) == bytes.fromhex("020508000003e82b5803")
    assert packets.encode(m.set_servo(0.53)) == bytes.fromhex("02030c0212217003")


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=4), st.data())
def test_packets_are_found_however_the_bytes_come(payloads: list[bytes], data: st.DataObject) -> None:
    stream, parser, found = b"".join(map(packets.encode, payloads)), packets.Parser(), []
    while stream:
        count = data.draw(st.integers(1, len(stream)))
        found += parser.feed(stream[:count])
        stream = stream[count:]
    assert found == payloads
    assert parser.damaged == parser.skipped == 0


@given(st.binary(max_size=600))
def test_any_bytes_give_whole_packets_or_none(noise: bytes) -> None:
    parser = packets.Parser()
    for payload in parser.feed(noise):
        assert packets.encode(payload) in noise
    parser.clear()
    assert parser.feed(packets.encode(b"\x04")) == [b"\x04"]


@given(st.integers(0, 7), st.integers(0, 7), st.integers(-100_000, 100_000), st.integers(0, 255), st.integers(0, 255))
def test_an_answer_is_that_to_its_own_question(asked: int, other: int, erpm: int, fault: int, status: int) -> None:
    values = m.Values(31.5, 28.0, -12.34, erpm, 11.1, fault, status)
    payload = m.encode_values(values, m.values_mask(asked))
    mask = int.from_bytes(m.ask_values(asked)[1:], "big")
    assert payload[1:5] == m.ask_values(asked)[1:]
    assert mask == m.values_mask(asked)
    found = m.decode_values(payload, asked)
    assert (found.fault, found.status, found.erpm) == (fault, status, erpm)
    np.testing.assert_allclose([found.current, found.voltage], [-12.34, 11.1])
    motion = m.Motion((0.5, -0.25, 1.0), (1.5, -200.0, 90.0))
    told = m.encode_motion(motion, int.from_bytes(m.ask_motion(asked)[1:], "big"))
    assert m.decode_motion(told, asked) == motion
    if other != asked:
        for decode, data in ((m.decode_values, payload), (m.decode_motion, told)):
            with pytest.raises(ValueError, match="begins with"):
                decode(data, other)


@given(st.binary(max_size=80), st.integers(0, 7))
def test_any_payload_is_a_message_or_refused(payload: bytes, number: int) -> None:
    heads = (b"", m.ask_values(number), m.ask_motion(number), b"\0")
    for decode in (m.decode_firmware, lambda p: m.decode_values(p, number), lambda p: m.decode_motion(p, number)):
        for head in heads:
            try:
                found = decode(head + payload)
            except ValueError:
                continue
            if isinstance(found, m.Motion):
                assert all(map(math.isfinite, (*found.accelerometer, *found.gyroscope)))


@given(DISTANCES, st.integers(0, scip.CLOCK - 1), st.integers(0, 880))
def test_a_scan_survives_writing_and_reading(numbers: list[int], tick: int, first: int) -> None:
    name = scip.scan_command(first, first + len(numbers) - 1)
    sent = scip.Distances(tick, first, np.array(numbers))
    (answer,) = scip.Parser().feed(scip.write_scan(name, sent))
    found = scip.read_scan(answer)
    assert (found.tick, found.first, found.millimetres.tolist()) == (tick, first, numbers)


@given(DISTANCES, st.data())
def test_a_scan_with_a_wrong_bit_is_refused(numbers: list[int], data: st.DataObject) -> None:
    """A checksum of 6 bits does not see a change of the two highest; then the character is none."""
    name = scip.scan_command(0, len(numbers) - 1)
    whole = scip.write_scan(name, scip.Distances(7, 0, np.array(numbers)))
    at, bit = data.draw(st.integers(len(name), len(whole) - 3)), data.draw(st.integers(0, 7))
    damaged = whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :]
    parser = scip.Parser()
    for answer in parser.feed(damaged):
        with pytest.raises(ValueError, match=r"checksum|beams|no 6 bits|expected a scan"):
            scip.read_scan(answer)


@given(st.lists(st.one_of(st.binary(max_size=100), st.sampled_from([b"\n\n", b"MD0000000301000\n99b\n"]))))
def test_whatever_a_lidar_sends_is_an_answer_or_refused(parts: list[bytes]) -> None:
    parser = scip.Parser()
    for answer in parser.feed(b"".join(parts)):
        for read in (scip.read_scan, scip.read_layout):
            with contextlib.suppress(ValueError):
                read(answer)
    parser.feed(b"\n\n")
    (one,) = parser.feed(scip.whole("PP", scip.OK, scip.write_layout(LAYOUT)))
    assert scip.read_layout(one) == LAYOUT


def test_a_peers_library_reads_the_emulated_lidar() -> None:
    """hokuyolx, of Skoltech."""
    peer = pytest.importorskip("hokuyolx", reason="needs a peer's library: pip install 'robo-rl[dev]'")
    wire, ended = CarWire(Racer()), threading.Event()
    server = LidarServer(wire)
    host, port = server.address.split(":")

    def emulate() -> None:
        while not ended.is_set():
            server.exchange(wire.advance(0.0025))

    thread = threading.Thread(target=emulate)
    thread.start()
    try:
        laser = peer.HokuyoLX(addr=(host, int(port)), tsync=False, convert_time=False, time_tolerance=10**9)
        assert (laser.model, laser.amin, laser.amax, laser.aforw, laser.scan_freq) == ("UST-10LX", 0, 1080, 540, 40)
        scan, tick, _ = next(laser.iter_dist())
        laser.close()
    finally:
        ended.set()
        thread.join()
        server.close()
    assert scan.shape == (1081,)
    assert 0 < tick < scip.CLOCK
    truth = 1000 * wire.racer.truth["scan"]
    assert np.abs(np.sort(scan)[100:900] - np.sort(truth)[100:900]).mean() < 50  # mm: it stands


TOML = st.sampled_from(["1", "-1", "0", "nan", "inf", "true", '"x"', "[]", "{}", "1e400", "0.5", "9" * 20])


@given(st.dictionaries(st.sampled_from([*FILE.__dict__, "x"]), TOML, max_size=4))
def test_a_strange_robot_file_is_read_or_refused_in_a_sentence(rows: dict[str, str]) -> None:
    try:
        car = robot_file.parse("".join(f"{name} = {value}\n" for name, value in rows.items()).encode())
    except ValueError:
        return
    low, high = car.steering
    assert low < high
    for angle in (low, 0.5 * (low + high), high):
        assert car.servo_min <= car.servo(angle) <= car.servo_max
    assert math.isclose(car.speed(car.erpm(1.0)), min(1.0, car.fastest), rel_tol=1e-6) or car.fastest < 1.0


def test_a_robot_file_survives_writing_and_reading(tmp_path: Path) -> None:
    robot_file.write_robot_file(tmp_path / "car.toml", FILE)
    assert robot_file.read_robot_file(str(tmp_path / "car.toml")) == FILE
    (tmp_path / "bad").write_bytes(b"\xff")
    for name in ("bad", "none"):
        with pytest.raises(DriverError, match=name):
            robot_file.read_robot_file(str(tmp_path / name))


def test_the_shipped_figures_of_the_cars_are_the_default() -> None:
    """f1tenth_system, vesc.yaml: 5.04 m/s, and -0.263 to 0.313 rad."""
    car = robot_file.read_robot_file("")
    assert math.isclose(car.fastest, 5.039, abs_tol=1e-3)
    np.testing.assert_allclose(car.steering, (-0.2634, 0.3135), atol=1e-4)
    assert car.lidar == "192.168.0.10:10940"
