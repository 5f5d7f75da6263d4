"""Figures of few runs that can be trusted: interquartile means, bootstrap intervals, probabilities of improvement.

As Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice", recommend (rliable).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

RESAMPLES = 2000
LEVEL = 0.95


def interquartile_mean(scores: np.ndarray) -> float:
    """Mean of the middle half: less noisy than the median, and less moved by outliers than the mean."""
    flat = np.ravel(scores)
    cut = len(flat) // 4
    return float(np.partition(flat, (cut, len(flat) - cut - 1))[cut : len(flat) - cut].mean())


def improvement(scores: np.ndarray, others: np.ndarray) -> float:
    """The probability that one of ``scores`` is larger than one of ``others``; ties count half (Mann and Whitney)."""
    from scipy.stats import mannwhitneyu  # takes two seconds to load

    return float(mannwhitneyu(scores, others).statistic / (len(scores) * len(others)))


def distance(some: np.ndarray, others: np.ndarray) -> float:
    """The greatest difference between the distribution functions of two samples (Kolmogorov and Smirnov), 0 to 1."""
    at = np.concatenate([some, others])
    below = [np.searchsorted(np.sort(sample), at, side="right") / len(sample) for sample in (some, others)]
    return float(np.abs(below[0] - below[1]).max())


def interval(figure: Callable[..., float], *samples: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """The percentile bootstrap interval, 95 %, of a figure of one or more samples, each resampled by itself."""
    generator = np.random.default_rng(seed)
    drawn = [figure(*(generator.choice(x, len(x)) for x in samples)) for _ in range(RESAMPLES)]
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def profile(scores: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The share of runs with a score above each level: the performance profile."""
    return (scores[:, None] > levels).mean(0)
