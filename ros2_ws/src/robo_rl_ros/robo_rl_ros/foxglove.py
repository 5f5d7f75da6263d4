"""A layout for Foxglove, from a contract: signals, commands, the gate and diagnostics, live and of a recorded session.

    json.dumps(layout(contract))          # in Foxglove: Layouts, Import from file

Two tabs: "robot" has the topics of the node and of what it listens to, with the robot's model; "session" has those of a
log (``robo_rl.deploy.robot.logs.logfile``), where every element of a signal has its label. ROS is not needed. Paths
are in Foxglove's
syntax of messages, https://docs.foxglove.dev/docs/visualization/message-path-syntax
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from robo_rl.contract import Command, Contract, Image, Scan, Signal
from robo_rl.deploy.robot.logs.logfile import GATE_FIELDS
from robo_rl.ros.wiring import Wire, command_wires, signal_wires

Panels = dict[str, dict[str, Any]]
"""Configurations by the panel's type and name, "Plot!robot/imu"."""
Node = str | dict[str, Any]
"""A panel, or two of them side by side."""
VECTORS = {
    ("nav_msgs/msg/Odometry", "position"): "pose.pose.position",
    ("nav_msgs/msg/Odometry", "orientation"): "pose.pose.orientation",
    ("nav_msgs/msg/Odometry", "linear_velocity"): "twist.twist.linear",
    ("nav_msgs/msg/Odometry", "angular_velocity"): "twist.twist.angular",
    ("sensor_msgs/msg/Imu", "orientation"): "orientation",
    ("sensor_msgs/msg/Imu", "angular_velocity"): "angular_velocity",
    ("sensor_msgs/msg/Imu", "linear_acceleration"): "linear_acceleration",
    ("geometry_msgs/msg/PoseStamped", "position"): "pose.position",
    ("geometry_msgs/msg/PoseStamped", "orientation"): "pose.orientation",
    ("geometry_msgs/msg/TwistStamped", "linear"): "twist.linear",
    ("geometry_msgs/msg/TwistStamped", "angular"): "twist.angular",
    ("geometry_msgs/msg/Twist", "linear"): "linear",
    ("geometry_msgs/msg/Twist", "angular"): "angular",
}
"""Where the vectors are, by message type and field of a wire."""
TWISTS = {"geometry_msgs/msg/TwistStamped": "twist.", "geometry_msgs/msg/Twist": ""}
ACKERMANN = {"ackermann_msgs/msg/AckermannDriveStamped": "drive.", "ackermann_msgs/msg/AckermannDrive": ""}
DECIDED = ("state", "source", "reason")
"""Of the gate's fields, those that are plotted."""


def layout(
    contract: Contract, namespace: str = "", wires: Mapping[str, str] | None = None, command_message: str = "",
    twist: str = "TwistStamped",
) -> dict[str, Any]:  # fmt: skip
    """The layout as Foxglove imports it. The arguments are the node's parameters of these names."""
    prefix = f"/{namespace.strip('/')}/" if namespace.strip("/") else "/"
    panels: Panels = {}
    live = _live(contract, prefix, signal_wires(contract.signals, wires, twist),
                 command_wires(contract.commands, command_message), panels)  # fmt: skip
    session = _session(contract, panels)
    tabs = [{"title": "robot", "layout": live}, {"title": "session", "layout": session}]
    panels["Tab!all"] = {"activeTabIdx": 0, "tabs": tabs}
    return {
        "configById": panels, "globalVariables": {}, "userNodes": {}, "playbackConfig": {"speed": 1},
        "layout": "Tab!all",
    }  # fmt: skip


def _live(
    contract: Contract, prefix: str, inputs: Sequence[Wire], outputs: Sequence[Wire], panels: Panels
) -> dict[str, Any] | str:
    signals = {signal.name: signal for signal in contract.signals}
    commands = {command.name: command for command in contract.commands}
    scene = _scene(panels, "robot", f"{prefix}robot_description",
                   [prefix + w.topic for w in inputs if isinstance(signals[w.name].layout, Scan)])  # fmt: skip
    plots: list[Node] = [
        _plot(panels, f"robot/{wire.name}", f"{wire.name}, {signals[wire.name].unit}",
              paths(wire, signals[wire.name], prefix))
        for wire in inputs if signals[wire.name].shape is None
    ]  # fmt: skip
    plots += [
        _plot(panels, f"robot/{wire.name}", f"{wire.name}, {commands[wire.name].unit}",
              paths(wire, commands[wire.name], prefix))
        for wire in outputs
    ]  # fmt: skip
    plots += [_image(panels, f"robot/{w.name}", prefix + w.topic)
              for w in inputs if isinstance(signals[w.name].layout, Image)]  # fmt: skip
    panels["RawMessages!robot/gate"] = {"topicPath": f"{prefix}policy/gate_status"}
    panels["RawMessages!robot/refusal"] = {"topicPath": f"{prefix}policy/refusal"}
    panels["DiagnosticSummary!robot"] = {"topicToRender": "/diagnostics", "minLevel": 0}
    gate: list[Node] = ["RawMessages!robot/gate", "RawMessages!robot/refusal", "DiagnosticSummary!robot"]
    return split("row", [split("column", [scene, *gate]), split("column", plots)], 35)


def _session(contract: Contract, panels: Panels) -> dict[str, Any] | str:
    plots: list[Node] = []
    scans = [f"/policy/signal/{s.name}" for s in contract.signals if isinstance(s.layout, Scan)]
    at = 0
    for signal in contract.signals:
        if signal.shape is None:
            lines = [(f"/policy/signals.position[{at + i}]", label) for i, label in enumerate(signal.labels)]
            plots.append(_plot(panels, f"session/{signal.name}", f"{signal.name}, {signal.unit}", lines))
            at += signal.size
        elif isinstance(signal.layout, Image):
            plots.append(_image(panels, f"session/{signal.name}", f"/policy/signal/{signal.name}"))
    at = 0
    for command in contract.commands:
        lines = [
            (f"/policy/{what}.position[{at + i}]", f"{label} {what}")
            for i, label in enumerate(command.labels)
            for what in ("sent", "proposed")
        ]
        plots.append(_plot(panels, f"session/{command.name}", f"{command.name}, {command.unit}", lines))
        at += command.size
    decided = [(f"/policy/gate.position[{GATE_FIELDS.index(name)}]", name) for name in DECIDED]
    gate: list[Node] = [_plot(panels, "session/gate", "gate", decided)]
    panels["RawMessages!session/decisions"] = {"topicPath": "/policy/decisions"}
    gate.append("RawMessages!session/decisions")
    if scans:
        gate.insert(0, _scene(panels, "session", "", scans))
    return split("row", [split("column", gate), split("column", plots)], 35)


def paths(wire: Wire, channel: Signal | Command, prefix: str) -> list[tuple[str, str]]:
    """A path for each element, with its label; joints of a robot's own message, whose order is its own, as one."""
    topic = prefix + wire.topic
    if (wire.kind, wire.field) in VECTORS:
        names = channel.elements if set(channel.elements) <= set("xyzw") else "xyzw"[: channel.size]
        where = VECTORS[wire.kind, wire.field]
        return [(f"{topic}.{where}.{name}", label) for name, label in zip(names, channel.labels, strict=True)]
    if wire.kind in TWISTS:
        part = {"v": "linear", "w": "angular"}
        return [(f"{topic}.{TWISTS[wire.kind]}{part[name[0]]}.{name[1]}", name) for name in channel.elements]
    if wire.kind in ACKERMANN:
        return [(f"{topic}.{ACKERMANN[wire.kind]}{wire.field}", wire.name)]
    if isinstance(channel, Signal) and wire.kind == "sensor_msgs/msg/JointState":
        return [(f"{topic}.{wire.field}[:]", "in the message's order")]
    field = wire.field
    if wire.kind == "trajectory_msgs/msg/JointTrajectory":
        field = "points[0]." + {"position": "positions", "velocity": "velocities"}.get(field, field)
    return [(f"{topic}.{field}[{i}]", label) for i, label in enumerate(channel.labels)]


def _plot(panels: Panels, name: str, title: str, lines: Sequence[tuple[str, str]]) -> str:
    panels[f"Plot!{name}"] = {
        "title": title, "isSynced": True, "showLegend": True, "legendDisplay": "floating", "xAxisVal": "timestamp",
        "paths": [{"value": path, "label": label, "enabled": True, "timestampMethod": "receiveTime"}
                  for path, label in lines],
    }  # fmt: skip
    return f"Plot!{name}"


def _image(panels: Panels, name: str, topic: str) -> str:
    panels[f"Image!{name}"] = {"imageMode": {"imageTopic": topic}}
    return f"Image!{name}"


def _scene(panels: Panels, name: str, model: str, scans: Sequence[str]) -> str:
    urdf = {"layerId": "foxglove.Urdf", "sourceType": "topic", "topic": model, "visible": True}
    panels[f"3D!{name}"] = {
        "layers": {"grid": {"layerId": "foxglove.Grid", "visible": True}, **({"model": urdf} if model else {})},
        "topics": {topic: {"visible": True} for topic in scans},
    }
    return f"3D!{name}"


def split(direction: str, nodes: Sequence[Node], first: float | None = None) -> Node:
    """Panels in a row or a column, all of the same size, or ``first`` percent for the first."""
    if len(nodes) == 1:
        return nodes[0]
    part = 100 / len(nodes) if first is None else first
    return {"direction": direction, "first": nodes[0], "second": split(direction, nodes[1:]), "splitPercentage": part}
