"""Operators that multiply by matrices: Gemm, MatMul."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto

from robo_rl.deploy.build.c.elementwise import elementwise
from robo_rl.deploy.build.c.graph import Graph, Operator
from robo_rl.deploy.build.c.program import Addresses, Dots, Linear, Program, padded

Weights = NDArray[np.float32]


def linear(
    program: Program, weights: Weights, bias: Weights | None, inputs: Addresses, source: str = ""
) -> Addresses:  # fmt: skip
    """(n, rows) = inputs (n, columns) · weights (rows, columns)ᵀ + bias (rows)."""
    count, (rows, _) = len(inputs), weights.shape
    output, order = program.buffer("arena", count * padded(rows)), np.argsort(inputs[0])
    moved = count == 1 and not program.in_line(inputs) and program.in_line(inputs[0, order])
    if moved:  # the weights take the order in which the inputs lie
        weights, inputs = weights[:, order], inputs[:, order]
    first = program.side_by_side(inputs)
    weights = weights.astype(np.float32)
    program.ops.append(Linear(weights, bias, first, output.base, count, source, order if moved else None))
    return output.addresses.reshape(count, padded(rows))[:, :rows]


def dots(program: Program, a: Addresses, b: Addresses) -> Addresses:
    """(m, n): rows of a (m, k) times rows of b (n, k)."""
    (m, k), n = a.shape, len(b)
    output, columns = program.buffer("arena", m * n), not program.in_line(b) and program.in_line(b.T)
    beside = program.side_by_side(b.T if columns else b)
    program.ops.append(Dots(program.side_by_side(a), beside, output.base, m, n, k, columns))
    return output.addresses.reshape(m, n)


def _matmul(graph: Graph, node: NodeProto) -> None:
    known, (a, b) = (graph.constant(node, 0), graph.constant(node, 1)), graph.operands(node)
    if 1 in (a.ndim, b.ndim):
        left = a[None] if a.ndim == 1 else a
        right = b[:, None] if b.ndim == 1 else b
        product = _product(graph, node, left, right, known)
        product = product[..., 0, :] if a.ndim == 1 else product
        graph.tensors[node.output[0]] = product[..., 0] if b.ndim == 1 else product
    else:
        graph.tensors[node.output[0]] = _product(graph, node, a, b, known)


def _product(
    graph: Graph, node: NodeProto, a: Addresses, b: Addresses, known: tuple[np.ndarray | None, np.ndarray | None]
) -> Addresses:
    program = graph.program
    left, right = known
    if right is not None and right.ndim <= 2:
        weights = right.reshape(b.shape).T
        found = linear(program, weights, None, a.reshape(-1, a.shape[-1]), node.input[0])
        return found.reshape(*a.shape[:-1], b.shape[-1])
    if left is not None and left.ndim <= 2:
        columns = np.swapaxes(b, -1, -2)
        found = linear(program, left.reshape(a.shape[-2:]), None, columns.reshape(-1, b.shape[-2]))
        return np.swapaxes(found.reshape(*columns.shape[:-1], a.shape[-2]), -1, -2)
    outer = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = np.broadcast_to(a, (*outer, *a.shape[-2:])), np.broadcast_to(b, (*outer, *b.shape[-2:]))
    found = np.empty((*outer, a.shape[-2], b.shape[-1]), np.int64)
    for i in np.ndindex(*outer):
        found[i] = dots(program, a[i], b[i].T)
    return found


def _gemm(graph: Graph, node: NodeProto) -> None:
    alpha, beta = graph.attribute(node, "alpha", 1.0), graph.attribute(node, "beta", 1.0)
    weights, bias = graph.constant(node, 1), graph.constant(node, 2)
    a, source = graph.addresses(node, node.input[0]), node.input[0]
    if graph.attribute(node, "transA", 0):
        a, source = a.T, ""
    if weights is None or (bias is None and graph.has_input(node, 2)):
        raise graph.refusal(node, "its weights or bias are computed at run time; use MatMul and Add for that")
    weights = weights if graph.attribute(node, "transB", 0) else weights.T
    rows, scaled = len(weights), None
    if bias is not None:
        if bias.ndim == 2 and len(bias) != 1:
            raise graph.refusal(node, f"its bias has shape {bias.shape}; expected one row")
        scaled = np.broadcast_to(beta * bias.ravel(), (rows,)).astype(np.float32)
    graph.tensors[node.output[0]] = linear(graph.program, alpha * weights, scaled, a, source)


def _add(graph: Graph, node: NodeProto) -> None:
    """A constant row added to the product just made becomes its bias, as torch's Linear has it."""
    a, b = graph.operands(node)
    for product, other in ((0, 1), (1, 0)):
        bias, made = graph.constant(node, other), (a, b)[product]
        last = graph.program.ops[-1] if graph.program.ops else None
        if bias is None or not isinstance(last, Linear) or last.bias is not None or bias.ndim > 1:
            continue
        rows = len(last.weights)
        expected = np.arange(last.count * padded(rows)).reshape(-1, padded(rows))[:, :rows] + last.output
        alone = graph.uses[node.input[product]] == 1
        if alone and made.shape[-1] == rows and np.array_equal(made.ravel(), expected.ravel()):
            row = np.broadcast_to(bias, (rows,)).astype(np.float32)
            graph.program.ops[-1] = dataclasses.replace(last, bias=row)
            graph.tensors[node.output[0]] = made
            return
    graph.tensors[node.output[0]] = elementwise(graph.program, "Add", a, b)


OPERATORS: dict[str, Operator] = {"Add": _add, "Gemm": _gemm, "MatMul": _matmul}
