"""What each of ONNX's operators does with the rows of a batch, for ``robo_rl.deploy.build.rows``: keeps them apart, or
mixes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto, NodeProto, helper

SIZES = (1, 2, 3, 7)
"""Rows of the batches with which shapes are found. On a robot it is 1."""
ENDLESS = 1 << 30
"""An end of a slice from which on it goes to the end."""


class Along(NamedTuple):
    """Rows one after the other along an axis, ``block`` places for each."""

    axis: int
    block: int


class Sized(NamedTuple):
    """Whole numbers that follow from the batch's size; ``plain``: they are constants, or constants times that size."""

    plain: bool


FIXED = None
"""Made of constants: the same in every batch."""
Value = Along | Sized | None


class MixesError(Exception):
    """A node mixes rows, counts them or tells their places: so says the message."""


class UnknownError(Exception):
    """It is not known here whether a node keeps rows apart."""


@dataclass(frozen=True)
class Seen:
    """What onnxruntime gives for every value of a graph, for batches of ``SIZES``."""

    shapes: dict[str, list[tuple[int, ...]]]
    numbers: dict[str, list[np.ndarray]]
    """Of small values; empty for others."""
    version: int
    """Of ONNX's operators."""

    @staticmethod
    def of(model: ModelProto, inputs: Callable[[int], dict[str, np.ndarray]]) -> Seen:
        opened = ModelProto()
        opened.CopyFrom(model)
        graph = opened.graph
        there = {value.name for value in graph.output}
        names = [name for node in graph.node for name in node.output if name and name not in there]
        graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(opened.SerializeToString(), options, providers=["CPUExecutionProvider"])
        given = [output.name for output in session.get_outputs()]
        constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
        shapes = {name: [value.shape] * len(SIZES) for name, value in constants.items()}
        numbers = {name: [value] * len(SIZES) for name, value in constants.items()}
        for n in SIZES:
            fed = inputs(n)
            for name, value in {**fed, **dict(zip(given, session.run(None, fed), strict=True))}.items():
                shapes.setdefault(name, []).append(value.shape)
                numbers.setdefault(name, []).append(value if value.size <= 64 else np.zeros(0))
        return Seen(shapes, numbers, model.opset_import[0].version)

    def rank(self, name: str) -> int:
        return len(self.shapes[name][0])

    def fixed(self, name: str) -> list[int]:
        """The numbers of a small constant."""
        return [int(number) for number in np.ravel(self.numbers[name][0])]

    def placed(self, name: str) -> Along:
        """The one axis that is as many times as long as there are rows."""
        shapes = self.shapes[name]
        first = shapes[0]
        for axis, block in enumerate(first):
            grown = [(*first[:axis], n * block, *first[axis + 1 :]) for n in SIZES]
            if block and grown == shapes:
                return Along(axis, block)
        raise UnknownError(f"the shape of '{name}' is {first}, for {SIZES[-1]} rows {shapes[-1]}")

    def same(self, name: str) -> bool:
        return all(np.array_equal(self.numbers[name][0], other) for other in self.numbers[name][1:])


class Call(NamedTuple):
    """A node with what is known of its operands."""

    node: NodeProto
    operands: list[Value]
    seen: Seen

    def attribute(self, name: str, default: Any) -> Any:
        found = next((a for a in self.node.attribute if a.name == name), None)
        return default if found is None else helper.get_attribute_value(found)

    def rank(self, k: int) -> int:
        return self.seen.rank(self.node.input[k])

    def has(self, k: int) -> bool:
        return k < len(self.node.input) and bool(self.node.input[k])

    def numbers(self, k: int) -> list[int]:
        """Of the operand k, which must be a constant."""
        if self.operands[k] is not FIXED:
            raise MixesError("goes by numbers that are not fixed")
        return self.seen.fixed(self.node.input[k])

    def axes(self, k: int) -> list[int]:
        """From an attribute in old versions of ONNX, from the operand k in new ones; all where neither is there."""
        given = self.numbers(k) if self.has(k) else self.attribute("axes", None)
        rank = self.rank(0)
        if not given:
            return [] if self.attribute("noop_with_empty_axes", 0) else list(range(rank))
        return [axis % rank for axis in given]

    def require_fixed(self, *places: int) -> None:
        if any(self.has(k) and self.operands[k] is not FIXED for k in places):
            raise UnknownError("an operand is no constant")

    def rows(self, k: int = 0) -> Along:
        """Where the rows of operand k are. Other operands are constants, or this raises."""
        value = self.operands[k]
        if not isinstance(value, Along):
            raise UnknownError("its first operand has no rows")
        return value

    def require_apart(self, axes: Sequence[int], what: str) -> Along:
        """MixesError if the rows of the first operand are along one of these axes."""
        value = self.rows()
        if value.axis in axes:
            raise MixesError(f"{what} the rows of a batch")
        return value


def _elementwise(call: Call) -> None:
    """Operands are aligned at their last axes; constants are as long as one row there, and so the same for all."""
    results = [call.seen.rank(name) for name in call.node.output if name]
    places = {
        (value.axis + results[0] - call.rank(k), value.block)
        for k, value in enumerate(call.operands)
        if isinstance(value, Along)
    }
    if len(places) > 1:
        raise MixesError("joins rows along one axis with rows along another")
    ((axis, block),) = places
    if any(call.seen.placed(name) != Along(axis, block) for name in call.node.output if name):
        raise UnknownError("rows are along another axis than expected")


def _reshaped(call: Call) -> None:
    """Rows stay one after the other, block by block, where as much comes before them as did."""
    call.require_fixed(1)
    rows = call.rows()
    after = call.seen.placed(call.node.output[0])
    if _before(call, call.node.input[0], rows) != _before(call, call.node.output[0], after):
        raise UnknownError("what comes before the rows changes")


def _before(call: Call, name: str, rows: Along) -> int:
    """Blocks of all rows in one value."""
    return math.prod(call.seen.shapes[name][0][: rows.axis])


def _squeezed(call: Call) -> None:
    call.require_fixed(1)
    rows = call.rows()
    if call.node.op_type == "Squeeze":
        gone = [axis for axis in call.axes(1) if axis < rows.axis]
        expected = rows.axis - len(gone)
        if rows.axis in call.axes(1) and (call.has(1) or call.attribute("axes", None)):
            raise MixesError("takes the axis of the rows away")
    else:
        rank = call.seen.rank(call.node.output[0])
        given = call.numbers(1) if call.has(1) else call.attribute("axes", [])
        new = {axis % rank for axis in given}
        expected = [axis for axis in range(rank) if axis not in new][rows.axis]
    if call.seen.placed(call.node.output[0]) != Along(expected, rows.block):
        raise UnknownError("rows are along another axis than expected")


def _transposed(call: Call) -> None:
    call.rows()  # where the rows go is seen by the shapes, and within them nothing changes places


def _joined(call: Call) -> None:
    axis = call.attribute("axis", 0) % call.rank(next(k for k, v in enumerate(call.operands) if isinstance(v, Along)))
    places = {value for value in call.operands if isinstance(value, Along)}
    if any(place.axis == axis for place in places):
        raise MixesError("joins rows with others")
    if len(places) > 1 or FIXED in call.operands:
        raise MixesError("joins rows along one axis with rows along another")


def _split(call: Call) -> None:
    call.require_fixed(1)
    call.require_apart([call.attribute("axis", 0) % call.rank(0)], "takes apart")


def _sliced(call: Call) -> None:
    starts, ends = call.numbers(1), call.numbers(2)
    axes = call.numbers(3) if call.has(3) else list(range(len(starts)))
    steps = call.numbers(4) if call.has(4) else [1] * len(starts)
    rows = call.rows()
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if axis % call.rank(0) == rows.axis and (start != 0 or end < ENDLESS or step != 1):
            raise MixesError("chooses among the rows of a batch")


def _gathered(call: Call) -> None:
    data, index = call.operands[:2]
    if isinstance(data, Along) and isinstance(index, Along):
        raise MixesError("chooses by one row among others")
    if isinstance(data, Along):
        call.require_apart([call.attribute("axis", 0) % call.rank(0)], "chooses among")


def _gathered_by_places(call: Call) -> None:
    """Each place, along the last axis of the indices, is one of the first axes of the data."""
    data, index = call.operands[:2]
    if call.attribute("batch_dims", 0):
        raise UnknownError("axes of data and indices together")
    if isinstance(data, Along) and isinstance(index, Along):
        raise MixesError("chooses by one row among others")
    shape = call.seen.shapes[call.node.input[1]][0]
    if isinstance(data, Along):
        call.require_apart(range(shape[-1]), "chooses among")
    elif isinstance(index, Along) and index.axis == len(shape) - 1:
        raise MixesError("takes one row for a part of another's place")


def _gathered_elements(call: Call) -> None:
    axis = call.attribute("axis", 0) % call.rank(0)
    places = set(call.operands)
    rows = call.operands[0]
    if not isinstance(rows, Along) or len(places) > 1:
        raise UnknownError("constants and rows together")
    call.require_apart([axis], "chooses among")


def _reduced(call: Call) -> None:
    call.require_apart(call.axes(1), "reduces")


def _over_axis(default: int, what: str) -> Callable[[Call], None]:
    def rule(call: Call) -> None:
        call.require_apart([call.attribute("axis", default) % call.rank(0)], what)

    return rule


def _softmax(call: Call) -> None:
    """Before version 13 over an axis and all after it."""
    first = call.attribute("axis", -1 if call.seen.version >= 13 else 1) % call.rank(0)
    over = [first] if call.seen.version >= 13 else range(first, call.rank(0))
    call.require_apart(over, "normalizes over")


def _from_axis(call: Call) -> None:
    """Normalized over an axis and all after it."""
    call.require_fixed(1, 2)
    call.require_apart(range(call.attribute("axis", -1) % call.rank(0), call.rank(0)), "normalizes over")


def _summed_up(call: Call) -> None:
    call.require_apart([axis % call.rank(0) for axis in call.numbers(1)], "sums up")


def _largest(call: Call) -> None:
    call.require_fixed(1)
    call.require_apart([call.attribute("axis", -1) % call.rank(0)], "sorts")


def _normalized_by_batch(call: Call) -> None:
    if call.attribute("training_mode", 0):
        raise MixesError("normalizes by the rows of a batch (training_mode)")
    call.require_fixed(1, 2, 3, 4)
    call.require_apart([1], "takes for channels")


def _normalized_by_axes(call: Call) -> None:
    call.require_apart([axis % call.rank(0) for axis in call.attribute("axes", [0, 2, 3])], "normalizes over")


def _quantized_by_batch(call: Call) -> None:
    raise MixesError("scales by the greatest value of a whole batch")


def _quantized(call: Call) -> None:
    call.require_fixed(1, 2)
    if call.rank(1):
        call.require_apart([call.attribute("axis", 1) % call.rank(0)], "scales one by one")


def _first_axis(call: Call) -> None:
    """Convolutions and pools: the first axis is that of samples, which are apart."""
    call.require_fixed(*range(1, len(call.operands)))
    if call.rows().axis != 0:
        raise MixesError("takes the rows of a batch for channels or places")


def _multiplied(call: Call) -> None:
    one, other = call.operands[:2]
    ranks = [call.rank(0), call.rank(1)]
    inner = [ranks[0] - 1, max(0, ranks[1] - 2)]
    for k, value in enumerate((one, other)):
        if isinstance(value, Along) and value.axis == inner[k]:
            raise MixesError("sums over the rows of a batch")
    if isinstance(one, Along) and isinstance(other, Along):
        apart = [rank - value.axis for rank, value in zip(ranks, (one, other), strict=True)]
        if apart[0] != apart[1] or min(apart) <= 2 or one.block != other.block:
            raise MixesError("multiplies rows by other rows")


def _multiplied_and_added(call: Call) -> None:
    one, other = call.operands[:2]
    if not isinstance(one, Along) or other is not FIXED:
        raise MixesError("multiplies by rows") if isinstance(other, Along) else UnknownError("only its sum has rows")
    if one.axis != (1 if call.attribute("transA", 0) else 0):
        raise MixesError("sums over the rows of a batch")
    if call.has(2) and isinstance(call.operands[2], Along):
        added = call.operands[2]
        if added != Along(call.rank(2) - 2, one.block):
            raise MixesError("adds rows to other rows")


def _einsum(call: Call) -> None:
    equation = call.attribute("equation", b"").decode().replace(" ", "")
    left, arrow, right = equation.partition("->")
    if "." in equation or not arrow:
        raise UnknownError("its equation")
    terms = left.split(",")
    labels = {
        (term[value.axis], value.block)
        for term, value in zip(terms, call.operands, strict=True)
        if isinstance(value, Along)
    }
    if len(labels) > 1:
        raise MixesError("multiplies rows by other rows")
    ((label, _),) = labels
    if label not in right:
        raise MixesError("sums over the rows of a batch")
    if any(len(set(term)) < len(term) for term in (*terms, right)):
        raise UnknownError("a label comes twice")


def _recurrent(call: Call) -> None:
    call.require_fixed(1, 2, 3, 4, 7)
    samples = 0 if call.attribute("layout", 0) else 1
    for k in (0, 5, 6):
        if call.has(k) and isinstance(call.operands[k], Along) and call.operands[k].axis != samples:  # type: ignore[union-attr]
            raise MixesError("takes the rows of a batch for times or features")
    call.rows()


def _attention(call: Call) -> None:
    if any(value != Along(0, 1) for value in call.operands[:3]) or any(call.operands[3:]):
        raise UnknownError("its operands")


def _padded(call: Call) -> None:
    call.require_fixed(2)
    if call.has(3):
        raise UnknownError("its axes")
    rows, pads = call.rows(), call.numbers(1)
    if pads[rows.axis] or pads[rows.axis + call.rank(0)]:
        raise MixesError("adds rows to a batch")


def _last_two(call: Call) -> None:
    call.require_fixed(1)
    call.require_apart([call.rank(0) - 2, call.rank(0) - 1], "tells the places of")


def _places_told(call: Call) -> None:
    raise MixesError("tells the places of the rows of a batch")


def _tiled(call: Call) -> None:
    repeats = call.numbers(1)
    if repeats[call.rows().axis] != 1:
        raise UnknownError("rows that come again")


def _one_hot(call: Call) -> None:
    call.require_fixed(1, 2)
    call.rows()


def _reversed(call: Call) -> None:
    if call.rows().axis != call.attribute("batch_axis", 1):
        raise MixesError("turns the rows of a batch round")
    call.require_fixed(1)


def _flattened(call: Call) -> None:
    rows = call.rows()
    if rows.axis >= call.attribute("axis", 1) % (call.rank(0) + 1):
        raise MixesError("makes one row of a batch")
    _reshaped(call)


_ELEMENTWISE = (
    "Abs Acos Acosh Add And Asin Asinh Atan Atanh BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Celu "
    "Clip Cos Cosh Div Elu Equal Erf Exp Expand Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish Identity IsInf "
    "IsNaN LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu "
    "Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum Swish Tan Tanh ThresholdedRelu Where Xor"
)
_REDUCING = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare"
_FIRST = (
    "AveragePool Conv ConvInteger ConvTranspose DepthToSpace GlobalAveragePool GlobalMaxPool GroupNormalization "
    "InstanceNormalization LRN LpPool MaxPool QLinearConv RotaryEmbedding SpaceToDepth"
)
RULES: dict[str, Callable[[Call], None]] = {
    **dict.fromkeys(_ELEMENTWISE.split(), _elementwise),
    **{f"Reduce{name}": _reduced for name in _REDUCING.split()},
    **dict.fromkeys(_FIRST.split(), _first_axis),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _recurrent),
    **dict.fromkeys(("MatMul", "MatMulInteger"), _multiplied),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _from_axis),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), _quantized),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), _softmax),
    "LpNormalization": _over_axis(-1, "normalizes over"),
    **dict.fromkeys(("ArgMax", "ArgMin"), _over_axis(0, "compares")),
    **dict.fromkeys(("Squeeze", "Unsqueeze"), _squeezed),
    **dict.fromkeys(("Trilu", "Det"), _last_two),
    "Attention": _attention, "BatchNormalization": _normalized_by_batch, "Concat": _joined, "CumSum": _summed_up,
    "DynamicQuantizeLinear": _quantized_by_batch, "Einsum": _einsum, "EyeLike": _places_told, "Flatten": _flattened,
    "Gather": _gathered, "GatherElements": _gathered_elements,
    "GatherND": _gathered_by_places, "Gemm": _multiplied_and_added,
    "MeanVarianceNormalization": _normalized_by_axes, "OneHot": _one_hot, "Pad": _padded, "Range": _places_told,
    "Reshape": _reshaped, "ReverseSequence": _reversed, "ScatterElements": _gathered_elements, "Slice": _sliced,
    "Split": _split, "Tile": _tiled, "TopK": _largest, "Transpose": _transposed,
}  # fmt: skip
"""What of each operator keeps rows apart: raises MixesError or UnknownError where it does not."""
