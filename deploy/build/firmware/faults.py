"""Faults on the wire between a host and a device, on real bytes, and what the device makes of them.

    print(table(try_faults(bundle, board)))

A host sends signals every control period; from some moment on, a fault happens to them. Either the robot is stopped
within the dead-man's time (the contract's ``signal_timeout`` since the last frame that was taken), or the protocol
bears the fault and the device goes on as if nothing were wrong. Which of the two is part of the fault.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from robo_rl.contract import Contract
from robo_rl.controllers.gate.codes import Event, Reason, Request, Source, State
from robo_rl.controllers.gate.held import samples_behind
from robo_rl.deploy.build.c.device import Request as Parcel
from robo_rl.deploy.build.firmware.loop import APART, LATENCY, Devices
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.link import Decoder, Layout, Session, buffer_size, encode
from robo_rl.deploy.robot.link.messages import Ask, Commands, Fault, Hello, Message, Role, frame_of, messages_of, parse

BEGINS = 8  # control periods before the fault
LETHAL, BORNE = 12, 30  # control periods that a fault lasts
TICK = 1_000  # µs, between two looks at the actuators while it lasts
STOPPED = (Source.SAFE, Source.STOP)

Arrivals = Iterable[tuple[int, bytes]]
Carry = Callable[[int, bytes, Contract], Arrivals]
"""What arrives in place of the bytes of a frame in the k-th step since the fault began: extra delay (µs), bytes."""


@dataclass(frozen=True)
class WireFault:
    """One thing that goes wrong."""

    name: str
    borne: bool
    """The protocol bears it; else the robot must be stopped."""
    carry: Carry


@dataclass(frozen=True)
class Outcome:
    """What a device made of a fault."""

    fault: WireFault
    stopped_after: int | None
    """µs from the last frame that was taken until the robot was stopped; None: it never was."""
    gate: str
    """State and reason of the gate in the end."""
    steps: int
    """Steps of the policy since the fault began."""

    def passed(self, timeout: int) -> bool:
        """As specified: tolerated, or stopped within ``timeout`` (µs), at the resolution of the test."""
        if self.fault.borne:
            return self.stopped_after is None and self.gate == State.ACTIVE.name
        return self.stopped_after is not None and self.stopped_after <= timeout + TICK


def numbered(data: bytes, sequence: int) -> bytes:
    """The same frame with another sequence number."""
    (frame,) = Decoder().feed(data)
    return encode(dataclasses.replace(frame, sequence=sequence & 0xFFFF))


def moved(data: bytes, by: int) -> bytes:
    """The same frame, numbered as if so many more had come before it."""
    (frame,) = Decoder().feed(data)
    return numbered(data, frame.sequence + by)


def hello(contract: Contract, sequence: int, time: int = 0) -> bytes:
    """What a host says when it starts."""
    layout, period = Layout.of(contract), round(contract.control_period * 1e6)
    message = Hello(Role.HOST, True, layout.signal_size, layout.command_size, period, time, layout.digest)
    return b"\0" + encode(frame_of(message, sequence))


def noise(k: int, count: int) -> bytes:
    """Bytes that mean nothing, the same ones every time."""
    return np.random.default_rng(k).bytes(count)


def flipped(k: int, data: bytes, rate: float) -> bytes:
    """Every bit turned over with that probability."""
    wrong = np.random.default_rng(k).random(8 * len(data)) < rate
    return (np.frombuffer(data, np.uint8) ^ np.packbits(wrong)).tobytes()


def flipped_at(data: bytes, place: int) -> bytes:
    """One bit of that byte turned over; of a shorter frame, of another byte."""
    place %= len(data) - 1
    return data[:place] + bytes([data[place] ^ 16]) + data[place + 1 :]


def pieces(data: bytes, count: int, apart: int) -> Arrivals:
    """The bytes in pieces, so many µs apart."""
    size = -(-len(data) // count)
    return [(i * apart, data[i * size : (i + 1) * size]) for i in range(count)]


def every(period: int, wrong: Callable[[int, bytes], Arrivals]) -> Carry:
    """The fault happens to the frames of one step of so many, beginning with the first."""
    return lambda k, data, _: wrong(k, data) if k % period == 0 else [(0, data)]


def always(wrong: Callable[[int, bytes], bytes]) -> Carry:
    """The fault happens to every frame."""
    return lambda k, data, _: [(0, wrong(k, data))]


def another(contract: Contract) -> Contract:
    """A contract with another digest."""
    return dataclasses.replace(contract, task="another")


FAULTS = (
    WireFault("cable pulled", False, lambda k, data, _: []),
    WireFault("every bit inverted", False, always(lambda k, data: bytes(255 - x for x in data))),
    WireFault("one bit of every frame flipped", False, always(lambda k, data: flipped_at(data, 9))),
    WireFault("frames cut in half", False, always(lambda k, data: data[: len(data) // 2] + b"\0")),
    WireFault("delimiters lost", False, always(lambda k, data: data[:-1])),
    WireFault("two frames in three lost", False, lambda k, data, _: [(0, data)] if k % 3 == 2 else []),
    WireFault("noise instead of frames", False, always(lambda k, data: noise(k, len(data)))),
    WireFault("frames longer than the buffer", False, always(lambda k, data: b"\x55" * 400 + data)),
    WireFault("one bit in 100 wrong", False, always(lambda k, data: flipped(k, data, 1e-2))),
    WireFault("60 ms late permanently", False, lambda k, data, _: [(60_000, data)]),
    WireFault("sequence numbers repeated", False, always(lambda k, data: numbered(data, 2))),
    WireFault("sequence numbers jump back", False, always(lambda k, data: moved(data, -1000))),
    WireFault("host restarts without a hello", False, always(lambda k, data: moved(data, -BEGINS))),
    WireFault(
        "host restarts with another contract", False,
        lambda k, data, contract: [(0, hello(another(contract), 500) if k == 0 else data)],
    ),
    WireFault("another version of the protocol", False, always(lambda k, data: data[:1] + b"\2" + data[2:])),
    WireFault("every frame repeated", True, lambda k, data, _: [(0, data), (100, data)]),
    WireFault("one frame in three lost", True, every(3, lambda k, data: [])),
    WireFault("one frame in three damaged", True, every(3, lambda k, data: [(0, flipped_at(data, 20 + k))])),
    WireFault("one frame in two arrives after its successor", True, every(2, lambda k, data: [(10_500, data)])),
    WireFault("up to 3 ms late, at random", True, lambda k, data, _: [(12 * noise(k, 1)[0], data)]),
    WireFault("noise before every frame", True, always(lambda k, data: noise(k, 20) + b"\0" + data)),
    WireFault(
        "400 bytes without end before one frame in three", True,
        every(3, lambda k, data: [(0, b"\x55" * 400 + b"\0" + data)]),
    ),
    WireFault("frames in eight pieces, 0.4 ms apart", True, lambda k, data, _: pieces(data, 8, 400)),
    WireFault("one bit in 100,000 wrong", True, always(lambda k, data: flipped(k, data, 1e-5))),
    WireFault("delimiters repeated", True, always(lambda k, data: b"\0" + data + b"\0")),
    WireFault("sequence numbers jump ahead", True, always(lambda k, data: moved(data, 1000))),
    WireFault(
        "host restarts with a hello", True,
        lambda k, data, contract: [(0, (hello(contract, 40_000) if k == 0 else b"") + moved(data, 40_000))],
    ),
)  # fmt: skip


# --- trying them --------------------------------------------------------------------------------------------------


def try_faults(bundle: Bundle, devices: Devices, faults: Sequence[WireFault] = FAULTS) -> list[Outcome]:
    """One episode for each fault, each on its own device, with the recorded signals of the bundle.

    ValueError for a policy that is faster than a wire.
    """
    period = bundle.contract.control_period
    if period < LATENCY * 1e-6:
        raise ValueError(
            f"--faults is for policies at the end of a wire, with control periods of {LATENCY:g} us or more; that of "
            f"this one is {1e6 * period:g} us: its signals come from the microcontroller itself"
        )
    return [_fly(bundle, devices, index, fault) for index, fault in enumerate(faults)]


def _fly(bundle: Bundle, devices: Devices, index: int, fault: WireFault) -> Outcome:
    contract = bundle.contract
    period = round(contract.control_period * 1e6)
    begins = (BEGINS + 1) * period
    arrivals = _arrivals(bundle, fault, period)
    ticks = range(begins, begins + (BORNE if fault.borne else LETHAL) * period, TICK)
    moments = sorted({time for time, _ in arrivals} | {tick + LATENCY for tick in ticks})
    parcels = [
        Parcel(index, b"".join(data for time, data in arrivals if time == moment), APART + moment) for moment in moments
    ]
    answers = devices.exchange(parcels)
    heard = _heard(contract, b"".join(answer.said for answer in answers))
    commands = [message for message in heard if isinstance(message, Commands)]
    stopped = [c.time - APART for c in commands if c.source in STOPPED and c.time - APART > begins - period + LATENCY]
    reason = next((m.reason for m in heard if isinstance(m, Fault) and m.events & Event.FAULTED), Reason.NONE)
    ended = f"{State(commands[-1].state).name}" + (f", {Reason(reason).name}" if reason else "")
    steps = sum(c.source == Source.POLICY and c.time > APART + begins - period + LATENCY for c in commands)
    after = stopped[0] - _last_taken(contract, arrivals, stopped[0]) if stopped else None
    return Outcome(fault, after, ended, steps)


def _arrivals(bundle: Bundle, fault: WireFault, period: int) -> list[tuple[int, bytes]]:
    """When (host's time, µs) which bytes are at the device: hello, arm, activate, steps, and then the fault."""
    contract, golden = bundle.contract, bundle.golden
    arrivals, sequence = [(LATENCY, hello(contract, 0))], 1
    for k in range(BEGINS + (BORNE if fault.borne else LETHAL)):
        time = (k + 1) * period
        row = {signal.name: golden.signals[signal.name][k % len(golden)] for signal in contract.signals}
        messages, _ = messages_of(contract, samples_behind(contract, row, {}, time), time, 0, {})
        request = {0: Request.ARM, 1: Request.ACTIVATE}.get(k)
        if request:
            arrivals.append((time + LATENCY, encode(frame_of(Ask(request), sequence))))
            sequence += 1
        free = 0  # µs, when the wire is free
        for message in messages:
            data = encode(frame_of(message, sequence))
            sequence += 1
            carried = [(0, data)] if k < BEGINS else [*fault.carry(k - BEGINS, data, contract)]
            wait = max(0, free - carried[0][0]) if carried else 0  # frames come one after the other
            arrivals += [(time + LATENCY + wait + delay, piece) for delay, piece in carried]
            free = max([free, *(wait + delay for delay, _ in carried)])
    return sorted(arrivals, key=lambda arrival: arrival[0])


def _heard(contract: Contract, data: bytes) -> list[Message]:
    """All that a device said."""
    layout = Layout.of(contract)
    return [parse(frame, layout) for frame in Decoder().feed(data)]


def _last_taken(contract: Contract, arrivals: Iterable[tuple[int, bytes]], before: int) -> int:
    """When the last frame was taken, as the link in Python sees it."""
    layout = Layout.of(contract)
    decoder, session = Decoder(capacity=buffer_size(layout.longest)), Session(layout)
    for time, data in arrivals:
        if time <= before:
            for frame in decoder.feed(data):
                session.accept(frame, time)
    return session.last


def table(outcomes: Iterable[Outcome]) -> str:
    """Outcomes as a table in Markdown."""
    lines = ["| fault | response of the device | gate |", "| --- | --- | --- |"]
    for outcome in outcomes:
        after = outcome.stopped_after
        does = f"continues: {outcome.steps} steps" if after is None else f"stops after {after / 1000:g} ms"
        lines.append(f"| {outcome.fault.name} | {does} | {outcome.gate} |")
    return "\n".join(lines)
