"""The doctor and the stand-in robot as processes: well at first, then with faults."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

pytestmark = pytest.mark.slow


def doctor(flight, bundle: Path, *arguments: str) -> dict:
    command = [sys.executable, "-m", "robo_rl", "doctor", str(bundle), "--json", *arguments]
    path = os.environ.get("PYTHONPATH", "")
    environment = {**os.environ, "ROS_DOMAIN_ID": flight.domain, "PYTHONPATH": f"{flight.package}:{path}"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    ended = flight.operator.wait(lambda: process.poll() is not None, 300.0)
    out, err = process.communicate() if ended else ("", "it does not come to an end")
    process.kill()
    assert process.wait() in (0, 1), err
    return json.loads(out.splitlines()[-1])


def test_a_stand_in_robot_is_well_and_its_faults_are_found(flight, make_variant):
    from std_srvs.srv import Trigger

    bundle = make_variant(signal_timeout=0.1)
    flight.start("twin", "--real-time", "--parameter", "timeout:=0.1")
    flight.until(lambda: flight.truth, "the twin")
    still = doctor(flight, bundle)
    assert {f["subject"] for f in still["findings"]} >= {"position", "orientation", "angular_velocity"}
    flight.operator.call(Trigger, "/twin/handle", Trigger.Request())
    hand = flight.operator.node.create_client(Trigger, "/twin/handle")
    going_on = flight.operator.node.create_timer(5.0, lambda: hand.call_async(Trigger.Request()))
    moved = doctor(flight, bundle, "--seconds", "1", "--motion", "12")
    flight.operator.node.destroy_timer(going_on)
    agreeing = [f for f in moved["findings"] if f["good"] and "agrees" in f["sentence"]]
    assert {f["subject"] for f in agreeing} == {"angular_velocity", "linear_velocity"}, moved
    flight.operator.fault("drop imu")
    found = doctor(flight, bundle, "--seconds", "1")
    assert not found["healthy"]
    assert any(f["subject"] == "angular_velocity" and "no message arrived" in f["sentence"] for f in found["findings"])
