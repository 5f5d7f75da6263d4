"""A numpy function that treats every number by itself, such as ``lambda x: np.clip(x, -10, 10)``, as a torch module.

The function is called with an object that stands for its argument and hands every operation of numpy on to torch, by
numpy's own protocols (NEP 13 and 18). What is not an operation on single numbers is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.lib.mixins import NDArrayOperatorsMixin
from torch import Tensor, nn

OPERATIONS: dict[str, Callable[..., Tensor]] = {
    **{name: getattr(torch, name) for name in (
        "abs", "add", "arctan", "clip", "cos", "divide", "exp", "expm1", "log1p", "maximum", "minimum", "multiply",
        "negative", "positive", "sign", "sin", "sqrt", "square", "subtract", "tanh", "where",
    )},
    "absolute": torch.abs, "true_divide": torch.divide, "power": torch.pow,
}  # fmt: skip
PRECISE = 1e-5
"""Relative: torch computes in float32, numpy perhaps in float64."""


class _Stand(NDArrayOperatorsMixin):
    """Stands for an array while a function of numpy is called with it."""

    def __init__(self, value: Tensor) -> None:
        self.value = value

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        if method != "__call__" or settings.pop("out", None) is not None:
            raise TypeError(f"it uses {ufunc.__name__}.{method}")
        return _apply(ufunc.__name__, inputs, settings)

    def __array_function__(self, function: Any, types: Any, inputs: Any, settings: Any) -> Any:
        return _apply(function.__name__, inputs, settings)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("it makes an array of its argument")

    def astype(self, dtype: Any, **_: Any) -> _Stand:
        """Floats stay what they are."""
        if not np.issubdtype(np.dtype(dtype), np.floating):
            raise TypeError(f"it makes its argument {np.dtype(dtype).name}")
        return self

    def clip(self, *bounds: Any, **settings: Any) -> Any:
        """As the method of arrays."""
        return np.clip(self, *bounds, **settings)

    def copy(self) -> _Stand:
        """It is never written to."""
        return self


def _apply(name: str, inputs: Any, settings: dict[str, Any]) -> _Stand:
    operation = OPERATIONS.get(name)
    given = {key: value for key, value in settings.items() if value is not None and value is not np._NoValue}
    if operation is None or not set(given) <= {"a_min", "a_max", "min", "max"}:
        raise TypeError(f"it uses numpy's {name}" + (f" with {sorted(given)}" if given else ""))
    bounds = [given[key] for key in ("a_min", "min", "a_max", "max") if key in given]
    if name == "clip" and len(inputs) + len(bounds) != 3:
        raise TypeError("it uses numpy's clip with one bound")
    arguments = [_tensor(value) for value in (*inputs, *bounds)]
    if name == "clip":
        return _Stand(torch.minimum(torch.maximum(arguments[0], arguments[1]), arguments[2]))
    return _Stand(operation(*arguments))


def _tensor(value: Any) -> Tensor:
    if isinstance(value, _Stand):
        return value.value
    return torch.from_numpy(np.array(value, np.float32))


class Elementwise(nn.Module):
    """(n, *shape) to (n, *shape), by a function of numpy."""

    def __init__(self, function: Callable[[Any], Any], shape: tuple[int, ...]) -> None:
        super().__init__()
        self.function, self.shape = function, tuple(shape)

    def __deepcopy__(self, memo: Any) -> Elementwise:
        return Elementwise(self.function, self.shape)  # a function may hold an environment

    def forward(self, values: Tensor) -> Tensor:
        found = self.function(_Stand(values))
        if not isinstance(found, _Stand):
            raise TypeError(f"it gives a {type(found).__name__} that does not depend on its argument")
        return found.value

    def require_same(self, function: Callable[[Any], Any], batched: bool) -> None:
        """ValueError unless the function does to arrays, of one robot or ``batched``, what this module does."""
        rows = np.random.default_rng(0).normal(scale=5.0, size=(64, *self.shape)).astype(np.float32)
        expected = np.asarray(function(rows.copy()) if batched else np.stack([function(row.copy()) for row in rows]))
        found = self(torch.from_numpy(rows)).numpy()
        if found.shape != expected.shape or not np.allclose(found, expected, rtol=PRECISE, atol=PRECISE):
            raise ValueError("it does more than treat every number by itself")
