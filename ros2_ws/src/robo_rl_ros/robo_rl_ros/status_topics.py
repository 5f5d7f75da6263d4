"""What the policy's node tells in messages of robo_rl_msgs.

The topics ``~/gate`` and ``~/contract`` have the same as JSON in texts; they are deprecated, and stay for one release.
Where robo_rl_msgs is not installed ('robo-rl ros messages' builds it), they are all that there is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from rclpy.node import Node

from robo_rl.contract import Command, Signal
from robo_rl.controllers.gate.codes import Event
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.session import Decision, Session
from robo_rl.ros import quality
from robo_rl.ros.diagnosis import Statistics
from robo_rl.ros.gate_topic import PACKAGE
from robo_rl.ros.interfaces import importable
from robo_rl.ros.wiring import Wire
from robo_rl.ros.writing import set_stamp


class StatusTopics:
    """The topics ``~/gate_status``, ``~/policy_contract``, ``~/decision`` and ``~/status``, the service
    ``~/select_policy``.
    """

    def __init__(self, node: Node, select: Callable[[str], str]) -> None:
        """``select`` switches to a policy by name: a sentence, or ValueError with the reason why not."""
        self.on = importable(PACKAGE)
        self._node = node
        if not self.on:
            node.get_logger().info(
                f"no package {PACKAGE}: JSON alone tells the state; 'robo-rl ros messages' builds it"
            )
            return
        from robo_rl_msgs import msg, srv

        self._msg = msg
        self._gate = node.create_publisher(msg.GateStatus, "~/gate_status", quality.LATCHED)
        self._contract = node.create_publisher(msg.Contract, "~/policy_contract", quality.LATCHED)
        self._decision = node.create_publisher(msg.Decision, "~/decision", quality.SENSOR)
        self._status = node.create_publisher(msg.PolicyStatus, "~/status", quality.LATCHED)
        node.create_service(srv.SelectPolicy, "~/select_policy", lambda asked, told: _select(select, asked, told))

    def gate(self, decision: Decision, ros_ns: int, sentence: str, runner: Session) -> None:
        """The gate has changed; ``ros_ns`` is now."""
        if not self.on:
            return
        output = decision.output
        message = self._msg.GateStatus(
            time=decision.time * 1e-6, state=int(output.state), source=int(output.source),
            reason=int(output.problem.reason), reason_name=output.problem.reason.name, sentence=sentence,
            mode=runner.mode, authority=float(decision.authority), policy=runner.policies.name,
        )  # fmt: skip
        set_stamp(message.stamp, ros_ns)
        self._gate.publish(message)

    def contract(self, bundle: Bundle, wires: Sequence[Wire]) -> None:
        """What is read and commanded, and where."""
        if not self.on:
            return
        contract, at = bundle.contract, {wire.name: wire for wire in wires}
        self._contract.publish(
            self._msg.Contract(
                digest=bundle.digest, task=contract.task, robot=contract.robot_name, json=contract.to_json(),
                control_period=contract.control_period, signal_timeout=contract.safety.signal_timeout,
                signals=[self._channel(signal, at.get(signal.name)) for signal in contract.signals],
                commands=[self._channel(command, at.get(command.name)) for command in contract.commands],
            )
        )  # fmt: skip

    def _channel(self, channel: Signal | Command, wire: Wire | None) -> Any:
        lower, upper = channel.bounds
        return self._msg.Channel(
            name=channel.name, elements=list(channel.elements), shape=list(getattr(channel, "shape", None) or ()),
            unit=channel.unit, frame=channel.frame, source=getattr(channel, "source", ""), lower=lower.tolist(),
            upper=upper.tolist(), topic=wire.topic if wire else "", type=wire.kind if wire else "",
            field=wire.field if wire else "",
        )  # fmt: skip

    def decision(self, decision: Decision, ros_ns: int) -> None:
        """One step, for whoever subscribes."""
        if not self.on or not self._decision.get_subscription_count():
            return
        output = decision.output
        message = self._msg.Decision(
            time=decision.time * 1e-6, state=int(output.state), source=int(output.source),
            reason=int(output.problem.reason), authority=float(decision.authority), inference=float(decision.inference),
            command=[] if decision.send is None else decision.send.tolist(),
            proposal=[] if decision.policy is None else decision.policy.tolist(),
            rate_limited=bool(output.events & Event.RATE_LIMITED),
        )  # fmt: skip
        set_stamp(message.stamp, ros_ns)
        self._decision.publish(message)

    def status(self, runner: Session, statistics: Statistics, complaints: Sequence[str]) -> None:
        """Once a second."""
        if not self.on:
            return
        numbers = statistics.numbers()
        message = self._msg.PolicyStatus(
            policy=runner.policies.name, policies=list(runner.policies.policies), mode=runner.mode,
            state=int(runner.gate.state), steps=statistics.steps, missed_periods=statistics.missed,
            rate_limited_steps=statistics.limited, complaints=list(complaints),
            **{name: float(numbers.get(name, math.nan)) for name in FIGURES},
        )  # fmt: skip
        message.stamp = self._node.get_clock().now().to_msg()
        self._status.publish(message)


FIGURES = ("rate", "longest_interval", "inference_p50", "inference_p99", "step_to_command_p99")


def _select(select: Callable[[str], str], asked: Any, told: Any) -> Any:
    try:
        told.success, told.message = True, select(asked.name)
    except ValueError as error:
        told.success, told.message = False, str(error)
    return told
