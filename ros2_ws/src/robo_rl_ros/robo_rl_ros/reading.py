"""From messages to the values of signals: names, frames and sizes are checked at every message.

Functions of message objects by their fields alone: nothing of ROS is imported. Each gives a signal's elements in
the contract's order, shape and unit, as float32, or refuses the message with a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robo_rl.contract import Command, Image, Scan, Signal
from robo_rl.deploy.robot.scans import ScanError, ranges_of
from robo_rl.ros.images import ImageError, pixels_of

Channel = Signal | Command
BODY_FRAMES = ("base_link", "body", "base_footprint", "imu_link")
WORLD_FRAMES = ("world", "map", "odom", "earth")
MAP_FRAMES = ("map", "odom", "earth")
"""Frames that are no arm's base; the base of one that does not drive may be the world."""
CAMERA_FRAMES = ("optical_frame", "camera_link", "camera_frame")
"""Ends of the names of frames that turn with a camera (REP 103)."""
MAX_ELEMENTS = 10_000
"""More names or numbers in one message are not read, whatever they are."""


MAX_NAME = 255
"""Characters of a frame's name. A longer one is no name, and the message is not what it should be."""


class MessageError(ValueError):
    """A message must not be used. The sentence names topic field, value and expectation."""


def stamp_ns(message: Any) -> int | None:
    """The stamp of a message's header in ns of ROS time; None if its type has no header."""
    header = getattr(message, "header", None)
    return None if header is None else header.stamp.sec * 1_000_000_000 + header.stamp.nanosec


def _vector(v: Any) -> tuple[float, ...]:
    return (v.x, v.y, v.z)


def _along(v: Any, channel: Channel) -> tuple[float, ...]:
    """Of a vector, the elements that the contract names; all, where it names them otherwise."""
    names = channel.elements
    return tuple(getattr(v, name) for name in names) if set(names) <= {"x", "y", "z"} else _vector(v)


def _quaternion(q: Any) -> tuple[float, ...]:
    return (q.x, q.y, q.z, q.w)


def _is_body(frame: str) -> bool:
    return frame in BODY_FRAMES


def _odometry_velocity(message: Any, channel: Channel) -> Any:
    """nav_msgs: the twist is in the child frame. It is rotated into the world if the contract's frame is the world."""
    return _turned(message.twist.twist.linear, message.pose.pose.orientation, channel)


def _odometry_rates(message: Any, channel: Channel) -> Any:
    return _turned(message.twist.twist.angular, message.pose.pose.orientation, channel)


def _turned(vector: Any, orientation: Any, channel: Channel) -> Any:
    if channel.frame != "world":
        return _along(vector, channel)
    v = _vector(vector)
    *axis, w = _quaternion(orientation)
    across = [2.0 * x for x in _cross(axis, v)]
    return [a + w * b + c for a, b, c in zip(v, across, _cross(axis, across), strict=True)]


def _cross(a: Sequence[float], b: Sequence[float]) -> tuple[float, ...]:
    """np.cross takes ten times as long."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def _in_frame(message: Any, value: tuple[float, ...], channel: Channel) -> tuple[float, ...]:
    """``value`` if the message's frame can be the contract's; an empty frame is taken on trust."""
    frame = message.header.frame_id
    wrong = (channel.frame == "world" and _is_body(frame)) or (channel.frame == "body" and frame in WORLD_FRAMES)
    wrong = wrong or (channel.frame == "base" and (frame in MAP_FRAMES or frame.endswith(CAMERA_FRAMES)))
    if wrong:
        raise MessageError(f"'{channel.name}': frame_id is '{frame}'; expected the frame '{channel.frame}'")
    return value


def _by_name(field: str) -> Callable[[Any, Channel], Any]:
    """A joint message's ``field``, looked up by the contract's names at every message."""

    def read(message: Any, channel: Channel) -> Any:
        names, values = message.name, getattr(message, field)
        return _pick(names, values, field, channel)

    return read


def _first_point(field: str) -> Callable[[Any, Channel], Any]:
    def read(message: Any, channel: Channel) -> Any:
        if not message.points:
            raise MessageError(f"'{channel.name}': the trajectory has no points; expected one")
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


def _twist_elements(twist: Any, channel: Channel) -> list[float]:
    both = dict(zip(TWIST_ELEMENTS, (*_vector(twist.linear), *_vector(twist.angular)), strict=True))
    return [both[name] for name in channel.elements]


ACKERMANN = {
    "steering_angle": "rad",
    "steering_angle_velocity": "rad/s",
    "speed": "m/s",
    "acceleration": "m/s^2",
}
"""The numbers of an ackermann_msgs/AckermannDrive, with their units."""


def _ackermann(field: str, stamped: bool) -> Callable[[Any, Channel], Any]:
    return lambda m, c: [getattr(m.drive if stamped else m, field)]


def _ranges(message: Any, channel: Channel) -> Any:
    """By angle, where the contract tells the angles of its beams; else beam by beam.

    REP 117: +inf is nothing within range, -inf is too close. A NaN that nothing can stand in for is an error.
    """
    if isinstance(channel, Signal) and isinstance(channel.layout, Scan):
        return ranges_of(message, channel.layout, channel.size)
    ranges = np.asarray(message.ranges[: MAX_ELEMENTS + 1], dtype=np.float64)
    if len(ranges) == channel.size:
        lower, upper = channel.bounds
        ranges = np.where(np.isposinf(ranges), upper, ranges)
        ranges = np.where(np.isneginf(ranges), lower, ranges)
    return ranges


def _pixels(message: Any, channel: Channel) -> Any:
    """What is nearer or farther than the contract's limits is at them."""
    layout = channel.layout if isinstance(channel, Signal) else None
    if not isinstance(layout, Image):
        raise MessageError(f"'{channel.name}': it is not an image in the contract; expected another message type")
    rows, columns = channel.dimensions
    lower, upper = (limits.reshape(rows, columns) for limits in channel.bounds)
    return np.clip(pixels_of(message, layout, (rows, columns)), lower, upper)


def _array(message: Any, channel: Channel) -> Any:
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


Reader = Callable[[Any, Channel], Any]

READERS: dict[str, dict[str, Reader]] = {
    "nav_msgs/msg/Odometry": {
        "position": lambda m, c: _along(m.pose.pose.position, c),
        "orientation": lambda m, c: _quaternion(m.pose.pose.orientation),
        "linear_velocity": _odometry_velocity,
        "angular_velocity": _odometry_rates,
    },
    "sensor_msgs/msg/Imu": {
        "orientation": lambda m, c: _quaternion(m.orientation),
        "angular_velocity": lambda m, c: _in_frame(m, _along(m.angular_velocity, c), c),
        "linear_acceleration": lambda m, c: _in_frame(m, _along(m.linear_acceleration, c), c),
    },
    "geometry_msgs/msg/PoseStamped": {
        "position": lambda m, c: _in_frame(m, _along(m.pose.position, c), c),
        "orientation": lambda m, c: _quaternion(m.pose.orientation),
    },
    "geometry_msgs/msg/TwistStamped": {
        "linear": lambda m, c: _in_frame(m, _along(m.twist.linear, c), c),
        "angular": lambda m, c: _in_frame(m, _along(m.twist.angular, c), c),
        "by_name": lambda m, c: _twist_elements(m.twist, c),
    },
    "geometry_msgs/msg/Twist": {
        "linear": lambda m, c: _along(m.linear, c),
        "angular": lambda m, c: _along(m.angular, c),
        "by_name": lambda m, c: _twist_elements(m, c),
    },
    "ackermann_msgs/msg/AckermannDrive": {field: _ackermann(field, False) for field in ACKERMANN},
    "ackermann_msgs/msg/AckermannDriveStamped": {field: _ackermann(field, True) for field in ACKERMANN},
    "sensor_msgs/msg/JointState": {field: _by_name(field) for field in ("position", "velocity", "effort")},
    "trajectory_msgs/msg/JointTrajectory": {field: _first_point(field) for field in ("position", "velocity", "effort")},
    "sensor_msgs/msg/LaserScan": {"ranges": _ranges},
    "sensor_msgs/msg/Image": {"data": _pixels},
    "std_msgs/msg/Float64MultiArray": {"data": _array},
    "std_msgs/msg/Float32MultiArray": {"data": _array},
}
"""How each field of each message type is read."""

MEASURED: dict[tuple[str, str], Callable[[Any], tuple[float, ...]]] = {
    ("nav_msgs/msg/Odometry", "linear_velocity"): lambda m: _vector(m.twist.twist.linear),
    ("nav_msgs/msg/Odometry", "angular_velocity"): lambda m: _vector(m.twist.twist.angular),
}
"""What the robot measured, where ``READERS`` may turn it into another frame: turned anew it never repeats, even if the
sensor does."""


def read(kind: str, field: str, message: Any, channel: Channel) -> np.ndarray:
    """The elements of ``channel``, float32 in its dimensions, out of a message; MessageError if they can't be."""
    header = getattr(message, "header", None)
    if header is not None and len(header.frame_id) > MAX_NAME:
        found = f"frame_id has {len(header.frame_id)} characters"
        raise MessageError(f"'{channel.name}': {found}; expected at most {MAX_NAME}")
    with np.errstate(over="ignore", invalid="ignore"):  # what is infinite or NaN is the gate's to judge
        try:
            value = np.asarray(READERS[kind][field](message, channel), dtype=np.float32)
        except (ScanError, ImageError) as error:
            raise MessageError(f"'{channel.name}': {error}") from None
    if value.shape != channel.dimensions:
        raise MessageError(f"'{channel.name}': {value.size} numbers in '{field}'; expected {channel.size}")
    return value
