"""Messages become signals by name, in the contract's frame and order, and refuse what does not fit."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState, LaserScan
from trajectory_msgs.msg import JointTrajectory

from robo_rl.contract import Command, Scan, Signal
from robo_rl.ros.message_encoding import compose
from robo_rl.ros.reading import MessageError, read
from robo_rl.ros.scheduler import StepScheduler
from robo_rl.ros.wiring import Wire, WiringError
from robo_rl.ros.writing import write
from robo_rl.sim.tasks.multirotor.quadrotor import XYZ

JOINTS = ("hip", "thigh", "calf")
POSITION = Signal("joint_position", JOINTS, "rad", "joint", (-3.0,) * 3, (3.0,) * 3)


@given(st.permutations(range(3)))
def test_joints_are_found_by_name_in_any_order(order):
    values = [0.1, 0.2, 0.3]
    message = JointState(name=[JOINTS[i] for i in order], position=[values[i] for i in order])
    found = read("sensor_msgs/msg/JointState", "position", message, POSITION)
    np.testing.assert_allclose(found, values, rtol=1e-6)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (JointState(name=["hip", "thigh"], position=[0.0, 0.0]), "no element"),
        (JointState(name=list(JOINTS), position=[0.0, 0.0]), "3 names but 2 values"),
        (JointState(name=["hip", "hip", "thigh"], position=[0.0] * 3), "occur twice"),
        (JointState(), "no element"),
    ],
)
def test_names_that_do_not_fit_are_refused(message, words):
    with pytest.raises(MessageError, match=words):
        read("sensor_msgs/msg/JointState", "position", message, POSITION)


def test_odometry_velocity_is_turned_from_the_body_into_the_world():
    """Against scipy's rotations."""
    signals = {
        "position": Signal("position", XYZ, "m", "world", (-9.0,) * 3, (9.0,) * 3),
        "orientation": Signal(
            "orientation", (*XYZ, "w"), "1", "body to world", (-1.0,) * 4, (1.0,) * 4, kind="quaternion"
        ),
        "linear_velocity": Signal("linear_velocity", XYZ, "m/s", "world", (-9.0,) * 3, (9.0,) * 3),
    }
    rotation = Rotation.from_euler("xyz", [0.3, -0.8, 2.0])
    values = {
        "position": np.zeros(3),
        "orientation": rotation.as_quat(),
        "linear_velocity": np.array([1.0, 2.0, 3.0]),
    }
    kind = "nav_msgs/msg/Odometry"
    message = compose([Wire(name, "odom", kind, name) for name in values], signals, values, 0)
    body = message.twist.twist.linear
    np.testing.assert_allclose([body.x, body.y, body.z], rotation.inv().apply([1.0, 2.0, 3.0]), rtol=1e-12)
    found = read(kind, "linear_velocity", message, signals["linear_velocity"])
    np.testing.assert_allclose(found, [1.0, 2.0, 3.0], rtol=1e-6)


def test_scans_follow_rep_117():
    signal = Signal("scan", ("a", "b", "c"), "m", "base_scan", (0.1,) * 3, (10.0,) * 3)
    message = LaserScan(ranges=[float("inf"), float("-inf"), float("nan")])
    found = read("sensor_msgs/msg/LaserScan", "ranges", message, signal)
    assert found[0] == 10.0
    assert found[1] == np.float32(0.1)
    assert np.isnan(found[2])


@pytest.mark.parametrize("kind", ["sensor_msgs/msg/JointState", "trajectory_msgs/msg/JointTrajectory"])
@pytest.mark.parametrize("field", ["position", "velocity", "effort"])
def test_commands_that_are_written_are_read_back(kind, field):
    command = Command("target", JOINTS, "rad", "joint", (-3.0,) * 3, (3.0,) * 3, (0.0,) * 3)
    message = write(Wire("target", "command/target", kind, field), command, [0.5, -1.0, 2.0], 5_000_000_007)
    assert isinstance(message, JointState | JointTrajectory)
    stamp = message.header.stamp.sec, message.header.stamp.nanosec
    assert stamp == ((5, 7) if isinstance(message, JointState) else (0, 0))  # of a trajectory: at once
    np.testing.assert_array_equal(read(kind, field, message, command), np.float32([0.5, -1.0, 2.0]))


@settings(deadline=None)
@given(st.floats(0.985, 1.015), st.integers(0, 9999))
def test_steps_meet_signals_of_a_slightly_different_clock_and_keep_the_rate(ratio: float, phase: int):
    """Sensors come every 10 ms by a clock that is off by up to 1.5 %: each step waits for its sample, or not long."""
    pace, now, steps = StepScheduler(10_000), 0, []
    pace.stepped(0)
    arrivals = [phase + round(10_000 * ratio * k) for k in range(2000)]
    seen = 0
    for _ in range(1000):
        fresh_at = next(t for t in arrivals if t > seen)
        now = max(now, min(max(fresh_at, pace.due(True)), pace.due(False)))
        seen = max((t for t in arrivals if t <= now), default=seen)
        pace.stepped(now)
        steps.append(now)
    intervals = np.diff(steps)
    assert intervals.min() >= 5_900
    assert intervals.max() <= 14_100
    assert abs(intervals.mean() / 10_000 - 1) <= 0.0085  # the gate grants 0.01


@pytest.mark.parametrize("yaw", [0.0, 0.5 * np.pi, np.pi, -2.0])
@pytest.mark.parametrize("roll", [0.0, np.pi])
def test_a_lidar_that_is_mounted_turned_or_upside_down_sees_what_is_there(yaw: float, roll: float) -> None:
    """Ranges to a wall that has a corner, of beams that the transform of a URDF turns into the robot's frame."""
    signal = Signal("scan", (), "m", "laser", 0.0, 20.0, shape=(12,), layout=Scan(-1.2, 0.2, 0.1, 10.0))
    message = LaserScan(angle_min=-np.pi, angle_increment=np.pi / 360, range_min=0.1, range_max=10.0)
    own = message.angle_min + message.angle_increment * np.arange(720)
    beams = np.stack([np.cos(own), np.sin(own), 0 * own], -1)
    x, y, _ = Rotation.from_euler("xyz", [roll, 0.0, yaw]).apply(beams).T  # fixed axes: roll first, as in a URDF
    message.ranges = [float(r) for r in 1.0 / np.maximum(np.maximum(x, 0.5 * y), 0.11)]
    wire = Wire.parse("scan", f"scan sensor_msgs/msg/LaserScan ranges yaw={yaw} roll={roll}")
    angles = -1.2 + 0.2 * np.arange(12)
    expected = 1.0 / np.maximum(np.cos(angles), 0.5 * np.sin(angles))
    assert read(wire.kind, wire.field, message, wire.measured(signal)) == pytest.approx(expected, rel=0.02)
    assert str(Wire.parse("scan", str(wire))) == str(wire)
    sent = compose([wire], {"scan": signal}, {"scan": expected.astype(np.float32)}, 0)
    assert read(wire.kind, wire.field, sent, wire.measured(signal)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("scan sensor_msgs/msg/LaserScan ranges yaw=left", "'yaw=left'; expected yaw=… or roll=…, rad"),
        ("scan sensor_msgs/msg/LaserScan ranges yaw=90", "'yaw=90'"),
        ("scan sensor_msgs/msg/LaserScan ranges turned=1", "'turned=1'"),
        ("scan sensor_msgs/msg/LaserScan ranges roll=1.57", r"a roll of 1\.57; expected 0 or 3\.1416"),
        ("odom nav_msgs/msg/Odometry position yaw=1", "expected 'topic type field'"),
    ],
)
def test_a_mounting_that_is_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(WiringError, match=words):
        Wire.parse("scan", text)
