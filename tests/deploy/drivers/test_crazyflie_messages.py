"""The Crazyflie's compressed state against cflib and scipy, its controller, its supervisor, and whatever may come."""

from __future__ import annotations

import contextlib
import math
import socket
import struct
import threading
import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

pytest.importorskip("cflib", reason="cflib is missing: pip install 'robo-rl[crazyflie]'")

from cflib.utils.encoding import compress_quaternion, decompress_quaternion

from robo_rl.deploy.emulate.crazyflie import Vehicle
from robo_rl.deploy.emulate.crazyflie import serve as crazyflie_serve
from robo_rl.deploy.emulate.crazyflie.crtp import Firmware
from robo_rl.deploy.emulate.crazyflie.pid import Cascade, Wanted, angles_of
from robo_rl.deploy.emulate.crazyflie.supervisor import State
from robo_rl.deploy.emulate.crazyflie.wire import RadioWire
from robo_rl.deploy.robot.drivers.crtp import estimate
from robo_rl.deploy.robot.drivers.crtp.robot_file import CrazyflieFile
from robo_rl.deploy.robot.drivers.figures_file import parse_figures
from robo_rl.sim.robots.multirotor import load_multirotor
from robo_rl.sim.tasks.loading import load_task

QUATERNIONS = st.lists(st.floats(-1, 1), min_size=4, max_size=4).filter(lambda q: np.linalg.norm(q) > 0.1)
STEP = math.sqrt(0.5) / 511
"""Of a compressed element."""


@given(QUATERNIONS)
def test_quaternions_are_compressed_as_by_cflib_and_come_back_as_the_same_rotation(drawn) -> None:
    q = np.array(drawn) / np.linalg.norm(drawn)
    told = estimate.compress(q)
    theirs = np.array(decompress_quaternion(told))
    back = estimate.decompress(told)
    np.testing.assert_allclose(back, theirs / np.linalg.norm(theirs), atol=1e-6)
    off = (Rotation.from_quat(back) * Rotation.from_quat(q).inv()).magnitude()
    assert off < 2 * math.sqrt(3) * STEP  # half a step of three elements, of half the angle, and the fourth's
    if np.partition(np.abs(q), -2)[-2] < np.abs(q).max() - 1e-6:
        assert abs(np.array(decompress_quaternion(compress_quaternion(q))) @ back) > 1 - 4 * STEP**2


def test_the_firmware_s_worked_values_of_the_compressed_quaternion() -> None:
    assert estimate.compress((0.0, 0.0, 0.0, 1.0)) == 3 << 30
    assert estimate.compress((0.0, 0.0, 0.0, -1.0)) in (3 << 30, 3 << 30 | 0x20080200)  # minus nothing
    half = math.sqrt(0.5)
    assert estimate.compress((half - 1e-9, 0.0, 0.0, half)) == 3 << 30 | 511 << 20
    with pytest.raises(ValueError, match="expected at most"):
        estimate.decompress(3 << 30 | 511 << 20 | 511 << 10 | 511)


@given(QUATERNIONS, st.lists(st.floats(-5, 5), min_size=9, max_size=9))
def test_signals_are_those_of_a_state_that_the_firmware_would_log(drawn, numbers) -> None:
    place, speed, rates = np.array(numbers).reshape(3, 3)
    q = np.array(drawn) / np.linalg.norm(drawn)
    gyro = np.degrees(rates)  # deg/s about our axes, as its sensors give them
    logged = [*(1000 * place), *(1000 * speed), estimate.compress(q)]
    logged += [math.radians(1000 * gyro[0]), -math.radians(1000 * gyro[1]), math.radians(1000 * gyro[2])]
    found = estimate.signals({f"stateEstimateZ.{n}": v for n, v in zip(estimate.FIELDS, logged, strict=True)})
    np.testing.assert_allclose(found["position"], place)
    np.testing.assert_allclose(found["linear_velocity"], speed)
    np.testing.assert_allclose(found["angular_velocity"], rates, atol=1e-9)
    assert (Rotation.from_quat(found["orientation"]) * Rotation.from_quat(q).inv()).magnitude() < 4 * STEP


@given(QUATERNIONS)
def test_the_emulated_controller_s_angles_are_scipy_s_with_pitch_up(drawn) -> None:
    q = np.array(drawn) / np.linalg.norm(drawn)
    if abs(q[0] * q[2] - q[3] * q[1]) < 0.49:  # Euler angles are unique
        yaw, pitch, roll = Rotation.from_quat(q).as_euler("ZYX", degrees=True)
        off = np.array(angles_of(q)) - (roll, -pitch, yaw)
        np.testing.assert_allclose((off + 180) % 360 - 180, 0.0, atol=1e-3)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_rates_follow_about_our_axes_in_the_time_that_the_card_s_loop_takes(axis: int) -> None:
    """Through CRTP as cflib packs it: the sign of pitch is turned; the card's gain is drawn from 0.7 to 2 times."""
    vehicle = Vehicle()
    firmware, times = Firmware(vehicle), {}
    vehicle.supervisor.state, vehicle.supervisor.armed = State.FLYING, True
    vehicle.plant.current.position[0, 2] = 5.0
    vehicle.plant.current.rotor_speed[:] = vehicle.card.hover_speed
    rates = np.zeros(3)
    rates[axis] = 57.2957795
    plant = load_task("quadrotor-rates", robot="crazyflie").make_plant(2)
    plant.param("rate_gain")[:] = plant.nominal.rate_gain * torch.tensor([[0.7], [2.0]])
    plant.current.rotor_speed[:] = vehicle.card.hover_speed
    told = {"body_rate": torch.zeros(2, 3), "thrust": torch.full((2, 1), 9.81)}
    told["body_rate"][:, axis] = 1.0
    steps = round(vehicle.card.mass * 9.81 / 0.48 * 65535)
    for count in range(300):
        body = struct.pack("<BfffHB", 11, rates[0], -rates[1], rates[2], steps, 1)
        firmware.receive(bytes([7 << 4]) + body)
        vehicle.advance()
        now = {"firmware": vehicle.truth["angular_velocity"][axis]}
        if count % 10 == 9:
            plant.step(told)
            now |= {n: float(plant.current.angular_velocity[i, axis]) for i, n in enumerate(("slow", "fast"))}
        for name, value in now.items():
            if value > 0.63 and name not in times:
                times[name] = 0.002 * (count + 1)
    if axis < 2:
        assert times["fast"] - 0.025 <= times["firmware"] <= times["slow"]
    assert times["firmware"] < 0.3


def test_a_hovering_thrust_of_the_card_is_what_four_rotors_of_the_firmware_s_full_scale_give() -> None:
    card = load_multirotor("crazyflie")
    cascade, upright = Cascade(), np.array([0.0, 0.0, 0.0, 1.0])
    steps = card.mass * 9.81 / (4 * 0.12) * 65535
    motors = cascade(Wanted(steps), upright, np.zeros(3), np.zeros(3))
    assert 0.12 * motors.sum() / 65535 == pytest.approx(card.mass * 9.81)


def test_the_supervisor_levels_after_half_a_second_and_stops_after_two() -> None:
    vehicle = Vehicle()
    seen: dict[State, float] = {}
    while vehicle.time < 4.0:
        if vehicle.time < 1.0:
            vehicle.take(Wanted(40000.0))
        vehicle.advance()
        seen.setdefault(vehicle.supervisor.state, vehicle.time)
    assert 1.49 <= seen[State.LEVELS] < 1.6
    assert 2.99 <= seen[State.FREE_FALL] < 3.1
    assert vehicle.supervisor.info & 0x40
    assert vehicle.off


@given(st.lists(st.binary(max_size=40), max_size=30))
def test_a_vehicle_bears_whatever_it_is_sent(packets: list[bytes]) -> None:
    firmware = FIRMWARE
    for data in packets:
        assert all(1 <= len(answer) <= 31 for answer in firmware.receive(data))
    firmware.advance()
    assert all(np.isfinite(value).all() for value in firmware.vehicle.truth.values())


FIRMWARE = Firmware(Vehicle(seed=2))


@pytest.mark.parametrize(
    "text", ["mass = 2.0", "watchdog = 1", "voltage_min = nan", "thrust_max = 'x'", "weight = 0.03", "\0"]
)
def test_a_robot_file_with_other_figures_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|Invalid|Expected"):
        parse_figures(text.encode(), CrazyflieFile)
    assert parse_figures(b"watchdog = false", CrazyflieFile) == CrazyflieFile(watchdog=False)


def test_a_second_client_has_the_emulated_link_when_the_first_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crazyflie_serve, "LEFT", 0.5)
    free = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    ended = threading.Event()

    def each(since: float) -> None:
        if ended.is_set():
            raise InterruptedError

    def emulate() -> None:
        with contextlib.suppress(InterruptedError):
            crazyflie_serve.serve(RadioWire(), port, each)

    thread = threading.Thread(target=emulate)
    thread.start()
    clients = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    question = bytes([0xF0, 1])  # the link's echo

    def asked(client: socket.socket, seconds: float) -> bool:
        client.settimeout(0.05)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            client.sendto(question, ("127.0.0.1", port))
            with contextlib.suppress(OSError):
                if client.recv(64)[:1] == question[:1]:
                    return True
        return False

    try:
        assert asked(clients[0], 30.0)
        assert not asked(clients[1], 0.2), "one radio has one owner"
        assert asked(clients[1], 30.0)
    finally:
        ended.set()
        thread.join()
        for one in clients:
            one.close()
