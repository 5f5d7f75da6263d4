"""``robo-rl ros status``, as a person reads it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl.ros.operate import Operator


class Told(Operator):
    """One that has been told what the gate decided."""

    def __init__(self, gate: dict[str, Any]) -> None:
        super().__init__()
        self.gate = gate

    def lifecycle(self) -> str:
        return "active"

    def wait(self, condition: Any, patience: float) -> bool:
        return bool(condition())


def test_each_part_of_the_status_has_a_line_and_empty_ones_none() -> None:
    gate = {
        "time": 12345.678, "state": "FAULT", "source": "STOP", "reason": "OPERATOR_STOP",
        "sentence": "a person asked for a stop", "mode": "live", "authority": 1.0, "policy": "policy",
    }  # fmt: skip
    lines = Told(gate).status().splitlines()
    assert lines[0] == "policy is active"
    assert len(lines) == 1 + len(gate)
    assert max(map(len, lines)) < 80
    assert "  sentence   a person asked for a stop" in lines
    assert not any("NONE" in line for line in Told({**gate, "reason": "NONE"}).status().splitlines())


def test_a_gate_that_says_nothing_is_told() -> None:
    assert Told({}).status() == "policy is active; no message from the gate"
