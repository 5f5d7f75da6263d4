"""Every fault of signals, for every kind of robot that has a table of them: messages, buffer, session and gate.

The same faults go over DDS in the files of the robots, one of each kind of fault; all of them with ``make release``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl.controllers.gate.codes import Source, State
from robo_rl.ros.faults import Fault
from robo_rl.zoo import located
from tests.ros.fault_rows import ARM, BASE, CAR, QUADROTOR, Row
from tests.ros.in_process import Pair


@dataclass(frozen=True)
class Robot:
    """One of the zoo's policies, and what its faults end in."""

    policy: str
    rows: list[Row]
    stop: Source
    seconds: float
    """s in control before the fault."""


ROBOTS = {
    "quadrotor": Robot("quadrotor-hover", QUADROTOR, Source.SAFE, 0.5),
    "arm": Robot("arm-place-so101", ARM, Source.STOP, 1.0),
    "car": Robot("car-race", CAR, Source.SAFE, 1.0),
    "base": Robot("diff-nav", BASE, Source.SAFE, 1.0),
}
CASES = [pytest.param(name, *row, id=f"{name}: {row[0]}") for name, robot in ROBOTS.items() for row in robot.rows]


@pytest.fixture(scope="module")
def pairs() -> dict[str, Pair]:
    return {name: Pair(str(located(f"zoo:{robot.policy}"))) for name, robot in ROBOTS.items()}


@pytest.mark.parametrize(("robot", "fault", "reason", "named"), CASES)
def test_a_fault_ends_in_the_stop_of_the_robot_in_time(
    pairs: dict[str, Pair], robot: str, fault: str, reason: str, named: str
) -> None:
    about, pair = ROBOTS[robot], pairs[robot]
    contract, period = pair.bundle.contract, pair.twin.period
    timeout = contract.safety.signal_timeout
    pair.begin()
    pair.engage(about.seconds)
    struck = [contract.signal(wire.name) for wire in pair.wires if Fault.parse(fault).strikes(wire.topic)]
    slow = max((signal.period or 0.0) for signal in struck)  # s, the time between measurements of a slow sensor
    steps, first = pair.strike(fault, 2.0 * timeout + slow + 10 * period)
    assert first is not None
    output = first.decision.output
    assert output.state == State.FAULT
    assert output.problem.reason.name == reason or not reason, pair.sentence(first.decision)
    assert named in pair.sentence(first.decision)
    controlled = "setpoint" in fault and output.source == Source.FALLBACK  # a controller that lands on good sensors
    assert output.source == about.stop or controlled
    repeats = 2 * period if reason == "SIGNAL_FROZEN" else 0.0  # counted from the first that repeats
    assert first.time - steps[0].time <= timeout + slow + repeats + 1e-6
    later = pair.go_on(0.3)
    assert {step.decision.output.state for step in later} == {State.FAULT}  # latched, though all is well again
    if about.stop == Source.SAFE and not controlled:
        assert all((value == 0).all() for step in later for value in step.commands.values())
    if about.stop == Source.STOP:
        held = [np.concatenate([*step.commands.values()])[:-1] for step in later[-5:]]  # the gripper goes on closing
        assert np.ptp(held, axis=0).max() == 0.0
