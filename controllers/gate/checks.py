"""What the gate checks before anything is sent, and the news that it keeps. Comparisons are in float32 and whole µs."""

from __future__ import annotations

import numpy as np

from robo_rl.contract import ContractError
from robo_rl.controllers.gate.codes import NO_PROBLEM, Problem, Reason, State
from robo_rl.controllers.gate.config import Ahead, GateConfig
from robo_rl.controllers.gate.memory import Gate, Inputs


def require_layout(config: GateConfig, given: Inputs) -> None:
    """Arrays of another layout are the caller's mistake, not a fault of the robot."""
    _require("signals", given.signals, config.signal_lower)
    if given.command is not None:
        _require("command", given.command, config.safe)
    if given.fallback is not None:
        _require("fallback", given.fallback, config.safe)
    if len(given.stamps) != len(config.signals):
        raise ContractError(f"stamps are {len(given.stamps)}; expected {len(config.signals)}, one per signal")


def _require(name: str, array: np.ndarray, like: np.ndarray) -> None:
    if array.shape != like.shape or array.dtype != np.float32:
        raise ContractError(f"{name} is {array.dtype}{array.shape}; expected float32{like.shape}")


def check_surroundings(config: GateConfig, before: Gate, given: Inputs, late: int) -> Problem:
    """What is wrong with bundle, clock, schedule or operator."""
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


def lateness(config: GateConfig, before: Gate, time: int) -> int:
    """µs by which the steps are behind their schedule, or ahead if negative; ``slack`` per step is forgotten."""
    if before.state not in (State.READY, State.ACTIVE) or time < before.time:
        return 0
    late = before.late + min(time - before.time, LONG_AGO) - config.period
    if late > config.slack:
        return late - config.slack
    return min(0, late + config.slack)


def remember(config: GateConfig, before: Gate, given: Inputs, late: int) -> Gate:
    """Note the signals that are new, and since when each has had its value. Stamps of the future are not kept."""
    values, stamps, changed = given.signals.copy(), [int(stamp) for stamp in given.stamps], list(before.changed)
    same = (given.signals == before.values).tolist()
    for i, watch in enumerate(config.signals):
        span, stamp, last = slice(watch.offset, watch.offset + watch.size), stamps[i], before.stamps[i]
        if stamp < 0 or stamp > given.time or stamp == last:
            values[span], stamps[i] = before.values[span], last
        elif not (stamp > last >= 0 and all(same[span])):
            changed[i] = stamp
    return Gate(  # every field: ``replace`` would take a tenth of the step
        command=before.command, reference=before.reference, values=values, stamps=tuple(stamps), changed=tuple(changed),
        state=before.state, problem=before.problem, reaction=before.reaction, time=int(given.time), late=late,
        limited_since=before.limited_since,
    )  # fmt: skip


def check_signals(config: GateConfig, gate: Gate, given: Inputs, sensors_only: bool) -> Problem:
    """The first signal, in the contract's order, that must not be acted on."""
    inside = (given.signals >= config.signal_lower) & (given.signals <= config.signal_upper)  # False for NaN
    all_inside = bool(inside.all())
    for i, watch in enumerate(config.signals):
        if sensors_only and not watch.sensor:
            continue
        stamp = int(given.stamps[i])
        if stamp < 0 and watch.optional:
            continue
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


def check_envelope(config: GateConfig, gate: Gate) -> Problem:
    """Whether the robot is where it may be."""
    for bounds in config.envelope:
        watch = config.signals[bounds.signal]
        value = gate.values[watch.offset : watch.offset + watch.size]
        if gate.stamps[bounds.signal] < 0:  # it may be absent
            continue
        inside = (value >= bounds.lower) & (value <= bounds.upper)
        if not inside.all():
            return Problem(Reason.ENVELOPE, bounds.signal, int(np.argmin(inside)))
        if np.isfinite(bounds.square) and _square(value) > bounds.square:
            return Problem(Reason.ENVELOPE, bounds.signal)
    return NO_PROBLEM


def check_ahead(config: GateConfig, ahead: Ahead, gate: Gate) -> Problem:
    """Whether the robot can still stop before what its scan sees in the way."""
    known = (ahead.scan, ahead.speed, ahead.yaw_rate)
    if any(gate.stamps[i] < 0 for i in known if i >= 0):  # one may be absent
        return NO_PROBLEM
    speed = gate.values[config.signals[ahead.speed].offset]
    if not speed > 0:
        return NO_PROBLEM
    turn = gate.values[config.signals[ahead.yaw_rate].offset] if ahead.yaw_rate >= 0 else np.float32(0)
    watch = config.signals[ahead.scan]
    scan = gate.values[watch.offset : watch.offset + watch.size]
    with np.errstate(invalid="ignore"):  # ∞ − ∞ is not in the way
        x, y = scan * ahead.cosine, scan * ahead.sine
        beside = speed * y - (np.float32(0.5) * turn) * (x * x)  # m²/s: speed times the distance from the arc
    wide = speed * ahead.half_width
    met = (x > 0) & (beside <= wide) & (beside >= -wide) & (x - ahead.front < speed * ahead.time)
    return Problem(Reason.COLLISION, ahead.scan, int(np.argmax(met))) if met.any() else NO_PROBLEM


def check_command(config: GateConfig, given: Inputs) -> Problem:
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
    return Problem(Reason.COMMAND_RANGE if finite else Reason.COMMAND_NOT_FINITE, *channel_of(config, worst))


def fallback_can_act(config: GateConfig, gate: Gate, given: Inputs) -> bool:
    """The controller has a command within limits, and every sensor that it may use is well."""
    if given.fallback is None or not _inside(config, given.fallback).all():
        return False
    return not check_signals(config, gate, given, sensors_only=True).reason


def _inside(config: GateConfig, command: np.ndarray) -> np.ndarray:
    return (command >= config.command_lower) & (command <= config.command_upper)  # False for NaN


def _square(vector: np.ndarray) -> np.float32:
    """The sum of squares, added one by one."""
    total = np.float32(0)
    for x in vector:
        total += x * x
    return total


def channel_of(config: GateConfig, flat: int) -> tuple[int, int]:
    """Command and element of a flat index."""
    span = next(span for span in reversed(config.commands) if span.offset <= flat)
    return config.commands.index(span), flat - span.offset
