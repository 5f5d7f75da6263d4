"""Means and deviations of samples, over all processes that train one policy."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from robo_rl.learn.distributed import processes


class Moments(NamedTuple):
    """Of the samples of all processes."""

    number: int
    mean: Tensor
    """(…)"""
    squares: Tensor
    """(…), the sum of the squared distances from the mean."""


def moments(*samples: Tensor) -> list[Moments]:
    """Of each of the samples (n, …), n the same for all of a process, which tell each other in one message.

    Merged as in Chan, Golub and LeVeque 1983, Algorithms for Computing the Sample Variance, equation 2.1: squares of
    large means are never subtracted.
    """
    means = [x.mean(0) for x in samples]
    squares = [
        (x - mean).square_().sum(0) for x, mean in zip(samples, means, strict=True)
    ]  # x.var takes 3.7 times that
    number = torch.full((1,), float(len(samples[0])), device=samples[0].device)
    found = processes.gathered(torch.cat([part.flatten() for part in (*means, *squares, number)]))
    *parts, numbers = found.split([part.numel() for part in (*means, *squares, number)], 1)
    total = int(numbers.sum(dtype=torch.float64)) if len(found) > 1 else len(samples[0])
    weights = numbers / total  # (processes, 1)
    merged = []
    for k, x in enumerate(samples):
        own_means, own_squares = parts[k], parts[len(samples) + k]
        mean = (weights * own_means).sum(0)
        between = (numbers * (own_means - mean).square()).sum(0)
        shape = x.shape[1:]
        merged.append(Moments(total, mean.view(shape), (own_squares.sum(0) + between).view(shape)))
    return merged


class RunningNormalizer(nn.Module):
    """(x − mean) / (deviation + 0.01), of all x so far."""

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("variance", torch.ones(size))
        self.register_buffer("count", torch.tensor(0))

    @property
    def deviation(self) -> Tensor:
        """(size,) that x is divided by."""
        return self.variance.sqrt() + 0.01

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.deviation

    def update(self, new: Moments) -> None:
        """Take more samples, with moments (size,), into account; samples that are not all finite are left out."""
        if not bool(new.squares.isfinite().all()):
            return
        self.count += new.number
        rate, change = new.number / self.count, new.mean - self.mean
        self.mean += rate * change
        self.variance += rate * (new.squares / new.number - self.variance + change * (new.mean - self.mean))
