"""Tensors that say they are on a GPU, and compute on the CPU: what mixes devices fails as it would there.

    with Elsewhere():
        x = torch.zeros(3, device=DEVICE)
        x + torch.ones(3)          # RuntimeError: expected all tensors on meta

The numbers are there, unlike those of torch's FakeTensorMode, so that code that depends on them runs, too.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.optim.optimizer import _get_fused_kernels_supported_devices
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from robo_rl.sim.accelerate.fuse import Fused

DEVICE = torch.device("meta")


class There(Tensor):
    """A tensor whose numbers are in ``inner``, on the CPU."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> There:
        made = Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), storage_offset=inner.storage_offset(), dtype=inner.dtype,
            device=DEVICE, requires_grad=False,
        )  # fmt: skip
        made.inner = inner
        return made

    def __repr__(self, **options: Any) -> str:
        return f"There({self.inner})"

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return dispatched(function, args, kwargs or {})


def dispatched(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """An operation, on the CPU, with its results where its arguments are, or where it is told to put them."""
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
    moves = function in (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)
    there = any(isinstance(x, There) for x in tensors)
    indexed = "index" in str(function)  # torch takes indices on the CPU
    if any(x.device == DEVICE and not isinstance(x, There) for x in tensors):
        raise RuntimeError(f"{function}: a tensor on {DEVICE} that has no numbers")
    if there and not moves:
        mixed = [x for x in tensors if not isinstance(x, There) and x.ndim > 0 and x.numel()]
        whole = all(x.dtype in (torch.int64, torch.bool) for x in mixed) and indexed
        if mixed and not whole:
            raise RuntimeError(f"{function}: expected all tensors on {DEVICE}; found {tuple(mixed[0].shape)} on cpu")
    wanted = kwargs.get("device")
    if wanted is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
        there = torch.device(wanted).type == DEVICE.type
    if function is torch.ops.aten.copy_.default:
        there = isinstance(args[0], There)
    unwrapped = tree_map(lambda x: x.inner if isinstance(x, There) else x, (args, kwargs))
    found = function(*unwrapped[0], **unwrapped[1])
    given = {id(x.inner): x for x in tensors if isinstance(x, There)}
    if not there:
        return found

    def wrapped(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        return given[id(x)] if id(x) in given else There(x)

    return tree_map(wrapped, found)


class Elsewhere(TorchDispatchMode):
    """Within it, tensors can be made on ``DEVICE``, and ``fuse`` runs there without torch.compile."""

    def __torch_dispatch__(self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return dispatched(function, args, kwargs or {})

    def __enter__(self) -> Any:
        self._patches = pytest.MonkeyPatch()
        known = [*_get_fused_kernels_supported_devices(), DEVICE.type]
        optimizers = sys.modules["torch.optim.optimizer"]  # whose name in torch.optim is taken
        self._patches.setattr(optimizers, "_get_fused_kernels_supported_devices", lambda: known)
        self._patches.setattr(Fused, "_elsewhere", property(lambda self: self.function))
        self._made = _Made()
        self._made.__enter__()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._made.__exit__(*error)
        self._patches.undo()


class _Made(TorchFunctionMode):
    """Tensors of Python's numbers are made here, and then put there."""

    def __torch_function__(self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        device = kwargs.get("device")
        if function is Tensor.tolist and isinstance(args[0], There):
            return args[0].inner.tolist()
        if function is Tensor.new_tensor and isinstance(args[0], There):
            return torch.tensor(*args[1:], **{"dtype": args[0].dtype, **kwargs}).to(DEVICE)
        if function in (Tensor.__getitem__, Tensor.__setitem__) and isinstance(args[0], There):
            args = (args[0], _tensors(args[1]), *args[2:])
        elsewhere = device is not None and torch.device(device).type == DEVICE.type
        if function in (torch.tensor, torch.as_tensor) and elsewhere and not isinstance(args[0], Tensor):
            return function(*args, **{**kwargs, "device": "cpu"}).to(DEVICE)
        return function(*args, **kwargs)


def _tensors(index: Any) -> Any:
    """``index`` with tensors for lists: of a list, torch makes a tensor on the device that no mode hears of."""
    if isinstance(index, tuple):
        return tuple([_tensors(part) for part in index])
    return torch.tensor(index) if isinstance(index, list) else index
