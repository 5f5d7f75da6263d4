"""Who may do what in a secured ROS 2 network: the policy of SROS 2 for the nodes of one contract.

    text = permissions(contract)          # for ros2 security create_permission KEYSTORE ENCLAVE FILE

Four enclaves: ``policy`` runs the policy; ``robot`` is the robot, its drivers and estimators; ``operator`` makes
requests and sends set-points; ``viewer`` sees everything, and may stop the robot. A policy that follows paths has a
fifth, ``follow_path``, the server of Nav2's action. All else is denied.
Format: https://design.ros2.org/articles/ros2_access_control_policies.html
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping

from robo_rl.contract import Contract
from robo_rl.ros.wiring import command_wires, signal_wires

ENCLAVES = ("policy", "robot", "operator", "viewer")
REQUESTS = (
    "arm", "engage", "disarm", "stop", "reset", "promote", "demote", "succeeded", "failed", "select_policy",
)  # fmt: skip
LIFE_CYCLE = ("change_state", "get_state", "get_available_states", "get_available_transitions", "get_transition_graph")
PARAMETERS = (
    "describe_parameters", "get_parameters", "get_parameter_types", "list_parameters", "set_parameters",
    "set_parameters_atomically",
)  # fmt: skip
TOLD = (
    "gate", "gate_status", "decision", "status", "refusal", "contract", "policy_contract", "transition_event",
)  # fmt: skip
"""What the policy's node publishes of itself."""
READ_ONLY = ("get_state", "get_parameters")
"""Services that change nothing."""
TF = ("/tf", "/tf_static")
"""Where the frames of messages are in each other."""
EVERYBODY = ("/parameter_events", "/rosout")
"""Topics of every node."""
FOLLOWED = ("path_points", "speed_limit")
"""The set-points that follow_path sends."""
FOLLOWING = ("arm", "engage", "change_state", "get_state", "get_parameters")
"""The services that it asks the policy's node for."""
Rules = Mapping[tuple[str, str], Iterable[str]]
"""Names by (topics, services or actions, verb)."""


def permissions(
    contract: Contract,
    namespace: str = "",
    wires: Mapping[str, str] | None = None,
    command_message: str = "",
    twist: str = "TwistStamped",
) -> str:
    """The policy as XML. The arguments are the node's parameters of these names; ``twist`` is ``cmd_vel``."""
    prefix = f"/{namespace.strip('/')}/" if namespace.strip("/") else "/"
    root = ET.Element("policy", version="0.2.0")
    enclaves = ET.SubElement(root, "enclaves")
    for name, rules in _rules(contract, prefix, wires or {}, command_message, twist).items():
        enclave = ET.SubElement(enclaves, "enclave", path=f"{prefix}{name}")
        profile = ET.SubElement(ET.SubElement(enclave, "profiles"), "profile", ns=prefix.rstrip("/") or "/", node=name)
        for (kind, verb), names in rules.items():
            group = ET.SubElement(profile, kind, {verb: "ALLOW"})
            for one in sorted(set(names)):
                ET.SubElement(group, kind.removesuffix("s")).text = one
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _rules(
    contract: Contract, prefix: str, wires: Mapping[str, str], command_message: str, twist: str
) -> dict[str, Rules]:
    """By enclave."""
    source = {signal.name: signal.source for signal in contract.signals}
    inputs = signal_wires(contract.signals, wires, twist)
    from_robot = {prefix + wire.topic for wire in inputs if source[wire.name] != "operator"}
    from_operator = {prefix + wire.topic for wire in inputs if source[wire.name] == "operator"}
    commands = {prefix + wire.topic for wire in command_wires(contract.commands, command_message)}
    node = f"{prefix}policy/"
    told = {node + name for name in TOLD} | {"/diagnostics"}
    heartbeat, stop = node + "heartbeat", node + "stop"
    own = [node + name for name in (*REQUESTS, *LIFE_CYCLE, *PARAMETERS, "get_type_description")]
    seen = {"/clock", "/parameter_events"}
    everything = {*from_robot, *from_operator, *commands, *told, *seen, "/rosout"}
    asked = [node + name for name in (*REQUESTS, *LIFE_CYCLE, *PARAMETERS)]
    rules: dict[str, Rules] = {
        "policy": {
            ("topics", "publish"): {*commands, *told, *EVERYBODY},
            ("topics", "subscribe"): {*from_robot, *from_operator, heartbeat, *seen, *TF},
            ("services", "reply"): own,
        },
        "robot": {
            ("topics", "publish"): {*from_robot, "/clock", *EVERYBODY},
            ("topics", "subscribe"): {*commands, *seen},
        },
        "operator": {
            ("topics", "publish"): {*from_operator, heartbeat, *EVERYBODY},
            ("topics", "subscribe"): everything,
            ("services", "request"): asked,
        },
        "viewer": {
            ("topics", "publish"): EVERYBODY,
            ("topics", "subscribe"): everything,
            ("services", "request"): [stop, *(node + name for name in READ_ONLY)],
        },
    }
    path = {prefix + wire.topic for wire in inputs if wire.name in FOLLOWED}
    if len(path) == len(FOLLOWED):
        rules["follow_path"] = {
            ("topics", "publish"): {*path, *EVERYBODY},
            ("topics", "subscribe"): {*from_robot, *commands, *told, *seen, *TF},
            ("services", "request"): [node + name for name in FOLLOWING],
            ("actions", "execute"): [f"{prefix}follow_path"],
        }
    return rules
