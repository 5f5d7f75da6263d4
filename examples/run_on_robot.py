"""How a robot's computer runs a policy: at its rate, behind the gate, with a classical controller in reserve.

    python examples/run_on_robot.py policy.onnx

Needs numpy and onnxruntime alone. ``StandIn`` takes the robot's place: it hangs still beside its set-point and
throws commands away. Replace it by your drivers; nothing else has to change. To see what faults do:

    python examples/run_on_robot.py policy.onnx --lose sensors      # nothing can fly blind: the safe command
    python examples/run_on_robot.py policy.onnx --lose operator     # the classical controller lands
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from controllers.gate_codes import Event, Request, State, explain
from controllers.gate_config import GateConfig
from controllers.multirotor import GeometricController, Multirotor
from controllers.safety import Inputs, initial, step
from deploy.runtime import Policy, SignalError
from robo_rl.contract import Contract, Signal

SINK = 0.3  # m/s, how fast the reserve controller lands
GROUND = 0.05  # m, the height at which it has landed
LOST_AFTER = 1.0  # s, when the stand-in loses what it shall lose

Measured = dict[str, tuple[np.ndarray, int]]
"""By name of the signal: its value in the contract's order and unit, and when it was measured (µs)."""


class StandIn:
    """In place of drivers: sensors that see a robot at rest, 0.1 m beside the point where it should be.

    After a second it may lose its "sensors" (the same old signals come again and again) or its "operator" (set-points
    are no longer numbers).
    """

    def __init__(self, contract: Contract, lose: str | None = None) -> None:
        self.contract, self.lose = contract, lose
        self.random = np.random.default_rng(0)
        self.begun: int | None = None
        self.last: Measured = {}
        self.sent: Mapping[str, np.ndarray] = {}

    def read(self, now: int) -> Measured:
        """The newest signals."""
        self.begun = now if self.begun is None else self.begun
        lost = self.lose if now - self.begun > 1e6 * LOST_AFTER else None
        if lost != "sensors":
            self.last = {signal.name: (self._measure(signal), now) for signal in self.contract.signals}
        if lost == "operator":
            for name in ("position_setpoint", "linear_velocity_setpoint"):
                self.last[name] = (np.full(3, np.nan), now)
        return self.last

    def _measure(self, signal: Signal) -> np.ndarray:
        true = {"orientation": (0.0, 0.0, 0.0, 1.0), "position": (0.1, 0.0, 1.0), "position_setpoint": (0.0, 0.0, 1.0)}
        value = np.array(true.get(signal.name, (0.0,) * signal.size))
        return value + self.random.normal(size=signal.size) * np.array(signal.noise or 0.0)

    def send(self, commands: Mapping[str, np.ndarray]) -> None:
        """What would move the motors."""
        self.sent = commands


class Reserve:
    """The geometric controller, ready to take over at any moment and sink to the ground."""

    def __init__(self, contract: Contract) -> None:
        self.controller = GeometricController(Multirotor.of(contract.robot), contract.control_period)
        self.state = self.controller.first_state(1)

    def commands(self, signals: Mapping[str, np.ndarray]) -> dict[str, np.ndarray] | None:
        """Rotor speeds that bring the robot down; None once it is there."""
        if signals["position"][2] < GROUND:
            return None
        wanted = {"position_setpoint": signals["position"], "linear_velocity_setpoint": np.array([0.0, 0.0, -SINK])}
        batch = {name: value[None].astype(np.float32) for name, value in {**signals, **wanted}.items()}
        commands, self.state = self.controller(batch, self.state)
        return {name: value[0] for name, value in commands.items()}


def propose(policy: Policy, signals: Mapping[str, np.ndarray]) -> dict[str, np.ndarray] | None:
    """The policy's commands, or nothing if it refuses the signals. The gate will say why."""
    try:
        return policy.step(signals)
    except SignalError:
        return None


def run(policy: Policy, robot: StandIn, seconds: float, clock: Any = time) -> int:
    """Fly for some seconds. Returns 0, or 1 after a fault.

    The gate owns the robot: every command that is sent is the gate's, whatever policy and controller propose.
    """
    contract = policy.contract
    config = GateConfig.from_contract(contract)
    gate, reserve = initial(config), Reserve(contract)
    period = round(1e6 * contract.control_period)
    begun = due = clock.monotonic_ns() // 1000
    requests = {20: Request.ARM, 21: Request.ACTIVATE}  # by then everything has run once: first calls are slow
    for count in range(round(seconds / contract.control_period)):
        now = clock.monotonic_ns() // 1000
        due = due + period if now < due + period else now + period  # what was missed is not made up for
        measured = robot.read(now)
        signals = {name: value for name, (value, _) in measured.items()}
        if gate.state != State.ACTIVE:
            policy.reset()  # it takes over without a past
        proposed, fallback = propose(policy, signals), reserve.commands(signals)
        values, stamps = config.flat_signals(measured)
        given = Inputs(
            time=now,
            signals=values,
            stamps=stamps,
            command=None if proposed is None else config.flat_command(proposed),
            command_stamp=now,
            fallback=None if fallback is None else config.flat_command(fallback),
            operator_stamp=now,
            bundle_intact=True,  # Policy.load has seen to it
            requests=requests.get(count, Request.NONE),
        )
        gate, answer = step(config, gate, given)
        robot.send(config.commands_by_name(answer.command))
        if answer.events & (Event.FAULTED | Event.REFUSED):
            print(f"{(now - begun) / 1e6:6.3f} s  {answer.events.name}: {explain(config, answer.problem)}")
        if count % 10 == 0 or answer.events:
            numbers = " ".join(f"{x:7.1f}" for x in answer.command)
            print(f"{(now - begun) / 1e6:6.3f} s  {answer.state.name:<6} {answer.source.name:<8} {numbers}")
        clock.sleep(max(0.0, due / 1e6 - clock.monotonic_ns() / 1e9))
    robot.send(policy.safe_commands)
    return 1 if gate.state == State.FAULT else 0


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Run a policy as a robot's computer does.")
    parser.add_argument("bundle", help="what 'robo-rl export' wrote")
    parser.add_argument("--rate", type=float, default=100.0, help="how often your loop runs, Hz")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long to fly")
    parser.add_argument("--lose", choices=["sensors", "operator"], help="what the stand-in loses after a second")
    given = parser.parse_args()
    policy = Policy.load(given.bundle, given.rate)
    if policy.contract.robot.kind != "multirotor":
        robot = f"'{policy.contract.robot_name}', a {policy.contract.robot.kind} robot"
        parser.error(f"{given.bundle} is for {robot}; expected a multirotor's policy")
    return run(policy, StandIn(policy.contract, given.lose), given.seconds)


if __name__ == "__main__":
    sys.exit(main())
