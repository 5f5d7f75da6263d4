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
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from robo_rl.contract.channels import MAX_BLOCK, UNITS, Command, Image, Scan, Signal, StateBlock, feedback
from robo_rl.contract.checks import ContractError, Numbers, require, require_name, require_unique, set_numbers
from robo_rl.contract.laws import CurrentLaw, ImpedanceLaw, Law, PositionLaw, RateLaw, TorqueLaw, VelocityLaw
from robo_rl.contract.provenance import CHUNK_BLOCKS, Base, Chunk, Encoder, Flow, Network, Provenance
from robo_rl.contract.reading import build, read_object
from robo_rl.contract.robots import Actuator, Robot, plain
from robo_rl.contract.safety import Collision, Envelope, Safety
from robo_rl.contract.version1 import upgraded

__all__ = [
    "UNITS",
    "Actuator",
    "Base",
    "Chunk",
    "Collision",
    "Command",
    "Contract",
    "ContractError",
    "CurrentLaw",
    "Encoder",
    "Envelope",
    "Flow",
    "Image",
    "ImpedanceLaw",
    "Law",
    "Network",
    "Numbers",
    "PositionLaw",
    "Provenance",
    "RateLaw",
    "Robot",
    "Safety",
    "Scan",
    "Signal",
    "StateBlock",
    "TorqueLaw",
    "VelocityLaw",
]

FORMAT = "robo-rl contract"
VERSION = 2
OPTIONAL = (("safety", "collision"), ("network", "base"), ("network", "flow"), ("network", "chunk"))
"""Sections and keys that JSON leaves out where they are None."""


@dataclass(frozen=True)
class Contract:
    """Everything that a runtime must know to run a policy, besides the graph itself."""

    task: str
    control_period: float
    signals: tuple[Signal, ...]
    commands: tuple[Command, ...]
    state: tuple[StateBlock, ...]
    safety: Safety
    robot: Robot
    network: Network
    provenance: Provenance
    format: str = FORMAT
    version: int = VERSION
    facts: dict[str, Any] = field(default_factory=dict)
    """Of the task, plain data for who rebuilds its interface: docs/bundle.md. Left out of the JSON where empty."""
    text: str | None = field(default=None, init=False, repr=False, compare=False)
    """The canonical JSON that an older version was read from, whose digest other programs know."""

    def __post_init__(self) -> None:
        require(self.format == FORMAT, "format", self.format, repr(FORMAT))
        require(self.version == VERSION, "version", self.version, f"{VERSION}, or 1, which this release reads too")
        object.__setattr__(self, "facts", plain(self.facts, "facts"))
        require_name(self.task, "task")
        set_numbers(self, ("control_period",), "")
        require(1e-5 <= self.control_period <= 10, "control_period", self.control_period, "1e-5 to 10 s")
        for name in ("signals", "commands", "state"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        require(len(self.signals) > 0, "signals", self.signals, "at least one signal")
        require(len(self.commands) > 0, "commands", self.commands, "at least one command")
        names = [channel.name for channel in (*self.signals, *self.commands)]
        require_unique(names, "signals and commands")
        require_unique([block.name for block in self.state], "state")
        for reserved in ("state", "next_state"):
            require(reserved not in names, "signals and commands", reserved, "a name other than the state's")
        size = sum(signal.size for signal in self.signals)
        require(size <= MAX_BLOCK, "signals", f"{size} numbers", f"at most {MAX_BLOCK} in all")
        for signal in self.signals:
            self._check_signal(signal)
        for command in self.commands:
            self._check_actuator_order(command)
            if command.needs_feedback:
                self.feedback(command)
        for envelope in self.safety.envelope:
            self._check_envelope(envelope)
        if self.safety.collision is not None:
            self._check_collision(self.safety.collision)
        if self.network.chunk is not None:
            self._check_chunk(self.network.chunk.length)

    def _check_signal(self, signal: Signal) -> None:
        robots = "'sensor' or 'operator': no robot measures it, and 'robo-rl distill' teaches a policy to do without"
        require(signal.source != "simulation", f"signal '{signal.name}': source", signal.source, robots)
        sensed = [s.name for s in self.signals if s.source == "sensor"]
        if signal.age_of is not None:
            require(signal.age_of in sensed, f"signal '{signal.name}': age_of", signal.age_of, f"one of {sensed}")
        if signal.period is not None:
            least = f"at least the control period, {self.control_period:g} s"
            good = signal.period >= self.control_period * (1 - 1e-9)
            require(good, f"signal '{signal.name}': period", signal.period, least)

    def _check_actuator_order(self, command: Command) -> None:
        """Elements that are actuators of the robot must come in the robot's order."""
        names = self.robot.actuator_names
        driven = tuple(element for element in command.elements if element in names)
        expected = tuple(name for name in names if name in driven)
        where = f"command '{command.name}': elements"
        require(driven == expected, where, command.elements, f"the robot's actuators in order, {expected}")

    def _check_envelope(self, envelope: Envelope) -> None:
        where = f"safety: envelope of '{envelope.signal}'"
        known = [signal.name for signal in self.signals if signal.source == "sensor"]
        require(envelope.signal in known, "safety: envelope: signal", envelope.signal, f"one of {known}")
        count = self.signal(envelope.signal).dimensions[-1]
        for name in ("lower", "upper"):
            value = getattr(envelope, name)
            good = not isinstance(value, tuple) or len(value) == count
            require(good, f"{where}: {name}", value, f"one number, or {count}")
        if envelope.lower is not None and envelope.upper is not None:
            lower, upper = np.broadcast_arrays(np.atleast_1d(envelope.lower), np.atleast_1d(envelope.upper))
            for i in np.flatnonzero(~(lower < upper))[:1]:
                expected = f"a number below upper[{i}] = {upper[i]}"
                require(False, f"{where}: lower[{i}]", float(lower[i]), expected)

    def _check_collision(self, collision: Collision) -> None:
        where, sensed = "safety: collision", [signal for signal in self.signals if signal.source == "sensor"]
        scans = [s.name for s in sensed if isinstance(s.layout, Scan) and s.unit == "m"]
        require(collision.scan in scans, f"{where}: scan", collision.scan, f"one of the sensors' scans {scans}")
        for name, unit in (("speed", "m/s"), ("yaw_rate", "rad/s")):
            given = getattr(collision, name)
            known = [signal.name for signal in sensed if signal.size == 1 and signal.unit == unit]
            expected = f"one of the sensors' signals with one element in {unit}, {known}"
            require(given in known or (given is None and name == "yaw_rate"), f"{where}: {name}", given, expected)

    def _check_chunk(self, length: int) -> None:
        """A policy with chunks keeps them in its memory."""
        shapes = {block.name: block.shape for block in self.state}
        planned, left = (shapes.get(name, ()) for name in CHUNK_BLOCKS)
        good = len(planned) == 2 and planned[0] == length and left == (1,)
        expected = f"blocks {CHUNK_BLOCKS} of shapes ({length}, k) and (1,), of a chunk of {length} actions"
        require(good, "state", list(shapes), expected)

    def feedback(self, command: Command) -> tuple[tuple[str, int], ...]:
        """As ``robo_rl.contract.channels.feedback``."""
        return feedback(self.signals, command)

    def timeout(self, signal: Signal) -> float | None:
        """s, the age beyond which a sensor's signal is a fault; None for those with an age."""
        if any(other.age_of == signal.name for other in self.signals):
            return None
        if signal.timeout is not None:
            return signal.timeout
        return self.safety.signal_timeout + (signal.period or 0.0)

    @property
    def robot_name(self) -> str:
        return self.robot.name

    @property
    def inference_period(self) -> float:
        """s between two inferences, whose actions are all taken."""
        return self.network.actions * self.control_period

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

    @property
    def interface_digest(self) -> str:
        """As ``digest``, without the facts: equal ones mean the same signals, commands and limits."""
        return replace(self, facts={}).digest

    def signal(self, name: str) -> Signal:
        """The signal of that name."""
        return _named(self.signals, name, "signal")

    def command(self, name: str) -> Command:
        """The command of that name."""
        return _named(self.commands, name, "command")

    def to_json(self, indent: int | None = None) -> str:
        """Canonical JSON: sorted keys, floats in the shortest form that reads back to the same bits."""
        if self.text is not None:
            return self.text if indent is None else _canonical(json.loads(self.text), indent)
        data = dataclasses.asdict(self)
        del data["text"]
        if not data["facts"]:
            del data["facts"]
        for section, name in OPTIONAL:
            if data[section][name] is None:  # so contracts without it keep their digests
                del data[section][name]
        return _canonical(data, indent)

    @staticmethod
    def from_json(text: str | bytes, where: str = "contract") -> Contract:
        """Read a contract back, of this version or the first. Anything unknown, missing, malformed or inconsistent
        raises ContractError.

        ``where`` names the file in the message.
        """
        data = read_object(text, where)
        version = data.get("version")
        if version != 1 or type(version) is not int:
            return build(Contract, _with_optional(data, where), where)
        read, told = upgraded(data, where)
        contract = build(Contract, _with_optional(told, where), where)
        object.__setattr__(contract, "text", _canonical(read))
        return contract


def _with_optional(data: dict[str, Any], where: str) -> dict[str, Any]:
    """With the keys that a contract has only where there is something to tell."""
    if data.get("facts", 0) in (None, {}):
        raise ContractError(f"{where}: facts is {data['facts']}; expected an object that is not empty, or no such key")
    data = {"facts": {}, **data}
    for section, name in OPTIONAL:
        held = data.get(section)
        if not isinstance(held, dict):
            continue
        if name in held and held[name] is None:
            raise ContractError(f"{where}: {section}.{name} is null; expected an object, or no such key")
        data = {**data, section: {name: None, **held}}
    return data


def _canonical(data: dict[str, Any], indent: int | None = None) -> str:
    separators = (",", ":") if indent is None else None
    return json.dumps(data, sort_keys=True, allow_nan=False, indent=indent, separators=separators)


def _named(channels: Sequence[Any], name: str, what: str) -> Any:
    for channel in channels:
        if channel.name == name:
            return channel
    raise ContractError(f"{what} '{name}' is not in the contract; it has {[c.name for c in channels]}")
