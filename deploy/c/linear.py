"""Operators that multiply by matrices: Gemm, MatMul, Conv."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto

from deploy.c.elementwise import elementwise, number
from deploy.c.graph import Graph, Operator
from deploy.c.program import Addresses, Dots, Linear, Program, padded

Weights = NDArray[np.float32]


def linear(
    program: Program, weights: Weights, bias: Weights | None, inputs: Addresses, source: str = ""
) -> Addresses:  # fmt: skip
    """(n, rows) = inputs (n, columns) · weights (rows, columns)ᵀ + bias (rows)."""
    count, (rows, _) = len(inputs), weights.shape
    output = program.buffer("arena", count * padded(rows))
    first = program.side_by_side(inputs)
    program.ops.append(Linear(weights.astype(np.float32), bias, first, output.base, count, source))
    return output.addresses.reshape(count, padded(rows))[:, :rows]


def dots(program: Program, a: Addresses, b: Addresses) -> Addresses:
    """(m, n): rows of a (m, k) times rows of b (n, k)."""
    (m, k), n = a.shape, len(b)
    output = program.buffer("arena", m * n)
    program.ops.append(Dots(program.side_by_side(a), program.side_by_side(b), output.base, m, n, k))
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


def _conv(graph: Graph, node: NodeProto) -> None:
    """Convolution as one product per output position, of the weights with the patch that lies there."""
    weights, bias = graph.constant(node, 1), graph.constant(node, 2)
    if weights is None or (bias is None and graph.has_input(node, 2)):
        raise graph.refusal(node, "its weights or bias are computed at run time; only constant ones are supported")
    x = graph.addresses(node, node.input[0])
    if len(x) != 1:
        raise graph.refusal(node, f"it convolves {len(x)} inputs at once; expected a batch of 1")
    groups, size = graph.attribute(node, "group", 1), weights.shape[2:]
    strides = graph.attribute(node, "strides", [1] * len(size))
    dilations = graph.attribute(node, "dilations", [1] * len(size))
    wide = _padded_input(graph, node, x[0], size, strides, dilations)
    steps = [
        range(0, have - spread * (kernel - 1), stride)
        for have, kernel, stride, spread in zip(wide.shape[1:], size, strides, dilations, strict=True)
    ]
    reach = [spread * (kernel - 1) + 1 for kernel, spread in zip(size, dilations, strict=True)]
    outputs, inputs = len(weights) // groups, weights.shape[1]
    channels = []
    for g in range(groups):
        part = wide[g * inputs : (g + 1) * inputs]
        patches = [
            part[(slice(None), *(slice(s, s + r, d) for s, r, d in zip(at, reach, dilations, strict=True)))]
            for at in itertools.product(*steps)
        ]
        mine = slice(g * outputs, (g + 1) * outputs)
        matrix, own_bias = weights[mine].reshape(outputs, -1), None if bias is None else bias[mine]
        found = linear(graph.program, matrix, own_bias, np.stack([patch.ravel() for patch in patches]))
        channels.append(found.T.reshape(outputs, *(len(step) for step in steps)))
    graph.tensors[node.output[0]] = np.concatenate(channels)[None]


def _padded_input(
    graph: Graph, node: NodeProto, x: Addresses, size: tuple[int, ...], strides: list[int], dilations: list[int]
) -> Addresses:
    auto, n = graph.attribute(node, "auto_pad", "NOTSET"), len(size)
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        pads = []
        for have, kernel, stride, spread in zip(x.shape[1:], size, strides, dilations, strict=True):
            total = max(0, (-(-have // stride) - 1) * stride + spread * (kernel - 1) + 1 - have)
            small, large = total // 2, total - total // 2
            pads.append((small, large) if auto == "SAME_UPPER" else (large, small))
    else:
        flat = graph.attribute(node, "pads", [0] * 2 * n) if auto == "NOTSET" else [0] * 2 * n
        pads = list(zip(flat[:n], flat[n:], strict=True))
    zero = int(number(graph.program, 0.0))
    return np.pad(x, [(0, 0), *pads], constant_values=zero)


OPERATORS: dict[str, Operator] = {"Add": _add, "Conv": _conv, "Gemm": _gemm, "MatMul": _matmul}
