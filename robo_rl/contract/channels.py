"""What goes in and out of a policy, and what it keeps: signals, commands, memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from robo_rl.contract.checks import Numbers, finite_numbers, require, require_name, require_unique

MAX_BLOCK = 1 << 20  # floats in a block of memory

_UNITS = "1 m m/s m/s^2 rad rad/s rad/s^2 s Hz kg N N*m N*m/rad N*s/m Pa T V A W K"
UNITS = frozenset(_UNITS.split())


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
        require_name(self.name, f"{type(self).__name__.lower()}.name")
        require_name(self.frame, f"{where}: frame")
        object.__setattr__(self, "elements", tuple(self.elements))
        shaped = getattr(self, "shape", None) is not None
        require(shaped or len(self.elements) > 0, f"{where}: elements", self.elements, "at least one element")
        for element in self.elements:
            require_name(element, f"{where}: elements")
        require_unique(self.elements, f"{where}: elements")
        require(self.unit in UNITS, f"{where}: unit", self.unit, f"an SI unit, one of {sorted(UNITS)}")
        if shaped:  # limits for all numbers alike
            object.__setattr__(self, "lower", finite_numbers(self.lower, 1, f"'{self.name}': lower"))
            object.__setattr__(self, "upper", finite_numbers(self.upper, 1, f"'{self.name}': upper"))
            return
        self._check_numbers("lower", "upper")
        for low, high, element in zip(self.lower, self.upper, self.elements, strict=True):
            require(low < high, f"{where}: lower[{element}]", low, f"a number below upper[{element}] = {high}")

    def _check_numbers(self, *fields: str) -> None:
        for name in fields:
            if getattr(self, name) is not None:
                found = finite_numbers(getattr(self, name), self.size, f"'{self.name}': {name}")
                object.__setattr__(self, name, found)

    @property
    def size(self) -> int:
        """Number of elements."""
        return len(self.elements)


@dataclass(frozen=True)
class Signal(_Channel):
    """One measured or given quantity.

    ``kind`` "quaternion" means unit norm and element order x, y, z, w; there is no other order.
    ``source`` tells who provides it: a "sensor" (or estimator), the "operator" (set-points), or a "simulation" alone,
    which no robot has: a contract, which is for robots, takes none of these.
    ``noise`` is the standard deviation per element, in the signal's unit, and ``delay`` the least and the
    greatest latency, in seconds, that the policy was trained with. ``seen_low`` and ``seen_high`` bound what
    the policy met in simulation. None means not known.
    """

    kind: Literal["vector", "quaternion"] = "vector"
    source: Literal["sensor", "operator", "simulation", "runtime"] = "sensor"
    noise: Numbers | None = None
    delay: tuple[float, float] = (0.0, 0.0)
    seen_low: Numbers | None = None
    seen_high: Numbers | None = None
    shape: tuple[int, ...] | None = None
    """Of a scan or an image, which has no elements by name."""
    period: float | None = None
    """s between measurements; None: one every control period."""
    timeout: float | None = None
    """s without a measurement that are a fault; None: the contract's."""
    age_of: str | None = None
    """Of a signal that the runtime gives: which signal's age it is, in s."""

    def __post_init__(self) -> None:
        super().__post_init__()
        where = f"signal '{self.name}'"
        require(self.kind in ("vector", "quaternion"), f"{where}: kind", self.kind, "'vector' or 'quaternion'")
        sources = ("sensor", "operator", "simulation", "runtime")
        require(self.source in sources, f"{where}: source", self.source, f"one of {sources}")
        if self.shape is None:
            self._check_numbers("noise", "seen_low", "seen_high")
        good = self.noise is None or min(self.noise) >= 0
        require(good, f"{where}: noise", self.noise, "standard deviations of 0 or more")
        delay = finite_numbers(self.delay, 2, f"{where}: delay")
        object.__setattr__(self, "delay", delay)
        require(0 <= delay[0] <= delay[1], f"{where}: delay", delay, "0 <= least <= greatest, in s")
        if self.kind == "quaternion":
            require(
                self.elements == ("x", "y", "z", "w"),
                f"{where}: elements",
                self.elements,
                "('x', 'y', 'z', 'w'), the one quaternion order in use",
            )

    @property
    def size(self) -> int:
        """Number of numbers."""
        return len(self.elements) if self.shape is None else math.prod(self.shape)


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
        require(good, f"command '{self.name}': rate", self.rate, f"positive numbers, in {self.unit} per second")
        self._check_within("safe", self.safe)
        if self.start is not None:
            self._check_within("start", self.start)

    def _check_within(self, what: str, values: Numbers) -> None:
        for low, value, high, element in zip(self.lower, values, self.upper, self.elements, strict=True):
            require(
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
        require_name(self.name, "state.name")
        object.__setattr__(self, "shape", tuple(self.shape))
        good = 0 < len(self.shape) <= 8 and all(isinstance(k, int) and k > 0 for k in self.shape)
        good = good and math.prod(self.shape) <= MAX_BLOCK
        require(good, f"{where}: shape", self.shape, f"1 to 8 positive integers with a product of at most {MAX_BLOCK}")
        object.__setattr__(self, "initial", finite_numbers(self.initial, self.size, f"{where}: initial"))

    @property
    def size(self) -> int:
        """Number of floats."""
        return math.prod(self.shape)
