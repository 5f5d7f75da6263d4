"""What goes in and out of a policy, and what it keeps: signals, commands, memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from robo_rl.contract.checks import (
    ContractError,
    Numbers,
    finite_number,
    finite_numbers,
    require,
    require_identifier,
    require_label,
    require_phrase,
    require_unique,
)
from robo_rl.contract.laws import Law

MAX_BLOCK = 1 << 20  # floats in a block of memory, and in a signal

_UNITS = "1 m m/s m/s^2 rad rad/s rad/s^2 s Hz kg N N*m N*m/rad N*s/m Pa T V A W K"
UNITS = frozenset(_UNITS.split())

ATTITUDE_FRAMES = ("body to world", "base to world")
"""The frames of quaternions that tell the attitude of the robot itself; others are of objects, tools, cameras."""


@dataclass(frozen=True)
class Scan:
    """A signal that is a ring or fan of ranges, as in sensor_msgs/LaserScan.

    Beam i looks at ``angle_min`` + i ``angle_increment`` (rad) about the sensor's z axis from its x axis. Ranges are
    true from ``range_min`` to ``range_max`` (m); REP-117 has the meaning of what lies beyond.
    """

    angle_min: float
    angle_increment: float
    range_min: float
    range_max: float
    kind: Literal["scan"] = "scan"

    def __post_init__(self) -> None:
        for name in ("angle_min", "angle_increment", "range_min", "range_max"):
            object.__setattr__(self, name, finite_number(getattr(self, name), f"scan: {name}"))
        require(self.angle_increment != 0, "scan: angle_increment", self.angle_increment, "an angle other than 0")
        limits = (self.range_min, self.range_max)
        require(0 <= limits[0] < limits[1], "scan: range_min, range_max", limits, "0 <= range_min < range_max")


@dataclass(frozen=True)
class Image:
    """A signal that is an image, rows from top to bottom, as in sensor_msgs/Image; ``fov`` (rad) is horizontal.

    ``encoding``: "depth" in m along the optical axis, "depth with holes" likewise and 0 where it is not known, or
    "gray" from 0 to 1.
    """

    encoding: Literal["depth", "depth with holes", "gray"]
    fov: float
    kind: Literal["image"] = "image"

    def __post_init__(self) -> None:
        known = ("depth", "depth with holes", "gray")
        require(self.encoding in known, "image: encoding", self.encoding, "'depth', 'depth with holes' or 'gray'")
        object.__setattr__(self, "fov", finite_number(self.fov, "image: fov"))
        require(0 < self.fov < math.pi, "image: fov", self.fov, "an angle between 0 and pi")


@dataclass(frozen=True)
class _Channel:
    """What signals and commands share: a named, ordered physical quantity in SI units, within limits."""

    name: str
    elements: tuple[str, ...]
    unit: str
    frame: str
    lower: Numbers | float
    upper: Numbers | float

    def _check(self) -> None:
        where = self._where
        require_phrase(self.frame, f"{where}: frame")
        object.__setattr__(self, "elements", tuple(self.elements))
        for element in self.elements:
            require_label(element, f"{where}: elements")
        require_unique(self.elements, f"{where}: elements")
        require(self.unit in UNITS, f"{where}: unit", self.unit, f"an SI unit, one of {sorted(UNITS)}")
        self._set_numbers("lower", "upper")
        lower, upper = np.broadcast_arrays(np.atleast_1d(self.lower), np.atleast_1d(self.upper))
        for i in np.flatnonzero(~(lower < upper))[:1]:
            label, expected = self.labels[i], f"a number below upper[{self.labels[i]}] = {upper[i]}"
            require(False, f"{where}: lower[{label}]", float(lower[i]), expected)

    @property
    def _where(self) -> str:
        kind = type(self).__name__.lower()
        require_identifier(self.name, f"{kind}.name")
        return f"{kind} '{self.name}'"

    def _set_numbers(self, *fields: str, optional: bool = False) -> None:
        """Let fields be finite floats: one per element, or a single one for all of a signal with a shape."""
        for name in fields:
            given = getattr(self, name)
            if given is None and optional:
                continue
            where = f"'{self.name}': {name}"
            if isinstance(given, int | float):
                number = finite_number(given, where)
                found = number if self.dimensions != (len(self.elements),) else (number,) * len(self.elements)
            else:
                found = finite_numbers(given, self.dimensions[-1], where)
            object.__setattr__(self, name, found)

    @property
    def dimensions(self) -> tuple[int, ...]:
        """The shape of one value."""
        return (len(self.elements),)

    @property
    def size(self) -> int:
        """Number of floats."""
        return math.prod(self.dimensions)

    def spread(self, numbers: Numbers | float) -> np.ndarray:
        """(size,) float64: a number for all, or one per element of the last axis, for each float of a value."""
        return np.broadcast_to(np.asarray(numbers, np.float64), self.dimensions).ravel()

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper limits, (size,) float64 each."""
        return self.spread(self.lower), self.spread(self.upper)

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each float: the elements; of a signal with a shape, places such as "3" or "3_x"."""
        if self.dimensions == (len(self.elements),):
            return self.elements
        names = self.elements or tuple(map(str, range(self.dimensions[-1])))
        places = np.ndindex(*self.dimensions)
        return tuple("_".join([*map(str, place[:-1]), names[place[-1]]]) for place in places)


@dataclass(frozen=True)
class Signal(_Channel):
    """One measured or given quantity.

    ``elements`` name the numbers of a vector. A signal with a ``shape`` is an array of these: (64,) beams, (32, 32)
    pixels, (8, 2) neighbours; there, ``elements`` name the places along the last axis, or are empty. Limits, noise and
    what was seen are given per element of the last axis, or as one number for all of it.

    ``kind`` "quaternion" means unit norm and element order x, y, z, w; there is no other order.
    ``source`` tells who provides it: a "sensor" (or estimator), the "operator" (set-points), the "runtime" itself
    (``age_of``), or a "simulation" alone, which no robot has: a contract, which is for robots, takes none of these.
    ``noise`` is the standard deviation, in the signal's unit, and ``delay`` the least and the greatest latency, in s,
    that the policy was trained with. ``seen_low`` and ``seen_high`` bound what the policy met in simulation. None
    means not known.

    ``period`` (s) is the time between measurements; None: the control period. A slower signal is held in between.
    ``timeout`` (s): an older value is a fault; None: the contract's ``safety.signal_timeout``, or the period and that.
    ``age_of`` names the signal whose age (s, since it was measured) this one tells; the runtime computes it, up to the
    upper limit. A signal whose age is told may be absent: it begins as zeros within its limits and is no fault.
    ``layout`` tells the geometry of a scan or an image.
    """

    kind: Literal["vector", "quaternion"] = "vector"
    source: Literal["sensor", "operator", "runtime", "simulation"] = "sensor"
    noise: Numbers | float | None = None
    delay: tuple[float, float] = (0.0, 0.0)
    seen_low: Numbers | float | None = None
    seen_high: Numbers | float | None = None
    shape: tuple[int, ...] | None = None
    period: float | None = None
    timeout: float | None = None
    age_of: str | None = None
    layout: Scan | Image | None = None

    def __post_init__(self) -> None:
        where = self._where
        self._check_shape(where)
        self._check()
        require(self.kind in ("vector", "quaternion"), f"{where}: kind", self.kind, "'vector' or 'quaternion'")
        sources = ("sensor", "operator", "runtime", "simulation")
        require(self.source in sources, f"{where}: source", self.source, f"one of {sources}")
        self._set_numbers("noise", "seen_low", "seen_high", optional=True)
        good = self.noise is None or float(np.min(self.noise)) >= 0
        require(good, f"{where}: noise", self.noise, "standard deviations of 0 or more")
        delay = finite_numbers(self.delay, 2, f"{where}: delay")
        object.__setattr__(self, "delay", delay)
        require(0 <= delay[0] <= delay[1], f"{where}: delay", delay, "0 <= least <= greatest, in s")
        for name in ("period", "timeout"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, finite_number(getattr(self, name), f"{where}: {name}"))
                require(getattr(self, name) > 0, f"{where}: {name}", getattr(self, name), "a positive number, in s")
        if self.period is not None and self.timeout is not None:
            expected = f"at least the period, {self.period} s"
            require(self.timeout >= self.period, f"{where}: timeout", self.timeout, expected)
        if self.kind == "quaternion":
            expected = "('x', 'y', 'z', 'w'), the one quaternion order in use"
            require(self.elements == ("x", "y", "z", "w"), f"{where}: elements", self.elements, expected)
        told = (self.age_of is not None, self.source == "runtime")
        require(told[0] == told[1], f"{where}: age_of", self.age_of, "the name of a signal if the source is 'runtime'")
        if self.age_of is not None:
            good = self.unit == "s" and self.size == 1 and self.bounds[0][0] >= 0
            require(good, f"{where}: unit, elements", (self.unit, self.elements), "an age: one number of s, 0 or more")

    def _check_shape(self, where: str) -> None:
        object.__setattr__(self, "elements", tuple(self.elements))
        if self.shape is None:
            require(len(self.elements) > 0, f"{where}: elements", self.elements, "at least one element, or a shape")
            require(self.layout is None, f"{where}: layout", self.layout, "none, without a shape")
            return
        object.__setattr__(self, "shape", tuple(self.shape))
        require_shape(self.shape, f"{where}: shape")
        count = len(self.elements)
        expected = f"none, or {self.shape[-1]} names for the places along the last axis of {self.shape}"
        require(count in (0, self.shape[-1]), f"{where}: elements", self.elements, expected)
        require(self.kind == "vector", f"{where}: kind", self.kind, "'vector', with a shape")
        dimensions = {Scan: 1, Image: 2}.get(type(self.layout), len(self.shape))
        require(len(self.shape) == dimensions, f"{where}: shape", self.shape, f"{dimensions} numbers for its layout")

    @property
    def dimensions(self) -> tuple[int, ...]:
        return self.shape or (len(self.elements),)

    @property
    def is_attitude(self) -> bool:
        """Whether it measures the attitude of the robot itself."""
        return self.kind == "quaternion" and self.source == "sensor" and self.frame in ATTITUDE_FRAMES


Stop = Literal["off", "ramp", "hold", "damp"]


@dataclass(frozen=True)
class Command(_Channel):
    """One actuated quantity.

    ``stop`` is what its actuators do when the robot is stopped, disarmed or at fault: "off", ``safe`` at once (for
    rotors and others that are passive then); "ramp", slowly from the measured value to ``safe``; "hold", the value that
    was measured when the stop came; "damp", the measured value at every moment, which leaves a position control its
    damping alone. ``safe`` is what "off" and "ramp" send, and "hold" where they stay wherever they are.

    ``rate`` (the command's unit per second) is the greatest change that may be sent; None: not limited.
    ``start`` is where the actuators are moved, slowly, before the policy takes over; None: the policy takes over from
    where they are.
    ``law`` is what the robot's low level must do for the command to mean what it meant in training.
    ``feedback`` names the signal that measures the command, matched element by element by name; None: the one sensor
    signal of the same unit that has all elements, or, where none has all, for each element the one that has it.
    """

    lower: Numbers
    upper: Numbers
    safe: Numbers | Literal["hold"]
    rate: Numbers | None = None
    start: Numbers | None = None
    stop: Stop = "off"
    law: Law | None = None
    feedback: str | None = None

    def __post_init__(self) -> None:
        where = self._where
        object.__setattr__(self, "elements", tuple(self.elements))
        require(len(self.elements) > 0, f"{where}: elements", self.elements, "at least one element")
        self._check()
        stops = ("off", "ramp", "hold", "damp")
        require(self.stop in stops, f"{where}: stop", self.stop, f"one of {stops}")
        stays = self.stop in ("hold", "damp")
        expected = "'hold'" if stays else f"numbers, which '{self.stop}' sends"
        require((self.safe == "hold") == stays, f"{where}: safe", self.safe, f"{expected} with stop '{self.stop}'")
        if not stays:
            self._set_numbers("safe")
            self._check_within("safe", self.safe)  # type: ignore[arg-type]
        self._set_numbers("rate", "start", optional=True)
        good = self.rate is None or min(self.rate) > 0
        require(good, f"{where}: rate", self.rate, f"positive numbers, in {self.unit} per second")
        if self.start is not None:
            self._check_within("start", self.start)
        if self.law is not None:
            self.law.check(self.elements, where)

    @property
    def needs_feedback(self) -> bool:
        """Whether it can't be stopped, or moved to its start, without knowing where its actuators are."""
        return self.start is not None or self.stop != "off"

    def _check_within(self, what: str, values: Numbers) -> None:
        for low, value, high, element in zip(self.lower, values, self.upper, self.elements, strict=True):
            expected = f"a number from lower = {low} to upper = {high}"
            require(low <= value <= high, f"{self._where}: {what}[{element}]", value, expected)


@dataclass(frozen=True)
class StateBlock:
    """A part of the policy's memory, in order, inside the flat ``state`` tensor. ``initial`` holds at the start."""

    name: str
    shape: tuple[int, ...]
    initial: Numbers

    def __post_init__(self) -> None:
        where = f"state '{self.name}'"
        require_identifier(self.name, "state.name")
        object.__setattr__(self, "shape", tuple(self.shape))
        require_shape(self.shape, f"{where}: shape")
        object.__setattr__(self, "initial", finite_numbers(self.initial, self.size, f"{where}: initial"))

    @property
    def size(self) -> int:
        """Number of floats."""
        return math.prod(self.shape)


def require_shape(shape: tuple[int, ...], field_name: str) -> None:
    """1 to 8 positive integers with a bounded product."""
    good = 0 < len(shape) <= 8 and all(isinstance(k, int) and not isinstance(k, bool) and k > 0 for k in shape)
    good = good and math.prod(shape) <= MAX_BLOCK
    require(good, field_name, shape, f"1 to 8 positive integers with a product of at most {MAX_BLOCK}")


def feedback(signals: Sequence[Signal], command: Command) -> tuple[tuple[str, int], ...]:
    """For each element of a command, the sensor signal and its index there that measure it.

    ContractError for an element that is not measured, or that more than one signal could mean.
    """
    named = [signal for signal in signals if command.feedback in (None, signal.name)]
    fit = [s for s in named if s.source == "sensor" and s.shape is None and s.unit == command.unit]
    complete = [signal for signal in fit if set(command.elements) <= set(signal.elements)]
    return tuple(_measured(complete or fit, command, element) for element in command.elements)


def _measured(fit: Sequence[Signal], command: Command, element: str) -> tuple[str, int]:
    found = [(signal.name, signal.elements.index(element)) for signal in fit if element in signal.elements]
    if len(found) != 1:
        raise ContractError(
            f"command '{command.name}', element '{element}': feedback is {command.feedback or [s for s, _ in found]}; "
            f"expected one sensor signal in {command.unit} with this element, since the command is "
            f"{'moved to its start' if command.start is not None else f'stopped by {command.stop!r}'} from where "
            "the actuators are; name the signal in 'feedback' where there are several"
        )
    return found[0]
