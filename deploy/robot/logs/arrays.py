"""Signals with a shape in a log: a scan as sensor_msgs/LaserScan, an image as Image (32FC1), a table as an array.

Each has a topic of its own, ``/policy/signal/NAME``, and a message only where it is another one than before: a slow
sensor is held in between. The numbers are float32, so they come back to the bit; ROS tools and Foxglove show them.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from robo_rl.contract import Image, Scan, Signal

_LINE = "=" * 80
HEADER = f"""{_LINE}
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
{_LINE}
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
"""
LAYOUT = f"""{_LINE}
MSG: std_msgs/MultiArrayLayout
std_msgs/MultiArrayDimension[] dim
uint32 data_offset
{_LINE}
MSG: std_msgs/MultiArrayDimension
string label
uint32 size
uint32 stride
"""
"""The types that stamped messages, and those of arrays, have in them."""
SCAN, IMAGE, ARRAY = "sensor_msgs/msg/LaserScan", "sensor_msgs/msg/Image", "std_msgs/msg/Float32MultiArray"
DEFINITIONS = {
    SCAN: f"""std_msgs/Header header
float32 angle_min
float32 angle_max
float32 angle_increment
float32 time_increment
float32 scan_time
float32 range_min
float32 range_max
float32[] ranges
float32[] intensities
{HEADER}""",
    IMAGE: f"""std_msgs/Header header
uint32 height
uint32 width
string encoding
uint8 is_bigendian
uint32 step
uint8[] data
{HEADER}""",
    ARRAY: f"""std_msgs/MultiArrayLayout layout
float32[] data
{LAYOUT}""",
}
"""The message types, as rosidl defines them."""


def kind_of(signal: Signal) -> str:
    """The message type of a signal with a shape."""
    return {Scan: SCAN, Image: IMAGE}.get(type(signal.layout), ARRAY)


def encode(signal: Signal, ns: int, values: np.ndarray) -> bytes:
    """CDR, little endian, of a signal's flat values, stamped ``ns`` where its message has a stamp."""
    data = np.asarray(values, "<f4").tobytes()
    if isinstance(signal.layout, Scan):
        layout, last = signal.layout, signal.layout.angle_increment * (signal.size - 1)
        angles = (layout.angle_min, layout.angle_min + last, layout.angle_increment)
        numbers = (*angles, 0.0, signal.period or 0.0, layout.range_min, layout.range_max)
        body = _header(ns) + struct.pack("<7fI", *numbers, signal.size) + data + bytes(4)
    elif isinstance(signal.layout, Image):
        height, width = signal.dimensions
        body = _header(ns) + struct.pack("<II", height, width) + _text("32FC1") + b"\0"
        body = _padded(body) + struct.pack("<II", 4 * width, len(data)) + data
    else:
        body = struct.pack("<I", len(signal.dimensions))
        for i, size in enumerate(signal.dimensions):
            body = _padded(body + _text(f"axis{i}")) + struct.pack("<II", size, math.prod(signal.dimensions[i:]))
        body += struct.pack("<II", 0, signal.size) + data
    return b"\0\1\0\0" + body


def decode(signal: Signal, message: Any) -> np.ndarray:
    """The flat values (size,) float32 of a message that was decoded."""
    kind = kind_of(signal)
    if kind == IMAGE:
        return np.frombuffer(bytes(message.data), "<f4").astype(np.float32)
    return np.array(message.ranges if kind == SCAN else message.data, np.float32)


def _header(ns: int) -> bytes:
    seconds, rest = divmod(ns, 1_000_000_000)
    return _padded(struct.pack("<iI", seconds, rest) + _text("policy"))


def _text(text: str) -> bytes:
    data = text.encode() + b"\0"
    return struct.pack("<I", len(data)) + data


def _padded(body: bytes) -> bytes:
    return body + bytes(-len(body) % 4)
