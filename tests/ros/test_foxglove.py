"""Every path of a Foxglove layout leads to the number that its label names: in a log, by mcap's own decoder, and in the
messages that the node and its robot send.
"""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory

from robo_rl.cli import main
from robo_rl.contract import Contract
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.logs.logfile import GATE_FIELDS, LogWriter, StepRecord
from robo_rl.ros.foxglove import layout, paths
from robo_rl.ros.wiring import command_wires, signal_wires

ZOO = ("quadrotor-hover", "go2-flat", "car-race", "arm-place-so101")


@functools.cache
def contract_of(name: str) -> Contract:
    return Bundle.read(f"zoo:{name}").contract


def resolve(message: Any, path: str) -> float:
    """What a path without its topic leads to."""
    for name, index in re.findall(r"(\w+)(?:\[(\d+)\])?", path):
        message = getattr(message, name)
        message = message[int(index)] if index else message
    return float(message)


def lines(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Panel, path and label of everything that is plotted."""
    return [
        (panel, line["value"], line["label"])
        for panel, config in found["configById"].items()
        for line in config.get("paths", [])
    ]


def named(found: Any) -> list[str]:
    """The panels that a layout's tree names, those within tabs too."""
    if isinstance(found, str):
        return [found]
    return [*named(found["first"]), *named(found["second"])]


@pytest.mark.parametrize("name", ZOO)
def test_in_a_log_every_path_leads_to_what_its_label_names(name: str, tmp_path: Path) -> None:
    contract = contract_of(name)
    sizes = [sum(channel.size for channel in channels) for channels in (contract.signals, contract.commands)]
    signals, sent = np.arange(sizes[0], dtype=np.float32), 1000 + np.arange(sizes[1], dtype=np.float32)
    gate = {field: 5000.0 + i for i, field in enumerate(GATE_FIELDS)}
    path = tmp_path / "session.mcap"
    writer = LogWriter(path, contract, {"wall": "0"})
    stamps = (0,) * len(contract.signals)
    writer.write(StepRecord(0, 0, signals, stamps, np.zeros(0), sent + 1000, sent, None, sent, gate))
    writer.close()
    with path.open("rb") as file:
        decoded = make_reader(file, decoder_factories=[DecoderFactory()]).iter_decoded_messages()
        messages = {channel.topic: message for _, channel, _, message in decoded}

    by_label = {}
    for what, channels, values in (("", contract.signals, signals), (" sent", contract.commands, sent)):
        labels = [f"{channel.name}/{label}" for channel in channels for label in channel.labels]
        by_label |= {f"{label}{what}": value for label, value in zip(labels, values, strict=True)}
    by_label |= {
        label.replace(" sent", " proposed"): value + 1000 for label, value in by_label.items() if " sent" in label
    }
    by_label |= {f"gate/{field}": gate[field] for field in GATE_FIELDS}

    found = layout(contract)
    plotted = [line for line in lines(found) if line[0].startswith("Plot!session/")]
    for panel, whole, label in plotted:
        topic, _, rest = whole.partition(".")
        assert resolve(messages[topic], rest) == by_label[f"{panel.removeprefix('Plot!session/')}/{label}"], whole
    flat = sum(signal.size for signal in contract.signals if signal.shape is None)
    assert len(plotted) == flat + 2 * sizes[1] + 3
    topics = set(messages)
    for panel, config in found["configById"].items():
        if "!session" in panel:
            shown = [config.get("topicPath"), config.get("imageMode", {}).get("imageTopic"), *config.get("topics", {})]
            assert {one for one in shown if one} <= topics | {"/policy/decisions"}


@pytest.mark.parametrize("name", ZOO)
def test_live_every_path_leads_to_what_its_label_names(name: str) -> None:
    pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")
    from robo_rl.ros.message_encoding import compose
    from robo_rl.ros.writing import write

    contract = contract_of(name)
    signals = {signal.name: signal for signal in contract.signals}
    wires = [wire for wire in signal_wires(contract.signals) if signals[wire.name].shape is None]
    values = {w.name: 0.1 * (1 + np.arange(signals[w.name].size, dtype=np.float32)) for w in wires}
    for wire in wires:
        signal = signals[wire.name]
        if signal.name == "orientation":
            values[wire.name] = np.array([0.0, 0.0, 0.0, 1.0], np.float32)  # velocities are not turned then
        given = {**values, "orientation": np.array([0.0, 0.0, 0.0, 1.0], np.float32)}
        message = compose([wire], signals, given, 0)
        for (path, _), value in zip(paths(wire, signal, "/left/"), values[wire.name], strict=False):
            topic = f"/left/{wire.topic}"
            assert path.startswith(f"{topic}.")
            assert resolve(message, path.removeprefix(f"{topic}.").replace("[:]", "[0]")) == pytest.approx(value)
    for wire, command in zip(command_wires(contract.commands), contract.commands, strict=True):
        sent = 1.0 + np.arange(command.size)
        message = write(wire, command, sent, 0)
        for (path, label), value, element in zip(paths(wire, command, "/"), sent, command.elements, strict=True):
            assert resolve(message, path.removeprefix(f"/{wire.topic}.")) == value
            assert label == element


@pytest.mark.parametrize("name", ZOO)
def test_every_panel_is_shown_once(name: str) -> None:
    found = layout(contract_of(name), "left")
    tabs = found["configById"][found["layout"]]["tabs"]
    shown = [panel for tab in tabs for panel in named(tab["layout"])]
    assert len(set(shown)) == len(shown)
    assert {*shown, found["layout"]} == set(found["configById"])


def test_the_command_prints_it_without_ros(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["ros", "layout", "zoo:go2-flat", "--namespace", "/left/"])
    assert ended.value.code == 0
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads(json.dumps(layout(contract_of("go2-flat"), "left")))
    assert found["configById"]["RawMessages!robot/gate"]["topicPath"] == "/left/policy/gate_status"
