"""Read an ONNX graph node by node: what is constant is computed, what only moves data moves addresses.

What is left is arithmetic, and goes to the operators' own files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from robo_rl.deploy.build.c.program import Addresses, Program

OLDEST, NEWEST = 13, 25  # opsets

_MOVES = (
    "Compress Concat DepthToSpace Expand Flatten Gather GatherElements GatherND Identity Pad Reshape ReverseSequence "
    "ScatterElements ScatterND Slice SpaceToDepth Split Squeeze Tile Transpose Trilu Unsqueeze"
)
_RANDOM = "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike"
MOVES, RANDOM = frozenset(_MOVES.split()), frozenset(_RANDOM.split())


class UnsupportedError(ValueError):
    """The graph can't become C. The message names the node and says what to do."""


Operator = Callable[["Graph", NodeProto], None]


class Graph:
    """A graph while it is read: every name is a known array or a tensor of addresses."""

    def __init__(self, model: ModelProto, inputs: Mapping[str, Addresses], program: Program) -> None:
        self.program = program
        self.tensors: dict[str, Addresses] = dict(inputs)
        self.known = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        self.opset = _opset(model)
        self.uses = Counter(name for node in model.graph.node for name in node.input)
        self.uses.update(output.name for output in model.graph.output)
        self.nodes = _needed(model)

    def read(self, operators: Mapping[str, Operator]) -> None:
        """Turn every node into operations."""
        for node in self.nodes:
            self._read_node(node, operators)

    def _read_node(self, node: NodeProto, operators: Mapping[str, Operator]) -> None:
        if node.domain not in ("", "ai.onnx"):
            raise self.refusal(node, f"the operator set '{node.domain}' is not ONNX's own; export plain ONNX operators")
        kind = node.op_type
        if kind in RANDOM:
            raise self.refusal(node, "a policy on a robot must not draw at random; export its mean action")
        if all(name in self.known for name in node.input if name):
            self._fold(node)
        elif kind == "Shape":
            start, end = self.attribute(node, "start", 0), self.attribute(node, "end", None)
            self.known[node.output[0]] = np.array(self.tensors[node.input[0]].shape[start:end], np.int64)
        elif kind == "Size":
            self.known[node.output[0]] = np.array(self.tensors[node.input[0]].size, np.int64)
        elif kind in MOVES:
            self._move(node)
        elif kind in operators:
            operators[kind](self, node)
        else:
            raise self.refusal(
                node,
                "there is no C for this operator; rewrite that part of the policy with operators of docs/firmware.md",
            )

    def _fold(self, node: NodeProto) -> None:
        found = self._evaluate(node, {name: self.known[name] for name in node.input if name})
        self.known.update(zip(node.output, found, strict=False))

    def _move(self, node: NodeProto) -> None:
        """The node's own reference implementation, run on addresses instead of values."""
        feeds: dict[str, Any] = {}
        for name in node.input:
            if name:
                moved = name in self.tensors or self.known[name].dtype.kind == "f"
                feeds[name] = self.addresses(node, name) if moved else self.known[name]
        found = self._evaluate(node, feeds)
        self.tensors.update({name: np.asarray(array, np.int64) for name, array in zip(node.output, found, strict=True)})

    def _evaluate(self, node: NodeProto, feeds: Mapping[str, Any]) -> list[Any]:
        inputs, outputs = (
            [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in names if name]
            for names in (dict.fromkeys(node.input), node.output)
        )
        graph = helper.make_graph([node], "node", inputs, outputs)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        try:
            return list(ReferenceEvaluator(model).run(None, dict(feeds)))
        except (ValueError, IndexError, TypeError, RuntimeError, NotImplementedError) as error:
            raise self.refusal(node, f"ONNX's own reference can't compute it ({error})") from None

    def addresses(self, node: NodeProto, name: str) -> Addresses:
        """Where an operand's floats are; constants get a place."""
        if name in self.tensors:
            return self.tensors[name]
        values = self.known[name]
        if values.dtype not in (np.dtype(np.float32), np.dtype(bool)):
            raise self.refusal(node, f"its operand '{name}' is {values.dtype}; only float32 runs on the target")
        return self.program.constant(values)

    def operands(self, node: NodeProto) -> list[Addresses]:
        """All operands of a node."""
        return [self.addresses(node, name) for name in node.input if name]

    def has_input(self, node: NodeProto, i: int) -> bool:
        """Whether an optional operand is given."""
        return len(node.input) > i and bool(node.input[i])

    def constant(self, node: NodeProto, i: int) -> np.ndarray | None:
        """The operand's value, if it is known."""
        return self.known.get(node.input[i]) if self.has_input(node, i) else None

    def attribute(self, node: NodeProto, name: str, default: Any) -> Any:
        """A node's attribute; text as str."""
        for attribute in node.attribute:
            if attribute.name == name:
                value = helper.get_attribute_value(attribute)
                return value.decode() if isinstance(value, bytes) else value
        return default

    def refusal(self, node: NodeProto, why: str) -> UnsupportedError:
        """An error that names the node."""
        return UnsupportedError(f"node '{node.name or node.output[0]}' ({node.op_type}): {why}")


def _needed(model: ModelProto) -> list[NodeProto]:
    """The nodes that an output of the graph depends on, in order; others are not even looked at."""
    wanted, kept = {output.name for output in model.graph.output}, []
    for node in reversed(model.graph.node):
        if wanted & set(node.output):
            wanted.update(node.input)
            kept.append(node)
    return kept[::-1]


def _opset(model: ModelProto) -> int:
    versions = {entry.domain: entry.version for entry in model.opset_import}
    version = versions.get("", versions.get("ai.onnx", 0))
    if not OLDEST <= version <= NEWEST:
        raise UnsupportedError(f"the graph is of opset {version}; expected {OLDEST} to {NEWEST}")
    if model.functions:
        raise UnsupportedError(f"the graph has functions ({model.functions[0].name}); inline them (onnx.inliner)")
    if any(tensor.data_location == TensorProto.EXTERNAL for tensor in model.graph.initializer):
        raise UnsupportedError("the graph keeps its weights in another file; save it as one file")
    return version


def load(data: bytes) -> ModelProto:
    """A model from its bytes."""
    return onnx.load_model_from_string(data)
