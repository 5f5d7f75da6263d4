"""Faults on the wire: a device that flies by the host's signals ends in its safe command, or does not notice.

Every period (10 ms) the host sends signals; a millisecond later they are at the device, which runs the gate. What
happens on the wire is a function from the frames that are sent to the bytes that arrive.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from robo_rl.contract import Contract
from robo_rl.controllers.gate.codes import Reason, Request, Source, State
from robo_rl.controllers.gate.config import NEVER, GateConfig
from robo_rl.controllers.gate.safety import Inputs, Output, initial, step
from robo_rl.deploy.robot.link import Clock, Decoder, Layout, Session, Verdict, buffer_size, encode, expired
from robo_rl.deploy.robot.link.messages import Hello, Role, Signals, frame_of, parse, stamp_of

CONFIGURATION = Path(__file__).parents[1] / "vectors" / "gate" / "configurations" / "stop.json"
CONTRACT = Contract.from_json(json.dumps(json.loads(CONFIGURATION.read_text())["contract"]))
LAYOUT, CONFIG = Layout.of(CONTRACT), GateConfig.from_contract(CONTRACT)
PERIOD, LATENCY, TIMEOUT = CONFIG.period, 1_000, CONFIG.timeout  # µs
BEGINS = 100  # frames
STEPS = 200
APART = 123_456_789  # µs, between the clocks of host and device

Arrivals = Iterable[tuple[int, bytes]]
Wire = Callable[[int, bytes], Arrivals]
"""From the number of a frame since the fault began, and its bytes, to what arrives: extra delay (µs), bytes."""


class Device:
    """What the firmware does, with the Python link and gate: decode, take, and step the gate once a period."""

    def __init__(self) -> None:
        self.decoder, self.session, self.clock = Decoder(capacity=buffer_size(256)), Session(LAYOUT), Clock()
        self.gate = initial(CONFIG)
        self.values, self.stamps = np.zeros(LAYOUT.signal_size, np.float32), (NEVER,) * LAYOUT.signal_count
        self.operator = NEVER

    def take(self, data: bytes, now: int) -> None:
        for frame in self.decoder.feed(data):
            verdict = self.session.accept(frame, now)
            if verdict == Verdict.OPENED:
                self.clock = Clock()
            if verdict != Verdict.TAKEN:
                continue
            message = parse(frame, LAYOUT)
            if isinstance(message, Signals):
                local = self.clock.update(message.time, now)
                self.values = message.values
                self.stamps = tuple(stamp_of(local, age) for age in message.ages)
                self.operator = stamp_of(local, message.operator_age)

    def step(self, now: int, requests: Request) -> Output:
        self.gate, output = step(
            CONFIG,
            self.gate,
            Inputs(
                time=now,
                signals=self.values,
                stamps=self.stamps,
                command=np.array([400, 400, 400, 400, 0.25, 0], np.float32),
                command_stamp=now,
                operator_stamp=self.operator,
                bundle_intact=True,
                requests=requests,
            ),
        )
        return output


def signals(k: int) -> Signals:
    gimbal = np.array([0.25, 0]) + np.random.default_rng(k).normal(0, 0.001, 2)
    return Signals(k * PERIOD, 0, (0, 0, 0), np.array([0, 0, 0, 1, *gimbal, 1.5], np.float32))


def hello(contract: Contract = CONTRACT, sequence: int = 0) -> bytes:
    layout = Layout.of(contract)
    message = Hello(Role.HOST, True, layout.signal_size, layout.command_size, PERIOD, 0, layout.digest)
    return b"\0" + encode(frame_of(message, sequence))


def fly(wire: Wire, restart: bool = False) -> tuple[Device, int | None]:
    """The device after the flight, and how long after the fault began the safe command was sent; None: never."""
    device, arrivals = Device(), [(0, hello())]
    for k in range(STEPS):
        sequence = k - BEGINS if restart and k >= BEGINS else k + 1
        data = encode(frame_of(signals(k), sequence))
        since = k - BEGINS
        arrivals += [
            (k * PERIOD + LATENCY + delay, piece) for delay, piece in (wire(since, data) if since >= 0 else [(0, data)])
        ]
    arrivals.sort(key=lambda arrival: arrival[0])
    for k in range(STEPS):
        now = k * PERIOD + 2_000
        while arrivals and arrivals[0][0] <= now:
            time, data = arrivals.pop(0)
            device.take(data, APART + time)
        requests = {5: Request.ARM, 40: Request.ACTIVATE}.get(k, Request.NONE)
        output = device.step(APART + now, requests)
        assert k < 40 or k >= BEGINS or output.state == State.ACTIVE
        if output.state == State.FAULT:
            assert output.source == Source.STOP
            assert not output.command[:4].any()
            assert abs(output.command[4] - 0.25) < 0.01  # the gimbal begins where it is
            return device, now - BEGINS * PERIOD
    return device, None


def at(delay: int) -> Wire:
    return lambda k, data: [(delay, data)]


def changed(change: Callable[[int, bytes], bytes]) -> Wire:
    return lambda k, data: [(0, change(k, data))]


RECORDED = encode(frame_of(signals(3), 4))
WRONG = dataclasses.replace(CONTRACT, task="another")

LETHAL: dict[str, Wire] = {
    "cable pulled": lambda k, data: [],
    "every bit inverted": changed(lambda k, data: bytes(255 - x for x in data)),
    "one bit of every frame flipped": changed(lambda k, data: data[:9] + bytes([data[9] ^ 16]) + data[10:]),
    "frames cut in half": changed(lambda k, data: data[: len(data) // 2] + b"\0"),
    "delimiters lost": changed(lambda k, data: data[:-1]),
    "zeros become ones": changed(lambda k, data: data.replace(b"\0", b"\1")),
    "two frames run into each other": changed(lambda k, data: data[:-1] if k % 2 == 0 else data),
    "old frames replayed": changed(lambda k, data: RECORDED),
    "60 ms late from now on": at(60_000),
    "host sends another contract": changed(lambda k, data: hello(WRONG, 500) if k == 0 else data),
    "noise instead of frames": changed(lambda k, data: np.random.default_rng(k).bytes(len(data))),
    "another version of the protocol": changed(lambda k, data: data[:1] + b"\x02" + data[2:]),
}


@pytest.mark.parametrize("name", LETHAL)
def test_without_signals_the_safe_command_comes_within_the_dead_mans_time(name: str) -> None:
    device, after = fly(LETHAL[name])
    assert after is not None
    assert after <= TIMEOUT + LATENCY  # since the first frame that should have been sent
    assert device.gate.problem.reason in (Reason.SIGNAL_STALE, Reason.OPERATOR_LOST)


def test_a_host_that_starts_anew_without_a_hello_is_not_listened_to() -> None:
    device, after = fly(at(0), restart=True)
    assert after is not None
    assert after <= TIMEOUT + LATENCY
    assert device.session.counts.late > 0


def test_a_line_that_falls_behind_makes_its_signals_old() -> None:
    device, after = fly(lambda k, data: [(1_000 * k, data)])  # a millisecond more with every frame
    assert after is not None
    assert device.gate.problem.reason == Reason.SIGNAL_STALE
    # at 10 ms a frame and 1 ms more each, information is TIMEOUT old after TIMEOUT / 1 ms frames
    assert after <= (TIMEOUT // 1_000 + 3) * PERIOD


HARMLESS: dict[str, Wire] = {
    "every frame doubled": lambda k, data: [(0, data), (100, data)],
    "one frame in three lost": lambda k, data: [] if k % 3 == 0 else [(0, data)],
    "one frame in three damaged": changed(lambda k, data: data[:-3] + b"\1\0" if k % 3 == 0 else data),
    "noise before every frame": changed(lambda k, data: np.random.default_rng(k).bytes(20) + b"\0" + data),
    "endless noise before a frame": changed(lambda k, data: b"\x55" * 2000 + b"\0" + data if k % 3 == 0 else data),
    "bytes one by one": lambda k, data: [(i, data[i : i + 1]) for i in range(len(data))],
    "every other frame one period late": lambda k, data: [(PERIOD * (k % 2 == 0), data)],
    "delimiters doubled": changed(lambda k, data: b"\0" + data + b"\0"),
    "a second hello": changed(lambda k, data: hello(sequence=k + BEGINS) + data if k == 10 else data),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_the_protocol_can_bear_does_not_stop_the_robot(name: str) -> None:
    device, after = fly(HARMLESS[name])
    assert after is None
    assert device.gate.state == State.ACTIVE


def test_the_counters_tell_what_happened_on_the_wire() -> None:
    device, _ = fly(HARMLESS["every frame doubled"])
    assert device.session.counts.late == STEPS - BEGINS
    device, _ = fly(HARMLESS["one frame in three lost"])
    assert device.session.counts.lost == 33  # frames 0, 3, …, 96; nothing follows frame 99 and tells that it is lost
    device, _ = fly(HARMLESS["one frame in three damaged"])
    assert device.decoder.counts.crc + device.decoder.counts.framing == len(range(0, STEPS - BEGINS, 3))


def test_dead_man_expires_when_frames_stop_and_not_before() -> None:
    device, _ = fly(LETHAL["cable pulled"])
    last = device.session.last
    assert last == APART + (BEGINS - 1) * PERIOD + LATENCY
    assert not expired(last, last + TIMEOUT, TIMEOUT)
    assert expired(last, last + TIMEOUT + 1, TIMEOUT)
