"""Faults of the simulated robot, injected into the messages of a topic.

A fault is written as one text, "kind topic value": ``"freeze odom"``, ``"delay imu 0.05"``. After a colon a field of
the message can be named, which alone is struck: ``"nan odom:twist.twist.linear"``. Messages are changed by their
fields alone; nothing of ROS is imported. ``"none"`` ends a fault.
"""

from __future__ import annotations

import copy
import fnmatch
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from robo_rl.ros.reading import stamp_ns

KINDS = {
    "drop": "messages do not leave",
    "delay": "messages leave VALUE s late, with the stamps of their time",
    "freeze": "the value of one message is sent again and again, under new stamps",
    "repeat": "one message is sent again and again, stamp included",
    "rate": "only every VALUE-th message leaves",
    "nan": "numbers are NaN",
    "inf": "numbers are infinite",
    "range": "numbers are VALUE, or 1e9",
    "bias": "VALUE is added to numbers",
    "quaternion": "quaternions are in the order w, x, y, z",
    "norm": "quaternions are twice as long",
    "rename": "names of elements have a prefix, frames are of the other kind",
    "reorder": "names and values are in another order, still in step",
    "short": "the last number of each array is missing",
    "future": "stamps are VALUE s ahead",
    "past": "stamps are VALUE s behind",
    "unstamped": "stamps are zero",
    "huge": "texts are a million characters long, arrays a million numbers",
    "garbage": "the bytes of messages are noise",
    "kill": "the process ends at once, as by kill -9",
    "stall": "the robot's computer sleeps for VALUE s",
}

NONE = "none"
"""What is written to end a fault."""

OF_FIELDS = ("freeze", "nan", "inf", "range", "bias", "quaternion", "norm")
"""Kinds that can strike one field of a message alone."""


class FaultError(ValueError):
    """The fault does not exist. The message says what was expected."""


@dataclass(frozen=True)
class Fault:
    """One fault. ``topic`` is "" where it strikes the robot as a whole, else a pattern such as "*"."""

    kind: str
    topic: str = ""
    value: float | None = None
    field: str = ""
    """What part of a message is struck, as ``pose.pose.orientation``; "" is all of it."""

    @staticmethod
    def parse(text: str) -> Fault | None:
        """A fault from "kind topic value"; None from "none" or an empty text."""
        words = text.split()
        if not words or words == [NONE]:
            return None
        if words[0] not in KINDS or len(words) > 3:
            known = f"one of {sorted(KINDS)}, or '{NONE}', which ends the fault"
            raise FaultError(f"fault is {text!r}; expected 'kind topic value' with {known}")
        try:
            value = float(words[2]) if len(words) == 3 else None
        except ValueError:
            raise FaultError(f"fault is {text!r}; expected a number at the end") from None
        if words[0] in ("delay", "rate", "bias", "future", "past", "stall") and value is None:
            raise FaultError(f"fault is {text!r}; '{words[0]}' needs a value: {KINDS[words[0]]}")
        topic, _, field = (words[1] if len(words) > 1 else "").partition(":")
        if field and words[0] not in OF_FIELDS:
            raise FaultError(f"fault is {text!r}; only {OF_FIELDS} can be applied to a single field")
        return Fault(words[0], topic, value, field)

    def strikes(self, topic: str) -> bool:
        """Whether messages of ``topic`` are changed."""
        return fnmatch.fnmatchcase(topic, self.topic)

    def has_field(self, message: Any) -> bool:
        """Whether ``message`` has the field that is struck."""
        for part in filter(None, self.field.split(".")):
            message = getattr(message, part, None)
        return message is not None


class FaultInjector:
    """Lets a fault strike the messages of one topic."""

    def __init__(self, serialize: Callable[[Any], bytes]) -> None:
        """``serialize`` gives a message's bytes, to be made into noise."""
        self._serialize = serialize
        self._kept: Any = None
        self._count = 0
        self._late: list[tuple[float, Any]] = []

    def clear(self) -> None:
        """Forget the fault that was."""
        self._count, self._late = 0, []

    def pass_on(self, message: Any) -> None:
        """A message leaves as it is; ``freeze`` and ``repeat`` begin with the last of these."""
        self._kept = message

    def strike(self, fault: Fault, message: Any, now: float) -> list[Any]:
        """The messages, or bytes, that leave in place of ``message`` at ``now`` s."""
        self._count += 1
        if fault.kind == "drop":
            return []
        if fault.kind == "delay":
            self._late.append((now + (fault.value or 0.0), message))
            due = [m for time, m in self._late if time <= now]
            self._late = [entry for entry in self._late if entry[0] > now]
            return due
        if fault.kind == "rate":
            return [message] if self._count % max(1, round(fault.value or 1)) == 0 else []
        if fault.kind in ("freeze", "repeat"):
            self._kept = copy.deepcopy(message if self._kept is None else self._kept)
            if fault.field:
                _freeze(fault.field, self._kept, message)
                return [message]
            if fault.kind == "freeze" and hasattr(message, "header"):
                self._kept.header.stamp = message.header.stamp
            return [self._kept]
        if fault.kind == "garbage":
            noise = random.Random(self._count)
            return [bytes(noise.randrange(256) for _ in self._serialize(message))]
        _change(fault, message)
        return [message]


def _change(fault: Fault, message: Any) -> None:
    if fault.kind in ("future", "past", "unstamped"):
        _shift_stamp(fault, message)
        return
    *path, last = fault.field.split(".") if fault.field else [""]
    for part in path:
        message = getattr(message, part)
    for holder, name, value in list(_leaves(message, last)):
        changed = _changed(fault, name, value, holder)
        if changed is not None:
            setattr(holder, name, changed)


def _shift_stamp(fault: Fault, message: Any) -> None:
    ns = stamp_ns(message)
    if ns is not None:
        shift = round(1e9 * (fault.value or 0.0)) * (1 if fault.kind == "future" else -1)
        shifted = 0 if fault.kind == "unstamped" else max(0, ns + shift)
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(shifted, 1_000_000_000)


def _freeze(field: str, kept: Any, message: Any) -> None:
    """Give ``message`` the field of the message that was kept."""
    *path, last = field.split(".")
    for part in path:
        kept, message = getattr(kept, part), getattr(message, part)
    setattr(message, last, copy.deepcopy(getattr(kept, last)))


def _leaves(message: Any, only: str = "") -> Any:
    """(holder, field, value) of all fields that are no messages themselves, stamps and covariances left out.

    ``only`` is the one field to look into; "" is all.
    """
    for name in [only] if only else message.get_fields_and_field_types():
        value = getattr(message, name)
        if name == "stamp" or "covariance" in name:
            continue
        if hasattr(value, "get_fields_and_field_types"):
            if type(value).__name__ == "Quaternion":
                yield message, name, value
            yield from _leaves(value)
        else:
            yield message, name, value


OTHER_FRAME = {"base_link": "odom", "odom": "base_link"}


def _changed(fault: Fault, name: str, value: Any, holder: Any) -> Any:
    kind, number = fault.kind, fault.value
    if type(value).__name__ == "Quaternion":
        if kind == "quaternion":
            value.x, value.y, value.z, value.w = value.w, value.x, value.y, value.z
        elif kind == "norm":
            value.x, value.y, value.z, value.w = 2 * value.x, 2 * value.y, 2 * value.z, 2 * value.w
        return None
    is_array = not isinstance(value, str | float | int | bool)
    numeric = isinstance(value, float) or (is_array and len(value) > 0 and isinstance(value[0], float))
    if numeric and kind in ("nan", "inf", "range", "bias"):
        new = {"nan": float("nan"), "inf": float("inf"), "range": 1e9 if number is None else number}.get(kind)
        if is_array:
            return [x + (number or 0.0) if new is None else new for x in value]
        return value + (number or 0.0) if new is None else new
    if kind == "rename":
        if name == "frame_id":
            return OTHER_FRAME.get(value, value)
        return [f"other_{x}" for x in value] if is_array and len(value) and isinstance(value[0], str) else None
    if is_array and len(value) and kind == "reorder":
        return list(value)[::-1]
    if is_array and len(value) and kind == "short":
        return list(value)[:-1]
    if kind == "huge":
        if isinstance(value, str):
            return "x" * 1_000_000
        return [0.0] * 1_000_000 if is_array and numeric else None
    return None
