"""The control loop between services and gate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl_ros.control import Control
from robo_rl_ros.runner import PolicyRunner
from robo_rl_ros.signal_buffer import SignalBuffer
from robo_rl_ros.wiring import signal_wires

from controllers.gate_codes import Reason, Request, State
from deploy.runtime import Policy


@pytest.fixture
def stalled(bundle_file: Path) -> tuple[Control, Callable[[int], None]]:
    """A control loop that does not run, and one step of it, at a time in ms, for a robot at rest on the ground."""
    runner = PolicyRunner(Policy.load(bundle_file, 100))
    contract = runner.contract
    control = Control(runner, SignalBuffer(contract, signal_wires(contract.signals)), lambda _: None, lambda _: None)
    noise = np.random.default_rng(0)

    def step(time: int) -> None:
        control._samples, control._operator = {}, 1000 * time
        for signal in contract.signals:
            at_rest = np.array([0, 0, 0, 1] if signal.kind == "quaternion" else [0] * signal.size)
            value = (at_rest + 1e-3 * noise.normal(size=signal.size)).astype(np.float32)
            control._samples[signal.name] = value, 1000 * time
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
    runner = PolicyRunner(Policy.load(bundle_file, 100))
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
