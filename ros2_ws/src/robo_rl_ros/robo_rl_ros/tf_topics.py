"""Subscribe to tf: frames of messages are then transformed, where they are not the contract's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from robo_rl.ros.frames import Frames
from robo_rl.ros.interfaces import importable
from robo_rl.ros.transforms import TransformTree

STATIC = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=100,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
"""As tf2's StaticListenerQoS."""
DYNAMIC = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=100,
    reliability=ReliabilityPolicy.BEST_EFFORT,
    durability=DurabilityPolicy.VOLATILE,
)
"""Best effort, which is compatible with all publishers of /tf."""


def listen_to_transforms(
    node: Node,
    frames: Frames,
    changed: Callable[[], None] = lambda: None,
    inform: Callable[[str], Any] = lambda _: None,
) -> None:
    """Let ``frames`` know what /tf and /tf_static tell; ``changed`` is called after every message.

    Without the package tf2_msgs, which PyPI has not, frames are matched by their names alone; ``inform`` is told.
    """
    if not importable("tf2_msgs"):
        inform(
            "no package tf2_msgs: frames are matched by name; 'robo-rl ros messages' builds it, a distribution has it"
        )
        return
    from tf2_msgs.msg import TFMessage

    tree = TransformTree()
    frames.find, frames.stamp, frames.put = tree.find, tree.stamp, lambda message: tree.put(message, False)

    def receiver(static: bool) -> Callable[[Any], None]:
        def receive(message: Any) -> None:
            tree.put(message, static)
            changed()

        return receive

    node.create_subscription(TFMessage, "/tf_static", receiver(True), STATIC)
    node.create_subscription(TFMessage, "/tf", receiver(False), DYNAMIC)
