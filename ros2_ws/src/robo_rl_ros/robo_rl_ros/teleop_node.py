"""teleop: steer a robot by keyboard, joystick or cmd_vel, for any set-points of its policy.

It reads the contract from the policy's node and gives every set-point that the operator owes, 20 times a second: a
velocity on cmd_vel to a legged robot, a position and a velocity to a multirotor. Nothing is wished without a sign of
the hand within half a second: a key, a joystick's message with the enabling button held, a Twist. From a policy that
can be taken over from, the robot is taken over by such a sign, and given back without one.
"""

from __future__ import annotations

import contextlib
import math
import signal
import sys
import time
from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from geometry_msgs.msg import Twist, TwistStamped
from sensor_msgs.msg import Joy
from std_msgs.msg import String
from std_srvs.srv import Trigger

from robo_rl.contract import Contract, Signal
from robo_rl.deploy.robot.actor import INTERVENTION
from robo_rl.deploy.robot.named_values import texts_by_name
from robo_rl.deploy.robot.supervisor import SignalSafeEvent
from robo_rl.ros import quality
from robo_rl.ros.joystick import Axis, Joystick
from robo_rl.ros.keyboard import KEYS, Keyboard
from robo_rl.ros.message_encoding import compose
from robo_rl.ros.operate import Operator
from robo_rl.ros.reading import MessageError, read
from robo_rl.ros.teleoperation import AXES, DEAD_MAN, Takeover, Teleoperation
from robo_rl.ros.wiring import Wire
from robo_rl.ros.writing import message_type

PERIOD = 0.05  # s
AWAY = 1.0
"""s without a message after which a joystick counts as plugged in anew; joy_node sends 20 a second by default."""
SOURCES = ("keyboard", "joy", "Twist", "TwistStamped")
HELP = """w s or arrows: forward, back     q e: left, right     r f: up, down     a d or arrows: turn
space: STOP (the gate latches it)     any other key: stand still     Ctrl-C ends it"""


class Teleop:
    """What one hand wishes, sent as set-points."""

    triggers: Mapping[str, float] = MappingProxyType({})
    """Where those of ``sticks`` rest that are triggers."""

    def __init__(self, operator: Operator) -> None:
        """``operator`` is at work already; its node has the parameters."""
        self.operator, node = operator, operator.node
        get = node.declare_parameter
        self.source = get("source", "keyboard").value
        if self.source not in SOURCES:
            raise ValueError(f"source is '{self.source}'; expected one of {SOURCES}")
        self.speed, self.turn = get("speed", 0.5).value, get("turn", 1.0).value
        usual = ["forward=1", "left=0", "up=4", "turn=3"]
        given = texts_by_name(get("axes", usual).value, "parameter 'axes'")
        axes = {name: Axis.parse(name, text) for name, text in given.items()}
        self.sticks = {name: axis.number for name, axis in axes.items()}
        self.triggers = {name: axis.rest for name, axis in axes.items() if axis.rest}
        if unknown := set(self.sticks) - set(AXES):
            raise ValueError(f"axes names {sorted(unknown)}; expected {AXES}")
        if len(set(self.sticks.values())) < len(self.sticks):
            raise ValueError(f"axes are {given}; expected another number for each")
        self.enable_button, self.stop_button = get("enable_button", 4).value, get("stop_button", 1).value
        if self.enable_button == self.stop_button:
            raise ValueError(f"enable_button and stop_button are both {self.stop_button}; expected two buttons")
        self.wish, self.wished = np.zeros(4), -DEAD_MAN
        self._contract = ""
        self._measured: dict[str, np.ndarray] = {}
        self._world = "odom"
        """The frame in which the robot's position comes, and set-points go."""
        self._stop = node.create_client(Trigger, f"{operator.policy}/stop")
        self._held = False
        node.create_subscription(String, f"{operator.policy}/contract", self._on_contract, quality.LATCHED)
        if self.source == "joy":
            node.create_subscription(Joy, "joy", self._on_joy, quality.OPERATOR)

    def connect(self) -> None:
        """Wait for the contract, and determine the set-points and their topics."""
        if not self.operator.wait(lambda: bool(self._contract), self.operator.patience):
            raise ValueError(f"'{self.operator.policy}' publishes no contract; is the node running, and configured?")
        contract = Contract.from_json(self._contract, f"{self.operator.policy}/contract")
        wires = [(wire, channel) for wire, channel in self.operator.wiring(contract) if isinstance(channel, Signal)]
        given = [(wire, channel) for wire, channel in wires if channel.source == "operator"]
        if taken := [(wire, s) for wire, s in given if s.name == INTERVENTION]:
            given = taken
            self.teleoperation: Teleoperation | Takeover = Takeover(contract, self.speed)
        else:
            self.teleoperation = Teleoperation(contract, tuple(s.name for _, s in given), self.speed, self.turn)
        self._signals = {s.name: s for _, s in given}
        node = self.operator.node
        groups: dict[tuple[str, str], list[Wire]] = {}
        for wire, _ in given:
            groups.setdefault((wire.topic, wire.kind), []).append(wire)
        self._outlets = [
            (group, node.create_publisher(message_type(kind), topic, 1)) for (topic, kind), group in groups.items()
        ]
        if self.source.startswith("Twist"):
            if any(wire.topic == "cmd_vel" for wire, _ in given):
                raise ValueError("the policy's node subscribes to cmd_vel itself; teleop is not needed")
            kind = {"Twist": Twist, "TwistStamped": TwistStamped}[self.source]
            node.create_subscription(kind, "cmd_vel", self._on_twist, quality.OPERATOR)
        for wire, channel in wires:
            if channel.name in self.teleoperation.needs:
                receive = self._receiver(wire, channel)
                node.create_subscription(message_type(wire.kind), wire.topic, receive, quality.SENSOR)

    def _receiver(self, wire: Wire, channel: Any) -> Callable[[Any], None]:
        def receive(message: Any) -> None:
            with contextlib.suppress(MessageError):  # the policy's node tells about it
                self._measured[channel.name] = read(wire.kind, wire.field, message, channel, wire.view())
                if channel.name == "position" and message.header.frame_id:
                    self._world = message.header.frame_id

        return receive

    def _on_contract(self, message: String) -> None:
        self._contract = message.data

    def want(self, wish: Any) -> None:
        """A sign of the hand: (4,) m/s and rad/s."""
        self.wish, self.wished = np.asarray(wish, float), time.monotonic()

    def press(self, key: str) -> None:
        """A key of the keyboard."""
        if key == " ":
            self.stop()
        self.want(self.teleoperation.limits * KEYS.get(key, (0, 0, 0, 0)))

    def stop(self) -> None:
        """Ask the gate to stop."""
        self.want(np.zeros(4))
        print("STOP", flush=True)
        self._stop.call_async(Trigger.Request())

    def _on_joy(self, message: Joy) -> None:
        def button(number: int) -> bool:
            return 0 <= number < len(message.buttons) and bool(message.buttons[number])

        if button(self.stop_button) and not self._held:
            self.stop()
        self._held = button(self.stop_button)
        if not 0 <= self.enable_button < len(message.buttons):
            self._tell(f"the joystick has {len(message.buttons)} buttons; enable_button is {self.enable_button}")
        if time.monotonic() - self._joy > AWAY:
            self.joystick.forget()
        self._joy = time.monotonic()
        enabled = button(self.enable_button)
        values, refused = self.joystick.read(message.axes, enabled)
        if not enabled:
            return
        self._tell("\n".join(refused.values()) or "all axes count", tuple(refused))
        sticks = np.zeros(4)
        for name, value in values.items():
            sticks[AXES.index(name)] = value
        self.want(self.teleoperation.limits * sticks)

    def _tell(self, sentence: str, about: Hashable = "") -> None:
        """Print it, unless the last one was ``about`` the same."""
        if about != self._about:
            self._about = about
            print(sentence, flush=True)

    _about: Hashable = ()
    """What was told last: the axes that don't count."""
    _joy = -math.inf
    """s, when the joystick was heard last."""

    @cached_property
    def joystick(self) -> Joystick:
        """The axes that were seen at rest."""
        return Joystick({name: Axis(number, self.triggers.get(name, 0.0)) for name, number in self.sticks.items()})

    def _on_twist(self, message: Any) -> None:
        twist = message.twist if self.source == "TwistStamped" else message
        self.want((twist.linear.x, twist.linear.y, twist.linear.z, twist.angular.z))

    def send(self, passed: float) -> None:
        """All set-points, ``passed`` s after the last."""
        fresh = time.monotonic() - self.wished <= DEAD_MAN
        values = self.teleoperation.setpoints(self.wish if fresh else None, passed, self._measured)
        if not values:
            return
        now = self.operator.node.get_clock().now().nanoseconds
        for group, publisher in self._outlets:
            publisher.publish(compose(group, self._signals, values, now, self._world))


def main(arguments: list[str] | None = None) -> None:
    """Steer until SIGINT or SIGTERM."""
    with contextlib.ExitStack() as stack:
        given = sys.argv if arguments is None else arguments
        operator = stack.enter_context(Operator(name="teleop", arguments=given))
        operator.policy = operator.node.resolve_topic_name(operator.node.declare_parameter("policy", "policy").value)
        teleop, going = Teleop(operator), SignalSafeEvent()
        keyboard = stack.enter_context(Keyboard()) if teleop.source == "keyboard" else None
        going.set()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: going.clear())
        teleop.connect()
        print(HELP if keyboard else f"steering by {teleop.source}", flush=True)
        last = time.monotonic()
        while going.is_set():
            operator.executor.spin_once(timeout_sec=0.01)
            for key in keyboard.pressed() if keyboard else ():
                teleop.press(key)
            if (now := time.monotonic()) - last >= PERIOD:
                teleop.send(min(now - last, 2 * PERIOD))
                last = now


if __name__ == "__main__":
    main()
