"""What happens to messages on any line: they are lost, damaged, doubled, cut or late; and to any robot: parts break."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
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


def late(by: int, waiting: Callable[[Any], list[bytes]] = lambda line: line.waiting) -> Way:
    """It comes when ``by`` more have been sent; meanwhile it is among the line's ``waiting`` ones."""

    def way(line: Line, data: bytes) -> list[bytes]:
        late_ones = waiting(line)
        late_ones.append(data)
        return [late_ones.pop(0)] if len(late_ones) > by else []

    return way


def unplugged(line: Line, data: bytes) -> list[bytes]:
    """OSError, as of a port that is gone."""
    raise OSError(5, "Input/output error")


def broken(**values: object) -> Callable[[Any], None]:
    """A robot in which these parts of ``robot.broken`` have these values from now on."""

    def at_once(robot: Any) -> None:
        for name, value in values.items():
            setattr(robot.broken, name, value)

    return at_once


def require_fault(fault: str, names: Iterable[str]) -> None:
    """ValueError unless ``fault`` is among the ``names`` of faults."""
    if fault not in (known := list(names)):
        raise ValueError(f"no fault is called {fault[:60]!r}; expected one of {', '.join(filter(None, known))}")
