"""Hear what the gate of a policy's node decided: by GateStatus of robo_rl_msgs, or by JSON where that is not there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any

from rclpy.node import Node
from std_msgs.msg import String

from robo_rl.controllers.gate.codes import Reason, Source, State
from robo_rl.files.text import loads_json
from robo_rl.ros import quality
from robo_rl.ros.interfaces import importable

PACKAGE = "robo_rl_msgs"
CODES: Mapping[str, type[IntEnum]] = {"state": State, "source": Source, "reason": Reason}
LONGEST = 10_000
"""Characters of a gate's JSON."""


def read_gate(text: str) -> dict[str, Any] | None:
    """What a gate's JSON tells, by name; None where it is no gate's: anybody may publish on its topic."""
    try:
        found = loads_json(text[: LONGEST + 1])
    except ValueError:
        return None
    if not isinstance(found, dict) or not all(isinstance(value, str | int | float) for value in found.values()):
        return None
    known = all(found.get(name) in codes.__members__ for name, codes in CODES.items())
    return found if known and all(isinstance(found.get(name), str) for name in ("sentence", "mode", "policy")) else None


def listen_to_gate(node: Node, policy: str, receive: Callable[[dict[str, Any]], None]) -> None:
    """Call ``receive`` with what the gate of the node ``policy`` told last, by the names of the JSON.

    By GateStatus, and by JSON from a node that has no robo_rl_msgs; not by both. What is no gate's is left out.
    """
    typed = [False]

    def on_text(message: String) -> None:
        if not typed[0] and (told := read_gate(message.data)) is not None:
            receive(told)

    def on_status(message: Any) -> None:
        try:
            codes = {name: kind(getattr(message, name)).name for name, kind in CODES.items()}
        except ValueError:  # a number that is no code
            return
        typed[0] = True
        receive(
            {
                "time": message.time, **codes, "sentence": message.sentence, "mode": message.mode,
                "authority": round(message.authority, 4), "policy": message.policy,
            }
        )  # fmt: skip

    node.create_subscription(String, f"{policy}/gate", on_text, quality.LATCHED)
    if importable(PACKAGE):
        from robo_rl_msgs.msg import GateStatus

        node.create_subscription(GateStatus, f"{policy}/gate_status", on_status, quality.LATCHED)
