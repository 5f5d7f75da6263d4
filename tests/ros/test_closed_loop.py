"""The policy flies the stand-in robot: two processes, real messages, real DDS."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl.controllers.gate.codes import State
from robo_rl.ros.twin_node import PATIENCE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, bundle_file: Path, make_flight) -> Iterator:
    """Policy and twin in simulated time; the last test that has it ends the policy."""
    with make_flight(tmp_path_factory.mktemp("logs")) as flight:
        flight.as_users = True
        flight.start("twin", "--use-sim-time")
        flight.start("policy", str(bundle_file), "--use-sim-time")
        yield flight


def test_the_policy_takes_off_and_hovers_where_the_operator_wants(pair):
    pair.fly(until=10.0)
    end = np.array([p for t, p in pair.truth if t > pair.truth[-1][0] - 2])
    assert pair.state == "ACTIVE"
    assert len(end) > 10  # of 200: a busy computer loses best-effort messages
    assert np.linalg.norm(end - [0, 0, 1], axis=1).mean() < 0.05  # simulation: a few centimetres


def test_a_process_that_stands_still_for_a_while_is_no_fault_in_simulated_time(pair):
    """Longer than the contract's signal_timeout, 20 ms, by which DDS would hold a command for void in real time."""
    for name in ("twin", "policy") * 4:
        pid, begun = pair.processes[name].pid, pair.truth[-1][0]
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.2)
        os.kill(pid, signal.SIGCONT)
        told = time.monotonic()
        pair.until(lambda begun=begun: pair.truth[-1][0] > begun + 0.2, "a flight that goes on")
        assert time.monotonic() - told < PATIENCE, "the robot waited in vain for a command"
        assert pair.state == "ACTIVE", pair.gates[-1]


def stands(pair) -> None:
    """The rotors are told to stand, and go on standing; a busy computer hears what was sent before for a while."""
    pair.until(lambda: (pair.applied[-1][1] == 0).all(), "rotors that stand")
    count = len(pair.applied)
    pair.until(lambda: len(pair.applied) > count + 5, "commands after that")
    assert all((speeds == 0).all() for _, speeds in pair.applied[count:])


def test_deactivating_sends_the_safe_command(pair):
    assert pair.applied[-1][1].min() > 500  # rad/s: the rotors carry the vehicle
    pair.operator.do("deactivate")
    pair.until(lambda: pair.state == "IDLE", "the idle gate")
    stands(pair)


def test_ending_the_process_sends_the_safe_command(pair):
    pair.operator.restart_twin()
    pair.patiently("activate")
    pair.take_off_again()
    pair.processes["policy"].terminate()
    assert pair.processes["policy"].wait(timeout=60) == 0
    stands(pair)


@pytest.mark.realtime
def test_in_real_time_the_policy_hovers_at_the_contracts_rate(
    flight, make_variant, realtime, tmp_path: Path, read_whole_log
):
    if not realtime:
        pytest.skip("this computer grants no real-time priority: run as root, or grant rtprio in limits.conf")
    patient = make_variant(signal_timeout=0.1)  # a busy computer is no fault of its own
    flight.start("twin", "--real-time", "--parameter", "timeout:=0.1", before=realtime)
    flight.start("policy", str(patient), "--record", str(tmp_path / "log"), before=realtime)
    flight.fly(until=8.0)
    assert flight.state == "ACTIVE", flight.gates
    assert np.linalg.norm(flight.truth[-1][1] - [0, 0, 1]) < 0.15
    flight.operator.do("deactivate")
    flight.operator.do("cleanup")
    (file,) = (tmp_path / "log").glob("*.mcap")
    times = [1e-6 * step.time for step in read_whole_log(file).steps if step.gate["state"] == State.ACTIVE]
    assert 400 < len([t for t in times if t > times[-1] - 5]) <= 510


BLOCKED = ("torch", "mujoco", "scipy", "matplotlib", "onnx", "gymnasium")
BLOCKER = f"""
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {BLOCKED}:
            raise ModuleNotFoundError(f"{{name}} is not on this robot", name=name)

sys.meta_path.insert(0, Blocker())
"""


def test_the_policys_node_and_its_recorder_run_where_training_is_not_installed(flight, bundle_file, tmp_path: Path):
    (tmp_path / "sitecustomize.py").write_text(BLOCKER)  # every Python process reads it when it begins
    blocked = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(flight.package), os.environ.get("PYTHONPATH", "")])}
    check = subprocess.run([sys.executable, "-c", "import torch"], env={**os.environ, **blocked}, capture_output=True)
    assert b"torch is not on this robot" in check.stderr
    pid = flight.start("policy", str(bundle_file), "--record", str(tmp_path / "log"), env=blocked)
    flight.operator.do("configure")
    flight.until(lambda: flight.gates, "the gate")
    mapped = Path(f"/proc/{pid}/maps").read_text()
    assert "onnxruntime" in mapped
    assert "torch" not in mapped
    assert "mujoco" not in mapped
    flight.operator.do("cleanup")
    assert list((tmp_path / "log").glob("*.mcap"))


def test_a_transition_that_the_state_does_not_have_does_not_end_the_node(flight, bundle_file: Path):
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState

    flight.start("policy", str(bundle_file))
    request = ChangeState.Request()
    request.transition.id = Transition.TRANSITION_DEACTIVATE
    client = flight.operator.node.create_client(ChangeState, "/policy/change_state")
    flight.until(client.service_is_ready, "the node")
    client.call_async(request)
    flight.until(lambda: "a request was refused" in flight.log("policy"), "the refusal in the log")
    assert flight.operator.do("configure") == "policy: configure done"
