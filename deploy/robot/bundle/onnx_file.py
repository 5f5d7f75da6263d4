"""What may be in a bundle's file, checked byte by byte before anything else reads it. Pure Python, no onnx needed.

    entries = onnx_file.metadata(data)

An ONNX file is a message of Protocol Buffers: fields with a number, a wire type and a value, one after the other.
Other readers skip what they don't know and merge what comes twice, each in its own way; here, whatever is unknown,
comes twice or is not needed by a policy is refused, so that all readers see the same. The graph is a straight line of
operators out of ``OPERATORS``, which neither loop nor branch nor draw at random nor read other files: a step always
ends, and the same inputs always give the same commands. Weights are in the file itself, within its digest.

How much memory and time it takes to run is tried out afterwards (``robo_rl.deploy.robot.bundle.trial``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

MAX_FIELDS = 300_000
"""Of the whole file: as many as a reader in Python can look at in a second."""
MAX_NODES, MAX_TENSORS, MAX_ENDS, MAX_ATTRIBUTES = 10_000, 10_000, 512, 64
MAX_ELEMENTS = 1 << 25
"""Of one tensor: 128 MiB of float32."""
MAX_DIMENSIONS = 8
MAX_NAME, MAX_TEXT = 1024, 1 << 16
MAX_METADATA = 1 << 25
OLDEST, NEWEST = 11, 25
"""Versions of ONNX's operators."""

_OPERATORS = (
    "Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh Attention AveragePool BatchNormalization BitwiseAnd "
    "BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Celu Clip Compress Concat Constant ConstantOfShape Conv "
    "ConvInteger ConvTranspose Cos Cosh CumSum DepthToSpace DequantizeLinear Det Div DynamicQuantizeLinear Einsum Elu "
    "Equal Erf Exp Expand EyeLike Flatten Floor GRU Gather GatherElements GatherND Gelu Gemm GlobalAveragePool "
    "GlobalMaxPool Greater GreaterOrEqual GroupNormalization HardSigmoid HardSwish Hardmax Identity "
    "InstanceNormalization IsInf IsNaN LRN LSTM LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax "
    "LpNormalization LpPool MatMul MatMulInteger Max MaxPool Mean MeanVarianceNormalization Min Mish Mod Mul Neg Not "
    "OneHot Or PRelu Pad Pow QLinearConv QLinearMatMul QuantizeLinear RMSNormalization RNN Range Reciprocal ReduceL1 "
    "ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu "
    "Reshape ReverseSequence RotaryEmbedding Round ScatterElements ScatterND Selu Shape Shrink Sigmoid Sign Sin Sinh "
    "Size Slice Softmax Softplus Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum Swish Tan Tanh TensorScatter "
    "ThresholdedRelu Tile TopK Transpose Trilu Unsqueeze Where Xor"
)
OPERATORS = frozenset(_OPERATORS.split())
"""ONNX's own operators that a graph may have."""
SIZES = {
    "ConstantOfShape": (0,), "Expand": (1,), "OneHot": (1,), "Pad": (1,), "Range": (0, 1, 2), "Reshape": (1,),
    "Tile": (1,), "TopK": (1,),
}  # fmt: skip
"""Operands that say how large a result is: no signal may have a part in them, or a robot's memory would depend on what
it sees."""
WHY = {
    **dict.fromkeys(("Loop", "Scan", "If", "SequenceMap"), "a step must always end, and take the same time"),
    **dict.fromkeys(
        ("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
         "RandomUniformLike"),
        "a policy on a robot must not draw at random; export its mean action",
    ),
}  # fmt: skip
"""Why some others are refused."""

ITEM_BYTES = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8}
"""By TensorProto.DataType: numbers and booleans; no text, nothing complex, nothing narrower than a byte."""

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_KINDS = {VARINT: "a number", FIXED64: "eight bytes", BYTES: "bytes", FIXED32: "four bytes"}


class GraphError(ValueError):
    """A file is not what a bundle may be. The message names the field and what was expected."""


class Span(NamedTuple):
    """A part of the file."""

    start: int
    end: int


Value = int | Span


@dataclass(frozen=True)
class _Field:
    name: str
    wires: tuple[int, ...]
    many: bool = False
    most: int = MAX_TEXT
    """Bytes, or how many there may be of messages."""


def _number(name: str) -> _Field:
    return _Field(name, (VARINT,))


def _text(name: str, most: int = MAX_NAME) -> _Field:
    return _Field(name, (BYTES,), most=most)


def _part(name: str) -> _Field:
    return _Field(name, (BYTES,), most=1 << 40)


def _parts(name: str) -> _Field:
    return _Field(name, (BYTES,), True, 1 << 40)


def _packed(name: str, single: int) -> _Field:
    """Numbers, side by side or one by one."""
    return _Field(name, (BYTES, single), True, 1 << 40)


MODEL = {
    1: _number("ir_version"), 2: _text("producer_name"), 3: _text("producer_version"), 4: _text("domain"),
    5: _number("model_version"), 6: _text("doc_string", MAX_TEXT), 7: _part("graph"), 8: _parts("opset_import"),
    14: _parts("metadata_props"),
}  # fmt: skip
ENTRY = {1: _text("key", MAX_TEXT), 2: _text("value", MAX_METADATA)}
OPSET = {1: _text("domain"), 2: _number("version")}
GRAPH = {
    1: _parts("node"), 2: _text("name"), 5: _parts("initializer"), 10: _text("doc_string", MAX_TEXT),
    11: _parts("input"), 12: _parts("output"), 13: _parts("value_info"), 16: _parts("metadata_props"),
}  # fmt: skip
NODE = {
    1: _Field("input", (BYTES,), True, MAX_NAME), 2: _Field("output", (BYTES,), True, MAX_NAME), 3: _text("name"),
    4: _text("op_type"), 5: _parts("attribute"), 6: _text("doc_string", MAX_TEXT), 7: _text("domain"),
    9: _parts("metadata_props"),
}  # fmt: skip
ATTRIBUTE = {
    1: _text("name"), 2: _Field("f", (FIXED32,)), 3: _number("i"), 4: _text("s", MAX_TEXT), 5: _part("t"),
    7: _packed("floats", FIXED32), 8: _packed("ints", VARINT), 9: _Field("strings", (BYTES,), True),
    13: _text("doc_string", MAX_TEXT), 20: _number("type"),
}  # fmt: skip
TENSOR = {
    1: _packed("dims", VARINT), 2: _number("data_type"), 4: _packed("float_data", FIXED32),
    5: _packed("int32_data", VARINT), 7: _packed("int64_data", VARINT), 8: _text("name"), 9: _part("raw_data"),
    10: _packed("double_data", FIXED64), 11: _packed("uint64_data", VARINT), 12: _text("doc_string", MAX_TEXT),
    14: _number("data_location"),
}  # fmt: skip
VALUE_INFO = {1: _text("name"), 2: _part("type"), 3: _text("doc_string", MAX_TEXT), 4: _parts("metadata_props")}
TYPE = {1: _part("tensor_type"), 6: _text("denotation")}
TENSOR_TYPE = {1: _number("elem_type"), 2: _part("shape")}
SHAPE = {1: _parts("dim")}
DIMENSION = {1: _number("dim_value"), 2: _text("dim_param"), 3: _text("denotation")}

FORBIDDEN = {
    id(MODEL): {20: "training_info", 25: "functions", 26: "configuration"},
    id(GRAPH): {14: "quantization_annotation", 15: "sparse_initializer"},
    id(NODE): {8: "overload", 10: "device_configurations"},
    id(ATTRIBUTE): {
        6: "g (a graph within the graph)", 10: "tensors", 11: "graphs (graphs within the graph)", 14: "tp",
        15: "type_protos", 21: "ref_attr_name", 22: "sparse_tensor", 23: "sparse_tensors",
    },
    id(TENSOR): {3: "segment", 6: "string_data", 13: "external_data (weights in another file)", 16: "metadata_props"},
    id(TYPE): {4: "sequence_type", 5: "map_type", 8: "sparse_tensor_type", 9: "optional_type", 7: "opaque_type"},
}  # fmt: skip
"""Fields that ONNX has, but no bundle."""
DATA = {
    "float_data": (4, (1,)), "int32_data": (1, (2, 3, 4, 5, 6, 9, 10)), "int64_data": (1, (7,)),
    "double_data": (8, (11,)), "uint64_data": (1, (12, 13)),
}  # fmt: skip
"""Least bytes of an element, and the types that are kept there."""


def metadata(data: bytes) -> dict[str, str]:
    """The file's entries of metadata, by key, if it is one that a bundle may be. Raises GraphError."""
    return _Reader(data).model()


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.left = data, MAX_FIELDS

    # --- the wire format ------------------------------------------------------------------------------------

    def varint(self, at: int, end: int) -> tuple[int, int]:
        """A number of at most 64 bits, and where it ends."""
        data, value, shift = self.data, 0, 0
        while at < end and shift < 70:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >> 64:
                    break
                return value, at
            shift += 7
        raise GraphError(f"byte {at}: a number that doesn't end; expected an ONNX file")

    def fields(self, kind: dict[int, _Field], where: str, span: Span) -> Iterator[tuple[_Field, Value]]:
        """The fields of a message that may have those of ``kind``."""
        at, end = span
        seen: set[int] = set()
        while at < end:
            self.left -= 1
            if self.left < 0:
                raise GraphError(f"more than {MAX_FIELDS} fields; expected a policy's graph")
            tag, at = self.varint(at, end)
            number, wire = tag >> 3, tag & 7
            field = kind.get(number)
            if field is None:
                known = FORBIDDEN.get(id(kind), {}).get(number)
                what = known or f"field {number}"
                raise GraphError(f"{where}: {what} is not for bundles; expected {[f.name for f in kind.values()]}")
            if wire not in field.wires:
                expected = " or ".join(_KINDS[w] for w in field.wires)
                raise GraphError(f"{where}: {field.name} has wire type {wire}; expected {expected}")
            if not field.many:
                if number in seen:
                    raise GraphError(f"{where}: {field.name} comes twice; expected it once")
                seen.add(number)
            value: Value
            if wire == VARINT:
                value, at = self.varint(at, end)
            else:
                size, at = self.varint(at, end) if wire == BYTES else (8 if wire == FIXED64 else 4, at)
                if size > end - at:
                    raise GraphError(f"{where}: {field.name} has {size} bytes; expected at most {end - at} more")
                if size > field.most:
                    raise GraphError(f"{where}: {field.name} has {size} bytes; expected at most {field.most}")
                value, at = Span(at, at + size), at + size
            yield field, value

    def text(self, value: Value, where: str) -> str:
        assert isinstance(value, Span)
        try:
            return self.data[value.start : value.end].decode()
        except UnicodeDecodeError:
            raise GraphError(f"{where} is no text; expected UTF-8") from None

    def numbers(self, values: list[Value], most: int, where: str) -> list[int]:
        """Numbers that come side by side or one by one."""
        found: list[int] = []
        for value in values:
            if isinstance(value, int):
                found.append(value)
                continue
            at, end = value
            while at < end and len(found) <= most:
                number, at = self.varint(at, end)
                found.append(number)
        if len(found) > most:
            raise GraphError(f"{where} has more than {most} numbers; expected at most that many")
        return found

    # --- messages -------------------------------------------------------------------------------------------

    def model(self) -> dict[str, str]:
        entries: dict[str, str] = {}
        graphs, opsets = 0, []
        for field, value in self.fields(MODEL, "model", Span(0, len(self.data))):
            if field.name == "graph":
                graphs += 1
                self.graph(value)
            elif field.name == "opset_import":
                opsets.append(self.opset(value))
            elif field.name == "metadata_props":
                key, text = self.entry(value, "metadata_props")
                if key in entries:
                    raise GraphError(f"metadata_props: '{key[:100]}' comes twice; expected one entry of each key")
                entries[key] = text
        if not graphs:
            raise GraphError("model: no graph; expected an ONNX file")
        if len(opsets) != 1 or opsets[0][0] not in ("", "ai.onnx"):
            names = [domain for domain, _ in opsets]
            raise GraphError(f"model: opset_import has the domains {str(names)[:200]}; expected ONNX's own, '', alone")
        if not OLDEST <= opsets[0][1] <= NEWEST:
            raise GraphError(f"model: opset_import has version {opsets[0][1]}; expected {OLDEST} to {NEWEST}")
        return entries

    def opset(self, value: Value) -> tuple[str, int]:
        domain, version = "", 0
        for field, part in self.fields(OPSET, "opset_import", _span(value)):
            if field.name == "domain":
                domain = self.text(part, "opset_import: domain")
            else:
                version = _int(part)
        return domain, version

    def entry(self, value: Value, where: str) -> tuple[str, str]:
        found = {"key": "", "value": ""}
        for field, part in self.fields(ENTRY, where, _span(value)):
            found[field.name] = self.text(part, f"{where}: {field.name}")
        return found["key"], found["value"]

    def graph(self, value: Value) -> None:
        counts = dict.fromkeys((field.name for field in GRAPH.values()), 0)
        nodes: list[tuple[str, str, list[str], list[str]]] = []
        given: list[str] = []
        most = {"node": MAX_NODES, "initializer": MAX_TENSORS, "input": MAX_ENDS, "output": MAX_ENDS}
        for field, part in self.fields(GRAPH, "graph", _span(value)):
            counts[field.name] += 1
            if counts[field.name] > most.get(field.name, MAX_FIELDS):
                raise GraphError(f"graph: more than {most[field.name]} of {field.name}; expected at most that many")
            if field.name == "node":
                nodes.append(self.node(part))
            elif field.name == "initializer":
                self.tensor(part, "initializer")
            elif field.name in ("input", "output", "value_info"):
                name = self.value_info(part, field.name)
                given += [name] if field.name == "input" else []
            elif field.name == "metadata_props":
                self.entry(part, "graph: metadata_props")
        _require_fixed_sizes(nodes, given)

    def node(self, value: Value) -> tuple[str, str, list[str], list[str]]:
        """How it is called in messages, its operator, its operands and its results."""
        kind, domain, name = "", "", ""
        operands: list[str] = []
        results: list[str] = []
        attributes: list[Value] = []
        for field, part in self.fields(NODE, "node", _span(value)):
            match field.name:
                case "op_type":
                    kind = self.text(part, "node: op_type")
                case "domain":
                    domain = self.text(part, "node: domain")
                case "name":
                    name = self.text(part, "node: name")
                case "input":
                    operands.append(self.text(part, "node: input"))
                case "output":
                    results.append(self.text(part, "node: output"))
                case "attribute":
                    attributes.append(part)
                case "metadata_props":
                    self.entry(part, "node: metadata_props")
        where = f"node '{name[:100]}' ({kind[:100]})"
        if domain not in ("", "ai.onnx"):
            raise GraphError(f"{where}: its domain is {domain[:100]!r}; expected ONNX's own operators, ''")
        if kind not in OPERATORS:
            why = WHY.get(kind, "expected one of robo_rl.deploy.robot.bundle.onnx_file.OPERATORS")
            raise GraphError(f"{where}: the operator is not for bundles; {why}")
        ends = len(operands) + len(results)
        for what, count, limit in (("ends", ends, MAX_ENDS), ("attributes", len(attributes), MAX_ATTRIBUTES)):
            if count > limit:
                raise GraphError(f"{where}: {count} {what}; expected at most {limit}")
        names = [self.attribute(attribute, where, kind) for attribute in attributes]
        if len(set(names)) < len(names):
            raise GraphError(f"{where}: its attributes are {str(names)[:200]}; expected one of each name")
        return where, kind, operands, results

    def attribute(self, value: Value, where: str, kind: str) -> str:
        name, number = "", 0
        for field, part in self.fields(ATTRIBUTE, f"{where}: attribute", _span(value)):
            if field.name == "name":
                name = self.text(part, f"{where}: attribute")
            elif field.name == "t":
                self.tensor(part, f"{where}: attribute")
            elif field.name == "i":
                number = _int(part)
        if kind == "Cast" and name == "to" and number not in ITEM_BYTES:
            raise GraphError(f"{where}: to is {number}; expected a type of numbers, one of {sorted(ITEM_BYTES)}")
        return name

    def tensor(self, value: Value, where: str) -> None:
        dims: list[Value] = []
        kept: dict[str, int] = {}
        kind, location, name = 0, 0, ""
        for field, part in self.fields(TENSOR, where, _span(value)):
            if field.name == "dims":
                dims.append(part)
            elif field.name == "data_type":
                kind = _int(part)
            elif field.name == "data_location":
                location = _int(part)
            elif field.name == "name":
                name = self.text(part, f"{where}: name")
            elif field.name in DATA or field.name == "raw_data":
                size = part.end - part.start if isinstance(part, Span) else 1
                kept[field.name] = kept.get(field.name, 0) + size
        where = f"{where} '{name[:100]}'"
        if location:
            raise GraphError(f"{where}: data_location is {location}; expected 0: weights are in the file itself")
        if kind not in ITEM_BYTES:
            raise GraphError(f"{where}: data_type is {kind}; expected a type of numbers, one of {sorted(ITEM_BYTES)}")
        shape = self.numbers(dims, MAX_DIMENSIONS, f"{where}: dims")
        elements = math.prod(shape)
        if elements > MAX_ELEMENTS:
            raise GraphError(f"{where}: dims is {shape}; expected at most {MAX_ELEMENTS} elements")
        self.require_data(kept, kind, elements, where)

    @staticmethod
    def require_data(kept: dict[str, int], kind: int, elements: int, where: str) -> None:
        """GraphError unless a tensor's data is in one field, and as much as its shape says."""
        if len(kept) > 1:
            raise GraphError(f"{where}: data in {sorted(kept)}; expected one of them")
        for name, size in kept.items():
            if name == "raw_data":
                good, expected = size == elements * ITEM_BYTES[kind], elements * ITEM_BYTES[kind]
            else:
                least, kinds = DATA[name]
                if kind not in kinds:
                    raise GraphError(f"{where}: {name} with data_type {kind}; expected one of {kinds}")
                good, expected = elements * least <= size <= elements * 10, elements * least
            if not good:
                raise GraphError(f"{where}: {name} has {size} bytes; expected {expected} for {elements} elements")
        if not kept and elements:
            raise GraphError(f"{where}: no data; expected {elements} elements")

    def value_info(self, value: Value, where: str) -> str:
        """Its name."""
        name = ""
        for field, part in self.fields(VALUE_INFO, where, _span(value)):
            if field.name == "name":
                name = self.text(part, f"{where}: name")
            elif field.name == "type":
                self.type(part, where)
            elif field.name == "metadata_props":
                self.entry(part, f"{where}: metadata_props")
        return name

    def type(self, value: Value, where: str) -> None:
        for field, part in self.fields(TYPE, f"{where}: type", _span(value)):
            if field.name == "tensor_type":
                for inner, shape in self.fields(TENSOR_TYPE, f"{where}: tensor_type", _span(part)):
                    if inner.name == "shape":
                        for _, dimension in self.fields(SHAPE, f"{where}: shape", _span(shape)):
                            for _ in self.fields(DIMENSION, f"{where}: dim", _span(dimension)):
                                pass


def _require_fixed_sizes(nodes: list[tuple[str, str, list[str], list[str]]], given: list[str]) -> None:
    """GraphError where a size depends on signals, or a name stands for two things."""
    measured, known = set(given), set(given)
    for where, kind, operands, results in nodes:
        for i in SIZES.get(kind, ()):
            if i < len(operands) and operands[i] in measured:
                raise GraphError(f"{where}: operand '{operands[i][:100]}' depends on signals; expected a fixed size")
        for result in filter(None, results):
            if result in known:
                raise GraphError(f"{where}: its result '{result[:100]}' is there already; expected another name")
            known.add(result)
        if kind not in ("Shape", "Size") and not measured.isdisjoint(operands):
            measured.update(results)


def _span(value: Value) -> Span:
    assert isinstance(value, Span)
    return value


def _int(value: Value) -> int:
    assert isinstance(value, int)
    return value
