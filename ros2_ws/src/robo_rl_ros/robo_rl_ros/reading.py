"""From messages to the values of signals: names, frames and sizes are checked at every message.

Functions of message objects by their fields alone: nothing of ROS is imported. Each gives a signal's elements in
the contract's order, shape and unit, as float32, or refuses the message with a sentence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robo_rl.contract import Command, Image, Scan, Signal
from robo_rl.deploy.robot.scans import ScanError, blank, ranges_of
from robo_rl.ros.frames import IMU, TWIST, FrameError, Transform, View, multiply, require_robot, require_scanner, rotate
from robo_rl.ros.images import ImageError, pixels_of

Channel = Signal | Command
MAX_ELEMENTS = 10_000
"""More names or numbers in one message are not read, whatever they are."""


NOT_UNIT = 0.01
"""By which the length of a quaternion may be off 1."""
MAX_NAME = 255
"""Characters of a frame's name. A longer one is no name, and the message is not what it should be."""


class MessageError(ValueError):
    """A message must not be used. The sentence names topic field, value and expectation."""


def stamp_ns(message: Any) -> int | None:
    """The stamp of a message's header in ns of ROS time; None if its type has no header."""
    header = getattr(message, "header", None)
    return None if header is None else header.stamp.sec * 1_000_000_000 + header.stamp.nanosec


def _vector(v: Any) -> tuple[float, float, float]:
    return (v.x, v.y, v.z)


def _along(v: Sequence[float], channel: Channel) -> Sequence[float]:
    """Of a vector (x, y, z), the elements that the contract names; all, where it names them otherwise."""
    names = channel.elements
    return [v["xyz".index(name)] for name in names] if set(names) <= {"x", "y", "z"} else v


def _quaternion(q: Any) -> tuple[float, float, float, float]:
    return (q.x, q.y, q.z, q.w)


def _turned(q: Any, v: tuple[float, float, float], channel: Channel) -> tuple[float, float, float]:
    """``v`` by an orientation; NaN, which the gate refuses at once, where that is not of length 1. All zeros, ROS's
    default, say that there is none."""
    found = _quaternion(q)
    if not any(found):
        raise MessageError(f"'{channel.name}': its orientation is all zeros; expected a quaternion of length 1")
    return rotate(found, v) if abs(math.hypot(*found) - 1.0) <= NOT_UNIT else (math.nan,) * 3


def _require_measured(part: Any, field: str, diagonal: Sequence[int], channel: Channel) -> None:
    """A negative variance says that a sensor does not measure this (sensor_msgs/Imu: -1 as the first element). One that
    is not finite is that of a filter that knows nothing or has diverged; what is not known is 0 (sensor_msgs/Imu)."""
    covariance = getattr(part, field, None)
    if covariance is None:
        return
    variances = [covariance[i] for i in diagonal]
    if any(variance < 0 for variance in variances):
        raise MessageError(f"'{channel.name}': {field} is -1: the message has no such measurement; take another source")
    if not all(map(math.isfinite, variances)):
        raise MessageError(
            f"'{channel.name}': {field} has the variances {variances}: what is not finite was not measured, or its "
            "filter has diverged; expected 0 where it is not known"
        )


def _odometry_position(message: Any, channel: Channel, view: View) -> Any:
    _require_measured(message.pose, "covariance", (0, 7, 14), channel)
    require_robot(channel.name, message.child_frame_id, view.own)
    return _along(_point(message.header, message.pose.pose.position, channel, view), channel)


def _odometry_orientation(message: Any, channel: Channel, view: View) -> Any:
    _require_measured(message.pose, "covariance", (21, 28, 35), channel)
    require_robot(channel.name, message.child_frame_id, view.own)
    return _orientation(message.header, message.pose.pose.orientation, channel, view)


def _odometry_twist(part: str, diagonal: Sequence[int]) -> Callable[[Any, Channel, View], Any]:
    """nav_msgs: the twist is in the child frame. It is rotated into the world if the contract's frame is the world."""

    def read(message: Any, channel: Channel, view: View) -> Any:
        _require_measured(message.twist, "covariance", diagonal, channel)
        require_robot(channel.name, message.child_frame_id, view.own)
        vector = _vector(getattr(message.twist.twist, part))
        if channel.frame == "world":
            into = view.into(channel.name, message.header.frame_id, channel.frame)
            _require_measured(message.pose, "covariance", (21, 28, 35), channel)
            vector = _turned(message.pose.pose.orientation, vector, channel)
            vector = vector if into is None else into.turn(vector)
        return _along(vector, channel)

    return read


def _point(header: Any, point: Any, channel: Channel, view: View) -> Sequence[float]:
    """A place (m) in the contract's frame."""
    into = view.into(channel.name, header.frame_id, channel.frame)
    return _vector(point) if into is None else into.move(_vector(point))


def _orientation(header: Any, orientation: Any, channel: Channel, view: View) -> Sequence[float]:
    """An orientation in the frame that the contract's is told in: the last of "body to world"."""
    into = view.into(channel.name, header.frame_id, channel.frame.rpartition(" to ")[2])
    q = _quaternion(orientation)
    return q if into is None else multiply(into.rotation, q)


def _free(header: Any, vector: Any, channel: Channel, view: View) -> Sequence[float]:
    """A velocity in the contract's frame, of the elements that it names."""
    into = view.into(channel.name, header.frame_id, channel.frame, TWIST)
    return _along(_vector(vector) if into is None else into.turn(_vector(vector)), channel)


def _imu(field: str) -> Callable[[Any, Channel, View], Any]:
    """A vector that an IMU measures, in the contract's frame."""

    def read(message: Any, channel: Channel, view: View) -> Any:
        _require_measured(message, f"{field}_covariance", (0, 4, 8), channel)
        into = view.into(channel.name, message.header.frame_id, channel.frame, IMU)
        vector = _vector(getattr(message, field))
        return _along(vector if into is None else into.turn(vector), channel)

    return read


def _imu_orientation(message: Any, channel: Channel, view: View) -> Any:
    """Of the robot's body, where tf tells how the IMU is mounted on it."""
    _require_measured(message, "orientation_covariance", (0, 4, 8), channel)
    mounted = view.into(channel.name, message.header.frame_id, channel.frame.partition(" to ")[0], IMU)
    q = _quaternion(message.orientation)
    return q if mounted is None else multiply(q, mounted.inverse().rotation)


def _by_name(field: str) -> Callable[[Any, Channel, View], Any]:
    """A joint message's ``field``, looked up by the contract's names at every message."""

    def read(message: Any, channel: Channel, view: View) -> Any:
        names, values = message.name, getattr(message, field)
        return _pick(names, values, field, channel)

    return read


def _first_point(field: str) -> Callable[[Any, Channel, View], Any]:
    def read(message: Any, channel: Channel, view: View) -> Any:
        if len(message.points) != 1:
            found = len(message.points) or "no"
            raise MessageError(f"'{channel.name}': the trajectory has {found} points; expected one")
        plural = {"position": "positions", "velocity": "velocities", "effort": "effort"}[field]
        return _pick(message.joint_names, getattr(message.points[0], plural), field, channel)

    return read


def _pick(names: Sequence[str], values: Sequence[float], field: str, channel: Channel) -> list[float]:
    if len(names) > MAX_ELEMENTS:
        raise MessageError(f"'{channel.name}': {len(names)} names; expected at most {MAX_ELEMENTS}")
    if len(names) != len(values):
        raise MessageError(f"'{channel.name}': {len(names)} names but {len(values)} values in '{field}'")
    if len(set(names)) != len(names):
        raise MessageError(f"'{channel.name}': names {sorted(n for n in set(names) if names.count(n) > 1)} occur twice")
    at = {name: i for i, name in enumerate(names)}
    missing = [name for name in channel.elements if name not in at]
    if missing:
        raise MessageError(f"'{channel.name}': no element {missing} in the message; it has {list(names)[:20]}")
    return [values[at[name]] for name in channel.elements]


TWIST_ELEMENTS = ("vx", "vy", "vz", "wx", "wy", "wz")


def _twist_elements(twist: Any, channel: Channel, into: Transform | None = None) -> list[float]:
    parts = [_vector(part) if into is None else into.turn(_vector(part)) for part in (twist.linear, twist.angular)]
    both = dict(zip(TWIST_ELEMENTS, (*parts[0], *parts[1]), strict=True))
    return [both[name] for name in channel.elements]


def _stamped_twist_elements(message: Any, channel: Channel, view: View) -> list[float]:
    return _twist_elements(
        message.twist, channel, view.into(channel.name, message.header.frame_id, channel.frame, TWIST)
    )


ACKERMANN = {
    "steering_angle": "rad",
    "steering_angle_velocity": "rad/s",
    "speed": "m/s",
    "acceleration": "m/s^2",
}
"""The numbers of an ackermann_msgs/AckermannDrive, with their units."""


def _ackermann(field: str) -> Callable[[Any, Channel, View], Any]:
    return lambda m, c, view: [getattr(m, field)]


def _stamped_ackermann(field: str) -> Callable[[Any, Channel, View], Any]:
    def read(message: Any, channel: Channel, view: View) -> Any:
        if view.into(channel.name, message.header.frame_id, channel.frame) is not None:
            raise FrameError(f"'{channel.name}': frame_id is '{message.header.frame_id}'; expected the car's own frame")
        return [getattr(message.drive, field)]

    return read


def seen_by(scan: Scan, yaw: float, upside_down: bool) -> Scan:
    """A contract's beams with their angles about the axes of a lidar that is mounted turned by ``yaw`` (rad)."""
    sense = -1.0 if upside_down else 1.0
    return replace(scan, angle_min=sense * (scan.angle_min - yaw), angle_increment=sense * scan.angle_increment)


def _ranges(message: Any, channel: Channel, view: View) -> Any:
    """By angle, where the contract tells the angles of its beams; else beam by beam.

    REP 117: +inf is nothing within range, -inf is too close. A NaN that nothing can stand in for is an error.
    """
    require_scanner(channel.name, message.header.frame_id, view.own)
    if isinstance(channel, Signal) and isinstance(channel.layout, Scan):
        mounting = view.mounting(channel.name, message.header.frame_id)
        layout = channel.layout if mounting is None else seen_by(channel.layout, *mounting)
        return ranges_of(message, layout, channel.size, view.nothing)
    ranges = np.asarray(message.ranges[: MAX_ELEMENTS + 1], dtype=np.float64)
    if len(ranges) == channel.size:
        lower, upper = channel.bounds
        ranges = np.where(blank(ranges, float(message.range_min), view.nothing), np.inf, ranges)
        ranges = np.where(np.isposinf(ranges), upper, ranges)
        ranges = np.where(np.isneginf(ranges), lower, ranges)
    return ranges


def _pixels(message: Any, channel: Channel, view: View) -> Any:
    """What is nearer or farther than the contract's limits is at them."""
    layout = channel.layout if isinstance(channel, Signal) else None
    if not isinstance(layout, Image):
        raise MessageError(f"'{channel.name}': it is not an image in the contract; expected another message type")
    rows, columns = channel.dimensions
    lower, upper = (limits.reshape(rows, columns) for limits in channel.bounds)
    return np.clip(pixels_of(message, layout, (rows, columns)), lower, upper)


def _array(message: Any, channel: Channel, view: View) -> Any:
    """Numbers in a row; of a signal with a shape, by the message's layout, which must have that shape."""
    if isinstance(channel, Command) or channel.shape is None:
        return message.data[: MAX_ELEMENTS + 1]
    sizes = tuple(dimension.size for dimension in message.layout.dim)
    start, end = message.layout.data_offset, message.layout.data_offset + channel.size
    strides = [int(np.prod(channel.shape[i:])) for i in range(len(channel.shape))]
    if sizes != channel.shape or [d.stride for d in message.layout.dim] != strides or len(message.data) < end:
        found = f"the sizes {sizes[:8]} and strides {[d.stride for d in message.layout.dim[:8]]}"
        raise MessageError(
            f"'{channel.name}': its layout has {found} for {len(message.data)} numbers; expected {channel.shape} and "
            f"{strides}, row by row"
        )
    return np.asarray(message.data[start:end], np.float64).reshape(channel.shape)


def _transformed(field: str) -> Callable[[Any, Channel, View], Any]:
    """A pose that only tf tells: the message is one part of the way between its two frames, or none."""

    def read(message: Any, channel: Channel, view: View) -> Any:
        view.frames.put(message)
        found = view.pose(channel.name)
        return _along(found.translation, channel) if field == "position" else found.rotation

    return read


TF = "tf2_msgs/msg/TFMessage"
Reader = Callable[[Any, Channel, View], Any]

READERS: dict[str, dict[str, Reader]] = {
    "nav_msgs/msg/Odometry": {
        "position": _odometry_position,
        "orientation": _odometry_orientation,
        "linear_velocity": _odometry_twist("linear", (0, 7, 14)),
        "angular_velocity": _odometry_twist("angular", (21, 28, 35)),
    },
    "sensor_msgs/msg/Imu": {
        "orientation": _imu_orientation,
        "angular_velocity": _imu("angular_velocity"),
        "linear_acceleration": _imu("linear_acceleration"),
    },
    "geometry_msgs/msg/PoseStamped": {
        "position": lambda m, c, view: _along(_point(m.header, m.pose.position, c, view), c),
        "orientation": lambda m, c, view: _orientation(m.header, m.pose.orientation, c, view),
    },
    "geometry_msgs/msg/TwistStamped": {
        "linear": lambda m, c, view: _free(m.header, m.twist.linear, c, view),
        "angular": lambda m, c, view: _free(m.header, m.twist.angular, c, view),
        "by_name": _stamped_twist_elements,
    },
    "geometry_msgs/msg/Twist": {
        "linear": lambda m, c, view: _along(_vector(m.linear), c),
        "angular": lambda m, c, view: _along(_vector(m.angular), c),
        "by_name": lambda m, c, view: _twist_elements(m, c),
    },
    "ackermann_msgs/msg/AckermannDrive": {field: _ackermann(field) for field in ACKERMANN},
    "ackermann_msgs/msg/AckermannDriveStamped": {field: _stamped_ackermann(field) for field in ACKERMANN},
    "sensor_msgs/msg/JointState": {field: _by_name(field) for field in ("position", "velocity", "effort")},
    "trajectory_msgs/msg/JointTrajectory": {field: _first_point(field) for field in ("position", "velocity", "effort")},
    "sensor_msgs/msg/LaserScan": {"ranges": _ranges},
    "sensor_msgs/msg/Image": {"data": _pixels},
    "std_msgs/msg/Float64MultiArray": {"data": _array},
    "std_msgs/msg/Float32MultiArray": {"data": _array},
    TF: {field: _transformed(field) for field in ("position", "orientation")},
}
"""How each field of each message type is read."""

MEASURED: dict[tuple[str, str], Callable[[Any], tuple[float, ...]]] = {
    ("nav_msgs/msg/Odometry", "linear_velocity"): lambda m: _vector(m.twist.twist.linear),
    ("nav_msgs/msg/Odometry", "angular_velocity"): lambda m: _vector(m.twist.twist.angular),
}
"""What the robot measured, where ``READERS`` may turn it into another frame: turned anew it never repeats, even if the
sensor does."""


NAMES_ONLY = View()


def read(kind: str, field: str, message: Any, channel: Channel, view: View = NAMES_ONLY) -> np.ndarray:
    """The elements of ``channel``, float32 in its dimensions, out of a message; MessageError if they can't be.

    ``view`` tells how the message's frame is matched; without it, by names alone.
    """
    header = getattr(message, "header", None)
    if header is not None and len(header.frame_id) > MAX_NAME:
        found = f"frame_id has {len(header.frame_id)} characters"
        raise MessageError(f"'{channel.name}': {found}; expected at most {MAX_NAME}")
    with np.errstate(over="ignore", invalid="ignore"):  # what is infinite or NaN is the gate's to judge
        try:
            value = np.asarray(READERS[kind][field](message, channel, view), dtype=np.float32)
        except (ScanError, ImageError) as error:
            raise MessageError(f"'{channel.name}': {error}") from None
        except FrameError as error:
            raise MessageError(str(error)) from None
    if value.shape != channel.dimensions:
        raise MessageError(f"'{channel.name}': {value.size} numbers in '{field}'; expected {channel.size}")
    return value
