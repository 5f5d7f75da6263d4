"""Model-based transfer learning: which contexts to train for, so that as few policies as possible serve all.

A context is a value of one range of a task, such as the motors' rise time. A policy that was trained for one also does
something in others, the less the farther they are. After Cho et al. 2024 (Model-Based Transfer Learning for Contextual
Reinforcement Learning, NeurIPS): the score of a training is a Gaussian process over contexts, what is lost on the way
to another one is linear, and the next context is that which is expected to add most, by an upper confidence bound.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

LENGTHS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Of the process's kernel, in parts of the span of all contexts; the likeliest is taken."""
AMPLITUDES = (0.05, 0.1, 0.2, 0.4)
"""Standard deviations of scores, which are 0 to 1; the likeliest is taken."""
NOISE = 0.05
"""Standard deviation of a score over seeds and episodes."""
SLOPE = 0.5
"""Score lost across the span of all contexts, before any was seen; then the median of what was."""


def choose(contexts: np.ndarray, trained: Sequence[int], found: np.ndarray) -> int:
    """The number of the context to train for next.

    ``contexts`` (n,); ``found`` (k, n) are the scores, 0 to 1, in all contexts of the policies of the k ``trained``.
    """
    if not len(trained):
        return int(np.argmin(np.abs(contexts - (contexts[0] + contexts[-1]) / 2)))
    x = (contexts - contexts.min()) / np.ptp(contexts)
    own = found[np.arange(len(trained)), trained]
    mean, deviation = posterior(x, x[list(trained)], own)
    bound = mean + np.sqrt(np.log(len(trained) + 1)) * deviation
    expected = bound[:, None] - slope(x, trained, found) * np.abs(x[:, None] - x)
    gain = np.maximum(0.0, expected - found.max(0)).mean(1)
    gain[list(trained)] = -1.0
    return int(np.argmax(gain))


def slope(x: np.ndarray, trained: Sequence[int], found: np.ndarray) -> float:
    """Score lost per distance: the median over contexts of what policies lost on the way to them."""
    lost = [
        (found[k, own] - found[k, j]) / abs(x[own] - x[j])
        for k, own in enumerate(trained) for j in range(len(x)) if j != own
    ]  # fmt: skip
    return float(max(0.0, np.median(lost))) if lost else SLOPE


def posterior(x: np.ndarray, at: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation (n,) of a Gaussian process at ``x`` (n,), from noisy ``values`` (k,) ``at`` (k,).

    Rasmussen and Williams 2006, Gaussian Processes for Machine Learning, algorithm 2.1, about the values' mean.
    """
    centre = values.mean()
    best = max(itertools.product(LENGTHS, AMPLITUDES), key=lambda chosen: _evidence(at, values - centre, *chosen))
    length, amplitude = best
    factor = np.linalg.cholesky(_kernel(at, at, length, amplitude) + NOISE**2 * np.eye(len(at)))
    across = np.linalg.solve(factor, _kernel(at, x, length, amplitude))
    mean = centre + across.T @ np.linalg.solve(factor, values - centre)
    return mean, np.sqrt(np.maximum(0.0, amplitude**2 - (across**2).sum(0)))


def _kernel(a: np.ndarray, b: np.ndarray, length: float, amplitude: float) -> np.ndarray:
    return amplitude**2 * np.exp(-0.5 * ((a[:, None] - b) / length) ** 2)


def _evidence(at: np.ndarray, values: np.ndarray, length: float, amplitude: float) -> float:
    """Log marginal likelihood, but for a constant."""
    factor = np.linalg.cholesky(_kernel(at, at, length, amplitude) + NOISE**2 * np.eye(len(at)))
    return float(-0.5 * np.square(np.linalg.solve(factor, values)).sum() - np.log(np.diag(factor)).sum())


def equidistant(n: int, count: int) -> list[int]:
    """So many of n contexts, in the middles of equal parts."""
    return sorted({min(n - 1, int((k + 0.5) * n / count)) for k in range(count)})
