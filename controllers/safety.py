"""The gate: the one state machine between a policy and the actuators.

    idle ──arm──► ready (slow move to the start pose, or motors idle) ──activate──► active ──any fault──► fault

    config = GateConfig.from_contract(contract)
    gate = initial(config)
    gate, output = step(config, gate, Inputs(time, signals, stamps, command, …))   # every control period

Faults latch with their first reason. A reset is always somebody's request, and leads to idle. In idle nothing
is sent but the safe command, and nothing latches but a stop; arming is refused while anything is wrong.

Pure functions: the same inputs give the same outputs, bit for bit, here and in ``deploy/c/gate.c``. Numbers are
float32, computed one rounded operation at a time in the order written; time is whole microseconds. Codes are
part of logs, messages and test vectors, and never change. docs/safety.md has them in tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from controllers.gate_codes import NO_PROBLEM, REACTIONS, URGENCY, Event, Problem, Reason, Request, Source, State
from controllers.gate_config import NEVER, GateConfig
from robo_rl.contract import ContractError


@dataclass(frozen=True)
class Inputs:
    """What one step is given. Times in µs of one monotonic clock; a negative stamp means that there is nothing."""

    time: int
    signals: np.ndarray
    """(N,) float32, in the contract's order."""
    stamps: Sequence[int]
    """When each signal was measured."""
    command: np.ndarray | None = None
    """(M,) float32, what the policy proposes."""
    command_stamp: int = NEVER
    fallback: np.ndarray | None = None
    """(M,) float32, what the classical controller proposes; None when it has landed or gives up."""
    operator_stamp: int = NEVER
    """The operator's last sign of life."""
    bundle_intact: bool = False
    """The bundle's digest is still the one that was verified."""
    requests: Request = Request.NONE


@dataclass(frozen=True)
class Gate:
    """What the gate remembers between steps."""

    command: np.ndarray
    """(M,) float32, what was last sent."""
    values: np.ndarray
    """(N,) float32, the newest value of each signal."""
    stamps: tuple[int, ...]
    """µs, of those values."""
    changed: tuple[int, ...]
    """µs, the stamp with which each value was new."""
    state: State = State.IDLE
    problem: Problem = NO_PROBLEM
    reaction: Source = Source.SAFE
    """How the present fault is answered."""
    time: int = NEVER
    late: int = 0
    """µs by which the steps are behind their schedule; negative: ahead."""
    limited_since: int = NEVER
    """µs, since when the rate limit cuts every command."""


@dataclass(frozen=True)
class Output:
    """What one step answers. ``problem`` is the latched fault, or why a request was refused."""

    command: np.ndarray
    source: Source
    state: State
    problem: Problem
    events: Event


def initial(config: GateConfig) -> Gate:
    """The gate at power-up: idle."""
    nothing = (NEVER,) * len(config.signals)
    return Gate(config.safe.copy(), np.zeros_like(config.signal_lower), nothing, nothing)


def step(config: GateConfig, before: Gate, given: Inputs) -> tuple[Gate, Output]:
    """One control period: the new gate, and what to send."""
    _require_layout(config, given)
    late = _lateness(config, before, given.time)
    world = _check_surroundings(config, before, given, late)
    gate = _remember(config, before, given, late)
    with np.errstate(over="ignore"):
        problem = world if world.reason else _check_signals(config, gate, given, sensors_only=False)
        request = next((r for r in URGENCY if given.requests & r), Request.NONE) if given.requests else Request.NONE
        if gate.state == State.FAULT:
            return _fault_step(config, gate, given, request)
        if request == Request.STOP:
            return _latch(config, gate, given, Problem(Reason.OPERATOR_STOP))
        if gate.state == State.IDLE:
            return _idle_step(config, gate, given, request, problem)
        if request == Request.DISARM:
            return _idle(config, gate, Event.DISARMED)
        if problem.reason:
            return _latch(config, gate, given, problem)
        if gate.state == State.READY:
            return _ready_step(config, gate, given, request)
        return _active_step(config, gate, given, Event.NONE)


# --- the states -------------------------------------------------------------------------------------------------


def _idle_step(
    config: GateConfig, gate: Gate, given: Inputs, request: Request, problem: Problem
) -> tuple[Gate, Output]:
    if request == Request.ARM:
        if problem.reason:
            return _idle(config, gate, Event.REFUSED, problem)
        return _ready(config, _begin_at_measured(config, gate), Event.ARMED)
    if request == Request.ACTIVATE:
        return _idle(config, gate, Event.REFUSED, Problem(Reason.NOT_READY))
    return _idle(config, gate, Event.NONE)


def _idle(config: GateConfig, gate: Gate, events: Event, problem: Problem = NO_PROBLEM) -> tuple[Gate, Output]:
    gate = replace(gate, state=State.IDLE, problem=NO_PROBLEM, reaction=Source.SAFE, late=0, limited_since=NEVER)
    return _send(gate, config.safe, Source.SAFE, events, problem)


def _begin_at_measured(config: GateConfig, gate: Gate) -> Gate:
    """The move to the start pose begins where the actuators are, as far as signals tell."""
    measured = _bounded(gate.values[config.feedback], config.command_lower, config.command_upper)
    return replace(gate, command=np.where(config.feedback >= 0, measured, gate.command))


def _ready_step(config: GateConfig, gate: Gate, given: Inputs, request: Request) -> tuple[Gate, Output]:
    if request != Request.ACTIVATE:
        return _ready(config, gate, Event.NONE)
    arrived = bool((gate.command == config.start).all())
    problem = _check_command(config, given) if arrived else Problem(Reason.NOT_READY)
    if problem.reason:
        return _ready(config, gate, Event.REFUSED, problem)
    return _active_step(config, replace(gate, state=State.ACTIVE), given, Event.ACTIVATED)


def _ready(config: GateConfig, gate: Gate, events: Event, problem: Problem = NO_PROBLEM) -> tuple[Gate, Output]:
    command = _towards(gate.command, config.start, config.slow_step)
    return _send(gate, command, Source.START, events, problem, state=State.READY)


def _active_step(config: GateConfig, gate: Gate, given: Inputs, events: Event) -> tuple[Gate, Output]:
    problem = _check_command(config, given)
    if problem.reason:
        return _latch(config, gate, given, problem)
    assert given.command is not None
    command = _towards(gate.command, given.command, config.rate_step)
    same = command == given.command
    if same.all():
        return _send(gate, command, Source.POLICY, events, NO_PROBLEM, limited_since=NEVER)
    since = gate.limited_since if gate.limited_since >= 0 else gate.time
    if gate.time - since > config.timeout:
        return _latch(config, gate, given, Problem(Reason.COMMAND_RATE, *_channel_of(config, int(np.argmin(same)))))
    return _send(gate, command, Source.POLICY, events | Event.RATE_LIMITED, NO_PROBLEM, limited_since=since)


def _latch(config: GateConfig, gate: Gate, given: Inputs, problem: Problem) -> tuple[Gate, Output]:
    reaction = REACTIONS[config.on_fault]
    grounded = reaction == Source.FALLBACK and gate.state != State.ACTIVE  # a controller must not take off
    if problem.reason == Reason.OPERATOR_STOP or grounded:
        reaction = Source.SAFE
    latched = replace(gate, state=State.FAULT, problem=problem, reaction=reaction, late=0, limited_since=NEVER)
    return _react(config, latched, given, Event.FAULTED)


def _fault_step(config: GateConfig, gate: Gate, given: Inputs, request: Request) -> tuple[Gate, Output]:
    if request == Request.RESET:
        return _idle(config, gate, Event.WAS_RESET)
    if request in (Request.STOP, Request.DISARM):
        gate = replace(gate, reaction=Source.SAFE)  # the first reason stays
    refused = request in (Request.ARM, Request.ACTIVATE)
    return _react(config, gate, given, Event.REFUSED if refused else Event.NONE)


def _react(config: GateConfig, gate: Gate, given: Inputs, events: Event) -> tuple[Gate, Output]:
    if gate.reaction == Source.FALLBACK and not _fallback_can_act(config, gate, given):
        gate, events = replace(gate, reaction=Source.SAFE), events | Event.FALLBACK_LOST
    command = config.safe
    if gate.reaction == Source.HOLD:
        command = gate.command
    elif gate.reaction == Source.DAMP:
        command = _towards(gate.command, config.safe, config.slow_step)
    elif gate.reaction == Source.FALLBACK:
        assert given.fallback is not None
        command = _towards(gate.command, given.fallback, config.rate_step)
    return _send(gate, command, gate.reaction, events, gate.problem)


def _send(
    gate: Gate, command: np.ndarray, source: Source, events: Event, problem: Problem, **remembered: Any
) -> tuple[Gate, Output]:
    gate = replace(gate, command=command, **remembered)
    return gate, Output(command.copy(), source, gate.state, problem, events)


# --- the checks -------------------------------------------------------------------------------------------------


def _require_layout(config: GateConfig, given: Inputs) -> None:
    """Arrays of another layout are the caller's mistake, not a fault of the robot."""
    wanted = {"signals": len(config.signal_lower), "command": len(config.safe), "fallback": len(config.safe)}
    for name, size in wanted.items():
        array = getattr(given, name)
        if array is not None and (array.shape != (size,) or array.dtype != np.float32):
            raise ContractError(f"{name} is {array.dtype}{array.shape}; expected float32({size},)")
    if len(given.stamps) != len(config.signals):
        raise ContractError(f"stamps are {len(given.stamps)}; expected {len(config.signals)}, one per signal")


def _check_surroundings(config: GateConfig, before: Gate, given: Inputs, late: int) -> Problem:
    if not given.bundle_intact:
        return Problem(Reason.BUNDLE)
    if given.time < 0 or given.time < before.time:
        return Problem(Reason.CLOCK)
    if late > config.late_limit:
        return Problem(Reason.OVERRUN)
    if late < -config.late_limit:
        return Problem(Reason.TOO_FAST)
    age_known = 0 <= given.operator_stamp <= given.time
    if config.operator_timeout and not (age_known and given.time - given.operator_stamp <= config.operator_timeout):
        return Problem(Reason.OPERATOR_LOST)
    return NO_PROBLEM


LONG_AGO = 1 << 42
"""µs, fifty days: beyond all timeouts of a contract. More counts as this much, so that 64 bits suffice."""


def _lateness(config: GateConfig, before: Gate, time: int) -> int:
    """µs by which the steps are behind their schedule, or ahead if negative; ``slack`` per step is forgotten."""
    if before.state not in (State.READY, State.ACTIVE) or time < before.time:
        return 0
    late = before.late + min(time - before.time, LONG_AGO) - config.period
    if late > config.slack:
        return late - config.slack
    return min(0, late + config.slack)


def _remember(config: GateConfig, before: Gate, given: Inputs, late: int) -> Gate:
    """Note the signals that are new, and since when each has had its value. Stamps of the future are not kept."""
    values, stamps, changed = given.signals.copy(), [int(stamp) for stamp in given.stamps], list(before.changed)
    same = (given.signals == before.values).tolist()
    for i, watch in enumerate(config.signals):
        span, stamp, last = slice(watch.offset, watch.offset + watch.size), stamps[i], before.stamps[i]
        if stamp < 0 or stamp > given.time or stamp == last:
            values[span], stamps[i] = before.values[span], last
        elif not (stamp > last >= 0 and all(same[span])):
            changed[i] = stamp
    return replace(before, values=values, stamps=tuple(stamps), changed=tuple(changed), time=int(given.time), late=late)


def _check_signals(config: GateConfig, gate: Gate, given: Inputs, sensors_only: bool) -> Problem:
    """The first signal, in the contract's order, that must not be acted on."""
    inside = (given.signals >= config.signal_lower) & (given.signals <= config.signal_upper)  # False for NaN
    all_inside = bool(inside.all())
    for i, watch in enumerate(config.signals):
        if sensors_only and not watch.sensor:
            continue
        stamp = int(given.stamps[i])
        if stamp < 0:
            return Problem(Reason.SIGNAL_MISSING, i)
        if stamp > given.time:
            return Problem(Reason.CLOCK, i)
        if watch.timeout and given.time - stamp > watch.timeout:
            return Problem(Reason.SIGNAL_STALE, i)
        if not all_inside:
            for element in range(watch.size):
                if not inside[watch.offset + element]:
                    finite = bool(np.isfinite(given.signals[watch.offset + element]))
                    return Problem(Reason.SIGNAL_RANGE if finite else Reason.SIGNAL_NOT_FINITE, i, element)
        if watch.quaternion:
            reason = _check_quaternion(config, given.signals[watch.offset : watch.offset + 4], watch.upright)
            if reason:
                return Problem(reason, i)
        if watch.noisy and gate.stamps[i] - gate.changed[i] > watch.timeout:
            return Problem(Reason.SIGNAL_FROZEN, i)
    return NO_PROBLEM


def _check_quaternion(config: GateConfig, q: np.ndarray, upright: bool) -> Reason:
    xx, yy, zz, ww = q * q
    lying = xx + yy
    norm = (lying + zz) + ww
    if norm < config.norm_low or norm > config.norm_high:
        return Reason.SIGNAL_NORM
    return Reason.TILT if upright and lying > config.tilt * norm else Reason.NONE


def _check_command(config: GateConfig, given: Inputs) -> Problem:
    """Whether the policy's command may be sent, before its rate is limited."""
    if given.command is None or given.command_stamp < 0:
        return Problem(Reason.COMMAND_MISSING)
    if given.command_stamp > given.time:
        return Problem(Reason.CLOCK)
    if given.time - given.command_stamp > config.timeout:
        return Problem(Reason.COMMAND_STALE)
    inside = _inside(config, given.command)
    if inside.all():
        return NO_PROBLEM
    worst = int(np.argmin(inside))
    finite = bool(np.isfinite(given.command[worst]))
    return Problem(Reason.COMMAND_RANGE if finite else Reason.COMMAND_NOT_FINITE, *_channel_of(config, worst))


def _fallback_can_act(config: GateConfig, gate: Gate, given: Inputs) -> bool:
    """The controller has a command within limits, and every sensor that it may use is well."""
    if given.fallback is None or not _inside(config, given.fallback).all():
        return False
    return not _check_signals(config, gate, given, sensors_only=True).reason


# --- arithmetic, in float32 ---------------------------------------------------------------------------------------


def _inside(config: GateConfig, command: np.ndarray) -> np.ndarray:
    return (command >= config.command_lower) & (command <= config.command_upper)  # False for NaN


def _bounded(x: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    return np.where(x < lower, lower, np.where(x > upper, upper, x))


def _towards(present: np.ndarray, goal: np.ndarray, most: np.ndarray) -> np.ndarray:
    """``goal``, or as far towards it as ``most`` allows."""
    return _bounded(goal, present - most, present + most)


def _channel_of(config: GateConfig, flat: int) -> tuple[int, int]:
    """Command and element of a flat index."""
    span = next(span for span in reversed(config.commands) if span.offset <= flat)
    return config.commands.index(span), flat - span.offset
