"""The link between a host and a microcontroller: frames, sessions, clocks and the dead-man's switch.

    decoder, session = Decoder(), Session(Layout.of(contract))
    for frame in decoder.feed(received_bytes):
        if session.accept(frame, now) == Verdict.TAKEN: …

Bytes in, frames out: nothing here knows a port or a clock; times are microseconds that the caller gives.
``deploy/build/c/link.c`` is the twin on the device, ``robo_rl.deploy.robot.link.messages`` has what frames carry,
``robo_rl.deploy.robot.link.port`` the connection to a serial port or socket, and docs/link.md the layout of every byte.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from enum import IntEnum

from robo_rl.contract import Contract, Signal
from robo_rl.controllers.gate.held import may_wait

VERSION = 1
OVERHEAD = 10
"""Bytes of a packet besides its payload: version, type, sequence, length; CRC."""
MAX_PAYLOAD = 65_535
NEVER = -1
LATEST = 1 << 61
"""µs: times beyond are no times."""
DRIFT = 2048
"""Clocks may drift apart by 1 in so many: many times what a crystal does."""

SAMPLE_HEAD = struct.Struct("<qIH")
"""Of a sample: time, age, and the index of its signal."""

PIECE = 128
"""Bytes of a slot of learnt weights in one frame."""

_HEADER = struct.Struct("<BBHH")


class Type(IntEnum):
    """What a frame carries."""

    HELLO = 1
    SIGNALS = 2
    COMMANDS = 3
    FAULT = 4
    STATISTICS = 5
    REQUEST = 6
    REFUSAL = 7
    SAMPLE = 8
    PROGRESS = 9
    PULL = 10
    WEIGHTS = 11


class Verdict(IntEnum):
    """What becomes of a frame. Only TAKEN and OPENED may be acted on."""

    TAKEN = 0
    OPENED = 1
    MISMATCH = 2
    LATE = 3
    NOT_OPEN = 4
    MALFORMED = 5


class SessionState(IntEnum):
    """Whether messages are taken."""

    CLOSED = 0
    OPEN = 1
    REFUSED = 2


class LinkError(ValueError):
    """The peer must not be talked to. The message says why."""


@dataclass(frozen=True)
class Frame:
    """One whole frame. ``type`` may be one that this release does not know."""

    type: int
    sequence: int
    payload: bytes


# --- frames -----------------------------------------------------------------------------------------------------


def encode(frame: Frame) -> bytes:
    """The frame's bytes with its delimiter."""
    if len(frame.payload) > MAX_PAYLOAD:
        raise LinkError(f"a payload has {len(frame.payload)} bytes; expected at most {MAX_PAYLOAD}")
    packet = _HEADER.pack(VERSION, frame.type, frame.sequence, len(frame.payload)) + frame.payload
    return stuff(packet + zlib.crc32(packet).to_bytes(4, "little")) + b"\0"


def stuff(packet: bytes) -> bytes:
    """Consistent overhead byte stuffing (Cheshire, Baker 1999): the same without any zero byte."""
    out = bytearray()
    for run in packet.split(b"\0"):
        while len(run) >= 254:
            out += b"\xff" + run[:254]
            run = run[254:]
        out.append(len(run) + 1)
        out += run
    return bytes(out)


def unstuff(stuffed: bytes) -> bytes | None:
    """What ``stuff`` was given; None if a block ends beyond the end."""
    out, start = bytearray(), 0
    while start < len(stuffed):
        block = stuffed[start]
        end = start + block
        if block == 0 or end > len(stuffed):
            return None
        out += stuffed[start + 1 : end]
        if block < 255 and end < len(stuffed):
            out.append(0)
        start = end
    return bytes(out)


def buffer_size(payload: int) -> int:
    """Bytes of an encoded frame without its delimiter, at most, for payloads up to that size."""
    return payload + OVERHEAD + (payload + OVERHEAD) // 254 + 1


@dataclass
class DecoderCounts:
    """What a decoder met."""

    frames: int = 0
    framing: int = 0
    crc: int = 0
    version: int = 0
    oversize: int = 0


@dataclass
class Decoder:
    """Frames from bytes that come in pieces, with garbage between them."""

    capacity: int = buffer_size(MAX_PAYLOAD)
    """Bytes that an encoded frame may have."""
    counts: DecoderCounts = field(default_factory=DecoderCounts)
    _pending: bytearray = field(default_factory=bytearray)
    _skipping: bool = False

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that end within these bytes."""
        *ended, rest = data.split(b"\0")
        frames = []
        for piece in ended:
            self._take(piece)
            if self._pending and not self._skipping:
                frame = self._finish(bytes(self._pending))
                frames += [frame] if frame else []
            self._pending.clear()
            self._skipping = False
        self._take(rest)
        return frames

    def _take(self, piece: bytes) -> None:
        if self._skipping:
            return
        if len(self._pending) + len(piece) > self.capacity:
            self._skipping = True
            self.counts.oversize += 1
            return
        self._pending += piece

    def _finish(self, stuffed: bytes) -> Frame | None:
        packet = unstuff(stuffed)
        if packet is None or len(packet) < OVERHEAD:
            self.counts.framing += 1
            return None
        if zlib.crc32(packet[:-4]) != int.from_bytes(packet[-4:], "little"):
            self.counts.crc += 1
            return None
        version, kind, sequence, length = _HEADER.unpack_from(packet)
        if version != VERSION:
            self.counts.version += 1
            return None
        if length != len(packet) - OVERHEAD:
            self.counts.framing += 1
            return None
        self.counts.frames += 1
        return Frame(kind, sequence, packet[_HEADER.size : -4])


# --- sessions ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """What both ends must agree on: the contract's digest and sizes."""

    digest: bytes
    signal_count: int
    """Of those that come together, at every step."""
    signal_size: int
    command_size: int
    samples: tuple[int, ...] = ()
    """Elements of each signal that comes alone, when it was measured; 0 for others."""

    @staticmethod
    def of(contract: Contract) -> Layout:
        """The layout of a contract. LinkError for signals that are too large for a frame."""
        together = signals_together(contract)
        samples = sample_sizes(contract)
        layout = Layout(
            bytes.fromhex(contract.digest),
            len(together),
            sum(signal.size for signal in together),
            sum(command.size for command in contract.commands),
            samples if any(samples) else (),
        )
        if layout.length(Type.SIGNALS) > MAX_PAYLOAD:
            largest = max(together, key=lambda signal: signal.size)
            raise LinkError(
                f"the signals that come at every step have {layout.signal_size} numbers, of which '{largest.name}' has "
                f"{largest.size}; a frame holds at most {MAX_PAYLOAD // 4 - 3 - layout.signal_count}. A signal with a "
                "period of its own has frames of its own"
            )
        return layout

    @property
    def longest(self) -> int:
        """Bytes of the longest payload."""
        samples = [SAMPLE_HEAD.size + 4 * size for size in self.samples if size]
        return max([*map(self.length, Type), *samples])

    def fits(self, frame: Frame) -> bool:
        """Whether a frame's payload has the length that its type, or its sample's signal, must have."""
        if frame.type != Type.SAMPLE:
            return self.length(frame.type) == len(frame.payload)
        if len(frame.payload) < SAMPLE_HEAD.size:
            return False
        *_, index = SAMPLE_HEAD.unpack_from(frame.payload)
        size = self.samples[index] if index < len(self.samples) else 0
        return size > 0 and len(frame.payload) == SAMPLE_HEAD.size + 4 * size

    def length(self, kind: int) -> int:
        """Bytes of a payload of that type; -1 for an unknown type, and for one whose length varies."""
        lengths: dict[int, int] = {
            Type.HELLO: 50,
            Type.SIGNALS: 12 + 4 * (self.signal_count + self.signal_size),
            Type.COMMANDS: 12 + 4 * self.command_size,
            Type.FAULT: 16,
            Type.STATISTICS: 52,
            Type.REQUEST: 1,
            Type.REFUSAL: 33,
            Type.PROGRESS: 36,
            Type.PULL: 4,
            Type.WEIGHTS: 8 + PIECE,
        }
        return lengths.get(kind, -1)


def signals_together(contract: Contract) -> list[Signal]:
    """The signals that come at every step, in one message: the others are slow, may be absent, or are ages."""
    sizes = zip(contract.signals, sample_sizes(contract), strict=True)
    return [signal for signal, size in sizes if not size and signal.source != "runtime"]


def sample_sizes(contract: Contract) -> tuple[int, ...]:
    """Elements of each signal that comes alone, when it was measured; 0 for the others."""
    waits = may_wait(contract)
    most = (MAX_PAYLOAD - SAMPLE_HEAD.size) // 4
    for signal in contract.signals:
        if signal.name in waits and signal.size > most:
            raise LinkError(f"signal '{signal.name}' has {signal.size} numbers; a frame holds at most {most}")
    return tuple(signal.size if signal.name in waits else 0 for signal in contract.signals)


@dataclass
class SessionCounts:
    """What a session met."""

    lost: int = 0
    late: int = 0
    refused: int = 0


@dataclass
class Session:
    """One direction of a connection, as its receiver sees it."""

    layout: Layout
    state: SessionState = SessionState.CLOSED
    expected: int = 0
    """The next sequence number."""
    last: int = NEVER
    """µs, when the last frame was taken."""
    counts: SessionCounts = field(default_factory=SessionCounts)

    def accept(self, frame: Frame, now: int) -> Verdict:
        """Whether to act on a frame that arrived ``now`` (µs)."""
        if not self.layout.fits(frame):
            self.counts.refused += 1
            return Verdict.MALFORMED
        hello = frame.type == Type.HELLO
        if frame.type == Type.REFUSAL or (hello and frame.payload[18:] != self.layout.digest):
            self.state = SessionState.REFUSED
            self.counts.refused += 1
            return Verdict.MISMATCH
        if not hello:
            if self.state != SessionState.OPEN:
                self.counts.refused += 1
                return Verdict.NOT_OPEN
            gap = (frame.sequence - self.expected) & 0xFFFF
            if gap >= 0x8000:
                self.counts.late += 1
                return Verdict.LATE
            self.counts.lost += gap
        self.expected, self.state, self.last = (frame.sequence + 1) & 0xFFFF, SessionState.OPEN, now
        return Verdict.OPENED if hello else Verdict.TAKEN


def expired(last: int, now: int, timeout: int) -> bool:
    """The dead-man's switch: True if nothing was taken for more than ``timeout`` µs, or ever, or time ran back."""
    return last < 0 or now < last or now - last > timeout


@dataclass
class Clock:
    """The sender's clock in the receiver's time. Begin a new one at every hello."""

    offset: int = 0
    last: int = NEVER

    def update(self, sent: int, received: int) -> int:
        """When ``sent`` was in the receiver's time; NEVER if it is no time. Both in µs.

        Never later than ``received``, and earlier by what the frame took longer than the fastest before it.
        """
        if not (0 <= sent <= LATEST and 0 <= received <= LATEST):
            return NEVER
        offset = received - sent
        if self.last >= 0 and offset > self.offset:
            passed = max(0, received - self.last)
            offset = min(offset, self.offset + (passed // DRIFT))
        self.offset, self.last = offset, received
        return sent + offset
