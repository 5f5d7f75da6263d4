"""Dynamixel's packets against vectors of the e-manual and the maker's library; its servos, models and clocks."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from robo_rl.deploy.emulate.servos.dynamixel_bus import SIZE, Servo, ServoBus
from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.dynamixel import packets
from robo_rl.deploy.robot.drivers.dynamixel import registers as r
from robo_rl.deploy.robot.drivers.dynamixel.bus import Bus
from robo_rl.deploy.robot.drivers.dynamixel.clock import ServoClock
from robo_rl.deploy.robot.drivers.dynamixel.models import MODELS
from robo_rl.deploy.robot.drivers.dynamixel.packets import ALERT, Fail, Instruction, Packet, Parser


def of(text: str) -> bytes:
    return bytes.fromhex(text)


def test_packets_are_those_of_the_e_manual() -> None:
    """ROBOTIS e-manual, Protocol 2.0, examples of its instructions."""
    assert packets.ping(1) == of("FFFFFD00 01 0300 01 194E")
    assert packets.read(1, 132, 4) == of("FFFFFD00 01 0700 02 84000400 1D15")
    assert packets.write(1, 116, (512).to_bytes(4, "little")) == of("FFFFFD00 01 0900 03 7400 00020000 CA89")
    assert packets.reboot(1) == of("FFFFFD00 01 0300 08 2F4E")
    assert packets.sync_read([1, 2], 132, 4) == of("FFFFFD00 FE 0900 82 84000400 0102 CEFA")
    goals = {1: (150).to_bytes(4, "little"), 2: (170).to_bytes(4, "little")}
    assert packets.sync_write(goals, 116) == of("FFFFFD00 FE 1100 83 74000400 0196000000 02AA000000 8287")
    answers = "FFFFFD00 01 0700 55 00 060426 655D FFFFFD00 01 0800 55 00 A6000000 8CC0"
    assert Parser().feed(of(answers)) == [
        Packet(1, Instruction.STATUS, b"\0\x06\x04\x26"), Packet(1, Instruction.STATUS, b"\0\xa6\0\0\0"),
    ]  # fmt: skip


class Tape:
    """What the maker's library wants of a port; keeps what is sent."""

    is_using = False

    def __init__(self) -> None:
        self.sent = b""

    def __getattr__(self, name: str):
        return lambda *_: None

    def writePort(self, packet) -> int:
        self.sent += bytes(packet)
        return len(packet)


@given(st.integers(0, 252), st.integers(0, 200), st.binary(min_size=1, max_size=24))
def test_bytes_are_those_of_the_makers_library(id: int, address: int, data: bytes) -> None:
    sdk = pytest.importorskip("dynamixel_sdk", reason="needs the maker's library: pip install 'robo-rl[dev]'")
    both = {id: data, (id + 7) % 253: data[::-1]}
    body = b"".join(bytes([key]) + one for key, one in both.items())
    assume(packets.PLAIN not in bytes([len(data), 0]) + data + body)  # Python's library sends those without stuffing

    def sent(ask) -> bytes:
        tape = Tape()
        ask(sdk.PacketHandler(2.0), tape)
        return tape.sent

    size = len(data)
    assert sent(lambda h, t: h.writeTxOnly(t, id, address, size, list(data))) == packets.write(id, address, data)
    assert sent(lambda h, t: h.readTx(t, id, address, size)) == packets.read(id, address, size)
    group = sent(lambda h, t: h.syncWriteTxOnly(t, address, size, list(body), len(body)))
    assert group == packets.sync_write(both, address)
    group = sent(lambda h, t: h.syncReadTx(t, address, size, list(both), 2, False))
    assert group == packets.sync_read(list(both), address, size)


STUFF = st.lists(st.sampled_from([0, 0x55, 0xFD, 0xFF]), max_size=60).map(bytes)


@given(st.integers(0, 252), STUFF)
def test_bytes_are_stuffed_as_by_the_makers_library(id: int, data: bytes) -> None:
    sdk = pytest.importorskip("dynamixel_sdk", reason="needs the maker's library: pip install 'robo-rl[dev]'")
    ours = Packet(id, Instruction.WRITE, data).encode()
    plain = [*packets.HEAD, id, *(len(data) + 3).to_bytes(2, "little"), Instruction.WRITE, *data, 0, 0]
    theirs = sdk.PacketHandler(2.0).addStuffing(plain)
    assert bytes(theirs[:-2]) == ours[:-2]
    assert sdk.PacketHandler(2.0).updateCRC(0, theirs, len(theirs) - 2) == packets.crc(ours[:-2])
    back = bytes(sdk.PacketHandler(2.0).removeStuffing(list(ours)))
    assert back[8 : 8 + len(data)] == data


@given(st.lists(st.tuples(st.integers(0, 252), st.integers(0, 255), STUFF), max_size=4), st.data())
def test_packets_are_found_however_the_bytes_come(rows: list[tuple[int, int, bytes]], data: st.DataObject) -> None:
    sent = [Packet(*row) for row in rows]
    stream, parser, found = b"".join(packet.encode() for packet in sent), Parser(), []
    while stream:
        count = data.draw(st.integers(1, len(stream)))
        found += parser.feed(stream[:count])
        stream = stream[count:]
    assert found == sent
    assert parser.damaged == parser.skipped == 0


@given(st.binary(max_size=200) | STUFF)
def test_any_bytes_give_whole_packets_or_none(noise: bytes) -> None:
    parser = Parser()
    for packet in parser.feed(noise):
        assert packet.encode() in noise
    parser.clear()
    assert parser.feed(packets.ping(3)) == [Packet(3, 1, b"")]


def test_a_packet_that_is_stuffed_wrongly_is_none() -> None:
    good = packets.write(1, 116, b"\xff\xff\xfd\x00")
    bare = good[:5] + bytes([good[5] - 1]) + good[6:-2].replace(b"\xff\xff\xfd\xfd", b"\xff\xff\xfd")
    parser = Parser()
    assert parser.feed(bare + packets.crc(bare).to_bytes(2, "little")) == []
    assert parser.damaged == 1


@given(st.binary(max_size=200), st.integers(0, 255), STUFF)
def test_servos_survive_any_bytes(noise: bytes, code: int, data: bytes) -> None:
    bus = ServoBus([Servo(1), Servo(2)])
    bus.feed(noise)
    bus.feed(b"\0" * 3000)
    bus.feed(Packet(1, code, data).encode())
    assert bus.feed(packets.ping(2))
    assert {len(servo.registers) for servo in bus.servos.values()} == {SIZE}


@given(st.integers(-(1 << 31), (1 << 31) - 1))
def test_a_signed_number_survives(value: int) -> None:
    assert r.GOAL_POSITION.decode(r.GOAL_POSITION.encode(value)) == value


def answer(bus: ServoBus, question: bytes) -> tuple[int, bytes]:
    (found,) = Parser().feed(b"".join(bus.feed(question)))
    return found.parameters[0], found.parameters[1:]


def test_a_servo_answers_as_the_e_manual_says() -> None:
    servo = Servo(1)
    bus = ServoBus([servo])
    assert answer(bus, packets.ping(1)) == (0, (1030).to_bytes(2, "little") + bytes([50]))
    assert answer(bus, packets.write(1, 132, b"\0\0\0\0"))[0] == Fail.ACCESS  # measured
    assert answer(bus, packets.write(1, 116, (4096).to_bytes(4, "little")))[0] == Fail.DATA_LIMIT
    assert answer(bus, packets.write(1, 98, b"\xff"))[0] == Fail.DATA_RANGE
    assert answer(bus, packets.write(1, 64, b"\x01"))[0] == 0
    assert answer(bus, packets.write(1, 11, b"\x04"))[0] == Fail.ACCESS  # memory is locked while torque is on
    servo.fail(32)
    assert answer(bus, packets.read(1, 64, 1)) == (ALERT, b"\0")
    assert answer(bus, packets.write(1, 64, b"\x01"))[0] == ALERT | Fail.RESULT
    assert answer(bus, packets.reboot(1))[0] == 0
    assert answer(bus, packets.write(1, 64, b"\x01"))[0] == 0


def test_the_bus_watchdog_is_that_of_the_e_manual() -> None:
    """Counts in 20 ms with torque on; any instruction on the bus counts; -1 and goals read-only; 0 clears it."""
    servo, other = Servo(1), Servo(2)
    bus = ServoBus([servo, other])
    bus.feed(packets.write(1, 98, b"\x05"))
    bus.advance(1.0)
    assert servo.get(r.BUS_WATCHDOG) == 5  # no torque
    bus.feed(packets.write(1, 64, b"\x01"))
    for _ in range(10):
        bus.advance(0.09)
        bus.feed(packets.ping(2))
    assert servo.get(r.BUS_WATCHDOG) == 5
    bus.advance(0.11)
    assert servo.get(r.BUS_WATCHDOG) == r.TRIPPED
    assert servo.get(r.TORQUE_ENABLE) == 1
    goal = packets.write(1, 116, (1000).to_bytes(4, "little"))
    assert answer(bus, goal)[0] == Fail.DATA_RANGE
    assert answer(bus, packets.write(1, 98, b"\0"))[0] == 0
    assert answer(bus, goal)[0] == 0


def test_a_refused_register_is_told_in_a_sentence() -> None:
    servos = ServoBus([Servo(1)])

    class Straight:
        answers = b""

        def write(self, data: bytes) -> None:
            self.answers += b"".join(servos.feed(data))

        def read(self, timeout: float) -> bytes:
            answers, self.answers = self.answers, b""
            return answers

        def close(self) -> None: ...

    bus = Bus(Straight())
    with pytest.raises(DriverError, match="servo 1 refused 200 for its register 98: data range error"):
        bus.write(1, r.Register(98, 1), 200)
    bus.write(1, r.P, 640)
    assert bus.read(1, r.P) == 640
    assert bus.ping(7) is None


def test_models_are_as_stiff_and_damped_as_their_data_sheets_say() -> None:
    """XM430-W350: 4.1 N m at 12 V; P = 800 of 128 gives 6.25 PWM a step of 885: 18.9 N m/rad; 46 turns a minute."""
    model = MODELS[1020]
    assert model.stiffness * 800 == pytest.approx(800 / 128 * (4096 / 6.283185) / 885 * 4.1)
    assert model.stiffness * 800 == pytest.approx(18.88, abs=0.01)
    assert model.damping == pytest.approx(4.1 / 4.817, rel=1e-3)


def test_an_answer_that_is_a_cycle_behind_shows_by_the_servos_clock() -> None:
    clock, now, tick = ServoClock(0.02), 5.0, 32_760
    for _ in range(100):
        assert clock.agrees(now, tick % r.WRAP, True)
        now, tick = now + 0.02, tick + 20 + (tick % 3 == 0)  # its quartz is off
    assert not clock.agrees(now + 0.02, tick, True)
    assert not clock.agrees(now + 0.04, tick + 20, True)
    assert clock.agrees(now + 0.06, tick + 60, True)
    assert not clock.agrees(now + 0.08, 0, False)
    assert clock.agrees(now + 0.1, 20, True)
