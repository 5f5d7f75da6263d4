"""policy_node: a managed node that runs a bundle on a robot.

configure reads the bundle, checks its digest and golden vectors, and measures whether this computer is fast enough.
activate arms the gate; ``~/engage`` lets the policy take over. deactivate, an error and the end of the process stop
the robot as its contract says. The core (runner, buffer, control) knows nothing of ROS; this file only connects it.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import State as LifecycleState
from rcl_interfaces.msg import SetParametersResult
from rclpy._rclpy_pybind11 import RCLError
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.qos import qos_policy_name_from_kind
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import String
from std_srvs.srv import Trigger

from robo_rl.contract import Command
from robo_rl.controllers.arm.chain import orientation_at_home
from robo_rl.controllers.gate.codes import Request, State
from robo_rl.deploy.robot.actor import quiet
from robo_rl.deploy.robot.logs.record import Recorder
from robo_rl.deploy.robot.logs.step_log import Flag
from robo_rl.deploy.robot.named_values import numbers_by_name, texts_by_name
from robo_rl.deploy.robot.session import Decision, Session
from robo_rl.deploy.robot.supervisor import SignalSafeEvent
from robo_rl.deploy.robot.switcher import PolicySwitcher
from robo_rl.files.escaping import file_name
from robo_rl.ros import quality
from robo_rl.ros.activation import Activation
from robo_rl.ros.arguments import name_and_arguments
from robo_rl.ros.control import Control
from robo_rl.ros.diagnosis import Statistics, diagnostics
from robo_rl.ros.driven import DrivenRobot
from robo_rl.ros.learning import Learning
from robo_rl.ros.listening import Listener
from robo_rl.ros.loading import Watch, load
from robo_rl.ros.parameters import declare, seconds
from robo_rl.ros.receivers import Receivers
from robo_rl.ros.signal_buffer import SignalBuffer
from robo_rl.ros.status_topics import StatusTopics
from robo_rl.ros.transport import prefer_udp
from robo_rl.ros.wiring import Wire, command_wires, signal_wires
from robo_rl.ros.writing import message_type, write

URGENT = ("disarm", "stop")
"""Services that answer also while another one waits for actuators that are being enabled."""
SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE


class PolicyNode(LifecycleNode):
    """See the module's text."""

    def __init__(self, name: str = "policy") -> None:
        super().__init__(name)
        declare(self)
        self.add_on_set_parameters_callback(self._on_parameters)
        self.listener: Listener | None = None
        self.control: Control | None = None
        self.recorder: Recorder | None = None
        self.driven: DrivenRobot | None = None
        self.learning: Learning | None = None
        self.quality_complaints: dict[str, str] = {}
        self.stuck = False
        """Whether a policy holds a thread for ever."""
        self._outlets: list[tuple[list[tuple[Wire, Command]], Any]] = []
        """Commands that go in one message, and its publisher."""
        self._periodic: list[Any] = []
        self._last_gate: Any = None
        self._news: deque[Decision] = deque()
        self._bell = self.create_guard_condition(self._tell)
        services = {
            "arm": self._arm,
            "engage": lambda: self._gate_request(Request.ACTIVATE, State.ACTIVE),
            "disarm": lambda: self._gate_request(Request.DISARM, State.IDLE),
            "stop": lambda: self._gate_request(Request.STOP, State.FAULT),
            "reset": lambda: self._gate_request(Request.RESET, State.IDLE),
            "succeeded": lambda: self._end_episode(Flag.SUCCEEDED),
            "failed": lambda: self._end_episode(Flag.FAILED),
            "promote": lambda: self._ladder(Session.promote),
            "demote": lambda: self._ladder(Session.demote),
        }
        urgent = MutuallyExclusiveCallbackGroup()
        for service, act in services.items():
            group = urgent if service in URGENT else None
            self.create_service(Trigger, f"~/{service}", _trigger(act), callback_group=group)
        self.status_topics = StatusTopics(self, self._select)
        self._gate_topic = self.create_publisher(String, "~/gate", quality.LATCHED)
        self._refusal_topic = self.create_publisher(String, "~/refusal", quality.LATCHED)
        self._contract_topic = self.create_publisher(String, "~/contract", quality.LATCHED)
        self._diagnostics_topic = self.create_publisher(DiagnosticArray, "/diagnostics", 1)

    # --- the life cycle ---------------------------------------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Read and check the bundle; listen to the robot. No command can leave yet."""
        try:
            self._configure()
        except (ValueError, OSError) as error:  # all our refusals are ValueErrors
            self.unplug()
            self._refuse("configure", str(error))
            return FAILURE
        return SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Arm: the gate leaves idle, or refuses with its reason."""
        if self.quality_complaints:
            self._refuse("activate", "; ".join(self.quality_complaints.values()))
            return FAILURE
        armed, sentence = self._gate_request(Request.ARM, State.READY)
        if not armed:
            self._refuse("activate", sentence)
            return FAILURE
        assert self.control is not None
        self.control.enable()  # not before: a refusal sends nothing
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Disarmed: the robot is stopped, and when its stop has come to an end, silence."""
        if self.control is not None:
            self.control.retire()
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget the bundle."""
        self.unplug()
        return SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """The stop, and the end of the recording."""
        self.unplug()
        return SUCCESS

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """The stop; back to unconfigured."""
        self.unplug()
        return SUCCESS

    # --- configure, step by step ------------------------------------------------------------------------------

    def _text(self, name: str) -> str:
        return self.get_parameter(name).get_parameter_value().string_value

    def _configure(self) -> None:
        policies = self._load()
        contract = policies.contract
        self.runner = Session(policies, self._text("mode"), self.get_parameter("blend_time").value)
        given = texts_by_name(self.get_parameter("wires").value, "parameter 'wires'")
        wires = signal_wires(contract.signals, given, self._text("cmd_vel"))
        constants = numbers_by_name(self.get_parameter("setpoints").value, contract, "parameter 'setpoints'")
        constants = {**(quiet(contract) if self._text("learn") else {}), **constants}
        heard = [wire for wire in wires if wire.name not in constants]
        if self._text("driver"):
            names = [*constants, *(wire.name for wire in heard)]
            sensed = [s.name for s in contract.signals if s.source == "sensor"]
            self.driven = DrivenRobot(self, contract, [name for name in names if name not in sensed], wires)
            heard = [wire for wire in heard if wire.name not in self.driven.driver.measured]
        self.buffer = SignalBuffer(contract, heard)
        self.statistics = Statistics(self.runner)
        simulated = self.get_parameter("use_sim_time").value
        self.listener = Listener(self, self.buffer, simulated, self._incompatible)
        self.control = Control(
            self.runner,
            self.buffer,
            self._send,
            self._note,
            clock=self.listener.now,
            ticking=not simulated,
            constants=constants,
            perishable=[wire.name for wire in wires if wire.topic == "cmd_vel" and wire.name not in constants],
            lasting=seconds(self, "cmd_vel_timeout"),
            robot=self.driven.robot if self.driven is not None else None,
            background=True,
        )
        self._create_commands(contract)
        self._contract_topic.publish(String(data=contract.to_json()))
        self.status_topics.contract(policies.policy.bundle, [*heard, *self.command_wires])
        if self._text("record"):
            self._record()
        if self._text("learn"):
            self.learning = Learning(
                Path(self._text("learn")).expanduser(), self.runner, self.control, self.get_logger().info,
                self._text("trusted_keys"), self._text("runtime") == "native",
            )  # fmt: skip
        steady = Clock(clock_type=ClockType.STEADY_TIME)  # simulated time may stand still, which has to be told
        self._periodic = [self.create_timer(1.0, act, clock=steady) for act in (self._report, self._check_integrity)]
        if self.get_parameter("activate").value:
            timeout, refuse = seconds(self, "activate_timeout"), partial(self._refuse, "activate")
            self._periodic.append(Activation(self, self.control, timeout, refuse).timer)
        gc.collect()
        gc.freeze()  # what there is now stays; the collector need not look at it during a step
        self.control.start()

    def _load(self) -> PolicySwitcher:
        first, robot = self._text("bundle"), self._text("robot")
        others = texts_by_name(self.get_parameter("others").value, "parameter 'others'")
        share = 0.5 if others else 1.0  # while one takes over from another, both are at work
        policies = {}
        for name, path in {Path(first).stem: first, **others}.items():
            digest = self._text("digest") if path == first else ""
            isolate, trusted = self.get_parameter("isolate").value, self._text("trusted_keys")
            policy, took = load(path, digest, robot, share, isolate, trusted, self._text("runtime"))
            signed = f", signed by {policy.signer}" if policy.signer else ""
            told = f"{path}: digest {policy.bundle.digest[:12]}{signed}, a step takes {1e6 * took:.0f} µs"
            self.get_logger().info(f"{told} with {policy.runtime}")
            if policy.runtime_note:
                self.get_logger().warning(f"{path}: onnxruntime runs it: {policy.runtime_note}")
            policies[name] = policy
        self._files = [Watch(policy.bundle) for policy in policies.values()]
        return PolicySwitcher(policies)

    def _create_commands(self, contract: Any) -> None:
        timeout = contract.safety.signal_timeout
        # DDS counts in real time: while simulated time stands still, no command grows too old
        lifespan = None if self.get_parameter("use_sim_time").value else timeout
        profile = quality.command(deadline=max(timeout, 2 * contract.control_period), lifespan=lifespan)
        self.command_wires = command_wires(contract.commands, self._text("command_message"))
        self._turned = orientation_at_home(contract.robot)
        self._spans = {span.name: slice(span.offset, span.offset + span.size) for span in self.runner.config.commands}
        events = PublisherEventCallbacks(incompatible_qos=self._incompatible("commands"))
        by_topic: dict[tuple[str, str], list[tuple[Wire, Command]]] = {}
        for wire in self.command_wires:
            by_topic.setdefault((wire.topic, wire.kind), []).append((wire, contract.command(wire.name)))
        self._outlets = [
            (group, self.create_publisher(message_type(kind), topic, profile, event_callbacks=events))
            for (topic, kind), group in by_topic.items()
        ]
        self.receivers = Receivers(self, [publisher for _, publisher in self._outlets], self.statistics.effects)

    def _incompatible(self, topic: str) -> Callable[[Any], None]:
        def complain(event: Any) -> None:
            policy = qos_policy_name_from_kind(event.last_policy_kind)
            sentence = f"{topic}: another node offers or requests an incompatible quality of service: {policy}"
            self.quality_complaints[topic] = sentence
            self.get_logger().error(sentence)

        return complain

    def _record(self) -> None:
        folder = Path(self._text("record")).expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{file_name(self.runner.contract.task)}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}.mcap"
        bundles = [policy.bundle for policy in self.runner.policies.policies.values()]
        self.recorder = Recorder(folder / name, *bundles, on_failure=self._recorder_failed)
        self.get_logger().info(f"recording to {self.recorder.path}")

    def _end_episode(self, outcome: Flag) -> tuple[bool, str]:
        if self.learning is None:
            return False, "nobody learns from it: the parameter 'learn' is empty"
        return self.learning.end_episode(outcome, self._gate_request)

    def _recorder_failed(self, reason: str) -> None:
        assert self.control is not None
        self.control.halt(f"the recorder failed: {reason}")

    # --- at work ----------------------------------------------------------------------------------------------

    def _send(self, command: np.ndarray) -> None:
        assert self.listener is not None
        now = self.listener.ros_ns()
        for group, publisher in self._outlets:
            message = None
            for wire, channel in group:
                message = write(
                    wire, channel, command[self._spans[wire.name]], now, message, self._turned, self.statistics.period
                )
            publisher.publish(message)

    def _note(self, decision: Decision) -> None:
        """After the command left: record, count, and publish what the gate decided when it changed."""
        assert self.listener is not None
        self.statistics.note(decision, self.listener.now())
        self.status_topics.decision(decision, self.listener.ros_ns())
        if self.driven is not None and self.control is not None:
            self.driven.publish(self.control.measured, self.listener.now(), self.listener.ros_ns())
        if self.recorder is not None:
            self.recorder.note(decision.record(self.runner.mode, self._sentence(decision)))
        if self.learning is not None:
            self.learning.note(decision)
        output = decision.output
        shown = (output.state, output.source, output.problem, self.runner.mode, self.runner.policies.name)
        if shown != self._last_gate:
            self._last_gate = shown
            self._news.append(decision)
            self._bell.trigger()  # logging and publishing may block, so another thread does it

    def _sentence(self, decision: Decision) -> str:
        return self.control.explain(decision) if decision.output.problem.reason else ""  # type: ignore[union-attr]

    def _tell(self) -> None:
        while self._news:
            self._publish_gate(self._news.popleft())

    def _publish_gate(self, decision: Decision) -> None:
        output = decision.output
        told = {
            "time": decision.time * 1e-6,
            "state": output.state.name,
            "source": output.source.name,
            "reason": output.problem.reason.name,
            "sentence": self._sentence(decision),
            "mode": self.runner.mode,
            "authority": round(decision.authority, 4),
            "policy": self.runner.policies.name,
        }
        self._gate_topic.publish(String(data=json.dumps(told)))
        now = self.get_clock().now().nanoseconds
        self.status_topics.gate(decision, now, str(told["sentence"]), self.runner)
        if output.problem.reason:
            self.get_logger().error(f"{output.state.name}: {told['sentence']}")
        else:
            self.get_logger().info(f"{output.state.name}, {output.source.name}, mode {self.runner.mode}")

    def _gate_request(self, request: Request, wanted: State) -> tuple[bool, str]:
        if self.control is None:
            return False, "the node is not configured"
        if self.control.broken:
            return False, f"the control loop failed: {self.control.broken}"
        if request is not Request.ARM or self.driven is None:
            return self.control.verdict(self.control.request(request), wanted)
        outer, inner = self.executor, SingleThreadedExecutor(context=self.context)
        try:
            decision = self.control.request(request, lambda: self._serve_urgent(inner))
        finally:
            if self.executor is not outer:
                self.executor = outer  # type: ignore[assignment]  # its getter may give None
            inner.shutdown()
        return self.control.verdict(decision, wanted)

    def _serve_urgent(self, executor: SingleThreadedExecutor) -> None:
        """Serve one ``URGENT`` request, from within the callback of another: all others are at work for rclpy."""
        if self.executor is not executor:
            self.executor = executor
        self.survive(executor, 0.0)

    def _arm(self) -> tuple[bool, str]:
        if self.driven is not None and self.control is not None and not self.control.enabled:
            return False, "the node is not active; activate it, which arms"
        return self._gate_request(Request.ARM, State.READY)

    def _ladder(self, move: Callable[[Session], str]) -> tuple[bool, str]:
        if self.control is None:
            return False, "the node is not configured"
        try:
            sentence = move(self.runner)
        except ValueError as error:
            return False, str(error)
        self.get_logger().info(sentence)
        return True, sentence

    def _report(self) -> None:
        if self.control is None:
            return
        stamp = self.get_clock().now().to_msg()
        commanding = self.driven is None and self.runner.publishes and self.runner.gate.state == State.ACTIVE
        complaints = [*self.quality_complaints.values(), *self.receivers.look(commanding)]
        complaints += self.listener.clock_complaints() if self.listener is not None else []
        self.status_topics.status(self.runner, self.statistics, [*complaints, *self.buffer.complaints()])
        self._diagnostics_topic.publish(diagnostics(self.get_name(), stamp, self.control, self.statistics, complaints))

    def _check_integrity(self) -> None:
        """The files are still the ones that were verified."""
        if self.learning is not None and self.learning.watch is not None:
            self._files = [self.learning.watch]
        intact = [file.look() for file in self._files]
        if self.control is not None:
            if self.control.intact and not all(intact):
                self.get_logger().error("; ".join(filter(None, (file.complaint for file in self._files))))
            self.control.intact = all(intact)

    def _on_parameters(self, parameters: list[Any]) -> SetParametersResult:
        for parameter in parameters:
            if parameter.name == "select":
                try:
                    self.get_logger().info(self._select(parameter.value))
                except ValueError as error:
                    return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _select(self, name: str) -> str:
        """Switch to another policy, with the current signals."""
        if self.control is None:
            raise ValueError("the node is not configured")
        with self.buffer.changed:
            values = {name: value for name, (value, _) in self.buffer.samples.items()}
        return self.runner.policies.select(name, {**self.control.constants, **values})

    # --- the end ----------------------------------------------------------------------------------------------

    def _refuse(self, transition: str, sentence: str) -> None:
        self.get_logger().error(f"{transition} refused: {sentence}")
        self._refusal_topic.publish(String(data=sentence))

    def survive(self, executor: SingleThreadedExecutor, timeout: float = 0.2) -> None:
        """Serve one request. An error in it must not end the process that holds the robot."""
        try:
            executor.spin_once(timeout_sec=timeout)
        except RCLError as error:  # rclpy raises this for a transition that the present state doesn't have
            self.get_logger().error(f"a request was refused: {error}")
        except Exception as error:  # the robot is stopped, and the node stays to say why
            self.get_logger().error(traceback.format_exc())
            if self.control is not None:
                self.control.halt(f"a callback failed: {error!r}")

    def unplug(self) -> None:
        """Stop the robot, then let go of it, the bundle and the recording."""
        if self.control is not None:
            self.control.retire(wait=True)
            self.stuck = not self.control.stop()
            self.runner.policies.close()
        for timer in self._periodic:
            self.destroy_timer(timer)
        for _, publisher in self._outlets:
            self.destroy_publisher(publisher)
        self._periodic, self._outlets = [], []
        if self.listener is not None:
            self.listener.close()
        if self.driven is not None:
            self.driven.close()
        for at_work in (self.recorder, self.learning):
            if at_work is not None:
                at_work.close()
        self.control = self.listener = self.recorder = self.driven = self.learning = None
        self.quality_complaints.clear()


def _trigger(act: Callable[[], tuple[bool, str]]) -> Callable[[Any, Any], Any]:
    def answer(request: Any, response: Any) -> Any:
        response.success, response.message = act()
        return response

    return answer


def main(arguments: list[str] | None = None) -> None:
    """Run the node until SIGINT or SIGTERM; then stop the robot and end. A second signal does not wait for the stop."""
    sys.setswitchinterval(5e-4)  # the control thread gets its turn within half a millisecond
    name, rest = name_and_arguments(sys.argv if arguments is None else arguments, "policy")
    prefer_udp()
    rclpy.init(args=rest, signal_handler_options=SignalHandlerOptions.NO)
    ended = SignalSafeEvent()
    node = PolicyNode(name)

    def end(*_: Any) -> None:
        if node.control is not None:
            node.control.end()
        ended.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    node.get_logger().info("not configured yet; Ctrl-C stops the robot and ends it")
    try:
        while not ended.is_set():
            node.survive(executor)
    finally:
        node.unplug()
        if node.stuck:  # no interpreter ends in peace beside a thread that is inside of a library for ever
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)
        executor.shutdown()
        node.destroy_node()
        rclpy.try_shutdown()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C comes twice: from the terminal, and from ros2 launch


if __name__ == "__main__":
    main()
