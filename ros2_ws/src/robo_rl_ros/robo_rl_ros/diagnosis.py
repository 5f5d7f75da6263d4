"""Diagnostics of the node: rates, ages, times, counts, and the gate, as diagnostic_msgs."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from robo_rl.controllers.gate.codes import Event, State
from robo_rl.deploy.robot.drivers.driver import Health
from robo_rl.deploy.robot.session import Decision, Session
from robo_rl.ros.control import Control
from robo_rl.ros.effects import EffectMonitor
from robo_rl.ros.signal_buffer import Arrivals

WINDOW = 1000
"""Steps that figures are taken over."""


class Statistics:
    """Figures of the last steps."""

    def __init__(self, runner: Session) -> None:
        self.period = runner.contract.control_period
        self.effects = EffectMonitor(runner.contract, runner.config)
        self.steps = self.limited = self.missed = 0
        self.times: deque[int] = deque(maxlen=WINDOW)
        self.inference: deque[float] = deque(maxlen=WINDOW)
        self.latency: deque[float] = deque(maxlen=WINDOW)
        self.decision: Decision | None = None

    def note(self, decision: Decision, after: int) -> None:
        """Count a step; ``after`` is the monotonic time in µs at which its command had left."""
        if self.times and decision.time - self.times[-1] > 1.5e6 * self.period:
            self.missed += 1
        self.steps += 1
        self.limited += bool(decision.output.events & Event.RATE_LIMITED)
        self.times.append(decision.time)
        self.inference.append(decision.inference)
        self.latency.append((after - decision.time) * 1e-6)
        self.decision = decision
        self.effects.note(decision.send, decision.inputs.signals)

    def numbers(self) -> dict[str, float]:
        """Rate in Hz, and times in s, by name; {} before the second step."""
        times, inference, latency = (list(found) for found in (self.times, self.inference, self.latency))
        if len(times) < 2:
            return {}
        return {
            "rate": (len(times) - 1) / max(1e-9, (times[-1] - times[0]) * 1e-6),
            "longest_interval": float(np.diff(times).max()) * 1e-6,
            "inference_p50": float(np.quantile(inference, 0.5)),
            "inference_p99": float(np.quantile(inference, 0.99)),
            "step_to_command_p99": float(np.quantile(latency, 0.99)),
        }

    def figures(self) -> dict[str, str]:
        """For a diagnostic message."""
        numbers = self.numbers()
        if not numbers:
            return {"steps": str(self.steps)}
        figures = {"rate Hz": numbers.pop("rate"), **{f"{k.replace('_', ' ')} ms": 1e3 * v for k, v in numbers.items()}}
        counts = {"steps": self.steps, "missed periods": self.missed, "rate-limited steps": self.limited}
        return {**{k: f"{v:.3f}" for k, v in figures.items()}, **{k: str(v) for k, v in counts.items()}}


def diagnostics(name: str, stamp: Any, control: Control, statistics: Statistics, complaints: list[str]) -> Any:
    """The message for /diagnostics."""
    message = DiagnosticArray()
    message.header.stamp = stamp
    message.status = [
        _gate(name, control, statistics, complaints),
        *(_signal(name, topic, a, control) for (topic, _), a in control.buffer.arrivals.items()),
        *([_robot(name, control.robot.driver.health())] if control.robot is not None else []),
    ]
    return message


def _gate(name: str, control: Control, statistics: Statistics, complaints: list[str]) -> DiagnosticStatus:
    runner, decision = control.runner, statistics.decision
    contract, bundle = runner.contract, runner.policies.policy.bundle
    state = runner.gate.state
    sentence = control.explain(decision) if decision is not None and state == State.FAULT else ""
    complaints = complaints + ([runner.policies.trouble] if runner.policies.trouble else [])
    wrong = complaints + ([sentence] if sentence else []) + ([control.broken] if control.broken else [])
    wrong += [control.stuck] if control.stuck else []
    told = {
        "state": state.name,
        "mode": runner.mode,
        "authority": f"{runner.authority:.2f}",
        "task": contract.task,
        "robot": contract.robot_name,
        "digest": bundle.digest,
        "policy": runner.policies.name,
        "policies": ", ".join(runner.policies.policies),
        **statistics.figures(),
        **{key: f"{value:.4f}" for key, value in runner.envelope.summary().items()},
    }
    level = DiagnosticStatus.ERROR if wrong else DiagnosticStatus.OK
    return _status(f"{name}: gate", level, "; ".join(wrong) or state.name, bundle.digest[:12], told)


def _signal(name: str, topic: str, arrivals: Arrivals, control: Control) -> DiagnosticStatus:
    silence = control.now() * 1e-6 - arrivals.last if arrivals.last >= 0 else float("inf")
    late = silence > control.runner.contract.safety.signal_timeout
    sensed = any(control.runner.contract.signal(w.name).source == "sensor" for w in _wires(control, topic))
    trouble = arrivals.complaint or ("" if arrivals.count else "nothing has arrived")
    trouble = trouble or ("it has stopped" if late and sensed else "")
    told = {
        "rate Hz": f"{1 / arrivals.interval:.1f}" if arrivals.interval > 0 else "unknown",
        "age on arrival ms": f"{1e3 * arrivals.age:.1f}",
        "last arrival s ago": f"{silence:.3f}",
        "messages": str(arrivals.count),
    }
    level = DiagnosticStatus.ERROR if trouble else DiagnosticStatus.OK
    return _status(f"{name}: {topic}", level, trouble or "arrives", "", told)


def _robot(name: str, health: Health) -> DiagnosticStatus:
    level = DiagnosticStatus.ERROR if health.problems else DiagnosticStatus.OK
    figures = {key: f"{value:g}" for key, value in health.figures.items()}
    return _status(f"{name}: robot", level, "; ".join(health.problems) or "well", "", figures)


def _wires(control: Control, topic: str) -> list[Any]:
    return [wire for (t, _), wires in control.buffer.wires.items() if t == topic for wire in wires]


def _status(name: str, level: bytes, text: str, hardware: str, told: dict[str, str]) -> DiagnosticStatus:
    values = [KeyValue(key=key, value=value) for key, value in told.items()]
    return DiagnosticStatus(name=name, level=level, message=text, hardware_id=hardware, values=values)
