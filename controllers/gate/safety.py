"""The gate: the one state machine between a policy and the actuators.

    idle ──arm──► ready (slow move to the start pose, or motors idle) ──activate──► active ──any fault──► fault

    config = GateConfig.from_contract(contract)
    gate = initial(config)
    gate, output = step(config, gate, Inputs(time, signals, stamps, command, …))   # every control period

Faults latch with their first reason. A reset is always an explicit request, and leads to idle. Nothing is sent before
the first arming. After it, whoever is not ready or active is stopped: each command as its ``stop`` says, for ever,
from where its actuators are. In idle nothing latches but a stop; arming is refused while anything is wrong.

The gate's own moves (to the start, and in a stop) begin at the measured value, keep the rate limit, and stay so near
the measured value that no motor is asked for more than it has. Where feedback is missing, old or out of range, an
actuator's target stays where it was.

Pure functions: the same inputs give the same outputs, bit for bit, here and in ``deploy/build/c/gate.c``. Numbers are
float32, computed one rounded operation at a time in the order written; time is whole microseconds. Codes are
part of logs, messages and test vectors, and never change. docs/safety.md has them in tables.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robo_rl.controllers.gate.checks import (
    channel_of,
    check_ahead,
    check_command,
    check_envelope,
    check_signals,
    check_surroundings,
    fallback_can_act,
    lateness,
    remember,
    require_layout,
)
from robo_rl.controllers.gate.codes import (
    NO_PROBLEM,
    REACTIONS,
    URGENCY,
    Event,
    Problem,
    Reason,
    Request,
    Source,
    State,
)
from robo_rl.controllers.gate.config import NEVER, GateConfig
from robo_rl.controllers.gate.memory import Gate, Inputs, Output, initial
from robo_rl.controllers.gate.moves import arrived, begin, begin_stop, start_step, stop_step, towards

__all__ = ["Gate", "Inputs", "Output", "initial", "step"]


def step(config: GateConfig, before: Gate, given: Inputs) -> tuple[Gate, Output]:
    """One control period: the new gate, and what to send."""
    require_layout(config, given)
    late = lateness(config, before, given.time)
    gate = remember(config, before, given, late)
    request = next((r for r in URGENCY if given.requests & r), Request.NONE) if given.requests else Request.NONE
    with np.errstate(over="ignore"):
        if gate.state == State.FAULT:
            return _fault_step(config, gate, given, request)
        if request is not Request.NONE and request in STOPPED:
            return _latch(config, gate, given, Problem(STOPPED[request]))
        if gate.state == State.IDLE and request != Request.ARM:
            return _idle_step(config, gate, request)
        if gate.state != State.IDLE and request == Request.DISARM:
            return _idle(config, begin_stop(config, gate), Event.DISARMED)
        problem = check_surroundings(config, before, given, late)
        problem = problem if problem.reason else check_signals(config, gate, given, sensors_only=False)
        problem = problem if problem.reason or not config.envelope else check_envelope(config, gate)
        problem = problem if problem.reason or config.ahead is None else check_ahead(config, config.ahead, gate)
        if gate.state == State.IDLE:
            return _arm(config, gate, problem)
        if problem.reason:
            return _latch(config, gate, given, problem)
        if gate.state == State.READY:
            return _ready_step(config, gate, given, request)
        return _active_step(config, gate, given, Event.NONE)


STOPPED = {Request.STOP: Reason.OPERATOR_STOP, Request.HALT: Reason.HALTED}
"""Requests that stop in any state, and the reason that they leave."""


# --- the states -------------------------------------------------------------------------------------------------


def _idle_step(config: GateConfig, gate: Gate, request: Request) -> tuple[Gate, Output]:
    if request == Request.ACTIVATE:
        return _idle(config, gate, Event.REFUSED, Problem(Reason.NOT_READY))
    return _idle(config, gate, Event.NONE)


def _arm(config: GateConfig, gate: Gate, problem: Problem) -> tuple[Gate, Output]:
    if problem.reason:
        return _idle(config, gate, Event.REFUSED, problem)
    return _ready(config, begin(config, gate), Event.ARMED)


def _idle(config: GateConfig, gate: Gate, events: Event, problem: Problem = NO_PROBLEM) -> tuple[Gate, Output]:
    gate = replace(gate, state=State.IDLE, problem=NO_PROBLEM, late=0, limited_since=NEVER)
    return _send(stop_step(config, gate), gate.reaction, events, problem)


def _ready_step(config: GateConfig, gate: Gate, given: Inputs, request: Request) -> tuple[Gate, Output]:
    if request != Request.ACTIVATE:
        return _ready(config, gate, Event.NONE)
    problem = check_command(config, given) if arrived(config, gate) else Problem(Reason.NOT_READY)
    if problem.reason:
        return _ready(config, gate, Event.REFUSED, problem)
    return _active_step(config, replace(gate, state=State.ACTIVE), given, Event.ACTIVATED)


def _ready(config: GateConfig, gate: Gate, events: Event, problem: Problem = NO_PROBLEM) -> tuple[Gate, Output]:
    return _send(replace(start_step(config, gate), state=State.READY), Source.START, events, problem)


def _active_step(config: GateConfig, gate: Gate, given: Inputs, events: Event) -> tuple[Gate, Output]:
    problem = check_command(config, given)
    if problem.reason:
        return _latch(config, gate, given, problem)
    assert given.command is not None
    if config.unlimited:
        gate = replace(gate, command=given.command.copy(), limited_since=NEVER)
        return _send(gate, Source.POLICY, events, NO_PROBLEM)
    command = towards(gate.command, given.command, config.rate_step)
    same = command == given.command
    if same.all():
        return _send(replace(gate, command=command, limited_since=NEVER), Source.POLICY, events, NO_PROBLEM)
    since = gate.limited_since if gate.limited_since >= 0 else gate.time
    if gate.time - since > config.timeout:
        return _latch(config, gate, given, Problem(Reason.COMMAND_RATE, *channel_of(config, int(np.argmin(same)))))
    gate = replace(gate, command=command, limited_since=since)
    return _send(gate, Source.POLICY, events | Event.RATE_LIMITED, NO_PROBLEM)


def _latch(config: GateConfig, gate: Gate, given: Inputs, problem: Problem) -> tuple[Gate, Output]:
    reaction = REACTIONS[config.on_fault]
    grounded = reaction == Source.FALLBACK and gate.state != State.ACTIVE  # a controller must not take off
    gate = replace(gate, problem=problem, late=0, limited_since=NEVER)
    if gate.state != State.IDLE:  # there it is stopped already, or silent
        stop = reaction == Source.STOP or grounded or problem.reason in STOPPED.values()
        gate = begin_stop(config, gate) if stop else replace(gate, reaction=reaction)
    return _react(config, replace(gate, state=State.FAULT), given, Event.FAULTED)


def _fault_step(config: GateConfig, gate: Gate, given: Inputs, request: Request) -> tuple[Gate, Output]:
    if request in (*STOPPED, Request.DISARM, Request.RESET):  # the first reason stays
        gate = begin_stop(config, gate)
    if request == Request.RESET:
        return _idle(config, gate, Event.WAS_RESET)
    refused = request in (Request.ARM, Request.ACTIVATE)
    return _react(config, gate, given, Event.REFUSED if refused else Event.NONE)


def _react(config: GateConfig, gate: Gate, given: Inputs, events: Event) -> tuple[Gate, Output]:
    if gate.reaction == Source.FALLBACK and not fallback_can_act(config, gate, given):
        gate, events = begin_stop(config, gate), events | Event.FALLBACK_LOST
    if gate.reaction == Source.FALLBACK:
        assert given.fallback is not None
        gate = replace(gate, command=towards(gate.command, given.fallback, config.rate_step))
    elif gate.reaction != Source.HOLD:
        gate = stop_step(config, gate)
    return _send(gate, gate.reaction, events, gate.problem)


def _send(gate: Gate, source: Source, events: Event, problem: Problem) -> tuple[Gate, Output]:
    return gate, Output(gate.command.copy(), source, gate.state, problem, events)
