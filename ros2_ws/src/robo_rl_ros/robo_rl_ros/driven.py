"""A robot that the node drives itself, by the driver of the robot's own protocol: connected at configure, closed at the
end. What it measures is also published, joints and the like where the node would else hear them, and orientation and
rates on the topic imu: of where the robot is, a driver knows nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import Any

from rclpy.node import Node

from robo_rl.contract import Contract, Signal
from robo_rl.deploy.robot.drivers import SIMULATED, make
from robo_rl.deploy.robot.drivers.driver import DriverError, ForLoop, Settings
from robo_rl.deploy.robot.session import Samples
from robo_rl.ros import quality
from robo_rl.ros.wiring import Wire
from robo_rl.ros.writing import IMU, message_type, write

ODOMETRY = "nav_msgs/msg/Odometry"
USED = ("driver", "port", "calibration", "robot_file")
"""The node's parameters for it."""


class DrivenRobot:
    """See the module's text."""

    def __init__(self, node: Node, contract: Contract, given: Collection[str], wires: Sequence[Wire]) -> None:
        """Connect. ``given``: signals that come by topics or are constant, unless the driver measures them; ``wires``:
        of all signals. DriverError where that can't be.
        """
        driver, port, calibration, file = (node.get_parameter(name).value for name in USED)
        if node.get_parameter("use_sim_time").value:
            raise DriverError("parameter 'use_sim_time' is true, but a driver's robot is in real time")
        if driver == SIMULATED:
            raise DriverError("parameter 'driver' is 'simulated'; a simulated robot for ROS is 'robo-rl ros twin'")
        self.driver = make(driver, contract, Settings(port, file, calibration))
        self._publishers: list[tuple[list[tuple[Wire, Signal]], Any]] = []
        self._stamps: dict[str, int] = {}
        try:
            self.robot = ForLoop(self.driver, contract, {}, given)
            identity = self.driver.connect()
        except DriverError:
            self.driver.close()
            raise
        details = ", ".join(f"{name} {value}" for name, value in identity.details.items())
        guard = f"; {self.driver.guard}" if self.driver.guard else ""
        node.get_logger().info(f"{identity.robot}: {details}; without commands it {self.driver.silence.value}{guard}")
        by_topic: dict[tuple[str, str], list[tuple[Wire, Signal]]] = {}
        for wire in map(_published, wires):
            if wire.name in self.driver.measured:
                by_topic.setdefault((wire.topic, wire.kind), []).append((wire, contract.signal(wire.name)))
        self._node = node
        self._publishers = [
            (group, node.create_publisher(message_type(kind), topic, quality.SENSOR))
            for (topic, kind), group in by_topic.items()
        ]

    def publish(self, samples: Samples, now: int, ros_ns: int) -> None:
        """What was measured since the last call, with its time; ``now`` (µs of the samples' clock) is ``ros_ns``."""
        for group, publisher in self._publishers:
            stamps = {wire.name: samples[wire.name][1] for wire, _ in group if wire.name in samples}
            if len(stamps) < len(group) or all(self._stamps.get(name) == stamp for name, stamp in stamps.items()):
                continue
            self._stamps |= stamps
            message, measured = None, ros_ns - 1000 * (now - min(stamps.values()))
            for wire, signal in group:
                message = write(wire, signal, samples[wire.name][0], measured, message)
            publisher.publish(message)

    def close(self) -> None:
        """Let go of the robot."""
        self.driver.close()
        for _, publisher in self._publishers:
            self._node.destroy_publisher(publisher)


def _published(wire: Wire) -> Wire:
    return dataclasses.replace(wire, topic="imu", kind=IMU) if wire.kind == ODOMETRY else wire
