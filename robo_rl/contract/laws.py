"""Laws: what a robot's low level must do, so that a command means on the robot what it meant in training.

A policy that was trained with servos of 25 N m/rad does not walk on servos of 60. A runtime hands the law on to the
driver, which sets it or refuses the robot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from robo_rl.contract.checks import Numbers, finite_number, finite_numbers, require, require_label

POSE = ("x", "y", "z", "roll", "pitch", "yaw")


@dataclass(frozen=True)
class PositionLaw:
    """A servo at every joint: torque = stiffness (command − position) − damping velocity.

    ``stiffness`` (N m/rad, or N/m of a slide) and ``damping`` (N m s/rad, N s/m), per element.
    """

    stiffness: Numbers
    damping: Numbers
    kind: Literal["position"] = "position"

    def check(self, elements: tuple[str, ...], where: str) -> None:
        """ContractError unless it fits a command of these elements."""
        _set_gains(self, ("stiffness", "damping"), len(elements), where)


@dataclass(frozen=True)
class VelocityLaw:
    """A servo at every joint: torque = damping (command − velocity). ``damping`` (N m s/rad, N s/m), per element."""

    damping: Numbers
    kind: Literal["velocity"] = "velocity"

    def check(self, elements: tuple[str, ...], where: str) -> None:
        """ContractError unless it fits a command of these elements."""
        _set_gains(self, ("damping",), len(elements), where)


@dataclass(frozen=True)
class TorqueLaw:
    """The command is the torque (N m) or force (N) at the joint. ``compensated``: gravity is compensated beneath it."""

    compensated: bool = False
    kind: Literal["torque"] = "torque"

    def check(self, elements: tuple[str, ...], where: str) -> None:
        """Fits any command."""


@dataclass(frozen=True)
class ImpedanceLaw:
    """A spring and a damper between the commanded and the measured pose of the tool, gravity compensated.

    Wrench = stiffness · clip(command − pose) − damping · velocity, about x, y, z (N/m, N s/m) and roll, pitch, yaw
    (N m/rad, N m s/rad) of the base frame. ``clip`` (m, rad) bounds the error, so the static force is at most
    stiffness · clip. ``tool`` is the frame of the robot's model that it moves.
    """

    stiffness: Numbers
    damping: Numbers
    clip: Numbers
    tool: str
    kind: Literal["impedance"] = "impedance"

    def check(self, elements: tuple[str, ...], where: str) -> None:
        """ContractError unless its numbers are six each."""
        _set_gains(self, ("stiffness", "damping", "clip"), len(POSE), where)
        require_label(self.tool, f"{where}: law: tool")


@dataclass(frozen=True)
class CurrentLaw:
    """The command is a current (A) or voltage (V) that a drive keeps with a bandwidth of ``bandwidth`` (Hz)."""

    bandwidth: float
    kind: Literal["current"] = "current"

    def check(self, elements: tuple[str, ...], where: str) -> None:
        """ContractError unless the bandwidth is positive."""
        object.__setattr__(self, "bandwidth", finite_number(self.bandwidth, f"{where}: law: bandwidth"))
        require(self.bandwidth > 0, f"{where}: law: bandwidth", self.bandwidth, "a positive number, in Hz")


@dataclass(frozen=True)
class RateLaw:
    """A loop turns the body towards commanded rates: rate' = bandwidth (command − rate), per element.

    ``bandwidth`` (1/s) is the least that the policy needs, of what is seen in a log: loop and motors together.
    ``trained`` is the gain of the slowest and of the fastest loop in training, which motors that lag come behind.
    """

    bandwidth: Numbers
    trained: tuple[Numbers, Numbers]
    kind: Literal["rate"] = "rate"

    def check(self, elements: tuple[str, ...], where: str) -> None:
        """ContractError unless its numbers are positive, and one per element."""
        _set_gains(self, ("bandwidth",), len(elements), where)
        require(min(self.bandwidth) > 0, f"{where}: law: bandwidth", self.bandwidth, "positive numbers, in 1/s")
        ends = (finite_numbers(end, len(elements), f"{where}: law: trained") for end in self.trained)
        slow, fast = ends
        good = all(0 < low <= high for low, high in zip(slow, fast, strict=True))
        require(good, f"{where}: law: trained", (slow, fast), "two lists of positive numbers, the slower loop first")
        object.__setattr__(self, "trained", (slow, fast))


Law = PositionLaw | VelocityLaw | TorqueLaw | ImpedanceLaw | CurrentLaw | RateLaw
"""``kind`` tells which."""


def _set_gains(law: Law, names: tuple[str, ...], count: int, where: str) -> None:
    for name in names:
        gains = finite_numbers(getattr(law, name), count, f"{where}: law: {name}")
        require(min(gains) >= 0, f"{where}: law: {name}", gains, "numbers of 0 or more")
        object.__setattr__(law, name, gains)
