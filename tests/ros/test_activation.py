"""A node with the parameter ``activate`` arms by itself once its robot's signals are there, and not otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

pytestmark = pytest.mark.slow


def configured(flight, bundle: Path, timeout: float, *arguments: str) -> None:
    """Start a policy's node that activates itself within ``timeout`` s of its configuration."""
    parameters = "--parameter", "activate:=true", f"activate_timeout:={timeout}"
    flight.start("policy", str(bundle), *arguments, *parameters)
    flight.operator.do("configure")


def test_a_node_that_activates_itself_waits_for_a_robot_that_starts_later(flight, bundle_file: Path):
    configured(flight, bundle_file, 600.0, "--use-sim-time")
    flight.start("twin", "--use-sim-time")
    flight.until(lambda: flight.state == "READY", "the armed gate")
    assert "policy is active" in flight.operator.status()


def test_a_node_that_waited_in_vain_names_every_signal_that_is_missing(flight, bundle_file: Path, fault_table):
    configured(flight, bundle_file, 0.2)
    flight.until(lambda: flight.operator.refusal, "the refusal")
    sentence = flight.operator.refusal
    for missing in ("odom (for 'position', 'orientation', 'linear_velocity')", "imu (for 'angular_velocity')"):
        assert missing in sentence
    assert "setpoint/pose (for 'position_setpoint')" in sentence
    assert "0.2 s after configure" in sentence
    assert "policy is inactive" in flight.operator.status()
    fault_table.add("no robot, `activate:=true`", None, "not armed", "refused", sentence)


def test_a_stop_while_the_node_waits_keeps_it_from_arming(flight, bundle_file: Path):
    configured(flight, bundle_file, 600.0)
    flight.operator.do("stop")
    flight.start("twin", "--real-time")
    flight.until(lambda: flight.operator.refusal, "the refusal")
    assert "the operator asked to stop" in flight.operator.refusal
    assert flight.state == "FAULT"
