"""An arm with a cube in its hand: whatever fails, it stays where it is and keeps the cube.

As the table of ``test_faults``, for an arm whose servos take joint angles. The rows are in docs/manipulation.md:

    ROBO_RL_FAULT_TABLE=docs/manipulation.md pytest tests/ros/test_arm_faults.py
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from tests.ros.fault_rows import ARM, over_dds
from tests.suite import representatives

pytestmark = pytest.mark.slow
DEADLINE = 0.06
"""s: the signal_timeout of an arm's contract."""
TRIES = 10
EPISODE = 8.0  # s of simulated time, in which the cube is lifted and placed
CARRIED, HELD = 0.045, 0.016
"""m, of a cube that was lifted, and of one that is still in the air: it lies at 0.0125."""

UNSEEN = ["drop cube/pose", "repeat cube/pose", "past cube/pose 3", "rename cube/pose", "garbage cube/pose"]
"""The camera's pose of the cube may be absent: no fault, and yet nothing may fall."""


@pytest.fixture(scope="module")
def script_file(scripted: Callable[..., Path]) -> Path:
    """A bundle of the SO-101's placing by its script."""
    return scripted("arm-place", "so101")


class Hand:
    """A pair of nodes, and where the cube is that the arm has in its hand."""

    def __init__(self, flight: Any, bundle: Path) -> None:
        from geometry_msgs.msg import PoseStamped

        from robo_rl.ros import quality

        self.flight, self.heights = flight, []
        flight.operator.node.create_subscription(PoseStamped, "cube/pose", self._seen, quality.SENSOR)
        flight.start("twin", "--task", "arm-place", "--robot", "so101", "--use-sim-time")
        flight.start("policy", str(bundle), "--use-sim-time")
        flight.until(lambda: flight.applied, "the twin")
        flight.operator.do("configure")
        flight.until(lambda: flight.gates, "the gate")
        flight.patiently("activate")

    def _seen(self, message: Any) -> None:
        if np.isfinite(message.pose.position.z):
            self.heights.append(message.pose.position.z)

    def lift(self) -> None:
        """From whatever state of an active node, to a cube that is in the air, which a busy computer may prevent."""
        for _ in range(TRIES):
            self._lift()
            if self.flight.state == "ACTIVE" and self.heights[-1] > CARRIED:
                return
        raise AssertionError(self.flight.gates)

    def _lift(self) -> None:
        flight = self.flight
        flight.operator.fault("")
        flight.operator.do("stop")
        flight.operator.do("reset")
        flight.operator.restart_twin()
        flight.patiently("arm")
        flight.gates.clear()
        self.heights.clear()
        flight.patiently("engage")
        flight.applied.clear()
        flight.until(lambda: flight.applied, "the twin")
        begun = flight.applied[0][0]
        # simulated time passes several times as fast as real time: who looks seldom may find the cube at its place
        flight.until(
            lambda: (
                max(self.heights, default=0.0) > CARRIED
                or flight.state == "FAULT"
                or flight.applied[-1][0] > begun + EPISODE
            ),
            "a cube that was in the air",
        )
        flight.applied.clear()

    def strike(self, act: Callable[[], object], seconds: float) -> None:
        """Lift the cube, ``act``, and wait; again where that came when the cube was on its way down already."""
        for _ in range(TRIES):
            self.lift()
            act()
            in_time = self.heights[-1] > CARRIED
            self.wait(seconds)
            if in_time and self.never_opens() and self.heights[-1] > 2 * HELD:
                return  # else poses were under way when it looked, and the cube was lower than they said

    def wait(self, seconds: float) -> None:
        """s of the twin's time."""
        self.flight.until(lambda: self.flight.applied, "the twin")
        begun = self.flight.applied[-1][0]
        self.flight.until(lambda: self.flight.applied[-1][0] > begun + seconds, f"{seconds} s")

    def never_opens(self) -> bool:
        """Whether the jaw was told to open by no command since the cube was in the air, but for noise."""
        return all(command[-1] < 0.2 for _, command in self.flight.applied)

    def is_still(self, seconds: float) -> bool:
        """Whether the joints were told the same in the last ``seconds``."""
        last = self.flight.applied[-1][0]
        told = np.array([command[:-1] for time, command in self.flight.applied if time > last - seconds])
        return bool((np.ptp(told, axis=0) == 0.0).all())


@pytest.fixture(scope="module")
def hand(tmp_path_factory: pytest.TempPathFactory, script_file: Path, make_flight: Any) -> Iterator[Hand]:
    with make_flight(tmp_path_factory.mktemp("logs")) as flight:
        yield Hand(flight, script_file)


@pytest.mark.parametrize(("fault", "reason", "name"), over_dds(ARM))
def test_a_fault_of_signals_ends_where_the_arm_is_with_the_cube_in_its_hand(hand, fault_table, fault, reason, name):
    flight = hand.flight
    for _ in range(TRIES):
        hand.lift()
        flight.operator.fault(fault)
        found = flight.fault()
        in_time = hand.never_opens() and hand.heights[-1] > 2 * HELD  # else it came when the cube was on its way down
        if found["reason"] != "OVERRUN" and in_time:
            break
    flight.until(lambda: flight.status.get("since_us") and flight.status["fault"], "the fault's time")
    since = flight.status["since_us"] * 1e-6
    assert found["reason"] == reason or not reason, found
    assert name in found["sentence"]
    assert found["source"] == "STOP"
    assert found["time"] - since <= DEADLINE + 1e-6
    flight.operator.fault("")
    hand.heights.clear()
    hand.wait(1.5)
    assert flight.state == "FAULT"  # latched
    assert hand.is_still(1.0)
    assert hand.never_opens()
    assert hand.heights[-1] > HELD
    fault_table.add(fault, found["time"] - since, found["source"], found["reason"], found["sentence"])


@pytest.mark.parametrize("fault", representatives(UNSEEN, ["drop cube/pose", "garbage cube/pose"]))
def test_an_arm_that_does_not_see_its_cube_any_more_waits_and_keeps_it(hand, fault_table, fault):
    flight = hand.flight
    hand.strike(lambda: flight.operator.fault(fault), 3.0)
    assert flight.state == "ACTIVE"
    assert hand.never_opens()
    hand.heights.clear()
    flight.operator.fault("")
    flight.until(lambda: hand.heights, "the cube")
    assert hand.heights[0] > HELD
    hand.wait(3.0)
    assert hand.heights[-1] < 0.02  # and goes on: the cube is at its place
    fault_table.add(fault, None, "continues", "", "waits, and goes on when the cube is seen again")


def test_a_pose_that_stays_the_same_is_no_reason_to_let_go(hand, fault_table):
    hand.strike(lambda: hand.flight.operator.fault("freeze cube/pose"), 3.0)
    assert hand.never_opens()
    fault_table.add("freeze cube/pose", None, "continues", "", "within the workspace, and keeps what it feels")


def test_joints_in_another_order_are_mapped_by_name(hand, fault_table):
    hand.lift()
    hand.flight.operator.fault("reorder joint_states")
    hand.wait(4.0)
    assert hand.flight.state == "ACTIVE"
    assert hand.heights[-1] < 0.02  # at its place
    fault_table.add("reorder joint_states", None, "continues", "", "looked up by name at every message")


def test_a_stop_by_the_operator_keeps_the_cube(hand, fault_table):
    hand.strike(lambda: hand.flight.operator.do("stop"), 1.5)
    found = hand.flight.fault()
    assert (found["reason"], found["source"]) == ("OPERATOR_STOP", "STOP")
    assert hand.is_still(1.0)
    assert hand.never_opens()
    assert hand.heights[-1] > HELD
    fault_table.add("stop by the operator", None, "STOP", found["reason"], found["sentence"])


def test_the_arm_of_a_policy_that_is_killed_keeps_the_cube(hand, fault_table):
    """The last of the tests with this pair."""
    hand.lift()
    os.kill(hand.flight.processes["policy"].pid, signal.SIGKILL)
    hand.flight.until(lambda: hand.flight.status.get("watchdog"), "the watchdog")
    hand.wait(1.0)
    assert hand.is_still(0.8)
    assert hand.never_opens()
    assert hand.heights[-1] > HELD
    fault_table.add("policy killed (-9)", None, "SAFE", "the robot's watchdog", hand.flight.status["watchdog"])
