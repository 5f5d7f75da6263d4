"""Model predictive path integral control: plans drawn about the last one, weighed by what they would cost.

Williams, Drews, Goldfain, Rehg, Theodorou 2016 (Aggressive driving with model predictive path integral control),
equations 18 to 24; with what Nav2's controller does besides: the same draws at every step (``regenerate_noises:
false``) and a Savitzky-Golay filter over the new plan. Arrays of any library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

FILTER = (-21, 14, 39, 54, 59, 54, 39, 14, -21)
"""Of 231: the quadratic through nine places, at the middle one (Savitzky, Golay 1964, table I)."""


@dataclass(frozen=True)
class Sampling:
    """How plans are drawn and weighed."""

    samples: int
    steps: int
    deviation: tuple[float, ...]
    """Standard deviation of each command."""
    temperature: float
    gamma: float
    """Weight of the control cost."""


def draws(sampling: Sampling) -> np.ndarray:
    """(samples, steps, k) by which plans differ; the first one not at all."""
    shape = (sampling.samples, sampling.steps, len(sampling.deviation))
    found = np.random.default_rng(0).standard_normal(shape, np.float32) * np.asarray(sampling.deviation, np.float32)
    found[0] = 0.0
    return found


def smoothing(steps: int) -> np.ndarray:
    """(steps, steps): multiplied from the left, it filters a plan, whose ends are held beyond them."""
    found = np.zeros((steps, steps), np.float32)
    for row in range(steps):
        for place, weight in enumerate(FILTER):
            found[row, min(max(row + place - len(FILTER) // 2, 0), steps - 1)] += weight / sum(FILTER)
    return found


def improved(plan: Any, noise: Any, cost: Callable[[Any], Any], sampling: Sampling) -> Any:
    """The means (n, steps, k) of plans about each of n ``plan``, weighed by what they cost.

    ``noise`` is of ``draws``; ``cost`` takes plans (n, samples, steps, k) to (n, samples). Limits of commands are the
    cost's, or a mean could not come near them.
    """
    xp = array_namespace(plan)
    plans = plan[:, None] + noise[None]
    variance = xp.asarray(np.square(np.asarray(sampling.deviation, np.float32)))
    control = xp.sum(xp.sum(plan[:, None] * noise[None] / variance, axis=-1), axis=-1)
    total = cost(plans) + sampling.gamma * control
    weight = xp.exp(-(total - xp.min(total, axis=-1, keepdims=True)) / sampling.temperature)
    weight = weight / xp.sum(weight, axis=-1, keepdims=True)
    return xp.sum(weight[..., None, None] * plans, axis=1)


def shifted(plan: Any) -> Any:
    """Plans (n, steps, k) one step later; their last commands are held."""
    xp = array_namespace(plan)
    return xp.concat([plan[:, 1:], plan[:, -1:]], axis=1)
