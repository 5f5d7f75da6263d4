"""Integer weights after training: scales from recorded signals, activations by table.

Every product with a constant matrix becomes one of integers: inputs with one scale, weights with one per row. Where
a product feeds a function whose values only feed other products, as in a network, the numbers between them stay
integers, and a table of 512 straight segments stands for the function.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeGuard

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper

from robo_rl.deploy.build.c.program import IntegerLinear, Linear, Map, Op, Program, Quantize, padded

Bits = Literal[8, 16]
SEGMENTS = 512
FRACTION = 1 << 16  # of a segment
SUM_LIMIT = 2.0**31 - 1
HEADROOM = {1: 8, 2: 1}  # what sums are multiplied with before a table, by bytes of a weight
MARGIN = 1.25  # over the greatest recorded value
FLATTENS = {"Tanh": 6.0, "Sigmoid": 12.0}  # beyond which the function is constant within 1.3e-5
SHARPEST, COARSEST = 15, 9  # bits of an input that are tried

FUNCTIONS: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "Tanh": np.tanh,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Relu": lambda x: np.maximum(x, 0),
    "Elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "Softplus": lambda x: np.logaddexp(0, x),
}


@dataclass(frozen=True)
class _Scaled:
    """How a product's input is held: real = integer / factor."""

    factor: float
    limit: int


def record(model: ModelProto, program: Program, signals: Mapping[str, np.ndarray]) -> dict[str, NDArray[np.float32]]:
    """What goes into every product with constant weights, (samples, columns), by name of the tensor.

    ``signals`` (n, k) by name include ``state``.
    """
    names = sorted({op.source for op in program.ops if _is_product(op)} - set(signals))
    opened = ModelProto()
    opened.CopyFrom(model)
    opened.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    session = onnxruntime.InferenceSession(opened.SerializeToString(), providers=["CPUExecutionProvider"])
    found = session.run(names, dict(signals)) if names else []
    return dict(zip(names, found, strict=True)) | dict(signals)


def quantize(program: Program, recorded: Mapping[str, NDArray[np.float32]], bits: Bits) -> None:
    """Replace the program's products by those of integers."""
    products = [op for op in program.ops if _is_product(op)]
    scales = {}
    for address in dict.fromkeys(op.input for op in products):
        sharing = [op for op in products if op.input == address]
        scales[address] = _best_scale(sharing, _inputs(sharing[0], recorded), bits)
    readers: dict[int, list[Op]] = {}
    for op in program.ops:
        for address in op.reads():
            readers.setdefault(program.find(address)[0].base, []).append(op)
    results = {program.find(a)[0].base for result in program.results.values() for a in result.ravel().tolist()}
    integers: dict[int, int] = {}  # where the integer form of a float buffer is
    rewritten: list[Op] = []
    fused: set[int] = set()
    for op in program.ops:
        if isinstance(op, Map) and op.output in fused:
            continue
        if not _is_product(op):
            rewritten.append(op)
            continue
        held = scales[op.input]
        if op.input not in integers:
            integers[op.input] = program.buffer("integer", padded(op.weights.shape[1])).base
            columns = op.weights.shape[1]
            rewritten.append(Quantize(op.input, integers[op.input], columns, held.factor, held.limit))
        made = _integer_linear(op, integers[op.input], held, bits)
        function = _only_function(op, readers, results)
        if function is not None and function.output in scales and _feeds_products(function, readers, results):
            x = _inputs(op, recorded)
            before, after = x @ op.weights.T + made.bias[: len(op.weights)], scales[function.output]
            with_table = _with_table(made, function.name, before, after)
            if with_table is not None:
                fused.add(function.output)
                integers[function.output] = program.buffer("integer", padded(function.count)).base
                made = dataclasses.replace(with_table, output=integers[function.output])
        rewritten.append(made)
    program.ops = rewritten


def _inputs(op: Linear, recorded: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float32]:
    """What went into a product, (samples, columns)."""
    x = recorded[op.source].reshape(-1, op.weights.shape[1])
    return x if op.order is None else x[:, op.order]


def _is_product(op: Op) -> TypeGuard[Linear]:
    """Whether it is one product with a constant matrix, of a tensor that can be recorded."""
    return isinstance(op, Linear) and op.count == 1 and bool(op.source)


def _only_function(op: Linear, readers: Mapping[int, list[Op]], results: set[int]) -> Map | None:
    """The function that alone reads a product's output."""
    after = readers.get(op.output, [])
    if len(after) == 1 and op.output not in results:
        (function,) = after
        if isinstance(function, Map) and function.name in FUNCTIONS and function.inputs == ((op.output, 1),):
            return function
    return None


def _feeds_products(function: Map, readers: Mapping[int, list[Op]], results: set[int]) -> bool:
    after = readers.get(function.output, [])
    single = all(_is_product(op) and op.input == function.output for op in after)
    return single and function.output not in results


def _integer_weights(
    weights: NDArray[np.float32], limit: int, bits: Bits
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Integer weights, and their scale per row, such that no sum of products with inputs up to ``limit`` overflows."""
    exact = weights.astype(np.float64)
    room = SUM_LIMIT / HEADROOM[bits // 8]
    size, total = np.abs(exact).max(1), np.abs(exact).sum(1)
    scale = np.maximum(size / (2 ** (bits - 1) - 1), total * limit / (room - limit * exact.shape[1]))
    scale = np.where(scale == 0, 1.0, scale)
    return np.rint(exact / scale[:, None]).astype(np.int64), scale


def _best_scale(sharing: list[Linear], x: NDArray[np.float32], bits: Bits) -> _Scaled:
    """Of all input widths the one with which the recorded products come out best.

    More bits for the input leave fewer for the weights, since their products are summed in 32 bits.
    """
    some = x[:: max(1, len(x) // 1000)].astype(np.float64)
    greatest = max(float(np.abs(x).max()) * MARGIN, 1e-6)
    best, least = None, np.inf
    for width in range(COARSEST, SHARPEST + 1):
        limit = 2**width - 1
        factor = float(np.float32(limit / greatest))
        whole = np.clip(np.rint(some * factor), -limit, limit) / factor
        error = 0.0
        for op in sharing:
            weights, scale = _integer_weights(op.weights, limit, bits)
            error += float(np.square(whole @ (weights * scale[:, None]).T - some @ op.weights.T).mean())
        if error < least:
            best, least = _Scaled(factor, limit), error
    assert best is not None
    return best


def _integer_linear(op: Linear, source: int, held: _Scaled, bits: Bits) -> IntegerLinear:
    rows, columns = op.weights.shape
    whole, scale = _integer_weights(op.weights, held.limit, bits)
    weights = np.zeros((padded(rows), padded(columns)), np.int16 if bits == 16 else np.int8)
    weights[:rows, :columns] = whole
    factors, bias = np.zeros((2, padded(rows)), np.float32)
    factors[:rows] = scale / held.factor
    bias[:rows] = 0.0 if op.bias is None else op.bias
    return IntegerLinear(weights, source, op.output, factors, bias)


def _with_table(op: IntegerLinear, name: str, before: NDArray[np.float32], after: _Scaled) -> IntegerLinear | None:
    """Let a table of the function make integers for the next product; None if the numbers are too large for that."""
    function, reach = FUNCTIONS[name], FLATTENS.get(name)
    low, high = float(before.min()), float(before.max())
    low, high = (-reach, reach) if reach else (low - 0.5 * abs(low), high + 0.5 * abs(high) + 1e-6)
    knots = function(np.linspace(low, high, SEGMENTS + 1)) * after.factor
    values = np.clip(np.rint(knots), -after.limit, after.limit).astype(np.int64)
    table = ((np.diff(values) & 0xFFFF) << 16 | (values[:-1] & 0xFFFF)).astype(np.uint32)
    unit = SEGMENTS * FRACTION / (high - low)
    per_sum = op.scale.astype(np.float64) * unit * 2.0**32 / HEADROOM[op.weights.itemsize]
    places = np.rint(np.stack([per_sum, (op.bias - low) * unit], 1))
    fits = np.abs(places).max() <= SUM_LIMIT / 2 and np.abs(np.diff(values)).max() < 1 << 15
    return dataclasses.replace(op, places=places.astype(np.int32), table=table) if fits else None
