"""From commands to messages, with names, stamps and frames. Imports message types, and nothing else of ROS."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robo_rl.contract import Command, Image, Scan, Signal
from robo_rl.deploy.robot import scans
from robo_rl.ros import images
from robo_rl.ros.reading import ACKERMANN, TWIST_ELEMENTS
from robo_rl.ros.wiring import Wire, WiringError

TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"
"""joint_trajectory_controller refuses one with a stamp other than 0 that ends in the past; 0 means at once."""
POSE, IMU = "geometry_msgs/msg/PoseStamped", "sensor_msgs/msg/Imu"


def message_type(kind: str) -> Any:
    """The class of a message type written as ``package/msg/Name``."""
    package, group, name = kind.split("/")
    try:
        return getattr(importlib.import_module(f"{package}.{group}"), name)
    except ImportError as error:
        deb = f"ros-DISTRIBUTION-{package.replace('_', '-')}"
        raise WiringError(f"messages of the type {kind} can't be used: {error}; install {deb}") from None


def set_stamp(stamp: Any, ns: int) -> None:
    """Write a time in ns into a builtin_interfaces/Time."""
    stamp.sec, stamp.nanosec = divmod(ns, 1_000_000_000)


def empty(kind: str) -> Any:
    """A new message; in an Imu all is marked as not measured, by -1 as the first covariance (sensor_msgs/Imu)."""
    message = message_type(kind)()
    if kind == IMU:
        for name in ("orientation", "angular_velocity", "linear_acceleration"):
            getattr(message, f"{name}_covariance")[0] = -1.0
    return message


def write(
    wire: Wire,
    command: Command | Signal,
    values: ArrayLike,
    ns: int,
    message: Any = None,
    turned: Sequence[float] = (0.0, 0.0, 0.0, 1.0),
    period: float = 0.05,
) -> Any:
    """A message with the elements of ``command``, or of a signal that is sent, stamped ``ns`` (ns of ROS time).

    ``message`` is one of the wire's type that has the elements of others already; None: a new one. ``turned`` is the
    orientation (x, y, z, w) in a pose of which only the position is commanded, ``period`` the time (s) to the next
    message, in which a trajectory gets to its point.
    """
    message = empty(wire.kind) if message is None else message
    numbers = np.ravel(np.asarray(values, float)).tolist()
    if hasattr(message, "header"):
        set_stamp(message.header.stamp, 0 if wire.kind == TRAJECTORY else ns)
        of_the_robot = wire.field in _OF_THE_ROBOT or wire.kind == POSE
        message.header.frame_id = "base_link" if of_the_robot or wire.kind == IMU else ""
    if wire.kind == POSE:
        q = message.pose.orientation
        q.x, q.y, q.z, q.w = map(float, turned)
    if isinstance(command, Signal) and command.shape is not None:
        _WITH_SHAPE[wire.kind](message, command, np.asarray(values))
    else:
        _WRITERS[wire.kind](message, wire.field, list(command.elements), numbers)
    if wire.kind == TRAJECTORY:
        last = message.points[-1].time_from_start
        last.sec, last.nanosec = divmod(round(1e9 * period), 1_000_000_000)
    return message


def _table(message: Any, signal: Signal, values: np.ndarray) -> None:
    """Row by row, with the layout that says so."""
    dimension = message_type("std_msgs/msg/MultiArrayDimension")
    shape = signal.dimensions
    message.layout.dim = [
        dimension(label=f"axis{i}", size=size, stride=int(np.prod(shape[i:]))) for i, size in enumerate(shape)
    ]
    message.data = np.ravel(np.asarray(values, float)).tolist()


def _scan(message: Any, signal: Signal, values: np.ndarray) -> None:
    assert isinstance(signal.layout, Scan)
    scans.fill(message, signal.layout, values)


def _image(message: Any, signal: Signal, values: np.ndarray) -> None:
    assert isinstance(signal.layout, Image)
    images.fill(message, signal.layout, values)


_OF_THE_ROBOT = ("by_name", *ACKERMANN)
"""Fields of messages about the robot as a whole, which are in its own frame."""
_WITH_SHAPE = {
    "std_msgs/msg/Float64MultiArray": _table,
    "sensor_msgs/msg/LaserScan": _scan,
    "sensor_msgs/msg/Image": _image,
}


def _joint_state(message: Any, field: str, names: list[str], values: list[float]) -> None:
    message.name = names
    setattr(message, field, values)


def _trajectory(message: Any, field: str, names: list[str], values: list[float]) -> None:
    point = message_type("trajectory_msgs/msg/JointTrajectoryPoint")()
    setattr(point, {"position": "positions", "velocity": "velocities", "effort": "effort"}[field], values)
    message.joint_names, message.points = names, [point]


def _array(message: Any, field: str, names: list[str], values: list[float]) -> None:
    message.data = values


def _pose(message: Any, field: str, names: list[str], values: list[float]) -> None:
    point = message.pose.position
    point.x, point.y, point.z = values


def _twist_stamped(message: Any, field: str, names: list[str], values: list[float]) -> None:
    _twist(message.twist, field, names, values)


def _twist(message: Any, field: str, names: list[str], values: list[float]) -> None:
    for name, value in zip(names, values, strict=True):
        part = message.linear if TWIST_ELEMENTS.index(name) < 3 else message.angular
        setattr(part, name[1], value)


def _ackermann_stamped(message: Any, field: str, names: list[str], values: list[float]) -> None:
    _ackermann(message.drive, field, names, values)


def _ackermann(message: Any, field: str, names: list[str], values: list[float]) -> None:
    (value,) = values
    setattr(message, field, value)


def _imu(message: Any, field: str, elements: list[str], numbers: list[float]) -> None:
    getattr(message, f"{field}_covariance")[0] = 0.0
    part = getattr(message, field)
    for name, number in zip(elements, numbers, strict=True):
        setattr(part, name, number)


_WRITERS = {
    IMU: _imu,
    "sensor_msgs/msg/JointState": _joint_state,
    TRAJECTORY: _trajectory,
    "std_msgs/msg/Float64MultiArray": _array,
    "geometry_msgs/msg/TwistStamped": _twist_stamped,
    "geometry_msgs/msg/Twist": _twist,
    "ackermann_msgs/msg/AckermannDriveStamped": _ackermann_stamped,
    "ackermann_msgs/msg/AckermannDrive": _ackermann,
    POSE: _pose,
}
