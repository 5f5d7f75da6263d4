"""tf: where frames are in each other, and signals that are transformed by it."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from geometry_msgs.msg import PoseStamped, TransformStamped
from nav_msgs.msg import Odometry
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import LaserScan

from robo_rl.contract import Scan, Signal
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.ros.frames import Frames
from robo_rl.ros.reading import MessageError, read
from robo_rl.ros.signal_buffer import SignalBuffer
from robo_rl.ros.transforms import LASTING, TransformTree
from robo_rl.ros.wiring import Wire, signal_wires
from robo_rl.zoo import located

DIFF = Bundle.read(located("zoo:diff-nav")).contract
SCAN = "sensor_msgs/msg/LaserScan"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def told(parent: str, child: str, rotation: Rotation | None = None, way=(0.0, 0.0, 0.0)) -> SimpleNamespace:
    """A message with one transform."""
    one = TransformStamped(child_frame_id=child)
    one.header.frame_id = parent
    t, q = one.transform.translation, one.transform.rotation
    t.x, t.y, t.z = map(float, way)
    q.x, q.y, q.z, q.w = (rotation or Rotation.identity()).as_quat()
    return SimpleNamespace(transforms=[one])


def test_frames_are_found_up_down_and_across_the_tree() -> None:
    """Against matrices."""
    random = np.random.default_rng(0)
    tree = TransformTree()
    where = {"map": np.eye(4)}  # of a frame in the map
    for child, parent in (
        ("odom", "map"),
        ("base_link", "odom"),
        ("laser", "base_link"),
        ("camera", "base_link"),
        ("cube", "camera"),
    ):
        rotation, way = Rotation.random(random_state=int(random.integers(1e6))), random.normal(size=3)
        matrix = np.eye(4)
        matrix[:3, :3], matrix[:3, 3] = rotation.as_matrix(), way
        where[child] = where[parent] @ matrix
        tree.put(told(parent, child, rotation, way), static=child != "odom")
    for target in where:
        for source in where:
            found = tree.find([target], source)
            assert found is not None
            expected = np.linalg.inv(where[target]) @ where[source] @ [0.3, -0.2, 0.5, 1.0]
            np.testing.assert_allclose(found.move((0.3, -0.2, 0.5)), expected[:3], atol=1e-9)
    assert tree.find(["map"], "elsewhere") is None
    assert tree.find(["elsewhere", "base_link"], "laser") is not None


def test_a_moving_frame_that_is_not_told_any_more_is_not_known() -> None:
    clock = Clock()
    tree = TransformTree(clock)
    tree.put(told("map", "odom"), static=False)
    tree.put(told("odom", "base_link"), static=True)
    assert tree.find(["map"], "base_link") is not None
    clock.now += LASTING + 0.1
    assert tree.find(["map"], "base_link") is None
    assert tree.find(["odom"], "base_link") is not None  # static


@pytest.mark.parametrize(
    "message",
    [
        told("a", "a"),
        told("", "b"),
        told("a", "b", way=(math.nan, 0, 0)),
        SimpleNamespace(transforms=[TransformStamped(child_frame_id="b")]),
    ],
)
def test_transforms_that_are_none_are_not_taken(message) -> None:
    tree = TransformTree()
    tree.put(message, static=True)
    assert tree.refused
    assert tree.find(["a"], "b") is None


def test_a_ring_of_frames_ends() -> None:
    tree = TransformTree()
    for parent, child in (("a", "b"), ("b", "c"), ("c", "a")):
        tree.put(told(parent, child), static=True)
    assert tree.find(["elsewhere"], "a") is None


def pose(frame: str, x: float, y: float) -> PoseStamped:
    made = PoseStamped()
    made.header.frame_id = frame
    made.pose.position.x, made.pose.position.y = x, y
    return made


def odometry() -> Odometry:
    made = Odometry(child_frame_id="base_link")
    made.header.frame_id = "odom"
    return made


def test_a_goal_of_the_map_is_where_tf_says_also_when_the_map_is_corrected_later() -> None:
    clock = Clock()
    tree, buffer = TransformTree(clock), SignalBuffer(DIFF, signal_wires(DIFF.signals))
    buffer.frames.find = tree.find
    goal = "setpoint/pose", "geometry_msgs/msg/PoseStamped"
    buffer.put(("odom", "nav_msgs/msg/Odometry"), odometry(), 1, 0)
    buffer.put(goal, pose("map", 2.0, 0.0), 2, 0)
    assert "position_setpoint" not in buffer.samples  # nobody knows where the map is
    tree.put(told("map", "odom", Rotation.from_euler("z", 90, degrees=True), (1.0, 0.0, 0.0)), static=False)
    buffer.put(goal, pose("map", 2.0, 0.0), 3, 0)
    np.testing.assert_allclose(buffer.samples["position_setpoint"][0], [0.0, -1.0], atol=1e-6)
    stamp = buffer.samples["position_setpoint"][1]
    tree.put(told("map", "odom", None, (0.5, 0.0, 0.0)), static=False)
    buffer.retransform()
    np.testing.assert_allclose(buffer.samples["position_setpoint"][0], [1.5, 0.0], atol=1e-6)
    assert buffer.samples["position_setpoint"][1] == stamp
    buffer.put(goal, pose("odom", 4.0, 0.0), 4, 0)
    tree.put(told("map", "odom", None, (9.0, 0.0, 0.0)), static=False)
    buffer.retransform()
    np.testing.assert_allclose(buffer.samples["position_setpoint"][0], [4.0, 0.0])


FAN = Signal("scan", (), "m", "laser", 0.0, 20.0, shape=(12,), layout=Scan(-1.2, 0.2, 0.1, 10.0))


@pytest.mark.parametrize("yaw", [0.0, 1.5708, -2.0])
@pytest.mark.parametrize("roll", [0.0, math.pi])
def test_a_lidars_mounting_comes_from_tf_as_it_would_from_its_wire(yaw: float, roll: float) -> None:
    random = np.random.default_rng(0)
    message = LaserScan(angle_min=-math.pi, angle_increment=math.pi / 180, range_min=0.1, range_max=10.0)
    message.header.frame_id, message.ranges = "rplidar_link", random.uniform(1.0, 9.0, 360).tolist()
    wire = Wire.parse("scan", f"scan {SCAN} ranges yaw={yaw} roll={roll}")
    expected = read(SCAN, "ranges", message, wire.measured(FAN), wire.view())
    tree = TransformTree()
    tree.put(told("base_link", "rplidar_link", Rotation.from_euler("xyz", [roll, 0.0, yaw])), static=True)
    plain = Wire.parse("scan", f"scan {SCAN} ranges")
    found = read(SCAN, "ranges", message, plain.measured(FAN), plain.view(Frames(tree.find)))
    np.testing.assert_array_equal(found, expected)
    tree.put(told("base_link", "rplidar_link", Rotation.from_euler("x", 1.2)), static=True)
    if yaw or roll:  # what the wire says goes before tf
        read(SCAN, "ranges", message, wire.measured(FAN), wire.view(Frames(tree.find)))
    with pytest.raises(MessageError, match="is inclined by 69 degrees"):
        read(SCAN, "ranges", message, FAN, plain.view(Frames(tree.find)))


def test_a_node_hears_tf_in_messages_that_were_built_here(messages: dict[str, str], domain: int) -> None:
    import time

    import rclpy
    from tf2_msgs.msg import TFMessage

    from robo_rl.ros.tf_topics import DYNAMIC, STATIC, listen_to_transforms

    context = rclpy.Context()
    context.init(domain_id=domain)
    try:
        node, frames, heard = rclpy.create_node("listener", context=context), Frames(), []
        listen_to_transforms(node, frames, lambda: heard.append(1))
        executor = rclpy.executors.SingleThreadedExecutor(context=context)
        executor.add_node(node)
        for topic, quality, parent, child in (
            ("/tf_static", STATIC, "base_link", "laser"),
            ("/tf", DYNAMIC, "odom", "base_link"),
        ):
            publisher = node.create_publisher(TFMessage, topic, quality)
            end = time.monotonic() + 30
            while frames.find([parent], child) is None and time.monotonic() < end:
                publisher.publish(TFMessage(transforms=told(parent, child, None, (1.0, 0.0, 0.0)).transforms))
                executor.spin_once(timeout_sec=0.1)
        assert frames.find(["odom"], "laser").move((0.0, 0.0, 0.0)) == (2.0, 0.0, 0.0)
        assert heard
    finally:
        context.try_shutdown()
