"""The control loop between services and gate."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl.controllers.gate.codes import UNANSWERED, Reason, Request, Source, State
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.deploy.robot.session import Session
from robo_rl.ros.control import Control
from robo_rl.ros.signal_buffer import SignalBuffer
from robo_rl.ros.wiring import signal_wires
from robo_rl.zoo import located
from tests.suite import representatives


@pytest.fixture
def stalled(bundle_file: Path) -> tuple[Control, Callable[[int], None]]:
    """A control loop that does not run, and one step of it, at a time in ms, for a robot at rest on the ground."""
    runner = Session(Policy.load(bundle_file, 100))
    contract = runner.contract
    control = Control(runner, SignalBuffer(contract, signal_wires(contract.signals)), lambda _: None, lambda _: None)
    noise = np.random.default_rng(0)

    def step(time: int) -> None:
        control._taken, control._operator = {}, 1000 * time
        for signal in contract.signals:
            at_rest = np.array([0, 0, 0, 1] if signal.kind == "quaternion" else [0] * signal.size)
            value = (at_rest + 1e-3 * noise.normal(size=signal.size)).astype(np.float32)
            control._taken[signal.name] = value, 1000 * time
        control._step(1000 * time)

    return control, step


def test_a_request_to_arm_that_was_not_heard_in_time_is_not_carried_out_later(stalled):
    control, step = stalled
    step(1000)
    assert control.request(Request.ARM) is None
    step(1010)
    assert control.runner.gate.state == State.IDLE


@pytest.mark.parametrize(("request_", "state"), [(Request.STOP, State.FAULT), (Request.DISARM, State.IDLE)])
def test_a_robot_is_stopped_and_disarmed_while_simulated_time_stands_still(bundle_file: Path, request_, state):
    runner = Session(Policy.load(bundle_file, 100))
    buffer = SignalBuffer(runner.contract, signal_wires(runner.contract.signals))
    control = Control(runner, buffer, lambda _: None, lambda _: None, clock=lambda: 1_000_000, ticking=False)
    control.start()
    assert control.request(Request.DISARM) is not None, "the first step, for which no time need pass"
    decision = control.request(request_)
    control.stop()
    assert decision is not None
    assert decision.output.state == state


def test_a_request_to_stop_that_was_not_heard_in_time_still_stops(stalled):
    control, step = stalled
    step(1000)
    assert control.request(Request.STOP) is None
    step(1010)
    assert control.runner.gate.state == State.FAULT
    assert control.runner.gate.problem.reason == Reason.OPERATOR_STOP


def test_after_a_late_step_that_arms_the_next_one_comes_a_period_later(stalled):
    """The gate counts its periods from that step: one on the old schedule, 2 ms after it, would be TOO_FAST."""
    control, step = stalled
    step(1000)
    control.ask(Request.ARM)
    step(1018)
    assert control.runner.gate.state == State.READY
    due = control.scheduler.due(None)
    assert due == 1_018_000 + control.runner.config.period
    step(due // 1000)
    assert control.runner.gate.state == State.READY


class Running:
    """A control loop at work for a robot at rest, whose policy can be made to misbehave, and what it sent."""

    def __init__(self, name: str) -> None:
        bundle = Policy.load(located(f"zoo:{name}"), {"go2-flat": 50, "quadrotor-hover": 100}[name])
        self.runner = Session(bundle)
        contract = self.runner.contract
        self.buffer = SignalBuffer(contract, signal_wires(contract.signals))
        self.sent: list[np.ndarray] = []
        self.decisions: list[Any] = []
        self.control = Control(self.runner, self.buffer, self.sent.append, self.decisions.append, clock=self.clock)
        self.control.watchdog._period = 0.3  # a busy computer is no fault of the policy
        self.now, self.released = 1_000_000, threading.Event()
        self.noise = np.random.default_rng(0)
        self.rest = {
            s.name: np.array([0, 0, 0, 1.0] if s.kind == "quaternion" else [0.0] * s.size) for s in contract.signals
        }
        if "joint_position" in self.rest:
            self.rest["joint_position"] = np.array(contract.commands[0].start)

    def clock(self) -> int:
        """Time that passes by a control period with every look, which is before every step."""
        self.now += self.runner.config.period
        with self.buffer.changed:
            for name, place in self.rest.items():
                value = (place + 1e-3 * self.noise.normal(size=place.size)).astype(np.float32)
                self.buffer.samples[name] = value, self.now
            self.buffer.operator_stamp = self.now
            self.buffer._missing.clear()
        return self.now

    def misbehave(self, how: Callable[[], Any]) -> None:
        self.runner.policies.step = lambda values, ages=None: how()  # type: ignore[method-assign]

    def spin(self) -> None:
        while not self.released.is_set():
            pass

    def until(self, condition: Callable[[], Any]) -> None:
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.01)


@pytest.fixture(params=["quadrotor-hover", "go2-flat"])
def running(request: pytest.FixtureRequest) -> Iterator[Running]:
    bench = Running(request.param)
    bench.control.start()
    yield bench
    bench.released.set()
    bench.control.stop()


def take_off(bench: Running) -> None:
    for request, state in ((Request.ARM, State.READY), (Request.ACTIVATE, State.ACTIVE)):
        decision = None
        for _ in range(400):
            decision = bench.control.request(request)
            if decision is not None and decision.output.state == state:
                break
        assert decision is not None
        assert decision.output.state == state, decision.output.problem
        bench.control.enable()


WAYS = ["hangs", "spins", "fails", "gives nothing", "gives nan", "changes shape"]


@pytest.mark.parametrize("how", representatives(WAYS, ["hangs", "gives nan"]))
def test_a_misbehaving_policy_is_followed_by_the_stop(running: Running, how: str):
    take_off(running)
    commands = running.runner.contract.commands
    wrong: dict[str, Callable[[], Any]] = {
        "hangs": running.released.wait,
        "spins": running.spin,
        "fails": lambda: 1 / 0,
        "gives nothing": lambda: None,
        "gives nan": lambda: {c.name: np.full(c.size, np.nan, np.float32) for c in commands},
        "changes shape": lambda: {c.name: np.zeros(c.size + 1, np.float32) for c in commands},
    }
    running.misbehave(wrong[how])
    running.until(lambda: running.runner.gate.state == State.FAULT)
    flown = [decision for decision in running.decisions if decision.output.source == Source.POLICY]
    after = running.decisions[running.decisions.index(flown[-1]) + 1]
    assert after.output.state == State.FAULT  # the very next step
    assert after.output.problem.reason in (*UNANSWERED, Reason.COMMAND_NOT_FINITE)
    if how in ("hangs", "spins"):
        running.until(lambda: running.control.stuck)
        assert "the policy had not answered" in running.control.explain(after)
    assert running.control.request(Request.RESET).output.state == State.IDLE
    assert running.control.request(Request.STOP).output.state == State.FAULT
    assert running.control.request(Request.RESET).output.state == State.IDLE


def test_a_stop_is_answered_while_the_policy_hangs(running: Running):
    take_off(running)
    running.misbehave(running.released.wait)
    decision = running.control.request(Request.STOP)
    assert decision is not None
    assert decision.output.state == State.FAULT


def test_a_robot_whose_policy_hangs_can_be_armed_but_not_handed_over(running: Running):
    take_off(running)
    running.misbehave(running.released.wait)
    running.until(lambda: running.runner.gate.state == State.FAULT)
    assert running.control.request(Request.RESET).output.state == State.IDLE
    assert running.control.request(Request.ARM).output.state == State.READY
    for _ in range(300):
        decision = running.control.request(Request.ACTIVATE)
        if decision.output.problem.reason != Reason.NOT_READY:
            break
    assert (decision.output.state, decision.output.problem.reason) == (State.READY, Reason.COMMAND_MISSING)


def test_an_error_in_the_loop_itself_is_a_stop_that_goes_on(running: Running):
    take_off(running)
    running.runner.propose = lambda now, samples: 1 / 0  # type: ignore[method-assign]
    running.until(lambda: running.runner.gate.state == State.FAULT)
    assert running.runner.gate.problem.reason == Reason.HALTED
    assert "ZeroDivisionError" in running.control.broken
    count = len(running.sent)
    running.until(lambda: len(running.sent) > count + 3)
    assert running.control.request(Request.DISARM) is not None


def test_whoever_retires_is_silent_when_the_stop_has_ended(running: Running):
    take_off(running)
    running.control.retire(wait=True)
    assert not running.control.enabled
    sent = len(running.sent)
    running.until(lambda: len(running.decisions) > 20)
    assert len(running.sent) == sent
    (command,) = running.runner.contract.commands
    where = running.rest["joint_position"] if command.stop == "damp" else np.array(command.safe)
    np.testing.assert_allclose(running.sent[-1], where, atol=0.01)


def test_who_does_not_wait_for_the_end_of_a_stop_sends_what_is_left_to_send(running: Running):
    take_off(running)
    running.misbehave(running.released.wait)
    waiting = threading.Thread(target=running.control.retire, args=(True,))
    with running.control._robot:  # the stop does not come to its end
        waiting.start()
        running.until(lambda: running.control._closed)
        running.control.end()
        running.until(running.control.left.is_set)
    waiting.join(30.0)
    assert not running.control.enabled
    (command,) = running.runner.contract.commands
    where = running.rest["joint_position"] if command.stop == "damp" else np.array(command.safe)
    np.testing.assert_allclose(running.sent[-1], where, atol=0.05)
