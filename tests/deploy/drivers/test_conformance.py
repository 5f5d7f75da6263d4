"""Every included driver against its emulator passes the kit that a driver of your own is checked with."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_rl.deploy.robot.conformance import CHECKS, Bench, check

sys.path.append(str(Path(__file__).parent))
ROBOTS = ("arm", "dynamixel", "go2", "g1", "car", "px4", "crazyflie", "ur", "franka")
QUICK = ("arm", "ur")
"""A bus and a network; the others before a release."""


def benches(name: str) -> Callable[[], Bench]:
    """Of the emulated robot of that name."""
    module = importlib.import_module(f"emulated_{name}")

    def bench() -> Bench:
        session: Any = module.Session()
        if name in ("arm", "dynamixel"):
            import emulated_arm as arm

            return Bench(session.driver, arm.Waving(session.contract), arm.GOAL, session.clock, arm.PATIENCE,
                         lambda: bool(np.abs(session.arm.velocity).max() > 0.1))  # fmt: skip
        return Bench(session.driver, session.policy, session.told or {}, session.world, 60.0, moves_of(name, session))

    return bench


def moves_of(name: str, session: Any) -> Callable[[], bool] | None:
    """What the emulator knows of motion: rad/s, m/s."""
    if name == "ur":
        return lambda: bool(np.abs(session.arm.rates).max() > 1e-2)
    if name in ("go2", "g1"):
        return lambda: bool(session.robot.stiff or np.abs(session.robot.truth["joint_velocity"]).max() > 0.3)
    if name == "car":
        return lambda: bool(abs(session.racer.speed) > 0.1)
    return None


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.release) for name in ROBOTS]
)
def test_an_included_driver_conforms(name: str) -> None:
    if name == "franka":
        pytest.importorskip("franky", reason="franky is missing: pip install 'robo-rl[franka]'")
    outcomes = list(check(benches(name)))
    assert len(outcomes) == len(CHECKS)
    assert not [outcome for outcome in outcomes if outcome.sentence]
