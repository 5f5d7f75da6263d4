"""GRU and LSTM: a few products and elementwise steps per moment of the sequence.

The equations are those of the ONNX operators' definitions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import NodeProto

from robo_rl.deploy.build.c.elementwise import elementwise, number
from robo_rl.deploy.build.c.graph import Graph, Operator
from robo_rl.deploy.build.c.linear import Weights, linear
from robo_rl.deploy.build.c.program import Addresses


@dataclass(frozen=True)
class _Cell:
    """The operands of a recurrent operator for one direction, checked."""

    graph: Graph
    node: NodeProto
    x: Addresses
    """(sequence, batch 1, features)"""
    weights: Weights
    recurrence: Weights
    bias: Weights
    """(2, gates · size): of the input, and of the recurrence."""
    size: int

    def of(self, name: str, *operands: Addresses) -> Addresses:
        return elementwise(self.graph.program, name, *operands)

    def product(self, matrix: Weights, x: Addresses, bias: Weights | None) -> Addresses:
        return linear(self.graph.program, matrix, bias, x[None])[0]

    def initial(self, i: int) -> Addresses:
        if self.graph.has_input(self.node, i):
            return self.graph.addresses(self.node, self.node.input[i]).reshape(self.size)
        return np.broadcast_to(number(self.graph.program, 0.0), (self.size,))


def _cell(graph: Graph, node: NodeProto, gates: int) -> _Cell:
    if graph.attribute(node, "direction", "forward") != "forward":
        raise graph.refusal(node, "it looks at the future (direction); a policy on a robot can only run forward")
    for name in ("activations", "clip", "layout", "input_forget"):
        if graph.attribute(node, name, None):
            raise graph.refusal(node, f"its attribute '{name}' is not supported; use the default")
    if any(graph.has_input(node, i) for i in (4, 7)):
        raise graph.refusal(node, "sequence lengths and peepholes are not supported; leave them out")
    weights, recurrence, bias = (graph.constant(node, i) for i in (1, 2, 3))
    if weights is None or recurrence is None or (bias is None and graph.has_input(node, 3)):
        raise graph.refusal(node, "its weights are computed at run time; make them constant")
    x = graph.addresses(node, node.input[0])
    if x.shape[1] != 1:
        raise graph.refusal(node, f"its batch is {x.shape[1]}; expected 1 (sequence, batch, features)")
    size = recurrence.shape[-1]
    both = np.zeros((2, gates * size), np.float32) if bias is None else bias.reshape(2, gates * size)
    return _Cell(graph, node, x[:, 0], weights[0], recurrence[0], both, size)


def _gru(graph: Graph, node: NodeProto) -> None:
    cell = _cell(graph, node, 3)
    after, size, one = graph.attribute(node, "linear_before_reset", 0), cell.size, number(graph.program, 1.0)
    hidden, seen = cell.initial(5), []
    for x in cell.x:
        inner = cell.product(cell.weights, x, cell.bias[0])
        if after:
            outer = cell.product(cell.recurrence, hidden, cell.bias[1])
        else:
            outer = cell.product(cell.recurrence[: 2 * size], hidden, cell.bias[1][: 2 * size])
        gates = cell.of("Sigmoid", cell.of("Add", inner[: 2 * size], outer[: 2 * size]))
        update, reset = gates[:size], gates[size:]
        if after:
            remembered = cell.of("Mul", reset, outer[2 * size :])
        else:
            kept = cell.of("Mul", reset, hidden)
            remembered = cell.product(cell.recurrence[2 * size :], kept, cell.bias[1][2 * size :])
        fresh = cell.of("Tanh", cell.of("Add", inner[2 * size :], remembered))
        hidden = cell.of("Add", cell.of("Mul", cell.of("Sub", one, update), fresh), cell.of("Mul", update, hidden))
        seen.append(hidden)
    _give(cell, seen, hidden)


def _lstm(graph: Graph, node: NodeProto) -> None:
    cell = _cell(graph, node, 4)
    hidden, memory, size, seen = cell.initial(5), cell.initial(6), cell.size, []
    for x in cell.x:
        inner = cell.product(cell.weights, x, cell.bias[0])
        gates = cell.of("Add", inner, cell.product(cell.recurrence, hidden, cell.bias[1]))
        let_in, let_out, forget = np.split(cell.of("Sigmoid", gates[: 3 * size]), 3)
        fresh = cell.of("Tanh", gates[3 * size :])
        memory = cell.of("Add", cell.of("Mul", forget, memory), cell.of("Mul", let_in, fresh))
        hidden = cell.of("Mul", let_out, cell.of("Tanh", memory))
        seen.append(hidden)
    _give(cell, seen, hidden, memory)


def _give(cell: _Cell, seen: list[Addresses], *last: Addresses) -> None:
    shaped = [np.stack(seen)[:, None, None], *(part[None, None] for part in last)]
    cell.graph.tensors.update({name: part for name, part in zip(cell.node.output, shaped, strict=False) if name})


OPERATORS: dict[str, Operator] = {"GRU": _gru, "LSTM": _lstm}
