"""What is not finite is not learnt from: an optimiser's steps along such gradients are skipped, and counted.

A training ends when it has skipped steps in ``MOST_SKIPPED`` updates in a row (``robo_rl.learn.runs.training``). Its
newest
checkpoint is then the last one before them.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from robo_rl.learn.experience.demonstrations import Transitions

MOST_SKIPPED = 10
"""Updates in a row with skipped steps, after which a training ends."""
MOST_DIVERGED = 0.5
"""Part of an update's robots that have diverged, from which on nothing is learnt from the update."""


def stepped(optimizer: Optimizer, *norms: Tensor) -> bool:
    """Step along gradients of these norms (), if all are finite; whether they were."""
    good = all(bool(norm.isfinite()) for norm in norms)
    if good:
        optimizer.step()
    return good


def gradient_norm(parameters: Iterable[nn.Parameter]) -> Tensor:
    """() of all gradients of ``parameters``."""
    return nn.utils.get_total_norm([value.grad for value in parameters if value.grad is not None])


def usable(transitions: Transitions) -> Tensor:
    """(s,) bool: all numbers of a transition are finite."""
    return torch.stack([value.reshape(len(value), -1).isfinite().all(1) for value in transitions]).all(0)
