"""How well a share of some trials is known."""

from __future__ import annotations


def wilson(count: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a proportion, ``count`` of so many (Wilson 1927)."""
    from scipy.stats import binomtest  # takes 0.7 s to load, as long as all else that an evaluation needs but torch

    interval = binomtest(count, of).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)
