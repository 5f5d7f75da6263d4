"""Axes of a joystick that can be trusted: only one that was seen at rest moves anything. Nothing of ROS here.

Drivers report axes that were not touched yet as 0, 0.99 or -1, and triggers rest at one of their ends. So an axis
counts only after it was near its middle. Where it comes back from there to the very end at which it was first reported,
other than as exactly 0, while the robot is enabled, it is taken for a trigger, until it rests near its middle while the
robot is not enabled. What is at an end while the robot is not enabled has to go through its middle first, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MIDDLE = 0.15
"""Part of its range within which an axis is at rest: worn sticks do not come back to 0."""
END = 0.9
"""Part of its range beyond which an axis is at an end."""
DEAD_ZONE = 0.05
"""Dead zone of a stick, as a part of its range."""


class JoystickError(ValueError):
    """An axis is given in a way that is none."""


@dataclass(frozen=True)
class Axis:
    """An axis of a joystick by its number, and where it rests."""

    number: int
    rest: float = 0.0
    """0 for a stick, 1 or -1 for a trigger, which gives 0 at rest and 1 when it is pulled."""

    @staticmethod
    def parse(name: str, text: str) -> Axis:
        """From "4", or "4:1" and "4:-1" for a trigger that rests there."""
        number, _, rest = text.partition(":")
        if not number.strip().isdigit() or rest.strip() not in ("", "0", "1", "+1", "-1"):
            raise JoystickError(
                f"axes has '{name}={text}'; expected a number, and for a trigger where it rests: 5:1, 5:-1"
            )
        return Axis(int(number), float(rest or 0.0))

    def value(self, given: float) -> float:
        """What is meant by the value ``given``: 0 at rest, at most 1."""
        value = given if self.rest == 0.0 else (self.rest - given) / (2.0 * self.rest)
        return min(1.0, max(-1.0, value)) if math.isfinite(value) else math.nan


@dataclass
class _Seen:
    """What is known of one axis."""

    first: float = 0.0
    """The first value other than 0, which is also what drivers report of an axis before it is touched."""
    rested: bool = False
    """Whether it was near its rest, and is no trigger as far as is known."""
    centred: bool = False
    """Whether it was there while the robot was not enabled: it comes back by itself."""


@dataclass
class Joystick:
    """Sticks and triggers by the names of what they move."""

    axes: Mapping[str, Axis]
    _seen: dict[str, _Seen] = field(default_factory=dict)

    def forget(self) -> None:
        """It was away: as after it was plugged in, no axis was touched yet."""
        self._seen.clear()

    def read(self, given: Sequence[float], enabled: bool) -> tuple[dict[str, float], dict[str, str]]:
        """(values of -1 to 1, why others are 0), both by name, for the axes of one message; ``enabled``: they are to
        move something.
        """
        values, refused = {}, {}
        for name, axis in self.axes.items():
            if axis.number >= len(given):
                refused[name] = f"{name}: the joystick has no axis {axis.number}"
                continue
            value = axis.value(float(given[axis.number]))
            seen = self._seen.setdefault(name, _Seen())
            seen.first = seen.first or (value if math.isfinite(value) else 0.0)
            if abs(value) <= MIDDLE:
                seen.rested, seen.centred = True, seen.centred or (not enabled and seen.first != 0.0)
            elif abs(value) >= END and not enabled:
                seen.rested = seen.centred = False
            elif _same_end(value, seen.first) and not seen.centred:
                seen.rested = False
            if not seen.rested or math.isnan(value):
                trigger = f"{name}={axis.number}:{math.copysign(1, value):.0f}"
                refused[name] = (
                    f"{name}: axis {axis.number} is at {given[axis.number]:.2f} and was not seen at rest: move it "
                    f"there and back, or, if it is a trigger, give it as {trigger}"
                )
            elif abs(value) > DEAD_ZONE:
                values[name] = value
        return values, refused


def _same_end(value: float, first: float) -> bool:
    """Whether both are at the same end; what a trigger reports as it is first touched is not quite there."""
    return min(abs(value), abs(first)) >= END and value * first > 0


def resting(messages: Sequence[Sequence[float]]) -> list[tuple[bool, str]]:
    """For the doctor, of a joystick that nobody touches: for every axis, whether it is at rest, and a sentence."""
    told = []
    for number in range(min(map(len, messages), default=0)):
        values = [float(axes[number]) for axes in messages]
        low, high = min(values), max(values)
        if high - low > MIDDLE:
            told.append((False, f"axis {number} moves from {low:.2f} to {high:.2f} though nobody touches it"))
        elif abs(high) <= MIDDLE:
            told.append((True, f"axis {number} rests at {high:.2f}"))
        else:
            how = f"it is a trigger: give it to teleop as NAME={number}:{math.copysign(1, high):.0f}"
            told.append(
                (abs(high) >= END, f"axis {number} rests at {high:.2f}: a stick that was not touched yet; {how}")
            )
    return told
