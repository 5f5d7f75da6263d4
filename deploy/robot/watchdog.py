"""The last word: a thread that makes the steps which the thread that asks the policy does not come to.

    watchdog = Watchdog(contract.control_period, act)       act() makes one step without the policy
    watchdog.start()
    every control period:  watchdog.begin()
                           command = policy.step(signals)   may hang for ever
                           if watchdog.end():               not if act was called meanwhile
                               one step with that command, then watchdog.answered()

The policy has 1.75 control periods. Then ``act`` is called, and every control period again until the policy returns;
what it says then is too late. Whoever asks for a stop (``hurry``) waits for the policy for 0.75 periods at most.
Where a step does not come to the policy, nor to its end, within 1.5 periods of such a request, a call of the robot
hangs: then ``hung`` is called, once. Nothing is added to a step that is in time but three locks without contention. It
works whatever the policy does as long as it lets go of Python's global lock, as onnxruntime does and Python code must;
for the rest there is ``robo_rl.deploy.robot.isolation``.
"""

from __future__ import annotations

import math
import sys
import threading
import time
import traceback
from collections.abc import Callable

LATE, LATE_FOR_A_STOP = 1.75, 0.75
"""Control periods that a policy may take, and that a request to stop waits for it."""
HUNG = 1.5
"""Control periods that a request to stop waits for a step that is not with the policy: less than a stop's two."""
EARLY = 0.5
"""Control periods by which a step may follow the one before too soon."""


class Watchdog:
    """See the module's text. ``act`` is called from its own thread, and never while the other is between steps."""

    def __init__(
        self, period: float, act: Callable[[], None], clock: Callable[[], float] = time.monotonic,
        hung: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        """``period`` in s of ``clock``, which must run by itself."""
        self._period, self._act, self._clock, self._hung = period, act, clock, hung
        self._changed = threading.Condition()
        self._begun, self._due, self._last = math.nan, math.inf, clock()
        self._asked = self._heard = math.inf
        self._sent = -math.inf
        self._excused = self._taken = False
        self._running = True
        self.broken = ""
        """The last error of ``act``; "" if there was none."""
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        with self._changed:
            self._running = False
            self._changed.notify()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=1.0)

    def begin(self) -> None:
        """The policy is asked."""
        with self._changed:
            self._begun = self._last = self._clock()
            self._excused = self._taken = False

    def end(self) -> bool:
        """The policy has answered; whether that was in time. If not, the step is made already.

        The step that follows hears all requests until now.
        """
        with self._changed:
            self._begun = math.nan
            if not self._taken and self._asked < math.inf:
                waited = self._asked <= self._sent  # the step before had not heard it: this one is given its time
                self._heard = self._clock() - (HUNG - LATE_FOR_A_STOP) * self._period if waited else self._asked
                self._asked = math.inf
            return not self._taken

    def answered(self) -> None:
        """A step has been sent, and with it the answer to what it has heard. Later requests wait for the next one."""
        with self._changed:
            self._sent, self._heard = self._clock(), math.inf

    def hurry(self) -> None:
        """Note a request to stop."""
        with self._changed:
            self._asked = min(self._asked, self._clock())
            self._changed.notify()

    @property
    def waited(self) -> float:
        """s that the policy has been late, 0 while it is not."""
        with self._changed:
            return self._clock() - self._begun if self._taken and not math.isnan(self._begun) else 0.0

    def check(self, now: float, planned: float = math.inf) -> float:
        """Act if that is overdue; the time of the next look. Call it with the lock held.

        ``planned`` is when this look should have been. If it comes late, all of the process stood still, and the
        policy is given time once more.
        """
        stood_still = now - planned > max(self._period / 4, 2 * sys.getswitchinterval())
        if math.isnan(self._begun):
            return self._look_outside(now, stood_still)
        due = self._due if self._taken else self._deadline()
        if now < due:
            return due
        if stood_still and not self._excused | self._taken:
            self._excused = True
            self._begun = now - (LATE - LATE_FOR_A_STOP) * self._period
            return self._deadline()
        self._taken, self._asked = True, math.inf
        self._call(self._act)
        self._due = now + self._period
        return self._due

    def _look_outside(self, now: float, stood_still: bool) -> float:
        """As ``check``, while the other thread is not with the policy: between steps, or in a call of the robot."""
        due = min(self._asked, self._heard) + HUNG * self._period
        if now >= due and stood_still:
            self._asked, due = now - (HUNG - LATE_FOR_A_STOP) * self._period, now + LATE_FOR_A_STOP * self._period
            self._heard = math.inf
        elif now >= due:
            self._asked = self._heard = due = math.inf
            self._call(self._hung)
        return min(due, max(self._last + (EARLY + LATE) * self._period, now + self._period))

    def _call(self, what: Callable[[], None]) -> None:
        try:
            what()
        except Exception:  # it must go on whatever happens
            self.broken = traceback.format_exc(limit=3)

    def _deadline(self) -> float:
        asked = max(self._asked, self._begun)
        return min(self._begun + LATE * self._period, asked + LATE_FOR_A_STOP * self._period)

    def _run(self) -> None:
        with self._changed:
            planned = self._last
            while self._running:
                now = self._clock()
                planned = self.check(now, planned)
                self._changed.wait(max(0.0, planned - self._clock()))
