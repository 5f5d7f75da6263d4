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
import math
import numbers
import types
import typing
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

FORMAT = "robo-rl contract"
VERSION = 1
MAX_JSON_BYTES = 1 << 20  # a contract is a few kilobytes; more is not a contract
MAX_BLOCK = 1 << 20  # floats in a block of memory

_UNITS = "1 m m/s m/s^2 rad rad/s rad/s^2 s Hz kg N N*m N*m/rad N*s/m Pa T V A W K"
UNITS = frozenset(_UNITS.split())

Numbers = tuple[float, ...]


class ContractError(ValueError):
    """A contract, or what is held against it, is wrong. The message names field, value and expectation."""


def _require(condition: bool, field_name: str, value: object, expected: str) -> None:
    if not condition:
        shown = repr(value)
        raise ContractError(f"{field_name} is {shown[:200]}; expected {expected}")


def _require_name(name: str, field_name: str) -> None:
    allowed = isinstance(name, str) and 0 < len(name) <= 128 and name.isprintable() and name == name.strip()
    _require(allowed, field_name, name, "a printable name of 1 to 128 characters without outer spaces")


def _require_unique(names: Sequence[str], field_name: str) -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    _require(not twice, field_name, twice, "names that differ from each other")


def _number(value: Any, field_name: str) -> float:
    """A finite float; integers and numpy's numbers become one."""
    try:
        found = float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        found = math.inf
    _require(math.isfinite(found), field_name, value, "a finite number")
    return found


def _numbers(values: Sequence[float], count: int, field_name: str) -> Any:
    """``count`` finite floats."""
    found = tuple(_number(value, f"{field_name}[{i}]") for i, value in enumerate(values))
    _require(len(found) == count, field_name, found, f"{count} numbers, one per element")
    return found


def _make_numbers(owner: Any, names: Sequence[str], where: str) -> None:
    """Let fields of a frozen dataclass be finite floats."""
    for name in names:
        object.__setattr__(owner, name, _number(getattr(owner, name), f"{where}{name}"))


@dataclass(frozen=True)
class _Channel:
    """What signals and commands share: a named, ordered physical quantity in SI units, within limits."""

    name: str
    elements: tuple[str, ...]
    unit: str
    frame: str
    lower: Numbers
    upper: Numbers

    def __post_init__(self) -> None:
        where = f"{type(self).__name__.lower()} '{self.name}'"
        _require_name(self.name, f"{type(self).__name__.lower()}.name")
        _require_name(self.frame, f"{where}: frame")
        object.__setattr__(self, "elements", tuple(self.elements))
        _require(len(self.elements) > 0, f"{where}: elements", self.elements, "at least one element")
        for element in self.elements:
            _require_name(element, f"{where}: elements")
        _require_unique(self.elements, f"{where}: elements")
        _require(self.unit in UNITS, f"{where}: unit", self.unit, f"an SI unit, one of {sorted(UNITS)}")
        self._check_numbers("lower", "upper")
        for low, high, element in zip(self.lower, self.upper, self.elements, strict=True):
            _require(low < high, f"{where}: lower[{element}]", low, f"a number below upper[{element}] = {high}")

    def _check_numbers(self, *fields: str) -> None:
        for name in fields:
            if getattr(self, name) is not None:
                found = _numbers(getattr(self, name), self.size, f"'{self.name}': {name}")
                object.__setattr__(self, name, found)

    @property
    def size(self) -> int:
        """Number of elements."""
        return len(self.elements)


@dataclass(frozen=True)
class Signal(_Channel):
    """One measured or given quantity.

    ``kind`` "quaternion" means unit norm and element order x, y, z, w; there is no other order.
    ``source`` tells who provides it: a "sensor" (or estimator), or the "operator" (set-points).
    ``noise`` is the standard deviation per element, in the signal's unit, and ``delay`` the least and the
    greatest latency, in seconds, that the policy was trained with. ``seen_low`` and ``seen_high`` bound what
    the policy met in simulation. None means not known.
    """

    kind: Literal["vector", "quaternion"] = "vector"
    source: Literal["sensor", "operator"] = "sensor"
    noise: Numbers | None = None
    delay: tuple[float, float] = (0.0, 0.0)
    seen_low: Numbers | None = None
    seen_high: Numbers | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        where = f"signal '{self.name}'"
        _require(self.kind in ("vector", "quaternion"), f"{where}: kind", self.kind, "'vector' or 'quaternion'")
        _require(self.source in ("sensor", "operator"), f"{where}: source", self.source, "'sensor' or 'operator'")
        self._check_numbers("noise", "seen_low", "seen_high")
        good = self.noise is None or min(self.noise) >= 0
        _require(good, f"{where}: noise", self.noise, "standard deviations of 0 or more")
        delay = _numbers(self.delay, 2, f"{where}: delay")
        object.__setattr__(self, "delay", delay)
        _require(0 <= delay[0] <= delay[1], f"{where}: delay", delay, "0 <= least <= greatest, in s")
        if self.kind == "quaternion":
            _require(
                self.elements == ("x", "y", "z", "w"),
                f"{where}: elements",
                self.elements,
                "('x', 'y', 'z', 'w'), the one quaternion order in use",
            )


@dataclass(frozen=True)
class Command(_Channel):
    """One actuated quantity. ``safe`` is what a runtime sends when in doubt (motors off, a damped pose, …).

    ``rate`` (the command's unit per second) is the greatest change that may be sent; None: not limited.
    ``start`` is where the actuators are moved, slowly, before the policy takes over; None: they stay at ``safe``.
    """

    safe: Numbers
    rate: Numbers | None = None
    start: Numbers | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_numbers("safe", "rate", "start")
        good = self.rate is None or min(self.rate) > 0
        _require(good, f"command '{self.name}': rate", self.rate, f"positive numbers, in {self.unit} per second")
        self._check_within("safe", self.safe)
        if self.start is not None:
            self._check_within("start", self.start)

    def _check_within(self, what: str, values: Numbers) -> None:
        for low, value, high, element in zip(self.lower, values, self.upper, self.elements, strict=True):
            _require(
                low <= value <= high,
                f"command '{self.name}': {what}[{element}]",
                value,
                f"a number from lower = {low} to upper = {high}",
            )


@dataclass(frozen=True)
class StateBlock:
    """A part of the policy's memory, in order, inside the flat ``state`` tensor. ``initial`` holds at the start."""

    name: str
    shape: tuple[int, ...]
    initial: Numbers

    def __post_init__(self) -> None:
        where = f"state '{self.name}'"
        _require_name(self.name, "state.name")
        object.__setattr__(self, "shape", tuple(self.shape))
        good = 0 < len(self.shape) <= 8 and all(isinstance(k, int) and k > 0 for k in self.shape)
        good = good and math.prod(self.shape) <= MAX_BLOCK
        _require(good, f"{where}: shape", self.shape, f"1 to 8 positive integers with a product of at most {MAX_BLOCK}")
        object.__setattr__(self, "initial", _numbers(self.initial, self.size, f"{where}: initial"))

    @property
    def size(self) -> int:
        """Number of floats."""
        return math.prod(self.shape)


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
        _make_numbers(self, watched, "safety: ")
        for name in watched:
            value = getattr(self, name)
            _require(value > 0, f"safety: {name}", value, "a positive number")
        choices = ("stop", "hold", "damp", "controller")
        _require(self.on_fault in choices, "safety: on_fault", self.on_fault, f"one of {choices}")


@dataclass(frozen=True)
class Rotor:
    """One motor with its propeller, as a runtime, a mixer or another simulator needs it.

    ``position`` (m) in the body frame (x forward, y left, z up); thrust acts along body z.
    ``spin``: "ccw" or "cw" seen from above; the drag torque on the body is opposite to it.
    ``thrust``: coefficients c0, c1, c2 of T = c0 + c1 Ω + c2 Ω², T in N, Ω in rad/s.
    ``torque_ratio`` (m): drag torque over thrust. ``rise``, ``fall`` (s): time constants of the first-order
    lag from commanded to real speed. ``speed_min``, ``speed_max`` (rad/s).
    """

    name: str
    position: tuple[float, float, float]
    spin: Literal["ccw", "cw"]
    thrust: tuple[float, float, float]
    torque_ratio: float
    rise: float
    fall: float
    speed_min: float
    speed_max: float

    def __post_init__(self) -> None:
        where = f"rotor '{self.name}'"
        _require_name(self.name, "rotor.name")
        _require(self.spin in ("ccw", "cw"), f"{where}: spin", self.spin, "'ccw' or 'cw'")
        object.__setattr__(self, "position", _numbers(self.position, 3, f"{where}: position"))
        object.__setattr__(self, "thrust", _numbers(self.thrust, 3, f"{where}: thrust"))
        _make_numbers(self, ("rise", "fall", "torque_ratio", "speed_min", "speed_max"), f"{where}: ")
        for name in ("rise", "fall", "torque_ratio"):
            value = getattr(self, name)
            _require(value >= 0, f"{where}: {name}", value, "a number of 0 or more")
        limits = (self.speed_min, self.speed_max)
        _require(0 <= limits[0] < limits[1], f"{where}: speed_min, speed_max", limits, "0 <= speed_min < speed_max")


@dataclass(frozen=True)
class Multirotor:
    """Facts of a multirotor: mass (kg), principal moments of inertia (kg m²), rotors in command order."""

    mass: float
    inertia: tuple[float, float, float]
    rotors: tuple[Rotor, ...]
    kind: Literal["multirotor"] = "multirotor"

    def __post_init__(self) -> None:
        _make_numbers(self, ("mass",), "robot: ")
        _require(self.mass > 0, "robot: mass", self.mass, "a positive number, in kg")
        object.__setattr__(self, "inertia", _numbers(self.inertia, 3, "robot: inertia"))
        _require(min(self.inertia) > 0, "robot: inertia", self.inertia, "positive numbers, in kg m^2")
        object.__setattr__(self, "rotors", tuple(self.rotors))
        _require(len(self.rotors) >= 3, "robot: rotors", len(self.rotors), "at least 3 rotors")
        _require_unique([rotor.name for rotor in self.rotors], "robot: rotors")


@dataclass(frozen=True)
class Joint:
    """One driven joint, as a runtime, an actuator or another simulator needs it.

    ``stand`` (rad): where it is when the robot stands. ``lower``, ``upper`` (rad): its stops. ``effort`` (N m): the
    greatest torque, at standstill; it falls to zero at ``velocity`` (rad/s). ``stiffness`` (N m/rad) and ``damping``
    (N m s/rad): gains of the position control that runs at the motor.
    """

    name: str
    stand: float
    lower: float
    upper: float
    effort: float
    velocity: float
    stiffness: float
    damping: float

    def __post_init__(self) -> None:
        where = f"joint '{self.name}'"
        _require_name(self.name, "joint.name")
        _make_numbers(self, [f.name for f in dataclasses.fields(self) if f.name != "name"], f"{where}: ")
        stops = (self.lower, self.upper)
        _require(stops[0] <= self.stand <= stops[1], f"{where}: stand", self.stand, f"a number from {stops}")
        _require(stops[0] < stops[1], f"{where}: lower, upper", stops, "lower < upper, in rad")
        for name in ("effort", "velocity"):
            _require(getattr(self, name) > 0, f"{where}: {name}", getattr(self, name), "a positive number")
        for name in ("stiffness", "damping"):
            _require(getattr(self, name) >= 0, f"{where}: {name}", getattr(self, name), "a number of 0 or more")


@dataclass(frozen=True)
class Legged:
    """Facts of a robot on legs: its driven joints in command order, and the names of its feet."""

    joints: tuple[Joint, ...]
    feet: tuple[str, ...]
    kind: Literal["legged"] = "legged"

    def __post_init__(self) -> None:
        for name in ("joints", "feet"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
            _require(len(getattr(self, name)) > 0, f"robot: {name}", (), "at least one")
        _require_unique([joint.name for joint in self.joints], "robot: joints")
        for foot in self.feet:
            _require_name(foot, "robot: feet")
        _require_unique(self.feet, "robot: feet")


Robot = Multirotor | Legged
"""Facts of a robot; ``kind`` tells which."""


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
            _require_name(getattr(self, name), f"provenance: {name}")
        object.__setattr__(self, "hidden", tuple(self.hidden))
        _require(min(self.hidden, default=1) > 0, "provenance: hidden", self.hidden, "positive widths of layers")
        steps = self.environment_steps
        _require(steps >= 0, "provenance: environment_steps", steps, "a number of 0 or more")


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
        _require(self.format == FORMAT, "format", self.format, repr(FORMAT))
        _require(self.version == VERSION, "version", self.version, f"{VERSION}, the one that this release reads")
        _require_name(self.task, "task")
        _require_name(self.robot_name, "robot_name")
        _make_numbers(self, ("control_period",), "")
        _require(1e-5 <= self.control_period <= 10, "control_period", self.control_period, "1e-5 to 10 s")
        for name in ("signals", "commands", "state"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        _require(len(self.signals) > 0, "signals", self.signals, "at least one signal")
        _require(len(self.commands) > 0, "commands", self.commands, "at least one command")
        names = [channel.name for channel in (*self.signals, *self.commands)]
        _require_unique(names, "signals and commands")
        _require_unique([block.name for block in self.state], "state")
        for reserved in ("state", "next_state"):
            _require(reserved not in names, "signals and commands", reserved, "a name other than the state's")
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
                _require(command.elements == names, where, command.elements, f"the robot's {what} in order, {names}")

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
        return json.dumps(data, sort_keys=True, allow_nan=False, indent=indent, separators=separators)

    @staticmethod
    def from_json(text: str | bytes, where: str = "contract") -> Contract:
        """Read a contract back. Anything unknown, missing, malformed or inconsistent raises ContractError.

        ``where`` names the file in the message.
        """
        return _from_json(text, where)


def _named(channels: Sequence[Any], name: str, what: str) -> Any:
    for channel in channels:
        if channel.name == name:
            return channel
    raise ContractError(f"{what} '{name}' is not in the contract; it has {[c.name for c in channels]}")


def _from_json(text: str | bytes, where: str) -> Contract:
    if len(text) > MAX_JSON_BYTES:
        raise ContractError(f"{where}: {len(text)} bytes; expected at most {MAX_JSON_BYTES}")
    try:
        data = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except ContractError as error:
        raise ContractError(f"{where}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise ContractError(f"{where}: not JSON ({error}); expected a contract's JSON object") from None
    try:
        return _parse(Contract, data, "")
    except ContractError as error:
        raise ContractError(f"{where}: {error}") from None


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    _require_unique(keys, "keys of a JSON object")
    return dict(pairs)


def _no_constant(name: str) -> float:
    raise ContractError(f"a number is {name}; expected a finite number")


def _parse(annotation: Any, value: Any, path: str) -> Any:
    """Build ``annotation`` from parsed JSON, strictly: no unknown keys, no missing keys, no coercion."""
    origin = typing.get_origin(annotation)
    if dataclasses.is_dataclass(annotation):
        return _parse_dataclass(annotation, value, path)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in typing.get_args(annotation):
            return None
        members = [member for member in typing.get_args(annotation) if member is not type(None)]
        return _parse(members[0] if len(members) == 1 else _of_kind(members, value, path), value, path)
    if origin is typing.Literal:
        choices = typing.get_args(annotation)
        _require(isinstance(value, str) and value in choices, path, value, f"one of {list(choices)}")
        return value
    if origin is tuple:
        _require(isinstance(value, list), path, value, "a list")
        kinds = typing.get_args(annotation)
        if kinds[-1] is Ellipsis:
            kinds = (kinds[0],) * len(value)
        _require(len(value) == len(kinds), path, value, f"a list of {len(kinds)}")
        return tuple(_parse(k, v, f"{path}[{i}]") for i, (k, v) in enumerate(zip(kinds, value, strict=True)))
    if origin is dict:
        _require(isinstance(value, dict), path, value, "an object")
        return {key: _parse(str, v, f"{path}.{_shown(key)}") for key, v in value.items()}
    if annotation is float:
        return _number(value, path)
    if annotation is bool:
        _require(isinstance(value, bool), path, value, "true or false")
        return value
    if annotation is int:
        _require(isinstance(value, int) and not isinstance(value, bool), path, value, "an integer")
        return value
    _require(isinstance(value, str), path, value, "a string")
    return value


def _of_kind(choices: Sequence[Any], value: Any, path: str) -> Any:
    """The dataclass among ``choices`` that the object's ``kind`` names."""
    kinds = {choice.kind: choice for choice in choices}
    _require(isinstance(value, dict), path, value, f"an object with a kind, one of {sorted(kinds)}")
    _require("kind" in value, f"{path}.kind", "missing", f"a value, one of {sorted(kinds)}")
    kind = value["kind"]
    _require(isinstance(kind, str) and kind in kinds, f"{path}.kind", kind, f"one of {sorted(kinds)}")
    return kinds[kind]


def _shown(key: str) -> str:
    """A key from a file, fit for a message."""
    return key if key.isprintable() and len(key) <= 100 else repr(key[:100])


def _parse_dataclass(kind: Any, value: Any, path: str) -> Any:
    _require(isinstance(value, dict), path or "contract", value, f"an object with the fields of {kind.__name__}")
    hints = typing.get_type_hints(kind)
    known = [f.name for f in dataclasses.fields(kind)]
    prefix = f"{path}." if path else ""
    for key in value:
        _require(key in known, f"{prefix}{_shown(key)}", "an unknown field", f"one of {known}")
    for name in known:
        _require(name in value, f"{prefix}{name}", "missing", f"a value; {kind.__name__} has {known}")
    fields = {name: _parse(hints[name], value[name], f"{prefix}{name}") for name in known}
    try:
        return kind(**fields)
    except ContractError as error:
        raise ContractError(f"{prefix.rstrip('.')}: {error}" if prefix else str(error)) from None
