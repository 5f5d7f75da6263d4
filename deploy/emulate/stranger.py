"""Somebody else who commands the same robot, at a rate and phase of its own: it knows nothing of ours."""

from __future__ import annotations

import random

RATE = 30.0
"""Hz: what teleoperation programs send at (LeRobot's default fps)."""
JITTER = 0.2
"""Part of its period by which it comes early or late."""


class Stranger:
    """When it sends."""

    def __init__(self, rate: float, random: random.Random) -> None:
        """``rate`` in Hz; the phase is drawn."""
        self._period, self._random = 1.0 / rate, random
        self._left = self._period * random.random()

    def due(self, seconds: float) -> int:
        """How often it sends in the next ``seconds``."""
        self._left -= seconds
        count = 0
        while self._left <= 0.0:
            count += 1
            self._left += self._period * self._random.uniform(1.0 - JITTER, 1.0 + JITTER)
        return count
