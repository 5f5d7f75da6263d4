"""panel: a page in the browser for the person beside the robot. State, reason, rates, plots; arm, engage, stop, reset.

A process of its own that only asks: whatever becomes of it, the gate goes on as if it had never been there. Where the
contract wants an operator, the page is one as long as it is open, in sight, and the page that armed the robot: its
signs of life come from the browser itself, and are passed on one by one. A page that is closed, hidden or cut off
falls silent, and the gate acts within the contract's time.
"""

from __future__ import annotations

import queue
import secrets
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.srv import GetState
from std_msgs.msg import Empty, String
from std_srvs.srv import Trigger

import robo_rl.viewer
from robo_rl.contract import Contract
from robo_rl.deploy.robot.supervisor import SignalSafeEvent
from robo_rl.files.ports import opening
from robo_rl.ros import quality
from robo_rl.ros.gate_topic import listen_to_gate
from robo_rl.ros.operate import REQUESTS, TRANSITIONS, Operator, OperatorError
from robo_rl.ros.reading import MessageError, read
from robo_rl.ros.wiring import Wire
from robo_rl.ros.writing import message_type
from robo_rl.viewer.access import ADDRESS, Access, Role
from robo_rl.viewer.server import Frame, Viewer

FRAMES_PER_SECOND = 20
MEMORY = 20 * FRAMES_PER_SECOND
"""Frames that a page which is opened later still gets to see."""
STOP_TIME = 1.0
"""s that a stop may take to be confirmed."""
ACTION_TIME = 60.0
"""s that any other action may take."""
MOST_WANTED = 8
"""Actions, other than stop, that wait for their turn."""
TAKES_OVER = ("arm", "engage", "activate")
"""Actions that make the requesting page the operator."""
ACTIONS = (*TRANSITIONS, *REQUESTS, "select")
SUMMARY = ("least", "mean", "greatest")
"""What the page shows of a scan, an image or a table."""


def summary(value: np.ndarray) -> list[float]:
    """``SUMMARY`` of an array."""
    return [float(value.min()), float(value.mean()), float(value.max())]


class Panel:
    """What the page shows and does. ``run`` in one thread; the page's server calls the rest from its own."""

    page = Path(robo_rl.viewer.__file__).with_name("panel.html")

    def __init__(self, operator: Operator) -> None:
        """``operator`` is running already, and used only by this node."""
        self.operator, self.policy = operator, operator.policy
        self._contract_text = self._known_text = self._trouble = ""
        self.contract: Contract | None = None
        self._channels: list[dict[str, Any]] = []
        self._subscriptions: list[Any] = []
        self._newest: dict[str, list[float | None]] = {}
        self._diagnostics: dict[str, dict[str, Any]] = {}
        self._heard = -1.0
        self._lifecycle = "unknown"
        self._holder = ""
        """The page that armed the robot, and must stay open."""
        self._wanted: queue.Queue[tuple[Callable[[], str], queue.Queue[str | OperatorError]]] = queue.Queue(MOST_WANTED)
        self._history: deque[dict[str, Any]] = deque(maxlen=MEMORY)
        self._frame, self._changed, self._begun = Frame(0, {}), threading.Condition(), time.monotonic()
        node = operator.node
        self._heartbeat = node.create_publisher(Empty, f"{self.policy}/heartbeat", quality.OPERATOR)
        self._stop = node.create_client(Trigger, f"{self.policy}/stop")
        self._state = node.create_client(GetState, f"{self.policy}/get_state")
        node.create_subscription(String, f"{self.policy}/contract", self._on_contract, quality.LATCHED)
        listen_to_gate(node, self.policy, self._on_gate)
        node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        node.create_timer(1 / FRAMES_PER_SECOND, self._publish)  # these are served while an action waits, too
        node.create_timer(1.0, self._ask_state)

    # --- what the page asks for -------------------------------------------------------------------------------

    def scene(self) -> dict[str, Any]:
        """The contract in short, and the last frames' values."""
        contract = self.contract
        about = {"task": contract.task, "robot": contract.robot_name} if contract else {"task": "", "robot": ""}
        timeout = contract.safety.operator_timeout if contract else None
        history = list(self._history)
        return {
            **about,
            "policy": self.policy.strip("/"),
            "operator_timeout": timeout,
            "channels": self._channels,
            "history": [{"time": frame["time"], "values": frame["values"]} for frame in history],
        }

    def next_frame(self, after: int, timeout: float) -> Frame | None:
        """The newest frame above ``after``."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._frame.number > after, timeout):
                return None
            return self._frame

    def act(self, request: Any, role: Role) -> str | None:
        """``{"alive": page}``, or ``{"do": action, "page": page}``; "select" has the policy's name as "name" too.

        Who only watches may stop, and nothing else; no sign of life of theirs counts.
        """
        if not isinstance(request, dict) or not all(isinstance(value, str) for value in request.values()):
            raise ValueError('expected {"alive": page} or {"do": action, "page": page}')
        if role is not Role.OPERATE and request.get("do") != "stop":
            raise PermissionError("this page may view, and stop; expected the token of those who may operate")
        if set(request) == {"alive"}:
            if request["alive"] and request["alive"] == self._holder:
                self._heartbeat.publish(Empty())
            return None
        if not {"do", "page"} <= set(request) <= {"do", "page", "name"} or request["do"] not in ACTIONS:
            raise ValueError(f'expected {{"do": action, "page": page}} with an action of {ACTIONS}')
        if request["do"] == "stop":
            return self._do_stop()
        return self._do(request["do"], request["page"], request.get("name", ""))

    def _do_stop(self) -> str:
        """At once, past all that waits. The page's signs of life end too, should the request not arrive."""
        self._holder, answered = "", threading.Event()
        future = self._stop.call_async(Trigger.Request())
        future.add_done_callback(lambda _: answered.set())
        if not answered.wait(STOP_TIME):
            raise OperatorError("stop: the policy's node did not answer; use the robot's own emergency stop")
        answer = future.result()
        if not answer.success:
            raise OperatorError(f"stop: {answer.message}")
        return answer.message

    def _do(self, action: str, page: str, name: str) -> str:
        answer: queue.Queue[str | OperatorError] = queue.Queue()
        try:
            self._wanted.put_nowait((lambda: self._serve(action, page, name), answer))
        except queue.Full:
            raise OperatorError(f"{action}: {MOST_WANTED} other requests wait; ask again when they are done") from None
        try:
            said = answer.get(timeout=ACTION_TIME)
        except queue.Empty:
            raise OperatorError(f"{action}: no answer within {ACTION_TIME:g} s") from None
        if isinstance(said, OperatorError):
            raise said
        return said

    # --- the thread of ROS ------------------------------------------------------------------------------------

    def run(self, going: threading.Event) -> None:
        """Listen and serve until ``going`` is cleared."""
        while going.is_set() and self.operator.context.ok():
            try:
                self.operator.executor.spin_once(timeout_sec=0.02)
                if self._contract_text != self._known_text:
                    self._listen()
            except Exception as error:  # of what somebody sent: the thread that a stop needs goes on
                self._trouble = f"a message could not be used: {error!r}"[:300]
            while not self._wanted.empty():
                act, answer = self._wanted.get()
                try:
                    answer.put(act())
                except OperatorError as error:
                    answer.put(error)
                except Exception as error:  # of an answer that is none
                    answer.put(OperatorError(repr(error)[:300]))

    def _serve(self, action: str, page: str, name: str) -> str:
        if action == "arm" and self._lifecycle == "inactive":
            action = "activate"
        if action in TAKES_OVER:
            self._holder = page
            self._heartbeat.publish(Empty())
        try:
            return self.operator.select(name) if action == "select" else self.operator.do(action)
        except OperatorError:
            if self.operator.gate.get("state") not in ("READY", "ACTIVE"):
                self._holder = ""
            raise
        finally:
            self._ask_state()

    def _ask_state(self) -> None:
        if self._state.service_is_ready():
            self._state.call_async(GetState.Request()).add_done_callback(self._on_state)
        else:
            self._lifecycle = "unknown"

    def _on_state(self, future: Any) -> None:
        if future.result() is not None:
            self._lifecycle, self._heard = future.result().current_state.label, time.monotonic()

    def _on_contract(self, message: String) -> None:
        self._contract_text = message.data

    def _on_gate(self, told: dict[str, Any]) -> None:
        if told["state"] in ("IDLE", "FAULT"):
            self._holder = ""

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        name = self.policy.rpartition("/")[2]
        own = [status for status in message.status if status.name.startswith(f"{name}: ")]
        if own:
            self._heard = time.monotonic()
            self._diagnostics = {
                status.name.partition(": ")[2]: {
                    "level": int.from_bytes(status.level, "little"),
                    "text": status.message,
                    "values": {pair.key: pair.value for pair in status.values},
                }
                for status in own
            }

    def _listen(self) -> None:
        """To every signal and command of a new contract, where the policy's node has them wired."""
        self._known_text, self._trouble = self._contract_text, ""
        try:
            contract = Contract.from_json(self._contract_text, f"{self.policy}/contract")
            pairs = self.operator.wiring(contract)
        except ValueError as error:
            self._trouble = str(error)
            return
        self._plug(pairs)
        self.contract = contract

    def _plug(self, pairs: list[tuple[Wire, Any]]) -> None:
        """Subscribe to the topics of these signals and commands, and to no others."""
        for subscription in self._subscriptions:
            self.operator.node.destroy_subscription(subscription)
        self._newest, namespace = {}, self.policy.rpartition("/")[0]
        self._history.clear()
        self._channels = [
            {
                "name": channel.name,
                "elements": SUMMARY if getattr(channel, "shape", None) else channel.elements,
                "unit": channel.unit,
                "topic": wire.topic,
                "low": None if getattr(channel, "shape", None) else getattr(channel, "seen_low", channel.lower),
                "high": None if getattr(channel, "shape", None) else getattr(channel, "seen_high", channel.upper),
            }
            for wire, channel in pairs
        ]
        by_topic: dict[tuple[str, str], list[tuple[Wire, Any]]] = {}
        for wire, channel in pairs:
            by_topic.setdefault((f"{namespace}/{wire.topic}", wire.kind), []).append((wire, channel))
        self._subscriptions = [
            self.operator.node.create_subscription(message_type(kind), topic, self._receiver(group), quality.SENSOR)
            for (topic, kind), group in by_topic.items()
        ]

    def _receiver(self, pairs: list[tuple[Wire, Any]]) -> Callable[[Any], None]:
        def receive(message: Any) -> None:
            for wire, channel in pairs:
                try:
                    value = read(wire.kind, wire.field, message, wire.measured(channel), wire.view())
                except (MessageError, TypeError, ValueError, OverflowError):
                    continue  # the policy's node tells about it, in its diagnostics
                shown = summary(value) if getattr(channel, "shape", None) else value.tolist()
                self._newest[channel.name] = [float(f"{x:.5g}") if abs(x) < 1e9 else None for x in shown]

        return receive

    def _publish(self) -> None:
        now = time.monotonic()
        content = {
            "time": round(now - self._begun, 3),
            "lifecycle": self._lifecycle,
            "gate": self.operator.gate,
            "silence": round(now - self._heard, 2) if self._heard >= 0 else None,
            "diagnostics": self._diagnostics,
            "trouble": self._trouble,
            "operator": self._holder,
            "channels": len(self._channels),
            "task": self.contract.task if self.contract else "",
            "values": self._newest,
        }
        self._newest = {}  # what does not arrive any more leaves a gap
        self._history.append(content)
        with self._changed:
            self._frame = Frame(self._frame.number + 1, content)
            self._changed.notify_all()


def _access(address: str, token: str, view_token: str) -> Access:
    """Tokens that are not given are made up where others can reach the address."""
    if address == ADDRESS:
        return Access(address, token, view_token)
    return Access(address, token or secrets.token_urlsafe(24), view_token or secrets.token_urlsafe(24))


def main(arguments: list[str] | None = None) -> None:
    """Serve the page until SIGINT or SIGTERM."""
    with Operator(name="panel", arguments=sys.argv if arguments is None else arguments) as operator:
        get = operator.node.declare_parameter
        address, port = get("address", "127.0.0.1").value, get("port", 8080).value
        access = _access(address, get("token", "").value, get("view_token", "").value)
        operator.policy = operator.node.resolve_topic_name(get("policy", "policy").value)
        panel, going = Panel(operator), SignalSafeEvent()
        going.set()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: going.clear())
        with opening(port, "give another one by --parameter port:=8081"):
            viewer = Viewer(panel, port, access)
        with viewer as server:
            if access.view_token:
                print(f"to view, and to stop: {access.url(server.port, Role.VIEW)}", flush=True)
            print(f"the panel is at {server.url}   (Ctrl-C ends it)", flush=True)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            panel.run(going)
            server.shutdown()


if __name__ == "__main__":
    main()
