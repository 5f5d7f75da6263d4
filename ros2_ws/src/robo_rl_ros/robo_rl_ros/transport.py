"""The transport of DDS: UDP, unless the environment sets another.

Fast DDS also offers shared memory. A process that was killed leaves its part of it behind, and later processes in the
same ROS domain on that computer may then never hear each other: seen with Fast DDS 2.14, minutes after a kill -9. A
robot's node must come back after a crash, and its messages are small.

With ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST the middleware of ROS adds shared memory of its own accord, seen in the
maps of a process with Jazzy's rmw_fastrtps: leave it at its default on a robot.
"""

from __future__ import annotations

import os

VARIABLE = "FASTDDS_BUILTIN_TRANSPORTS"


def prefer_udp() -> None:
    """Call it before the first context of rclpy is made."""
    os.environ.setdefault(VARIABLE, "UDPv4")
