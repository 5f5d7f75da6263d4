"""Operators that work on one element at a time."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto

from robo_rl.deploy.build.c.expressions import EXPRESSIONS
from robo_rl.deploy.build.c.graph import Graph, Operator
from robo_rl.deploy.build.c.program import Addresses, Map, Program

UNROLLED = 8  # up to so many elements become single C variables, more a loop


def elementwise(program: Program, name: str, *operands: Addresses) -> Addresses:
    """The expression ``name`` of operands that are broadcast against each other."""
    parts = np.broadcast_arrays(*operands)
    shape, count = parts[0].shape, parts[0].size
    if count <= UNROLLED:
        flat = [program.scalar(name, *inputs) for inputs in zip(*(part.ravel() for part in parts), strict=True)]
        return np.array(flat, np.int64).reshape(shape)
    order = _order(program, parts)
    inputs = tuple(_operand(program, part.ravel()[order]) for part in parts)
    output = program.buffer("arena", count)
    program.ops.append(Map(name, inputs, output.base, count))
    return output.addresses[np.argsort(order)].reshape(shape)


def _order(program: Program, parts: Sequence[Addresses]) -> NDArray[np.int64]:
    """The order in which to go through elements, so that as many operands as can be lie side by side in it."""

    def in_line(order: NDArray[np.int64]) -> int:
        return sum(program.in_line(part.ravel()[order]) for part in parts)

    given = np.arange(parts[0].size)
    return max([given, *(np.argsort(part.ravel(), kind="stable") for part in parts)], key=in_line)


def _operand(program: Program, addresses: Addresses) -> tuple[int, int]:
    """Address and stride."""
    first = int(addresses.ravel()[0])
    return (first, 0) if (addresses == first).all() else (program.side_by_side(addresses), 1)


def number(program: Program, value: float) -> Addresses:
    """A constant."""
    return program.constant(np.array(value, np.float32))


def _plain(graph: Graph, node: NodeProto) -> None:
    graph.tensors[node.output[0]] = elementwise(graph.program, node.op_type, *graph.operands(node))


def _pairwise(name: str) -> Operator:
    def operator(graph: Graph, node: NodeProto) -> None:
        join = functools.partial(elementwise, graph.program, name)
        total = functools.reduce(join, graph.operands(node))
        if node.op_type == "Mean":
            total = elementwise(graph.program, "Div", total, number(graph.program, len(node.input)))
        graph.tensors[node.output[0]] = total

    return operator


def _with_numbers(name: str, **defaults: float) -> Operator:
    """Attributes as further operands."""

    def operator(graph: Graph, node: NodeProto) -> None:
        numbers = [number(graph.program, graph.attribute(node, key, value)) for key, value in defaults.items()]
        graph.tensors[node.output[0]] = elementwise(graph.program, name, *graph.operands(node), *numbers)

    return operator


def _elu(graph: Graph, node: NodeProto) -> None:
    if graph.attribute(node, "alpha", 1.0) == 1.0:
        _with_numbers("Elu")(graph, node)
    else:
        _with_numbers("EluAlpha", alpha=1.0)(graph, node)


def _celu(graph: Graph, node: NodeProto) -> None:
    (x,), alpha = graph.operands(node), number(graph.program, graph.attribute(node, "alpha", 1.0))
    scaled = elementwise(graph.program, "Div", x, alpha)
    below = elementwise(graph.program, "Mul", alpha, elementwise(graph.program, "Elu", scaled))
    positive = elementwise(graph.program, "Less", number(graph.program, 0.0), x)
    graph.tensors[node.output[0]] = elementwise(graph.program, "Where", positive, x, below)


def _selu(graph: Graph, node: NodeProto) -> None:
    alpha = number(graph.program, graph.attribute(node, "alpha", 1.67326319217681884765625))
    gamma = number(graph.program, graph.attribute(node, "gamma", 1.05070102214813232421875))
    unscaled = elementwise(graph.program, "EluAlpha", *graph.operands(node), alpha)
    graph.tensors[node.output[0]] = elementwise(graph.program, "Mul", gamma, unscaled)


def _gelu(graph: Graph, node: NodeProto) -> None:
    program, (x,) = graph.program, graph.operands(node)

    def of(name: str, *operands: Addresses | float) -> Addresses:
        return elementwise(program, name, *(number(program, o) if isinstance(o, float) else o for o in operands))

    if graph.attribute(node, "approximate", "none") == "tanh":
        cube = of("Mul", x, of("Square", x))
        inner = of("Tanh", of("Mul", math.sqrt(2 / math.pi), of("Add", x, of("Mul", 0.044715, cube))))
    else:
        inner = of("Erf", of("Mul", x, math.sqrt(0.5)))
    graph.tensors[node.output[0]] = of("Mul", of("Mul", 0.5, x), of("Add", 1.0, inner))


def _mish(graph: Graph, node: NodeProto) -> None:
    (x,) = graph.operands(node)
    gate = elementwise(graph.program, "Tanh", elementwise(graph.program, "Softplus", x))
    graph.tensors[node.output[0]] = elementwise(graph.program, "Mul", x, gate)


def _prelu(graph: Graph, node: NodeProto) -> None:
    graph.tensors[node.output[0]] = elementwise(graph.program, "LeakyRelu", *graph.operands(node))


def _clip(graph: Graph, node: NodeProto) -> None:
    found = graph.addresses(node, node.input[0])
    given = {i: graph.addresses(node, node.input[i]) for i in (1, 2) if graph.has_input(node, i)}
    names = {(1,): "Max", (2,): "Min", (1, 2): "Clip"}
    if given:
        found = elementwise(graph.program, names[tuple(given)], found, *given.values())
    graph.tensors[node.output[0]] = found


def _pow(graph: Graph, node: NodeProto) -> None:
    exponent, (x, *_) = graph.constant(node, 1), graph.operands(node)
    simple = {2.0: "Square", 0.5: "Sqrt", -1.0: "Reciprocal"}
    value = float(exponent.ravel()[0]) if exponent is not None and exponent.size == 1 else math.nan
    if value in simple:
        shape = np.broadcast_shapes(x.shape, exponent.shape)  # type: ignore[union-attr]
        graph.tensors[node.output[0]] = elementwise(graph.program, simple[value], np.broadcast_to(x, shape))
    else:
        _plain(graph, node)


def _cast(graph: Graph, node: NodeProto) -> None:
    to = graph.attribute(node, "to", TensorProto.UNDEFINED)
    (x,) = graph.operands(node)
    if to == TensorProto.BOOL:
        x = elementwise(graph.program, "Not", elementwise(graph.program, "Not", x))
    elif to != TensorProto.FLOAT:
        kind = TensorProto.DataType.Name(to)
        raise graph.refusal(node, f"it makes numbers of type {kind}; only float32 and bool run on the target")
    graph.tensors[node.output[0]] = x


def _where(graph: Graph, node: NodeProto) -> None:
    condition, (_, yes, no) = graph.constant(node, 0), graph.operands(node)
    if condition is not None:
        graph.tensors[node.output[0]] = np.where(condition, yes, no)
    else:
        _plain(graph, node)


OPERATORS: dict[str, Operator] = dict.fromkeys(EXPRESSIONS, _plain) | {
    "Cast": _cast,
    "Celu": _celu,
    "Clip": _clip,
    "Elu": _elu,
    "Gelu": _gelu,
    "HardSigmoid": _with_numbers("HardSigmoid", alpha=0.2, beta=0.5),
    "LeakyRelu": _with_numbers("LeakyRelu", alpha=0.01),
    "Max": _pairwise("Max"),
    "Mean": _pairwise("Add"),
    "Min": _pairwise("Min"),
    "Mish": _mish,
    "PRelu": _prelu,
    "Pow": _pow,
    "Selu": _selu,
    "Sum": _pairwise("Add"),
    "Where": _where,
}
for name in ("EluAlpha", "Square"):  # expressions that are not operators of ONNX
    del OPERATORS[name]
