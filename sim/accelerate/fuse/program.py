"""A traced function: its graph, and the native code that is made of it when it is first run."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from robo_rl.sim.accelerate.fuse.graph import Graph, Node, gradient, needed
from robo_rl.sim.accelerate.fuse.native import CompilerMissing, Loop, load, source
from robo_rl.sim.accelerate.fuse.structure import Layout, flatten, unflatten
from robo_rl.sim.accelerate.fuse.symbol import Symbol, leaves


@dataclass
class Program:
    """A traced function: its graph, its native code, and native gradients for the inputs asked for so far."""

    graph: Graph
    inputs: list[list[Node]]
    shared: list[bool]
    outputs: list[list[Node]]
    results: Layout
    structure: Any
    _gradients: dict[tuple[bool, ...], tuple[Loop, Layout]] = field(default_factory=dict)

    @classmethod
    def trace(cls, function: Callable, structure: Any, tensors: Sequence[Tensor], n: int) -> Program:
        """Run the function on symbols, for arguments of this structure."""
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
                shape, name = tuple(result.shape), name_of(function)
                raise TypeError(
                    f"result {place} of fused '{name}' has shape {shape} for one environment; expected (1, …)"
                )
        outputs = [[graph.lift(node) for node in _scalars(result)] for result in results]
        masks = [bool(nodes) and nodes[0].is_mask for nodes in outputs]
        return cls(
            graph=graph,
            inputs=[leaves(symbol) for symbol in symbols],
            shared=[tensor.shape[0] < n for tensor in tensors],
            outputs=outputs,
            results=Layout([result.shape[1:] for result in results], masks),
            structure=result_structure,
        )

    @functools.cached_property
    def loop(self) -> Loop | None:
        """The native code; None where there is no compiler."""
        try:
            return self._load(self.outputs, self.inputs, self.shared)
        except CompilerMissing as missing:
            warnings.warn(f"{missing}. Simulation runs without compilation: many times slower.", stacklevel=4)
            return None

    def _load(
        self, outputs: Sequence[Sequence[Node]], inputs: Sequence[Sequence[Node]], shared: Sequence[bool]
    ) -> Loop:
        return load(source(self.graph, outputs, [len(nodes) for nodes in inputs], shared))

    def reads(self) -> list[bool]:
        """For each input, in turn: whether any result depends on it, as long as all numbers are finite."""
        read = needed([node for nodes in self.outputs for node in nodes], finite=True)
        return [any(node.index in read for node in nodes) for nodes in self.inputs]

    def gradient(
        self, tensors: Sequence[Tensor], wanted: Sequence[bool], present: Sequence[bool]
    ) -> tuple[Loop, Layout]:
        """Native code for the gradient of the ``wanted`` inputs, given cotangents for the ``present`` results."""
        key = (*wanted, *present)
        if key not in self._gradients:
            layout = Layout.of([tensor for tensor, want in zip(tensors, wanted, strict=True) if want])
            self._gradients[key] = self._compile_gradient(wanted, present), layout
        return self._gradients[key]

    def _compile_gradient(self, wanted: Sequence[bool], present: Sequence[bool]) -> Loop:
        slot = sum(len(nodes) for nodes in self.inputs)
        outputs: list[list[Node]] = []
        cotangents: list[list[Node]] = []
        for nodes, here in zip(self.outputs, present, strict=True):
            if here:
                outputs.append(nodes)
                cotangents.append([self.graph.node("input", slot + i) for i in range(len(nodes))])
                slot += len(nodes)
        chosen = [nodes for nodes, want in zip(self.inputs, wanted, strict=True) if want]
        pairs = [(o, c) for os, cs in zip(outputs, cotangents, strict=True) for o, c in zip(os, cs, strict=True)]
        numbers = [(o, c) for o, c in pairs if not o.is_mask]
        bars = iter(gradient([o for o, _ in numbers], [c for _, c in numbers], [n for nodes in chosen for n in nodes]))
        found = [[next(bars) for _ in nodes] for nodes in chosen]
        return self._load(found, [*self.inputs, *cotangents], [*self.shared, *(False for _ in cotangents)])


def name_of(function: Callable) -> str:
    """A function's name, for messages."""
    return getattr(function, "__name__", "function")


def _scalars(result: Any) -> list[Any]:
    return leaves(result) if isinstance(result, Symbol) else result.flatten().tolist()
