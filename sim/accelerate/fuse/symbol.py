"""Tensors whose numbers are expressions: running a torch function on them writes its graph.

A ``Symbol`` has the shape that a batch of one would have. Its arithmetic, and the torch functions in the
table below, act on an object array of graph nodes, with numpy's broadcasting, which is torch's. Anything
else raises a TypeError that names the function, and so does what looks across environments: nothing is
silently left out of a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from robo_rl.sim.accelerate.fuse.graph import RANDOM, Graph, Node, binary, extreme, select, unary
from robo_rl.sim.accelerate.fuse.random import uniforms

NAMES = {"axis": "dim", "keepdims": "keepdim"}
"""numpy's names of arguments, which torch takes beside its own."""


class Symbol:
    """An array of scalar expressions, shape (1, …), that the torch functions below accept as a tensor."""

    def __init__(self, nodes: Any) -> None:
        self.nodes = np.asarray(nodes, dtype=object)

    @classmethod
    def inputs(cls, graph: Graph, shape: tuple[int, ...], first_slot: int) -> Symbol:
        """New graph inputs, numbered from ``first_slot`` in row-major order."""
        count = int(np.prod(shape))
        nodes = np.empty(count, dtype=object)
        nodes[:] = [graph.node("input", first_slot + i) for i in range(count)]
        return cls(nodes.reshape(shape))

    @classmethod
    def __torch_function__(cls, function: Callable, types: object, args: tuple = (), kwargs: dict | None = None) -> Any:
        if function not in TORCH:
            name = getattr(function, "__name__", str(function))
            raise TypeError(f"fuse can't trace torch's '{name}'; supported: {sorted({f.__name__ for f in TORCH})}")
        given = {NAMES.get(name, name): value for name, value in (kwargs or {}).items()}
        return TORCH[function](*args, **given)

    def __bool__(self) -> bool:
        raise TypeError("a fused function can't branch on a tensor's value; use torch.where")

    def __getitem__(self, index: Any) -> Symbol:
        first = index[0] if isinstance(index, tuple) and index else index
        if not (first is Ellipsis or (isinstance(first, slice) and first == slice(None))):
            raise TypeError(f"a fused function can't index environments with {first!r}; begin with ':' as in x[:, 0]")
        return Symbol(self.nodes[index])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise TypeError(f"fuse can't trace a tensor's '{name}'; sim/accelerate/fuse/symbol.py lists what it supports")

    @property
    def shape(self) -> torch.Size:
        return torch.Size(self.nodes.shape)

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def ndim(self) -> int:
        return self.nodes.ndim

    @property
    def mT(self) -> Symbol:
        return Symbol(np.swapaxes(self.nodes, -1, -2))


def _nodes(value: Any) -> Any:
    if isinstance(value, Symbol):
        return value.nodes
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().double().numpy().astype(object)
    return value


def _inner(x: Symbol, dim: int) -> int:
    """``dim``, counted from the front, of a function that must not mix environments."""
    place = dim + x.ndim if dim < 0 else dim
    if not 0 < place < x.ndim:
        raise TypeError(f"a fused function can't mix environments, dimension 0; it was given dim={dim} of {x.ndim}")
    return place


def _elementwise(function: Callable, operands: int) -> Callable[..., Symbol]:
    apply = np.frompyfunc(function, operands, 1)

    def each(*args: Any) -> Symbol:
        with np.errstate(all="ignore"):
            return Symbol(apply(*(_nodes(arg) for arg in args)))

    return each


def _reduce(name: str) -> Callable[..., Symbol]:
    apply = np.frompyfunc(lambda a, b: binary(name, a, b), 2, 1)

    def reduce(
        x: Symbol, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, axis: Any = None,
        keepdims: bool = False,
    ) -> Symbol:  # fmt: skip
        dim, keepdim = dim if axis is None else axis, keepdim or keepdims  # by numpy's names, as torch takes them
        if dim is None:
            raise TypeError("a fused function can't reduce over environments too; give a dimension, as dim=-1")
        nodes = x.nodes
        for axis in sorted((_inner(x, d) for d in ((dim,) if isinstance(dim, int) else dim)), reverse=True):
            nodes = apply.reduce(nodes, axis=axis, keepdims=keepdim)
        return Symbol(nodes)

    return reduce


def _all_alike(number: float) -> Callable[..., Symbol]:
    return _elementwise(lambda a: a.graph.constant(number) if isinstance(a, Node) else number, 1)


def _extreme(name: str) -> Callable[..., Symbol]:
    def reduce(x: Symbol, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Symbol:
        if dim is None:
            raise TypeError("a fused function can't reduce over environments too; give a dimension, as dim=-1")
        axes = sorted(_inner(x, d) for d in ((dim,) if isinstance(dim, int) else dim))
        last = np.moveaxis(x.nodes, axes, range(-len(axes), 0))
        shape = last.shape[: last.ndim - len(axes)]
        nodes = np.empty(shape, dtype=object)
        for place in np.ndindex(shape):
            nodes[place] = extreme(name, last[place].ravel().tolist())
        return Symbol(np.expand_dims(nodes, axes) if keepdim else nodes)

    return reduce


_add, _mul, _sub = (_elementwise(lambda a, b, n=n: binary(n, a, b), 2) for n in ("add", "mul", "sub"))
_min, _max, _at_most, _at_least = (
    _elementwise(lambda a, b, n=n: binary(n, a, b), 2) for n in ("min", "max", "at most", "at least")
)
_div = _elementwise(lambda a, b: binary("div", a, b), 2)
_sum = _reduce("add")


def _power(x: Symbol, exponent: float) -> Symbol:
    if not isinstance(exponent, int | float) or exponent not in (0.5, 1, 2, 3, 4, 5, 6, 7, 8):
        raise TypeError(f"fuse supports powers of 0.5 and of integers from 1 to 8; got {exponent!r}")
    if exponent == 0.5:
        return TORCH[torch.sqrt](x)
    result = x
    for _ in range(int(exponent) - 1):
        result = _mul(result, x)
    return result


def _clamp(x: Symbol, min: Any = None, max: Any = None) -> Symbol:
    x = x if min is None else _at_least(x, min)
    return x if max is None else _at_most(x, max)


def _mean(x: Symbol, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Symbol:
    total = _sum(x, dim, keepdim)
    return _div(total, x.nodes.size / total.nodes.size)


def _norm(x: Symbol, ord: float = 2, dim: int | None = None, keepdim: bool = False) -> Symbol:
    if ord != 2:
        raise TypeError(f"fuse supports the vector norm of order 2; got {ord!r}")
    return TORCH[torch.sqrt](_sum(_mul(x, x), dim, keepdim))


def _unbind(x: Symbol, dim: int = 0) -> tuple[Symbol, ...]:
    return tuple(Symbol(part) for part in np.moveaxis(x.nodes, _inner(x, dim), 0))


def _stack(parts: Sequence[Any], dim: int = 0) -> Symbol:
    return Symbol(np.stack(np.broadcast_arrays(*(_nodes(part) for part in parts)), dim))


def _cat(parts: Sequence[Any], dim: int = 0) -> Symbol:
    return Symbol(np.concatenate([_nodes(part) for part in parts], dim))


def _split(x: Symbol, sizes: int | Sequence[int], dim: int = 0) -> tuple[Symbol, ...]:
    axis = _inner(x, dim)
    length = x.shape[axis]
    ends = list(range(sizes, length, sizes)) if isinstance(sizes, int) else list(np.cumsum(sizes))
    if not isinstance(sizes, int) and ends.pop() != length:
        raise TypeError(f"a fused function splits {length} numbers into parts of {list(sizes)}, whose sum differs")
    return tuple(Symbol(part) for part in np.split(x.nodes, ends, axis))


def _flatten(x: Symbol, start_dim: int = 0) -> Symbol:
    return _reshape(x, *x.shape[: _inner(x, start_dim)], -1)


def _squeeze(x: Symbol, dim: int) -> Symbol:
    axis = _inner(x, dim)
    return Symbol(np.squeeze(x.nodes, axis)) if x.shape[axis] == 1 else x


def _reshape(x: Symbol, *shape: Any) -> Symbol:
    return Symbol(x.nodes.reshape(*shape))


def _expand(x: Symbol, *shape: Any) -> Symbol:
    sizes = shape[0] if len(shape) == 1 else shape
    fill = (1,) * (len(sizes) - x.ndim) + tuple(x.shape)
    return Symbol(np.broadcast_to(x.nodes, tuple(f if s == -1 else s for s, f in zip(sizes, fill, strict=True))))


def _uniforms(stream: Symbol, step: Symbol, count: int, first: int = 0) -> Symbol:
    own = [node for symbol in (stream, step) for node in symbol.nodes.ravel() if isinstance(node, Node)]
    graph = own[0].graph
    key0, key1, number, episode, now = (graph.lift(x).index for x in (*stream.nodes[0], step.nodes[0]))
    drawn = []
    for place in range(first, first + count):
        four = graph.constant(place // 4).index
        drawn.append(graph.node(RANDOM[place % 4], key0, key1, now, number, episode, four))
    return Symbol([drawn])


def _matmul(x: Symbol, matrix: torch.Tensor) -> Symbol:
    if not isinstance(x, Symbol) or isinstance(matrix, Symbol) or x.ndim != 2 or matrix.ndim != 2:
        raise TypeError("fuse supports products of environments' vectors (n, k) with a constant matrix (k, m) alone")
    return _sum(_mul(Symbol(x.nodes[:, None]), matrix.mT[None]), -1)


def _flip_operands(function: Callable) -> Callable:
    return lambda a, b: function(b, a)


def _functions() -> dict[str, Callable]:
    """Torch's names, as functions and as methods, and what each does to Symbols."""
    unaries = ("neg", "abs", "sqrt", "exp", "log", "sin", "cos", "tanh")
    comparisons = ("lt", "le", "gt", "ge")
    table: dict[str, Callable] = {n: _elementwise(lambda a, n=n: unary(n, a), 1) for n in unaries}
    table |= {n: _elementwise(lambda a, b, n=n: binary(n, a, b), 2) for n in comparisons}
    table |= {"add": _add, "sub": _sub, "mul": _mul, "div": _div, "minimum": _min, "maximum": _max}
    table |= {"sum": _sum, "mean": _mean, "amax": _extreme("amax"), "amin": _extreme("amin")}
    table |= {
        "any": _reduce("or"),
        "all": _reduce("and"),
        "clamp": _clamp,
        "clip": _clamp,
        "pow": _power,
        "unbind": _unbind,
    }
    table |= {"square": lambda x: _mul(x, x), "reciprocal": lambda x: _div(1.0, x)}
    table |= {"rsqrt": lambda x: _div(1.0, table["sqrt"](x)), "flatten": _flatten, "squeeze": _squeeze}
    table |= {"sigmoid": lambda x: _add(_mul(table["tanh"](_mul(x, 0.5)), 0.5), 0.5)}
    table |= {"logical_and": _elementwise(lambda a, b: binary("and", a, b), 2)}
    table |= {"logical_or": _elementwise(lambda a, b: binary("or", a, b), 2)}
    table |= {"logical_not": _elementwise(lambda a: unary("not", a), 1)}
    table |= {"eq": lambda a, b: table["le"](a, b) & table["ge"](a, b), "ne": lambda a, b: ~table["eq"](a, b)}
    table |= {"stack": _stack, "cat": _cat, "split": _split, "reshape": _reshape, "expand": _expand}
    table |= {"matmul": _matmul, "unsqueeze": lambda x, dim: Symbol(np.expand_dims(x.nodes, dim))}
    table |= {"where": _elementwise(select, 3), "zeros_like": _all_alike(0.0), "ones_like": _all_alike(1.0)}
    return table


TORCH: dict[Callable, Callable] = {torch.linalg.vector_norm: _norm, uniforms: _uniforms}
for _name, _function in _functions().items():
    for _owner in (torch, torch.Tensor):
        if hasattr(_owner, _name):
            TORCH[getattr(_owner, _name)] = _function
    if hasattr(torch.Tensor, _name):
        setattr(Symbol, _name, _function)
for _operator, _name in {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow", "neg": "neg", "abs": "abs",
    "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "eq": "eq", "ne": "ne",
    "and": "logical_and", "or": "logical_or", "invert": "logical_not",
}.items():  # fmt: skip
    _function = _functions()[_name]
    setattr(Symbol, f"__{_operator}__", _function)
    if _operator in ("add", "sub", "mul", "truediv", "and", "or"):
        setattr(Symbol, f"__r{_operator}__", _flip_operands(_function))
for _method in ("__radd__", "__rsub__", "__rmul__", "__rtruediv__", "__rdiv__"):
    if hasattr(torch.Tensor, _method):  # what `tensor + symbol` asks for
        TORCH[getattr(torch.Tensor, _method)] = getattr(Symbol, _method, _flip_operands(_div))


def leaves(symbol: Symbol) -> list[Node]:
    """The expressions of a Symbol in row-major order."""
    return list(symbol.nodes.ravel())
