"""A robot whose pose tf alone tells, from take-off on: when its localization falls silent, the session stops it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl.controllers.gate.codes import Reason, State
from robo_rl.ros.control import Control
from robo_rl.ros.signal_buffer import SignalBuffer
from robo_rl.ros.transforms import TransformTree
from robo_rl.ros.wiring import signal_wires
from tests.ros.test_control import Running, take_off
from tests.ros.test_tf_pose import GIVEN, KEY, NS, transform


class Localized(Running):
    """At rest; what is in ``GIVEN`` comes by map → odom of a localization and odom → base_link of the odometry."""

    def __init__(self) -> None:
        super().__init__("quadrotor-hover")
        contract = self.runner.contract
        self.buffer = SignalBuffer(contract, signal_wires(contract.signals, GIVEN))
        tree, frames = TransformTree(lambda: self.now * 1e-6), self.buffer.frames
        frames.find, frames.stamp = tree.find, tree.stamp
        frames.put = lambda message: tree.put(message, False)
        self.localization = True
        for name in GIVEN:
            del self.rest[name]
        self.control = Control(self.runner, self.buffer, self.sent.append, self.decisions.append, clock=self.clock)
        self.control.watchdog._period = 0.3

    def clock(self) -> int:
        now = super().clock()
        ros = 1000 * now + 1000 * NS
        way = tuple(1e-3 * self.noise.normal(size=3))
        heard: list[Any] = [transform("odom", "base_link", ros, way, 1e-3 * self.noise.normal())]
        if self.localization:
            heard.append(transform("map", "odom", ros))
        with self.buffer.changed:
            self.buffer.put(KEY, SimpleNamespace(transforms=heard), now, ros)
        return now


def test_a_localization_that_falls_silent_ends_in_a_fault_that_names_the_pose() -> None:
    bench = Localized()
    bench.control.start()
    try:
        take_off(bench)
        flown = len(bench.decisions)
        bench.until(lambda: len(bench.decisions) > flown + 20)
        assert all(d.output.state == State.ACTIVE for d in bench.decisions[flown:])
        bench.localization, silent = False, bench.now
        bench.until(lambda: bench.decisions[-1].output.state == State.FAULT)
        first = next(d for d in bench.decisions if d.output.state == State.FAULT)
        problem, contract = first.output.problem, bench.runner.contract
        assert problem.reason == Reason.SIGNAL_STALE
        assert contract.signals[problem.channel].name in GIVEN
        assert first.time - silent < 1e6 * (contract.safety.signal_timeout + 5 * contract.control_period)
        bench.localization = True  # what was lost comes back: nothing goes on by itself
        ended = len(bench.decisions)
        bench.until(lambda: len(bench.decisions) > ended + 50)
        assert not any(d.output.state == State.ACTIVE for d in bench.decisions[ended:])
    finally:
        bench.released.set()
        bench.control.stop()
