"""Calling fused functions on tensors: finding or tracing the program, and autograd."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse.bound import Bound, Native, Replayed, launch
from robo_rl.sim.accelerate.fuse.program import Program, name_of
from robo_rl.sim.accelerate.fuse.structure import Layout, flatten, rows, spaced, unflatten


def fuse(function: Callable[..., Any]) -> Fused:
    """``function``, compiled for the shapes that it is called with. See ``robo_rl.sim.accelerate.fuse``.

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
        program = self._program(structure, tensors)
        if program.loop is None:
            return self.function(*args)
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            results = _Differentiable.apply(program, *tensors)
        else:
            results = program.results.cut(*launch(program.loop, tensors, program.results))
        return unflatten(program.structure, iter(results))

    def block(self, *args: Any) -> Tensor:
        """(numbers, n): all results of a call, which are numbers, one below the other."""
        tensors: list[Tensor] = []
        structure = flatten(args, tensors)
        program = self._program(structure, tensors) if tensors[0].device.type == "cpu" else None
        if program is not None and program.loop is not None:
            return launch(program.loop, tensors, program.results)[0]
        results: list[Tensor] = []
        flatten((self.function if program else self._elsewhere)(*args), results)
        n = rows(tensors)
        return torch.cat([result.reshape(len(result), -1).mT.expand(-1, n) for result in results])

    def bind(self, *args: Any, out: Any, threads: int | None = None) -> Bound:
        """A call without arguments that reads these very tensors again and writes the results into those of ``out``.

        ``out`` has the structure of the results, as ``results`` makes it, and may hold inputs: each environment is
        read before it is written. Saves the time to look at the arguments at every call.
        ``threads``: the number of threads; None: by the number of environments.
        """
        tensors: list[Tensor] = []
        structure = flatten(args, tensors)
        targets: list[Tensor] = []
        given = flatten(out, targets)
        program = self._program(structure, tensors) if tensors[0].device.type == "cpu" else None
        if program is not None:
            if given != program.structure:
                name = name_of(self.function)
                raise ValueError(f"out of a bound call of '{name}' has another structure than its results")
            _require("out", targets, program.results, rows(tensors))
            if program.loop is not None:
                return Native(program.loop, tensors, targets, threads)
        function = self.function if program else self._elsewhere
        return Replayed(lambda given: function(*unflatten(structure, iter(given))), tensors, targets)

    def bind_gradient(self, *args: Any, cotangents: Any, wanted: Any, out: Any) -> Bound:
        """Like ``bind``, for the gradient: Σ cotangent · ∂result/∂input, for the ``wanted`` among the inputs.

        ``cotangents`` has the structure of the results. ``wanted`` are some of the arguments (the same tensors), in
        their order, each with all n environments; ``out`` has their structure.
        """
        tensors: list[Tensor] = []
        structure = flatten(args, tensors)
        given: list[Tensor] = []
        flatten(cotangents, given)
        chosen: list[Tensor] = []
        flatten(wanted, chosen)
        targets: list[Tensor] = []
        flatten(out, targets)
        flags = [any(tensor is choice for choice in chosen) for tensor in tensors]
        if sum(flags) != len(chosen) or any(tensor.shape[0] != rows(tensors) for tensor in chosen):
            raise ValueError("a gradient is wanted of a tensor that is not an argument with all environments")
        chosen = [tensor for tensor, flag in zip(tensors, flags, strict=True) if flag]
        program = self._program(structure, tensors) if tensors[0].device.type == "cpu" else None
        if program is not None:
            _require("out", targets, Layout.of(chosen), rows(tensors))
            _require("cotangents", given, program.results, rows(tensors))
            if program.loop is not None:
                loop, _ = program.gradient(tensors, flags, [True] * len(given))
                return Native(loop, [*tensors, *given], targets)
        count = len(tensors)
        return Replayed(
            lambda values: self._eager_gradient(structure, values[:count], flags, values[count:]),
            [*tensors, *given],
            targets,
        )

    def results(self, *args: Any, copies: int = 1) -> tuple[Tensor, list[Any]]:
        """Room for ``bind``'s results, ``copies`` times: blocks (copies, numbers, n), and the parts of each.

        Truth values are tensors beside the blocks.
        """
        tensors: list[Tensor] = []
        structure = flatten(args, tensors)
        program = self._program(structure, tensors)
        blocks = spaced(copies, program.results.total, rows(tensors), device=tensors[0].device, zero=True)
        return blocks, [unflatten(program.structure, iter(program.results.cut(block))) for block in blocks]

    def reads(self, *args: Any) -> list[bool]:
        """For each tensor in the arguments, in turn: whether any result depends on it, if all numbers are finite."""
        tensors: list[Tensor] = []
        structure = flatten(args, tensors)
        return self._program(structure, tensors).reads()

    def _eager_gradient(
        self, structure: Any, tensors: Sequence[Tensor], wanted: Sequence[bool], given: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        inputs = [t.detach().requires_grad_() if want else t for t, want in zip(tensors, wanted, strict=True)]
        chosen = [tensor for tensor, want in zip(inputs, wanted, strict=True) if want]
        results: list[Tensor] = []
        with torch.enable_grad():
            flatten(self.function(*unflatten(structure, iter(inputs))), results)
        pairs = [(r, c) for r, c in zip(results, given, strict=True) if r.requires_grad]
        found = torch.autograd.grad([r for r, _ in pairs], chosen, [c for _, c in pairs], allow_unused=True)
        return tuple([torch.zeros_like(t) if bar is None else bar for bar, t in zip(found, chosen, strict=True)])

    def _program(self, structure: Any, tensors: list[Tensor]) -> Program:
        n = _batch_size(self.function, tensors)
        key = (structure, *[(tensor.shape[1:], tensor.shape[0] < n) for tensor in tensors])
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = Program.trace(self.function, structure, tensors, n)
        return program


def _batch_size(function: Callable, tensors: Sequence[Tensor]) -> int:
    n = max([tensor.shape[0] if tensor.ndim else 0 for tensor in tensors])
    for place, tensor in enumerate(tensors):
        fits = tensor.ndim > 0 and tensor.shape[0] in (1, n)
        if not fits or tensor.dtype != torch.float32:
            where = f"tensor {place} given to fused '{name_of(function)}'"
            if fits:
                raise ValueError(f"{where} is {tensor.dtype}; expected torch.float32")
            raise ValueError(f"{where} has shape {tuple(tensor.shape)}; expected ({n}, …) or (1, …)")
    return n


def _require(what: str, given: Sequence[Tensor], layout: Layout, n: int) -> None:
    """Check tensors that a bound call reads or writes besides its arguments."""
    expected = [((n, *shape), kind) for shape, kind in zip(layout.shapes, layout.kinds, strict=True)]
    found = [(tuple(tensor.shape), tensor.dtype) for tensor in given]
    if found != expected:
        raise ValueError(f"{what} of a bound call: {found}; expected {expected}")


class _Differentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, program: Program, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.program = program
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        assert program.loop is not None
        results = program.results.cut(*launch(program.loop, tensors, program.results))
        ctx.mark_non_differentiable(*[r for r, mask in zip(results, program.results.masks, strict=True) if mask])
        return results

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Any, ...]:
        program, tensors, wanted = ctx.program, ctx.saved_tensors, ctx.needs_input_grad[1:]
        loop, layout = program.gradient(tensors, wanted, [cotangent is not None for cotangent in cotangents])
        given = [cotangent for cotangent in cotangents if cotangent is not None]
        bars = iter(layout.cut(*launch(loop, [*tensors, *given], layout)))
        found = [next(bars) if want else None for want in wanted]
        summed = [
            bar.sum(0, keepdim=True) if shared and bar is not None else bar
            for bar, shared in zip(found, program.shared, strict=True)
        ]
        return None, *summed
