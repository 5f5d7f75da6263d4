"""What is asked of a VESC and what it answers: payloads of ``packets``, big-endian (vedderb/bldc, comm/commands.c)."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

FIRMWARE, CURRENT, BRAKE, RPM, SERVO, SELECTED, IMU = 0, 6, 7, 8, 12, 50, 65
"""COMM_FW_VERSION, COMM_SET_CURRENT, _CURRENT_BRAKE, _RPM, _SERVO_POS, COMM_GET_VALUES_SELECTIVE, COMM_GET_IMU_DATA."""
NUMBERS = 8
"""Questions are numbered by what else they ask for: an answer repeats its question's mask, and a late one shows."""
TIMED_OUT, KILLED = 1, 2
"""Bits of the status: no command has come for the time-out (1 s by default), and the kill switch is on."""
FAULTS = (
    "none", "over voltage", "under voltage", "a fault of its gate driver", "over current", "too hot transistors",
    "a too hot motor", "over voltage of its gate driver", "under voltage of its gate driver",
    "under voltage of its microcontroller", "a restart by its watchdog", "a fault of its encoder",
)  # fmt: skip
"""By code, the first of mc_fault_code (bldc, datatypes.h)."""
_FIELDS: dict[int, tuple[str, str, float]] = {
    0: ("transistors", "h", 10), 1: ("motor", "h", 10), 2: ("current", "i", 100), 7: ("erpm", "i", 1),
    8: ("voltage", "h", 10), 13: ("", "i", 1), 14: ("", "i", 1), 15: ("fault", "B", 1), 17: ("", "B", 1),
    21: ("status", "B", 1),
}  # fmt: skip
"""By bit of the mask: name, format and scale; without a name those that number questions (tachometers, identity)."""
_NUMBERING = (13, 14, 17)
_VALUES_MASK = sum(1 << bit for bit, (name, *_) in _FIELDS.items() if name)
_MOTION_MASK = 0b111 << 3 | 0b111 << 6
"""Accelerometer and gyroscope; the bits below are those of the angles."""


@dataclass(frozen=True)
class Values:
    """How the motor is."""

    transistors: float
    """°C"""
    motor: float
    """°C"""
    current: float
    """A, of the motor"""
    erpm: float
    """Electrical turns per minute: the motor's, times its pairs of poles."""
    voltage: float
    """V, of the battery"""
    fault: int
    status: int


@dataclass(frozen=True)
class Motion:
    """What the IMU measures."""

    accelerometer: tuple[float, float, float]
    """g"""
    gyroscope: tuple[float, float, float]
    """degrees/s"""


@dataclass(frozen=True)
class Firmware:
    """Who it is."""

    major: int
    minor: int
    hardware: str


def set_rpm(erpm: float) -> bytes:
    """Turn so fast, electrical turns per minute. Resets the time-out."""
    return struct.pack(">Bi", RPM, round(erpm))


def set_brake(amperes: float) -> bytes:
    """Brake with this motor current, A. Resets the time-out."""
    return struct.pack(">Bi", BRAKE, round(1000 * amperes))


def set_current(amperes: float) -> bytes:
    """Drive with this motor current, A; 0: passive. Resets the time-out."""
    return struct.pack(">Bi", CURRENT, round(1000 * amperes))


def set_servo(position: float) -> bytes:
    """The servo's place, 0 to 1. Does not reset the time-out, and is not ended by it."""
    return struct.pack(">Bh", SERVO, round(1000 * position))


def ask_firmware() -> bytes:
    """For ``Firmware``."""
    return bytes([FIRMWARE])


def ask_values(number: int) -> bytes:
    """For ``Values``; ``number`` is 0 to 7."""
    return struct.pack(">BI", SELECTED, values_mask(number))


def ask_motion(number: int) -> bytes:
    """For ``Motion``; ``number`` is 0 to 7."""
    return struct.pack(">BH", IMU, _MOTION_MASK | number)


def values_mask(number: int) -> int:
    """What the question with this number asks for."""
    return _VALUES_MASK | sum((number >> k & 1) << bit for k, bit in enumerate(_NUMBERING))


def encode_values(values: Values, mask: int) -> bytes:
    """The answer to a question with this mask."""
    body = b"".join(
        struct.pack(">" + form, round(scale * getattr(values, name)) if name else 0)
        for bit, (name, form, scale) in _FIELDS.items()
        if mask >> bit & 1
    )
    return struct.pack(">BI", SELECTED, mask) + body


def encode_motion(motion: Motion, mask: int) -> bytes:
    """The answer to a question with this mask."""
    numbers = ((0.0, 0.0, 0.0), motion.accelerometer, motion.gyroscope)
    flat = [x for part in numbers for x in part]
    return struct.pack(">BH", IMU, mask) + b"".join(
        struct.pack(">f", x) for bit, x in enumerate(flat) if mask >> bit & 1
    )


def encode_firmware(firmware: Firmware) -> bytes:
    """The answer, up to the processor's identity."""
    return bytes([FIRMWARE, firmware.major, firmware.minor]) + firmware.hardware.encode() + bytes(13)


def decode_values(payload: bytes, number: int) -> Values:
    """Of the question with this number. ValueError for another message."""
    mask = values_mask(number)
    if payload[:5] != struct.pack(">BI", SELECTED, mask):
        raise ValueError(f"a message begins with {payload[:5].hex()}; expected the answer with the mask {mask:06x}")
    fields = [field for bit, field in _FIELDS.items() if mask >> bit & 1]
    layout = struct.Struct(">" + "".join(form for _, form, _ in fields))
    if len(payload) != 5 + layout.size:
        raise ValueError(f"values have {len(payload)} bytes; expected {5 + layout.size}")
    found = {
        name: value / scale for (name, _, scale), value in zip(fields, layout.unpack(payload[5:]), strict=True) if name
    }
    fault, status = int(found.pop("fault")), int(found.pop("status"))
    return Values(**found, fault=fault, status=status)


def decode_motion(payload: bytes, number: int) -> Motion:
    """Of the question with this number. ValueError for another message, or numbers that are not finite."""
    angles = number.bit_count()
    if payload[:3] != struct.pack(">BH", IMU, _MOTION_MASK | number) or len(payload) != 3 + 4 * (angles + 6):
        raise ValueError(f"a message of {len(payload)} bytes begins with {payload[:3].hex()}; expected the IMU's data")
    numbers = struct.unpack(">6f", payload[3 + 4 * angles :])
    if not all(map(math.isfinite, numbers)):
        raise ValueError("the IMU tells numbers that are not finite")
    return Motion((numbers[0], numbers[1], numbers[2]), (numbers[3], numbers[4], numbers[5]))


def decode_firmware(payload: bytes) -> Firmware:
    """ValueError for another message."""
    end = payload.find(b"\0", 3)
    if len(payload) < 4 or payload[0] != FIRMWARE or end < 0:
        raise ValueError(f"a message begins with {payload[:4].hex()}; expected a firmware's version")
    return Firmware(payload[1], payload[2], payload[3:end].decode("ascii", "replace")[:40])


def fault_name(code: int) -> str:
    """In words."""
    return FAULTS[code] if code < len(FAULTS) else f"fault {code}"
