"""The Go2's messages against vectors of the maker's code, against Cyclone's own serializer, and whatever may come."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import select
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.ticks import WRAP, Ticks
from robo_rl.deploy.robot.drivers.unitree import dds, messages
from robo_rl.deploy.robot.drivers.unitree.dog import _name
from robo_rl.deploy.robot.drivers.unitree.family import GO, HG, Family
from robo_rl.deploy.robot.drivers.unitree.messages import LowCommand, LowState

CYCLONE = "needs Cyclone DDS: pip install 'robo-rl[go2]' (x86-64)"
numbers = st.floats(-50.0, 50.0, width=32)


def test_the_checksum_is_the_makers() -> None:
    """Of LowCmd_ with its header and 20 motors in mode 1, by unitree_sdk2's crc32_core over its C struct."""
    for q, dq, expected in ((2.146e9, 16000.0, 0x06E577CD), (0.0, 0.0, 0x57ECF19D)):
        data = bytearray(messages.encode_command(LowCommand(*[np.zeros(12)] * 6)))
        for i in range(20):
            data[22 if i == 0 else 20 + 36 * i] = 1
            struct.pack_into("<ff", data, 24 + 36 * i, q, dq)
        assert messages.sealed_command(bytes(data))[-4:] == expected.to_bytes(4, "little")


def test_type_objects_are_those_of_the_makers_headers() -> None:
    types = pytest.importorskip("robo_rl.deploy.robot.drivers.unitree.types", reason=CYCLONE, exc_type=ImportError)
    for of, expected in types.HASHES.items():
        of.__idl__.fill_type_data()
        assert expected in of.__idl__._xt_bytedata[0].hex()


def test_states_are_read_as_cyclone_writes_them() -> None:
    t = pytest.importorskip("robo_rl.deploy.robot.drivers.unitree.types", reason=CYCLONE, exc_type=ImportError)
    motors = [
        t.MotorState(1, i + 0.25, i + 0.5, 0.0, i + 0.75, 9.0, 9.0, 9.0, 30 + i, 100 + i, [7, 7]) for i in range(20)
    ]
    sample = t.LowState(
        [0xFE, 0xEF], 0xFF, 0, [1, 2], [3, 4], 5, t.IMUState([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0], [8.0, 9.0, 10.0],
        [0.0] * 3, 40), motors, t.BmsState(1, 2, 3, 77, -5, 6, [7, 8], [9, 10], list(range(15))), [1, -2, 3, -4],
        [0] * 4, 123456, list(range(40)), 1, 2.0, 3, 4, 29.5, 1.5, [1, 2, 3, 4], 0, 0,
    )  # fmt: skip
    found = messages.decode_state(sample.serialize()[4:])
    assert found.tick == 123456
    assert found.charge == 77
    assert found.voltage == 29.5
    assert found.remote == bytes(range(40))
    assert found.quaternion.tolist() == [1, 2, 3, 4]
    assert found.gyroscope.tolist() == [5, 6, 7]
    assert found.accelerometer.tolist() == [8, 9, 10]
    assert found.foot_force.tolist() == [1, -2, 3, -4]
    assert found.q.tolist() == [i + 0.25 for i in range(12)]
    assert found.dq.tolist() == [i + 0.5 for i in range(12)]
    assert found.tau.tolist() == [i + 0.75 for i in range(12)]
    assert found.temperature.tolist() == [30 + i for i in range(12)]
    assert found.lost.tolist() == [100 + i for i in range(12)]


def test_commands_are_read_by_cyclone_as_they_are_meant() -> None:
    t = pytest.importorskip("robo_rl.deploy.robot.drivers.unitree.types", reason=CYCLONE, exc_type=ImportError)
    on, steps = np.arange(12) % 2 == 0, np.arange(12.0)
    data = messages.encode_command(LowCommand(on, steps, steps + 20, steps + 40, steps + 60, steps + 80))
    found = t.LowCmd.deserialize(b"\0\1\0\0" + data)
    assert list(found.head) == [0xFE, 0xEF]
    assert found.level_flag == 0xFF
    assert [m.mode for m in found.motor_cmd] == [*on.astype(int), *[0] * 8]
    for i, motor in enumerate(found.motor_cmd[:12]):
        assert (motor.q, motor.dq, motor.tau, motor.kp, motor.kd) == (i, i + 20, i + 40, i + 60, i + 80)
    assert found.motor_cmd[12].q == np.float32(2.146e9)
    assert found.crc == int.from_bytes(data[-4:], "little")


@pytest.mark.parametrize("count", [12, 19, 20])
def test_robots_of_other_motors_have_them_in_the_first_places(count: int) -> None:
    values = np.arange(float(count))
    sent = LowCommand(values > 2, values, values + 20, values + 40, values + 60, values + 80)
    found = messages.decode_command(messages.encode_command(sent), count)
    for field in dataclasses.fields(LowCommand):
        np.testing.assert_array_equal(getattr(found, field.name), getattr(sent, field.name))
    state = dataclasses.replace(
        _state(7), q=values, dq=values + 1, tau=values + 2, temperature=values.astype(int), lost=values.astype(int)
    )
    back = messages.decode_state(messages.encode_state(state), count)
    for name in ("q", "dq", "tau", "temperature", "lost"):
        np.testing.assert_array_equal(getattr(back, name), getattr(state, name))
    assert messages.decode_state(messages.encode_state(state)).q.tolist() == values[:12].tolist()


@pytest.mark.parametrize(("port", "number"), [("eth0", 0), ("lo@1", 1), ("lo@1/second", 1), ("enp2s0@232", 232)])
def test_a_port_names_its_domain(port: str, number: int) -> None:
    assert dds.domain(port) == number
    assert f'name="{port.split("@")[0].split("/")[0]}"' in dds.config(port)


ROBOT = """
import sys, time
from robo_rl.deploy.robot.drivers.unitree import dds
from robo_rl.deploy.robot.drivers.unitree.family import family
dds.direct_calls = lambda: sys.argv[2] == "direct"
wire, state = dds.Wire(sys.argv[1], True, family(sys.argv[4])), bytes.fromhex(sys.argv[3])
while True:
    wire.send(state)
    for data in wire.take(wire.commands):
        print(data.hex(), flush=True)
    time.sleep(0.02)
"""


@pytest.mark.parametrize(
    ("robot", "program", "domain", "of", "motors"),
    [("direct", False, 1, GO, 12), ("public", True, 2, GO, 12), ("direct", False, 3, HG, 29)],
)
def test_the_public_way_through_cyclone_carries_the_same_bytes(
    robot: str, program: bool, domain: int, of: Family, motors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cyclonedds", reason=CYCLONE)
    monkeypatch.setattr(dds, "direct_calls", lambda: program)
    command = of.encode_command(LowCommand(*[np.arange(float(motors))] * 6))
    state, port = of.encode_state(_state(1234)), f"lo@{domain}/bytes{os.getpid()}"
    root = Path(__file__).parents[3]
    other = subprocess.Popen(
        [sys.executable, "-c", ROBOT, port, robot, state.hex(), of.name], stdout=subprocess.PIPE, text=True, cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    try:
        wire, end, states = dds.Wire(port, family=of), time.monotonic() + 60.0, []
        assert other.stdout is not None
        while time.monotonic() < end and not (states and select.select([other.stdout], [], [], 0.0)[0]):
            wire.send(command)
            time.sleep(0.02)
            states += wire.take(wire.states)
        assert states[0] == state
        assert other.stdout.readline() == command.hex() + "\n"
    finally:
        other.kill()
        other.wait()


@given(st.lists(st.lists(numbers, min_size=12, max_size=12), min_size=5, max_size=5), st.integers(0, 4095))
def test_commands_survive(values: list[list[float]], on: int) -> None:
    sent = LowCommand(np.array([on >> i & 1 for i in range(12)], bool), *map(np.array, values))
    found = messages.decode_command(messages.encode_command(sent))
    for field in dataclasses.fields(LowCommand):
        np.testing.assert_array_equal(getattr(found, field.name), getattr(sent, field.name))


@given(st.data())
def test_a_wrong_bit_under_the_checksum_is_found(data: st.DataObject) -> None:
    state = messages.encode_state(_state(data.draw(st.integers(0, WRAP - 1))))
    at, bit = data.draw(st.integers(80, 1139)), data.draw(st.integers(0, 7))
    damaged = state[:at] + bytes([state[at] ^ 1 << bit]) + state[at + 1 :]
    with pytest.raises(ValueError, match="has the checksum"):
        messages.decode_state(damaged)


@given(
    st.one_of(st.binary(max_size=64), st.binary(min_size=1176, max_size=1176), st.binary(min_size=808, max_size=808))
)
def test_whatever_comes_is_a_message_or_refused(data: bytes) -> None:
    """What is read has numbers, and says the same when it is written and read again."""
    for decode, encode, seal, size in (
        (messages.decode_state, messages.encode_state, messages.sealed_state, 1176),
        (messages.decode_command, messages.encode_command, messages.sealed_command, 808),
    ):  # fmt: skip
        for one in (data, seal(data) if len(data) == size else data):
            try:
                read: Any = decode(one)
            except ValueError as error:
                refusal = str(error)
                assert re.match(r"a Low(State|Cmd)_ (has|begins)", refusal)
                continue
            assert len(one) == size
            again = decode(encode(read))
            for name, value in vars(read).items():
                np.testing.assert_array_equal(getattr(again, name), value, err_msg=name)
            if decode is messages.decode_state:
                assert all(np.isfinite(np.asarray(value)).all() for value in (read.q, read.dq, read.gyroscope))


NESTED = st.recursive(st.none() | st.text() | st.integers(), st.lists)
ANSWERS = st.dictionaries(st.sampled_from(["name", "form"]), st.text() | st.none())


@given(st.text() | NESTED.map(json.dumps) | ANSWERS.map(json.dumps))
def test_an_answer_that_cannot_be_read_tells_of_no_mode(text: str) -> None:
    found = _name(text)
    assert found is None or json.loads(text)["name"].startswith(found)


@given(
    st.sampled_from([WRAP, 1 << 24]), st.integers(1, 100), st.floats(0, 0.05),
    st.lists(st.floats(0, 0.01), min_size=20, max_size=60),
)  # fmt: skip
def test_states_are_as_old_as_they_are_late(wrap: int, before: int, offset: float, delays: list[float]) -> None:
    """Also while the sender's clock begins anew."""
    ticks, begin = Ticks(wrap), wrap - before
    delays[0] = 0.0
    for i, delay in enumerate(delays):
        tick, made = (begin + 2 * i) % wrap, 100.0 + 0.002 * i
        assert ticks.new(tick)
        assert not ticks.new(tick)
        came = made + offset + delay
        sent = ticks.sent(came)
        assert sent <= came
        assert abs(sent - (made + offset)) < 1e-6


def _state(tick: int) -> LowState:
    z = np.zeros(12)
    return LowState(tick, z[:4] + 0.5, z[:3], z[:3], z, z, z, z, z, 50, 29.0, z[:4], bytes(40))


@pytest.mark.parametrize("port", ["", "eth0; rm", "lo/", "eth0/" + 50 * "x", "<a>", "lo/a/b"])
def test_a_port_that_is_no_interface_is_refused(port: str) -> None:
    with pytest.raises(DriverError, match="is no network interface; expected eth0"):
        dds.config(port)


def test_the_remote_stops_with_l2_and_b_alone() -> None:
    """Bits of byte 2: R1 L1 start select R2 L2; of byte 3: A B X Y (unitree_sdk2, gamepad.hpp)."""
    for second in range(64):
        for third in range(16):
            pressed = messages.remote_stop(bytes([0, 0, second, third]) + bytes(36))
            assert pressed == (bool(second & 32) and bool(third & 2))
