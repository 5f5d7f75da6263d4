"""Listen to a robot for the doctor: the samples of every sensor signal, for some seconds, over DDS."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Joy

from robo_rl.contract import Contract
from robo_rl.deploy.robot.doctor import Series
from robo_rl.deploy.robot.scans import habits
from robo_rl.ros import quality
from robo_rl.ros.frames import Frames
from robo_rl.ros.joint_messages import JOINT_STATE, JointCollector
from robo_rl.ros.reading import TF, MessageError, read, stamp_ns
from robo_rl.ros.tf_topics import listen_to_transforms
from robo_rl.ros.transport import prefer_udp
from robo_rl.ros.wiring import SCAN, Wire, signal_wires
from robo_rl.ros.writing import message_type

ANNOUNCED = 3.5
"""s: Fast DDS announces every process every 3 s, so all are discovered within this time."""
RESTLESS = 60.0
"""s that publishers may come and go."""
BACKLOG = 1000
"""Messages that are taken in at once, at most."""


class SignalCheck:
    """Subscriptions to all sensor signals of a contract. Use it in a ``with`` statement."""

    def __init__(self, contract: Contract, wires: Mapping[str, str] | None = None, namespace: str = "") -> None:
        self.contract, self.namespace = contract, namespace
        sensed = {signal.name for signal in contract.signals if signal.source == "sensor"}
        self.wires = [wire for wire in signal_wires(contract.signals, wires) if wire.name in sensed]
        self.series: dict[str, Series] = {}
        self.joystick: list[Sequence[float]] = []
        """The axes of a joystick, of every message, if there is one."""
        self.frames = Frames(drives="position" in sensed)
        self._simulated = 0
        """ns, the newest time of /clock; 0 where there is none."""
        self._heard = 0
        self._publishers: dict[str, int] = {}
        """By topic."""

    def __enter__(self) -> SignalCheck:
        prefer_udp()
        self._changed = time.monotonic()
        self.context = rclpy.Context()
        self.context.init()
        self.node = Node("doctor", context=self.context, namespace=self.namespace, start_parameter_services=False)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        for wire in self.wires:
            self.node.create_subscription(message_type(wire.kind), wire.topic, self._receiver(wire), quality.LISTENER)
        listen_to_transforms(self.node, self.frames)
        self.node.create_subscription(Clock, "/clock", self._on_clock, quality.SENSOR)
        self.node.create_subscription(Joy, "joy", self._on_joy, quality.LISTENER)
        return self

    def __exit__(self, *_: object) -> None:
        self.executor.shutdown()
        self.node.destroy_node()
        self.context.try_shutdown()

    def _on_joy(self, message: Joy) -> None:
        self.joystick.append(message.axes)

    def _on_clock(self, message: Clock) -> None:
        self._simulated = message.clock.sec * 1_000_000_000 + message.clock.nanosec

    def _receiver(self, wire: Wire) -> Any:
        signal, view = wire.measured(self.contract.signal(wire.name)), wire.view(self.frames)
        joints = JointCollector(wire, signal, view) if wire.kind == JOINT_STATE else None

        def receive(message: Any) -> None:
            self._heard += 1
            series = self.series.setdefault(wire.name, Series())
            now, ros, stamp = time.monotonic(), time.time_ns(), stamp_ns(message)
            if self._simulated:
                now, ros = self._simulated * 1e-9, self._simulated
            age = 0.0 if stamp is None else (ros - stamp) * 1e-9
            if wire.kind == SCAN:
                series.beams.append(habits(message))
                series.nothing = wire.nothing
            try:
                if joints is None:
                    value = read(wire.kind, wire.field, message, signal, view).ravel()
                    if wire.kind == TF and (told := self.frames.stamp(wire.frame, wire.child)) is not None:
                        age = (ros - told) * 1e-9
                    series.add(now, age, value)
                elif (found := joints.read(message, round(1e9 * (now - age)))) is not None:
                    series.problem = series.problem if series.times else ""
                    series.add(now, now - 1e-9 * found[1], found[0])
                elif not series.times:
                    series.problem = joints.lacking(message)
            except (MessageError, TypeError, ValueError) as error:
                series.problem = str(error)[:300]

        return receive

    def discover(self, patience: float = 10.0) -> None:
        """Wait until something arrives at all, or ``patience`` (s) is over."""
        end = time.monotonic() + patience
        while not self.series and time.monotonic() < end:
            self.hear(0.05)

    def settle(self) -> bool:
        """Wait until no new node was discovered for ``ANNOUNCED`` s; False if that never ends.

        Only then is it known who else is there: nodes find each other one by one.
        """
        end = time.monotonic() + RESTLESS
        while time.monotonic() < self._changed + ANNOUNCED:
            if time.monotonic() > end:
                return False
            self.hear(0.1)
        return True

    def listen(self, seconds: float) -> dict[str, Series]:
        """What arrives of each signal within ``seconds``."""
        self.series, self.joystick = {}, []
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.hear(min(0.1, left))
        for wire in self.wires:
            if wire.name in self.series:
                self.series[wire.name].publishers = self.node.count_publishers(wire.topic)
        return self.series

    def hear(self, seconds: float) -> None:
        """Take in what arrives within ``seconds``, and after that whatever has come meanwhile: nothing old is left."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.executor.spin_once(timeout_sec=left)
        for _ in range(BACKLOG):
            heard = self._heard
            self.executor.spin_once(timeout_sec=0.0)
            if self._heard == heard:
                break
        self._look_around()

    def _look_around(self) -> None:
        topics = (topic for topic, _ in self.node.get_topic_names_and_types())
        found = {topic: self.node.count_publishers(topic) for topic in topics}
        if found != self._publishers:
            self._publishers, self._changed = found, time.monotonic()
