"""Nodes that tests start by a fork are like those that a user starts."""

from __future__ import annotations

import os
import subprocess

import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

import prepared

pytestmark = pytest.mark.skipif(not prepared.POSSIBLE, reason="this system has no files for a process's end")


@pytest.mark.parametrize("as_users", [False, True])
def test_a_refusal_ends_with_1_and_its_sentence(flight, as_users: bool) -> None:
    flight.as_users = as_users
    flight.start("policy", "/nowhere.onnx", env={"ROS_NAMESPACE": "/a"})
    assert flight.processes["policy"].wait(timeout=90) == 1
    assert flight.log("policy").startswith("robo-rl ros: /nowhere.onnx: there is no such file")


def test_a_node_leads_its_own_session_answers_signals_and_tells_how_it_ended(flight) -> None:
    flight.start("panel", "--port", "0")
    panel = flight.processes["panel"]
    flight.until(lambda: "the panel is at" in flight.log("panel") or panel.poll() is not None, "the panel")
    with pytest.raises(subprocess.TimeoutExpired):
        panel.wait(timeout=0.01)
    assert os.getsid(panel.pid) == panel.pid
    panel.terminate()
    assert panel.wait(timeout=60) == 0
    flight.start("panel", "--port", "0")
    flight.processes["panel"].kill()
    assert flight.processes["panel"].wait(timeout=60) == -9
