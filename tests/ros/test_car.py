"""A car over DDS: it drives, and whatever is wrong with its scan, odometry or gyroscope ends in the brakes.

The table in docs/ros.md has these rows too: see test_faults.py.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl.contract import Command, Network, Provenance
from robo_rl.ros.message_encoding import compose
from robo_rl.ros.reading import read
from robo_rl.ros.wiring import WiringError, command_wires, signal_wires
from robo_rl.ros.writing import message_type, write
from robo_rl.sim.tasks.car.race import PERIOD, CarRace
from robo_rl.zoo import located
from tests.ros.fault_rows import CAR, over_dds

DEADLINE = 0.1
"""s: the contract's signal_timeout of the car. It counts from the first message that was wrong or missing."""


@pytest.fixture(scope="module")
def bundle() -> Path:
    return located("zoo:car-race")


@pytest.fixture(scope="module")
def car(tmp_path_factory: pytest.TempPathFactory, bundle: Path, make_flight) -> Iterator:
    """Policy and simulated car in simulated time, for all faults, one after the other."""
    with make_flight(tmp_path_factory.mktemp("logs")) as flight:
        flight.start("twin", str(bundle), "--use-sim-time")
        flight.start("policy", str(bundle), "--use-sim-time")
        flight.fly(until=0.2)
        yield flight


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "reason", "name"), over_dds(CAR))
def test_a_car_brakes_within_its_deadline_whatever_is_wrong_with_its_signals(
    car, fault_table, fault: str, reason: str, name: str
) -> None:
    for _ in range(5):  # a busy computer may be the first fault
        car.take_off_again()
        car.operator.fault(fault)
        found = car.fault()
        if found["reason"] != "OVERRUN":
            break
    car.until(lambda: car.status.get("since_us") and car.status["fault"], "the fault's time")
    since = car.status["since_us"] * 1e-6
    passed = found["time"] - since
    assert found["reason"] == reason or not reason
    assert name in found["sentence"]
    assert found["source"] == "SAFE"
    later = reason == "SIGNAL_FROZEN" or fault.startswith(
        "huge"
    )  # from the first that repeats; a megabyte takes a step
    allowed = DEADLINE + (PERIOD if later else 0)
    assert passed <= allowed + 1e-6
    # messages of a megabyte may crowd out commands; then the robot's own watchdog takes as long again
    heard = allowed + (DEADLINE if fault.startswith("huge") else 0)
    end = max(car.applied[-1][0], since + heard)
    car.until(lambda: car.applied[-1][0] > end + 0.1, "more commands")
    driven = [t for t, command in car.applied if (command != 0).any()]
    assert driven[-1] - since <= heard + PERIOD + 1e-6  # and the message's way
    fault_table.add(f"car: {fault}", passed, found["source"], found["reason"], found["sentence"])


@pytest.mark.slow
@pytest.mark.release  # with every change the arm, whose policy is killed with a cube in its hand
def test_a_car_whose_policy_is_killed_stops_by_itself(car, fault_table) -> None:
    """After all others: the policy's process is gone then. In simulated time, which goes on without an answer."""
    car.take_off_again()
    assert (car.applied[-1][1] != 0).any()
    os.kill(car.processes["policy"].pid, signal.SIGKILL)
    car.until(lambda: car.status.get("watchdog"), "the watchdog")
    car.until(lambda: (car.applied[-1][1] == 0).all(), "the safe command")
    stopped = car.applied[-1][0]
    car.until(lambda: car.applied[-1][0] > stopped + 3.0, "three seconds")
    assert all((command == 0).all() for when, command in car.applied if when > stopped)
    places = [place for when, place in car.truth if when > stopped + 2.5]
    assert math.dist(places[0], places[-1]) < 1e-3
    car.processes.pop("policy").wait(timeout=60)
    fault_table.add("car: policy killed (-9)", None, "SAFE", "the robot's watchdog", car.status["watchdog"])


def contract() -> Any:
    return CarRace().spec.contract(Provenance("none", 0, 0, "0" * 64), Network((8,), "tanh", False))


def test_odometry_imu_and_scan_of_a_car_are_where_ros_has_them() -> None:
    wires = {wire.name: str(wire) for wire in signal_wires(contract().signals)}
    assert wires == {
        "scan": "scan sensor_msgs/msg/LaserScan ranges",
        "wheel_speed": "odom nav_msgs/msg/Odometry linear_velocity",
        "yaw_rate": "imu sensor_msgs/msg/Imu angular_velocity",
    }
    signals = {signal.name: signal for signal in contract().signals}
    values = {"wheel_speed": np.array([2.5]), "yaw_rate": np.array([-0.75])}
    for wire in signal_wires([signals["wheel_speed"], signals["yaw_rate"]]):
        message = compose([wire], signals, values, 0)
        assert read(wire.kind, wire.field, message, signals[wire.name]).tolist() == values[wire.name].tolist()
    odometry = compose(signal_wires([signals["wheel_speed"]]), signals, values, 0)
    assert (odometry.twist.twist.linear.x, odometry.child_frame_id) == (2.5, "base_link")
    imu = compose(signal_wires([signals["yaw_rate"]]), signals, values, 0)
    assert (imu.angular_velocity.x, imu.angular_velocity.z) == (0.0, -0.75)


class Ackermann(types.SimpleNamespace):
    """The fields of ackermann_msgs/AckermannDrive, which PyPI does not have."""

    def __init__(self) -> None:
        super().__init__(steering_angle=0.0, steering_angle_velocity=0.0, speed=0.0, acceleration=0.0, jerk=0.0)


class AckermannStamped(types.SimpleNamespace):
    """The fields of ackermann_msgs/AckermannDriveStamped."""

    def __init__(self) -> None:
        stamp = types.SimpleNamespace(sec=0, nanosec=0)
        super().__init__(header=types.SimpleNamespace(stamp=stamp, frame_id=""), drive=Ackermann())


@pytest.mark.parametrize("message", ["AckermannDrive", "AckermannDriveStamped"])
def test_steering_angle_and_speed_go_in_one_ackermann_message(message: str) -> None:
    wires = command_wires(contract().commands, message)
    assert {wire.topic for wire in wires} == {"drive"}
    made: Any = AckermannStamped() if message.endswith("Stamped") else Ackermann()
    for wire, value in zip(wires, (0.3, 4.5), strict=True):
        made = write(wire, contract().command(wire.name), [value], 1_500_000_000, made)
    drive = made.drive if message.endswith("Stamped") else made
    assert vars(drive) == {"steering_angle": 0.3, "speed": 4.5} | dict.fromkeys(
        ("steering_angle_velocity", "acceleration", "jerk"), 0.0
    )
    if message.endswith("Stamped"):
        assert (made.header.stamp.sec, made.header.stamp.nanosec, made.header.frame_id) == (1, 500_000_000, "base_link")
    for wire, value in zip(wires, (0.3, 4.5), strict=True):
        found = read(wire.kind, wire.field, made, contract().command(wire.name))
        assert found.tolist() == [np.float32(value)]


def test_a_command_that_an_ackermann_message_does_not_hold_is_refused() -> None:
    for command in (
        Command("thrust", ("x",), "N", "body", (0.0,), (1.0,), (0.0,)),
        Command("speed", ("left", "right"), "m/s", "body", (0.0,) * 2, (1.0,) * 2, (0.0,) * 2),
        Command("steering_angle", ("x",), "m", "body", (0.0,), (1.0,), (0.0,)),
    ):
        with pytest.raises(WiringError, match=f"command '{command.name}' has . elements in .*; an AckermannDrive"):
            command_wires([command], "AckermannDriveStamped")


def test_a_message_type_that_is_not_installed_is_refused_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ackermann_msgs.msg", None)  # as on a computer without it
    monkeypatch.setitem(sys.modules, "ackermann_msgs", None)
    with pytest.raises(WiringError, match=r"ackermann_msgs.*install ros-DISTRIBUTION-ackermann-msgs"):
        message_type("ackermann_msgs/msg/AckermannDriveStamped")


def test_the_pose_of_the_simulated_car_is_that_of_base_link_below_the_rear_axle() -> None:
    from robo_rl.ros.twins import make_twin

    twin = make_twin("car-race")
    own = {name: value[0].numpy().astype(float) for name, value in twin.plant.truth().items()}
    truth, heading = twin.truth(), own["heading"][0]
    x, y, z, w = truth["orientation"]
    assert 2 * math.atan2(z, w) == pytest.approx(heading, abs=1e-6)
    assert (x, y) == (0.0, 0.0)
    ahead = (own["position"] - truth["position"][:2]) @ [math.cos(heading), math.sin(heading)]
    assert ahead == pytest.approx(twin.spec.robot.rear_axle, abs=1e-5)
    command = {"steering_angle": np.float32([0.3]), "speed": np.float32([2.0])}
    for _ in range(10):
        twin.step(command)
    before = twin.truth()
    twin.step(command)
    after = twin.truth()
    moved = (after["position"] - before["position"]) / twin.period
    mean = 0.5 * (before["linear_velocity"] + after["linear_velocity"])
    np.testing.assert_allclose(moved, mean, atol=0.02)
    # a rear axle hardly slips at 2 m/s: it goes where the car points
    heading = 2 * math.atan2(after["orientation"][2], after["orientation"][3])
    across = after["linear_velocity"] @ [-math.sin(heading), math.cos(heading), 0.0]
    assert abs(across) < 0.05 * np.linalg.norm(after["linear_velocity"])


def test_a_simulated_car_that_touches_a_wall_stays_there_until_it_is_set_back() -> None:
    from robo_rl.ros.twins import make_twin

    twin = make_twin("car-race")
    ahead = {"steering_angle": np.float32([0.4]), "speed": np.float32([3.0])}
    for _ in range(400):
        twin.step(ahead)
    assert twin.truth()["clearance"][0] == 0.0
    place = twin.truth()["position"]
    twin.step(ahead)
    np.testing.assert_array_equal(twin.truth()["position"], place)
    assert twin.truth()["wheel_speed"][0] == 0.0
    twin.restart()
    assert twin.truth()["clearance"][0] > 0.0
