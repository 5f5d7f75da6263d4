"""Where a robot is before a policy takes over, as its contract tells, and whether the contract's own limits allow that.

The gate arms no robot whose sensors are out of the contract's limits or envelope. So a contract whose robot begins
there can never be used, and is refused when it is made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from robo_rl.contract import Command, Contract, ContractError, Signal
from robo_rl.controllers.arm.chain import Chain

STILL = ("m/s", "rad/s")
OWN_FRAMES = ("body", "base", "joint", "heading")
"""Frames of velocities that are the robot's own."""
TOOL = "tool_position"
MARGIN = 1e-6
"""Of a limit's size, for numbers that went through float32."""


class Measured(NamedTuple):
    """One number of a sensor's signal, at the start."""

    signal: Signal
    place: int
    value: float
    why: str


def require_start(contract: Contract) -> None:
    """ContractError, in a sentence, where the robot starts from what its contract does not allow."""
    joints = joints_at_start(contract)
    for command in contract.commands:
        for name, low, high in zip(command.elements, command.lower, command.upper, strict=True):
            if name in joints and _of_joints(command):
                _require(f"command '{command.name}'", name, joints[name], low, high, command.unit)
    found = list(at_start(contract))
    for one in found:
        lower, upper = one.signal.bounds
        where = f"signal '{one.signal.name}'{one.why}"
        _require(where, one.signal.labels[one.place], one.value, lower[one.place], upper[one.place], one.signal.unit)
    for envelope in contract.safety.envelope:
        of = [one for one in found if one.signal.name == envelope.signal]
        for one in of:
            least = one.signal.spread(-math.inf if envelope.lower is None else envelope.lower)
            most = one.signal.spread(math.inf if envelope.upper is None else envelope.upper)
            where, label = f"safety: envelope of '{envelope.signal}'{one.why}", one.signal.labels[one.place]
            _require(where, label, one.value, least[one.place], most[one.place], one.signal.unit)
        if of and envelope.norm is not None:
            length = math.hypot(*(one.value for one in of))
            _require(f"safety: envelope of '{envelope.signal}'{of[0].why}", "norm", length, 0.0, envelope.norm,
                     of[0].signal.unit)  # fmt: skip


def joints_at_start(contract: Contract) -> dict[str, float]:
    """By name, where joints are before a policy takes over: ``home`` or ``stand`` of the robot's facts, and where
    commands have a ``start``, that."""
    robot = contract.robot
    moved = [actuator.name for actuator in robot.actuators if actuator.quantity == "position"]
    facts = robot.facts.get("home", robot.facts.get("stand", []))
    numbers = [x for x in facts if isinstance(x, int | float)] if isinstance(facts, list) else []
    found = dict(zip(moved, map(float, numbers), strict=False))
    for command in contract.commands:
        if command.start is not None and _of_joints(command):
            found |= {name: x for name, x in zip(command.elements, command.start, strict=True) if name in moved}
    return found


def at_start(contract: Contract) -> Iterator[Measured]:
    """What sensors measure then, as far as the contract tells: a robot that stands still and upright, its joints and
    its tool at home."""
    joints = joints_at_start(contract)
    places = {TOOL: _tool(contract, joints)}
    for command in contract.commands:
        if command.start is not None and not _of_joints(command) and command.feedback is not None:
            places[command.feedback] = tuple(command.start)
    for signal in contract.signals:
        if signal.source != "sensor" or signal.shape is not None:
            continue
        values: tuple[float, ...]
        if signal.is_attitude:
            values, why = (0.0, 0.0, 0.0, 1.0), ", of a robot that is upright"
        elif signal.unit in STILL and signal.frame in OWN_FRAMES:
            values, why = (0.0,) * signal.size, ", of a robot that stands still"
        else:
            values, why = places.get(signal.name) or (), " at the start"
        if len(values) == signal.size:
            yield from (Measured(signal, i, value, why) for i, value in enumerate(values))
        elif _of_joints(signal):
            for i, name in enumerate(signal.elements):
                if name in joints:
                    yield Measured(signal, i, joints[name], " at the start")


def _of_joints(part: Command | Signal) -> bool:
    """Whether it is about positions of joints: hinges, or slides, whose frame tells them from places in space."""
    return part.unit == "rad" or (part.unit == "m" and part.frame == "joint")


def _tool(contract: Contract, joints: dict[str, float]) -> tuple[float, ...]:
    """m, where an arm's tool is; () of robots without."""
    facts = contract.robot.facts
    if not {"chain", "tool", "home"} <= set(facts):
        return ()
    try:
        chain = Chain.from_facts(facts)
        return tuple(float(x) for x in chain.pose(list(joints.values())[: len(chain.links)]).position)
    except (KeyError, TypeError, ValueError) as error:
        raise ContractError(f"robot: facts: {error!r}; expected the chain, tool and home of an arm") from None


def _require(where: str, name: str, value: float, low: float, high: float, unit: str) -> None:
    margin = MARGIN * float(np.max(np.abs([x for x in (low, high, 1.0) if math.isfinite(x)])))
    if not low - margin <= value <= high + margin:
        raise ContractError(
            f"{where}: the robot starts with '{name}' at {value:.4g} {unit}; expected {low:.4g} to {high:.4g}: no gate "
            "would arm it there. Give the command a start, the robot a home, or the contract limits that go together"
        )
