"""Networks that policies and critics are made of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from robo_rl.contract import ContractError, Encoder

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


VECTOR = "policy"
"""The group of an observation that is a vector; every other group has an encoder."""


class Convolution(nn.Module):
    """Features (n, features) of a scan (n, length), an image (n, height, width) or a stack of images.

    Convolutions of every second place with as much padding as keeps the edges, then a linear layer; each with its
    activation.
    """

    def __init__(self, encoder: Encoder, activation: str) -> None:
        super().__init__()
        if len(encoder.shape) > 3:
            raise ContractError(
                f"network: encoder '{encoder.group}': shape is {encoder.shape}; a convolution takes (length,), "
                "(height, width) or (channels, height, width)"
            )
        self.stacked = len(encoder.shape) == 3
        inputs, size = (encoder.shape[0], encoder.shape[1:]) if self.stacked else (1, encoder.shape)
        kind: type[nn.Conv1d] | type[nn.Conv2d] = nn.Conv1d if len(size) == 1 else nn.Conv2d
        layers: list[nn.Module] = []
        padding = encoder.kernel // 2
        for width in encoder.widths:
            layers += [kind(inputs, width, encoder.kernel, stride=2, padding=padding), ACTIVATIONS[activation]()]
            size = tuple((k + 2 * padding - encoder.kernel) // 2 + 1 for k in size)
            inputs = width
        self.layers = nn.Sequential(*layers)
        self.features = nn.Sequential(nn.Linear(inputs * math.prod(size), encoder.features), ACTIVATIONS[activation]())

    def forward(self, x: Tensor) -> Tensor:
        return self.features(self.layers(x if self.stacked else x.unsqueeze(1)).flatten(1))


class Attention(nn.Module):
    """Features (n, features) of a table (n, rows, columns), in whose rows there is no order.

    Every row goes through the same layers; a learnt query weighs the rows (a softmax), and their weighted sum goes
    through a linear layer with its activation.
    """

    def __init__(self, encoder: Encoder, activation: str) -> None:
        super().__init__()
        if len(encoder.shape) != 2:
            raise ContractError(
                f"network: encoder '{encoder.group}': shape is {encoder.shape}; attention takes (rows, columns)"
            )
        layers: list[nn.Module] = []
        size = encoder.shape[1]
        for width in encoder.widths:
            layers += [nn.Linear(size, width), ACTIVATIONS[activation]()]
            size = width
        self.rows = encoder.shape[0]
        self.layers = nn.Sequential(*layers)
        self.query = nn.Linear(size, 1, bias=False)
        self.features = nn.Sequential(nn.Linear(size, encoder.features), ACTIVATIONS[activation]())

    def forward(self, x: Tensor) -> Tensor:
        rows = self.layers(x.flatten(0, 1))  # (n · rows, width)
        weights = self.query(rows).reshape(-1, 1, self.rows).softmax(-1)
        return self.features((weights @ rows.unflatten(0, (-1, self.rows))).flatten(1))


KINDS: dict[str, type[Convolution] | type[Attention]] = {"convolution": Convolution, "attention": Attention}


class Encoders(nn.ModuleDict):
    """Features of all groups of an observation that are no vector, side by side in the order of the encoders."""

    def __init__(self, encoders: Sequence[Encoder], activation: str = "tanh") -> None:
        super().__init__({encoder.group: KINDS[encoder.kind](encoder, activation) for encoder in encoders})
        self.size = sum(encoder.features for encoder in encoders)
        """Features of all of them."""

    def forward(self, groups: Mapping[str, Tensor]) -> Tensor:
        """(n, size), for groups (n, *shape) by name; others than those of the encoders are not looked at."""
        return torch.cat([encoder(groups[name]) for name, encoder in self.items()], 1)


def vector_of(observation: Tensor | Mapping[str, Tensor]) -> Tensor:
    """The part of an observation that is a vector, (n, k)."""
    return observation if isinstance(observation, Tensor) else observation[VECTOR]
