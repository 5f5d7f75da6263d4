"""Quality of service: sensors best effort, commands reliable with a deadline, contract and gate state latched.

No subscription asks for a deadline: one that does is never matched by a publisher that offers none, such as
joint_state_broadcaster, and only the publisher's side warns. The receiver's own clock finds what is late or silent.
"""

from __future__ import annotations

from rclpy.duration import Duration
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

SENSOR = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
    reliability=ReliabilityPolicy.BEST_EFFORT,
    durability=DurabilityPolicy.VOLATILE,
)
"""Only the newest sample counts, and a lost one is not worth waiting for."""

LISTENER = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=200,
    reliability=ReliabilityPolicy.BEST_EFFORT,
    durability=DurabilityPolicy.VOLATILE,
)
"""For the doctor, which needs every sample."""

OPERATOR = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
    reliability=ReliabilityPolicy.BEST_EFFORT,
    durability=DurabilityPolicy.VOLATILE,
)
"""Set-points: best effort, which is compatible with reliable and best-effort publishers."""

COMMANDED = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE,
)
"""For the robot, which receives commands."""

LATCHED = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
"""The last message reaches whoever comes later."""


def command(deadline: float, lifespan: float | None = None) -> QoSProfile:
    """Commands that are published: ``deadline`` (s) between two of them, ``lifespan`` (s) after which one is void."""
    profile = QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=1,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.VOLATILE,
        deadline=Duration(seconds=deadline),
    )
    if lifespan is not None:
        profile.lifespan = Duration(seconds=lifespan)
    return profile
