"""Messages of arms: joints and gripper in one JointState, poses of tool and objects, arrays for forward controllers."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from geometry_msgs.msg import PoseStamped
from scipy.spatial.transform import Rotation

from robo_rl.contract import ContractError, Robot
from robo_rl.controllers.arm.chain import orientation_at_home
from robo_rl.ros.message_encoding import compose
from robo_rl.ros.reading import MessageError, read
from robo_rl.ros.wiring import WiringError, command_wires, signal_wires
from robo_rl.ros.writing import write
from robo_rl.sim.robots.arm import load_arm
from robo_rl.sim.tasks.arm.place import Place
from robo_rl.sim.tasks.arm.reach import Reach
from robo_rl.sim.tasks.loading import load_task
from tests.sim.robots.sliding import sliding_arm


def test_every_signal_of_an_arm_comes_with_a_stamp() -> None:
    panda = {w.name: str(w) for w in signal_wires(load_task("arm-place").spec.signals)}
    assert panda == {
        "tool_position": "tool/pose geometry_msgs/msg/PoseStamped position",
        "tool_linear_velocity": "tool/twist geometry_msgs/msg/TwistStamped linear",
        "gripper_position": "joint_states sensor_msgs/msg/JointState position",
        "cube_position": "cube/pose geometry_msgs/msg/PoseStamped position",
        "cube_position_setpoint": "setpoint/cube geometry_msgs/msg/PoseStamped position",
    }
    so101 = {w.name: w.topic for w in signal_wires(Place(load_arm("so101")).spec.signals)}
    assert {so101[name] for name in ("joint_position", "joint_velocity", "gripper_position")} == {"joint_states"}


@pytest.mark.parametrize(
    ("message", "base", "arm"),
    [("", "TwistStamped", "JointState"), ("Twist", "Twist", "JointState"),
     ("Float64MultiArray", "TwistStamped", "Float64MultiArray")],
)  # fmt: skip
def test_an_arm_on_a_mobile_base_has_one_twist_for_the_base_and_a_message_of_its_own_for_the_arm(
    message: str, base: str, arm: str
) -> None:
    spec = load_task("mobile-place").spec
    wires = {w.name: (w.topic, w.kind.rpartition("/")[2]) for w in command_wires(spec.commands, message)}
    assert wires["forward_speed"] == wires["turn_rate"] == ("cmd_vel", base)
    assert wires["joint_position_target"] == ("command/joint_position_target", arm)
    sources = {w.name: w.topic for w in signal_wires(spec.signals)}
    assert sources["position"] == sources["orientation"] == "odom"
    assert (sources["cube_position"], sources["cube_position_setpoint"]) == ("cube/pose", "setpoint/cube")


def test_joints_and_gripper_are_one_message_as_of_joint_state_broadcaster() -> None:
    task = Place(load_arm("so101"))
    signals = {s.name: s for s in task.spec.signals}
    wires = [w for w in signal_wires(task.spec.signals) if w.topic == "joint_states"]
    values = {w.name: np.arange(1.0, 1.0 + signals[w.name].size, dtype=np.float32) / 10 for w in wires}
    message = compose(wires, signals, values, 10**9)
    assert list(message.name) == [*task.card.joint_names, "gripper"]
    assert math.isnan(message.velocity[-1])  # nobody measures the jaw's speed
    for wire in wires:
        np.testing.assert_array_equal(read(wire.kind, wire.field, message, signals[wire.name]), values[wire.name])


@pytest.mark.parametrize("message", ["", "Float64MultiArray", "JointState"])
def test_a_place_of_the_tool_is_a_pose_that_is_turned_as_in_training(message: str) -> None:
    card = load_arm("panda")
    tool, gripper = Place(card).spec.commands
    wire, jaw = command_wires([tool, gripper], message)
    assert (wire.topic, wire.kind) == ("command/tool_position_target", "geometry_msgs/msg/PoseStamped")
    assert jaw.kind.endswith(message or "JointState")
    sent = write(wire, tool, [0.4, 0.1, 0.2], 2 * 10**9, turned=orientation_at_home(card.facts()))
    assert (sent.pose.position.x, sent.pose.position.z, sent.header.frame_id) == (0.4, 0.2, "base_link")
    q = sent.pose.orientation
    axes = Rotation.from_quat([q.x, q.y, q.z, q.w]).as_matrix().T
    home = card.chain.pose([float(angle) for angle in card.home])
    np.testing.assert_allclose(axes, [home.x, home.y, home.z], atol=1e-9)
    np.testing.assert_allclose(axes[2], [0.0, 0.0, -1.0], atol=1e-6)  # the gripper points down


def test_joint_targets_are_an_array_for_forward_command_controller_in_the_order_of_the_card() -> None:
    card = load_arm("so101")
    joints, gripper = Place(card).spec.commands
    arm, jaw = command_wires([joints, gripper], "Float64MultiArray")
    assert (arm.topic, jaw.topic) == ("command/joint_position_target", "command/gripper_position_target")
    angles = np.linspace(-0.4, 0.4, 5)
    assert list(write(arm, joints, angles, 0).data) == pytest.approx(angles.tolist())
    assert joints.elements == card.joint_names
    with pytest.raises(WiringError, match="a pose holds"):
        command_wires([joints], "PoseStamped")


@pytest.mark.parametrize("frame", ["map", "odom", "camera_color_optical_frame", "camera_link"])
def test_a_pose_in_the_frame_of_a_camera_or_a_map_is_refused(frame: str) -> None:
    cube = next(s for s in load_task("arm-place").spec.signals if s.name == "cube_position")
    message = PoseStamped()
    message.header.frame_id = frame
    with pytest.raises(MessageError, match=f"frame_id is '{frame}'"):
        read("geometry_msgs/msg/PoseStamped", "position", message, cube)
    for own in ("", "base_link", "fr3_link0", "world"):
        message.header.frame_id = own
        assert read("geometry_msgs/msg/PoseStamped", "position", message, cube).shape == (3,)


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"chain": 3, "tool": {}, "home": []},
        {"chain": [], "tool": {"position": [0, 0, 0], "orientation": [0, 0, 0, 2]}, "home": []},
        {"chain": [], "tool": {"position": [0, 0, 0], "orientation": [0, 0, 0]}, "home": []},
        {"chain": [], "tool": {"position": [0, 0, 0], "orientation": [0, 0, 0, float("nan")]}, "home": []},
        {"chain": [], "tool": {"position": [0, 0, 0], "orientation": [0, 0, 0, 1]}, "home": [1.0]},
    ],
)
def test_facts_that_are_not_those_of_an_arm_are_refused(facts: dict) -> None:
    known = load_arm("panda").facts()
    with pytest.raises(ContractError, match="robot: facts"):
        orientation_at_home(Robot("strange", "arm", known.actuators, facts))


def test_joints_that_slide_are_joints_though_they_are_named_like_places(tmp_path: Path) -> None:
    """A gantry's x, y and z are no pose of anything."""
    spec = Reach(load_arm(str(sliding_arm("gantry", tmp_path)))).spec
    signals = {wire.name: str(wire) for wire in signal_wires(spec.signals)}
    assert signals["slide_position"] == "joint_states sensor_msgs/msg/JointState position"
    assert signals["slide_velocity"] == "joint_states sensor_msgs/msg/JointState velocity"
    commands = {wire.name: str(wire) for wire in command_wires(spec.commands)}
    assert commands == {"slide_position_target": "command/slide_position_target sensor_msgs/msg/JointState position"}
