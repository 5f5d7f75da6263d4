"""How well a loop keeps its time: steps that begin late, and what a step computes for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

LATE = 1.1
"""Control periods between two steps from which on the second counts as late."""
LONGEST = 50_000
"""µs: a step that computes for longer counts as this long."""


@dataclass
class Timing:
    """Of a loop with a period (s), in memory that does not grow."""

    period: float
    steps: int = 0
    late: int = 0
    longest: int = 0
    """µs between two steps."""
    counts: np.ndarray = field(default_factory=lambda: np.zeros(LONGEST + 1, np.int64))
    """(LONGEST + 1,) steps by µs of computing."""
    _before: int | None = None

    def note(self, time: int, took: int) -> None:
        """A step that began at ``time`` and computed for ``took``, both in µs."""
        if self._before is not None:
            interval = time - self._before
            self.late += interval > LATE * 1e6 * self.period
            self.longest = max(self.longest, interval)
        self._before = time
        self.steps += 1
        self.counts[min(max(took, 0), LONGEST)] += 1

    def quantile(self, part: float) -> int:
        """µs within which this part of the steps has computed; 0 without steps."""
        return int(np.searchsorted(np.cumsum(self.counts), part * self.steps))

    def figures(self) -> dict[str, float]:
        """What of it is told: ms, and counts."""
        greatest = np.flatnonzero(self.counts)
        return {
            "steps": self.steps, "late": self.late, "longest_interval_ms": self.longest / 1e3,
            "computing_p50_ms": self.quantile(0.5) / 1e3, "computing_p99_ms": self.quantile(0.99) / 1e3,
            "computing_max_ms": float(greatest[-1]) / 1e3 if greatest.size else 0.0,
        }  # fmt: skip
