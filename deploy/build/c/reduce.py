"""Operators that look along an axis: sums, extremes, softmax, normalisation."""

from __future__ import annotations

import functools
import math

import numpy as np
from onnx import NodeProto

from robo_rl.deploy.build.c.elementwise import UNROLLED, elementwise, number
from robo_rl.deploy.build.c.graph import Graph, Operator
from robo_rl.deploy.build.c.program import Addresses, Program, Rows

KERNELS = {"Add": "row_sums", "Max": "row_maxima", "Min": "row_minima", "Mul": "row_products"}


def rows(
    program: Program, name: str, x: Addresses, *shared: Addresses, numbers: tuple[float, ...] = (), width: int = 0
) -> Addresses:
    """A kernel on every row of x (rows, columns); its output is (rows, width or columns)."""
    count, columns = x.shape
    output = program.buffer("arena", count * (width or columns))
    beside = tuple(program.side_by_side(other) for other in shared)
    program.ops.append(Rows(name, program.side_by_side(x), beside, numbers, output.base, count, columns))
    return output.addresses.reshape(count, -1)


def reduced(program: Program, join: str, x: Addresses) -> Addresses:
    """(rows,): the elements of every row of x (rows, columns) joined by a binary expression."""
    if x.size <= 2 * UNROLLED:
        return functools.reduce(functools.partial(elementwise, program, join), x.T)
    return rows(program, KERNELS[join], x, width=1)[:, 0]


def _axes(graph: Graph, node: NodeProto, rank: int) -> list[int]:
    """The axes of a reduction: an operand in newer opsets, an attribute in older ones; all by default."""
    if graph.has_input(node, 1):
        given = graph.constant(node, 1)
        if given is None:
            raise graph.refusal(node, "its axes are computed at run time; make them constant")
        axes = [int(axis) for axis in given]
    else:
        axes = list(graph.attribute(node, "axes", []))
    if not axes and not graph.attribute(node, "noop_with_empty_axes", 0):
        axes = list(range(rank))
    return sorted(axis % rank for axis in axes)


def _reduction(join: str, before: str | None = None, after: str | None = None) -> Operator:
    def operator(graph: Graph, node: NodeProto) -> None:
        x, program = graph.addresses(node, node.input[0]), graph.program
        axes = _axes(graph, node, x.ndim)
        kept = [axis for axis in range(x.ndim) if axis not in axes]
        shape = [x.shape[axis] for axis in kept]
        if before:
            x = elementwise(program, before, x)
        found = x if not axes else reduced(program, join, x.transpose(kept + axes).reshape(math.prod(shape), -1))
        if after == "Mean":
            found = elementwise(program, "Div", found, number(program, x.size / found.size))
        elif after:
            found = elementwise(program, after, found)
        if graph.attribute(node, "keepdims", 1):
            shape = [1 if axis in axes else x.shape[axis] for axis in range(x.ndim)]
        graph.tensors[node.output[0]] = found.reshape(shape)

    return operator


def _along_last(graph: Graph, node: NodeProto, name: str) -> None:
    x = graph.addresses(node, node.input[0])
    axis = graph.attribute(node, "axis", -1)
    moved = np.moveaxis(x, axis, -1)
    found = rows(graph.program, name, moved.reshape(-1, moved.shape[-1])).reshape(moved.shape)
    graph.tensors[node.output[0]] = np.moveaxis(found, -1, axis)


def _softmax(graph: Graph, node: NodeProto) -> None:
    _along_last(graph, node, "row_softmax")


def _log_softmax(graph: Graph, node: NodeProto) -> None:
    _along_last(graph, node, "row_softmax")
    graph.tensors[node.output[0]] = elementwise(graph.program, "Log", graph.tensors[node.output[0]])


def _log_sum_exp(graph: Graph, node: NodeProto) -> None:
    _reduction("Add", before="Exp", after="Log")(graph, node)


def _layer_normalization(graph: Graph, node: NodeProto) -> None:
    if len([name for name in node.output if name]) > 1:
        raise graph.refusal(node, "its mean or deviation is used as well; only the normalised values are computed")
    x, scale = graph.addresses(node, node.input[0]), graph.addresses(node, node.input[1])
    axis = graph.attribute(node, "axis", -1) % x.ndim
    columns = math.prod(x.shape[axis:])
    bias = graph.addresses(node, node.input[2]) if graph.has_input(node, 2) else number(graph.program, 0.0)
    shared = [np.broadcast_to(part, x.shape[axis:]).reshape(columns) for part in (scale, bias)]
    epsilon = (graph.attribute(node, "epsilon", 1e-5),)
    found = rows(graph.program, "row_normalized", x.reshape(-1, columns), *shared, numbers=epsilon)
    graph.tensors[node.output[0]] = found.reshape(x.shape)


def _batch_normalization(graph: Graph, node: NodeProto) -> None:
    if graph.attribute(node, "training_mode", 0):
        raise graph.refusal(node, "it is in training mode; export the policy in evaluation mode")
    scale, bias, mean, variance = (graph.constant(node, i) for i in range(1, 5))
    if scale is None or bias is None or mean is None or variance is None:
        raise graph.refusal(node, "its statistics are computed at run time; make them constant")
    x = graph.addresses(node, node.input[0])
    factor = scale / np.sqrt(variance + np.float32(graph.attribute(node, "epsilon", 1e-5)))
    shape = (-1, *(1,) * (x.ndim - 2))
    scaled = elementwise(graph.program, "Mul", x, graph.program.constant(factor.reshape(shape).astype(np.float32)))
    offset = graph.program.constant((bias - mean * factor).reshape(shape).astype(np.float32))
    graph.tensors[node.output[0]] = elementwise(graph.program, "Add", scaled, offset)


OPERATORS: dict[str, Operator] = {
    "BatchNormalization": _batch_normalization,
    "GlobalAveragePool": lambda graph, node: _global_pool(graph, node, "Add"),
    "GlobalMaxPool": lambda graph, node: _global_pool(graph, node, "Max"),
    "LayerNormalization": _layer_normalization,
    "LogSoftmax": _log_softmax,
    "ReduceL1": _reduction("Add", before="Abs"),
    "ReduceL2": _reduction("Add", before="Square", after="Sqrt"),
    "ReduceLogSum": _reduction("Add", after="Log"),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _reduction("Max"),
    "ReduceMean": _reduction("Add", after="Mean"),
    "ReduceMin": _reduction("Min"),
    "ReduceProd": _reduction("Mul"),
    "ReduceSum": _reduction("Add"),
    "ReduceSumSquare": _reduction("Add", before="Square"),
    "Softmax": _softmax,
}


def _global_pool(graph: Graph, node: NodeProto, join: str) -> None:
    x = graph.addresses(node, node.input[0])
    found = reduced(graph.program, join, x.reshape(x.shape[0] * x.shape[1], -1))
    if join == "Add":
        found = elementwise(graph.program, "Div", found, number(graph.program, x[0, 0].size))
    graph.tensors[node.output[0]] = found.reshape(x.shape[0], x.shape[1], *(1,) * (x.ndim - 2))
