"""The network in another trainer's ONNX file, as a torch module.

The file is parsed in a process of its own with little memory (``robo_rl.files.sandbox``). What comes back is plain:
a list
of operators by name and arrays, which become a straight line of torch operations. Operators that are not in
``OPERATIONS`` are refused by name.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from robo_rl.adapters.foreign import onnx_memory
from robo_rl.adapters.foreign.description import AdoptionError
from robo_rl.adapters.foreign.onnx_session import ask, open_session, zeros
from robo_rl.adapters.foreign.recurrent import Runtime
from robo_rl.files import sandbox as confined

NUMBERS = {"FLOAT", "DOUBLE", "INT64", "INT32", "BOOL"}


@dataclass(frozen=True)
class Node:
    """One operator: its name, inputs, outputs and attributes."""

    operator: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]


@dataclass(frozen=True)
class OnnxFile:
    """What an ONNX file holds."""

    inputs: dict[str, list[int | None]]
    """Shapes by name; None for a dimension of any size."""
    outputs: dict[str, list[int | None]]
    nodes: list[Node]
    arrays: dict[str, np.ndarray]
    metadata: dict[str, str]
    data: bytes

    def runtime(self, memory: list[onnx_memory.State]) -> Runtime:
        """onnxruntime on the file itself: actions for observations (n, k), one row at a time where it wants that.

        ``memory``: of a recurrent policy.
        """
        session = open_session(self.data)
        if memory:
            return partial(onnx_memory.run, session, next(iter(self.inputs)), next(iter(self.outputs)), memory)
        first, output = next(iter(self.inputs)), next(iter(self.outputs))
        single = self.inputs[first][0] == 1
        others = zeros(session, 1)

        def run(seen: np.ndarray) -> np.ndarray:
            rows = [seen[i : i + 1] for i in range(len(seen))] if single else [seen]
            return np.concatenate([ask(session, [output], {first: row, **others})[0] for row in rows])

        return run


def read(data: bytes, where: str) -> OnnxFile:
    """What is in the file; AdoptionError where it can't be read."""
    try:
        found = confined.attempt("robo_rl.adapters.foreign.onnx_network:parsed", data)
        confined.attempt("robo_rl.adapters.foreign.onnx_session:trial", data)
    except confined.Refused as error:
        raise AdoptionError(f"{where}: it can't be read as ONNX ({error})") from None
    with np.load(io.BytesIO(found), allow_pickle=False) as arrays:
        told = json.loads(bytes(arrays["told"]).decode())
        weights = {name: arrays[f"w{i}"] for i, name in enumerate(told["arrays"])}
    nodes = [Node(**node) for node in told["nodes"]]
    return OnnxFile(told["inputs"], told["outputs"], nodes, weights, told["metadata"], data)


def parsed(data: bytes) -> bytes:
    """In a process of its own: the file as arrays of numbers and JSON."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load_from_string(data)
    onnx.checker.check_model(model)
    graph = model.graph
    weights = {}
    for tensor in graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise ValueError(f"the weights '{tensor.name}' are in another file; expected them in the .onnx itself")
        weights[tensor.name] = found = numpy_helper.to_array(tensor)
        several = found.size > 1 and found.dtype.kind == "f"  # a single one may be a limit of Clip, which is infinite
        if several and not np.isfinite(found).all():
            raise ValueError(f"the weights '{tensor.name}' have numbers that are not finite")
    nodes = []
    for node in graph.node:
        if node.domain not in ("", "ai.onnx"):
            raise ValueError(f"it has the operator '{node.domain}.{node.op_type}'; expected ONNX's own")
        attributes = {}
        for attribute in node.attribute:
            value = onnx.helper.get_attribute_value(attribute)
            if isinstance(value, onnx.TensorProto):
                name = f"{node.output[0]}/{attribute.name}"
                weights[name] = numpy_helper.to_array(value)
                value = {"array": name}
            elif isinstance(value, bytes):
                value = value.decode()
            elif isinstance(value, onnx.GraphProto):
                raise ValueError(f"it has the operator '{node.op_type}'; expected a graph without branches and loops")
            else:
                value = list(value) if isinstance(value, list | tuple) else value
            attributes[attribute.name] = value
        nodes.append({"operator": node.op_type, "inputs": list(node.input), "outputs": list(node.output),
                      "attributes": attributes})  # fmt: skip

    def ends(values: Any) -> dict[str, list[int | None]]:
        return {v.name: [d.dim_value if d.HasField("dim_value") else None for d in v.type.tensor_type.shape.dim]
                for v in values if v.name not in weights}  # fmt: skip

    told = {
        "inputs": ends(graph.input), "outputs": ends(graph.output), "nodes": nodes, "arrays": list(weights),
        "metadata": {entry.key: entry.value for entry in model.metadata_props},
    }  # fmt: skip
    packed = io.BytesIO()
    arrays = {f"w{i}": array for i, array in enumerate(weights.values())}
    np.savez(packed, told=np.frombuffer(json.dumps(told).encode(), np.uint8), **arrays)  # type: ignore[arg-type]
    return packed.getvalue()


class OnnxGraph(nn.Module):
    """A straight line of torch operations that gives some of a file's outputs."""

    def __init__(self, file: OnnxFile, outputs: set[str], where: str) -> None:
        super().__init__()
        self.nodes = _needed(file.nodes, outputs)
        used = {name for node in self.nodes for name in node.inputs}
        unknown = sorted({node.operator for node in self.nodes} - {*OPERATIONS, "Constant"})
        if unknown:
            raise AdoptionError(f"{where}: it has the operators {unknown}; expected those of {sorted(OPERATIONS)}")
        named = {node.outputs[0]: name for node in self.nodes if (name := _named(node))}
        arrays = {**file.arrays, **{output: file.arrays[name] for output, name in named.items()}}
        self.nodes = [node for node in self.nodes if node.outputs[0] not in named]
        self.arrays = {name: array for name, array in arrays.items() if name in used}
        self.names = {name: f"array_{i}" for i, name in enumerate(self.arrays)}
        for name, array in self.arrays.items():
            value = torch.from_numpy(np.array(array))
            self.register_buffer(self.names[name], value.float() if value.is_floating_point() else value)

    def run(self, values: dict[str, Any]) -> dict[str, Any]:
        """All values by name, for those of the inputs."""
        values = dict(values)
        for node in self.nodes:
            inputs: list[Any] = [None if name == "" else self._value(name, values) for name in node.inputs]
            if node.operator in SIZED:
                inputs[1:] = [None if name == "" else self._number(name, node) for name in node.inputs[1:]]
            attributes = dict(node.attributes)
            attributes.setdefault("num_outputs", len(node.outputs))
            result = OPERATIONS[node.operator](inputs, attributes)
            given = result if isinstance(result, tuple | list) else [result]
            values.update(zip(node.outputs, given, strict=node.operator not in RECURRENT))
        return values

    def _value(self, name: str, values: dict[str, Any]) -> Any:
        return values[name] if name in values else self.get_buffer(self.names[name])

    def _number(self, name: str, node: Node) -> Any:
        """A constant operand that says how large a result is, as plain numbers."""
        if name not in self.arrays:
            raise AdoptionError(f"operator {node.operator}: '{name}' is computed; expected a constant")
        return self.arrays[name].tolist()


class OnnxNetwork(OnnxGraph):
    """(n, k) observations to (n, a) actions, by the file's first input and its first output."""

    def __init__(self, file: OnnxFile, where: str) -> None:
        first, output = next(iter(file.inputs)), next(iter(file.outputs))
        used = {name for node in _needed(file.nodes, {output}) for name in node.inputs}
        further = [name for name in file.inputs if name != first and name in used]
        states = onnx_memory.states(file.inputs, file.outputs, further, where)
        super().__init__(file, {output, *(state.after for state in states)}, where)
        self.input, self.output, self.states = first, output, states
        self.memory = sum(state.size for state in states)
        shape = file.inputs[first]
        self.observation_size = shape[-1] if shape else None

    def forward(self, observation: Tensor, memory: Tensor | None = None) -> Any:
        """Actions; of one with a ``memory`` (n, m), actions and the memory after them."""
        values: dict[str, Any] = {self.input: observation}
        if memory is None:
            return self.run(values)[self.output]
        parts = memory.split([state.size for state in self.states], 1)
        values |= {state.before: state.given(part) for state, part in zip(self.states, parts, strict=True)}
        values = self.run(values)
        return values[self.output], torch.cat([state.kept(values[state.after]) for state in self.states], 1)


def _named(node: Node) -> str:
    """The array that a Constant is."""
    value = node.attributes.get("value")
    return value["array"] if isinstance(value, dict) else ""


def _needed(nodes: list[Node], outputs: set[str]) -> list[Node]:
    """Those that the outputs are made of, in order."""
    wanted, found = set(outputs), []
    for node in reversed(nodes):
        if wanted & {name for name in node.outputs if name}:
            found.append(node)
            wanted |= set(node.inputs)
    return found[::-1]


def _gemm(x: list[Any], a: dict[str, Any]) -> Tensor:
    left = x[0].T if a.get("transA") else x[0]
    right = x[1].T if a.get("transB") else x[1]
    alpha, beta = a.get("alpha", 1.0), a.get("beta", 1.0)
    if alpha == 1.0 and beta == 1.0 and len(x) > 2 and x[2] is not None:
        return torch.addmm(x[2], left, right)
    product = alpha * (left @ right)
    return product if len(x) < 3 or x[2] is None else product + beta * x[2]


def _clip(x: list[Any], a: dict[str, Any]) -> Tensor:
    low = a.get("min") if len(x) < 2 or x[1] is None else x[1]
    high = a.get("max") if len(x) < 3 or x[2] is None else x[2]
    return torch.clamp(x[0], low, high) if low is not None or high is not None else x[0]


def _whole(value: Any) -> list[int]:
    return [int(i) for i in (value if isinstance(value, list) else [value])]


def _slice(x: list[Any], a: dict[str, Any]) -> Tensor:
    starts, ends = (_whole(x[i]) if len(x) > i else a[key] for i, key in ((1, "starts"), (2, "ends")))
    axes = _whole(x[3]) if len(x) > 3 and x[3] is not None else a.get("axes", list(range(len(starts))))
    steps = _whole(x[4]) if len(x) > 4 and x[4] is not None else [1] * len(starts)
    found = x[0]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = found.shape[axis]
        if step < 0:
            found = found.flip(axis)
            start, end, step = _mirrored(start, int(size)), _mirrored(end, int(size)), -step
        index = [slice(None)] * found.dim()
        index[axis] = slice(start, end, step)
        found = found[tuple(index)]
    return found


def _mirrored(at: int, size: int) -> int:
    """Where a bound of a slice that goes backwards is, counted from the other end."""
    at = max(at + size, -1) if at < 0 else min(at, size - 1)
    return size - 1 - at


def _split(x: list[Any], a: dict[str, Any]) -> Any:
    axis, sizes = a.get("axis", 0), x[1] if len(x) > 1 and x[1] is not None else a.get("split")
    if sizes is None:
        return x[0].chunk(a["num_outputs"], axis)
    return x[0].split(_whole(sizes), axis)


def _gather(x: list[Any], a: dict[str, Any]) -> Tensor:
    axis = a.get("axis", 0) % x[0].dim()
    index = x[1].reshape(-1)
    picked = x[0].index_select(axis, torch.where(index < 0, index + x[0].shape[axis], index))
    return picked.unflatten(axis, tuple(x[1].shape)) if x[1].dim() else picked.squeeze(axis)


def _reshape(x: list[Any], a: dict[str, Any]) -> Tensor:
    shape = [x[0].shape[i] if size == 0 else size for i, size in enumerate(_whole(x[1]))]
    if shape and shape[0] == 1 and -1 not in shape[1:]:  # exported for one robot
        of_sequence = len(shape) > 2 and shape[1] == 1 and x[0].dim() > 2 and x[0].shape[0] == 1
        shape[1 if of_sequence else 0] = -1
    return x[0].reshape(shape)


def _squeeze(x: list[Any], a: dict[str, Any]) -> Tensor:
    axes = _whole(x[1]) if len(x) > 1 and x[1] is not None else a.get("axes")
    return x[0].squeeze() if axes is None else x[0].squeeze(tuple(axes))


def _unsqueeze(x: list[Any], a: dict[str, Any]) -> Tensor:
    found = x[0]
    for axis in sorted(_whole(x[1]) if len(x) > 1 else a["axes"]):
        found = found.unsqueeze(axis)
    return found


def _mean(x: list[Any], a: dict[str, Any]) -> Tensor:
    axes = _whole(x[1]) if len(x) > 1 and x[1] is not None else a["axes"]
    return x[0].mean(tuple(axes), keepdim=bool(a.get("keepdims", 1)))


def _norm(x: list[Any], a: dict[str, Any]) -> Tensor:
    if a.get("axis", -1) not in (-1, x[0].dim() - 1):
        raise AdoptionError("operator LayerNormalization: its axis is not the last one")
    bias = x[2] if len(x) > 2 else None
    return nn.functional.layer_norm(x[0], x[1].shape, x[1], bias, a.get("epsilon", 1e-5))


def _cast(x: list[Any], a: dict[str, Any]) -> Tensor:
    kinds = {1: torch.float32, 11: torch.float32, 6: torch.int32, 7: torch.int64, 9: torch.bool}
    if a["to"] not in kinds:
        raise AdoptionError(f"operator Cast: to type {a['to']}; expected float, int or bool")
    return x[0].to(kinds[a["to"]])


Operation = Callable[[list[Any], dict[str, Any]], Any]
OPERATIONS: dict[str, Operation] = {
    "Abs": lambda x, a: torch.abs(x[0]),
    "Add": lambda x, a: x[0] + x[1],
    "Cast": _cast,
    "Clip": _clip,
    "Concat": lambda x, a: torch.cat(x, a["axis"]),
    "Cos": lambda x, a: torch.cos(x[0]),
    "Div": lambda x, a: x[0] / x[1],
    "Elu": lambda x, a: nn.functional.elu(x[0], a.get("alpha", 1.0)),
    "Erf": lambda x, a: torch.erf(x[0]),
    "Exp": lambda x, a: torch.exp(x[0]),
    "Flatten": lambda x, a: x[0].flatten(a.get("axis", 1)),
    "Gather": _gather,
    "GRU": onnx_memory.gru,
    "Gelu": lambda x, a: nn.functional.gelu(x[0], approximate=a.get("approximate", "none")),
    "Gemm": _gemm,
    "Greater": lambda x, a: x[0] > x[1],
    "GreaterOrEqual": lambda x, a: x[0] >= x[1],
    "Identity": lambda x, a: x[0],
    "LSTM": onnx_memory.lstm,
    "LayerNormalization": _norm,
    "LeakyRelu": lambda x, a: nn.functional.leaky_relu(x[0], a.get("alpha", 0.01)),
    "Less": lambda x, a: x[0] < x[1],
    "LessOrEqual": lambda x, a: x[0] <= x[1],
    "MatMul": lambda x, a: x[0] @ x[1],
    "Max": lambda x, a: torch.maximum(x[0], x[1]),
    "Min": lambda x, a: torch.minimum(x[0], x[1]),
    "Mul": lambda x, a: x[0] * x[1],
    "Neg": lambda x, a: -x[0],
    "Pow": lambda x, a: torch.pow(x[0], x[1]),
    "ReduceMean": _mean,
    "Relu": lambda x, a: torch.relu(x[0]),
    "Reshape": _reshape,
    "Selu": lambda x, a: nn.functional.selu(x[0]),
    "Sigmoid": lambda x, a: torch.sigmoid(x[0]),
    "Sin": lambda x, a: torch.sin(x[0]),
    "Slice": _slice,
    "Softplus": lambda x, a: nn.functional.softplus(x[0]),
    "Softsign": lambda x, a: nn.functional.softsign(x[0]),
    "Split": _split,
    "Sqrt": lambda x, a: torch.sqrt(x[0]),
    "Squeeze": _squeeze,
    "Sub": lambda x, a: x[0] - x[1],
    "Tanh": lambda x, a: torch.tanh(x[0]),
    "Transpose": lambda x, a: x[0].permute(a["perm"]),
    "Where": lambda x, a: torch.where(x[0], x[1], x[2]),
    "Unsqueeze": _unsqueeze,
}
"""What each operator does, for its inputs and attributes."""
RECURRENT = ("GRU", "LSTM")
"""Those whose outputs at the end may be left out."""
SIZED = ("Clip", "ReduceMean", "Reshape", "Slice", "Split", "Squeeze", "Unsqueeze")
"""Those whose operands after the first are plain numbers."""
