"""The time of a simulated robot: as fast as real time, slower where the computer is busy: no step is ever late."""

from __future__ import annotations

import time


class SimulatedTime:
    """What ``time`` is for a loop: it goes on while somebody sleeps, and stands still while something is computed."""

    def __init__(self) -> None:
        self._now = time.monotonic_ns()
        self._due = time.monotonic()
        """s of real time: when the last sleep was over, or should have been."""

    def monotonic_ns(self) -> int:
        """ns of simulated time."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Go on by ``seconds``; return when as much real time has passed since the last return. What was lost stays
        lost.
        """
        self._now += round(1e9 * seconds)
        self._due += seconds
        late = time.monotonic() - self._due
        if late > 0:
            self._due += late
        time.sleep(max(0.0, -late))
