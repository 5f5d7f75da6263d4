"""How a robot's computer runs a policy: at its rate, behind the gate, with a driver for the robot.

    python examples/run_on_robot.py policy.onnx --rate 100

Needs only numpy and onnxruntime, for any kind of robot. ``StandIn`` is a simple simulated robot: it is at rest, and its
actuators follow their commands. Replace it by your driver; nothing else has to change. Ctrl-C stops the robot as
defined in the contract. To see the response to faults:

    python examples/run_on_robot.py policy.onnx --lose sensors      # stopped
    python examples/run_on_robot.py policy.onnx --lose operator     # a multirotor's controller lands; others stop
    python examples/run_on_robot.py policy.onnx --lose policy       # it hangs: stopped within two periods
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from robo_rl.contract import Contract, Signal
from robo_rl.controllers.gate.codes import Event, Request, Source, State
from robo_rl.deploy.robot.loop import Loop, Samples, Step
from robo_rl.deploy.robot.runtime import Policy

AT_REST = {"position": (0.1, 0.0, 0.0), "position_setpoint": (0.0, 0.0, 1.0)}
"""Where a robot is that has a position, and the point where it should be; all else is zero."""
HEIGHT = 1.0  # m, where it hangs as soon as its motors run
LOST_AFTER = 1.0  # s, when the stand-in loses "sensors" or "operator"
FOLLOWING = 0.3  # part of the way to its target that an actuator goes in one step
RUN_IN = 20  # steps before the robot is armed: the first calls of everything are slow


class StandIn:
    """In place of a driver: the sensors of a robot at rest, whose actuators follow their commands.

    After a second it may lose its "sensors" (the last signals are repeated) or its "operator" (set-points
    are no longer numbers).
    """

    def __init__(self, contract: Contract, lose: str | None = None) -> None:
        self.contract, self.lose = contract, lose
        self.random = np.random.default_rng(0)
        self.begun: int | None = None
        self.last: dict[str, tuple[np.ndarray, int]] = {}
        self.signals = [signal for signal in contract.signals if signal.source != "runtime"]
        self.places = {signal.name: self._rest(signal) for signal in self.signals}
        self.feedback = [(c.name, contract.feedback(c)) for c in contract.commands if c.needs_feedback]

    def read(self, now: int) -> Samples:
        """The newest signals."""
        self.begun = now if self.begun is None else self.begun
        lost = self.lose if now - self.begun > 1e6 * LOST_AFTER else None
        if lost != "sensors":
            self.last = {signal.name: (self._measure(signal), now) for signal in self.signals}
        for signal in self.signals:
            if lost == "operator" and signal.source == "operator":
                self.last[signal.name] = (np.full(signal.dimensions, np.nan), now)
        return self.last

    def write(self, commands: Mapping[str, np.ndarray] | None, source: Source) -> None:
        """What would move the motors; None: they are disabled."""
        passive = [command for command in self.contract.commands if command.stop == "off"]
        if (
            commands is not None
            and any(np.any(commands[c.name] != c.safe) for c in passive)
            and "position" in self.places
        ):
            self.places["position"][2] = HEIGHT
        for name, places in self.feedback if commands is not None else []:
            for wanted, (signal, index) in zip(commands[name], places, strict=True):
                self.places[signal][index] += FOLLOWING * (wanted - self.places[signal][index])

    def _rest(self, signal: Signal) -> np.ndarray:
        zero = (0.0, 0.0, 0.0, 1.0) if signal.kind == "quaternion" else AT_REST.get(signal.name, 0.0)
        return np.clip(signal.spread(zero), *signal.bounds)

    def _measure(self, signal: Signal) -> np.ndarray:
        noise = signal.spread(0.0 if signal.noise is None else signal.noise)
        value = self.places[signal.name] + noise * self.random.normal(size=signal.size)
        return np.clip(value, *signal.bounds).reshape(signal.dimensions)


class Hanging:
    """A policy that hangs after some steps."""

    def __init__(self, policy: Policy, steps: int) -> None:
        self.policy, self.contract, self.left = policy, policy.contract, steps
        self.reset = policy.reset

    def step(self, signals: Any, ages: Any = None) -> Any:
        """The policy's step; hangs after the given number of steps."""
        self.left -= 1
        if self.left < 0:
            threading.Event().wait()
        return self.policy.step(signals, ages=ages)


def run(policy: Policy, robot: Any, seconds: float, clock: Any = time, patience: float | None = None) -> int:
    """Run for some seconds. Returns 0, or 1 after a fault."""
    begun = clock.monotonic_ns() // 1000

    def note(step: Step) -> None:
        """Arm, let the policy take over as soon as it may, and print what happens."""
        if step.number == RUN_IN:
            loop.request(Request.ARM)
        elif loop.reserve.arrived:
            loop.request(Request.ACTIVATE)
        output, passed = step.output, (step.time - begun) / 1e6
        if output.events & (Event.FAULTED | Event.REFUSED):
            print(f"{passed:6.3f} s  {Event(output.events).name}: {step.sentence}")
        if step.number % 10 == 0 or output.events:
            numbers = " ".join(f"{x:7.2f}" for x in output.command)
            print(f"{passed:6.3f} s  {State(output.state).name:<6} {output.source.name:<8} {numbers}")

    loop = Loop(policy, robot, note, clock, patience)
    code = loop.run(seconds)
    if loop.stuck:  # a process with a thread that hangs can't end in peace
        sys.stdout.flush()
        os._exit(code)
    return code


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Run a policy as a robot's computer does.")
    parser.add_argument("bundle", help="a file written by 'robo-rl export'")
    parser.add_argument("--rate", type=float, default=100.0, help="how often your loop runs, Hz")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long to run")
    parser.add_argument("--trusted-keys", help="run only what a key in this file signed")
    parser.add_argument("--lose", choices=["sensors", "operator", "policy"], help="what is lost after a second")
    parser.add_argument("--native", action="store_true", help="compile the policy for this computer")
    given = parser.parse_args()
    policy: Any = Policy.load(given.bundle, given.rate, trusted_keys=given.trusted_keys, native=given.native)
    if policy.runtime_note:
        print(f"onnxruntime runs the policy: {policy.runtime_note}")
    robot = StandIn(policy.contract, given.lose)
    if given.lose == "policy":
        policy = Hanging(policy, round(LOST_AFTER * given.rate))
    return run(policy, robot, given.seconds)


if __name__ == "__main__":
    sys.exit(main())
