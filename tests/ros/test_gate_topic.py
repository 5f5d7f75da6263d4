"""Anybody may publish on the gate's topics: what is no gate's is left out, and ends nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from std_msgs.msg import String

from robo_rl.ros.gate_topic import listen_to_gate, read_gate

TOLD = {
    "time": 1.5, "state": "ACTIVE", "source": "POLICY", "reason": "NONE", "sentence": "", "mode": "live",
    "authority": 1.0, "policy": "a",
}  # fmt: skip


class Heard:
    """In a node's place: keeps what is called when a message comes."""

    def __init__(self) -> None:
        self.calls: dict[str, Callable[[Any], None]] = {}

    def create_subscription(self, kind: Any, topic: str, call: Callable[[Any], None], profile: Any) -> None:
        self.calls[topic] = call


@pytest.mark.parametrize(
    "text",
    ["", "x", "[]", "7", "null", "{}", "[" * 100_000, json.dumps(TOLD)[:-1], json.dumps(TOLD | {"state": "FLYING"}),
     json.dumps(TOLD | {"state": 3}), json.dumps(TOLD | {"sentence": None}), json.dumps(TOLD | {"policy": []}),
     json.dumps(TOLD | {"state": ["ACTIVE"]}), '{"state": "IDLE", ' + json.dumps(TOLD)[1:],
     json.dumps(TOLD | {"sentence": "x" * 1_000_000})],
    ids=range(15),
)  # fmt: skip
def test_what_is_no_gate_s_is_left_out(text: str) -> None:
    node: Any = Heard()
    told = list[dict[str, Any]]()
    listen_to_gate(node, "/policy", told.append)
    node.calls["/policy/gate"](String(data=text))
    assert told == []
    node.calls["/policy/gate"](String(data=json.dumps(TOLD)))
    assert told == [TOLD]


def test_a_gate_s_own_text_is_read() -> None:
    assert read_gate(json.dumps(TOLD)) == TOLD
