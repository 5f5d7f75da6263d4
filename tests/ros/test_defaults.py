"""What is started without a word about it sends no commands."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl.ros.parameters import FIXED

CONFIG = Path(__file__).parents[2] / "ros2_ws/src/robo_rl_bringup/config/policy.yaml"


def test_a_node_that_is_launched_for_a_robot_begins_with_a_dry_run() -> None:
    given = yaml.safe_load(CONFIG.read_text())["/**"]["ros__parameters"]
    assert given["mode"] == FIXED["mode"][0] == "dry_run"
