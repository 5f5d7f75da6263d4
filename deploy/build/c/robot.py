"""Write what a program on a robot needs of a bundle beside its policy: gate, held signals, and the contract as data.

    made = generate(bundle, "folder")
    sources = made.sources + write_robot(made)

``robot.h`` describes it. A library of ``robo-rl export --native`` has it, and the C++ core of ``robo_rl_controller``
loads that.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from string import Template

import numpy as np

from robo_rl.contract import Command, Contract, Scan, Signal
from robo_rl.controllers.gate.held import may_wait
from robo_rl.deploy.build.c.gate_header import gate_header
from robo_rl.deploy.build.c.generate import HERE, Generated
from robo_rl.deploy.build.c.held_header import held_table
from robo_rl.deploy.robot.orientation_monitor import ROOM, OrientationMonitor
from robo_rl.files.escaping import c_string

COPIED = ("gate.h", "gate.c", "held.h", "held.c", "robot.h")
LINE = 80
"""Characters of the contract in a line of C."""


def write_robot(made: Generated) -> list[Path]:
    """Write the sources into the folder of a policy; the files to compile beside its own.

    ContractError for a contract that the gate can't watch.
    """
    texts = {"gate_config.h": gate_header(made.contract), "held_config.h": held_table(made.contract)}
    template = Template((HERE / "templates" / "robot.c").read_text())
    texts["robot.c"] = template.substitute(_texts(made.contract, made.name))
    for name in COPIED:
        shutil.copyfile(HERE / name, made.folder / name)
    for name, text in texts.items():
        (made.folder / name).write_text(text)
    return [made.folder / name for name in ("gate.c", "held.c", "robot.c")]


def _texts(contract: Contract, name: str) -> dict[str, str]:
    monitor, waits, text = OrientationMonitor(contract), may_wait(contract), contract.to_json()
    attitudes = [_attitude(contract.signals.index(signal), signal) for signal in monitor.watched]
    table = ["", "static const robot_attitude ATTITUDES[] = {", *attitudes, "};", ""] if attitudes else [""]
    return {
        "name": name,
        "guard": name.upper(),
        "elements": "\n".join(_tables("SIGNAL", contract.signals) + _tables("COMMAND", contract.commands)),
        "signals": _channels("SIGNAL", contract.signals, waits),
        "commands": _channels("COMMAND", contract.commands, frozenset()),
        "attitudes": "\n".join(table),
        "attitude_table": "ATTITUDES" if attitudes else "NULL",
        "attitude_count": str(len(attitudes)),
        "contract": "\n        ".join(c_string(text[i : i + LINE]) for i in range(0, len(text), LINE)),
        "task": c_string(contract.task),
        "robot": c_string(contract.robot_name),
        "period": _double(contract.control_period),
        "fastest": _double(monitor.fastest),
        "radius": _double(contract.robot.facts.get("radius", 0.0)),
    }


def _channels(prefix: str, channels: Sequence[Signal | Command], waits: frozenset[str]) -> str:
    rows, offset = [], 0
    for i, channel in enumerate(channels):
        shape, period = getattr(channel, "shape", None) or (), getattr(channel, "period", None) or 0.0
        told = {
            "name": c_string(channel.name),
            "elements": f"{prefix}_{i}" if channel.elements else "NULL",
            "unit": c_string(channel.unit),
            "frame": c_string(channel.frame),
            "source": c_string(getattr(channel, "source", "")),
            "scan": f"&{prefix}_{i}_SCAN" if _is_scan(channel) else "NULL",
            "shape": f"{prefix}_{i}_SHAPE" if shape else "NULL",
            "rank": len(shape),
            "period": round(1e6 * period),
            "offset": offset,
            "size": channel.size,
            "computed": int(getattr(channel, "source", "") == "runtime"),
            "waits": int(channel.name in waits),
        }
        rows.append(f"    {{{', '.join(f'.{name} = {value}' for name, value in told.items())}}},")
        offset += channel.size
    return "\n".join(rows)


def _is_scan(channel: Signal | Command) -> bool:
    return isinstance(getattr(channel, "layout", None), Scan)


def _tables(prefix: str, channels: Sequence[Signal | Command]) -> list[str]:
    """Names of elements, beams and shapes, for the channels that have them."""
    rows = []
    for i, channel in enumerate(channels):
        if channel.elements:
            names = ", ".join(map(c_string, channel.labels))
            rows.append(f"static const char *const {prefix}_{i}[] = {{{names}}};")
        if isinstance(layout := getattr(channel, "layout", None), Scan):
            beams = (layout.angle_min, layout.angle_increment, layout.range_min, layout.range_max)
            rows.append(f"static const robot_scan {prefix}_{i}_SCAN = {{{', '.join(map(_double, beams))}}};")
        if shape := getattr(channel, "shape", None):
            rows.append(f"static const uint16_t {prefix}_{i}_SHAPE[] = {{{', '.join(map(str, shape))}}};")
    return rows


def _attitude(index: int, signal: Signal) -> str:
    """With the range that ``OrientationMonitor`` compares with."""
    if signal.seen_low is None or signal.seen_high is None:
        return f"    {{.signal = {index}, .seen = 0}},"
    low, high = np.array(signal.seen_low) - ROOM, np.array(signal.seen_high) + ROOM
    values = {"low": ", ".join(map(_double, low)), "high": ", ".join(map(_double, high))}
    return f"    {{.signal = {index}, .seen = 1, .seen_low = {{{values['low']}}}, .seen_high = {{{values['high']}}}}},"


def _double(value: float) -> str:
    return float(value).hex() if np.isfinite(value) else "INFINITY"
