"""Structures of tensors, and how their numbers lie in memory: each in a row over the environments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse.symbol import Symbol


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


@dataclass
class Layout:
    """How results are kept: numbers in a structure of arrays (numbers, n), truth values in another one."""

    shapes: Sequence[torch.Size]
    masks: Sequence[bool]

    def __post_init__(self) -> None:
        sizes = [shape.numel() for shape in self.shapes]
        self.counts = [0 if mask else size for size, mask in zip(sizes, self.masks, strict=True)]
        self.total = sum(self.counts)
        self.truths = [size if mask else 0 for size, mask in zip(sizes, self.masks, strict=True)]
        self.flat = all(len(shape) == 1 for shape in self.shapes) and not any(self.masks)
        self.kinds = [torch.bool if mask else torch.float32 for mask in self.masks]

    @classmethod
    def of(cls, tensors: Sequence[Tensor]) -> Layout:
        """For tensors like these."""
        return cls([tensor.shape[1:] for tensor in tensors], [False] * len(tensors))

    def cut(self, block: Tensor, truths: Tensor | None = None) -> tuple[Tensor, ...]:
        """Views (n, …) of the numbers of ``block``, and of ``truths`` (truth values, n), which are new if not given."""
        parts = block.mT.split_with_sizes(self.counts, 1)
        if self.flat:
            return parts
        if any(self.masks):
            if truths is None:
                truths = torch.zeros(sum(self.truths), block.shape[1], dtype=torch.bool, device=block.device)
            others = truths.mT.split_with_sizes(self.truths, 1)
            parts = tuple([b if mask else a for a, b, mask in zip(parts, others, self.masks, strict=True)])
        return tuple([_shaped(part, shape) for part, shape in zip(parts, self.shapes, strict=True)])


def _shaped(part: Tensor, shape: torch.Size) -> Tensor:
    return part if len(shape) == 1 else part.unflatten(1, shape) if len(shape) else part[:, 0]


LINE = 16  # numbers of a line of the processor's cache, 64 bytes


def spacing(n: int) -> int:
    """The distance of rows of n numbers in memory, in numbers.

    A native loop reads and writes a hundred rows at a time. At a distance of 4 KiB they would all compete for the same
    few lines of the cache (and at 128 B times any number, for half of them or fewer): large rows are an odd number of
    lines apart.
    """
    return n + LINE if n >= 16 * LINE and n % (2 * LINE) == 0 else n


def spaced(*shape: int, device: Any = None, zero: bool = False) -> Tensor:
    """New memory (…, n) whose rows lie at the distance ``spacing(n)``."""
    *rows_of, n = shape
    return (torch.zeros if zero else torch.empty)(*rows_of, spacing(n), device=device)[..., :n]


def empty_block(
    n: int, shapes: Sequence[tuple[int, ...]], device: Any = None, packed: bool = True
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """A structure of arrays for n environments, and its parts as (n, …) tensors, all zero.

    Its rows follow each other without gaps; if not ``packed``, as is best for a native loop (``spacing``).
    """
    layout = Layout([torch.Size(shape) for shape in shapes], [False] * len(shapes))
    block = torch.zeros(layout.total, n, device=device) if packed else spaced(layout.total, n, device=device, zero=True)
    return block, layout.cut(block)


def blocks_like(value: Any, copies: int) -> tuple[Tensor, list[Any]]:
    """Room for the tensors (n, …) in ``value``, ``copies`` times: blocks (copies, numbers, n), and their parts."""
    tensors: list[Tensor] = []
    structure = flatten(value, tensors)
    layout = Layout.of(tensors)
    blocks = spaced(copies, layout.total, rows(tensors), device=tensors[0].device, zero=True)
    return blocks, [unflatten(structure, iter(layout.cut(block))) for block in blocks]


def rows(tensors: Sequence[Tensor]) -> int:
    """n of tensors (n, …) or (1, …)."""
    return max([tensor.shape[0] for tensor in tensors])
