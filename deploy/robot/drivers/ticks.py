"""When something was sent, by the sender's clock of whole milliseconds and the times at which it came."""

from __future__ import annotations

WINDOW = 5.0
"""s for which the fastest arrival is remembered: clocks drift by 50 ppm or so, 0.25 ms in that time."""
WRAP = 1 << 32
BACK = 1000
"""ms by which a tick may come too early to be an old one; more, and the sender started anew."""


class Ticks:
    """Of one sender. Nothing is earlier than it came; what came later than the fastest of late was as old as that."""

    def __init__(self, wrap: int = WRAP) -> None:
        """``wrap``: ms at which the sender's clock begins anew at 0."""
        self._wrap = wrap
        self._last, self._total = -1, 0
        """ms: the newest tick as it came, and without its wraps."""
        self._begun = -1e9
        self._offsets = (float("inf"), float("inf"))
        """s, smallest of arrival minus tick: in the window before, and in this one."""

    def new(self, tick: int) -> bool:
        """Whether it is newer than all before: doubled ones and those that were overtaken are not."""
        ahead = (tick - self._last) % self._wrap
        if self._last >= 0 and (ahead == 0 or self._wrap - ahead < BACK):
            return False
        if self._last < 0 or ahead > self._wrap // 2:  # the sender started anew
            self._offsets, self._total = (float("inf"), float("inf")), tick
        else:
            self._total += ahead
        self._last = tick
        return True

    def sent(self, came: float) -> float:
        """When the newest was sent, s of the receiver's clock; it has just come."""
        offset = came - self._total / 1000
        if came - self._begun > WINDOW:
            self._begun, self._offsets = came, (self._offsets[1], offset)
        before, current = self._offsets
        self._offsets = (before, min(current, offset))
        return min(came, self._total / 1000 + min(self._offsets))
