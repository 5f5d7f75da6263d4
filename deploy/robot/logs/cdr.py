"""The ROS 2 messages of a log as bytes (CDR), and back.

What the general encoder and decoder take for a message is a quarter of a core for a log at 100 Hz. Here the bytes that
are the same in all messages of a channel, its names, are made and compared as a whole.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from robo_rl.deploy.robot.logs import arrays as log_arrays

LITTLE_ENDIAN = b"\0\1\0\0"
"""How a message in CDR begins."""
JOINT_STATE, ARRAY, STRING = "sensor_msgs/msg/JointState", "std_msgs/msg/Float64MultiArray", "std_msgs/msg/String"
DEFINITIONS = {
    STRING: "string data",
    JOINT_STATE: f"""std_msgs/Header header
string[] name
float64[] position
float64[] velocity
float64[] effort
{log_arrays.HEADER}""",
    ARRAY: f"""std_msgs/MultiArrayLayout layout
float64[] data
{log_arrays.LAYOUT}""",
    **log_arrays.DEFINITIONS,
}
"""The message types of a log, as rosidl defines them."""


class NamedNumbers:
    """Bytes of JointState messages whose names never change: only stamp and values are rewritten, and read.

    The general encoder takes 0.3 ms per message, which is a quarter of a core for a log at 100 Hz; the general decoder
    reads all names again.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        body = struct.pack("<I", 1) + b"\0"  # the empty frame_id
        body += bytes(-(8 + len(body)) % 4) + struct.pack("<I", len(names))
        for name in names:
            text = name.encode() + b"\0"
            body += bytes(-(8 + len(body)) % 4) + struct.pack("<I", len(text)) + text
        body += bytes(-(8 + len(body)) % 4) + struct.pack("<I", len(names))
        if names:
            body += bytes(-(8 + len(body)) % 8)
        self._middle, self._count = body, len(names)

    def encode(self, ns: int, values: np.ndarray) -> bytes:
        """CDR, little endian, of a message stamped ``ns`` with as many values as names."""
        if len(values) != self._count:
            raise ValueError(f"{len(values)} values; expected {self._count}, one per name")
        seconds, rest = divmod(ns, 1_000_000_000)
        head = LITTLE_ENDIAN + struct.pack("<iI", seconds, rest)
        return head + self._middle + np.asarray(values, "<f8").tobytes() + bytes(8)

    def decode(self, data: bytes) -> list[float] | None:
        """The values of such a message; None for bytes of another one, for example with other names or with speeds."""
        begin = len(LITTLE_ENDIAN) + 8 + len(self._middle)
        end = begin + 8 * self._count
        same = data.startswith(LITTLE_ENDIAN) and data.startswith(self._middle, begin - len(self._middle))
        return list(struct.unpack_from(f"<{self._count}d", data, begin)) if same and data[end:] == bytes(8) else None


def array_bytes(values: np.ndarray) -> bytes:
    """A Float64MultiArray without dimensions."""
    head = LITTLE_ENDIAN + struct.pack("<III", 0, 0, len(values))
    return head + (bytes(4) if len(values) else b"") + np.asarray(values, "<f8").tobytes()


def array_values(data: bytes) -> list[float] | None:
    """The numbers of a Float64MultiArray without dimensions; None for bytes of anything else, and for no numbers."""
    head = LITTLE_ENDIAN + bytes(8)
    count, rest = divmod(len(data) - len(head) - 8, 8)
    if count <= 0 or rest or not data.startswith(head + struct.pack("<II", count, 0)):
        return None
    return list(struct.unpack_from(f"<{count}d", data, len(head) + 8))


def string_bytes(text: str) -> bytes:
    """A String."""
    data = text.encode() + b"\0"
    return LITTLE_ENDIAN + struct.pack("<I", len(data)) + data


class _Named(NamedTuple):
    """What is used of a JointState."""

    name: tuple[str, ...]
    position: list[float]


class _Array(NamedTuple):
    """What is used of a Float64MultiArray."""

    data: list[float]


class Decoder:
    """Decodes the messages of a log's channels, by our definitions of their types, whatever the file says they are."""

    def __init__(self) -> None:
        self._named: dict[int, NamedNumbers] = {}
        """Of channels of JointState, by the names of their first message."""

    def decode(self, channel: int, kind: str, data: bytes) -> Any:
        """A message. ValueError, and whatever decoders raise, for bytes that are none."""
        if kind == ARRAY and (values := array_values(data)) is not None:
            return _Array(values)
        if kind != JOINT_STATE:
            return _decoder(kind)(data)
        if channel not in self._named:
            self._named[channel] = NamedNumbers(_decoder(kind)(data).name)
        named = self._named[channel]
        values = named.decode(data)
        return _decoder(kind)(data) if values is None else _Named(named.names, values)


@functools.cache
def _decoder(kind: str) -> Callable[[bytes], Any]:
    """The general decoder of a type that logs have."""
    from mcap.records import Schema
    from mcap_ros2.decoder import DecoderFactory

    if kind not in DEFINITIONS:
        raise ValueError(f"message type '{kind}'; expected one of {list(DEFINITIONS)}")
    schema = Schema(id=1, name=kind, encoding="ros2msg", data=DEFINITIONS[kind].encode())
    decode = DecoderFactory().decoder_for("cdr", schema)
    assert decode is not None
    return decode
