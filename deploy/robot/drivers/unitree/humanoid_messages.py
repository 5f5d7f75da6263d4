"""LowCmd_ and LowState_ of Unitree's hg family (G1, H1-2), to the byte: what is on the wire (CDR), and its checksum.

As ``messages``, with other places. The checksum is that of the C structs, in which the first motor's mode and the IMU's
temperature are followed by bytes that the wire does not have. Layouts: unitree_sdk2 21d0a3b, include/unitree/idl/hg.
"""

from __future__ import annotations

import numpy as np

from robo_rl.deploy.robot.drivers.unitree.messages import LowCommand, LowState, crc

MOTORS, PLACES = 29, 35
"""Of a G1 with all its joints, and places for motors: those of smaller ones keep their numbers, with holes."""
COMMAND_SIZE, STATE_SIZE = 1000, 2088
PITCH_ROLL = 0
"""mode_pr: ankles and waist by pitch and roll, not by their two motors (1)."""

_COMMAND = np.dtype(
    {
        "names": ["mode_pr", "machine", "mode0", "motors", "crc"],
        "formats": ["u1", "u1", "u1", ("V28", PLACES), "<u4"],
        "offsets": [0, 1, 2, 4, 996],
        "itemsize": COMMAND_SIZE,
    }
)
_MOTOR_COMMAND = np.dtype(
    {
        "names": ["q", "dq", "tau", "kp", "kd", "next_mode"],
        "formats": ["<f4", "<f4", "<f4", "<f4", "<f4", "u1"],
        "offsets": [0, 4, 8, 12, 16, 24],
        "itemsize": 28,
    }
)
_STATE = np.dtype(
    {
        "names": ["mode_pr", "machine", "tick", "quaternion", "gyroscope", "accelerometer", "mode0", "motors", "remote",
                  "crc"],
        "formats": ["u1", "u1", "<u4", ("<f4", 4), ("<f4", 3), ("<f4", 3), "u1", ("V56", PLACES), ("u1", 40), "<u4"],
        "offsets": [8, 9, 12, 16, 32, 44, 70, 72, 2028, 2084],
        "itemsize": STATE_SIZE,
    }
)  # fmt: skip
_MOTOR_STATE = np.dtype(
    {
        "names": ["q", "dq", "tau", "temperature", "voltage", "error", "next_mode"],
        "formats": ["<f4", "<f4", "<f4", ("<i2", 2), "<f4", "<u4", "u1"],
        "offsets": [0, 4, 12, 16, 20, 32, 52],
        "itemsize": 56,
    }
)


def encode_command(command: LowCommand) -> bytes:
    """LowCmd_ with its checksum, 1,000 bytes."""
    count = len(command.q)
    body, motors = np.zeros((), _COMMAND), np.zeros(PLACES, _MOTOR_COMMAND)
    body["mode_pr"], body["machine"] = PITCH_ROLL, command.machine
    for name in ("q", "dq", "tau", "kp", "kd"):
        motors[name][:count] = getattr(command, name)
    modes = np.zeros(PLACES, np.uint8)
    modes[:count] = command.on
    body["mode0"], motors["next_mode"][:-1] = modes[0], modes[1:]
    body["motors"] = motors.view("V28")
    return sealed_command(body.tobytes())


def sealed_command(data: bytes) -> bytes:
    """LowCmd_ with the checksum that it should have."""
    return data[:996] + crc(_command_image(data)).to_bytes(4, "little")


def decode_command(data: bytes, count: int = MOTORS) -> LowCommand:
    """As a robot of ``count`` motors reads it. ValueError where it would not."""
    if len(data) != COMMAND_SIZE:
        raise ValueError(f"a LowCmd_ has {len(data)} bytes; expected {COMMAND_SIZE}")
    body = np.frombuffer(data, _COMMAND)[0]
    if (expected := crc(_command_image(data))) != body["crc"]:
        raise ValueError(f"a LowCmd_ has the checksum {body['crc']:08x}; expected {expected:08x}")
    if body["mode_pr"] != PITCH_ROLL:
        raise ValueError(f"a LowCmd_ has the mode_pr {body['mode_pr']}; expected {PITCH_ROLL}: pitch and roll")
    motors = np.frombuffer(body["motors"].tobytes(), _MOTOR_COMMAND)
    modes = np.concatenate([[body["mode0"]], motors["next_mode"][: count - 1]])
    with np.errstate(invalid="ignore"):  # signalling NaN
        q, dq, tau, kp, kd = (motors[name][:count].astype(float) for name in ("q", "dq", "tau", "kp", "kd"))
    return LowCommand(modes == 1, q, dq, tau, kp, kd, int(body["machine"]))


def encode_state(state: LowState) -> bytes:
    """LowState_ with its checksum, 2,088 bytes."""
    count = len(state.q)
    body, motors = np.zeros((), _STATE), np.zeros(PLACES, _MOTOR_STATE)
    for name in ("q", "dq", "tau"):
        motors[name][:count] = getattr(state, name)
    motors["temperature"][:count] = np.asarray(state.temperature)[:, None]
    motors["voltage"][:count] = state.voltage
    motors["error"][: len(state.motor_errors)] = state.motor_errors
    motors["next_mode"][: count - 1] = 1
    body["mode0"], body["mode_pr"], body["machine"] = 1, PITCH_ROLL, state.machine
    for name in ("quaternion", "gyroscope", "accelerometer", "tick"):
        body[name] = getattr(state, name)
    body["motors"], body["remote"] = motors.view("V56"), np.frombuffer(state.remote, np.uint8)
    return sealed_state(body.tobytes())


def sealed_state(data: bytes) -> bytes:
    """LowState_ with the checksum that it should have."""
    return data[:2084] + crc(_state_image(data)).to_bytes(4, "little")


def decode_state(data: bytes, count: int = MOTORS) -> LowState:
    """What a LowState_ says, of a robot of ``count`` motors. A motor's temperature is the higher of its two.

    A checksum of 0 is one that the sender does not make. ValueError for what can't be.
    """
    if len(data) != STATE_SIZE:
        raise ValueError(f"a LowState_ has {len(data)} bytes; expected {STATE_SIZE}")
    body = np.frombuffer(data, _STATE)[0]
    if (said := int(body["crc"])) and (expected := crc(_state_image(data))) != said:
        raise ValueError(f"a LowState_ has the checksum {said:08x}; expected {expected:08x}")
    motors = np.frombuffer(body["motors"].tobytes(), _MOTOR_STATE)[:count]
    with np.errstate(invalid="ignore"):  # signalling NaN
        turned, rates, pulled = (body[name].astype(float) for name in ("quaternion", "gyroscope", "accelerometer"))
        q, dq, tau, voltages = (motors[name].astype(float) for name in ("q", "dq", "tau", "voltage"))
    if not all(np.isfinite(numbers).all() for numbers in (turned, rates, pulled, q, dq, tau, voltages)):
        raise ValueError("a LowState_ has numbers that are not finite")
    return LowState(
        int(body["tick"]), turned, rates, pulled, q, dq, tau, motors["temperature"].max(1).astype(int),
        np.zeros(count, np.int64), None, float(voltages[0]), np.zeros(4, int), body["remote"].tobytes(),
        int(body["machine"]), tuple(int(code) for code in motors["error"]),
    )  # fmt: skip


def tick_of(data: bytes) -> int:
    """The robot's clock in a LowState_ of the right length: ms."""
    return int.from_bytes(data[12:16], "little")


def _command_image(data: bytes) -> bytes:
    """The C struct without its last word."""
    return data[:2] + b"\0\0" + data[2:3] + b"\0\0\0" + data[4:996]


def _state_image(data: bytes) -> bytes:
    return data[:70] + b"\0\0" + data[70:71] + b"\0\0\0" + data[72:2084]
