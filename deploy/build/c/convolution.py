"""The operator Conv: a kernel in one and two dimensions, one product per place in more."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto

from robo_rl.deploy.build.c.elementwise import number
from robo_rl.deploy.build.c.graph import Graph, Operator
from robo_rl.deploy.build.c.linear import Weights, linear
from robo_rl.deploy.build.c.program import Addresses, Convolution, Program, padded


@dataclass(frozen=True)
class _Geometry:
    """Of a convolution; one number per dimension."""

    size: tuple[int, ...]
    strides: tuple[int, ...]
    spread: tuple[int, ...]
    """Between the places of a kernel."""
    pads: tuple[tuple[int, int], ...]
    """Zeros before and after."""

    def outputs(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Places of the output for an input of that shape."""
        sides = zip(shape, self.size, self.strides, self.spread, self.pads, strict=True)
        return tuple((have + sum(pad) - spread * (size - 1) - 1) // s + 1 for have, size, s, spread, pad in sides)


def _conv(graph: Graph, node: NodeProto) -> None:
    weights, bias = graph.constant(node, 1), graph.constant(node, 2)
    if weights is None or (bias is None and graph.has_input(node, 2)):
        raise graph.refusal(node, "its weights or bias are computed at run time; only constant ones are supported")
    x = graph.addresses(node, node.input[0])
    if len(x) != 1:
        raise graph.refusal(node, f"it convolves {len(x)} inputs at once; expected a batch of 1")
    groups = graph.attribute(node, "group", 1)
    geometry = _geometry(graph, node, x.shape[2:], weights.shape[2:])
    outputs, inputs = len(weights) // groups, weights.shape[1]
    convolve = _planar if len(geometry.size) <= 2 else _spatial
    channels = []
    for g in range(groups):
        part, mine = x[0, g * inputs : (g + 1) * inputs], slice(g * outputs, (g + 1) * outputs)
        channels.append(convolve(graph.program, geometry, weights[mine], None if bias is None else bias[mine], part))
    graph.tensors[node.output[0]] = np.concatenate(channels)[None]


def _geometry(graph: Graph, node: NodeProto, shape: Sequence[int], size: tuple[int, ...]) -> _Geometry:
    n, auto = len(size), graph.attribute(node, "auto_pad", "NOTSET")
    strides = tuple(graph.attribute(node, "strides", [1] * n))
    spread = tuple(graph.attribute(node, "dilations", [1] * n))
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        pads = []
        for have, kernel, stride, apart in zip(shape, size, strides, spread, strict=True):
            total = max(0, (-(-have // stride) - 1) * stride + apart * (kernel - 1) + 1 - have)
            small, large = total // 2, total - total // 2
            pads.append((small, large) if auto == "SAME_UPPER" else (large, small))
    else:
        flat = graph.attribute(node, "pads", [0] * 2 * n) if auto == "NOTSET" else [0] * 2 * n
        pads = list(zip(flat[:n], flat[n:], strict=True))
    return _Geometry(size, strides, spread, tuple(pads))


def _planar(program: Program, geometry: _Geometry, weights: Weights, bias: Weights | None, x: Addresses) -> Addresses:
    """(outputs, *places) of x (channels, *shape), by the kernel; in one dimension the height is one."""
    shape = geometry.outputs(x.shape[1:])
    flat = x.ndim == 2
    if flat:
        x, weights = x[:, None], weights[:, :, None]
    strides, ends = _steps(x), (program.find(int(address))[0] for address in (x.flat[0], x.flat[-1]))
    if strides is None or next(ends) is not next(ends):  # two buffers end up anywhere
        start = program.side_by_side(x)
        strides = (x.shape[1] * x.shape[2], x.shape[2], 1)
    else:
        start = int(x[0, 0, 0])
    sides = ((1, *numbers) if flat else numbers for numbers in (geometry.strides, geometry.spread, shape))
    (stride_y, stride_x), (spread_y, spread_x), (rows, columns) = sides
    above, left = (0, geometry.pads[0][0]) if flat else (geometry.pads[0][0], geometry.pads[1][0])
    numbers = (
        *x.shape, *strides, *weights.shape[2:], stride_y, stride_x, spread_y, spread_x, above, left, rows, columns,
    )  # fmt: skip
    count = len(weights)
    matrix = weights.transpose(0, 2, 3, 1).reshape(count, -1).astype(np.float32)
    patch = program.buffer("arena", matrix.shape[1])
    output = program.buffer("arena", rows * columns * padded(count))
    program.ops.append(Convolution(numbers, matrix, bias, start, patch.base, output.base))
    return output.addresses.reshape(-1, padded(count))[:, :count].T.reshape(count, *shape)


def _steps(x: Addresses) -> tuple[int, int, int] | None:
    """How far apart channels, rows and columns of x lie, if they lie regularly."""
    steps = tuple(int(x.take(1, axis).flat[0] - x.flat[0]) if x.shape[axis] > 1 else 0 for axis in range(3))
    if min(steps) < 0:
        return None
    regular = x.flat[0] + sum(step * place for step, place in zip(steps, np.indices(x.shape), strict=True))
    return steps if np.array_equal(x, regular) else None  # type: ignore[return-value]


def _spatial(program: Program, geometry: _Geometry, weights: Weights, bias: Weights | None, x: Addresses) -> Addresses:
    """(outputs, *places) of x (channels, *shape): one product per place, of the weights with the patch there."""
    shape = geometry.outputs(x.shape[1:])
    wide = np.pad(x, [(0, 0), *geometry.pads], constant_values=int(number(program, 0.0)))
    reach = [spread * (size - 1) + 1 for size, spread in zip(geometry.size, geometry.spread, strict=True)]
    steps = [range(0, stride * count, stride) for stride, count in zip(geometry.strides, shape, strict=True)]
    patches = [
        wide[(slice(None), *(slice(s, s + r, d) for s, r, d in zip(at, reach, geometry.spread, strict=True)))]
        for at in itertools.product(*steps)
    ]
    found = linear(program, weights.reshape(len(weights), -1), bias, np.stack([patch.ravel() for patch in patches]))
    return found.T.reshape(len(weights), *shape)


OPERATORS: dict[str, Operator] = {"Conv": _conv}
