"""The hg family's messages against checksums of the maker's code, Cyclone's own serializer, and whatever may come."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_rl.deploy.robot.drivers.unitree import humanoid_messages as hg
from robo_rl.deploy.robot.drivers.unitree.messages import LowCommand, LowState

CYCLONE = "needs Cyclone DDS: pip install 'robo-rl[go2]' (x86-64)"


@pytest.mark.parametrize(("damping", "expected"), [(0.0, 0x058980D1), (3.0, 0xC8655A9D)])
def test_the_checksum_is_the_makers(damping: float, expected: int) -> None:
    """By unitree_sdk2's crc32_core over its C struct of 1,004 bytes: 29 motors on, mode_machine 5."""
    z = np.zeros(29)
    data = hg.encode_command(LowCommand(z == 0, z, z, z, z, z + damping, 5))
    assert len(data) == 1000
    assert int.from_bytes(data[-4:], "little") == expected


def test_states_are_read_as_cyclone_writes_them() -> None:
    t = pytest.importorskip("robo_rl.deploy.robot.drivers.unitree.types", reason=CYCLONE, exc_type=ImportError)
    motors = [
        t.HgMotorState(1, i + 0.25, i + 0.5, 9.0, i + 0.75, [30 + i, 40 - i], 48.5, [7, 7], i % 3, [8] * 4)
        for i in range(35)
    ]
    imu = t.HgIMUState([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0], [8.0, 9.0, 10.0], [0.5] * 3, 40)
    sample = t.HgLowState([3, 4], 0, 5, 123456, imu, motors, list(range(40)), [1, 2, 3, 4], 0)
    found = hg.decode_state(sample.serialize()[4:])
    assert (found.tick, found.machine, found.charge, found.voltage) == (123456, 5, None, 48.5)
    assert found.remote == bytes(range(40))
    assert found.quaternion.tolist() == [1, 2, 3, 4]
    assert found.gyroscope.tolist() == [5, 6, 7]
    assert found.accelerometer.tolist() == [8, 9, 10]
    for values, offset in ((found.q, 0.25), (found.dq, 0.5), (found.tau, 0.75)):
        assert values.tolist() == [i + offset for i in range(29)]
    assert found.temperature.tolist() == [max(30 + i, 40 - i) for i in range(29)]
    assert found.motor_errors == tuple(i % 3 for i in range(29))


def test_commands_are_read_by_cyclone_as_they_are_meant() -> None:
    t = pytest.importorskip("robo_rl.deploy.robot.drivers.unitree.types", reason=CYCLONE, exc_type=ImportError)
    on, steps = np.arange(29) % 2 == 0, np.arange(29.0)
    data = hg.encode_command(LowCommand(on, steps, steps + 20, steps + 40, steps + 60, steps + 80, 5))
    found = t.HgLowCmd.deserialize(b"\0\1\0\0" + data)
    assert (found.mode_pr, found.mode_machine) == (0, 5)
    assert [m.mode for m in found.motor_cmd] == [*on.astype(int), *[0] * 6]
    for i, motor in enumerate(found.motor_cmd[:29]):
        assert (motor.q, motor.dq, motor.tau, motor.kp, motor.kd) == (i, i + 20, i + 40, i + 60, i + 80)
    assert found.crc == int.from_bytes(data[-4:], "little")


def state(tick: int) -> LowState:
    z = np.arange(29.0)
    return LowState(tick, z[:4] + 0.5, z[:3], z[:3], z, z, z, z.astype(int), 0 * z, None, 48.0, z[:4], bytes(40), 5,
                    tuple(range(29)))  # fmt: skip


def test_states_survive() -> None:
    found = hg.decode_state(hg.encode_state(state(77)))
    for name in ("tick", "quaternion", "gyroscope", "q", "dq", "tau", "temperature", "voltage", "remote", "machine",
                 "motor_errors"):  # fmt: skip
        np.testing.assert_array_equal(getattr(found, name), getattr(state(77), name), err_msg=name)
    assert hg.tick_of(hg.encode_state(state(77))) == 77


@given(st.integers(0, 2**32 - 1), st.integers(72, 2030), st.integers(0, 7))
def test_a_wrong_bit_under_the_checksum_is_found(tick: int, at: int, bit: int) -> None:
    good = hg.encode_state(state(tick))
    with pytest.raises(ValueError, match="has the checksum"):
        hg.decode_state(good[:at] + bytes([good[at] ^ 1 << bit]) + good[at + 1 :])


@given(
    st.one_of(st.binary(max_size=64), st.binary(min_size=1000, max_size=1000), st.binary(min_size=2088, max_size=2088))
)
def test_whatever_comes_is_a_message_or_refused(data: bytes) -> None:
    """What is read has numbers, and says the same when it is written and read again."""
    for one in (data, {1000: hg.sealed_command, 2088: hg.sealed_state}.get(len(data), bytes)(data)):
        state, command = read(hg.decode_state, one), read(hg.decode_command, one)
        if state is not None:
            assert np.isfinite(state.q).all()
            again = hg.decode_state(hg.encode_state(dataclasses.replace(state, voltage=1.0)))
            np.testing.assert_array_equal(again.q, state.q)
        if command is not None:
            np.testing.assert_array_equal(hg.decode_command(hg.encode_command(command)).kp, command.kp)


def read(decode: Callable[[bytes], Any], data: bytes) -> Any:
    """What is read; None where it is refused in a sentence."""
    try:
        return decode(data)
    except ValueError as error:
        refusal = str(error)
    assert re.match("a Low(State|Cmd)_ has", refusal)
    return None


def test_ankles_by_their_motors_are_dropped() -> None:
    """mode_pr 1: the same numbers would mean other angles."""
    z = np.zeros(29)
    data = hg.encode_command(LowCommand(z == 0, z, z, z, z, z, 5))
    with pytest.raises(ValueError, match="mode_pr 1; expected 0"):
        hg.decode_command(hg.sealed_command(b"\1" + data[1:]))
