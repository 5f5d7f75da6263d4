"""Recurrent networks of other trainers: layers of LSTM or GRU, then the layers of a plain network.

What they remember is one vector (n, memory): the hidden states of all layers, then the cell states of an LSTM. A step
is written in plain arithmetic, which every exporter and the C generator know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from robo_rl.adapters.foreign.description import AdoptionError

GATES = {4: "LSTM", 3: "GRU"}
"""Kinds, by the rows of a layer's weights for each of its units."""
FIRST = ".weight_ih_l0"
Runtime = Callable[..., Any]
"""Actions (n, a) for observations (n, k) float32; of one with a memory, actions and memory (n, m) for both."""


class Cell(nn.Module):
    """One layer of torch's nn.LSTM or nn.GRU."""

    def __init__(self, kind: str, arrays: Mapping[str, np.ndarray]) -> None:
        """``arrays``: weight_ih (gates · H, k), weight_hh (gates · H, H), and biases bias_ih, bias_hh (gates · H)."""
        super().__init__()
        self.kind, self.width = kind, arrays["weight_hh"].shape[1]
        for name, array in arrays.items():
            self.register_buffer(name, torch.from_numpy(np.array(array, np.float32)))

    def forward(self, x: Tensor, hidden: Tensor, cell: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Hidden and cell state (n, H) after inputs (n, k); the hidden one is the output."""
        given = functional.linear(x, self.get_buffer("weight_ih"), self.get_buffer("bias_ih"))
        kept = functional.linear(hidden, self.get_buffer("weight_hh"), self.get_buffer("bias_hh"))
        if cell is None:
            r, z, n = given.split(self.width, -1)
            kept_r, kept_z, kept_n = kept.split(self.width, -1)
            update = torch.sigmoid(z + kept_z)
            candidate = torch.tanh(n + torch.sigmoid(r + kept_r) * kept_n)
            return candidate + update * (hidden - candidate), None
        i, f, g, o = (given + kept).split(self.width, -1)
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(cell), cell


class Recurrent(nn.Module):
    """(n, k) observations and (n, memory) to (n, a) actions and the memory after it."""

    def __init__(self, before: nn.Module, cells: list[Cell], head: nn.Module) -> None:
        super().__init__()
        self.before, self.cells, self.head = before, nn.ModuleList(cells), head
        self.widths = [cell.width for cell in cells]
        self.long = cells[0].kind == "LSTM"
        self.memory = sum(self.widths) * (2 if self.long else 1)
        self.observation_size = cells[0].get_buffer("weight_ih").shape[1]

    def forward(self, observation: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        parts = memory.split(self.widths * (2 if self.long else 1), -1)
        count, x, hidden, cells = len(self.widths), self.before(observation), [], []
        for i, layer in enumerate(self.cells):
            x, cell = layer(x, parts[i], parts[count + i] if self.long else None)
            hidden.append(x)
            cells += [] if cell is None else [cell]
        return self.head(x), torch.cat(hidden + cells, -1)


def memory_of(network: Any) -> int:
    """Numbers that a network keeps from step to step; 0 of one without a memory."""
    return int(getattr(network, "memory", 0))


def prefixes(arrays: Mapping[str, np.ndarray]) -> list[str]:
    """Names below which there are layers of LSTM or GRU."""
    return sorted(name.removesuffix(FIRST) for name in arrays if name.endswith(FIRST))


def actor_prefix(arrays: Mapping[str, np.ndarray]) -> str:
    """The one that isn't a critic's: rsl_rl's memory_a or the actor's rnn. "" where there is none, or several are."""
    found = [name for name in prefixes(arrays) if not re.search(r"critic|memory_c", name)]
    return found[0] if len(found) == 1 else ""


def cells(arrays: Mapping[str, np.ndarray], prefix: str, where: str) -> list[Cell]:
    """The layers below a prefix, as torch names their parameters."""
    found: list[Cell] = []
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    while f"{prefix}.weight_ih_l{len(found)}" in arrays:
        k = len(found)
        given = {name: arrays[f"{prefix}.{name}_l{k}"] for name in names if f"{prefix}.{name}_l{k}" in arrays}
        weights, inputs = given.get("weight_hh"), found[-1].width if found else None
        kind = None if weights is None or weights.ndim != 2 else GATES.get(len(weights) // max(weights.shape[1], 1))
        rows = {len(array) for array in given.values()}
        if (
            kind is None
            or len(given) != len(names)
            or len(rows) != 1
            or given["weight_ih"].shape[1] != (inputs or given["weight_ih"].shape[1])
        ):
            raise AdoptionError(
                f"{where}: layers.recurrence is '{prefix}'; its layer {k} has the shapes "
                f"{ {name: array.shape for name, array in given.items()} }; expected those of torch's LSTM or GRU, in "
                "one direction, with biases"
            )
        found.append(Cell(kind, given))
    if not found or f"{prefix}.weight_ih_l0_reverse" in arrays:
        raise AdoptionError(
            f"{where}: layers.recurrence is '{prefix}'; expected where the actor's LSTM or GRU is, one of "
            f"{prefixes(arrays)}, in one direction"
        )
    return found


def runtime(network: Recurrent) -> Runtime:
    """torch's own nn.LSTM or nn.GRU with the network's weights, and its other layers."""
    layers = [cell for cell in network.cells if isinstance(cell, Cell)]
    inputs, width = network.observation_size, layers[0].width
    if len({cell.width for cell in layers}) != 1:
        raise AdoptionError(f"layers.recurrence has layers of {network.widths} units; expected the same in all")
    whole = (nn.LSTM if network.long else nn.GRU)(inputs, width, len(layers))
    with torch.no_grad():
        for k, cell in enumerate(layers):
            for name, value in cell.named_buffers():
                getattr(whole, f"{name}_l{k}").copy_(value)

    def run(seen: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        kept = torch.from_numpy(memory).unflatten(1, (-1, width)).transpose(0, 1).contiguous()
        with torch.no_grad():
            state = (kept[: len(layers)], kept[len(layers) :]) if network.long else kept
            out, state = whole(network.before(torch.from_numpy(seen))[None], state)
            new = torch.cat(state) if network.long else state
            return network.head(out[0]).numpy(), new.transpose(0, 1).flatten(1).numpy()

    return run
