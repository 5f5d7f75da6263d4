"""What a runtime must watch besides the ranges of the signals and commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from robo_rl.contract.checks import Numbers, finite_number, finite_numbers, require, require_identifier


@dataclass(frozen=True)
class Envelope:
    """Where the robot may be while a policy runs, within what its sensors can measure: beyond it is a fault.

    ``lower`` and ``upper`` bound a signal, with one number for all of it or one per element, and ``norm`` the length
    of a vector, all in the signal's unit: a workspace box on the tool's position, a speed limit on a velocity, a
    greatest force, a least distance in a scan.
    """

    signal: str
    lower: Numbers | float | None = None
    upper: Numbers | float | None = None
    norm: float | None = None

    def __post_init__(self) -> None:
        where = f"safety: envelope of '{self.signal}'"
        require_identifier(self.signal, "safety: envelope: signal")
        for name in ("lower", "upper"):
            value = getattr(self, name)
            if isinstance(value, int | float):
                object.__setattr__(self, name, finite_number(value, f"{where}: {name}"))
            elif value is not None:
                object.__setattr__(self, name, finite_numbers(value, len(value), f"{where}: {name}"))
        if self.norm is not None:
            object.__setattr__(self, "norm", finite_number(self.norm, f"{where}: norm"))
            require(self.norm > 0, f"{where}: norm", self.norm, "a positive number")
        given = (self.lower, self.upper, self.norm)
        require(given != (None, None, None), f"{where}: lower, upper, norm", given, "at least one of them")


@dataclass(frozen=True)
class Collision:
    """The least time to a collision that a scan tells of: below it is a fault, so that the robot can still stop.

    The way is an arc of the robot's speed and yaw rate, from the lidar forwards; what lies within ``half_width`` (m)
    of its middle is in the way. The time is the distance ahead of the robot's front, ``front`` (m) ahead of the lidar,
    over the speed. The lidar looks ahead along its x. A robot that stands or reverses has no collision.
    """

    scan: str
    """A sensor's scan, m."""
    speed: str
    """A sensor's signal of one element: forwards, m/s."""
    time: float
    """s: what the robot needs to stop, and the scan's age."""
    half_width: float
    """m: half of the robot's width, and a margin."""
    front: float = 0.0
    yaw_rate: str | None = None
    """A sensor's signal of one element, rad/s; None: the way is straight."""

    def __post_init__(self) -> None:
        for name in ("scan", "speed"):
            require_identifier(getattr(self, name), f"safety: collision: {name}")
        if self.yaw_rate is not None:
            require_identifier(self.yaw_rate, "safety: collision: yaw_rate")
        for name in ("time", "half_width", "front"):
            object.__setattr__(self, name, finite_number(getattr(self, name), f"safety: collision: {name}"))
        for name in ("time", "half_width"):
            good = 0 < getattr(self, name) <= MOST
            require(good, f"safety: collision: {name}", getattr(self, name), f"a positive number, at most {MOST:g}")
        require(abs(self.front) <= MOST, "safety: collision: front", self.front, f"at most {MOST:g} m")


MOST = 1000.0
"""s and m, of a ``Collision``."""


@dataclass(frozen=True)
class Safety:
    """The limits in time, attitude and space, and what a fault means.

    ``signal_timeout`` (s): an older sensor signal means a fault; signals may have a timeout of their own.
    ``tilt_limit`` (rad): a larger angle between body z and world z is a fall; None: attitudes are not watched.
    ``on_fault``: "stop", as each command's ``stop`` says; "hold", the last good command; "controller", the classical
    controller of the robot's kind lands or holds, then it stops.
    ``operator_timeout`` (s): an older heartbeat of the operator is a fault; None: no operator is needed.
    ``envelope``: where the robot may be.
    ``collision``: the least time to a collision; None: it is not watched, and the contract's JSON has no such key.
    """

    signal_timeout: float
    tilt_limit: float | None = None
    on_fault: Literal["stop", "hold", "controller"] = "stop"
    operator_timeout: float | None = None
    envelope: tuple[Envelope, ...] = ()
    collision: Collision | None = None

    def __post_init__(self) -> None:
        for name in ("signal_timeout", "tilt_limit", "operator_timeout"):
            value = getattr(self, name)
            if value is not None or name == "signal_timeout":
                object.__setattr__(self, name, finite_number(value, f"safety: {name}"))
                require(getattr(self, name) > 0, f"safety: {name}", value, "a positive number")
        choices = ("stop", "hold", "controller")
        require(self.on_fault in choices, "safety: on_fault", self.on_fault, f"one of {choices}")
        object.__setattr__(self, "envelope", tuple(self.envelope))
