"""Graphs that torch's exporter has written, kept on disk: policies of the same computation differ in parameters alone.

The exporter takes seconds, most of them to load. What it writes follows from the calls of torch that a policy makes, so
these are its key: each with its arguments, for two sizes of a batch and inputs of no special value, constants by
their numbers, parameters by their names. A graph is kept only if the optimizer gives the same one for other parameters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
import torch
from onnx import ModelProto, TensorProto, load_from_string, numpy_helper
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from robo_rl.files import write
from robo_rl.sim.accelerate.fuse.native import cache_folder

SIZES = (2, 3)
"""Of batches. The exporter sees a size without a number; so does who sees two."""
PARAMETER = "robo_rl.parameter."
"""What the keys of a kept file's metadata begin with, whose initializers are left empty."""
PLAIN = (bool, int, float, str, type(None), type(...), torch.dtype, torch.device, torch.layout, torch.memory_format)


class UnknownCall(ValueError):
    """A call that may do something else the next time, so that nothing is kept."""


@dataclass
class Kept:
    """What the optimizer gave of other parameters."""

    parameters: dict[str, str] = field(default_factory=dict)
    """Names of parameters by those of their initializers; empty if the graph depends on their values."""


def exported(
    module: nn.Module, shapes: Sequence[Sequence[int]], parameters: Mapping[str, Tensor], names: Sequence[str],
    export: Callable[[], ModelProto],
) -> ModelProto:  # fmt: skip
    """What ``export`` gives of a module, or what it gave of one with the same computation.

    ``shapes``: of the inputs without the batch; ``names``: of inputs and outputs.
    """
    key = computation(module, shapes, parameters, names)
    file = cache_folder("exports") / f"{key}.onnx"
    found = _read(file, parameters) if key else None
    if found is not None:
        return found
    with optimized_twice(parameters) as kept:
        model = export()
    if key and kept.parameters:
        _keep(model, kept.parameters, file)
    return model


def computation(
    module: nn.Module, shapes: Sequence[Sequence[int]], parameters: Mapping[str, Tensor], names: Sequence[str]
) -> str | None:
    """A digest of what a module computes, but for its parameters' values; None if that can't be told."""
    digest = hashlib.sha256(_versions())
    digest.update(repr((list(map(tuple, shapes)), list(names))).encode())
    for size in SIZES:
        recorder = Recorder(module, parameters)
        draw = torch.Generator().manual_seed(size)
        inputs = [torch.rand(size, *shape, generator=draw) for shape in shapes]
        for k, value in enumerate(inputs):
            recorder.name(value, f"input {k}")
        try:
            with _as_exported(), recorder:
                results = module(*inputs)
            recorder.lines.append(recorder.text(results))
        except Exception:  # whatever is wrong, the exporter says it
            return None
        digest.update("\n".join(recorder.lines).encode())
    return digest.hexdigest()[:32]


class Recorder(TorchFunctionMode):
    """Notes the calls of torch, tensors by where they are from."""

    def __init__(self, module: nn.Module, parameters: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.tensors: list[Tensor] = []  # so that no other one gets the number of one that is gone
        own = {name: value for name, value in vars(module).items() if isinstance(value, Tensor)}
        inside = {
            f"{place}.{name}": value
            for place, part in module.named_modules()
            for name, value in (*vars(part).items(), *part.named_buffers(recurse=False))
            if isinstance(value, Tensor)
        }
        for name, value in {**own, **inside}.items():
            self.name(value, f"{name} {_numbers(value)}")
        for name, value in parameters.items():
            kind = f"{value.dtype} {tuple(value.shape)} {value.stride()}"
            self.name(value, f"parameter {name} {kind} {value.requires_grad}")

    def name(self, tensor: Tensor, name: str) -> None:
        """From now on, that is what a tensor is called."""
        self.names[id(tensor)] = name
        self.tensors.append(tensor)

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        line = f"{_function(func)} {self.text(args)} {self.text(dict(kwargs))}"
        result = func(*args, **kwargs)
        self._take(result, f"{len(self.lines)}")
        self.lines.append(line)
        return result

    def _take(self, result: Any, name: str) -> None:
        if isinstance(result, Tensor):
            if id(result) not in self.names:
                self.name(result, name)
        elif isinstance(result, tuple | list):
            for k, item in enumerate(result):
                self._take(item, f"{name}.{k}")

    def text(self, value: Any) -> str:
        """What an argument is."""
        if isinstance(value, Tensor):
            if id(value) not in self.names:
                self.name(value, f"constant {len(self.tensors)} {_numbers(value)}")
            return f"<{self.names[id(value)]}>"
        if isinstance(value, PLAIN):
            return repr(value)
        if isinstance(value, tuple | list):
            return f"{type(value).__name__}({', '.join(map(self.text, value))})"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{key!r}: {self.text(item)}' for key, item in value.items())}}}"
        if isinstance(value, slice):
            return f"slice({self.text((value.start, value.stop, value.step))})"
        if isinstance(value, np.ndarray | np.generic):
            return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
        raise UnknownCall(f"an argument is a {type(value).__name__}")


def _function(func: Any) -> str:
    """The name of a function of torch, which says what it does; UnknownCall of any other function."""
    place = getattr(func, "__module__", None) or ""
    if isinstance(func, FunctionType) and place.split(".")[0] != "torch":
        raise UnknownCall(f"{place}.{func.__qualname__} is not torch's")
    if isinstance(func, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        if not str(func).startswith(("aten.", "prims.")):
            raise UnknownCall(f"{func} is not torch's")
        return str(func)
    owner = getattr(func, "__self__", None)
    if isinstance(func, BuiltinFunctionType) and owner is None and not place.startswith("torch"):
        raise UnknownCall(f"{func} is not torch's")
    return f"{place} {getattr(owner, '__qualname__', type(owner).__qualname__)} {func.__qualname__}"


def _numbers(tensor: Tensor) -> str:
    data = tensor.detach().contiguous().numpy().tobytes()
    digest = hashlib.sha256(data).hexdigest()
    return f"{tensor.dtype} {tuple(tensor.shape)} {tensor.stride()} {tensor.requires_grad} {digest}"


@cache
def _versions() -> bytes:
    """What else decides on what is exported: the packages' versions, and our own part in it."""
    packages = " ".join(f"{name} {version(name)}" for name in ("torch", "onnx", "onnxscript", "onnx-ir", "numpy"))
    here = Path(__file__).parent
    own = [(here / name).read_bytes() for name in ("export.py", "export_cache.py", "rewriting.py")]
    return hashlib.sha256(b"\n".join((packages.encode(), *own))).digest()


@contextmanager
def _as_exported() -> Iterator[None]:
    """Within this context ``torch.compiler.is_exporting`` and its like are true, as they are in the exporter."""
    flags = {"_is_compiling_flag": True, "_is_exporting_flag": True}
    before = {name: getattr(torch.compiler, name) for name in flags}
    try:
        for name, value in flags.items():
            setattr(torch.compiler, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(torch.compiler, name, value)


@contextmanager
def optimized_twice(parameters: Mapping[str, Tensor]) -> Iterator[Kept]:
    """Meanwhile, the exporter's optimizer runs again with other parameters, to see whether the graph is the same.

    Constants that it computes of parameters, or parameters that it merges as they are equal, make it another. Where it
    has left a parameter out for its value, such as a bias of zeros, the other graph is taken.
    """
    from torch.onnx import ONNXProgram

    optimize, kept = ONNXProgram.optimize, Kept()

    def twice(self: Any) -> None:
        import onnx_ir

        try:
            model = self.model.clone()
            model.graph._name_authority = deepcopy(self.model.graph._name_authority)  # which counts, to name new nodes
        except AttributeError:  # of another release of onnx_ir: nothing is kept
            optimize(self)
            return
        optimize(self)
        done, draw, others = self.model, np.random.default_rng(0), {}
        for name, value in parameters.items():
            others[name] = draw.normal(size=tuple(value.shape)).astype(value.detach().numpy().dtype)
            ends = [key for key in model.graph.initializers if key == name or key.endswith(f".{name}")]
            if len(ends) != 1:
                return
            model.graph.initializers[ends[0]].const_value = onnx_ir.tensor(others[name], name=ends[0])
        self.model = model
        optimize(self)
        other, second, drawn = self.model, self.model_proto, {name: torch.from_numpy(x) for name, x in others.items()}
        self.model = done
        first = self.model_proto
        if missing(first, parameters) and not missing(second, drawn):
            self.model = _with(other, second, parameters, others)
            return
        kept.parameters.update(_parameters(first, parameters, second, others))

    ONNXProgram.optimize = twice  # type: ignore[method-assign]
    try:
        yield kept
    finally:
        ONNXProgram.optimize = optimize  # type: ignore[method-assign]


def missing(model: ModelProto, parameters: Mapping[str, Tensor]) -> list[str]:
    """Names of parameters whose values are in none of the model's initializers, each taken once."""
    arrays, left = [numpy_helper.to_array(tensor) for tensor in model.graph.initializer], []
    for name, parameter in parameters.items():
        value = parameter.detach().numpy()
        match = [i for i, array in enumerate(arrays) if array.shape == value.shape and np.array_equal(array, value)]
        if match:
            arrays.pop(match[0])
        else:
            left.append(name)
    return left


def _with(model: Any, proto: ModelProto, parameters: Mapping[str, Tensor], others: Mapping[str, np.ndarray]) -> Any:
    """A graph of ``others`` as parameters, with ``parameters`` in their place."""
    import onnx_ir

    known = {(value.shape, value.tobytes()): name for name, value in others.items()}
    for tensor in proto.graph.initializer:
        array = numpy_helper.to_array(tensor)
        name = known.get((array.shape, array.tobytes()))
        if name is not None:
            value = parameters[name].detach().contiguous().numpy()
            model.graph.initializers[tensor.name].const_value = onnx_ir.tensor(value, name=tensor.name)
    return model


def _parameters(
    first: ModelProto, values: Mapping[str, Tensor], second: ModelProto, others: Mapping[str, np.ndarray]
) -> dict[str, str]:
    """The parameters of two graphs by their initializers' names; none if the graphs differ in anything else."""
    known = {(value.shape, value.tobytes()): name for name, value in others.items()}
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in first.graph.initializer}
    found = {}
    for tensor in second.graph.initializer:
        array = numpy_helper.to_array(tensor)
        name = known.get((array.shape, array.tobytes()))
        if name is not None and tensor.name in arrays:
            if not np.array_equal(arrays[tensor.name], values[name].detach().numpy(), equal_nan=True):
                return {}
            found[tensor.name] = name
    if set(found.values()) != set(values):
        return {}
    parts = [_emptied(model, found) for model in (first, second)]
    for model in parts:
        _without_traces(model)
    same = parts[0].SerializeToString(deterministic=True) == parts[1].SerializeToString(deterministic=True)
    return found if same else {}


def _without_traces(model: ModelProto) -> None:
    for item in (model.graph, *model.graph.node, *model.graph.input, *model.graph.output, *model.graph.initializer):
        del item.metadata_props[:]


def _emptied(model: ModelProto, names: Mapping[str, str]) -> ModelProto:
    """A copy without the numbers of some initializers."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for tensor in copy.graph.initializer:
        if tensor.name in names:
            tensor.ClearField("raw_data")
    return copy


def _keep(model: ModelProto, parameters: Mapping[str, str], file: Path) -> None:
    kept = _emptied(model, parameters)
    for initializer, name in parameters.items():
        kept.metadata_props.add(key=PARAMETER + initializer, value=name)
    data = kept.SerializeToString(deterministic=True)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write(file, data + hashlib.sha256(data).digest())
    except OSError:
        return  # a full or read-only disk takes nothing but the time of the next export


def _read(file: Path, parameters: Mapping[str, Tensor]) -> ModelProto | None:
    """The graph in a file with these parameters; None if it isn't there or whole, or is another for their values."""
    try:
        data = file.read_bytes()
    except OSError:  # it was not exported yet
        return None
    size = hashlib.sha256().digest_size
    if hashlib.sha256(data[:-size]).digest() != data[-size:]:
        return None
    model = load_from_string(data[:-size])
    names = {entry.key.removeprefix(PARAMETER): entry.value for entry in model.metadata_props}
    del model.metadata_props[:]
    for tensor in model.graph.initializer:
        if tensor.name in names:
            tensor.raw_data = parameters[names[tensor.name]].detach().contiguous().numpy().tobytes()
    numbers = [_content(tensor) for tensor in model.graph.initializer]
    return model if len(set(numbers)) == len(numbers) else None


def _content(tensor: TensorProto) -> tuple[Any, ...]:
    """What the optimizer merges initializers by."""
    return tensor.data_type, tuple(tensor.dims), numpy_helper.to_array(tensor).tobytes()
