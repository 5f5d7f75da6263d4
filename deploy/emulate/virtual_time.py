"""A clock that goes on only while a program waits."""

from __future__ import annotations

from abc import ABC, abstractmethod


class VirtualTime(ABC):
    """What ``time`` is to a driver: it moves a world by whole ticks."""

    period: float
    """s of a tick."""

    def __init__(self) -> None:
        self.nanoseconds, self.left = 1_000_000_000, 0.0

    def monotonic_ns(self) -> int:
        """As ``time.monotonic_ns``."""
        return self.nanoseconds

    def now(self) -> float:
        """s"""
        return self.nanoseconds / 1e9

    def sleep(self, seconds: float) -> None:
        """Let time go on."""
        self.left += seconds
        while self.left >= self.period:
            self.left -= self.period
            self.nanoseconds += round(1e9 * self.period)
            self.tick()

    @abstractmethod
    def tick(self) -> None:
        """All that moves, moves for one period."""
