"""The memory of a recurrent policy in ONNX: inputs like h_in and c_in, which the next step gets from h_out and c_out.

rsl_rl and Isaac Lab export for one robot, so the batch is the middle dimension of states (layers, 1, H) and of the
sequence (1, 1, k) that the operators LSTM and GRU take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from robo_rl.adapters.foreign.description import AdoptionError
from robo_rl.adapters.foreign.onnx_session import ask

Shapes = Mapping[str, Sequence[int | None]]


@dataclass(frozen=True)
class State:
    """One input of memory and the output that it comes from."""

    before: str
    after: str
    shape: tuple[int, int]
    """(layers, H), or (1, H) of one that has the rows first."""
    rows_first: bool

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    def given(self, part: Tensor) -> Tensor:
        """As the graph takes it, of (n, size)."""
        return part if self.rows_first else part.unflatten(1, self.shape).transpose(0, 1)

    def kept(self, value: Tensor) -> Tensor:
        """(n, size) of what the graph gives."""
        return value if self.rows_first else value.transpose(0, 1).flatten(1)


def states(inputs: Shapes, outputs: Shapes, used: Sequence[str], where: str) -> list[State]:
    """The inputs ``used`` besides the observation, with their outputs. AdoptionError where they are no memory."""
    left = list(outputs)[1:]
    found = []
    for name in used:
        shape, twin = list(inputs[name]), name.removesuffix("in") + "out" if name.endswith("in") else ""
        after = twin if twin in left else next((other for other in left if list(outputs[other]) == shape), None)
        rows = 0 if len(shape) == 2 else 1
        rest = [size for i, size in enumerate(shape) if i != rows]
        if after is None or len(shape) not in (2, 3) or not all(rest) or shape[rows] not in (1, None):
            raise AdoptionError(
                f"{where}: its actions depend on the input '{name}' {shape} besides the observation; expected a memory "
                f"(layers, 1, H) that one of the outputs {list(outputs)[1:]} gives back"
            )
        left.remove(after)
        layers, width = (1, int(rest[0] or 0)) if rows == 0 else (int(rest[0] or 0), int(rest[1] or 0))
        found.append(State(name, after, (layers, width), rows == 0))
    return found


def run(session: Any, first: str, output: str, memory: list[State], seen: np.ndarray, kept: np.ndarray) -> Any:
    """onnxruntime on the file itself, one robot at a time: actions (n, a) and memory (n, m) after the step."""
    actions, after = [], []
    for row, state in zip(torch.from_numpy(seen), torch.from_numpy(kept), strict=True):
        parts = state[None].split([part.size for part in memory], 1)
        given = {part.before: part.given(value).contiguous().numpy() for part, value in zip(memory, parts, strict=True)}
        named = [output, *(part.after for part in memory)]
        action, *states = ask(session, named, {first: row[None].numpy(), **given})
        actions.append(action.reshape(-1))
        after.append(np.concatenate([part.kept(torch.from_numpy(value)).flatten().numpy()
                                     for part, value in zip(memory, states, strict=True)]))  # fmt: skip
    return np.stack(actions), np.stack(after)


def _gates(x: list[Any], a: dict[str, Any], count: int) -> tuple[Tensor, Tensor, Tensor, int]:
    """What a cell's gates get from the input and from the hidden state (n, count · H), that state (n, H), and H."""
    if a.get("direction", "forward") != "forward" or a.get("layout", 0) or a.get("clip") or x[0].shape[0] != 1:
        raise AdoptionError("operator LSTM or GRU: expected one step, forward, with the sequence first and no clip")
    if any(key in a for key in ("activations", "activation_alpha", "activation_beta")):
        raise AdoptionError("operator LSTM or GRU: it has activations of its own; expected the usual ones")
    width = int(x[2].shape[2])
    if len(x) < 6 or x[5] is None:
        raise AdoptionError("operator LSTM or GRU: it has no initial state; expected one from the last step")
    hidden = x[5][0]
    biases = x[3][0] if x[3] is not None else x[2].new_zeros(2 * count * width)
    given = functional.linear(x[0][0], x[1][0], biases[: count * width])
    return given, functional.linear(hidden, x[2][0], biases[count * width :]), hidden, width


def lstm(x: list[Any], a: dict[str, Any]) -> tuple[Tensor, Tensor, Tensor]:
    """ONNX's LSTM for one step: gates in the order input, output, forget, cell."""
    if (len(x) > 7 and x[7] is not None) or a.get("input_forget"):
        raise AdoptionError("operator LSTM: it has peepholes or coupled gates; expected neither")
    given, kept, _, width = _gates(x, a, 4)
    i, o, f, c = (given + kept).split(width, -1)
    cell = torch.sigmoid(f) * x[6][0] + torch.sigmoid(i) * torch.tanh(c)
    hidden = torch.sigmoid(o) * torch.tanh(cell)
    return hidden[None, None], hidden[None], cell[None]


def gru(x: list[Any], a: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """ONNX's GRU for one step: gates in the order update, reset, hidden."""
    if not a.get("linear_before_reset"):
        raise AdoptionError("operator GRU: linear_before_reset is 0; expected 1, as of torch's GRU")
    given, kept, hidden, width = _gates(x, a, 3)
    z, r, n = given.split(width, -1)
    kept_z, kept_r, kept_n = kept.split(width, -1)
    update = torch.sigmoid(z + kept_z)
    candidate = torch.tanh(n + torch.sigmoid(r + kept_r) * kept_n)
    new = candidate + update * (hidden - candidate)
    return new[None, None], new[None]
