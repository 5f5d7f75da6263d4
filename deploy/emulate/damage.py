"""What happens to messages on any line: they are lost, damaged, doubled or cut."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Protocol


class Line(Protocol):
    """What is wrong with it is drawn from its own generator."""

    random: random.Random


Way = Callable[[Any, bytes], list[bytes]]
"""By the line, what arrives of a message."""


def whole(line: Line, data: bytes) -> list[bytes]:
    """As it was sent."""
    return [data]


def nothing(line: Line, data: bytes) -> list[bytes]:
    """It is lost."""
    return []


def doubled(line: Line, data: bytes) -> list[bytes]:
    """It comes twice."""
    return [data, data]


def cut(line: Line, data: bytes) -> list[bytes]:
    """Half of it."""
    return [data[: len(data) // 2]]


def dropped(part: float) -> Way:
    """A part of them is lost."""
    return lambda line, data: [data] if line.random.random() >= part else []


def damaged(part: float, begin: int = 0, end: int | None = None) -> Way:
    """One bit of a part of them is wrong, in the bytes from ``begin`` to ``end``."""

    def way(line: Line, data: bytes) -> list[bytes]:
        if line.random.random() >= part:
            return [data]
        at = line.random.randrange(begin, len(data) if end is None else end)
        return [data[:at] + bytes([data[at] ^ 1 << line.random.randrange(8)]) + data[at + 1 :]]

    return way
