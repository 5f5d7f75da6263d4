"""LowCmd_ and LowState_ of Unitree's go family, to the byte: what is on the wire (CDR), and its checksum.

The checksum is not that of the wire's bytes but of the C structs that the robot has in memory, whose padding differs:
polynomial 04C11DB7, start FFFFFFFF, each little-endian word from its top bit, all words but the last
(unitree_sdk2, example/go2/go2_low_level.cpp, crc32_core).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

MOTORS = 12
"""Of a quadruped (Go2, B2), the first: front right, front left, rear right, rear left, each hip, thigh, calf."""
PLACES = 20
"""For motors; an H1 has 20."""
STOP_POSITION, STOP_SPEED = 2.146e9, 16000.0
"""rad and rad/s that mean no command (unitree_sdk2, PosStopF, VelStopF)."""
HEADERS = (b"\0\1", b"\0\7")
"""Plain CDR of little-endian numbers, versions 1 and 2: the same bytes for these types."""

_COMMAND = np.dtype(
    {
        "names": ["head", "level", "mode0", "motors", "crc"],
        "formats": [("u1", 2), "u1", "u1", ("V36", PLACES), "<u4"],
        "offsets": [0, 2, 22, 24, 804],
        "itemsize": 808,
    }
)
_MOTOR_COMMAND = np.dtype(
    {
        "names": ["q", "dq", "tau", "kp", "kd", "next_mode"],
        "formats": ["<f4", "<f4", "<f4", "<f4", "<f4", "u1"],
        "offsets": [0, 4, 8, 12, 16, 32],
        "itemsize": 36,
    }
)
_STATE = np.dtype(
    {
        "names": ["head", "quaternion", "gyroscope", "accelerometer", "motors", "soc", "foot_force", "tick", "remote",
                  "voltage", "crc"],
        "formats": [("u1", 2), ("<f4", 4), ("<f4", 3), ("<f4", 3), ("V48", PLACES), "u1", ("<i2", 4), "<u4",
                    ("u1", 40), "<f4", "<u4"],
        "offsets": [0, 24, 40, 52, 80, 1039, 1080, 1096, 1100, 1152, 1172],
        "itemsize": 1176,
    }
)  # fmt: skip
_MOTOR_STATE = np.dtype(
    {
        "names": ["q", "dq", "tau", "temperature", "lost"],
        "formats": ["<f4", "<f4", "<f4", "u1", "<u4"],
        "offsets": [0, 4, 12, 28, 32],
        "itemsize": 48,
    }
)
_WORDS = 20 + 12 * np.arange(PLACES)  # where motors begin in LowState_, in words of 4 bytes
_LOST, _TEMPERATURES = _WORDS + 8, 4 * _WORDS + 28
_REST = np.concatenate([np.arange(6, 16), [288]])  # the IMU's, voltage
_MODE0 = 77  # of the first motor, in LowState_
_REVERSED = bytes(int(f"{i:08b}"[::-1], 2) for i in range(256))


@dataclass(frozen=True)
class LowCommand:
    """What n motors are to do: tau + kp (q - measured) + kd (dq - measured). All (n,), N m, rad, rad/s; n <= 20."""

    on: np.ndarray
    """bool"""
    q: np.ndarray
    dq: np.ndarray
    tau: np.ndarray
    kp: np.ndarray
    kd: np.ndarray
    machine: int = 0
    """Of the hg family: the robot's ``LowState.machine`` given back, without which it does not listen."""


@dataclass(frozen=True)
class LowState:
    """What a robot tells of itself."""

    tick: int
    """ms, the robot's clock."""
    quaternion: np.ndarray
    """(4,) w, x, y, z, base to world."""
    gyroscope: np.ndarray
    """(3,) rad/s, base."""
    accelerometer: np.ndarray
    """(3,) m/s², base, gravity among it."""
    q: np.ndarray
    """(n,) rad"""
    dq: np.ndarray
    """(n,) rad/s"""
    tau: np.ndarray
    """(n,) N m, estimated"""
    temperature: np.ndarray
    """(n,) °C"""
    lost: np.ndarray
    """(n,) packets that motors did not answer, since power-up."""
    charge: int | None
    """% of the battery; None where the state does not tell it."""
    voltage: float
    """V"""
    foot_force: np.ndarray
    """(4,) raw"""
    remote: bytes
    """40 bytes of the radio remote, see ``remote_stop``."""
    machine: int = 0
    """Of the hg family: which hardware it is, mode_machine."""
    motor_errors: tuple[int, ...] = ()
    """Of the hg family: (n,) codes of the motors, 0 for none."""


def crc(image: bytes) -> int:
    """Of a C struct, all of it but its last word. The length is a multiple of 4."""
    swapped = np.frombuffer(image, "<u4").byteswap().tobytes().translate(_REVERSED)
    return int(f"{zlib.crc32(swapped) ^ 0xFFFFFFFF:032b}"[::-1], 2)


def encode_command(command: LowCommand) -> bytes:
    """LowCmd_ with its checksum, 808 bytes."""
    count = len(command.q)
    body = np.zeros((), _COMMAND)
    body["head"], body["level"] = (0xFE, 0xEF), 0xFF
    motors = np.zeros(PLACES, _MOTOR_COMMAND)
    motors["q"][count:], motors["dq"][count:] = STOP_POSITION, STOP_SPEED
    for name in ("q", "dq", "tau", "kp", "kd"):
        motors[name][:count] = getattr(command, name)
    modes = np.zeros(PLACES, np.uint8)
    modes[:count] = command.on
    body["mode0"], motors["next_mode"][:-1] = modes[0], modes[1:]
    body["motors"] = motors.view("V36")
    return sealed_command(body.tobytes())


def sealed_command(data: bytes) -> bytes:
    """LowCmd_ with the checksum that it should have."""
    return data[:804] + crc(_command_image(data)).to_bytes(4, "little")


def decode_command(data: bytes, count: int = MOTORS) -> LowCommand:
    """As a robot of ``count`` motors reads it. ValueError where it would not."""
    if len(data) != _COMMAND.itemsize:
        raise ValueError(f"a LowCmd_ has {len(data)} bytes; expected {_COMMAND.itemsize}")
    body = np.frombuffer(data, _COMMAND)[0]
    if bytes(body["head"]) != b"\xfe\xef":
        raise ValueError(f"a LowCmd_ begins with {bytes(body['head']).hex()}; expected feef")
    if (expected := crc(_command_image(data))) != body["crc"]:
        raise ValueError(f"a LowCmd_ has the checksum {body['crc']:08x}; expected {expected:08x}")
    motors = np.frombuffer(body["motors"].tobytes(), _MOTOR_COMMAND)
    modes = np.concatenate([[body["mode0"]], motors["next_mode"][: count - 1]])
    with np.errstate(invalid="ignore"):  # signalling NaN
        q, dq, tau, kp, kd = (motors[name][:count].astype(float) for name in ("q", "dq", "tau", "kp", "kd"))
    return LowCommand(modes == 1, q, dq, tau, kp, kd)


def encode_state(state: LowState) -> bytes:
    """LowState_ with its checksum, 1,176 bytes."""
    count = len(state.q)
    body = np.zeros((), _STATE)
    motors = np.zeros(PLACES, _MOTOR_STATE)
    for name in ("q", "dq", "tau", "temperature", "lost"):
        motors[name][:count] = getattr(state, name)
    body["motors"] = motors.view("V48")  # first: the end of the last place is the battery's
    body["head"] = (0xFE, 0xEF)
    for name in ("quaternion", "gyroscope", "accelerometer", "tick", "voltage", "foot_force"):
        body[name] = getattr(state, name)
    body["soc"], body["remote"] = state.charge or 0, np.frombuffer(state.remote, np.uint8)
    data = bytearray(body.tobytes())
    for i in range(count):
        data[_MODE0 if i == 0 else 76 + 48 * i] = 1
    return sealed_state(bytes(data))


def sealed_state(data: bytes) -> bytes:
    """LowState_ with the checksum that it should have."""
    return data[:1172] + crc(_state_image(data)).to_bytes(4, "little")


def decode_state(data: bytes, count: int = MOTORS) -> LowState:
    """What a LowState_ says, of a robot of ``count`` motors. A checksum of 0 is one that the sender does not make.

    ValueError for what can't be.
    """
    if len(data) != _STATE.itemsize:
        raise ValueError(f"a LowState_ has {len(data)} bytes; expected {_STATE.itemsize}")
    said = int.from_bytes(data[1172:], "little")
    if said and (expected := crc(_state_image(data))) != said:
        raise ValueError(f"a LowState_ has the checksum {said:08x}; expected {expected:08x}")
    words = np.frombuffer(data, "<u4")
    with np.errstate(invalid="ignore"):  # signalling NaN
        at, told = _WORDS[:count], words.view("<f4")
        rest, (q, dq, tau) = told[_REST].astype(float), (told[at + i].astype(float) for i in (0, 1, 3))
    if not all(np.isfinite(numbers).all() for numbers in (rest, q, dq, tau)):
        raise ValueError("a LowState_ has numbers that are not finite")
    return LowState(
        tick_of(data), rest[:4], rest[4:7], rest[7:10], q, dq, tau,
        np.frombuffer(data, np.uint8)[_TEMPERATURES[:count]].astype(int), words[_LOST[:count]].astype(np.int64),
        data[1039], float(rest[10]), np.frombuffer(data, "<i2", 4, 1080).astype(int), data[1100:1140],
    )  # fmt: skip


def tick_of(data: bytes) -> int:
    """The robot's clock in a LowState_ of the right length: ms."""
    return int.from_bytes(data[1096:1100], "little")


def remote_stop(remote: bytes) -> bool:
    """Whether L2 and B are pressed on the radio remote: the maker's own key for damping (unitree_sdk2, gamepad.hpp)."""
    return bool(remote[2] & 0x20 and remote[3] & 0x02)


def _command_image(data: bytes) -> bytes:
    """The C struct without its last word: the first motor's mode is aligned to 4 bytes there."""
    return data[:22] + b"\0\0" + data[22:23] + b"\0\0\0" + data[24:804]


def _state_image(data: bytes) -> bytes:
    return data[:77] + b"\0\0\0" + data[77:78] + b"\0\0\0" + data[80:1172]
