"""The node in C++ flies the stand-in robot in place of the Python node, and stops it at every fault of the table."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from std_msgs.msg import Empty

from robo_rl.contract import Contract as RobotContract
from robo_rl.controllers.gate.codes import Source, State
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.ros import native_node, quality
from robo_rl.ros.interfaces import importable
from robo_rl.ros.native_node import build_node, compile_bundle, parameter_file
from tests.ros.fault_rows import BASE, CAR, QUADROTOR
from tests.ros.test_faults import DEADLINE, inject, time_to_safe

pytestmark = pytest.mark.slow
TIMEOUT, SLACK = 0.1, 0.05
"""s: as in test_process_faults.py."""
USUAL = ("drop *", "freeze odom:twist.twist.linear", "garbage odom")
"""Faults that are tried every time: silence, a value that the node itself turns, bytes that are no message."""


def rows() -> list:
    release = pytest.mark.release
    return [
        pytest.param(*row, id=row[0].replace("*", "all"), marks=() if row[0] in USUAL else (release,))
        for row in QUADROTOR
    ]


@pytest.fixture(scope="session")
def built(interfaces: str) -> Iterator[dict[str, str]]:
    """The program, compiled once with robo_rl_msgs; what processes need in their environment to find them."""
    if shutil.which("g++") is None:
        pytest.skip("there is no g++; install it with: apt-get install g++")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", interfaces)
        assert importable("robo_rl_msgs")
        build_node()
        yield {"XDG_CACHE_HOME": interfaces}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, bundle_file: Path, make_flight, built) -> Iterator:
    """The node and the twin in simulated time; the last test that has it ends the node."""
    with make_flight(tmp_path_factory.mktemp("logs")) as flight:
        flight.start("twin", "--use-sim-time")
        flight.start("native", str(bundle_file), "--use-sim-time", env=built)
        flight.fly(until=6.0)
        yield flight


def test_the_policy_takes_off_and_hovers_where_the_operator_wants(pair):
    end = np.array([p for t, p in pair.truth if t > pair.truth[-1][0] - 1])
    assert pair.state == "ACTIVE"
    assert np.linalg.norm(end - [0, 0, 1], axis=1).mean() < 0.1


def test_messages_tell_what_the_json_tells(pair):
    from robo_rl_msgs.msg import Contract, Decision, GateStatus, PolicyStatus
    from robo_rl_msgs.srv import SelectPolicy

    node, heard = pair.operator.node, {"gate_status": [], "policy_contract": [], "decision": [], "status": []}
    for kind, name, profile in (
        (GateStatus, "gate_status", quality.LATCHED), (Contract, "policy_contract", quality.LATCHED),
        (Decision, "decision", quality.SENSOR), (PolicyStatus, "status", quality.LATCHED),
    ):  # fmt: skip
        node.create_subscription(kind, f"/policy/{name}", heard[name].append, profile)
    pair.until(lambda: all(heard.values()), "messages of all kinds")
    told, text = heard["gate_status"][-1], pair.gates[-1]
    assert (told.state, told.source, told.time) == (State[text["state"]], Source[text["source"]], text["time"])
    assert (told.mode, told.policy, told.reason_name) == (text["mode"], text["policy"], text["reason"])
    found = heard["policy_contract"][-1]
    contract = RobotContract.from_json(found.json, "policy_contract")
    for channel, wanted in zip([*found.signals, *found.commands], [*contract.signals, *contract.commands], strict=True):
        assert (channel.name, tuple(channel.elements)) == (wanted.name, wanted.labels)
        assert (channel.unit, channel.frame) == (wanted.unit, wanted.frame)
        assert channel.source == getattr(wanted, "source", "")
        np.testing.assert_array_equal([channel.lower, channel.upper], np.array(wanted.bounds, np.float32))
    assert {c.name: c.topic for c in found.signals}["position"] == "odom"
    assert (found.control_period, found.signal_timeout) == (contract.control_period, contract.safety.signal_timeout)
    assert found.commands[0].topic.startswith("command/")
    assert len(heard["decision"][-1].command) == len(found.commands[0].elements)
    assert (heard["status"][-1].policies, heard["status"][-1].state) == ([told.policy], State.ACTIVE)
    for name, answer in ((told.policy, "already active"), ("another", "'another' is not one of the policies")):
        done = pair.operator.call(SelectPolicy, "/policy/select_policy", SelectPolicy.Request(name=name))
        assert done.success == (name == told.policy)
        assert answer in done.message


@pytest.mark.parametrize(("fault", "reason", "name"), rows())
def test_a_fault_of_signals_ends_in_the_safe_command(pair, fault, reason, name):
    found, since = inject(pair, fault)
    assert found["reason"] == reason or not reason
    assert name in found["sentence"]
    assert found["source"] == "SAFE"  # there is no classical controller to land
    watchdog = DEADLINE if fault.startswith("huge") else 0.0
    assert found["time"] - since <= DEADLINE + watchdog + 1e-6
    assert time_to_safe(pair, since) <= DEADLINE + watchdog + 1e-6
    pair.operator.fault("")
    later = pair.truth[-1][0]
    pair.until(lambda: pair.truth[-1][0] > later + 0.1, "time to pass")
    assert pair.state == "FAULT"  # latched: good signals alone change nothing
    with pytest.raises(ValueError, match="FAULT"):
        pair.operator.do("arm")


@pytest.mark.parametrize("what", ["policy", "native"])
def test_a_node_that_activates_itself_waits_for_the_operators_heartbeat(flight, make_variant, fault_table, built, what):
    bundle = make_variant(operator_timeout=5.0)
    setpoints = "setpoints:=['position_setpoint=0 0 1','linear_velocity_setpoint=0 0 0']"
    own = "activate:=true", "activate_timeout:=600.0", setpoints
    flight.start("twin", "--use-sim-time")
    flight.start(what, str(bundle), "--use-sim-time", "--parameter", *own, env=built)
    flight.operator.do("configure")
    flight.until(lambda: flight.gates and flight.truth, "the gate and the twin")
    begun = flight.truth[-1][0]
    flight.until(lambda: flight.truth[-1][0] > begun + 2.0, "two seconds without an operator")
    assert (flight.state, flight.operator.refusal) == ("IDLE", "")
    node = flight.operator.node
    heart = node.create_publisher(Empty, "policy/heartbeat", quality.OPERATOR)
    timer = node.create_timer(0.05, lambda: heart.publish(Empty()))
    flight.until(lambda: flight.state == "READY", "the armed gate")
    node.destroy_timer(timer)
    node.destroy_publisher(heart)
    told = "arms with the operator's first heartbeat"
    fault_table.add("no heartbeat, `activate:=true`", None, "not armed", "waits", told)


def test_ending_the_process_sends_the_safe_command(pair):
    pair.take_off_again()
    pair.processes["native"].terminate()
    assert pair.processes["native"].wait(timeout=60) == 0
    pair.until(lambda: (pair.applied[-1][1] == 0).all(), "rotors that stand")


def test_what_the_node_can_not_do_is_refused(bundle_file: Path, tmp_path: Path, built):
    bundle = Bundle.read(bundle_file)
    library = compile_bundle(bundle)
    file = tmp_path / "wires.yaml"
    file.write_text(parameter_file(bundle.contract, library))

    def told(*parameters: str) -> str:
        words = [str(build_node()), "--ros-args", "--params-file", str(file)]
        words += [word for one in parameters for word in ("-p", one)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1
        return done.stderr

    assert "parameter 'record' is unknown to this node" in told("record:=logs")
    assert "parameter 'cmd_vel_timeout' has another type; expected a number" in told("cmd_vel_timeout:=often")
    assert "parameter 'cmd_vel_timeout' is inf s; expected 0 to 3600" in told("cmd_vel_timeout:=.inf")
    assert "parameter 'activate_timeout' is nan s; expected 0 to 3600" in told("activate_timeout:=.nan")


WHEELED = {"zoo:car-race": (CAR, 0.1, 0.025), "zoo:diff-nav": (BASE, 0.3 + 0.2, 0.1)}
"""Faults; s until the answer, which for the base's scan is its period longer than the time-out; s of a step."""


@pytest.fixture(scope="module", params=WHEELED)
def wheeled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, make_flight, built) -> Iterator:
    """The node and a twin on wheels, in simulated time."""
    compile_bundle(Bundle.read(request.param))  # which takes longer than anybody waits for a node
    with make_flight(tmp_path_factory.mktemp("logs")) as flight:
        flight.start("twin", request.param, "--use-sim-time")
        flight.start("native", request.param, "--use-sim-time", env=built)
        flight.fly(until=0.5)
        yield flight


@pytest.mark.release
@pytest.mark.parametrize(
    ("wheeled", "fault", "reason", "name"),
    [(bundle, *row) for bundle, (faults, *_) in WHEELED.items() for row in faults],
    indirect=["wheeled"],
)
def test_a_fault_of_signals_stops_a_robot_on_wheels(wheeled, request, fault, reason, name):
    _, deadline, period = WHEELED[request.node.callspec.params["wheeled"]]
    found, since = inject(wheeled, fault)
    later = period if reason == "SIGNAL_FROZEN" or fault.startswith("huge") else 0.0
    assert found["reason"] == reason or not reason
    assert name in found["sentence"]
    assert found["source"] == "SAFE"
    assert found["time"] - since <= deadline + later + 1e-6
    end = max(wheeled.applied[-1][0], found["time"])
    wheeled.until(lambda: wheeled.applied[-1][0] > end + 3 * period, "more commands")
    assert (wheeled.applied[-1][1] == 0).all()
    wheeled.operator.fault("")


@pytest.fixture
def live(
    tmp_path: Path, bundle_file: Path, change_safety: Callable[..., Path], make_flight, realtime, built
) -> Iterator:
    """A flight in real time."""
    if not realtime:
        pytest.skip("this computer grants no real-time priority: run as root, or grant rtprio in limits.conf")
    patient = change_safety(bundle_file, tmp_path / "patient.onnx", signal_timeout=TIMEOUT)
    with make_flight(tmp_path / "logs") as flight:
        flight.start("twin", "--real-time", "--parameter", f"timeout:={TIMEOUT}", before=realtime)
        flight.start("native", str(patient), before=realtime, env=built)
        flight.fly(until=1.0)
        if flight.state != "ACTIVE":
            flight.take_off_again()
        yield flight


@pytest.mark.release
@pytest.mark.realtime
def test_when_the_nodes_process_is_killed_the_robots_watchdog_acts(live):
    os.kill(live.processes["native"].pid, signal.SIGKILL)
    killed = time.time()
    live.until(lambda: live.status.get("watchdog"), "the watchdog")
    live.until(lambda: (live.applied[-1][1] == 0).all(), "the safe command")
    assert max(t for t, command in live.applied if (command != 0).any()) - killed < TIMEOUT + SLACK


@pytest.mark.release
@pytest.mark.realtime
def test_when_the_robot_dies_the_gate_latches(live):
    os.kill(live.processes["twin"].pid, signal.SIGKILL)
    killed = time.monotonic()
    found = live.fault()
    assert (found["reason"], found["source"]) == ("SIGNAL_STALE", "SAFE")
    assert found["time"] - killed < TIMEOUT + SLACK


@pytest.mark.release
@pytest.mark.realtime
def test_a_node_that_stalls_is_overridden_by_the_watchdog_and_latches(live):
    pid = live.processes["native"].pid
    os.kill(pid, signal.SIGSTOP)
    stopped = time.time()
    live.until(lambda: live.status.get("watchdog"), "the watchdog")
    os.kill(pid, signal.SIGCONT)
    assert live.fault()["reason"] in ("OVERRUN", "SIGNAL_STALE")
    assert max(t for t, command in live.applied if (command != 0).any()) - stopped < TIMEOUT + SLACK


@pytest.mark.release
def test_compiled_without_messages_the_node_says_so_when_it_starts(built, domain, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(native_node, "_messages", lambda: None)
    environment = {**os.environ, "ROS_DOMAIN_ID": str(domain)}
    with subprocess.Popen([str(build_node())], stderr=subprocess.PIPE, text=True, env=environment) as node:
        assert node.stderr is not None
        assert "compiled without the package robo_rl_msgs: JSON alone tells the state" in node.stderr.readline()
        node.terminate()
        assert node.wait(60) == 0


def test_the_command_prints_the_wires_of_a_bundle(bundle_file: Path):
    words = [sys.executable, "-P", "-m", "robo_rl", "ros", "wires", str(bundle_file), "--parameter"]
    words.append("wires:=['angular_velocity=joint_states sensor_msgs/msg/JointState velocity']")
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert '- "angular_velocity=joint_states sensor_msgs/msg/JointState velocity"' in printed
    assert '- "rotor_speed=command/rotor_speed sensor_msgs/msg/JointState velocity"' in printed
