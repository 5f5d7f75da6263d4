"""Somebody else who commands the same arm is noticed within a second, whatever its rate and phase."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest

from robo_rl.controllers.gate.codes import State
from robo_rl.deploy.emulate.stranger import Stranger
from tests.suite import representatives

sys.path.append(str(Path(__file__).parent))
import emulated_arm
import emulated_dynamixel

AT, PERIOD = 120, 0.02  # step, and s


@pytest.mark.parametrize("rate", representatives([5.0, 30.0, 50.0, 300.0], [5.0, 50.0]))
@pytest.mark.parametrize("made", [emulated_arm.Session, emulated_dynamixel.Session])
def test_a_second_commander_is_noticed_within_a_second(made: Any, rate: float) -> None:
    for seed in range(2):
        session = made()
        session.wire.rate, session.wire.random = rate, random.Random(seed)
        session.run("another commander", AT, AT * PERIOD + 2.0)
        assert any("somebody else commands" in problem for problem in session.problems), (seed, session.problems)
        assert 0 < session.told_at - AT <= 1.0 / PERIOD
        states = [step.output.state for step in session.steps]
        assert State.FAULT in states


def test_a_stranger_sends_at_its_rate_and_phase() -> None:
    for rate in (5.0, 30.0, 300.0):
        stranger = Stranger(rate, random.Random(1))
        sent = sum(stranger.due(0.005) for _ in range(2000))
        assert abs(sent - 10.0 * rate) <= 0.02 * 10.0 * rate + 2
