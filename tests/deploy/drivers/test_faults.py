"""Whatever happens to an arm's bus, the arm ends at rest, near where it was; what is normal on a bus is borne."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from robo_rl.controllers.gate.codes import Source, State
from robo_rl.deploy.emulate.servos.feetech_wire import FAULTS
from tests.suite import representatives

sys.path.append(str(Path(__file__).parent))
from emulated_arm import RUN_IN, Session

AT, SECONDS = 120, 5.0
LIMP = {"brown-out of one": [1], "overload": [1], "dead servo": [1], "brown-out of all": range(6)} | {
    "switched off": range(6)
}
"""Joints that have no torque any more: gravity moves them, whatever is sent."""
NEAR = 0.2  # rad: a motion that was under way, and where it was sent last


BORNE = [name for name, one in FAULTS.items() if one.borne]


@pytest.mark.parametrize("fault", representatives(BORNE, BORNE[::3]))
def test_what_is_normal_on_a_bus_is_borne(fault: str) -> None:
    session = Session()
    session.run(fault, AT, SECONDS)
    during = session.steps[AT : round(SECONDS / 0.02) - 1]
    assert {step.output.state for step in during} == {State.ACTIVE}
    assert {step.output.source for step in during} == {Source.POLICY}


ENDING = [name for name, one in FAULTS.items() if not one.borne]


@pytest.mark.parametrize("fault", representatives(ENDING, ENDING[::3]))
def test_the_arm_is_stopped_where_it_is(fault: str) -> None:
    session = Session()
    session.run(fault, AT, SECONDS)
    assert session.steps[AT].output.source == Source.POLICY
    states = [step.output.state for step in session.steps]
    first = states.index(State.FAULT)
    assert first <= AT + 8  # 0.16 s
    assert session.problems or fault in ("goals lost",)
    sent = [step.output.source for step in session.steps[first:]]
    assert Source.POLICY not in sent
    firm = [i for i in range(5) if i not in LIMP.get(fault, [])]
    after = np.array(session.poses[first:])
    assert np.abs(after - session.poses[AT])[:, firm].max(initial=0.0) <= NEAR
    assert np.abs(session.arm.velocity[firm]).max(initial=0.0) <= 0.05


def test_the_arm_does_not_jump_when_it_is_armed() -> None:
    session = Session()
    session.run("", 10**9, 1.0)
    before = np.array(session.poses[RUN_IN - 2])
    armed = next(i for i, step in enumerate(session.steps) if step.output.state == State.READY)
    assert np.abs(np.array(session.poses[armed + 1]) - before).max() <= 0.15  # it hung freely until then
