"""How well a share of some trials is known."""

from __future__ import annotations

import math

Z = 1.959963984540054
"""The standard normal distribution is below it with a probability of 97.5 %."""


def wilson(count: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a proportion, ``count`` of so many (Wilson 1927; as Newcombe 1998 writes it, method 3)."""
    part = count / of
    below = 2 * (of + Z**2)
    center = (2 * of * part + Z**2) / below
    spread = Z / below * math.sqrt(4 * of * part * (1 - part) + Z**2)
    return 0.0 if count == 0 else center - spread, 1.0 if count == of else center + spread
