"""The network in a TorchScript file, as a plain torch module.

The archive is opened in a process of its own with little memory (``robo_rl.files.sandbox``), which turns the compiled
``forward`` into a list of operators and arrays. A file that would run code while it is read, branches, loops, draws at
random or changes what it holds is refused.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from robo_rl.adapters.foreign import script_memory
from robo_rl.adapters.foreign.description import AdoptionError
from robo_rl.adapters.foreign.recurrent import Runtime
from robo_rl.files import sandbox as confined

MOST = 1 << 28
PURE = frozenset({
    "abs", "add", "addmm", "arange", "atan2", "cat", "ceil", "clamp", "clamp_max", "clamp_min", "clip", "concat",
    "cos", "div", "elu", "eq", "exp", "expand", "flatten", "floor", "full_like", "ge", "gelu", "gt", "hardtanh",
    "index_select", "layer_norm", "le", "leaky_relu", "linalg_vector_norm", "linear", "log", "log1p", "lt", "matmul",
    "max", "maximum", "mean", "min", "minimum", "mm", "mul", "ne", "neg", "norm", "ones_like", "permute", "pow",
    "reciprocal", "relu", "repeat", "reshape", "rsqrt", "rsub", "select", "selu", "sigmoid", "sign", "silu", "sin",
    "slice", "softplus", "softsign", "split", "sqrt", "square", "squeeze", "stack", "sub", "sum", "t", "tanh",
    "transpose", "unbind", "unsqueeze", "view", "where", "zeros_like",
})  # fmt: skip
"""torch's operators without side effects that a network may have."""
SAME = frozenset({
    "alias", "clone", "contiguous", "detach", "dropout", "feature_dropout", "identity", "type_as",
})  # fmt: skip
"""Those that do nothing to a number when a policy runs."""


def read(data: bytes, where: str) -> nn.Module:
    """The network; AdoptionError where the file has other things than a policy needs."""
    try:
        found = confined.attempt("robo_rl.adapters.foreign.script_network:parsed", data)
    except confined.Refused as error:
        raise AdoptionError(f"{where}: it can't be taken over as TorchScript ({error})") from None
    with np.load(io.BytesIO(found), allow_pickle=False) as packed:
        told = json.loads(bytes(packed["told"]).decode())
        arrays = [packed[f"a{i}"] for i in range(told["arrays"])]
    if "recurrence" in told:
        return script_memory.built(told, arrays, where)
    return ScriptNetwork(told["nodes"], told["output"], arrays)


def runtime(data: bytes) -> Runtime:
    """torch.jit on the file itself. Only for one that ``read`` has accepted."""
    module = torch.jit.load(io.BytesIO(data), map_location="cpu").eval()
    if script_memory.states(module):
        return script_memory.runtime(module)

    def run(seen: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return module(torch.from_numpy(seen)).numpy()

    return run


def parsed(data: bytes) -> bytes:
    """In a process of its own: operators as JSON, and arrays."""
    torch.set_num_threads(1)
    archive = zipfile.ZipFile(io.BytesIO(data))
    if sum(part.file_size for part in archive.infolist()) > MOST:
        raise ValueError(f"it is larger than {MOST} bytes")
    if any(b"__setstate__" in archive.read(name) for name in archive.namelist() if name.endswith(".py")):
        raise ValueError("it has a method __setstate__, which would run while it is read")
    module = torch.jit.load(io.BytesIO(data), map_location="cpu").eval()
    packed = io.BytesIO()
    if script_memory.states(module):
        told, listed = script_memory.parsed(module, PURE | SAME)
    else:
        walk = _Walk(module)
        nodes, output = walk.straight()
        told, listed = {"nodes": nodes, "output": output}, walk.arrays
    told["arrays"] = len(listed)
    arrays = {f"a{i}": array for i, array in enumerate(listed)}
    np.savez(packed, told=np.frombuffer(json.dumps(told).encode(), np.uint8), **arrays)  # type: ignore[arg-type]
    return packed.getvalue()


class _Walk:
    """Through the graph of a module's forward."""

    def __init__(self, module: Any) -> None:
        self.graph = module.inlined_graph
        self.values: dict[str, Any] = {}
        self.arrays: list[np.ndarray] = []
        inputs = [value.debugName() for value in self.graph.inputs()]
        if len(inputs) != 2:
            raise ValueError(f"its forward takes {len(inputs) - 1} arguments; expected one, the observation")
        self.values[inputs[0]] = module
        self.known: dict[str, Any] = {inputs[1]: ["v", "observation"]}

    def straight(self) -> tuple[list[Any], Any]:
        """The operators in order as [name, arguments, results], and the output."""
        nodes = []
        other = {"prim::If": "a branch", "prim::Loop": "a loop", "prim::SetAttr": "a memory of its own"}
        for node in self.graph.nodes():
            if node.kind() in other:
                raise ValueError(f"its forward has {other[node.kind()]}; expected a straight line of operators")
        for node in self.graph.nodes():
            kind, results = node.kind(), [value.debugName() for value in node.outputs()]
            if kind == "prim::GetAttr":
                self._attribute(node, results[0])
            elif kind == "prim::Constant":
                self._constant(node, results[0])
            elif kind in ("prim::ListConstruct", "prim::TupleConstruct"):
                self.known[results[0]] = ["l", [self._of(value) for value in node.inputs()]]
            elif kind.startswith("aten::"):
                arguments = [self._of(value) for value in node.inputs()]
                nodes.append([_operator(kind), arguments, results])
                for name in results:
                    self.known[name] = ["v", name]
                if kind.endswith("_"):  # in place: later uses see the result
                    self.known[next(iter(node.inputs())).debugName()] = ["v", results[0]]
            else:
                raise ValueError(f"its forward has {kind}; expected a straight line of operators")
        (output,) = self.graph.outputs()
        return nodes, self._of(output)

    def _attribute(self, node: Any, name: str) -> None:
        owner = self.values[next(iter(node.inputs())).debugName()]
        value = getattr(owner, node.s("name"))
        if isinstance(value, torch.Tensor):
            self.arrays.append(value.detach().cpu().numpy())
            self.known[name] = ["a", len(self.arrays) - 1]
        elif isinstance(value, bool | int | float | str) or value is None:
            self.known[name] = ["c", value]
        else:
            self.values[name] = value

    def _constant(self, node: Any, name: str) -> None:
        value = next(iter(node.outputs())).toIValue()
        if isinstance(value, torch.Tensor):
            self.arrays.append(value.cpu().numpy())
            self.known[name] = ["a", len(self.arrays) - 1]
        elif isinstance(value, torch.device):
            self.known[name] = ["c", None]
        else:
            self.known[name] = ["c", value]

    def _of(self, value: Any) -> Any:
        name = value.debugName()
        if name not in self.known:
            raise ValueError("its forward hands a module on as a value; expected tensors")
        return self.known[name]


def _operator(kind: str) -> str:
    name = kind.removeprefix("aten::")
    plain = name.removesuffix("_")
    if name == "copy_":
        raise ValueError("its forward writes into what it holds, so it has a memory of its own, such as an LSTM's; "
                         "expected a policy whose actions depend on the observation alone")  # fmt: skip
    if plain not in PURE and plain not in SAME and plain != "to":
        raise ValueError(f"its forward has the operator '{plain}'; expected one of {sorted(PURE)}")
    return plain


class ScriptNetwork(nn.Module):
    """(n, k) observations to (n, a) actions by a list of operators."""

    def __init__(self, nodes: list[Any], output: Any, arrays: list[np.ndarray]) -> None:
        super().__init__()
        self.nodes, self.output = nodes, output
        for i, array in enumerate(arrays):
            value = torch.from_numpy(array.copy())
            self.register_buffer(f"array_{i}", value.float() if value.is_floating_point() else value)

    def forward(self, observation: Tensor) -> Tensor:
        values: dict[str, Any] = {"observation": observation}
        for name, arguments, results in self.nodes:
            given = [self._value(argument, values) for argument in arguments]
            found = given[0] if name in SAME or name == "to" else getattr(torch.ops.aten, name)(*given)
            values.update([(results[0], found)] if len(results) == 1 else zip(results, found, strict=True))
        return self._value(self.output, values)

    def _value(self, argument: Any, values: dict[str, Any]) -> Any:
        kind, value = argument
        if kind == "v":
            return values[value]
        if kind == "a":
            return self.get_buffer(f"array_{value}")
        return [self._value(item, values) for item in value] if kind == "l" else value
