"""When something was sent, by the sender's clock of whole milliseconds and the times at which it came."""

from __future__ import annotations

import itertools
import statistics
from collections import deque

WINDOW, WINDOWS = 1.0, 10
"""s in which the fastest arrival is looked for, and windows that are remembered."""
ENOUGH = 4
"""Windows that tell how fast the sender's clock runs."""
NOTABLE, MOST = 0.002, 0.02
"""By which a clock's rate may differ before it is told (crystals differ by 0.0001), and up to which times are corrected
for it: simulations that are not quite as fast as time."""
WRAP = 1 << 32
BACK = 1000
"""ms by which a tick may come too early to be an old one; more, and the sender started anew."""


class Ticks:
    """Of one sender. Nothing is earlier than it came; what came later than the fastest of late was as old as that.

    The fastest arrivals of each second also tell the rate of the sender's clock: without that, one that is 1 % slow
    would make everything seem 50 to 100 ms old.
    """

    def __init__(self, wrap: int = WRAP) -> None:
        """``wrap``: ms at which the sender's clock begins anew at 0."""
        self._wrap = wrap
        self._last, self._total = -1, 0
        """ms: the newest tick as it came, and without its wraps."""
        self._restart()

    def _restart(self) -> None:
        self._begun = float("inf")
        self._windows: deque[tuple[float, float]] = deque(maxlen=WINDOWS)
        """Of each second that is over: tick and arrival minus tick (s) of its fastest."""
        self._fastest = (0.0, float("inf"))
        """The same of this second."""
        self._drift = 0.0
        """s by which arrival minus tick grows in one s of the sender's, as far as it is corrected for."""
        self.rate = 1.0
        """s of the sender's clock in one of ours; 1 as long as it is not known."""

    def new(self, tick: int) -> bool:
        """Whether it is newer than all before: doubled ones and those that were overtaken are not."""
        ahead = (tick - self._last) % self._wrap
        if self._last >= 0 and (ahead == 0 or self._wrap - ahead < BACK):
            return False
        if self._last < 0 or ahead > self._wrap // 2:  # the sender started anew
            self._restart()
            self._total = tick
        else:
            self._total += ahead
        self._last = tick
        return True

    def sent(self, came: float) -> float:
        """When the newest was sent, s of the receiver's clock; it has just come."""
        tick = self._total / 1000
        if came - self._begun > WINDOW:
            self._windows.append(self._fastest)
            self._measure()
        if not 0 <= came - self._begun <= WINDOW:
            self._begun, self._fastest = came, (tick, came - tick)
        self._fastest = min(self._fastest, (tick, came - tick), key=self._delay)
        least = min(self._delay(one) for one in (*self._windows, self._fastest))
        return min(came, tick + self._drift * tick + least)

    def _delay(self, arrival: tuple[float, float]) -> float:
        """Arrival minus tick, without what the clocks drift apart."""
        tick, offset = arrival
        return offset - self._drift * tick

    def _measure(self) -> None:
        """The rate, by the median of the slopes between all windows: one in which all were late spoils nothing."""
        if len(self._windows) < ENOUGH:
            return
        pairs = itertools.combinations(self._windows, 2)
        drift = statistics.median([(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairs if b[0] > a[0]] or [0.0])
        self.rate = 1.0 / (1.0 + drift) if drift > -1.0 else 1.0
        self._drift = drift if abs(drift) <= MOST else 0.0

    @property
    def remark(self) -> str:
        """A sentence where the sender's clock does not run as ours does; "" where it does."""
        if abs(self.rate - 1.0) < NOTABLE:
            return ""
        corrected = "" if self.right else ": all that it sends would seem to be too old, or none of it"
        return f"its clock runs at {self.rate:.3f} of ours{corrected}"

    @property
    def right(self) -> bool:
        """Whether its clock's rate is one that times are corrected for."""
        return abs(self.rate - 1.0) <= MOST
