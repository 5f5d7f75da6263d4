"""Learning rates that fall as a training goes on."""

from __future__ import annotations

import math

from torch.optim import Optimizer


def set_cosine_rate(optimizer: Optimizer, rate: float, done: int, total: int) -> None:
    """Give an optimiser the rate after ``done`` of ``total`` updates: from ``rate`` to 0 along half a cosine
    (Loshchilov and Hutter 2017, SGDR, equation 5, without restarts)."""
    for group in optimizer.param_groups:
        group["lr"] = 0.5 * rate * (1.0 + math.cos(math.pi * done / total))
