"""From values of signals to the messages of a robot: the inverse of ``reading``, for the simulated robot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from robo_rl.contract import Signal
from robo_rl.ros.wiring import Wire, WiringError
from robo_rl.ros.writing import IMU, empty, message_type, set_stamp, write

ODOMETRY = "nav_msgs/msg/Odometry"


def compose(
    wires: Sequence[Wire], signals: Mapping[str, Signal], values: Mapping[str, np.ndarray], ns: int, world: str = "odom"
) -> Any:
    """One message of one topic, with the values of all its ``wires``, in their dimensions, stamped with ``ns``.

    ``world`` is the frame_id of what is in the world.
    """
    kind = wires[0].kind
    if kind in _COMPOSERS:
        message = empty(kind)
        if hasattr(message, "header"):
            set_stamp(message.header.stamp, ns)
            fixed = kind == ODOMETRY or (kind != IMU and signals[wires[0].name].frame.endswith("world"))
            message.header.frame_id = wires[0].frame or (world if fixed else "base_link")
        for wire in wires:
            _COMPOSERS[kind](message, wire.field, signals[wire.name], values)
        return message
    if kind == "sensor_msgs/msg/JointState":
        message = message_type(kind)()
        set_stamp(message.header.stamp, ns)
        _joints(message, [(wire.field, signals[wire.name].elements, values[wire.name]) for wire in wires])
        return message
    if len(wires) > 1:
        raise WiringError(f"'{wires[0].topic}' carries {[w.name for w in wires]}; a {kind} holds one signal")
    return write(wires[0], wires[0].measured(signals[wires[0].name]), values[wires[0].name], ns)


def _joints(message: Any, parts: Sequence[tuple[str, Sequence[str], np.ndarray]]) -> None:
    """All joints that any signal names; NaN for what is not measured of one, as of joint_state_broadcaster."""
    names = list(dict.fromkeys(name for _, elements, _ in parts for name in elements))
    found = {field: dict.fromkeys(names, float("nan")) for field, _, _ in parts}
    for field, elements, value in parts:
        found[field].update(zip(elements, map(float, value), strict=True))
    message.name = names
    for field, numbers in found.items():
        setattr(message, field, list(numbers.values()))


def _fill(target: Any, numbers: np.ndarray, elements: Sequence[str] = "xyzw") -> None:
    """Numbers of a vector; where a signal has only some of its ``elements``, these."""
    names = elements if set(elements) <= set("xyzw") else "xyzw"
    for name, value in zip(names, numbers, strict=False):
        setattr(target, name, float(value))


def _odometry(message: Any, field: str, signal: Signal, values: Mapping[str, np.ndarray]) -> None:
    """The twist is in the child frame, as specified by nav_msgs."""
    message.child_frame_id = "base_link"
    value = values[signal.name]
    if field == "position":
        _fill(message.pose.pose.position, value, signal.elements)
    elif field == "orientation":
        _fill(message.pose.pose.orientation, value)
    else:
        part = message.twist.twist.linear if field == "linear_velocity" else message.twist.twist.angular
        turned = _into_body(value, values["orientation"]) if signal.frame == "world" else value
        _fill(part, turned, signal.elements)


def _into_body(v: np.ndarray, q: np.ndarray) -> np.ndarray:
    axis, w = -q[:3].astype(np.float64), float(q[3])
    across = 2.0 * np.cross(axis, v)
    return v + w * across + np.cross(axis, across)


def _imu(message: Any, field: str, signal: Signal, values: Mapping[str, np.ndarray]) -> None:
    getattr(message, f"{field}_covariance")[0] = 0.0
    _fill(getattr(message, field), values[signal.name], signal.elements)


def _pose(message: Any, field: str, signal: Signal, values: Mapping[str, np.ndarray]) -> None:
    _fill(getattr(message.pose, field), values[signal.name], signal.elements)


def _twist_stamped(message: Any, field: str, signal: Signal, values: Mapping[str, np.ndarray]) -> None:
    _twist(message.twist, field, signal, values)


def _twist(message: Any, field: str, signal: Signal, values: Mapping[str, np.ndarray]) -> None:
    for element, value in zip(signal.elements, values[signal.name], strict=True):
        part = ("linear" if element[0] == "v" else "angular") if field == "by_name" else field
        setattr(getattr(message, part), element[-1], float(value))


_COMPOSERS = {
    ODOMETRY: _odometry,
    IMU: _imu,
    "geometry_msgs/msg/PoseStamped": _pose,
    "geometry_msgs/msg/TwistStamped": _twist_stamped,
    "geometry_msgs/msg/Twist": _twist,
}
