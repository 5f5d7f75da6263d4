"""Hear what the gate of a policy's node decided: by GateStatus of robo_rl_msgs, or by JSON where that is not there."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from std_msgs.msg import String

from robo_rl.controllers.gate.codes import Reason, Source, State
from robo_rl.ros import quality
from robo_rl.ros.interfaces import importable

PACKAGE = "robo_rl_msgs"


def listen_to_gate(node: Node, policy: str, receive: Callable[[dict[str, Any]], None]) -> None:
    """Call ``receive`` with what the gate of the node ``policy`` told last, by the names of the JSON.

    By GateStatus, and by JSON from a node that has no robo_rl_msgs; not by both.
    """
    typed = [False]

    def on_text(message: String) -> None:
        if not typed[0]:
            receive(json.loads(message.data))

    def on_status(message: Any) -> None:
        typed[0] = True
        receive(
            {
                "time": message.time, "state": State(message.state).name, "source": Source(message.source).name,
                "reason": Reason(message.reason).name, "sentence": message.sentence, "mode": message.mode,
                "authority": round(message.authority, 4), "policy": message.policy,
            }
        )  # fmt: skip

    node.create_subscription(String, f"{policy}/gate", on_text, quality.LATCHED)
    if importable(PACKAGE):
        from robo_rl_msgs.msg import GateStatus

        node.create_subscription(GateStatus, f"{policy}/gate_status", on_status, quality.LATCHED)
