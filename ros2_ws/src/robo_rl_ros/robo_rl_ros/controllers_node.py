"""controllers: switch the controllers of ros2_control, so that an arm follows a policy only while it is in control.

A process of its own beside the policy's node, whose commands go to forward_command_controllers. These go on with what
they heard last, for ever. On a fault, in silence, and when this node ends, controllers that hold take their place, such
as a joint_trajectory_controller, which keeps an arm where it is when it is activated.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from functools import partial
from typing import Any

from rcl_interfaces.srv import GetParameters
from rclpy.qos import qos_profile_system_default
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger

from robo_rl.contract import Contract
from robo_rl.deploy.robot.named_values import texts_by_name
from robo_rl.deploy.robot.supervisor import SignalSafeEvent
from robo_rl.ros import quality
from robo_rl.ros.following import Decision, Wanted, Watch, misfit
from robo_rl.ros.operate import Operator

PERIOD = 0.01  # s between two looks
ANSWER = 1.0
"""s that the controller manager has for a switch; then it is asked again."""
MESSAGES = (
    "no package controller_manager_msgs: apt install ros-jazzy-controller-manager-msgs, and source the distribution"
)


class Controllers:
    """The controllers of one robot, and who may move it."""

    def __init__(self, operator: Operator) -> None:
        """``operator`` is at work already; its node has the parameters. ValueError where they can't be right."""
        self.operator, node = operator, operator.node
        get = node.declare_parameter
        self.following = texts_by_name(get("following", [""]).value, "parameter 'following'")
        """By command, the controller that carries it out."""
        self.holding: list[str] = [name for name in get("holding", [""]).value if name]
        self._timeout, self._settle = get("timeout", 0.0).value, get("settle", 0.5).value
        if not self.following or not self.holding:
            raise ValueError(
                f"following is {self.following}, holding is {self.holding}; expected controllers, such as "
                "following:=[joint_position_target=forward_position_controller] "
                "holding:=[joint_trajectory_controller]"
            )
        if not self._settle >= 0 or not self._timeout >= 0:
            raise ValueError(f"timeout is {self._timeout} s, settle is {self._settle} s; expected none below 0")
        self._manager = node.resolve_topic_name(get("controller_manager", "controller_manager").value)
        self._contract = ""
        self._pending: tuple[Any, Decision, float] | None = None
        """The answer of the controller manager, to what, and when it was asked."""
        self._heard: dict[str, float] = {}
        self._stop = node.create_client(Trigger, f"{operator.policy}/stop")
        self._told = node.create_publisher(String, "~/state", quality.LATCHED)
        node.create_subscription(String, f"{operator.policy}/contract", self._on_contract, quality.LATCHED)

    def connect(self) -> None:
        """Wait for contract and controllers, and compare them; then let the holding ones hold. ValueError if not."""
        try:
            from controller_manager_msgs.srv import SwitchController
        except ImportError:
            raise ValueError(MESSAGES) from None
        self._service = SwitchController
        self._switch = self.operator.node.create_client(SwitchController, f"{self._manager}/switch_controller")
        if not self.operator.wait(lambda: bool(self._contract), self.operator.patience):
            raise ValueError(f"'{self.operator.policy}' publishes no contract; is the node running, and configured?")
        contract = Contract.from_json(self._contract, f"{self.operator.policy}/contract")
        self._compare(contract)
        self.watch = Watch(self._timeout or contract.safety.signal_timeout, self._settle)
        for name, controller in self.following.items():
            receive = partial(self._on_command, name, len(contract.command(name).elements))
            topic = f"{controller}/commands"
            self.operator.node.create_subscription(Float64MultiArray, topic, receive, qos_profile_system_default)
        if not self.operator.wait(self._switch.service_is_ready, self.operator.patience):
            raise ValueError(f"'{self._manager}' has no switch_controller; is ros2_control running?")
        if not self.hold():
            raise ValueError(f"'{self._manager}' did not activate {self.holding}, which are to hold the robot")

    def _compare(self, contract: Contract) -> None:
        names = [command.name for command in contract.commands]
        if sorted(names) != sorted(self.following):
            raise ValueError(f"following names the commands {sorted(self.following)}; the contract has {sorted(names)}")
        for name, controller in self.following.items():
            request = GetParameters.Request(names=["joints", "interface_name"])
            joints, interface = self.operator.call(
                GetParameters, f"{controller}/get_parameters", request, repeat=True
            ).values
            command = contract.command(name)
            given = list(joints.string_array_value), interface.string_value
            if problem := misfit(controller, *given, command.elements, command.unit):
                raise ValueError(problem)

    def _on_contract(self, message: String) -> None:
        self._contract = message.data

    def _on_command(self, name: str, size: int, message: Float64MultiArray) -> None:
        if len(message.data) == size:
            self._heard[name] = time.monotonic()

    def look(self) -> None:
        """Once a period: decide, and switch where that is needed."""
        now = time.monotonic()
        self.watch.gate(self.operator.gate.get("state", ""), now)
        if len(self._heard) == len(self.following):
            self.watch.command(min(self._heard.values()))
        decision = self._crowded() or self.watch.decide(now)
        if self._pending is not None:
            self._collect(now)
        elif decision.stop:
            self._stop.call_async(Trigger.Request())
        if self._pending is None and (decision.wanted is Wanted.FOLLOW) != self.watch.following:
            self._ask(decision, now)

    def _crowded(self) -> Decision | None:
        """Nobody but the policy may command the controllers."""
        for controller in self.following.values():
            if self.operator.node.count_publishers(f"{controller}/commands") > 1:
                return Decision(Wanted.HOLD, f"another node publishes on {controller}/commands", stop=True)
        return None

    def _ask(self, decision: Decision, now: float) -> None:
        follow = decision.wanted is Wanted.FOLLOW
        following = list(self.following.values())
        request = self._service.Request(
            activate_controllers=following if follow else self.holding,
            deactivate_controllers=self.holding if follow else following,
            # holding must come about even if some of it is so already
            strictness=self._service.Request.STRICT if follow else self._service.Request.BEST_EFFORT,
            activate_asap=True,
        )
        request.timeout.sec = int(ANSWER)
        self._pending = self._switch.call_async(request), decision, now
        self.operator.node.get_logger().info(f"{decision.wanted.value}: {decision.reason}")

    def _collect(self, now: float) -> bool:
        """Whether the manager has done what it was asked for. After a no, or silence, the robot is to be held."""
        assert self._pending is not None
        future, decision, asked = self._pending
        if not future.done() and now - asked < ANSWER:
            return False
        self._pending = None
        if future.done() and future.result().ok:
            self.watch.following = decision.wanted is Wanted.FOLLOW
            self._told.publish(String(data=f"{decision.wanted.value}: {decision.reason}"))
            return True
        told = getattr(future.result(), "message", "") if future.done() else f"no answer within {ANSWER:g} s"
        self.operator.node.get_logger().error(f"no switch to {decision.wanted.value}: {told or 'refused'}")
        self._stop.call_async(Trigger.Request())
        self._ask(Decision(Wanted.HOLD, "a switch failed"), now)
        return False

    def hold(self) -> bool:
        """Let the holding controllers hold, at the beginning and at the end; whether they do."""
        self._ask(Decision(Wanted.HOLD, "the node 'controllers' begins or ends"), time.monotonic())
        assert self._pending is not None
        self.operator.wait(self._pending[0].done, 2 * ANSWER)
        return self._collect(time.monotonic())


def main(arguments: list[str] | None = None) -> None:
    """Watch until SIGINT or SIGTERM; then the holding controllers hold."""
    with contextlib.ExitStack() as stack:
        given = sys.argv if arguments is None else arguments
        operator = stack.enter_context(Operator(name="controllers", arguments=given))
        operator.policy = operator.node.resolve_topic_name(operator.node.declare_parameter("policy", "policy").value)
        ended = SignalSafeEvent()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: ended.set())
        try:
            controllers = Controllers(operator)
            controllers.connect()
        except ValueError as error:
            operator.node.get_logger().error(str(error))
            raise SystemExit(1) from None
        operator.node.get_logger().info(f"{controllers.holding} hold; {list(controllers.following.values())} wait")
        try:
            last = time.monotonic()
            while not ended.is_set():
                operator.executor.spin_once(timeout_sec=PERIOD)
                if time.monotonic() - last >= PERIOD:
                    last = time.monotonic()
                    controllers.look()
        finally:
            controllers.hold()


if __name__ == "__main__":
    main()
