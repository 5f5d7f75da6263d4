"""Facts of robots: what a runtime, a controller or another simulator needs to know of the one that it runs on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from robo_rl.contract.checks import (
    ContractError,
    finite_number,
    finite_numbers,
    require,
    require_identifier,
    require_label,
    require_name,
    require_unique,
)

QUANTITIES = {
    "position": ("rad", "m"),
    "velocity": ("rad/s", "m/s"),
    "effort": ("N*m", "N"),
    "current": ("A",),
    "voltage": ("V",),
}
"""The quantities that an actuator can be commanded, and their units."""
MAX_DEPTH, MAX_FACTS = 8, 10_000


@dataclass(frozen=True)
class Actuator:
    """One motor, drive or servo with the joint, rotor or wheel that it moves.

    ``quantity`` is what it is commanded, in ``unit``, from ``lower`` to ``upper``; ``rate`` (unit per second) is the
    greatest change that it can or may follow. ``effort`` (N m, or N of a slide) is its greatest torque, ``speed``
    (rad/s, m/s) its greatest speed; None: not known. ``safe``: what leaves it passive, or "hold" where nothing does.
    """

    name: str
    quantity: Literal["position", "velocity", "effort", "current", "voltage"]
    unit: str
    lower: float
    upper: float
    safe: float | Literal["hold"]
    rate: float | None = None
    effort: float | None = None
    speed: float | None = None

    def __post_init__(self) -> None:
        require_label(self.name, "actuator.name")
        where = f"actuator '{self.name}'"
        require(self.quantity in QUANTITIES, f"{where}: quantity", self.quantity, f"one of {list(QUANTITIES)}")
        units = QUANTITIES[self.quantity]
        require(self.unit in units, f"{where}: unit", self.unit, f"one of {units} for a {self.quantity}")
        for name in ("lower", "upper", "rate", "effort", "speed"):
            if getattr(self, name) is not None or name in ("lower", "upper"):
                object.__setattr__(self, name, finite_number(getattr(self, name), f"{where}: {name}"))
        limits = (self.lower, self.upper)
        require(limits[0] < limits[1], f"{where}: lower, upper", limits, f"lower < upper, in {self.unit}")
        for name in ("rate", "effort", "speed"):
            value = getattr(self, name)
            require(value is None or value > 0, f"{where}: {name}", value, "a positive number, or none")
        if self.safe != "hold":
            object.__setattr__(self, "safe", finite_number(self.safe, f"{where}: safe"))
            within = limits[0] <= self.safe <= limits[1]
            require(within, f"{where}: safe", self.safe, f"a number from {limits[0]} to {limits[1]}, or 'hold'")


class Facts(dict[str, Any]):
    """What a kind's own code needs to know of a robot, by name. ContractError, not KeyError, for what is missing: a
    contract may have been made by somebody who did not know what is needed.
    """

    def __missing__(self, name: str) -> Any:
        raise ContractError(
            f"robot: facts: '{name}' is missing; the classical controller of its kind needs it, and there are "
            f"{sorted(self) or 'none'}"
        )


@dataclass(frozen=True)
class Robot:
    """A robot: its kind, its actuators in the order of its commands, and the kind's own facts.

    ``facts`` are plain data (numbers, texts, lists, objects) that the kind's own code understands, such as its
    classical controller.
    """

    name: str
    kind: str
    actuators: tuple[Actuator, ...]
    facts: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_name(self.name, "robot: name")
        require_identifier(self.kind, "robot: kind")
        object.__setattr__(self, "actuators", tuple(self.actuators))
        require(len(self.actuators) > 0, "robot: actuators", (), "at least one actuator")
        require_unique([actuator.name for actuator in self.actuators], "robot: actuators")
        object.__setattr__(self, "facts", Facts(plain(self.facts, "robot: facts")))

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """In the order of commands."""
        return tuple(actuator.name for actuator in self.actuators)


class HoldGains(NamedTuple):
    """Gains of position controls that hold a stance, of a robot that falls with those of its policy."""

    stiffness: tuple[float, ...]
    """N m/rad, in the order of the actuators."""
    damping: tuple[float, ...]
    """N m s/rad."""


def hold_gains(robot: Robot) -> HoldGains | None:
    """What ``facts`` say under "hold"; None where that is nothing. ContractError where it is no gains."""
    held = robot.facts.get("hold")
    if held is None:
        return None
    keys, count = set(HoldGains._fields), len(robot.actuators)
    require(isinstance(held, dict) and set(held) == keys, "robot: facts.hold", held, f"an object with {sorted(keys)}")
    gains = HoldGains(**{key: finite_numbers(held[key], count, f"robot: facts.hold.{key}") for key in keys})
    for key, values in gains._asdict().items():
        require(min(values) >= 0, f"robot: facts.hold.{key}", values, "numbers of 0 or more")
    return gains


def plain(facts: Any, field_name: str) -> dict[str, Any]:
    """A copy of an object of plain data: numbers finite, tuples as lists. ContractError if it holds anything else."""
    require(isinstance(facts, dict), field_name, facts, "an object")
    return _plain(facts, field_name, MAX_DEPTH, [MAX_FACTS])


def _plain(value: Any, field_name: str, depth: int, left: list[int]) -> Any:
    left[0] -= 1
    require(depth > 0 and left[0] >= 0, field_name, "too deep or too large", f"{MAX_DEPTH} levels, {MAX_FACTS} values")
    if isinstance(value, dict):
        for key in value:
            require_label(key, f"{field_name}: a key")
        return {key: _plain(x, f"{field_name}.{key}", depth - 1, left) for key, x in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(x, f"{field_name}[{i}]", depth - 1, left) for i, x in enumerate(value)]
    if isinstance(value, str):
        good = len(value) <= 256 and value.isprintable()
        require(good, field_name, value, "printable text of at most 256 characters")
        return value
    if isinstance(value, bool) or value is None:
        return value
    number = finite_number(value, field_name)
    return int(number) if isinstance(value, int) and math.fabs(number) < 2**53 else number
