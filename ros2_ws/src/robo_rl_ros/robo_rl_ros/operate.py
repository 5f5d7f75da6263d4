"""Ask a running policy_node for something, where the ``ros2`` command is not installed: a few calls over DDS."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue, SetParametersResult
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from std_msgs.msg import String
from std_srvs.srv import Trigger

from robo_rl.contract import Command, Contract, Signal
from robo_rl.deploy.robot.named_values import texts_by_name
from robo_rl.ros import quality
from robo_rl.ros.gate_topic import listen_to_gate
from robo_rl.ros.transport import prefer_udp
from robo_rl.ros.wiring import Wire, command_wires, signal_wires

TRANSITIONS: Mapping[str, int] = {
    "configure": Transition.TRANSITION_CONFIGURE,
    "activate": Transition.TRANSITION_ACTIVATE,
    "deactivate": Transition.TRANSITION_DEACTIVATE,
    "cleanup": Transition.TRANSITION_CLEANUP,
}
FROM = {"configure": "unconfigured", "activate": "inactive", "deactivate": "active", "cleanup": "inactive"}
TO = {"configure": "inactive", "activate": "active", "deactivate": "inactive", "cleanup": "unconfigured"}
REQUESTS = ("arm", "engage", "disarm", "stop", "reset", "promote", "demote")
LEADS_TO = {"arm": "READY", "engage": "ACTIVE", "disarm": "IDLE", "stop": "FAULT", "reset": "IDLE"}
"""The gate's state after a request that was granted."""
AGAIN = 3.0
"""s after which one looks whether an answer was lost: DDS loses it where the node has not yet found who asked."""
ACTIONS = (*TRANSITIONS, *REQUESTS, "status")


class OperatorError(ValueError):
    """A node did not answer, or refused. The message says which and why."""


class Operator:
    """A person's hand on the nodes ``policy`` and ``twin``. Use it in a ``with`` statement."""

    def __init__(
        self,
        policy: str = "policy",
        twin: str = "twin",
        patience: float = 20.0,
        name: str = "operator",
        arguments: list[str] | None = None,
    ) -> None:
        """``patience`` (s) is how long a node may take to appear and to answer.

        ``name`` is that of the node by which it asks, ``arguments`` those of ROS for it.
        """
        self.policy, self.twin, self.patience = policy, twin, patience
        self.name, self.arguments = name, arguments
        self._clients: dict[str, Any] = {}
        self.gate: dict[str, Any] = {}
        """The newest decision that the gate published."""
        self.refusal = ""
        """Why the last transition was refused."""

    def __enter__(self) -> Operator:
        prefer_udp()
        self.context = rclpy.Context()
        self.context.init(self.arguments)
        self.node = Node(self.name, context=self.context, start_parameter_services=False, enable_rosout=False)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        listen_to_gate(self.node, self.policy, self._on_gate)
        self.node.create_subscription(String, f"{self.policy}/refusal", self._on_refusal, quality.LATCHED)
        return self

    def __exit__(self, *_: object) -> None:
        self.executor.shutdown()
        self.node.destroy_node()
        self.context.try_shutdown()

    def _on_gate(self, told: dict[str, Any]) -> None:
        self.gate = told

    def _on_refusal(self, message: String) -> None:
        self.refusal = message.data

    def do(self, action: str) -> str:
        """One of ``ACTIONS``; returns a sentence, or raises OperatorError."""
        if action in TRANSITIONS:
            return self._change(action)
        if action == "status":
            return self.status()

        def seen() -> Trigger.Response | None:
            state = LEADS_TO.get(action)
            reached = state is not None and self.gate.get("state") == state
            return Trigger.Response(success=True, message=f"the gate is {state}") if reached else None

        answer = self.call(Trigger, f"{self.policy}/{action}", Trigger.Request(), action == "stop", seen)
        if not answer.success:
            raise OperatorError(f"{action}: {answer.message}")
        return answer.message

    def status(self) -> str:
        """What the gate said last."""
        state = self.lifecycle()
        self.wait(lambda: bool(self.gate), 2.0)
        told = {key: value for key, value in self.gate.items() if value not in ("", "NONE")}
        lines = [f"{self.policy} is {state}" + ("" if told else "; no message from the gate")]
        return "\n".join(lines + [f"  {key:<10} {_shown(key, value)}" for key, value in told.items()])

    def _change(self, action: str) -> str:
        """A transition. One that the state does not have is not requested."""
        state = self.lifecycle()
        if state != FROM[action]:
            raise OperatorError(f"{action}: {self.policy} is {state}; expected {FROM[action]}")
        self.refusal = ""

        def seen() -> ChangeState.Response | None:
            done = self.lifecycle() == TO[action]
            return ChangeState.Response(success=done) if done or self.refusal else None

        request = ChangeState.Request()
        request.transition.id = TRANSITIONS[action]
        if not self.call(ChangeState, f"{self.policy}/change_state", request, otherwise=seen).success:
            self.wait(lambda: bool(self.refusal), self.patience)
            raise OperatorError(f"{action}: {self.refusal or 'refused'}")
        return f"{self.policy}: {action} done"

    def lifecycle(self) -> str:
        """The state of the policy's node in its life cycle."""
        answer = self.call(GetState, f"{self.policy}/get_state", GetState.Request(), repeat=True)
        return answer.current_state.label

    def fault(self, text: str) -> None:
        """Inject a fault into the simulated robot; "" removes it."""
        self._set(self.twin, "fault", text)

    def select(self, name: str) -> str:
        """Switch to another of the node's policies; returns a sentence, or raises OperatorError."""
        self._set(self.policy, "select", name)
        return f"'{name}' is active"

    def wiring(self, contract: Contract) -> list[tuple[Wire, Signal | Command]]:
        """Where the policy's node has the signals and commands of its contract, constant set-points left out."""
        request = GetParameters.Request(names=["wires", "command_message", "cmd_vel", "setpoints"])
        answer = self.call(GetParameters, f"{self.policy}/get_parameters", request, repeat=True)
        wires, message, twist, setpoints = answer.values
        given = texts_by_name(wires.string_array_value, "parameter 'wires'")
        constant = texts_by_name(setpoints.string_array_value, "parameter 'setpoints'")
        found = signal_wires(contract.signals, given, twist.string_value)
        found += command_wires(contract.commands, message.string_value)
        both: tuple[Signal | Command, ...] = (*contract.signals, *contract.commands)
        channels = {channel.name: channel for channel in both}
        return [(wire, channels[wire.name]) for wire in found if wire.name not in constant]

    def _set(self, node: str, parameter: str, text: str) -> None:
        value = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=text)
        request = SetParameters.Request(parameters=[Parameter(name=parameter, value=value)])

        def seen() -> SetParameters.Response | None:
            asked = GetParameters.Request(names=[parameter])
            (now,) = self.call(GetParameters, f"{node}/get_parameters", asked, repeat=True).values
            done = now.string_value == text
            return SetParameters.Response(results=[SetParametersResult(successful=True)]) if done else None

        result = self.call(SetParameters, f"{node}/set_parameters", request, otherwise=seen).results[0]
        if not result.successful:
            raise OperatorError(result.reason)

    def restart_twin(self) -> None:
        """Reset the simulated robot."""
        self.call(Trigger, f"{self.twin}/reset", Trigger.Request(), repeat=True)

    def call(
        self,
        kind: Any,
        service: str,
        request: Any,
        repeat: bool = False,
        otherwise: Callable[[], Any] = lambda: None,
    ) -> Any:
        """The answer of a service, or what stands for it where that was lost.

        ``repeat``: the request may be sent again. Of others ``otherwise()`` tells whether they were carried out: it
        gives an answer, or None as long as it is unknown.
        """
        client = self._client(kind, service)
        if not self.wait(client.service_is_ready, self.patience):
            raise OperatorError(f"service '{service}' was not found; is the node running, in this ROS domain?")
        end = time.monotonic() + self.patience
        asked = [client.call_async(request)]
        while not self.wait(lambda: any(future.done() for future in asked), min(AGAIN, self.patience)):
            if (answer := otherwise()) is not None:
                return answer
            if time.monotonic() > end:
                raise OperatorError(f"'{service}' did not answer within {self.patience:g} s")
            if repeat:
                asked.append(client.call_async(request))
        return next(future.result() for future in asked if future.done())

    def _client(self, kind: Any, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = self.node.create_client(kind, service)
        return self._clients[service]

    def wait(self, condition: Any, patience: float) -> bool:
        """Whether ``condition()`` comes true within ``patience`` s."""
        end = time.monotonic() + patience
        while not condition():
            if time.monotonic() > end:
                return False
            self.executor.spin_once(timeout_sec=0.02)
        return True


def _shown(key: str, value: Any) -> str:
    return f"{value:.2f} s of the node's clock" if key == "time" else f"{value}"
