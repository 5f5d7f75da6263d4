"""Frames against scipy's rotations, and whatever else may come over MAVLink."""

from __future__ import annotations

import math
import socket
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

pytest.importorskip("pymavlink", reason="pymavlink is missing: pip install 'robo-rl[px4]'")

from robo_rl.deploy.emulate.px4 import Vehicle
from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.figures_file import parse_figures
from robo_rl.deploy.robot.drivers.mavlink import frames
from robo_rl.deploy.robot.drivers.mavlink.link import Link, Udp, mavlink, open_port
from robo_rl.deploy.robot.drivers.mavlink.px4 import number
from robo_rl.deploy.robot.drivers.mavlink.robot_file import VehicleFile

WORLD = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
"""East, north, up of north, east, down."""
BODY = np.diag([1.0, -1.0, -1.0])
"""Forward, left, up of forward, right, down."""
QUATERNIONS = st.lists(st.floats(-1, 1), min_size=4, max_size=4).filter(lambda q: np.linalg.norm(q) > 0.1)


@given(QUATERNIONS, st.lists(st.floats(-10, 10), min_size=3, max_size=3))
def test_orientations_and_vectors_are_those_of_rotation_matrices(given_quaternion, vector) -> None:
    w, x, y, z = np.array(given_quaternion) / np.linalg.norm(given_quaternion)
    theirs = Rotation.from_quat([x, y, z, w]).as_matrix()  # forward, right, down to north, east, down
    ours = frames.orientation((w, x, y, z))
    np.testing.assert_allclose(Rotation.from_quat(ours).as_matrix(), WORLD @ theirs @ BODY, atol=1e-9)
    back = frames.told(ours)
    np.testing.assert_allclose(abs(float(back @ [w, x, y, z])), 1.0, atol=1e-9)
    np.testing.assert_allclose(frames.world(vector), WORLD @ vector)
    np.testing.assert_allclose(frames.body(vector), BODY @ vector)
    np.testing.assert_allclose(frames.rotate(ours, np.array(vector)), Rotation.from_quat(ours).apply(vector), atol=1e-8)


def test_a_vehicle_whose_nose_points_north_has_a_yaw_of_90_degrees_east_being_zero() -> None:
    roll, pitch, yaw = Rotation.from_quat(frames.orientation((1.0, 0.0, 0.0, 0.0))).as_euler("xyz")
    np.testing.assert_allclose((roll, pitch, yaw), (0.0, 0.0, math.pi / 2), atol=1e-9)


class Line:
    """A port with what was put into it."""

    def __init__(self) -> None:
        self.came: list[bytes] = []
        self.sent = b""

    def write(self, data: bytes) -> None:
        self.sent += data

    def read(self, timeout: float) -> bytes:
        return self.came.pop(0) if self.came else b""

    def close(self) -> None:
        pass


def drained(link: Link, line: Line) -> list[Any]:
    """All that has come: one reading is bounded in time, and this computer may be busy."""
    found = []
    while line.came:
        found += link.read(0.0)
    return found


@given(st.lists(st.binary(max_size=300), max_size=6))
def test_bytes_that_are_no_messages_are_none(pieces: list[bytes]) -> None:
    line, good = Line(), Vehicle(seed=1)
    link = Link(line)
    beat = good.pack(good._message(mavlink.MAVLINK_MSG_ID_HEARTBEAT))
    line.came = [*pieces, *[b"\0" * 300] * 2, beat, beat]
    found = drained(link, line)
    assert {message.get_type() for message in found} <= {"HEARTBEAT"} or any(0xFD in p or 0xFE in p for p in pieces)
    line.came = [b"\0" * 600, beat]
    assert [message.get_type() for message in drained(link, line)][-1:] == ["HEARTBEAT"]


@given(st.binary(max_size=400))
def test_an_autopilot_bears_whatever_it_is_sent(data: bytes) -> None:
    vehicle = Vehicle(seed=2)
    vehicle.receive(data)
    vehicle.advance()
    assert not vehicle.armed
    assert all(np.isfinite(value).all() for value in vehicle.truth.values())


def test_a_parameter_of_whole_numbers_comes_as_the_bits_of_a_float() -> None:
    bits = float(np.int32(4).view(np.float32))
    told = mavlink.MAVLink_param_value_message(b"COM_OBL_RC_ACT", bits, mavlink.MAV_PARAM_TYPE_INT32, 1, 0)
    assert number(told) == 4.0
    told = mavlink.MAVLink_param_value_message(b"MPC_THR_HOVER", 0.5, mavlink.MAV_PARAM_TYPE_REAL32, 1, 0)
    assert number(told) == 0.5


def test_two_ends_of_udp_hear_each_other_and_a_silent_one_is_no_error() -> None:
    ours = Udp(0)
    theirs = Udp(ours.number, "127.0.0.1")
    ours.write(b"nobody is there yet")
    assert ours.read(0.0) == b""
    beat = heartbeat()
    theirs.write(beat)
    assert ours.read(10.0) == beat
    theirs.write(b"hello")
    assert ours.read(10.0) == b"hello"
    ours.write(b"and back")
    assert theirs.read(10.0) == b"and back"
    ours.close()
    theirs.write(b"it is gone")
    theirs.write(b"it is gone")
    assert theirs.read(0.1) == b""
    theirs.close()


def heartbeat(system: int = 1, component: int = 1, autopilot: int = mavlink.MAV_AUTOPILOT_PX4) -> bytes:
    codec = mavlink.MAVLink(None, srcSystem=system, srcComponent=component)
    return bytes(mavlink.MAVLink_heartbeat_message(2, autopilot, 0, 0, 3, 3).pack(codec))


@pytest.mark.parametrize(
    "foreign",
    [
        b"\xfd", b"", heartbeat(7), heartbeat(255, 190, mavlink.MAV_AUTOPILOT_INVALID),
        heartbeat(1, 191, mavlink.MAV_AUTOPILOT_INVALID), heartbeat()[:-1] + b"\0", b"\xfd" * 5000,
    ],
    ids=["a byte", "nothing", "another vehicle", "a ground station", "another computer", "damaged", "a long one"],
)  # fmt: skip
def test_who_sends_no_heartbeat_of_the_vehicle_gets_nothing_of_what_is_meant_for_it(foreign: bytes) -> None:
    ours = Udp(0)
    vehicle, stranger = Udp(ours.number, "127.0.0.1"), Udp(ours.number, "127.0.0.1")
    stranger.write(foreign)
    assert ours.read(0.2) == b""
    vehicle.write(heartbeat())
    assert ours.read(10.0) == heartbeat()
    for late in (foreign, heartbeat()):  # the peer is known: not even a vehicle with the same number takes its place
        stranger.write(late)
        assert ours.read(0.1) == b""
        ours.write(b"set-point")
        assert vehicle.read(10.0) == b"set-point"
    assert stranger.read(0.1) == b""
    for port in (ours, vehicle, stranger):
        port.close()


def test_a_second_session_to_an_address_comes_from_the_same_port() -> None:
    """PX4 keeps the first address that it hears from (mavlink_receiver.cpp)."""
    vehicle = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    vehicle.bind(("127.0.0.1", 0))
    vehicle.settimeout(10.0)
    free = Udp(0)
    local = free.number
    free.close()
    senders = set()
    for _ in range(2):
        port = open_port(f"udp:127.0.0.1:{vehicle.getsockname()[1]}:{local}")
        port.write(b"x")
        senders.add(vehicle.recvfrom(10)[1])
        with pytest.raises(DriverError, match=r"in use"):
            open_port(f"udp:127.0.0.1:{vehicle.getsockname()[1]}:{local}")
        port.close()
    assert senders == {("127.0.0.1", local)}
    vehicle.close()


def test_messages_of_other_dialects_are_no_damage() -> None:
    line = Line()
    link = Link(line)
    whole = heartbeat()
    other = bytearray(whole)
    other[7:10] = (26000).to_bytes(3, "little")  # a message that the common dialect does not have
    line.came = [bytes(other), whole]
    assert [message.get_type() for message in drained(link, line)] == ["HEARTBEAT"]
    assert (link.damaged, link.unknown) == (0, 1)


@pytest.mark.parametrize(
    "name",
    ["udp", "udp:x", "udp:host:port", "udp:::1", "udp:h:1:2:3", "udp:70000", "/nowhere:fast", "/nowhere/tty"],
)
def test_a_port_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(DriverError):
        open_port(name)


@pytest.mark.parametrize(
    "text",
    ["hover_thrust = 2.0", "hover_thrust = true", "hover_thrust = nan", "battery_min = 'x'", "hover = 0.5", "\0"],
)
def test_a_robot_file_with_other_figures_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|Invalid|Expected"):
        parse_figures(text.encode(), VehicleFile)
    assert parse_figures(b"hover_thrust = 0.55", VehicleFile) == VehicleFile(0.55)
