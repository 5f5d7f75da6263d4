"""What the link's frames carry, as plain data that turns into payloads and back.

Little-endian; ``deploy/build/c/link_message.c`` is the twin on the device, docs/link.md has the layouts. ``parse`` is
for frames whose length ``Session.accept`` has checked.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

import numpy as np

from robo_rl.contract import Contract
from robo_rl.controllers.gate.codes import Request
from robo_rl.controllers.gate.held import Samples
from robo_rl.deploy.robot.link import (
    NEVER,
    PIECE,
    SAMPLE_HEAD,
    DecoderCounts,
    Frame,
    Layout,
    LinkError,
    SessionCounts,
    Type,
    sample_sizes,
    signals_together,
)

AGE_NEVER = 0xFFFF_FFFF
"""The age of a signal that is missing."""


class Role(IntEnum):
    """Who says hello."""

    HOST = 0
    DEVICE = 1


@dataclass(frozen=True)
class Hello:
    """The first message of each end, and again after a restart. ``control_period`` and ``time`` in µs."""

    role: int
    answer: bool
    """The peer is asked for its hello."""
    signal_size: int
    command_size: int
    control_period: int
    time: int
    digest: bytes

    def payload(self) -> bytes:
        sizes = (self.signal_size, self.command_size, self.control_period, self.time)
        return struct.pack("<BBHHIq", self.role, self.answer, *sizes) + self.digest

    @staticmethod
    def parse(payload: bytes) -> Hello:
        role, flags, signal_size, command_size, period, time = struct.unpack_from("<BBHHIq", payload)
        return Hello(role, bool(flags & 1), signal_size, command_size, period, time, payload[18:])


@dataclass(frozen=True)
class Signals:
    """The signals (N,) float32 that come at every step, with the age of each in µs; AGE_NEVER: missing."""

    time: int
    operator_age: int
    ages: tuple[int, ...]
    values: np.ndarray

    def payload(self) -> bytes:
        head = struct.pack(f"<qI{len(self.ages)}I", self.time, self.operator_age, *self.ages)
        return head + _floats(self.values)

    @staticmethod
    def parse(payload: bytes, layout: Layout) -> Signals:
        time, operator_age, *ages = struct.unpack_from(f"<qI{layout.signal_count}I", payload)
        return Signals(time, operator_age, tuple(ages), _array(payload[12 + 4 * len(ages) :]))


@dataclass(frozen=True)
class Sample:
    """One measurement (k,) float32 of a slow signal, or one that may be absent: ``index`` in the contract's order."""

    time: int
    age: int
    index: int
    values: np.ndarray

    def payload(self) -> bytes:
        return SAMPLE_HEAD.pack(self.time, self.age, self.index) + _floats(self.values)

    @staticmethod
    def parse(payload: bytes) -> Sample:
        time, age, index = SAMPLE_HEAD.unpack_from(payload)
        return Sample(time, age, index, _array(payload[SAMPLE_HEAD.size :]))


@dataclass(frozen=True)
class Commands:
    """Commands (M,) float32 that the gate lets pass, and the sequence number of the signals they answer."""

    time: int
    answers: int
    state: int
    source: int
    values: np.ndarray

    def payload(self) -> bytes:
        return struct.pack("<qHBB", self.time, self.answers, self.state, self.source) + _floats(self.values)

    @staticmethod
    def parse(payload: bytes) -> Commands:
        time, answers, state, source = struct.unpack_from("<qHBB", payload)
        return Commands(time, answers, state, source, _array(payload[12:]))


@dataclass(frozen=True)
class Fault:
    """What the gate answered: sent whenever there is an event, and now and then while a fault is latched."""

    time: int
    state: int
    source: int
    reason: int
    events: int
    channel: int
    element: int

    def payload(self) -> bytes:
        codes = (self.state, self.source, self.reason, self.events, self.channel, self.element)
        return struct.pack("<qBBBBhh", self.time, *codes)

    @staticmethod
    def parse(payload: bytes) -> Fault:
        return Fault(*struct.unpack("<qBBBBhh", payload))


@dataclass(frozen=True)
class Statistics:
    """Counters since start, modulo 2^32; ``step_time`` is the longest step in µs."""

    time: int
    steps: int
    late_steps: int
    step_time: int
    decoder: DecoderCounts
    session: SessionCounts

    def payload(self) -> bytes:
        counts = (
            self.steps,
            self.late_steps,
            self.step_time,
            *vars(self.decoder).values(),
            *vars(self.session).values(),
        )
        return struct.pack("<q11I", self.time, *(count & 0xFFFF_FFFF for count in counts))

    @staticmethod
    def parse(payload: bytes) -> Statistics:
        time, steps, late_steps, step_time, *counts = struct.unpack("<q11I", payload)
        decoder, session = DecoderCounts(*counts[:5]), SessionCounts(*counts[5:])
        return Statistics(time, steps, late_steps, step_time, decoder, session)


@dataclass(frozen=True)
class Ask:
    """Requests to the peer's gate."""

    requests: int

    def payload(self) -> bytes:
        return bytes([self.requests])

    @staticmethod
    def parse(payload: bytes) -> Ask:
        return Ask(payload[0])

    @property
    def known(self) -> Request:
        """The requests that this release knows."""
        return Request(self.requests & 63)


@dataclass(frozen=True)
class Refusal:
    """The answer to a hello with another digest, with the own one. ``reason`` 1: the digests differ."""

    reason: int
    digest: bytes

    def payload(self) -> bytes:
        return bytes([self.reason]) + self.digest

    @staticmethod
    def parse(payload: bytes) -> Refusal:
        return Refusal(payload[0], payload[1:])


@dataclass(frozen=True)
class Progress:
    """How learning on the device goes (``robo_rl.learn.stream``): counters, and what was earned per step with the
    exported weights and in the newest block, scaled. ``off`` 1: it has ended."""

    time: int
    steps: int
    learnt: int
    spikes: int
    returns: int
    off: int
    first: float
    last: float

    LAYOUT: ClassVar = struct.Struct("<q5I2f")

    def payload(self) -> bytes:
        return self.LAYOUT.pack(*vars(self).values())

    @staticmethod
    def parse(payload: bytes) -> Progress:
        return Progress(*Progress.LAYOUT.unpack(payload))


@dataclass(frozen=True)
class Pull:
    """The host asks for a piece of the slot with the learnt weights, from that byte on."""

    offset: int

    def payload(self) -> bytes:
        return struct.pack("<I", self.offset)

    @staticmethod
    def parse(payload: bytes) -> Pull:
        return Pull(*struct.unpack("<I", payload))


@dataclass(frozen=True)
class Weights:
    """A piece of the slot, zeros beyond its end. ``total``: bytes of the slot; 0, and no piece, while the policy is
    active."""

    total: int
    offset: int
    piece: bytes

    def payload(self) -> bytes:
        return struct.pack("<II", self.total, self.offset) + self.piece.ljust(PIECE, b"\0")

    @staticmethod
    def parse(payload: bytes) -> Weights:
        total, offset = struct.unpack_from("<II", payload)
        return Weights(total, offset, payload[8:])


Message = Hello | Signals | Sample | Commands | Fault | Statistics | Ask | Refusal | Progress | Pull | Weights
TYPES: dict[type, Type] = {
    Hello: Type.HELLO, Signals: Type.SIGNALS, Commands: Type.COMMANDS, Fault: Type.FAULT,
    Statistics: Type.STATISTICS, Ask: Type.REQUEST, Refusal: Type.REFUSAL, Sample: Type.SAMPLE,
    Progress: Type.PROGRESS, Pull: Type.PULL, Weights: Type.WEIGHTS,
}  # fmt: skip


PARSERS: dict[Type, Callable[[bytes], Message]] = {
    Type.HELLO: Hello.parse, Type.COMMANDS: Commands.parse, Type.FAULT: Fault.parse,
    Type.STATISTICS: Statistics.parse, Type.REQUEST: Ask.parse, Type.REFUSAL: Refusal.parse,
    Type.SAMPLE: Sample.parse, Type.PROGRESS: Progress.parse, Type.PULL: Pull.parse, Type.WEIGHTS: Weights.parse,
}  # fmt: skip


def frame_of(message: Message, sequence: int) -> Frame:
    """The frame that carries a message."""
    return Frame(TYPES[type(message)], sequence & 0xFFFF, message.payload())


def parse(frame: Frame, layout: Layout) -> Message:
    """The message in a frame."""
    if not layout.fits(frame):
        slow = frame.type == Type.SAMPLE
        expected = "those of a slow signal of the contract" if slow else str(layout.length(frame.type))
        raise LinkError(f"a frame of type {frame.type} has {len(frame.payload)} bytes; expected {expected}")
    if frame.type == Type.SIGNALS:
        return Signals.parse(frame.payload, layout)
    return PARSERS[Type(frame.type)](frame.payload)


def messages_of(
    contract: Contract, samples: Samples, now: int, operator_age: int, sent: Mapping[str, int]
) -> tuple[list[Message], dict[str, int]]:
    """What tells a peer of the newest samples of all signals, at the time of a step (µs).

    First the slow ones with a new measurement, then all that are sent together. ``sent`` are the stamps of slow signals
    that were sent before, {} at first, and after every hello; the second result is for the next call.
    """
    alone: list[Message] = []
    for index, (signal, size) in enumerate(zip(contract.signals, sample_sizes(contract), strict=True)):
        value, stamp = samples.get(signal.name, (np.zeros(0), NEVER))
        if size and stamp >= 0 and stamp != sent.get(signal.name):
            alone.append(Sample(now, age_of(stamp, now), index, np.ravel(value)))
            sent = {**sent, signal.name: stamp}
    newest = [samples.get(s.name) or (np.zeros(s.size, np.float32), NEVER) for s in signals_together(contract)]
    values = np.concatenate([np.zeros(0, np.float32), *(np.ravel(value) for value, _ in newest)])
    ages = tuple(age_of(stamp, now) for _, stamp in newest)
    return [*alone, Signals(now, operator_age, ages, values)], dict(sent)


def age_of(stamp: int, now: int) -> int:
    """The age of a stamp as it is sent; ages beyond 71 minutes are sent as 71 minutes."""
    return AGE_NEVER if stamp < 0 or stamp > now else min(now - stamp, AGE_NEVER - 1)


def stamp_of(time: int, age: int) -> int:
    """The stamp of what was that old at that time; NEVER if it was missing or is from before time zero."""
    return NEVER if age == AGE_NEVER or time < age else time - age


def _floats(values: np.ndarray) -> bytes:
    return np.ascontiguousarray(values, dtype="<f4").tobytes()


def _array(payload: bytes) -> np.ndarray:
    return np.frombuffer(payload, dtype="<f4").astype(np.float32)
