"""The recurrent network in a TorchScript file that keeps its own state: what legged_gym, Isaac Lab and rsl_rl export.

Such a file holds an LSTM or a GRU, a stack of layers behind it, perhaps a normaliser in front, and buffers with the
state, which its ``forward`` overwrites. Its modules are read, not its code; that the result does what the code does is
shown against the file's own runtime (``graph.write``). No operator of the code is run before all are known to do
nothing but arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from robo_rl.adapters.foreign import parameters
from robo_rl.adapters.foreign.recurrent import Runtime

KINDS = ("LSTM", "GRU")
STATES = ("hidden_state", "cell_state")
"""Buffers (layers, 1, H) of those exporters: legged_gym, utils/helpers.py; rsl_rl, models/rnn_model.py; Isaac Lab,
isaaclab_rl/rsl_rl/exporter.py."""
ACTIVATIONS = {"ELU": "elu", "ReLU": "relu", "SiLU": "silu", "Tanh": "tanh"}
SILENT = ("Linear", "Identity", "Dropout", *ACTIVATIONS)
CHECKS = frozenset({
    "__contains__", "__is__", "__isnot__", "__not__", "__len__", "__getitem__", "Bool", "Int", "copy", "dim", "format",
    "gru", "len", "list", "lstm", "size", "tensor", "warn", "zeros", "copy_",
})  # fmt: skip
"""Operators, besides those of plain networks, of torch's nn.LSTM and nn.GRU, which look at shapes before their work."""
PRIMS = frozenset({
    "Constant", "GetAttr", "If", "ListConstruct", "ListUnpack", "RaiseException", "TupleConstruct", "TupleIndex",
    "TupleUnpack", "Uninitialized", "device", "dtype", "unchecked_cast", "NumToTensor", "layout",
})  # fmt: skip


def states(module: Any) -> list[str]:
    """The buffers of a module that keep a recurrent network's state."""
    buffers = dict(module.named_buffers())
    return [name for name in STATES if name in buffers]


def parsed(module: Any, pure: frozenset[str]) -> tuple[dict[str, Any], list[np.ndarray]]:
    """In a process of its own: what the modules are, as JSON, and their arrays.

    ``pure``: operators of plain networks.
    """
    for node in _nodes(module.inlined_graph):
        space, _, name = node.kind().partition("::")
        known = name in PRIMS if space == "prim" else space == "aten" and name.removesuffix("_") in pure | CHECKS
        if not known and name not in CHECKS:
            raise ValueError(f"its forward has the operator '{node.kind()}', which no recurrent policy needs")
    kinds = {name: part.original_name for name, part in module.named_modules() if name}
    layers = [name for name, kind in kinds.items() if kind in KINDS]
    if len(layers) != 1:
        raise ValueError(f"it has {len(layers)} networks of the kinds {KINDS}; expected one")
    inside = [name for name, kind in kinds.items() if kind == "Linear" and "." in name]
    stacks = {name.rpartition(".")[0] for name in inside}
    if len(stacks) != 1:
        raise ValueError(f"it has linear layers in {sorted(stacks)}; expected one stack of them behind its {layers[0]}")
    (stack,) = stacks
    behind = [kind for name, kind in kinds.items() if name.rpartition(".")[0] == stack]
    other = [kind for kind in behind if kind not in SILENT]
    between = sorted({kind for kind in behind if kind in ACTIVATIONS})
    if other or len(between) > 1:
        raise ValueError(f"behind its {layers[0]} are {behind}; expected linear layers with one of {list(ACTIVATIONS)}")
    arrays = {name: value.cpu().numpy() for name, value in module.state_dict().items() if name not in STATES}
    told = {
        "recurrence": layers[0], "prefix": stack, "names": list(arrays),
        "activation": ACTIVATIONS[between[0]] if between else "elu",
        "normalizer": next((name.removesuffix("._mean") for name in arrays if name.endswith("._mean")), ""),
    }  # fmt: skip
    return told, list(arrays.values())


def _nodes(block: Any) -> Iterator[Any]:
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _nodes(inner)


def built(told: dict[str, Any], arrays: list[np.ndarray], where: str) -> nn.Module:
    """The network of what ``parsed`` found."""
    named = dict(zip(told["names"], arrays, strict=True))
    layers = {key: told[key] for key in ("recurrence", "prefix", "activation", "normalizer")}
    return parameters.network(parameters.Parameters(named), layers, where)


def runtime(module: Any) -> Runtime:
    """torch.jit on the file itself, one robot at a time, with its state set before and read after each step."""
    kept: list[torch.Tensor] = [dict(module.named_buffers())[name] for name in states(module)]

    def run(seen: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        actions, after = [], []
        with torch.no_grad():
            for row, state in zip(torch.from_numpy(seen), torch.from_numpy(memory), strict=True):
                for buffer, value in zip(kept, state.split([buffer.numel() for buffer in kept]), strict=True):
                    buffer.copy_(value.reshape(buffer.shape))
                actions.append(module(row[None]).reshape(-1).numpy())
                after.append(torch.cat([buffer.flatten() for buffer in kept]).numpy())
        return np.stack(actions), np.stack(after)

    return run
