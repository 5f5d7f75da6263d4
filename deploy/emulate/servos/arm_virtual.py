"""An emulated arm of bus servos in virtual time, without a terminal in between."""

from __future__ import annotations

from typing import Any


class ArmTime:
    """A clock for which a computer is never too slow; the arm moves as it goes on."""

    def __init__(self, arm: Any) -> None:
        self.nanoseconds, self.arm = 1_000_000_000, arm

    def monotonic_ns(self) -> int:
        """As ``time.monotonic_ns``."""
        return self.nanoseconds

    def now(self) -> float:
        """s"""
        return self.nanoseconds / 1e9

    def sleep(self, seconds: float) -> None:
        """Let time go on."""
        self.nanoseconds += round(seconds * 1e9)
        self.arm.advance(seconds)


class Line:
    """A port to the emulated servos: answers are there at once."""

    def __init__(self, wire: Any) -> None:
        self.wire, self.answers = wire, b""

    def write(self, data: bytes) -> None:
        """Send."""
        self.answers += self.wire.exchange(data)

    def read(self, timeout: float) -> bytes:
        """What has come."""
        if self.wire.fault == "unplugged":
            self.wire.exchange(b"")
        answers, self.answers = self.answers, b""
        return answers

    def close(self) -> None:
        """Nothing is to be given back."""
