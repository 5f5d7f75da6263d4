"""What the gate watches, derived from a contract: limits as float32, times as whole microseconds.

Everything that the gate compares at run time is computed here, once, in double precision, and rounded once. The
same numbers go to the microcontroller (``robo_rl.deploy.build.c.gate_header``), so Python and C decide from equal bits.

Signals lie one after the other in one flat array, in the contract's order, and so do commands.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robo_rl.contract import Actuator, Command, Contract, ContractError, PositionLaw, Scan, Signal
from robo_rl.contract.channels import ATTITUDE_FRAMES
from robo_rl.controllers.gate.codes import Source, Stop

NEVER = -1
"""The stamp (µs) of what has not arrived."""
UNIT_TOLERANCE = 0.05
"""Deviation of a quaternion's norm from 1 that is still a rotation; the same as in ``robo_rl.deploy.robot.runtime``."""
SLOW_TIME = 5.0
"""s: the gate's own moves, to the start and, in a stop by "ramp", to the safe command, cross a command's whole range in
this time, or slower where its rate limit says so. A choice: a person beside the robot can follow, and stop, a move this
slow."""
CLOCK_SLACK = 100
"""A control period may be wrong by one part in this many, for clocks that differ, and one step in this many late."""


@dataclass(frozen=True)
class Span:
    """Where one signal or command lies in its flat array."""

    name: str
    elements: tuple[str, ...]
    unit: str
    offset: int

    @cached_property
    def size(self) -> int:
        """Number of elements."""
        return len(self.elements)


@dataclass(frozen=True)
class Watch(Span):
    """How one signal is watched. ``timeout`` is in µs; 0: its age is not watched."""

    timeout: int
    sensor: bool
    """False: the operator's set-point, which the fallback controller does not need."""
    shape: tuple[int, ...]
    """Of its value; the flat array has its elements row by row."""
    optional: bool
    """It may be absent: it has a signal with its age."""
    quaternion: bool
    upright: bool
    """Its tilt is watched."""
    noisy: bool
    """Its noise never lets it repeat bit for bit: a repeated value is a frozen sensor."""


@dataclass(frozen=True)
class Bounds:
    """Limits of one signal while a policy is active."""

    signal: int
    """Its number in the contract's order."""
    lower: np.ndarray
    """(k,) float32 for the signal's k elements; -inf where there is no bound."""
    upper: np.ndarray
    square: np.float32
    """The limit of the sum of its elements' squares."""


@dataclass(frozen=True)
class Ahead:
    """What a scan tells of the way ahead, see ``robo_rl.contract.Collision``. Signals by their numbers."""

    scan: int
    speed: int
    yaw_rate: int
    """-1: the way is straight."""
    time: np.float32
    """s."""
    half_width: np.float32
    """m."""
    front: np.float32
    """m."""
    cosine: np.ndarray
    """(beams,) float32, of the beams' angles."""
    sine: np.ndarray


@dataclass(frozen=True)
class GateConfig:
    """Everything that the gate compares with. Times in µs; arrays are float32, (N,) for signals, (M,) for commands."""

    period: int
    slack: int
    late_limit: int
    """How far the steps may be behind or ahead of their schedule. No two are more than ``timeout`` apart, or 1.5
    periods where ``timeout`` is less."""
    timeout: int
    operator_timeout: int
    """0: no operator is needed."""
    on_fault: str
    norm_low: np.float32
    norm_high: np.float32
    """Limits of a quaternion's squared norm."""
    tilt: np.float32
    """The limit of sin²(tilt / 2) = (x² + y²) / |q|²."""
    signals: tuple[Watch, ...]
    commands: tuple[Span, ...]
    signal_lower: np.ndarray
    signal_upper: np.ndarray
    command_lower: np.ndarray
    command_upper: np.ndarray
    stop: np.ndarray
    """(M,) uint8, ``gate_codes.Stop``: what each actuator does in a stop."""
    safe: np.ndarray
    """What OFF and RAMP lead to; for others the number within limits next to 0, which is never sent."""
    start: np.ndarray
    """Where actuators are when the policy takes over; where the contract has no start, ``safe`` of those that are
    OFF, and NaN of those that stay where they are."""
    rate_step: np.ndarray
    """The greatest change per step; infinite where there is no limit."""
    slow_step: np.ndarray
    """The change per step in the moves to ``start`` and, in a ramp, to ``safe``."""
    reach: np.ndarray
    """How far from the measured value a target may be in the gate's own moves: a position control asks for no more
    than the motor's effort then. Infinite where stiffness or effort are not known."""
    feedback: np.ndarray
    """(M,) int: the flat index of the signal element that measures each command; -1 where none is needed."""
    feedback_signal: np.ndarray
    """(M,) int: the number of that signal; -1: none."""
    envelope: tuple[Bounds, ...]
    ahead: Ahead | None = None

    @staticmethod
    def from_contract(contract: Contract) -> GateConfig:
        """The gate of a contract; ContractError if the contract can't be watched."""
        safety, period = contract.safety, _microseconds(contract.control_period, "control_period")
        timeout = _microseconds(safety.signal_timeout, "safety: signal_timeout")
        operator_timeout = 0
        if safety.operator_timeout is not None:
            operator_timeout = _microseconds(safety.operator_timeout, "safety: operator_timeout")
        slack = max(1, period // CLOCK_SLACK)
        signals = _watches(contract)
        commands = contract.commands
        slow = [_slow_rate(command) for command in commands]
        rates = [c.rate or (math.inf,) * c.size for c in commands]
        feedback = [place for command in commands for place in _feedback(contract, command, signals)]
        config = GateConfig(
            period=period,
            slack=slack,
            late_limit=max(timeout - period - slack, period // 2),
            timeout=timeout,
            operator_timeout=operator_timeout,
            on_fault=safety.on_fault,
            norm_low=np.float32((1 - UNIT_TOLERANCE) ** 2),
            norm_high=np.float32((1 + UNIT_TOLERANCE) ** 2),
            tilt=np.float32(math.sin(min(safety.tilt_limit or math.pi, math.pi) / 2) ** 2),
            signals=signals,
            commands=_spans(contract),
            signal_lower=_flat([s.bounds[0] for s in contract.signals]),
            signal_upper=_flat([s.bounds[1] for s in contract.signals]),
            command_lower=_flat([c.lower for c in commands]),
            command_upper=_flat([c.upper for c in commands]),
            stop=np.array([Stop[c.stop.upper()] for c in commands for _ in c.elements], np.uint8),
            safe=_flat([_safe(c) for c in commands]),
            start=_flat([_start(c) for c in commands]),
            rate_step=_flat(rates, contract.control_period),
            slow_step=_flat(slow, contract.control_period),
            reach=_flat([_reach(c, contract.robot.actuators) for c in commands]),
            feedback=np.array([place for _, place in feedback], np.int64),
            feedback_signal=np.array([signal for signal, _ in feedback], np.int64),
            envelope=_envelope(contract),
            ahead=_ahead(contract),
        )
        config._check(contract)
        return config

    def _check(self, contract: Contract) -> None:
        for name in ("signal_lower", "signal_upper", "command_lower", "command_upper"):
            if not np.isfinite(getattr(self, name)).all():
                raise ContractError(f"{name} is {getattr(self, name)}; expected limits that a float32 can hold")
        if contract.safety.tilt_limit is not None and not any(watch.upright for watch in self.signals):
            raise ContractError(
                f"safety: tilt_limit is {contract.safety.tilt_limit} but no sensor signal measures the tilt; expected "
                f"a quaternion in one of the frames {ATTITUDE_FRAMES}, or no tilt_limit"
            )
        largest = np.maximum(np.abs(self.command_lower), np.abs(self.command_upper))
        for name in ("slow_step", "rate_step"):
            if not (largest - getattr(self, name) < largest).all():
                raise ContractError(
                    f"a step of the commands is {getattr(self, name)}, lost in the rounding of limits as large as "
                    f"{largest}; expected a wider range, a higher rate or a longer control period"
                )

    @cached_property
    def stopped(self) -> Source:
        """What is sent in a stop: the safe command if every command is off then, else each its own."""
        return Source.STOP if self.stop.any() else Source.SAFE

    @cached_property
    def off(self) -> np.ndarray:
        """(M,) bool: actuators that a stop turns off."""
        return self.stop == Stop.OFF

    @cached_property
    def measured(self) -> np.ndarray:
        """(M,) bool: actuators whose feedback the gate needs."""
        return self.feedback >= 0

    @cached_property
    def unlimited(self) -> bool:
        """Whether no command has a rate limit."""
        return bool(np.isinf(self.rate_step).all())

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(watch.name for watch in self.signals)

    @cached_property
    def _command_names(self) -> frozenset[str]:
        return frozenset(span.name for span in self.commands)

    @cached_property
    def _absent(self) -> np.ndarray:
        """(N,) float32: what is given for signals that have not come, 0 within their limits."""
        return np.clip(np.zeros_like(self.signal_lower), self.signal_lower, self.signal_upper)

    def flat_signals(self, signals: Mapping[str, tuple[ArrayLike, int]]) -> tuple[np.ndarray, tuple[int, ...]]:
        """Values (N,) and stamps of signals given by name as (value, stamp in µs); one that is absent is missing.

        A value of the wrong size or an unknown name raises ContractError.
        """
        if not self._names >= signals.keys():
            unknown = sorted(signals.keys() - self._names)
            raise ContractError(f"signals {unknown} are not in the contract; expected {[w.name for w in self.signals]}")
        arrays, stamps = [], []
        for watch in self.signals:
            value, stamp = signals.get(watch.name, (None, NEVER))
            if value is None:
                array = self._absent[watch.offset : watch.offset + watch.size]
            else:
                array = np.asarray(value, np.float32)
                if array.shape != watch.shape:
                    raise ContractError(f"signal '{watch.name}' has shape {array.shape}; expected {watch.shape}")
            arrays.append(array)
            stamps.append(int(stamp))
        return np.concatenate(arrays, axis=None), tuple(stamps)

    def flat_command(self, commands: Mapping[str, ArrayLike]) -> np.ndarray:
        """Commands (M,) from commands by name; ContractError unless they are the contract's, of the right sizes."""
        if commands.keys() != self._command_names:
            raise ContractError(f"commands are {sorted(commands)}; expected {[span.name for span in self.commands]}")
        arrays = [np.asarray(commands[span.name], np.float32) for span in self.commands]
        for span, array in zip(self.commands, arrays, strict=True):
            if array.shape != (span.size,):
                raise ContractError(f"command '{span.name}' has shape {array.shape}; expected ({span.size},)")
        return np.concatenate(arrays)

    def commands_by_name(self, flat: np.ndarray) -> dict[str, np.ndarray]:
        """The flat commands (M,), by name."""
        return {span.name: flat[span.offset : span.offset + span.size] for span in self.commands}


def _microseconds(seconds: float, field: str) -> int:
    whole = round(seconds * 1e6)
    if not 0 < whole <= 1 << 40:
        raise ContractError(f"{field} is {seconds} s; expected a microsecond to twelve days")
    return whole


def _flat(numbers: Sequence[Any], factor: float = 1.0) -> np.ndarray:
    with np.errstate(over="ignore"):  # what overflows is refused afterwards
        return np.array([factor * x for row in numbers for x in row], np.float64).astype(np.float32)


def _watches(contract: Contract) -> tuple[Watch, ...]:
    followed = {name for c in contract.commands if c.needs_feedback for name, _ in contract.feedback(c)}
    watches, offset = [], 0
    for signal in contract.signals:
        limit = _timeout(contract, signal, signal.name in followed)
        timeout = 0 if limit is None else _microseconds(limit, f"signal '{signal.name}': timeout")
        watches.append(
            Watch(
                name=signal.name,
                elements=signal.labels,
                unit=signal.unit,
                offset=offset,
                timeout=timeout,
                sensor=signal.source == "sensor",
                shape=signal.dimensions,
                optional=signal.source == "runtime" or (signal.source == "sensor" and limit is None),
                quaternion=signal.kind == "quaternion",
                upright=signal.is_attitude and contract.safety.tilt_limit is not None,
                noisy=signal.source == "sensor"
                and timeout > 0
                and signal.noise is not None
                and float(np.min(signal.noise)) > 0,
            )
        )
        offset += signal.size
    return tuple(watches)


def _timeout(contract: Contract, signal: Signal, followed: bool) -> float | None:
    """s, the age beyond which a signal is a fault; the gate itself needs to know where actuators are at all times."""
    if signal.source == "operator":
        return contract.safety.operator_timeout if signal.timeout is None else signal.timeout
    if signal.source != "sensor":
        return None
    own = contract.timeout(signal)
    if own is None and followed:
        return signal.timeout or contract.safety.signal_timeout + (signal.period or 0.0)
    return own


def _spans(contract: Contract) -> tuple[Span, ...]:
    spans, offset = [], 0
    for command in contract.commands:
        spans.append(Span(command.name, command.elements, command.unit, offset))
        offset += command.size
    return tuple(spans)


def _slow_rate(command: Command) -> tuple[float, ...]:
    """Unit per second: the whole range in SLOW_TIME, or the command's own limit where that is lower."""
    limits = command.rate or (math.inf,) * command.size
    ranges = zip(command.lower, command.upper, limits, strict=True)
    return tuple(min((high - low) / SLOW_TIME, limit) for low, high, limit in ranges)


def _safe(command: Command) -> tuple[float, ...]:
    if command.safe != "hold":
        return command.safe
    return tuple(min(max(0.0, low), high) for low, high in zip(command.lower, command.upper, strict=True))


def _start(command: Command) -> tuple[float, ...]:
    if command.start is not None:
        return command.start
    return _safe(command) if command.stop == "off" else (math.nan,) * command.size


def _reach(command: Command, actuators: tuple[Actuator, ...]) -> tuple[float, ...]:
    """Unit: how far a position control's target may be from its joint without asking for more than the motor has."""
    if not isinstance(command.law, PositionLaw):
        return (math.inf,) * command.size
    efforts = {actuator.name: actuator.effort for actuator in actuators}
    pairs = zip(command.elements, command.law.stiffness, strict=True)
    return tuple((efforts.get(name) or math.inf) / k if k > 0 else math.inf for name, k in pairs)


def _feedback(contract: Contract, command: Command, watches: tuple[Watch, ...]) -> list[tuple[int, int]]:
    """For each element, the number of the signal that measures it, and its flat index; -1 where that need not be known:
    for what is switched off at once, and begins there."""
    if not command.needs_feedback:
        return [(-1, -1)] * command.size
    numbers = {watch.name: number for number, watch in enumerate(watches)}
    places = [(numbers[signal], index) for signal, index in contract.feedback(command)]
    return [(number, watches[number].offset + index) for number, index in places]


def _ahead(contract: Contract) -> Ahead | None:
    watched = contract.safety.collision
    if watched is None:
        return None
    number = [signal.name for signal in contract.signals].index
    signal = contract.signal(watched.scan)
    assert isinstance(signal.layout, Scan)
    angles = [signal.layout.angle_min + signal.layout.angle_increment * i for i in range(signal.size)]
    return Ahead(
        scan=number(watched.scan),
        speed=number(watched.speed),
        yaw_rate=-1 if watched.yaw_rate is None else number(watched.yaw_rate),
        time=np.float32(watched.time),
        half_width=np.float32(watched.half_width),
        front=np.float32(watched.front),
        cosine=_flat([[math.cos(angle) for angle in angles]]),
        sine=_flat([[math.sin(angle) for angle in angles]]),
    )


def _envelope(contract: Contract) -> tuple[Bounds, ...]:
    bounds = []
    for envelope in contract.safety.envelope:
        signal = contract.signal(envelope.signal)
        lower, upper, norm = (-math.inf if envelope.lower is None else envelope.lower), envelope.upper, envelope.norm
        bounds.append(
            Bounds(
                signal=contract.signals.index(signal),
                lower=_flat([signal.spread(lower)]),
                upper=_flat([signal.spread(math.inf if upper is None else upper)]),
                square=_flat([[math.inf if norm is None else norm * norm]])[0],
            )
        )
    return tuple(bounds)
