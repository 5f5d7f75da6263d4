"""Frames, covariances and lidars' ways of telling nothing: what a message says of itself is checked."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from geometry_msgs.msg import PoseStamped, TwistStamped
from nav_msgs.msg import Odometry
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import Imu, LaserScan

from robo_rl.contract import Scan, Signal
from robo_rl.deploy.robot import scans
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.doctor import Series, examine
from robo_rl.ros.frames import Frames, Transform
from robo_rl.ros.message_encoding import compose
from robo_rl.ros.reading import MessageError, read
from robo_rl.ros.signal_buffer import SignalBuffer
from robo_rl.ros.wiring import Wire, WiringError, signal_wires
from robo_rl.ros.writing import empty
from robo_rl.zoo import located

XYZ = ("x", "y", "z")
POSE, ODOMETRY, IMU = "geometry_msgs/msg/PoseStamped", "nav_msgs/msg/Odometry", "sensor_msgs/msg/Imu"
TWIST, SCAN = "geometry_msgs/msg/TwistStamped", "sensor_msgs/msg/LaserScan"
DIFF = Bundle.read(located("zoo:diff-nav")).contract
STRANGE = ["camera_color_optical_frame", "camera_link", "tool0", "lidar_link", "local_origin_ned", "robot/gripper"]


def vector(frame: str, name: str = "quantity", unit: str = "rad/s") -> Signal:
    return Signal(name, XYZ, unit, frame, (-9.0,) * 3, (9.0,) * 3)


def turn(frame: str) -> Signal:
    return Signal("orientation", (*XYZ, "w"), "1", frame, (-1.0,) * 4, (1.0,) * 4, kind="quaternion")


def message(kind, frame: str, child: str = ""):
    made = kind()
    made.header.frame_id = frame
    if child:
        made.child_frame_id = child
    return made


@pytest.mark.parametrize("frame", [*STRANGE, "base_link", "imu_link"])
def test_what_is_in_the_world_comes_in_a_frame_of_the_world(frame: str) -> None:
    for kind, made, field in (
        (POSE, PoseStamped, "position"),
        (TWIST, TwistStamped, "linear"),
        (ODOMETRY, Odometry, "position"),
    ):
        with pytest.raises(MessageError, match=f"frame_id is '{frame}'; expected the frame 'world'"):
            read(kind, field, message(made, frame), vector("world"))
    with pytest.raises(MessageError, match=f"frame_id is '{frame}'"):
        read(POSE, "orientation", message(PoseStamped, frame), turn("body to world"))


@pytest.mark.parametrize("wanted", ["body", "base", "heading"])
@pytest.mark.parametrize("frame", [*STRANGE, "map", "odom", "base_link_optical_frame"])
def test_rates_and_velocities_of_the_robot_come_in_its_own_frame(wanted: str, frame: str) -> None:
    for kind, made, field in (
        (IMU, Imu, "angular_velocity"),
        (IMU, Imu, "linear_acceleration"),
        (TWIST, TwistStamped, "angular"),
    ):
        with pytest.raises(MessageError, match=f"frame_id is '{frame}'; expected the frame '{wanted}'"):
            read(kind, field, message(made, frame), vector(wanted))
    named = Signal("speed", ("vx",), "m/s", wanted, (-1.0,), (1.0,))
    with pytest.raises(MessageError, match="frame_id"):
        read(TWIST, "by_name", message(TwistStamped, frame), named)


@pytest.mark.parametrize("frame", ["", "base_link", "tb3_0/base_link", "/base_link", "imu_link", "base", "trunk"])
def test_the_usual_names_of_the_robots_frame_are_accepted(frame: str) -> None:
    for wanted in ("body", "base"):
        assert read(IMU, "angular_velocity", message(Imu, frame), vector(wanted)).shape == (3,)


def test_odometry_is_of_the_robot_and_not_of_its_camera() -> None:
    given = message(Odometry, "odom", "camera_pose_frame")
    for field, signal in (
        ("position", vector("world")),
        ("linear_velocity", vector("body")),
        ("orientation", turn("body to world")),
    ):
        with pytest.raises(MessageError, match="child_frame_id is 'camera_pose_frame'"):
            read(ODOMETRY, field, given, signal)
        read(ODOMETRY, field, message(Odometry, "odom", "base_footprint"), signal)


def test_a_wire_names_the_contracts_frame_where_it_has_another_name() -> None:
    wire = Wire.parse("rates", f"imu {IMU} angular_velocity frame=cf231")
    assert str(Wire.parse("rates", str(wire))) == str(wire)
    assert read(IMU, wire.field, message(Imu, "cf231"), vector("body"), wire.view()).shape == (3,)
    with pytest.raises(MessageError, match="frame_id is 'cf232'"):
        read(IMU, wire.field, message(Imu, "cf232"), vector("body"), wire.view())


@pytest.mark.parametrize("field", ["orientation", "angular_velocity", "linear_acceleration"])
def test_a_covariance_of_minus_one_says_that_an_imu_does_not_measure_it(field: str) -> None:
    given = message(Imu, "imu_link")
    signal = turn("body to world") if field == "orientation" else vector("body")
    read(IMU, field, given, signal)
    getattr(given, f"{field}_covariance")[0] = -1.0
    with pytest.raises(MessageError, match=f"{field}_covariance is -1"):
        read(IMU, field, given, signal)
    for at, variance in ((0, math.nan), (4, math.inf), (8, math.nan)):
        getattr(given, f"{field}_covariance")[:] = np.zeros(9)
        getattr(given, f"{field}_covariance")[at] = variance
        with pytest.raises(MessageError, match="expected 0 where it is not known"):
            read(IMU, field, given, signal)


@pytest.mark.parametrize(
    ("part", "field", "at"),
    [
        ("pose", "position", 0),
        ("pose", "orientation", 35),
        ("twist", "linear_velocity", 0),
        ("twist", "angular_velocity", 35),
    ],
)
def test_a_negative_variance_says_that_odometry_does_not_measure_it(part: str, field: str, at: int) -> None:
    given = message(Odometry, "odom", "base_link")
    signal = turn("body to world") if field == "orientation" else vector("world")
    read(ODOMETRY, field, given, signal)
    getattr(given, part).covariance[at] = -1.0
    with pytest.raises(MessageError, match="covariance is -1"):
        read(ODOMETRY, field, given, signal)
    for variance in (math.nan, math.inf):
        getattr(given, part).covariance[at] = variance
        with pytest.raises(MessageError, match="expected 0 where it is not known"):
            read(ODOMETRY, field, given, signal)


def test_a_velocity_is_not_turned_into_the_world_by_what_is_no_orientation() -> None:
    """All zeros are ROS's default, and turn nothing; nor does one whose variance says that it was not measured."""

    def velocity(w: float) -> float:
        made.pose.pose.orientation.w = w
        return float(read(ODOMETRY, "linear_velocity", made, vector("world", "linear_velocity", "m/s"))[0])

    made = message(Odometry, "odom", "base_link")
    made.twist.twist.linear.x = 1.0
    assert velocity(1.0) == 1.0
    assert math.isnan(velocity(2.0))
    assert math.isnan(velocity(math.nan))
    with pytest.raises(MessageError, match="all zeros"):
        velocity(0.0)
    made.pose.covariance[35] = -1.0
    with pytest.raises(MessageError, match="no such measurement"):
        velocity(1.0)


def test_an_imu_that_is_sent_marks_what_it_does_not_measure() -> None:
    signal = vector("body", "angular_velocity")
    (wire,) = signal_wires([signal])
    for made in (compose([wire], {signal.name: signal}, {signal.name: np.zeros(3)}, 0),):
        assert (made.orientation_covariance[0], made.angular_velocity_covariance[0]) == (-1.0, 0.0)
        assert made.linear_acceleration_covariance[0] == -1.0
    assert empty(IMU).orientation_covariance[0] == -1.0


def put(buffer: SignalBuffer, topic: str, kind: str, given, now: int) -> None:
    buffer.put((topic, kind), given, now, given.header.stamp.sec * 10**9)


def odometry(frame: str) -> Odometry:
    made = message(Odometry, frame, "base_link")
    made.pose.pose.orientation.w = 1.0
    return made


def test_a_goal_is_in_the_frame_in_which_the_robot_knows_its_position() -> None:
    buffer = SignalBuffer(DIFF, signal_wires(DIFF.signals))
    put(buffer, "setpoint/pose", POSE, message(PoseStamped, "map"), 1)
    assert "position_setpoint" in buffer.samples
    put(buffer, "odom", ODOMETRY, odometry("odom"), 2)
    assert "position_setpoint" not in buffer.samples  # the goal was one of another frame
    put(buffer, "setpoint/pose", POSE, message(PoseStamped, "map"), 3)
    assert "position_setpoint" not in buffer.samples
    assert any("frame_id is 'map'" in told and "comes in 'odom'" in told for told in buffer.complaints())
    put(buffer, "setpoint/pose", POSE, message(PoseStamped, "odom"), 4)
    assert "position_setpoint" in buffer.samples
    put(buffer, "odom", ODOMETRY, odometry("map"), 5)
    assert any("frame_id is 'map'" in told for told in buffer.complaints())  # odometry that changes its frame


def test_the_world_is_the_base_of_an_arm_that_stands_and_of_no_other() -> None:
    cube = vector("base", "cube_position", "m")
    given, kind = message(PoseStamped, "world"), POSE
    assert read(kind, "position", given, cube, Wire("x", "t", kind, "position").view(Frames())).shape == (3,)
    with pytest.raises(MessageError, match="frame_id is 'world'"):
        read(kind, "position", given, cube, Wire("x", "t", kind, "position").view(Frames(drives=True)))


def test_frames_that_tf_connects_are_transformed() -> None:
    """Against scipy's rotations."""
    rotation = Rotation.from_euler("xyz", [0.4, -1.0, 2.2])
    mounted = Transform((0.1, -0.2, 0.3), tuple(rotation.as_quat()))
    asked = []

    def find(targets, source):
        asked.append((tuple(targets), source))
        return mounted if source in ("camera_link", "imu_link") else None

    view = Wire("x", "t", IMU, "angular_velocity").view(Frames(find, "odom"))
    imu, value = message(Imu, "imu_link"), [1.0, 2.0, 3.0]
    imu.angular_velocity.x, imu.angular_velocity.y, imu.angular_velocity.z = value
    np.testing.assert_allclose(
        read(IMU, "angular_velocity", imu, vector("body"), view), rotation.apply(value), rtol=1e-6
    )
    own = Rotation.from_euler("xyz", [-0.2, 0.7, 1.0])
    q = imu.orientation
    q.x, q.y, q.z, q.w = (own * rotation).as_quat()  # of the IMU in the world
    found = read(IMU, "orientation", imu, turn("body to world"), view)
    assert abs(found @ own.as_quat()) == pytest.approx(1.0, abs=1e-6)
    goal = message(PoseStamped, "camera_link")
    goal.pose.position.x, goal.pose.position.y, goal.pose.position.z = value
    np.testing.assert_allclose(
        read(POSE, "position", goal, vector("world"), view), np.add(rotation.apply(value), [0.1, -0.2, 0.3]), rtol=1e-6
    )
    assert (("odom",), "camera_link") in asked
    with pytest.raises(MessageError, match="frame_id is 'tool0'"):
        read(POSE, "position", message(PoseStamped, "tool0"), vector("world"), view)


RING = Signal("scan", (), "m", "base_scan", 0.0, 3.5, shape=(60,), layout=Scan(-math.pi, math.tau / 60, 0.12, 3.5))


def scan(ranges: np.ndarray, frame: str = "base_scan") -> LaserScan:
    made = LaserScan(angle_min=0.0, angle_increment=math.tau / len(ranges), range_min=0.12, range_max=3.5)
    made.header.frame_id, made.ranges = frame, ranges.tolist()
    return made


def with_gap(value: float, beside: float = 1.5) -> np.ndarray:
    """A side of 60 degrees without a range, that is about 180 degrees."""
    ranges = np.full(360, 1.5)
    ranges[150:210] = value
    ranges[[149, 210]] = beside
    return ranges


def measured(given: LaserScan, nothing: str = "") -> np.ndarray:
    wire = Wire.parse("scan", f"scan {SCAN} ranges" + (f" nothing={nothing}" if nothing else ""))
    assert str(Wire.parse("scan", str(wire))) == str(wire)
    return read(SCAN, "ranges", given, wire.measured(RING), wire.view())


@pytest.mark.parametrize(
    ("value", "nothing"),
    [(0.0, ""), (0.0, "zero"), (math.nan, "nan"), (math.nan, "zero,nan"), (math.inf, ""), (4.0, "inf")],
)
def test_what_a_lidar_gives_for_nothing_within_range_is_as_far_as_it_sees(value: float, nothing: str) -> None:
    found = measured(scan(with_gap(value)), nothing)
    assert (found == np.float32(3.5)).sum() in (9, 10, 11)  # beams of 6 degrees
    assert ((found == np.float32(3.5)) | (found == np.float32(1.5))).all()


@pytest.mark.parametrize(
    ("given", "nothing"),
    [
        (with_gap(math.nan), ""),
        (with_gap(0.0), "inf"),
        (with_gap(0.0, beside=0.15), ""),  # something too close to measure, seen at its edge
        (np.zeros(360), ""),  # covered
        (np.full(360, math.nan), "zero,nan"),
    ],
)
def test_beams_that_are_not_known_are_refused(given: np.ndarray, nothing: str) -> None:
    with pytest.raises(MessageError, match="nothing=zero,nan to the wire"):
        measured(scan(given), nothing)


def test_a_range_of_exactly_range_max_is_something_unless_the_wire_says_otherwise() -> None:
    far = Signal("scan", (), "m", "laser", 0.0, 10.0, shape=(60,), layout=Scan(-math.pi, math.tau / 60, 0.1, 10.0))
    given = scan(with_gap(float(np.float32(3.5))))
    assert read(SCAN, "ranges", given, far).max() == pytest.approx(3.5)
    wire = Wire.parse("scan", f"scan {SCAN} ranges nothing=zero,max")
    assert read(SCAN, "ranges", given, far, wire.view()).max() == 10.0


def test_a_scan_of_an_optical_frame_is_refused_and_a_setting_that_is_none() -> None:
    with pytest.raises(MessageError, match="expected the frame of a lidar"):
        measured(scan(np.ones(360), "camera_depth_optical_frame"))
    with pytest.raises(WiringError, match="expected some of zero,nan,max, or inf"):
        Wire.parse("scan", f"scan {SCAN} ranges nothing=0")


@pytest.mark.parametrize(
    ("value", "nothing", "words"),
    [
        (0.0, ("zero",), "17 % of its beams are 0.0: they count as nothing"),
        (math.nan, ("zero",), "17 % of its beams are NaN: they are not known; where NaN says"),
        (3.5, ("zero",), "17 % of its beams are exactly its range_max"),
    ],
)
def test_the_doctor_finds_what_a_lidar_gives_for_nothing_within_range(value, nothing, words) -> None:
    series = Series(
        nothing=nothing, beams=[scans.habits(scan(with_gap(value)))] * 20, problem="" if value == 0 else "…"
    )
    findings = examine(DIFF, {"scan": series})
    assert any(words in f.sentence for f in findings if f.subject == "scan"), findings
