"""A simulated robot and its policy in one process: messages, faults, buffer, session and gate, without DDS.

Time is simulated and stands still while a step is computed, so a fault's outcome is the same on any computer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message

from robo_rl.controllers.gate.codes import Request, Source, State
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.deploy.robot.session import Decision, Session
from robo_rl.ros.faults import Fault, FaultInjector
from robo_rl.ros.message_encoding import compose
from robo_rl.ros.signal_buffer import SignalBuffer
from robo_rl.ros.twin_node import EPOCH
from robo_rl.ros.twins import make_twin
from robo_rl.ros.wiring import Wire, signal_wires
from robo_rl.ros.writing import message_type


@dataclass(frozen=True)
class Step:
    """What one control period came to."""

    time: float
    """s."""
    decision: Decision
    commands: dict[str, np.ndarray]
    """What the actuators got."""


class Pair:
    """A twin and a session that are stepped in turn."""

    def __init__(self, file: str, task: str = "") -> None:
        """``task`` is that of the policy, where it is not included."""
        self.bundle, self.twin = Bundle.read(file), make_twin(task, bundle=file)
        self.signals = {signal.name: signal for signal in self.twin.spec.signals}
        self.wires = signal_wires(self.bundle.contract.signals, {})
        self.outlets: dict[tuple[str, str], list[Wire]] = {}
        for wire in self.wires:
            self.outlets.setdefault((wire.topic, wire.kind), []).append(wire)
        self.begin()

    def begin(self) -> None:
        """As after power-up, with the robot on the ground."""
        self.twin.restart()
        self.session = Session(Policy(self.bundle))
        self.buffer = SignalBuffer(self.bundle.contract, self.wires)
        self.injectors = {key: FaultInjector(serialize_message) for key in self.outlets}
        self.steps: list[Step] = []

    @property
    def ns(self) -> int:
        return EPOCH + round(1e9 * self.twin.time)

    @property
    def last(self) -> Decision:
        return self.steps[-1].decision

    def step(self, requests: Request = Request.NONE, fault: Fault | None = None) -> Step:
        """Measure, send, decide, move."""
        now = self.ns // 1000
        values = self.twin.measure()
        for (topic, kind), wires in self.outlets.items():
            message, injector = compose(wires, self.signals, values, self.ns), self.injectors[topic, kind]
            if fault is None or not fault.strikes(topic):
                injector.pass_on(message)
                sent = [message]
            else:
                sent = injector.strike(fault, message, now * 1e-6)
            for one in sent:
                self._receive((topic, kind), one)
        taken, operator = self.buffer.take()
        decision = self.session.step(now, taken, requests, operator)
        self.session.finish_step()
        self._move(decision)
        self.steps.append(Step(now * 1e-6, decision, self.moved))
        return self.steps[-1]

    def _receive(self, key: tuple[str, str], message: Any) -> None:
        data = message if isinstance(message, bytes) else serialize_message(message)
        try:
            arrived = deserialize_message(data, message_type(key[1]))
        except Exception:  # bytes that are no message: rclpy's errors share no type
            return
        self.buffer.put(key, arrived, self.ns // 1000, self.ns)

    def _move(self, decision: Decision) -> None:
        sent = decision.send
        commands = None if sent is None else self.session.config.commands_by_name(sent)
        self.twin.set_source(decision.output.source)
        self.moved = self.twin.step(commands)

    def engage(self, seconds: float) -> None:
        """From the ground to a policy in control, and as long as that."""
        for request in (Request.NONE, Request.NONE, Request.ARM, Request.ACTIVATE):
            self.step(request)
        self.go_on(seconds)
        assert self.last.output.state == State.ACTIVE, self.sentence(self.last)

    def go_on(self, seconds: float, fault: Fault | None = None) -> list[Step]:
        """So many s more; the steps."""
        count, begun = round(seconds / self.twin.period), len(self.steps)
        for _ in range(count):
            self.step(fault=fault)
        return self.steps[begun:]

    def strike(self, text: str, seconds: float) -> tuple[list[Step], Step | None]:
        """The steps of so many s under a fault, and the first in which the policy is no more in control."""
        steps = self.go_on(seconds, Fault.parse(text))
        return steps, next((step for step in steps if step.decision.output.source != Source.POLICY), None)

    def sentence(self, decision: Decision) -> str:
        """As the node tells it."""
        told = [self.session.explain(decision.output.problem), decision.doubt, self.session.complaint]
        return "; ".join([*told, *self.buffer.complaints()])
