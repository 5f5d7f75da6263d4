"""Networks that policies and critics are made of."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

ACTIVATIONS = {"tanh": nn.Tanh, "elu": nn.ELU, "relu": nn.ReLU, "silu": nn.SiLU}


class MLP(nn.Sequential):
    """Linear layers with an activation between them. The last one starts near zero, so that actions do."""

    def __init__(self, inputs: int, hidden: Sequence[int], outputs: int, activation: str = "tanh") -> None:
        layers: list[nn.Module] = []
        size = inputs
        for width in hidden:
            layers += [nn.Linear(size, width), ACTIVATIONS[activation]()]
            size = width
        last = nn.Linear(size, outputs)
        with torch.no_grad():
            last.weight.mul_(0.01)
            last.bias.zero_()
        super().__init__(*layers, last)


class GRU(nn.GRU):
    """torch's gated recurrent unit, and one step of it in plain arithmetic, which every exporter knows."""

    weight_ih_l0: Tensor
    weight_hh_l0: Tensor
    bias_ih_l0: Tensor
    bias_hh_l0: Tensor

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__(inputs, width)

    def step(self, x: Tensor, hidden: Tensor) -> Tensor:
        """The next hidden state (n, width) after inputs (n, inputs); it is the output too."""
        given = functional.linear(x, self.weight_ih_l0, self.bias_ih_l0).chunk(3, -1)
        kept = functional.linear(hidden, self.weight_hh_l0, self.bias_hh_l0).chunk(3, -1)
        reset, stay = torch.sigmoid(given[0] + kept[0]), torch.sigmoid(given[1] + kept[1])
        candidate = torch.tanh(given[2] + reset * kept[2])
        return candidate + stay * (hidden - candidate)


class Normalizer(nn.Module):
    """(x − mean) / deviation with fixed numbers, learnt by the algorithm."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("deviation", torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.deviation
