"""Running native code on tensors, once, or bound to memory that is read and written again and again."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse.native import Loop
from robo_rl.sim.accelerate.fuse.structure import Layout, flatten, rows, spaced, spacing

ROWS_PER_THREAD = 2048  # fewer environments than this are not worth a second thread's wake-up


class Bound(Protocol):
    """A fused function with its arguments and the tensors that its results are written into."""

    def __call__(self, ids: Tensor | None = None) -> None:
        """Recompute the results: of all environments, or of ``ids`` (m,), different numbers, alone."""

    def redirect(self, place: int, target: Tensor) -> None:
        """Write result number ``place`` into another tensor from now on, of the same layout in memory."""


class Native:
    """Native code bound to tensors: each is passed as an address and the distance between its rows of n."""

    def __init__(
        self, loop: Loop, tensors: Sequence[Tensor], results: Sequence[Tensor], threads: int | None = None
    ) -> None:
        n = rows(tensors)
        for tensor in (*tensors, *results):
            if _as_rows(tensor, n) is not tensor:
                raise ValueError(
                    "a bound call needs tensors whose environments are neighbours in memory, as empty_block's are"
                )
        self._loop, self._n = loop, n
        self._memory = list(tensors), list(results)  # keeps alive what the addresses point to
        self._from = _addresses([tensor.data_ptr() for tensor in tensors])
        self._to = _addresses([target.data_ptr() for target in results])
        self._strides = [_addresses([_row(tensor) for tensor in side]) for side in self._memory]
        self._threads = threads or _threads(n)

    def __call__(self, ids: Tensor | None = None) -> None:
        """Recompute the results: of all environments, or of ``ids`` (m,), different numbers, alone."""
        where = self._from, self._strides[0], self._to, self._strides[1]
        if ids is None:
            self._loop.run(*where, self._n, self._threads)
        else:
            ids = ids.contiguous()
            self._loop.run_rows(*where, ids.data_ptr(), len(ids), min(self._threads, 1 + len(ids) // 128))

    def redirect(self, place: int, target: Tensor) -> None:
        """Write result number ``place`` into another tensor from now on, of the same layout in memory."""
        self._memory[1][place] = target
        self._to[place] = target.data_ptr()


class Replayed:
    """A function of torch whose results are copied, where there is no native code."""

    def __init__(
        self, function: Callable[..., Any], tensors: Sequence[Tensor], targets: Sequence[Tensor], structure: Any = None
    ) -> None:
        """``function`` is one of flat tensors."""
        self._function, self._tensors, self._targets = function, list(tensors), list(targets)
        self._n = rows(tensors)

    def __call__(self, ids: Tensor | None = None) -> None:
        """Recompute the results: of all environments, or of ``ids`` (m,), different numbers, alone."""
        given = self._tensors
        if ids is not None:
            given = [tensor if len(tensor) < self._n else tensor[ids] for tensor in given]
        results: list[Tensor] = []
        flatten(self._function(given), results)
        mine = {target.untyped_storage().data_ptr() for target in self._targets}
        results = [value.clone() if value.untyped_storage().data_ptr() in mine else value for value in results]
        for target, result in zip(self._targets, results, strict=True):
            if ids is None:
                target.copy_(result.expand_as(target))
            else:
                target[ids] = result.expand(len(ids), *target.shape[1:])

    def redirect(self, place: int, target: Tensor) -> None:
        """Write result number ``place`` into another tensor from now on."""
        self._targets[place] = target


def launch(loop: Loop, tensors: Sequence[Tensor], layout: Layout) -> tuple[Tensor, Tensor | None]:
    """Run once: the numbers (numbers, n), and the truth values (truth values, n), of all results."""
    n = rows(tensors)
    block = spaced(layout.total, n)
    truths = torch.empty(sum(layout.truths), n, dtype=torch.bool) if any(layout.masks) else None
    distance = spacing(n)
    number, truth = block.data_ptr(), 0 if truths is None else truths.data_ptr()
    to = []
    for count, other, mask in zip(layout.counts, layout.truths, layout.masks, strict=True):
        to.append(truth if mask else number)
        number, truth = number + 4 * distance * count, truth + n * other
    kept = [_as_rows(tensor, n) for tensor in tensors]
    loop.run(
        _addresses([tensor.data_ptr() for tensor in kept]),
        _addresses([_row(tensor) for tensor in kept]),
        _addresses(to),
        _addresses([n if mask else distance for mask in layout.masks]),
        n,
        _threads(n),
    )
    return block, truths


def _threads(n: int) -> int:
    return max(1, min(torch.get_num_threads(), n // ROWS_PER_THREAD))


def _addresses(values: Sequence[int]) -> Any:
    return (ctypes.c_int64 * len(values))(*values)


def _row(tensor: Tensor) -> int:
    """The distance between the rows of n of a tensor (n, …), in numbers."""
    return next((tensor.stride(k) for k in range(tensor.ndim - 1, 0, -1) if tensor.shape[k] > 1), 0)


def _as_rows(tensor: Tensor, n: int) -> Tensor:
    """``tensor`` as evenly spaced rows, one per number, of n neighbours; copied only if it isn't."""
    if tensor.ndim <= 2:
        if n == 1 or tensor.shape[0] == 1 or tensor.stride(0) == 1 or not tensor.numel():
            return tensor
        return tensor.mT.contiguous().mT if tensor.ndim == 2 else tensor.contiguous()
    return tensor if are_rows(tensor) else tensor.movedim(0, -1).contiguous().movedim(-1, 0)


def are_rows(tensor: Tensor) -> bool:
    """Whether the numbers of a tensor (n, …) lie in evenly spaced rows, each of n neighbours."""
    if not tensor.numel():
        return True
    distance = _row(tensor)
    for size, stride in zip(reversed(tensor.shape[1:]), reversed(tensor.stride()[1:]), strict=True):
        if size > 1 and stride != distance:
            return False
        distance *= size
    return tensor.stride(0) == 1 or tensor.shape[0] == 1
