"""The contract: what a policy reads, what it commands, how often, and within which limits.

A contract travels inside every bundle. Every runtime (Python, ROS 2, microcontroller) reads it before it
moves a motor, and refuses to start when anything disagrees. It is plain data: frozen dataclasses that turn
into JSON and back without losing a bit, and whose digest changes when any number does.

Units are SI. Quaternions are x, y, z, w. Vectors carry their frame. This module imports numpy and the
standard library alone, so that every other folder may import it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from robo_rl.contract.channels import UNITS, Command, Signal, StateBlock
from robo_rl.contract.checks import (
    ContractError,
    Numbers,
    require,
    require_name,
    require_unique,
    set_numbers,
)
from robo_rl.contract.reading import parse_json
from robo_rl.contract.robots import Joint, Legged, Multirotor, Robot, Rotor

__all__ = [
    "UNITS",
    "Command",
    "Contract",
    "ContractError",
    "Joint",
    "Legged",
    "Multirotor",
    "Numbers",
    "Provenance",
    "Robot",
    "Rotor",
    "Safety",
    "Signal",
    "StateBlock",
]

FORMAT = "robo-rl contract"
VERSION = 1


@dataclass(frozen=True)
class Safety:
    """What a runtime must watch besides the ranges of the signals and commands.

    ``signal_timeout`` (s): an older sensor signal means the safe command.
    ``tilt_limit`` (rad): a larger angle between body z and world z is a fall.
    ``on_fault``: "stop" sends the safe command, "hold" the last good one, "damp" moves slowly to the safe one;
    "controller" first lets the classical controller land or hold.
    ``operator_timeout`` (s): an older sign of life of the operator means a fault; None: no operator is needed.
    """

    signal_timeout: float
    tilt_limit: float
    on_fault: Literal["stop", "hold", "damp", "controller"] = "stop"
    operator_timeout: float | None = None

    def __post_init__(self) -> None:
        watched = ("signal_timeout", "tilt_limit") + (
            ("operator_timeout",) if self.operator_timeout is not None else ()
        )
        set_numbers(self, watched, "safety: ")
        for name in watched:
            value = getattr(self, name)
            require(value > 0, f"safety: {name}", value, "a positive number")
        choices = ("stop", "hold", "damp", "controller")
        require(self.on_fault in choices, "safety: on_fault", self.on_fault, f"one of {choices}")


@dataclass(frozen=True)
class Provenance:
    """Where a policy comes from: enough to train it again, nothing about the machine it was trained on.

    ``configuration_digest`` is the SHA-256 of the run's description (task, robot, algorithm, seed and
    hyperparameters). ``hidden``, ``activation`` and ``normalize`` are the shape of its network.
    """

    algorithm: str
    seed: int
    environment_steps: int
    configuration_digest: str
    hidden: tuple[int, ...]
    activation: str
    normalize: bool
    versions: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("algorithm", "activation"):
            require_name(getattr(self, name), f"provenance: {name}")
        object.__setattr__(self, "hidden", tuple(self.hidden))
        require(min(self.hidden, default=1) > 0, "provenance: hidden", self.hidden, "positive widths of layers")
        steps = self.environment_steps
        require(steps >= 0, "provenance: environment_steps", steps, "a number of 0 or more")


@dataclass(frozen=True)
class Contract:
    """Everything that a runtime must know to run a policy, besides the graph itself."""

    task: str
    robot_name: str
    control_period: float
    signals: tuple[Signal, ...]
    commands: tuple[Command, ...]
    state: tuple[StateBlock, ...]
    safety: Safety
    robot: Robot
    provenance: Provenance
    format: str = FORMAT
    version: int = VERSION

    def __post_init__(self) -> None:
        require(self.format == FORMAT, "format", self.format, repr(FORMAT))
        require(self.version == VERSION, "version", self.version, f"{VERSION}, the one that this release reads")
        require_name(self.task, "task")
        require_name(self.robot_name, "robot_name")
        set_numbers(self, ("control_period",), "")
        require(1e-5 <= self.control_period <= 10, "control_period", self.control_period, "1e-5 to 10 s")
        for name in ("signals", "commands", "state"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        require(len(self.signals) > 0, "signals", self.signals, "at least one signal")
        require(len(self.commands) > 0, "commands", self.commands, "at least one command")
        robots = "'sensor' or 'operator': no robot measures it, and 'robo-rl distill' teaches a policy to do without"
        for signal in self.signals:
            require(signal.source != "simulation", f"signal '{signal.name}': source", signal.source, robots)
        names = [channel.name for channel in (*self.signals, *self.commands)]
        require_unique(names, "signals and commands")
        require_unique([block.name for block in self.state], "state")
        for reserved in ("state", "next_state"):
            require(reserved not in names, "signals and commands", reserved, "a name other than the state's")
        self._check_actuator_order()

    def _check_actuator_order(self) -> None:
        """Commands to all actuators of the robot must have them in the robot's order."""
        if isinstance(self.robot, Multirotor):
            what, names = "rotors", tuple(rotor.name for rotor in self.robot.rotors)
        else:
            what, names = "joints", tuple(joint.name for joint in self.robot.joints)
        for command in self.commands:
            if command.name in ("rotor_speed", "joint_position_target"):
                where = f"command '{command.name}': elements"
                require(command.elements == names, where, command.elements, f"the robot's {what} in order, {names}")

    @property
    def state_size(self) -> int:
        """Number of floats in the policy's memory."""
        return sum(block.size for block in self.state)

    @property
    def initial_state(self) -> np.ndarray:
        """The memory before the first step, shape (state_size,), float32."""
        return np.array([x for block in self.state for x in block.initial], dtype=np.float32)

    @property
    def digest(self) -> str:
        """SHA-256 over the canonical JSON: equal digests mean equal contracts, to the last bit."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def signal(self, name: str) -> Signal:
        """The signal of that name."""
        return _named(self.signals, name, "signal")

    def command(self, name: str) -> Command:
        """The command of that name."""
        return _named(self.commands, name, "command")

    def to_json(self, indent: int | None = None) -> str:
        """Canonical JSON: sorted keys, floats in the shortest form that reads back to the same bits."""
        separators = (",", ":") if indent is None else None
        data = dataclasses.asdict(self)
        for signal in data["signals"]:  # what version 1 did not have
            for name in ("shape", "period", "timeout", "age_of"):
                if signal[name] is None:
                    del signal[name]
        return json.dumps(data, sort_keys=True, allow_nan=False, indent=indent, separators=separators)

    @staticmethod
    def from_json(text: str | bytes, where: str = "contract") -> Contract:
        """Read a contract back. Anything unknown, missing, malformed or inconsistent raises ContractError.

        ``where`` names the file in the message.
        """
        return parse_json(Contract, text, where)


def _named(channels: Sequence[Any], name: str, what: str) -> Any:
    for channel in channels:
        if channel.name == name:
            return channel
    raise ContractError(f"{what} '{name}' is not in the contract; it has {[c.name for c in channels]}")
