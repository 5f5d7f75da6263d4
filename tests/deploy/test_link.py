"""Frames, sessions and clocks of the link, in Python, and over real sockets and serial lines."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import select
import socket
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robo_rl.contract import Contract
from robo_rl.controllers.gate.codes import Request
from robo_rl.deploy.robot.link import (
    NEVER,
    Clock,
    Decoder,
    Frame,
    Layout,
    LinkError,
    Session,
    SessionState,
    Type,
    Verdict,
    buffer_size,
    encode,
    expired,
    stuff,
    unstuff,
)
from robo_rl.deploy.robot.link.messages import (
    AGE_NEVER,
    Ask,
    Commands,
    Fault,
    Hello,
    Message,
    Role,
    Signals,
    age_of,
    frame_of,
    parse,
    stamp_of,
)
from robo_rl.deploy.robot.link.port import Link, Port

ROOT = Path(__file__).parents[2]
CONFIGURATION = ROOT / "tests" / "vectors" / "gate" / "configurations" / "stop.json"
CONTRACT = Contract.from_json(json.dumps(json.loads(CONFIGURATION.read_text())["contract"]))
LAYOUT = Layout.of(CONTRACT)

frames = st.builds(Frame, st.integers(0, 255), st.integers(0, 65535), st.binary(max_size=600))


def hello(digest: bytes = LAYOUT.digest, answer: bool = False) -> Hello:
    return Hello(Role.HOST, answer, LAYOUT.signal_size, LAYOUT.command_size, 10_000, 0, digest)


# --- frames -----------------------------------------------------------------------------------------------------

# Cheshire and Baker 1999, and the examples of the Wikipedia article "Consistent Overhead Byte Stuffing"
STUFFED = {
    "00": "01 01",
    "00 00": "01 01 01",
    "00 11 00": "01 02 11 01",
    "11 22 00 33": "03 11 22 02 33",
    "11 22 33 44": "05 11 22 33 44",
    "11 00 00 00": "02 11 01 01 01",
    bytes(range(1, 255)).hex(): "ff" + bytes(range(1, 255)).hex() + "01",
    bytes(range(1, 256)).hex(): "ff" + bytes(range(1, 255)).hex() + "02 ff",
    bytes(range(255)).hex(): "01 ff" + bytes(range(1, 255)).hex() + "01",
}


@pytest.mark.parametrize(("plain", "stuffed"), STUFFED.items())
def test_stuffing_agrees_with_its_publication(plain: str, stuffed: str) -> None:
    # a run of 254 that ends the packet may be followed by an empty block; both forms are in use and decode alike
    assert stuff(bytes.fromhex(plain)) == bytes.fromhex(stuffed)
    assert unstuff(bytes.fromhex(stuffed)) == bytes.fromhex(plain)


def test_a_run_of_254_may_end_without_the_empty_block() -> None:
    run = bytes(range(1, 255))
    assert unstuff(b"\xff" + run) == unstuff(b"\xff" + run + b"\x01") == run


@given(st.binary(max_size=1000))
def test_stuffing_is_undone_and_leaves_no_zero(packet: bytes) -> None:
    assert 0 not in stuff(packet)
    assert unstuff(stuff(packet)) == packet


def test_checksum_is_that_of_ieee_802_3() -> None:
    assert zlib.crc32(b"123456789") == 0xCBF43926  # the check value of CRC-32/ISO-HDLC in Greg Cook's catalogue
    packet = unstuff(encode(Frame(4, 1, b"123456789"))[:-1])
    assert packet is not None
    assert int.from_bytes(packet[-4:], "little") == zlib.crc32(packet[:-4])


@given(st.lists(frames, max_size=6), st.data())
def test_frames_come_out_however_the_bytes_are_cut(sent: list[Frame], data: st.DataObject) -> None:
    wire, decoder, found = b"".join(map(encode, sent)), Decoder(), []
    while wire:
        cut = data.draw(st.integers(1, len(wire)))
        found += decoder.feed(wire[:cut])
        wire = wire[cut:]
    assert found == sent
    assert vars(decoder.counts) == {"frames": len(sent), "framing": 0, "crc": 0, "version": 0, "oversize": 0}


@given(st.binary(max_size=3000), frames, st.integers(10, 1000))
def test_a_frame_after_any_garbage_and_a_delimiter_is_understood(garbage: bytes, frame: Frame, size: int) -> None:
    decoder = Decoder(capacity=buffer_size(max(size, len(frame.payload))))
    decoder.feed(garbage)
    assert decoder.feed(b"\0" + encode(frame))[-1] == frame


@given(frames, st.data())
def test_damaged_frames_do_not_pass_for_others(frame: Frame, data: st.DataObject) -> None:
    wire = bytearray(encode(frame))
    at, width = data.draw(st.integers(0, len(wire) - 1)), data.draw(st.integers(1, 4))
    for i in range(at, min(at + width, len(wire))):
        wire[i] ^= data.draw(st.integers(0, 255))
    assert all(found == frame for found in Decoder().feed(bytes(wire) + b"\0"))


def test_each_kind_of_damage_has_its_counter() -> None:
    decoder, good = Decoder(capacity=buffer_size(20)), encode(Frame(4, 0, b"12345"))
    packet = unstuff(good[:-1])
    assert packet is not None

    def wire(changed: bytes) -> bytes:
        return stuff(changed + zlib.crc32(changed).to_bytes(4, "little")) + b"\0"

    cases = {
        "framing": [b"\x09\x01\0", b"\x02\x01\0", wire(packet[:-5]), wire(packet[:-4] + b"6")],
        "crc": [stuff(packet[:-1] + bytes([packet[-1] ^ 1])) + b"\0"],
        "version": [wire(b"\x02" + packet[1:-4])],
        "oversize": [b"\x01" * (buffer_size(20) + 1) + b"\0", encode(Frame(4, 0, bytes(40)))],
    }
    for pieces in cases.values():
        for piece in pieces:
            assert decoder.feed(piece) == []
    assert vars(decoder.counts) == {"frames": 0, **{name: len(pieces) for name, pieces in cases.items()}}
    assert decoder.feed(b"\0\0" + good) == [Frame(4, 0, b"12345")]  # empty frames are no error


def test_a_payload_that_no_frame_can_hold_is_refused() -> None:
    with pytest.raises(LinkError, match="65536 bytes; expected at most 65535"):
        encode(Frame(1, 0, bytes(65_536)))


# --- sessions ---------------------------------------------------------------------------------------------------


def opened() -> Session:
    session = Session(LAYOUT)
    assert session.accept(frame_of(hello(), 65_534), 5) == Verdict.OPENED
    return session


def test_nothing_is_taken_before_a_hello_with_the_right_digest() -> None:
    session = Session(LAYOUT)
    assert session.accept(frame_of(Ask(Request.ARM), 0), 1) == Verdict.NOT_OPEN
    assert session.accept(frame_of(hello(bytes(32)), 1), 2) == Verdict.MISMATCH
    assert session.accept(frame_of(Ask(Request.ARM), 2), 3) == Verdict.NOT_OPEN
    assert (session.state, session.last) == (SessionState.REFUSED, NEVER)
    assert session.accept(frame_of(hello(), 3), 4) == Verdict.OPENED
    assert session.accept(frame_of(Ask(Request.ARM), 4), 5) == Verdict.TAKEN


def test_a_hello_with_another_digest_ends_an_open_session() -> None:
    session = opened()
    session.accept(frame_of(hello(bytes(32)), 65_535), 6)
    assert session.accept(frame_of(Ask(Request.ARM), 0), 7) == Verdict.NOT_OPEN


def test_lost_doubled_and_overtaken_frames_are_counted_and_never_taken_twice() -> None:
    session = opened()
    order = [65_535, 0, 0, 3, 2, 1, 4, 65_535, 10]
    verdicts = [session.accept(frame_of(Ask(0), sequence), 10 + i) for i, sequence in enumerate(order)]
    taken = [sequence for sequence, verdict in zip(order, verdicts, strict=True) if verdict == Verdict.TAKEN]
    assert taken == [65_535, 0, 3, 4, 10]
    assert (session.counts.lost, session.counts.late) == (2 + 5, 4)
    assert session.last == 18


def test_frames_of_unknown_type_or_wrong_length_are_refused() -> None:
    session = opened()
    for kind, size in ((0, 0), (8, 3), (255, 0), (Type.SIGNALS, 51), (Type.COMMANDS, 0), (Type.REQUEST, 2)):
        assert session.accept(Frame(kind, 65_535, bytes(size)), 6) == Verdict.MALFORMED
    assert (session.counts.refused, session.expected, session.last) == (6, 65_535, 5)


def test_dead_man_expires_after_the_timeout_and_not_at_it() -> None:
    assert not expired(1000, 1000 + 20_000, 20_000)
    assert expired(1000, 1000 + 20_001, 20_000)
    assert expired(NEVER, 0, 20_000)
    assert expired(1000, 999, 20_000)


# --- clocks -----------------------------------------------------------------------------------------------------


@given(st.integers(0, 1 << 40), st.lists(st.integers(0, 5000), min_size=1, max_size=60))
def test_clock_tells_how_much_longer_a_frame_took_than_the_fastest(apart: int, delays: list[int]) -> None:
    clock, drift = Clock(), (10_000 * len(delays) >> 11) + len(delays)
    for k, delay in enumerate(delays):
        sent = 1_000_000 + 10_000 * k
        local = clock.update(sent, sent + apart + delay)
        extra = sent + apart + delay - local
        assert 0 <= extra <= delay - min(delays[: k + 1])
        assert extra >= delay - min(delays[: k + 1]) - drift


@pytest.mark.parametrize("drift", [200e-6, -200e-6])
def test_clock_follows_crystals_for_an_hour(drift: float) -> None:
    clock = Clock()
    ages = []
    for k in range(0, 3_600_000_000, 50_000_000):  # µs
        for sent in range(k, k + 50_000, 10_000):
            received = round(sent * (1 + drift)) + 700
            ages.append(received - clock.update(sent, received))
    assert max(ages) <= 10


@pytest.mark.parametrize(("sent", "received"), [(-1, 5), (1 << 62, 5), (5, -1), (5, 1 << 62)])
def test_no_time_stays_no_time(sent: int, received: int) -> None:
    assert Clock().update(sent, received) == NEVER


@given(st.integers(-1, 1 << 33), st.integers(0, 1 << 33))
def test_stamps_survive_as_ages(stamp: int, now: int) -> None:
    age = age_of(stamp, now)
    if stamp < 0 or stamp > now:
        assert (age, stamp_of(now, age)) == (AGE_NEVER, NEVER)
    else:
        assert stamp_of(now, age) == max(stamp, now - (AGE_NEVER - 1))


# --- over a wire ------------------------------------------------------------------------------------------------


def other(contract: Contract) -> Contract:
    return dataclasses.replace(contract, control_period=0.02)


@pytest.fixture
def ends() -> Iterator[tuple[Port, Port]]:
    a, b = socket.socketpair()
    ports = Port.of_socket(a), Port.of_socket(b)
    yield ports
    for port in ports:
        port.close()


def test_hello_is_answered_once_and_messages_flow(ends: tuple[Port, Port]) -> None:
    host, device = Link(ends[0], CONTRACT, Role.HOST), Link(ends[1], CONTRACT, Role.DEVICE)
    os.write(ends[0].descriptor, b"boot noise \x00\x05\xff")
    host.hello(now=0)
    assert [type(message) for _, message in device.receive(10)] == [Hello]
    ((_, answer),) = host.receive(20)
    assert isinstance(answer, Hello)
    assert (answer.role, answer.answer) == (Role.DEVICE, False)
    assert host.receive(30) == device.receive(30) == []
    values = np.array([0, 0, 0, 1, 0.25, -0.5, 1.5], np.float32)
    sequence = host.send(Signals(40, 7, (0, 1, AGE_NEVER), values))
    ((frame, signals),) = device.receive(50)
    assert isinstance(signals, Signals)
    np.testing.assert_array_equal(signals.values, values)
    assert (frame.sequence, signals.ages, signals.operator_age) == (sequence, (0, 1, AGE_NEVER), 7)
    device.send(Commands(60, frame.sequence, 2, 2, np.arange(6, dtype=np.float32)))
    device.send(Fault(60, 3, 0, 9, 8, 1, -1))
    assert [type(message) for _, message in host.receive(70)] == [Commands, Fault]


def test_both_ends_refuse_another_contract(ends: tuple[Port, Port]) -> None:
    host, device = Link(ends[0], CONTRACT, Role.HOST), Link(ends[1], other(CONTRACT), Role.DEVICE)
    host.hello(now=0)
    for link in (device, host):  # the device finds it, the host is told
        with pytest.raises(LinkError, match=r"the other side has the contract .*Put the same bundle on both"):
            link.receive(10)
        assert link.session.state == SessionState.REFUSED


def arrived(port: Port) -> int:
    """1 when there is something to read, 0 if there is nothing for ten seconds."""
    return len(select.select([port.descriptor], [], [], 10)[0])


def test_link_runs_over_a_serial_line() -> None:
    master, slave = os.openpty()
    path = os.ttyname(slave)
    host = Link.open(path, CONTRACT, baud=1_000_000)
    device = Link(Port("master", master), CONTRACT, Role.DEVICE)
    host.hello(now=0)
    received: list[tuple[Frame, Message]] = []
    while not received and arrived(device.port):
        received = device.receive(10)
    assert [type(message) for _, message in received] == [Hello]
    data = bytes(range(256))  # a line in raw mode changes no byte
    device.port.write(data)
    found = b""
    while len(found) < len(data) and arrived(host.port):
        found += host.port.read()
    assert found.endswith(data)
    host.port.close()
    device.port.close()
    os.close(slave)


def test_ports_say_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(LinkError, match=r"baud is 1234; expected one of \[50, "):
        Port.of_serial("/dev/ptmx", baud=1234)
    with pytest.raises(LinkError, match="expected a serial port that this user may open"):
        Port.of_serial(tmp_path / "ttyACM0")
    a, b = socket.socketpair()
    port = Port.of_socket(a)
    with pytest.raises(LinkError, match=r"the other side has not read for 0\.01 s"):
        port.write(bytes(10_000_000), timeout=0.01)
    b.close()
    with pytest.raises(LinkError, match=r"connection is lost|closed by the other side"):
        port.read()
    port.close()


# --- documents and fuzzing ----------------------------------------------------------------------------------------


def test_the_example_in_the_document_is_what_is_sent() -> None:
    text = (ROOT / "docs" / "link.md").read_text()
    shown = re.search(r"```hex\n(.*?)```", text, re.DOTALL)
    assert shown is not None
    assert bytes.fromhex(shown[1]) == encode(frame_of(Ask(Request.ARM), 258))


@settings(max_examples=500, deadline=None)
@given(st.lists(st.one_of(frames.map(encode), st.binary(max_size=60)), max_size=12), st.integers(1, 700))
def test_any_bytes_leave_the_decoder_sane(pieces: list[bytes], capacity: int) -> None:
    decoder, session = Decoder(capacity=capacity), Session(LAYOUT)
    wire = b"".join(pieces)
    for frame in decoder.feed(wire):
        if session.accept(frame, 1) == Verdict.TAKEN:
            parse(frame, LAYOUT)
    counts = decoder.counts
    assert counts.frames + counts.framing + counts.crc + counts.version <= wire.count(0)


@pytest.mark.firmware
@pytest.mark.usefixtures("fuzzer")
def test_fuzzing_the_c_finds_nothing(tmp_path: Path) -> None:
    folder, target = ROOT / "deploy" / "build" / "c", tmp_path / "fuzz_link"
    sources = [folder / "fuzz" / "fuzz_link.c", folder / "link.c", folder / "link_message.c"]
    sanitizers = ["-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]
    subprocess.run(["clang", "-g", "-O1", "-std=c99", *sanitizers, "-I", folder, *sources, "-o", target], check=True)
    options = ["-max_total_time=2", "-print_final_stats=1", f"-artifact_prefix={tmp_path}/", "-rss_limit_mb=0"]
    done = subprocess.run([target, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "number_of_executed_units" in done.stderr
