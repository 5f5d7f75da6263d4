"""A graph of scalar expressions: what one environment computes in one step, number by number.

Nodes are immutable and interned, so equal expressions are one node; constants fold while the graph is
built. ``gradient`` adds the reverse-mode derivative to the same graph. There are no loops and no memory in
it: a node depends on earlier nodes alone, so the order of creation is an order of evaluation.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

COMPARISONS = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}
LOGIC = {"and": lambda a, b: a and b, "or": lambda a, b: a or b}
ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": np.divide,
    "min": np.minimum,
    "max": np.maximum,
    "at most": np.minimum,
    "at least": np.maximum,
}
"""With "at most" and "at least", whose second operand is a bound, for clamp, which has another gradient at a tie."""
EXTREMES: dict[str, str] = {"amin": "min", "amax": "max"}
"""Operations of any number of operands, and those of two that they are made of."""
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "neg": operator.neg,
    "abs": abs,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
}
NAN = float("nan")
LARGEST = float(np.finfo(np.float32).max)
MASKS = frozenset((*COMPARISONS, *LOGIC, "not"))
"""Operations whose value is a truth value, not a number."""
RANDOM = ("random0", "random1", "random2", "random3")
"""The four numbers of a key and a counter (``robo_rl.sim.accelerate.fuse.random``); nothing is differentiable in
those."""


@dataclass(frozen=True, slots=True)
class Node:
    """One scalar of a graph: its place in ``graph.operations``."""

    graph: Graph
    index: int

    @property
    def operation(self) -> tuple:
        return self.graph.operations[self.index]

    @property
    def value(self) -> float | None:
        """The number, when the node is a constant."""
        operation = self.operation
        return operation[1] if operation[0] == "const" else None

    @property
    def is_mask(self) -> bool:
        return self.operation[0] in MASKS


class Graph:
    """Interned operations ``(name, operand indices…)``, ``("const", number)`` or ``("input", slot)``."""

    def __init__(self) -> None:
        self.operations: list[tuple] = []
        self._index: dict[tuple, int] = {}

    def node(self, *operation: object) -> Node:
        index = self._index.setdefault(operation, len(self.operations))
        if index == len(self.operations):
            self.operations.append(operation)
        return Node(self, index)

    def constant(self, number: float) -> Node:
        """A node of a number, which a float32 can hold: larger ones are infinite, as they are in torch."""
        number = float(number)
        if number != number:
            return self.node("const", NAN)  # one object: only that equals itself, where nodes are looked up
        if number == 0 and np.signbit(number):
            return self.node("neg", self.node("const", 0.0).index)  # it equals 0, where nodes are looked up
        return self.node("const", number if abs(number) <= LARGEST else np.copysign(np.inf, number).item())

    def lift(self, value: Node | float) -> Node:
        return value if isinstance(value, Node) else self.constant(value)


def _folded(function: Callable[..., Any], *numbers: Any) -> Any:
    """A function of numbers, by IEEE 754: 0 / 0 and log −1 are no number, log 0 and exp 1000 are infinite."""
    with np.errstate(all="ignore"):
        value = function(*(x if isinstance(x, bool | np.bool_) else np.float64(x) for x in numbers))
    return value.item() if isinstance(value, np.generic) else value


def _require(masks: bool, name: str, *nodes: Node) -> None:
    if any(node.is_mask != masks for node in nodes):
        given = "a number; compare it first" if masks else "a truth value; use torch.where(mask, 1.0, 0.0)"
        raise TypeError(f"fuse can't apply '{name}' to {given}")


def unary(name: str, a: Node | float) -> Any:
    """``name`` of FUNCTIONS or "not", applied to one node; a plain number stays one."""
    if not isinstance(a, Node):
        return _folded((FUNCTIONS | {"not": operator.not_})[name], a)
    _require(name == "not", name, a)
    if name == "neg" and a.operation[0] == "neg":
        return Node(a.graph, a.operation[1])
    if a.value is not None and name in FUNCTIONS:
        return a.graph.constant(_folded(FUNCTIONS[name], a.value))
    return a.graph.node(name, a.index)


def binary(name: str, a: Node | float, b: Node | float) -> Any:
    """``name`` of ARITHMETIC, COMPARISONS or LOGIC, applied to nodes or plain numbers, simplified.

    Only what is the same for all numbers: 0 times what is not finite is no number.
    """
    if not isinstance(a, Node) and not isinstance(b, Node):
        return _folded((ARITHMETIC | COMPARISONS | LOGIC)[name], a, b)
    graph = next(x.graph for x in (a, b) if isinstance(x, Node))
    a, b = graph.lift(a), graph.lift(b)
    _require(name in LOGIC, name, a, b)
    x, y = a.value, b.value
    if x is not None and y is not None and name in ARITHMETIC:
        return graph.constant(_folded(ARITHMETIC[name], x, y))
    match name, x, y:
        case ("add", 0, _) | ("mul", 1, _):
            return b
        case ("add" | "sub", _, 0) | ("mul" | "div", _, 1):
            return a
        case ("sub", 0, _) | ("mul", -1, _):
            return unary("neg", b)
        case ("mul", _, -1):
            return unary("neg", a)
        case ("div", _, float()) if 1 / LARGEST < abs(y) < LARGEST:
            return binary("mul", a, 1 / y)
    if name in ("add", "mul", "min", "max", "and", "or") and (x is None, a.index) > (y is None, b.index):
        a, b = b, a  # one order for equal expressions, constants first
    return graph.node(name, a.index, b.index)


def extreme(name: str, operands: Sequence[Node | float]) -> Any:
    """The least or the greatest, ``name`` of EXTREMES, of nodes or plain numbers."""
    nodes = [x for x in operands if isinstance(x, Node)]
    if not nodes or len(operands) < 3:
        return functools.reduce(functools.partial(binary, EXTREMES[name]), operands)
    graph = nodes[0].graph
    lifted = [graph.lift(x) for x in operands]
    _require(False, name, *lifted)
    return graph.node(name, *(x.index for x in lifted))


def select(condition: Node | float, a: Node | float, b: Node | float) -> Any:
    """``a`` where ``condition`` holds, else ``b``."""
    if not isinstance(condition, Node):
        return a if condition else b
    graph = condition.graph
    a, b = graph.lift(a), graph.lift(b)
    _require(True, "where", condition)
    _require(False, "where", a, b)
    return a if a.index == b.index else graph.node("where", condition.index, a.index, b.index)


def needed(outputs: Sequence[Node], finite: bool = False) -> set[int]:
    """Indices of the operations that ``outputs`` depend on, their own included; ``finite``: if all numbers are finite,
    so that 0 times any of them is 0."""
    graph, found = outputs[0].graph, {node.index for node in outputs}
    for index in range(max(found), -1, -1):
        name, *operands = graph.operations[index]
        nothing = finite and name == "mul" and any(Node(graph, operand).value == 0 for operand in operands)
        if index in found and name not in ("const", "input") and not nothing:
            found.update(operands)
    return found


def gradient(outputs: Sequence[Node], cotangents: Sequence[Node], inputs: Sequence[Node]) -> list[Node]:
    """Σ_k cotangents[k] · ∂outputs[k]/∂input for each input: reverse mode, on the outputs' own graph."""
    graph = outputs[0].graph
    last = max(node.index for node in outputs)
    wanted = {node.index for node in inputs}
    varying = set(wanted)
    for index, (name, *operands) in enumerate(graph.operations[: last + 1]):
        if name not in ("const", "input") and any(operand in varying for operand in operands):
            varying.add(index)

    bars: dict[int, Node] = {}

    def give(index: int, bar: Callable[[], Node]) -> None:
        if index in varying:
            bars[index] = binary("add", bars[index], bar()) if index in bars else bar()

    for node, cotangent in zip(outputs, cotangents, strict=True):
        bars[node.index] = binary("add", bars[node.index], cotangent) if node.index in bars else cotangent
    for index in range(last, -1, -1):
        if index in bars and graph.operations[index][0] not in ("const", "input"):
            _pull_back(Node(graph, index), bars[index], give)
    return [bars.get(node.index, graph.constant(0)) for node in inputs]


def _pull_back(node: Node, bar: Node, give: Callable[[int, Callable[[], Node]], None]) -> None:
    """Hand the cotangent ``bar`` of one operation on to its operands, by the chain rule."""
    name, *indices = node.operation
    operands = [Node(node.graph, index) for index in indices]

    def times(factor: Node) -> Callable[[], Node]:
        return lambda: binary("mul", bar, factor)

    def minus(term: Callable[[], Node]) -> Callable[[], Node]:
        return lambda: unary("neg", term())

    match name, operands:
        case "add", (a, b):
            give(a.index, lambda: bar)
            give(b.index, lambda: bar)
        case "sub", (a, b):
            give(a.index, lambda: bar)
            give(b.index, minus(lambda: bar))
        case "mul", (a, b):
            give(a.index, times(b))
            give(b.index, times(a))
        case "div", (a, b):
            give(a.index, lambda: binary("div", bar, b))
            give(b.index, minus(lambda: binary("div", binary("mul", bar, node), b)))
        case (("at most" | "at least"), (a, bound)):
            within = binary("le" if name == "at most" else "ge", a, bound)  # at its bound, a clamped number counts
            give(a.index, lambda: select(within, bar, 0.0))
            give(bound.index, lambda: select(within, 0.0, bar))
        case (("min" | "max"), (a, b)):  # equal ones share
            order = ("lt", "le") if name == "max" else ("gt", "ge")
            for x, y in ((a, b), (b, a)):
                less, not_more = (binary(sign, x, y) for sign in order)
                shared = select(not_more, binary("mul", bar, 0.5), bar)
                give(x.index, functools.partial(select, less, 0.0, shared))
        case (("amin" | "amax"), _):  # equal ones share
            same = [binary("and", binary("le", x, node), binary("ge", x, node)) for x in operands]
            count = functools.reduce(functools.partial(binary, "add"), [select(x, 1.0, 0.0) for x in same])
            part = binary("div", bar, count)
            for x, chosen in zip(operands, same, strict=True):
                give(x.index, functools.partial(select, chosen, part, 0.0))
        case "where", (condition, a, b):
            give(a.index, lambda: select(condition, bar, 0.0))
            give(b.index, lambda: select(condition, 0.0, bar))
        case "neg", (a,):
            give(a.index, minus(lambda: bar))
        case "abs", (a,):
            at_0 = binary("mul", bar, a)  # 0, and no number where a is none
            up = select(binary("gt", a, 0.0), bar, at_0)
            give(a.index, lambda: select(binary("lt", a, 0.0), unary("neg", bar), up))
        case "sqrt", (_a,):
            give(indices[0], lambda: binary("div", binary("mul", bar, 0.5), node))
        case "exp", (_a,):
            give(indices[0], times(node))
        case "log", (a,):
            give(a.index, lambda: binary("div", bar, a))
        case "sin", (a,):
            give(a.index, lambda: binary("mul", bar, unary("cos", a)))
        case "cos", (a,):
            give(a.index, minus(lambda: binary("mul", bar, unary("sin", a))))
        case "tanh", (_a,):
            give(indices[0], lambda: binary("mul", bar, binary("sub", 1.0, binary("mul", node, node))))
