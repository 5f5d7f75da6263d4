"""A robot's pose that only tf tells: its age, its leaps, and what is refused."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

import rclpy
from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from scipy.spatial.transform import Rotation

from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.ros.leaps import LeapCheck
from robo_rl.ros.reading import TF
from robo_rl.ros.signal_buffer import SignalBuffer
from robo_rl.ros.transforms import TransformTree
from robo_rl.ros.wiring import Wire, WiringError, signal_wires
from robo_rl.zoo import located

HOVER = Bundle.read(located("zoo:quadrotor-hover")).contract
GIVEN = {name: f"/tf {TF} {name} frame=map child=base_link" for name in ("position", "orientation")}
KEY = "/tf", TF
NS = 1_000_000_000


def transform(parent: str, child: str, ns: int, way: Any = (0.0, 0.0, 0.0), yaw: float = 0.0) -> TransformStamped:
    one = TransformStamped(child_frame_id=child)
    one.header.frame_id = parent
    one.header.stamp.sec, one.header.stamp.nanosec = divmod(ns, NS)
    t, q = one.transform.translation, one.transform.rotation
    t.x, t.y, t.z = map(float, way)
    q.x, q.y, q.z, q.w = Rotation.from_euler("z", yaw).as_quat()
    return one


class Robot:
    """A buffer that hears tf, with a clock of its own; ROS time is the clock plus 1000 s."""

    def __init__(self) -> None:
        wires = [wire for wire in signal_wires(HOVER.signals, GIVEN) if wire.name in GIVEN]
        self.buffer, self.now = SignalBuffer(HOVER, wires), 5_000_000
        self.tree = TransformTree(lambda: self.now * 1e-6)
        frames = self.buffer.frames
        frames.find, frames.stamp = self.tree.find, self.tree.stamp
        frames.put = lambda message: self.tree.put(message, False)

    def hears(self, *transforms: tuple[Any, ...], age: float = 0.0) -> None:
        """Transforms ``age`` s old."""
        ros = 1000 * self.now + 1000 * NS
        stamped = [transform(parent, child, ros - round(age * NS), *rest) for parent, child, *rest in transforms]
        self.buffer.put(KEY, SimpleNamespace(transforms=stamped), self.now, ros)

    def passes(self, seconds: float) -> None:
        self.now += round(1e6 * seconds)

    def sample(self, name: str = "position") -> tuple[np.ndarray, int]:
        return self.buffer.samples[name]


def test_a_pose_is_put_together_from_all_parts_of_the_way() -> None:
    robot = Robot()
    robot.hears(("map", "odom", (1.0, 0.0, 0.0), np.pi / 2), ("odom", "base_link", (2.0, 0.0, 0.5)))
    np.testing.assert_allclose(robot.sample()[0], [1.0, 2.0, 0.5], atol=1e-6)
    np.testing.assert_allclose(robot.sample("orientation")[0], [0, 0, np.sqrt(0.5), np.sqrt(0.5)], atol=1e-6)
    assert robot.sample()[1] == robot.now
    assert robot.buffer.frames.world == "map"


def test_a_pose_is_as_old_as_the_oldest_part_and_others_do_not_renew_it() -> None:
    robot = Robot()
    robot.hears(("map", "odom"), age=0.03)
    robot.hears(("odom", "base_link"))
    assert robot.sample()[1] == robot.now - 30_000
    robot.passes(0.02)
    robot.hears(("odom", "base_link", (0.01, 0.0, 0.0)))
    assert robot.sample()[1] == robot.now - 50_000, "the localization is silent"
    robot.hears(("map", "somebody_else"))
    assert robot.sample()[1] == robot.now - 50_000
    robot.hears(("map", "odom"))
    assert robot.sample()[1] == robot.now


def test_what_tf_does_not_connect_any_more_grows_old_and_is_told() -> None:
    robot = Robot()
    robot.hears(("map", "base_link"))
    before = robot.sample()[1]
    robot.passes(2.0)
    robot.hears(("odom", "base_link"))
    assert robot.sample()[1] == before
    assert any("tf does not tell where 'base_link' is in 'map'" in one for one in robot.buffer.complaints())


def test_a_pose_that_leaps_is_not_taken_until_its_signal_is_stale_for_sure() -> None:
    robot = Robot()
    timeout = HOVER.safety.signal_timeout
    robot.hears(("map", "base_link"))
    start = robot.sample()[1]
    passed = 0.0
    while passed <= 2 * timeout:
        robot.passes(0.01)
        passed += 0.01
        robot.hears(("map", "base_link", (7.0, 0.0, 0.0)))
        if passed <= 2 * timeout:
            assert robot.sample()[1] == start
            assert any("the transform jumps" in one for one in robot.buffer.complaints())
    assert robot.sample()[0][0] == 7.0, "it can be armed again"
    assert robot.now - start > 1e6 * timeout


def test_as_fast_as_the_robot_is_no_leap() -> None:
    check = LeapCheck(HOVER, HOVER.signal("position"))
    for k in range(100):
        assert check.refusal(np.array([0.01 * check.fastest * k, 0, 0]), 10_000 * k, 10_000 * k) == ""


@pytest.mark.parametrize(
    "text",
    [
        f"/tf {TF} position", f"/tf {TF} position frame=map", f"/tf {TF} position child=base_link frame=",
        "odom nav_msgs/msg/Odometry position child=base_link", f"/tf {TF} velocity frame=map child=base_link",
    ],
)  # fmt: skip
def test_a_wire_of_tf_names_both_frames(text: str) -> None:
    with pytest.raises(WiringError, match="position"):
        Wire.parse("position", text)


def test_a_wire_of_tf_is_written_as_it_is_read() -> None:
    wire = Wire.parse("position", GIVEN["position"])
    assert Wire.parse("position", str(wire)) == wire


def test_a_real_publisher_of_tf_is_heard(messages: dict[str, str], domain: int) -> None:
    """Over DDS, by the thread that the policy's node has."""
    from tf2_msgs.msg import TFMessage

    from robo_rl.ros.listening import Listener

    context = rclpy.Context()
    context.init(domain_id=domain)
    owner, robot = Node("policy", context=context), Node("localization", context=context)
    wires = [wire for wire in signal_wires(HOVER.signals, GIVEN) if wire.name in GIVEN]
    buffer = SignalBuffer(HOVER, wires)
    listener = Listener(owner, buffer, False, lambda topic: lambda event: None)
    publisher = robot.create_publisher(TFMessage, "/tf", 100)
    try:
        end, sent = time.monotonic() + 60.0, 0
        while "position" not in buffer.samples and time.monotonic() < end:
            now = time.time_ns()
            publisher.publish(TFMessage(transforms=[transform("map", "odom", now, (1.0, 0.0, 0.0))]))
            publisher.publish(TFMessage(transforms=[transform("odom", "base_link", now, (0.0, 2.0, 0.0))]))
            sent += 1
            time.sleep(0.02)
        value, stamp = buffer.samples["position"]
        np.testing.assert_allclose(value, [1.0, 2.0, 0.0])
        assert 0 <= listener.now() - stamp < 60e6
    finally:
        listener.close()
        owner.destroy_node()
        robot.destroy_node()
        context.try_shutdown()
