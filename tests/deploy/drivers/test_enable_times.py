"""Robots take their time to come on; each of them still ends armed, and says so where it does not."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from robo_rl.controllers.gate.codes import State
from robo_rl.deploy.emulate.ur import Arm
from robo_rl.deploy.robot.drivers.mavlink.px4 import ORDERS

sys.path.append(str(Path(__file__).parent))
import emulated_px4
import emulated_ur

TIMES = [round(float(seconds), 2) for seconds in np.random.default_rng(34).uniform(0.02, 8.0, 4)]


@pytest.mark.parametrize("seconds", TIMES)
def test_a_controller_that_compiles_its_program_for_seconds_is_armed(seconds: float) -> None:
    session = emulated_ur.Session(arm=Arm(starting=seconds))
    session.longest = 30.0
    session.run("", 0.5, 0.2)
    states = [step.output.state for step in session.steps]
    assert State.ACTIVE in states
    assert State.FAULT not in states
    assert not session.problems


def test_a_controller_that_takes_longer_is_told_and_its_late_program_moves_nothing() -> None:
    session = emulated_ur.Session(arm=Arm(starting=12.0))
    session.longest = 20.0
    session.run("", 0.5, 0.2)
    assert {step.output.state for step in session.steps} == {State.IDLE}
    assert any("does not run our program" in step.refused for step in session.steps)
    assert np.ptp(session.places, axis=0).max() < 1e-2


@pytest.mark.parametrize("seconds", [0.05, 0.4, 1.1])
def test_an_autopilot_that_answers_late_is_armed(seconds: float) -> None:
    session = emulated_px4.Session()
    vehicle, answer, world = session.vehicle, session.vehicle._command, session.world
    first: dict[int, float] = {}

    def late(message: object) -> list[object]:
        if message.command not in ORDERS:  # type: ignore[attr-defined]
            return answer(message)  # type: ignore[arg-type]
        begun = first.setdefault(message.command, world.now())  # type: ignore[attr-defined]
        return answer(message) if world.now() - begun >= seconds else []  # type: ignore[arg-type]

    vehicle._command = late  # type: ignore[method-assign, assignment]
    session.longest = 20.0
    session.run("", 0.5, 0.2)
    states = [step.output.state for step in session.steps]
    assert State.ACTIVE in states
    assert State.FAULT not in states
