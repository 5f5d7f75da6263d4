"""Simulated time as simulators and bags give it: from 0 on, slowly, fast, standing still, set back, of two programs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

import rclpy
from geometry_msgs.msg import TwistStamped
from rclpy.context import Context
from rclpy.node import Node
from rosgraph_msgs.msg import Clock

from robo_rl.contract import Signal
from robo_rl.controllers.gate.codes import Reason, Request, State
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.deploy.robot.session import Session
from robo_rl.ros import listening
from robo_rl.ros.control import Control
from robo_rl.ros.listening import Listener
from robo_rl.ros.signal_buffer import SignalBuffer
from robo_rl.ros.wiring import signal_wires
from robo_rl.zoo import located


class Simulated:
    """A control loop at work for a robot at rest, in time that ``pass_`` moves."""

    def __init__(self) -> None:
        self.runner = Session(Policy.load(located("zoo:go2-flat"), 50))
        contract = self.runner.contract
        self.buffer, self.us, self.steps = SignalBuffer(contract, signal_wires(contract.signals)), 0, 0
        self.sent: list[np.ndarray] = []
        self.control = Control(
            self.runner, self.buffer, self.sent.append, self.note, clock=lambda: self.us, ticking=False,
        )  # fmt: skip
        self.rest = {
            s.name: np.array([0, 0, 0, 1.0] if s.kind == "quaternion" else [0.0] * s.size) for s in contract.signals
        }
        self.rest["joint_position"] = np.array(contract.commands[0].start)
        self.noise = np.random.default_rng(0)

    def note(self, decision: object) -> None:
        self.steps += 1

    def pass_(self, us: int) -> None:
        """To the time ``us``, with signals measured then, and on once the loop has made its step."""
        before = self.steps
        with self.buffer.changed:
            self.us = us
            for name, place in self.rest.items():
                value = (place + 1e-3 * self.noise.normal(size=place.size)).astype(np.float32)
                self.buffer.samples[name] = value, us
            self.buffer.operator_stamp = us
            self.buffer._missing.clear()
            self.buffer.changed.notify()
        end = time.monotonic() + 60
        while self.steps == before:
            assert time.monotonic() < end, "no step"
            time.sleep(1e-3)

    def ask(self, request: Request) -> State:
        self.control.ask(request)
        self.pass_(self.us + self.runner.config.period)
        return self.runner.gate.state


@pytest.fixture
def simulated() -> Iterator[Simulated]:
    one = Simulated()
    one.control.start()
    yield one
    one.control.stop()


@pytest.mark.parametrize("real", [0.0, 0.1])
@pytest.mark.parametrize("begin", [0, 1_700_000_000_000_000])
def test_a_clock_of_any_beginning_and_speed_is_followed(simulated: Simulated, begin: int, real: float) -> None:
    """``real`` s per period of 20 ms: as fast as it goes, and five times slower than real time."""
    simulated.pass_(begin)
    assert simulated.ask(Request.ARM) == State.READY
    assert simulated.ask(Request.ACTIVATE) == State.ACTIVE
    for _ in range(8):
        time.sleep(real)
        simulated.pass_(simulated.us + simulated.runner.config.period)
    assert simulated.runner.gate.state == State.ACTIVE


def test_a_clock_that_is_set_back_stops_the_robot_which_goes_on_after_a_reset(simulated: Simulated) -> None:
    simulated.pass_(90_000_000)
    simulated.ask(Request.ARM)
    assert simulated.ask(Request.ACTIVATE) == State.ACTIVE
    simulated.pass_(1_000_000)
    assert simulated.runner.gate.state == State.FAULT
    assert simulated.runner.gate.problem.reason == Reason.CLOCK
    assert simulated.ask(Request.RESET) == State.IDLE
    assert simulated.ask(Request.ARM) == State.READY
    assert simulated.ask(Request.ACTIVATE) == State.ACTIVE


def test_a_wish_of_before_a_clock_was_set_back_is_none(simulated: Simulated) -> None:
    control, name = simulated.control, simulated.runner.contract.signals[0].name
    control._perishable = {name: np.zeros(3, np.float32)}
    wish = {name: (np.ones(3, np.float32), 90_000_000)}
    assert control._with_constants(90_400_000, wish)[name][0].tolist() == [1.0] * 3
    for now in (90_600_000, 1_000_000):
        assert control._with_constants(now, wish)[name][0].tolist() == [0.0] * 3


@pytest.mark.parametrize(
    ("now", "stamp", "said"),
    [(1_700_000_000, 12, "s old: zero, or of another clock"), (12, 1_700_000_000, "start the one that sends them")],
)
def test_who_has_the_other_clock_is_told(now: int, stamp: int, said: str) -> None:
    signal = Signal("linear_velocity_setpoint", ("x", "y", "z"), "m/s", "world", (-9.0,) * 3, (9.0,) * 3)
    contract = SimpleNamespace(
        signals=[signal], signal=lambda _: signal, control_period=0.02, safety=SimpleNamespace(signal_timeout=0.1)
    )
    buffer = SignalBuffer(contract, signal_wires([signal]))
    message = TwistStamped()
    message.header.stamp.sec = stamp
    (key,) = buffer.wires
    buffer.put(key, message, now * 10**6, now * 10**9)
    assert said in buffer.complaints()[0]


def test_a_clock_that_stands_still_or_has_two_sources_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "SILENCE", 0.3)
    context = Context()
    rclpy.init(context=context)
    try:
        owner, sources = Node("policy", context=context), [Node(f"source{i}", context=context) for i in range(2)]
        buffer = SignalBuffer(
            SimpleNamespace(signals=[], control_period=0.02, safety=SimpleNamespace(signal_timeout=1.0)), []
        )
        listener = Listener(owner, buffer, True, lambda topic: lambda event: None)

        def until(condition: Callable[[], bool]) -> None:
            end = time.monotonic() + 60
            while not condition():
                assert time.monotonic() < end, listener.clock_complaints()
                time.sleep(0.02)

        until(lambda: any("nobody publishes it" in told for told in listener.clock_complaints()))
        # a reliable, lasting publisher, as some have it, is heard as well
        first = sources[0].create_publisher(Clock, "/clock", 1)
        message = Clock()

        def goes() -> bool:
            message.clock.nanosec += 1_000_000
            first.publish(message)
            return listener.clock_complaints() == []

        until(goes)
        until(
            lambda: any(
                "stands still at 0." in told and "publishers: 1" in told for told in listener.clock_complaints()
            )
        )
        sources[1].create_publisher(Clock, "/clock", 1)
        until(lambda: any("2 nodes publish it: source0, source1" in told for told in listener.clock_complaints()))
        listener.close()
    finally:
        context.try_shutdown()
