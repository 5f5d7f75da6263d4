"""Torch's ONNX exporter, without work that changes nothing of what it writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_registries: dict[Any, Any] = {}
"""Of translations from torch to ONNX, by the version of ONNX."""


@contextmanager
def registry_once() -> Iterator[None]:
    """Meanwhile, the registry of translations is made once for all exports of this process, in half a second."""
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    made = ONNXRegistry.from_torchlib

    def kept(opset_version: Any) -> Any:
        if opset_version not in _registries:
            _registries[opset_version] = made(opset_version=opset_version)
        return _registries[opset_version]

    ONNXRegistry.from_torchlib = staticmethod(kept)  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        ONNXRegistry.from_torchlib = classmethod(made.__func__)  # type: ignore[assignment, attr-defined, method-assign]


@contextmanager
def patterns_by_operator() -> Iterator[None]:
    """Meanwhile, a pattern of onnxscript's optimizer is only tried on nodes with the operator it ends with.

    On any other node it fails in the end, but a pattern with several outputs goes through the whole graph before it
    does: of a graph of thousands of nodes that is half of the export. What is exported is the same.
    """
    from onnxscript.rewriter._basics import MatchResult
    from onnxscript.rewriter._matcher import SimplePatternMatcher

    match = SimplePatternMatcher.match

    def quick(self: Any, model: Any, graph_or_function: Any, node: Any, **options: Any) -> Any:
        if self.pattern.output_nodes[0].op.matches(node.op_type):
            return match(self, model, graph_or_function, node, **options)
        return MatchResult().fail("another operator")

    SimplePatternMatcher.match = quick  # type: ignore[method-assign]
    try:
        yield
    finally:
        SimplePatternMatcher.match = match  # type: ignore[method-assign]
