"""Networks that policies and critics are made of."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class MLP(nn.Sequential):
    """Linear layers with an activation between them; the last layer starts small, so that actions start near 0."""

    def __init__(
        self, inputs: int, hidden: Sequence[int], outputs: int, activation: type[nn.Module] = nn.Tanh, scale: float = 0.01
    ) -> None:
        layers: list[nn.Module] = []
        size = inputs
        for width in hidden:
            layers += [nn.Linear(size, width), activation()]
            size = width
        last = nn.Linear(size, outputs)
        with torch.no_grad():
            last.weight.mul_(scale)
            last.bias.zero_()
        super().__init__(*layers, last)


class Normalizer(nn.Module):
    """Subtracts the running mean and divides by the running standard deviation of what it was shown."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("scale", torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) * self.scale
