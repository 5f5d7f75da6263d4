"""Calling fused functions on tensors: flattening, layout, threads and autograd."""

from __future__ import annotations

import ctypes
import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from sim.fuse.graph import Graph, Node, gradient, needed
from sim.fuse.native import CompilerMissing, load, source
from sim.fuse.symbol import Symbol, leaves

ROWS_PER_THREAD = 2048  # fewer environments than this are not worth a second thread's wake-up


def fuse(function: Callable[..., Any]) -> Fused:
    """``function``, compiled for the shapes that it is called with. See ``sim.fuse``.

    Arguments and results are tensors, or tuples, named tuples and dictionaries of them (also nested).
    Raises TypeError on what can't be traced and ValueError on tensors that don't fit.
    """
    return Fused(function)


class Fused:
    """A fused function; see ``fuse``."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self._programs: dict[object, Program] = {}

    @functools.cached_property
    def _elsewhere(self) -> Callable[..., Any]:
        """For other devices than the CPU. Made when needed, for torch.compile takes seconds to load."""
        return torch.compile(self.function, dynamic=True)

    def __call__(self, *args: Any) -> Any:
        """Call it. Differentiable."""
        tensors: list[Tensor] = []
        structure = flatten(args, tensors)
        if tensors[0].device.type != "cpu":
            return self._elsewhere(*args)
        program = self._program(args, structure, tensors)
        if program.run is None:
            return self.function(*args)
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            results = _Differentiable.apply(program, *tensors)
        else:
            results = _launch(program.run, tensors, program.results)
        return unflatten(program.structure, iter(results))

    def bind(self, *args: Any, out: Tensor) -> Callable[[], None]:
        """A call without arguments that reads these very tensors again and writes the results into ``out``.

        ``out`` has shape (numbers, n), as ``empty_block`` makes it, and may hold the inputs themselves: each
        environment is read before it is written. Saves the time to look at the arguments at every call.
        """
        tensors: list[Tensor] = []
        structure = flatten(args, tensors)
        native = tensors[0].device.type == "cpu"
        program = self._program(args, structure, tensors) if native else None
        if program is not None:
            _require_block(out, program.results.total, _rows(tensors))
        if program is None or program.run is None:
            function = self.function if native else self._elsewhere
            return lambda: _store(function(*args), out)
        return _prepare(program.run, tensors, out)

    def bind_gradient(self, *args: Any, cotangents: Any, wanted: Any, out: Tensor) -> Callable[[], None]:
        """Like ``bind``, for the gradient: Σ cotangent · ∂result/∂input, for the ``wanted`` among the inputs.

        ``cotangents`` has the structure of the results. ``wanted`` are some of the arguments (the same tensors),
        each with all n environments; their gradients lie in ``out`` in the order of the arguments.
        """
        tensors: list[Tensor] = []
        structure = flatten(args, tensors)
        given: list[Tensor] = []
        flatten(cotangents, given)
        chosen: list[Tensor] = []
        flatten(wanted, chosen)
        flags = [any(tensor is choice for choice in chosen) for tensor in tensors]
        if sum(flags) != len(chosen) or any(tensor.shape[0] != _rows(tensors) for tensor in chosen):
            raise ValueError("a gradient is wanted of a tensor that is not an argument with all environments")
        chosen = [tensor for tensor, flag in zip(tensors, flags, strict=True) if flag]
        program = self._program(args, structure, tensors) if tensors[0].device.type == "cpu" else None
        if program is not None:
            _require_block(out, sum(tensor[0].numel() for tensor in chosen), _rows(tensors))
            _require_cotangents(given, program.results, _rows(tensors))
        if program is None or program.run is None:
            return lambda: _store(tuple(self._eager_gradient(args, given, chosen)), out)
        run, _ = program.gradient(tensors, flags, [True] * len(given))
        return _prepare(run, [*tensors, *given], out)

    def results(self, *args: Any, copies: int = 1) -> tuple[Tensor, list[Any]]:
        """Room for ``bind``'s results, ``copies`` times: blocks (copies, numbers, n), and the parts of each."""
        tensors: list[Tensor] = []
        structure = flatten(args, tensors)
        program = self._program(args, structure, tensors)
        if any(program.results.masks):
            raise TypeError(
                f"fused '{_name(self.function)}' has truth values; bound, it needs torch.where(mask, 1.0, 0.0)"
            )
        blocks = torch.zeros(copies, program.results.total, _rows(tensors), device=tensors[0].device)
        return blocks, [unflatten(program.structure, iter(program.results.cut(block))) for block in blocks]

    def reads(self, *args: Any) -> list[bool]:
        """For each tensor in the arguments, in turn: whether any result depends on it."""
        tensors: list[Tensor] = []
        structure = flatten(args, tensors)
        program = self._program(args, structure, tensors)
        read = needed([node for nodes in program.outputs for node in nodes])
        return [any(node.index in read for node in nodes) for nodes in program.inputs]

    def _eager_gradient(self, args: Any, given: list[Tensor], chosen: list[Tensor]) -> Sequence[Tensor]:
        tensors: list[Tensor] = []
        structure = flatten(args, tensors)
        inputs = {id(t): t.detach().requires_grad_() for t in chosen}
        results: list[Tensor] = []
        with torch.enable_grad():
            flatten(self.function(*unflatten(structure, iter([inputs.get(id(t), t) for t in tensors]))), results)
        pairs = [(r, c) for r, c in zip(results, given, strict=True) if r.requires_grad]
        found = torch.autograd.grad(
            [r for r, _ in pairs], list(inputs.values()), [c for _, c in pairs], allow_unused=True
        )
        return [torch.zeros_like(t) if bar is None else bar for bar, t in zip(found, chosen, strict=True)]

    def _program(self, args: Any, structure: Any, tensors: list[Tensor]) -> Program:
        key = (structure, *[(tensor.shape, tensor.dtype) for tensor in tensors])
        program = self._programs.get(key)
        if program is None:
            n = _batch_size(self.function, tensors)
            kind = (structure, *[(tensor.shape[1:], tensor.shape[0] < n) for tensor in tensors])
            if kind not in self._programs:
                self._programs[kind] = Program.trace(self.function, args, structure, tensors, n)
            program = self._programs[key] = self._programs[kind]
        return program


def empty_block(n: int, shapes: Sequence[tuple[int, ...]], device: Any = None) -> tuple[Tensor, tuple[Tensor, ...]]:
    """A structure of arrays for n environments, and its parts as (n, …) tensors, all zero."""
    layout = Layout([torch.Size(shape) for shape in shapes], [False] * len(shapes))
    block = torch.zeros(layout.total, n, device=device)
    return block, layout.cut(block)


def blocks_like(value: Any, copies: int) -> tuple[Tensor, list[Any]]:
    """Room for the tensors (n, …) in ``value``, ``copies`` times: blocks (copies, numbers, n), and their parts."""
    tensors: list[Tensor] = []
    structure = flatten(value, tensors)
    layout = Layout([tensor.shape[1:] for tensor in tensors], [False] * len(tensors))
    blocks = torch.zeros(copies, layout.total, _rows(tensors), device=tensors[0].device)
    return blocks, [unflatten(structure, iter(layout.cut(block))) for block in blocks]


def flatten(value: Any, tensors: list[Tensor]) -> Any:
    """Append the tensors in ``value`` to ``tensors`` and return what is left: the structure, hashable."""
    if isinstance(value, Tensor | Symbol):
        tensors.append(value)  # type: ignore[arg-type]
        return None
    if isinstance(value, tuple):
        return type(value), tuple([flatten(item, tensors) for item in value])
    if isinstance(value, dict):
        return dict, tuple(value), tuple([flatten(item, tensors) for item in value.values()])
    raise TypeError(f"a fused function was given a {type(value).__name__}; expected tensors, tuples, dictionaries")


def unflatten(structure: Any, tensors: Iterator[Any]) -> Any:
    """The value whose structure and tensors these are."""
    if structure is None:
        return next(tensors)
    if structure[0] is dict:
        return {key: unflatten(item, tensors) for key, item in zip(structure[1], structure[2], strict=True)}
    kind, items = structure
    values = [unflatten(item, tensors) for item in items]
    return kind(*values) if hasattr(kind, "_fields") else kind(values)


def _batch_size(function: Callable, tensors: Sequence[Tensor]) -> int:
    name = _name(function)
    n = max([tensor.shape[0] if tensor.ndim else 0 for tensor in tensors])
    for place, tensor in enumerate(tensors):
        where = f"tensor {place} given to fused '{name}'"
        if tensor.ndim == 0 or tensor.shape[0] not in (1, n):
            raise ValueError(f"{where} has shape {tuple(tensor.shape)}; expected ({n}, …) or (1, …)")
        if tensor.dtype != torch.float32:
            raise ValueError(f"{where} is {tensor.dtype}; expected torch.float32")
    return n


def _rows(tensors: Sequence[Tensor]) -> int:
    return max([tensor.shape[0] for tensor in tensors])


def _require_block(out: Tensor, numbers: int, n: int) -> None:
    if out.shape != (numbers, n) or out.dtype != torch.float32 or not out.is_contiguous():
        given = f"{out.dtype} {tuple(out.shape)}{'' if out.is_contiguous() else ', with gaps'}"
        raise ValueError(f"out of a bound call is {given}; expected contiguous torch.float32 {(numbers, n)}")


def _require_cotangents(given: Sequence[Tensor], results: Layout, n: int) -> None:
    shapes = [(n, *shape) for shape in results.shapes]
    if [tuple(tensor.shape) for tensor in given] != shapes or any(t.dtype != torch.float32 for t in given):
        found = [(tuple(tensor.shape), tensor.dtype) for tensor in given]
        raise ValueError(f"cotangents are {found}; expected torch.float32 of the results' shapes, {shapes}")


def _name(function: Callable) -> str:
    return getattr(function, "__name__", "function")


@dataclass
class Layout:
    """How a structure of arrays (numbers, n) is cut into tensors (n, …)."""

    shapes: Sequence[torch.Size]
    masks: Sequence[bool]

    def __post_init__(self) -> None:
        self.counts = [shape.numel() for shape in self.shapes]
        self.total = sum(self.counts)
        self.flat = all(len(shape) == 1 for shape in self.shapes) and not any(self.masks)

    def cut(self, block: Tensor) -> tuple[Tensor, ...]:
        """Views of ``block``, shape (numbers, n); truth values become torch.bool."""
        parts = block.mT.split_with_sizes(self.counts, 1)
        if self.flat:
            return parts
        shaped = [p.unflatten(1, shape) if len(shape) else p[:, 0] for p, shape in zip(parts, self.shapes, strict=True)]
        return tuple([part > 0.5 if mask else part for part, mask in zip(shaped, self.masks, strict=True)])


@dataclass
class Program:
    """A traced function: its graph, its native code, and native gradients for the inputs asked for so far."""

    graph: Graph
    inputs: list[list[Node]]
    shared: list[bool]
    outputs: list[list[Node]]
    results: Layout
    structure: Any
    run: Any = None
    _gradients: dict[tuple[bool, ...], tuple[Any, Layout]] = field(default_factory=dict)

    @classmethod
    def trace(cls, function: Callable, args: Any, structure: Any, tensors: Sequence[Tensor], n: int) -> Program:
        graph = Graph()
        symbols: list[Symbol] = []
        slots = 0
        for tensor in tensors:
            symbols.append(Symbol.inputs(graph, (1, *tensor.shape[1:]), slots))
            slots += symbols[-1].nodes.size
        results: list[Any] = []
        result_structure = flatten(function(*unflatten(structure, iter(symbols))), results)
        for place, result in enumerate(results):
            if result.ndim == 0 or result.shape[0] != 1:
                shape, name = tuple(result.shape), _name(function)
                raise TypeError(
                    f"result {place} of fused '{name}' has shape {shape} for one environment; expected (1, …)"
                )
        outputs = [[graph.lift(node) for node in _scalars(result)] for result in results]
        program = cls(
            graph=graph,
            inputs=[leaves(symbol) for symbol in symbols],
            shared=[tensor.shape[0] < n for tensor in tensors],
            outputs=outputs,
            results=Layout([result.shape[1:] for result in results], [nodes[0].is_mask for nodes in outputs]),
            structure=result_structure,
        )
        try:
            program.run = program._load([node for nodes in outputs for node in nodes], program.inputs, program.shared)
        except CompilerMissing as missing:
            warnings.warn(f"{missing}. Simulation runs without compilation: many times slower.", stacklevel=4)
        return program

    def _load(self, outputs: Sequence[Node], inputs: Sequence[Sequence[Node]], shared: Sequence[bool]) -> Any:
        return load(source(self.graph, outputs, [len(nodes) for nodes in inputs], shared))

    def gradient(
        self, tensors: Sequence[Tensor], wanted: Sequence[bool], present: Sequence[bool]
    ) -> tuple[Any, Layout]:
        """Native code for the gradient of the ``wanted`` inputs, given cotangents for the ``present`` results."""
        key = (*wanted, *present)
        if key not in self._gradients:
            shapes = [tensor.shape[1:] for tensor, want in zip(tensors, wanted, strict=True) if want]
            self._gradients[key] = self._compile_gradient(wanted, present), Layout(shapes, [False] * len(shapes))
        return self._gradients[key]

    def _compile_gradient(self, wanted: Sequence[bool], present: Sequence[bool]) -> Any:
        slot = sum(len(nodes) for nodes in self.inputs)
        outputs, cotangents = [], []
        for nodes, here in zip(self.outputs, present, strict=True):
            if here:
                outputs.append(nodes)
                cotangents.append([self.graph.node("input", slot + i) for i in range(len(nodes))])
                slot += len(nodes)
        inputs = [node for nodes, want in zip(self.inputs, wanted, strict=True) if want for node in nodes]
        pairs = [(o, c) for os, cs in zip(outputs, cotangents, strict=True) for o, c in zip(os, cs, strict=True)]
        numbers = [(o, c) for o, c in pairs if not o.is_mask]
        bars = gradient([o for o, _ in numbers], [c for _, c in numbers], inputs)
        return self._load(bars, [*self.inputs, *cotangents], [*self.shared, *(False for _ in cotangents)])


class _Differentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, program: Program, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.program = program
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        results = _launch(program.run, tensors, program.results)
        ctx.mark_non_differentiable(*[r for r, mask in zip(results, program.results.masks, strict=True) if mask])
        return results

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Any, ...]:
        program, tensors, wanted = ctx.program, ctx.saved_tensors, ctx.needs_input_grad[1:]
        run, layout = program.gradient(tensors, wanted, [cotangent is not None for cotangent in cotangents])
        given = [cotangent for cotangent in cotangents if cotangent is not None]
        bars = iter(_launch(run, [*tensors, *given], layout))
        found = [next(bars) if want else None for want in wanted]
        summed = [
            bar.sum(0, keepdim=True) if shared and bar is not None else bar
            for bar, shared in zip(found, program.shared, strict=True)
        ]
        return None, *summed


def _scalars(result: Any) -> list[Any]:
    return leaves(result) if isinstance(result, Symbol) else result.flatten().tolist()


def _launch(run: Any, tensors: Sequence[Tensor], layout: Layout) -> tuple[Tensor, ...]:
    block = torch.empty(layout.total, _rows(tensors))
    _prepare(run, tensors, block, bound=False)()
    return layout.cut(block)


def _prepare(run: Any, tensors: Sequence[Tensor], block: Tensor, bound: bool = True) -> Callable[[], None]:
    """Native code bound to tensors: each is passed as an address and the distance between its rows of n."""
    n = block.shape[1]
    kept = [_as_rows(tensor, n) for tensor in tensors]
    if bound and any(used is not tensor for used, tensor in zip(kept, tensors, strict=True)):
        raise ValueError("a bound call needs tensors whose environments are neighbours in memory, as empty_block's are")
    vector = ctypes.c_int64 * len(kept)
    addresses = vector(*[tensor.data_ptr() for tensor in kept])
    strides = vector(*[tensor.stride(-1) if tensor.ndim > 1 else 0 for tensor in kept])
    threads = max(1, min(torch.get_num_threads(), n // ROWS_PER_THREAD))
    results = block.data_ptr()

    def call() -> None:
        run(addresses, strides, results, n, threads)

    call.memory = kept, block  # type: ignore[attr-defined]  # keeps alive what the addresses point to
    return call


def _as_rows(tensor: Tensor, n: int) -> Tensor:
    """``tensor`` as evenly spaced rows, one per number, of n neighbouring floats; copied only if it isn't."""
    if tensor.ndim <= 2:
        rows = n == 1 or tensor.shape[0] == 1 or tensor.stride(0) == 1
        return tensor if rows else tensor.mT.contiguous().mT if tensor.ndim == 2 else tensor.contiguous()
    rows_first = tensor.movedim(0, -1)
    return tensor if rows_first.is_contiguous() else rows_first.contiguous().movedim(-1, 0)


def _store(results: Any, block: Tensor) -> None:
    tensors: list[Tensor] = []
    flatten(results, tensors)
    rows = [tensor.reshape(tensor.shape[0], -1).mT.float() for tensor in tensors]
    block.copy_(torch.cat([row.expand(-1, block.shape[1]) for row in rows]))
