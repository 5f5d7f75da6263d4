"""Receive a robot's signals on a thread of their own, so that services and diagnostics never hold them up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from rclpy.context import Context
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from std_msgs.msg import Empty

from robo_rl.ros import quality
from robo_rl.ros.control import monotonic_us
from robo_rl.ros.reading import TF
from robo_rl.ros.signal_buffer import SignalBuffer
from robo_rl.ros.tf_topics import DYNAMIC, listen_to_transforms
from robo_rl.ros.writing import message_type

SILENCE = 2.0
"""s of real time without a later /clock after which that is told."""
TOLD = 10
"""Messages that can't be read are told about this often, and counted after that."""


def quickest_executor(context: Context) -> Executor:
    """rclpy's executor in C++ where this release has it: it takes a fifth of the time per message."""
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor(context=context)
    return EventsExecutor(context=context)


class Listener:
    """A node beside ``owner`` that fills a signal buffer. It also has the clock: simulated time comes by message."""

    def __init__(
        self,
        owner: Node,
        buffer: SignalBuffer,
        simulated: bool,
        on_incompatible: Callable[[str], Callable[[Any], None]],
    ) -> None:
        self.buffer, self.simulated, self.ns, self.unreadable = buffer, simulated, 0, 0
        self._ticked = time.monotonic()
        """s, when simulated time went on last."""
        context: Context = owner.context
        node = Node(f"{owner.get_name()}_signals", start_parameter_services=False, enable_rosout=False, context=context)
        self.node, self._log, self._spinning = node, owner.get_logger(), True
        for topic, kind in buffer.wires:
            events = SubscriptionEventCallbacks(incompatible_qos=on_incompatible(topic))
            receive = self._receiver((topic, kind))
            profile = DYNAMIC if kind == TF else quality.SENSOR
            node.create_subscription(message_type(kind), topic, receive, profile, event_callbacks=events)
        node.create_subscription(Empty, f"{owner.get_name()}/heartbeat", self._on_heartbeat, quality.OPERATOR)
        if simulated:
            node.create_subscription(Clock, "/clock", self._on_clock, quality.SENSOR)
        listen_to_transforms(node, buffer.frames, buffer.retransform, self._log.info)
        self._thread = threading.Thread(target=self._receive, name="signals", daemon=True)
        self._thread.start()

    def now(self) -> int:
        """µs of the control loop's clock."""
        return self.ns // 1000 if self.simulated else monotonic_us()

    def ros_ns(self) -> int:
        """ns of ROS time, for stamps."""
        return self.ns if self.simulated else time.time_ns()

    def clock_complaints(self) -> list[str]:
        """What is wrong with simulated time: it stands still, or several programs set it to and fro."""
        if not self.simulated:
            return []
        silent, sources = time.monotonic() - self._ticked, self.node.get_publishers_info_by_topic("/clock")
        told = []
        if silent > SILENCE:
            where = f"publishers: {len(sources)}" if sources else "nobody publishes it"
            told.append(
                f"/clock: simulated time (use_sim_time) stands still at {1e-9 * self.ns:.3f} s, for {silent:.0f} s of "
                f"real time: no step is made, no command is sent; {where}"
            )
        if len(sources) > 1:
            names = sorted(one.node_name for one in sources)
            told.append(f"/clock: {len(sources)} nodes publish it: {', '.join(names)}; expected one")
        return told

    def close(self) -> None:
        """Stop receiving."""
        self._spinning = False
        self._thread.join(timeout=5)
        self.node.destroy_node()

    def _receiver(self, key: tuple[str, str]) -> Callable[[Any], None]:
        return lambda message: self.buffer.put(key, message, self.now(), self.ros_ns())

    def _on_heartbeat(self, message: Empty) -> None:
        self.buffer.alive(self.now())

    def _on_clock(self, message: Clock) -> None:
        before, self.ns = self.ns, message.clock.sec * 1_000_000_000 + message.clock.nanosec
        self._ticked = time.monotonic() if self.ns != before else self._ticked
        with self.buffer.changed:
            self.buffer.changed.notify()

    def _receive(self) -> None:
        executor = quickest_executor(self.node.context)
        executor.add_node(self.node)
        while self._spinning and self.node.context.ok():
            try:
                executor.spin_once(timeout_sec=0.2)
            except ExternalShutdownException:
                break
            except Exception as error:  # bytes that are no message; the signal grows old, and the gate acts
                self.unreadable += 1
                if self.unreadable <= TOLD:
                    self._log.error(f"a message can't be read: {error}")
        executor.shutdown()
