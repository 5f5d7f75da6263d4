"""A kind of robot outside the package is stood in for, and run by a policy, as two processes over DDS."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl.cli import main

TASK = f"{Path(__file__).parents[2] / 'examples' / 'own_kind' / 'balance.py'}:Balance"

pytestmark = pytest.mark.slow


def test_a_policy_balances_the_stand_in_of_a_strangers_kind(flight, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as done:
        main(["train", TASK, "--runs", str(tmp_path), "--episodes", "0"])
    assert done.value.code == 0
    bundle = tmp_path / "policy.onnx"
    with pytest.raises(SystemExit) as done:
        main(["export", str(tmp_path / "balance-seed0-1"), "--out", str(bundle)])
    assert done.value.code == 0
    flight.start("twin", "--use-sim-time", "--task", TASK)
    flight.start("policy", str(bundle), "--use-sim-time")
    flight.until(lambda: flight.applied, "the twin")
    flight.operator.do("configure")
    flight.until(lambda: flight.gates, "the gate")
    flight.patiently("activate")
    flight.operator.do("engage")
    flight.until(lambda: flight.state == "ACTIVE", "the policy's turn")
    begun = flight.applied[-1][0]
    flight.until(lambda: flight.applied[-1][0] > begun + 8.0 or flight.state == "FAULT", "8 s of balancing")
    assert flight.state == "ACTIVE", flight.gates
    forces = np.array([force[0] for when, force in flight.applied if when > begun + 4.0])
    assert np.abs(forces).mean() < 1.0  # N; a cart that has run away, or whose pole fell, is pushed at its limit
    assert np.abs(forces).max() > 0.0
