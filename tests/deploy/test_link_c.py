"""deploy/build/c/link.c and link_message.c do what deploy/robot/link/__init__.py and deploy/robot/link/messages.py
do."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import zlib
from ctypes import POINTER, c_bool, c_float, c_int16, c_int64, c_size_t, c_uint8, c_uint16, c_uint32, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from robo_rl.deploy.robot.link import (
    NEVER,
    PIECE,
    VERSION,
    Clock,
    Decoder,
    DecoderCounts,
    Frame,
    Layout,
    Session,
    SessionCounts,
    SessionState,
    Type,
    Verdict,
    buffer_size,
    encode,
    expired,
    stuff,
)
from robo_rl.deploy.robot.link.messages import (
    AGE_NEVER,
    TYPES,
    Ask,
    Commands,
    Fault,
    Hello,
    Message,
    Progress,
    Pull,
    Refusal,
    Sample,
    Signals,
    Statistics,
    Weights,
    stamp_of,
)

FOLDER = Path(__file__).parents[2] / "deploy" / "build" / "c"
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
UNDEFINED = ["-O1", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
BUILDS = {"gcc": ("gcc", ["-O2"]), "gcc undefined": ("gcc", UNDEFINED), "clang": ("clang", ["-O2"])}
ALONE = (0, 1, 0, 5)
"""Floats of signals that come alone."""
LAYOUT = Layout(bytes(range(32)), 3, 7, 6, ALONE)
SIGNALS, SIZE, COMMANDS = LAYOUT.signal_count, LAYOUT.signal_size, LAYOUT.command_size
WHEN = st.integers(-(1 << 63), (1 << 63) - 1)
TIMES = st.integers(0, 1 << 40) | st.sampled_from([0, 1 << 61, (1 << 61) + 1]) | WHEN
ROUGH = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def structure(name: str, **fields: Any) -> type[ctypes.Structure]:
    return type(name, (ctypes.Structure,), {"_fields_": list(fields.items())})


def counts(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, c_uint32)


CFrame = structure("CFrame", payload=POINTER(c_uint8), length=c_uint16, sequence=c_uint16, type=c_uint8)
CDecoderCounts = structure("CDecoderCounts", **counts(*vars(DecoderCounts())))
CDecoder = structure(
    "CDecoder", buffer=c_void_p, capacity=c_size_t, used=c_size_t, skipping=c_bool, counts=CDecoderCounts
)
CSessionCounts = structure("CSessionCounts", **counts(*vars(SessionCounts())))
CSession = structure(
    "CSession", digest=c_void_p, signal_count=c_uint16, signal_size=c_uint16, command_size=c_uint16,
    sample_sizes=c_void_p, sample_count=c_uint16, expected=c_uint16, state=c_uint8, last=c_int64, counts=CSessionCounts,
)  # fmt: skip
CClock = structure("CClock", offset=c_int64, last=c_int64)
CHello = structure(
    "CHello", role=c_uint8, answer=c_bool, signal_size=c_uint16, command_size=c_uint16, control_period=c_uint32,
    time=c_int64, digest=c_uint8 * 32,
)  # fmt: skip
CSignals = structure("CSignals", time=c_int64, operator_age=c_uint32, ages=c_void_p, values=c_void_p)
CSample = structure("CSample", time=c_int64, age=c_uint32, index=c_uint16, values=c_void_p)
CCommands = structure("CCommands", time=c_int64, answers=c_uint16, state=c_uint8, source=c_uint8, values=c_void_p)
CFault = structure(
    "CFault", time=c_int64, state=c_uint8, source=c_uint8, reason=c_uint8, events=c_uint8, channel=c_int16,
    element=c_int16,
)  # fmt: skip
CStatistics = structure(
    "CStatistics", time=c_int64, steps=c_uint32, late_steps=c_uint32, step_time=c_uint32, decoder=CDecoderCounts,
    session=CSessionCounts,
)  # fmt: skip


CProgress = structure(
    "CProgress", time=c_int64, **counts("steps", "learnt", "spikes", "returns", "off"), first=c_float, last=c_float
)
CWeights = structure("CWeights", total=c_uint32, offset=c_uint32, piece=c_uint8 * PIECE)


C_ALONE = (c_uint16 * len(ALONE))(*ALONE)


def plain(struct: ctypes.Structure) -> dict[str, int]:
    return {name: getattr(struct, name) for name, _ in struct._fields_}


@pytest.fixture(scope="session", params=BUILDS)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler, flags = BUILDS[request.param]
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}; install it with: apt-get install {compiler}")
    path = tmp_path_factory.mktemp("link") / "liblink.so"
    sources = [FOLDER / "link.c", FOLDER / "link_message.c"]
    subprocess.run([compiler, *STRICT, *flags, "-fPIC", "-shared", *sources, "-o", path], check=True)
    found = ctypes.CDLL(str(path))
    found.link_encode.restype = c_size_t
    found.link_encode.argtypes = [c_uint8, c_uint16, ctypes.c_char_p, c_size_t, c_void_p, c_size_t]
    found.link_decode.restype, found.link_decode.argtypes = c_bool, [c_void_p, c_uint8, c_void_p]
    found.link_decoder_start.argtypes = [c_void_p, c_void_p, c_size_t]
    found.link_session_start.argtypes = [c_void_p, ctypes.c_char_p, c_uint16, c_uint16, c_uint16]
    found.link_accept.argtypes = [c_void_p, c_void_p, c_int64]
    found.link_length.argtypes = [c_void_p, c_uint8]
    found.link_expired.restype, found.link_expired.argtypes = c_bool, [c_int64] * 3
    found.link_clock_update.restype, found.link_clock_update.argtypes = c_int64, [c_void_p, c_int64, c_int64]
    found.link_stamp.restype, found.link_stamp.argtypes = c_int64, [c_int64, c_uint32]
    found.link_crc32.restype, found.link_crc32.argtypes = c_uint32, [ctypes.c_char_p, c_size_t]
    for name in (
        "hello",
        "signals",
        "sample",
        "commands",
        "fault",
        "statistics",
        "request",
        "refusal",
        "progress",
        "pull",
        "weights",
    ):
        getattr(found, f"link_pack_{name}").restype = c_size_t
    return found


def started_session(library: ctypes.CDLL) -> Any:
    session = CSession()
    library.link_session_start(ctypes.byref(session), LAYOUT.digest, SIGNALS, SIZE, COMMANDS)
    library.link_session_samples(ctypes.byref(session), C_ALONE, len(ALONE))
    return session


def c_frame(frame: Frame) -> Any:
    payload = (c_uint8 * max(1, len(frame.payload))).from_buffer_copy(frame.payload or b"\0")
    return CFrame(ctypes.cast(payload, POINTER(c_uint8)), len(frame.payload), frame.sequence, frame.type)


frames = st.builds(Frame, st.integers(0, 12), st.integers(0, 65535), st.binary(max_size=300))


@given(st.binary(max_size=700))
@ROUGH
def test_checksum_agrees(library: ctypes.CDLL, data: bytes) -> None:
    assert library.link_crc32(data, len(data)) == zlib.crc32(data)


@given(st.integers(0, 255), st.integers(0, 65535), st.binary(max_size=1200), st.integers(-3, 3))
@ROUGH
def test_encoders_write_the_same_bytes_or_none(
    library: ctypes.CDLL, kind: int, sequence: int, payload: bytes, spare: int
) -> None:
    capacity = buffer_size(len(payload)) + 1 + spare
    out = ctypes.create_string_buffer(b"\xaa" * (capacity + 8), capacity + 8)
    size = library.link_encode(kind, sequence, payload, len(payload), out, capacity)
    assert out.raw[:size] == (encode(Frame(kind, sequence, payload)) if spare >= 0 else b"")
    assert out.raw[capacity:] == b"\xaa" * 8


def forged(version: int, extra: int, payload: bytes) -> bytes:
    """A frame with the right checksum that claims another version or length."""
    packet = bytes([version, 4, 0, 0, (len(payload) + extra) & 255, 0]) + payload
    return stuff(packet + zlib.crc32(packet).to_bytes(4, "little")) + b"\0"


def test_the_longest_payload_is_written_and_a_longer_one_is_not(library: ctypes.CDLL) -> None:
    out = ctypes.create_string_buffer(70_000)
    assert library.link_encode(1, 2, bytes(65_535), 65_535, out, 70_000) == len(encode(Frame(1, 2, bytes(65_535))))
    assert library.link_encode(1, 2, bytes(65_536), 65_536, out, 70_000) == 0


pieces = st.one_of(
    frames.map(encode), st.builds(forged, st.integers(0, 2), st.integers(-1, 1), st.binary(max_size=20)),
    st.binary(max_size=40), st.just(b"\0"),
    st.tuples(frames.map(encode), st.integers(0), st.integers(0, 255)).map(
        lambda t: t[0][: t[1] % len(t[0])] + bytes([t[2]]) + t[0][t[1] % len(t[0]) + 1 :]
    ),
)  # fmt: skip


def decode(library: ctypes.CDLL, wire: bytes, capacity: int) -> tuple[list[Frame], dict[str, int]]:
    decoder, frame, found = CDecoder(), CFrame(), []
    memory = ctypes.create_string_buffer(b"\xaa" * (capacity + 8), capacity + 8)
    library.link_decoder_start(ctypes.byref(decoder), ctypes.addressof(memory), capacity)
    for byte in wire:
        if library.link_decode(ctypes.byref(decoder), byte, ctypes.byref(frame)):
            found.append(Frame(frame.type, frame.sequence, ctypes.string_at(frame.payload, frame.length)))
    assert memory.raw[capacity:] == b"\xaa" * 8
    return found, plain(decoder.counts)


@given(st.lists(pieces, max_size=10), st.integers(1, 400))
@ROUGH
def test_decoders_find_the_same_frames_and_faults(library: ctypes.CDLL, stream: list[bytes], capacity: int) -> None:
    twin, wire = Decoder(capacity=capacity), b"".join(stream)
    assert decode(library, wire, capacity) == (twin.feed(wire), vars(twin.counts))


def test_runs_as_long_as_a_block_survive(library: ctypes.CDLL) -> None:
    sent = [Frame(4, 5, b"\7" * n + rest) for n in range(250, 260) for rest in (b"", b"\0", b"\0\7", b"\0\0")]
    assert decode(library, b"".join(map(encode, sent)), 400)[0] == sent


def sized(kind: int, sequence: int, payload: bytes, right: bool) -> Frame:
    length = LAYOUT.length(kind)
    if kind == Type.SAMPLE and right:
        index = len(payload) % (len(ALONE) + 1)
        size = 14 + 4 * (ALONE[index] if index < len(ALONE) else 0)
        return Frame(kind, sequence, payload[:12].ljust(12, b"\0") + bytes([index, 0]) + bytes(size - 14))
    if not right or length < 0:
        return Frame(kind, sequence, payload)
    padded = payload[:length].ljust(length, b"\0")
    return Frame(kind, sequence, padded[:18] + LAYOUT.digest if kind == Type.HELLO and payload[:1] != b"x" else padded)


near = st.sampled_from([0, 1, 2, 0x7FFF, 0x8000, 0x8001, 0xFFFE, 0xFFFF]) | st.integers(0, 65535)
messages = st.builds(
    sized, st.sampled_from([1, 1, 2, 3, 4, 5, 6, 6, 6, 7, 8, 8, 8, *range(9, 13)]), near,
    st.just(b"x") | st.binary(max_size=60),
    st.sampled_from([True, True, True, False]),
)  # fmt: skip


@given(st.lists(st.tuples(messages, WHEN), max_size=40))
@ROUGH
def test_sessions_give_the_same_verdicts(library: ctypes.CDLL, sent: list[tuple[Frame, int]]) -> None:
    session, twin = started_session(library), Session(LAYOUT)
    for frame, now in sent:
        raw = c_frame(frame)
        assert library.link_accept(ctypes.byref(session), ctypes.byref(raw), now) == twin.accept(frame, now)
        assert (session.state, session.expected, session.last) == (twin.state, twin.expected, twin.last)
    assert plain(session.counts) == vars(twin.counts)


@pytest.mark.parametrize(("gap", "verdict"), [(0x7FFF, Verdict.TAKEN), (0x8000, Verdict.LATE), (0xFFFF, Verdict.LATE)])
def test_half_of_all_sequence_numbers_are_ahead(library: ctypes.CDLL, gap: int, verdict: Verdict) -> None:
    session, twin = started_session(library), Session(LAYOUT)
    hello = Frame(Type.HELLO, 99, bytes(18) + LAYOUT.digest)
    ask = Frame(Type.REQUEST, (100 + gap) & 0xFFFF, b"\1")
    for frame, expected in ((hello, Verdict.OPENED), (ask, verdict)):
        raw = c_frame(frame)
        assert library.link_accept(ctypes.byref(session), ctypes.byref(raw), 1) == expected
        assert twin.accept(frame, 1) == expected


@given(st.lists(st.tuples(TIMES, TIMES), max_size=30))
@ROUGH
def test_clocks_tell_the_same_time(library: ctypes.CDLL, frames: list[tuple[int, int]]) -> None:
    clock, twin = CClock(), Clock()
    library.link_clock_start(ctypes.byref(clock))
    for sent, received in frames:
        assert library.link_clock_update(ctypes.byref(clock), sent, received) == twin.update(sent, received)
    assert plain(clock) == vars(twin)


@given(st.integers(-(1 << 62), 1 << 62), st.integers(-(1 << 62), 1 << 62), st.integers(0, 1 << 40))
@ROUGH
def test_dead_man_agrees(library: ctypes.CDLL, last: int, now: int, timeout: int) -> None:
    assert library.link_expired(last, now, timeout) == expired(last, now, timeout)
    if last >= 0:
        assert library.link_expired(last, last + timeout, timeout) is False
        assert library.link_expired(last, last + timeout + 1, timeout) is True


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, AGE_NEVER))
@ROUGH
def test_stamps_agree(library: ctypes.CDLL, time: int, age: int) -> None:
    assert library.link_stamp(time, age) == stamp_of(time, age)
    assert library.link_stamp(time, AGE_NEVER) == NEVER


u8, u16, u32 = st.integers(0, 255), st.integers(0, 65535), st.integers(0, AGE_NEVER)
i16 = st.integers(-(1 << 15), (1 << 15) - 1)
digests = st.binary(min_size=32, max_size=32)


def floats(count: int) -> st.SearchStrategy[np.ndarray]:
    return st.binary(min_size=4 * count, max_size=4 * count).map(lambda b: np.frombuffer(b, np.float32))


def same_bytes(pack: Any, structs: list[Any], message: Message) -> None:
    out = ctypes.create_string_buffer(512)
    size = pack(*[ctypes.byref(s) if isinstance(s, ctypes.Structure) else s for s in structs], out)
    assert out.raw[:size] == message.payload()
    assert size == LAYOUT.length(TYPES[type(message)])


@given(st.builds(Hello, u8, st.booleans(), u16, u16, u32, WHEN, digests))
@ROUGH
def test_hellos_are_the_same_on_both_sides(library: ctypes.CDLL, message: Hello) -> None:
    struct, raw = CHello(), c_frame(Frame(Type.HELLO, 0, message.payload()))
    library.link_unpack_hello(ctypes.byref(raw), ctypes.byref(struct))
    assert {**plain(struct), "digest": bytes(struct.digest)} == vars(message)
    assert Hello.parse(message.payload()) == message
    same_bytes(library.link_pack_hello, [struct], message)


@given(st.builds(Signals, WHEN, u32, st.tuples(u32, u32, u32), floats(SIZE)))
@ROUGH
def test_signals_are_the_same_on_both_sides(library: ctypes.CDLL, message: Signals) -> None:
    ages, values, session = (c_uint32 * SIGNALS)(), (c_float * SIZE)(), started_session(library)
    struct = CSignals(0, 0, ctypes.addressof(ages), ctypes.addressof(values))
    raw = c_frame(Frame(Type.SIGNALS, 0, message.payload()))
    library.link_unpack_signals(ctypes.byref(session), ctypes.byref(raw), ctypes.byref(struct))
    assert (struct.time, struct.operator_age, tuple(ages)) == (message.time, message.operator_age, message.ages)
    assert bytes(values) == message.values.tobytes() == Signals.parse(message.payload(), LAYOUT).values.tobytes()
    same_bytes(library.link_pack_signals, [session, struct], message)
    part = (c_float * 2)()
    library.link_unpack_values(ctypes.byref(session), ctypes.byref(raw), c_size_t(1), c_size_t(2), part)
    assert bytes(part) == message.values[1:3].tobytes()


single = st.floats(width=32, allow_nan=False)


@given(st.builds(Progress, WHEN, u32, u32, u32, u32, u32, single, single))
@ROUGH
def test_progress_is_the_same_on_both_sides(library: ctypes.CDLL, message: Progress) -> None:
    struct, raw = CProgress(), c_frame(Frame(Type.PROGRESS, 0, message.payload()))
    library.link_unpack_progress(ctypes.byref(raw), ctypes.byref(struct))
    assert plain(struct) == vars(message)
    assert Progress.parse(message.payload()) == message
    same_bytes(library.link_pack_progress, [struct], message)


@given(u32, u32, st.binary(min_size=PIECE, max_size=PIECE))
@ROUGH
def test_pieces_of_weights_are_the_same_on_both_sides(
    library: ctypes.CDLL, total: int, offset: int, piece: bytes
) -> None:
    message, struct = Weights(total, offset, piece), CWeights()
    raw = c_frame(Frame(Type.WEIGHTS, 0, message.payload()))
    library.link_unpack_weights(ctypes.byref(raw), ctypes.byref(struct))
    assert {**plain(struct), "piece": bytes(struct.piece)} == vars(message)
    assert Weights.parse(message.payload()) == message
    same_bytes(library.link_pack_weights, [struct], message)
    asked = c_frame(Frame(Type.PULL, 0, Pull(offset).payload()))
    assert c_uint32(library.link_unpack_pull(ctypes.byref(asked))).value == offset
    same_bytes(library.link_pack_pull, [c_uint32(offset)], Pull(offset))


@given(st.builds(Sample, WHEN, u32, st.just(3), floats(ALONE[3])))
@ROUGH
def test_samples_are_the_same_on_both_sides(library: ctypes.CDLL, message: Sample) -> None:
    values, session = (c_float * ALONE[3])(), started_session(library)
    sample = CSample(0, 0, 0, None)
    raw = c_frame(Frame(Type.SAMPLE, 0, message.payload()))
    library.link_unpack_sample(ctypes.byref(raw), ctypes.byref(sample))
    assert sample.index == 3  # where the floats go can be told from it
    sample.values = ctypes.addressof(values)
    library.link_unpack_sample(ctypes.byref(raw), ctypes.byref(sample))
    assert (sample.time, sample.age, sample.index) == (message.time, message.age, message.index)
    assert bytes(values) == message.values.tobytes() == Sample.parse(message.payload()).values.tobytes()
    out = ctypes.create_string_buffer(64)
    size = library.link_pack_sample(ctypes.byref(session), ctypes.byref(sample), out)
    assert out.raw[:size] == message.payload()


@given(st.builds(Commands, WHEN, u16, u8, u8, floats(COMMANDS)))
@ROUGH
def test_commands_are_the_same_on_both_sides(library: ctypes.CDLL, message: Commands) -> None:
    values, session = (c_float * COMMANDS)(), started_session(library)
    struct = CCommands(0, 0, 0, 0, ctypes.addressof(values))
    raw = c_frame(Frame(Type.COMMANDS, 0, message.payload()))
    library.link_unpack_commands(ctypes.byref(session), ctypes.byref(raw), ctypes.byref(struct))
    assert (struct.time, struct.answers, struct.state, struct.source) == tuple(vars(message).values())[:4]
    assert bytes(values) == message.values.tobytes() == Commands.parse(message.payload()).values.tobytes()
    same_bytes(library.link_pack_commands, [session, struct], message)


@given(st.builds(Fault, WHEN, u8, u8, u8, u8, i16, i16))
@ROUGH
def test_faults_are_the_same_on_both_sides(library: ctypes.CDLL, message: Fault) -> None:
    struct, raw = CFault(), c_frame(Frame(Type.FAULT, 0, message.payload()))
    library.link_unpack_fault(ctypes.byref(raw), ctypes.byref(struct))
    assert plain(struct) == vars(message)
    assert Fault.parse(message.payload()) == message
    same_bytes(library.link_pack_fault, [struct], message)


@given(
    st.builds(
        Statistics, WHEN, u32, u32, u32, st.builds(DecoderCounts, u32, u32, u32, u32, u32),
        st.builds(SessionCounts, u32, u32, u32),
    )
)  # fmt: skip
@ROUGH
def test_statistics_are_the_same_on_both_sides(library: ctypes.CDLL, message: Statistics) -> None:
    struct, raw = CStatistics(), c_frame(Frame(Type.STATISTICS, 0, message.payload()))
    library.link_unpack_statistics(ctypes.byref(raw), ctypes.byref(struct))
    assert (struct.time, struct.steps, struct.late_steps, struct.step_time) == tuple(vars(message).values())[:4]
    assert (plain(struct.decoder), plain(struct.session)) == (vars(message.decoder), vars(message.session))
    assert Statistics.parse(message.payload()) == message
    same_bytes(library.link_pack_statistics, [struct], message)


@given(u8, digests)
@ROUGH
def test_requests_and_refusals_are_the_same_on_both_sides(library: ctypes.CDLL, code: int, digest: bytes) -> None:
    raw = c_frame(Frame(Type.REQUEST, 0, Ask(code).payload()))
    library.link_unpack_request.restype = c_uint8
    assert library.link_unpack_request(ctypes.byref(raw)) == code == Ask.parse(Ask(code).payload()).requests
    same_bytes(library.link_pack_request, [c_uint8(code)], Ask(code))
    same_bytes(library.link_pack_refusal, [c_uint8(code), digest], Refusal(code, digest))
    assert Refusal.parse(Refusal(code, digest).payload()) == Refusal(code, digest)


def test_c_has_the_codes_and_sizes_of_python(library: ctypes.CDLL) -> None:
    header = (FOLDER / "link.h").read_text()
    for name, kind in {"type": Type, "state": SessionState, "verdict": Verdict}.items():
        enum = re.search(rf"enum link_{name} {{(.*?)}};", header, re.DOTALL)
        assert enum is not None
        found = {word.removeprefix("LINK_"): int(code) for word, code in re.findall(r"(\w+) = (\d+)", enum[1])}
        assert found == {word: int(member) for word, member in kind.__members__.items()}
    assert f"#define LINK_VERSION {VERSION}\n" in header
    session = started_session(library)
    lengths = [library.link_length(ctypes.byref(session), kind) for kind in range(256)]
    assert lengths == [LAYOUT.length(kind) for kind in range(256)]


def test_the_link_needs_no_heap(tmp_path: Path) -> None:
    for name in ("link", "link_message"):
        target = tmp_path / f"{name}.o"
        subprocess.run(["gcc", *STRICT, "-O2", "-ffreestanding", "-c", FOLDER / f"{name}.c", "-o", target], check=True)
        undefined = subprocess.run(["nm", "-u", target], check=True, capture_output=True, text=True).stdout.split()
        assert set(undefined) <= {"U", "_GLOBAL_OFFSET_TABLE_", "memcpy", "memset"}
