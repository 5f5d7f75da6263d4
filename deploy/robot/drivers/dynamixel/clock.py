"""Whether a servo's own clock goes with ours, from one answer to the next: an answer to an old question is behind."""

from __future__ import annotations

from robo_rl.deploy.robot.drivers.dynamixel.registers import WRAP

LONGEST = 10.0
"""s after which nothing can be said: the servo's clock begins anew every 32.8 s."""
LEAST = 0.01
"""s that is always allowed."""


class ServoClock:
    """Compares TICK (ms) with our clock (s), answer by answer."""

    def __init__(self, control_period: float) -> None:
        self._allowed = max(LEAST, 0.5 * control_period)
        self._last: tuple[float, int] | None = None

    def reset(self) -> None:
        """The next answer is the first."""
        self._last = None

    def agrees(self, now: float, tick: int, strict: bool) -> bool:
        """Whether the servo's clock went on by as much as ours since the last answer that agreed.

        Without ``strict`` the next answer is compared with this one all the same.
        """
        last, self._last = self._last, (now, tick)
        if last is None or now - last[0] > LONGEST:
            return True
        passed = (tick - last[1]) % WRAP / 1000
        away = abs((passed - (now - last[0]) + LONGEST) % (WRAP / 1000) - LONGEST)
        if away <= self._allowed:
            return True
        if strict:
            self._last = last
        return False
