"""twin_node: a task's plant as a simulated robot, with the topics, noise and latency of the real one.

In real time it steps on a monotonic clock. With ``lockstep`` it publishes /clock and waits for the command to every
set of signals, so that a closed loop is the same on any computer, however busy.

It does what a robot's firmware must do too: a command that is older than the contract's timeout, or none, means the
safe command. The parameter ``fault`` (see ``robo_rl.ros.faults``) makes it fail:

    ros2 param set /twin fault "freeze odom"
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any

import numpy as np
import rclpy
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from rclpy.signals import SignalHandlerOptions
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from robo_rl.contract import Signal
from robo_rl.controllers.gate.codes import Source
from robo_rl.deploy.robot.named_values import texts_by_name
from robo_rl.deploy.robot.supervisor import SignalSafeEvent
from robo_rl.ros import quality
from robo_rl.ros.faults import Fault, FaultError, FaultInjector
from robo_rl.ros.gate_topic import listen_to_gate
from robo_rl.ros.interfaces import importable
from robo_rl.ros.message_encoding import compose
from robo_rl.ros.reading import READERS, MessageError, read, stamp_ns
from robo_rl.ros.transport import prefer_udp
from robo_rl.ros.twins import make_twin
from robo_rl.ros.wiring import Wire, command_wires, signal_wires
from robo_rl.ros.writing import message_type, set_stamp

PATIENCE, PATIENCE_AT_REST = 20.0, 5.0
"""s of real time that lockstep waits for a command of a node that is there, before it goes on without one: in motion,
and after the safe command, which may have been the last."""
LOOK = 0.2
"""s between two looks whether the node still is there."""
UNANSWERED = 3.0
"""Periods of real time per step without commands."""
HANDLED = 30.0
"""s for which the robot is moved, for the doctor."""
EPOCH = 1_000_000_000
"""ns: simulated time begins at one second, since zero means that there is no stamp."""


ODOMETRY = "nav_msgs/msg/Odometry"
TRUTH = [Wire(name, "~/truth", ODOMETRY, name) for name in READERS[ODOMETRY]]
"""What the true state is published as."""
XYZ, FAR = ("x", "y", "z"), (1e9,) * 4
TRUE = {
    "position": Signal("position", XYZ, "m", "world", tuple(-x for x in FAR[:3]), FAR[:3]),
    "orientation": Signal("orientation", (*XYZ, "w"), "1", "body to world", tuple(-x for x in FAR), FAR),
    "linear_velocity": Signal("linear_velocity", XYZ, "m/s", "world", tuple(-x for x in FAR[:3]), FAR[:3]),
    "angular_velocity": Signal("angular_velocity", XYZ, "rad/s", "body", tuple(-x for x in FAR[:3]), FAR[:3]),
}
"""The frames of the plants' true quantities."""


class TwinNode(Node):
    """See the module's text."""

    def __init__(self) -> None:
        super().__init__("twin")
        for name, value, text in (
            ("task", "", "the task whose plant, signals and commands are used; '': the bundle's, else quadrotor-hover"),
            ("bundle", "", "a policy's file (*.onnx), whose task and robot are simulated"),
            ("robot", "", "another robot card, by name or path; '': the task's own"),
            ("seed", 0, "of noise and goal"),
            ("delay", 0.01, "latency of the sensors, s"),
            ("noise", 1.0, "factor on the noise of training"),
            ("height", 1.0, "m above ground, of the goal"),
            ("hung", False, "a legged robot is suspended, for the doctor"),
            ("miswired", [""], "wiring errors: 'swap A B', 'reverse A', 'offset A 0.3'"),
            ("timeout", 0.0, "s without a command until the safe command; 0: the task's"),
            ("operator", True, "publish set-points: take off, wait, follow the task's goal"),
            ("lockstep", False, "publish /clock, and wait for the command to every set of signals"),
            ("real_time_factor", 0.0, "lockstep is no faster than this times real time; 0: as fast as it can"),
            ("duration", 0.0, "s after which the process ends; 0: never"),
            ("command_message", "", "message type of commands; '': what suits the contract"),
            ("wires", [""], "other topics of signals: 'signal=topic type field'"),
        ):
            self.declare_parameter(name, value, ParameterDescriptor(description=text, read_only=True))
        self.declare_parameter("fault", "", ParameterDescriptor(description="'kind topic value'; 'none' ends it"))

        def get(name: str) -> Any:
            return self.get_parameter(name).value

        about = {name: get(name) for name in ("seed", "delay", "noise", "height", "hung", "miswired", "bundle")}
        self.twin = make_twin(get("task"), get("robot") or None, **about)
        self.lockstep, self.duration = get("lockstep"), get("duration")
        if not get("real_time_factor") >= 0:
            raise ValueError(f"real_time_factor is {get('real_time_factor')}; expected a number that is not negative")
        self._pace = 1.0 / get("real_time_factor") if get("real_time_factor") else 0.0
        if not self.lockstep:
            self.twin.hands = time.monotonic
        spec = self.twin.spec
        self.timeout = get("timeout") or spec.safety.signal_timeout
        self.signals = {signal.name: signal for signal in spec.signals}
        wires = signal_wires(spec.signals, texts_by_name(get("wires"), "parameter 'wires'"))
        kept = [w for w in wires if get("operator") or self.signals[w.name].source == "sensor"]
        self._outlets = self._create_outlets(kept)
        self._saboteurs = {topic: FaultInjector(serialize_message) for topic, _, _ in self._outlets}
        self._fault = Fault.parse(get("fault"))
        self._fault_since = 0
        self.add_on_set_parameters_callback(self._on_parameters)
        self._commands: dict[str, np.ndarray] = {}
        self._received = threading.Condition()
        self._heard: dict[str, tuple[float, int]] = {}
        """When the newest command of each name arrived (s, monotonic), and its stamp (ns)."""
        self._last_wanted, self.refused = 0, 0
        self._set_back = False
        """Whether the newest command is older than the one before: its sender's clock was set back."""
        self._listen(command_wires(spec.commands, get("command_message")))
        if self.twin.stance:
            listen_to_gate(self, "policy", self._on_gate)
        self._clock_topic = self.create_publisher(Clock, "/clock", quality.SENSOR) if self.lockstep else None
        quantities = self.twin.truth()
        self._has_base = all(wire.name in quantities for wire in TRUTH)
        if self._has_base:
            self._truth_topic = self.create_publisher(Odometry, "~/truth", quality.SENSOR)
        self._applied_topic = self.create_publisher(JointState, "~/applied", quality.SENSOR)
        self._status_topic = self.create_publisher(String, "~/status", quality.LATCHED)
        self.overruns = 0
        self._restarting, self._moving, self.watchdog = False, False, ""
        self.create_service(Trigger, "~/reset", self._on_reset)
        self.create_service(Trigger, "~/handle", self._on_handle)
        if importable("robo_rl_msgs"):
            from robo_rl_msgs.srv import InjectFault

            self.create_service(InjectFault, "~/inject_fault", self._on_inject)
        self._tell()

    def _on_inject(self, request: Any, response: Any) -> Any:
        result = self.set_parameters([Parameter("fault", value=request.fault)])[0]
        response.success, response.message = result.successful, result.reason
        return response

    def _create_outlets(self, wires: list[Wire]) -> list[tuple[str, list[Wire], Any]]:
        by_topic: dict[tuple[str, str], list[Wire]] = {}
        for wire in wires:
            by_topic.setdefault((wire.topic, wire.kind), []).append(wire)
        return [
            (topic, group, self.create_publisher(message_type(kind), topic, quality.SENSOR))
            for (topic, kind), group in by_topic.items()
        ]

    def _listen(self, wires: list[Wire]) -> None:
        by_topic: dict[tuple[str, str], list[Wire]] = {}
        for wire in wires:
            by_topic.setdefault((wire.topic, wire.kind), []).append(wire)
        self._inlets = [
            self.create_subscription(message_type(kind), topic, self._receiver(group), quality.COMMANDED)
            for (topic, kind), group in by_topic.items()
        ]

    def _receiver(self, wires: list[Wire]) -> Any:
        """Of messages with the commands of ``wires``."""
        commands, topic = {command.name: command for command in self.twin.spec.commands}, wires[0].topic

        def receive(message: Any) -> None:
            try:
                values = {wire.name: read(wire.kind, wire.field, message, commands[wire.name]) for wire in wires}
            except MessageError:
                self.refused += 1
                return
            if not all(np.isfinite(value).all() for value in values.values()):
                self.refused += 1
                return
            stamp = stamp_ns(message)
            stamp = stamp or self.now_ns  # a message without one answers the signals of its time
            with self._received:
                self._commands.update(values)
                self._set_back = stamp < self._heard.get(topic, (0.0, -1))[1]
                self._heard[topic] = (time.monotonic(), stamp)
                self._received.notify()

        return receive

    def _on_gate(self, told: dict[str, Any]) -> None:
        self.twin.set_source(Source[told["source"]])

    def _on_parameters(self, parameters: list[Any]) -> SetParametersResult:
        for parameter in parameters:
            if parameter.name == "fault":
                try:
                    fault = Fault.parse(parameter.value)
                except FaultError as error:
                    return SetParametersResult(successful=False, reason=str(error))
                if fault is not None and fault.topic and not any(map(fault.strikes, self._saboteurs)):
                    known = f"the topics are {sorted(self._saboteurs)}"
                    return SetParametersResult(successful=False, reason=f"fault is {parameter.value!r}; {known}")
                struck = [wires[0].kind for topic, wires, _ in self._outlets if fault and fault.strikes(topic)]
                if fault is not None and not all(fault.has_field(message_type(kind)()) for kind in struck):
                    return SetParametersResult(
                        successful=False, reason=f"fault is {parameter.value!r}; {struck} has no field '{fault.field}'"
                    )
                self._begin_fault(fault)
        return SetParametersResult(successful=True)

    def _begin_fault(self, fault: Fault | None) -> None:
        if fault is None:
            for saboteur in self._saboteurs.values():
                saboteur.clear()
        self._fault, self._fault_since = fault, 0

    def _oldest(self) -> tuple[float, int]:
        """As ``_heard``, of the command that was heard longest ago: of several, none may fall silent alone."""
        if len(self._heard) < len(self._inlets):
            return float("-inf"), -1
        times, stamps = zip(*self._heard.values(), strict=True)
        return min(times), min(stamps)

    # --- time -------------------------------------------------------------------------------------------------

    @property
    def now_ns(self) -> int:
        """ROS time, ns: simulated in lockstep, else the computer's."""
        return EPOCH + round(1e9 * self.twin.time) if self.lockstep else time.time_ns()

    def run(self, going: threading.Event) -> None:
        """Step until ``going`` is cleared or the time is over."""
        due = time.monotonic()
        while going.is_set() and (self.duration <= 0 or self.twin.time < self.duration):
            self._publish()
            if self.lockstep:
                self._await_command()
                due = max(due + self._pace * self.twin.period, time.monotonic())
                time.sleep(max(0.0, due - time.monotonic()))
            else:
                due += self.twin.period
                late = time.monotonic() - due
                if late > self.twin.period:
                    self.overruns, due = self.overruns + 1, time.monotonic()
                time.sleep(max(0.0, -late))
            self._move()
        self._tell()

    def _await_command(self) -> None:
        """The answer to the signals that were just sent; where the last ones had none, not for long."""
        wanted, answered = self.now_ns, self._oldest()[1] >= self._last_wanted
        self._last_wanted = wanted
        if not answered:
            self._wait_for(wanted, UNANSWERED * self.twin.period)
            return
        end = time.monotonic() + (PATIENCE if self._moving else PATIENCE_AT_REST)
        while not self._wait_for(wanted, LOOK) and self._is_commanded() and time.monotonic() < end:
            self._publish_clock(wanted)  # what is sent best effort may be lost

    def _wait_for(self, wanted: int, patience: float) -> bool:
        with self._received:
            return self._received.wait_for(lambda: self._oldest()[1] >= wanted or self._set_back, timeout=patience)

    def _is_commanded(self) -> bool:
        return all(subscription.get_publisher_count() for subscription in self._inlets)

    def _move(self) -> None:
        with self._received:
            heard, stamp = self._oldest()
            if self.lockstep:
                fresh = stamp >= 0 and self.now_ns - stamp <= 1e9 * self.timeout
            else:
                fresh = time.monotonic() - heard <= self.timeout
            commands = dict(self._commands) if fresh else None
        commands = self._watch(commands)
        sent = self.twin.step(commands)
        applied = JointState()
        set_stamp(applied.header.stamp, self.now_ns)
        for command in self.twin.spec.commands:
            applied.name.extend(command.elements)
            applied.position.extend(float(x) for x in sent[command.name])
        self._applied_topic.publish(applied)

    def _watch(self, commands: dict[str, np.ndarray] | None) -> dict[str, np.ndarray] | None:
        """Missing commands in motion latch the safe command, until a reset of the robot."""
        if commands is not None:
            passive = self.twin.passive()
            self._moving = any((commands[name] != value[0].numpy()).any() for name, value in passive.items())
        elif self._moving and not self.watchdog:
            self.watchdog = f"no command for {1e3 * self.timeout:g} ms"
            self.get_logger().error(self.watchdog)
            self._tell()
        return None if self.watchdog else commands

    def _on_reset(self, request: Any, response: Any) -> Any:
        self._restarting = True
        response.success, response.message = True, "the robot stands on the ground"
        return response

    def _on_handle(self, request: Any, response: Any) -> Any:
        self.twin.take_in_hand(HANDLED)
        response.success, response.message = True, f"the robot is turned and moved for {HANDLED:g} s"
        return response

    # --- what leaves ------------------------------------------------------------------------------------------

    def _publish(self) -> None:
        if self._restarting:
            self._restarting, self._moving, self.watchdog = False, False, ""
            self.twin.restart()
            self._tell()
        now, fault = self.now_ns, self._fault
        if fault is not None and not self._fault_since:
            self._fault_since = time.monotonic_ns() // 1000 if not self.lockstep else now // 1000
            self._tell()
        if fault is not None and fault.kind == "kill":
            os._exit(9)
        if fault is not None and fault.kind == "stall":
            self._fault = None
            time.sleep(fault.value or 0.0)
            now = self.now_ns
        self._publish_clock(now)
        values = self.twin.measure()
        for topic, wires, publisher in self._outlets:
            message = compose(wires, self.signals, values, now)
            sent = [message]
            if fault is not None and fault.strikes(topic):
                sent = self._saboteurs[topic].strike(fault, message, now * 1e-9)
            else:
                self._saboteurs[topic].pass_on(message)
            for one in sent:
                publisher.publish(one)
        self._publish_truth(now)

    def _publish_clock(self, now: int) -> None:
        if self._clock_topic is not None:
            clock = Clock()
            set_stamp(clock.clock, now)
            self._clock_topic.publish(clock)

    def _publish_truth(self, now: int) -> None:
        if self._has_base:
            self._truth_topic.publish(compose(TRUTH, TRUE, self.twin.truth(), now))

    def _tell(self) -> None:
        told = {
            "fault": None if self._fault is None else self._fault.__dict__,
            "since_us": self._fault_since,
            "watchdog": self.watchdog,
            "overruns": self.overruns,
            "refused_commands": self.refused,
            "time": self.twin.time,
        }
        self._status_topic.publish(String(data=json.dumps(told)))


def _receive(executor: SingleThreadedExecutor, going: threading.Event) -> None:
    while going.is_set():
        executor.spin_once(timeout_sec=0.1)


def main(arguments: list[str] | None = None) -> None:
    """Run the simulated robot until SIGINT or SIGTERM, or its duration is over."""
    sys.setswitchinterval(5e-4)
    prefer_udp()
    rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
    going = SignalSafeEvent()
    going.set()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: going.clear())
    node = TwinNode()
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    receiving = threading.Thread(target=_receive, args=(executor, going), name="receive")
    receiving.start()
    node.get_logger().info(f"a simulated {node.twin.spec.robot.name}; Ctrl-C ends it")
    try:
        node.run(going)
    finally:
        going.clear()
        receiving.join()
    executor.shutdown()
    node.destroy_node()
    rclpy.try_shutdown()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C comes twice: from the terminal, and from ros2 launch


if __name__ == "__main__":
    main()
