"""When the control loop steps: at the contract's rate, drawn towards the moment at which fresh signals arrive.

A step waits for a complete set of new signals from a little before its time until a little after. So a policy acts
on signals that have just arrived instead of half a period later, and still keeps its rate: the schedule gives way
by at most one part in a hundred per step, which the gate grants to clocks that differ.

Pure: times are µs of one clock, and there are no sleeps.
"""

from __future__ import annotations

from dataclasses import dataclass

EARLY, LATE = 0.2, 0.2
"""Parts of the period by which a step may come before and after its time to meet fresh signals."""
PULL = 0.008
"""Part of the period by which the schedule moves per step, below the gate's 0.01."""


@dataclass
class StepScheduler:
    """The schedule of steps ``period`` µs apart."""

    period: int
    next: int = -1
    """µs, the time of the next step; -1: at once."""

    def due(self, fresh: bool | None) -> int:
        """When to step: ``fresh`` tells whether a complete set of new signals is there; None: nobody waits for any."""
        if self.next < 0:
            return 0
        if fresh is None:
            return self.next
        return self.next - round(EARLY * self.period) if fresh else self.next + round(LATE * self.period)

    def begin(self, now: int) -> None:
        """Count from a step at ``now``: the one that armed the gate, which counts its periods from there, too."""
        self.next = now + self.period

    def stepped(self, now: int) -> int:
        """Note a step at ``now``; returns how late it was, in µs. After a stall the schedule restarts."""
        if self.next < 0:
            self.begin(now)
            return 0
        late, limit = now - self.next, round(PULL * self.period)
        behind = late > self.period
        self.next = now + self.period if behind else self.next + self.period + max(-limit, min(limit, late))
        return late
