"""``ros2 launch`` of the launch files: against the twin to flight, and to a fault that stays; and for driven robots."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from robo_rl.deploy.robot.bundle import Bundle

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")
MISSING = "ROS's launch system is missing: it comes with ROS 2, or as wheels in a folder: make test ROS_WHEELS=FOLDER"
pytest.importorskip("ros2launch", reason=MISSING)

pytestmark = pytest.mark.slow
SOURCES = Path(__file__).parents[2] / "ros2_ws/src"
PATIENT = "sigterm_timeout:=600"
"""Launch kills no node that takes longer to end on a busy computer."""
ROS2 = (sys.executable, "-c", "from ros2cli.cli import main; raise SystemExit(main())")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a shell has in its environment once the workspace is built and sourced."""
    folder = tmp_path_factory.mktemp("workspace")
    for name in ("robo_rl_ros", "robo_rl_bringup", "robo_rl_description"):
        shutil.copytree(SOURCES / name, folder / "src" / name)
        into = ("--prefix", str(folder), "--single-version-externally-managed", "--record", str(folder / "record"))
        install = [sys.executable, "setup.py", "install", *into]  # as colcon does
        subprocess.run(install, cwd=folder / "src" / name, check=True, capture_output=True)
    packages = sysconfig.get_path("purelib", vars={"base": str(folder)})
    return {
        "AMENT_PREFIX_PATH": os.pathsep.join([str(folder), os.environ.get("AMENT_PREFIX_PATH", "")]),
        "PYTHONPATH": os.pathsep.join([packages, os.environ.get("PYTHONPATH", "")]),
        "ROS_LOG_DIR": str(folder / "log"),
    }


def fly_into_a_fault(flight) -> None:
    """The launch file arms the gate; the policy takes off, up to a fault that nothing but a reset ends."""
    flight.until(lambda: flight.state == "READY", "the armed gate")
    flight.operator.do("engage")
    flight.until(lambda: flight.truth and flight.truth[-1][1][2] > 0.5, "half a metre of height")
    assert flight.state == "ACTIVE"
    flight.operator.fault("nan imu")
    assert flight.fault()["reason"] == "SIGNAL_NOT_FINITE"
    flight.operator.fault("")
    with pytest.raises(ValueError, match="FAULT"):
        flight.operator.do("arm")
    flight.operator.do("reset")
    flight.until(lambda: flight.state == "IDLE", "the reset gate")


def interrupt(flight) -> list[str]:
    """Ctrl-C in the terminal of the launch file; what it says about the end of its nodes."""
    launch = flight.processes["launch"]
    os.killpg(launch.pid, signal.SIGINT)
    assert launch.wait(timeout=120) == 0
    return re.findall(r"\[(\w+_node)-\d\]: (process has .*) \[", flight.log("launch"))


def test_launched_together_policy_and_twin_fly_and_a_fault_stays(flight, workspace, bundle_file: Path):
    arguments = f"policy:={bundle_file}", "robot:=crazyflie", "use_sim_time:=true", "activate:=true", PATIENT
    flight.run("launch", [*ROS2, "launch", "robo_rl_bringup", "twin.launch.py", *arguments], workspace)
    fly_into_a_fault(flight)
    ended = interrupt(flight)
    assert sorted(ended) == [(name, "process has finished cleanly") for name in ("policy_node", "twin_node")]


def test_a_launched_policy_waits_for_a_robot_that_starts_later_and_flies_it(flight, workspace, bundle_file: Path):
    arguments = f"policy:={bundle_file}", "use_sim_time:=true", "activate:=true", "activate_timeout:=600", PATIENT
    arguments = *arguments, "mode:=live"
    flight.run("launch", [*ROS2, "launch", "robo_rl_bringup", "policy.launch.py", *arguments], workspace)
    flight.until(lambda: "digest" in flight.log("launch"), "the configured node")
    flight.start("twin", "--use-sim-time")
    fly_into_a_fault(flight)
    assert interrupt(flight) == [("policy_node", "process has finished cleanly")]


def test_launched_for_a_robot_the_node_asks_the_robots_own_driver(flight, workspace, tmp_path: Path):
    bundle, port = Bundle.read("zoo:arm-place-so101").path, tmp_path / "no-such-port"
    arguments = f"policy:={bundle}", "robot:=so101", f"port:={port}", "namespace:=left", PATIENT
    flight.run("launch", [*ROS2, "launch", "robo_rl_bringup", "robot.launch.py", *arguments], workspace)
    flight.until(lambda: "give LeRobot's calibration" in flight.log("launch"), "the driver's refusal")
    assert "robot_state_publisher" in flight.log("launch")
    assert interrupt(flight) == [("policy_node", "process has finished cleanly")]


def test_a_robot_without_a_model_is_refused_with_those_that_have_one(flight, workspace):
    command = [*ROS2, "launch", "robo_rl_bringup", "robot.launch.py", "policy:=policy.onnx", "robot:=go3"]
    flight.run("launch", command, workspace)
    assert flight.processes["launch"].wait(timeout=120) == 1
    assert "expected one of a1, " in flight.log("launch")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["following:=joint_position_target=forward_position_controller"], ""),
        (["following:=forward_position_controller"], "expected 'name=…', each name once"),
        ([], "following is {}, holding is ['joint_trajectory_controller']; expected controllers"),
    ],
)
def test_a_policy_launched_beside_controllers_ends_where_these_can_not_be_switched(flight, workspace, given, said):
    """Without a controller manager, or its messages: nothing watches, so nothing may run."""
    bundle = Bundle.read("zoo:arm-place-so101").path
    command = [*ROS2, "launch", "robo_rl_bringup", "ros2_control.launch.py", f"policy:={bundle}", *given, PATIENT]
    flight.run("launch", command, workspace)
    flight.processes["launch"].wait(timeout=300)
    assert said in flight.log("launch")
    assert "[controllers_node-2]: process has died" in flight.log("launch")
