"""robo_rl_msgs: built by rosidl's wheels, and the same as the gate's codes and the JSON that it takes the place of."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl.controllers.gate.codes import Source, State
from robo_rl.ros import interfaces, quality
from robo_rl.ros.interfaces import InterfaceError, build, build_all, definitions, folder

PACKAGE = Path(__file__).parents[2] / "ros2_ws/src/robo_rl_msgs"


def test_the_packages_files_are_those_that_cmake_generates() -> None:
    listed = re.findall(r'"((?:msg|srv)/\w+\.\w+)"', (PACKAGE / "CMakeLists.txt").read_text())
    assert sorted(listed) == sorted(definitions("robo_rl_msgs"))
    manifest = ET.parse(PACKAGE / "package.xml").getroot()
    assert manifest.findtext("export/build_type") == "ament_cmake"
    assert manifest.findtext("member_of_group") == "rosidl_interface_packages"


def test_constants_are_the_gates_codes(messages: dict[str, str]) -> None:
    from robo_rl_msgs.msg import GateStatus

    for codes in (State, Source):
        for code in codes:
            assert getattr(GateStatus, code.name) == code


def test_a_process_that_was_led_to_what_was_built_finds_its_libraries(messages: dict[str, str], tmp_path: Path) -> None:
    """By PYTHONPATH, as a process that imports the package gives it to those that it starts."""
    text = """
import ctypes
from robo_rl.ros.interfaces import importable
assert importable("robo_rl_msgs")
ctypes.CDLL("librobo_rl_msgs__rosidl_typesupport_fastrtps_c.so")
"""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", messages["XDG_CACHE_HOME"])
        built = folder("robo_rl_msgs", definitions("robo_rl_msgs"))
    own = {**os.environ, "PYTHONPATH": str(built), "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-P", "-c", text], env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_was_built_is_not_built_again(messages: dict[str, str]) -> None:
    assert build_all() == []


def test_messages_survive_their_bytes(messages: dict[str, str]) -> None:
    from rclpy.serialization import deserialize_message, serialize_message
    from robo_rl_msgs.msg import Channel, Contract, Decision, GateStatus, PolicyStatus

    given = [
        GateStatus(time=1.5, state=3, sentence="signal 'x': ü", authority=0.25),
        Contract(digest="0" * 64, signals=[Channel(name="x", elements=["a"], shape=[2, 3], lower=[-1.0])]),
        Decision(command=[1.0, 2.0], proposal=[], rate_limited=True),
        PolicyStatus(policies=["a", "b"], steps=2**40, complaints=["…"]),
    ]
    for message in given:
        assert deserialize_message(serialize_message(message), type(message)) == message


def test_a_node_tells_by_messages_what_its_json_tells(messages: dict[str, str], flight, bundle_file: Path) -> None:
    from robo_rl_msgs.msg import Contract, Decision, GateStatus, PolicyStatus
    from robo_rl_msgs.srv import InjectFault, SelectPolicy

    flight.start("twin", "--use-sim-time", env=messages)
    flight.start("policy", str(bundle_file), "--use-sim-time", env=messages)
    node, heard = flight.operator.node, {"gate_status": [], "policy_contract": [], "decision": [], "status": []}
    for kind, name, profile in (
        (GateStatus, "gate_status", quality.LATCHED), (Contract, "policy_contract", quality.LATCHED),
        (Decision, "decision", quality.SENSOR), (PolicyStatus, "status", quality.LATCHED),
    ):  # fmt: skip
        node.create_subscription(kind, f"/policy/{name}", heard[name].append, profile)
    flight.fly(0.5)
    flight.until(lambda: heard["decision"], "decisions")
    # latched: the first status that is heard may be from before the first step
    flight.until(lambda: heard["status"] and heard["status"][-1].steps > 0, "the status of a policy that runs")
    flight.until(
        lambda: heard["gate_status"] and heard["gate_status"][-1].state == GateStatus.ACTIVE, "the gate's status"
    )
    told, text = heard["gate_status"][-1], flight.gates[-1]
    assert (told.state, told.source, told.time) == (State[text["state"]], Source[text["source"]], text["time"])
    assert (told.mode, told.policy, told.reason_name) == (text["mode"], text["policy"], text["reason"])
    contract = heard["policy_contract"][-1]
    whole = json.loads(contract.json)
    assert [channel.name for channel in contract.signals] == [signal["name"] for signal in whole["signals"]]
    assert {c.name: c.topic for c in contract.signals}["position"] == "odom"
    assert contract.commands[0].topic.startswith("command/")
    assert len(heard["decision"][-1].command) == len(contract.commands[0].elements)
    answer = flight.operator.call(SelectPolicy, "/policy/select_policy", SelectPolicy.Request(name="another"))
    assert not answer.success
    assert "'another' is not one of the policies" in answer.message
    answer = flight.operator.call(InjectFault, "/twin/inject_fault", InjectFault.Request(fault="nan imu"))
    assert answer.success, answer.message
    flight.until(lambda: heard["gate_status"][-1].state == GateStatus.FAULT, "the fault")
    assert heard["gate_status"][-1].reason_name == "SIGNAL_NOT_FINITE"
    assert "angular_velocity" in heard["gate_status"][-1].sentence
    flight.until(lambda: flight.operator.gate.get("state") == "FAULT", "the operator's view")
    assert flight.operator.call(InjectFault, "/twin/inject_fault", InjectFault.Request(fault="none")).success


def test_what_is_missing_for_building_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = {"msg/One.msg": "int32 number\n"}
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InterfaceError, match="gcc and g\\+\\+ are missing"):
        build("one_msgs", given, folder("one_msgs", given))
    assert not list(tmp_path.rglob("*.so"))
    monkeypatch.setattr(interfaces, "SOURCES", tmp_path)
    with pytest.raises(InterfaceError, match="no messages of 'robo_rl_msgs'"):
        definitions("robo_rl_msgs")
